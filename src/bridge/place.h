/* place.h - what to do next for one unit: a pod, or pods that start together; and the parts of that
 * plan. Read place.c first. */
#ifndef SLINC_BRIDGE_PLACE_H
#define SLINC_BRIDGE_PLACE_H

#include "bridge/run/assign.h"
#include "bridge/unit/unit.h"

/* key: "namespace/uid". */
int place_plan(const struct bridge_world *world, struct str key, struct plan *plan,
               struct err *err);

/* adopt.c: the job, which is inherited or has an old key, gets the unit's key, and is the unit's
 * like any other from then on. */
int plan_adopt(const struct bridge_world *world, const struct unit *unit,
               const struct slurm_job *job, struct plan *plan, struct err *err);

/* prepare.c: our finalizer and toleration, on every member that waits or is bound. Whether one
 * lacked them. */
bool plan_prepare(const struct bridge_world *world, const struct unit *unit, struct plan *plan);

/* sync_pending.c: for a unit whose job waits. Updates the job when its pods, their annotations or
 * the nodes that it must not get have changed. An update is sent only when the job's record is
 * fresh. True: the job cannot be updated, and the pods report why. */
bool plan_sync_pending(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                       bool is_fresh);

/* volumes.c: claims that wait for their first consumer are told the node, or get a free volume of
 * it. Where one cannot be had the job is given back, unless pods of the unit are there already.
 * Whether a pod must still wait for one of its volumes. */
bool plan_volumes(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                  const struct assignments *assigned);

/* rebook.c: keeps a running job for bound pods. REBOOK_PRIORITY is Slurm's highest: the pods use
 * the resources already, so every other job comes after it, also one for which Slurm has planned
 * the node. Slurm takes it from operators and leaves it aside from others. */
#define REBOOK_PRIORITY INT64_C(4294967293)
int plan_rebook(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                bool is_prepared, struct err *err);

/* report.c: a built-in PodGroup is called scheduled when all of its pods are. Once, and never taken
 * back. */
void plan_show_group(const struct bridge_world *world, const struct unit *unit, struct plan *plan);

#endif
