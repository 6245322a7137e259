/* quantity.c - reads, prints and compares Kubernetes resource quantities without losing anything.
 *
 * A quantity is a 128-bit mantissa and a power of ten: wide enough for every int64 at every suffix,
 * and for the largest binary value down to its nano digits.
 *
 * Holds  |mantissa| < 10^38; scale >= -9; no factor of ten is left in the mantissa. */
#include "codec/quantity.h"

enum {
    NANO = -9,
    MILLI = -3,
    DIGITS_MAX = 38,
    FRACTION_MAX = 37, /* twice a fraction of that many digits still fits */
    MIB = 1 << 20,
};

static const __int128 mantissa_limit =
    (__int128)10000000000000000000U * 10000000000000000000U; /* 10^38, under 2^127 */

static const struct suffix {
    const char *text;
    int power; /* of ten; of two for the binary ones */
    enum quantity_format format;
} suffixes[] = {
    { "n", -9, QUANTITY_DECIMAL_SI }, { "u", -6, QUANTITY_DECIMAL_SI },
    { "m", -3, QUANTITY_DECIMAL_SI }, { "", 0, QUANTITY_DECIMAL_SI },
    { "k", 3, QUANTITY_DECIMAL_SI },  { "M", 6, QUANTITY_DECIMAL_SI },
    { "G", 9, QUANTITY_DECIMAL_SI },  { "T", 12, QUANTITY_DECIMAL_SI },
    { "P", 15, QUANTITY_DECIMAL_SI }, { "E", 18, QUANTITY_DECIMAL_SI },
    { "Ki", 10, QUANTITY_BINARY_SI }, { "Mi", 20, QUANTITY_BINARY_SI },
    { "Gi", 30, QUANTITY_BINARY_SI }, { "Ti", 40, QUANTITY_BINARY_SI },
    { "Pi", 50, QUANTITY_BINARY_SI }, { "Ei", 60, QUANTITY_BINARY_SI },
};

enum { SUFFIX_COUNT = sizeof(suffixes) / sizeof(suffixes[0]) };

/* A number while it is read: digits * 10^scale, and a bit more if `more`. */
struct number {
    __int128 digits; /* never negative */
    int64_t scale;
    bool negative;
    bool more;  /* something other than zeros was cut off behind the last digit */
    bool empty; /* not one digit was written */
};

static __int128 magnitude(__int128 value)
{
    return value < 0 ? -value : value;
}

static __int128 power_of_ten(int64_t exponent) /* at most DIGITS_MAX */
{
    __int128 power = 1;

    while (exponent-- > 0)
        power *= 10;
    return power;
}

/* value * 10^by for by >= 0; false when that leaves the range. */
static bool raise_power(__int128 value, int64_t by, __int128 *ret_value)
{
    if (value != 0 && by >= DIGITS_MAX)
        return false;
    if (value == 0)
        by = 0;
    return !__builtin_mul_overflow(value, power_of_ten(by), ret_value);
}

/* Moves all factors of ten into the scale; false when the rest leaves the range. */
static bool normalise(__int128 mantissa, int64_t scale, enum quantity_format format,
                      struct quantity *ret_quantity)
{
    while (mantissa != 0 && mantissa % 10 == 0) {
        mantissa /= 10;
        scale++;
    }
    if (mantissa == 0)
        scale = 0;
    if (mantissa >= mantissa_limit || mantissa <= -mantissa_limit || scale > INT32_MAX)
        return false;
    *ret_quantity = (struct quantity){ mantissa, (int32_t)scale, format };
    return true;
}

static void take_digit(struct number *number, int digit, bool fraction)
{
    number->empty = false;
    if (number->digits < mantissa_limit / 10) {
        number->digits = number->digits * 10 + digit;
        number->scale -= fraction;
    } else {
        number->more |= digit != 0;
        number->scale += !fraction;
    }
}

/* Reads [+-]digits[.digits], each part optional; returns the length of that. */
static size_t read_number(struct str text, struct number *ret_number)
{
    struct number number = { .empty = true };
    bool fraction = false;
    size_t i = 0;

    if (text.len > 0 && (text.at[0] == '+' || text.at[0] == '-'))
        number.negative = text.at[i++] == '-';
    for (; i < text.len; i++) {
        char c = text.at[i];

        if (c >= '0' && c <= '9')
            take_digit(&number, c - '0', fraction);
        else if (c == '.' && !fraction)
            fraction = true;
        else
            break;
    }
    *ret_number = number;
    return i;
}

/* Reads e3, E-6, e+9. */
static int read_exponent(struct str text, struct suffix *ret_suffix, struct err *err)
{
    struct str digits = str_sub(text, 1, text.len);
    int64_t power;

    if (digits.len > 1 && digits.at[0] == '+' && digits.at[1] != '-')
        digits = str_sub(digits, 1, digits.len);

    int result = str_to_i64(digits, INT32_MIN, INT32_MAX, &power, err);

    if (result == 0)
        *ret_suffix = (struct suffix){ "e", (int)power, QUANTITY_DECIMAL_EXPONENT };
    return result;
}

