/* loginset.c - what must exist for one LoginSet.
 *
 * Reads   the LoginSet, the Controller that it refers to, its children and its sssd Secret.
 * Returns actions; does no I/O.
 * Holds   host keys are made once; pods are started when the keys are there. */
#include "operator/loginset.h"

#include "engine/child.h"
#include "engine/made_secret.h"
#include "operator/build.h"

static const char host_keys_suffix[] = "-ssh-host-keys";

static const struct kube_object *host_keys_of(const struct sync *sync)
{
    return sync_child(sync, sync->world->secrets, host_keys_suffix);
}

static const struct kube_object *live_deployment(const struct sync *sync)
{
    return sync_child(sync, sync->world->deployments, "");
}

/* Keys that another object controls are not ours to use: those of a LoginSet of the same name that
 * was deleted go with it. Keys that nobody controls were brought by people. */
static bool are_of_others(const struct sync *sync, const struct kube_object *keys)
{
    return keys && keys->owner.uid[0] && !kube_is_controlled_by(keys, sync->object);
}

static int plan_keys(struct sync *sync, struct err *err)
{
    const struct kube_object *keys = host_keys_of(sync);

    if (are_of_others(sync, keys))
        return err_set(err, ERR_CONFLICT, "Secret %s exists and is controlled by %s %s", keys->name,
                       keys->owner.kind, keys->owner.name);
    if (!keys)
        plan_made_secret(
            sync->plan, "host keys", sync->object->ns,
            arena_printf(sync->plan->arena, "%s%s", sync->object->name, host_keys_suffix),
            loginset_host_keys(sync->build, sync->object));
    return 0;
}

static int plan_ssh_config(struct sync *sync, struct err *err)
{
    return plan_child(sync->plan, sync->world->configmaps, sync->object,
                      loginset_ssh_config(sync->build, sync->object), err);
}

static int plan_service(struct sync *sync, struct err *err)
{
    struct json_mut *service;
    int result = loginset_service(sync->build, sync->object, &service, err);

    return result < 0 ? result
                      : plan_child(sync->plan, sync->world->services, sync->object, service, err);
}

static int plan_deployment(struct sync *sync, struct err *err)
{
    const struct loginset_input input = {
        .world = sync->world,
        .loginset = sync->object,
        .controller = operator_world_ref(sync->world->controllers, sync->object, "controllerRef"),
        .host_keys = host_keys_of(sync),
        .live = live_deployment(sync),
    };
    struct json_mut *deployment;
    int result;

    if (!input.controller)
        return err_set(err, ERR_NOT_FOUND, "Controller %s does not exist",
                       json_str(json_at(sync->spec, "controllerRef", "name")).at);
    if (!input.host_keys || are_of_others(sync, input.host_keys)) {
        plan_wait(sync->plan, "there are no host keys yet");
        return 0;
    }
    result = loginset_deployment(sync->build, &input, &deployment, err);
    return result < 0
               ? result
               : plan_child(sync->plan, sync->world->deployments, sync->object, deployment, err);
}

static void plan_status(struct sync *sync)
{
    const struct kube_object *live = sync_own_child(sync, sync->world->deployments, "");
    const struct json *tree = live ? operator_tree(live) : NULL;
    const struct sync_workload workload = {
        .kind = "Deployment",
        .name = sync->object->name,
        .tree = tree,
        .wanted = spec_number(sync->object, "replicas"),
    };
    const char *selector =
        arena_printf(sync->plan->arena, "app.kubernetes.io/instance=%s,app.kubernetes.io/name=%s",
                     sync->object->name, component_login.app);

    sync_status(sync, &workload,
                json_format(sync->build, "{'replicas':%l,'selector':%s}",
                            json_i64_or(json_at(tree, "status", "replicas"), 0), selector));
}

void loginset_plan(const struct operator_world *world, const struct kube_object *loginset,
                   struct plan *plan)
{
    static const struct sync_step steps[] = {
        { "SSH Host Keys", plan_keys },
        { "SSH Config", plan_ssh_config },
        { "Service", plan_service },
        { "Deployment", plan_deployment },
    };

    sync_plan(world, loginset, plan, steps, sizeof(steps) / sizeof(steps[0]), plan_status);
}
