/* conditions.h - conditions on pods and on the object of a group. */
#ifndef SLINC_BRIDGE_CONDITIONS_H
#define SLINC_BRIDGE_CONDITIONS_H

#include "bridge/unit/unit.h"

struct condition_update {
    const char *type, *status, *reason, *message;
};

/* Whether the pod has this condition, in these words. */
bool condition_is_said(const struct kube_pod *pod, const struct condition_update *update);

/* All in one write. version: only if the pod still has it; NULL: whatever it has. */
struct conditions {
    const char *version;
    const struct condition_update *updates;
    size_t count;
    const char *job; /* what the pod's label says from now on; "": nothing; NULL: what it says */
};
void plan_conditions(const struct bridge_world *world, const struct kube_pod *pod,
                     struct plan *plan, const struct conditions *conditions);

/* The pod no longer waits: its condition turns False, if it ever had one. */
void plan_placed(const struct bridge_world *world, const struct kube_pod *pod, struct plan *plan,
                 const struct slurm_job *job, const char *node);

/* A built-in PodGroup is called scheduled when all of its pods are. Once, and never taken back. */
void plan_show_group(const struct bridge_world *world, const struct unit *unit, struct plan *plan);

#endif
