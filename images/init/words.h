/* words.h - an argument list that owns its words, and what the environment puts into it.
 *
 * Expansion follows systemd's unit files, so that nobody needs a shell or its quoting:
 *   $NAME alone       the value's words, split at blanks; quotes '...' and "..." keep blanks
 * together
 *   ...$NAME..., ${NAME}   the value as it is, inside one word
 *   $$                one dollar sign
 * A variable that is not set is empty. Values are never expanded again. */
#ifndef SLINC_INIT_WORDS_H
#define SLINC_INIT_WORDS_H

#include "base/err.h"

#include <stddef.h>

enum { WORDS_MAX = 1024, WORD_MAX_BYTES = 128 * 1024 };

struct words {
    char **at; /* NULL-terminated, ready for exec; NULL while empty */
    size_t count;
};

void words_done(struct words *words);
int words_add(struct words *words, const char *word, struct err *err);
void words_remove(struct words *words, size_t from, size_t count); /* clamped */

/* Adds `word` after expansion: usually one word, any number for "$NAME" alone. */
int words_expand(struct words *words, const char *word, struct err *err);

#endif
