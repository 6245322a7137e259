/* job_change.h - what of a job that waits can be made another, and what Slurm must be told for it.
 *
 * A job is compared with what it was asked with, as far as that is remembered: what people changed
 * in Slurm stays. Its record tells where nothing is remembered, for what it shows as it was said.
 */
#ifndef SLINC_BRIDGE_JOB_CHANGE_H
#define SLINC_BRIDGE_JOB_CHANGE_H

#include "bridge/job_ask.h"
#include "slurm/object.h"

enum { JOB_CHANGE_FIELDS = 31 };

/* What a job was asked with: a small hash of each field; 0: it was not said. */
struct job_marks {
    uint32_t at[JOB_CHANGE_FIELDS];
};

void job_marks_of(const struct job_ask *ask, struct job_marks *ret_marks);

/* Whether it was asked for with priority 0, and is held for that. */
bool job_marks_hold(const struct job_marks *marks);

/* A field that is said otherwise and that Slurm changes of no job: only a new one has it. NULL. */
const char *job_marks_need_anew(const struct job_marks *marks, const struct job_ask *ask);

struct job_change_from {
    const struct job_marks *marks; /* NULL: not remembered */
    const struct slurm_job *job;   /* its record; NULL: what is remembered is sure */
    bool resized;                  /* it is for more or fewer pods than before */
};

/* Puts into `fields` what an update must say; whether that is anything. What a job can not be told
 * while it waits is left as it is: see docs/internals/bridge.md. */
bool job_change(struct json_build *build, struct json_mut *fields, const struct job_ask *ask,
                const struct job_change_from *from);

#endif
