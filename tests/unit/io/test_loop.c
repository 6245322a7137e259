/* test_loop.c - timers, the same on all kinds of loops; descriptors on two of them, signals on one.
 */
#include "base/mem.h"
#include "io/loop_guest.h"
#include "io/loop_real.h"

#include "../base/aborts.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MS_US = 1000 };

struct world {
    struct clock clock;
    struct loop *loop;
    char log[64];
};

struct mark {
    struct loop_timer timer;
    struct world *world;
    char name;
    void (*also)(struct mark *mark);
    struct mark *other;
};

static int virtual_world(void **state)
{
    struct world *world = mem_alloc(sizeof(*world));

    clock_init_virtual(&world->clock, 0);
    world->loop = loop_new_virtual(&world->clock);
    *state = world;
    return 0;
}

static int real_world(void **state)
{
    struct world *world = mem_alloc(sizeof(*world));

    *state = world;
    return loop_new_real(&world->loop, NULL);
}

static int guest_world(void **state)
{
    struct world *world = mem_alloc(sizeof(*world));

    *state = world;
    return loop_new_guest(&world->loop, NULL);
}

static int end_world(void **state)
{
    struct world *world = *state;

    loop_free(world->loop);
    mem_free(world);
    return 0;
}

static void fire(void *context)
{
    struct mark *mark = context;
    size_t length = strlen(mark->world->log);

    assert_in_range(length, 0, sizeof(mark->world->log) - 2);
    assert_false(loop_timer_is_armed(&mark->timer));
    mark->world->log[length] = mark->name;
    if (mark->also)
        mark->also(mark);
}

static void arm(struct world *world, struct mark *mark, char name, int64_t delay_us)
{
    mark->world = world;
    mark->name = name;
    loop_timer_start(world->loop, &mark->timer, delay_us, fire, mark);
}

static void stop_loop(struct mark *mark)
{
    loop_stop(mark->world->loop);
}

static void timers_fire_when_due_and_equals_in_the_order_of_arming(void **state)
{
    struct world *world = *state;
    struct mark marks[6] = { { .name = 0 } };

    arm(world, &marks[0], 'd', 30 * MS_US);
    arm(world, &marks[1], 'b', 5 * MS_US);
    arm(world, &marks[2], 'a', 0);
    arm(world, &marks[3], 'c', 5 * MS_US + 100);
    arm(world, &marks[4], 'e', 30 * MS_US + 200);
    marks[4].also = stop_loop;
    assert_string_equal(world->log, "");
    loop_run(world->loop);
    assert_string_equal(world->log, "abcde");
}

static void equal_due_times_fire_in_the_order_of_arming(void **state)
{
    struct world *world = *state;
    struct mark marks[20] = { { .name = 0 } };

    for (int i = 0; i < 20; i++)
        arm(world, &marks[i], (char)('a' + i), 0);
    arm(world, &marks[3], 'z', 0); /* moved: behind its equals */
    loop_timer_stop(&marks[5].timer);
    while (strlen(world->log) < 19)
        loop_step(world->loop);
    assert_string_equal(world->log, "abceghijklmnopqrstz");
}

static void arm_self_again(struct mark *mark)
{
    if (strlen(mark->world->log) < 6)
        loop_timer_start(mark->world->loop, &mark->timer, 0, fire, mark);
    else
        loop_stop(mark->world->loop);
    assert_in_range(strlen(mark->world->log), 1, 6); /* not called from inside the arming */
}

static void a_timer_that_arms_itself_lets_others_run_in_between(void **state)
{
    struct world *world = *state;
    struct mark self = { .also = arm_self_again }, other = { .also = NULL };

    arm(world, &self, 's', 0);
    arm(world, &other, 'o', 0);
    loop_run(world->loop);
    assert_int_equal(strchr(world->log, 'o') - world->log, 1);
    assert_int_equal(strlen(world->log), 6);
}

static void stop_other(struct mark *mark)
{
    loop_timer_stop(&mark->other->timer);
}

static void a_callback_may_stop_a_timer_that_is_due(void **state)
{
    struct world *world = *state;
    struct mark victim = { .also = NULL }, killer = { .also = stop_other, .other = &victim };
    struct mark last = { .also = stop_loop };

    arm(world, &killer, 'k', 0);
    arm(world, &victim, 'v', 0);
    arm(world, &last, 'l', 1);
    loop_run(world->loop);
    assert_string_equal(world->log, "kl");
    assert_false(loop_timer_is_armed(&victim.timer));
}

