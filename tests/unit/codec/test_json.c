/* test_json.c - reading, comparing, building and writing JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "codec/json.h"

#include <math.h>
#include <stdio.h>

enum { MAX = 1024 * 1024 };

static struct json_doc *parsed(const char *text)
{
    struct json_doc *doc = NULL;
    struct err err = { 0 };

    if (json_parse(str_of(text), MAX, &doc, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return doc;
}

static void assert_text(struct str got, const char *want)
{
    if (!str_is(got, want))
        fail_msg("got \"" STR_FMT "\", want \"%s\"", STR_ARG(got), want);
}

static void assert_written(const struct json_mut *value, const char *want)
{
    auto_buf struct buf out = { .max = MAX };

    json_mut_write(value, &out);
    assert_string_equal(buf_text(&out), want);
}

static void assert_canonical(const char *text, const char *want)
{
    auto_json_doc struct json_doc *doc = parsed(text);
    auto_buf struct buf out = { .max = MAX };

    json_write_canonical(json_root(doc), &out);
    assert_string_equal(buf_text(&out), want);
}

static bool same(const char *a, const char *b)
{
    auto_json_doc struct json_doc *left = parsed(a), *right = parsed(b);
    bool equal = json_equal(json_root(left), json_root(right));

    assert_int_equal(json_equal(json_root(right), json_root(left)), equal);
    return equal;
}

/* ---- reading ---- */

static void texts_outside_the_grammar_are_refused(void **state)
{
    static const struct str texts[] = {
        STR(""),
        STR(" "),
        STR("{"),
        STR("[1,]"),
        STR("{\"a\":1,}"),
        STR("{a:1}"),
        STR("'a'"),
        STR("01"),
        STR("+1"),
        STR(".5"),
        STR("1."),
        STR("NaN"),
        STR("Infinity"),
        STR("nul"),
        STR("1 2"),
        STR("[1]]"),
        STR("\"\n\""),
        STR("\"\\x41\""),
        STR("\"\\u12\""),
        STR("\"\\ud800\""),
        STR("\"\xff\""),
        STR("\"\xc0\x80\""),
        STR("// a\n1"),
        STR("\xef\xbb\xbf"
            "1"),
        STR("1e999"),
        STR("\"a\0b\""),
        STR("1\0"),
        STR("{\"a\" 1}"),
        STR("{1:2}"),
        STR("[1 2]"),
        STR("tru"),
        STR("-"),
        STR("\"a"),
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct json_doc *doc = NULL;
        struct err err = { 0 };

        if (json_parse(texts[i], MAX, &doc, &err) != -ERR_INVALID)
            fail_msg("taken: " STR_FMT, STR_ARG(texts[i]));
        assert_null(doc);
        assert_int_equal(err.class, ERR_INVALID);
    }
}

static void an_error_names_line_and_column(void **state)
{
    struct json_doc *doc = NULL;
    struct err err = { 0 };

    assert_int_equal(json_parse(STR("{\n  \"a\": 1,\n  b: 2\n}"), MAX, &doc, &err), -ERR_INVALID);
    assert_non_null(strstr(err.text, "line 3 column 3 (byte 14)"));
    assert_int_equal(json_parse(STR("["), MAX, &doc, NULL), -ERR_INVALID);
}

static void a_text_above_the_maximum_is_refused(void **state)
{
    struct json_doc *doc = NULL;
    struct err err = { 0 };

    assert_int_equal(json_parse(STR("[1]"), 2, &doc, &err), -ERR_TOO_BIG);
    assert_int_equal(json_parse(STR("[1]"), 3, &doc, &err), 0);
    json_doc_free(doc);
}

