/* unit.c - gathers a unit: its pods, its jobs in Slurm, what is remembered of it.
 *
 * Holds: only jobs of this cluster with the unit's key are the unit's, whatever a pod's label says;
 * the label merely tells which of them the pod was bound by. A member that has a job of its own is
 * a unit of its own, and none of its group's. */
#include "bridge/unit/unit.h"

#include "bridge/world/names.h"
#include "bridge/world/node_mark.h"
#include "codec/timestamp.h"
#include "slurm/submit.h"

#include <inttypes.h>
#include <stdlib.h>

/* A phase alone is no proof: a pod may be called Failed while a container still runs. */
static bool runs_nothing(const struct bridge_world *world, const struct kube_pod *pod)
{
    if (!pod->node_name[0])
        return true;
    if (node_is_fenced(world, pod->node_name))
        return true;
    if (kube_pod_is_finished(pod))
        return pod->containers.running == 0 && pod->init_containers.running == 0;
    return kube_pod_is_terminated(pod);
}

enum pod_stage pod_stage(const struct bridge_world *world, const struct kube_pod *pod)
{
    if (pod->object.deleted_us || kube_pod_is_finished(pod))
        return runs_nothing(world, pod) ? POD_OVER : POD_ENDING;
    if (pod->node_name[0])
        return POD_BOUND;
    return pod->gate_count > 0 ? POD_GATED : POD_WAITS;
}

enum job_phase job_phase(const struct slurm_job *job)
{
    if (slurm_job_has_ended(&job->state))
        return JOB_ENDED;
    if (slurm_words_has(&job->state, SLURM_JOB_COMPLETING))
        return JOB_ENDS;
    if (slurm_words_has(&job->state, SLURM_JOB_RUNNING))
        return JOB_RUNS;
    if (slurm_words_has(&job->state, SLURM_JOB_SUSPENDED))
        return JOB_SUSPENDED;
    return JOB_WAITS;
}

/* ---- its pods ---- */

static int64_t recorded_id(const struct kube_pod *pod)
{
    bool found;
    struct str text = kube_pairs_get(&pod->object.labels, BRIDGE_JOB_LABEL, &found);
    struct err err = { .class = 0 };
    uint64_t id = 0;

    if (!found || str_to_u64(text, 1, UINT32_MAX, &id, &err) < 0)
        return 0;
    return (int64_t)id;
}

static int by_rank(const void *a, const void *b)
{
    return group_rank_compare(&((const struct member *)a)->rank, &((const struct member *)b)->rank);
}

bool unit_is_of_former(const struct unit *unit, const struct kube_pod *pod)
{
    int64_t id = pod->node_name[0] && unit->jobs.former_count > 0 ? recorded_id(pod) : 0;

    for (unsigned i = 0; i < unit->jobs.former_count; i++)
        if (unit->jobs.former[i]->id == id)
            return true;
    return false;
}

static bool is_member(const struct bridge_world *world, const struct unit *unit,
                      const struct kube_pod *pod)
{
    if (unit->kind == GROUP_NONE)
        return true;
    return world_is_ours(world, pod) && !world_is_alone(world, pod) &&
           unit_is_of_former(unit, pod) == (unit->successor != NULL);
}

/* The pods that are planned with the group. Pods of other schedulers do not belong to it. */
static void gather_members(const struct bridge_world *world, struct arena *arena, struct unit *unit)
{
    struct kube_index_walk walk = kube_cache_by(world->pods, world->pods_by_unit, unit->key);
    size_t all = kube_cache_count_by(world->pods, world->pods_by_unit, unit->key);
    size_t most = all < UNIT_MAX_MEMBERS ? all : UNIT_MAX_MEMBERS;
    struct member *members = arena_alloc_array(arena, most + 1, sizeof(*members));
    const struct kube_object *object;
    unsigned count = 0;

    while (count < most && (object = kube_index_next(&walk)) != NULL) {
        const struct kube_pod *pod = kube_pod_of(object);

        if (is_member(world, unit, pod))
            members[count++] =
                (struct member){ pod, pod_stage(world, pod), recorded_id(pod), group_rank_of(pod) };
    }
    if (count > 1)
        qsort(members, count, sizeof(*members), by_rank);
    unit->members = members;
    unit->member_count = count;
}

