/* object.c - JSON into objects as the cache keeps them, and what a patch of ours will make of one.
 *
 * Holds   an object never changes after it was made; its texts live in its block, or in the tree it
 *         keeps, or (a prediction) in the block of the object it leans on. */
#include "kube/object.h"

#include "base/mem.h"
#include "codec/patch.h"
#include "codec/timestamp.h"
#include "kube/object_private.h"

#include <assert.h>

enum { MAX_LIST = 4096 }; /* finalizers */

/* The values that are wanted, looked up once for both passes. */
struct source {
    const struct kube_kind *kind;
    const struct json *root;
    const struct kube_object *base; /* the root is a merge patch of this one */
    const struct json *name, *ns, *uid, *version, *generation, *created, *deleted;
    const struct json *owners, *labels, *annotations, *finalizers;
    const struct json *fields[KUBE_MAX_FIELDS];
    unsigned field_count;
};

static const struct {
    const char *key;
    size_t offset;
} metadata_members[] = {
    { "name", offsetof(struct source, name) },
    { "namespace", offsetof(struct source, ns) },
    { "uid", offsetof(struct source, uid) },
    { "resourceVersion", offsetof(struct source, version) },
    { "generation", offsetof(struct source, generation) },
    { "creationTimestamp", offsetof(struct source, created) },
    { "deletionTimestamp", offsetof(struct source, deleted) },
    { "ownerReferences", offsetof(struct source, owners) },
    { "labels", offsetof(struct source, labels) },
    { "annotations", offsetof(struct source, annotations) },
    { "finalizers", offsetof(struct source, finalizers) },
};

/* ---- looking up ---- */

/* Neighbours in a table mostly share their first key: it is looked up once for all of them. */
static int find_fields(struct source *source, struct err *err)
{
    const struct json *parent = NULL;
    const char *parent_key = "";

    if (!source->kind->fields || source->kind->size == 0)
        return 0;
    for (const struct kube_field *field = source->kind->fields; field->path[0]; field++) {
        if (source->field_count == KUBE_MAX_FIELDS)
            return err_set(err, ERR_BUG, "more than %d fields in a table", KUBE_MAX_FIELDS);
        if (strcmp(parent_key, field->path[0]) != 0) {
            parent_key = field->path[0];
            parent = json_get(source->root, parent_key);
        }
        source->fields[source->field_count++] = json_at_path(parent, field->path + 1);
    }
    return 0;
}

static int find_all(struct source *source, struct err *err)
{
    const struct json *metadata = json_get(source->root, "metadata");

    for (size_t i = 0; i < sizeof(metadata_members) / sizeof(metadata_members[0]); i++)
        *(const struct json **)(void *)((char *)source + metadata_members[i].offset) =
            json_get(metadata, metadata_members[i].key);
    return find_fields(source, err);
}

static int check_name(const struct json *value, const char *what, bool needed, struct err *err)
{
    struct str text = json_str(value);

    if (needed && text.len == 0)
        return err_set(err, ERR_INVALID, "metadata has no %s", what);
    if (text.len > KUBE_MAX_NAME)
        return err_set(err, ERR_TOO_BIG, "metadata.%s of %zu bytes", what, text.len);
    if (memchr(text.at, '\0', text.len))
        return err_set(err, ERR_INVALID, "metadata.%s holds a NUL byte", what);
    return 0;
}

static int check_identity(const struct source *source, bool exists, struct err *err)
{
    int rc = check_name(source->name, "name", true, err);

    if (rc == 0)
        rc = check_name(source->ns, "namespace", false, err);
    if (rc == 0)
        rc = check_name(source->uid, "uid", exists, err);
    if (rc == 0)
        rc = check_name(source->version, "resourceVersion", exists, err);
    return rc;
}

/* ---- filling ---- */

static int time_of(const struct json *value, int64_t *ret_time, struct err *err)
{
    *ret_time = 0;
    return json_exists(value) ? timestamp_parse(json_str(value), ret_time, err) : 0;
}

