/* trace.c - what happened in a simulated run, line by line. */
#include "trace.h"

#include "base/map.h"

#include <stdarg.h>

void trace_init(struct trace *trace, const struct clock *clock, FILE *out)
{
    trace->clock = clock;
    trace->out = out;
    trace->lines = 0;
    trace->digest = 0;
}

void trace_line(struct trace *trace, const char *format, ...)
{
    char *line = trace->tail[trace->lines % TRACE_TAIL];
    int64_t now_us = clock_now_us(trace->clock);
    const uint64_t secret[2] = { trace->digest, trace->lines };
    int head = snprintf(line, TRACE_LINE, "%lld.%06lld ", (long long)(now_us / 1000000),
                        (long long)(now_us % 1000000));
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line + head, TRACE_LINE - (size_t)head, format, args);
    va_end(args);
    trace->digest = map_hash(str_of(line), secret);
    trace->lines++;
    if (trace->out)
        (void)fprintf(trace->out, "%s\n", line);
}

void trace_print_tail(const struct trace *trace, FILE *out)
{
    uint64_t first = trace->lines > TRACE_TAIL ? trace->lines - TRACE_TAIL : 0;

    for (uint64_t i = first; i < trace->lines; i++)
        (void)fprintf(out, "  %s\n", trace->tail[i % TRACE_TAIL]);
}
