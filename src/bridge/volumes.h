/* volumes.h - the part of a plan that has volumes ready where a pod will run. */
#ifndef SLINC_BRIDGE_VOLUMES_H
#define SLINC_BRIDGE_VOLUMES_H

#include "bridge/assign.h"

/* Claims that wait for their first consumer are told the node, or get a free volume of it. Where
 * one cannot be had the job is given back, unless pods of the unit are there already. Whether a pod
 * must still wait for one of its volumes. */
bool plan_volumes(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                  const struct assignments *assigned);

#endif
