/* kinds.h - the kinds besides pods and nodes that the bridge watches, as small as it uses them. */
#ifndef SLINC_BRIDGE_KINDS_H
#define SLINC_BRIDGE_KINDS_H

#include "kube/kinds.h"

struct kube_job { /* batch/v1 Job */
    struct kube_object object;
    int64_t active_deadline;          /* seconds; 0 = none */
    int64_t cpu_milli, memory;        /* limits of spec.template.spec.resources (pod level) */
    int64_t parallelism, completions; /* completions 0: a queue of work, until one succeeds */
    int64_t succeeded;
};

struct kube_replicated { /* the Jobs of a JobSet that are made from one template */
    const char *name;
    int64_t pods;     /* of all of them */
    int64_t finished; /* of these: the pods of Jobs that have succeeded */
    bool comes_later; /* when others are ready or complete */
};

/* What says how many pods belong together: a PodGroup of either API, a LeaderWorkerSet, a JobSet.
 * Of a Workload only the annotations count. */
struct kube_group {
    struct kube_object object;
    int64_t size;              /* pods without which it does not start */
    int64_t cpu_milli, memory; /* what these need in all, where it says so */
    const char *phase;         /* of scheduling.x-k8s.io */
    const char *workload;      /* the Workload that a PodGroup was made from; "" */
    bool leader_first;         /* of a LeaderWorkerSet: the others come when the first runs */
    bool is_scheduled;         /* the condition PodGroupScheduled is True */
    const struct kube_replicated *replicated; /* of a JobSet; they add up to its size */
    unsigned replicated_count;
};

/* Owners: of all but Jobs only the metadata is read. */
extern const struct kube_kind bridge_job_kind, bridge_replicaset_kind, bridge_statefulset_kind,
    bridge_daemonset_kind;
/* struct kube_group. Not every API server has these. */
extern const struct kube_kind bridge_podgroup_kind, bridge_workload_kind, bridge_coscheduling_kind,
    bridge_lws_kind, bridge_jobset_kind;

static inline const struct kube_job *kube_job_of(const struct kube_object *object)
{
    return (const struct kube_job *)(const void *)object;
}

static inline const struct kube_group *kube_group_of(const struct kube_object *object)
{
    return (const struct kube_group *)(const void *)object;
}

#endif
