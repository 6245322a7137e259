/* release.h - the parts of a plan for a unit that wants nothing (any more). */
#ifndef SLINC_BRIDGE_RELEASE_H
#define SLINC_BRIDGE_RELEASE_H

#include "bridge/unit/unit.h"

/* Nothing of it runs, or there is no pod: its jobs end, and the pod may go. */
void plan_release(const struct bridge_world *world, const struct unit *unit, struct plan *plan);

/* Removes our finalizer from every member of which no container runs any more. */
void plan_remove_finalizers(const struct bridge_world *world, const struct unit *unit,
                            struct plan *plan);

/* A scheduling gate is closed: nothing is submitted, and what was submitted is given back. */
void plan_hold(const struct bridge_world *world, const struct unit *unit, struct plan *plan);

#endif
