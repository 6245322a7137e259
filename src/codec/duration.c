/* duration.c - reads spans of time the way Go does. */
#include "codec/duration.h"

#include <stdbool.h>

static const struct unit {
    const char *name;
    uint64_t nanos;
} units[] = {
    { "ns", 1 },           { "us", 1000 },      { "\xc2\xb5s", 1000 }, /* U+00B5, the micro sign */
    { "\xce\xbcs", 1000 }, /* U+03BC, the Greek letter */
    { "ms", 1000000 },     { "s", 1000000000 }, { "m", 60000000000 },  { "h", 3600000000000 },
};

/* Of a negative duration; a positive one ends one before. */
static const uint64_t magnitude_max = UINT64_C(1) << 63;

static bool next_is_digit(struct str rest)
{
    return rest.len > 0 && rest.at[0] >= '0' && rest.at[0] <= '9';
}

static char take_char(struct str *rest)
{
    char c = rest->at[0];

    *rest = str_sub(*rest, 1, rest->len);
    return c;
}

static int take_whole(struct str *rest, uint64_t *ret_whole, struct err *err)
{
    uint64_t whole = 0;

    while (next_is_digit(*rest)) {
        uint64_t digit = (uint64_t)(take_char(rest) - '0');

        if (whole > (magnitude_max - digit) / 10)
            return err_set(err, ERR_TOO_BIG, "out of range");
        whole = whole * 10 + digit;
    }
    *ret_whole = whole;
    return 0;
}

struct fraction {
    uint64_t digits;
    double scale; /* the fraction is digits / scale */
};

/* Digits that no longer fit are read and dropped. */
static struct fraction take_fraction(struct str *rest)
{
    struct fraction fraction = { .scale = 1 };
    bool full = false;

    while (next_is_digit(*rest)) {
        uint64_t digit = (uint64_t)(take_char(rest) - '0');

        full = full || fraction.digits > INT64_MAX / 10 ||
               fraction.digits * 10 + digit > magnitude_max;
        if (full)
            continue;
        fraction.digits = fraction.digits * 10 + digit;
        fraction.scale *= 10;
    }
    return fraction;
}

static int take_unit(struct str *rest, uint64_t *ret_nanos, struct err *err)
{
    size_t length = 0;

    while (length < rest->len && rest->at[length] != '.' &&
           !next_is_digit(str_sub(*rest, length, rest->len)))
        length++;

    struct str name = str_sub(*rest, 0, length);

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (str_is(name, units[i].name)) {
            *rest = str_sub(*rest, length, rest->len);
            *ret_nanos = units[i].nanos;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID, length > 0 ? "no such unit" : "no unit");
}

/* One number with its unit: 1.5h. */
static int take_term(struct str *rest, uint64_t *ret_nanos, struct err *err)
{
    struct str start = *rest;
    struct fraction fraction = { .scale = 1 };
    uint64_t whole = 0, unit = 0;
    int result = take_whole(rest, &whole, err);

    if (result < 0)
        return result;

    size_t digits = start.len - rest->len;

    if (rest->len > 0 && rest->at[0] == '.') {
        take_char(rest);
        size_t before = rest->len;
        fraction = take_fraction(rest);
        digits += before - rest->len;
    }
    if (digits == 0)
        return err_set(err, ERR_INVALID, "no number");
    result = take_unit(rest, &unit, err);
    if (result < 0)
        return result;
    if (whole > magnitude_max / unit)
        return err_set(err, ERR_TOO_BIG, "out of range");

    /* Go computes fractions in double, in this order; the last nanosecond depends on it. */
    *ret_nanos =
        whole * unit + (uint64_t)((double)fraction.digits * ((double)unit / fraction.scale));
    return 0;
}

static int take_terms(struct str rest, uint64_t limit, uint64_t *ret_nanos, struct err *err)
{
    uint64_t sum = 0;

    while (rest.len > 0) {
        uint64_t nanos = 0;
        int result = take_term(&rest, &nanos, err);

        if (result < 0)
            return result;
        if (nanos > limit || sum > limit - nanos)
            return err_set(err, ERR_TOO_BIG, "out of range");
        sum += nanos;
    }
    *ret_nanos = sum;
    return 0;
}

int duration_parse(struct str text, int64_t *ret_nanos, struct err *err)
{
    bool negative = text.len > 0 && text.at[0] == '-';
    bool sign = negative || (text.len > 0 && text.at[0] == '+');
    struct str rest = str_sub(text, sign, text.len);
    uint64_t nanos = 0;
    int result = 0;

    if (rest.len == 0)
        result = err_set(err, ERR_INVALID, "empty");
    else if (!str_is(rest, "0"))
        result = take_terms(rest, magnitude_max - !negative, &nanos, err);
    if (result < 0) {
        (void)err_wrap(err, "duration \"" STR_FMT "\"", STR_ARG(str_sub(text, 0, 64)));
        return result;
    }
    *ret_nanos = !negative || nanos == 0 ? (int64_t)nanos : -(int64_t)(nanos - 1) - 1;
    return 0;
}
