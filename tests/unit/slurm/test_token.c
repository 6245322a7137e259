/* test_token.c - tokens come from a text, a file or a key; they are never empty and never printed.
 */
#include "slurm/token.h"

#include "base/mem.h"
#include "codec/base64.h"
#include "codec/jwt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define KEY STR("0123456789abcdef0123456789abcdef")

enum { SECOND_US = 1000000 };
static const int64_t wall_us = INT64_C(1700000000) * SECOND_US;

static struct jwt_claims claims_of(struct str token, int64_t now)
{
    struct jwt_claims claims = { 0 };
    struct err err = { 0 };

    if (jwt_verify(KEY, token, now, 0, &claims, &err) < 0)
        fail_msg("%s", err.text);
    return claims;
}

static void a_fixed_token_is_trimmed_and_loses_its_prefix(void **state)
{
    static const char *const texts[] = { "abc", " abc\n", "SLURM_JWT=abc\n", "SLURM_JWT= abc" };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct slurm_token *token;
        struct str text;

        assert_int_equal(slurm_token_new_static(str_of(texts[i]), &token, NULL), 0);
        assert_int_equal(slurm_token_get(token, &text, NULL), 0);
        assert_true(str_is(text, "abc"));
        assert_int_equal(text.at[text.len], '\0');
        assert_false(slurm_token_renew(token));
        assert_false(slurm_token_can_mint(token));
        assert_string_equal(slurm_token_user(token), "");
        slurm_token_free(token);
    }
}

static void what_is_no_token_is_refused_and_not_quoted(void **state)
{
    static const char *const texts[] = {
        "",           "  \n",     "SLURM_JWT=", "SLURM_JWT=\n", "secret word", "secret\nX-Evil: 1",
        "secret\x7f", "s\xc3\xa4"
    };
    struct slurm_token *token;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct err err = { 0 };

        assert_int_equal(slurm_token_new_static(str_of(texts[i]), &token, &err), -ERR_INVALID);
        assert_null(strstr(err.text, "secret"));
    }
    auto_free char *big = mem_alloc(JWT_TOKEN_MAX + 2);

    memset(big, 'a', JWT_TOKEN_MAX + 1);
    assert_int_equal(slurm_token_new_static(str_of(big), &token, NULL), -ERR_TOO_BIG);
}

static void write_file(const char *path, const char *text)
{
    char other[128];
    FILE *file;

    snprintf(other, sizeof(other), "%s.new", path);
    file = fopen(other, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(other, path), 0);
}

static void a_token_file_is_followed(void **state)
{
    struct clock clock;
    struct loop *loop;
    struct slurm_token *token;
    struct str text;
    char path[] = "/tmp/slinc-token-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    clock_init_virtual(&clock, wall_us);
    loop = loop_new_virtual(&clock);
    assert_true(slurm_token_new_file(loop, path, &token, NULL) < 0); /* empty */
    write_file(path, "SLURM_JWT=\n");
    assert_int_equal(slurm_token_new_file(loop, path, &token, NULL), -ERR_INVALID);
    write_file(path, "SLURM_JWT=first\n");
    assert_int_equal(slurm_token_new_file(loop, path, &token, NULL), 0);
    assert_int_equal(slurm_token_get(token, &text, NULL), 0);
    assert_true(str_is(text, "first"));
    assert_int_equal(slurm_token_outdated(token), 0);
    assert_false(slurm_token_renew(token)); /* still the same */
    assert_int_equal(slurm_token_outdated(token), 1);
    write_file(path, "second\n");
    assert_int_equal(slurm_token_get(token, &text, NULL), 0);
    assert_true(str_is(text, "first"));
    assert_true(slurm_token_renew(token));
    assert_int_equal(slurm_token_outdated(token), 1);
    assert_int_equal(slurm_token_get(token, &text, NULL), 0);
    assert_true(str_is(text, "second"));
    write_file(path, ""); /* gone bad: the last good one stays */
    assert_false(slurm_token_renew(token));
    assert_int_equal(slurm_token_get_short(token, 5, &text, NULL), 0);
    assert_true(str_is(text, "second"));
    slurm_token_free(token);
    loop_free(loop);
    unlink(path);
}

