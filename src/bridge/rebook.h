/* rebook.h - the part of a plan that sees to it that bound pods have a running job under them. */
#ifndef SLINC_BRIDGE_REBOOK_H
#define SLINC_BRIDGE_REBOOK_H

#include "bridge/unit.h"

/* Slurm's highest: what the job asks for is in use by its pods, so whoever waits for it comes after
 * them, also one for whom Slurm has planned the node already. Slurm takes it from operators and
 * leaves it aside from others. */
#define REBOOK_PRIORITY INT64_C(4294967293)

int plan_rebook(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                bool is_prepared, struct err *err);

#endif
