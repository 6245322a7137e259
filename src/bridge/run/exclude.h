/* exclude.h - the nodes that Slurm must not give to a unit. */
#ifndef SLINC_BRIDGE_EXCLUDE_H
#define SLINC_BRIDGE_EXCLUDE_H

#include "bridge/unit/unit.h"

struct exclusion {
    const char *nodes;   /* a folded list of names that Slurm has; "" for none */
    unsigned fit, total; /* nodes that all members may use, or that were chosen for them; of those
                            that are lent to Slurm */
    const char *why;     /* of the others, in words; "" */
};

/* In the arena. partitions: of the job ("a,b"; "": Slurm's own choice); nodes there that this
 * cluster does not have are left out. A node that does not fit one member is left out for all:
 * which member gets which node is decided when Slurm has given the nodes. After nodes were given
 * back on which the members do not fit together, all nodes are left out but a preselection. */
struct exclusion exclusion_of(const struct bridge_world *world, const struct unit *unit,
                              const char *partitions, struct arena *arena);

/* False: it is being deleted, cordoned or not ready. */
bool node_takes_pods(const struct kube_node *node);

/* Why this node does not fit the pod; NULL when it fits. node is NULL when Kubernetes has no node
 * of that Slurm name. reserved: members of its group that are assigned; NULL: none. */
const char *node_misfit(const struct bridge_world *world, struct filter_reserved *reserved,
                        struct arena *arena, const struct kube_pod *pod,
                        const struct kube_node *node, const char *slurm_name);

/* What the record and the slices of a node say of its devices, as a number that is another when
 * they change; never 0. */
uint64_t node_devices_version(const struct bridge_world *world, const char *slurm_name);
/* Whether a node that was given back for its devices is still left out for them. */
bool do_devices_not_do(const struct bridge_world *world, const struct misfit *misfit);

#endif
