/* mark.h - whose a job is.
 *
 * Every Slurm user can write the `extra` of a job and set its flag EXTERNAL_JOB, and read those of
 * others; only administrators write admin_comment. So a job is an owner's when its comment names
 * cluster and release. Where the comment names none, because a plugin of the site has rewritten it,
 * `extra` counts, "<key> <cluster> <release> <HMAC>", if the HMAC is right: by the owner's secret,
 * of these three and of the Slurm user of the job. A text that was copied into a job of another
 * user proves nothing. */
#ifndef SLINC_SLURM_MARK_H
#define SLINC_SLURM_MARK_H

#include "base/buf.h"
#include "slurm/object.h"

enum {
    SLURM_MAX_KEY = 1024, /* bytes of a mark in `extra`, with the key in it */
    SLURM_LEAST_SECRET = 32,
};

/* Of marks. All borrowed; no text but the secrets may be empty, or have a blank. */
struct slurm_owner {
    struct str cluster;
    struct str release;     /* which of those who may be in a cluster */
    struct str secret;      /* "": `extra` proves nothing */
    struct str former;      /* also believed; "" */
    int64_t former_until_s; /* since 1970; the owner takes it away then */
};

/* The secrets in a text, borrowed from it: the first line, of at least SLURM_LEAST_SECRET bytes;
 * and in a second one that may be there the secret before it, a blank, and the time until which it
 * is believed (RFC 3339). */
int slurm_owner_read(struct slurm_owner *owner, struct str text, struct err *err);

/* Appends what stands in `extra`. user: whose the job will be, by name or number; "" when that is
 * not known. -ERR_TOO_BIG. */
int slurm_mark_write(const struct slurm_owner *owner, struct str key, struct str user,
                     struct buf *ret_extra, struct err *err);

/* Whether the `extra` of this job proves that it is the owner's, and its key, borrowed. */
bool slurm_mark_read(const struct slurm_owner *owner, const struct slurm_job *job,
                     struct str *ret_key);

#endif
