/* shown.c - whether an object shows a write, when the answer to the write did not.
 *
 * A write changes an object in some places. An object is "as before" as long as it is unchanged in
 * all of them; once it is not, it is the work of that write or of a later one. What lies outside
 * the metadata counts alone if the write changes anything there: annotations go with a bind, but
 * it is the node that tells.
 *
 * Holds   a place that cannot be compared (lists that a kind makes into structs) shows nothing. */
#include "kube/cache_private.h"

struct comparison {
    bool changes; /* the write changes something that can be compared */
    bool shown;
};

static void compare(struct comparison *comparison, bool changes, bool differs)
{
    comparison->changes = comparison->changes || changes;
    comparison->shown = comparison->shown || (changes && differs);
}

/* ---- fields of a table ---- */

static bool same_field(const struct kube_field *field, const struct kube_object *a,
                       const struct kube_object *b)
{
    const char *left = (const char *)a + field->offset, *right = (const char *)b + field->offset;

    switch (field->type) {
    case KUBE_STR:
        return strcmp(*(const char *const *)(const void *)left,
                      *(const char *const *)(const void *)right) == 0;
    case KUBE_BOOL:
        return *(const bool *)(const void *)left == *(const bool *)(const void *)right;
    case KUBE_I64:
    case KUBE_TIME:
    case KUBE_QUANTITY_MILLI:
    case KUBE_QUANTITY:
        break;
    }
    return *(const int64_t *)(const void *)left == *(const int64_t *)(const void *)right;
}

static void compare_fields(struct comparison *comparison, const struct kube_object *before,
                           const struct kube_object *next, const struct kube_object *seen)
{
    for (const struct kube_field *field = next->kind->fields; field && field->path[0]; field++)
        compare(comparison, !same_field(field, before, next), !same_field(field, before, seen));
}

/* ---- trees ---- */

static const struct json *root_of(const struct kube_object *object)
{
    return ((const struct kube_tree *)(const void *)object)->root;
}

static void compare_values(struct comparison *comparison, const struct json *before,
                           const struct json *next, const struct json *seen);

/* Each member once: those of `before`, then what `next` has besides. */
static void compare_members(struct comparison *comparison, const char *but,
                            const struct json *before, const struct json *next,
                            const struct json *seen)
{
    const struct json *const both[] = { before, next };

    for (size_t i = 0; i < 2; i++) {
        struct json_iter iter = json_iter(both[i]);
        const struct json *value;
        struct str key;

        while (json_next_member(&iter, &key, &value))
            if (!str_is(key, but) && (i == 0 || !json_get_str(before, key)))
                compare_values(comparison, json_get_str(before, key), json_get_str(next, key),
                               json_get_str(seen, key));
    }
}

/* As deep as the parser goes. */
static void compare_values(struct comparison *comparison, const struct json *before,
                           const struct json *next, const struct json *seen)
{
    if (json_equal(before, next))
        return;
    if (json_is_object(before) && json_is_object(next))
        compare_members(comparison, "", before, next, seen);
    else
        compare(comparison, true, !json_equal(before, seen));
}

/* ---- metadata ---- */

static bool same_pair(const struct kube_pairs *a, const struct kube_pairs *b, const char *key)
{
    bool in_a, in_b;
    struct str left = kube_pairs_get(a, key, &in_a), right = kube_pairs_get(b, key, &in_b);

    return in_a == in_b && str_eq(left, right);
}

static void compare_pairs(struct comparison *comparison, const struct kube_pairs *before,
                          const struct kube_pairs *next, const struct kube_pairs *seen)
{
    const struct kube_pairs *const both[] = { before, next };

    for (size_t i = 0; i < 2; i++)
        for (unsigned at = 0; at < both[i]->count; at++) {
            const char *key = both[i]->at[at].key.at;

            compare(comparison, !same_pair(before, next, key), !same_pair(before, seen, key));
        }
}

static bool same_finalizers(const struct kube_object *a, const struct kube_object *b)
{
    if (a->finalizer_count != b->finalizer_count)
        return false;
    for (unsigned i = 0; i < a->finalizer_count; i++)
        if (!str_eq(a->finalizers[i], b->finalizers[i]))
            return false;
    return true;
}

static void compare_metadata(struct comparison *comparison, const struct kube_object *before,
                             const struct kube_object *next, const struct kube_object *seen)
{
    compare(comparison, before->deleted_us != next->deleted_us,
            before->deleted_us != seen->deleted_us);
    compare(comparison, !same_finalizers(before, next), !same_finalizers(before, seen));
    compare_pairs(comparison, &before->labels, &next->labels, &seen->labels);
    compare_pairs(comparison, &before->annotations, &next->annotations, &seen->annotations);
}

bool kube_is_shown(const struct kube_object *before, const struct kube_object *next,
                   const struct kube_object *seen)
{
    struct comparison comparison = { 0 };

    if (next->kind->size == 0)
        compare_members(&comparison, "metadata", root_of(before), root_of(next), root_of(seen));
    else
        compare_fields(&comparison, before, next, seen);
    if (!comparison.changes)
        compare_metadata(&comparison, before, next, seen);
    return comparison.shown;
}
