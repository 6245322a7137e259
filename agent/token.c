/* token.c - looks at the file of the token, or of the key, again and again.
 *
 * Holds: what was read is wiped; what cannot be read, or is no token, is said once and leaves the
 * last token in use.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#include "token.h"

#include "base/log.h"
#include "base/mem.h"
#include "codec/jwt.h"
#include "io/reload.h"

#include <stdio.h>

enum { PERIOD_US = 5000000, US_PER_SECOND = 1000000 };

struct token_source {
    struct loop *loop;
    struct token_options options;
    struct loop_timer look;
    char *last; /* the token in use */
    int64_t signed_us;
    struct err told;
};

static const char *path_of(const struct token_source *source)
{
    return source->options.key_file ? source->options.key_file : source->options.token_file;
}

static void drop(char *token)
{
    if (token)
        mem_free_secret(token, strlen(token) + 1);
}

static void tell(struct token_source *source, const struct err *why)
{
    if (strcmp(source->told.text, why->text) == 0)
        return;
    source->told = *why;
    if (why->text[0])
        log_warn(source->last ? "there is no new token for Slurm; the last one stays in use"
                              : "there is no token for Slurm yet",
                 LOG_TEXT("file", path_of(source)), LOG_ERROR(why));
}

/* Blanks around it, and "SLURM_JWT=" in front, are no part of a token. */
static struct str bare(struct str text)
{
    struct str token = str_trim(text), prefix = STR("SLURM_JWT=");

    return str_starts(token, prefix) ? str_sub(token, prefix.len, token.len) : token;
}

static int sign(struct token_source *source, struct str key, struct buf *out, struct err *err)
{
    struct jwt_claims claims = { .iat = clock_wall_us(loop_clock(source->loop)) / US_PER_SECOND };

    claims.exp = claims.iat + source->options.lifetime_s;
    (void)snprintf(claims.sun, sizeof(claims.sun), "%s", source->options.user);
    return jwt_sign(key, &claims, out, err);
}

static int take(struct token_source *source, struct str token, struct err *err)
{
    struct jwt_claims claims;

    if (jwt_peek(token, &claims, err) < 0)
        return -ERR_INVALID;
    if (source->last && str_is(token, source->last))
        return 0;
    drop(source->last);
    source->last = mem_strndup(token.at, token.len);
    source->options.changed(source->options.context, token, claims.sun);
    return 0;
}

/* A signed token is replaced when half of its time has passed. */
static bool is_fresh(const struct token_source *source)
{
    return source->options.key_file && source->last &&
           loop_now_us(source->loop) - source->signed_us <
               source->options.lifetime_s * US_PER_SECOND / 2;
}

static int read_new(struct token_source *source, struct err *err)
{
    struct buf made = { .max = JWT_TOKEN_MAX };
    char *bytes;
    size_t length;
    int result = reload_read(path_of(source), JWT_TOKEN_MAX, &bytes, &length, err);

    if (result < 0)
        return result;
    if (!source->options.key_file) {
        result = take(source, bare((struct str){ bytes, length }), err);
    } else {
        result = sign(source, (struct str){ bytes, length }, &made, err);
        if (result == 0)
            result = take(source, buf_str(&made), err);
        if (result == 0)
            source->signed_us = loop_now_us(source->loop);
        mem_free_secret(made.data, made.cap);
    }
    mem_free_secret(bytes, length + 1);
    return result;
}

static void look(void *context)
{
    struct token_source *source = context;
    struct err why = { .class = 0 };

    loop_timer_start(source->loop, &source->look, source->options.period_us, look, source);
    if (is_fresh(source))
        return;
    (void)read_new(source, &why);
    tell(source, &why);
}

struct token_source *token_source_new(struct loop *loop, const struct token_options *options)
{
    struct token_source *source = mem_alloc(sizeof(*source));

    source->loop = loop;
    source->options = *options;
    if (source->options.period_us <= 0)
        source->options.period_us = PERIOD_US;
    loop_timer_start(loop, &source->look, 0, look, source);
    return source;
}

void token_source_free(struct token_source *source)
{
    if (!source)
        return;
    loop_timer_stop(&source->look);
    drop(source->last);
    mem_free(source);
}
