/* child.c - compares a child with what we want of it, and plans the one write that mends it. */
#include "engine/child.h"

#include "codec/covers.h"
#include "codec/digest.h"
#include "codec/patch.h"

#include <stdio.h>

enum { MAX_FIELDS = 20, MAX_TEXT = 8 << 20, HASH_DIGITS = 16, MAX_STAMP = 64 };

enum ownership {
    OWN_WHOLE, /* what stands there and is not wanted goes */
    OWN_KEYS,  /* a map: only the keys that are named */
};

struct owned_field {
    const char *path[3]; /* ends with NULL */
    enum ownership how;
};

/* What is not named here is set when the child is created and then left alone. Of a Service the
 * server allocates addresses and ports, so its fields stand one by one. */
static const struct child_row {
    const char *kind;
    struct owned_field fields[MAX_FIELDS]; /* ends with an empty path */
} child_rows[] = {
    { "ConfigMap", { { { "data" }, OWN_KEYS }, { { "binaryData" }, OWN_KEYS } } },
    { "Secret", { { { "data" }, OWN_KEYS } } },
    { "Service",
      { { { "spec", "type" }, OWN_WHOLE },
        { { "spec", "selector" }, OWN_WHOLE },
        { { "spec", "ports" }, OWN_WHOLE },
        { { "spec", "externalIPs" }, OWN_WHOLE },
        { { "spec", "externalName" }, OWN_WHOLE },
        { { "spec", "externalTrafficPolicy" }, OWN_WHOLE },
        { { "spec", "internalTrafficPolicy" }, OWN_WHOLE },
        { { "spec", "loadBalancerClass" }, OWN_WHOLE },
        { { "spec", "loadBalancerIP" }, OWN_WHOLE },
        { { "spec", "loadBalancerSourceRanges" }, OWN_WHOLE },
        { { "spec", "allocateLoadBalancerNodePorts" }, OWN_WHOLE },
        { { "spec", "publishNotReadyAddresses" }, OWN_WHOLE },
        { { "spec", "sessionAffinity" }, OWN_WHOLE },
        { { "spec", "sessionAffinityConfig" }, OWN_WHOLE },
        { { "spec", "trafficDistribution" }, OWN_WHOLE } } },
    { "Deployment",
      { { { "spec", "minReadySeconds" }, OWN_WHOLE },
        { { "spec", "replicas" }, OWN_WHOLE },
        { { "spec", "strategy" }, OWN_WHOLE },
        { { "spec", "template" }, OWN_WHOLE } } },
    { "StatefulSet",
      { { { "spec", "minReadySeconds" }, OWN_WHOLE },
        { { "spec", "ordinals" }, OWN_WHOLE },
        { { "spec", "persistentVolumeClaimRetentionPolicy" }, OWN_WHOLE },
        { { "spec", "replicas" }, OWN_WHOLE },
        { { "spec", "template" }, OWN_WHOLE },
        { { "spec", "updateStrategy" }, OWN_WHOLE } } },
    { "PodDisruptionBudget",
      { { { "spec", "maxUnavailable" }, OWN_WHOLE },
        { { "spec", "minAvailable" }, OWN_WHOLE },
        { { "spec", "selector" }, OWN_WHOLE } } },
    { "ServiceMonitor", { { { "spec" }, OWN_WHOLE } } },
};

static const struct child_row *row_of(const struct kube_cache *cache)
{
    const char *kind = kube_cache_kind(cache)->resource->kind;

    for (size_t i = 0; i < sizeof(child_rows) / sizeof(child_rows[0]); i++)
        if (strcmp(child_rows[i].kind, kind) == 0)
            return &child_rows[i];
    return NULL;
}

/* ---- what we want, as a hash ---- */

static void add_fields(const struct child_row *row, const struct json *tree, struct buf *text)
{
    for (const struct owned_field *field = row->fields; field->path[0]; field++)
        json_write_canonical(json_at_path(tree, field->path), text);
}

