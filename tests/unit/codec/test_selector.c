/* test_selector.c - label selectors: grammar, validation, matching, printing, bounds. */
#include "codec/selector.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { ARENA = 16 * 1024 * 1024 };

/* A selector of any kind, and the arena and document it lives in. */
struct fixture {
    struct arena arena;
    struct json_doc *doc;
};

static int setup(void **state)
{
    static struct fixture fixture;

    arena_init(&fixture.arena, ARENA);
    fixture.doc = NULL;
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    arena_done(&fixture->arena);
    json_doc_free(fixture->doc);
    return 0;
}

/* JSON with ' for ". The last document parsed stays until the next. */
static const struct json *json_of(struct fixture *fixture, const char *text)
{
    char *copy = arena_strdup(&fixture->arena, text);
    struct err err = { 0 };

    for (char *c = copy; *c; c++)
        if (*c == '\'')
            *c = '"';
    json_doc_free(fixture->doc);
    fixture->doc = NULL;
    if (json_parse(str_of(copy), 1 << 20, &fixture->doc, &err) < 0)
        fail_msg("%s: %s", copy, err.text);
    return json_root(fixture->doc);
}

static const struct selector *parsed(struct fixture *fixture, const char *text)
{
    const struct selector *selector = NULL;
    struct err err = { 0 };

    if (selector_parse(&fixture->arena, str_of(text), &selector, &err) < 0)
        fail_msg("\"%s\": %s", text, err.text);
    return selector;
}