static void a_token_file_may_come_later_and_until_then_says_what_is_missing(void **state)
{
    struct clock clock;
    struct loop *loop;
    struct slurm_token *token;
    struct err err = { 0 };
    struct str text;
    char path[] = "/tmp/slinc-token-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    unlink(path);
    clock_init_virtual(&clock, wall_us);
    loop = loop_new_virtual(&clock);
    token = slurm_token_new_awaited(loop, path);
    assert_true(slurm_token_get(token, &text, &err) < 0);
    assert_non_null(strstr(err.text, "no such file"));
    assert_non_null(strstr(err.text, path));
    assert_string_equal(slurm_token_user(token), "");
    write_file(path, "");
    assert_true(slurm_token_get(token, &text, &err) < 0);
    assert_non_null(strstr(err.text, "is empty"));
    write_file(path, "\n");
    assert_int_equal(slurm_token_get(token, &text, NULL), -ERR_INVALID);
    write_file(path, "first\n"); /* and it is looked at without a wait */
    assert_int_equal(slurm_token_get(token, &text, NULL), 0);
    assert_true(str_is(text, "first"));
    write_file(path, "second\n");
    assert_true(slurm_token_renew(token));
    assert_int_equal(slurm_token_get(token, &text, NULL), 0);
    assert_true(str_is(text, "second"));
    slurm_token_free(token);
    loop_free(loop);
    unlink(path);
}

static void a_key_file_may_come_later_too(void **state)
{
    struct clock clock;
    struct slurm_token *token;
    struct err err = { 0 };
    struct str text;
    char path[] = "/tmp/slinc-key-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    unlink(path);
    clock_init_virtual(&clock, wall_us);
    assert_int_equal(slurm_token_new_key_file(&clock, path, "slurm", 0, &token, NULL),
                     -ERR_INVALID);
    assert_int_equal(slurm_token_new_key_file(&clock, path, "slurm", 900, &token, NULL), 0);
    assert_true(slurm_token_get(token, &text, &err) < 0);
    assert_non_null(strstr(err.text, "no such file"));
    assert_true(slurm_token_get_short(token, 5, &text, NULL) < 0);
    assert_true(slurm_token_can_mint(token));
    write_file(path, "0123456789abcdef0123456789abcdef");
    assert_int_equal(slurm_token_get(token, &text, NULL), 0);
    assert_string_equal(claims_of(text, 1700000000).sun, "slurm");
    slurm_token_free(token);
    unlink(path);
}

static void another_key_is_read_after_a_refusal(void **state)
{
    struct clock clock;
    struct slurm_token *token;
    struct jwt_claims claims;
    struct str text;
    char path[] = "/tmp/slinc-key-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    write_file(path, "fedcba9876543210fedcba9876543210");
    clock_init_virtual(&clock, wall_us);
    assert_int_equal(slurm_token_new_key_file(&clock, path, "slurm", 900, &token, NULL), 0);
    assert_int_equal(slurm_token_get(token, &text, NULL), 0);
    assert_true(jwt_verify(KEY, text, 1700000000, 0, &claims, NULL) < 0);
    (void)slurm_token_renew(token);
    assert_int_equal(slurm_token_outdated(token), 1);
    write_file(path, "0123456789abcdef0123456789abcdef");
    assert_true(slurm_token_renew(token));
    assert_int_equal(slurm_token_outdated(token), 1);
    assert_int_equal(slurm_token_get(token, &text, NULL), 0);
    assert_string_equal(claims_of(text, 1700000000).sun, "slurm");
    unlink(path); /* the last one stays */
    (void)slurm_token_renew(token);
    assert_int_equal(slurm_token_outdated(token), 2);
    assert_int_equal(slurm_token_get(token, &text, NULL), 0);
    assert_string_equal(claims_of(text, 1700000000).sun, "slurm");
    slurm_token_free(token);
}

