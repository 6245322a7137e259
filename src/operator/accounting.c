/* accounting.c - what must exist for one Accounting.
 *
 * Reads   the Accounting, its keys, the password of its database, its children.
 * Returns actions; does no I/O.
 * Holds   nothing is made for a slurmdbd that runs elsewhere. */
#include "operator/accounting.h"

#include "engine/child.h"
#include "operator/build.h"
#include "operator/slurm_conditions.h"

enum { MAX_CONF = 1 << 20 };

static int plan_service(struct sync *sync, struct err *err)
{
    struct json_mut *service;
    int result;

    if (spec_flag(sync->object, "external"))
        return 0;
    result = accounting_service(sync->build, sync->object, &service, err);
    return result < 0 ? result
                      : plan_child(sync->plan, sync->world->services, sync->object, service, err);
}

static int plan_config(struct sync *sync, struct err *err)
{
    auto_buf struct buf conf;
    int result;

    buf_init(&conf, MAX_CONF);
    if (spec_flag(sync->object, "external"))
        return 0;
    result = accounting_conf(sync->world, sync->object, sync->plan->arena, &conf, err);
    return result < 0
               ? result
               : plan_child(sync->plan, sync->world->secrets, sync->object,
                            accounting_secret(sync->build, sync->object, buf_str(&conf)), err);
}

static const struct kube_object *live_statefulset(const struct sync *sync)
{
    return sync_child(sync, sync->world->statefulsets, component_slurmdbd.suffix);
}

static int plan_statefulset(struct sync *sync, struct err *err)
{
    struct json_mut *statefulset;
    auto_buf struct buf conf;
    int result;

    buf_init(&conf, MAX_CONF);
    if (spec_flag(sync->object, "external"))
        return 0;
    if ((result = accounting_conf(sync->world, sync->object, sync->plan->arena, &conf, err)) < 0 ||
        (result = accounting_statefulset(sync->build, sync->world, sync->object, buf_str(&conf),
                                         live_statefulset(sync), &statefulset, err)) < 0)
        return result;
    return plan_child(sync->plan, sync->world->statefulsets, sync->object, statefulset, err);
}

static bool refers_to(const struct kube_object *controller, const struct kube_object *accounting)
{
    return strcmp(controller->ns, accounting->ns) == 0 &&
           str_is(json_str(json_at(operator_spec(controller), "accountingRef", "name")),
                  accounting->name);
}

/* What a Slurm cluster of this Accounting said last: one that has lost it before all others. */
static const struct slurm_facts *facts_of(const struct sync *sync)
{
    struct kube_cache_walk walk = kube_cache_walk(sync->world->controllers);
    const struct slurm_facts *found = NULL, *facts;
    const struct kube_object *controller;

    while ((controller = kube_cache_next(&walk))) {
        facts = refers_to(controller, sync->object) ? operator_world_slurm(sync->world, controller)
                                                    : NULL;
        if (facts && (!found || facts->accounting > found->accounting))
            found = facts;
    }
    return found;
}

static void plan_status(struct sync *sync)
{
    const struct kube_object *live =
        sync_own_child(sync, sync->world->statefulsets, component_slurmdbd.suffix);
    struct sync_workload workload = {
        .note = spec_flag(sync->object, "external") ? "slurmdbd runs elsewhere" : NULL,
        .kind = "StatefulSet",
        .name = arena_printf(sync->plan->arena, "%s-accounting", sync->object->name),
        .tree = live ? operator_tree(live) : NULL,
        .wanted = 1,
        .also = { want_database(sync, facts_of(sync)) },
    };

    sync_status(sync, &workload, NULL);
}

void accounting_plan(const struct operator_world *world, const struct kube_object *accounting,
                     struct plan *plan)
{
    static const struct sync_step steps[] = {
        { "Service", plan_service },
        { "Config", plan_config },
        { "StatefulSet", plan_statefulset },
    };

    sync_plan(world, accounting, plan, steps, sizeof(steps) / sizeof(steps[0]), plan_status);
}
