/* clock.c - the kernel's clocks, and one that stands still until it is moved.
 *
 * Holds: monotonic time never goes back, in either kind. */
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { US_PER_SECOND = 1000000, US_PER_MS = 1000, NS_PER_US = 1000 };

void clock_init_real(struct clock *clock)
{
    *clock = (struct clock){ .is_virtual = false };
}

void clock_init_virtual(struct clock *clock, int64_t wall_us)
{
    *clock = (struct clock){ .is_virtual = true, .now_us = US_PER_SECOND, .wall_us = wall_us };
}

static int64_t read_kernel(clockid_t id)
{
    struct timespec time = { .tv_sec = 0 };

    clock_gettime(id, &time); /* fails only for ids that do not exist */
    return (int64_t)time.tv_sec * US_PER_SECOND + time.tv_nsec / NS_PER_US;
}

int64_t clock_now_us(const struct clock *clock)
{
    return clock->is_virtual ? clock->now_us : read_kernel(CLOCK_BOOTTIME);
}

int64_t clock_now_ms(const struct clock *clock)
{
    return clock_now_us(clock) / US_PER_MS;
}

int64_t clock_wall_us(const struct clock *clock)
{
    return clock->is_virtual ? clock->wall_us : read_kernel(CLOCK_REALTIME);
}

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "clock: %s\n", what);
    abort();
}

void clock_advance_us(struct clock *clock, int64_t by_us)
{
    must(clock->is_virtual, "a real clock cannot be moved");
    must(by_us >= 0, "time does not go back");
    must(!__builtin_add_overflow(clock->now_us, by_us, &clock->now_us), "end of time");
    must(!__builtin_add_overflow(clock->wall_us, by_us, &clock->wall_us), "end of time");
}

void clock_advance_to_us(struct clock *clock, int64_t now_us)
{
    must(clock->is_virtual, "a real clock cannot be moved");
    must(now_us >= clock->now_us, "time does not go back");
    clock_advance_us(clock, now_us - clock->now_us);
}

void clock_set_wall_us(struct clock *clock, int64_t wall_us)
{
    must(clock->is_virtual, "a real clock cannot be moved");
    clock->wall_us = wall_us;
}
