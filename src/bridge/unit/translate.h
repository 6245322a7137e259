/* translate.h - from pods to a job description. Pure arithmetic and precedence, lowest first:
 * config, what the workload object says, what the pods need, annotations of the owner.
 *
 * What an annotation may say is said by `trustAnnotations` (rights.h). */
#ifndef SLINC_BRIDGE_TRANSLATE_H
#define SLINC_BRIDGE_TRANSLATE_H

#include "bridge/unit/rights.h"
#include "kube/workload_kinds.h"
#include "slurm/cache.h"

struct translate_from {
    const struct bridge_config *config;
    const struct slurm_cache *slurm_nodes; /* what features there are; NULL: nothing is preferred */
    struct rights_site site;
    struct str creator;                        /* of the pods; "": not known */
    const struct kube_cache *classes, *claims; /* of devices (device/needs.h); may be NULL */
    const struct kube_pod *const *pods;        /* the unit's members, at least one */
    unsigned pod_count;
    const struct kube_object *owner; /* whose annotations count: the pod itself, its Job ... */
    const struct kube_job *job;      /* the Job that the pods belong to; NULL when none */
    const struct kube_object *const *more; /* their annotations are laid over, in this order */
    unsigned more_count;
    const char *name; /* of the job; NULL: the pod's, or the owner's when there are several */
    bool is_gang;     /* the pods start together; more than one always do */
    bool is_bound;    /* on nodes that they have: how many they wanted at least counts no more */
    int64_t min_pods; /* of a gang: with so many it can start; 0: with all */
    /* What the gang's object says that min_pods of them need in all; 0: nothing. It counts where
     * the pods say nothing. */
    int64_t group_cpu_milli, group_memory;
};

/* -ERR_INVALID: can never work as it stands; the text is for the pod's author. Texts of the job
 * description are borrowed from config, pods and owner, or live in the arena. */
int translate(const struct translate_from *from, struct arena *arena, struct job_desc *ret_desc,
              struct err *err);

#endif
