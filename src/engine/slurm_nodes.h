/* slurm_nodes.h - creates, updates and deletes nodes of Slurm, many in one call.
 *
 * Creations of nodes that are alike, equal updates and deletions are gathered and sent as one call.
 * An action is done when the node cache is as new as its answer. Some answers tell of one node of
 * many: the cache then tells which, and each is planned again. */
#ifndef SLINC_ENGINE_SLURM_NODES_H
#define SLINC_ENGINE_SLURM_NODES_H

#include "engine/slurm_action.h"
#include "slurm/calls.h"

extern const struct action_type action_slurm_node;
extern const struct slurm_call_type slurm_create_node, slurm_update_node, slurm_delete_node;

/* Each copies what it is given into the plan's arena. */
struct action *plan_slurm_create_node(struct plan *plan, const struct slurm_node_ask *desc);
/* fields: JSON of a node update: state, reason, features, extra ... */
struct action *plan_slurm_update_node(struct plan *plan, const char *name,
                                      const struct json_mut *fields);
/* unless: may be NULL. */
struct action *plan_slurm_delete_node(struct plan *plan, const char *name,
                                      const struct action_unless *unless);

#endif
