/* translate.h - from pods to a job description. Pure arithmetic and precedence, lowest first:
 * config, what the workload object says, what the pods need, annotations of the root object. */
#ifndef SLINC_BRIDGE_TRANSLATE_H
#define SLINC_BRIDGE_TRANSLATE_H

#include "bridge/config.h"
#include "bridge/job_ask.h"
#include "bridge/kinds.h"

struct translate_from {
    const struct bridge_config *config;
    const struct kube_pod *const *pods; /* the unit's members, at least one */
    unsigned pod_count;
    const struct kube_object *root; /* whose annotations count: the pod itself, its Job ... */
    const struct kube_job *job;     /* the Job that the pod belongs to; NULL when none */
};

/* -ERR_INVALID: can never work as it stands; the text is for the pod's author. Texts of the ask
 * are borrowed from config, pods and root, or live in the arena. */
int translate(const struct translate_from *from, struct arena *arena, struct job_ask *ret_ask,
              struct err *err);

#endif
