/* end_policy.h - what each thing that Slurm may do to a job means for its pod: the policy, as a
 * table.
 *
 * A pod that is bound is deleted with its grace period, capped by maxGraceSeconds, after a
 * condition and an event have said why; its owner (Job, ReplicaSet ...) decides whether there is
 * another one. A pod that has no place yet is submitted again, ever more slowly. */
#ifndef SLINC_BRIDGE_END_POLICY_H
#define SLINC_BRIDGE_END_POLICY_H

#include "base/arena.h"
#include "base/buf.h"
#include "slurm/object.h"

struct job_end {
    int state;                   /* enum slurm_job_state; the first that the job has counts */
    const char *reason;          /* of the event and the condition */
    const char *words;           /* "was cancelled": what happened, after "job 7" */
    const char *unbound, *bound; /* what it means for the pod; for the reference */
};

const struct job_end *job_end_of(const struct slurm_job *job); /* never NULL */
/* "job 7 was cancelled in Slurm: Slurm's reason". */
const char *job_end_message(struct arena *arena, const struct slurm_job *job);

void job_end_reference(struct buf *out); /* Markdown */

#endif
