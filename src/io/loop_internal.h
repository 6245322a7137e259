/* loop_internal.h - what the kinds of loops share. Private to loop*.c. */
#ifndef SLINC_IO_LOOP_INTERNAL_H
#define SLINC_IO_LOOP_INTERNAL_H

#include "io/loop_fd.h"

struct loop_ops {
    void (*run)(struct loop *loop);
    bool (*step)(struct loop *loop);
    void (*stop)(struct loop *loop);
    void (*first_changed)(struct loop *loop); /* a timer was armed before all others */
    void (*free)(struct loop *loop);

    /* NULL where there are no descriptors. */
    void (*fd_changed)(struct loop_fd *watch, unsigned before); /* watch->events are others now */
    void (*fd_gone)(struct loop_fd *watch);                     /* about to be freed */
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

struct loop_fd {
    struct loop *loop;
    int fd;
    unsigned events;
    void (*ready)(void *context, unsigned events);
    void *context;
    void *kept; /* by the kind of loop */
};

void loop_init(struct loop *loop, const struct loop_ops *ops, struct clock *virtual_clock);
void loop_done(struct loop *loop); /* timers still armed become not armed */

struct loop_timer *loop_first_timer(const struct loop *loop); /* NULL when none is armed */

/* Fires what is due now and was armed before the call, up to a loop_stop. False when nothing was.
 */
bool loop_fire_due(struct loop *loop);

void loop_fd_ready(struct loop_fd *watch, unsigned events); /* calls back */

/* Around every callback: counts it, and keeps the longest. */
int64_t loop_enter(struct loop *loop);
void loop_leave(struct loop *loop, int64_t entered_us);

#endif
