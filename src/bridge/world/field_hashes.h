/* field_hashes.h - the description that a job was last submitted or updated with, as a hash of each
 * field; unit/job_change.h makes and compares them. */
#ifndef SLINC_BRIDGE_FIELD_HASHES_H
#define SLINC_BRIDGE_FIELD_HASHES_H

#include <stdint.h>

enum {
    JOB_MAX_FIELDS = 40,    /* rows of the table of fields (unit/job_field.h) */
    FIELD_HASH_UNKNOWN = 2, /* an update may have changed the field; other hashes are odd */
};

struct field_hashes {
    uint32_t at[JOB_MAX_FIELDS]; /* by row; 0: the field was not set, or is not compared */
};

#endif
