/* costs.h - what this process has used so far: processor time and memory. */
#ifndef SLINC_BENCH_COSTS_H
#define SLINC_BENCH_COSTS_H

#include "base/str.h"

#include <stdio.h>
#include <sys/resource.h>

static inline double cpu_seconds(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* field: of /proc/self/status. */
static inline double memory_mib(const char *field)
{
    char line[256];
    double kib = 0;
    FILE *file = fopen("/proc/self/status", "re");

    while (file && fgets(line, sizeof(line), file))
        if (str_starts(str_of(line), str_of(field)))
            (void)sscanf(line + strlen(field) + 1, "%lf", &kib);
    if (file)
        (void)fclose(file);
    return kib / 1024;
}

#endif
