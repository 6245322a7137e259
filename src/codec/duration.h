/* duration.h - spans of time in Go's notation: "1h30m". */
#ifndef SLINC_CODEC_DURATION_H
#define SLINC_CODEC_DURATION_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

#define DURATION_SECOND INT64_C(1000000000) /* nanoseconds */

/* Reads what Go's time.ParseDuration reads, to the same nanosecond: [+-](number unit)+ with the
 * units h m s ms us ns, or a plain 0. -ERR_TOO_BIG outside int64 nanoseconds (292 years). */
int duration_parse(struct str text, int64_t *ret_nanos, struct err *err);

#endif
