/* hostlist.h - Slurm's short form for many node names: "n[1-3,7,009-011],rack[1-2]node[01-04]".
 *
 * A bracket holds numbers and ranges; the zeros in front of the first number are kept. Several
 * brackets in one name give every combination. Commas and white space separate names. A parsed list
 * keeps the ranges, so counting, asking and walking cost no memory per name. */
#ifndef SLINC_CODEC_HOSTLIST_H
#define SLINC_CODEC_HOSTLIST_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HOSTLIST_MAX_NAMES = 64 * 1024,  /* the usual maximum to give; Slurm's own for one range */
    HOSTLIST_MAX_TEXT = 1024 * 1024, /* bytes of a list's text */
    HOSTLIST_MAX_NAME = 253,         /* bytes of one name */
    HOSTLIST_MAX_BRACKETS = 8,       /* in one name */
    HOSTLIST_MAX_DIGITS = 18,        /* of a number; Slurm mangles what passes 64 bits */
};

struct hostlist; /* immutable; lives in the arena it was parsed into */

/* The list may be empty. Fails with -ERR_TOO_BIG when it stands for more than max_names names or a
 * bound above is passed, else with -ERR_INVALID; both name the byte. Takes from the arena about 40
 * bytes for each byte of text at worst. */
int hostlist_parse(struct arena *arena, struct str text, uint64_t max_names,
                   const struct hostlist **ret_list, struct err *err);

uint64_t hostlist_count(const struct hostlist *list); /* a name given twice counts twice */
bool hostlist_contains(const struct hostlist *list, struct str name);

/* Walks the names in Slurm's order.
 *
 *     struct hostlist_iter iter = hostlist_iter(list);
 *     while (hostlist_next(&iter, &name)) ... */
struct hostlist_place {
    size_t range;   /* which range of a bracket */
    uint64_t value; /* which number in it */
};

struct hostlist_iter {
    const struct hostlist *list;
    size_t pattern; /* which name with brackets is walked */
    bool started;   /* in the middle of it */
    struct hostlist_place places[HOSTLIST_MAX_BRACKETS];
    char name[HOSTLIST_MAX_NAME + 1];
};

struct hostlist_iter hostlist_iter(const struct hostlist *list);
/* The name lies in the iterator, NUL-terminated, until the next call. */
bool hostlist_next(struct hostlist_iter *iter, struct str *ret_name);

/* Appends the shortest text for a set of names: sorted naturally, each once, numbers at the end
 * folded into one bracket per prefix, as `scontrol show hostlistsorted` prints it. -ERR_INVALID
 * for a name that is not safe; overflow is left in the buffer. */
int hostlist_fold(const struct str *names, size_t count, struct buf *out, struct err *err);

/* A name that means one node wherever Slurm reads it: letters, digits, '-', '_', '.', the first of
 * them a letter, digit or '_'; no number at the end that Slurm would mangle. */
int hostlist_check_name(struct str name, struct err *err);

#endif