static void free_self(struct mark *mark)
{
    loop_stop(mark->world->loop);
    memset(mark, 0xee, sizeof(*mark));
    mem_free(mark);
}

static void a_callback_may_free_its_timer(void **state)
{
    struct world *world = *state;
    struct mark *mark = mem_alloc(sizeof(*mark));

    mark->also = free_self;
    arm(world, mark, 'f', 0);
    loop_run(world->loop);
    assert_string_equal(world->log, "f");
}

static void nothing_runs_after_a_stop_and_the_rest_runs_later(void **state)
{
    struct world *world = *state;
    struct mark first = { .also = stop_loop }, second = { .also = stop_loop };

    arm(world, &first, 'a', 0);
    arm(world, &second, 'b', 0);
    loop_run(world->loop);
    assert_string_equal(world->log, "a");
    loop_run(world->loop);
    assert_string_equal(world->log, "ab");
}

static void a_stop_between_runs_ends_the_next_run(void **state)
{
    struct world *world = *state;
    struct mark mark = { .also = stop_loop };

    arm(world, &mark, 'a', 0);
    loop_stop(world->loop);
    loop_run(world->loop);
    assert_string_equal(world->log, "");
    loop_run(world->loop);
    assert_string_equal(world->log, "a");
}

static void armed_timers_are_disarmed_with_the_loop(void **state)
{
    struct clock clock;
    struct mark mark = { .also = NULL };

    clock_init_virtual(&clock, 0);

    struct loop *loop = loop_new_virtual(&clock);

    loop_timer_start(loop, &mark.timer, 5, fire, &mark);
    loop_free(loop);
    assert_false(loop_timer_is_armed(&mark.timer));
    assert_null(mark.timer.loop);
    loop_timer_stop(&mark.timer);
    loop_free(NULL);
}

/* --- virtual time --- */

static void virtual_time_jumps_to_the_next_timer(void **state)
{
    struct world *world = *state;
    struct mark far = { .also = NULL };
    int64_t before_us = loop_now_us(world->loop);

    arm(world, &far, 'f', INT64_C(3600) * 1000 * MS_US);
    assert_true(loop_step(world->loop));
    assert_int_equal(loop_now_us(world->loop) - before_us, INT64_C(3600) * 1000 * MS_US);
    assert_false(loop_step(world->loop));
    loop_run(world->loop); /* returns: nothing is left */
    assert_string_equal(world->log, "f");
    assert_ptr_equal(loop_clock(world->loop), &world->clock);
}

static void a_step_runs_all_that_is_due_at_one_time(void **state)
{
    struct world *world = *state;
    struct mark marks[3] = { { .name = 0 } };

    arm(world, &marks[0], 'a', 10);
    arm(world, &marks[1], 'b', 10);
    arm(world, &marks[2], 'c', 11);
    assert_true(loop_step(world->loop));
    assert_string_equal(world->log, "ab");
    assert_true(loop_step(world->loop));
    assert_string_equal(world->log, "abc");
}

static void a_step_leaves_what_it_armed_for_the_next(void **state)
{
    struct world *world = *state;
    struct mark self = { .also = arm_self_again };

    arm(world, &self, 's', 0);
    assert_true(loop_step(world->loop));
    assert_string_equal(world->log, "s");
    assert_true(loop_step(world->loop));
    assert_string_equal(world->log, "ss");
    loop_timer_stop(&self.timer);
}

static void a_delay_beyond_the_end_of_time_is_never(void **state)
{
    struct world *world = *state;
    struct mark never = { .also = NULL }, past = { .also = NULL };

    arm(world, &never, 'n', INT64_MAX);
    arm(world, &past, 'p', -5);
    assert_int_equal(never.timer.due_us, INT64_MAX);
    assert_int_equal(past.timer.due_us, loop_now_us(world->loop));
    assert_true(loop_step(world->loop));
    assert_string_equal(world->log, "p");
    loop_timer_stop(&never.timer);
}

static void take_a_while(struct mark *mark)
{
    clock_advance_us(&mark->world->clock, 7 * MS_US);
}

