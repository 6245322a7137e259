/* rebook.c - keeps a running job for bound pods, on their nodes.
 *
 * When Slurm ended the job, the pod is deleted, with the reason on it. When Slurm lost the job (a
 * restart that forgot its last seconds, a record that was purged), or the bridge itself cancelled
 * it before the pod was bound, the pod runs on, and another job is submitted for it.
 *
 * Holds: a pod is deleted only because of a record of its own job that says that the job ended. A
 * missing job is no such record. */
#include "bridge/place.h"

#include "bridge/report.h"
#include "bridge/run/assign.h"
#include "bridge/run/bind.h"
#include "bridge/run/device_claims.h"
#include "bridge/slurm/slurm_action.h"
#include "bridge/submit/submit.h"
#include "bridge/unit/end_policy.h"
#include "bridge/world/hosts.h"
#include "bridge/world/names.h"
#include "slurm/submit.h"

enum {
    SECOND_US = 1000000,
    CALM_US = 10 * SECOND_US,
    CLOCKS_US = 2 * SECOND_US,        /* that those of slurmctld and ours differ by unmeasured */
    LOOK_FOR_NODE_US = 5 * SECOND_US, /* nothing tells a unit that its node is back */
};

/* The name in Slurm of the node that it is bound to; "" when that is not known. */
static const char *slurm_name_of(const struct bridge_world *world, const struct kube_pod *pod)
{
    const struct kube_object *node = kube_cache_get(world->nodes, "", pod->node_name);

    return node ? world_record_name(world, kube_node_of(node)) : "";
}

/* The condition comes first, then the deletion, both only for the version of the pod that was seen:
 * a watch that is behind may show a pod as running that finished long ago. */
static void end_pod(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                    const struct slurm_job *job)
{
    const struct kube_object *pod = &unit->pod->object;
    const char *message = job_end_message(plan->arena, job);

    if (report_ended(world, unit, plan, job_end_of(job)->reason, message))
        plan_event(plan, pod, KUBE_EVENT_WARNING, job_end_of(job)->reason, "%s", message);
    else
        plan_delete(plan, world->pods, &kube_pods, pod->ns, pod->name, pod->uid, pod->version);
}

/* The label names the job of the pod; after a loss that is another job. */
static void record_job(const struct bridge_world *world, const struct unit *unit, struct plan *plan)
{
    const struct kube_object *pod = &unit->pod->object;
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *patch = json_new_object(build);
    struct json_mut *metadata = json_put_object(build, patch, "metadata");

    if (unit->recorded_id == unit->job->id)
        return;
    json_put_text(build, json_put_object(build, metadata, "labels"), BRIDGE_JOB_LABEL,
                  unit->job->object.key);
    json_put_text(build, metadata, "uid", pod->uid);
    plan_merge_patch(plan, world->pods, &kube_pods, pod->ns, pod->name, NULL, NULL, patch);
}

/* Only the nodes of a job were read when it started. When there is time, the whole record is read:
 * it has the sluid, by which the job can be cancelled even if its id belongs to another job by
 * then. */
static void get_to_know(const struct bridge_world *world, const struct slurm_job *job,
                        struct plan *plan)
{
    int64_t known_us = slurm_cache_known_us(world->slurm_jobs, job->object.key);

    if (job->start_time > 0)
        return;
    if (world->facts.waiting_pods > 0 || world->facts.now_us - known_us < CALM_US)
        plan_look_again(plan, CALM_US);
    else
        plan_slurm_look(plan, job);
}

/* ---- with the job that it has ---- */

/* The nodes that a job names, read once for all members. */
struct job_nodes {
    struct host_set allocated; /* to it */
    struct host_set required;  /* by it */
};

static bool is_on(const struct bridge_world *world, const struct member *member,
                  const struct host_set *allocated)
{
    const char *name = slurm_name_of(world, member->pod);

    return name[0] && host_set_has(allocated, name);
}

/* Whether a member is bound by this job, or runs on its nodes as far as these are known. */
static bool is_under_them(const struct bridge_world *world, const struct unit *unit,
                          const struct job_nodes *nodes)
{
    for (unsigned i = 0; i < unit->member_count; i++) {
        const struct member *member = &unit->members[i];

        if ((member->stage == POD_BOUND || member->stage == POD_ENDING) &&
            (member->recorded_id == 0 || member->recorded_id == unit->job->id ||
             !slurm_name_of(world, member->pod)[0] || is_on(world, member, &nodes->allocated)))
            return true;
    }
    return false;
}

