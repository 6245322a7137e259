/* duration.c - reads and prints spans of time the way Go and Slurm do.
 *
 * Holds  what is printed here is read back as the same span. */
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

/* value / 10^places without trailing zeros: 3500 with 3 places is 3.5. */
static void print_decimal(uint64_t value, int places, struct buf *buf)
{
    uint64_t one = 1;

    for (int i = 0; i < places; i++)
        one *= 10;

    uint64_t fraction = value % one;

    buf_printf(buf, "%llu", (unsigned long long)(value / one));
    if (fraction == 0)
        return;
    while (fraction % 10 == 0) {
        fraction /= 10;
        places--;
    }
    buf_printf(buf, ".%0*llu", places, (unsigned long long)fraction);
}

static void print_small(uint64_t nanos, struct buf *buf)
{
    if (nanos < 1000) {
        print_decimal(nanos, 0, buf);
        buf_add_text(buf, "ns");
    } else if (nanos < 1000000) {
        print_decimal(nanos, 3, buf);
        buf_add_text(buf, "\xc2\xb5s");
    } else {
        print_decimal(nanos, 6, buf);
        buf_add_text(buf, "ms");
    }
}

void duration_print(int64_t nanos, struct buf *buf)
{
    uint64_t rest = nanos < 0 ? -(uint64_t)nanos : (uint64_t)nanos;
    const uint64_t second = DURATION_SECOND, minute = 60 * second, hour = 60 * minute;

    if (nanos < 0)
        buf_add_char(buf, '-');
    if (rest > 0 && rest < second) {
        print_small(rest, buf);
        return;
    }
    if (rest >= hour)
        buf_printf(buf, "%lluh", (unsigned long long)(rest / hour));
    if (rest >= minute)
        buf_printf(buf, "%llum", (unsigned long long)(rest % hour / minute));
    print_decimal(rest % minute, 9, buf);
    buf_add_char(buf, 's');
}

static bool is_word(struct str text, const char *word)
{
    size_t i = 0;

    for (; i < text.len && word[i] != '\0'; i++) {
        char c = text.at[i];

        if (c >= 'a' && c <= 'z')
            c = (char)(c - 'a' + 'A');
        if (c != word[i])
            return false;
    }
    return i == text.len && word[i] == '\0';
}

static bool is_unlimited(struct str text)
{
    static const char *const words[] = { "UNLIMITED", "INFINITE", "-1" };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (is_word(text, words[i]))
            return true;
    return false;
}

/* Fields between colons into ret_fields; how many, or a negated class. */
static int split_fields(struct str text, uint64_t ret_fields[3], struct err *err)
{
    struct str rest = text, part;
    int count = 0;

    while (str_next(&rest, ':', &part)) {
        if (count == 3)
            return err_set(err, ERR_INVALID, "too many fields");

        int result = str_to_u64(part, 0, DURATION_LIMIT_MAX, &ret_fields[count++], err);

        if (result < 0)
            return result;
    }
    return count;
}

static int parse_limit(struct str text, uint64_t *ret_seconds, struct err *err)
{
    static const uint64_t weights[] = { 3600, 60, 1 };
    uint64_t fields[3] = { 0 }, days = 0, seconds;
    struct str before, after;
    bool with_days = str_cut(text, '-', &before, &after);
    int result = with_days ? str_to_u64(before, 0, DURATION_LIMIT_MAX, &days, err) : 0;

    if (result < 0)
        return result;

    int count = split_fields(with_days ? after : text, fields, err);

    if (count < 0)
        return count;

    /* Without days, hours are only written when all three fields are. */
    int first = with_days || count == 3 ? 0 : 1;

    seconds = days * 86400;
    for (int i = 0; i < count; i++)
        seconds += fields[i] * weights[first + i];
    if (seconds > DURATION_LIMIT_MAX)
        return err_set(err, ERR_TOO_BIG, "out of range");
    *ret_seconds = seconds;
    return 0;
}

int duration_parse_limit(struct str text, int64_t *ret_seconds, struct err *err)
{
    uint64_t seconds = 0;

    if (is_unlimited(text)) {
        *ret_seconds = DURATION_UNLIMITED;
        return 0;
    }

    int result = parse_limit(text, &seconds, err);

    if (result < 0) {
        (void)err_wrap(err, "time limit \"" STR_FMT "\"", STR_ARG(str_sub(text, 0, 64)));
        return result;
    }
    *ret_seconds = (int64_t)seconds;
    return 0;
}

void duration_print_limit(int64_t seconds, struct buf *buf)
{
    long long days = seconds / 86400, hours = seconds / 3600 % 24;
    int minutes = (int)(seconds / 60 % 60), rest = (int)(seconds % 60);

    if (seconds == DURATION_UNLIMITED)
        buf_add_text(buf, "UNLIMITED");
    else if (seconds < 0)
        buf_add_text(buf, "INVALID");
    else if (days > 0)
        buf_printf(buf, "%lld-%02lld:%02d:%02d", days, hours, minutes, rest);
    else if (hours > 0)
        buf_printf(buf, "%lld:%02d:%02d", hours, minutes, rest);
    else
        buf_printf(buf, "%d:%02d", minutes, rest);
}
