/* prepare.h - the part of a plan that gives pods what they must have before they are bound. */
#ifndef SLINC_BRIDGE_PREPARE_H
#define SLINC_BRIDGE_PREPARE_H

#include "bridge/unit.h"

/* Our finalizer and toleration, on every member that waits or is bound. Whether one lacked them. */
bool plan_prepare(const struct bridge_world *world, const struct unit *unit, struct plan *plan);

#endif
