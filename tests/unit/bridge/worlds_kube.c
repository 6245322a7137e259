/* worlds_kube.c - Kubernetes' objects of a small world: a short row becomes a whole object in its
 * cache. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worlds_private.h"

#include "bridge/world/names.h"
#include "codec/timestamp.h"
#include "device/names.h"

static struct str time_of(struct small_world *small, const struct json *row, const char *key,
                          int64_t fallback)
{
    auto_buf struct buf text;
    struct err err = { .class = 0 };
    int64_t second = json_i64_or(json_get(row, key), fallback);

    buf_init(&text, 64);
    assert_int_equal(timestamp_print((WORLDS_EPOCH_S + second) * SECOND_US, &text, &err), 0);
    return str_of(arena_strdup(&small->arena, buf_text(&text)));
}

static const char *uid_of(struct small_world *small, const char *name)
{
    return arena_printf(&small->arena, "uid-%s", name);
}

static void put_kube(struct kube_cache *cache, const struct json_mut *root)
{
    auto_json_doc struct json_doc *doc = json_freeze(root);
    const struct kube_object *object = NULL;
    struct err err = { .class = 0 };

    if (kube_object_decode(kube_cache_kind(cache), json_root(doc), &object, &err) < 0)
        fail_msg("%s", err.text);
    kube_cache_seen(cache, object);
    kube_object_unref(object);
}

static struct json_mut *named(struct small_world *small, struct json_build *build,
                              const struct json *row, const char *ns)
{
    struct json_mut *root = json_new_object(build);
    struct json_mut *metadata = json_put_object(build, root, "metadata");
    const char *name = member(small, row, "name", "a");

    json_put_text(build, metadata, "name", name);
    if (ns)
        json_put_text(build, metadata, "namespace", ns);
    json_put_text(build, metadata, "uid", uid_of(small, name));
    json_put_text(build, metadata, "resourceVersion", "5");
    json_put_str(build, metadata, "creationTimestamp", time_of(small, row, "created", 0));
    if (json_get(row, "annotations"))
        json_put(build, metadata, "annotations", json_copy(build, json_get(row, "annotations")));
    if (json_get(row, "labels"))
        json_put(build, metadata, "labels", json_copy(build, json_get(row, "labels")));
    return root;
}

/* ---- pods ---- */

static const char *usual_version(const char *kind)
{
    if (strcmp(kind, "JobSet") == 0)
        return "jobset.x-k8s.io/v1alpha2";
    return strcmp(kind, "Job") == 0 ? "batch/v1" : "apps/v1";
}

static void put_owner(struct small_world *small, struct json_build *build,
                      struct json_mut *metadata, const struct json *owner)
{
    struct json_mut *reference = json_new_object(build);
    const char *name = member(small, owner, "name", "");

    if (!owner)
        return;
    json_put_text(
        build, reference, "apiVersion",
        member(small, owner, "apiVersion", usual_version(member(small, owner, "kind", ""))));
    json_put_text(build, reference, "kind", member(small, owner, "kind", ""));
    json_put_text(build, reference, "name", name);
    json_put_text(build, reference, "uid", uid_of(small, name));
    json_put_bool(build, reference, "controller", true);
    json_push(json_put_array(build, metadata, "ownerReferences"), reference);
}

static void put_pod_metadata(struct small_world *small, struct json_build *build,
                             struct json_mut *metadata, const struct json *row)
{
    const struct json *owner = json_get(row, "owner");

    if (json_get(row, "deleted")) {
        json_put_str(build, metadata, "deletionTimestamp", time_of(small, row, "deleted", 0));
        json_put_i64(build, metadata, "deletionGracePeriodSeconds", 30);
    }
    if (json_bool_or(json_get(row, "finalizer"), true))
        json_push_str(build, json_put_array(build, metadata, "finalizers"), STR(BRIDGE_FINALIZER));
    if (json_get(row, "job"))
        json_put_text(build, json_object_at(build, metadata, "labels"), BRIDGE_JOB_LABEL,
                      member(small, row, "job", ""));
    put_owner(small, build, metadata, owner);
}

