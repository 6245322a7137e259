/* sim_operator_promises.c - what the operator promises, whatever happens to it.
 *
 * 1. Of custom resources it writes the status alone. All else that it writes becomes or is a child
 * of one; what another object controls is never touched, and what people added to a child stays.
 * 2. Only the holder of the lease writes, and there is never more than one.
 * 3. Two minutes after the world has calmed down, every custom resource has its children, its plan
 *    is empty, and the conditions Ready and Degraded are what the store shows.
 * 4. It does not write without need: nothing when all is right, and never more than a few writes
 * per change that others made. */
#include "operator/names.h"
#include "operator/plans.h"
#include "sim_operator.h"

enum { FIRST_WRITES = 100, WRITES_PER_CHANGE = 6, MAX_PLAN = 16 << 20 };

static bool is_our_process(const char *user)
{
    return strncmp(user, "replica-", strlen("replica-")) == 0;
}

static struct str name_of(const struct json *object)
{
    return json_str(json_at(object, "metadata", "name"));
}

static struct str ns_of(const struct json *object)
{
    return json_str(json_at(object, "metadata", "namespace"));
}

static struct str uid_of(const struct json *object)
{
    return json_str(json_at(object, "metadata", "uid"));
}

/* The reference to the owner that controls it; NULL: none does. */
static const struct json *controlling(const struct json *object)
{
    struct json_iter iter = json_iter(json_at(object, "metadata", "ownerReferences"));
    const struct json *reference;

    while (json_next_item(&iter, &reference))
        if (json_bool_or(json_get(reference, "controller"), false))
            return reference;
    return NULL;
}

static bool is_controlled_by(const struct json *child, const struct json *owner)
{
    return str_eq(json_str(json_get(controlling(child), "uid")), uid_of(owner));
}

/* ---- 1: what is not ours is not touched ---- */

/* The Service and the budget of workers belong to all NodeSets of a Controller, and slurm.jwks to
 * all Controllers with these keys. None controls them. */
static bool is_shared_child(const struct json *object)
{
    return !controlling(object) && json_len(json_at(object, "metadata", "ownerReferences")) > 0 &&
           (str_starts(name_of(object), STR("slurm-workers-")) ||
            str_ends(name_of(object), STR("-jwks")));
}

static bool is_child(const struct json *object)
{
    return is_shared_child(object) || str_is(json_str(json_get(controlling(object), "apiVersion")),
                                             OPERATOR_GROUP "/" OPERATOR_VERSION);
}

/* A Token fills the Secret of the user that has its name, and controls it neither before nor then.
 */
static bool is_filled_token(const struct json *old, const struct json *next)
{
    return json_exists(old) && json_exists(next) && !controlling(old) && !controlling(next) &&
           str_ends(name_of(old), STR("-jwt-alice")) &&
           json_equal(json_at(old, "metadata", "labels"), json_at(next, "metadata", "labels"));
}

/* Keys that people added begin with "foreign". */
static bool keeps_foreign(const struct json *old, const struct json *next)
{
    struct json_iter iter = json_iter(old);
    const struct json *value;
    struct str key;

    while (json_next_member(&iter, &key, &value))
        if (str_starts(key, STR("foreign")) && !json_equal(json_get_str(next, key), value))
            return false;
    return true;
}

static const char *wrong_with_child(const struct api_change *change)
{
    const struct json *old = change->old, *next = change->next;

    if (next && !is_child(next) && !is_filled_token(old, next))
        return "is no child of a custom resource then";
    if (!old)
        return NULL;
    if (controlling(old) && !is_child(old))
        return "is controlled by another object";
    if (!next)
        return is_child(old) ? NULL : "was no child of a custom resource";
    if (controlling(old) &&
        !json_equal(json_get(controlling(old), "uid"), json_get(controlling(next), "uid")))
        return "has another owner then";
    if (!keeps_foreign(json_get(old, "data"), json_get(next, "data")) ||
        !keeps_foreign(json_at(old, "metadata", "labels"), json_at(next, "metadata", "labels")) ||
        !keeps_foreign(json_at(old, "metadata", "annotations"),
                       json_at(next, "metadata", "annotations")))
        return "lost what somebody added";
    return NULL;
}

