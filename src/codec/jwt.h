/* jwt.h - JSON Web Tokens as Slurm's auth/jwt takes them: HS256, claims iat, exp and sun.
 *
 * No error text holds any part of a token or of a key. Keys are borrowed, never copied by us, and
 * wiped from memory by their owner (mem_free_secret). */
#ifndef SLINC_CODEC_JWT_H
#define SLINC_CODEC_JWT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    JWT_TOKEN_MAX = 8192, /* bytes of a whole token */
    JWT_KEY_MAX = 8192,
    JWT_USER_MAX = 255, /* bytes of a user name */
};

#define JWT_NEVER INT64_MAX

/* Times are seconds since 1970. */
struct jwt_claims {
    int64_t iat; /* issued at; 0 when absent */
    int64_t exp; /* first second at which it is no longer valid; JWT_NEVER when absent */
    char sun[JWT_USER_MAX + 1]; /* Slurm user name; "" when absent */
};

/* Appends a signed token. It must end after it begins, and name a user in UTF-8. */
int jwt_sign(struct str key, const struct jwt_claims *claims, struct buf *ret_token,
             struct err *err);

/* Checks, in this order: form, algorithm (HS256 alone; "none" is refused), signature, then the
 * claims: exp and sun must be there, and at `now`, give or take `leeway` seconds, nbf (if any) must
 * have come and exp must not. -ERR_INVALID when it is no token at all, -ERR_DENIED when it is one
 * that does not count. */
int jwt_verify(struct str key, struct str token, int64_t now, uint32_t leeway,
               struct jwt_claims *ret_claims, struct err *err);

/* Reads the claims of a token signed by others with any algorithm, believing them: to see when a
 * token from a file runs out. */
int jwt_peek(struct str token, struct jwt_claims *ret_claims, struct err *err);

/* The same of one claim that is a text: "" when it is absent, no text, or too long for a user. */
void jwt_peek_text(struct str token, const char *claim, char ret_text[JWT_USER_MAX + 1]);

/* Whether the token says that it is made for this audience (claim aud, one or a list), believing
 * it. A text that is no token has none. */
bool jwt_has_audience(struct str token, const char *audience);

#endif
