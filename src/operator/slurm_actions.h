/* slurm_actions.h - calls to a Slurm cluster as actions of a plan.
 *
 * A cluster is named by its Controller. Each Controller has its own calls and its own pause after
 * one that failed, so a slow Slurm delays no other. Every call may be repeated: a lost answer costs
 * one more call. A node or reservation that Slurm does not have counts as done. */
#ifndef SLINC_OPERATOR_SLURM_ACTIONS_H
#define SLINC_OPERATOR_SLURM_ACTIONS_H

#include "operator/world.h"

extern const struct action_type action_slurm_cluster; /* its service is a struct slurm_clusters */

/* slurmctld reads its files again. version: of the files; it becomes a fact when that is done. */
void plan_slurm_reconfigure(struct plan *plan, const struct kube_object *controller,
                            const char *version);

/* Changes fields of a node: {"state":["DRAIN"],"reason":"..."}. */
void plan_slurm_node_update(struct plan *plan, const struct kube_object *controller,
                            const char *node, const struct json_mut *fields);

/* Deletes the record of a node. */
void plan_slurm_node_delete(struct plan *plan, const struct kube_object *controller,
                            const char *node);

/* Reads the node, and succeeds only if it is drained and runs no job, or Slurm has no such node. A
 * restart of slurmctld that is not settled yet counts as "not drained". Deletions of workers stand
 * in the stage behind it. */
void plan_slurm_node_is_drained(struct plan *plan, const struct kube_object *controller,
                                const char *node);

/* Creates or changes the reservation that the fields name. */
void plan_slurm_reservation_put(struct plan *plan, const struct kube_object *controller,
                                const char *name, const struct json_mut *fields);
void plan_slurm_reservation_delete(struct plan *plan, const struct kube_object *controller,
                                   const char *name);

#endif
