/* bitmap.h - sets of small numbers: Slurm's core maps and index lists, Linux's cpu lists.
 *
 * A bitmap holds the numbers 0 to bits - 1. It reads and writes two texts: hexadecimal with the
 * highest bit first ("0x0F"), as Slurm prints core maps, and ranges ("0-3,8,10-11"), as in Slurm's
 * index fields and the cpuset files of Linux. */
#ifndef SLINC_CODEC_BITMAP_H
#define SLINC_CODEC_BITMAP_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BITMAP_MAX_BITS = 1 << 20, /* asking for more is a defect and aborts */
};

struct bitmap {
    uint64_t *words; /* bits past the end are zero */
    size_t bits;
};

void bitmap_init(struct bitmap *map, size_t bits); /* all clear */
void bitmap_done(struct bitmap *map);
void bitmap_copy(struct bitmap *to, const struct bitmap *from); /* to is not initialised before */

/* Both make a bitmap of exactly `bits` bits. A number that does not fit is -ERR_TOO_BIG, anything
 * else that is wrong -ERR_INVALID with its position.
 * Hexadecimal: with or without "0x"; at least one digit; zeros in front may be more than fit.
 * Ranges: in any order, overlapping or not; the empty text is the empty set. */
int bitmap_parse_hex(struct str text, size_t bits, struct bitmap *ret_map, struct err *err);
int bitmap_parse_ranges(struct str text, size_t bits, struct bitmap *ret_map, struct err *err);

void bitmap_print_hex(const struct bitmap *map, struct buf *out);    /* "0x", a digit per 4 bits */
void bitmap_print_ranges(const struct bitmap *map, struct buf *out); /* shortest, ascending */

/* A bit past the end is clear, and clearing it does nothing; setting it is a defect and aborts. */
void bitmap_set(struct bitmap *map, size_t bit);
void bitmap_set_range(struct bitmap *map, size_t first, size_t last); /* both included */
void bitmap_clear(struct bitmap *map, size_t bit);
bool bitmap_test(const struct bitmap *map, size_t bit);

/* Of different sizes, the smaller one counts as filled up with clear bits; bitmap_or makes `map`
 * as large as `other`, the others leave its size. */
void bitmap_and(struct bitmap *map, const struct bitmap *other);
void bitmap_or(struct bitmap *map, const struct bitmap *other);
void bitmap_andnot(struct bitmap *map, const struct bitmap *other);

size_t bitmap_count(const struct bitmap *map);
bool bitmap_equal(const struct bitmap *a, const struct bitmap *b); /* same set, whatever the size */

/* The first set bit at or after `from`; false when there is none.
 *
 *     for (size_t bit = 0; bitmap_next(map, bit, &bit); bit++) ... */
bool bitmap_next(const struct bitmap *map, size_t from, size_t *ret_bit);

#define auto_bitmap __attribute__((cleanup(bitmap_done)))

#endif
