/* test_jwt.c - tokens: signed, verified, refused, and never shown. */
#include "codec/jwt.h"

#include "codec/base64.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const struct str key = { "a key of no importance, 32 bytes", 32 };

static const struct jwt_claims good_claims = { 1700000000, 1700001800, "slurm" };
/* Signed by another implementation. */
static const char good_token[] = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
                                 "eyJleHAiOjE3MDAwMDE4MDAsImlhdCI6MTcwMDAwMDAwMCwic3VuIjoic2x1cm0if"
                                 "Q.oUJoQ66e4I7oemun6uN-Zvzb3nJYak0CK20Kvp1XwsQ";

static int verify(const char *token, int64_t now, uint32_t leeway, struct err *err)
{
    struct jwt_claims claims;

    return jwt_verify(key, str_of(token), now, leeway, &claims, err);
}

static void a_token_is_signed_as_others_sign_it(void **state)
{
    auto_buf struct buf token;

    buf_init(&token, JWT_TOKEN_MAX);
    assert_int_equal(jwt_sign(key, &good_claims, &token, NULL), 0);
    assert_string_equal(buf_text(&token), good_token);
}

static void a_good_token_gives_its_claims(void **state)
{
    struct jwt_claims claims = { 0 };

    assert_int_equal(jwt_verify(key, str_of(good_token), 1700000900, 0, &claims, NULL), 0);
    assert_int_equal(claims.iat, 1700000000);
    assert_int_equal(claims.exp, 1700001800);
    assert_string_equal(claims.sun, "slurm");
}

static void a_token_is_good_until_its_last_second_and_the_leeway(void **state)
{
    struct err err = { 0 };

    assert_int_equal(verify(good_token, 1700001799, 0, NULL), 0);
    assert_int_equal(verify(good_token, 1700001800, 0, &err), -ERR_DENIED);
    assert_string_equal(err.text, "the token has expired");
    assert_int_equal(verify(good_token, 1700001809, 10, NULL), 0);
    assert_int_equal(verify(good_token, 1700001810, 10, NULL), -ERR_DENIED);
}

static void another_key_is_denied(void **state)
{
    struct jwt_claims claims = { .iat = 42 };
    struct err err = { 0 };

    assert_int_equal(
        jwt_verify(STR("another key"), str_of(good_token), 1700000900, 0, &claims, &err),
        -ERR_DENIED);
    assert_string_equal(err.text, "the signature of the token is wrong");
    assert_int_equal(claims.iat, 42);
}

static void one_changed_character_is_never_accepted(void **state)
{
    char token[sizeof(good_token)];

    for (size_t i = 0; i < sizeof(good_token) - 1; i++) {
        memcpy(token, good_token, sizeof(token));
        token[i] = token[i] == 'A' ? 'B' : 'A';
        assert_true(verify(token, 1700000900, 0, NULL) < 0);
    }
    for (size_t length = 0; length < sizeof(good_token) - 1; length++) {
        memcpy(token, good_token, sizeof(token));
        token[length] = '\0';
        assert_true(verify(token, 1700000900, 0, NULL) < 0);
    }
}

/* Any header and any payload, rightly signed. */
static void sign_any(const char *header, const char *payload, struct buf *token)
{
    unsigned char mac[32];
    unsigned options = BASE64_URL | BASE64_UNPADDED;

    buf_clear(token);
    base64_encode(str_of(header), options, token);
    buf_add_char(token, '.');
    base64_encode(str_of(payload), options, token);
    assert_non_null(HMAC(EVP_sha256(), key.at, (int)key.len, (unsigned char *)token->data,
                         token->len, mac, NULL));
    buf_add_char(token, '.');
    base64_encode((struct str){ (char *)mac, sizeof(mac) }, options, token);
}

#define JSON(...)    #__VA_ARGS__
#define GOOD_HEADER  JSON({ "alg" : "HS256", "typ" : "JWT" })
#define GOOD_PAYLOAD JSON({ "exp" : 1700001800, "iat" : 1700000000, "sun" : "slurm" })

struct any_token {
    const char *header, *payload;
};

static void expect_each(const struct any_token *cases, size_t count, int wanted)
{
    auto_buf struct buf token;

    buf_init(&token, JWT_TOKEN_MAX);
    for (size_t i = 0; i < count; i++) {
        struct err err = { 0 };

        sign_any(cases[i].header, cases[i].payload, &token);
        if (verify(buf_text(&token), 1700001000, 0, &err) != wanted)
            fail_msg("%s %s: %s", cases[i].header, cases[i].payload, err.text);
    }
}

