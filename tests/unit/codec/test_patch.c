/* test_patch.c - merge patches and JSON patches, made and applied. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/patch.h"

enum { MAX = 1024 * 1024 };

static struct json_doc *parsed(const char *text)
{
    struct json_doc *doc = NULL;
    struct err err = { 0 };

    if (json_parse(str_of(text), MAX, &doc, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return doc;
}

static void assert_written(const struct json_mut *value, const char *want)
{
    auto_buf struct buf out = { .max = MAX };

    json_mut_write(value, &out);
    assert_string_equal(buf_text(&out), want);
}

/* The table of RFC 7386, appendix A. */
static void merging_follows_the_examples_of_the_rfc(void **state)
{
    static const struct {
        const char *target, *patch, *result;
    } cases[] = {
        { "{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
        { "{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}" },
        { "{\"a\":\"b\"}", "{\"a\":null}", "{}" },
        { "{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}" },
        { "{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
        { "{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}" },
        { "{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}" },
        { "{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}" },
        { "[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]" },
        { "{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]" },
        { "{\"a\":\"foo\"}", "null", "null" },
        { "{\"a\":\"foo\"}", "\"bar\"", "\"bar\"" },
        { "{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}" },
        { "[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}" },
        { "{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}" },
        /* of equal keys the last counts, on both sides */
        { "{\"a\":1,\"b\":2,\"a\":3}", "{\"b\":4,\"b\":null}", "{\"a\":3}" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        auto_json_doc struct json_doc *target = parsed(cases[i].target);
        auto_json_doc struct json_doc *patch = parsed(cases[i].patch);
        auto_json_build struct json_build *build = json_build_new();

        assert_written(patch_merge_apply(build, json_root(target), json_root(patch)),
                       cases[i].result);
    }
}

static void absent_sides_are_taken(void **state)
{
    auto_json_doc struct json_doc *doc = parsed("{\"a\":{\"b\":null,\"c\":1}}");
    auto_json_build struct json_build *build = json_build_new();

    assert_written(patch_merge_apply(build, NULL, json_root(doc)), "{\"a\":{\"c\":1}}");
    assert_written(patch_merge_apply(build, json_root(doc), NULL), "{\"a\":{\"b\":null,\"c\":1}}");
    assert_written(patch_merge_diff(build, NULL, json_root(doc)), "{\"a\":{\"b\":null,\"c\":1}}");
    assert_null(patch_merge_diff(build, NULL, NULL));
}

static void the_difference_is_the_smallest_patch(void **state)
{
    static const struct {
        const char *from, *to, *patch; /* NULL: no difference */
    } cases[] = {
        { "{\"a\":1}", "{\"a\":1.0}", NULL },
        { "{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", NULL },
        { "[1]", "[1]", NULL },
        { "1", "2", "2" },
        { "[1]", "[1,2]", "[1,2]" },
        { "{\"a\":1}", "[]", "[]" },
        { "[]", "{}", "{}" },
        { "{\"a\":1}", "{\"a\":2}", "{\"a\":2}" },
        { "{\"a\":1,\"b\":2}", "{\"b\":2}", "{\"a\":null}" },
        { "{\"a\":1}", "{}", "{\"a\":null}" },
        { "{}", "{\"a\":{}}", "{\"a\":{}}" },
        { "{\"a\":{\"x\":1,\"y\":2},\"b\":[1]}", "{\"a\":{\"x\":1,\"y\":3},\"b\":[1]}",
          "{\"a\":{\"y\":3}}" },
        { "{\"a\":{\"x\":1}}", "{\"a\":{}}", "{\"a\":{\"x\":null}}" },
        { "{\"a\":5}", "{\"a\":{\"x\":1}}", "{\"a\":{\"x\":1}}" },
        /* null members of `to` count as absent */
        { "{\"a\":1}", "{\"a\":null}", "{\"a\":null}" },
        { "{}", "{\"a\":null}", NULL },
        { "{\"a\":null}", "{\"a\":null}", NULL },
        { "{\"a\":null}", "{}", "{\"a\":null}" },
        { "{\"a\":1,\"a\":2}", "{\"a\":2}", NULL },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        auto_json_doc struct json_doc *from = parsed(cases[i].from), *to = parsed(cases[i].to);
        auto_json_build struct json_build *build = json_build_new();
        struct json_mut *patch = patch_merge_diff(build, json_root(from), json_root(to));

        if (cases[i].patch)
            assert_written(patch, cases[i].patch);
        else
            assert_null(patch);
    }
}

static int apply(const char *target, const char *ops, const char *want, struct err *err)
{
    auto_json_doc struct json_doc *before = parsed(target), *patch = parsed(ops);
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *after = NULL;
    int rc = patch_json_apply(build, json_root(before), json_root(patch), &after, err);

    if (rc == 0)
        assert_written(after, want);
    else
        assert_null(after);
    return rc;
}

static void operations_are_carried_out_in_turn(void **state)
{
    static const struct {
        const char *target, *ops, *result;
    } cases[] = {
        { "{\"a\":1}", "[]", "{\"a\":1}" },
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\",\"value\":[]}]", "{\"a\":1,\"b\":[]}" },
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":2}]", "{\"a\":2}" },
        { "{\"a\":[1,2]}", "[{\"op\":\"add\",\"path\":\"/a/1\",\"value\":9}]", "{\"a\":[1,9,2]}" },
        { "{\"a\":[1,2]}", "[{\"op\":\"add\",\"path\":\"/a/2\",\"value\":9}]", "{\"a\":[1,2,9]}" },
        { "{\"a\":[1,2]}", "[{\"op\":\"add\",\"path\":\"/a/-\",\"value\":9}]", "{\"a\":[1,2,9]}" },
        { "{\"a\":1,\"b\":2}", "[{\"op\":\"remove\",\"path\":\"/a\"}]", "{\"b\":2}" },
        { "[1,[2,3]]", "[{\"op\":\"remove\",\"path\":\"/1/0\"}]", "[1,[3]]" },
        { "{\"a\":{\"b\":1}}", "[{\"op\":\"replace\",\"path\":\"/a/b\",\"value\":null}]",
          "{\"a\":{\"b\":null}}" },
        { "[1,2]", "[{\"op\":\"replace\",\"path\":\"/1\",\"value\":{}}]", "[1,{}]" },
        { "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":7}]", "7" },
        { "{\"a\":1}",
          "[{\"op\":\"add\",\"path\":\"\",\"value\":{\"b\":2}},"
          "{\"op\":\"add\",\"path\":\"/c\",\"value\":3}]",
          "{\"b\":2,\"c\":3}" },
        { "{\"a/b\":{\"m~n\":1,\"\":2}}",
          "[{\"op\":\"test\",\"path\":\"/a~1b/m~0n\",\"value\":1.0},"
          "{\"op\":\"replace\",\"path\":\"/a~1b/\",\"value\":3}]",
          "{\"a/b\":{\"m~n\":1,\"\":3}}" },
        { "{\"~1\":1}", "[{\"op\":\"remove\",\"path\":\"/~01\"}]", "{}" },
        { "{\"a\":[{\"x\":1}]}",
          "[{\"op\":\"test\",\"path\":\"/a\",\"value\":[{\"x\":1}]},"
          "{\"op\":\"remove\",\"path\":\"/a/0/x\"}]",
          "{\"a\":[{}]}" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = { 0 };

        if (apply(cases[i].target, cases[i].ops, cases[i].result, &err) < 0)
            fail_msg("%s: %s", cases[i].ops, err.text);
    }
}

static void what_cannot_be_carried_out_is_refused(void **state)
{
    static const struct {
        const char *target, *ops;
        int class;
        const char *words;
    } cases[] = {
        { "{}", "{}", ERR_INVALID, "a JSON patch is an array" },
        { "{}", "[1]", ERR_INVALID, "operation 0" },
        { "{}", "[{\"path\":\"/a\"}]", ERR_INVALID, "\"op\": want string, found nothing" },
        { "{}", "[{\"op\":\"add\",\"value\":1}]", ERR_INVALID, "\"path\": want string" },
        { "{}", "[{\"op\":\"add\",\"path\":\"/a\"}]", ERR_INVALID, "\"value\" is missing" },
        { "{}", "[{\"op\":\"move\",\"path\":\"/a\"}]", ERR_INVALID, "\"move\" is not known" },
        { "{}", "[{\"op\":\"add\",\"path\":\"a\",\"value\":1}]", ERR_INVALID, "begins with '/'" },
        { "{}", "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":1}]", ERR_INVALID, "at level 1" },
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":1}]", ERR_INVALID, "level 1" },
        { "{}", "[{\"op\":\"add\",\"path\":\"/~2\",\"value\":1}]", ERR_INVALID, "'~'" },
        { "{}", "[{\"op\":\"add\",\"path\":\"/~\",\"value\":1}]", ERR_INVALID, "'~'" },
        { "{}", "[{\"op\":\"remove\",\"path\":\"/a\"}]", ERR_INVALID, "no such place" },
        { "{}", "[{\"op\":\"remove\",\"path\":\"\"}]", ERR_INVALID, "root" },
        { "{}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":1}]", ERR_INVALID,
          "no such place" },
        { "[1]", "[{\"op\":\"add\",\"path\":\"/2\",\"value\":1}]", ERR_INVALID, "no place \"2\"" },
        { "[1]", "[{\"op\":\"add\",\"path\":\"/00\",\"value\":1}]", ERR_INVALID,
          "no place \"00\"" },
        { "[1]", "[{\"op\":\"add\",\"path\":\"/x\",\"value\":1}]", ERR_INVALID, "no place \"x\"" },
        { "[1]", "[{\"op\":\"remove\",\"path\":\"/-\"}]", ERR_INVALID, "no such place" },
        { "[1]", "[{\"op\":\"remove\",\"path\":\"/1\"}]", ERR_INVALID, "no such place" },
        { "[]", "[{\"op\":\"remove\",\"path\":\"/0\"}]", ERR_INVALID, "no such place" },
        { "{\"a\":1}",
          "[{\"op\":\"test\",\"path\":\"/a\",\"value\":1},{\"op\":\"test\",\"path\":\"/"
          "a\",\"value\":"
          "2}]",
          ERR_CONFLICT, "operation 1, path \"/a\": the value is another one" },
        { "{}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":null}]", ERR_INVALID,
          "no such place" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = { 0 };

        if (apply(cases[i].target, cases[i].ops, "", &err) != -cases[i].class ||
            !strstr(err.text, cases[i].words))
            fail_msg("%s: class %d, %s", cases[i].ops, err.class, err.text);
        assert_int_equal(apply(cases[i].target, cases[i].ops, "", NULL), -cases[i].class);
    }
}