static void count_members(struct unit *unit)
{
    static const enum pod_stage order[] = { POD_BOUND, POD_WAITS, POD_GATED, POD_ENDING, POD_OVER };

    for (unsigned i = 0; i < unit->member_count; i++) {
        const struct member *member = &unit->members[i];
        int64_t created_us = member->pod->object.created_us;

        unit->in[member->stage]++;
        if (member->stage != POD_OVER && (!unit->created_us || created_us < unit->created_us))
            unit->created_us = created_us;
    }
    unit->stage = POD_OVER;
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
        if (unit->in[order[i]] > 0) {
            unit->stage = order[i];
            break;
        }
}

static void choose_pod(struct unit *unit)
{
    for (unsigned i = 0; i < unit->member_count && !unit->pod; i++)
        if (unit->members[i].stage == unit->stage) {
            unit->pod = unit->members[i].pod;
            unit->jobs.recorded_id = unit->members[i].recorded_id;
        }
}

struct unit unit_in(const struct unit *unit, enum pod_stage stage)
{
    struct unit those = *unit;

    those.stage = stage;
    those.pod = NULL;
    choose_pod(&those);
    return those;
}

struct unit unit_focus(const struct unit *unit, unsigned member)
{
    struct unit one = *unit;

    one.pod = unit->members[member].pod;
    one.stage = unit->members[member].stage;
    one.jobs.recorded_id = unit->members[member].recorded_id;
    one.members = &unit->members[member];
    one.member_count = 1;
    return one;
}

/* ---- its jobs ---- */

static bool is_named(const struct unit *unit, int64_t id)
{
    for (unsigned i = 0; i < unit->member_count; i++)
        if (unit->members[i].recorded_id == id)
            return true;
    return false;
}

/* A job with the unit's key. The comment that has the key may be long, so it is read once. */
struct keyed_job {
    const struct slurm_job *job;
    unsigned attempt;
    bool is_of_another; /* its key has the uid of another object */
};

struct keyed_jobs {
    struct keyed_job *at;
    size_t count;
};

static struct keyed_jobs read_jobs(const struct bridge_world *world, const struct unit *unit,
                                   struct arena *arena)
{
    struct slurm_index_walk walk = slurm_cache_by(world->slurm_jobs, SLURM_JOBS_BY_KEY, unit->key);
    const struct slurm_object *object;
    struct keyed_jobs jobs = { .count = 0 };
    size_t room = 0;

    while (slurm_index_next(&walk) != NULL)
        room++;
    jobs.at = arena_alloc_array(arena, room + 1, sizeof(*jobs.at));
    walk = slurm_cache_by(world->slurm_jobs, SLURM_JOBS_BY_KEY, unit->key);
    while ((object = slurm_index_next(&walk)) != NULL) {
        auto_buf struct buf text = { .max = SLURM_MAX_KEY };
        struct keyed_job *keyed = &jobs.at[jobs.count++];
        struct slurm_key key;

        keyed->job = slurm_job_of(object);
        if (!world_read_job(world, keyed->job, &text, &key))
            continue;
        keyed->attempt = key.attempt;
        /* A job that was rebooked while the object was away has no uid in its key. */
        keyed->is_of_another = unit->uid[0] && key.uid.len > 0 && !str_is(key.uid, unit->uid);
    }
    return jobs;
}

/* A clock of slurmctld that is behind makes no job older than its pods. Right after a submit the
 * time in the record is by our clock, so one that is ahead does not count. */
static bool is_older_than(const struct bridge_world *world, const struct slurm_job *job,
                          const struct unit *unit)
{
    int64_t behind_us = world->facts.slurm_skew_us < 0 ? -world->facts.slurm_skew_us : 0;

    return job->submit_time > 0 &&
           job->submit_time < timestamp_to_seconds(unit->created_us - behind_us);
}

