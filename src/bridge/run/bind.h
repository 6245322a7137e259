/* bind.h - the part of a plan that puts pods on the nodes that Slurm gave to their job. */
#ifndef SLINC_BRIDGE_BIND_H
#define SLINC_BRIDGE_BIND_H

#include "bridge/unit/unit.h"

/* For members that wait and a job that runs. is_prepared: plan_prepare had nothing to do (place.h).
 */
int plan_place(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
               bool is_prepared, struct err *err);

/* Whether the unit's job has run for so many seconds. Only the whole record of the job tells when
 * it started: where just its nodes are known, a read of the record is planned. */
bool job_ran_for(const struct bridge_world *world, const struct unit *unit, int64_t seconds,
                 struct plan *plan);

#endif
