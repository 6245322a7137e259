/* loop_fd.c - what all kinds of loops have in common about descriptors.
 *
 * Holds: the kind of loop learns each time which events are waited for, also when they are the same
 * as before (libcurl may have opened the descriptor anew), and of the end. */
#include "io/loop_fd.h"

#include "base/mem.h"
#include "io/loop_internal.h"

#include <stdio.h>
#include <stdlib.h>

struct loop_fd *loop_fd_new(struct loop *loop, int fd, unsigned events,
                            void (*ready)(void *context, unsigned events), void *context)
{
    struct loop_fd *watch;

    if (!loop->ops->fd_changed) {
        fprintf(stderr, "loop: descriptors exist on real time only\n");
        abort();
    }
    watch = mem_alloc(sizeof(*watch));
    *watch = (struct loop_fd){ .loop = loop, .fd = fd, .ready = ready, .context = context };
    loop_fd_set_events(watch, events);
    return watch;
}

void loop_fd_set_events(struct loop_fd *watch, unsigned events)
{
    const unsigned before = watch->events;

    watch->events = events & (LOOP_FD_READ | LOOP_FD_WRITE);
    watch->loop->ops->fd_changed(watch, before);
}

void loop_fd_free(struct loop_fd *watch)
{
    if (!watch)
        return;
    watch->loop->ops->fd_gone(watch);
    mem_free(watch);
}

void loop_fd_ready(struct loop_fd *watch, unsigned events)
{
    struct loop *loop = watch->loop; /* the callback may free the watch */
    int64_t entered_us = loop_enter(loop);

    watch->ready(watch->context, events);
    loop_leave(loop, entered_us);
}
