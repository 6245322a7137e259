/* filter_rig.h - small worlds for the rules of the filter, in short YAML:
 *
 *     [{node: n1, labels: {zone: a}, has: {cpu: 4}}, {pod: p, at: n1, by: others}, {claim: c} ...]
 *
 * Pods of ours can get each node unless `lent: false`, under the name of its label `name`. The
 * taint `ours` keeps no pod away. Pods are of our scheduler unless `by` says otherwise; `spec`,
 * `status`, `is` are taken over as they stand. */
#ifndef SLINC_TESTS_FILTER_RIG_H
#define SLINC_TESTS_FILTER_RIG_H

#include "../codec/parsed.h"
#include "base/mem.h"
#include "filter/filter.h"
#include "kube/volume_kinds.h"

#include <stdio.h>

enum { RIG_MEMORY = 1 << 24 };

#define RIG_NOT_LENT "not-lent"

enum rig_cache {
    RIG_PODS,
    RIG_OTHERS,
    RIG_NODES,
    RIG_NAMESPACES,
    RIG_CLAIMS,
    RIG_VOLUMES,
    RIG_CLASSES,
    RIG_CACHES
};

static const struct {
    const char *key;
    const struct kube_kind *kind;
    bool has_namespace;
} rig_kinds[RIG_CACHES] = {
    [RIG_PODS] = { "pod", &kube_pod_kind, true },
    [RIG_OTHERS] = { "", &kube_pod_kind, true },
    [RIG_NODES] = { "node", &kube_node_kind, false },
    [RIG_NAMESPACES] = { "namespace", &kube_namespace_kind, false },
    [RIG_CLAIMS] = { "claim", &kube_claim_kind, true },
    [RIG_VOLUMES] = { "volume", &kube_volume_kind, false },
    [RIG_CLASSES] = { "class", &kube_storage_class_kind, false },
};

struct rig {
    struct clock clock;
    struct kube_cache *caches[RIG_CACHES];
    struct filter *filter;
    const char *ignored;         /* a resource that nodes need not have; NULL */
    const char *with_device_out; /* the node whose next device is out; NULL */
    const char *with_need;       /* the node that has what pods with the label "needy" need; NULL */
    int64_t version;
    struct arena arena;
};

/* ---- hooks ---- */

static inline const char *rig_name_of(const void *context, const struct kube_node *node)
{
    bool is_named, is_not_lent;
    struct str name = kube_pairs_get(&node->object.labels, "name", &is_named);

    (void)kube_pairs_get(&node->object.labels, RIG_NOT_LENT, &is_not_lent);
    return is_not_lent ? NULL : is_named ? name.at : node->object.name;
}

static inline bool rig_ignores_taint(const void *context, const struct kube_taint *taint)
{
    return strcmp(taint->key, "ours") == 0;
}

static inline bool rig_ignores_resource(const void *context, const char *resource)
{
    const struct rig *rig = context;

    return str_starts(str_of(resource), STR("deviceclass")) ||
           (rig->ignored && strcmp(resource, rig->ignored) == 0);
}

static inline const char *rig_need_of(const void *context, const struct kube_pod *pod)
{
    bool is_needy;

    (void)kube_pairs_get(&pod->object.labels, "needy", &is_needy);
    return is_needy ? "node(s) have no such thing" : NULL;
}

static inline bool rig_has_need(const void *context, const struct kube_node *node)
{
    const struct rig *rig = context;

    return rig->with_need && strcmp(node->object.name, rig->with_need) == 0;
}

static inline bool rig_needs_device(const void *context, const struct kube_pod *pod)
{
    bool needs;

    (void)kube_pairs_get(&pod->object.labels, "needs-device", &needs);
    return needs;
}

static inline bool rig_is_next_device_out(const void *context, const struct kube_node *node)
{
    const struct rig *rig = context;

    return rig->with_device_out && strcmp(node->object.name, rig->with_device_out) == 0;
}