/* The text is open * times, 1, close * times; each open adds `levels` levels. */
static int parse_nested(unsigned times, unsigned levels, const char *open, const char *close)
{
    auto_buf struct buf text = { .max = MAX };
    auto_json_doc struct json_doc *doc = NULL;
    unsigned i;
    int rc;

    for (i = 0; i < times; i++)
        buf_add_text(&text, open);
    buf_add_text(&text, "1");
    for (i = 0; i < times; i++)
        buf_add_text(&text, close);
    rc = json_parse(buf_str(&text), MAX, &doc, NULL);
    if (rc == 0)
        assert_int_equal(json_depth(json_root(doc)), times * levels);
    return rc;
}

static void nesting_is_bounded(void **state)
{
    assert_int_equal(parse_nested(JSON_MAX_DEPTH, 1, "[", "]"), 0);
    assert_int_equal(parse_nested(JSON_MAX_DEPTH + 1, 1, "[", "]"), -ERR_TOO_BIG);
    assert_int_equal(parse_nested(JSON_MAX_DEPTH, 1, "{\"a\":", "}"), 0);
    assert_int_equal(parse_nested(JSON_MAX_DEPTH + 1, 1, "{\"a\":", "}"), -ERR_TOO_BIG);
    assert_int_equal(parse_nested(JSON_MAX_DEPTH / 2, 2, "[{},{\"a\":", "},[]]"), 0);
    assert_int_equal(parse_nested(100000, 1, "[", "]"), -ERR_TOO_BIG);
}

static void absent_values_are_taken_everywhere(void **state)
{
    struct json_iter iter = json_iter(NULL);
    const struct json *value;
    struct str key;

    assert_null(json_root(NULL));
    assert_null(json_get(NULL, "a"));
    assert_null(json_at(NULL, "a", "b"));
    assert_null(json_item(NULL, 0));
    assert_int_equal(json_type(NULL), JSON_ABSENT);
    assert_int_equal(json_len(NULL), 0);
    assert_int_equal(json_depth(NULL), 0);
    assert_text(json_str(NULL), "");
    assert_text(json_str_or(NULL, STR("x")), "x");
    assert_true(json_bool_or(NULL, true));
    assert_int_equal(json_i64_or(NULL, -3), -3);
    assert_int_equal(json_u64_or(NULL, 3), 3);
    assert_true(json_f64_or(NULL, 0.5) == 0.5);
    assert_false(json_exists(NULL));
    assert_false(json_is_null(NULL));
    assert_false(json_next_item(&iter, &value));
    assert_false(json_next_member(&iter, &key, &value));
    assert_true(json_equal(NULL, NULL));
    json_doc_free(NULL);
    json_build_free(NULL);
}

static void values_are_found_by_key_path_and_index(void **state)
{
    auto_json_doc struct json_doc *doc = parsed(
        "{\"metadata\":{\"labels\":{\"app.kubernetes.io/name\":\"x\"}},\"items\":[1,\"two\",null],"
        "\"yes\":true,\"nothing\":null}");
    const struct json *root = json_root(doc);

    assert_text(json_str(json_at(root, "metadata", "labels", "app.kubernetes.io/name")), "x");
    assert_null(json_at(root, "metadata", "annotations", "a"));
    assert_null(json_get(root, "metadat"));
    assert_int_equal(json_len(json_get(root, "items")), 3);
    assert_text(json_str(json_item(json_get(root, "items"), 1)), "two");
    assert_null(json_item(json_get(root, "items"), 3));
    assert_true(json_bool_or(json_get(root, "yes"), false));
    assert_true(json_is_null(json_get(root, "nothing")));
    assert_false(json_exists(json_get(root, "nothing")));
    assert_true(json_exists(json_get(root, "yes")));
    assert_null(json_get(json_get(root, "yes"), "a"));
    assert_int_equal(json_len(json_get(root, "yes")), 0);
}