static const char *wrong_with_resource(const struct api_change *change)
{
    const struct json *old = change->old, *next = change->next;

    if (old && !next && json_exists(json_at(old, "metadata", "deletionTimestamp")))
        return NULL; /* its finalizer was the last */
    if (!old || !next)
        return "is made by people";
    return json_equal(json_get(old, "spec"), json_get(next, "spec")) &&
                   json_equal(json_at(old, "metadata", "labels"),
                              json_at(next, "metadata", "labels")) &&
                   json_equal(json_at(old, "metadata", "annotations"),
                              json_at(next, "metadata", "annotations"))
               ? NULL
               : "has more than another status";
}

static const char *wrong_with(const struct api_change *change)
{
    static const char *const kinds[] = { "configmaps",
                                         "secrets",
                                         "services",
                                         "deployments",
                                         "statefulsets",
                                         "pods",
                                         "controllerrevisions",
                                         "poddisruptionbudgets" };

    if (strcmp(change->kind->group, OPERATOR_GROUP) == 0)
        return wrong_with_resource(change);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(change->kind->plural, kinds[i]) == 0)
            return wrong_with_child(change);
    return "is of a kind that has no children";
}

void operator_promises_on_change(void *context, const struct api_change *change)
{
    struct operator_scene *scene = context;
    const struct json *object = change->old ? change->old : change->next;
    const char *wrong;

    if (!is_our_process(change->user)) {
        scene->changes++;
        return;
    }
    if (strcmp(change->kind->plural, "leases") == 0 || strcmp(change->kind->plural, "events") == 0)
        return;
    wrong = wrong_with(change);
    if (wrong)
        world_break(scene->world, "%s wrote %s " STR_FMT "/" STR_FMT ", which %s", change->user,
                    change->kind->plural, STR_ARG(ns_of(object)), STR_ARG(name_of(object)), wrong);
}

/* ---- 2: only the leader acts ---- */

static bool believes_to_lead(const struct operator_scene *scene, const char *user)
{
    for (unsigned i = 0; i < OPERATOR_REPLICAS; i++)
        if (strcmp(scene->replicas[i].process.user, user) == 0)
            return scene->replicas[i].program && operator_is_leader(scene->replicas[i].program);
    return false;
}

void operator_promises_on_send(struct operator_scene *scene, const char *user, const char *method,
                               const char *path)
{
    struct world *world = scene->world;
    const struct json *lease = api_store_find(world->store, "leases", "system", OPERATOR_LEASE);

    if (strcmp(method, "GET") == 0 || strstr(path, "/leases") || strstr(path, "/events"))
        return;
    if (++scene->sent > FIRST_WRITES + scene->changes * WRITES_PER_CHANGE)
        world_break(world, "%llu writes for %llu changes", (unsigned long long)scene->sent,
                    (unsigned long long)scene->changes);
    if (!believes_to_lead(scene, user))
        world_break(world, "%s sends %s %s and knows that it may not", user, method, path);
    if (!str_is(json_str(json_at(lease, "spec", "holderIdentity")), user))
        world_break(world, "%s sends %s %s without holding the lease", user, method, path);
}

void operator_promises_after_step(struct operator_scene *scene)
{
    unsigned leaders = 0;

    for (unsigned i = 0; i < OPERATOR_REPLICAS; i++)
        leaders += scene->replicas[i].program && operator_is_leader(scene->replicas[i].program);
    if (leaders > 1)
        world_break(scene->world, "%u leaders at once", leaders);
}

/* ---- 3: children, plans and conditions ---- */

struct settled { /* what one custom resource is compared with */
    struct operator_scene *scene;
    const struct operator_resource *resource;
    const struct json *object, *spec;
};

