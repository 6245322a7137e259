/* nodes.h - what to do about one node: Slurm's record follows the Kubernetes node, and marks of
 * each side show on the other.
 *
 * A node has one intent, found anew at every look, and everything follows from it:
 *
 *   LEAVE     not ours: another cluster's, somebody's slurmd, or nothing to do with Slurm
 *   SHARE     a hybrid: kubelet and slurmd on one host. Tainted and mapped by name, cordons shown;
 *             never created, resized or deleted
 *   SERVE     an external node of ours in service: created, marked, kept equal, tainted
 *   CORDON    the same, taking no new work: cordoned or not ready in Kubernetes
 *   RECREATE  Slurm was promised more than the node has, or it is idle and its size, gres or
 *             partitions are others now: drained, and when idle deleted; SERVE makes it anew
 *   RETIRE    its label or its Kubernetes node is gone: drained, and when idle deleted
 */
#ifndef SLINC_BRIDGE_NODES_H
#define SLINC_BRIDGE_NODES_H

#include "bridge/world/world.h"

enum node_intent {
    NODE_LEAVE,
    NODE_SHARE,
    NODE_SERVE,
    NODE_CORDON,
    NODE_RECREATE,
    NODE_RETIRE,
};

/* Whether both systems have the node, ours by its label, and with different sizes. */
bool node_size_differs(const struct bridge_world *world, struct str slurm_name,
                       struct arena *arena);

/* why: one sentence for /debug/state and events; static or in the arena. */
enum node_intent node_intent(const struct bridge_world *world, struct str slurm_name,
                             struct arena *arena, const char **ret_why);

/* The plan for one Slurm node name. */
int nodes_plan(const struct bridge_world *world, struct str slurm_name, struct plan *plan,
               struct err *err);

#endif
