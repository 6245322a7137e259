/* yaml_convert.c - the nodes of a document to JSON values: gives scalars their meaning, expands
 * aliases and merges mappings.
 *
 * Holds   everything put out is counted before it is made, and so is everything merged, even what
 *         is empty or hidden; so a small text that expands without end stops at the limit. */
#include "codec/yaml_private.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    TEXT_FACTOR = 4, /* text put out, in units of max_bytes */
};

static const struct yaml_node *without_alias(const struct yaml_node *node)
{
    return node->kind == NODE_ALIAS ? node->target : node;
}

/* Counts one value with this much text before it is put out. */
static int spend(struct yaml_output *output, const struct yaml_node *node, size_t bytes,
                 struct err *err)
{
    const struct yaml_limits *limits = output->limits;

    if (output->values++ >= limits->max_values)
        return yaml_fail_at(node, err, ERR_TOO_BIG,
                            "more than %zu values once aliases are expanded", limits->max_values);
    output->bytes += bytes;
    if (output->bytes / TEXT_FACTOR > limits->max_bytes)
        return yaml_fail_at(node, err, ERR_TOO_BIG, "too much text once aliases are expanded");
    return 0;
}

static struct json_mut *put_scalar(struct json_build *build, const struct yaml_node *node,
                                   const struct yaml_scalar *scalar)
{
    switch (scalar->kind) {
    case SCALAR_BOOL:
        return json_new_bool(build, scalar->boolean);
    case SCALAR_I64:
        return json_new_i64(build, scalar->i64);
    case SCALAR_U64:
        return json_new_u64(build, scalar->u64);
    case SCALAR_F64:
        return json_new_f64(build, scalar->f64);
    case SCALAR_TEXT:
        return json_new_str(build, node->text);
    case SCALAR_NULL:
    case SCALAR_NOT_FINITE:
        break;
    }
    return json_new_null(build);
}

static int key_text(struct yaml_output *output, const struct yaml_node *key, struct str *ret_text,
                    struct err *err)
{
    const struct yaml_node *node = without_alias(key);
    struct yaml_scalar scalar = { 0 };
    int rc;

    if (node->kind != NODE_SCALAR)
        return yaml_fail_at(key, err, ERR_INVALID, "a key must be a scalar");
    rc = yaml_resolve(node, &scalar, err);
    if (rc < 0)
        return rc;
    switch (scalar.kind) {
    case SCALAR_TEXT:
        *ret_text = node->text;
        return 0;
    case SCALAR_BOOL:
        *ret_text = scalar.boolean ? STR("true") : STR("false");
        return 0;
    case SCALAR_I64:
        *ret_text = str_of(arena_printf(output->arena, "%" PRId64, scalar.i64));
        return 0;
    default:
        return yaml_fail_at(key, err, ERR_INVALID, "the key \"" STR_FMT "\" needs quotes",
                            STR_ARG(node->text));
    }
}

/* ---- members ---- */

/* A member of a mapping, its own or merged in. */
struct member {
    struct str key;
    const struct yaml_node *place, *value;
    size_t order;     /* in which they were found: of equal keys the last counts */
    unsigned mapping; /* equal keys from one mapping are an error */
    bool hidden;      /* by a later one */
};

struct members {
    struct member *items;
    size_t count, room;
};

static void members_done(struct members *members)
{
    mem_free(members->items);
}

static void members_add(struct members *members, struct member member)
{
    if (members->count == members->room) {
        members->room = members->room * 2 + 8;
        members->items = mem_resize_array(members->items, members->room, sizeof(struct member));
    }
    member.order = members->count;
    members->items[members->count++] = member;
}

static bool is_merge(const struct yaml_node *key)
{
    return key->kind == NODE_SCALAR && key->plain && key->tag == TAG_NONE &&
           str_is(key->text, "<<");
}

static int collect_members(struct yaml_output *output, const struct yaml_node *mapping,
                           unsigned depth, struct members *members, struct err *err);

static int collect_merged(struct yaml_output *output, const struct yaml_node *place, unsigned depth,
                          struct members *members, struct err *err)
{
    const struct yaml_node *mapping = without_alias(place);
    int rc;

    if (mapping->kind != NODE_MAPPING)
        return yaml_fail_at(place, err, ERR_INVALID, "<< wants a mapping or a list of mappings");
    rc = spend(output, place, 0, err);
    return rc < 0 ? rc : collect_members(output, mapping, depth, members, err);
}

/* `<<: *a`, `<<: {...}` or `<<: [*a, *b]`, where earlier ones win: the last is taken first. */
static int collect_merge(struct yaml_output *output, const struct yaml_node *value, unsigned depth,
                         struct members *members, struct err *err)
{
    auto_free const struct yaml_node **items = NULL;
    size_t count = 0;
    int rc = 0;

