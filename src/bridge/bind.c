/* bind.c - puts a pod on the node that Slurm gave to its job.
 *
 * Holds: the node is one of the running job's; the Binding carries the pod's UID; a node that will
 * not do is given back to Slurm, and not taken again. */
#include "bridge/bind.h"

#include "bridge/act.h"
#include "bridge/gate.h"
#include "bridge/names.h"
#include "bridge/tell.h"
#include "codec/hostlist.h"
#include "codec/patch.h"

#include <inttypes.h>

enum {
    LOOK_FOR_FIT_US = 5000000, /* nothing tells a unit that a node has changed */
    LOOK_IF_READY_US = 10000,
    LOOK_IF_COVERED_US = 500000,
    FORGETFUL_US = 600 * 1000000,
};

/* ---- before ---- */

static bool tolerates_us(const struct bridge_world *world, const struct kube_pod *pod)
{
    for (unsigned i = 0; i < pod->toleration_count; i++) {
        const struct kube_toleration *has = &pod->tolerations[i];
        bool key = !has->key[0] ? has->exists : str_is(str_of(has->key), BRIDGE_TAINT);
        bool value = has->exists || str_is(str_of(has->value), world->config->scheduler_name);

        if (key && value && !has->other && has->seconds < 0 &&
            (has->effect == KUBE_EFFECT_ANY || has->effect == KUBE_NO_EXECUTE))
            return true;
    }
    return false;
}

/* Appends to a list, or makes it. */
static void append_to(struct json_build *build, struct json_mut *operations, struct arena *arena,
                      const char *path, unsigned count, struct json_mut *item)
{
    struct json_mut *list;

    if (count > 0) {
        patch_op(build, operations, "add", str_of(arena_printf(arena, "%s/-", path)), item);
        return;
    }
    list = json_new_array(build);
    json_push(list, item);
    patch_op(build, operations, "add", str_of(path), list);
}

static struct json_mut *our_toleration(struct json_build *build, const char *scheduler)
{
    struct json_mut *toleration = json_new_object(build);

    json_put_text(build, toleration, "key", BRIDGE_TAINT);
    json_put_text(build, toleration, "operator", "Equal");
    json_put_text(build, toleration, "value", scheduler);
    json_put_text(build, toleration, "effect", "NoExecute");
    return toleration;
}

static void foretell_finalizer(struct json_build *build, struct json_mut *predicted,
                               const struct kube_object *pod)
{
    struct json_mut *list =
        json_put_array(build, json_object_at(build, predicted, "metadata"), "finalizers");

    for (unsigned i = 0; i < pod->finalizer_count; i++)
        json_push_str(build, list, pod->finalizers[i]);
    json_push_str(build, list, STR(BRIDGE_FINALIZER));
}

static const char *effect_name(enum kube_effect effect)
{
    static const char *const names[] = {
        [KUBE_EFFECT_ANY] = "",
        [KUBE_NO_SCHEDULE] = "NoSchedule",
        [KUBE_PREFER_NO_SCHEDULE] = "PreferNoSchedule",
        [KUBE_NO_EXECUTE] = "NoExecute",
    };

    return names[effect];
}

static void foretell_toleration(const struct bridge_world *world, struct json_build *build,
                                struct json_mut *predicted, const struct kube_pod *pod)
{
    struct json_mut *list =
        json_put_array(build, json_object_at(build, predicted, "spec"), "tolerations");

    for (unsigned i = 0; i < pod->toleration_count; i++) {
        const struct kube_toleration *has = &pod->tolerations[i];
        struct json_mut *item = json_new_object(build);

        json_put_text(build, item, "key", has->key);
        json_put_text(build, item, "value", has->value);
        json_put_text(build, item, "operator", has->exists ? "Exists" : "Equal");
        json_put_text(build, item, "effect", effect_name(has->effect));
        if (has->seconds >= 0)
            json_put_i64(build, item, "tolerationSeconds", has->seconds);
        json_push(list, item);
    }
    json_push(list, our_toleration(build, world->config->scheduler_name));
}

/* A list that we make where
 * there was none would take the place of one that others have made since: so only for the version
 * seen. */
