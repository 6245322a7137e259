/* worlds.c - makes a world that was written as YAML real: objects in caches, facts as values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worlds.h"

#include "bridge/kinds_volume.h"
#include "bridge/names.h"
#include "bridge/translate.h"
#include "codec/timestamp.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    SECOND_US = 1000000,
    LED_FROM_S = 1, /* loop time at second 0 */
    LISTED_S = 20,  /* when all jobs were last listed: after the fence, where now is */
};

#define CLUSTER   "kube-uid"
#define SCHEDULER "slurm-bridge-scheduler"

static const char *text_of(struct small_world *small, const struct json *value,
                           const char *fallback)
{
    struct str text = json_str(value);

    if (json_is_number(value))
        return arena_printf(&small->arena, "%" PRId64, json_i64_or(value, 0));
    return json_is_string(value) ? arena_strndup(&small->arena, text.at, text.len) : fallback;
}

static const char *member(struct small_world *small, const struct json *row, const char *key,
                          const char *fallback)
{
    return text_of(small, json_get(row, key), fallback);
}

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

const char *small_world_key(struct small_world *small, const char *pod)
{
    if (strchr(pod, '/'))
        return arena_printf(&small->arena, "default/%s", pod);
    return arena_printf(&small->arena, "default/uid-%s", pod);
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

    json_put_text(build, spec, "schedulerName", member(small, row, "scheduler", SCHEDULER));
    json_put_text(build, container, "name", "main");
    json_put_text(build, requests, "cpu", member(small, row, "cpu", "1"));
    if (json_get(row, "memory"))
        json_put_text(build, requests, "memory", member(small, row, "memory", ""));
    json_push(json_put_array(build, spec, "containers"), container);
    if (json_get(row, "node"))
        json_put_text(build, spec, "nodeName", member(small, row, "node", ""));
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
                        int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        struct json_mut *status = json_new_object(build);

        json_put_text(build, status, "name", "main");
        json_put_object(build, json_put_object(build, status, "state"), state);
        json_push(list, status);
    }
}

static void put_conditions(struct small_world *small, struct json_build *build,
                           struct json_mut *status, const struct json *conditions)
{
    struct json_mut *list = json_put_array(build, status, "conditions");
    struct json_iter iter = json_iter(conditions);
    struct str type, words;
    const struct json *value;

    while (json_next_member(&iter, &type, &value)) {
        struct json_mut *condition = json_new_object(build);
        struct str part, rest = json_str(value);

        json_put_str(build, condition, "type", type);
        words = rest;
        if (str_cut(words, '|', &part, &rest)) {
            json_put_str(build, condition, "status", part);
            words = rest;
            if (str_cut(words, '|', &part, &rest))
                json_put_str(build, condition, "reason", part);
        }
        json_put_str(build, condition, "message", rest);
        json_push(list, condition);
    }
    (void)small;
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

        push_states(build, list, "running", json_i64_or(json_get(row, "running"), 0));
        push_states(build, list, "terminated", json_i64_or(json_get(row, "terminated"), 0));
    }
    if (json_get(row, "conditions"))
        put_conditions(small, build, status, json_get(row, "conditions"));
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

    if (json_get(row, "slurm"))
        json_put_at(build, root, json_new_str(build, json_str(json_get(row, "slurm"))), "metadata",
                    "labels", BRIDGE_SLURM_NAME_LABEL);
    if (json_bool_or(json_get(row, "lent"), false))
        json_put_text(build, json_object_at(build, root, "metadata", "labels"),
                      BRIDGE_EXTERNAL_LABEL, "");
    json_put_bool(build, json_object_at(build, root, "spec"), "unschedulable",
                  json_bool_or(json_get(row, "cordoned"), false));
    json_put_text(build, allocatable, "cpu", member(small, row, "cpu", "4"));
    json_put_text(build, allocatable, "memory", member(small, row, "memory", "8Gi"));
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

