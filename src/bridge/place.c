/* place.c - what to do next for one unit: a pod that Slurm finds a place for.
 *
 * Reads   the pod, its jobs in Slurm, what is remembered of asks.
 * Returns actions; does no I/O.
 * Holds   a unit whose last ask is not settled never gets a second one (DESIGN 5a); a pod is bound
 *         only to a node of its own running job; a job ends only when nothing of its pod runs any
 *         more; nothing is cancelled or deleted while slurmctld is suspected of a restart. */
#include "bridge/place.h"

#include "bridge/act.h"
#include "bridge/ask.h"
#include "bridge/bind.h"
#include "bridge/cover.h"
#include "bridge/gate.h"
#include "bridge/names.h"
#include "bridge/release.h"
#include "bridge/tell.h"

enum {
    SECOND_US = 1000000,
    LOOK_MIN_US = SECOND_US,
    LOOK_MAX_US = 60 * SECOND_US,
    FENCE_LOOK_US = 10 * SECOND_US,
    SOON_US = SECOND_US / 5,
};

/* The last whole list showed the one that is kept, or a read after it: else it may be the one that
 * slurmctld has lost, and the other all that is left. */
static bool is_kept_for_sure(const struct bridge_world *world, const struct unit *unit)
{
    return slurm_cache_known_us(world->slurm_jobs, unit->job->object.key) >=
           slurm_cache_listed_us(world->slurm_jobs);
}

/* Late effects and lost answers can leave two jobs for one unit. Nothing is bound before one is. */
static bool cancel_duplicates(const struct bridge_world *world, const struct unit *unit,
                              struct plan *plan)
{
    if (unit->job_count > 1 && !is_kept_for_sure(world, unit)) {
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

/* The longer it has waited, the less often it is worth a look. */
static int64_t look_pause_us(const struct bridge_world *world, const struct unit *unit)
{
    int64_t pause_us = (world->facts.wall_us - unit->pod->object.created_us) / 4;

    if (pause_us < LOOK_MIN_US)
        return LOOK_MIN_US;
    return pause_us < LOOK_MAX_US ? pause_us : LOOK_MAX_US;
}

/* A reason changes without the state: only a read shows it. */
static int wait_for_slurm(const struct bridge_world *world, const struct unit *unit,
                          struct plan *plan)
{
    const struct slurm_job *job = unit->job;
    int64_t known_us = slurm_cache_known_us(world->slurm_jobs, job->object.key);
    int64_t left_us = known_us + look_pause_us(world, unit) - world->facts.now_us;

    tell_waiting(world, unit, plan, tell_reason_word(plan->arena, job->reason), "%s",
                 tell_why_it_waits(plan->arena, job));
    if (left_us <= 0)
        plan_slurm_look(plan, job);
    else
        plan_exclude(world, unit, plan); /* on what was just read */
    plan_look_again(plan, left_us > 0 ? left_us : look_pause_us(world, unit));
    return 0;
}

static int place_waiting(const struct bridge_world *world, const struct unit *unit,
                         struct plan *plan, struct err *err)
{
    if (!unit->job)
        return plan_ask(world, unit, plan, err);
    switch (job_phase(unit->job)) {
    case JOB_WAITS:
        return wait_for_slurm(world, unit, plan);
    case JOB_RUNS:
        return plan_place(world, unit, plan, err);
    case JOB_SUSPENDED:
        tell_waiting(world, unit, plan, "Suspended", "job %s is suspended", unit->job->object.key);
        return 0;
    case JOB_ENDS:
    case JOB_ENDED:
        plan_wait(plan, "job %s ends", unit->job->object.key);
        return 0;
    }
    return err_set(err, ERR_BUG, "a job in no phase");
}

int place_plan(const struct bridge_world *world, struct str key, struct plan *plan, struct err *err)
{
    struct unit unit;

    unit_gather(world, key, plan->arena, &unit);
    /* Of a bridge that is being removed the nodes leave Slurm: nobody is given what a pod uses. */
    if (unit.stage == POD_OVER || world->facts.is_leaving)
        return plan_release(world, &unit, plan, err);
    if (!world_is_ours(world, unit.pod))
        return 0;
    if (unit.stage == POD_ENDING) {
        plan_wait(plan, "its containers may still run");
        plan_look_again(plan, FENCE_LOOK_US); /* a node is fenced by time alone, too */
        return 0;
    }
    if (unit.stage == POD_GATED)
        return plan_hold(world, &unit, plan, err);
    plan_prepare(world, &unit, plan);
    if (!gate_slurm_is_clear(world)) {
        if (unit.stage == POD_WAITS)
            return plan_ask(world, &unit, plan, err); /* which says what is awaited */
        plan_wait(plan, "Slurm's jobs are being read");
        plan_look_again(plan, LOOK_MIN_US); /* nothing tells a unit when they have been */
        return 0;
    }
    if (unit.is_behind) { /* a job that was just cancelled still looks alive */
        for (unsigned i = 0; i < unit.job_count; i++)
            plan_slurm_look(plan, unit.jobs[i]);
        plan_wait(plan, "its job is being read");
        plan_look_again(plan, SOON_US);
        return 0;
    }
    if (cancel_duplicates(world, &unit, plan))
        return 0;
    return unit.stage == POD_BOUND ? plan_cover(world, &unit, plan, err)
                                   : place_waiting(world, &unit, plan, err);
}
