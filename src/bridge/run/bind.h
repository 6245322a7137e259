/* bind.h - the part of a plan that puts pods on the nodes that Slurm gave to their job. */
#ifndef SLINC_BRIDGE_BIND_H
#define SLINC_BRIDGE_BIND_H

#include "bridge/run/assign.h"

/* Whether the job has run for so many seconds. Only the whole record of the job tells when it
 * started: while just its nodes are known, the answer is no. */
bool job_has_run_for(const struct bridge_world *world, const struct slurm_job *job,
                     int64_t seconds);
/* Reads the whole record of the unit's job, if it could have run for so long. */
void plan_read_start(const struct bridge_world *world, const struct unit *unit, int64_t seconds,
                     struct plan *plan);

/* Whether other jobs on this node were read before the unit's job: they may have ended since. */
bool node_has_stale_jobs(const struct bridge_world *world, const struct unit *unit,
                         const char *slurm_name);
void plan_read_stale_jobs(const struct bridge_world *world, const struct unit *unit,
                          const char *slurm_name, struct plan *plan);

/* The nodes of the running job, for the members that wait. */
int assign_waiting(const struct bridge_world *world, const struct unit *unit, struct arena *arena,
                   struct assignments *ret_assigned, struct err *err);
/* Whether these are as many as must start together. */
bool assigned_is_enough(const struct unit *unit, const struct assignments *assigned);
/* The Slurm name of an assigned node with a pod whose job Slurm has forgotten; NULL: none. */
const char *node_with_forgotten_pod(const struct bridge_world *world,
                                    const struct assignments *assigned);

/* Members of a group that the running job has no place for, now or soon (assign_lacks_slot_for),
 * are planned by keys of their own, and say themselves what they wait for. Returns the others. */
struct unit plan_left_over(const struct unit *unit, struct plan *plan,
                           const struct assignments *assigned);

/* All bindings are one stage, and so are under way together; of a very large group the rest is
 * bound by the next plan. */
void plan_bind_all(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                   const struct assignments *assigned);

#endif