static void hash_text(const struct buf *text, char ret_hash[DIGEST_HEX])
{
    digest_sha256(buf_str(text), ret_hash);
    ret_hash[HASH_DIGITS] = '\0';
}

static void hash_of(const struct child_row *row, const struct json *wanted,
                    char ret_hash[DIGEST_HEX])
{
    auto_buf struct buf text;

    buf_init(&text, MAX_TEXT);
    json_write_canonical(json_at(wanted, "metadata", "labels"), &text);
    json_write_canonical(json_at(wanted, "metadata", "annotations"), &text);
    add_fields(row, wanted, &text);
    hash_text(&text, ret_hash);
}

/* ---- what is there ---- */

static const struct json *tree_of(const struct kube_object *object)
{
    return ((const struct kube_tree *)(const void *)object)->root;
}

/* What changes with every change of our fields: the generation, or a hash of them where the kind
 * has no generation (Services). */
static void state_of(const struct child_row *row, const struct kube_object *live,
                     char ret_state[DIGEST_HEX])
{
    auto_buf struct buf text;

    buf_init(&text, MAX_TEXT);
    if (live->generation > 0) {
        (void)snprintf(ret_state, DIGEST_HEX, "%lld", (long long)live->generation);
        return;
    }
    add_fields(row, tree_of(live), &text);
    hash_text(&text, ret_state);
}

static bool fields_are_covered(const struct child_row *row, const struct json *live,
                               const struct json *wanted)
{
    for (const struct owned_field *field = row->fields; field->path[0]; field++)
        if (!json_covers(json_at_path(live, field->path), json_at_path(wanted, field->path)))
            return false;
    return true;
}

static bool metadata_is_covered(const struct json *live, const struct json *wanted)
{
    static const char *const maps[] = { "labels", "annotations" };

    for (size_t i = 0; i < 2; i++) {
        const struct json *pairs = json_at(wanted, "metadata", maps[i]);

        if (json_is_object(pairs) && !json_covers(json_at(live, "metadata", maps[i]), pairs))
            return false;
    }
    return true;
}

/* ---- owners ---- */

struct owners {
    const struct kube_object *const *at;
    size_t count;
    bool are_sharing; /* none of them is the controller */
};

/* Of owners who share, all of their kind are listed; those of other kinds were added by others, as
 * was any owner beside the only one. */
static bool is_others(const struct owners *owners, const struct json *reference)
{
    const struct kube_resource *resource = owners->at[0]->kind->resource;
    struct str group = json_str(json_get(reference, "apiVersion")), version;

    return !owners->are_sharing || !str_is(json_str(json_get(reference, "kind")), resource->kind) ||
           (str_cut(group, '/', &group, &version) ? !str_is(group, resource->group)
                                                  : resource->group[0] != '\0');
}

static struct json_mut *owner_list(struct json_build *build, const struct owners *owners,
                                   const struct json *live)
{
    struct json_iter iter = json_iter(json_at(live, "metadata", "ownerReferences"));
    struct json_mut *list = json_new_array(build);
    const struct json *reference;

    while (json_next_item(&iter, &reference))
        if (is_others(owners, reference))
            json_push(list, json_copy(build, reference));
    for (size_t i = 0; i < owners->count; i++)
        json_push(list, owners->are_sharing ? kube_shared_owner_reference(build, owners->at[i])
                                            : kube_owner_reference(build, owners->at[i]));
    return list;
}

static bool has_owners(const struct kube_object *live, const struct owners *owners,
                       const struct json_mut *list)
{
    auto_json_doc struct json_doc *wanted = NULL;

    if (!owners->are_sharing)
        return kube_is_controlled_by(live, owners->at[0]);
    wanted = json_freeze(list);
    return json_equal(json_at(tree_of(live), "metadata", "ownerReferences"), json_root(wanted));
}

