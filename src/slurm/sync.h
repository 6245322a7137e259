/* sync.h - slurmrestd for simple programs: one call after the other, each waited for.
 *
 * Behind it are a loop, a connection, a token and a client of its own. Every call of calls.h and
 * submit.h can be made, with slurm_sync_done as its callback, and waited for:
 *
 *     slurm_job_get(slurm_sync_client(sync), id, slurm_sync_done, sync);
 *     if (slurm_sync_wait(sync, &error, &err) < 0) ...
 *     body = slurm_sync_body(sync);
 *
 * Not for programs that have a loop of their own: those use client.h. */
#ifndef SLINC_SLURM_SYNC_H
#define SLINC_SLURM_SYNC_H

#include "slurm/calls.h"
#include "slurm/client.h"

struct slurm_sync;

struct slurm_sync_options {
    const char *url;         /* http://host:6820 or https://... */
    const char *unix_socket; /* connect there instead; may be NULL */
    const char *ca_file;     /* for https; NULL: the system's */
    const char *token;       /* one of these three: the token itself, */
    const char *token_file;  /* a file that holds it, */
    const char *key_file;    /* or the key that signs tokens, valid 15 minutes each, for */
    const char *key_user;    /* this user; NULL: "slurm" */
    const char *user;        /* act as this user instead of the token's; may be NULL */
    unsigned version;        /* 42 to 45; 0: the newest that the server has */
};

int slurm_sync_new(const struct slurm_sync_options *options, struct slurm_sync **ret_sync,
                   struct err *err);
void slurm_sync_free(struct slurm_sync *sync); /* takes NULL */

struct slurm_client *slurm_sync_client(struct slurm_sync *sync);

/* The callback of the one call that is waited for. */
void slurm_sync_done(void *context, const struct slurm_answer *answer);

/* Runs until it has come. 0 for DONE and NOT_MODIFIED, else a negated class of base/err.h; either
 * may be NULL. */
int slurm_sync_wait(struct slurm_sync *sync, struct slurm_error *ret_error, struct err *err);

/* Of the last answer; until the next wait. */
const struct json *slurm_sync_body(const struct slurm_sync *sync);
const struct slurm_answer *slurm_sync_answer(const struct slurm_sync *sync);

void slurm_sync_sleep(struct slurm_sync *sync, int64_t us);

#endif
