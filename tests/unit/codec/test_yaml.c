/* test_yaml.c - YAML read as Kubernetes' tools read it, within bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "codec/yaml.h"

enum { MAX = 1024 * 1024 };

static void assert_reads(const char *text, const char *want)
{
    auto_json_doc struct json_doc *doc = NULL;
    auto_buf struct buf out = { .max = MAX };
    struct err err = { 0 };

    if (yaml_parse_one(str_of(text), NULL, &doc, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    json_write_canonical(json_root(doc), &out);
    if (!str_is(buf_str(&out), want))
        fail_msg("%s\n  gives %s\n  not   %s", text, buf_text(&out), want);
}

static void assert_refused(struct str text, int class, const char *words)
{
    struct json_doc *doc = NULL;
    struct err err = { 0 };

    assert_int_equal(yaml_parse_one(text, NULL, &doc, &err), -class);
    assert_null(doc);
    assert_int_equal(err.class, class);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not hold \"%s\"", err.text, words);
}

static void plain_scalars_mean_what_kubernetes_makes_of_them(void **state)
{
    static const struct {
        const char *yaml, *json;
    } cases[] = {
        { "", "null" },
        { "~", "null" },
        { "Null", "null" },
        { "true", "true" },
        { "yes", "true" },
        { "On", "true" },
        { "y", "true" },
        { "N", "false" },
        { "off", "false" },
        { "yEs", "\"yEs\"" },
        { "0", "0" },
        { "-0", "0" },
        { "+12", "12" },
        { "-12", "-12" },
        { "0x1F", "31" },
        { "-0x10", "-16" },
        { "0o17", "15" },
        { "017", "15" },
        { "08", "8" },
        { "0b101", "5" },
        { "0x", "\"0x\"" },
        { "0xg", "\"0xg\"" },
        { "0b2", "\"0b2\"" },
        { "1_000", "1000" },
        { "_1", "\"_1\"" },
        { "9223372036854775807", "9223372036854775807" },
        { "-9223372036854775808", "-9223372036854775808" },
        { "-9223372036854775809", "-9223372036854775808" }, /* a float */
        { "18446744073709551615", "18446744073709551615" },
        { "+18446744073709551615", "18446744073709552000.0" },
        { "99999999999999999999", "100000000000000000000.0" },
        { "1.5", "1.5" },
        { "1.", "1" },
        { ".5", "0.5" },
        { "-.5e1", "-5" },
        { "+1.25E+2", "125" },
        { "1e3", "1000" },
        { "1e", "\"1e\"" },
        { "1e400", "\"1e400\"" },
        { ".", "\".\"" },
        { "1.2.3", "\"1.2.3\"" },
        { "12:30:45", "\"12:30:45\"" },
        { "2001-12-14", "\"2001-12-14\"" },
        { "10Gi", "\"10Gi\"" },
        { "\"yes\"", "\"yes\"" },
        { "'12'", "\"12\"" },
        { "|\n 12\n", "\"12\\n\"" },
        { "!!str 12", "\"12\"" },
        { "!!int \"12\"", "12" },
        { "!!float 1", "1" },
        { "!!bool yes", "true" },
        { "!!null ''", "null" },
        { "<<", "\"<<\"" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_reads(cases[i].yaml, cases[i].json);
}

static void block_scalars_keep_their_lines(void **state)
{
    assert_reads("a: |\n  x\n  y\nb: >-\n  x\n  y\nc: |+\n  z\n\n",
                 "{\"a\":\"x\\ny\\n\",\"b\":\"x y\",\"c\":\"z\\n\\n\"}");
    assert_reads("\"\\0\\x41\\u263a\\n\"", "\"\\u0000A\xe2\x98\xba\\n\"");
}

static void collections_nest_in_both_styles(void **state)
{
    assert_reads("a:\n- b: 1\n  c: [x, {k: z}]\n-\n",
                 "{\"a\":[{\"b\":1,\"c\":[\"x\",{\"k\":\"z\"}]},null]}");
    assert_reads("{\"json\": [1, 2.5, null, true]}", "{\"json\":[1,2.5,null,true]}");
    assert_reads("a: !!map {}\nb: !!seq []\n", "{\"a\":{},\"b\":[]}");
    assert_reads("? a\n: 1\n? b\n", "{\"a\":1,\"b\":null}");
}