static void the_signer_of_these_tests_is_right(void **state)
{
    static const struct any_token good[] = {
        { GOOD_HEADER, GOOD_PAYLOAD },
        { JSON({ "alg" : "HS256" }),
          JSON({ "exp" : 1.7000018e9, "sun" : "slurm", "more" : [ {} ] }) },
    };

    expect_each(good, COUNT(good), 0);
}

static void tokens_that_do_not_count_are_denied(void **state)
{
    static const struct any_token cases[] = {
        { JSON({ "alg" : "none" }), GOOD_PAYLOAD },
        { JSON({ "alg" : "HS512" }), GOOD_PAYLOAD },
        { JSON({ "alg" : "RS256" }), GOOD_PAYLOAD },
        { JSON({ "alg" : "hs256" }), GOOD_PAYLOAD },
        { JSON({ "alg" : ["HS256"] }), GOOD_PAYLOAD },
        { JSON({ "alg" : null }), GOOD_PAYLOAD },
        { JSON({ "typ" : "JWT" }), GOOD_PAYLOAD },
        { JSON({ "alg" : "HS256", "crit" : ["b64"] }), GOOD_PAYLOAD },
        { GOOD_HEADER, JSON({ "iat" : 1, "sun" : "slurm" }) },
        { GOOD_HEADER, JSON({ "exp" : null, "sun" : "slurm" }) },
        { GOOD_HEADER, JSON({ "exp" : 1700001800 }) },
        { GOOD_HEADER, JSON({ "exp" : 1700000999, "sun" : "slurm" }) },
        { GOOD_HEADER, JSON({ "exp" : 1700001800, "nbf" : 1700001001, "sun" : "slurm" }) },
    };

    expect_each(cases, COUNT(cases), -ERR_DENIED);
}

static void claims_of_the_wrong_kind_are_invalid(void **state)
{
    static const struct any_token cases[] = {
        { JSON([]), GOOD_PAYLOAD },
        { "", GOOD_PAYLOAD },
        { GOOD_HEADER, "" },
        { GOOD_HEADER, "{" },
        { GOOD_HEADER, JSON([]) },
        { GOOD_HEADER, JSON({ "exp" : "1700001800", "sun" : "slurm" }) },
        { GOOD_HEADER, JSON({ "exp" : -5, "sun" : "slurm" }) },
        { GOOD_HEADER, JSON({ "exp" : 1e300, "sun" : "slurm" }) },
        { GOOD_HEADER, JSON({ "exp" : 1700001800, "iat" : {}, "sun" : "slurm" }) },
        { GOOD_HEADER, JSON({ "exp" : 1700001800, "nbf" : true, "sun" : "slurm" }) },
        { GOOD_HEADER, JSON({ "exp" : 1700001800, "sun" : 7 }) },
        { GOOD_HEADER, JSON({ "exp" : 1700001800, "sun" : "" }) },
        { GOOD_HEADER, "{\"exp\":1700001800,\"sun\":\"root\\u0000x\"}" },
    };

    expect_each(cases, COUNT(cases), -ERR_INVALID);
}

static void a_user_name_has_a_longest_length(void **state)
{
    char payload[512];
    auto_buf struct buf token;

    buf_init(&token, JWT_TOKEN_MAX);
    for (int length = JWT_USER_MAX; length <= JWT_USER_MAX + 1; length++) {
        snprintf(payload, sizeof(payload), "{\"exp\":1700001800,\"sun\":\"%0*d\"}", length, 0);
        sign_any(GOOD_HEADER, payload, &token);
        assert_int_equal(verify(buf_text(&token), 1700001000, 0, NULL),
                         length <= JWT_USER_MAX ? 0 : -ERR_INVALID);
    }
}