static void take_ended(const struct bridge_world *world, struct unit *unit,
                       const struct slurm_job *job, bool is_of_another)
{
    if (is_named(unit, job->id) && unit->jobs.bound_ended_count < UNIT_MAX_JOBS)
        unit->jobs.bound_ended[unit->jobs.bound_ended_count++] = job;
    /* Slurm keeps a FAILED record of an immediate try that did not fit: that job never was. The key
     * of a group is that of all groups that had its name before: what became of their jobs says
     * nothing about this one. */
    if ((slurm_words_has(&job->state, SLURM_JOB_FAILED) && !job->nodes[0]) ||
        is_older_than(world, job, unit) || is_of_another)
        return;
    unit->jobs.failed_attempts++;
    if (job->end_time > unit->jobs.ended_at)
        unit->jobs.ended_at = job->end_time;
}

const struct slurm_job *unit_ended(const struct unit *unit, const struct member *member)
{
    for (unsigned i = 0; i < unit->jobs.bound_ended_count; i++)
        if (unit->jobs.bound_ended[i]->id == member->recorded_id)
            return unit->jobs.bound_ended[i];
    return NULL;
}

static void take_job(const struct bridge_world *world, struct unit *unit,
                     const struct keyed_job *keyed)
{
    const struct slurm_job *job = keyed->job;

    if (keyed->attempt > unit->jobs.attempt)
        unit->jobs.attempt = keyed->attempt;
    if (job_phase(job) == JOB_ENDED)
        take_ended(world, unit, job, keyed->is_of_another);
    else if (keyed->is_of_another)
        return;
    else if (unit->jobs.count < UNIT_MAX_JOBS)
        unit->jobs.at[unit->jobs.count++] = job;
    unit->jobs.is_behind |= slurm_cache_is_behind(world->slurm_jobs, job->object.key);
}

static bool is_bound_by(void *context, const struct slurm_job *job)
{
    const struct unit *unit = context;

    for (unsigned i = 0; i < unit->member_count; i++)
        if (unit->members[i].stage == POD_BOUND && unit->members[i].recorded_id == job->id)
            return true;
    return false;
}

/* ---- jobs of a bridge before ours ---- */

static bool names_pod(const struct json *pods, const struct kube_pod *pod)
{
    struct json_iter iter = json_iter(pods);
    const struct json *item;
    struct str ns, name;

    while (json_next_item(&iter, &item))
        if (str_cut(json_str(item), '/', &ns, &name) && str_is(ns, pod->object.ns) &&
            str_is(name, pod->object.name))
            return true;
    return false;
}

/* The pod names the job and the job the pod, in the comment that only administrators write, and no
 * cluster has put its key there. An external job at that: those run nothing by themselves. */
static bool is_inherited(const struct slurm_job *job, const struct kube_pod *pod)
{
    auto_json_doc struct json_doc *doc = NULL;
    struct err err = { .class = 0 };

    if (!slurm_words_has(&job->flags, SLURM_JOB_EXTERNAL) ||
        json_parse(str_of(job->admin_comment), SLURM_MAX_COMMENT, &doc, &err) < 0)
        return false;
    return !json_exists(json_get(json_root(doc), "cluster")) &&
           names_pod(json_get(json_root(doc), "pods"), pod);
}

static void gather_inherited(const struct bridge_world *world, struct arena *arena,
                             struct unit *unit)
{
    for (unsigned i = 0; i < unit->member_count && unit->jobs.count == 0; i++) {
        const struct member *member = &unit->members[i];
        /* A job that one member was found to have is not read again for the others: its comment is
         * long. */
        const struct slurm_object *object =
            member->recorded_id && !unit_ended(unit, member) &&
                    !(unit->jobs.inherited && unit->jobs.inherited->id == member->recorded_id)
                ? slurm_cache_get(world->slurm_jobs,
                                  arena_printf(arena, "%" PRId64, member->recorded_id))
                : NULL;

        if (!object || !is_inherited(slurm_job_of(object), member->pod))
            continue;
        if (job_phase(slurm_job_of(object)) == JOB_ENDED)
            take_ended(world, unit, slurm_job_of(object), false);
        else
            unit->jobs.inherited = slurm_job_of(object);
    }
}

