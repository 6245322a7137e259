/* json_equal.c - members found by key rather than by place, and the equality that rests on it.
 *
 * Holds   of members with the same key only the last in the text is seen. */
#include "codec/json_private.h"

#include "base/mem.h"

#include <stdlib.h>

enum {
    SMALL_OBJECT = 16, /* up to here a linear search beats an index */
};

/* ---- members by key ---- */

/* Of equal keys the one later in the text comes later. */
static int compare_members(const void *a, const void *b)
{
    const struct json_member *left = a, *right = b;
    int order = str_cmp(left->key, right->key);

    return order != 0 ? order : (left->value > right->value) - (left->value < right->value);
}

struct json_member *json_members_sorted(const struct json *object, size_t *ret_count)
{
    struct json_member *members = mem_alloc_array(json_len(object) + 1, sizeof(*members));
    struct json_iter iter = json_iter(object);
    size_t all = 0, kept = 0, i;

    while (json_next_member(&iter, &members[all].key, &members[all].value))
        all++;
    qsort(members, all, sizeof(*members), compare_members);
    for (i = 0; i < all; i++)
        if (i + 1 == all || !str_eq(members[i].key, members[i + 1].key))
            members[kept++] = members[i];
    *ret_count = kept;
    return members;
}

void json_index_init(struct json_index *index, const struct json *object)
{
    struct json_iter iter = json_iter(object);
    const struct json *value;
    struct str key;

    *index = (struct json_index){ .object = object };
    if (json_len(object) > SMALL_OBJECT) {
        index->members = json_members_sorted(object, &index->count);
        return;
    }
    while (json_next_member(&iter, &key, &value))
        index->count += json_get_str(object, key) == value;
}

void json_index_done(struct json_index *index)
{
    if (!index)
        return;
    mem_free(index->members);
    index->members = NULL;
}

static int compare_key(const void *key, const void *member)
{
    return str_cmp(*(const struct str *)key, ((const struct json_member *)member)->key);
}

const struct json *json_index_get(const struct json_index *index, struct str key)
{
    const struct json_member *found;

    if (!index->members)
        return json_get_str(index->object, key);
    found = bsearch(&key, index->members, index->count, sizeof(*index->members), compare_key);
    return found ? found->value : NULL;
}

/* ---- the same value ---- */

static bool equal_numbers(const struct json *a, const struct json *b)
{
    struct json_number left = json_number_of(a), right = json_number_of(b);

    if (left.whole != right.whole)
        return false;
    if (!left.whole)
        return !(left.real < right.real) && !(left.real > right.real);
    return left.magnitude == right.magnitude &&
           (left.negative == right.negative || left.magnitude == 0);
}

static bool equal_arrays(const struct json *a, const struct json *b)
{
    struct json_iter left = json_iter(a), right = json_iter(b);
    const struct json *item, *other;

    if (json_len(a) != json_len(b))
        return false;
    while (json_next_item(&left, &item) && json_next_item(&right, &other))
        if (!json_equal(item, other))
            return false;
    return true;
}

static bool equal_objects(const struct json *a, const struct json *b)
{
    auto_json_index struct json_index in_a = { 0 }, in_b = { 0 };
    struct json_iter iter = json_iter(a);
    const struct json *value;
    struct str key;

    json_index_init(&in_a, a);
    json_index_init(&in_b, b);
    if (in_a.count != in_b.count)
        return false;
    while (json_next_member(&iter, &key, &value))
        if (json_index_get(&in_a, key) == value && !json_equal(value, json_index_get(&in_b, key)))
            return false;
    return true;
}

bool json_equal(const struct json *a, const struct json *b)
{
    enum json_type type = json_type(a);

    if (a == b)
        return true;
    if (type != json_type(b))
        return false;
    switch (type) {
    case JSON_BOOL:
        return json_bool_or(a, false) == json_bool_or(b, false);
    case JSON_NUMBER:
        return equal_numbers(a, b);
    case JSON_STRING:
        return str_eq(json_str(a), json_str(b));
    case JSON_ARRAY:
        return equal_arrays(a, b);
    case JSON_OBJECT:
        return equal_objects(a, b);
    case JSON_ABSENT:
    case JSON_NULL:
        break;
    }
    return true;
}