/* Deletes the pods that were bound by this job, and those that do not say by which job. */
static void end_pods(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                     const struct job_nodes *nodes)
{
    for (unsigned i = 0; i < unit->member_count && plan_has_room(plan); i++) {
        struct unit one = unit_focus(unit, i);

        if (one.stage == POD_BOUND &&
            assigned_by(world, unit->job, &nodes->required, &unit->members[i]))
            end_pod(world, &one, plan, unit->job);
    }
}

/* The pods run on their nodes, so the job may start only there, and before all others. */
static void rebook_on_its_nodes(const struct bridge_world *world, const struct unit *unit,
                                struct plan *plan)
{
    const char *nodes = unit_nodes(world, unit, plan->arena);
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *fields = json_new_object(build);

    report_waiting(world, unit, plan, "NotCovered",
                   "it runs on %s, and job %s that holds its resources waits: %s",
                   unit->pod->node_name, unit->job->object.key, unit->job->reason);
    if (!nodes[0] || (hosts_equal(plan->arena, unit->job->required_nodes, nodes) &&
                      !unit->job->excluded_nodes[0])) {
        /* Slurm may change the reason without the state: only a read shows that. */
        int64_t known_us = slurm_cache_known_us(world->slurm_jobs, unit->job->object.key);

        plan_look_again(plan, CALM_US);
        if (world->facts.now_us - known_us > CALM_US)
            plan_slurm_look(plan, unit->job);
        return;
    }
    json_push_str(build, json_put_array(build, fields, "required_nodes"), str_of(nodes));
    if (unit->job->excluded_nodes[0]) /* perhaps these: it was submitted before they were bound */
        json_put_text(build, fields, "excluded_nodes", "");
    if (unit->job->priority.number > 0) /* 0: people hold it */
        slurm_number_put(build, fields, "priority", slurm_number_set(REBOOK_PRIORITY));
    if (unit->kind != GROUP_NONE) { /* some may be over, and some nodes none of Slurm's any more */
        json_put_i64(build, fields, "minimum_nodes", hosts_count(plan->arena, nodes));
        json_put_i64(build, fields, "maximum_nodes", hosts_count(plan->arena, nodes));
    }
    plan_slurm_update_job(plan, unit->job, fields);
}

/* After a restart slurmctld may show a job again that had ended long ago, and a job that was given
 * up may not be over yet. Such a job says nothing about the pods: it is cancelled, and the pods are
 * rebooked where they are. */
static void drop_stray(struct plan *plan, const struct slurm_job *job)
{
    if (job_phase(job) == JOB_ENDS)
        plan_wait(plan, "job %s, which is not its own, ends", job->object.key);
    else
        plan_slurm_cancel(plan, job, NULL, "it is not the job of its pod");
}

/* Slurm may take a node from a running job: the pod on that node is deleted. */
static void keep_running(const struct bridge_world *world, const struct unit *unit,
                         struct plan *plan, const struct job_nodes *nodes)
{
    for (unsigned i = 0; i < unit->member_count && plan_has_room(plan); i++) {
        struct unit one = unit_focus(unit, i);

        if (one.stage != POD_BOUND)
            continue;
        if (is_on(world, &unit->members[i], &nodes->allocated)) {
            record_job(world, &one, plan);
            report_placed(world, &one, plan, unit->job, one.pod->node_name);
        } else if (!slurm_name_of(world, one.pod)[0]) {
            plan_slurm_look(plan, unit->job);
            plan_wait(plan, "its node %s is not known", one.pod->node_name);
            plan_look_again(plan, LOOK_FOR_NODE_US);
        } else if (assigned_by(world, unit->job, &nodes->required, &unit->members[i])) {
            end_pod(world, &one, plan, unit->job);
        } else { /* bound by a job that slurmctld lost: it asks for one of its own */
            plan_enqueue_member(plan, &unit->members[i]);
        }
    }
    get_to_know(world, unit->job, plan);
}

/* A cancel of the leader before us takes effect until the delay after a take-over, also on a job
 * that we have bound pods by meanwhile. Within that time nobody can tell it from an
 * administrator's, who can say it again (docs/decisions/009). */
