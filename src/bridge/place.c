/* place.c - what to do next for one unit: a pod, or the pods of a group.
 *
 * Reads   the pods, their jobs in Slurm, the state of the last submit.
 * Returns actions; does no I/O.
 * Holds   a unit whose last submit is not settled never gets a second one
 * (docs/internals/bridge.md, Submitting at most once); a pod is bound only to a node of its own
 * running job; a job ends only when nothing of its pods runs any more; nothing is cancelled or
 * deleted while slurmctld is suspected of a restart. */
#include "bridge/place.h"

#include "base/map.h"
#include "bridge/report.h"
#include "bridge/run/assign.h"
#include "bridge/run/bind.h"
#include "bridge/run/device_claims.h"
#include "bridge/run/release.h"
#include "bridge/slurm/slurm_action.h"
#include "bridge/submit/submit.h"
#include "bridge/submit/submit_guard.h"
#include "bridge/world/names.h"

#include <inttypes.h>

enum {
    SECOND_US = 1000000,
    LOOK_MIN_US = SECOND_US,
    LOOK_MAX_US = 60 * SECOND_US,
    LOOK_EACH_US = 20000, /* fifty jobs a second: slurmrestd reads about 300, and has more to do */
    FENCE_LOOK_US = 10 * SECOND_US,
    LOOK_IF_SMALLER_US = 60 * SECOND_US, /* a change of its pods is seen at once */
    SOON_US = SECOND_US / 5,
    TROUBLE_LOOK_US = 15 * SECOND_US, /* the end of the trouble wakes all that wait */
};

/* Lost answers can leave two jobs for one unit. Nothing is bound before only one is left. */
static bool cancel_duplicates(const struct bridge_world *world, const struct unit *unit,
                              struct plan *plan)
{
    /* The job that is kept must have been seen in the last whole list, or read after it. Otherwise
     * slurmctld may have lost it, and the other job is all that is left. */
    if (unit->job_count > 1 && slurm_cache_known_us(world->slurm_jobs, unit->job->object.key) <
                                   slurm_cache_listed_us(world->slurm_jobs)) {
        plan_slurm_look(plan, unit->job);
        plan_wait(plan, "whether job %s is still there is being read", unit->job->object.key);
        plan_look_again(plan, LOOK_MIN_US);
        return true;
    }
    for (unsigned i = 0; i < unit->job_count; i++)
        if (unit->jobs[i] != unit->job && job_phase(unit->jobs[i]) != JOB_ENDS)
            plan_slurm_cancel(plan, unit->jobs[i], NULL, "the unit has another job");
    if (unit->job_count > 1)
        plan_wait(plan, "%u jobs of this unit are being cancelled", unit->job_count - 1);
    return unit->job_count > 1;
}

/* The first cancel had no answer and may still take effect, so no pod is bound by this job. */
static bool cancel_given_up(const struct unit *unit, struct plan *plan)
{
    if (!unit->job || !unit->is_given_up || unit->stage != POD_WAITS)
        return false;
    if (job_phase(unit->job) != JOB_ENDS)
        plan_slurm_cancel(plan, unit->job, NULL, "it was given up before");
    plan_wait(plan, "job %s was given up, and ends", unit->job->object.key);
    plan_look_again(plan, LOOK_MIN_US);
    return true;
}

/* The longer a unit has waited, the less often its job is read. While many wait, all their reads
 * together stay below a rate, and those of units that came together are spread by their keys. */
static int64_t look_pause_us(const struct bridge_world *world, const struct unit *unit)
{
    const uint64_t secret[2] = { 0, 0 };
    int64_t pause_us = (world->facts.wall_us - unit->created_us) / 4;
    int64_t for_all_us = (int64_t)world->facts.waiting_pods * LOOK_EACH_US;

    if (pause_us > LOOK_MAX_US)
        pause_us = LOOK_MAX_US;
    if (pause_us < LOOK_MIN_US)
        pause_us = LOOK_MIN_US;
    if (pause_us < for_all_us)
        pause_us = for_all_us;
    return pause_us + (int64_t)(map_hash(unit->key, secret) % (uint64_t)(for_all_us + 1));
}

