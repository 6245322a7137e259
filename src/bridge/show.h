/* show.h - the part of a plan that tells a group's own object what became of it. */
#ifndef SLINC_BRIDGE_SHOW_H
#define SLINC_BRIDGE_SHOW_H

#include "bridge/unit.h"

/* A built-in PodGroup is called scheduled when all of its pods are. Once, and never taken back. */
void plan_show_group(const struct bridge_world *world, const struct unit *unit, struct plan *plan);

#endif
