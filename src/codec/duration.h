/* duration.h - spans of time: Go's notation ("1h30m") and Slurm's time limits ("1-12:00:00"). */
#ifndef SLINC_CODEC_DURATION_H
#define SLINC_CODEC_DURATION_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

#define DURATION_SECOND INT64_C(1000000000) /* nanoseconds */

/* Reads what Go's time.ParseDuration reads, to the same nanosecond: [+-](number unit)+ with the
 * units h m s ms us ns, or a plain 0. -ERR_TOO_BIG outside int64 nanoseconds (292 years). */
int duration_parse(struct str text, int64_t *ret_nanos, struct err *err);

/* Appends what Go's Duration.String() gives: 1h2m3.5s, 1.5ms, 0s. */
void duration_print(int64_t nanos, struct buf *buf);

/* A Slurm time limit, in seconds. Slurm keeps minutes in 32 bits and the two highest values are no
 * times, so a limit is at most DURATION_LIMIT_MAX or else unlimited. */
#define DURATION_UNLIMITED INT64_MAX
#define DURATION_LIMIT_MAX (INT64_C(0xfffffffd) * 60)

/* Reads minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes,
 * days-hours:minutes:seconds, and UNLIMITED, INFINITE or -1 in any case. Fields may exceed their
 * usual range, as in Slurm: "90" and "100:00" are limits. */
int duration_parse_limit(struct str text, int64_t *ret_seconds, struct err *err);

/* Appends as squeue prints: 1-02:03:04, 2:03:04, 3:04 or UNLIMITED; "INVALID" below zero. */
void duration_print_limit(int64_t seconds, struct buf *buf);

#endif
