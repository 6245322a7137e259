/* loop_internal.h - what loop.c and loop_real.c share. Private to the two. */
#ifndef SLINC_IO_LOOP_INTERNAL_H
#define SLINC_IO_LOOP_INTERNAL_H

#include "io/loop.h"

struct loop_ops {
    void (*run)(struct loop *loop);
    bool (*step)(struct loop *loop);
    void (*stop)(struct loop *loop);
    void (*first_changed)(struct loop *loop); /* a timer was armed before all others */
    void (*free)(struct loop *loop);
};

struct loop {
    const struct loop_ops *ops;
    struct clock real_clock;
    struct clock *virtual_clock; /* borrowed; NULL on real time */
    struct heap timers;
    bool stopping;
    uint64_t ran; /* callbacks so far */
    int64_t longest_us;
};

void loop_init(struct loop *loop, const struct loop_ops *ops, struct clock *virtual_clock);
void loop_done(struct loop *loop); /* timers still armed become not armed */

struct loop_timer *loop_first_timer(const struct loop *loop); /* NULL when none is armed */

/* Fires what is due now and was armed before the call, up to a loop_stop. False when nothing was.
 */
bool loop_fire_due(struct loop *loop);

/* Around every callback: counts it, and keeps the longest. */
int64_t loop_enter(struct loop *loop);
void loop_leave(struct loop *loop, int64_t entered_us);

#endif
