/* object_private.h - the field tables: what object.c reads and kind.c holds. Private to the two;
 * and what the poller makes of a job of which it has seen a part. */
#ifndef SLINC_SLURM_OBJECT_PRIVATE_H
#define SLINC_SLURM_OBJECT_PRIVATE_H

#include "slurm/object.h"

enum { SLURM_MAX_FIELDS = 48, SLURM_MAX_FIELD_DEPTH = 3 };

enum slurm_field_type {
    SLURM_FIELD_TEXT,   /* const char *: a text */
    SLURM_FIELD_LIST,   /* const char *: a text, or an array of texts joined by ',' */
    SLURM_FIELD_INT,    /* int64_t: plain or wrapped; unset is 0, infinite INT64_MAX */
    SLURM_FIELD_NUMBER, /* struct slurm_number */
    SLURM_FIELD_BOOL,   /* bool */
    SLURM_FIELD_WORDS,  /* struct slurm_words */
};

struct slurm_field {
    const char *path[SLURM_MAX_FIELD_DEPTH + 1]; /* NULL-terminated */
    enum slurm_field_type type;
    size_t offset;
    const struct slurm_vocabulary *vocabulary; /* of words */
};

struct slurm_kind {
    const char *name;  /* for messages: "job" */
    const char *array; /* where a whole answer holds them */
    const char *key;   /* the member that is the key: a text or a whole number above 0 */
    size_t size;
    const struct slurm_field *fields;
    size_t count;
};

/* The job as it was, RUNNING on these nodes; a new object with one reference. */
const struct slurm_object *slurm_job_started(const struct slurm_job *job, const char *nodes);

/* The start that was expected stays, where next is the same job and still waits without saying one.
 * next: nobody else has seen it yet. */
void slurm_job_keep_start(const struct slurm_object *old, const struct slurm_object *next);

#endif
