/* rebook.c - keeps a running job for bound pods, on their nodes.
 *
 * When Slurm ended the job, the pod is deleted, with the reason on it. When Slurm lost the job (a
 * restart that forgot its last seconds, a record that was purged), or the bridge itself cancelled
 * it before the pod was bound, the pod runs on, and another job is submitted for it.
 *
 * Holds: a pod is deleted only because of a record of its own job that says that the job ended. A
 * missing job is no such record. */
#include "bridge/run/rebook.h"

#include "bridge/slurm/slurm_action.h"
#include "bridge/unit/conditions.h"
#include "bridge/unit/describe.h"
#include "bridge/unit/end_policy.h"
#include "bridge/world/names.h"
#include "engine/event_action.h"
#include "slurm/submit.h"

enum {
    SECOND_US = 1000000,
    UNKNOWN_US = 5 * SECOND_US,
    CLOCKS_US = 2 * SECOND_US, /* that those of slurmctld and ours differ by unmeasured */
};

/* The name in Slurm of the node that it is bound to; "" when that is not known. */
static const char *slurm_name_of(const struct bridge_world *world, const struct kube_pod *pod)
{
    const struct kube_object *node = kube_cache_get(world->nodes, "", pod->node_name);

    return node ? world_record_name(world, kube_node_of(node)) : "";
}

/* Slurm has given the place away already: the pod gets no more time to leave it than it asks for,
 * and than the administrator allows. */
static void delete_capped(const struct bridge_world *world, const struct kube_pod *pod,
                          struct plan *plan)
{
    const struct kube_object *object = &pod->object;
    int64_t most_s = world_max_grace_s(world);
    bool is_longer = object->deleted_us || pod->termination_grace > most_s;

    plan_delete_within(plan, world->pods, &kube_pods, object->ns, object->name, object->uid,
                       object->version, is_longer ? most_s : 0);
}

/* The condition comes first, then the deletion, both only for the version of the pod that was seen:
 * a watch that is behind may show a pod as running that finished long ago. */
static void end_pod(const struct bridge_world *world, const struct kube_pod *pod, struct plan *plan,
                    const struct slurm_job *job)
{
    const struct kube_object *object = &pod->object;
    const struct condition_update update = { BRIDGE_ENDED_CONDITION, "True",
                                             job_end_of(job)->reason,
                                             job_end_message(plan->arena, job) };

    if (condition_is_said(pod, &update)) {
        delete_capped(world, pod, plan);
        return;
    }
    plan_conditions(
        world, pod, plan,
        &(struct conditions){ .version = object->version, .updates = &update, .count = 1 });
    plan_event(plan, object, KUBE_EVENT_WARNING, update.reason, "%s", update.message);
}

/* The label names the job of the pod; after a loss that is another job. */
static void record_job(const struct bridge_world *world, const struct member *member,
                       const struct slurm_job *job, struct plan *plan)
{
    const struct kube_object *pod = &member->pod->object;
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *patch = json_new_object(build);
    struct json_mut *metadata = json_put_object(build, patch, "metadata");

    if (member->recorded_id == job->id)
        return;
    json_put_text(build, json_put_object(build, metadata, "labels"), BRIDGE_JOB_LABEL,
                  job->object.key);
    json_put_text(build, metadata, "uid", pod->uid);
    plan_merge_patch(plan, world->pods, &kube_pods, pod->ns, pod->name, NULL, NULL, patch);
}

/* ---- with the job that it has ---- */

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

/* Whether the job requires just the nodes on which the pods run, and excludes none. */
static bool is_on_their_nodes(const struct slurm_job *job, const char *nodes, struct arena *arena)
{
    return !nodes[0] || (hosts_equal(arena, job->required_nodes, nodes) && !job->excluded_nodes[0]);
}