static int fill_identity(struct kube_decoder *decoder, const struct source *source,
                         struct kube_object *object, struct err *err)
{
    object->kind = source->kind;
    object->ns = kube_decoder_str(decoder, json_str(source->ns));
    object->name = kube_decoder_str(decoder, json_str(source->name));
    object->uid = kube_decoder_str(decoder, json_str(source->uid));
    object->version = kube_decoder_str(decoder, json_str(source->version));
    object->generation = json_i64_or(source->generation, 0);
    object->owner = (struct kube_owner){ "", "", "", "" };
    if (kube_decoder_is_counting(decoder))
        return 0;
    if (str_to_u64(json_str(source->version), 0, UINT64_MAX, &object->version_number, NULL) < 0)
        object->version_number = 0;
    if (time_of(source->created, &object->created_us, err) < 0)
        return err_wrap(err, "metadata.creationTimestamp");
    if (time_of(source->deleted, &object->deleted_us, err) < 0)
        return err_wrap(err, "metadata.deletionTimestamp");
    return 0;
}

static struct str group_of(struct str api_version)
{
    struct str group, version;

    return str_cut(api_version, '/', &group, &version) ? group : STR("");
}

static void fill_owner(struct kube_decoder *decoder, const struct json *owners,
                       struct kube_object *object)
{
    struct json_iter iter = json_iter(owners);
    const struct json *owner;

    object->owner = (struct kube_owner){ "", "", "", "" };
    while (json_next_item(&iter, &owner)) {
        if (!json_bool_or(json_get(owner, "controller"), false))
            continue;
        object->owner.group =
            kube_decoder_str(decoder, group_of(json_str(json_get(owner, "apiVersion"))));
        object->owner.kind = kube_decoder_str(decoder, json_str(json_get(owner, "kind")));
        object->owner.name = kube_decoder_str(decoder, json_str(json_get(owner, "name")));
        object->owner.uid = kube_decoder_str(decoder, json_str(json_get(owner, "uid")));
        return;
    }
}

bool kube_owner_is(const struct kube_owner *owner, const struct kube_kind *kind)
{
    return str_is(str_of(owner->kind), kind->resource->kind) &&
           str_is(str_of(owner->group), kind->resource->group);
}

static int fill_finalizers(struct kube_decoder *decoder, const struct json *list,
                           struct kube_object *object, struct err *err)
{
    struct json_iter iter = json_iter(list);
    const struct json *item;
    struct str *finalizers;
    unsigned count = 0;

    object->finalizers = NULL;
    object->finalizer_count = 0;
    if (!json_is_array(list) || json_len(list) == 0)
        return 0;
    if (json_len(list) > MAX_LIST)
        return err_set(err, ERR_TOO_BIG, "metadata.finalizers has %zu items", json_len(list));
    finalizers = kube_decoder_alloc(decoder, json_len(list) * sizeof(*finalizers));
    while (json_next_item(&iter, &item)) {
        struct str name = json_str(item);

        finalizers[count++] = (struct str){ kube_decoder_str(decoder, name), name.len };
    }
    object->finalizers = finalizers;
    object->finalizer_count = count;
    return 0;
}

static int fill_metadata(struct kube_decoder *decoder, const struct source *source,
                         struct kube_object *object, struct err *err)
{
    static const struct kube_pairs none;
    const struct kube_object *base = source->base;

    if (!base && fill_identity(decoder, source, object, err) < 0)
        return -ERR_INVALID;
    if (base && source->deleted && time_of(source->deleted, &object->deleted_us, err) < 0)
        return err_wrap(err, "metadata.deletionTimestamp");
    if (source->owners)
        fill_owner(decoder, source->owners, object);
    object->labels = kube_decoder_merged(decoder, base ? &base->labels : &none, source->labels);
    object->annotations =
        kube_decoder_merged(decoder, base ? &base->annotations : &none, source->annotations);
    return source->finalizers ? fill_finalizers(decoder, source->finalizers, object, err) : 0;
}

