/* submit_guard.c - whether a job may be submitted now, and by which mode.
 *
 * The first rule that has an objection answers. Each objection names what it waits for, so that a
 * pod can say it. */
#include "bridge/submit/submit_guard.h"

enum {
    SECOND_US = 1000000,
    NEW_MARGIN_US = 2 * SECOND_US,   /* clocks of API servers and ours may differ by that */
    REBOOK_FIRST_US = 3 * SECOND_US, /* jobs that are missing are read one by one */
    MAX_AGAIN_S = 15,
    SOON_US = 200000,
};

bool slurm_is_clear(const struct bridge_world *world)
{
    return world->facts.slurm_synced && !world->facts.is_suspicious;
}

bool rebooking_comes_first(const struct bridge_world *world)
{
    const struct bridge_facts *facts = &world->facts;

    return facts->restarted_us && facts->now_us - facts->restarted_us < REBOOK_FIRST_US;
}

static struct guard_result later(const char *why, int64_t again_us)
{
    return (struct guard_result){ .guard = GUARD_LATER, .why = why, .again_us = again_us };
}

static int64_t takeover_delay_left_us(const struct bridge_world *world, const struct unit *unit)
{
    const struct bridge_facts *facts = &world->facts;

    /* Whether a leader before us may have submitted it: that submit may still take effect. */
    if (facts->no_takeover_delay || unit->created_us >= facts->leading_wall_us + NEW_MARGIN_US)
        return 0;
    return facts->leading_us + facts->takeover_delay_us - facts->now_us;
}

/* A unit whose jobs keep ending before it is bound is submitted ever more slowly. When they ended
 * is by slurmctld's clock. */
static int64_t backoff_left_us(const struct bridge_world *world, const struct unit *unit)
{
    unsigned doublings = unit->failed_attempts > 4 ? 4 : unit->failed_attempts - 1;
    int64_t pause_s = unit->failed_attempts == 0 ? 0 : INT64_C(1) << doublings;
    int64_t due_s = unit->ended_at + (pause_s > MAX_AGAIN_S ? MAX_AGAIN_S : pause_s);

    return unit->failed_attempts == 0
               ? 0
               : due_s * SECOND_US - world->facts.wall_us - world->facts.slurm_skew_us;
}

/* A whole list settles it that began when the submit could no longer take effect. */
static struct guard_result look_at_unresolved(const struct bridge_world *world,
                                              const struct submit_record *submit,
                                              struct arena *arena)
{
    int64_t left_us = submit->settles_us - world->facts.now_us;
    int64_t again_us = left_us > 0 ? left_us + SOON_US : SECOND_US;

    if (submit->is_answered) /* without a job it was a refusal: the executor moves it */
        return later(arena_printf(arena,
                                  "whether there is a job will be known soon; Slurm said: %s",
                                  submit->text),
                     again_us);
    if (slurm_cache_listed_us(world->slurm_jobs) <= submit->settles_us)
        return later("Slurm did not answer: whether there is a job will be known soon", again_us);
    return (struct guard_result){ .guard = GUARD_OPEN };
}

static struct guard_result look_at_submit(const struct bridge_world *world,
                                          const struct submit_record *submit, uint64_t hash,
                                          struct arena *arena)
{
    switch (submit->state) {
    case SUBMIT_NONE:
        break;
    case SUBMIT_SENT:
        return later("Slurm is being asked", 0);
    case SUBMIT_UNRESOLVED:
        return look_at_unresolved(world, submit, arena);
    case SUBMIT_REFUSED:
        if (submit->hash == hash && submit->site == capacity_generation(world->capacity) &&
            world->facts.now_us < submit->again_us)
            return (struct guard_result){ .guard = GUARD_REFUSED,
                                          .why = arena_printf(arena, "%s", submit->text),
                                          .again_us = submit->again_us - world->facts.now_us };
        break;
    }
    return (struct guard_result){ .guard = GUARD_OPEN };
}

static struct guard_result look_at_slurm(const struct bridge_world *world, struct arena *arena)
{
    const struct bridge_facts *facts = &world->facts;
    struct guard_result view;

    if (facts->trouble[0]) {
        view = later(facts->trouble, MAX_AGAIN_S * SECOND_US); /* its end wakes all that wait */
        view.trouble_us = facts->trouble_us;
        return view;
    }
    if (!facts->slurm_synced)
        return later("Slurm has not been read yet", SECOND_US);
    if (facts->is_suspicious)
        return later(arena_printf(arena, "jobs are being read again: %s", facts->suspicion),
                     SECOND_US);
    if (!facts->knows_job_visibility)
        return later("it is not known yet whether the bridge's Slurm user sees all jobs",
                     SECOND_US);
    if (facts->job_visibility == SLURM_SEES_PART) {
        view = later(arena_printf(arena, "the bridge's Slurm user does not see all jobs: %s",
                                  facts->job_visibility_why),
                     MAX_AGAIN_S * SECOND_US);
        view.trouble_us = facts->leading_us;
        return view;
    }
    if (slurm_cache_listed_us(world->slurm_jobs) < facts->leading_us)
        return later("jobs have not been read since this bridge leads", SECOND_US);
    if (facts->pause_us > facts->now_us) {
        view = later(arena_printf(arena, "%s", facts->pause_why), facts->pause_us - facts->now_us);
        view.trouble_us = facts->denied_us;
        return view;
    }
    return (struct guard_result){ .guard = GUARD_OPEN };
}

struct guard_result submit_guard_check(const struct bridge_world *world, const struct unit *unit,
                                       uint64_t desc_hash, struct arena *arena)
{
    struct guard_result view = look_at_slurm(world, arena);
    int64_t left_us;

    if (view.guard == GUARD_OPEN && unit->state)
        view = look_at_submit(world, &unit->state->submit, desc_hash, arena);
    if (view.guard != GUARD_OPEN)
        return view;
    /* Bound pods use their nodes, even if slurmctld has forgotten their jobs: these jobs are
     * submitted before all others. */
    if (unit->stage == POD_WAITS && (world->facts.rebooking > 0 || rebooking_comes_first(world)))
        return later("pods that may have lost their jobs come first", SECOND_US);
    if ((left_us = takeover_delay_left_us(world, unit)) > 0)
        return later("the bridge before this one may have asked Slurm already", left_us);
    if ((left_us = backoff_left_us(world, unit)) > 0)
        return later(
            arena_printf(arena, "%u jobs of it ended before it was placed", unit->failed_attempts),
            left_us);
    return view;
}

/* Slurm takes no immediate job while others of its partition wait. So a load that could be placed
 * at once would stay in the queue for ever, each pod behind the last: it is held for a moment
 * instead, until those that were queued just now have started. */
enum submit_mode submit_mode(const struct bridge_world *world, const struct unit *unit,
                             const struct job_desc *desc)
{
    const struct bridge_facts *facts = &world->facts;
    size_t waiting = capacity_waiting(world->capacity, desc->partition);

    if (world->config->submit_only || !facts->immediate_jobs_last || job_desc_must_queue(desc) ||
        (unit->state && unit->state->queues) || facts->unsubmitted > SUBMIT_CROWD ||
        !capacity_fits(world->capacity, desc))
        return SUBMIT_QUEUED;
    if (waiting == 0)
        return SUBMIT_AT_ONCE;
    return waiting <= facts->queued && facts->queued <= SUBMIT_TRICKLE ? SUBMIT_SOON
                                                                       : SUBMIT_QUEUED;
}