static void of_equal_keys_the_last_one_counts(void **state)
{
    auto_json_doc struct json_doc *doc = parsed("{\"a\":1,\"b\":2,\"a\":3}");
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *copy = json_copy(build, json_root(doc));

    assert_int_equal(json_i64_or(json_get(json_root(doc), "a"), 0), 3);
    assert_true(same("{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}"));
    assert_false(same("{\"a\":1,\"a\":2}", "{\"a\":2,\"b\":2}"));
    assert_canonical("{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}");
    assert_written(json_mut_get(copy, STR("a")), "3");
    json_put_i64(build, copy, "a", 4);
    assert_written(copy, "{\"a\":4,\"b\":2}");
}

static void strings_may_hold_nul_bytes(void **state)
{
    auto_json_doc struct json_doc *doc = parsed("{\"a\\u0000b\":\"c\\u0000d\",\"a\":\"e\"}");
    auto_json_build struct json_build *build = json_build_new();
    struct str value = json_str(json_get_str(json_root(doc), STR("a\0b")));

    assert_int_equal(value.len, 3);
    assert_memory_equal(value.at, "c\0d", 4);
    assert_text(json_str(json_get(json_root(doc), "a")), "e");
    assert_written(json_copy(build, json_root(doc)), "{\"a\\u0000b\":\"c\\u0000d\",\"a\":\"e\"}");
}

static void numbers_are_taken_by_value(void **state)
{
    static const struct {
        const char *text;
        int64_t i64;  /* -1 when out of range */
        uint64_t u64; /* 1 when out of range */
        double f64;
    } cases[] = {
        { "0", 0, 0, 0 },
        { "-0", 0, 0, 0 },
        { "-0.0", 0, 0, 0 },
        { "5.0", 5, 5, 5 },
        { "5e2", 500, 500, 500 },
        { "1.5", -1, 1, 1.5 },
        { "-7", -7, 1, -7 },
        { "9223372036854775807", INT64_MAX, INT64_MAX, 0x1p63 },
        { "9223372036854775808", -1, 9223372036854775808u, 0x1p63 },
        { "-9223372036854775808", INT64_MIN, 1, -0x1p63 },
        { "-9223372036854775809", INT64_MIN, 1, -0x1p63 }, /* a double: rounded */
        { "-9223372036854779904", -1, 1, -9223372036854779904.0 },
        { "18446744073709551615", -1, UINT64_MAX, 0x1p64 },
        { "18446744073709551616", -1, 1, 0x1p64 },
        { "1e300", -1, 1, 1e300 },
        { "\"5\"", -1, 1, 0.25 },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        auto_json_doc struct json_doc *doc = parsed(cases[i].text);

        if (json_i64_or(json_root(doc), -1) != cases[i].i64 ||
            json_u64_or(json_root(doc), 1) != cases[i].u64 ||
            json_f64_or(json_root(doc), 0.25) != cases[i].f64)
            fail_msg("%s", cases[i].text);
    }
}

