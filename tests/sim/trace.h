/* trace.h - what happened in a simulated run, line by line.
 *
 * Every line goes into a digest, the last ones are kept for the report of a failure, and all of
 * them are printed when asked for. Two runs of one seed must give the same digest. */
#ifndef SLINC_SIM_TRACE_H
#define SLINC_SIM_TRACE_H

#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { TRACE_TAIL = 60, TRACE_LINE = 240 };

struct trace {
    const struct clock *clock;
    FILE *out; /* NULL: not printed */
    uint64_t lines, digest;
    char tail[TRACE_TAIL][TRACE_LINE];
};

void trace_init(struct trace *trace, const struct clock *clock, FILE *out);
/* "12.345678 <what>", cut when too long. */
void trace_line(struct trace *trace, const char *format, ...) __attribute__((format(printf, 2, 3)));
void trace_print_tail(const struct trace *trace, FILE *out);

#endif
