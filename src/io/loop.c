/* loop.c - timers in the order they are due, and the loop on virtual time.
 *
 * Holds: a timer fires once per arming, never before it is due, never inside the call that armed
 * it; among equals the one armed first goes first. Nothing of a timer is touched after it fired, so
 * its owner may free it there. A loop_stop between runs ends the next run at once: no stop is lost.
 */
#include "io/loop.h"

#include "base/mem.h"
#include "io/loop_internal.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_TIMERS = 1 << 22 };

static struct loop_timer *timer_of(struct heap_node *node)
{
    return heap_item(node, struct loop_timer, node);
}

static int compare_due(const struct heap_node *a, const struct heap_node *b)
{
    int64_t left = heap_item(a, const struct loop_timer, node)->due_us;
    int64_t right = heap_item(b, const struct loop_timer, node)->due_us;

    return (left > right) - (left < right);
}

void loop_init(struct loop *loop, const struct loop_ops *ops, struct clock *virtual_clock)
{
    *loop = (struct loop){ .ops = ops, .virtual_clock = virtual_clock };
    clock_init_real(&loop->real_clock);
    heap_init(&loop->timers, compare_due, MAX_TIMERS);
}

void loop_done(struct loop *loop)
{
    struct heap_node *node;

    while ((node = heap_pop(&loop->timers)))
        timer_of(node)->loop = NULL;
    heap_done(&loop->timers);
}

void loop_free(struct loop *loop)
{
    if (loop)
        loop->ops->free(loop);
}

const struct clock *loop_clock(const struct loop *loop)
{
    return loop->virtual_clock ? loop->virtual_clock : &loop->real_clock;
}

int64_t loop_now_us(const struct loop *loop)
{
    return clock_now_us(loop_clock(loop));
}

void loop_run(struct loop *loop)
{
    if (!loop->stopping)
        loop->ops->run(loop);
    loop->stopping = false;
}

void loop_stop(struct loop *loop)
{
    loop->stopping = true;
    loop->ops->stop(loop);
}

bool loop_step(struct loop *loop)
{
    return loop->ops->step(loop);
}

/* --- timers --- */

static int64_t due_after(int64_t now_us, int64_t delay_us)
{
    int64_t due;

    if (delay_us < 0)
        delay_us = 0;
    return __builtin_add_overflow(now_us, delay_us, &due) ? INT64_MAX : due;
}

void loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t delay_us,
                      void (*fire)(void *context), void *context)
{
    loop_timer_stop(timer);
    timer->due_us = due_after(loop_now_us(loop), delay_us);
    timer->fire = fire;
    timer->context = context;
    timer->loop = loop;
    if (heap_push(&loop->timers, &timer->node, NULL) < 0) {
        fprintf(stderr, "loop: more than %d timers\n", MAX_TIMERS);
        abort();
    }
    if (heap_first(&loop->timers) == &timer->node)
        loop->ops->first_changed(loop);
}

void loop_timer_stop(struct loop_timer *timer)
{
    if (!loop_timer_is_armed(timer))
        return;
    heap_remove(&timer->loop->timers, &timer->node);
    timer->loop = NULL;
}

bool loop_timer_is_armed(const struct loop_timer *timer)
{
    return heap_has(&timer->node);
}

struct loop_timer *loop_first_timer(const struct loop *loop)
{
    struct heap_node *node = heap_first(&loop->timers);

    return node ? timer_of(node) : NULL;
}

static void fire(struct loop *loop, struct loop_timer *timer)
{
    void (*callback)(void *context) = timer->fire;
    void *context = timer->context;

    loop_timer_stop(timer);

    int64_t entered_us = loop_enter(loop);

    callback(context);
    loop_leave(loop, entered_us);
}

bool loop_fire_due(struct loop *loop)
{
    /* What a callback arms from here on waits for the next call, even when it is due at once:
     * otherwise a timer that arms itself again would keep everything else from running. */
    const uint64_t first_new = loop->timers.next_sequence;
    const int64_t now_us = loop_now_us(loop);
    struct loop_timer *timer;
    bool fired = false;

    while ((timer = loop_first_timer(loop))) {
        if (timer->due_us > now_us || timer->node.sequence >= first_new)
            break;
        fire(loop, timer);
        fired = true;
        if (loop->stopping)
            break;
    }
    return fired;
}

/* --- how long callbacks take --- */

int64_t loop_enter(struct loop *loop)
{
    loop->ran++;
    return loop_now_us(loop);
}

void loop_leave(struct loop *loop, int64_t entered_us)
{
    int64_t took_us = loop_now_us(loop) - entered_us;

    if (took_us > loop->longest_us)
        loop->longest_us = took_us;
}

int64_t loop_take_longest_us(struct loop *loop)
{
    int64_t longest_us = loop->longest_us;

    loop->longest_us = 0;
    return longest_us;
}

/* --- virtual time --- */

static bool virtual_step(struct loop *loop)
{
    struct loop_timer *next = loop_first_timer(loop);

    if (!next)
        return false;
    if (next->due_us > loop->virtual_clock->now_us)
        clock_advance_to_us(loop->virtual_clock, next->due_us);
    return loop_fire_due(loop);
}

static void virtual_run(struct loop *loop)
{
    while (!loop->stopping && virtual_step(loop))
        ;
}

static void virtual_nothing(struct loop *loop) {}

static void virtual_free(struct loop *loop)
{
    loop_done(loop);
    mem_free(loop);
}

struct loop *loop_new_virtual(struct clock *virtual_clock)
{
    static const struct loop_ops ops = {
        .run = virtual_run,
        .step = virtual_step,
        .stop = virtual_nothing,
        .first_changed = virtual_nothing,
        .free = virtual_free,
    };
    struct loop *loop = mem_alloc(sizeof(*loop));

    loop_init(loop, &ops, virtual_clock);
    return loop;
}
