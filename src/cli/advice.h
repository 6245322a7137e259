/* advice.h - what would help something that waits: by Slurm's reason, or by the reason of the
 * bridge's condition. A table, from which `why` and its documentation speak. */
#ifndef SLINC_CLI_ADVICE_H
#define SLINC_CLI_ADVICE_H

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

struct advice {
    const char *reason; /* Slurm's word, or that of the condition; a '*' at the end: begins so */
    const char *actor;  /* who has to act; "": nobody */
    const char *pod;    /* what to change of a pod; a word {x} is what the annotation x says */
    const char *job;    /* what to change of a job of Slurm; {id} is its number */
    bool is_never;      /* without a change it never starts */
};

/* NULL: nothing is known. */
const struct advice *advice_of(struct str reason);

/* Appends the text with its {words} filled in. */
void advice_write(const char *text, int64_t job_id, struct buf *out);

void advice_reference(struct buf *out); /* the table as Markdown */

#endif
