/* loop_fd.h - file descriptors on a loop. On virtual time there are none: asking for one is a
 * defect and aborts. */
#ifndef SLINC_IO_LOOP_FD_H
#define SLINC_IO_LOOP_FD_H

#include "io/loop.h"

enum loop_fd_events { LOOP_FD_READ = 1, LOOP_FD_WRITE = 2 };

/* Calls back whenever the descriptor is ready, until freed; freeing inside the callback is fine.
 * The descriptor stays the caller's, who frees the watch before closing it. */
struct loop_fd;

struct loop_fd *loop_fd_new(struct loop *loop, int fd, unsigned events,
                            void (*ready)(void *context, unsigned events), void *context);
void loop_fd_set_events(struct loop_fd *watch, unsigned events);
void loop_fd_free(struct loop_fd *watch); /* takes NULL */

#endif
