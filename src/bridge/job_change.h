/* job_change.h - what of a job that waits can be made another, and what Slurm must be told for it.
 *
 * A job is compared with what it was submitted with, as far as that is known: what people changed
 * in Slurm stays. Its record tells where nothing is known, for what it shows as it was said.
 *
 * What it was submitted with stands as a note in the job itself, so that another leader knows it,
 * too. slurmctld takes the note of an update also when it refuses the rest. So what an update
 * changes is open in the note that goes with it: whoever knows no better says it again. */
#ifndef SLINC_BRIDGE_JOB_CHANGE_H
#define SLINC_BRIDGE_JOB_CHANGE_H

#include "bridge/job_desc.h"
#include "slurm/object.h"

enum { JOB_CHANGE_FIELDS = 31 };

/* What a job was submitted with: a small hash of each field; 0: it was not said; else odd, or open.
 */
enum { FIELD_HASH_UNKNOWN = 2 };
struct field_hashes {
    uint32_t at[JOB_CHANGE_FIELDS];
};

void field_hashes_of(const struct job_desc *desc, struct field_hashes *ret_marks);

bool field_hashes_are_open(const struct field_hashes *hashes); /* any of them */
void field_hashes_open(struct field_hashes *hashes,
                       const struct field_hashes *others); /* those unknown there */
/* The update was made: what was open is as the job description says. */
void field_hashes_close(struct field_hashes *hashes, const struct job_desc *desc);

/* As a note of at most SLURM_MAX_NOTE bytes (submit.h). It begins with the version of the table,
 * and one of another version is not read, nor is anything else that was not written so. What Slurm
 * changes of no job is not in it: a config says it, too, and a leader with another one must not
 * cancel all that waits. field_hashes_fix takes it for asked as it is said now. */
void field_hashes_write(const struct field_hashes *hashes, struct buf *out);
bool field_hashes_read(struct str note, struct field_hashes *ret_marks);
void field_hashes_fix(struct field_hashes *hashes, const struct job_desc *desc);

/* Whether it was submitted with priority 0, and is held for that; or may be. */
bool field_hashes_hold(const struct field_hashes *hashes);
bool field_hashes_may_hold(const struct field_hashes *hashes);

/* A field that is said otherwise and that Slurm changes of no job: only a new one has it. NULL. */
const char *field_hashes_need_anew(const struct field_hashes *hashes, const struct job_desc *desc);

struct job_change_from {
    const struct field_hashes *hashes; /* NULL: not known */
    const struct slurm_job *job;       /* its record; NULL: the hashes are sure */
    bool resized;                      /* it is for more or fewer pods than before */
};

/* Puts into `fields` what an update must say; whether that is anything. What a job can not be told
 * while it waits is left as it is: see docs/internals/bridge.md. The hashes are those that count
 * until the update was made, and go into its note. */
bool job_change(struct json_build *build, struct json_mut *fields, const struct job_desc *desc,
                const struct job_change_from *from, struct field_hashes *ret_marks);

#endif
