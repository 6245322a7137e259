/* act.c - what the rules of place.c do: each action adds to the plan, and decides nothing. */
#include "bridge/act.h"

#include "bridge/run/exclude.h"
#include "bridge/run/release.h"
#include "bridge/slurm/slurm_action.h"

enum { SECOND_US = 1000000, CALM_US = 10 * SECOND_US };

/* An action that is one call. */
#define ACT(name, call)                                                                            \
    void act_##name(const struct situation *s, struct plan *plan)                                  \
    {                                                                                              \
        call;                                                                                      \
    }

ACT(end_jobs, plan_end_jobs(s->world, s->unit, plan))

void act_adopt(const struct situation *s, struct plan *plan)
{
    struct err err = { .class = 0 };

    if (plan_adopt(s->world, s->unit, plan, &err) < 0)
        plan_step_failed(plan, "adopt", &err);
}

ACT(read_job, plan_slurm_look(plan, s->unit->job))

void act_read_jobs(const struct situation *s, struct plan *plan)
{
    for (unsigned i = 0; i < s->unit->jobs.count; i++)
        plan_slurm_look(plan, s->unit->jobs.at[i]);
}

void act_cancel_others(const struct situation *s, struct plan *plan)
{
    const struct unit *unit = s->unit;

    for (unsigned i = 0; i < unit->jobs.count; i++)
        if (unit->jobs.at[i] != unit->job && job_phase(unit->jobs.at[i]) != JOB_ENDS)
            plan_slurm_cancel(plan, unit->jobs.at[i], NULL, "the unit has another job");
}

void act_cancel_given_up(const struct situation *s, struct plan *plan)
{
    if (s->job_phase != JOB_ENDS)
        plan_slurm_cancel(plan, s->unit->job, NULL, "it was given up before");
}

ACT(require_nodes, plan_require_nodes(s->unit, &s->bound, plan))

/* Slurm may change the reason without the state: only a read of the job shows that. */
void act_read_calmly(const struct situation *s, struct plan *plan)
{
    const struct slurm_cache *jobs = s->world->slurm_jobs;

    if (s->world->facts.now_us - slurm_cache_known_us(jobs, s->unit->job->object.key) > CALM_US)
        plan_slurm_look(plan, s->unit->job);
}

/* After a restart slurmctld may show a job again that had ended long ago, and a job that was given
 * up may not be over yet. Such a job says nothing about the pods: it is cancelled, and the pods are
 * rebooked where they are. */
ACT(cancel_stray, plan_slurm_cancel(plan, s->unit->job, NULL, "it is not the job of its pod"))
ACT(end_pods, plan_end_pods(s->world, &s->bound, plan))

void act_keep_bound(const struct situation *s, struct plan *plan)
{
    plan_keep_bound(s->world, s->unit, &s->bound, plan);
    if (s->unit->job->start_time <= 0 && s->world->facts.waiting_pods == 0)
        act_read_calmly(s, plan);
}

void act_restore_claims(const struct situation *s, struct plan *plan)
{
    act_keep_bound(s, plan);
    if (s->lost_claims.state == CLAIMS_UNREAD)
        plan_slurm_layout(plan, s->unit->job);
    else
        plan_claims(plan, &s->lost_claims);
}

ACT(submit, plan_submit(s->unit, plan, &s->desc, DESCRIBE_WAITING, s->mode == SUBMIT_AT_ONCE))
ACT(rebook, plan_submit(s->unit, plan, &s->desc, DESCRIBE_BOUND, false))
ACT(cancel_small, plan_slurm_cancel(plan, s->unit->job, NULL, "its group has become too small"))
ACT(cancel_replaced, plan_slurm_cancel(plan, s->unit->job, NULL, "it is submitted anew"))

void act_read_again(const struct situation *s, struct plan *plan)
{
    if (s->read_left_us <= 0)
        plan_slurm_look(plan, s->unit->job);
}

void act_sync(const struct situation *s, struct plan *plan)
{
    if (s->read_left_us > 0)
        plan_sync(s->unit, plan, &s->sync);
    act_read_again(s, plan);
}

ACT(read_neighbours, plan_read_stale_jobs(s->world, s->unit, s->assigned.misfit, plan))

/* The job is cancelled. The next job excludes the nodes that did not fit, as long as they do not,
 * and is submitted after a pause that grows (backoff_left_us). */
ACT(give_back, plan_slurm_give_back(plan, s->unit->job, s->assigned.misfit, 0, s->assigned.why))
ACT(give_forgotten_back, plan_slurm_give_back(plan, s->unit->job, s->forgotten, 0,
                                              "a pod whose job Slurm has forgotten runs there"))
ACT(cancel_few_places,
    plan_slurm_cancel(plan, s->unit->job, NULL, "it has too few places for its pods"))
ACT(cancel_refused, plan_slurm_cancel(plan, s->unit->job, NULL, "a write was refused"))
ACT(cancel_volumes, plan_slurm_cancel(plan, s->unit->job, NULL, s->volumes.why))

void act_bind_volumes(const struct situation *s, struct plan *plan)
{
    plan_volumes(s->world, plan, &s->volumes);
    if (!s->is_placed)
        plan_read_start(s->world, s->unit, VOLUMES_TIME_OUT_S, plan);
}

void act_wait_for_place(const struct situation *s, struct plan *plan)
{
    plan_read_start(s->world, s->unit, world_place_wait_s(s->world), plan);
}

ACT(read_layout, plan_slurm_layout(plan, s->unit->job))

void act_cancel_claim(const struct situation *s, struct plan *plan)
{
    if (!s->is_placed)
        plan_slurm_cancel(plan, s->unit->job, NULL, s->claims.why);
}

ACT(give_device_back,
    plan_slurm_give_back(plan, s->unit->job, s->claims.node,
                         node_devices_version(s->world, s->claims.node), s->claims.why))

void act_wait_for_devices(const struct situation *s, struct plan *plan)
{
    plan_claims(plan, &s->claims);
    if (s->claims.state == CLAIMS_HELD && !s->is_placed)
        plan_read_start(s->world, s->unit, HELD_TOO_LONG_S, plan);
}

ACT(write_claims, plan_claims(plan, &s->claims))
ACT(bind, plan_bind_all(s->world, s->unit, plan, &s->assigned))
