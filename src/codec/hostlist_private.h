/* hostlist_private.h - what the hostlist*.c files share: the numbers in names. */
#ifndef SLINC_CODEC_HOSTLIST_PRIVATE_H
#define SLINC_CODEC_HOSTLIST_PRIVATE_H

#include "codec/hostlist.h"

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* How many digits the name ends in. */
size_t hostlist_trailing_digits(struct str name);

/* The value of at most HOSTLIST_MAX_DIGITS digits. */
uint64_t hostlist_value_of(struct str digits);

/* How many digits a number takes that is filled up with zeros to at least `width`. */
unsigned hostlist_written_width(uint64_t value, unsigned width);

/* Writes these digits, without a NUL; returns where they end. */
char *hostlist_write_number(char *to, uint64_t value, unsigned width);

#endif