static void choose_job(struct unit *unit, const struct keyed_jobs *jobs)
{
    const struct slurm_submit_claim claim = { .has_pods = is_bound_by,
                                              .context = unit,
                                              .recorded_id = unit->jobs.recorded_id };

    unit->job = unit->jobs.at[slurm_submit_choose(unit->jobs.at, unit->jobs.count, &claim)];
    for (size_t i = 0; i < jobs->count; i++)
        if (jobs->at[i].job == unit->job)
            unit->jobs.is_given_up = unit_state_has_given_up(unit->state, jobs->at[i].attempt);
}

static void gather_jobs(const struct bridge_world *world, struct unit *unit,
                        const struct keyed_jobs *jobs)
{
    for (size_t i = 0; i < jobs->count; i++)
        take_job(world, unit, &jobs->at[i]);
    if (unit->jobs.count > 0)
        choose_job(unit, jobs);
}

/* ---- the whole ---- */

/* Any pod of the group with this key. NULL: the group has no pod, or the key is a pod's. */
static const struct kube_pod *pod_of_group(const struct bridge_world *world, struct str key)
{
    struct kube_index_walk walk = kube_cache_by(world->pods, world->pods_by_unit, key);
    const struct kube_object *pod = kube_index_next(&walk);

    return group_key_is_of_group(key) && pod ? kube_pod_of(pod) : NULL;
}

static void gather_former(struct unit *unit, const struct keyed_jobs *jobs)
{
    for (size_t i = 0; i < jobs->count && unit->jobs.former_count < UNIT_MAX_JOBS; i++)
        if (jobs->at[i].is_of_another && job_phase(jobs->at[i].job) != JOB_ENDED)
            unit->jobs.former[unit->jobs.former_count++] = jobs->at[i].job;
}

/* Gathers the members, and what follows from them. */
static void gather_rest(const struct bridge_world *world, struct arena *arena, struct unit *unit)
{
    gather_members(world, arena, unit);
    count_members(unit);
    choose_pod(unit);
    if (unit->pod && !unit->successor) {
        unit->is_elsewhere = !world_is_in_unit(world, unit->pod, unit->key);
        unit_find_owner(world, arena, unit);
    }
}

void unit_gather_former(const struct bridge_world *world, const struct unit *unit,
                        const struct slurm_job *former, struct arena *arena, struct unit *ret_unit)
{
    const struct kube_pod *pod = pod_of_group(world, unit->key);

    *ret_unit = (struct unit){ .key = unit->key,
                               .kind = unit->kind,
                               .uid = "",
                               .successor = pod ? world_group_object(world, pod) : NULL,
                               .state = unit->state,
                               .owner.needed = 1,
                               .job = former,
                               .jobs = { .at = { former },
                                         .count = 1,
                                         .former = { former },
                                         .former_count = 1,
                                         .attempt = unit->jobs.attempt } };
    ret_unit->jobs.is_behind = slurm_cache_is_behind(world->slurm_jobs, former->object.key);
    gather_rest(world, arena, ret_unit);
}

void unit_gather(const struct bridge_world *world, struct str key, struct arena *arena,
                 struct unit *ret_unit)
{
    struct unit *unit = ret_unit;
    const struct kube_pod *pod = pod_of_group(world, key);
    const struct kube_object *object = pod ? world_group_object(world, pod) : NULL;
    struct keyed_jobs jobs;

    *unit = (struct unit){ .key = key,
                           .kind = pod ? group_of(pod).kind : GROUP_NONE,
                           .uid = object ? object->uid : "",
                           .state = unit_states_get(world->unit_states, key) };
    jobs = read_jobs(world, unit, arena);
    gather_former(unit, &jobs);
    gather_rest(world, arena, unit);
    gather_jobs(world, unit, &jobs);
    if (unit->pod)
        gather_inherited(world, arena, unit);
    if (unit->state && unit_state_attempt(unit->state) > unit->jobs.attempt)
        unit->jobs.attempt = unit_state_attempt(unit->state);
}

enum submit_state unit_submit_state(const struct unit *unit)
{
    return unit->state ? unit->state->submit.state : SUBMIT_NONE;
}

void plan_enqueue_member(struct plan *plan, const struct member *member)
{
    auto_buf struct buf own;

    buf_init(&own, SLURM_MAX_KEY);
    world_own_key(member->pod, &own);
    plan_enqueue(plan, buf_str(&own));
}