static int read_suffix(struct str text, struct suffix *ret_suffix, struct err *err)
{
    for (size_t i = 0; i < SUFFIX_COUNT; i++) {
        if (str_is(text, suffixes[i].text)) {
            *ret_suffix = suffixes[i];
            return 0;
        }
    }
    if (text.at[0] == 'e' || text.at[0] == 'E')
        return read_exponent(text, ret_suffix, err);
    return err_set(err, ERR_INVALID, "no such suffix");
}

/* Go takes a suffix without a number for zero, except where its parser leaves the fast path. */
static bool may_lack_number(const struct suffix *suffix)
{
    return suffix->format == QUANTITY_BINARY_SI ? suffix->power <= 40 : suffix->power >= NANO;
}

/* Drops the digits worth less than 10^scale. */
static void cut_below(struct number *number, int64_t scale)
{
    while (number->scale < scale && number->digits != 0) {
        number->more |= number->digits % 10 != 0;
        number->digits /= 10;
        number->scale++;
    }
    if (number->scale < scale)
        number->scale = scale;
}

/* Multiplies by 2^power by doubling whole part and fraction side by side: no intermediate result
 * outgrows 128 bits, and what passes int64 is capped there. */
static void multiply_binary(struct number *number, int power)
{
    cut_below(number, -FRACTION_MAX);

    int64_t places = number->scale < 0 ? -number->scale : 0;
    __int128 one = power_of_ten(places);
    __int128 whole = number->digits / one;
    __int128 fraction = number->digits % one;
    bool capped = number->scale > 0; /* 38 digits and more */

    for (; power > 0 && whole < INT64_MAX; power--) {
        whole = whole * 2 + (fraction * 2 >= one);
        fraction = fraction * 2 % one;
    }
    if (capped || whole >= INT64_MAX) {
        number->digits = INT64_MAX;
        number->scale = 0;
        number->more = false;
        return;
    }
    while (places > -NANO) { /* so that the sum below stays within 19 + 9 digits */
        number->more |= fraction % 10 != 0;
        fraction /= 10;
        places--;
    }
    number->digits = whole * power_of_ten(places) + fraction;
    number->scale = -places;
}

static int finish(struct number *number, struct suffix suffix, struct quantity *ret_quantity,
                  struct err *err)
{
    enum quantity_format format = suffix.format;

    if (format == QUANTITY_BINARY_SI)
        multiply_binary(number, suffix.power);
    else
        number->scale += suffix.power;
    cut_below(number, NANO);
    number->digits += number->more; /* who asks for something gets something */

    if (format == QUANTITY_BINARY_SI && number->scale < 0 && number->digits != 0 &&
        number->digits < power_of_ten(-number->scale))
        format = QUANTITY_DECIMAL_SI; /* there is no binary way to write less than one */

    if (!normalise(number->negative ? -number->digits : number->digits, number->scale, format,
                   ret_quantity))
        return err_set(err, ERR_TOO_BIG, "its exponent is out of range");
    return 0;
}

int quantity_parse(struct str text, struct quantity *ret_quantity, struct err *err)
{
    struct number number;
    struct suffix suffix = { 0 };
    size_t length = read_number(text, &number);
    int result = read_suffix(str_sub(text, length, text.len), &suffix, err);

    if (result == 0 && (text.len == 0 || (number.empty && !may_lack_number(&suffix))))
        result = err_set(err, ERR_INVALID, "no number");
    if (result == 0)
        result = finish(&number, suffix, ret_quantity, err);
    if (result < 0)
        (void)err_wrap(err, "quantity \"" STR_FMT "\"", STR_ARG(str_sub(text, 0, 64)));
    return result;
}

int quantity_from_json(const struct json *value, struct quantity *ret_quantity, struct err *err)
{
    auto_buf struct buf number = { .max = QUANTITY_TEXT_MAX };

    if (!json_is_number(value))
        return quantity_parse(json_str(value), ret_quantity, err);
    json_write(value, &number);
    return quantity_parse(buf_str(&number), ret_quantity, err);
}

