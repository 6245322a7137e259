/* timestamp.h - points in time: int64 microseconds since 1970-01-01T00:00:00Z.
 *
 * Valid from the year 0001 to the end of 9999 in UTC. Leap seconds do not exist, as in Go and in
 * POSIX time. */
#ifndef SLINC_CODEC_TIMESTAMP_H
#define SLINC_CODEC_TIMESTAMP_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

#define TIMESTAMP_SECOND INT64_C(1000000) /* microseconds */

#define TIMESTAMP_MIN (INT64_C(-62135596800) * TIMESTAMP_SECOND)     /* 0001-01-01T00:00:00Z */
#define TIMESTAMP_MAX (INT64_C(253402300800) * TIMESTAMP_SECOND - 1) /* end of 9999-12-31 */

/* Reads RFC 3339 and accepts what Go's time.Parse(time.RFC3339) does: also a comma before the
 * fraction, an hour of one digit, and offsets up to 24:60; second 60 is refused. Digits below the
 * microsecond are cut off. */
int timestamp_parse(struct str text, int64_t *ret_time, struct err *err);

/* Append in UTC; -ERR_INVALID (and nothing written) outside the valid range. */
int timestamp_print(int64_t time, struct buf *buf, struct err *err); /* ...:05Z, metav1.Time */
int timestamp_print_micro(int64_t time, struct buf *buf, struct err *err); /* ...:05.000000Z */

const char *timestamp_text(int64_t time, struct arena *arena); /* ...:05Z; "" outside the range */

/* Slurm writes times as plain seconds since the epoch. */
int timestamp_of_seconds(int64_t seconds, int64_t *ret_time, struct err *err);
int64_t timestamp_to_seconds(int64_t time); /* the second that `time` lies in, also before 1970 */

#endif
