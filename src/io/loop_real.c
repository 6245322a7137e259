/* loop_real.c - the loop on the machine's clock, on libevent.
 *
 * Timers stay in our own heap, so that they behave exactly as on virtual time; one libevent timer,
 * the alarm, wakes us for the first of them. Holds: while a timer is armed the alarm is set, no
 * later than the first is due. */
#include "io/loop_real.h"

#include "base/err.h"
#include "base/mem.h"
#include "io/loop_internal.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { US_PER_SECOND = 1000000 };

struct loop_real {
    struct loop loop; /* first: a struct loop * is one of these */
    struct event_base *base;
    struct event *alarm;
    int64_t alarm_us; /* when the alarm goes off; INT64_MAX when it is not set */
};

struct loop_signal {
    struct loop *loop;
    struct event *event;
    void (*caught)(void *context);
    void *context;
};

static const struct loop_ops real_ops;

static struct loop_real *real_of(struct loop *loop)
{
    if (loop->ops != &real_ops) {
        fprintf(stderr, "loop: only a loop of loop_real.h has signals and a libevent base\n");
        abort();
    }
    return (struct loop_real *)(void *)loop;
}

static void *or_abort(void *made)
{
    if (!made) {
        fprintf(stderr, "loop: libevent is out of memory\n");
        abort();
    }
    return made;
}

static void set_alarm(struct loop *loop)
{
    struct loop_real *real = real_of(loop);
    const struct loop_timer *first = loop_first_timer(loop);

    if (!first || first->due_us >= real->alarm_us)
        return;

    int64_t delay_us = first->due_us - loop_now_us(loop);
    struct timeval delay = { .tv_sec = 0 };

    if (delay_us > 0) {
        delay.tv_sec = (time_t)(delay_us / US_PER_SECOND);
        delay.tv_usec = (suseconds_t)(delay_us % US_PER_SECOND);
    }
    evtimer_add(real->alarm, &delay);
    real->alarm_us = first->due_us;
}

static void on_alarm(evutil_socket_t fd, short what, void *context)
{
    struct loop_real *real = context;

    real->alarm_us = INT64_MAX;
    loop_fire_due(&real->loop);
    set_alarm(&real->loop);
}

static void real_run(struct loop *loop)
{
    event_base_loop(real_of(loop)->base, EVLOOP_NO_EXIT_ON_EMPTY);
}

static bool real_step(struct loop *loop)
{
    const uint64_t ran_before = loop->ran;

    event_base_loop(real_of(loop)->base, EVLOOP_NONBLOCK);
    return loop->ran != ran_before;
}

static void real_stop(struct loop *loop)
{
    event_base_loopbreak(real_of(loop)->base);
}

static void real_free(struct loop *loop)
{
    struct loop_real *real = real_of(loop);

    loop_done(loop);
    if (real->alarm)
        event_free(real->alarm);
    if (real->base) {
        /* A freed connection over TLS lives until libevent has told it of its last write. */
        event_base_loop(real->base, EVLOOP_NONBLOCK);
        event_base_free(real->base);
    }
    mem_free(real);
}

/* --- descriptors --- */

static void on_fd(evutil_socket_t fd, short what, void *context)
{
    unsigned events = 0;

    if (what & EV_READ)
        events |= LOOP_FD_READ;
    if (what & EV_WRITE)
        events |= LOOP_FD_WRITE;
    loop_fd_ready(context, events);
}

static short libevent_flags(unsigned events)
{
    int flags = EV_PERSIST;

    if (events & LOOP_FD_READ)
        flags |= EV_READ;
    if (events & LOOP_FD_WRITE)
        flags |= EV_WRITE;
    return (short)flags;
}

static void real_fd_changed(struct loop_fd *watch, unsigned before)
{
    struct event_base *base = real_of(watch->loop)->base;
    const short flags = libevent_flags(watch->events);

    if (watch->kept) {
        event_del(watch->kept);
        event_assign(watch->kept, base, watch->fd, flags, on_fd, watch);
    } else {
        watch->kept = or_abort(event_new(base, watch->fd, flags, on_fd, watch));
    }
    if (watch->events)
        event_add(watch->kept, NULL);
}

static void real_fd_gone(struct loop_fd *watch)
{
    if (watch->kept)
        event_free(watch->kept);
}

/* --- the loop --- */

static const struct loop_ops real_ops = {
    .run = real_run,
    .step = real_step,
    .stop = real_stop,
    .first_changed = set_alarm,
    .free = real_free,
    .fd_changed = real_fd_changed,
    .fd_gone = real_fd_gone,
};

/* Precise, because the default clock of libevent is up to 4 ms behind ours: the alarm would go off
 * before anything is due. */
static struct event_base *new_base(void)
{
    struct event_config *config = event_config_new();
    struct event_base *base = NULL;

    if (config && event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER) == 0)
        base = event_base_new_with_config(config);
    if (config)
        event_config_free(config);
    return base;
}

int loop_new_real(struct loop **ret_loop, struct err *err)
{
    struct loop_real *real = mem_alloc(sizeof(*real));

    loop_init(&real->loop, &real_ops, NULL);
    real->alarm_us = INT64_MAX;
    real->base = new_base();
    if (real->base)
        real->alarm = evtimer_new(real->base, on_alarm, real);
    if (!real->alarm) {
        real_free(&real->loop);
        return err_set(err, ERR_SYSTEM, "libevent cannot make an event loop");
    }
    signal(SIGPIPE, SIG_IGN);
    *ret_loop = &real->loop;
    return 0;
}

struct event_base *loop_real_base(struct loop *loop)
{
    return real_of(loop)->base;
}

int64_t loop_real_enter(struct loop *loop)
{
    return loop_enter(loop);
}

void loop_real_leave(struct loop *loop, int64_t entered_us)
{
    loop_leave(loop, entered_us);
}

/* --- signals --- */

static void on_signal(evutil_socket_t number, short what, void *context)
{
    struct loop_signal *watch = context;
    struct loop *loop = watch->loop;
    int64_t entered_us = loop_enter(loop);

    watch->caught(watch->context);
    loop_leave(loop, entered_us);
}

struct loop_signal *loop_signal_new(struct loop *loop, int number, void (*caught)(void *context),
                                    void *context)
{
    struct loop_signal *watch = mem_alloc(sizeof(*watch));

    *watch = (struct loop_signal){ .loop = loop, .caught = caught, .context = context };
    watch->event = or_abort(evsignal_new(loop_real_base(loop), number, on_signal, watch));
    event_add(watch->event, NULL);
    return watch;
}

void loop_signal_free(struct loop_signal *signal)
{
    if (!signal)
        return;
    event_free(signal->event);
    mem_free(signal);
}
