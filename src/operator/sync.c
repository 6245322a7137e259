/* sync.c - steps and status of custom resources. */
#include "operator/sync.h"

#include "codec/patch.h"
#include "kube/owners.h"
#include "operator/plans.h"

#include <stdio.h>

const struct kube_object *sync_child(const struct sync *sync, const struct kube_cache *cache,
                                     const char *suffix)
{
    char name[KUBE_MAX_NAME + 64];

    (void)snprintf(name, sizeof(name), "%s%s", sync->object->name, suffix);
    return kube_cache_get(cache, sync->object->ns, name);
}

const struct kube_object *sync_own_child(const struct sync *sync, const struct kube_cache *cache,
                                         const char *suffix)
{
    const struct kube_object *child = sync_child(sync, cache, suffix);

    return child && kube_is_controlled_by(child, sync->object) ? child : NULL;
}

static int check_spec(const struct sync *sync, struct err *err)
{
    if (!json_is_object(sync->spec))
        return err_set(err, ERR_INVALID, "the object has no spec");
    return 0;
}

void sync_run(struct sync *sync, const struct sync_step *steps, size_t count)
{
    struct err err = { .class = 0 };

    if (check_spec(sync, &err) < 0) {
        plan_step_failed(sync->plan, "Spec", &err);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        sync->plan->is_independent = true;
        if (steps[i].run(sync, &err) < 0)
            plan_step_failed(sync->plan, steps[i].name, &err);
    }
    sync->plan->is_independent = false;
}

void sync_plan(const struct operator_world *world, const struct kube_object *object,
               struct plan *plan, const struct sync_step *steps, size_t count,
               void (*status)(struct sync *sync))
{
    auto_json_build struct json_build *build = json_build_new();
    struct sync sync = { world, object, operator_spec(object), plan, build };

    sync_run(&sync, steps, count);
    status(&sync);
}

/* ---- conditions ---- */

static int64_t status_number(const struct json *tree, const char *member)
{
    return json_i64_or(json_at(tree, "status", member), 0);
}

/* What the workload's own controller has not looked at yet does not count. */
static bool is_observed(const struct json *tree)
{
    return status_number(tree, "observedGeneration") >=
           json_i64_or(json_at(tree, "metadata", "generation"), 1);
}

static int64_t ready_replicas(const struct sync_workload *workload)
{
    return json_exists(workload->tree) && is_observed(workload->tree)
               ? status_number(workload->tree, "readyReplicas")
               : 0;
}

/* A StatefulSet that is complete has equal revisions. */
bool sync_is_rolled_out(const struct json *tree, int64_t wanted)
{
    struct str update = json_str(json_at(tree, "status", "updateRevision"));

    return json_exists(tree) && is_observed(tree) && status_number(tree, "replicas") == wanted &&
           (update.len > 0 ? str_eq(update, json_str(json_at(tree, "status", "currentRevision")))
                           : status_number(tree, "updatedReplicas") >= wanted);
}

enum { READY, PROGRESSING, DEGRADED, ALSO, CONDITION_COUNT = ALSO + SYNC_MAX_ALSO };

/* The steps that failed, and the writes that the API server or Slurm refuses, of all plans for this
 * object; NULL when all is well. */
static const char *problem_of(const struct sync *sync, const char **ret_reason)
{
    const char *problem = sync->plan->failure;

    *ret_reason = problem ? "SyncFailed" : "AsExpected";
    for (size_t i = 0; i < operator_plan_count; i++) {
        const struct operator_plan *row = &operator_plans[i];
        const char *refused = operator_world_refused(sync->world, row->controller, sync->object);

        if (strcmp(row->kind, sync->object->kind->resource->kind) != 0 || !refused)
            continue;
        if (!problem)
            *ret_reason = "WriteRefused";
        problem = problem ? arena_printf(sync->plan->arena, "%s; %s", problem, refused) : refused;
    }
    return problem;
}

/* What runs no pods is ready when nothing is wrong. */
static void want_without_pods(const struct sync *sync, const char *note,
                              struct kube_condition_want wanted[CONDITION_COUNT])
{
    const char *reason, *problem = problem_of(sync, &reason);

    wanted[READY] = (struct kube_condition_want){ "Ready", problem ? KUBE_FALSE : KUBE_TRUE, reason,
                                                  problem ? problem : note };
    wanted[PROGRESSING] =
        (struct kube_condition_want){ "Progressing", KUBE_FALSE, "Settled", "no pods run for it" };
}