static void keys_become_strings(void **state)
{
    assert_reads("1: a\n0x10: b\nyes: c\n\"1.5\": d\n-3: e\n",
                 "{\"-3\":\"e\",\"1\":\"a\",\"1.5\":\"d\",\"16\":\"b\",\"true\":\"c\"}");
    assert_reads("? &k foo\n: bar\nz: *k\n", "{\"foo\":\"bar\",\"z\":\"foo\"}");
    assert_refused(STR("a: 1\n1.5: x"), ERR_INVALID,
                   "line 2 column 1: the key \"1.5\" needs quotes");
    assert_refused(STR("~: x"), ERR_INVALID, "needs quotes");
    assert_refused(STR("9223372036854775808: x"), ERR_INVALID, "needs quotes");
    assert_refused(STR("? [a]\n: b"), ERR_INVALID, "a key must be a scalar");
}

static void duplicate_keys_are_refused_with_both_lines(void **state)
{
    assert_refused(STR("a: 1\nb: 2\na: 3\n"), ERR_INVALID,
                   "line 3 column 1: the key \"a\" was used before, on line 1");
    assert_refused(STR("1: x\n\"1\": y\n"), ERR_INVALID, "was used before");
    assert_refused(STR("- {a: 1, b: {c: 1, c: 1}}"), ERR_INVALID, "line 1 column 20");
    assert_refused(STR("<<: {a: 1, a: 2}"), ERR_INVALID, "was used before");
}

static void aliases_repeat_their_anchor(void **state)
{
    assert_reads("- &a {x: [1]}\n- *a\n- *a\n", "[{\"x\":[1]},{\"x\":[1]},{\"x\":[1]}]");
    assert_reads("- &a 1\n- &a 2\n- *a\n", "[1,2,2]");
    assert_refused(STR("a: *b"), ERR_INVALID, "line 1 column 4: unknown anchor \"b\"");
    assert_refused(STR("a: &a [*a]"), ERR_INVALID, "holds itself");
    assert_refused(STR("a: &a\n  b: {c: *a}"), ERR_INVALID, "holds itself");
}

static void an_anchor_ends_with_its_document(void **state)
{
    struct yaml_docs docs = { 0 };
    struct err err = { 0 };

    assert_int_equal(yaml_parse(STR("&a x\n---\n*a\n"), NULL, &docs, &err), -ERR_INVALID);
    assert_non_null(strstr(err.text, "unknown anchor"));
    assert_null(docs.docs);
}

static void merge_keys_follow_the_order_of_the_text(void **state)
{
    assert_reads("- &b {a: 2, c: 3}\n- {<<: *b, a: 1}\n", "[{\"a\":2,\"c\":3},{\"a\":1,\"c\":3}]");
    assert_reads("- &b {a: 2, c: 3}\n- {a: 1, <<: *b}\n", "[{\"a\":2,\"c\":3},{\"a\":2,\"c\":3}]");
    assert_reads("- &b {a: 1}\n- &c {a: 2, d: 3}\n- <<: [*b, *c]\n",
                 "[{\"a\":1},{\"a\":2,\"d\":3},{\"a\":1,\"d\":3}]");
    assert_reads("<<: {a: 1, <<: {b: 2}}", "{\"a\":1,\"b\":2}");
    assert_reads("- &b {a: 1}\n- <<: [*b, *b]\n  <<: []\n", "[{\"a\":1},{\"a\":1}]");
    assert_reads("\"<<\": {a: 1}", "{\"<<\":{\"a\":1}}");
    assert_refused(STR("<<: 1"), ERR_INVALID, "<< wants a mapping");
    assert_refused(STR("<<: [{a: 1}, 2]"), ERR_INVALID, "<< wants a mapping");
    assert_refused(STR("- &a [{b: 1}]\n- <<: *a"), ERR_INVALID, "<< wants a mapping");
}

static void what_json_cannot_hold_is_refused(void **state)
{
    assert_refused(STR("a: .inf"), ERR_INVALID, "line 1 column 4: JSON has no number \".inf\"");
    assert_refused(STR("-.INF"), ERR_INVALID, "JSON has no number");
    assert_refused(STR(".nan"), ERR_INVALID, "JSON has no number");
    assert_refused(STR("!foo bar"), ERR_INVALID, "the tag !foo is not for here");
    assert_refused(STR("!!binary aGk="), ERR_INVALID, "tag:yaml.org,2002:binary");
    assert_refused(STR("!!str [a]"), ERR_INVALID, "is not for here");
    assert_refused(STR("!!seq a"), ERR_INVALID, "is not for here");
    assert_refused(STR("!!int x"), ERR_INVALID, "\"x\" does not fit its tag");
    assert_refused(STR("!!int 1.5"), ERR_INVALID, "does not fit its tag");
    assert_refused(STR("!!bool 1"), ERR_INVALID, "does not fit its tag");
    assert_refused(STR("!!null x"), ERR_INVALID, "does not fit its tag");
}

