/* submit_queue.h - pods that exclude each other are submitted one at a time per owner. */
#ifndef SLINC_BRIDGE_SUBMIT_QUEUE_H
#define SLINC_BRIDGE_SUBMIT_QUEUE_H

#include "bridge/unit/unit.h"

/* Emits the queue of a pod that waits and has a host port, anti-affinity or spread constraints; for
 * the index `waiters_by_owner` of the world. */
void submit_queue_emit(const struct kube_object *object, kube_index_emit emit, void *context);

/* Whether the unit may be submitted now. False: another unit of its queue is submitted first; the
 * pods are told, and the plan looks again. */
bool submit_queue_is_free(const struct bridge_world *world, const struct unit *unit,
                          struct plan *plan);

#endif