/* As it was before somebody took the node away that it had been told of. */
static void add_tried(struct small_world *small, const struct json *row)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = named(small, build, row, "default");
    struct json_mut *metadata = json_mut_get(root, STR("metadata"));

    json_put_text(build, metadata, "resourceVersion", "4");
    json_put_text(build, json_put_object(build, metadata, "annotations"),
                  "volume.kubernetes.io/selected-node", member(small, row, "tried", ""));
    put_kube(small->claims, root);
}

static void add_claim(struct small_world *small, const struct json *row)
{
    if (json_get(row, "tried"))
        add_tried(small, row);
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

static void take_away_kinds(struct small_world *small, const struct json *given)
{
    struct json_iter iter = json_iter(json_get(given, "absent"));
    const struct json *name;

    while (json_next_item(&iter, &name)) {
        assert_true(str_is(json_str(name), "coscheduling"));
        small->world.optional[OPTIONAL_COSCHEDULING].state = OPTIONAL_ABSENT;
    }
    iter = json_iter(json_get(given, "unknown"));
    while (json_next_item(&iter, &name)) {
        assert_true(str_is(json_str(name), "workload"));
        small->world.optional[OPTIONAL_WORKLOADS].state = OPTIONAL_UNKNOWN;
    }
}

/* ---- Slurm ---- */

static void put_slurm(struct slurm_cache *cache, const struct slurm_kind *kind,
                      const struct json_mut *root, int64_t at_us)
{
    auto_json_doc struct json_doc *doc = json_freeze(root);
    const struct slurm_object *object = NULL;
    struct err err = { .class = 0 };

    if (slurm_object_decode(kind, json_root(doc), &object, &err) < 0)
        fail_msg("%s", err.text);
    slurm_cache_seen(cache, object, at_us);
    slurm_object_unref(object);
}

static void put_words(struct json_build *build, struct json_mut *root, const char *key,
                      const char *words, char separator)
{
    struct json_mut *list = json_put_array(build, root, key);
    struct str rest = str_of(words), word;

    while (str_next(&rest, separator, &word))
        json_push_str(build, list, word);
}

static void put_job_marks(struct small_world *small, struct json_build *build,
                          struct json_mut *root, const struct json *row)
{
    const char *pod = member(small, row, "pod", "a");
    const char *key = arena_printf(&small->arena, "%s.%s", small_world_key(small, pod),
                                   member(small, row, "attempt", "1"));
    const char *names = arena_printf(&small->arena, "\"default/%s\"", pod);

    for (int64_t i = 1; i < json_i64_or(json_get(row, "pods"), 1); i++)
        names = arena_printf(&small->arena, "%s,\"default/%s-%d\"", names, pod, (int)i);
    json_put_text(build, root, "admin_comment",
                  arena_printf(&small->arena,
                               "{\"pods\":[%s],\"v\":1,\"cluster\":\"%s\",\"unit\":\"%s\"}", names,
                               member(small, row, "cluster", CLUSTER), key));
    json_put_text(build, root, "extra", key);
}

/* Members that are no shorthand of ours are Slurm's own. */
static void copy_the_rest(struct json_build *build, struct json_mut *root, const struct json *row,
                          const char *const *shorthands)
{
    struct json_iter iter = json_iter(row);
    struct str key;
    const struct json *value;

    while (json_next_member(&iter, &key, &value)) {
        bool is_shorthand = false;

        for (size_t i = 0; shorthands[i]; i++)
            is_shorthand |= str_is(key, shorthands[i]);
        if (!is_shorthand)
            json_put_key(build, root, key, json_copy(build, value));
    }
}

/* Of "podgroup/g" it is "g". */
static const char *last_part(const char *unit)
{
    const char *slash = strrchr(unit, '/');

    return slash ? slash + 1 : unit;
}

static void add_job(struct small_world *small, const struct json *row)
{
    static const char *const shorthands[] = { "id",     "pod",  "attempt", "state", "cluster",
                                              "reason", "read", "pods",    NULL };
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = json_new_object(build);

    json_put_i64(build, root, "job_id", json_i64_or(json_get(row, "id"), 7));
    json_put_text(build, root, "sluid",
                  arena_printf(&small->arena, "s%s", member(small, row, "id", "7")));
    json_put_text(build, root, "partition", "slurm-bridge");
    json_put_text(build, root, "name", last_part(member(small, row, "pod", "a")));
    json_put_text(build, root, "state_reason", member(small, row, "reason", "None"));
    put_words(build, root, "job_state", member(small, row, "state", "PENDING"), '+');
    put_words(build, root, "flags", "EXTERNAL_JOB", '+');
    if (!str_starts(str_of(member(small, row, "state", "PENDING")), STR("PENDING")))
        json_put_i64(build, root, "start_time", WORLDS_EPOCH_S); /* it was read whole */
    if (!json_get(row, "foreign"))
        put_job_marks(small, build, root, row);
    copy_the_rest(build, root, row, shorthands);
    put_slurm(small->jobs, &slurm_job_kind, root,
              (LED_FROM_S + json_i64_or(json_get(row, "read"), 0)) * SECOND_US);
}

static void add_slurm_node(struct small_world *small, const struct json *row)
{
    static const char *const shorthands[] = { "cpus", "memory", "state", "partitions", NULL };
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = json_new_object(build);
    int64_t cpus = json_i64_or(json_get(row, "cpus"), 4);

    json_put_i64(build, root, "cpus", cpus);
    json_put_i64(build, root, "effective_cpus", cpus);
    json_put_i64(build, root, "real_memory", json_i64_or(json_get(row, "memory"), 8192));
    put_words(build, root, "state", member(small, row, "state", "IDLE+EXTERNAL"), '+');
    put_words(build, root, "partitions", member(small, row, "partitions", "slurm-bridge"), ',');
    copy_the_rest(build, root, row, shorthands);
    put_slurm(small->nodes, &slurm_node_kind, root, LED_FROM_S * SECOND_US);
}

/* ---- memory and facts ---- */

/* Of the same ask as would be made now, for a pod that speaks for itself. */
static uint64_t hash_of(struct small_world *small, const char *key)
{
    struct kube_index_walk walk =
        kube_cache_by(small->world.pods, small->world.pods_by_unit, str_of(key));
    const struct kube_object *object = kube_index_next(&walk);
    const struct kube_pod *pod = object ? kube_pod_of(object) : NULL;
    const struct translate_from from = {
        .config = &small->config, .pods = &pod, .pod_count = 1, .root = object
    };
    struct job_ask ask;
    struct err err = { .class = 0 };

    if (!pod || translate(&from, &small->arena, &ask, &err) < 0)
        return 0;
    return job_ask_hash(&ask);
}

/* The annotations that the unit's job was asked with. */
static const struct kube_object *asker_of(const struct json *annotations)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = json_new_object(build);
    struct json_mut *metadata = json_put_object(build, root, "metadata");
    const struct kube_object *object = NULL;
    struct err err = { .class = 0 };

    json_put_text(build, metadata, "name", "asker");
    json_put_text(build, metadata, "namespace", "default");
    json_put_text(build, metadata, "uid", "uid-asker");
    json_put_str(build, metadata, "resourceVersion", STR("5"));
    json_put(build, metadata, "annotations", json_copy(build, annotations));

    auto_json_doc struct json_doc *doc = json_freeze(root);

    if (kube_object_decode(&kube_pod_kind, json_root(doc), &object, &err) < 0)
        fail_msg("%s", err.text);
    return object;
}

