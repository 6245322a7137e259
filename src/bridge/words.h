/* words.h - the texts of the rules, filled in with the facts of a situation. */
#ifndef SLINC_BRIDGE_WORDS_H
#define SLINC_BRIDGE_WORDS_H

#include "bridge/situation.h"

/* The template with each "{word}" replaced by its fact; words.c lists the words. In the
 * arena of the situation. */
const char *words_fill(const struct situation *situation, const char *template);

#endif
