/* fuzz_jwt.c - what is signed verifies, what verifies can be peeked at, and nothing is shown. */
#include "codec/jwt.h"

#include <stdbool.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct str key = { "a key of no importance, 32 bytes", 32 };

static void check(bool holds)
{
    if (!holds)
        abort();
}

static bool same(const struct jwt_claims *a, const struct jwt_claims *b)
{
    return a->iat == b->iat && a->exp == b->exp && str_is(str_of(a->sun), b->sun);
}

static void check_token(struct str token)
{
    struct jwt_claims verified, peeked;
    struct err err = { 0 };
    int result = jwt_verify(key, token, 1700000900, 0, &verified, &err);

    if (result == 0) {
        check(verified.exp > 1700000900 && verified.sun[0] != '\0');
        check(jwt_peek(token, &peeked, NULL) == 0 && same(&verified, &peeked));
    } else {
        check(result == -err.class && err.text[0] != '\0');
        check(token.len < 40 || !memmem(err.text, strlen(err.text), token.at, 40));
    }
    (void)jwt_peek(token, &peeked, NULL);
}

static void check_user(struct str user)
{
    struct jwt_claims claims = { .iat = 1700000000, .exp = 1700001800 }, verified;
    auto_buf struct buf token;

    buf_init(&token, JWT_TOKEN_MAX);
    memcpy(claims.sun, user.at, user.len < JWT_USER_MAX ? user.len : JWT_USER_MAX);
    if (jwt_sign(key, &claims, &token, NULL) < 0)
        return;
    check(jwt_verify(key, buf_str(&token), 1700000900, 0, &verified, NULL) == 0);
    check(same(&claims, &verified));
    token.data[token.len / 2] ^= 1;
    check(jwt_verify(key, buf_str(&token), 1700000900, 0, &verified, NULL) < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str input = { (const char *)data, size };

    check_token(input);
    check_user(input);
    return 0;
}