static void wanted_members_come_with_a_check(void **state)
{
    auto_json_doc struct json_doc *doc = parsed(
        "{\"name\":\"n\",\"port\":70000,\"half\":0.5,\"ready\":true,\"list\":[1],\"map\":{\"a\":1},"
        "\"minus\":-1}");
    const struct json *root = json_root(doc), *found = NULL;
    struct err err = { 0 };
    struct str text = STR("untouched");
    bool ready = false;
    int64_t i64 = 0;
    uint64_t u64 = 0;

    assert_int_equal(json_want_str(root, "name", &text, &err), 0);
    assert_text(text, "n");
    assert_int_equal(json_want_bool(root, "ready", &ready, &err), 0);
    assert_true(ready);
    assert_int_equal(json_want_i64(root, "minus", -1, 1, &i64, &err), 0);
    assert_int_equal(i64, -1);
    assert_int_equal(json_want_u64(root, "port", 0, 70000, &u64, &err), 0);
    assert_int_equal(u64, 70000);
    assert_int_equal(json_want_array(root, "list", &found, &err), 0);
    assert_int_equal(json_len(found), 1);
    assert_int_equal(json_want_object(root, "map", &found, &err), 0);
    assert_int_equal(err.class, 0);

    assert_int_equal(json_want_str(root, "nam", &text, &err), -ERR_INVALID);
    assert_string_equal(err.text, "\"nam\": want string, found nothing");
    assert_int_equal(json_want_str(NULL, "name", &text, &err), -ERR_INVALID);
    assert_text(text, "n");
    assert_int_equal(json_want_bool(root, "name", &ready, &err), -ERR_INVALID);
    assert_string_equal(err.text, "\"name\": want boolean, found string");
    assert_int_equal(json_want_u64(root, "port", 1, 65535, &u64, &err), -ERR_INVALID);
    assert_string_equal(err.text, "\"port\": want a whole number from 1 to 65535, found 70000");
    assert_int_equal(json_want_u64(root, "minus", 0, 9, &u64, &err), -ERR_INVALID);
    assert_int_equal(json_want_i64(root, "half", 0, 9, &i64, &err), -ERR_INVALID);
    assert_int_equal(json_want_i64(root, "minus", 0, 9, &i64, &err), -ERR_INVALID);
    assert_int_equal(json_want_i64(root, "name", 0, 9, &i64, &err), -ERR_INVALID);
    assert_int_equal(json_want_array(root, "map", &found, &err), -ERR_INVALID);
    assert_int_equal(json_want_object(root, "list", &found, &err), -ERR_INVALID);
    assert_int_equal(json_want_str(root, "port", &text, NULL), -ERR_INVALID);
}

static void iteration_keeps_the_order_of_the_text(void **state)
{
    auto_json_doc struct json_doc *doc = parsed("{\"z\":[[1],2],\"a\":{\"b\":3},\"m\":4}");
    auto_buf struct buf seen = { .max = MAX };
    struct json_iter iter = json_iter(json_root(doc));
    const struct json *value;
    struct str key;

    assert_false(json_next_item(&iter, &value)); /* an object has no items */
    while (json_next_member(&iter, &key, &value))
        buf_printf(&seen, STR_FMT "%zu ", STR_ARG(key), json_len(value));
    assert_string_equal(buf_text(&seen), "z2 a1 m0 ");

    iter = json_iter(json_get(json_root(doc), "z"));
    assert_false(json_next_member(&iter, &key, &value));
    assert_true(json_next_item(&iter, &value) && json_is_array(value));
    assert_true(json_next_item(&iter, &value) && json_i64_or(value, 0) == 2);
    assert_false(json_next_item(&iter, &value));
    iter = json_iter(json_get(json_root(doc), "m"));
    assert_false(json_next_item(&iter, &value));
}

static void equality_ignores_order_and_spelling(void **state)
{
    assert_true(same("{\"a\":1,\"b\":[1,2]}", "{\"b\":[1.0,2e0],\"a\":1}"));
    assert_true(same("\"\\u00e9\"", "\"\xc3\xa9\""));
    assert_true(same("18446744073709551615", "18446744073709551615"));
    assert_true(same("-0.0", "0"));
    assert_true(same("{}", "{}"));
    assert_false(same("[1,2]", "[2,1]"));
    assert_false(same("[1]", "[1,1]"));
    assert_false(same("1", "-1"));
    assert_false(same("1", "1.5"));
    assert_false(same("0.1", "0.2"));
    assert_false(same("9007199254740993", "9007199254740992.0"));
    assert_false(same("18446744073709551615", "18446744073709551616"));
    assert_false(same("\"1\"", "1"));
    assert_false(same("null", "false"));
    assert_false(same("true", "false"));
    assert_false(same("{\"a\":1}", "{\"b\":1}"));
    assert_false(same("{\"a\":null}", "{}"));
    assert_false(same("{\"a\":{\"b\":[{\"c\":1}]}}", "{\"a\":{\"b\":[{\"c\":2}]}}"));
}