static bool may_be_a_late_cancel(const struct bridge_world *world, const struct unit *unit,
                                 const struct slurm_job *job, unsigned attempt)
{
    const struct bridge_facts *facts = &world->facts;
    const struct unit_state *state = unit->state;
    bool is_asked_by_us =
        state && state->submit.attempt == attempt && state->submit.sent_us >= facts->leading_us;
    int64_t after_us = job->end_time * SECOND_US - facts->slurm_skew_us - facts->leading_wall_us;

    return !facts->no_takeover_delay && !is_asked_by_us &&
           slurm_words_has(&job->state, SLURM_JOB_CANCELLED) && after_us >= -CLOCKS_US &&
           after_us <= facts->takeover_delay_us + CLOCKS_US;
}

/* Its end was our doing and not Slurm's: a Binding without an answer came after all, when the job
 * had been given up, by us or by the leader before us. */
static bool was_given_up(const struct bridge_world *world, const struct unit *unit,
                         const struct slurm_job *job)
{
    auto_buf struct buf key;
    unsigned attempt;

    buf_init(&key, SLURM_MAX_KEY);
    return world_job_key(world, job, &key, &attempt) &&
           (unit_state_has_given_up(unit->state, attempt) ||
            may_be_a_late_cancel(world, unit, job, attempt));
}

static int rebook_with(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                       bool is_prepared, struct err *err)
{
    const struct slurm_job *job = unit->job;
    struct job_nodes nodes = { host_set_of(plan->arena, job->nodes),
                               host_set_of(plan->arena, job->required_nodes) };
    bool is_stray = !is_under_them(world, unit, &nodes);

    switch (job_phase(job)) {
    case JOB_RUNS:
        if (nodes.allocated.count == 0) { /* not seen yet, or no list that can be read */
            plan_slurm_look(plan, job);
            plan_wait(plan, "the nodes of job %s are being read", job->object.key);
            plan_look_again(plan, LOOK_FOR_NODE_US);
            return 0;
        }
        if (is_stray)
            break;
        keep_running(world, unit, plan, &nodes);
        if (!plan_restore_claims(world, unit, plan) && unit->in[POD_WAITS] > 0)
            return plan_place(world, unit, plan, is_prepared, err);
        return 0;
    case JOB_WAITS:
        /* A job that was running and waits was requeued by Slurm, which counts that, or set back by
         * a restart. */
        if (job->restarts == 0 && !slurm_words_has(&job->state, SLURM_JOB_REQUEUED) &&
            !slurm_words_has(&job->state, SLURM_JOB_REQUEUE_HOLD) &&
            !slurm_words_has(&job->state, SLURM_JOB_SPECIAL_EXIT)) {
            rebook_on_its_nodes(world, unit, plan);
            return 0;
        }
        break;
    case JOB_ENDS:
        is_stray |= unit->is_given_up || was_given_up(world, unit, job);
        break;
    case JOB_SUSPENDED:
    case JOB_ENDED:
        break;
    }
    if (is_stray)
        drop_stray(plan, job);
    else
        end_pods(world, unit, plan, &nodes);
    return 0;
}

/* The members that were bound by this job, which has ended. */
static bool end_pods_of(const struct bridge_world *world, const struct unit *unit,
                        struct plan *plan, const struct slurm_job *ended)
{
    struct host_set required = host_set_of(plan->arena, ended->required_nodes);
    bool any = false;

    if (was_given_up(world, unit, ended))
        return false;
    for (unsigned i = 0; i < unit->member_count && plan_has_room(plan); i++) {
        struct unit one = unit_focus(unit, i);

        if (one.stage != POD_BOUND || unit_ended(unit, &unit->members[i]) != ended ||
            !assigned_by(world, ended, &required, &unit->members[i]))
            continue;
        end_pod(world, &one, plan, ended);
        any = true;
    }
    return any;
}

/* Of each member the job that it was bound by has ended, or is not there. */
static bool end_those_whose_job_ended(const struct bridge_world *world, const struct unit *unit,
                                      struct plan *plan)
{
    bool any = false;

    for (unsigned i = 0; i < unit->bound_ended_count; i++)
        any |= end_pods_of(world, unit, plan, unit->bound_ended[i]);
    return any;
}

int plan_rebook(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                bool is_prepared, struct err *err)
{
    if (unit->job)
        return rebook_with(world, unit, plan, is_prepared, err);
    if (end_those_whose_job_ended(world, unit, plan))
        return 0;
    return plan_resubmit(world, unit, plan, err);
}
