/* loop_guest.c - the loop on the machine's clock, on one epoll set that another loop can wait for.
 *
 * The set holds the descriptors and one timerfd, the alarm. Holds: while a timer is armed the alarm
 * is set, no later than the first is due; nothing of a watch is touched after it was freed, also
 * when its event had already been fetched. */
#include "io/loop_guest.h"

#include "base/mem.h"
#include "io/loop_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { US_PER_SECOND = 1000000, NS_PER_US = 1000, MAX_READY = 64, FOR_EVER = -1 };

struct loop_guest {
    struct loop loop; /* first: a struct loop * is one of these */
    int epoll_fd;
    int alarm_fd;     /* in the set with a NULL pointer */
    int64_t alarm_us; /* when the alarm goes off; INT64_MAX when it is not set */

    struct epoll_event ready[MAX_READY]; /* as fetched; those in [next, count) are still to come */
    int next, count;
};

static const struct loop_ops guest_ops;

static struct loop_guest *guest_of(struct loop *loop)
{
    if (loop->ops != &guest_ops) {
        fprintf(stderr, "loop: only a loop of loop_guest.h has a descriptor\n");
        abort();
    }
    return (struct loop_guest *)(void *)loop;
}

/* --- timers --- */

static void set_alarm(struct loop *loop)
{
    struct loop_guest *guest = guest_of(loop);
    const struct loop_timer *first = loop_first_timer(loop);
    struct itimerspec at = { .it_value.tv_nsec = 1 }; /* all zero would mean never */

    if (!first || first->due_us >= guest->alarm_us)
        return;
    if (first->due_us > 0) {
        at.it_value.tv_sec = (time_t)(first->due_us / US_PER_SECOND);
        at.it_value.tv_nsec += (long)(first->due_us % US_PER_SECOND * NS_PER_US);
    }
    timerfd_settime(guest->alarm_fd, TFD_TIMER_ABSTIME, &at, NULL);
    guest->alarm_us = first->due_us;
}

/* Setting it again, or to never, is also what makes the descriptor quiet. */
static void on_alarm(struct loop_guest *guest)
{
    const struct itimerspec never = { .it_value.tv_sec = 0 };

    timerfd_settime(guest->alarm_fd, 0, &never, NULL);
    guest->alarm_us = INT64_MAX;
    loop_fire_due(&guest->loop);
    set_alarm(&guest->loop);
}

/* --- descriptors --- */

static int control(const struct loop_guest *guest, int what, struct loop_fd *watch)
{
    struct epoll_event event = { .data.ptr = watch };

    if (watch->events & LOOP_FD_READ)
        event.events |= EPOLLIN;
    if (watch->events & LOOP_FD_WRITE)
        event.events |= EPOLLOUT;
    return epoll_ctl(guest->epoll_fd, what, watch->fd, &event);
}

/* A library that closes descriptors behind our back has also taken them out of the set, and their
 * numbers come again: so what the set holds may differ from what we have told it. */
static void guest_fd_changed(struct loop_fd *watch, unsigned before)
{
    const struct loop_guest *guest = guest_of(watch->loop);
    int result;

    if (!watch->events) {
        control(guest, EPOLL_CTL_DEL, watch);
        return;
    }
    result = control(guest, before ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, watch);
    if (result < 0 && errno == ENOENT)
        result = control(guest, EPOLL_CTL_ADD, watch);
    else if (result < 0 && errno == EEXIST)
        result = control(guest, EPOLL_CTL_MOD, watch);
    if (result < 0) {
        fprintf(stderr, "loop: descriptor %d cannot be watched: %s\n", watch->fd, strerror(errno));
        abort();
    }
}

static void guest_fd_gone(struct loop_fd *watch)
{
    struct loop_guest *guest = guest_of(watch->loop);

    if (watch->events)
        control(guest, EPOLL_CTL_DEL, watch);
    for (int i = guest->next; i < guest->count; i++)
        if (guest->ready[i].data.ptr == watch)
            guest->ready[i].events = 0;
}

/* An error or a hang-up is told as whatever is waited for: trying it will show. */
static void on_fd(struct loop_fd *watch, uint32_t what)
{
    unsigned events = 0;

    if (what & (EPOLLIN | EPOLLERR | EPOLLHUP))
        events |= LOOP_FD_READ;
    if (what & (EPOLLOUT | EPOLLERR | EPOLLHUP))
        events |= LOOP_FD_WRITE;
    events &= watch->events; /* a callback before this one may have changed them */
    if (events)
        loop_fd_ready(watch, events);
}

/* --- the loop --- */

/* What is left over after a stop is fetched again by the next call. */
static void wait_once(struct loop_guest *guest, int timeout_ms)
{
    guest->next = 0;
    guest->count = epoll_wait(guest->epoll_fd, guest->ready, MAX_READY, timeout_ms);
    while (guest->next < guest->count) {
        const struct epoll_event event = guest->ready[guest->next++];

        if (!event.events)
            continue;
        if (event.data.ptr)
            on_fd(event.data.ptr, event.events);
        else
            on_alarm(guest);
        if (guest->loop.stopping)
            break;
    }
    guest->count = 0;
}

static void guest_run(struct loop *loop)
{
    while (!loop->stopping)
        wait_once(guest_of(loop), FOR_EVER);
}

static bool guest_step(struct loop *loop)
{
    const uint64_t ran_before = loop->ran;

    wait_once(guest_of(loop), 0);
    return loop->ran != ran_before;
}

static void guest_stop(struct loop *loop) {}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

static void guest_free(struct loop *loop)
{
    struct loop_guest *guest = guest_of(loop);

    loop_done(loop);
    close_fd(guest->alarm_fd);
    close_fd(guest->epoll_fd);
    mem_free(guest);
}

static const struct loop_ops guest_ops = {
    .run = guest_run,
    .step = guest_step,
    .stop = guest_stop,
    .first_changed = set_alarm,
    .free = guest_free,
    .fd_changed = guest_fd_changed,
    .fd_gone = guest_fd_gone,
};

int loop_new_guest(struct loop **ret_loop, struct err *err)
{
    struct loop_guest *guest = mem_alloc(sizeof(*guest));
    struct epoll_event event = { .events = EPOLLIN };

    loop_init(&guest->loop, &guest_ops, NULL);
    guest->alarm_us = INT64_MAX;
    guest->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    guest->alarm_fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC); /* as clock.c */
    if (guest->epoll_fd < 0 || guest->alarm_fd < 0 ||
        epoll_ctl(guest->epoll_fd, EPOLL_CTL_ADD, guest->alarm_fd, &event) < 0) {
        int number = errno;

        guest_free(&guest->loop);
        return err_system(err, number, "cannot make an event loop");
    }
    *ret_loop = &guest->loop;
    return 0;
}

int loop_guest_fd(struct loop *loop)
{
    return guest_of(loop)->epoll_fd;
}