/* {"k0":0,"k1":1,...}, from either end. */
static void add_big_object(struct buf *out, int count, bool backwards)
{
    for (int i = 0; i < count; i++) {
        int number = backwards ? count - 1 - i : i;

        buf_printf(out, "%s\"k%d\":%d", i > 0 ? "," : "{", number, number);
    }
    buf_add_char(out, '}');
}

static void large_objects_are_indexed(void **state)
{
    auto_buf struct buf up = { .max = MAX }, down = { .max = MAX };
    auto_json_index struct json_index index = { 0 };

    add_big_object(&up, 1000, false);
    add_big_object(&down, 1000, true);
    assert_true(same(buf_text(&up), buf_text(&down)));

    up.data[up.len - 1] = ',';
    buf_add_text(&up, "\"k7\":70}");
    auto_json_doc struct json_doc *doc = parsed(buf_text(&up));
    json_index_init(&index, json_root(doc));
    assert_int_equal(index.count, 1000);
    assert_int_equal(json_i64_or(json_index_get(&index, STR("k7")), 0), 70);
    assert_int_equal(json_i64_or(json_index_get(&index, STR("k999")), 0), 999);
    assert_null(json_index_get(&index, STR("k1000")));
    assert_false(same(buf_text(&up), buf_text(&down)));
}

static void a_clone_outlives_its_document(void **state)
{
    struct json_doc *doc = parsed("{\"items\":[{\"a\":\"text\",\"b\":[1,{}]}]}");
    auto_json_doc struct json_doc *clone =
        json_clone(json_item(json_get(json_root(doc), "items"), 0));
    auto_json_doc struct json_doc *nothing = json_clone(NULL);

    json_doc_free(doc);
    assert_text(json_str(json_get(json_root(clone), "a")), "text");
    assert_int_equal(json_depth(json_root(clone)), 3);
    assert_true(json_is_null(json_root(nothing)));
}

/* ---- writing ---- */

static void canonical_text_is_one_for_equal_values(void **state)
{
    assert_canonical(" { \"b\" : [ 1.0 , 2.50, -0.0 ] , \"a\" : { } , \"\" : [ ] } ",
                     "{\"\":[],\"a\":{},\"b\":[1,2.5,0]}");
    assert_canonical("[1e2,1e20,-1e3,1e-7]", "[100,100000000000000000000.0,-1000,1e-7]");
    assert_canonical("[18446744073709551615,-9223372036854775808]",
                     "[18446744073709551615,-9223372036854775808]");
    assert_canonical("{\"b\":1,\"a\":2,\"ab\":3,\"B\":4}", "{\"B\":4,\"a\":2,\"ab\":3,\"b\":1}");
    assert_canonical("\"\\u0041\\/\\n\\u0001\\u007f\\ud83d\\ude00\"",
                     "\"A/\\n\\u0001\x7f\xf0\x9f\x98\x80\"");
    assert_canonical("[true,false,null]", "[true,false,null]");
}