static int fill_field(struct kube_decoder *decoder, enum kube_field_type type,
                      const struct json *value, void *place, struct err *err)
{
    if (type == KUBE_STR)
        *(const char **)place = kube_decoder_str(decoder, json_str(value));
    if (kube_decoder_is_counting(decoder))
        return 0; /* the others take no memory */
    switch (type) {
    case KUBE_STR:
        return 0;
    case KUBE_I64:
        *(int64_t *)place = json_i64_or(value, 0);
        return 0;
    case KUBE_BOOL:
        *(bool *)place = json_bool_or(value, false);
        return 0;
    case KUBE_TIME:
        return time_of(value, place, err);
    case KUBE_QUANTITY_MILLI:
        return kube_quantity(value, true, place, err);
    case KUBE_QUANTITY:
        return kube_quantity(value, false, place, err);
    }
    return err_set(err, ERR_BUG, "field type %d", (int)type);
}

static int wrap_field(const struct kube_field *field, struct err *err)
{
    int rc = 0;

    for (unsigned i = sizeof(field->path) / sizeof(field->path[0]); i-- > 0;)
        if (field->path[i])
            rc = err_wrap(err, "%s", field->path[i]);
    return rc;
}

static int fill_fields(struct kube_decoder *decoder, const struct source *source,
                       struct kube_object *object, struct err *err)
{
    for (unsigned i = 0; i < source->field_count; i++) {
        const struct kube_field *field = &source->kind->fields[i];

        if (source->base && !source->fields[i])
            continue;
        if (fill_field(decoder, field->type, source->fields[i], (char *)object + field->offset,
                       err) < 0)
            return wrap_field(field, err);
    }
    return 0;
}

static size_t size_of(const struct kube_kind *kind)
{
    return kind->size > 0 ? kind->size : sizeof(struct kube_tree);
}

/* One pass. The object comes first, so it is the block. */
static int pass(struct kube_decoder *decoder, const struct source *source, struct err *err)
{
    size_t size = size_of(source->kind);
    struct kube_object *object = kube_decoder_alloc(decoder, size);
    int rc;

    if (source->base)
        memcpy(object, source->base, size);
    rc = fill_metadata(decoder, source, object, err);
    if (rc == 0)
        rc = fill_fields(decoder, source, object, err);
    if (rc == 0 && source->kind->decode_more && source->kind->size > 0)
        rc = source->kind->decode_more(decoder, source->root, object, err);
    return rc;
}

static int build(const struct source *source, struct kube_object **ret_object, struct err *err)
{
    struct kube_decoder decoder;
    struct kube_object *object;
    int rc;

    kube_decoder_count(&decoder, source->kind->size == 0);
    rc = pass(&decoder, source, err);
    if (rc == 0)
        rc = kube_decoder_fill(&decoder, err);
    if (rc == 0)
        rc = pass(&decoder, source, err);
    kube_decoder_done(&decoder);
    if (rc < 0) {
        mem_free(decoder.block);
        return rc;
    }
    assert(decoder.block);
    object = (struct kube_object *)(void *)decoder.block;
    object->refs = 1;
    object->size = (unsigned)decoder.text; /* the end of the block */
    object->base = source->base ? kube_object_ref(source->base) : NULL;
    *ret_object = object;
    return 0;
}

/* ---- trees ---- */

static void drop_path(struct json_mut *object, struct str path)
{
    struct str first, rest;

    while (object && json_mut_type(object) == JSON_OBJECT) {
        if (!str_cut(path, '.', &first, &rest)) {
            json_remove(object, path);
            return;
        }
        object = json_mut_get(object, first);
        path = rest;
    }
}

static struct json_doc *pruned(const struct kube_kind *kind, struct json_mut *root)
{
    drop_path(root, STR("metadata.managedFields"));
    for (const char *const *path = kind->drop; path && *path; path++)
        drop_path(root, str_of(*path));
    return json_freeze(root);
}

static int build_tree(const struct kube_kind *kind, struct json_mut *root, bool exists,
                      struct kube_object **ret_object, struct err *err)
{
    auto_json_doc struct json_doc *doc = pruned(kind, root);
    struct source source = { .kind = kind, .root = json_root(doc) };
    struct kube_object *object = NULL;
    struct kube_tree *tree;
    int rc = find_all(&source, err);