void plan_require_nodes(const struct unit *unit, const struct bound_facts *bound, struct plan *plan)
{
    const struct slurm_job *job = unit->job;
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *fields = json_new_object(build);

    json_push_str(build, json_put_array(build, fields, "required_nodes"), str_of(bound->nodes));
    if (job->excluded_nodes[0]) /* perhaps these: it was submitted before they were bound */
        json_put_text(build, fields, "excluded_nodes", "");
    if (job->priority.number > 0) /* 0: people hold it */
        slurm_number_put(build, fields, "priority", slurm_number_set(REBOOK_PRIORITY));
    if (unit->kind != GROUP_NONE) { /* some may be over, and some nodes none of Slurm's any more */
        json_put_i64(build, fields, "minimum_nodes", hosts_count(plan->arena, bound->nodes));
        json_put_i64(build, fields, "maximum_nodes", hosts_count(plan->arena, bound->nodes));
    }
    plan_slurm_update_job(plan, job, fields);
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

/* ---- what is known of them ---- */

/* A job that was running and waits was requeued by Slurm, which counts that, or set back by a
 * restart. */
static bool was_requeued(const struct slurm_job *job)
{
    return job->restarts > 0 || slurm_words_has(&job->state, SLURM_JOB_REQUEUED) ||
           slurm_words_has(&job->state, SLURM_JOB_REQUEUE_HOLD) ||
           slurm_words_has(&job->state, SLURM_JOB_SPECIAL_EXIT);
}

/* The members that were bound by this job, which ends or has ended. */
static void find_ended(const struct bridge_world *world, const struct unit *unit,
                       const struct slurm_job *ended, struct arena *arena,
                       struct bound_facts *bound)
{
    struct host_set required = host_set_of(arena, ended->required_nodes);

    for (unsigned i = 0; i < unit->member_count; i++) {
        const struct member *member = &unit->members[i];

        if (member->stage == POD_BOUND && (unit->job || unit_ended(unit, member) == ended) &&
            assigned_by(world, ended, &required, member))
            bound->ended[bound->ended_count++] = (struct ended_member){ member->pod, ended };
    }
}

static void look_at_job(const struct bridge_world *world, const struct unit *unit,
                        struct arena *arena, struct bound_facts *bound)
{
    const struct slurm_job *job = unit->job;
    enum job_phase phase = job_phase(job);

    bound->job_nodes = (struct job_nodes){ host_set_of(arena, job->nodes),
                                           host_set_of(arena, job->required_nodes) };
    bound->is_requeued = phase == JOB_WAITS && was_requeued(job);
    bound->is_stray =
        !is_under_them(world, unit, &bound->job_nodes) ||
        (phase == JOB_ENDS && (unit->jobs.is_given_up || was_given_up(world, unit, job)));
    if (phase != JOB_RUNS)
        find_ended(world, unit, job, arena, bound);
}

void bound_look(const struct bridge_world *world, const struct unit *unit, struct arena *arena,
                struct bound_facts *ret_bound)
{
    bool may_rebook = !unit->job || job_phase(unit->job) == JOB_WAITS;
    struct bound_facts *bound = ret_bound;

    *bound = (struct bound_facts){
        .ended = arena_alloc_array(arena, unit->member_count + 1, sizeof(*bound->ended)),
        .nodes = may_rebook ? unit_nodes(world, unit, arena) : "",
    };
    if (unit->job)
        look_at_job(world, unit, arena, bound);
    bound->is_on_nodes = unit->job && is_on_their_nodes(unit->job, bound->nodes, arena);
    for (unsigned i = 0; !unit->job && i < unit->jobs.bound_ended_count; i++)
        if (!was_given_up(world, unit, unit->jobs.bound_ended[i]))
            find_ended(world, unit, unit->jobs.bound_ended[i], arena, bound);
}

/* ---- what is done ---- */

void plan_end_pods(const struct bridge_world *world, const struct bound_facts *bound,
                   struct plan *plan)
{
    for (unsigned i = 0; i < bound->ended_count && plan_has_room(plan); i++)
        end_pod(world, bound->ended[i].pod, plan, bound->ended[i].job);
}

/* A pod that somebody deleted with a grace period of an hour does not keep for so long what Slurm
 * took from it. */
void plan_cap_grace(const struct bridge_world *world, const struct unit *unit, struct plan *plan)
{
    int64_t until_us = world->facts.wall_us + world_max_grace_s(world) * SECOND_US + 2 * CLOCKS_US;

    for (unsigned i = 0; i < unit->member_count && plan_has_room(plan); i++) {
        const struct member *member = &unit->members[i];
        const struct slurm_job *job = unit_ended(unit, member);

        /* Then deleted_us is when its grace period ends. */
        if (member->stage != POD_ENDING || member->pod->object.deleted_us <= until_us || !job ||
            was_given_up(world, unit, job))
            continue;
        delete_capped(world, member->pod, plan);
    }
}

/* Slurm may take a node from a running job: the pod on that node is deleted. */
void plan_keep_bound(const struct bridge_world *world, const struct unit *unit,
                     const struct bound_facts *bound, struct plan *plan)
{
    for (unsigned i = 0; i < unit->member_count && plan_has_room(plan); i++) {
        const struct member *member = &unit->members[i];
        const struct kube_pod *pod = member->pod;

        if (member->stage != POD_BOUND)
            continue;
        if (is_on(world, member, &bound->job_nodes.allocated)) {
            record_job(world, member, unit->job, plan);
            plan_placed(world, pod, plan, unit->job, pod->node_name);
        } else if (!slurm_name_of(world, pod)[0]) {
            plan_slurm_look(plan, unit->job);
            plan_wait(plan, "its node %s is not known", pod->node_name);
            plan_look_again(plan, UNKNOWN_US);
        } else if (assigned_by(world, unit->job, &bound->job_nodes.required, member)) {
            end_pod(world, pod, plan, unit->job);
        } else { /* bound by a job that slurmctld lost: it asks for one of its own */
            plan_enqueue_member(plan, member);
        }
    }
}
