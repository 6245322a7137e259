/* loop_real.h - the loop of a program of our own, on libevent: with descriptors (loop_fd.h),
 * signals, and the libevent base for libraries that bring their own events. Asking any of it of
 * another kind of loop is a defect and aborts.
 *
 * Making a real loop also makes the process ignore SIGPIPE: a peer that hangs up is an error to
 * handle where it happens, not a reason to die. */
#ifndef SLINC_IO_LOOP_REAL_H
#define SLINC_IO_LOOP_REAL_H

#include "base/err.h"
#include "io/loop.h"
#include "io/loop_fd.h"

struct event_base;

int loop_new_real(struct loop **ret_loop, struct err *err);

struct event_base *loop_real_base(struct loop *loop); /* borrowed */

/* Calls back from the loop, not from the signal handler. One loop per process takes signals. */
struct loop_signal;

struct loop_signal *loop_signal_new(struct loop *loop, int number, void (*caught)(void *context),
                                    void *context);
void loop_signal_free(struct loop_signal *signal);

/* For callbacks that reach us through another library: between the two calls the time counts for
 * loop_take_longest_us. */
int64_t loop_real_enter(struct loop *loop);
void loop_real_leave(struct loop *loop, int64_t entered_us);

#endif
