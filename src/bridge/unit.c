/* unit.c - gathers a unit: its pods, its jobs in Slurm, what is remembered of it.
 *
 * Holds: only jobs of this cluster with the unit's key are the unit's, whatever a pod's label says;
 * the label merely tells which of them the pod was bound by. */
#include "bridge/unit.h"

#include "bridge/names.h"
#include "bridge/nodes.h"
#include "slurm/submit.h"

const char *pod_stage_name(enum pod_stage stage)
{
    static const char *const names[] = {
        [POD_GATED] = "gated",   [POD_WAITS] = "waits", [POD_BOUND] = "bound",
        [POD_ENDING] = "ending", [POD_OVER] = "over",
    };

    return names[stage];
}

const char *job_phase_name(enum job_phase phase)
{
    static const char *const names[] = {
        [JOB_WAITS] = "waits", [JOB_RUNS] = "runs",   [JOB_SUSPENDED] = "suspended",
        [JOB_ENDS] = "ends",   [JOB_ENDED] = "ended",
    };

    return names[phase];
}

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

/* ---- whose annotations count ---- */

static const struct kube_object *find_owner(struct kube_cache *cache, const struct kube_pod *pod)
{
    const struct kube_owner *owner = &pod->object.owner;
    const struct kube_object *object = kube_cache_get(cache, pod->object.ns, owner->name);

    return object && str_is(str_of(object->uid), owner->uid) ? object : NULL;
}

/* A controller of a kind that we do not watch says nothing about the job: the pod speaks for
 * itself.
 */
static void find_root(const struct bridge_world *world, struct arena *arena, struct unit *unit)
{
    const struct kube_owner *owner = &unit->pod->object.owner;
    const struct {
        const char *kind;
        struct kube_cache *cache;
    } watched[] = {
        { "Job", world->jobs },
        { "ReplicaSet", world->replicasets },
        { "StatefulSet", world->statefulsets },
    };

    unit->root = &unit->pod->object;
    for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++) {
        if (!watched[i].cache || !str_is(str_of(owner->kind), watched[i].kind))
            continue;
        unit->root = find_owner(watched[i].cache, unit->pod);
        if (!unit->root)
            unit->wanting = arena_printf(arena, "its %s %s", owner->kind, owner->name);
        else if (i == 0)
            unit->owner = kube_job_of(unit->root);
    }
}

/* ---- its jobs ---- */

/* Slurm keeps a FAILED record of an immediate try that did not fit: that job never was. */
static bool is_refused_try(const struct slurm_job *job)
{
    return slurm_words_has(&job->state, SLURM_JOB_FAILED) && !job->nodes[0];
}

static void take_ended(struct unit *unit, const struct slurm_job *job)
{
    if (job->id == unit->recorded_id)
        unit->ended = job;
    if (is_refused_try(job))
        return;
    unit->ended_count++;
    if (job->end_time > unit->ended_at)
        unit->ended_at = job->end_time;
}

static void take_job(const struct bridge_world *world, struct unit *unit,
                     const struct slurm_job *job)
{
    auto_buf struct buf key;
    unsigned attempt = 0;

    buf_init(&key, SLURM_MAX_KEY);
    if (world_job_key(world, job, &key, &attempt) && attempt > unit->attempt)
        unit->attempt = attempt;
    if (job_phase(job) == JOB_ENDED)
        take_ended(unit, job);
    else if (unit->job_count < UNIT_MAX_JOBS)
        unit->jobs[unit->job_count++] = job;
    unit->is_behind |= slurm_cache_is_behind(world->slurm_jobs, job->object.key);
}

static bool is_bound_by(void *context, const struct slurm_job *job)
{
    const struct unit *unit = context;

    return unit->stage == POD_BOUND && job->id == unit->recorded_id;
}

static void gather_jobs(const struct bridge_world *world, struct unit *unit)
{
    struct slurm_index_walk walk = slurm_cache_by(world->slurm_jobs, SLURM_JOBS_BY_KEY, unit->key);
    const struct slurm_object *object;

    while ((object = slurm_index_next(&walk)) != NULL)
        take_job(world, unit, slurm_job_of(object));
    if (unit->job_count > 0) {
        const struct slurm_submit_claim claim = { .has_pods = is_bound_by,
                                                  .context = unit,
                                                  .recorded_id = unit->recorded_id };

        unit->job = unit->jobs[slurm_submit_choose(unit->jobs, unit->job_count, &claim)];
    }
}

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

void unit_gather(const struct bridge_world *world, struct str key, struct arena *arena,
                 struct unit *ret_unit)
{
    struct kube_index_walk walk = kube_cache_by(world->pods, world->pods_by_unit, key);
    const struct kube_object *object = kube_index_next(&walk);

    *ret_unit =
        (struct unit){ .key = key, .stage = POD_OVER, .memory = memory_get(world->memory, key) };
    if (object) {
        ret_unit->pod = kube_pod_of(object);
        ret_unit->stage = pod_stage(world, ret_unit->pod);
        ret_unit->recorded_id = recorded_id(ret_unit->pod);
        find_root(world, arena, ret_unit);
    }
    gather_jobs(world, ret_unit);
    if (ret_unit->memory && ret_unit->memory->ask.attempt > ret_unit->attempt)
        ret_unit->attempt = ret_unit->memory->ask.attempt;
}

enum ask_state unit_ask_state(const struct unit *unit)
{
    return unit->memory ? unit->memory->ask.state : ASK_NONE;
}
