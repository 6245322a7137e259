/* loop.h - the one loop: timers and deferred calls, on real or on virtual time.
 *
 * Everything above this layer waits by a timer or an answer, never by sleeping, so the same program
 * runs on the machine's clock (libevent) or in the simulator, where time jumps to the next timer
 * and a run depends on nothing but its seed. Real time comes in two kinds: loop_real.h is a
 * program's own loop, loop_guest.h lives inside another one. Callbacks run one at a time, from
 * loop_run or loop_step, never from inside the call that armed them. */
#ifndef SLINC_IO_LOOP_H
#define SLINC_IO_LOOP_H

#include "base/clock.h"
#include "base/heap.h"

#include <stdbool.h>
#include <stdint.h>

struct loop;

struct loop *loop_new_virtual(struct clock *virtual_clock); /* the clock is borrowed */
void loop_free(struct loop *loop);                          /* of any kind; takes NULL */

const struct clock *loop_clock(const struct loop *loop);
int64_t loop_now_us(const struct loop *loop); /* monotonic */

/* Runs callbacks until loop_stop. On virtual time it also returns when nothing is left to run. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* One step: runs what is due now, or (virtual only) moves time to the next timer first. False when
 * there was nothing to do. The simulator checks its promises between steps. */
bool loop_step(struct loop *loop);

/* A timer belongs to its owner, who embeds it. Zeroed means not armed. */
struct loop_timer {
    struct heap_node node; /* private */
    int64_t due_us;
    void (*fire)(void *context);
    void *context;
    struct loop *loop; /* set while armed */
};

/* Arms, or moves an armed timer. Timers due at the same time fire in the order they were armed. */
void loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t delay_us,
                      void (*fire)(void *context), void *context);
void loop_timer_stop(struct loop_timer *timer); /* safe when not armed */
bool loop_timer_is_armed(const struct loop_timer *timer);

/* The longest that one callback has run, in microseconds, since the last call; a metric. */
int64_t loop_take_longest_us(struct loop *loop);

#endif