static const struct selector *from_json(struct fixture *fixture, const char *text)
{
    const struct selector *selector = NULL;
    struct err err = { 0 };

    if (selector_from_json(&fixture->arena, json_of(fixture, text), SELECTOR_ABSENT_MATCHES_NOTHING,
                           &selector, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return selector;
}

static void expect_text(const struct selector *selector, const char *expected)
{
    auto_buf struct buf out;

    buf_init(&out, SELECTOR_MAX_TEXT);
    assert_int_equal(selector_print(selector, &out, NULL), 0);
    assert_string_equal(buf_text(&out), expected);
}

static void text_is_read_and_printed_in_canonical_form(void **state)
{
    static const struct {
        const char *text, *printed;
    } cases[] = {
        { "", "" },
        { " \t\r\n", "" },
        { "a=b", "a=b" },
        { "a==b", "a=b" },
        { " a = b ", "a=b" },
        { "a!=b", "a!=b" },
        { "a=", "a=" },
        { "a=,b", "a=,b" },
        { "a!=", "a!=" },
        { "z,!y", "!y,z" },
        { "! y", "!y" },
        { "e in (y,x,y)", "e in (x,y)" },
        { "e notin (z)", "e notin (z)" },
        { "e in ()", "e in ()" },
        { "e in (,)", "e in ()" },
        { "e in (a,,b)", "e in (,a,b)" },
        { "e in (a,)", "e in (,a)" },
        { "in in (in,notin)", "in in (in,notin)" },
        { "notin=in", "notin=in" },
        { "x>5,y<07", "x>5,y<07" },
        { "a=b,c!=d,e in (x,y),f notin (z),g,!h", "a=b,c!=d,e in (x,y),f notin (z),g,!h" },
        { "b,a,b=1,b=0", "a,b,b=1,b=0" },
        { "k8s.io/Name_1.x=V", "k8s.io/Name_1.x=V" },
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        expect_text(parsed(*state, cases[i].text), cases[i].printed);
}

static void wrong_text_is_refused(void **state)
{
    static const char *const texts[] = {
        ",",
        "a,",
        ",a",
        "a,,b",
        "=b",
        "a b",
        "a=b c",
        "a===b",
        "a=!b",
        "a=b=c",
        "!a=b",
        "!",
        "!!a",
        "!a in (b)",
        "a in",
        "a in b",
        "a in (",
        "a in (b",
        "a in (b c)",
        "a in ((b))",
        "a in (b))",
        "a notin",
        "in (a)",
        "a in (=)",
        "(a)",
        "a)",
        "a>",
        "a>x",
        "a<1.5",
        "a> -1",
        "a>1,2>",
        "-a",
        "a-",
        "a/b/c",
        "/a",
        "a/",
        "A.io/x",
        "a..b/x",
        "-a/x",
        "a=-b",
        "a=b-",
        "a=b/c",
        "a=b@",
        "a\x01=b",
        "a=\xc3\xa9",
        "a in (b,-)",
        "a=(b)",
        "a,)",
        "a>99999999999999999999",
        "a=\xff",
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < COUNT(texts); i++) {
        const struct selector *selector = NULL;
        struct err err = { 0 };

        if (selector_parse(&fixture->arena, str_of(texts[i]), &selector, &err) != -ERR_INVALID)
            fail_msg("\"%s\" was taken", texts[i]);
        assert_null(selector);
        assert_true(err.text[0] != '\0');
    }
    const struct selector *selector;
    assert_int_equal(selector_parse(&fixture->arena, STR("a\0=b"), &selector, NULL), -ERR_INVALID);
}

static void keys_and_values_are_validated_as_by_the_api_server(void **state)
{
    char name[65], subdomain[256];

    memset(name, 'n', sizeof(name));
    memset(subdomain, 's', sizeof(subdomain));
    assert_int_equal(selector_check_key((struct str){ name, 63 }, NULL), 0);
    assert_int_equal(selector_check_key((struct str){ name, 64 }, NULL), -ERR_INVALID);
    assert_int_equal(selector_check_value((struct str){ name, 63 }, NULL), 0);
    assert_int_equal(selector_check_value((struct str){ name, 64 }, NULL), -ERR_INVALID);
    assert_int_equal(selector_check_value(STR(""), NULL), 0);
    assert_int_equal(selector_check_key(STR(""), NULL), -ERR_INVALID);
    subdomain[253] = '/';
    subdomain[254] = 'x';
    assert_int_equal(selector_check_key((struct str){ subdomain, 255 }, NULL), 0);
    memset(subdomain, 's', sizeof(subdomain));
    subdomain[254] = '/';
    subdomain[255] = 'x';
    assert_int_equal(selector_check_key((struct str){ subdomain, 256 }, NULL), -ERR_INVALID);
}

static void a_selector_matches_by_the_letter(void **state)
{
    static const struct {
        const char *selector, *labels;
        bool matches;
    } cases[] = {
        { "", "{}", true },
        { "", "{'a':'b'}", true },
        { "a=b", "{'a':'b'}", true },
        { "a=b", "{'a':'c'}", false },
        { "a=b", "{}", false },
        { "a=", "{'a':''}", true },
        { "a=", "{}", false },
        { "a!=b", "{'a':'b'}", false },
        { "a!=b", "{'a':'c'}", true },
        { "a!=b", "{}", true },
        { "a!=", "{}", true },
        { "a in (b,c)", "{'a':'c'}", true },
        { "a in (b,c)", "{'a':'d'}", false },
        { "a in (b,c)", "{}", false },
        { "a in ()", "{'a':''}", true },
        { "a notin (b,c)", "{'a':'c'}", false },
        { "a notin (b,c)", "{'a':'d'}", true },
        { "a notin (b,c)", "{}", true },
        { "a", "{'a':''}", true },
        { "a", "{'A':''}", false },
        { "!a", "{}", true },
        { "!a", "{'a':'x'}", false },
        { "a>5", "{'a':'6'}", true },
        { "a>5", "{'a':'5'}", false },
        { "a>5", "{'a':'+6'}", true },
        { "a>5", "{'a':'x'}", false },
        { "a>5", "{'a':'6.5'}", false },
        { "a>5", "{}", false },
        { "a<5", "{'a':'-6'}", true },
        { "a<5", "{'a':'+-6'}", false },
        { "a<5", "{'a':''}", false },
        { "a<5", "{'a':'99999999999999999999'}", false },
        { "a=b,c=d", "{'a':'b','c':'d'}", true },
        { "a=b,c=d", "{'a':'b'}", false },
        { "a=b,a=c", "{'a':'b'}", false },
        { "a", "null", false },
        { "!a", "null", true },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct selector *selector = parsed(*state, cases[i].selector);
        const struct json *labels = json_of(*state, cases[i].labels);

        if (selector_matches(selector, selector_labels(labels)) != cases[i].matches)
            fail_msg("\"%s\" of %s", cases[i].selector, cases[i].labels);
    }
    assert_true(selector_matches(parsed(*state, "!a"), selector_labels(NULL)));
}

static void an_object_is_compiled_like_its_text(void **state)
{
    static const struct {
        const char *object, *text;
    } cases[] = {
        { "{}", "" },
        { "{'matchLabels':{},'matchExpressions':[]}", "" },
        { "{'matchLabels':null,'matchExpressions':null}", "" },
        { "{'matchLabels':{'b':'1','a':'2'}}", "a=2,b=1" },
        { "{'matchLabels':{'a':'1','a':'2'}}", "a=2" },
        { "{'matchLabels':{'a':null}}", "a=" },
        { "{'matchExpressions':[{'key':'a','operator':'In','values':['y','x','y']}]}",
          "a in (x,y)" },
        { "{'matchExpressions':[{'key':'a','operator':'NotIn','values':['']}]}", "a notin ()" },
        { "{'matchExpressions':[{'key':'b','operator':'Exists'},"
          "{'key':'a','operator':'DoesNotExist','values':[]}]}",
          "!a,b" },
        { "{'matchLabels':{'a':'1'},'matchExpressions':[{'key':'a','operator':'Exists'}]}",
          "a=1,a" },
        { "{'other':1}", "" },
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        expect_text(from_json(*state, cases[i].object), cases[i].text);
}

static void wrong_objects_are_refused(void **state)
{
    static const char *const objects[] = {
        "[]",
        "'a=b'",
        "{'matchLabels':[]}",
        "{'matchLabels':{'a':1}}",
        "{'matchLabels':{'-a':'b'}}",
        "{'matchLabels':{'a':'b c'}}",
        "{'matchExpressions':{}}",
        "{'matchExpressions':['a']}",
        "{'matchExpressions':[null]}",
        "{'matchExpressions':[{}]}",
        "{'matchExpressions':[{'key':'a'}]}",
        "{'matchExpressions':[{'key':1,'operator':'Exists'}]}",
        "{'matchExpressions':[{'key':'a','operator':'in','values':['b']}]}",
        "{'matchExpressions':[{'key':'a','operator':'Gt','values':['1']}]}",
        "{'matchExpressions':[{'key':'a','operator':'In'}]}",
        "{'matchExpressions':[{'key':'a','operator':'NotIn','values':[]}]}",
        "{'matchExpressions':[{'key':'a','operator':'In','values':'b'}]}",
        "{'matchExpressions':[{'key':'a','operator':'In','values':[1]}]}",
        "{'matchExpressions':[{'key':'a','operator':'In','values':['?']}]}",
        "{'matchExpressions':[{'key':'a','operator':'Exists','values':['b']}]}",
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < COUNT(objects); i++) {
        const struct selector *selector = NULL;

        if (selector_from_json(&fixture->arena, json_of(fixture, objects[i]),
                               SELECTOR_ABSENT_MATCHES_ALL, &selector, NULL) != -ERR_INVALID)
            fail_msg("%s was taken", objects[i]);
        assert_null(selector);
    }
}

static void an_absent_selector_matches_what_the_caller_says(void **state)
{
    struct fixture *fixture = *state;
    const struct json *null = json_of(fixture, "null");
    const struct json *const absent[] = { NULL, null };
    auto_buf struct buf out;

    buf_init(&out, 100);
    for (size_t i = 0; i < COUNT(absent); i++) {
        const struct selector *nothing, *all, *map;

        assert_int_equal(selector_from_json(&fixture->arena, absent[i],
                                            SELECTOR_ABSENT_MATCHES_NOTHING, &nothing, NULL),
                         0);
        assert_int_equal(
            selector_from_json(&fixture->arena, absent[i], SELECTOR_ABSENT_MATCHES_ALL, &all, NULL),
            0);
        assert_int_equal(selector_from_map(&fixture->arena, absent[i],
                                           SELECTOR_ABSENT_MATCHES_NOTHING, &map, NULL),
                         0);
        assert_false(selector_matches(nothing, selector_labels(NULL)));
        assert_false(selector_matches_all(nothing));
        assert_true(selector_matches(all, selector_labels(NULL)));
        assert_true(selector_matches_all(all));
        assert_false(selector_matches(map, selector_labels(NULL)));
        assert_int_equal(selector_print(nothing, &out, NULL), -ERR_INVALID);
    }
    assert_true(selector_matches_all(parsed(fixture, "")));
    assert_false(selector_matches_all(parsed(fixture, "a")));
}

static void a_plain_map_is_a_selector_too(void **state)
{
    struct fixture *fixture = *state;
    const struct selector *selector;

    assert_int_equal(selector_from_map(&fixture->arena, json_of(fixture, "{'b':'1','a':''}"),
                                       SELECTOR_ABSENT_MATCHES_NOTHING, &selector, NULL),
                     0);
    expect_text(selector, "a=,b=1");
    assert_int_equal(selector_from_map(&fixture->arena, json_of(fixture, "{}"),
                                       SELECTOR_ABSENT_MATCHES_NOTHING, &selector, NULL),
                     0);
    assert_true(selector_matches_all(selector));
}

static void requirements_values_and_text_are_bounded(void **state)
{
    struct fixture *fixture = *state;
    const struct selector *selector;
    auto_buf struct buf text;

    buf_init(&text, 1 << 20);
    for (int i = 0; i < SELECTOR_MAX_REQUIREMENTS; i++)
        buf_add_text(&text, i > 0 ? ",a" : "a");
    assert_int_equal(selector_parse(&fixture->arena, buf_str(&text), &selector, NULL), 0);
    buf_add_text(&text, ",a");
    assert_int_equal(selector_parse(&fixture->arena, buf_str(&text), &selector, NULL),
                     -ERR_TOO_BIG);

    buf_clear(&text);
    buf_add_text(&text, "a in (x");
    for (int i = 1; i < SELECTOR_MAX_VALUES; i++)
        buf_add_text(&text, ",x");
    buf_add_text(&text, ")");
    assert_int_equal(selector_parse(&fixture->arena, buf_str(&text), &selector, NULL), 0);
    expect_text(selector, "a in (x)");
    buf_truncate(&text, text.len - 1);
    buf_add_text(&text, ",x)");
    assert_int_equal(selector_parse(&fixture->arena, buf_str(&text), &selector, NULL),
                     -ERR_TOO_BIG);

    buf_clear(&text);
    while (text.len < SELECTOR_MAX_TEXT)
        buf_add_char(&text, ' ');
    assert_int_equal(selector_parse(&fixture->arena, buf_str(&text), &selector, NULL), 0);
    buf_add_char(&text, ' ');
    assert_int_equal(selector_parse(&fixture->arena, buf_str(&text), &selector, NULL),
                     -ERR_TOO_BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(text_is_read_and_printed_in_canonical_form, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(wrong_text_is_refused, setup, teardown),
        cmocka_unit_test(keys_and_values_are_validated_as_by_the_api_server),
        cmocka_unit_test_setup_teardown(a_selector_matches_by_the_letter, setup, teardown),
        cmocka_unit_test_setup_teardown(an_object_is_compiled_like_its_text, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_objects_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(an_absent_selector_matches_what_the_caller_says, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_plain_map_is_a_selector_too, setup, teardown),
        cmocka_unit_test_setup_teardown(requirements_values_and_text_are_bounded, setup, teardown),
    };

    return cmocka_run_group_tests_name("selector", tests, NULL, NULL);
}