/* Without the caches in the mask. */
static inline struct rig *rig_new_but(unsigned missing)
{
    struct rig *rig = mem_alloc(sizeof(*rig));
    struct kube_cache *seen[RIG_CACHES];

    clock_init_virtual(&rig->clock, INT64_C(1800000000000000));
    arena_init(&rig->arena, RIG_MEMORY);
    for (unsigned i = 0; i < RIG_CACHES; i++) {
        rig->caches[i] = kube_cache_new(rig_kinds[i].kind, &rig->clock);
        seen[i] = missing >> i & 1 ? NULL : rig->caches[i];
    }
    rig->filter = filter_new(&(struct filter_caches){ .pods = seen[RIG_PODS],
                                                      .other_pods = seen[RIG_OTHERS],
                                                      .nodes = seen[RIG_NODES],
                                                      .namespaces = seen[RIG_NAMESPACES],
                                                      .claims = seen[RIG_CLAIMS],
                                                      .volumes = seen[RIG_VOLUMES],
                                                      .classes = seen[RIG_CLASSES] },
                             &(struct filter_hooks){ .name_of = rig_name_of,
                                                     .ignores_taint = rig_ignores_taint,
                                                     .ignores_resource = rig_ignores_resource,
                                                     .need_of = rig_need_of,
                                                     .has_need = rig_has_need,
                                                     .needs_device = rig_needs_device,
                                                     .is_next_device_out = rig_is_next_device_out,
                                                     .context = rig });
    return rig;
}

static inline struct rig *rig_new(void)
{
    return rig_new_but(0);
}

static inline void rig_free(struct rig *rig)
{
    filter_free(rig->filter);
    for (unsigned i = 0; i < RIG_CACHES; i++)
        kube_cache_free(rig->caches[i]);
    arena_done(&rig->arena);
    mem_free(rig);
}

/* ---- from short to whole objects ---- */

static inline enum rig_cache rig_cache_of(const struct json *item)
{
    const struct json *by = json_get(item, "by");

    for (unsigned i = 0; i < RIG_CACHES; i++)
        if (rig_kinds[i].key[0] && json_exists(json_get(item, rig_kinds[i].key)))
            return i == RIG_PODS && json_exists(by) ? RIG_OTHERS : (enum rig_cache)i;
    fail_msg("what is this?");
    return RIG_CACHES;
}

static inline void rig_copy(struct json_build *build, struct json_mut *to, const char *key,
                            const struct json *value)
{
    if (json_exists(value))
        json_put(build, to, key, json_copy(build, value));
}

static inline void rig_metadata(struct rig *rig, struct json_build *build, struct json_mut *object,
                                const struct json *item, enum rig_cache cache)
{
    const char *key = cache == RIG_OTHERS ? "pod" : rig_kinds[cache].key;
    struct str name = json_str(json_get(item, key));
    struct json_mut *metadata = json_put_object(build, object, "metadata");
    char version[32];

    (void)snprintf(version, sizeof(version), "%lld", (long long)++rig->version);
    json_put_str(build, metadata, "name", name);
    json_put_str(build, metadata, "uid", json_str_or(json_get(item, "uid"), name));
    json_put_text(build, metadata, "resourceVersion", version);
    if (rig_kinds[cache].has_namespace)
        json_put_str(build, metadata, "namespace", json_str_or(json_get(item, "ns"), STR("d")));
    rig_copy(build, metadata, "labels", json_get(item, "labels"));
    rig_copy(build, metadata, "annotations", json_get(item, "annotations"));
    rig_copy(build, metadata, "ownerReferences", json_get(item, "owners"));
    if (json_bool_or(json_get(item, "ending"), false))
        json_put_text(build, metadata, "deletionTimestamp", "2026-01-01T00:00:00Z");
}

static inline void rig_node(struct json_build *build, struct json_mut *object,
                            const struct json *item)
{
    struct json_mut *spec = json_put_object(build, object, "spec");
    struct json_mut *has = json_object_at(build, object, "status", "allocatable");
    struct json_iter iter = json_iter(json_get(item, "has"));
    const struct json *value;
    struct str key;

    if (!json_bool_or(json_get(item, "lent"), true))
        json_put_at(build, object, json_new_str(build, STR("")), "metadata", "labels",
                    RIG_NOT_LENT);
    rig_copy(build, spec, "taints", json_get(item, "taints"));
    json_put_text(build, has, "cpu", "8");
    json_put_text(build, has, "memory", "8Gi");
    json_put_text(build, has, "pods", "20");
    json_put_text(build, has, "ephemeral-storage", "10Gi");
    while (json_next_member(&iter, &key, &value))
        json_put_key(build, has, key, json_copy(build, value));
}