static void syntax_errors_name_line_and_column(void **state)
{
    assert_refused(STR("a: 1\nb: [1, 2\n"), ERR_INVALID, "line 3 column 1: ");
    assert_refused(STR("a: b: c"), ERR_INVALID, "line 1 column 5: mapping values are not allowed");
    assert_refused(STR("\"a"), ERR_INVALID, "unexpected end of stream");
    assert_refused(STR("@a"), ERR_INVALID, "cannot start any token");
    assert_refused(STR("a: \xff"), ERR_INVALID, "byte 3: invalid leading UTF-8 octet");
    assert_refused(STR("a\0b"), ERR_INVALID, "control characters are not allowed");
    assert_refused(STR("\xff\xfe"
                       "a\0"),
                   ERR_INVALID, "UTF-8"); /* no guessing of UTF-16 */
    assert_refused(STR("a:\n\t- b"), ERR_INVALID, "line 2");
}

static void a_text_may_hold_many_documents(void **state)
{
    auto_yaml_docs struct yaml_docs docs = { 0 };
    struct err err = { 0 };

    assert_int_equal(
        yaml_parse(STR("# first\na: 1\n---\n- 2\n...\n---\n---\n\"x\"\n"), NULL, &docs, &err), 0);
    assert_int_equal(docs.count, 4);
    assert_int_equal(json_i64_or(json_get(json_root(docs.docs[0]), "a"), 0), 1);
    assert_true(json_is_array(json_root(docs.docs[1])));
    assert_true(json_is_null(json_root(docs.docs[2])));
    assert_true(json_is_string(json_root(docs.docs[3])));
}

static void an_empty_text_holds_no_document(void **state)
{
    auto_yaml_docs struct yaml_docs docs = { 0 };

    assert_int_equal(yaml_parse(STR("# nothing\n"), NULL, &docs, NULL), 0);
    assert_int_equal(docs.count, 0);
    assert_reads("", "null");
    yaml_docs_done(NULL);
}

static void one_document_means_one(void **state)
{
    assert_refused(STR("a: 1\n---\nb: 2\n"), ERR_TOO_BIG, "line 2: more than 1 documents");
}

static int parse_with(const struct yaml_limits *limits, const char *text, struct err *err)
{
    auto_yaml_docs struct yaml_docs docs = { 0 };

    return yaml_parse(str_of(text), limits, &docs, err);
}

static void every_limit_is_held(void **state)
{
    const struct yaml_limits limits = { .max_bytes = 40, .max_documents = 2, .max_values = 7 };
    struct err err = { 0 };

    assert_int_equal(parse_with(&limits, "[1, 2, 3, 4, 5, 6]", &err), 0);
    assert_int_equal(parse_with(&limits, "[1, 2, 3, 4, 5, 6, 7]", &err), -ERR_TOO_BIG);
    assert_non_null(strstr(err.text, "more than 7 values"));
    assert_int_equal(parse_with(&limits, "{a: 1, b: 2, c: 3}", &err), 0);
    assert_int_equal(parse_with(&limits, "{a: 1, b: 2, c: 3, d: 4}", &err), -ERR_TOO_BIG);
    assert_int_equal(parse_with(&limits, "--- 1\n--- 2\n", &err), 0);
    assert_int_equal(parse_with(&limits, "--- 1\n--- 2\n--- 3\n", &err), -ERR_TOO_BIG);
    assert_int_equal(parse_with(&limits, "--- [1, 2, 3]\n--- [1, 2, 3]\n", &err), -ERR_TOO_BIG);
    assert_int_equal(parse_with(&limits, "\"a text of forty-one bytes with its quotes\"", &err),
                     -ERR_TOO_BIG);
}

static void expansion_is_bounded_by_values(void **state)
{
    auto_buf struct buf text = { .max = MAX };

    buf_add_text(&text, "a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 30; i++) {
        buf_printf(&text, "a%d: &a%d [", i, i);
        for (int j = 0; j < 9; j++)
            buf_printf(&text, "%s*a%d", j > 0 ? ", " : "", i - 1);
        buf_add_text(&text, "]\n");
    }
    assert_refused(buf_str(&text), ERR_TOO_BIG, "once aliases are expanded");
}