/* Job 7 was asked for with these annotations, for so many of the unit's pods. */
static void add_said(struct small_world *small, struct unit_memory *memory, const char *unit,
                     const struct json *row)
{
    enum { MAX_PODS = 8 };
    struct kube_index_walk walk =
        kube_cache_by(small->world.pods, small->world.pods_by_unit, memory->key);
    int64_t count = json_i64_or(json_get(row, "pods"), 1);
    const struct kube_object *object = NULL, *asker = asker_of(json_get(row, "said"));
    const struct kube_pod *pods[MAX_PODS];
    struct translate_from from = { .config = &small->config,
                                   .pods = pods,
                                   .root = asker,
                                   .name = strchr(unit, '/') ? last_part(unit) : NULL,
                                   .is_gang = strchr(unit, '/') != NULL };
    struct job_ask ask;
    struct err err = { .class = 0 };

    while (from.pod_count < count && from.pod_count < MAX_PODS &&
           (object = kube_index_next(&walk)) != NULL)
        pods[from.pod_count++] = kube_pod_of(object);
    if (translate(&from, &small->arena, &ask, &err) < 0)
        fail_msg("said: %s", err.text);
    memory->said.job_id = 7;
    job_marks_of(&ask, &memory->said.marks);
    kube_object_unref(asker);
}

