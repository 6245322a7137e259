/* slurm_executor_sync.c - remembers what a job that waits was submitted with, and which change it
 * would not take.
 *
 * Holds: a change that Slurm refused is not sent again while nothing that matters changes. What it
 * refused may have been made in part, and what it did not answer, too: that is open, and is said
 * again with the next change, or at the next look. */
#include "bridge/slurm_executor_private.h"

#include "base/log.h"

#include <stdio.h>

enum { AGAIN_US = 600 * 1000000 };

void sync_submitted(struct unit_state *unit, int64_t job_id, const struct job_desc *desc)
{
    unit->last_applied = (struct last_applied){ .job_id = job_id };
    field_hashes_of(desc, &unit->last_applied.hashes);
}

enum kube_outcome sync_answered(struct slurm_task *task, const struct slurm_error *error)
{
    struct slurm_executor *executor = task->executor;
    const struct slurm_action *detail = task->detail;
    struct unit_state *unit =
        unit_states_need(executor->options.unit_states, slurm_action_unit(detail));
    struct last_applied *last;

    unit->last_applied =
        (struct last_applied){ .job_id = detail->job_id, .hashes = detail->hashes };
    if (error->class == SLURM_DONE) {
        unit->last_applied.settles = field_hashes_have_unknown(&detail->hashes);
        field_hashes_settle(&unit->last_applied.hashes, &detail->job);
        return KUBE_DONE;
    }
    /* The job started or ended before the update came: the answer says nothing about the change. */
    if (error->number == 2021 || error->number == 2083 || error->number == 2084)
        return KUBE_CONFLICT;
    /* By an answer that is about the change. Others come again with the next look: slurmctld also
     * says "try again" (11) while it goes through the queue. */
    if (error->class != SLURM_INVALID && error->class != SLURM_UNSATISFIABLE &&
        error->class != SLURM_NOT_SUPPORTED && error->class != SLURM_FORBIDDEN)
        return executor_outcome(error->class);
    log_info("Slurm refused to change a job", LOG_STR("unit", slurm_action_unit(detail)),
             LOG_I64("job", detail->job_id), LOG_I64("number", error->number),
             LOG_TEXT("error", error->text));
    last = &unit->last_applied;
    last->refused = job_desc_hash(&detail->job);
    last->site = capacity_generation(executor->options.capacity);
    last->again_us = loop_now_us(executor->loop) + AGAIN_US;
    (void)snprintf(unit->submit.text, sizeof(unit->submit.text), "%s", error->text);
    executor->options.wake_unit(executor->options.context, slurm_action_unit(detail));
    return KUBE_DONE; /* the unit state tells the next plan what to do */
}
