/* bind.h - the part of a plan that puts a pod on the node that Slurm gave to its job. */
#ifndef SLINC_BRIDGE_BIND_H
#define SLINC_BRIDGE_BIND_H

#include "bridge/unit.h"

/* For a pod that waits and a job that runs. */
int plan_place(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
               struct err *err);

/* What a pod must have before it is bound: our finalizer, and a toleration of the taint of our
 * nodes. Admission has set them where the webhook is on. */
void plan_prepare(const struct bridge_world *world, const struct unit *unit, struct plan *plan);

/* Why this node will not do for a pod, in words; NULL when it will. node is NULL when Kubernetes
 * has none of that name in Slurm. */
const char *node_misfit(struct arena *arena, const struct kube_node *node, const char *slurm_name);

/* Whether a list of hosts has this one in it. */
bool hosts_have(struct arena *arena, const char *hosts, const char *name);

#endif
