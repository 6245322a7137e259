/* quantity.h - Kubernetes resource quantities ("1500m", "4Gi", "2e3"), exact.
 *
 * Accepts what k8s.io/apimachinery accepts and gives the same values: more precision than nano is
 * rounded away from zero, and a value with a binary suffix is capped at +-(2^63 - 1). Two things
 * differ, both beyond any real amount: an exponent outside 32 bits is refused (Go lets it wrap
 * around), and digits after the 38th significant one are rounded away from zero. */
#ifndef SLINC_CODEC_QUANTITY_H
#define SLINC_CODEC_QUANTITY_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "codec/json.h"

#include <stdbool.h>
#include <stdint.h>

enum quantity_format {
    QUANTITY_DECIMAL_SI,       /* 12M */
    QUANTITY_BINARY_SI,        /* 12Mi */
    QUANTITY_DECIMAL_EXPONENT, /* 12e6 */
};

/* The value is mantissa * 10^scale. Equal values are equal here: the mantissa has no factor of ten
 * (zero has scale 0). It stays under 10^38, and scale at or above -9. All bytes zero is "0". */
struct quantity {
    __extension__ __int128 mantissa;
    int32_t scale;
    enum quantity_format format; /* how it was written, and will be printed */
};

/* No text that quantity_print writes is longer. */
#define QUANTITY_TEXT_MAX 64

int quantity_parse(struct str text, struct quantity *ret_quantity, struct err *err);

/* In JSON a quantity is a string or a number: cpu: 0.5 is "500m". */
int quantity_from_json(const struct json *value, struct quantity *ret_quantity, struct err *err);
/* Whether the members of this name are quantities, or maps of quantities: sizeLimit, requests. */
bool quantity_is_name(struct str name);

struct quantity quantity_of_units(int64_t units, enum quantity_format format);

/* Appends the canonical form, as Go's CanonicalizeBytes. Where the SI table has no suffix left
 * (from 1000E on) the exponent form is written, where Go would drop the factor. */
void quantity_print(const struct quantity *quantity, struct buf *buf);

int quantity_sign(const struct quantity *quantity);                   /* -1, 0, 1 */
int quantity_cmp(const struct quantity *a, const struct quantity *b); /* -1, 0, 1 */

/* Whole units, thousandths, or MiB of a value in bytes, rounded towards +infinity. -ERR_TOO_BIG
 * when the result is no int64. */
int quantity_ceil_units(const struct quantity *quantity, int64_t *ret_units, struct err *err);
int quantity_ceil_milli(const struct quantity *quantity, int64_t *ret_milli, struct err *err);
int quantity_ceil_mib(const struct quantity *quantity, int64_t *ret_mib, struct err *err);

#endif