static void the_longest_callback_is_kept_until_asked(void **state)
{
    struct world *world = *state;
    struct mark slow = { .also = take_a_while }, quick = { .also = NULL };

    arm(world, &slow, 's', 1);
    arm(world, &quick, 'q', 50 * MS_US);
    loop_run(world->loop);
    assert_int_equal(loop_take_longest_us(world->loop), 7 * MS_US);
    assert_int_equal(loop_take_longest_us(world->loop), 0);
}

static void ask_descriptors_of_virtual_time(void)
{
    struct clock clock;

    clock_init_virtual(&clock, 0);
    loop_real_base(loop_new_virtual(&clock));
}

static void watch_a_descriptor_on_virtual_time(void)
{
    struct clock clock;

    clock_init_virtual(&clock, 0);
    loop_fd_new(loop_new_virtual(&clock), 0, LOOP_FD_READ, NULL, NULL);
}

static void ask_a_real_loop_for_its_descriptor(void)
{
    struct loop *loop;

    if (loop_new_real(&loop, NULL) == 0)
        loop_guest_fd(loop);
}

static void what_another_kind_of_loop_has_is_a_defect(void **state)
{
    assert_true(aborts(ask_descriptors_of_virtual_time));
    assert_true(aborts(watch_a_descriptor_on_virtual_time));
    assert_true(aborts(ask_a_real_loop_for_its_descriptor));
}

/* --- real time --- */

static void a_real_timer_is_never_early(void **state)
{
    struct world *world = *state;
    struct mark mark = { .also = stop_loop };

    for (int i = 1; i < 20; i++) {
        int64_t before_us = loop_now_us(world->loop);

        arm(world, &mark, 'r', i * 300);
        loop_run(world->loop);
        assert_true(loop_now_us(world->loop) - before_us >= i * 300);
    }
}

static void a_real_step_does_not_wait(void **state)
{
    struct world *world = *state;
    struct mark far = { .also = NULL };

    arm(world, &far, 'f', INT64_C(3600) * 1000 * MS_US);
    assert_false(loop_step(world->loop));
    loop_timer_stop(&far.timer);
}

struct pipe_end {
    struct world *world;
    struct loop_fd *watch;
    int fds[2];
    unsigned events;
};

static void on_pipe(void *context, unsigned events)
{
    struct pipe_end *end = context;

    end->events |= events;
    loop_fd_free(end->watch); /* inside its own callback */
    end->watch = NULL;
    loop_stop(end->world->loop);
}

static void a_descriptor_calls_when_ready_and_may_be_freed_there(void **state)
{
    struct pipe_end end = { .world = *state };

    assert_int_equal(pipe(end.fds), 0);
    end.watch = loop_fd_new(end.world->loop, end.fds[0], LOOP_FD_READ, on_pipe, &end);
    assert_false(loop_step(end.world->loop));
    assert_int_equal(write(end.fds[1], "x", 1), 1);
    loop_run(end.world->loop);
    assert_int_equal(end.events, LOOP_FD_READ);

    end.events = 0;
    end.watch = loop_fd_new(end.world->loop, end.fds[1], 0, on_pipe, &end);
    assert_false(loop_step(end.world->loop));
    loop_fd_set_events(end.watch, LOOP_FD_WRITE);
    loop_run(end.world->loop);
    assert_int_equal(end.events, LOOP_FD_WRITE);
    close(end.fds[0]);
    close(end.fds[1]);
    loop_fd_free(NULL);
}

static void on_hang_up(void *context, unsigned events)
{
    struct pipe_end *end = context;

    end->events = events;
    loop_stop(end->world->loop);
}

static void a_hang_up_is_told_as_what_is_waited_for(void **state)
{
    struct pipe_end end = { .world = *state };

    assert_int_equal(pipe(end.fds), 0);
    end.watch = loop_fd_new(end.world->loop, end.fds[0], LOOP_FD_READ, on_hang_up, &end);
    close(end.fds[1]);
    loop_run(end.world->loop);
    assert_int_equal(end.events, LOOP_FD_READ);

    loop_fd_set_events(end.watch, 0);
    end.events = 0;
    assert_false(loop_step(end.world->loop));
    assert_int_equal(end.events, 0);
    loop_fd_free(end.watch);
    close(end.fds[0]);
}

struct pair {
    struct loop_fd *watches[2];
    unsigned calls;
};

static void free_both(void *context, unsigned events)
{
    struct pair *pair = context;

    pair->calls++;
    for (int i = 0; i < 2; i++) {
        loop_fd_free(pair->watches[i]);
        pair->watches[i] = NULL;
    }
}

