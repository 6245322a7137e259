/* test_clock.c - a virtual clock moves when it is told to, and only forward. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "aborts.h"
#include "base/clock.h"

static const int64_t new_year_2026 = 1767225600000000;

static void a_virtual_clock_stands_still(void **state)
{
    struct clock clock;

    clock_init_virtual(&clock, new_year_2026);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(clock_now_us(&clock), 1000000);
        assert_int_equal(clock_now_ms(&clock), 1000);
        assert_int_equal(clock_wall_us(&clock), new_year_2026);
    }
}

static void advancing_moves_both_times(void **state)
{
    struct clock clock;

    clock_init_virtual(&clock, new_year_2026);
    clock_advance_us(&clock, 2500);
    assert_int_equal(clock_now_us(&clock), 1002500);
    assert_int_equal(clock_now_ms(&clock), 1002);
    assert_int_equal(clock_wall_us(&clock), new_year_2026 + 2500);
    clock_advance_to_us(&clock, 1003000);
    assert_int_equal(clock_now_us(&clock), 1003000);
    assert_int_equal(clock_wall_us(&clock), new_year_2026 + 3000);
    clock_advance_to_us(&clock, 1003000);
    clock_advance_us(&clock, 0);
    assert_int_equal(clock_now_us(&clock), 1003000);
}

static void the_wall_clock_jumps_alone(void **state)
{
    struct clock clock;

    clock_init_virtual(&clock, new_year_2026);
    clock_set_wall_us(&clock, -5);
    assert_int_equal(clock_wall_us(&clock), -5);
    assert_int_equal(clock_now_us(&clock), 1000000);
}

static void the_real_clock_goes_forward(void **state)
{
    struct clock clock;

    clock_init_real(&clock);

    int64_t before_us = clock_now_us(&clock), before_ms = clock_now_ms(&clock);

    assert_true(before_us > 0);
    usleep(2000);
    assert_true(clock_now_us(&clock) >= before_us + 2000);
    assert_true(clock_now_ms(&clock) > before_ms);
    assert_true(clock_wall_us(&clock) > 1600000000000000); /* some time after 2020 */
}

static void move_a_real_clock(void)
{
    struct clock clock;

    clock_init_real(&clock);
    clock_advance_us(&clock, 1);
}

static void set_a_real_clock(void)
{
    struct clock clock;

    clock_init_real(&clock);
    clock_set_wall_us(&clock, 1);
}

static void go_back(void)
{
    struct clock clock;

    clock_init_virtual(&clock, 0);
    clock_advance_us(&clock, -1);
}

static void go_back_to(void)
{
    struct clock clock;

    clock_init_virtual(&clock, 0);
    clock_advance_to_us(&clock, 999999);
}

static void go_past_the_end(void)
{
    struct clock clock;

    clock_init_virtual(&clock, 0);
    clock_advance_us(&clock, INT64_MAX);
}

static void what_cannot_happen_to_time_aborts(void **state)
{
    assert_true(aborts(move_a_real_clock));
    assert_true(aborts(set_a_real_clock));
    assert_true(aborts(go_back));
    assert_true(aborts(go_back_to));
    assert_true(aborts(go_past_the_end));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_virtual_clock_stands_still),
        cmocka_unit_test(advancing_moves_both_times),
        cmocka_unit_test(the_wall_clock_jumps_alone),
        cmocka_unit_test(the_real_clock_goes_forward),
        cmocka_unit_test(what_cannot_happen_to_time_aborts),
    };

    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
