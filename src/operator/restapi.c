/* restapi.c - what must exist for one RestApi.
 *
 * Reads   the RestApi, the Controller that it refers to, its Deployment and Service.
 * Returns actions; does no I/O.
 * Holds   a RestApi whose Controller is missing keeps the Deployment that it has. */
#include "operator/restapi.h"

#include "engine/child.h"
#include "operator/build.h"

static const struct kube_object *live_deployment(const struct sync *sync)
{
    return sync_child(sync, sync->world->deployments, component_slurmrestd.suffix);
}

static int plan_service(struct sync *sync, struct err *err)
{
    struct json_mut *service;
    int result = restapi_service(sync->build, sync->object, &service, err);

    return result < 0 ? result
                      : plan_child(sync->plan, sync->world->services, sync->object, service, err);
}

static int plan_deployment(struct sync *sync, struct err *err)
{
    const struct kube_object *controller =
        operator_world_ref(sync->world->controllers, sync->object, "controllerRef");
    struct json_mut *deployment;
    int result;

    if (!controller)
        return err_set(err, ERR_NOT_FOUND, "Controller %s does not exist",
                       json_str(json_at(sync->spec, "controllerRef", "name")).at);
    result = restapi_deployment(sync->build, sync->world, sync->object, controller,
                                live_deployment(sync), &deployment, err);
    return result < 0
               ? result
               : plan_child(sync->plan, sync->world->deployments, sync->object, deployment, err);
}

static void plan_status(struct sync *sync)
{
    const struct kube_object *deployment =
        sync_own_child(sync, sync->world->deployments, component_slurmrestd.suffix);
    struct sync_workload workload = {
        .kind = "Deployment",
        .name = arena_printf(sync->plan->arena, "%s-restapi", sync->object->name),
        .tree = deployment ? operator_tree(deployment) : NULL,
        .wanted = spec_number(sync->object, "replicas"),
    };

    sync_status(sync, &workload, NULL);
}

void restapi_plan(const struct operator_world *world, const struct kube_object *restapi,
                  struct plan *plan)
{
    static const struct sync_step steps[] = {
        { "Service", plan_service },
        { "Deployment", plan_deployment },
    };

    sync_plan(world, restapi, plan, steps, sizeof(steps) / sizeof(steps[0]), plan_status);
}