static void add_ask(struct small_world *small, const struct json *row)
{
    static const enum ask_state states[] = { ASK_NONE, ASK_SENT, ASK_UNRESOLVED, ASK_REFUSED };
    const char *key = small_world_key(small, member(small, row, "pod", "a"));
    struct unit_memory *memory = memory_need(small->world.memory, str_of(key));
    struct str state = json_str_or(json_get(row, "state"), STR("none"));
    struct json_iter misfits = json_iter(json_get(row, "misfits"));
    const struct json *name;

    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        if (str_is(state, ask_state_name(states[i])))
            memory_move(small->world.memory, memory, states[i]);
    memory->ask.attempt = (unsigned)json_i64_or(json_get(row, "attempt"), 1);
    memory->ask.sent_us = (LED_FROM_S + json_i64_or(json_get(row, "sent"), 0)) * SECOND_US;
    memory->ask.settles_us = (LED_FROM_S + json_i64_or(json_get(row, "settles"), 0)) * SECOND_US;
    memory->ask.again_us = (LED_FROM_S + json_i64_or(json_get(row, "again"), 1000)) * SECOND_US;
    memory->ask.site = room_generation(small->world.room);
    memory->ask.hash = json_u64_or(json_get(row, "hash"), hash_of(small, key));
    (void)snprintf(memory->ask.text, sizeof(memory->ask.text), "%s",
                   member(small, row, "text", ""));
    memory->queues = json_bool_or(json_get(row, "queues"), false);
    if (json_get(row, "said"))
        add_said(small, memory, member(small, row, "pod", "a"), row);
    if (json_bool_or(json_get(row, "change_refused"), false)) {
        memory->said.is_unsure = true;
        memory->said.refused = hash_of(small, key);
        memory->said.site = memory->ask.site;
        memory->said.again_us = memory->ask.again_us;
    }
    if (json_get(row, "given_up"))
        memory_give_up(memory, (unsigned)json_i64_or(json_get(row, "given_up"), 0));
    while (json_next_item(&misfits, &name) && memory->misfit_count < MEMORY_MAX_MISFITS)
        (void)snprintf(memory->misfits[memory->misfit_count++], sizeof(memory->misfits[0]), STR_FMT,
                       STR_ARG(json_str(name)));
}

static void set_facts(struct small_world *small, const struct json *given)
{
    const struct json *facts = json_get(given, "facts");
    struct bridge_facts *out = &small->world.facts;
    int64_t now = json_i64_or(json_get(given, "now"), 100);

    *out = (struct bridge_facts){
        .now_us = (LED_FROM_S + now) * SECOND_US,
        .wall_us = (WORLDS_EPOCH_S + now) * SECOND_US,
        .is_leaving = json_bool_or(json_get(facts, "leaving"), false),
        .leading_us = LED_FROM_S * SECOND_US,
        .leading_wall_us = WORLDS_EPOCH_S * INT64_C(1000000),
        .fence_us = json_i64_or(json_get(facts, "fence"), 15) * SECOND_US,
        .no_fence = json_bool_or(json_get(facts, "no_fence"), false),
        .slurm_synced = json_bool_or(json_get(facts, "synced"), true),
        .is_suspicious = json_get(facts, "suspicious") != NULL,
        .suspicion = member(small, facts, "suspicious", ""),
        .knows_sight = !str_is(json_str(json_get(facts, "sees")), "nothing"),
        .sight =
            str_is(json_str(json_get(facts, "sees")), "part") ? SLURM_SEES_PART : SLURM_SEES_ALL,
        .sight_why = "PrivateData has jobs",
        .pause_us = json_get(facts, "pause")
                        ? (LED_FROM_S + json_i64_or(json_get(facts, "pause"), 0)) * SECOND_US
                        : 0,
        .pause_why = "Slurm has as many jobs as it takes",
        .jobs_are_interactive_ok = json_bool_or(json_get(facts, "interactive"), true),
        .restarted_us =
            json_get(facts, "restarted")
                ? (LED_FROM_S + json_i64_or(json_get(facts, "restarted"), 0)) * SECOND_US
                : 0,
        .uncovered = (size_t)json_i64_or(json_get(facts, "uncovered"), 0),
        .unasked = (size_t)json_i64_or(json_get(facts, "unasked"), 1),
        .queued = (size_t)json_i64_or(json_get(facts, "queued"), 0),
        .crowd = (size_t)json_i64_or(json_get(facts, "crowd"), 1),
        .bind_takes_metadata = json_bool_or(json_get(facts, "bind_takes_metadata"), true),
    };
}