/* What a custom resource needs. The name of a Token's Secret ends with its user. */
static const struct wanted_child {
    const char *kind, *plural, *suffix;
    bool runs_pods, is_external_too;
} wanted_children[] = {
    { "Controller", "services", "-controller-internal", false, false },
    { "Controller", "services", "-controller", false, false },
    { "Controller", "configmaps", "-config", false, true },
    { "Controller", "statefulsets", "-controller", true, false },
    { "RestApi", "services", "-restapi", false, false },
    { "RestApi", "deployments", "-restapi", true, false },
    { "Accounting", "services", "-accounting", false, false },
    { "Accounting", "secrets", "-accounting", false, false },
    { "Accounting", "statefulsets", "-accounting", true, false },
    { "LoginSet", "secrets", "-ssh-host-keys", false, false },
    { "LoginSet", "configmaps", "-ssh-config", false, false },
    { "LoginSet", "services", "", false, false },
    { "LoginSet", "deployments", "", true, false },
    { "Token", "secrets", "-jwt-", false, false },
};

/* Names that a spec refers to. */
static const struct wanted_ref {
    const char *kind, *path[3], *plural;
    bool is_external_too;
} wanted_refs[] = {
    { "Controller", { "slurmKeyRef" }, "secrets", false },
    { "Controller", { "jwtKeyRef" }, "secrets", false },
    { "RestApi", { "controllerRef" }, "controllers", false },
    { "Accounting", { "slurmKeyRef" }, "secrets", false },
    { "Accounting", { "jwtKeyRef" }, "secrets", false },
    { "Accounting", { "storageConfig", "passwordKeyRef" }, "secrets", false },
    { "LoginSet", { "controllerRef" }, "controllers", false },
    { "NodeSet", { "controllerRef" }, "controllers", false },
    { "Token", { "jwtKeyRef" }, "secrets", false },
};

static bool is_external(const struct settled *settled)
{
    return json_bool_or(json_get(settled->spec, "external"), false);
}

static const struct json *find(const struct settled *settled, const char *plural, const char *name)
{
    return api_store_find(settled->scene->world->store, plural, ns_of(settled->object).at, name);
}

static const struct json *find_child(const struct settled *settled,
                                     const struct wanted_child *wanted)
{
    bool is_token = strcmp(wanted->kind, "Token") == 0;
    char name[300];

    (void)snprintf(name, sizeof(name), "%s%s%s", name_of(settled->object).at, wanted->suffix,
                   is_token ? json_str(json_get(settled->spec, "username")).at : "");
    return find(settled, wanted->plural, name);
}

static int64_t wanted_pods(const struct settled *settled)
{
    const struct json *ha = json_get(settled->spec, "ha");

    if (json_bool_or(json_get(ha, "enabled"), false))
        return 1 + json_i64_or(json_get(ha, "backups"), 1);
    return json_i64_or(json_get(settled->spec, "replicas"), 1);
}

/* A StatefulSet of an older operator, which needs no internal Service. */
static bool is_of_older_shape(const struct settled *settled)
{
    char name[300];

    (void)snprintf(name, sizeof(name), "%s-controller", name_of(settled->object).at);
    return wanted_pods(settled) == 1 &&
           str_is(json_str(json_at(find(settled, "statefulsets", name), "spec", "serviceName")),
                  name);
}

static bool is_wanted(const struct settled *settled, const struct wanted_child *child)
{
    return strcmp(child->kind, settled->resource->kind) == 0 &&
           (child->is_external_too || !is_external(settled)) &&
           (strcmp(child->suffix, "-controller-internal") != 0 || !is_of_older_shape(settled));
}

static const struct wanted_child *next_child(const struct settled *settled,
                                             const struct wanted_child *before)
{
    const struct wanted_child *end =
        wanted_children + sizeof(wanted_children) / sizeof(wanted_children[0]);

    for (before = before ? before + 1 : wanted_children; before < end; before++)
        if (is_wanted(settled, before))
            return before;
    return NULL;
}

