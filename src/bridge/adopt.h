/* adopt.h - the part of a plan that takes over the job of a bridge before ours, or one with an old
 * key. */
#ifndef SLINC_BRIDGE_ADOPT_H
#define SLINC_BRIDGE_ADOPT_H

#include "bridge/unit.h"

/* The job, which is inherited or has an old key, gets the unit's key, and is the unit's like any
 * other from then on. */
int plan_adopt(const struct bridge_world *world, const struct unit *unit,
               const struct slurm_job *job, struct plan *plan, struct err *err);

#endif
