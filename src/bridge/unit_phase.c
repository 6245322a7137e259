/* unit_phase.c - where a unit is, as one value: for plans, for /debug/state and for tests. */
#include "bridge/unit.h"

static enum unit_phase phase_of_waiting(const struct unit *unit)
{
    static const enum unit_phase phases[] = {
        [SUBMIT_NONE] = UNIT_NOT_SUBMITTED,
        [SUBMIT_SENT] = UNIT_SUBMITTING,
        [SUBMIT_UNRESOLVED] = UNIT_UNRESOLVED,
        [SUBMIT_REFUSED] = UNIT_REFUSED,
    };

    if (!unit->job)
        return phases[unit_submit_state(unit)];
    return job_phase(unit->job) == JOB_RUNS ? UNIT_ALLOCATED : UNIT_PENDING;
}

enum unit_phase unit_phase(const struct bridge_world *world, const struct unit *unit)
{
    if (!unit->pod)
        return UNIT_GONE;
    if (unit->stage == POD_OVER)
        return UNIT_OVER;
    if (!world_is_ours(world, unit->pod))
        return UNIT_FOREIGN;
    if (unit->is_elsewhere)
        return UNIT_IN_GROUP;
    switch (unit->stage) {
    case POD_GATED:
        return UNIT_GATED;
    case POD_WAITS:
        return phase_of_waiting(unit);
    case POD_BOUND:
        return unit->job && job_phase(unit->job) == JOB_RUNS ? UNIT_BOUND : UNIT_REBOOKING;
    default:
        return UNIT_ENDING;
    }
}

const char *unit_phase_name(enum unit_phase phase)
{
    static const char *const names[UNIT_PHASES] = {
        [UNIT_GONE] = "gone",
        [UNIT_FOREIGN] = "of another scheduler",
        [UNIT_OVER] = "over",
        [UNIT_IN_GROUP] = "planned with its group",
        [UNIT_GATED] = "gated",
        [UNIT_ENDING] = "ending",
        [UNIT_NOT_SUBMITTED] = "not submitted",
        [UNIT_SUBMITTING] = "submitting",
        [UNIT_UNRESOLVED] = "unresolved",
        [UNIT_REFUSED] = "refused",
        [UNIT_PENDING] = "pending",
        [UNIT_ALLOCATED] = "allocated",
        [UNIT_BOUND] = "bound",
        [UNIT_REBOOKING] = "rebooking",
    };

    return names[phase];
}