void plan_prepare(const struct bridge_world *world, const struct unit *unit, struct plan *plan)
{
    const struct kube_pod *pod = unit->pod;
    bool held = kube_object_has_finalizer(&pod->object, BRIDGE_FINALIZER);
    bool tolerant = tolerates_us(world, pod);
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *operations = json_new_array(build);
    struct json_mut *predicted = json_new_object(build);

    if (held && tolerant)
        return;
    patch_op(build, operations, "test", STR("/metadata/uid"),
             json_new_str(build, str_of(pod->object.uid)));
    if ((!held && pod->object.finalizer_count == 0) || (!tolerant && pod->toleration_count == 0))
        patch_op(build, operations, "test", STR("/metadata/resourceVersion"),
                 json_new_str(build, str_of(pod->object.version)));
    if (!held) {
        append_to(build, operations, plan->arena, "/metadata/finalizers",
                  pod->object.finalizer_count, json_new_str(build, STR(BRIDGE_FINALIZER)));
        foretell_finalizer(build, predicted, &pod->object);
    }
    if (!tolerant) {
        append_to(build, operations, plan->arena, "/spec/tolerations", pod->toleration_count,
                  our_toleration(build, world->config->scheduler_name));
        foretell_toleration(world, build, predicted, pod);
    }
    plan_json_patch(plan, world->pods, &kube_pods, pod->object.ns, pod->object.name, NULL,
                    operations, predicted);
}

/* ---- which node ---- */

bool hosts_have(struct arena *arena, const char *hosts, const char *name)
{
    const struct hostlist *list;
    struct err err = { .class = 0 };

    return hostlist_parse(arena, str_of(hosts), HOSTLIST_MAX_NAMES, &list, &err) == 0 &&
           hostlist_contains(list, str_of(name));
}

static int first_host(struct arena *arena, const struct slurm_job *job, const char **ret_name,
                      struct err *err)
{
    const struct hostlist *list;
    struct hostlist_iter iter;
    struct str name;

    if (hostlist_parse(arena, str_of(job->nodes), HOSTLIST_MAX_NAMES, &list, err) < 0)
        return err_wrap(err, "nodes of job %s", job->object.key);
    iter = hostlist_iter(list);
    *ret_name = hostlist_next(&iter, &name) ? arena_strndup(arena, name.at, name.len) : "";
    return 0;
}

const char *node_misfit(struct arena *arena, const struct kube_node *node, const char *slurm_name)
{
    if (!node)
        return arena_printf(arena, "slurm node matches no Kube nodes: %s", slurm_name);
    if (node->object.deleted_us)
        return arena_printf(arena, "node %s is being deleted", node->object.name);
    if (node->unschedulable)
        return arena_printf(arena, "node %s is cordoned", node->object.name);
    if (!node->ready)
        return arena_printf(arena, "node %s is not ready", node->object.name);
    return NULL;
}

static int give_back(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                     const char *slurm_name, const char *why)
{
    unsigned given = unit->memory ? unit->memory->misfit_count : 0;

    tell_waiting(world, unit, plan, "NodeMisfit", "job %s was given a node that will not do: %s",
                 unit->job->object.key, why);
    if (given == MEMORY_MAX_MISFITS) { /* people must look: it keeps its job, and says why */
        plan_look_again(plan, LOOK_FOR_FIT_US);
        return 0;
    }
    plan_event(plan, &unit->pod->object, KUBE_EVENT_WARNING, "SlurmNodeMisfit",
               "job %s is given back: %s", unit->job->object.key, why);
    plan_slurm_give_back(plan, unit->job, slurm_name, why);
    return 0;
}

/* ---- binding ---- */

/* Where a Binding does not carry labels to the pod they go before it. */
static bool plan_label(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                       struct json_build *build, struct json_mut *metadata)
{
    const struct kube_object *pod = &unit->pod->object;
    struct json_mut *patch = json_new_object(build);

    if (unit->recorded_id == unit->job->id)
        return false;
    json_put_text(build, metadata, "uid", pod->uid);
    json_put(build, patch, "metadata", metadata);
    plan_merge_patch(plan, world->pods, &kube_pods, pod->ns, pod->name, NULL, NULL, patch);
    return true;
}

