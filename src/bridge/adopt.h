/* adopt.h - the part of a plan that takes over the job of a bridge before ours. */
#ifndef SLINC_BRIDGE_ADOPT_H
#define SLINC_BRIDGE_ADOPT_H

#include "bridge/unit.h"

/* For a unit with an inherited job: it gets our key, and is the unit's like any other from then on.
 */
int plan_adopt(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
               struct err *err);

#endif
