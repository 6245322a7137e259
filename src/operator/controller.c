/* controller.c - what must exist for one Controller.
 *
 * Reads   the Controller, its keys, ConfigMaps, NodeSets and Accounting, its children and pods.
 * Returns actions; does no I/O.
 * Holds   a StatefulSet in the shape of an older operator keeps that shape until pods restart for
 *         another reason; clients find slurmctld at every moment: the label `active` is on a pod
 *         before the Service asks for it. */
#include "operator/controller.h"

#include "engine/child.h"
#include "kube/kinds.h"
#include "operator/build.h"
#include "operator/names.h"
#include "operator/nodeset_partition.h"
#include "operator/reconfigure.h"
#include "operator/slurm_conditions.h"
#include "operator/slurm_keys.h"

#include <stdio.h>

enum { LOOK_FOR_MONITORS_US = 10 * 1000000, LOOK_FOR_JOBS_US = 2 * 1000000 };

static int64_t replicas(const struct sync *sync)
{
    return spec_flag(sync->object, "ha.enabled") ? 1 + spec_number(sync->object, "ha.backups") : 1;
}

/* The shape of what is there stays while one slurmctld is wanted. */
static enum controller_shape shape_of(const struct sync *sync)
{
    const struct kube_object *live = sync_child(sync, sync->world->statefulsets, "-controller");
    char single[KUBE_MAX_NAME + 64];

    (void)snprintf(single, sizeof(single), "%s-controller", sync->object->name);
    return live && replicas(sync) == 1 &&
                   str_is(json_str(json_get(operator_spec(live), "serviceName")), single)
               ? SHAPE_SINGLE
               : SHAPE_HA;
}

/* ---- who is active ---- */

static bool is_active(const struct kube_object *pod)
{
    bool found = false;
    struct str value = kube_pairs_get(&pod->labels, LABEL_ACTIVE, &found);

    return found && str_is(value, "true");
}

static const struct kube_object *active_pod(const struct sync *sync)
{
    struct kube_cache_walk walk = kube_cache_walk(sync->world->pods);
    const struct kube_object *pod;

    while ((pod = kube_cache_next(&walk)))
        if (is_slurmctld_pod(sync, pod) && is_active(pod) && pod->deleted_us == 0)
            return pod;
    return NULL;
}

/* A Service that asks for the label already keeps asking; one that does not yet begins to when a
 * ready pod has it. A new one has no clients to lose. */
static bool service_selects_active(const struct sync *sync)
{
    const struct kube_object *service = sync_child(sync, sync->world->services, "-controller");
    const struct kube_object *pod = active_pod(sync);

    if (!service)
        return shape_of(sync) == SHAPE_HA;
    return json_exists(json_at(operator_spec(service), "selector", LABEL_ACTIVE)) ||
           (pod && kube_pod_of(pod)->ready);
}

static void plan_label(struct sync *sync, const struct kube_object *pod, const char *value)
{
    (void)plan_merge_patch(
        sync->plan, sync->world->pods, &kube_pods, pod->ns, pod->name, NULL, pod->version,
        json_format(sync->build, "{'metadata':{'labels':{'" LABEL_ACTIVE "':%s}}}", value));
}

/* NULL: there is none, or it is being deleted. */
static const struct kube_object *pod_of_ordinal(const struct sync *sync, int64_t ordinal)
{
    const struct kube_object *pod;
    char suffix[40];

    (void)snprintf(suffix, sizeof(suffix), "-controller-%lld", (long long)ordinal);
    pod = sync_child(sync, sync->world->pods, suffix);
    return pod && pod->deleted_us == 0 ? pod : NULL;
}

/* The pod of the slurmctld that is in control, by what Slurm says; NULL: it does not say. */
static const struct kube_object *responding_pod(const struct sync *sync)
{
    const struct slurm_facts *facts = operator_world_slurm(sync->world, sync->object);

    return facts && facts->is_reachable && facts->active >= 0 ? pod_of_ordinal(sync, facts->active)
                                                              : NULL;
}

