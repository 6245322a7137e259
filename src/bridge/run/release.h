/* release.h - the parts of a plan for pods that are over and for a unit that wants no job. */
#ifndef SLINC_BRIDGE_RELEASE_H
#define SLINC_BRIDGE_RELEASE_H

#include "bridge/unit/unit.h"

/* Ends the jobs of a unit of which nothing runs: by what became of its pods where there is an agent
 * (unit_end.h), else by cancelling them. */
void plan_end_jobs(const struct bridge_world *world, const struct unit *unit, struct plan *plan);

/* Removes our finalizer from every member of which no container runs any more. */
void plan_remove_finalizers(const struct bridge_world *world, const struct unit *unit,
                            struct plan *plan);

/* prepare.c: our finalizer and toleration, on every member that waits or is bound. */
bool unit_is_prepared(const struct bridge_world *world, const struct unit *unit);
void plan_prepare(const struct bridge_world *world, const struct unit *unit, struct plan *plan);

/* adopt.c: the job of a bridge before ours gets the unit's key, and is the unit's like any other
 * from then on. */
int plan_adopt(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
               struct err *err);

#endif
