/* why_start.h - when the job of a unit that waits would start, and what would let it start sooner:
 * at most five questions to slurmctld, which change nothing. */
#ifndef SLINC_BRIDGE_WHY_START_H
#define SLINC_BRIDGE_WHY_START_H

#include "bridge/unit/unit.h"
#include "slurm/what_if.h"

/* The questions about a unit. False: there is none, because it has a place or cannot be described.
 * change: the only question is about the unit with this change; NULL. */
bool why_start_ask(const struct bridge_world *world, const struct unit *unit,
                   const struct slurm_change *change, struct arena *arena,
                   struct slurm_what_ifs *ret_ifs);

#endif
