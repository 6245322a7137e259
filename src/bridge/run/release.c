/* release.c - a unit whose pods are over gives back its jobs and finalizers.
 *
 * Holds: a job is cancelled only when nothing of its pods can run. The pod's own record is proof;
 * a missing pod counts as gone only when the API server says so to a direct question. The finalizer
 * is removed at once, whatever Slurm answers: it keeps the record of a pod that may run, and the
 * job carries the unit's key, so that it is found and ended without the pod too. */
#include "bridge/run/release.h"

#include "bridge/slurm/slurm_action.h"
#include "bridge/unit/unit_end.h"
#include "bridge/world/names.h"
#include "slurm/submit.h"

static void let_go(const struct bridge_world *world, const struct kube_object *pod,
                   struct plan *plan)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *patch = json_new_object(build);
    struct json_mut *predicted = json_new_object(build);
    struct json_mut *metadata = json_put_object(build, patch, "metadata");
    struct json_mut *rest =
        json_put_array(build, json_put_object(build, predicted, "metadata"), "finalizers");
    struct action *action;

    if (!kube_object_has_finalizer(pod, BRIDGE_FINALIZER))
        return;
    json_put_text(build, metadata, "uid", pod->uid);
    json_push_str(build, json_put_array(build, metadata, "$deleteFromPrimitiveList/finalizers"),
                  STR(BRIDGE_FINALIZER));
    for (unsigned i = 0; i < pod->finalizer_count; i++)
        if (!str_is(pod->finalizers[i], BRIDGE_FINALIZER))
            json_push_str(build, rest, pod->finalizers[i]);
    action = plan_strategic_patch(plan, world->pods, &kube_pods, pod->ns, pod->name, NULL, NULL,
                                  patch, predicted);
    if (action)
        action->missing_is_fine = true;
}

/* A group's pods are known by what they say of themselves: all pods of the namespace are read. */
static void pods_of_group(struct arena *arena, struct str key, struct str ns,
                          struct action_unless *ret_unless)
{
    *ret_unless = (struct action_unless){ .resource = &kube_pods,
                                          .ns = arena_strndup(arena, ns.at, ns.len),
                                          .objects = pod_of_group_objects,
                                          .about = arena_strndup(arena, key.at, key.len) };
}

/* The pod's name is in the job's comment. A site may have rewritten that: then the key alone tells,
 * and all pods of the namespace are read. */
static bool pods_of_job(const struct slurm_job *job, struct arena *arena, struct str key,
                        struct action_unless *ret_unless)
{
    auto_json_doc struct json_doc *doc = NULL;
    struct err err = { .class = 0 };
    struct str ns, uid, pod_ns, name;

    if (!str_cut(key, '/', &ns, &uid))
        return false;
    if (group_key_is_of_group(key)) {
        pods_of_group(arena, key, ns, ret_unless);
        return true;
    }
    *ret_unless = (struct action_unless){ .resource = &kube_pods,
                                          .ns = arena_strndup(arena, ns.at, ns.len),
                                          .uid = arena_strndup(arena, uid.at, uid.len) };
    if (json_parse(str_of(job->admin_comment), 1u << 20, &doc, &err) == 0 &&
        str_cut(json_str(json_item(json_get(json_root(doc), "pods"), 0)), '/', &pod_ns, &name) &&
        str_eq(pod_ns, ns))
        ret_unless->name = arena_strndup(arena, name.at, name.len);
    return true;
}

/* Only if the API server says that the object is gone, or another, and that nobody runs by the job.
 */
static void end_former(const struct unit *unit, struct plan *plan, const struct slurm_job *job)
{
    struct slurm_key key;
    auto_buf struct buf text;
    struct str ns, rest;
    struct action_unless pods, object = { .resource = unit->successor->kind->resource,
                                          .ns = unit->successor->ns,
                                          .also = &pods };

    buf_init(&text, SLURM_MAX_KEY);
    if (!slurm_submit_claimed_key(job, &text) || !slurm_key_read(buf_str(&text), &key) ||
        !str_cut(unit->key, '/', &ns, &rest))
        return;
    object.uid = arena_strndup(plan->arena, key.uid.at, key.uid.len);
    pods_of_group(plan->arena, unit->key, ns, &pods);
    pods.uid = object.uid;
    plan_slurm_cancel(plan, job, &object, "the object of its group was deleted");
}

/* Slurm has no word for it: the comment tells, behind what the user wrote there. */
static void tell_reason(const struct pod_end *end, const struct kube_pod *pod,
                        const struct slurm_job *job, struct plan *plan)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *fields = json_new_object(build);
    struct action *action;

    json_put_text(build, fields, "comment",
                  arena_printf(plan->arena, "%s%spod %s/%s: %s", job->comment,
                               job->comment[0] ? "; " : "", pod->object.ns, pod->object.name,
                               end->reason));
    action = plan_slurm_update_job(plan, job, fields);
    action->is_independent = true; /* the end is worth more than its reason */
    plan_next_stage(plan);
}

/* A job that never started has no end but being cancelled. */
static void end_with_pods(const struct bridge_world *world, const struct unit *unit,
                          struct plan *plan, const struct slurm_job *job)
{
    const struct kube_pod *pod;
    struct pod_end end = unit_end_of(unit, &pod);
    enum job_phase phase = job_phase(job);

    if (!world->facts.agent_is_up || (unit->state && unit->state->ends_by_cancel) ||
        end.kind == POD_END_CANCELLED || (phase != JOB_RUNS && phase != JOB_SUSPENDED)) {
        plan_slurm_cancel(plan, job, NULL, "its pod is over");
        return;
    }
    if (end.reason[0])
        tell_reason(&end, pod, job, plan);
    plan_slurm_complete(plan, job, end.wait_status, "its pod is over");
}

static void end_job(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                    const struct slurm_job *job)
{
    struct action_unless unless;

    if (unit->pod)
        end_with_pods(world, unit, plan, job);
    else if (unit->successor)
        end_former(unit, plan, job);
    else if (pods_of_job(job, plan->arena, unit->key, &unless))
        plan_slurm_cancel(plan, job, &unless, "its pod is gone");
    else
        plan_wait(plan, "job %s does not say whose it is", job->object.key);
}

void plan_end_jobs(const struct bridge_world *world, const struct unit *unit, struct plan *plan)
{
    for (unsigned i = 0; i < unit->jobs.count; i++)
        if (job_phase(unit->jobs.at[i]) != JOB_ENDS)
            end_job(world, unit, plan, unit->jobs.at[i]);
}

void plan_remove_finalizers(const struct bridge_world *world, const struct unit *unit,
                            struct plan *plan)
{
    for (unsigned i = 0; i < unit->member_count && plan_has_room(plan); i++) {
        const struct member *member = &unit->members[i];

        if (world_is_ours(world, member->pod) &&
            (member->stage == POD_OVER || world->facts.is_uninstalling))
            let_go(world, &member->pod->object, plan);
    }
}
