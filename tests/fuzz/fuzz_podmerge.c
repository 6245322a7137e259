/* fuzz_podmerge.c - {"ours","users"}: a user's template over ours is refused with the path of what
 * is wrong, or holds what the user gave; a live object covers itself, and what covers one wish
 * covers it again after more was added. */
#include "codec/covers.h"
#include "codec/podmerge.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* Of two members with one key only the last counts, so such an object is not what it shows. */
static bool has_twice(const struct json *value)
{
    struct json_iter iter = json_iter(value), items = iter;
    const struct json *member;
    struct str key;

    while (json_next_member(&iter, &key, &member))
        if (json_get_str(value, key) != member || has_twice(member))
            return true;
    while (json_is_array(value) && json_next_item(&items, &member))
        if (has_twice(member))
            return true;
    return false;
}

static bool is_scalar(const struct json *value)
{
    return !json_is_object(value) && !json_is_array(value);
}

/* What the user gave is there: scalars as they are, of all else something. */
static void check_given(const struct json *merged, const struct json *users)
{
    struct json_iter iter = json_iter(users);
    const struct json *value;
    struct str key;

    while (json_next_member(&iter, &key, &value)) {
        if (!json_is_given(value))
            continue;
        if (is_scalar(value))
            must(json_equal(json_get_str(merged, key), value));
        else if (json_is_object(json_get_str(merged, key)))
            check_given(json_get_str(merged, key), value);
    }
}

static void check_merged(const struct json *ours, const struct json *users)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *doc = NULL;
    struct json_mut *merged = NULL;
    struct err err = { 0 };

    if (podmerge(build, ours, users, &merged, &err) < 0) {
        must(err.class == ERR_INVALID || err.class == ERR_TOO_BIG);
        must(err.text[0] != '\0');
        return;
    }
    if (!merged) {
        must(!json_exists(ours));
        return;
    }
    doc = json_freeze(merged);
    if (!json_is_given(users))
        must(json_equal(json_root(doc), ours));
    else
        check_given(json_root(doc), users);
    must(json_covers(json_root(doc), json_root(doc)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { size > 0 ? (const char *)data : "", size };
    auto_json_doc struct json_doc *doc = NULL;
    const struct json *ours, *users;

    if (json_parse(text, 1 << 16, &doc, NULL) < 0)
        return 0;
    ours = json_get(json_root(doc), "ours");
    users = json_get(json_root(doc), "users");
    (void)json_covers(ours, users);
    if (has_twice(json_root(doc)))
        return 0;
    must(json_covers(ours, ours) && json_covers(users, users));
    check_merged(ours, users);
    return 0;
}