/* ---- the write ---- */

/* The members of a map that are wanted otherwise than they are. */
static struct json_mut *changed_keys(struct json_build *build, const struct json *live,
                                     const struct json *wanted)
{
    struct json_mut *changes = json_new_object(build);
    struct json_iter iter = json_iter(wanted);
    const struct json *value;
    struct str key;

    while (json_next_member(&iter, &key, &value))
        if (json_is_null(value) ? json_get_str(live, key) != NULL
                                : !json_equal(json_get_str(live, key), value))
            json_put_key(build, changes, key, json_copy(build, value));
    return json_mut_len(changes) > 0 ? changes : NULL;
}

static void put_fields(struct json_build *build, struct json_mut *patch,
                       const struct child_row *row, const struct json *live,
                       const struct json *wanted)
{
    for (const struct owned_field *field = row->fields; field->path[0]; field++) {
        const struct json *from = json_at_path(live, field->path);
        const struct json *to = json_at_path(wanted, field->path);
        struct json_mut *change;

        if (field->how == OWN_KEYS)
            change = changed_keys(build, from, to);
        else if (!from)
            change = to ? json_copy(build, to) : NULL;
        else
            change = to ? patch_merge_diff(build, from, to) : json_new_null(build);
        if (change)
            json_put_at_path(build, patch, change, field->path);
    }
}

static void put_metadata(struct json_build *build, struct json_mut *patch, const struct json *live,
                         const struct json *wanted, const char *stamp)
{
    static const char *const maps[] = { "labels", "annotations" };

    for (size_t i = 0; i < 2; i++) {
        struct json_mut *change = changed_keys(build, json_at(live, "metadata", maps[i]),
                                               json_at(wanted, "metadata", maps[i]));

        if (change)
            json_put_at(build, patch, change, "metadata", maps[i]);
    }
    json_put_at(build, patch, json_new_str(build, str_of(stamp)), "metadata", "labels",
                CHILD_STAMP);
}

/* A null says that a key must be absent; the server would store an empty value. */
static void drop_absent_keys(const struct child_row *row, const struct json *wanted,
                             struct json_mut *object)
{
    const struct json *value;
    struct str key;

    for (const struct owned_field *field = row->fields; field->path[0]; field++) {
        struct json_iter iter = json_iter(json_get(wanted, field->path[0]));

        while (field->how == OWN_KEYS && json_next_member(&iter, &key, &value))
            if (json_is_null(value))
                (void)json_remove(json_mut_get(object, str_of(field->path[0])), key);
    }
}

static void create(struct plan *plan, struct kube_cache *cache, const struct child_row *row,
                   const struct owners *owners, const struct json *wanted, const char *stamp)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *object = json_copy(build, wanted);

    drop_absent_keys(row, wanted, object);
    json_put_at(build, object, owner_list(build, owners, NULL), "metadata", "ownerReferences");
    json_put_at(build, object, json_new_str(build, str_of(stamp)), "metadata", "labels",
                CHILD_STAMP);
    (void)plan_create(plan, cache, kube_cache_kind(cache)->resource, owners->at[0]->ns, object);
}

static bool may_be_changed(struct plan *plan, const struct kube_object *live)
{
    if (live->deleted_us != 0) {
        plan_wait(plan, "%s %s is being deleted", live->kind->resource->kind, live->name);
        return false;
    }
    return !json_bool_or(json_get(tree_of(live), "immutable"), false);
}

/* The hash; when the same is written again because it was not there, also the state over which it
 * is written. If the child has the same state afterwards, the server does not keep what we want. */
static void stamp_for(const struct child_row *row, const struct kube_object *live, const char *hash,
                      bool is_again, char ret_stamp[MAX_STAMP])
{
    char state[DIGEST_HEX];

    (void)snprintf(ret_stamp, MAX_STAMP, "%.16s", hash);
    if (!is_again)
        return;
    state_of(row, live, state);
    (void)snprintf(ret_stamp, MAX_STAMP, "%.16s-%.24s", hash, state);
}