static void our_own_tokens_are_renewed_when_four_fifths_have_passed(void **state)
{
    struct clock clock;
    struct slurm_token *token;
    struct str text;
    char before[JWT_TOKEN_MAX];

    clock_init_virtual(&clock, wall_us);
    assert_int_equal(slurm_token_new_minted(&clock, KEY, "slurm", 900, &token, NULL), 0);
    assert_true(slurm_token_can_mint(token));
    assert_string_equal(slurm_token_user(token), "slurm");
    assert_int_equal(slurm_token_get(token, &text, NULL), 0);
    snprintf(before, sizeof(before), "%s", text.at);
    assert_string_equal(claims_of(text, 1700000000).sun, "slurm");
    assert_int_equal(claims_of(text, 1700000000).exp, 1700000900);
    clock_advance_us(&clock, INT64_C(719) * SECOND_US);
    assert_int_equal(slurm_token_get(token, &text, NULL), 0);
    assert_string_equal(text.at, before);
    clock_advance_us(&clock, SECOND_US);
    assert_int_equal(slurm_token_get(token, &text, NULL), 0);
    assert_string_not_equal(text.at, before);
    assert_int_equal(claims_of(text, 1700000720).exp, 1700001620);
    slurm_token_free(token);
}

static void a_clock_set_back_makes_a_new_token(void **state)
{
    struct clock clock;
    struct slurm_token *token;
    struct str text;

    clock_init_virtual(&clock, wall_us);
    assert_int_equal(slurm_token_new_minted(&clock, KEY, "slurm", 900, &token, NULL), 0);
    assert_int_equal(slurm_token_get(token, &text, NULL), 0);
    clock_set_wall_us(&clock, wall_us - INT64_C(3600) * SECOND_US);
    assert_int_equal(slurm_token_get(token, &text, NULL), 0);
    assert_int_equal(claims_of(text, 1700000000 - 3600).iat, 1700000000 - 3600);
    slurm_token_free(token);
}

static void a_short_token_is_used_once_and_not_kept(void **state)
{
    struct clock clock;
    struct slurm_token *token;
    struct str text;

    clock_init_virtual(&clock, wall_us);
    assert_int_equal(slurm_token_new_minted(&clock, KEY, "slurm", 900, &token, NULL), 0);
    assert_int_equal(slurm_token_get_short(token, 12, &text, NULL), 0);
    assert_int_equal(claims_of(text, 1700000000).exp, 1700000012);
    assert_int_equal(slurm_token_get(token, &text, NULL), 0);
    assert_int_equal(claims_of(text, 1700000000).exp, 1700000900);
    assert_int_equal(slurm_token_get_short(token, 5000, &text, NULL), 0);
    assert_int_equal(claims_of(text, 1700000000).exp, 1700000900);
    assert_false(slurm_token_renew(token)); /* within the second it would be the same one */
    clock_advance_us(&clock, SECOND_US);
    assert_true(slurm_token_renew(token));
    slurm_token_free(token);
}

static void a_key_a_user_and_a_lifetime_are_needed_to_sign(void **state)
{
    struct clock clock;
    struct slurm_token *token;
    char user[JWT_USER_MAX + 2];

    memset(user, 'u', sizeof(user) - 1);
    user[sizeof(user) - 1] = '\0';
    clock_init_virtual(&clock, wall_us);
    assert_int_equal(slurm_token_new_minted(&clock, STR(""), "slurm", 900, &token, NULL),
                     -ERR_INVALID);
    assert_int_equal(slurm_token_new_minted(&clock, KEY, "", 900, &token, NULL), -ERR_INVALID);
    assert_int_equal(slurm_token_new_minted(&clock, KEY, user, 900, &token, NULL), -ERR_INVALID);
    assert_int_equal(slurm_token_new_minted(&clock, KEY, "slurm", 0, &token, NULL), -ERR_INVALID);
    assert_int_equal(slurm_token_new_minted(&clock, KEY, "slurm", INT64_MAX, &token, NULL),
                     -ERR_INVALID);
}

