/* test_duration.c - spans of time in Go's notation. */
#include "codec/duration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void go_durations_are_read(void **state)
{
    static const struct {
        const char *text;
        int64_t nanos;
    } cases[] = {
        { "0", 0 },
        { "-0", 0 },
        { "0h", 0 },
        { "1ns", 1 },
        { "1us", 1000 },
        { "1\xc2\xb5s", 1000 },
        { "1\xce\xbcs", 1000 },
        { "1500us", 1500000 },
        { "1.001ms", 1001000 },
        { "999ns", 999 },
        { "1s", DURATION_SECOND },
        { "+1.5s", 1500000000 },
        { ".5s", 500000000 },
        { "1.s", DURATION_SECOND },
        { "90s", 90 * DURATION_SECOND },
        { "1h2m3.5s", 3723500000000 },
        { "1h", 3600 * DURATION_SECOND },
        { "3s2h", 7203 * DURATION_SECOND },
        { "-1m.5s", -60500000000 },
        { "0.9999999999ns", 0 },
        { "9223372036854775807ns", INT64_MAX },
        { "-9223372036854775808ns", INT64_MIN },
        { "0.3333333333333333333h", 1200000000000 },
        { "0.100000000000000000000h", 360000000000 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t nanos = 42;

        assert_int_equal(duration_parse(str_of(cases[i].text), &nanos, NULL), 0);
        assert_int_equal(nanos, cases[i].nanos);
    }
}

static void bad_go_durations_are_refused(void **state)
{
    static const char *const cases[] = {
        "",    " ",   "-",    "+",    "1",     "00",     "s",    ".",   ".s", "-.s", "1x",     "1S",
        "1 s", "1s ", "--1s", "+-1s", "1h-1m", "1.2.3s", "1e3s", "1h1", "1d", "1sm", "1\xb5s",
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t nanos = 42;
        struct err err = { 0 };

        if (duration_parse(str_of(cases[i]), &nanos, &err) != -ERR_INVALID)
            fail_msg("\"%s\" was read", cases[i]);
        assert_int_equal(err.class, ERR_INVALID);
        assert_int_equal(nanos, 42);
    }
}

static void go_durations_out_of_range_are_too_big(void **state)
{
    static const char *const cases[] = {
        "9223372036854775808ns",
        "-9223372036854775809ns",
        "9223372036854775.808us",
        "2562048h",
        "2562047h47m16.854775808s",
        "-2562047h47m16.854775809s",
        "99999999999999999999s",
        "4611686018427387904ns4611686018427387904ns",
        "-9223372036854775808ns9223372036854775808ns",
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t nanos = 42;

        assert_int_equal(duration_parse(str_of(cases[i]), &nanos, NULL), -ERR_TOO_BIG);
        assert_int_equal(nanos, 42);
    }
}

static void an_error_names_the_duration(void **state)
{
    struct err err = { 0 };
    int64_t nanos;

    assert_int_equal(duration_parse(STR("5 min"), &nanos, &err), -ERR_INVALID);
    assert_string_equal(err.text, "duration \"5 min\": no such unit");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(go_durations_are_read),
        cmocka_unit_test(bad_go_durations_are_refused),
        cmocka_unit_test(go_durations_out_of_range_are_too_big),
        cmocka_unit_test(an_error_names_the_duration),
    };

    return cmocka_run_group_tests_name("duration", tests, NULL, NULL);
}
