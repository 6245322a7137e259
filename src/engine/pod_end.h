/* pod_end.h - what the end of a pod is for its job in Slurm. Pure. */
#ifndef SLINC_ENGINE_POD_END_H
#define SLINC_ENGINE_POD_END_H

#include "base/buf.h"
#include "kube/kinds.h"

/* In the order in which the end of one member becomes that of its group: the highest. */
enum pod_end_kind {
    POD_END_COMPLETED,
    POD_END_CANCELLED, /* somebody deleted it, and it had not ended */
    POD_END_FAILED,
    POD_END_OUT_OF_MEMORY,
    POD_END_DISRUPTED, /* its node failed, or it was evicted */
};

struct pod_end {
    enum pod_end_kind kind;
    uint32_t wait_status; /* as of waitpid(2), for slurm_job_complete */
    const char *reason;   /* what Slurm has no word for; "" */
};

/* Of a pod of which nothing runs any more. */
struct pod_end pod_end_of(const struct kube_pod *pod);

/* Whether `a` says more of a group than `b`: a higher kind, then a higher exit code. */
bool pod_end_is_worse(const struct pod_end *a, const struct pod_end *b);

void pod_end_reference(struct buf *out); /* the table, for --help */

#endif
