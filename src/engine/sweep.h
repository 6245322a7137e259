/* sweep.h - looks at the wanted objects of a cache, some at a time.
 *
 * A look may take long, and there may be many objects. So a sweep takes only a part of the loop's
 * time. */
#ifndef SLINC_ENGINE_SWEEP_H
#define SLINC_ENGINE_SWEEP_H

#include "io/loop.h"
#include "kube/cache.h"

struct sweep {
    struct loop *loop; /* set by the owner, as these four */
    struct kube_cache *cache;
    bool (*wants)(const struct kube_object *object);
    void (*look)(void *context, const struct kube_object *object);
    void *context;

    const struct kube_object **at; /* private from here on; the objects of this sweep, NULL: none */
    size_t count, next;
    bool is_due; /* another one, after this */
    struct loop_timer timer;
};

/* Starts a sweep a second from now, or after the sweep that is under way. */
void sweep_request(struct sweep *sweep);
void sweep_stop(struct sweep *sweep);

#endif