    if (value->kind != NODE_SEQUENCE)
        return collect_merged(output, value, depth, members, err);
    for (const struct yaml_node *item = value->child; item; item = item->next)
        count++;
    items = mem_alloc_array(count + 1, sizeof(*items));
    count = 0;
    for (const struct yaml_node *item = value->child; item; item = item->next)
        items[count++] = item;
    while (rc == 0 && count-- > 0)
        rc = collect_merged(output, items[count], depth, members, err);
    return rc;
}

static int collect_members(struct yaml_output *output, const struct yaml_node *mapping,
                           unsigned depth, struct members *members, struct err *err)
{
    unsigned id = ++output->collected;
    const struct yaml_node *key, *value;
    int rc = 0;

    if (depth > JSON_MAX_DEPTH)
        return yaml_fail_at(mapping, err, ERR_TOO_BIG, "merged deeper than %d levels",
                            JSON_MAX_DEPTH);
    for (key = mapping->child; key && rc == 0; key = value->next) {
        struct str text = STR("");

        value = key->next;
        if (is_merge(key)) {
            rc = spend(output, key, 0, err);
            if (rc == 0)
                rc = collect_merge(output, value, depth + 1, members, err);
            continue;
        }
        rc = key_text(output, key, &text, err);
        if (rc == 0)
            rc = spend(output, key, text.len, err);
        if (rc == 0)
            members_add(members, (struct member){
                                     .key = text, .place = key, .value = value, .mapping = id });
    }
    return rc;
}

static int compare_members(const void *a, const void *b)
{
    const struct member *left = a, *right = b;
    int order = str_cmp(left->key, right->key);

    return order != 0 ? order : (left->order > right->order) - (left->order < right->order);
}

static int compare_order(const void *a, const void *b)
{
    const struct member *left = a, *right = b;

    return (left->order > right->order) - (left->order < right->order);
}

/* Of equal keys hides all but the last. */
static int hide_equal_keys(struct members *members, struct err *err)
{
    struct member *items = members->items;

    if (members->count < 2)
        return 0;
    qsort(items, members->count, sizeof(*items), compare_members);
    for (size_t i = 0; i + 1 < members->count; i++) {
        items[i].hidden = str_eq(items[i].key, items[i + 1].key);
        if (items[i].hidden && items[i].mapping == items[i + 1].mapping)
            return yaml_fail_at(items[i + 1].place, err, ERR_INVALID,
                                "the key \"" STR_FMT "\" was used before, on line %zu",
                                STR_ARG(items[i].key), items[i].place->line);
    }
    qsort(items, members->count, sizeof(*items), compare_order);
    return 0;
}

/* ---- values ---- */

static int convert_mapping(struct yaml_output *output, const struct yaml_node *mapping,
                           unsigned depth, struct json_mut **ret_value, struct err *err)
{
    __attribute__((cleanup(members_done))) struct members members = { 0 };
    struct json_mut *object = json_new_object(output->build), *value;
    int rc = collect_members(output, mapping, depth, &members, err);

    if (rc == 0)
        rc = hide_equal_keys(&members, err);
    for (size_t i = 0; rc == 0 && i < members.count; i++) {
        const struct member *member = &members.items[i];

        if (member->hidden)
            continue;
        rc = yaml_convert(output, member->value, depth, &value, err);
        if (rc == 0)
            json_append(output->build, object, member->key, value);
    }
    if (rc == 0)
        *ret_value = object;
    return rc;
}

static int convert_sequence(struct yaml_output *output, const struct yaml_node *sequence,
                            unsigned depth, struct json_mut **ret_value, struct err *err)
{
    struct json_mut *array = json_new_array(output->build);

    for (const struct yaml_node *item = sequence->child; item; item = item->next) {
        struct json_mut *value = NULL;
        int rc = yaml_convert(output, item, depth, &value, err);

        if (rc < 0)
            return rc;
        json_push(array, value);
    }
    *ret_value = array;
    return 0;
}

int yaml_convert(struct yaml_output *output, const struct yaml_node *place, unsigned depth,
                 struct json_mut **ret_value, struct err *err)
{
    const struct yaml_node *node = without_alias(place);
    struct yaml_scalar scalar = { 0 };
    int rc = spend(output, place, node->text.len, err);

    if (rc < 0)
        return rc;
    if (node->kind == NODE_SCALAR) {
        rc = yaml_resolve(node, &scalar, err);
        if (rc == 0)
            *ret_value = put_scalar(output->build, node, &scalar);
        return rc;
    }
    if (depth >= JSON_MAX_DEPTH)
        return yaml_fail_at(place, err, ERR_TOO_BIG, "nested deeper than %d levels",
                            JSON_MAX_DEPTH);
    if (node->kind == NODE_MAPPING)
        return convert_mapping(output, node, depth + 1, ret_value, err);
    return convert_sequence(output, node, depth + 1, ret_value, err);
}
