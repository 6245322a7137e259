/* loop_guest.h - a loop that lives inside somebody else's: inside that of any toolkit or language,
 * or of a program's own epoll.
 *
 * All it waits for, timers too, is behind one descriptor. The host waits until that is readable,
 * whatever else it waits for, and then takes a step:
 *
 *     struct epoll_event event = { .events = EPOLLIN, .data.ptr = loop };
 *     epoll_ctl(host, EPOLL_CTL_ADD, loop_guest_fd(loop), &event);
 *     ...
 *     loop_step(loop);
 *
 * Without a host it runs by itself, with loop_run. It leaves the process alone: no signals, no
 * threads. Descriptors work (loop_fd.h); signals and the HTTP server need loop_real.h. */
#ifndef SLINC_IO_LOOP_GUEST_H
#define SLINC_IO_LOOP_GUEST_H

#include "base/err.h"
#include "io/loop.h"

int loop_new_guest(struct loop **ret_loop, struct err *err);

/* To be waited for, never to be read or closed. Another kind of loop is a defect and aborts. */
int loop_guest_fd(struct loop *loop);

#endif