static void escaping_repairs_what_is_not_utf8(void **state)
{
    static const struct {
        struct str text;
        const char *want;
    } cases[] = {
        { STR(""), "\"\"" },
        { STR("plain"), "\"plain\"" },
        { STR("\"\\\b\f\n\r\t"), "\"\\\"\\\\\\b\\f\\n\\r\\t\"" },
        { STR("a\0\x1f"), "\"a\\u0000\\u001f\"" },
        { STR("\xc3\xa9\xe2\x82\xac"), "\"\xc3\xa9\xe2\x82\xac\"" },
        { STR("\xff"), "\"\xef\xbf\xbd\"" },
        { STR("a\xe2\x82z"), "\"a\xef\xbf\xbd\xef\xbf\xbdz\"" },
        { STR("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        auto_buf struct buf out = { .max = MAX };

        json_escape(&out, cases[i].text);
        assert_string_equal(buf_text(&out), cases[i].want);
    }
}

static void members_are_added_behind_others_and_only_when_they_say_something(void **state)
{
    auto_buf struct buf out = { .max = MAX };

    (void)state;
    json_add_text(&out, "a", "x\"");
    json_add_text(&out, "b", "");
    json_add_time(&out, "c", 86400);
    json_add_time(&out, "d", 0);
    json_add_time(&out, "e", INT64_MAX);
    assert_string_equal(buf_text(&out), ",\"a\":\"x\\\"\",\"c\":\"1970-01-02T00:00:00Z\"");
}

static void writing_stops_at_the_maximum_of_the_buffer(void **state)
{
    auto_json_doc struct json_doc *doc = parsed("[1,2,3]");
    auto_buf struct buf out = { .max = 6 };

    json_write(json_root(doc), &out);
    assert_int_equal(buf_check(&out, "list", NULL), -ERR_TOO_BIG);
}

static void people_get_lines_and_indents(void **state)
{
    auto_json_doc struct json_doc *doc = parsed("{\"a\":[1]}");
    auto_json_build struct json_build *build = json_build_new();
    auto_buf struct buf out = { .max = MAX };

    json_write_pretty(json_root(doc), &out);
    json_mut_write_pretty(json_copy(build, json_root(doc)), &out);
    json_write(NULL, &out);
    assert_string_equal(buf_text(&out),
                        "{\n  \"a\": [\n    1\n  ]\n}\n{\n  \"a\": [\n    1\n  ]\n}\nnull");
}

/* ---- building ---- */

static void members_keep_the_order_in_which_they_came(void **state)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *object = json_new_object(build), *list;

    json_put_text(build, object, "z", "last letter");
    json_put_i64(build, object, "i", INT64_MIN);
    json_put_u64(build, object, "u", UINT64_MAX);
    json_put_bool(build, object, "b", true);
    json_put_str(build, object, "s", STR("x\0y"));
    json_put(build, object, "f", json_new_f64(build, 0.5));
    json_put(build, object, "n", json_new_null(build));
    list = json_put_array(build, object, "list");
    json_push_str(build, list, STR("one"));
    json_push(list, json_put_object(build, json_new_object(build), "unused"));
    assert_written(object, "{\"z\":\"last letter\",\"i\":-9223372036854775808,"
                           "\"u\":18446744073709551615,\"b\":true,\"s\":\"x\\u0000y\",\"f\":0.5,"
                           "\"n\":null,\"list\":[\"one\",{}]}");
}

static void putting_again_replaces_in_place(void **state)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *object = json_new_object(build);

    json_put_i64(build, object, "a", 1);
    json_put_i64(build, object, "b", 2);
    json_put_i64(build, object, "c", 3);
    json_put_text(build, object, "a", "x");
    json_put_text(build, object, "c", "z");
    json_put_i64(build, object, "d", 4);
    assert_written(object, "{\"a\":\"x\",\"b\":2,\"c\":\"z\",\"d\":4}");
    assert_true(json_remove(object, STR("a")));
    assert_false(json_remove(object, STR("a")));
    assert_true(json_remove(object, STR("d")));
    assert_written(object, "{\"b\":2,\"c\":\"z\"}");
    assert_int_equal(json_mut_len(object), 2);
}

static void paths_are_made_where_they_are_missing(void **state)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *object = json_new_object(build);

    json_put_i64(build, object, "spec", 1);
    json_put_at(build, object, json_new_i64(build, 1), "metadata", "labels", "a.b/c");
    json_put_at(build, object, json_new_i64(build, 2), "metadata", "labels", "d");
    json_put_at(build, object, json_new_i64(build, 3), "spec", "e"); /* was a number */
    json_put_i64(build, json_object_at(build, object, "metadata"), "f", 4);
    json_put_at(build, object, json_new_i64(build, 5), "g");
    assert_written(object, "{\"spec\":{\"e\":3},\"metadata\":{\"labels\":{\"a.b/c\":1,\"d\":2},"
                           "\"f\":4},\"g\":5}");
}