static void each(struct small_world *small, const struct json *given, const char *key,
                 void (*add)(struct small_world *small, const struct json *row))
{
    struct json_iter iter = json_iter(json_get(given, key));
    const struct json *row;

    while (json_next_item(&iter, &row))
        add(small, row);
}

/* Objects are added to caches that were listed as empty just before second 0; the last whole list
 * of jobs can be later. */
static void sync_slurm(struct slurm_cache *cache, int64_t at_us)
{
    struct slurm_merge *merge = slurm_merge_new(cache, at_us);

    while (!slurm_merge_commit(merge, NULL, NULL))
        continue;
    slurm_merge_free(merge);
}

static void list_kube(struct small_world *small, bool begins)
{
    const struct bridge_world *world = &small->world;
    struct kube_cache *const caches[] = { world->pods,
                                          world->nodes,
                                          world->jobs,
                                          world->replicasets,
                                          world->statefulsets,
                                          world->optional[OPTIONAL_PODGROUPS].cache,
                                          world->optional[OPTIONAL_WORKLOADS].cache,
                                          world->optional[OPTIONAL_COSCHEDULING].cache,
                                          world->optional[OPTIONAL_LWS].cache,
                                          world->optional[OPTIONAL_JOBSETS].cache };

    for (size_t i = 0; i < sizeof(caches) / sizeof(caches[0]); i++) {
        if (begins)
            kube_cache_relist_begin(caches[i]);
        else
            kube_cache_relist_end(caches[i], 5);
    }
}

static const struct kube_kind *const optional_kinds[OPTIONAL_KINDS] = {
    [OPTIONAL_PODGROUPS] = &bridge_podgroup_kind,
    [OPTIONAL_WORKLOADS] = &bridge_workload_kind,
    [OPTIONAL_COSCHEDULING] = &bridge_coscheduling_kind,
    [OPTIONAL_LWS] = &bridge_lws_kind,
    [OPTIONAL_JOBSETS] = &bridge_jobset_kind,
};

static void make_caches(struct small_world *small)
{
    struct bridge_world *world = &small->world;

    world->pods = kube_cache_new(&kube_pod_kind, &small->clock);
    world->nodes = kube_cache_new(&kube_node_kind, &small->clock);
    world->jobs = kube_cache_new(&bridge_job_kind, &small->clock);
    world->replicasets = kube_cache_new(&bridge_replicaset_kind, &small->clock);
    world->statefulsets = kube_cache_new(&bridge_statefulset_kind, &small->clock);
    for (size_t i = 0; i < OPTIONAL_KINDS; i++)
        world->optional[i] =
            (struct optional){ .cache = kube_cache_new(optional_kinds[i], &small->clock),
                               .state = OPTIONAL_PRESENT };
    small->claims = kube_cache_new(&bridge_claim_kind, &small->clock);
    small->volumes = kube_cache_new(&bridge_volume_kind, &small->clock);
    small->classes = kube_cache_new(&bridge_storage_class_kind, &small->clock);
    world->eligible = eligible_new(&(struct eligible_caches){ .pods = world->pods,
                                                              .nodes = world->nodes,
                                                              .claims = small->claims,
                                                              .volumes = small->volumes,
                                                              .classes = small->classes,
                                                              .clock = &small->clock },
                                   SCHEDULER);
    world_add_indexes(world);
    small->jobs = slurm_cache_new(&slurm_job_kind, small->loop, STR(CLUSTER));
    small->nodes = slurm_cache_new(&slurm_node_kind, small->loop, STR(""));
    small->partitions = slurm_cache_new(&slurm_partition_kind, small->loop, STR(""));
    world->slurm_jobs = small->jobs;
    world->slurm_nodes = small->nodes;
    world->slurm_partitions = small->partitions;
    world->memory = memory_new();
    world->room = room_new(small->jobs, small->nodes);
    world->strangers = strangers_new(small->nodes, world->nodes, world->nodes_by_slurm_name);
}

