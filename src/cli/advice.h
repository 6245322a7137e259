/* advice.h - what would help something that waits: by Slurm's reason (slurm/reason.h), or by the
 * reason of the bridge's condition. `why` and its documentation speak from these tables. */
#ifndef SLINC_CLI_ADVICE_H
#define SLINC_CLI_ADVICE_H

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

struct advice {
    const char *reason; /* of the condition, or Slurm's word */
    const char *actor;  /* who has to act; "": nobody */
    const char *help;   /* as in struct slurm_reason; "": nothing is known */
    bool is_never;      /* without a change it never starts */
};

struct advice advice_of(const char *reason, bool is_held); /* borrows the reason */

/* Appends the help; its {words} are named, the first with where to change it: the annotation of a
 * pod, or the command that changes the job. */
void advice_write(const char *help, int64_t job_id, bool is_pod, struct buf *out);

void advice_reference(struct buf *out); /* both tables as Markdown */

#endif