static void put_claims(struct json_build *build, struct json_mut *spec, const struct json *names)
{
    struct json_mut *list = json_put_array(build, spec, "volumes");
    struct json_iter iter = json_iter(names);
    const struct json *name;

    while (json_next_item(&iter, &name)) {
        struct json_mut *volume = json_new_object(build);

        json_put_str(build, json_put_object(build, volume, "persistentVolumeClaim"), "claimName",
                     json_str(name));
        json_push(list, volume);
    }
}

static void put_ports(struct json_build *build, struct json_mut *container,
                      const struct json *numbers)
{
    struct json_mut *list = json_put_array(build, container, "ports");
    struct json_iter iter = json_iter(numbers);
    const struct json *number;

    while (json_next_item(&iter, &number)) {
        struct json_mut *port = json_new_object(build);

        json_put_i64(build, port, "hostPort", json_i64_or(number, 0));
        json_push(list, port);
    }
}

/* About other pods with the label `app`, in the same domain. */
static struct json_mut *term_about(struct small_world *small, struct json_build *build,
                                   const struct json *row, const char *app)
{
    struct json_mut *term = json_new_object(build);

    json_put_text(build, term, "topologyKey", member(small, row, "over", "host"));
    json_put_text(build, json_object_at(build, term, "labelSelector", "matchLabels"), "app", app);
    return term;
}

static void put_rules(struct small_world *small, struct json_build *build, struct json_mut *spec,
                      const struct json *row)
{
    const char *avoids = member(small, row, "avoids", NULL);
    const char *spreads = member(small, row, "spreads", NULL);

    if (avoids)
        json_push(json_put_array(build, json_object_at(build, spec, "affinity", "podAntiAffinity"),
                                 "requiredDuringSchedulingIgnoredDuringExecution"),
                  term_about(small, build, row, avoids));
    if (spreads) {
        struct json_mut *term = term_about(small, build, row, spreads);

        json_put_text(build, term, "whenUnsatisfiable", "DoNotSchedule");
        json_push(json_put_array(build, spec, "topologySpreadConstraints"), term);
    }
    if (json_get(row, "priority"))
        json_put_i64(build, spec, "priority", json_i64_or(json_get(row, "priority"), 0));
}

static void put_pod_spec(struct small_world *small, struct json_build *build, struct json_mut *spec,
                         const struct json *row)
{
    struct json_mut *container = json_new_object(build);
    struct json_mut *requests = json_object_at(build, container, "resources", "requests");
    struct json_iter more = json_iter(json_get(row, "requests"));
    const struct json *amount;
    struct str name;

    json_put_text(build, spec, "schedulerName", member(small, row, "scheduler", SCHEDULER));
    json_put_text(build, container, "name", "main");
    json_put_text(build, requests, "cpu", member(small, row, "cpu", "1"));
    if (json_get(row, "memory"))
        json_put_text(build, requests, "memory", member(small, row, "memory", ""));
    while (json_next_member(&more, &name, &amount))
        json_put_at(build, requests, json_copy(build, amount), name.at);
    more = json_iter(json_get(row, "devices"));
    while (json_next_member(&more, &name, &amount)) {
        json_put_at(build, requests, json_copy(build, amount), name.at);
        json_put_at(build, container, json_copy(build, amount), "resources", "limits", name.at);
    }
    if (json_get(row, "resource_claims"))
        json_put(build, spec, "resourceClaims", json_copy(build, json_get(row, "resource_claims")));
    json_push(json_put_array(build, spec, "containers"), container);
    if (json_get(row, "node"))
        json_put_text(build, spec, "nodeName", member(small, row, "node", ""));
    if (json_get(row, "grace"))
        json_put_i64(build, spec, "terminationGracePeriodSeconds",
                     json_i64_or(json_get(row, "grace"), 0));
    if (json_get(row, "podgroup"))
        json_put_text(build, json_put_object(build, spec, "schedulingGroup"), "podGroupName",
                      member(small, row, "podgroup", ""));
    if (json_get(row, "selector"))
        json_put(build, spec, "nodeSelector", json_copy(build, json_get(row, "selector")));
    if (json_get(row, "affinity"))
        json_put(build, spec, "affinity", json_copy(build, json_get(row, "affinity")));
    if (json_bool_or(json_get(row, "tolerates"), true)) {
        struct json_mut *toleration = json_new_object(build);

        json_put_text(build, toleration, "key", BRIDGE_TAINT);
        json_put_text(build, toleration, "operator", "Equal");
        json_put_text(build, toleration, "value", SCHEDULER);
        json_put_text(build, toleration, "effect", "NoExecute");
        json_push(json_put_array(build, spec, "tolerations"), toleration);
    }
    put_claims(build, spec, json_get(row, "claims"));
    put_ports(build, container, json_get(row, "ports"));
    put_rules(small, build, spec, row);
    for (int64_t i = 0; i < json_i64_or(json_get(row, "gates"), 0); i++) {
        struct json_mut *gates = json_mut_get(spec, STR("schedulingGates"));
        struct json_mut *gate = json_new_object(build);

        json_put_text(build, gate, "name", "g");
        json_push(gates ? gates : json_put_array(build, spec, "schedulingGates"), gate);
    }
}

