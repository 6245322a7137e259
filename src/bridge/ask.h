/* ask.h - the part of a plan that asks Slurm for a job, or says why not yet. */
#ifndef SLINC_BRIDGE_ASK_H
#define SLINC_BRIDGE_ASK_H

#include "bridge/unit.h"

/* For a pod without a job. */
int plan_ask(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
             struct err *err);

/* For a pod whose job waits: the nodes that it must not get are others now. */
void plan_exclude(const struct bridge_world *world, const struct unit *unit, struct plan *plan);

/* For a pod that is bound, and whose job is gone: a new one on just that node. */
int plan_ask_again(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                   struct err *err);

#endif
