/* pool.h - the worker processes: each has one call at a time, with a deadline.
 *
 * libslurm blocks, and reads its token once. So calls are made in processes of their own: a worker
 * that overruns is killed, a worker that dies is replaced, and a new token means new workers.
 *
 * Holds: a request ends once. A request that was handed to a worker is never handed to another one:
 * when that worker does not answer, the request ends with 504. A request that no worker got ends
 * with 503, which is proof that nothing was done.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef SLINC_AGENT_POOL_H
#define SLINC_AGENT_POOL_H

#include "frame.h"
#include "io/loop.h"

#include <stdbool.h>

struct pool;
struct pool_request;

struct pool_options {
    const char *const *program; /* of a worker, ends with NULL; its socket is descriptor 3 */
    const char *conf_path;      /* of slurm.conf */
    unsigned workers;
    unsigned max_queued;
    int64_t call_us;  /* for a request, from its arrival to its answer; then the worker is killed */
    int64_t queue_us; /* for waiting, of that */
};

/* Options are borrowed. There are no workers before the first token. */
struct pool *pool_new(struct loop *loop, const struct pool_options *options);
void pool_free(struct pool *pool); /* ends the workers; requests end without an answer */

/* Workers with this token take the place of those that there are, which finish their calls. */
void pool_set_token(struct pool *pool, struct str token);

/* The body is borrowed until this returns. */
typedef void (*pool_done)(void *context, int status, struct str body);

/* NULL: the queue is full, or no worker can be had; nothing was done. The text is copied. done is
 * called once, later, from the loop. */
struct pool_request *pool_send(struct pool *pool, enum agent_call call, int64_t job_id,
                               struct str text, pool_done done, void *context);
/* Nobody waits for the answer any more: a request that still waits is dropped. */
void pool_forget(struct pool_request *request);

struct pool_state {
    unsigned workers, busy, queued; /* workers that are ready, whatever their token */
    const char *slurm;              /* version of libslurm; "" before a worker was ready */
    uint64_t killed, died;          /* since the start */
};
void pool_state(const struct pool *pool, struct pool_state *ret_state);

#endif
