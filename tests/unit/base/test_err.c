/* test_err.c - an error is a class and a bounded sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"

#include <errno.h>
#include <string.h>

static void setting_returns_the_negated_class(void **state)
{
    struct err err = { 0 };

    assert_int_equal(err_set(&err, ERR_NOT_FOUND, "pod %s/%s", "a", "b"), -ERR_NOT_FOUND);
    assert_int_equal(err.class, ERR_NOT_FOUND);
    assert_string_equal(err.text, "pod a/b");
}

static void a_caller_may_want_the_class_alone(void **state)
{
    assert_int_equal(err_set(NULL, ERR_TIMEOUT, "x"), -ERR_TIMEOUT);
    assert_int_equal(err_system(NULL, ENOENT, "x"), -ERR_SYSTEM);
    assert_int_equal(err_wrap(NULL, "x"), -ERR_BUG);
}

static void a_system_error_ends_in_the_text_of_errno(void **state)
{
    struct err err = { 0 };

    assert_int_equal(err_system(&err, ENOENT, "open %s", "/run/token"), -ERR_SYSTEM);
    assert_string_equal(err.text, "open /run/token: No such file or directory");
    assert_int_equal(err_system(&err, 987654, "x"), -ERR_SYSTEM);
    assert_string_equal(err.text, "x: Unknown error 987654");
}

static void wrapping_puts_what_was_being_done_in_front(void **state)
{
    struct err err = { 0 };

    err_set(&err, ERR_DENIED, "status %d", 403);
    assert_int_equal(err_wrap(&err, "bind pod %s", "a"), -ERR_DENIED);
    assert_int_equal(err_wrap(&err, "unit g"), -ERR_DENIED);
    assert_string_equal(err.text, "unit g: bind pod a: status 403");
}

static void wrapping_an_error_that_never_happened_is_a_bug(void **state)
{
    struct err err = { 0 };

    assert_int_equal(err_wrap(&err, "read"), -ERR_BUG);
    assert_int_equal(err.class, ERR_BUG);
    assert_string_equal(err.text, "read: ");
}

static void the_old_text_may_be_an_argument_of_the_new(void **state)
{
    struct err err = { 0 };

    err_set(&err, ERR_INVALID, "inner");
    err_set(&err, ERR_CONFLICT, "outer (%s)", err.text);
    assert_string_equal(err.text, "outer (inner)");
    err_wrap(&err, "%s again", err.text);
    assert_string_equal(err.text, "outer (inner) again: outer (inner)");
}

static void a_text_that_just_fits_is_kept_whole(void **state)
{
    struct err err = { 0 };
    char text[sizeof(err.text)];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    err_set(&err, ERR_INVALID, "%s", text);
    assert_string_equal(err.text, text);
}

static void a_longer_text_is_cut_with_dots(void **state)
{
    struct err err = { 0 };
    char text[1000];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (int i = 0; i < 3; i++) {
        if (i == 0)
            err_set(&err, ERR_INVALID, "%.*s", (int)sizeof(err.text), text);
        else if (i == 1)
            err_set(&err, ERR_INVALID, "%s", text);
        else
            err_wrap(&err, "more");
        assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
        assert_string_equal(err.text + sizeof(err.text) - 6, "xx...");
    }
}

static void cutting_never_splits_a_character(void **state)
{
    struct err err = { 0 };

    for (int shift = 0; shift < 3; shift++) {
        char text[1000];
        size_t length = (size_t)shift;

        memset(text, 'x', sizeof(text));
        for (; length + 3 < sizeof(text); length += 3)
            memcpy(text + length, "\xe2\x82\xac", 3); /* the euro sign */
        text[length] = '\0';
        err_set(&err, ERR_INVALID, "%s", text);

        size_t kept = strlen(err.text) - 3;

        assert_string_equal(err.text + kept, "...");
        assert_int_equal((kept - (size_t)shift) % 3, 0);
        assert_true(kept > sizeof(err.text) - 8);
    }
}

static void every_class_has_a_name(void **state)
{
    static const struct {
        int class;
        const char *name;
    } cases[] = {
        { ERR_INVALID, "invalid" },
        { ERR_TOO_BIG, "too big" },
        { ERR_NOT_FOUND, "not found" },
        { ERR_EXISTS, "exists" },
        { ERR_CONFLICT, "conflict" },
        { ERR_DENIED, "denied" },
        { ERR_UNAVAILABLE, "unavailable" },
        { ERR_TIMEOUT, "timeout" },
        { ERR_UNKNOWN, "unknown" },
        { ERR_CANCELED, "canceled" },
        { ERR_SYSTEM, "system" },
        { ERR_BUG, "bug" },
        { 0, "none" },
        { ERR_BUG + 1, "none" },
        { -ERR_INVALID, "none" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(err_class_name(cases[i].class), cases[i].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(setting_returns_the_negated_class),
        cmocka_unit_test(a_caller_may_want_the_class_alone),
        cmocka_unit_test(a_system_error_ends_in_the_text_of_errno),
        cmocka_unit_test(wrapping_puts_what_was_being_done_in_front),
        cmocka_unit_test(wrapping_an_error_that_never_happened_is_a_bug),
        cmocka_unit_test(the_old_text_may_be_an_argument_of_the_new),
        cmocka_unit_test(a_text_that_just_fits_is_kept_whole),
        cmocka_unit_test(a_longer_text_is_cut_with_dots),
        cmocka_unit_test(cutting_never_splits_a_character),
        cmocka_unit_test(every_class_has_a_name),
    };

    return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
