/* kinds.h - the kinds besides pods and nodes that the bridge watches, as small as it uses them. */
#ifndef SLINC_BRIDGE_KINDS_H
#define SLINC_BRIDGE_KINDS_H

#include "kube/kinds.h"

struct kube_job { /* batch/v1 Job */
    struct kube_object object;
    int64_t active_deadline;   /* seconds; 0 = none */
    int64_t cpu_milli, memory; /* limits of spec.template.spec.resources (pod level) */
    bool has_pod_resources, suspended;
};

/* Owners of which only the metadata is read. */
extern const struct kube_kind bridge_job_kind, bridge_replicaset_kind, bridge_statefulset_kind;

static inline const struct kube_job *kube_job_of(const struct kube_object *object)
{
    return (const struct kube_job *)(const void *)object;
}

#endif
