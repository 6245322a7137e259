/* act_follow.c - remembers what a job that waits was asked with, and which change it would not
 * take.
 *
 * Holds: a change that Slurm refused is not sent again while nothing that matters changes. What it
 * refused may have been made in part, and what it did not answer, too: that is open, and is said
 * again with the next change, or at the next look. */
#include "bridge/act_private.h"

#include "base/log.h"

#include <stdio.h>

enum { AGAIN_US = 600 * 1000000 };

void follow_asked(struct unit_memory *unit, int64_t job_id, const struct job_ask *ask)
{
    unit->said = (struct said_memory){ .job_id = job_id };
    job_marks_of(ask, &unit->said.marks);
}

/* The job started or ended before the update came: the answer says nothing about the change. */
static bool is_about_state(const struct slurm_error *error)
{
    return error->number == 2021 || error->number == 2083 || error->number == 2084;
}

/* By an answer that is about the change. Others come again with the next look: slurmctld also says
 * "try again" (11) while it goes through the queue. */
static bool is_refusal(enum slurm_class class)
{
    return class == SLURM_INVALID || class == SLURM_UNSATISFIABLE || class == SLURM_NOT_SUPPORTED ||
           class == SLURM_FORBIDDEN;
}

static void keep_refusal(struct actor *actor, struct unit_memory *unit, const struct deed *deed,
                         const struct slurm_error *error)
{
    struct said_memory *said = &unit->said;

    said->refused = job_ask_hash(&deed->job);
    said->site = room_generation(actor->options.room);
    said->again_us = loop_now_us(actor->loop) + AGAIN_US;
    (void)snprintf(unit->ask.text, sizeof(unit->ask.text), "%s", error->text);
}

enum kube_outcome follow_answered(struct work *work, const struct slurm_error *error)
{
    struct actor *actor = work->actor;
    const struct deed *deed = work->deed;
    struct unit_memory *unit = memory_need(actor->options.memory, deed_unit(deed));

    unit->said = (struct said_memory){ .job_id = deed->job_id, .marks = deed->marks };
    if (error->class == SLURM_DONE) {
        unit->said.settles = job_marks_are_open(&deed->marks);
        job_marks_close(&unit->said.marks, &deed->job);
        return KUBE_DONE;
    }
    if (is_about_state(error))
        return KUBE_CONFLICT;
    if (!is_refusal(error->class))
        return act_outcome(error->class);
    log_info("Slurm refused to change a job", LOG_STR("unit", deed_unit(deed)),
             LOG_I64("job", deed->job_id), LOG_I64("number", error->number),
             LOG_TEXT("error", error->text));
    keep_refusal(actor, unit, deed, error);
    actor->options.wake_unit(actor->options.context, deed_unit(deed));
    return KUBE_DONE; /* the memory tells the next plan what to do */
}