static void tokens_without_a_signature_are_refused(void **state)
{
    static const char *const bad[] = { "", ".", "..", "abc", "a.b", "a.b.c", "a.b.c.d" };
    auto_buf struct buf token;

    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(verify(bad[i], 0, 0, NULL), -ERR_INVALID);
    buf_init(&token, JWT_TOKEN_MAX);
    sign_any(GOOD_HEADER, GOOD_PAYLOAD, &token);
    buf_truncate(&token, token.len - 43);
    assert_int_equal(verify(buf_text(&token), 1700001000, 0, NULL), -ERR_DENIED);
    sign_any(JSON({ "alg" : "none" }), GOOD_PAYLOAD, &token);
    buf_truncate(&token, token.len - 43);
    assert_int_equal(verify(buf_text(&token), 1700001000, 0, NULL), -ERR_DENIED);
    sign_any(GOOD_HEADER, GOOD_PAYLOAD, &token);
    buf_add_text(&token, ".more");
    assert_int_equal(verify(buf_text(&token), 1700001000, 0, NULL), -ERR_DENIED);
}

static void no_error_shows_a_part_of_the_token(void **state)
{
    static const char *const cases[] = { "c2VjcmV0.c2VjcmV0.c2VjcmV0", "c2VjcmV0",
                                         "c2VjcmV0.c2VjcmV0",
                                         "eyJhbGciOiJIUzI1NiJ9.c2VjcmV0.c2VjcmV0", good_token };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct jwt_claims claims;
        struct err err = { 0 };

        assert_true(jwt_verify(STR("x"), str_of(cases[i]), 0, 0, &claims, &err) < 0);
        assert_null(strstr(err.text, "c2Vj"));
        assert_null(strstr(err.text, "secret"));
        assert_null(strstr(err.text, "eyJ"));
        if (jwt_peek(str_of(cases[i]), &claims, &err) < 0) {
            assert_null(strstr(err.text, "c2Vj"));
            assert_null(strstr(err.text, "secret"));
        }
    }
}

static void sizes_are_bounded(void **state)
{
    static char text[JWT_TOKEN_MAX + 2];
    struct jwt_claims claims;
    auto_buf struct buf token;

    memset(text, 'A', sizeof(text) - 1);
    text[10] = text[20] = '.';
    assert_int_equal(verify(text, 0, 0, NULL), -ERR_TOO_BIG);
    assert_int_equal(jwt_peek(str_of(text), &claims, NULL), -ERR_TOO_BIG);
    text[JWT_TOKEN_MAX] = '\0';
    assert_int_equal(verify(text, 0, 0, NULL), -ERR_INVALID);

    struct str long_key = { text, JWT_KEY_MAX + 1 };

    buf_init(&token, JWT_TOKEN_MAX);
    assert_int_equal(jwt_sign(long_key, &good_claims, &token, NULL), -ERR_TOO_BIG);
    assert_int_equal(jwt_verify(long_key, str_of(good_token), 0, 0, &claims, NULL), -ERR_TOO_BIG);
    assert_int_equal(jwt_sign(STR(""), &good_claims, &token, NULL), -ERR_INVALID);
    assert_int_equal(jwt_verify(STR(""), str_of(good_token), 0, 0, &claims, NULL), -ERR_INVALID);
    assert_int_equal(token.len, 0);
}

static void a_full_buffer_gets_no_half_a_token(void **state)
{
    auto_buf struct buf token;

    buf_init(&token, sizeof(good_token) - 2 + 7);
    buf_add_text(&token, "Bearer ");
    assert_int_equal(jwt_sign(key, &good_claims, &token, NULL), -ERR_TOO_BIG);
    assert_string_equal(buf_text(&token), "Bearer ");
}

static void claims_that_make_no_token_are_refused(void **state)
{
    struct jwt_claims cases[] = {
        { 100, 200, "" },        { 100, 100, "u" },    { 100, 99, "u" },  { -1, 200, "u" },
        { 100, JWT_NEVER, "u" }, { 100, 200, "\xff" }, { 100, 200, "u" },
    };
    auto_buf struct buf token;

    memset(cases[6].sun, 'u', sizeof(cases[6].sun)); /* without an end */
    buf_init(&token, JWT_TOKEN_MAX);
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(jwt_sign(key, &cases[i], &token, NULL), -ERR_INVALID);
    assert_int_equal(token.len, 0);
}