/* Slurm may change the reason without the state: only a read of the job shows that. */
static int wait_for_slurm(const struct bridge_world *world, const struct unit *unit,
                          struct plan *plan)
{
    const struct slurm_job *job = unit->job;
    int64_t known_us = slurm_cache_known_us(world->slurm_jobs, job->object.key);
    int64_t left_us = known_us + look_pause_us(world, unit) - world->facts.now_us;

    if (world->facts.trouble[0]) { /* what Slurm says now is not known */
        report_slurm_trouble(world, unit, plan, world->facts.trouble_us, world->facts.trouble);
        plan_look_again(plan, TROUBLE_LOOK_US);
        return 0;
    }
    if (slurm_words_has(&job->state, SLURM_JOB_CONFIGURING)) /* it runs: where is being read */
        plan_wait(plan, "the nodes of job %s are being read", job->object.key);
    else if (!plan_sync_pending(world, unit, plan, left_us > 0)) /* on what was just read */
        report_waiting(world, unit, plan, report_reason_word(plan->arena, job->reason), "%s",
                       report_why_it_waits(plan->arena, job));
    if (left_us <= 0)
        plan_slurm_look(plan, job);
    plan_look_again(plan, left_us > 0 ? left_us : look_pause_us(world, unit));
    return 0;
}

/* A group that has become too small gives its job back. */
static bool has_shrunk(const struct bridge_world *world, const struct unit *unit, struct plan *plan)
{
    enum job_phase phase = job_phase(unit->job);

    if (unit->kind == GROUP_NONE || !unit->owner || unit->in[POD_WAITS] >= (uint64_t)unit->needed ||
        phase == JOB_ENDS || unit->in[POD_ENDING] > 0)
        return false;
    report_waiting(world, unit, plan, "GroupIncomplete",
                   "not enough pending pods for created external job: %u of %" PRId64
                   " pods of its %s are there",
                   unit->in[POD_WAITS], unit->needed, group_kind_name(unit->kind));
    plan_slurm_cancel(plan, unit->job, NULL, "its group has become too small");
    return true;
}

static int place_waiting(const struct bridge_world *world, const struct unit *unit,
                         struct plan *plan, bool is_prepared, struct err *err)
{
    if (!unit->job || job_phase(unit->job) != JOB_RUNS)
        plan_free_claims(world, unit, plan);
    if (!unit->job)
        return plan_submit(world, unit, plan, err);
    if (has_shrunk(world, unit, plan))
        return 0;
    switch (job_phase(unit->job)) {
    case JOB_WAITS:
        return wait_for_slurm(world, unit, plan);
    case JOB_RUNS:
        return plan_place(world, unit, plan, is_prepared, err);
    case JOB_SUSPENDED:
        report_waiting(world, unit, plan, "Suspended", "job %s is suspended",
                       unit->job->object.key);
        return 0;
    case JOB_ENDS:
    case JOB_ENDED:
        plan_wait(plan, "job %s ends", unit->job->object.key);
        return 0;
    }
    return err_set(err, ERR_BUG, "a job in no phase");
}

/* A member of a group for which the group's running job has no place. */
static bool wants_own_job(const struct bridge_world *world, const struct unit *unit,
                          struct plan *plan)
{
    if ((unit->stage != POD_WAITS && unit->stage != POD_BOUND) || !slurm_is_clear(world) ||
        !assign_lacks_slot_for(world, unit->pod, plan->arena))
        return false;
    plan_wait(plan, "the job of its group has no place for it: it gets one of its own");
    return true;
}

/* The caches of Slurm are fresh enough to act on. */
static int place_live(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                      bool is_prepared, struct err *err)
{
    if (unit->is_behind) { /* a job that was just cancelled still looks alive */
        for (unsigned i = 0; i < unit->job_count; i++)
            plan_slurm_look(plan, unit->jobs[i]);
        plan_wait(plan, "its job is being read");
        plan_look_again(plan, SOON_US);
        return 0;
    }
    if (cancel_duplicates(world, unit, plan) || cancel_given_up(unit, plan))
        return 0;
    if (unit->has_old_key)
        return plan_adopt(world, unit, unit->job, plan, err);
    plan_show_group(world, unit, plan);
    return unit->stage == POD_BOUND ? plan_rebook(world, unit, plan, is_prepared, err)
                                    : place_waiting(world, unit, plan, is_prepared, err);
}