static void arrays_change_at_any_place(void **state)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *array = json_new_array(build);

    json_insert(array, 0, json_new_i64(build, 2));
    json_insert(array, 0, json_new_i64(build, 0));
    json_insert(array, 1, json_new_i64(build, 1));
    json_insert(array, 3, json_new_i64(build, 3));
    assert_written(array, "[0,1,2,3]");
    json_replace_item(array, 3, json_new_bool(build, false));
    json_remove_item(array, 0);
    assert_written(array, "[1,2,false]");
    assert_written(json_mut_item(array, 1), "2");
    assert_null(json_mut_item(array, 3));
    assert_null(json_mut_get(array, STR("a")));
    assert_int_equal(json_mut_type(array), JSON_ARRAY);
    assert_int_equal(json_mut_type(NULL), JSON_ABSENT);
    assert_int_equal(json_mut_len(NULL), 0);
}

static void what_is_written_is_always_json(void **state)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *object = json_new_object(build);

    json_put_key(build, object, STR("k\xff"), json_new_str(build, STR("\xc3(\xe2\x82\xac")));
    json_append(build, object, STR("inf"), json_new_f64(build, INFINITY));
    json_append(build, object, STR("nan"), json_new_f64(build, NAN));
    assert_written(object, "{\"k\xef\xbf\xbd\":\"\xef\xbf\xbd(\xe2\x82\xac\",\"inf\":null,"
                           "\"nan\":null}");
}

static void a_frozen_tree_outlives_its_build(void **state)
{
    struct json_build *build = json_build_new();
    struct json_mut *object = json_new_object(build);
    auto_json_doc struct json_doc *doc = NULL;

    json_put_at(build, object, json_new_str(build, STR("deep")), "a", "b");
    json_put_array(build, object, "c");
    doc = json_freeze(object);
    json_build_free(build);
    assert_text(json_str(json_at(json_root(doc), "a", "b")), "deep");
    assert_int_equal(json_depth(json_root(doc)), 2);
    assert_int_equal(json_len(json_root(doc)), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_outside_the_grammar_are_refused),
        cmocka_unit_test(an_error_names_line_and_column),
        cmocka_unit_test(a_text_above_the_maximum_is_refused),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(absent_values_are_taken_everywhere),
        cmocka_unit_test(values_are_found_by_key_path_and_index),
        cmocka_unit_test(of_equal_keys_the_last_one_counts),
        cmocka_unit_test(strings_may_hold_nul_bytes),
        cmocka_unit_test(numbers_are_taken_by_value),
        cmocka_unit_test(wanted_members_come_with_a_check),
        cmocka_unit_test(iteration_keeps_the_order_of_the_text),
        cmocka_unit_test(equality_ignores_order_and_spelling),
        cmocka_unit_test(large_objects_are_indexed),
        cmocka_unit_test(a_clone_outlives_its_document),
        cmocka_unit_test(canonical_text_is_one_for_equal_values),
        cmocka_unit_test(escaping_repairs_what_is_not_utf8),
        cmocka_unit_test(members_are_added_behind_others_and_only_when_they_say_something),
        cmocka_unit_test(writing_stops_at_the_maximum_of_the_buffer),
        cmocka_unit_test(people_get_lines_and_indents),
        cmocka_unit_test(members_keep_the_order_in_which_they_came),
        cmocka_unit_test(putting_again_replaces_in_place),
        cmocka_unit_test(paths_are_made_where_they_are_missing),
        cmocka_unit_test(arrays_change_at_any_place),
        cmocka_unit_test(what_is_written_is_always_json),
        cmocka_unit_test(a_frozen_tree_outlives_its_build),
    };

    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
