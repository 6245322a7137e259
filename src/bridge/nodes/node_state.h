/* node_state.h - marks, drains and undrains a node's record in Slurm. */
#ifndef SLINC_BRIDGE_NODE_STATE_H
#define SLINC_BRIDGE_NODE_STATE_H

#include "bridge/world/node_mark.h"

/* devices: that the record was made with (device/registered.h); "" leaves them out. */
void node_plan_mark(struct plan *plan, const char *name, const struct slurm_owner *we,
                    const char *kube_name, bool inherited, const char *devices);
/* Each is planned only on a difference. A node that others took out stays as they left it, also
 * their words. True when there is nothing to do. */
bool node_plan_drain(struct plan *plan, const struct slurm_node *slurm, const char *reason);
bool node_plan_undrain(struct plan *plan, const struct slurm_node *slurm);

#endif