static void read_config(struct small_world *small, const struct json *given)
{
    auto_buf struct buf text;
    struct err err = { .class = 0 };

    buf_init(&text, 10000);
    if (json_get(given, "config"))
        json_write(json_get(given, "config"), &text); /* JSON is YAML */
    if (bridge_config_parse(buf_str(&text), &small->config, &err) < 0)
        fail_msg("config: %s", err.text);
}

void small_world_init(struct small_world *small, const struct json *given)
{
    const struct json *facts = json_get(given, "facts");
    bool is_fenced = json_i64_or(json_get(given, "now"), 100) < LISTED_S;
    int64_t listed_s = json_i64_or(json_get(facts, "listed"), is_fenced ? 1 : LISTED_S);

    *small = (struct small_world){ .loop = NULL };
    arena_init(&small->arena, 1u << 24);
    clock_init_virtual(&small->clock, WORLDS_EPOCH_S * (int64_t)SECOND_US);
    small->loop = loop_new_virtual(&small->clock);
    read_config(small, given);
    small->world.config = &small->config;
    small->world.cluster = STR(CLUSTER);
    make_caches(small);
    sync_slurm(small->jobs, LED_FROM_S * SECOND_US - 1);
    sync_slurm(small->nodes, LED_FROM_S * SECOND_US - 1);
    sync_slurm(small->partitions, LED_FROM_S * SECOND_US - 1);
    list_kube(small, true);
    each(small, given, "owners", add_owner);
    each(small, given, "groups", add_group);
    take_away_kinds(small, given);
    each(small, given, "classes", add_class);
    each(small, given, "volumes", add_volume);
    each(small, given, "claims", add_claim);
    each(small, given, "nodes", add_node);
    each(small, given, "pods", add_pod);
    list_kube(small, false);
    each(small, given, "slurm_nodes", add_slurm_node);
    each(small, given, "jobs", add_job);
    loop_run(small->loop); /* changes are told from the loop */
    slurm_cache_unchanged(small->jobs, (LED_FROM_S + listed_s) * SECOND_US);
    each(small, given, "asks", add_ask);
    set_facts(small, given);
    clock_advance_to_us(&small->clock, small->world.facts.now_us);
}

void small_world_done(struct small_world *small)
{
    struct bridge_world *world = &small->world;

    room_free(world->room);
    strangers_free(world->strangers);
    memory_free(world->memory);
    slurm_cache_free(small->jobs);
    slurm_cache_free(small->nodes);
    slurm_cache_free(small->partitions);
    eligible_free(world->eligible);
    kube_cache_free(small->claims);
    kube_cache_free(small->volumes);
    kube_cache_free(small->classes);
    for (size_t i = 0; i < OPTIONAL_KINDS; i++)
        kube_cache_free(world->optional[i].cache);
    kube_cache_free(world->pods);
    kube_cache_free(world->nodes);
    kube_cache_free(world->jobs);
    kube_cache_free(world->replicasets);
    kube_cache_free(world->statefulsets);
    bridge_config_done(&small->config);
    loop_free(small->loop);
    arena_done(&small->arena);
}
