/* flags.h - command lines from a table: one row per flag, from which the parser and --help speak.
 *
 * As Go's flag package reads them, because charts and habits do: one dash or two, `--name value` or
 * `--name=value`; a flag that is true or false takes its value only behind '='. */
#ifndef SLINC_CMD_FLAGS_H
#define SLINC_CMD_FLAGS_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum flag_type {
    FLAG_TEXT,    /* const char * */
    FLAG_BOOL,    /* bool */
    FLAG_NUMBER,  /* int64_t, not negative */
    FLAG_IGNORED, /* taken, so that command lines written for others still work */
    FLAG_IGNORED_BOOL,
};

struct flag {
    const char *name; /* without dashes; NULL behind the last row */
    enum flag_type type;
    size_t offset;
    const char *fallback; /* as it would be written; NULL: none */
    const char *help;
};

/* Fills in the fallbacks, then what the command line says. *ret_help: --help or -h was there.
 * Arguments that are no flags are -ERR_INVALID. Texts are borrowed from argv. */
int flags_parse(const struct flag *flags, int argc, char *const *argv, void *ret_values,
                bool *ret_help, struct err *err);

/* The same with words among the flags, as kubectl takes them: they go to ret_words, at most so
 * many. Behind `--` all are words. */
int flags_parse_mixed(const struct flag *flags, int argc, char **argv, void *ret_values,
                      bool *ret_help, char **ret_words, int max_words, int *ret_count,
                      struct err *err);

void flags_help(const struct flag *flags, struct buf *out);

#endif
