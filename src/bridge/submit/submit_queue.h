/* submit_queue.h - pods that exclude each other are submitted one at a time per owner. */
#ifndef SLINC_BRIDGE_SUBMIT_QUEUE_H
#define SLINC_BRIDGE_SUBMIT_QUEUE_H

#include "bridge/unit/unit.h"

/* Registers the index `waiters_by_owner`: the queue of each pod that waits and has a host port,
 * anti-affinity or spread constraints. Before any object is in the caches. */
void submit_queue_add_index(struct bridge_world *world);

/* Whether a unit would be submitted now, if no other one were first. */
typedef bool (*submit_queue_question)(const struct bridge_world *world, const struct unit *unit,
                                      struct arena *arena);

/* After how long the unit should ask again, because another unit of its queue is submitted first;
 * 0: it may be submitted now. */
int64_t submit_queue_wait_us(const struct bridge_world *world, const struct unit *unit,
                             submit_queue_question is_submittable, size_t arena_limit);

#endif