    if (rc == 0)
        rc = check_identity(&source, exists, err);
    if (rc == 0)
        rc = build(&source, &object, err);
    if (rc != 0 || !object)
        return rc;
    tree = (struct kube_tree *)(void *)object;
    tree->root = source.root;
    tree->doc = mem_take(doc);
    *ret_object = object;
    return 0;
}

/* ---- objects ---- */

static int decode(const struct kube_kind *kind, const struct json *root, bool exists,
                  const struct kube_object **ret_object, struct err *err)
{
    struct source source = { .kind = kind, .root = root };
    struct kube_object *object = NULL;
    int rc;

    if (kind->size == 0) {
        auto_json_build struct json_build *copy = json_build_new();

        rc = build_tree(kind, json_copy(copy, root), exists, &object, err);
    } else {
        rc = find_all(&source, err);
        if (rc == 0)
            rc = check_identity(&source, exists, err);
        if (rc == 0)
            rc = build(&source, &object, err);
    }
    if (rc == 0)
        *ret_object = object;
    return rc;
}

int kube_object_decode(const struct kube_kind *kind, const struct json *root,
                       const struct kube_object **ret_object, struct err *err)
{
    return decode(kind, root, true, ret_object, err);
}

int kube_object_predicted(const struct kube_kind *kind, const struct json *root,
                          const struct kube_object **ret_object, struct err *err)
{
    return decode(kind, root, false, ret_object, err);
}

int kube_object_patched(const struct kube_object *object, const struct json *merge_patch,
                        const struct kube_object **ret_object, struct err *err)
{
    struct source source = { .kind = object->kind, .root = merge_patch, .base = object };
    struct kube_object *next = NULL;
    int rc;

    if (!json_is_object(merge_patch))
        return err_set(err, ERR_INVALID, "a merge patch must be an object");
    if (object->kind->size == 0) {
        auto_json_build struct json_build *merged = json_build_new();
        const struct json *root = ((const struct kube_tree *)(const void *)object)->root;

        rc = build_tree(object->kind, patch_merge_apply(merged, root, merge_patch), false, &next,
                        err);
    } else {
        rc = find_all(&source, err);
        if (rc == 0)
            rc = build(&source, &next, err);
    }
    if (rc == 0)
        *ret_object = next;
    return rc;
}

const struct kube_object *kube_object_ref(const struct kube_object *object)
{
    ((struct kube_object *)object)->refs++;
    return object;
}

const struct kube_object *kube_object_seen(const struct kube_object *object)
{
    while (object->base)
        object = object->base;
    return object;
}

void kube_object_unref(const struct kube_object *object)
{
    /* A loop, not a recursion: predictions may lean on predictions. */
    while (object && --((struct kube_object *)object)->refs == 0) {
        const struct kube_object *base = object->base;

        if (object->kind->size == 0)
            json_doc_free(((const struct kube_tree *)(const void *)object)->doc);
        mem_free((void *)object);
        object = base;
    }
}

bool kube_pairs_find(const struct kube_pairs *pairs, struct str key, struct str *ret_value)
{
    unsigned from = 0, to = pairs->count;

    while (from < to) {
        unsigned middle = from + (to - from) / 2;
        int order = str_cmp(pairs->at[middle].key, key);

        if (order == 0) {
            *ret_value = pairs->at[middle].value;
            return true;
        }
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return false;
}

struct str kube_pairs_get(const struct kube_pairs *pairs, const char *key, bool *ret_found)
{
    struct str value = STR("");
    bool found = kube_pairs_find(pairs, str_of(key), &value);

    if (ret_found)
        *ret_found = found;
    return value;
}

bool kube_object_has_finalizer(const struct kube_object *object, const char *name)
{
    for (unsigned i = 0; i < object->finalizer_count; i++)
        if (str_is(object->finalizers[i], name))
            return true;
    return false;
}
