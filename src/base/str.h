/* str.h - a slice of somebody else's text, and the few questions we ask of text. */
#ifndef SLINC_BASE_STR_H
#define SLINC_BASE_STR_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Borrowed: not NUL-terminated, valid as long as what it points into. at is never NULL, except in
 * the rest that str_next has used up. */
struct str {
    const char *at;
    size_t len;
};

#define STR(literal) ((struct str){ "" literal, sizeof(literal) - 1 })
#define STR_FMT      "%.*s"
#define STR_ARG(s)   (int)((s).len > 4096 ? 4096 : (s).len), (s).at

static inline struct str str_of(const char *text) /* NULL gives the empty string */
{
    return text ? (struct str){ text, strlen(text) } : (struct str){ "", 0 };
}

bool str_eq(struct str a, struct str b);
bool str_is(struct str s, const char *text);
bool str_eq_nocase(struct str a, struct str b);      /* a to z and A to Z are the same letters */
int str_cmp(struct str a, struct str b);             /* bytes, as memcmp; shorter first */
int str_compare_texts(const void *a, const void *b); /* of two const char *, for qsort */
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
struct str str_sub(struct str s, size_t from, size_t to); /* clamped */
struct str str_trim(struct str s);                        /* spaces, tabs, CR, LF at both ends */

/* Cuts the part before the next `separator` off *rest into *ret_part. False when *rest is used up;
 * an empty text has one empty part. Start with rest->at set and call until false. */
bool str_next(struct str *rest, char separator, struct str *ret_part);

/* Splits at the first separator; false (and nothing written) when there is none. */
bool str_cut(struct str s, char separator, struct str *ret_before, struct str *ret_after);

/* The whole text is one number, in range; no sign for u64, no spaces, no leading '+'. */
int str_to_u64(struct str s, uint64_t min, uint64_t max, uint64_t *ret_value, struct err *err);
int str_to_i64(struct str s, int64_t min, int64_t max, int64_t *ret_value, struct err *err);

bool str_is_alnum(char c); /* a letter of ASCII or a digit */
int str_hex_digit(char c); /* 0 to 15, either case; -1 when it is none */

bool str_is_utf8(struct str s);
size_t str_utf8_char(struct str s); /* bytes of the character at the start; 0 when it is not one */

/* Equal in time that depends on the lengths only; for tokens and signatures. */
bool str_eq_secret(struct str a, struct str b);

#endif
