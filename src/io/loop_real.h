/* loop_real.h - what exists on real time only: file descriptors, signals, and the libevent base for
 * libraries that bring their own events. Asking any of it of a virtual loop is a defect and aborts.
 *
 * Making a real loop also makes the process ignore SIGPIPE: a peer that hangs up is an error to
 * handle where it happens, not a reason to die. */
#ifndef SLINC_IO_LOOP_REAL_H
#define SLINC_IO_LOOP_REAL_H

#include "io/loop.h"

struct event_base;

struct event_base *loop_real_base(struct loop *loop); /* borrowed */

enum loop_fd_events { LOOP_FD_READ = 1, LOOP_FD_WRITE = 2 };

/* Calls back whenever the descriptor is ready, until freed; freeing inside the callback is fine.
 * The descriptor stays the caller's, who frees the watch before closing it. */
struct loop_fd;

struct loop_fd *loop_fd_new(struct loop *loop, int fd, unsigned events,
                            void (*ready)(void *context, unsigned events), void *context);
void loop_fd_set_events(struct loop_fd *watch, unsigned events);
void loop_fd_free(struct loop_fd *watch);

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
