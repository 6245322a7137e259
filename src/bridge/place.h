/* place.h - what to do next for one unit: a pod, or pods that start together. Read place.c first.
 */
#ifndef SLINC_BRIDGE_PLACE_H
#define SLINC_BRIDGE_PLACE_H

#include "bridge/world.h"

/* key: "namespace/uid". */
int place_plan(const struct bridge_world *world, struct str key, struct plan *plan,
               struct err *err);

#endif
