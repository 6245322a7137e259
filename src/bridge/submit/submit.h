/* submit.h - what is known before a job is submitted, and the action that submits it. */
#ifndef SLINC_BRIDGE_SUBMIT_H
#define SLINC_BRIDGE_SUBMIT_H

#include "bridge/run/exclude.h"
#include "bridge/unit/describe.h"

/* The phase in which the PodGroup of the unit ended; NULL: it has not. */
const char *group_end(const struct unit *unit);

/* Controllers create pods one by one, so pods that come within a moment belong to one submit. How
 * long the unit waits for more of them; 0: it does not. */
int64_t group_grows_us(const struct bridge_world *world, const struct unit *unit);

/* Jobs that have no pods, whoever has them, keep a tenth of what slurmctld holds (MaxJobCount). */
bool submit_leaves_a_tenth(const struct bridge_world *world);
/* Whether the pods of the unit's namespace have as many jobs as the config lets them. */
bool submit_is_over_cap(const struct bridge_world *world, const struct unit *unit);

/* Whether Kubernetes' rules leave enough nodes for the job. */
bool exclusion_leaves_enough(const struct exclusion *exclusion, const struct job_desc *desc);
/* "1/3 nodes are available: ..." */
const char *exclusion_text(const struct exclusion *exclusion, const struct job_desc *desc,
                           struct arena *arena);

/* Slurm says only that it refused a job. "; pod a needs 9 devices of ..." where no node has as many
 * devices as a pod needs; else "". */
const char *too_few_devices(const struct bridge_world *world, const struct unit *unit,
                            struct arena *arena);

/* The description of a job for pods that run already: on just their nodes, before all others, also
 * if the owner with the annotations is gone. nodes: unit_nodes. */
int describe_rebooking(const struct bridge_world *world, const struct unit *unit, const char *nodes,
                       struct arena *arena, struct job_desc *ret_desc, struct err *err);

/* Submits the job of the members that wait, or of those that are bound. */
void plan_submit(const struct unit *unit, struct plan *plan, const struct job_desc *desc,
                 enum described described, bool at_once);

#endif
