/* api_strategic.c - strategic merge patches: maps are merged as by a merge patch, and so are lists
 * of which the server knows how to tell their items apart.
 *
 * Holds: every list without a row in the table is replaced whole, as the real server does (taints,
 * tolerations). The order of a merged list is the real one: items of the patch in the order of the
 * patch, new ones as early as that allows, the others between them as they were. Directives other
 * than $deleteFromPrimitiveList and "$patch": "delete" of an item are not modelled, and refused. */
#include "api_private.h"

#define DELETE_FROM "$deleteFromPrimitiveList/"

struct rule {
    const char *plural; /* NULL: of every kind */
    const char *path;
    const char *key; /* NULL: a set of texts */
};

static const struct rule rules[] = {
    { NULL, ".metadata.finalizers", NULL },        { NULL, ".metadata.ownerReferences", "uid" },
    { "pods", ".status.conditions", "type" },      { "nodes", ".status.conditions", "type" },
    { "podgroups", ".status.conditions", "type" },
};

struct item {
    struct json_mut *value;
    ptrdiff_t was; /* its place in the old list; -1: it is new */
};

struct items {
    struct item *at;
    size_t count;
};

static const struct rule *rule_of(const struct api_call *call, const char *path)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (strcmp(rules[i].path, path) == 0 &&
            (!rules[i].plural || strcmp(rules[i].plural, call->kind->plural) == 0))
            return &rules[i];
    return NULL;
}

static int merge_map(struct api_call *call, const char *path, const struct json *old,
                     const struct json *patch, struct json_mut **ret_map);

/* ---- lists ---- */

static struct str id_of(const struct rule *rule, const struct json *item)
{
    return json_str(rule->key ? json_get(item, rule->key) : item);
}

static ptrdiff_t place_of(const struct rule *rule, const struct json *list, struct str id)
{
    struct json_iter iter = json_iter(list);
    const struct json *item;

    for (ptrdiff_t place = 0; json_next_item(&iter, &item); place++)
        if (str_eq(id_of(rule, item), id))
            return place;
    return -1;
}

static bool is_deletion(const struct json *item)
{
    return str_is(json_str(json_get(item, "$patch")), "delete");
}

static int check_item(struct api_call *call, const struct rule *rule, const struct json *patch,
                      const struct json *item, size_t place)
{
    if (rule->key && !json_exists(json_get(item, rule->key)))
        return api_refuse_unclassified(
            call,
            arena_printf(call->arena, "map does not contain declared merge key: %s", rule->key));
    if (place_of(rule, patch, id_of(rule, item)) != (ptrdiff_t)place)
        return api_refuse_unclassified(call, "the model takes an item once in a patch");
    return 0;
}

/* The items of the patch, each over the one that it changes. */
static int patched_items(struct api_call *call, const struct rule *rule, const char *path,
                         const struct json *old, const struct json *patch, struct items *items)
{
    struct json_iter iter = json_iter(patch);
    const struct json *item;

    items->at = arena_alloc(call->arena, (json_len(patch) + 1) * sizeof(*items->at));
    for (size_t place = 0; json_next_item(&iter, &item); place++) {
        struct item *next = &items->at[items->count];
        int result = check_item(call, rule, patch, item, place);

        if (result < 0)
            return result;
        if (is_deletion(item))
            continue;
        next->was = place_of(rule, old, id_of(rule, item));
        if (!rule->key)
            next->value = json_copy(call->build, item);
        else if ((result = merge_map(call, path,
                                     next->was < 0 ? NULL : json_item(old, (size_t)next->was), item,
                                     &next->value)) < 0)
            return result;
        items->count++;
    }
    return 0;
}

/* The items that the patch does not name. */
static void other_items(struct api_call *call, const struct rule *rule, const struct json *old,
                        const struct json *patch, const struct json *deleted, struct items *items)
{
    struct json_iter iter = json_iter(old);
    const struct json *item;

    items->at = arena_alloc(call->arena, (json_len(old) + 1) * sizeof(*items->at));
    for (ptrdiff_t place = 0; json_next_item(&iter, &item); place++)
        if (place_of(rule, patch, id_of(rule, item)) < 0 &&
            place_of(rule, deleted, id_of(rule, item)) < 0)
            items->at[items->count++] = (struct item){ json_copy(call->build, item), place };
}

static int merge_list(struct api_call *call, const struct rule *rule, const char *path,
                      const struct json *old, const struct json *patch, const struct json *deleted,
                      struct json_mut **ret_list)
{
    struct json_mut *list = json_new_array(call->build);
    struct items patched = { 0 }, others = { 0 };
    size_t next = 0, other = 0;
    int result = patched_items(call, rule, path, old, patch, &patched);

    if (result < 0)
        return result;
    other_items(call, rule, old, patch, deleted, &others);
    while (next < patched.count || other < others.count) {
        bool others_turn = next == patched.count ||
                           (other < others.count && others.at[other].was < patched.at[next].was);

        json_push(list, others_turn ? others.at[other++].value : patched.at[next++].value);
    }
    *ret_list = list;
    return 0;
}

/* ---- maps ---- */

/* What becomes of one member; NULL: it goes. `deleted` is what its list shall lose. */
static int merge_member(struct api_call *call, const char *path, const struct json *old,
                        const struct json *patch, const struct json *deleted,
                        struct json_mut **ret_value)
{
    const struct rule *rule = rule_of(call, path);

    *ret_value = NULL;
    if (json_is_null(patch))
        return 0;
    if (rule && (json_is_array(patch) || (!patch && deleted)))
        return merge_list(call, rule, path, old, patch, deleted, ret_value);
    if (json_is_object(patch))
        return merge_map(call, path, json_is_object(old) ? old : NULL, patch, ret_value);
    if (patch || old)
        *ret_value = json_copy(call->build, patch ? patch : old);
    return 0;
}

static int put_member(struct api_call *call, const char *path, struct str key,
                      const struct json *old, const struct json *patch, struct json_mut *into)
{
    const char *place = arena_printf(call->arena, "%s." STR_FMT, path, STR_ARG(key));
    const char *deletion = arena_printf(call->arena, DELETE_FROM STR_FMT, STR_ARG(key));
    struct json_mut *value = NULL;
    int result = merge_member(call, place, json_get_str(old, key), json_get_str(patch, key),
                              json_get(patch, deletion), &value);

    if (value)
        json_put_key(call->build, into, key, value);
    return result;
}

static bool is_directive(struct str key)
{
    return key.len > 0 && key.at[0] == '$';
}

static int merge_map(struct api_call *call, const char *path, const struct json *old,
                     const struct json *patch, struct json_mut **ret_map)
{
    struct json_iter iter = json_iter(old);
    const struct json *value;
    struct str key;
    int result = 0;

    *ret_map = json_new_object(call->build);
    while (result == 0 && json_next_member(&iter, &key, &value))
        result = put_member(call, path, key, old, patch, *ret_map);
    iter = json_iter(patch);
    while (result == 0 && json_next_member(&iter, &key, &value)) {
        if (is_directive(key) && !str_starts(key, STR(DELETE_FROM)))
            return api_refuse_unclassified(call, "the model does not know this directive");
        if (!is_directive(key) && !json_get_str(old, key))
            result = put_member(call, path, key, old, patch, *ret_map);
    }
    return result;
}

int api_apply_strategic(struct api_call *call, const struct json *old, struct json_mut **ret_next)
{
    return merge_map(call, "", old, call->body, ret_next);
}