static void a_patch_never_makes_a_tree_too_deep(void **state)
{
    auto_buf struct buf ops = { .max = MAX }, target = { .max = MAX };
    struct err err = { 0 };

    for (int i = 0; i < 150; i++)
        buf_add_char(&target, '[');
    for (int i = 0; i < 150; i++)
        buf_add_char(&target, ']');
    buf_add_text(&ops, "[{\"op\":\"add\",\"path\":\"");
    for (int i = 0; i < 149; i++)
        buf_add_text(&ops, "/0");
    buf_printf(&ops, "/-\",\"value\":%s}]", buf_text(&target));
    assert_int_equal(apply(buf_text(&target), buf_text(&ops), "", &err), -ERR_TOO_BIG);
}

static void the_number_of_operations_is_bounded(void **state)
{
    auto_buf struct buf ops = { .max = MAX };

    buf_add_text(&ops, "[1");
    for (int i = 0; i < PATCH_MAX_OPS; i++)
        buf_add_text(&ops, ",1");
    buf_add_char(&ops, ']');
    assert_int_equal(apply("{}", buf_text(&ops), "", NULL), -ERR_TOO_BIG);
}

static void operations_are_built_with_escaped_paths(void **state)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_buf struct buf path = { .max = MAX };
    struct json_mut *ops = json_new_array(build);

    patch_pointer_add(&path, STR("metadata"));
    patch_pointer_add(&path, STR("a.b/c~d"));
    patch_op(build, ops, "add", buf_str(&path), json_new_i64(build, 1));
    patch_op(build, ops, "remove", STR("/x"), NULL);
    assert_written(ops, "[{\"op\":\"add\",\"path\":\"/metadata/a.b~1c~0d\",\"value\":1},"
                        "{\"op\":\"remove\",\"path\":\"/x\"}]");
}

static void an_item_is_appended_or_the_list_is_made(void **state)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *ops = json_new_array(build);

    patch_append(build, ops, STR("/a/b"), 2, json_new_i64(build, 1));
    patch_append(build, ops, STR("/a/b"), 0, json_new_i64(build, 1));
    assert_written(ops, "[{\"op\":\"add\",\"path\":\"/a/b/-\",\"value\":1},"
                        "{\"op\":\"add\",\"path\":\"/a/b\",\"value\":[1]}]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merging_follows_the_examples_of_the_rfc),
        cmocka_unit_test(absent_sides_are_taken),
        cmocka_unit_test(the_difference_is_the_smallest_patch),
        cmocka_unit_test(operations_are_carried_out_in_turn),
        cmocka_unit_test(what_cannot_be_carried_out_is_refused),
        cmocka_unit_test(a_patch_never_makes_a_tree_too_deep),
        cmocka_unit_test(the_number_of_operations_is_bounded),
        cmocka_unit_test(operations_are_built_with_escaped_paths),
        cmocka_unit_test(an_item_is_appended_or_the_list_is_made),
    };

    return cmocka_run_group_tests_name("patch", tests, NULL, NULL);
}
