/* job_field.h - the table of the fields of a job; job_desc.c has its rows. */
#ifndef SLINC_BRIDGE_JOB_FIELD_H
#define SLINC_BRIDGE_JOB_FIELD_H

#include "bridge/unit/job_desc.h"
#include "bridge/world/field_hashes.h"

enum encoding {                 /* of the field in the request */
                ENCODED_NONE,   /* a number that is not sent */
                ENCODED_TEXT,   /* a string; absent when not said */
                ENCODED_LIST,   /* a hostlist as the only item of an array; absent when not said */
                ENCODED_NUMBER, /* an integer; absent when not said */
                ENCODED_OFFSET, /* an integer; absent when 0 */
                ENCODED_LIMIT,  /* {set, number}; absent when not said */
                ENCODED_NODES,  /* "4", or "1-4" when pods may share nodes */
                ENCODED_SHARED, /* ["none"] for whole nodes, else [] */
};

enum unset { /* what an update of a job that waits says when the field is set no more */
             UNSET_IGNORED,  /* the field is not compared: it is updated by other rules, or never */
             UNSET_KEEPS,    /* nothing: the job stays as it was */
             UNSET_EMPTY,    /* "" */
             UNSET_ZERO,     /* 0 */
             UNSET_NO_LIMIT, /* {set, number: 0} */
             UNSET_NEVER,    /* {set: false} */
             UNSET_OWN,      /* {set, infinite}: Slurm's own */
             UNSET_SIZE,     /* it is sent with the rest of the size */
             UNSET_ANEW, /* Slurm changes the field of no job: only a new job has another value */
};

struct job_field {
    const char *suffix; /* of the annotation */
    enum job_form form;
    struct job_range range;
    size_t offset;     /* of the member of struct job_desc */
    const char *field; /* slurmrestd's name of it */
    enum encoding encoding;
    enum unset unset;
    const char *meaning;
};

extern const struct job_field job_fields[];
extern const size_t job_field_count; /* at most JOB_MAX_FIELDS */

/* NULL: not sent. */
struct json_mut *job_field_json(struct json_build *build, const struct job_desc *desc,
                                const struct job_field *field);
/* An odd number; 0: the description does not set the field. */
uint32_t job_field_hash(const struct job_desc *desc, const struct job_field *field);

#endif