static void assert_merging_is_bounded(const char *mapping)
{
    auto_buf struct buf text = { .max = MAX };

    buf_printf(&text, "a0: &a0 %s\n", mapping);
    for (int i = 1; i < 60; i++)
        buf_printf(&text, "a%d: &a%d {<<: [*a%d, *a%d]}\n", i, i, i - 1, i - 1);
    assert_refused(buf_str(&text), ERR_TOO_BIG, "once aliases are expanded");
}

static void expansion_by_merging_is_bounded(void **state)
{
    assert_merging_is_bounded("{x: 1, y: 2}");
    assert_merging_is_bounded("{}");
    assert_merging_is_bounded("{<<: []}");
}

static void expansion_is_bounded_by_text(void **state)
{
    auto_buf struct buf text = { .max = MAX };

    buf_add_text(&text, "- &a ");
    for (int i = 0; i < 500000; i++)
        buf_add_char(&text, 'x');
    buf_add_text(&text, "\n");
    for (int i = 0; i < 100; i++)
        buf_add_text(&text, "- *a\n");
    assert_refused(buf_str(&text), ERR_TOO_BIG, "too much text once aliases are expanded");
}

static void add_nested(struct buf *text, unsigned levels)
{
    for (unsigned i = 0; i < levels; i++)
        buf_add_char(text, '[');
    for (unsigned i = 0; i < levels; i++)
        buf_add_char(text, ']');
}

static void nesting_is_bounded(void **state)
{
    auto_buf struct buf text = { .max = MAX };

    add_nested(&text, JSON_MAX_DEPTH);
    assert_int_equal(parse_with(NULL, buf_text(&text), NULL), 0);
    buf_clear(&text);
    add_nested(&text, JSON_MAX_DEPTH + 1);
    assert_refused(buf_str(&text), ERR_TOO_BIG, "nested deeper than 200 levels");

    buf_clear(&text); /* each alias adds the depth of its anchor */
    buf_add_text(&text, "- &a ");
    add_nested(&text, 120);
    buf_add_text(&text, "\n- [[*a]]\n");
    assert_int_equal(parse_with(NULL, buf_text(&text), NULL), 0);
    buf_clear(&text);
    buf_add_text(&text, "- &a ");
    for (int i = 0; i < 120; i++)
        buf_add_char(&text, '[');
    buf_add_text(&text, "&b ");
    add_nested(&text, 60);
    for (int i = 0; i < 120; i++)
        buf_add_char(&text, ']');
    buf_add_text(&text, "\n- [[[[[[[[[[[[[[[[[[[[*a]]]]]]]]]]]]]]]]]]]]\n");
    assert_refused(buf_str(&text), ERR_TOO_BIG, "nested deeper than 200 levels");
}

static void anchors_are_bounded(void **state)
{
    auto_buf struct buf text = { .max = MAX };

    for (int i = 0; i < 1000; i++)
        buf_printf(&text, "- &a%d x\n", i);
    assert_int_equal(parse_with(NULL, buf_text(&text), NULL), 0);
    buf_add_text(&text, "- &more x\n");
    assert_refused(buf_str(&text), ERR_TOO_BIG, "more than 1000 anchors");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_scalars_mean_what_kubernetes_makes_of_them),
        cmocka_unit_test(block_scalars_keep_their_lines),
        cmocka_unit_test(collections_nest_in_both_styles),
        cmocka_unit_test(keys_become_strings),
        cmocka_unit_test(duplicate_keys_are_refused_with_both_lines),
        cmocka_unit_test(aliases_repeat_their_anchor),
        cmocka_unit_test(an_anchor_ends_with_its_document),
        cmocka_unit_test(merge_keys_follow_the_order_of_the_text),
        cmocka_unit_test(what_json_cannot_hold_is_refused),
        cmocka_unit_test(syntax_errors_name_line_and_column),
        cmocka_unit_test(a_text_may_hold_many_documents),
        cmocka_unit_test(an_empty_text_holds_no_document),
        cmocka_unit_test(one_document_means_one),
        cmocka_unit_test(every_limit_is_held),
        cmocka_unit_test(expansion_is_bounded_by_values),
        cmocka_unit_test(expansion_by_merging_is_bounded),
        cmocka_unit_test(expansion_is_bounded_by_text),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(anchors_are_bounded),
    };

    return cmocka_run_group_tests_name("yaml", tests, NULL, NULL);
}
