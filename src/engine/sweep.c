/* sweep.c - looks at the wanted objects of a cache, some at a time.
 *
 * Holds: an object that is wanted when the sweep begins is looked at once, unless it is gone by
 * then; after every slice the loop is left to others for several times as long. */
#include "engine/sweep.h"

#include "base/mem.h"

enum {
    FIRST_US = 1000000, /* from a change to the sweep that sees it, and others with it */
    SLICE_US = 10000,
    PAUSES = 9, /* times what the slice took */
};

static void begin(struct sweep *sweep)
{
    struct kube_cache_walk walk = kube_cache_walk(sweep->cache);
    const struct kube_object *object;

    sweep->at = mem_alloc_array(kube_cache_count(sweep->cache) + 1, sizeof(*sweep->at));
    sweep->count = sweep->next = 0;
    sweep->is_due = false;
    while ((object = kube_cache_next(&walk)) != NULL)
        if (sweep->wants(object))
            sweep->at[sweep->count++] = kube_object_ref(object);
}

static void end(struct sweep *sweep)
{
    while (sweep->next < sweep->count)
        kube_object_unref(sweep->at[sweep->next++]);
    mem_free(sweep->at);
    sweep->at = NULL;
}

/* As the object is now: it may have changed since the sweep began. */
static void look_at_next(struct sweep *sweep)
{
    const struct kube_object *then = sweep->at[sweep->next++];
    const struct kube_object *object = kube_cache_get(sweep->cache, then->ns, then->name);

    if (object)
        sweep->look(sweep->context, object);
    kube_object_unref(then);
}

static void run(void *context)
{
    struct sweep *sweep = context;
    int64_t from_us = loop_now_us(sweep->loop), pause_us;

    if (!sweep->at)
        begin(sweep);
    while (sweep->next < sweep->count && loop_now_us(sweep->loop) - from_us < SLICE_US)
        look_at_next(sweep);
    pause_us = (loop_now_us(sweep->loop) - from_us) * PAUSES;
    if (sweep->next == sweep->count) {
        end(sweep);
        if (!sweep->is_due)
            return;
        pause_us = pause_us > FIRST_US ? pause_us : FIRST_US;
    }
    loop_timer_start(sweep->loop, &sweep->timer, pause_us, run, sweep);
}

void sweep_request(struct sweep *sweep)
{
    sweep->is_due = true;
    if (!sweep->at && !loop_timer_is_armed(&sweep->timer))
        loop_timer_start(sweep->loop, &sweep->timer, FIRST_US, run, sweep);
}

void sweep_stop(struct sweep *sweep)
{
    loop_timer_stop(&sweep->timer);
    end(sweep);
}