static void push_states(struct json_build *build, struct json_mut *list, const char *state,
                        int64_t count, int64_t exit_code)
{
    for (int64_t i = 0; i < count; i++) {
        struct json_mut *status = json_new_object(build);

        json_put_text(build, status, "name", "main");
        json_put_i64(build, json_put_object(build, json_put_object(build, status, "state"), state),
                     "exitCode", exit_code);
        json_push(list, status);
    }
}

static void add_pod(struct small_world *small, const struct json *row)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = named(small, build, row, "default");
    struct json_mut *status = json_put_object(build, root, "status");
    bool is_bound = json_get(row, "node") != NULL;

    put_pod_metadata(small, build, json_mut_get(root, STR("metadata")), row);
    put_pod_spec(small, build, json_put_object(build, root, "spec"), row);
    json_put_text(build, status, "phase",
                  member(small, row, "phase", is_bound ? "Running" : "Pending"));
    if (json_get(row, "running") || json_get(row, "terminated")) {
        struct json_mut *list = json_put_array(build, status, "containerStatuses");

        push_states(build, list, "running", json_i64_or(json_get(row, "running"), 0), 0);
        push_states(build, list, "terminated", json_i64_or(json_get(row, "terminated"), 0),
                    json_i64_or(json_get(row, "exit"), 0));
    }
    if (json_get(row, "conditions"))
        json_put(build, status, "conditions", json_copy(build, json_get(row, "conditions")));
    if (json_get(row, "extended_claim"))
        json_put_text(build, json_put_object(build, status, "extendedResourceClaimStatus"),
                      "resourceClaimName", member(small, row, "extended_claim", ""));
    if (json_get(row, "template_claims"))
        json_put(build, status, "resourceClaimStatuses",
                 json_copy(build, json_get(row, "template_claims")));
    put_kube(small->world.pods, root);
}

/* ---- nodes and owners ---- */

static void add_node(struct small_world *small, const struct json *row)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = named(small, build, row, NULL);
    struct json_mut *status = json_put_object(build, root, "status");
    struct json_mut *allocatable = json_put_object(build, status, "allocatable");
    struct json_mut *ready = json_new_object(build);
    const struct json *amount;
    struct json_iter more;
    struct str name;

    if (json_get(row, "slurm"))
        json_put_at(build, root, json_new_str(build, json_str(json_get(row, "slurm"))), "metadata",
                    "labels", BRIDGE_SLURM_NAME_LABEL);
    if (json_bool_or(json_get(row, "lent"), false))
        json_put_text(build, json_object_at(build, root, "metadata", "labels"),
                      BRIDGE_EXTERNAL_LABEL, "");
    json_put_bool(build, json_object_at(build, root, "spec"), "unschedulable",
                  json_bool_or(json_get(row, "cordoned"), false));
    if (json_get(row, "taints"))
        json_put(build, json_object_at(build, root, "spec"), "taints",
                 json_copy(build, json_get(row, "taints")));
    json_put_text(build, allocatable, "cpu", member(small, row, "cpu", "4"));
    json_put_text(build, allocatable, "memory", member(small, row, "memory", "8Gi"));
    more = json_iter(json_get(row, "devices"));
    while (json_next_member(&more, &name, &amount))
        json_put_at(build, allocatable, json_copy(build, amount), name.at);
    json_put_text(build, ready, "type", "Ready");
    json_put_text(build, ready, "status",
                  json_bool_or(json_get(row, "ready"), true) ? "True" : "False");
    json_put_str(build, ready, "lastTransitionTime", time_of(small, row, "since", 0));
    json_push(json_put_array(build, status, "conditions"), ready);
    put_kube(small->world.nodes, root);
}

