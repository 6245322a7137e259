/* sync_pending.h - the part of a plan by which a job that waits follows its unit. */
#ifndef SLINC_BRIDGE_SYNC_PENDING_H
#define SLINC_BRIDGE_SYNC_PENDING_H

#include "bridge/unit.h"

/* For a unit whose job waits: what is submitted by its pods and their annotations, or the nodes
 * that it must not get, are others now. Its record must be fresh for anything to be sent. True: it
 * cannot follow, and the pods are told why. */
bool plan_sync_pending(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                       bool is_fresh);

#endif