/* The object of a group was deleted and made again under the same name: the job of the first object
 * stays with the pods that are bound by it, and ends with them. */
static int place_former(const struct bridge_world *world, const struct unit *unit,
                        const struct slurm_job *job, struct plan *plan, struct err *err)
{
    struct unit former;

    unit_gather_former(world, unit, job, plan->arena, &former);
    if (former.stage == POD_OVER || world->facts.is_uninstalling) {
        plan_release(world, &former, plan);
        return 0;
    }
    plan_remove_finalizers(world, &former, plan);
    if (former.in[POD_ENDING] > 0)
        plan_look_again(plan, FENCE_LOOK_US);
    if (former.stage != POD_BOUND)
        return 0;
    if (slurm_is_clear(world) && !former.is_behind)
        return plan_rebook(world, &former, plan, true, err);
    plan_wait(plan, "the job of the group's former object is being read");
    plan_look_again(plan, LOOK_MIN_US); /* nothing tells a unit when it has been */
    return 0;
}

static int place_unit(const struct bridge_world *world, struct str key, struct plan *plan,
                      struct err *err)
{
    struct unit unit;
    enum unit_phase phase;
    bool is_prepared;
    int result = 0;

    unit_gather(world, key, plan->arena, &unit);
    for (unsigned i = 0; i < unit.former_count && result == 0; i++)
        result = place_former(world, &unit, unit.former[i], plan, err);
    if (result < 0)
        return result;
    if (unit.inherited && !world->facts.is_uninstalling && world_is_ours(world, unit.pod))
        return plan_adopt(world, &unit, unit.inherited, plan, err);
    /* When the bridge is uninstalled its nodes leave Slurm, so no other job gets what a pod uses.
     */
    phase = unit_phase(world, &unit);
    if (phase == UNIT_GONE || phase == UNIT_OVER || world->facts.is_uninstalling) {
        plan_release(world, &unit, plan);
        return 0;
    }
    if (phase == UNIT_FOREIGN || (phase == UNIT_IN_GROUP && !wants_own_job(world, &unit, plan)))
        return 0;
    plan_remove_finalizers(world, &unit, plan);
    if (unit.in[POD_ENDING] > 0)
        plan_look_again(plan, FENCE_LOOK_US); /* a node is fenced by time alone, too */
    if (phase == UNIT_ENDING) {
        plan_wait(plan, "its containers may still run");
        return 0;
    }
    if (phase == UNIT_GATED) {
        plan_hold(world, &unit, plan);
        return 0;
    }
    is_prepared = !plan_prepare(world, &unit, plan);
    if (slurm_is_clear(world))
        return place_live(world, &unit, plan, is_prepared, err);
    if (unit.stage == POD_WAITS)
        return plan_submit(world, &unit, plan, err); /* which says what is awaited */
    plan_wait(plan, "Slurm's jobs are being read");
    plan_look_again(plan, LOOK_MIN_US); /* nothing tells a unit when they have been */
    return 0;
}

/* A unit whose plan needs too much memory is left as it is, and its pods report that. */
static int report_too_big(const struct bridge_world *world, struct str key, struct plan *plan)
{
    struct unit unit;

    plan_clear(plan);
    unit_gather(world, key, plan->arena, &unit);
    if (unit.pod && world_is_ours(world, unit.pod))
        report_trouble(world, &unit, plan, "TooBig",
                       "a plan for its %u pods takes more than %zu MiB of the bridge's memory",
                       unit.member_count, plan->arena->budget >> 20);
    plan_look_again(plan, LOOK_IF_SMALLER_US);
    return 0;
}

int place_plan(const struct bridge_world *world, struct str key, struct plan *plan, struct err *err)
{
    int result = place_unit(world, key, plan, err);

    return arena_is_over_budget(plan->arena) ? report_too_big(world, key, plan) : result;
}
