/* sync_pending.h - the part of a plan by which a job that waits follows its unit. */
#ifndef SLINC_BRIDGE_SYNC_PENDING_H
#define SLINC_BRIDGE_SYNC_PENDING_H

#include "bridge/unit.h"

/* For a unit whose job waits. Updates the job when its pods, their annotations or the nodes that it
 * must not get have changed. An update is sent only when the job's record is fresh. True: the job
 * cannot be updated, and the pods report why. */
bool plan_sync_pending(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                       bool is_fresh);

#endif
