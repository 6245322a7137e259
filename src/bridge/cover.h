/* cover.h - the part of a plan that sees to it that a bound pod has a running job under it. */
#ifndef SLINC_BRIDGE_COVER_H
#define SLINC_BRIDGE_COVER_H

#include "bridge/unit.h"

int plan_cover(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
               struct err *err);

#endif