/* Why it cannot have all that it needs; NULL: it can. */
static const char *hindrance(const struct settled *settled)
{
    if (!json_is_object(settled->spec))
        return "it has no spec";
    for (size_t i = 0; i < sizeof(wanted_refs) / sizeof(wanted_refs[0]); i++) {
        const struct wanted_ref *ref = &wanted_refs[i];
        const struct json *target = json_at_path(settled->spec, ref->path);

        if (strcmp(ref->kind, settled->resource->kind) == 0 &&
            (ref->is_external_too || !is_external(settled)) &&
            !find(settled, ref->plural, json_str(json_get(target, "name")).at))
            return ref->path[0];
    }
    if (strcmp(settled->resource->kind, "Controller") == 0 && !is_external(settled) &&
        !find(settled, "configmaps", "scripts"))
        return "prologScriptRefs";
    for (const struct wanted_child *wanted = NULL; (wanted = next_child(settled, wanted));) {
        const struct json *child = find_child(settled, wanted);

        if (controlling(child) && !is_controlled_by(child, settled->object))
            return "somebody else controls a child";
    }
    return NULL;
}

static bool condition_is(const struct settled *settled, const char *type, bool is_true)
{
    struct json_iter iter = json_iter(json_at(settled->object, "status", "conditions"));
    const struct json *condition;

    while (json_next_item(&iter, &condition))
        if (str_is(json_str(json_get(condition, "type")), type))
            return str_is(json_str(json_get(condition, "status")), is_true ? "True" : "False");
    return false;
}

static bool has_ready_pods(const struct settled *settled, const struct json *workload)
{
    return is_controlled_by(workload, settled->object) &&
           json_i64_or(json_at(workload, "status", "observedGeneration"), 0) ==
               json_i64_or(json_at(workload, "metadata", "generation"), 0) &&
           json_i64_or(json_at(workload, "status", "readyReplicas"), 0) >= wanted_pods(settled);
}

struct updated { /* what is looked for among all pods */
    const struct settled *settled;
    bool is_found;
};

static void find_updated_worker(void *context, const struct json *pod)
{
    struct updated *search = context;

    if (is_controlled_by(pod, search->settled->object) &&
        json_exists(json_at(pod, "metadata", "annotations", ANNOTATION_CORDONED_BY)))
        search->is_found = true;
}

/* There is no Slurm that could say whether a worker runs jobs. One with an old template runs on. */
static bool waits_for_drain(const struct settled *settled)
{
    struct updated search = { .settled = settled };

    api_store_visit(settled->scene->world->store, "pods", find_updated_worker, &search);
    return search.is_found;
}

static void check_children(const struct settled *settled, const char *hindered)
{
    bool is_ready = !hindered;

    if (strcmp(settled->resource->kind, "NodeSet") == 0 && (hindered || waits_for_drain(settled)))
        return; /* pods that it had before run on */
    for (const struct wanted_child *wanted = NULL; (wanted = next_child(settled, wanted));) {
        const struct json *child = find_child(settled, wanted);

        /* What is immutable is not adopted; host keys and a token's Secret may be people's. */
        bool is_left_alone =
            child && (json_bool_or(json_get(child, "immutable"), false) ||
                      strcmp(wanted->suffix, "-ssh-host-keys") == 0 ||
                      (strcmp(wanted->suffix, "-jwt-") == 0 && !controlling(child)));

        if (!hindered && !is_left_alone && !is_controlled_by(child, settled->object))
            world_break(settled->scene->world, "%s " STR_FMT "/" STR_FMT " has no %s %s",
                        settled->resource->kind, STR_ARG(ns_of(settled->object)),
                        STR_ARG(name_of(settled->object)), wanted->plural, wanted->suffix);
        if (wanted->runs_pods)
            is_ready = child && has_ready_pods(settled, child);
    }
    if (!condition_is(settled, "Ready", is_ready))
        world_break(settled->scene->world, "%s " STR_FMT "/" STR_FMT ": Ready should be %s",
                    settled->resource->kind, STR_ARG(ns_of(settled->object)),
                    STR_ARG(name_of(settled->object)), is_ready ? "True" : "False");
}

/* A token that is not renewed may be of an earlier key, and cannot be mended. */
static bool may_be_outdated(const struct settled *settled)
{
    const struct wanted_child *secret = next_child(settled, NULL);

    return secret && strcmp(secret->kind, "Token") == 0 &&
           json_bool_or(json_get(find_child(settled, secret), "immutable"), false);
}