/* The pod of the lowest ordinal: of those that are ready, else of all. */
static const struct kube_object *first_pod(const struct sync *sync)
{
    const struct kube_object *first = NULL, *pod;

    for (int64_t i = 0; i < replicas(sync); i++) {
        pod = pod_of_ordinal(sync, i);
        if (pod && kube_pod_of(pod)->ready)
            return pod;
        if (!first)
            first = pod;
    }
    return first;
}

static void plan_others_inactive(struct sync *sync, const struct kube_object *active)
{
    struct kube_cache_walk walk = kube_cache_walk(sync->world->pods);
    const struct kube_object *pod;

    while ((pod = kube_cache_next(&walk)))
        if (pod != active && is_slurmctld_pod(sync, pod) && is_active(pod))
            plan_label(sync, pod, NULL);
}

/* The label follows the slurmctld that responds: first it gets it, then the others lose it. While
 * Slurm cannot be asked the label stays where it is. A pod that is not ready does not take it:
 * clients would not reach it, and what Slurm said may be older than the pod. Somebody must have
 * it: else the first pod. */
static int plan_active(struct sync *sync, struct err *err)
{
    const struct kube_object *active = active_pod(sync), *responding = responding_pod(sync);

    (void)err;
    if (responding && is_active(responding))
        plan_others_inactive(sync, responding);
    else if (responding && kube_pod_of(responding)->ready)
        plan_label(sync, responding, "true");
    else if (!active && first_pod(sync))
        plan_label(sync, first_pod(sync), "true");
    return 0;
}

/* ---- steps ---- */

static int read_input(struct sync *sync, struct controller_input *ret_input, struct err *err)
{
    struct json_mut *data;
    int result;

    *ret_input = (struct controller_input){
        .conf = { .world = sync->world,
                  .controller = sync->object,
                  .shape = shape_of(sync),
                  .replicas = replicas(sync) },
        .arena = sync->plan->arena,
        .live = sync_child(sync, sync->world->statefulsets, "-controller"),
        .service_selects_active = service_selects_active(sync),
        .keys_may_wait = !slurm_keys_reached_others(sync),
    };
    result = controller_config_data(sync->build, ret_input, &data, err);
    if (result == 0)
        ret_input->config = data;
    return result;
}

static int plan_internal_service(struct sync *sync, struct err *err)
{
    struct controller_input input = { .conf = { .controller = sync->object } };

    if (spec_flag(sync->object, "external") || shape_of(sync) == SHAPE_SINGLE)
        return 0;
    return plan_child(sync->plan, sync->world->services, sync->object,
                      controller_internal_service(sync->build, &input), err);
}

static int plan_service(struct sync *sync, struct err *err)
{
    struct controller_input input = { .conf = { .controller = sync->object },
                                      .service_selects_active = service_selects_active(sync) };
    struct json_mut *service;
    int result;

    if (spec_flag(sync->object, "external"))
        return 0;
    result = controller_service(sync->build, &input, &service, err);
    return result < 0 ? result
                      : plan_child(sync->plan, sync->world->services, sync->object, service, err);
}

static int plan_config(struct sync *sync, struct err *err)
{
    struct controller_input input;
    int result = read_input(sync, &input, err);

    if (result < 0 || controller_is_first_restart(&input)) /* then it goes behind the StatefulSet */
        return result;
    return plan_child(sync->plan, sync->world->configmaps, sync->object,
                      controller_config(sync->build, &input), err);
}

/* A StatefulSet cannot change its serviceName: it is made anew, and its pods with it. Their claims
 * keep their names. */
static bool must_be_recreated(const struct controller_input *input, const struct json_mut *wanted)
{
    auto_json_doc struct json_doc *doc = json_freeze(wanted);

    return input->live && input->live->deleted_us == 0 &&
           kube_is_controlled_by(input->live, input->conf.controller) &&
           !json_equal(json_get(operator_spec(input->live), "serviceName"),
                       json_at(json_root(doc), "spec", "serviceName"));
}

