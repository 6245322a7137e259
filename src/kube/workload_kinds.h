/* workload_kinds.h - the owners and the groups of pods, as small as the bridge and its webhook read
 * them. */
#ifndef SLINC_KUBE_WORKLOAD_KINDS_H
#define SLINC_KUBE_WORKLOAD_KINDS_H

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

/* An object that says how many pods belong together: a PodGroup of either API, a LeaderWorkerSet, a
 * JobSet. A Workload says it only by its annotations. */
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

/* Owners of pods: only their metadata is read, except for Jobs. */
extern const struct kube_kind kube_job_kind, kube_replicaset_kind, kube_statefulset_kind,
    kube_daemonset_kind;
/* struct kube_group. Not every API server has these. */
extern const struct kube_kind kube_podgroup_kind, kube_workload_kind, kube_coscheduling_kind,
    kube_lws_kind, kube_jobset_kind;

static inline const struct kube_job *kube_job_of(const struct kube_object *object)
{
    return (const struct kube_job *)(const void *)object;
}

static inline const struct kube_group *kube_group_of(const struct kube_object *object)
{
    return (const struct kube_group *)(const void *)object;
}

#endif
