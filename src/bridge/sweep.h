/* sweep.h - looks at all pods without a node, some at a time.
 *
 * A look may be dear: the filter may have to judge all nodes for it. So a sweep takes only a part
 * of the loop's time, however many pods there are. */
#ifndef SLINC_BRIDGE_SWEEP_H
#define SLINC_BRIDGE_SWEEP_H

#include "io/loop.h"
#include "kube/cache.h"

struct sweep {
    struct loop *loop; /* set by the owner, as these three */
    struct kube_cache *pods;
    void (*look)(void *context, const struct kube_object *pod);
    void *context;

    const struct kube_object **at; /* private from here on; the pods of this sweep, NULL: none */
    size_t count, next;
    bool is_due; /* another one, after this */
    struct loop_timer timer;
};

/* Starts a sweep a second from now, or after the sweep that is under way. */
void sweep_request(struct sweep *sweep);
void sweep_stop(struct sweep *sweep);

#endif
