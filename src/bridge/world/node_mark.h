/* node_mark.h - what a node's record in Slurm says: whose it is, and whether a drain is ours. */
#ifndef SLINC_BRIDGE_NODE_MARK_H
#define SLINC_BRIDGE_NODE_MARK_H

#include "bridge/world/world.h"

enum { NODE_MAX_MARK = 16 << 10 };

enum node_owner {
    NODE_UNMARKED,
    NODE_OURS,
    NODE_OTHERS, /* another cluster's, or another release's in this one */
};

/* The mark is in `extra`: {"v":1,"cluster":"<uid>","release":"<of the owner>"}, with "node":"<name
 * in Kubernetes>" where that is another, and "devices" (device/registered.h). A mark without a
 * release is that of an earlier build, and none. ret_node is what it says, the node's name without
 * one; ret_whose says in words whose it is, if it is others'. Both are in the arena. */
enum node_owner node_owner(const struct slurm_node *slurm, const struct slurm_owner *we,
                           struct arena *arena, const char **ret_node, const char **ret_whose);
/* An external node that another bridge has marked: nothing of ours runs there. */
bool node_is_of_others(const struct slurm_node *slurm, const struct slurm_owner *we);
/* An external node of ours that was made for this Kubernetes node, whatever its name in Slurm. */
bool node_is_made_for(const struct slurm_node *slurm, const struct slurm_owner *we,
                      const char *kube_name);
/* Made by a bridge before ours, and still of the size that it gave it: the mark says so. */
bool node_is_inherited(const struct slurm_node *slurm);

bool node_is_external(const struct slurm_node *slurm);
bool node_is_out(const struct slurm_node *slurm);       /* drained, down or failing: no new work */
bool node_is_out_by_us(const struct slurm_node *slurm); /* and we may end that */

/* The other scheduler whose taint a Kubernetes node has: it claimed the node first. "": nobody. */
const char *node_claimed_by(const struct bridge_world *world, const struct kube_node *node);

/* Whether nothing can run there any more: the node is gone from Kubernetes, tainted out-of-service,
 * or NotReady for longer than configured with its Slurm node drained. */
bool node_is_fenced(const struct bridge_world *world, const char *kube_name);

#endif
