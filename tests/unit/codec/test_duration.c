/* test_duration.c - spans of time in Go's notation, and Slurm's time limits. */
#include "codec/duration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void go_durations_are_read_and_printed(void **state)
{
    static const struct {
        const char *text;
        int64_t nanos;
        const char *printed;
    } cases[] = {
        { "0", 0, "0s" },
        { "-0", 0, "0s" },
        { "0h", 0, "0s" },
        { "1ns", 1, "1ns" },
        { "1us", 1000, "1\xc2\xb5s" },
        { "1\xc2\xb5s", 1000, "1\xc2\xb5s" },
        { "1\xce\xbcs", 1000, "1\xc2\xb5s" },
        { "1500us", 1500000, "1.5ms" },
        { "1.001ms", 1001000, "1.001ms" },
        { "999ns", 999, "999ns" },
        { "1s", DURATION_SECOND, "1s" },
        { "+1.5s", 1500000000, "1.5s" },
        { ".5s", 500000000, "500ms" },
        { "1.s", DURATION_SECOND, "1s" },
        { "90s", 90 * DURATION_SECOND, "1m30s" },
        { "1h2m3.5s", 3723500000000, "1h2m3.5s" },
        { "1h", 3600 * DURATION_SECOND, "1h0m0s" },
        { "3s2h", 7203 * DURATION_SECOND, "2h0m3s" },
        { "-1m.5s", -60500000000, "-1m0.5s" },
        { "0.9999999999ns", 0, "0s" },
        { "9223372036854775807ns", INT64_MAX, "2562047h47m16.854775807s" },
        { "-9223372036854775808ns", INT64_MIN, "-2562047h47m16.854775808s" },
        { "0.3333333333333333333h", 1200000000000, "20m0s" },
        { "0.100000000000000000000h", 360000000000, "6m0s" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_buf struct buf text;
        int64_t nanos = 42;

        buf_init(&text, 64);
        assert_int_equal(duration_parse(str_of(cases[i].text), &nanos, NULL), 0);
        assert_int_equal(nanos, cases[i].nanos);
        duration_print(nanos, &text);
        assert_string_equal(buf_text(&text), cases[i].printed);
        assert_int_equal(duration_parse(buf_str(&text), &nanos, NULL), 0);
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
    assert_int_equal(duration_parse_limit(STR("1-x"), &nanos, &err), -ERR_INVALID);
    assert_non_null(strstr(err.text, "time limit \"1-x\": "));
}

static void slurm_limits_are_read_and_printed_as_squeue_does(void **state)
{
    static const struct {
        const char *text;
        int64_t seconds;
        const char *printed;
    } cases[] = {
        { "0", 0, "0:00" },
        { "5", 300, "5:00" },
        { "90", 5400, "1:30:00" },
        { "1:30", 90, "1:30" },
        { "0:05", 5, "0:05" },
        { "100:00", 6000, "1:40:00" },
        { "2:03:04", 7384, "2:03:04" },
        { "36:00:00", 129600, "1-12:00:00" },
        { "1-0", 86400, "1-00:00:00" },
        { "1-12", 129600, "1-12:00:00" },
        { "1-12:30", 131400, "1-12:30:00" },
        { "1-02:03:04", 93784, "1-02:03:04" },
        { "0-0:90", 5400, "1:30:00" },
        { "365-00:00:00", 31536000, "365-00:00:00" },
        { "UNLIMITED", DURATION_UNLIMITED, "UNLIMITED" },
        { "infinite", DURATION_UNLIMITED, "UNLIMITED" },
        { "-1", DURATION_UNLIMITED, "UNLIMITED" },
        { "4294967293", DURATION_LIMIT_MAX, "2982616-04:13:00" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_buf struct buf text;
        int64_t seconds = 42;

        buf_init(&text, 64);
        assert_int_equal(duration_parse_limit(str_of(cases[i].text), &seconds, NULL), 0);
        assert_int_equal(seconds, cases[i].seconds);
        duration_print_limit(seconds, &text);
        assert_string_equal(buf_text(&text), cases[i].printed);
        assert_int_equal(duration_parse_limit(buf_str(&text), &seconds, NULL), 0);
        assert_int_equal(seconds, cases[i].seconds);
    }
}

static void bad_slurm_limits_are_refused(void **state)
{
    static const char *const cases[] = {
        "",     " ",        "-",          ":",     "1-",    "-5",    "1:",    ":30",
        "1::2", "1:2:3:4",  "1-2:3:4:5",  "1-2-3", "1:2-3", "1.5",   "5m",    "+5",
        "5 ",   "UNLIMITE", "UNLIMITEDX", "-2",    "--1",   "1-12:", "1-:30", "0x10",
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t seconds = 42;

        if (duration_parse_limit(str_of(cases[i]), &seconds, NULL) != -ERR_INVALID)
            fail_msg("\"%s\" was read", cases[i]);
        assert_int_equal(seconds, 42);
    }
}

static void slurm_limits_beyond_32_bits_of_minutes_are_refused(void **state)
{
    int64_t seconds = 42;

    assert_int_equal(duration_parse_limit(STR("4294967294"), &seconds, NULL), -ERR_TOO_BIG);
    assert_int_equal(duration_parse_limit(STR("4294967293:01"), &seconds, NULL), -ERR_TOO_BIG);
    assert_int_equal(duration_parse_limit(STR("2982617-0"), &seconds, NULL), -ERR_TOO_BIG);
    assert_int_equal(
        duration_parse_limit(STR("257698037580-257698037580:257698037580:257698037580"), &seconds,
                             NULL),
        -ERR_TOO_BIG);
    assert_int_equal(duration_parse_limit(STR("99999999999999999999"), &seconds, NULL),
                     -ERR_INVALID);
    assert_int_equal(seconds, 42);
}

static void a_negative_limit_prints_as_invalid(void **state)
{
    auto_buf struct buf text;

    buf_init(&text, 64);
    duration_print_limit(-1, &text);
    assert_string_equal(buf_text(&text), "INVALID");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(go_durations_are_read_and_printed),
        cmocka_unit_test(bad_go_durations_are_refused),
        cmocka_unit_test(go_durations_out_of_range_are_too_big),
        cmocka_unit_test(an_error_names_the_duration),
        cmocka_unit_test(slurm_limits_are_read_and_printed_as_squeue_does),
        cmocka_unit_test(bad_slurm_limits_are_refused),
        cmocka_unit_test(slurm_limits_beyond_32_bits_of_minutes_are_refused),
        cmocka_unit_test(a_negative_limit_prints_as_invalid),
    };

    return cmocka_run_group_tests_name("duration", tests, NULL, NULL);
}