static void a_foreign_token_tells_whose_it_is(void **state)
{
    struct clock clock;
    struct slurm_token *minted, *token;
    struct str text;

    clock_init_virtual(&clock, wall_us);
    assert_int_equal(slurm_token_new_minted(&clock, KEY, "anna", 900, &minted, NULL), 0);
    assert_int_equal(slurm_token_get(minted, &text, NULL), 0);
    assert_int_equal(slurm_token_new_static(text, &token, NULL), 0);
    assert_string_equal(slurm_token_user(token), "anna");
    slurm_token_free(token);
    slurm_token_free(minted);
    slurm_token_free(NULL);
}

/* Of others, by an identity provider: unsigned, as a reader of claims sees it. */
static struct slurm_token *token_with(const char *claims)
{
    auto_buf struct buf text = { .max = JWT_TOKEN_MAX };
    struct slurm_token *token = NULL;

    base64_encode(STR("{\"alg\":\"RS256\"}"), BASE64_URL | BASE64_UNPADDED, &text);
    buf_add_char(&text, '.');
    base64_encode(str_of(claims), BASE64_URL | BASE64_UNPADDED, &text);
    buf_add_text(&text, ".c2lnbmVk");
    assert_int_equal(slurm_token_new_static(buf_str(&text), &token, NULL), 0);
    return token;
}

static void a_token_of_others_is_whose_slurmctld_takes_it_to_be(void **state)
{
    static const struct {
        const char *claims, *claim, *said, *user;
    } cases[] = {
        { "{\"sun\":\"anna\",\"username\":\"b\",\"name\":\"c\"}", "name", "d", "anna" },
        { "{\"username\":\"anna\",\"name\":\"c\"}", "name", "d", "anna" },
        { "{\"sub\":\"x\",\"name\":\"anna\"}", "name", "d", "anna" },
        { "{\"sub\":\"x\",\"name\":\"c\"}", "", "anna", "anna" },
        { "{\"sub\":\"x\",\"name\":\"c\"}", "", "", "" },
        { "{\"name\":7,\"\":\"c\"}", "name", "", "" },
        { "{\"name\":\"c\\u0000\"}", "name", "", "" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct slurm_token *token = token_with(cases[i].claims);

        slurm_token_set_user_claim(token, cases[i].claim);
        slurm_token_set_user(token, cases[i].said);
        assert_string_equal(slurm_token_user(token), cases[i].user);
        slurm_token_free(token);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fixed_token_is_trimmed_and_loses_its_prefix),
        cmocka_unit_test(what_is_no_token_is_refused_and_not_quoted),
        cmocka_unit_test(a_token_file_is_followed),
        cmocka_unit_test(a_token_file_may_come_later_and_until_then_says_what_is_missing),
        cmocka_unit_test(a_key_file_may_come_later_too),
        cmocka_unit_test(another_key_is_read_after_a_refusal),
        cmocka_unit_test(our_own_tokens_are_renewed_when_four_fifths_have_passed),
        cmocka_unit_test(a_clock_set_back_makes_a_new_token),
        cmocka_unit_test(a_short_token_is_used_once_and_not_kept),
        cmocka_unit_test(a_key_a_user_and_a_lifetime_are_needed_to_sign),
        cmocka_unit_test(a_foreign_token_tells_whose_it_is),
        cmocka_unit_test(a_token_of_others_is_whose_slurmctld_takes_it_to_be),
    };

    return cmocka_run_group_tests_name("token", tests, NULL, NULL);
}