static void a_callback_may_free_a_watch_that_is_ready_too(void **state)
{
    struct world *world = *state;
    struct pair pair = { .calls = 0 };
    int fds[2][2];

    for (int i = 0; i < 2; i++) {
        assert_int_equal(pipe(fds[i]), 0);
        assert_int_equal(write(fds[i][1], "x", 1), 1);
        pair.watches[i] = loop_fd_new(world->loop, fds[i][0], LOOP_FD_READ, free_both, &pair);
    }
    assert_true(loop_step(world->loop));
    assert_false(loop_step(world->loop));
    assert_int_equal(pair.calls, 1);
    for (int i = 0; i < 2; i++) {
        close(fds[i][0]);
        close(fds[i][1]);
    }
}

static void a_descriptor_that_was_opened_anew_is_watched_again(void **state)
{
    struct pipe_end end = { .world = *state };
    int again[2];

    assert_int_equal(pipe(end.fds), 0);
    end.watch = loop_fd_new(end.world->loop, end.fds[0], LOOP_FD_READ, on_pipe, &end);
    close(end.fds[0]); /* behind the loop's back */
    assert_int_equal(pipe(again), 0);
    assert_int_equal(again[0], end.fds[0]);
    loop_fd_set_events(end.watch, LOOP_FD_READ);
    assert_int_equal(write(again[1], "x", 1), 1);
    loop_run(end.world->loop);
    assert_int_equal(end.events, LOOP_FD_READ);
    close(again[0]);
    close(again[1]);
    close(end.fds[1]);
}

/* --- a guest and its host --- */

static bool is_readable(const struct world *world, int timeout_ms)
{
    struct pollfd wait = { .fd = loop_guest_fd(world->loop), .events = POLLIN };

    return poll(&wait, 1, timeout_ms) == 1;
}

static void a_guests_descriptor_is_readable_when_there_is_something_to_do(void **state)
{
    struct pipe_end end = { .world = *state };
    struct mark now = { .also = NULL }, soon = { .also = NULL }, far = { .also = NULL };

    arm(end.world, &far, 'f', INT64_C(3600) * 1000 * MS_US);
    assert_false(is_readable(end.world, 0));
    arm(end.world, &now, 'n', 0);
    assert_true(is_readable(end.world, 0));
    assert_true(loop_step(end.world->loop));
    assert_false(is_readable(end.world, 0));

    arm(end.world, &soon, 's', 2 * MS_US);
    assert_true(is_readable(end.world, 10000));
    assert_true(loop_step(end.world->loop));
    assert_string_equal(end.world->log, "ns");

    assert_int_equal(pipe(end.fds), 0);
    end.watch = loop_fd_new(end.world->loop, end.fds[0], LOOP_FD_READ, on_pipe, &end);
    assert_false(is_readable(end.world, 0));
    assert_int_equal(write(end.fds[1], "x", 1), 1);
    assert_true(is_readable(end.world, 0));
    assert_true(loop_step(end.world->loop));
    assert_false(is_readable(end.world, 0));
    loop_timer_stop(&far.timer);
    close(end.fds[0]);
    close(end.fds[1]);
}

static void a_stopped_timer_leaves_the_descriptor_quiet_after_one_step(void **state)
{
    struct world *world = *state;
    struct mark mark = { .also = NULL };

    arm(world, &mark, 'x', 0);
    loop_timer_stop(&mark.timer);
    assert_false(loop_step(world->loop));
    assert_false(is_readable(world, 0));
}

static void step_guest(void *context, unsigned events)
{
    loop_step(context);
}

static void a_guest_lives_in_another_loop(void **state)
{
    struct world *guest = *state, host = { .loop = NULL };
    struct mark inside = { .also = NULL }, outside = { .also = stop_loop };
    struct loop_fd *watch;

    assert_int_equal(loop_new_real(&host.loop, NULL), 0);
    watch =
        loop_fd_new(host.loop, loop_guest_fd(guest->loop), LOOP_FD_READ, step_guest, guest->loop);
    arm(guest, &inside, 'g', 2 * MS_US);
    arm(&host, &outside, 'h', 20 * MS_US);
    loop_run(host.loop);
    assert_string_equal(guest->log, "g");
    assert_string_equal(host.log, "h");
    loop_fd_free(watch);
    loop_free(host.loop);
}

