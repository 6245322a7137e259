/* fuzz_patch.c - two JSON texts, with a newline between: the difference applied to the first gives
 * the second; the second taken as a JSON patch never breaks the first. */
#include "codec/patch.h"

#include <stdlib.h>

enum { MAX = 1 << 18 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* A merge patch cannot say that a member is null. Arrays it carries as they are. */
static bool has_null_member(const struct json *value)
{
    struct json_iter iter = json_iter(value);
    const struct json *member;
    struct str key;

    while (json_next_member(&iter, &key, &member))
        if (json_get_str(value, key) == member && (json_is_null(member) || has_null_member(member)))
            return true;
    return false;
}

static void check_merge(const struct json *from, const struct json *to)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *difference = patch_merge_diff(build, from, to);
    auto_json_doc struct json_doc *patch = difference ? json_freeze(difference) : NULL;
    auto_json_doc struct json_doc *result =
        json_freeze(patch_merge_apply(build, from, json_root(patch)));

    must(!patch_merge_diff(build, from, from));
    must(!patch_merge_diff(build, json_root(result), to)); /* nothing is left to do */
    if (!has_null_member(to))
        must(json_equal(json_root(result), to));
    if (json_equal(from, to))
        must(!difference);
}

static void check_json_patch(const struct json *target, const struct json *ops)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *result = NULL, *test = NULL;
    struct json_mut *after = NULL, *again = NULL, *list = json_new_array(build);

    if (patch_json_apply(build, target, ops, &after, NULL) < 0) {
        must(!after);
        return;
    }
    result = json_freeze(after);
    must(json_depth(json_root(result)) <= JSON_MAX_DEPTH);
    if (json_depth(json_root(result)) + 2 > JSON_MAX_DEPTH)
        return;
    patch_op(build, list, "test", STR(""), after);
    test = json_freeze(list);
    must(patch_json_apply(build, json_root(result), json_root(test), &again, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_json_doc struct json_doc *from = NULL, *to = NULL;
    struct str first, second;

    if (!str_cut((struct str){ (const char *)data, size }, '\n', &first, &second))
        return 0;
    if (json_parse(first, MAX, &from, NULL) < 0 || json_parse(second, MAX, &to, NULL) < 0)
        return 0;
    check_merge(json_root(from), json_root(to));
    check_merge(json_root(to), json_root(from));
    check_json_patch(json_root(from), json_root(to));
    return 0;
}