static void change(struct plan *plan, struct kube_cache *cache, const struct child_row *row,
                   const struct owners *owners, const struct kube_object *live,
                   const struct json *wanted, const char *hash)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *patch = json_new_object(build);
    const struct json *tree = tree_of(live);
    struct json_mut *owner_references = owner_list(build, owners, tree);
    bool has_stamp = false;
    struct str last = kube_pairs_get(&live->labels, CHILD_STAMP, &has_stamp);
    bool is_same = has_stamp && str_starts(last, str_of(hash));
    bool is_covered = fields_are_covered(row, tree, wanted);
    bool is_adopted = has_owners(live, owners, owner_references);
    char stamp[MAX_STAMP];

    stamp_for(row, live, hash, is_same && !is_covered, stamp);
    /* A generation never comes back. A hash does, when somebody makes the same change twice: it
     * goes as soon as the child is covered. */
    bool has_right_stamp = str_is(last, stamp) || (is_covered && live->generation > 0);
    bool is_kept = is_covered || (is_same && str_is(last, stamp));

    if (is_same && has_right_stamp && is_adopted && metadata_is_covered(tree, wanted))
        return;
    put_metadata(build, patch, tree, wanted, stamp);
    if (!is_adopted)
        json_put_at(build, patch, owner_references, "metadata", "ownerReferences");
    if (!is_kept || (has_stamp && !is_same))
        put_fields(build, patch, row, tree, wanted);
    (void)plan_merge_patch(plan, cache, kube_cache_kind(cache)->resource, live->ns, live->name,
                           NULL, live->version, patch);
}

static int plan_owned(struct plan *plan, struct kube_cache *cache, const struct owners *owners,
                      const struct json_mut *wanted, struct err *err)
{
    auto_json_doc struct json_doc *doc = json_freeze(wanted);
    const struct child_row *row = row_of(cache);
    const char *name = json_str(json_at(json_root(doc), "metadata", "name")).at;
    const struct kube_object *live = kube_cache_get(cache, owners->at[0]->ns, name);
    char hash[DIGEST_HEX];

    if (!row)
        return err_set(err, ERR_BUG, "no row for children of kind %s",
                       kube_cache_kind(cache)->resource->kind);
    hash_of(row, json_root(doc), hash);
    if (!live)
        create(plan, cache, row, owners, json_root(doc), hash);
    else if (live->owner.uid[0] &&
             (owners->are_sharing || !kube_is_controlled_by(live, owners->at[0])))
        return err_set(err, ERR_CONFLICT, "%s %s exists and is controlled by %s %s",
                       live->kind->resource->kind, name, live->owner.kind, live->owner.name);
    else if (may_be_changed(plan, live))
        change(plan, cache, row, owners, live, json_root(doc), hash);
    return 0;
}

int plan_child(struct plan *plan, struct kube_cache *cache, const struct kube_object *owner,
               const struct json_mut *wanted, struct err *err)
{
    const struct owners owners = { &owner, 1, false };

    return plan_owned(plan, cache, &owners, wanted, err);
}

int plan_shared_child(struct plan *plan, struct kube_cache *cache,
                      const struct kube_object *const *owners, size_t owner_count,
                      const struct json_mut *wanted, struct err *err)
{
    const struct owners all = { owners, owner_count, true };

    return plan_owned(plan, cache, &all, wanted, err);
}

void plan_child_absent(struct plan *plan, struct kube_cache *cache, const struct kube_object *owner,
                       const char *name)
{
    const struct kube_object *live = kube_cache_get(cache, owner->ns, name);

    if (live && live->deleted_us == 0 && kube_is_controlled_by(live, owner))
        (void)plan_delete(plan, cache, kube_cache_kind(cache)->resource, live->ns, live->name,
                          live->uid, live->version);
}
