/* token.h - the agent's token: from a file that somebody renews, or signed here with Slurm's key.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef SLINC_AGENT_TOKEN_H
#define SLINC_AGENT_TOKEN_H

#include "base/err.h"
#include "base/str.h"
#include "io/loop.h"

struct token_source;

struct token_options {
    const char *token_file; /* one of the two; files may come later */
    const char *key_file;
    const char *user;   /* of tokens that are signed here */
    int64_t lifetime_s; /* of these */
    int64_t period_us;  /* between looks at the file; 0 = 5 s */
    /* A new token; user: whose it is, "" when it does not say. From the loop. */
    void (*changed)(void *context, struct str token, const char *user);
    void *context;
};

struct token_source *token_source_new(struct loop *loop, const struct token_options *options);
void token_source_free(struct token_source *source);

#endif