static void add_owner(struct small_world *small, const struct json *row)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = named(small, build, row, "default");
    struct str kind = json_str(json_get(row, "kind"));

    put_owner(small, build, json_mut_get(root, STR("metadata")), json_get(row, "owner"));
    if (json_get(row, "parallelism"))
        json_put_i64(build, json_object_at(build, root, "spec"), "parallelism",
                     json_i64_or(json_get(row, "parallelism"), 0));
    if (json_get(row, "deadline"))
        json_put_i64(build, json_object_at(build, root, "spec"), "activeDeadlineSeconds",
                     json_i64_or(json_get(row, "deadline"), 0));
    put_kube(str_is(kind, "Job")          ? small->world.jobs
             : str_is(kind, "ReplicaSet") ? small->world.replicasets
                                          : small->world.statefulsets,
             root);
}

/* What says how many pods belong together. */
static void add_group(struct small_world *small, const struct json *row)
{
    static const struct {
        const char *kind;
        enum optional_kind at;
        const char *path[4]; /* of the size */
    } kinds[] = {
        { "podgroup", OPTIONAL_PODGROUPS, { "spec", "schedulingPolicy", "gang", "minCount" } },
        { "coscheduling", OPTIONAL_COSCHEDULING, { "spec", "minMember", NULL, NULL } },
        { "lws", OPTIONAL_LWS, { "spec", "leaderWorkerTemplate", "size", NULL } },
        { "jobset", OPTIONAL_JOBSETS, { NULL, NULL, NULL, NULL } },
        { "workload", OPTIONAL_WORKLOADS, { NULL, NULL, NULL, NULL } },
    };
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = named(small, build, row, "default");

    if (json_get(row, "spec"))
        json_put(build, root, "spec", json_copy(build, json_get(row, "spec")));
    if (json_get(row, "status"))
        json_put(build, root, "status", json_copy(build, json_get(row, "status")));
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct json_mut *into = root;

        if (!str_is(json_str(json_get(row, "kind")), kinds[i].kind))
            continue;
        for (size_t k = 0; k < 4 && kinds[i].path[k] && json_get(row, "size"); k++)
            if (k == 3 || !kinds[i].path[k + 1])
                json_put_i64(build, into, kinds[i].path[k], json_i64_or(json_get(row, "size"), 0));
            else
                into = json_object_at(build, into, kinds[i].path[k]);
        put_kube(small->world.optional[kinds[i].at].cache, root);
        return;
    }
    fail_msg("no such kind of group");
}

/* ---- storage ---- */

static void add_storage(struct small_world *small, struct kube_cache *cache, const char *ns,
                        const struct json *row)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = named(small, build, row, ns);
    static const char *const parts[] = { "spec", "status", "provisioner", "volumeBindingMode" };

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (json_get(row, parts[i]))
            json_put(build, root, parts[i], json_copy(build, json_get(row, parts[i])));
    put_kube(cache, root);
}

static void add_claim(struct small_world *small, const struct json *row)
{
    add_storage(small, small->claims, "default", row);
}

static void add_volume(struct small_world *small, const struct json *row)
{
    add_storage(small, small->volumes, NULL, row);
}

static void add_class(struct small_world *small, const struct json *row)
{
    add_storage(small, small->classes, NULL, row);
}

/* ---- devices ---- */

