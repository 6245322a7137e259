/* situation.c - gathers the facts about one unit that the rules of place.c read. */
#include "bridge/situation.h"

#include "base/map.h"
#include "bridge/run/release.h"

enum {
    SECOND_US = 1000000,
    READ_MIN_US = SECOND_US,
    READ_MAX_US = 60 * SECOND_US,
    READ_EACH_US = 20000, /* fifty jobs a second: slurmrestd reads about 300, and has more to do */
    NEW_MARGIN_US = 2 * SECOND_US, /* clocks of API servers and ours may differ by that */
    MAX_BACKOFF_S = 15,
    ANSWER_US = 3 * SECOND_US, /* the most that most answers take */
};

/* ---- questions ---- */

bool wants_job(const struct situation *situation)
{
    const struct unit *unit = situation->unit;

    return unit->stage == POD_WAITS && unit->in[POD_BOUND] == 0 &&
           (!unit->job || !situation->is_clear);
}

bool wants_rebooking(const struct situation *situation)
{
    return situation->unit->stage == POD_BOUND && situation->is_clear && !situation->unit->job &&
           situation->bound.ended_count == 0;
}

int64_t takeover_delay_left_us(const struct situation *situation)
{
    const struct bridge_facts *facts = &situation->world->facts;

    /* A leader before us may have submitted the unit, and that submit may still take effect. */
    if (facts->no_takeover_delay ||
        situation->unit->created_us >= facts->leading_wall_us + NEW_MARGIN_US)
        return 0;
    return facts->leading_us + facts->takeover_delay_us - facts->now_us;
}

/* A unit whose jobs keep ending before it is bound is submitted after ever longer pauses.
 * jobs.ended_at is by slurmctld's clock. */
int64_t backoff_left_us(const struct situation *situation)
{
    const struct unit *unit = situation->unit;
    const struct bridge_facts *facts = &situation->world->facts;
    int64_t pause_s;

    if (unit->jobs.failed_attempts == 0)
        return 0;
    pause_s = unit->jobs.failed_attempts > 4 ? MAX_BACKOFF_S
                                             : INT64_C(1) << (unit->jobs.failed_attempts - 1);
    return (unit->jobs.ended_at + pause_s) * SECOND_US - facts->wall_us - facts->slurm_skew_us;
}

int64_t answer_left_us(const struct situation *situation)
{
    const struct unit_state *state = situation->unit->state;

    return state ? state->submit.sent_us + ANSWER_US - situation->world->facts.now_us : 0;
}

/* ---- the facts of every unit ---- */

/* The longer a unit has waited, the less often its job is read. While many units wait, all reads
 * together stay below a rate. The keys of units spread the reads of those that came together. */
static int64_t read_pause_us(const struct bridge_world *world, const struct unit *unit)
{
    const uint64_t secret[2] = { 0, 0 };
    int64_t pause_us = (world->facts.wall_us - unit->created_us) / 4;
    int64_t for_all_us = (int64_t)world->facts.waiting_pods * READ_EACH_US;

    if (pause_us > READ_MAX_US)
        pause_us = READ_MAX_US;
    if (pause_us < READ_MIN_US)
        pause_us = READ_MIN_US;
    if (pause_us < for_all_us)
        pause_us = for_all_us;
    return pause_us + (int64_t)(map_hash(unit->key, secret) % (uint64_t)(for_all_us + 1));
}

/* Since when the bridge cannot use Slurm, by the first reason that holds. */
static int64_t outage_us(const struct bridge_facts *facts)
{
    if (facts->trouble[0])
        return facts->trouble_us;
    if (facts->job_visibility == SLURM_SEES_PART || !facts->slurm_user[0])
        return facts->leading_us;
    return facts->denied_us;
}

void situation_init(struct situation *situation, const struct bridge_world *world,
                    const struct unit *unit, struct arena *arena)
{
    bool wants_place = unit->stage == POD_WAITS || unit->stage == POD_BOUND;

    *situation = (struct situation){ .world = world, .unit = unit, .arena = arena };
    situation->has[PART_NONE] = true;
    situation->is_ours = unit->pod && world_is_ours(world, unit->pod);
    situation->is_clear = slurm_is_clear(world);
    situation->is_prepared = unit->successor || unit_is_prepared(world, unit);
    situation->is_placed = unit->in[POD_BOUND] > 0 || unit->in[POD_ENDING] > 0;
    situation->job_phase = unit->job ? job_phase(unit->job) : JOB_ENDED;
    situation->outage_us = outage_us(&world->facts);
    situation->lacks_slot = unit->is_elsewhere && situation->is_ours && wants_place &&
                            situation->is_clear && assign_lacks_slot_for(world, unit->pod, arena);
    if (situation->job_phase == JOB_WAITS) {
        situation->read_pause_us = read_pause_us(world, unit);
        situation->read_left_us = slurm_cache_known_us(world->slurm_jobs, unit->job->object.key) +
                                  situation->read_pause_us - world->facts.now_us;
    }
}

