/* test_loop.c - timers, the same on virtual and on real time; descriptors and signals on real. */
#include "base/mem.h"
#include "io/loop_real.h"

#include "../base/aborts.h"

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

static void descriptors_on_virtual_time_are_a_defect(void **state)
{
    assert_true(aborts(ask_descriptors_of_virtual_time));
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

#define ON_BOTH(test)                                                                              \
    { "virtual: " #test, test, virtual_world, end_world, NULL },                                   \
    {                                                                                              \
        "real: " #test, test, real_world, end_world, NULL                                          \
    }
#define ON_VIRTUAL(test) cmocka_unit_test_setup_teardown(test, virtual_world, end_world)
#define ON_REAL(test)    cmocka_unit_test_setup_teardown(test, real_world, end_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(timers_fire_when_due_and_equals_in_the_order_of_arming),
        ON_BOTH(a_timer_that_arms_itself_lets_others_run_in_between),
        ON_BOTH(a_callback_may_stop_a_timer_that_is_due),
        ON_BOTH(a_callback_may_free_its_timer),
        ON_BOTH(nothing_runs_after_a_stop_and_the_rest_runs_later),
        ON_BOTH(a_stop_between_runs_ends_the_next_run),
        ON_VIRTUAL(equal_due_times_fire_in_the_order_of_arming),
        ON_VIRTUAL(armed_timers_are_disarmed_with_the_loop),
        ON_VIRTUAL(virtual_time_jumps_to_the_next_timer),
        ON_VIRTUAL(a_step_runs_all_that_is_due_at_one_time),
        ON_VIRTUAL(a_step_leaves_what_it_armed_for_the_next),
        ON_VIRTUAL(a_delay_beyond_the_end_of_time_is_never),
        ON_VIRTUAL(the_longest_callback_is_kept_until_asked),
        ON_VIRTUAL(descriptors_on_virtual_time_are_a_defect),
        ON_REAL(a_real_timer_is_never_early),
        ON_REAL(a_real_step_does_not_wait),
        ON_REAL(a_descriptor_calls_when_ready_and_may_be_freed_there),
        ON_REAL(a_signal_is_told_from_the_loop),
        ON_REAL(a_real_loop_survives_a_broken_pipe),
    };

    return cmocka_run_group_tests_name("io/loop", tests, NULL, NULL);
}