/* What a Binding was planned on. */
struct bind_basis {
    const struct bridge_world *world;
    const char *job, *sluid, *nodes;
};

static bool still_runs(const void *context)
{
    const struct bind_basis *basis = context;
    const struct slurm_object *object = slurm_cache_get(basis->world->slurm_jobs, basis->job);
    const struct slurm_job *job = object ? slurm_job_of(object) : NULL;

    return job && job_phase(job) == JOB_RUNS && str_is(str_of(job->sluid), basis->sluid) &&
           str_is(str_of(job->nodes), basis->nodes) &&
           !slurm_cache_is_behind(basis->world->slurm_jobs, basis->job);
}

static void keep_basis(const struct bridge_world *world, const struct slurm_job *job,
                       struct plan *plan, struct action *action)
{
    struct bind_basis *basis = arena_alloc(plan->arena, sizeof(*basis));

    *basis = (struct bind_basis){ world, arena_strdup(plan->arena, job->object.key),
                                  arena_strdup(plan->arena, job->sluid),
                                  arena_strdup(plan->arena, job->nodes) };
    action->basis = basis;
    action->still_holds = still_runs;
}

/* Pods that lost their jobs may wait long for others to give back what they use. */
static bool may_be_forgetful(const struct bridge_world *world)
{
    const struct bridge_facts *facts = &world->facts;

    return facts->uncovered > 0 ||
           (facts->restarted_us && facts->now_us - facts->restarted_us < FORGETFUL_US);
}

/* On what is known now: nothing is bound in a later stage of a plan, whose job may have ended. */
static void bind_to(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                    const struct kube_node *node)
{
    const struct kube_object *pod = &unit->pod->object;
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *metadata = json_new_object(build);
    struct action *action;

    json_put_text(build, json_put_object(build, metadata, "labels"), BRIDGE_JOB_LABEL,
                  unit->job->object.key);
    json_put_text(build, json_put_object(build, metadata, "annotations"), BRIDGE_NODE_ANNOTATION,
                  node->object.name);
    if (!world->facts.bind_takes_metadata && plan_label(world, unit, plan, build, metadata)) {
        plan_look_again(plan, LOOK_IF_READY_US);
        return;
    }
    if (!world->facts.bind_takes_metadata)
        metadata = NULL;
    action =
        plan_bind(plan, world->pods, pod->ns, pod->name, pod->uid, node->object.name, metadata);
    if (!action)
        return;
    keep_basis(world, unit->job, plan, action);
    plan_next_stage(plan);
    tell_placed(world, unit, plan, unit->job, node->object.name);
    plan_event(plan, pod, KUBE_EVENT_NORMAL, "Scheduled",
               "Successfully assigned %s/%s to %s (job %s)", pod->ns, pod->name, node->object.name,
               unit->job->object.key);
}

int plan_place(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
               struct err *err)
{
    const struct kube_node *node;
    const char *slurm_name = "", *why;
    int result = first_host(plan->arena, unit->job, &slurm_name, err);

    if (result < 0)
        return result;
    if (!slurm_name[0]) {
        plan_slurm_look(plan, unit->job); /* its state was seen, its nodes not yet */
        plan_wait(plan, "the nodes of job %s are being read", unit->job->object.key);
        plan_look_again(plan, LOOK_FOR_FIT_US);
        return 0;
    }
    node = world_node_by_slurm_name(world, str_of(slurm_name));
    if ((why = node_misfit(plan->arena, node, slurm_name)) != NULL)
        return give_back(world, unit, plan, slurm_name, why);
    if (gate_cover_comes_first(world)) {
        plan_wait(plan, "pods that may have lost their jobs come first");
        plan_look_again(plan, LOOK_IF_COVERED_US);
        return 0;
    }
    if (may_be_forgetful(world) && world_has_uncovered(world, node->object.name))
        return give_back(world, unit, plan, slurm_name,
                         "a pod whose job Slurm has forgotten runs there");
    if (!list_is_empty(&plan->actions)) { /* of plan_prepare: they must be there first */
        plan_wait(plan, "it is being prepared to be bound");
        plan_look_again(plan, LOOK_IF_READY_US);
        return 0;
    }
    bind_to(world, unit, plan, node);
    return 0;
}
