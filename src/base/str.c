/* str.c - comparing, cutting and reading slices.
 *
 * Holds: nothing outside [at, at + len) is ever read; no locale, no errno. */
#include "base/str.h"

bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

bool str_is(struct str s, const char *text)
{
    return str_eq(s, str_of(text));
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool str_eq_nocase(struct str a, struct str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (lower(a.at[i]) != lower(b.at[i]))
            return false;
    return true;
}

int str_cmp(struct str a, struct str b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common > 0 ? memcmp(a.at, b.at, common) : 0;

    if (order != 0)
        return order;
    return (a.len > b.len) - (a.len < b.len);
}

int str_compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool str_starts(struct str s, struct str prefix)
{
    return s.len >= prefix.len && str_eq(str_sub(s, 0, prefix.len), prefix);
}

bool str_ends(struct str s, struct str suffix)
{
    return s.len >= suffix.len && str_eq(str_sub(s, s.len - suffix.len, s.len), suffix);
}

struct str str_sub(struct str s, size_t from, size_t to)
{
    if (to > s.len)
        to = s.len;
    if (from > to)
        from = to;
    return (struct str){ s.at + from, to - from };
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct str str_trim(struct str s)
{
    while (s.len > 0 && is_blank(s.at[0]))
        s = str_sub(s, 1, s.len);
    while (s.len > 0 && is_blank(s.at[s.len - 1]))
        s.len--;
    return s;
}

bool str_cut(struct str s, char separator, struct str *ret_before, struct str *ret_after)
{
    const char *found = s.len > 0 ? memchr(s.at, separator, s.len) : NULL;

    if (!found)
        return false;

    size_t before = (size_t)(found - s.at);

    *ret_before = str_sub(s, 0, before);
    *ret_after = str_sub(s, before + 1, s.len);
    return true;
}

bool str_next(struct str *rest, char separator, struct str *ret_part)
{
    if (!rest->at)
        return false;
    if (!str_cut(*rest, separator, ret_part, rest)) {
        *ret_part = *rest;
        *rest = (struct str){ NULL, 0 }; /* used up; unlike an empty last part */
    }
    return true;
}

/* The digits of s as one number; false when there are none, something else, or too many. */
static bool read_digits(struct str s, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (s.len == 0)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.at[i] < '0' || s.at[i] > '9')
            return false;
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(s.at[i] - '0'), &value))
            return false;
    }
    *ret_value = value;
    return true;
}

/* Numbers are short: a longer text is shown by its start only. */
#define SHOWN(s) (int)((s).len > 40 ? 40 : (s).len), (s).len > 0 ? (s).at : ""

int str_to_u64(struct str s, uint64_t min, uint64_t max, uint64_t *ret_value, struct err *err)
{
    uint64_t value;

    if (!read_digits(s, &value) || value < min || value > max)
        return err_set(err, ERR_INVALID, "\"%.*s\" is not a whole number from %llu to %llu",
                       SHOWN(s), (unsigned long long)min, (unsigned long long)max);
    *ret_value = value;
    return 0;
}

/* The negative range is one longer than the positive one, hence the detour by magnitude. */
static bool read_signed(struct str s, int64_t *ret_value)
{
    bool negative = s.len > 0 && s.at[0] == '-';
    uint64_t magnitude;

    if (!read_digits(negative ? str_sub(s, 1, s.len) : s, &magnitude))
        return false;
    if (magnitude > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return false;
    if (negative)
        *ret_value = magnitude == 0 ? 0 : -(int64_t)(magnitude - 1) - 1;
    else
        *ret_value = (int64_t)magnitude;
    return true;
}

int str_to_i64(struct str s, int64_t min, int64_t max, int64_t *ret_value, struct err *err)
{
    int64_t value;

    if (!read_signed(s, &value) || value < min || value > max)
        return err_set(err, ERR_INVALID, "\"%.*s\" is not a whole number from %lld to %lld",
                       SHOWN(s), (long long)min, (long long)max);
    *ret_value = value;
    return 0;
}

/* Well-formed UTF-8 by its first byte (Unicode 15, table 3-7). The range of the second byte shuts
 * out overlong forms, surrogates and what lies above U+10FFFF. */
static const struct utf8_lead {
    unsigned char first, last;             /* of the lead byte */
    unsigned char length;                  /* of the whole character */
    unsigned char second_low, second_high; /* of the byte behind it */
} utf8_leads[] = {
    { 0x00, 0x7f, 1, 0x00, 0x00 }, { 0xc2, 0xdf, 2, 0x80, 0xbf }, { 0xe0, 0xe0, 3, 0xa0, 0xbf },
    { 0xe1, 0xec, 3, 0x80, 0xbf }, { 0xed, 0xed, 3, 0x80, 0x9f }, { 0xee, 0xef, 3, 0x80, 0xbf },
    { 0xf0, 0xf0, 4, 0x90, 0xbf }, { 0xf1, 0xf3, 4, 0x80, 0xbf }, { 0xf4, 0xf4, 4, 0x80, 0x8f },
};

static const struct utf8_lead *find_lead(unsigned char byte)
{
    for (size_t i = 0; i < sizeof(utf8_leads) / sizeof(utf8_leads[0]); i++)
        if (byte >= utf8_leads[i].first && byte <= utf8_leads[i].last)
            return &utf8_leads[i];
    return NULL;
}

size_t str_utf8_char(struct str s)
{
    const unsigned char *bytes = (const unsigned char *)s.at;
    const struct utf8_lead *lead = s.len > 0 ? find_lead(bytes[0]) : NULL;

    if (!lead || lead->length > s.len)
        return 0;
    if (lead->length > 1 && (bytes[1] < lead->second_low || bytes[1] > lead->second_high))
        return 0;
    for (size_t i = 2; i < lead->length; i++)
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    return lead->length;
}

bool str_is_alnum(char c)
{
    return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9');
}

int str_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

bool str_is_utf8(struct str s)
{
    while (s.len > 0) {
        size_t length = str_utf8_char(s);

        if (length == 0)
            return false;
        s = str_sub(s, length, s.len);
    }
    return true;
}

bool str_eq_secret(struct str a, struct str b)
{
    volatile unsigned char difference = 0; /* volatile: no early way out for the compiler */

    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        difference = (unsigned char)(difference | (a.at[i] ^ b.at[i]));
    return difference == 0;
}