bool quantity_is_name(struct str name)
{
    static const char *const names[] = { "capacity", "divisor",  "limits",
                                         "overhead", "requests", "sizeLimit" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (str_is(name, names[i]))
            return true;
    return false;
}

struct quantity quantity_of_units(int64_t units, enum quantity_format format)
{
    struct quantity quantity = { 0 };

    (void)normalise(units, 0, format, &quantity); /* 19 digits: cannot fail */
    return quantity;
}

static void print_integer(__int128 value, struct buf *buf)
{
    char text[DIGITS_MAX + 3];
    size_t at = sizeof(text);
    __int128 rest = magnitude(value);

    do {
        text[--at] = (char)('0' + (int)(rest % 10));
        rest /= 10;
    } while (rest > 0);
    if (value < 0)
        text[--at] = '-';
    buf_add(buf, text + at, sizeof(text) - at);
}

static const char *find_suffix(int64_t power, enum quantity_format format)
{
    for (size_t i = 0; i < SUFFIX_COUNT; i++)
        if (suffixes[i].power == power && suffixes[i].format == format)
            return suffixes[i].text;
    return NULL;
}

/* The exponent is a multiple of three: 1.1e5 prints as 110k. */
static void print_decimal(const struct quantity *quantity, bool si, struct buf *buf)
{
    int32_t zeros = (quantity->scale % 3 + 3) % 3;
    int32_t exponent = quantity->scale - zeros;
    const char *suffix = si ? find_suffix(exponent, QUANTITY_DECIMAL_SI) : NULL;

    print_integer(quantity->mantissa, buf);
    while (zeros-- > 0)
        buf_add_char(buf, '0');
    if (suffix)
        buf_add_text(buf, suffix);
    else if (exponent != 0)
        buf_printf(buf, "e%d", exponent);
}

/* False when the value is not for binary print: fractions, and what stays under 1Ki. */
static bool print_binary(const struct quantity *quantity, struct buf *buf)
{
    __int128 value;
    int power = 0;

    if (quantity->scale < 0 || !raise_power(quantity->mantissa, quantity->scale, &value) ||
        magnitude(value) < 1024 || magnitude(value) >= mantissa_limit)
        return false;
    for (; value % 1024 == 0 && power < 60; power += 10)
        value /= 1024;
    print_integer(value, buf);
    if (power > 0)
        buf_add_text(buf, find_suffix(power, QUANTITY_BINARY_SI));
    return true;
}

void quantity_print(const struct quantity *quantity, struct buf *buf)
{
    if (quantity->format == QUANTITY_BINARY_SI && print_binary(quantity, buf))
        return;
    print_decimal(quantity, quantity->format != QUANTITY_DECIMAL_EXPONENT, buf);
}

int quantity_sign(const struct quantity *quantity)
{
    return (quantity->mantissa > 0) - (quantity->mantissa < 0);
}

/* Brings both mantissas to the smaller of the two scales; for values of one order always in range.
 */
static void align(const struct quantity *a, const struct quantity *b, __int128 *ret_a,
                  __int128 *ret_b)
{
    int32_t scale = a->scale < b->scale ? a->scale : b->scale;

    (void)raise_power(a->mantissa, (int64_t)a->scale - scale, ret_a);
    (void)raise_power(b->mantissa, (int64_t)b->scale - scale, ret_b);
}

/* Digits before the decimal point; negative when zeros follow it. Values that differ here need no
 * closer look. */
static int64_t order_of(const struct quantity *quantity)
{
    int64_t order = quantity->scale;

    for (__int128 rest = quantity->mantissa; rest != 0; rest /= 10)
        order++;
    return order;
}

int quantity_cmp(const struct quantity *a, const struct quantity *b)
{
    int sign = quantity_sign(a);
    int64_t order_a = order_of(a), order_b = order_of(b);
    __int128 mantissa_a = 0, mantissa_b = 0;

    if (sign != quantity_sign(b))
        return sign < quantity_sign(b) ? -1 : 1;
    if (order_a != order_b)
        return order_a < order_b ? -sign : sign;
    align(a, b, &mantissa_a, &mantissa_b);
    return (mantissa_a > mantissa_b) - (mantissa_a < mantissa_b);
}

/* The value in units of divisor * 10^scale, rounded up. */
static int to_int64(const struct quantity *quantity, int scale, int64_t divisor, int64_t *ret_value,
                    struct err *err)
{
    int64_t shift = (int64_t)quantity->scale - scale;
    __int128 value, unit = power_of_ten(-shift) * divisor; /* 10^9 * MiB at most */

    if (!raise_power(quantity->mantissa, shift > 0 ? shift : 0, &value))
        value = quantity->mantissa > 0 ? mantissa_limit : -mantissa_limit;

    __int128 result = value / unit + (value % unit > 0);

    if (result > INT64_MAX || result < INT64_MIN)
        return err_set(err, ERR_TOO_BIG, "a quantity is out of range");
    *ret_value = (int64_t)result;
    return 0;
}

int quantity_ceil_units(const struct quantity *quantity, int64_t *ret_units, struct err *err)
{
    return to_int64(quantity, 0, 1, ret_units, err);
}

int quantity_ceil_milli(const struct quantity *quantity, int64_t *ret_milli, struct err *err)
{
    return to_int64(quantity, MILLI, 1, ret_milli, err);
}

int quantity_ceil_mib(const struct quantity *quantity, int64_t *ret_mib, struct err *err)
{
    return to_int64(quantity, 0, MIB, ret_mib, err);
}