void situation_done(struct situation *situation)
{
    if (situation->has[PART_SYNC])
        sync_done(&situation->sync);
}

/* ---- parts ---- */

static void gather_bound(struct situation *s)
{
    if (s->unit->stage != POD_BOUND || !s->is_clear)
        return;
    bound_look(s->world, s->unit, s->arena, &s->bound);
    if (s->job_phase == JOB_RUNS && !s->bound.is_stray)
        s->lost_claims = claims_look_at_bound(s->world, s->unit, s->arena);
}

static void gather_desc(struct situation *s)
{
    struct err why = { .class = 0 };
    int result = 0;

    if (wants_rebooking(s) && s->bound.nodes[0])
        result = describe_rebooking(s->world, s->unit, s->bound.nodes, s->arena, &s->desc, &why);
    else if (wants_job(s) && s->unit->owner.object)
        result = unit_describe(s->world, s->unit, DESCRIBE_WAITING, s->arena, &s->desc, &why);
    else
        return;
    if (result < 0)
        s->invalid = arena_strdup(s->arena, why.text);
    else
        s->desc_hash = job_desc_hash(&s->desc);
}

static void gather_nodes(struct situation *s)
{
    if (!wants_job(s) || s->invalid)
        return;
    s->exclusion = exclusion_of(s->world, s->unit, s->desc.partition, s->arena);
    s->desc.excluded_nodes = s->exclusion.nodes;
    s->desc_hash = job_desc_hash(&s->desc);
}

static void gather_queue(struct situation *s, submit_queue_question is_submittable)
{
    if (!wants_job(s))
        return;
    s->queue_us = submit_queue_wait_us(s->world, s->unit, is_submittable, s->arena->limit);
    s->mode = submit_mode(s->world, s->unit, &s->desc);
}

static void gather_sync(struct situation *s)
{
    if (s->job_phase == JOB_WAITS && s->unit->stage == POD_WAITS)
        sync_look(s->world, s->unit, s->arena, &s->sync);
    else
        s->has[PART_SYNC] = false;
}

static bool has_running_job(const struct situation *s)
{
    return s->unit->stage == POD_WAITS && s->job_phase == JOB_RUNS;
}

static void gather_places(struct situation *s)
{
    if (!has_running_job(s) ||
        assign_waiting(s->world, s->unit, s->arena, &s->assigned, &s->err) < 0)
        return;
    s->forgotten = node_with_forgotten_pod(s->world, &s->assigned);
    s->has_stale_jobs = s->assigned.misfit && !s->assigned.is_among_own &&
                        node_has_stale_jobs(s->world, s->unit, s->assigned.misfit);
}

static void gather_volumes(struct situation *s)
{
    if (!has_running_job(s))
        return;
    s->volumes = volumes_look(s->world, s->unit, &s->assigned, s->arena);
    s->volumes_timed_out =
        s->volumes.count > 0 && job_has_run_for(s->world, s->unit->job, VOLUMES_TIME_OUT_S);
}

static void gather_claims(struct situation *s)
{
    if (has_running_job(s))
        s->claims = claims_look(s->world, s->unit, &s->assigned, s->arena);
}

void situation_need(struct situation *situation, enum part part,
                    submit_queue_question is_submittable)
{
    if (situation->has[part] || situation->err.class)
        return;
    situation->has[part] = true;
    switch (part) {
    case PART_BOUND:
        gather_bound(situation);
        break;
    case PART_DESC:
        gather_desc(situation);
        break;
    case PART_NODES:
        gather_nodes(situation);
        break;
    case PART_QUEUE:
        gather_queue(situation, is_submittable);
        break;
    case PART_SYNC:
        gather_sync(situation);
        break;
    case PART_PLACES:
        gather_places(situation);
        break;
    case PART_VOLUMES:
        gather_volumes(situation);
        break;
    case PART_CLAIMS:
        gather_claims(situation);
        break;
    case PART_NONE:
    case PARTS:
        break;
    }
}
