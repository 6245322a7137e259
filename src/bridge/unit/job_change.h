/* job_change.h - which fields of a job that waits can change, and what an update must say for that.
 *
 * A job is compared with the description that it was last submitted or updated with, never with its
 * record, so that what people changed in Slurm stays.
 *
 * The hashes of the last description stand as a note in the job, for the next leader. slurmctld
 * takes the note of an update also when it refuses the rest. So the fields that an update changes
 * are unknown in its note, and a leader that knows no better sends them again. */
#ifndef SLINC_BRIDGE_JOB_CHANGE_H
#define SLINC_BRIDGE_JOB_CHANGE_H

#include "bridge/unit/job_desc.h"
#include "bridge/world/field_hashes.h"

void field_hashes_of(const struct job_desc *desc, struct field_hashes *ret_hashes);

bool field_hashes_have_unknown(const struct field_hashes *hashes); /* whether any is */
void field_hashes_add_unknown(struct field_hashes *hashes,
                              const struct field_hashes *others); /* those unknown there */
/* The update was made: unknown fields are as the description says. */
void field_hashes_settle(struct field_hashes *hashes, const struct job_desc *desc);

/* As a note of at most SLURM_MAX_NOTE bytes (slurm/submit.h). It begins with the version of the
 * table, and a note of another version is not read. Fields that Slurm cannot change are not in the
 * note, because a config sets them, too, and a leader with another config must not cancel all jobs
 * that wait. field_hashes_assume_current supposes of these fields that the job was submitted with
 * them as they are described now. */
void field_hashes_write(const struct field_hashes *hashes, struct buf *out);
bool field_hashes_read(struct str note, struct field_hashes *ret_hashes);
void field_hashes_assume_current(struct field_hashes *hashes, const struct job_desc *desc);

/* Whether the job was submitted with priority 0 and is held for that; or may be. */
bool field_hashes_hold(const struct field_hashes *hashes);
bool field_hashes_may_hold(const struct field_hashes *hashes);

/* The annotation, without its prefix, of a field that has changed and that Slurm cannot change:
 * only a new job has it. NULL: none. */
const char *field_hashes_need_anew(const struct field_hashes *hashes, const struct job_desc *desc);

/* Puts into `fields` what an update must say; false: nothing. last: what the job has. resized: it
 * is for more or fewer pods than before, and its size is sent as a whole. docs/internals/bridge.md
 * has what Slurm does with each field. ret_hashes go into the note of the update, and count until
 * the update was made. */
bool job_change(struct json_build *build, struct json_mut *fields, const struct job_desc *desc,
                const struct field_hashes *last, bool resized, struct field_hashes *ret_hashes);

#endif
