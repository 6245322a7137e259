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

#include <stdio.h>

static bool is_external(const struct sync *sync)
{
    return json_bool_or(json_get(sync->spec, "external"), false);
}

static int64_t replicas(const struct sync *sync)
{
    const struct json *ha = json_get(sync->spec, "ha");

    return json_bool_or(json_get(ha, "enabled"), false)
               ? 1 + json_i64_or(json_get(ha, "backups"), 1)
               : 1;
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

static bool is_pod_of(const struct sync *sync, const struct kube_object *pod)
{
    bool has_name = false, has_instance = false;
    struct str name = kube_pairs_get(&pod->labels, LABEL_NAME, &has_name);
    struct str instance = kube_pairs_get(&pod->labels, LABEL_INSTANCE, &has_instance);

    return has_name && has_instance && strcmp(pod->ns, sync->object->ns) == 0 &&
           str_is(name, component_slurmctld.app) && str_is(instance, sync->object->name);
}

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
        if (is_pod_of(sync, pod) && is_active(pod) && pod->deleted_us == 0)
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

/* Somebody must have the label, whether Slurm can be asked or not: else ordinal 0. */
static int plan_active(struct sync *sync, struct err *err)
{
    auto_json_build struct json_build *build = json_build_new();
    const struct kube_object *first = sync_child(sync, sync->world->pods, "-controller-0");

    (void)err;
    if (!first || first->deleted_us != 0 || active_pod(sync))
        return 0;
    (void)plan_merge_patch(
        sync->plan, sync->world->pods, &kube_pods, first->ns, first->name, NULL, first->version,
        json_format(build, "{'metadata':{'labels':{'" LABEL_ACTIVE "':'true'}}}"));
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
    };
    result = controller_config_data(sync->build, ret_input, &data, err);
    if (result == 0)
        ret_input->config = data;
    return result;
}

static int plan_internal_service(struct sync *sync, struct err *err)
{
    struct controller_input input = { .conf = { .controller = sync->object } };

    if (is_external(sync) || shape_of(sync) == SHAPE_SINGLE)
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

    if (is_external(sync))
        return 0;
    result = controller_service(sync->build, &input, &service, err);
    return result < 0 ? result
                      : plan_child(sync->plan, sync->world->services, sync->object, service, err);
}

static int plan_config(struct sync *sync, struct err *err)
{
    struct controller_input input;
    int result = read_input(sync, &input, err);

    return result < 0 ? result
                      : plan_child(sync->plan, sync->world->configmaps, sync->object,
                                   controller_config(sync->build, &input), err);
}

/* A StatefulSet cannot change its serviceName: it is made anew, and its pods with it. Their claims
 * keep their names. */
static bool must_be_recreated(const struct controller_input *input, const struct json_mut *wanted)
{
    auto_json_doc struct json_doc *doc = json_freeze(wanted);

    return input->live && input->live->deleted_us == 0 &&
           !json_equal(json_get(operator_spec(input->live), "serviceName"),
                       json_at(json_root(doc), "spec", "serviceName"));
}

static int plan_statefulset(struct sync *sync, struct err *err)
{
    struct controller_input input;
    struct json_mut *statefulset;
    int result;

    if (is_external(sync))
        return 0;
    if ((result = read_input(sync, &input, err)) < 0 ||
        (result = controller_statefulset(sync->build, &input, &statefulset, err)) < 0)
        return result;
    if (must_be_recreated(&input, statefulset)) {
        plan_child_absent(sync->plan, sync->world->statefulsets, sync->object, input.live->name);
        return 0;
    }
    return plan_child(sync->plan, sync->world->statefulsets, sync->object, statefulset, err);
}

static void plan_status(struct sync *sync)
{
    const struct kube_object *live = sync_child(sync, sync->world->statefulsets, "-controller");
    struct sync_workload workload = {
        .note = is_external(sync) ? "slurmctld runs elsewhere" : NULL,
        .kind = "StatefulSet",
        .name = live ? live->name : "slurmctld",
        .tree = live ? operator_tree(live) : NULL,
        .wanted = replicas(sync),
    };

    sync_status(sync, &workload, NULL);
}

void controller_plan(const struct operator_world *world, const struct kube_object *controller,
                     struct plan *plan)
{
    static const struct sync_step steps[] = {
        { "Internal Service", plan_internal_service },
        { "Service", plan_service },
        { "Config", plan_config },
        { "StatefulSet", plan_statefulset },
        { "Active", plan_active },
    };
    auto_json_build struct json_build *build = json_build_new();
    struct sync sync = { .world = world,
                         .object = controller,
                         .spec = operator_spec(controller),
                         .plan = plan,
                         .build = build };

    sync_run(&sync, steps, sizeof(steps) / sizeof(steps[0]));
    plan_status(&sync);
}