static void check_resource(void *context, const struct json *object)
{
    struct settled *settled = context;
    const char *hindered;

    settled->object = object;
    settled->spec = json_get(object, "spec");
    hindered = hindrance(settled);
    if (!hindered && may_be_outdated(settled) && condition_is(settled, "Degraded", true))
        hindered = "its token is outdated";
    check_children(settled, hindered);
    if (!condition_is(settled, "Degraded", hindered != NULL))
        world_break(settled->scene->world, "%s " STR_FMT "/" STR_FMT ": Degraded should be %s: %s",
                    settled->resource->kind, STR_ARG(ns_of(object)), STR_ARG(name_of(object)),
                    hindered ? "True" : "False", hindered ? hindered : "nothing hinders it");
}

/* ---- 3: plans ---- */

struct filling {
    struct operator_scene *scene;
    struct kube_cache *cache;
};

static void put_into_cache(void *context, const struct json *object)
{
    struct filling *filling = context;
    const struct kube_object *decoded = NULL;
    struct err err = { .class = 0 };

    if (kube_object_decode(kube_cache_kind(filling->cache), object, &decoded, &err) < 0) {
        world_break(filling->scene->world, "does not decode: %s", err.text);
        return;
    }
    kube_cache_seen(filling->cache, decoded);
    kube_object_unref(decoded);
}

static void fill_world(struct operator_scene *scene, struct operator_world *world)
{
    static const char *const kinds[] = { "Controller",
                                         "RestApi",
                                         "Accounting",
                                         "LoginSet",
                                         "NodeSet",
                                         "Token",
                                         "ConfigMap",
                                         "Secret",
                                         "Service",
                                         "Pod",
                                         "Deployment",
                                         "StatefulSet",
                                         "Node",
                                         "ControllerRevision",
                                         "PodDisruptionBudget",
                                         "PersistentVolumeClaim" };

    operator_world_init(world, &scene->world->clock);
    world->wall_us = clock_wall_us(&scene->world->clock);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct filling filling = { scene, operator_world_cache(world, kinds[i]) };

        api_store_visit(scene->world->store, kube_cache_kind(filling.cache)->resource->plural,
                        put_into_cache, &filling);
    }
}

static void check_plan(struct operator_scene *scene, const struct operator_world *world,
                       const struct operator_plan *row, const struct kube_object *object)
{
    struct arena arena;
    struct plan plan;
    char key[300];

    arena_init(&arena, MAX_PLAN);
    plan_init(&plan, &arena);
    (void)snprintf(key, sizeof(key), "%s/%s", object->ns, object->name);
    operator_plan_key(row, world, str_of(key), &plan);
    list_each (const struct action, action, &plan.actions, link)
        world_break(scene->world, "%s %s is settled, and wants to %s: %.200s", row->kind, key,
                    action->what, action->request.body.at);
    arena_done(&arena);
}

static void check_plans(struct operator_scene *scene)
{
    struct operator_world world;

    fill_world(scene, &world);
    for (size_t i = 0; i < operator_plan_count; i++) {
        struct kube_cache_walk walk =
            kube_cache_walk(operator_world_cache(&world, operator_plans[i].kind));
        const struct kube_object *object;

        while ((object = kube_cache_next(&walk)))
            check_plan(scene, &world, &operator_plans[i], object);
    }
    operator_world_done(&world);
}

void operator_promises_when_settled(struct operator_scene *scene)
{
    for (unsigned i = 0; i < OPERATOR_RESOURCES; i++) {
        struct settled settled = { .scene = scene, .resource = &operator_resources[i] };

        if (operator_plan_of(settled.resource->kind))
            api_store_visit(scene->world->store, settled.resource->plural, check_resource,
                            &settled);
    }
    check_plans(scene);
}

/* ---- 4: no write without need ---- */

void operator_promises_at_the_end(struct operator_scene *scene)
{
    struct world *world = scene->world;

    if (scene->sent > scene->settled_sent)
        world_break(world, "%llu writes when all was right",
                    (unsigned long long)(scene->sent - scene->settled_sent));
    operator_promises_when_settled(scene);
}
