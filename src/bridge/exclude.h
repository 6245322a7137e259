/* exclude.h - the nodes that Slurm must not give to a unit. */
#ifndef SLINC_BRIDGE_EXCLUDE_H
#define SLINC_BRIDGE_EXCLUDE_H

#include "bridge/unit.h"

struct exclusion {
    const char *nodes;   /* a folded list of names that Slurm has; "" for none */
    unsigned fit, total; /* nodes that all members may use, or that were chosen for them; of those
                            that are lent to Slurm */
    const char *why;     /* of the others, in words; "" */
};

/* In the arena. partitions: of the job ("a,b"; "": Slurm's own choice); nodes there that this
 * cluster does not have are left out. A node that will not do for one member is left out for all:
 * which of them gets which node is decided when Slurm has given them. Once nodes were given back on
 * which its pods do not go together, all are left out but a choice on which they do. */
struct exclusion exclusion_of(const struct bridge_world *world, const struct unit *unit,
                              const char *partitions, struct arena *arena);

/* Why this node will not do for the pod at hand, in words; NULL when it will. node is NULL when
 * Kubernetes has none of that name in Slurm. */
const char *node_misfit(const struct bridge_world *world, struct arena *arena,
                        const struct kube_pod *pod, const struct kube_node *node,
                        const char *slurm_name);

#endif