static void want_with_pods(const struct sync *sync, const struct sync_workload *workload,
                           struct kube_condition_want wanted[CONDITION_COUNT])
{
    const struct sync_pods *own = workload->pods;
    int64_t ready = own ? own->ready : ready_replicas(workload);
    bool exists = own || json_exists(workload->tree);
    bool has_all = exists && ready >= workload->wanted;
    bool is_settled =
        has_all && (own ? own->is_settled : sync_is_rolled_out(workload->tree, workload->wanted));
    const char *pods = exists
                           ? arena_printf(sync->plan->arena, "%lld of %lld pods of %s %s are ready",
                                          (long long)ready, (long long)workload->wanted,
                                          workload->kind, workload->name)
                           : arena_printf(sync->plan->arena, "%s %s does not exist yet",
                                          workload->kind, workload->name);

    wanted[READY] = (struct kube_condition_want){ "Ready", has_all ? KUBE_TRUE : KUBE_FALSE,
                                                  has_all ? "PodsReady" : "PodsNotReady", pods };
    wanted[PROGRESSING] =
        (struct kube_condition_want){ "Progressing", is_settled ? KUBE_FALSE : KUBE_TRUE,
                                      is_settled ? "Settled" : "RollingOut",
                                      is_settled ? "all pods run the newest version" : pods };
}

static void want_conditions(const struct sync *sync, const struct sync_workload *workload,
                            struct kube_condition_want wanted[CONDITION_COUNT])
{
    const char *reason, *problem = problem_of(sync, &reason);

    if (workload->note)
        want_without_pods(sync, workload->note, wanted);
    else
        want_with_pods(sync, workload, wanted);
    wanted[DEGRADED] =
        (struct kube_condition_want){ "Degraded", problem ? KUBE_TRUE : KUBE_FALSE, reason,
                                      problem ? problem : "all objects are as they should be" };
}

/* People hear of a condition that was there and turns: of Ready, and of what is reachable. The step
 * that fails has an Event of its own. */
static const struct action_news *news_of(const struct sync *sync,
                                         const struct kube_condition_want *wanted, size_t count)
{
    const struct json *live = json_at(operator_tree(sync->object), "status", "conditions");
    const struct action_news *list = NULL;

    for (size_t i = 0; i < count; i++) {
        const struct json *entry = kube_condition_entry(live, wanted[i].type);
        bool was_true = str_is(json_str(json_get(entry, "status")), "True");
        struct action_news *news;

        if (!entry || wanted[i].status == KUBE_UNKNOWN_TRUTH ||
            was_true == (wanted[i].status == KUBE_TRUE) ||
            (i != READY && !str_ends(str_of(wanted[i].type), STR("Reachable"))))
            continue;
        news = arena_alloc(sync->plan->arena, sizeof(*news));
        *news = (struct action_news){ .next = list,
                                      .is_warning = was_true,
                                      .reason = wanted[i].reason,
                                      .text = wanted[i].message };
        list = news;
    }
    return list;
}

void sync_status(struct sync *sync, const struct sync_workload *workload,
                 const struct json_mut *members)
{
    const struct kube_object *object = sync->object;
    struct kube_condition_want wanted[CONDITION_COUNT];
    size_t count = ALSO;
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *doc = members ? json_freeze(members) : NULL;
    const struct json *status = json_get(operator_tree(object), "status");
    struct json_mut *patch = json_new_object(build), *conditions;
    struct action *action = NULL;
    struct json_iter iter = json_iter(json_root(doc));
    const struct json *value;
    struct str key;

    want_conditions(sync, workload, wanted);
    for (size_t i = 0; i < SYNC_MAX_ALSO; i++)
        if (workload->also[i].type)
            wanted[count++] = workload->also[i];
    conditions = kube_condition_list(build, json_get(status, "conditions"), wanted, count,
                                     object->generation, sync->world->wall_us);
    if (conditions)
        json_put_at(build, patch, conditions, "status", "conditions");
    while (json_next_member(&iter, &key, &value))
        if (json_is_null(value) ? json_exists(json_get_str(status, key))
                                : !json_equal(json_get_str(status, key), value))
            json_put_key(build, json_object_at(build, patch, "status"), key,
                         json_copy(build, value));
    if (json_mut_len(patch) > 0)
        action = plan_merge_patch(
            sync->plan, operator_world_cache(sync->world, object->kind->resource->kind),
            object->kind->resource, object->ns, object->name, "status", object->version, patch);
    if (action) {
        action->news = news_of(sync, wanted, count);
        action->is_independent = true;
    }
}