static void add_device_class(struct small_world *small, const struct json *row)
{
    add_storage(small, small->world.optional[OPTIONAL_DEVICE_CLASSES].cache, NULL, row);
}

/* devices: names, or objects as they stand in Kubernetes. */
static void add_slice(struct small_world *small, const struct json *row)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = named(small, build, row, NULL);
    struct json_mut *spec = json_put_object(build, root, "spec");
    struct json_mut *pool = json_put_object(build, spec, "pool");
    struct json_mut *devices = json_put_array(build, spec, "devices");
    struct json_iter iter = json_iter(json_get(row, "devices"));
    const struct json *item;

    json_put_text(build, spec, "driver", member(small, row, "driver", "gpu.example.com"));
    json_put_text(build, spec, "nodeName", member(small, row, "node", "n1"));
    json_put_text(build, pool, "name", member(small, row, "pool", "p"));
    json_put_i64(build, pool, "generation", json_i64_or(json_get(row, "generation"), 1));
    json_put_i64(build, pool, "resourceSliceCount", json_i64_or(json_get(row, "of"), 1));
    while (json_next_item(&iter, &item)) {
        struct json_mut *device = json_new_object(build);

        if (json_is_string(item))
            json_put_str(build, device, "name", json_str(item));
        json_push(devices, json_is_string(item) ? device : json_copy(build, item));
    }
    put_kube(small->world.optional[OPTIONAL_SLICES].cache, root);
}

/* As it stands in Kubernetes; `pod` owns it. */
static void add_resource_claim(struct small_world *small, const struct json *row)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = named(small, build, row, "default");
    struct json_mut *metadata = json_mut_get(root, STR("metadata"));
    const char *pod = member(small, row, "pod", NULL);

    if (pod) {
        struct json_mut *reference = json_new_object(build);

        json_put_text(build, reference, "apiVersion", "v1");
        json_put_text(build, reference, "kind", "Pod");
        json_put_text(build, reference, "name", pod);
        json_put_text(build, reference, "uid", uid_of(small, pod));
        json_put_bool(build, reference, "controller", true);
        json_push(json_put_array(build, metadata, "ownerReferences"), reference);
    }
    if (json_bool_or(json_get(row, "finalizer"), true))
        json_push_str(build, json_put_array(build, metadata, "finalizers"),
                      STR(DEVICE_CLAIM_FINALIZER));
    if (json_get(row, "deleted"))
        json_put_str(build, metadata, "deletionTimestamp", time_of(small, row, "deleted", 0));
    if (json_get(row, "spec"))
        json_put(build, root, "spec", json_copy(build, json_get(row, "spec")));
    if (json_get(row, "status"))
        json_put(build, root, "status", json_copy(build, json_get(row, "status")));
    put_kube(small->world.optional[OPTIONAL_CLAIMS].cache, root);
}

/* ---- all of them ---- */

static void take_away_kinds(struct small_world *small, const struct json *given)
{
    struct json_iter iter = json_iter(json_get(given, "absent"));
    const struct json *name;

    while (json_next_item(&iter, &name)) {
        assert_true(str_is(json_str(name), "coscheduling"));
        small->world.optional[OPTIONAL_COSCHEDULING].state = WATCH_ABSENT;
    }
    iter = json_iter(json_get(given, "unknown"));
    while (json_next_item(&iter, &name)) {
        assert_true(str_is(json_str(name), "workload"));
        small->world.optional[OPTIONAL_WORKLOADS].state = WATCH_UNKNOWN;
    }
}

void small_world_add_kube(struct small_world *small, const struct json *given)
{
    each(small, given, "owners", add_owner);
    each(small, given, "groups", add_group);
    take_away_kinds(small, given);
    each(small, given, "classes", add_class);
    each(small, given, "volumes", add_volume);
    each(small, given, "claims", add_claim);
    each(small, given, "device_classes", add_device_class);
    each(small, given, "slices", add_slice);
    each(small, given, "resource_claims", add_resource_claim);
    each(small, given, "nodes", add_node);
    each(small, given, "pods", add_pod);
}
