/* cover.h - the part of a plan that sees to it that bound pods have a running job under them. */
#ifndef SLINC_BRIDGE_COVER_H
#define SLINC_BRIDGE_COVER_H

#include "bridge/unit.h"

int plan_cover(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
               bool is_prepared, struct err *err);

#endif