static void a_guest_leaves_signals_alone(void **state)
{
    struct sigaction before, after;
    struct loop *loop;

    assert_int_equal(sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL), 0);
    assert_int_equal(sigaction(SIGPIPE, NULL, &before), 0);
    assert_int_equal(loop_new_guest(&loop, NULL), 0);
    assert_int_equal(sigaction(SIGPIPE, NULL, &after), 0);
    assert_ptr_equal(before.sa_handler, after.sa_handler);
    loop_free(loop);
}

/* --- signals --- */

static void on_signal(void *context)
{
    struct mark *mark = context;

    mark->name = '!';
    loop_stop(mark->world->loop);
}

static void a_signal_is_told_from_the_loop(void **state)
{
    struct mark mark = { .world = *state };
    struct loop_signal *watch = loop_signal_new(mark.world->loop, SIGUSR1, on_signal, &mark);

    raise(SIGUSR1);
    assert_int_equal(mark.name, 0);
    loop_run(mark.world->loop);
    assert_int_equal(mark.name, '!');
    loop_signal_free(watch);
    loop_signal_free(NULL);
}

static void a_real_loop_survives_a_broken_pipe(void **state)
{
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    close(fds[0]);
    assert_int_equal(write(fds[1], "x", 1), -1);
    close(fds[1]);
}

#define ON_ALL(test)                                                                               \
    { "virtual: " #test, test, virtual_world, end_world, NULL },                                   \
        { "real: " #test, test, real_world, end_world, NULL },                                     \
    {                                                                                              \
        "guest: " #test, test, guest_world, end_world, NULL                                        \
    }
#define ON_VIRTUAL(test) cmocka_unit_test_setup_teardown(test, virtual_world, end_world)
#define ON_REAL(test)    cmocka_unit_test_setup_teardown(test, real_world, end_world)
#define ON_GUEST(test)   cmocka_unit_test_setup_teardown(test, guest_world, end_world)
#define ON_REAL_TIME(test)                                                                         \
    { "real: " #test, test, real_world, end_world, NULL },                                         \
    {                                                                                              \
        "guest: " #test, test, guest_world, end_world, NULL                                        \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(timers_fire_when_due_and_equals_in_the_order_of_arming),
        ON_ALL(a_timer_that_arms_itself_lets_others_run_in_between),
        ON_ALL(a_callback_may_stop_a_timer_that_is_due),
        ON_ALL(a_callback_may_free_its_timer),
        ON_ALL(nothing_runs_after_a_stop_and_the_rest_runs_later),
        ON_ALL(a_stop_between_runs_ends_the_next_run),
        ON_VIRTUAL(equal_due_times_fire_in_the_order_of_arming),
        ON_VIRTUAL(armed_timers_are_disarmed_with_the_loop),
        ON_VIRTUAL(virtual_time_jumps_to_the_next_timer),
        ON_VIRTUAL(a_step_runs_all_that_is_due_at_one_time),
        ON_VIRTUAL(a_step_leaves_what_it_armed_for_the_next),
        ON_VIRTUAL(a_delay_beyond_the_end_of_time_is_never),
        ON_VIRTUAL(the_longest_callback_is_kept_until_asked),
        ON_VIRTUAL(what_another_kind_of_loop_has_is_a_defect),
        ON_REAL_TIME(a_real_timer_is_never_early),
        ON_REAL_TIME(a_real_step_does_not_wait),
        ON_REAL_TIME(a_descriptor_calls_when_ready_and_may_be_freed_there),
        ON_REAL_TIME(a_hang_up_is_told_as_what_is_waited_for),
        ON_REAL_TIME(a_callback_may_free_a_watch_that_is_ready_too),
        ON_REAL_TIME(a_descriptor_that_was_opened_anew_is_watched_again),
        ON_GUEST(a_guests_descriptor_is_readable_when_there_is_something_to_do),
        ON_GUEST(a_stopped_timer_leaves_the_descriptor_quiet_after_one_step),
        ON_GUEST(a_guest_lives_in_another_loop),
        ON_GUEST(a_guest_leaves_signals_alone),
        ON_REAL(a_signal_is_told_from_the_loop),
        ON_REAL(a_real_loop_survives_a_broken_pipe),
    };

    return cmocka_run_group_tests_name("io/loop", tests, NULL, NULL);
}
