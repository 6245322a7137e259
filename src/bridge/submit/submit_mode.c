/* submit_mode.c - how a job is submitted: an immediate allocation, or a place in the queue. */
#include "bridge/submit/submit_mode.h"

#include "slurm/capacity.h"

/* With an agent an immediate allocation takes a millisecond, so there is no burst for which the
 * queue would be faster. By slurmrestd it takes several, one after the other.
 *
 * Slurm takes no immediate job while others of its partition wait. So a load that could be placed
 * at once would stay in the queue for ever, each pod behind the last: it is held for a moment
 * instead, until those that were queued just now have started. */
enum submit_mode submit_mode(const struct bridge_world *world, const struct unit *unit,
                             const struct job_desc *desc)
{
    const struct bridge_facts *facts = &world->facts;
    size_t waiting = capacity_waiting(world->capacity, desc->partition);
    struct capacity_need need;

    if (world->config->submit_only || !facts->immediate_jobs_last || job_desc_must_queue(desc) ||
        (unit->state && unit->state->queues) ||
        (facts->unsubmitted > SUBMIT_CROWD && !facts->agent_is_up) || !job_desc_need(desc, &need) ||
        !capacity_fits(world->capacity, &need))
        return SUBMIT_QUEUED;
    if (waiting == 0)
        return SUBMIT_AT_ONCE;
    return waiting <= facts->queued && facts->queued <= SUBMIT_TRICKLE ? SUBMIT_SOON
                                                                       : SUBMIT_QUEUED;
}
