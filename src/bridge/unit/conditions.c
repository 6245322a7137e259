/* conditions.c - conditions on pods and on the object of a group.
 *
 * Holds: a condition is written only when its words differ from those on the pod. */
#include "bridge/unit/conditions.h"

#include "bridge/world/names.h"
#include "codec/timestamp.h"

#include <inttypes.h>

bool condition_is_said(const struct kube_pod *pod, const struct condition_update *update)
{
    const struct kube_condition *has =
        kube_condition_of(pod->conditions, pod->condition_count, update->type);

    return has && str_is(str_of(has->status), update->status) &&
           str_is(str_of(has->reason), update->reason) &&
           str_is(str_of(has->message), update->message);
}

static void put_condition(struct json_build *build, struct json_mut *list, const char *at,
                          const struct condition_update *update)
{
    struct json_mut *condition = json_new_object(build);

    json_put_text(build, condition, "type", update->type);
    json_put_text(build, condition, "status", update->status);
    json_put_text(build, condition, "reason", update->reason);
    json_put_text(build, condition, "message", update->message);
    json_put_text(build, condition, "lastTransitionTime", at);
    json_push(list, condition);
}

static void put_job(struct json_build *build, struct json_mut *root, const struct kube_pod *pod,
                    const char *job)
{
    struct json_mut *metadata = json_object_at(build, root, "metadata");
    bool found;

    (void)kube_pairs_get(&pod->object.labels, BRIDGE_JOB_LABEL, &found);
    if (job && job[0])
        json_put_text(build, json_object_at(build, metadata, "labels"), BRIDGE_JOB_LABEL, job);
    else if (job && found)
        json_put(build, json_object_at(build, metadata, "labels"), BRIDGE_JOB_LABEL,
                 json_new_null(build));
}

/* Lists of conditions are merged by their type. A write to the status of a pod may say its labels,
 * too. */
void plan_conditions(const struct bridge_world *world, const struct kube_pod *pod,
                     struct plan *plan, const struct conditions *conditions)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *patch = json_new_object(build);
    struct json_mut *predicted = json_new_object(build);
    const char *at = timestamp_text(world->facts.wall_us, plan->arena);
    struct json_mut *list =
        json_put_array(build, json_object_at(build, patch, "status"), "conditions");
    struct json_mut *foretold =
        json_put_array(build, json_object_at(build, predicted, "status"), "conditions");

    json_put_text(build, json_object_at(build, patch, "metadata"), "uid", pod->object.uid);
    put_job(build, patch, pod, conditions->job);
    put_job(build, predicted, pod, conditions->job);
    for (size_t i = 0; i < conditions->count; i++) {
        put_condition(build, list, at, &conditions->updates[i]);
        put_condition(build, foretold, at, &conditions->updates[i]);
    }
    plan_strategic_patch(plan, world->pods, &kube_pods, pod->object.ns, pod->object.name, "status",
                         conditions->version, patch, predicted);
}

void plan_placed(const struct bridge_world *world, const struct kube_pod *pod, struct plan *plan,
                 const struct slurm_job *job, const char *node)
{
    const struct kube_condition *has =
        kube_condition_of(pod->conditions, pod->condition_count, BRIDGE_PENDING_CONDITION);
    const struct condition_update update = { BRIDGE_PENDING_CONDITION, "False", "Placed",
                                             arena_printf(plan->arena, "job %" PRId64 " runs on %s",
                                                          job->id, node) };

    if (has && str_is(str_of(has->status), "True"))
        plan_conditions(world, pod, plan, &(struct conditions){ .updates = &update, .count = 1 });
}

/* ---- the object of a group ---- */

static struct json_mut *put_group_condition(struct json_build *build, struct json_mut *status)
{
    struct json_mut *condition = json_new_object(build);

    json_push(json_put_array(build, status, "conditions"), condition);
    json_put_text(build, condition, "type", "PodGroupScheduled");
    json_put_text(build, condition, "status", "True");
    return condition;
}

void plan_show_group(const struct bridge_world *world, const struct unit *unit, struct plan *plan)
{
    const struct kube_group *group = unit->owner.group;
    struct kube_cache *cache = world->optional[OPTIONAL_PODGROUPS].cache;
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *patch = json_new_object(build), *predicted = json_new_object(build), *said;

    if (unit->kind != GROUP_PODGROUP || !group || group->is_scheduled ||
        unit->in[POD_BOUND] < (uint64_t)unit->owner.needed || unit->in[POD_WAITS] > 0)
        return;
    json_put_text(build, json_put_object(build, patch, "metadata"), "uid", group->object.uid);
    said = put_group_condition(build, json_put_object(build, patch, "status"));
    json_put_text(build, said, "reason", "Scheduled");
    json_put_text(
        build, said, "message",
        arena_printf(plan->arena, "Pod group admitted by %s", world->config->scheduler_name));
    json_put_i64(build, said, "observedGeneration", group->object.generation);
    json_put_text(build, said, "lastTransitionTime",
                  timestamp_text(world->facts.wall_us, plan->arena));
    (void)put_group_condition(build, json_put_object(build, predicted, "status"));
    plan_strategic_patch(plan, cache, group->object.kind->resource, group->object.ns,
                         group->object.name, "status", NULL, patch, predicted);
}
