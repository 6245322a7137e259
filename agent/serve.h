/* serve.h - HTTP on a unix socket: which request is which call, and the answers.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef SLINC_AGENT_SERVE_H
#define SLINC_AGENT_SERVE_H

#include "pool.h"

#include "base/err.h"
#include "io/loop.h"

struct serve;

struct serve_options {
    const char *socket_path;
    struct pool *pool;
    int64_t call_us; /* of the pool */
};

int serve_new(struct loop *loop, const struct serve_options *options, struct serve **ret_serve,
              struct err *err);
/* Whose token the pool has: requests on behalf of somebody else are not for the agent. */
void serve_set_user(struct serve *serve, const char *user);
/* Accepts no more, lets requests under way finish, then calls back. */
void serve_stop(struct serve *serve, void (*stopped)(void *context), void *context);
void serve_free(struct serve *serve);

/* The call of a request; AGENT_CALLS: none. path: without the query. */
enum agent_call serve_find(const char *method, const char *path, int64_t *ret_job_id);

#endif