static void any_user_name_survives(void **state)
{
    static const char *const names[] = { "u",
                                         "user@EXAMPLE.ORG",
                                         "quote\"back\\slash",
                                         "\x01\x1f\n\t",
                                         "\xc3\xa9\xe2\x82\xac",
                                         "{\"sun\":\"root\"}" };
    struct jwt_claims claims = good_claims, read;

    for (size_t i = 0; i <= COUNT(names); i++) {
        auto_buf struct buf token;

        memset(claims.sun, 0, sizeof(claims.sun));
        if (i < COUNT(names))
            memcpy(claims.sun, names[i], strlen(names[i]));
        else
            memset(claims.sun, '\x01', JWT_USER_MAX); /* the longest when escaped */
        buf_init(&token, JWT_TOKEN_MAX);
        assert_int_equal(jwt_sign(key, &claims, &token, NULL), 0);
        assert_int_equal(jwt_verify(key, buf_str(&token), claims.iat, 0, &read, NULL), 0);
        assert_string_equal(read.sun, claims.sun);
    }
}

static void peeking_believes_any_algorithm(void **state)
{
    static const struct {
        const char *header, *payload;
        struct jwt_claims claims;
    } cases[] = {
        { JSON({ "alg" : "RS256" }), GOOD_PAYLOAD, { 1700000000, 1700001800, "slurm" } },
        { GOOD_HEADER, JSON({ "sun" : "x" }), { 0, JWT_NEVER, "x" } },
        { GOOD_HEADER, JSON({ "exp" : 1700001800.75 }), { 0, 1700001800, "" } },
        { GOOD_HEADER, JSON({ "exp" : 9223372036854775807 }), { 0, JWT_NEVER, "" } },
        { "", JSON({}), { 0, JWT_NEVER, "" } },
    };
    auto_buf struct buf token;

    buf_init(&token, JWT_TOKEN_MAX);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct jwt_claims claims;

        sign_any(cases[i].header, cases[i].payload, &token);
        assert_int_equal(jwt_peek(buf_str(&token), &claims, NULL), 0);
        assert_int_equal(claims.iat, cases[i].claims.iat);
        assert_int_equal(claims.exp, cases[i].claims.exp);
        assert_string_equal(claims.sun, cases[i].claims.sun);
    }
}

static void peeking_refuses_what_is_no_token(void **state)
{
    static const char *const cases[] = { "", "abc", "a.b", "e30.!.", "e30.W10.", "e30.e30" };
    struct jwt_claims claims;

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(jwt_peek(str_of(cases[i]), &claims, NULL), -ERR_INVALID);
}

static void an_audience_is_one_name_or_a_list(void **state)
{
    static const struct {
        const char *payload;
        bool has;
    } cases[] = {
        { JSON({ "aud" : "us" }), true },
        { JSON({ "aud" : [ "them", "us" ] }), true },
        { JSON({ "aud" : "usual" }), false },
        { JSON({ "aud" : [] }), false },
        { JSON({ "aud" : { "us" : "us" } }), false },
        { JSON({ "sub" : "us" }), false },
    };
    auto_buf struct buf token;

    buf_init(&token, JWT_TOKEN_MAX);
    for (size_t i = 0; i < COUNT(cases); i++) {
        sign_any(GOOD_HEADER, cases[i].payload, &token);
        assert_int_equal(jwt_has_audience(buf_str(&token), "us"), cases[i].has);
    }
    assert_false(jwt_has_audience(STR("us"), "us"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_signed_as_others_sign_it),
        cmocka_unit_test(a_good_token_gives_its_claims),
        cmocka_unit_test(a_token_is_good_until_its_last_second_and_the_leeway),
        cmocka_unit_test(another_key_is_denied),
        cmocka_unit_test(one_changed_character_is_never_accepted),
        cmocka_unit_test(the_signer_of_these_tests_is_right),
        cmocka_unit_test(tokens_that_do_not_count_are_denied),
        cmocka_unit_test(claims_of_the_wrong_kind_are_invalid),
        cmocka_unit_test(a_user_name_has_a_longest_length),
        cmocka_unit_test(tokens_without_a_signature_are_refused),
        cmocka_unit_test(no_error_shows_a_part_of_the_token),
        cmocka_unit_test(sizes_are_bounded),
        cmocka_unit_test(a_full_buffer_gets_no_half_a_token),
        cmocka_unit_test(claims_that_make_no_token_are_refused),
        cmocka_unit_test(any_user_name_survives),
        cmocka_unit_test(peeking_believes_any_algorithm),
        cmocka_unit_test(peeking_refuses_what_is_no_token),
        cmocka_unit_test(an_audience_is_one_name_or_a_list),
    };

    return cmocka_run_group_tests_name("jwt", tests, NULL, NULL);
}
