/* node_state.h - the marks on a node's record in Slurm: whose it is, and whether a drain is ours.
 */
#ifndef SLINC_BRIDGE_NODE_STATE_H
#define SLINC_BRIDGE_NODE_STATE_H

#include "bridge/world/world.h"

enum node_owner {
    NODE_UNMARKED,
    NODE_OURS,
    NODE_OTHERS, /* another Kubernetes cluster's */
};

/* The mark is in `extra`: {"v":1,"cluster":"<uid>"}, with "node":"<name in Kubernetes>" where that
 * is another. ret_node and ret_cluster are what it says, "" without one; in the arena. */
enum node_owner node_owner(const struct slurm_node *slurm, struct str cluster, struct arena *arena,
                           const char **ret_node, const char **ret_cluster);
/* An external node that the bridge of another cluster has marked: nothing of ours runs there. */
bool node_is_of_another_cluster(const struct slurm_node *slurm, struct str cluster);
/* An external node of ours that was made for this Kubernetes node, whatever its name in Slurm. */
bool node_is_made_for(const struct slurm_node *slurm, struct str cluster, const char *kube_name);
void node_plan_mark(struct plan *plan, const char *name, struct str cluster, const char *kube_name,
                    bool inherited);
/* Made by a bridge before ours, and still of the size that it gave it: the mark says so. */
bool node_is_inherited(const struct slurm_node *slurm);

bool node_is_external(const struct slurm_node *slurm);
bool node_is_out(const struct slurm_node *slurm);       /* drained, down or failing: no new work */
bool node_is_out_by_us(const struct slurm_node *slurm); /* and we may end that */

/* Each is planned only on a difference. A node that others took out stays as they left it, also
 * their words. True when there is nothing to do. */
bool node_plan_drain(struct plan *plan, const struct slurm_node *slurm, const char *reason);
bool node_plan_undrain(struct plan *plan, const struct slurm_node *slurm);

#endif