static inline void rig_pod_spec(struct json_build *build, struct json_mut *object,
                                const struct json *item)
{
    struct json_mut *spec, *requests;
    struct json_iter iter = json_iter(json_get(item, "needs"));
    const struct json *value;
    struct str key;

    rig_copy(build, object, "spec", json_get(item, "spec"));
    rig_copy(build, object, "status", json_get(item, "status"));
    spec = json_object_at(build, object, "spec");
    json_put_str(build, spec, "schedulerName", json_str_or(json_get(item, "by"), STR("ours")));
    if (json_exists(json_get(item, "at")))
        json_put_str(build, spec, "nodeName", json_str(json_get(item, "at")));
    if (json_mut_get(spec, STR("containers")))
        return;
    json_push(json_put_array(build, spec, "containers"), json_new_object(build));
    requests = json_object_at(build, json_mut_item(json_mut_get(spec, STR("containers")), 0),
                              "resources", "requests");
    while (json_next_member(&iter, &key, &value))
        json_put_key(build, requests, key, json_copy(build, value));
}

static inline const struct kube_object *rig_object(struct rig *rig, const struct json *item)
{
    auto_json_build struct json_build *build = json_build_new();
    enum rig_cache cache = rig_cache_of(item);
    const struct json *is = json_get(item, "is");
    struct json_mut *object = is ? json_copy(build, is) : json_new_object(build);
    const struct kube_object *decoded = NULL;
    auto_json_doc struct json_doc *doc = NULL;
    struct err err = { .class = 0 };

    rig_metadata(rig, build, object, item, cache);
    if (cache == RIG_NODES)
        rig_node(build, object, item);
    if (cache == RIG_PODS || cache == RIG_OTHERS)
        rig_pod_spec(build, object, item);
    doc = json_freeze(object);
    if (kube_object_decode(rig_kinds[cache].kind, json_root(doc), &decoded, &err) < 0)
        fail_msg("%s", err.text);
    return decoded;
}

/* ---- changing the world ---- */

static inline void rig_put_item(struct rig *rig, const struct json *item)
{
    const struct kube_object *object = rig_object(rig, item);

    kube_cache_seen(rig->caches[rig_cache_of(item)], object);
    kube_object_unref(object);
}

static inline void rig_put(struct rig *rig, const char *list)
{
    auto_json_doc struct json_doc *doc = parsed_yaml(list);
    struct json_iter iter = json_iter(json_root(doc));
    const struct json *item;

    while (json_next_item(&iter, &item))
        rig_put_item(rig, item);
}

static inline void rig_drop(struct rig *rig, enum rig_cache cache, const char *ns, const char *name)
{
    kube_cache_seen_gone(rig->caches[cache], ns, name, (uint64_t)++rig->version);
}

/* A pod that waits: in no cache. The caller unrefs it. */
static inline const struct kube_pod *rig_waiting(struct rig *rig, const char *text)
{
    auto_json_doc struct json_doc *doc = parsed_yaml(text);

    return kube_pod_of(rig_object(rig, json_root(doc)));
}

/* ---- asking ---- */

static inline void rig_expect(struct rig *rig, const char *what, const char *pod_text,
                              const char *excluded, const char *why)
{
    const struct kube_pod *pod = rig_waiting(rig, pod_text);
    const struct filter_set *set = filter_nodes(rig->filter, pod);

    if (strcmp(set->excluded, excluded) != 0)
        fail_msg("%s: excludes \"%s\", not \"%s\" (%s)", what, set->excluded, excluded, set->why);
    if (why && strcmp(set->why, why) != 0)
        fail_msg("%s: says \"%s\", not \"%s\"", what, set->why, why);
    kube_object_unref(&pod->object);
}

/* NULL, or the words without the name of the node. */
static inline const char *rig_misfit(struct rig *rig, const char *pod_text, const char *node)
{
    const struct kube_pod *pod = rig_waiting(rig, pod_text);
    const struct kube_object *object = kube_cache_get(rig->caches[RIG_NODES], "", node);
    const char *words;

    assert_non_null(object);
    words = filter_misfit(rig->filter, NULL, pod, kube_node_of(object), &rig->arena);
    kube_object_unref(&pod->object);
    return words ? strstr(words, ": ") + 2 : NULL;
}

/* For filter_listen. */
static inline void rig_count_call(void *context)
{
    ++*(unsigned *)context;
}

struct rig_case {
    const char *what, *world, *pod, *excluded, *why;
};

static inline void rig_run(const struct rig_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct rig *rig = rig_new();

        rig_put(rig, cases[i].world);
        rig_expect(rig, cases[i].what, cases[i].pod, cases[i].excluded, cases[i].why);
        rig_free(rig);
    }
}

#define RIG_RUN(cases) rig_run(cases, sizeof(cases) / sizeof((cases)[0]))

#endif
