/* clock.h - what time it is, for real or in a simulation.
 *
 * Two times: a monotonic one for deadlines and intervals, which only ever goes forward, and the
 * wall clock, which people set and which may jump. Everything that needs a time takes a struct
 * clock, so that the whole program can run on a virtual one. */
#ifndef SLINC_BASE_CLOCK_H
#define SLINC_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct clock {
    bool is_virtual;
    int64_t now_us, wall_us; /* of a virtual clock */
};

void clock_init_real(struct clock *clock);

/* Monotonic time starts at one second, so that 0 is free to mean "never". */
void clock_init_virtual(struct clock *clock, int64_t wall_us);

int64_t clock_now_us(const struct clock *clock); /* monotonic; the zero point means nothing */
int64_t clock_now_ms(const struct clock *clock);
int64_t clock_wall_us(const struct clock *clock); /* since 1970-01-01T00:00:00Z, no leap seconds */

/* For virtual clocks only; a real clock, or a way back, is a defect and aborts. */
void clock_advance_us(struct clock *clock, int64_t by_us);     /* both times */
void clock_advance_to_us(struct clock *clock, int64_t now_us); /* both, to this monotonic time */
void clock_set_wall_us(struct clock *clock, int64_t wall_us);  /* jumps, either way */

#endif
