/* rebook.h - the part of a plan that keeps a running job for bound pods. */
#ifndef SLINC_BRIDGE_REBOOK_H
#define SLINC_BRIDGE_REBOOK_H

#include "bridge/unit.h"

/* Slurm's highest priority: the pods of the job use its resources already, so every other job comes
 * after it, also one for which Slurm has planned the node. Slurm takes it from operators and
 * leaves it aside from others. */
#define REBOOK_PRIORITY INT64_C(4294967293)

int plan_rebook(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                bool is_prepared, struct err *err);

#endif