static int plan_statefulset(struct sync *sync, struct err *err)
{
    struct controller_input input;
    struct json_mut *statefulset;
    int result;

    if (spec_flag(sync->object, "external"))
        return 0;
    if ((result = read_input(sync, &input, err)) < 0 ||
        (result = controller_statefulset(sync->build, &input, &statefulset, err)) < 0)
        return result;
    sync->plan->is_independent = false; /* a changed file goes behind it */
    if (must_be_recreated(&input, statefulset)) {
        plan_child_absent(sync->plan, sync->world->statefulsets, sync->object, input.live->name);
        return 0;
    }
    result = plan_child(sync->plan, sync->world->statefulsets, sync->object, statefulset, err);
    if (result < 0 || !controller_is_first_restart(&input))
        return result;
    plan_next_stage(sync->plan);
    return plan_child(sync->plan, sync->world->configmaps, sync->object,
                      controller_config(sync->build, &input), err);
}

static int plan_files(struct sync *sync, struct err *err)
{
    if (spec_flag(sync->object, "external"))
        return 0;
    if (slurm_keys_are_new(sync)) { /* a daemon that reads its files now may read the new key */
        plan_wait(sync->plan, "changed files wait for a new slurm.key that is rolled out");
        return 0;
    }
    return plan_reconfigure(sync, active_pod(sync), err);
}

/* The kind belongs to the Prometheus operator, which may be installed at any time. */
static int plan_service_monitor(struct sync *sync, struct err *err)
{
    bool is_wanted = spec_flag(sync->object, "metrics.enabled") &&
                     spec_flag(sync->object, "metrics.serviceMonitor.enabled") &&
                     !spec_flag(sync->object, "external");
    char name[KUBE_MAX_NAME + 64];

    if (!kube_cache_is_synced(sync->world->service_monitors)) {
        if (is_wanted)
            plan_look_again(sync->plan, LOOK_FOR_MONITORS_US);
        return 0;
    }
    if (is_wanted)
        return plan_child(sync->plan, sync->world->service_monitors, sync->object,
                          controller_service_monitor(sync->build, sync->object), err);
    (void)snprintf(name, sizeof(name), "%s-controller", sync->object->name);
    plan_child_absent(sync->plan, sync->world->service_monitors, sync->object, name);
    return 0;
}

/* ---- status ---- */

static void plan_status(struct sync *sync)
{
    const struct kube_object *live = sync_own_child(sync, sync->world->statefulsets, "-controller");
    const struct slurm_facts *facts = operator_world_slurm(sync->world, sync->object);
    struct sync_workload workload = {
        .note = spec_flag(sync->object, "external") ? "slurmctld runs elsewhere" : NULL,
        .kind = "StatefulSet",
        .name = arena_printf(sync->plan->arena, "%s-controller", sync->object->name),
        .tree = live ? operator_tree(live) : NULL,
        .wanted = replicas(sync),
        .also = { want_slurm(sync, facts), want_database(sync, facts), want_keys(sync) },
    };

    sync_status(sync, &workload, NULL);
}

void controller_plan(const struct operator_world *world, const struct kube_object *controller,
                     struct plan *plan)
{
    static const struct sync_step steps[] = {
        { "Slurm Key", slurm_keys_plan },    { "Internal Service", plan_internal_service },
        { "Service", plan_service },         { "Config", plan_config },
        { "StatefulSet", plan_statefulset }, { "Active", plan_active },
        { "Reconfigure", plan_files },       { "ServiceMonitor", plan_service_monitor },
    };

    sync_plan(world, controller, plan, steps, sizeof(steps) / sizeof(steps[0]), plan_status);
    if (nodeset_partitions_linger(world, plan->arena, controller))
        plan_look_again(plan, LOOK_FOR_JOBS_US); /* job records go without a word */
}
