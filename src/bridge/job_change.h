/* job_change.h - what of a job that waits can be made another, and what Slurm must be told for it.
 *
 * A job is compared with what it was asked with, as far as that is known: what people changed in
 * Slurm stays. Its record tells where nothing is known, for what it shows as it was said.
 *
 * What it was asked with stands as a note in the job itself, so that another leader knows it, too.
 * slurmctld takes the note of an update also when it refuses the rest. So what an update changes is
 * open in the note that goes with it: whoever knows no better says it again. */
#ifndef SLINC_BRIDGE_JOB_CHANGE_H
#define SLINC_BRIDGE_JOB_CHANGE_H

#include "bridge/job_desc.h"
#include "slurm/object.h"

enum { JOB_CHANGE_FIELDS = 31 };

/* What a job was asked with: a small hash of each field; 0: it was not said; else odd, or open. */
enum { JOB_MARK_OPEN = 2 };
struct job_marks {
    uint32_t at[JOB_CHANGE_FIELDS];
};

void job_marks_of(const struct job_desc *desc, struct job_marks *ret_marks);

bool job_marks_are_open(const struct job_marks *marks);                       /* any of them */
void job_marks_open(struct job_marks *marks, const struct job_marks *others); /* those open there */
/* The update was made: what was open is as the ask says. */
void job_marks_close(struct job_marks *marks, const struct job_desc *desc);

/* As a note of at most SLURM_MAX_NOTE bytes (submit.h). It begins with the version of the table,
 * and one of another version is not read, nor is anything else that was not written so. What Slurm
 * changes of no job is not in it: a config says it, too, and a leader with another one must not
 * cancel all that waits. job_marks_fix takes it for asked as it is said now. */
void job_marks_write(const struct job_marks *marks, struct buf *out);
bool job_marks_read(struct str note, struct job_marks *ret_marks);
void job_marks_fix(struct job_marks *marks, const struct job_desc *desc);

/* Whether it was asked for with priority 0, and is held for that; or may be. */
bool job_marks_hold(const struct job_marks *marks);
bool job_marks_may_hold(const struct job_marks *marks);

/* A field that is said otherwise and that Slurm changes of no job: only a new one has it. NULL. */
const char *job_marks_need_anew(const struct job_marks *marks, const struct job_desc *desc);

struct job_change_from {
    const struct job_marks *marks; /* NULL: not known */
    const struct slurm_job *job;   /* its record; NULL: the marks are sure */
    bool resized;                  /* it is for more or fewer pods than before */
};

/* Puts into `fields` what an update must say; whether that is anything. What a job can not be told
 * while it waits is left as it is: see docs/internals/bridge.md. The marks are those that count
 * until the update was made, and go into its note. */
bool job_change(struct json_build *build, struct json_mut *fields, const struct job_desc *desc,
                const struct job_change_from *from, struct job_marks *ret_marks);

#endif
