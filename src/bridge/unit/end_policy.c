/* end_policy.c - the policy table: what Slurm did to a job, and what that means for its pod. */
#include "bridge/unit/end_policy.h"

#include <inttypes.h>

#define AGAIN "asked for again"
#define GOES  "deleted with its grace period, of maxGraceSeconds at most"

/* States that may stand beside others come first: CANCELLED and NODE_FAIL, then what remains. */
static const struct job_end ends[] = {
    { SLURM_JOB_TIMED_OUT, "SlurmJobTimeout", "reached its time limit", AGAIN, GOES },
    { SLURM_JOB_PREEMPTED, "SlurmJobPreempted", "was preempted", AGAIN, GOES },
    { SLURM_JOB_NODE_FAIL, "SlurmJobNodeFail", "ended because its node failed", AGAIN, GOES },
    { SLURM_JOB_BOOT_FAIL, "SlurmJobNodeFail", "ended because its node did not boot", AGAIN, GOES },
    { SLURM_JOB_DEADLINE, "SlurmJobDeadline", "passed its deadline", AGAIN, GOES },
    { SLURM_JOB_OUT_OF_MEMORY, "SlurmJobOutOfMemory", "ran out of memory", AGAIN, GOES },
    { SLURM_JOB_LAUNCH_FAILED, "SlurmJobFailed", "could not be launched", AGAIN, GOES },
    { SLURM_JOB_REVOKED, "SlurmJobRevoked", "was given to another cluster", AGAIN, GOES },
    { SLURM_JOB_CANCELLED, "SlurmJobCancelled", "was cancelled", AGAIN, GOES },
    { SLURM_JOB_FAILED, "SlurmJobFailed", "failed", AGAIN, GOES },
    { SLURM_JOB_COMPLETED, "SlurmJobCompleted", "was completed", AGAIN, GOES },
    /* Not the end of the job, but of its hold on the node: */
    { SLURM_JOB_SUSPENDED, "SlurmJobSuspended", "was suspended, and its cores given to others",
      "waits", GOES },
    { SLURM_JOB_PENDING, "SlurmJobRequeued", "was put back into the queue", "waits", GOES },
    { SLURM_JOB_RUNNING, "SlurmJobMoved", "was started again on another node", "bound there",
      GOES },
};

enum { END_COUNT = sizeof(ends) / sizeof(ends[0]) };

const struct job_end *job_end_of(const struct slurm_job *job)
{
    static const struct job_end other = { -1, "SlurmJobEnded", "ended", AGAIN, GOES };

    for (size_t i = 0; i < END_COUNT; i++)
        if (slurm_words_has(&job->state, (unsigned)ends[i].state))
            return &ends[i];
    return &other;
}

const char *job_end_message(struct arena *arena, const struct slurm_job *job)
{
    const char *why = job->reason_text[0] ? job->reason_text : job->reason;
    const char *words = job_end_of(job)->words;

    if (!why[0] || str_is(str_of(why), "None"))
        return arena_printf(arena, "job %" PRId64 " %s in Slurm", job->id, words);
    return arena_printf(arena, "job %" PRId64 " %s in Slurm: %s", job->id, words, why);
}

void job_end_reference(struct buf *out)
{
    buf_add_text(out, "| Slurm's state | event | a pod without a place | a pod that is bound |\n"
                      "|---|---|---|---|\n");
    for (size_t i = 0; i < END_COUNT; i++)
        buf_printf(out, "| %s | %s | %s | %s |\n", slurm_job_states.words[ends[i].state],
                   ends[i].reason, ends[i].unbound, ends[i].bound);
}
