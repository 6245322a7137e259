/* slurmconf.h - writes and reads slurm.conf and its relatives.
 *
 * The writer escapes by construction: whatever key and value it accepts, Slurm reads back exactly
 * those, on one line. What the format cannot express is refused with the key and the character.
 * Slurm's rules: a line is Key=Value pairs; a value with blanks stands in double quotes and
 * cannot hold one; a value without blanks cannot begin with one; '#' starts a comment and '\' takes
 * the next character as it is, also inside quotes; a '\' at the end joins the next line. Keys have
 * no case. */
#ifndef SLINC_CODEC_SLURMCONF_H
#define SLINC_CODEC_SLURMCONF_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    CONF_MAX_KEY = 64,
    CONF_MAX_VALUE = 256 * 1024,     /* bytes; a long NodeName list fits */
    CONF_MAX_TEXT = 4 * 1024 * 1024, /* bytes of a file to read */
    CONF_MAX_PAIRS = 64 * 1024,      /* of a file to read */
    CONF_MAX_NAME = 63,              /* of a partition or a feature */
    CONF_MAX_FEATURES = 256,         /* in one list */
};

struct conf_pair {
    struct str key, value;
    char op;     /* '+', '-', '*' or '/' of "Key+=Value"; 0 for a plain '=' */
    size_t line; /* reading: where the pair's line starts, from 1; writing: not used */
};

/* ---- writing ---- */

struct conf {
    struct buf *out;
};

void conf_begin(struct conf *conf, struct buf *out);
/* A call that fails writes nothing. Key "Include" is refused: it is no option. */
int conf_option(struct conf *conf, const char *key, struct str value, struct err *err);
int conf_line(struct conf *conf, const struct conf_pair *pairs, size_t count, struct err *err);
int conf_end(struct conf *conf, struct err *err); /* -ERR_TOO_BIG when the buffer overflowed */

/* ---- reading ---- */

/* All pairs in their order; those of one line carry its number. "Include <file>" is a pair too.
 * -ERR_INVALID and -ERR_TOO_BIG name the line. */
int conf_parse(struct arena *arena, struct str text, const struct conf_pair **ret_pairs,
               size_t *ret_count, struct err *err);
bool conf_key_is(const struct conf_pair *pair, const char *key); /* whatever the case */

/* ---- names that end up in Slurm's files and commands ---- */

/* -ERR_INVALID or -ERR_TOO_BIG, naming what is wrong. Names that Slurm gives a meaning of its own
 * (DEFAULT, and ALL for a node) are refused. */
int conf_check_node_name(struct str name, struct err *err);
int conf_check_partition_name(struct str name, struct err *err);
int conf_check_features(struct str list, struct err *err); /* separated by ','; may be empty */

#endif
