/* submit.h - the part of a plan that submits a job, or says why not yet. */
#ifndef SLINC_BRIDGE_SUBMIT_H
#define SLINC_BRIDGE_SUBMIT_H

#include "bridge/run/exclude.h"
#include "bridge/unit/job_desc.h"
#include "bridge/unit/unit.h"

/* The job description of a unit, for its members that wait and those that are bound. -ERR_INVALID:
 * it cannot be described, and err says why. */
int unit_describe(const struct bridge_world *world, const struct unit *unit, struct arena *arena,
                  struct job_desc *ret_desc, struct err *err);

/* The same for the members that wait only; and their names, as "namespace/name". */
int unit_describe_waiting(const struct bridge_world *world, const struct unit *unit,
                          struct arena *arena, struct job_desc *ret_desc, struct err *err);
unsigned unit_names_waiting(const struct unit *unit, struct arena *arena,
                            const struct str **ret_names);

/* Whether it would be submitted now, if no other pod of its owner were first. */
bool unit_can_be_submitted(const struct bridge_world *world, const struct unit *unit,
                           struct arena *arena);

/* Whether Kubernetes' rules leave enough nodes; if not, the pods report it. */
bool unit_has_nodes(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                    const struct exclusion *exclusion, const struct job_desc *job);

/* For a unit without a job. */
int plan_submit(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                struct err *err);

/* For pods that are bound, and whose job is gone: a new one on just their nodes. */
int plan_resubmit(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                  struct err *err);

/* The Slurm names of the nodes that its bound members use, folded, as far as Slurm has them. */
const char *unit_nodes(const struct bridge_world *world, const struct unit *unit,
                       struct arena *arena);

#endif
