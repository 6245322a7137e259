/* job_desc_form.h - the forms in which people write annotations. */
#ifndef SLINC_BRIDGE_JOB_DESC_FORM_H
#define SLINC_BRIDGE_JOB_DESC_FORM_H

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    JOB_DESC_MAX_CPUS = 65533, /* on one node; Slurm cuts larger counts to 16 bits */
    JOB_DESC_MAX_GANG = 65535,
};

/* Whether a workload's pods start together. A number above 0: once there are so many. */
enum { JOB_DESC_GANG_NO = -1, JOB_DESC_GANG_ALL = 0 };

enum job_form {
    JOB_FORM_NONE,       /* there is no annotation */
    JOB_FORM_TEXT,       /* as it stands */
    JOB_FORM_DEPENDENCY, /* a text in which nothing but Slurm's own signs stand */
    JOB_FORM_NUMBER,     /* base 10, in the range of its field */
    JOB_FORM_CPUS,       /* a quantity, rounded up to whole CPUs */
    JOB_FORM_MEMORY,     /* a quantity of bytes, rounded up to MiB; 0: all of the node's */
    JOB_FORM_TIME,       /* RFC 3339 */
    JOB_FORM_BEGIN,      /* the same, or a duration from the creation on */
    JOB_FORM_SWITCHES,   /* a number, and after an '@' how long to wait for it */
    JOB_FORM_GANG,
    JOB_FORM_EXCLUSIVE, /* only "false" means shared */
};

struct job_range { /* of JOB_FORM_NUMBER */
    int64_t least, most;
};

struct job_value { /* what a value says that is no text */
    int64_t number;
    int64_t wait; /* of JOB_FORM_SWITCHES: seconds; -1 */
};

/* False: it is not of the form. `created` is what durations count from, in seconds since 1970. */
bool job_form_read(enum job_form form, struct job_range range, int64_t created, struct str value,
                   struct job_value *ret_value);

/* Whether a text is one line of at most `most` bytes, without control characters. */
bool job_form_is_line(struct str text, size_t most);

/* What is allowed, in words. */
void job_form_write(enum job_form form, struct job_range range, struct buf *out);

#endif
