/* test_timestamp.c - points in time: read as Go reads them, printed as Kubernetes prints them. */
#include "codec/timestamp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static int64_t read_ok(const char *text)
{
    int64_t time = 0;
    struct err err = { 0 };

    if (timestamp_parse(str_of(text), &time, &err) < 0)
        fail_msg("%s", err.text);
    return time;
}

static void assert_prints(int64_t time, const char *seconds, const char *micros)
{
    auto_buf struct buf text;

    buf_init(&text, 64);
    assert_int_equal(timestamp_print(time, &text, NULL), 0);
    assert_string_equal(buf_text(&text), seconds);
    buf_clear(&text);
    assert_int_equal(timestamp_print_micro(time, &text, NULL), 0);
    assert_string_equal(buf_text(&text), micros);
}

static void times_are_read_and_printed(void **state)
{
    static const struct {
        const char *text;
        int64_t time;
        const char *seconds, *micros;
    } cases[] = {
        { "1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z" },
        { "2006-01-02T15:04:05Z", 1136214245000000, "2006-01-02T15:04:05Z",
          "2006-01-02T15:04:05.000000Z" },
        { "2006-01-02T15:04:05.123456789-07:00", 1136239445123456, "2006-01-02T22:04:05Z",
          "2006-01-02T22:04:05.123456Z" },
        { "2000-02-29T23:59:59,5+05:45", 951848099500000, "2000-02-29T18:14:59Z",
          "2000-02-29T18:14:59.500000Z" },
        { "1969-12-31T23:59:59.999999Z", -1, "1969-12-31T23:59:59Z",
          "1969-12-31T23:59:59.999999Z" },
        { "0001-01-01T00:00:00Z", TIMESTAMP_MIN, "0001-01-01T00:00:00Z",
          "0001-01-01T00:00:00.000000Z" },
        { "9999-12-31T23:59:59.999999Z", TIMESTAMP_MAX, "9999-12-31T23:59:59Z",
          "9999-12-31T23:59:59.999999Z" },
        { "1900-03-01T00:00:00Z", -2203891200000000, "1900-03-01T00:00:00Z",
          "1900-03-01T00:00:00.000000Z" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t time = read_ok(cases[i].text);

        assert_int_equal(time, cases[i].time);
        assert_prints(time, cases[i].seconds, cases[i].micros);
    }
}

static void what_go_lets_pass_we_let_pass(void **state)
{
    assert_int_equal(read_ok("1970-01-01T5:00:00Z"), 5 * 3600 * TIMESTAMP_SECOND);
    assert_int_equal(read_ok("1970-01-01T00:00:00,25Z"), 250000);
    assert_int_equal(read_ok("1970-01-01T00:00:00+24:00"), -86400 * TIMESTAMP_SECOND);
    assert_int_equal(read_ok("1970-01-01T00:00:00-00:60"), 3600 * TIMESTAMP_SECOND);
}

static void bad_times_are_refused(void **state)
{
    static const char *const cases[] = {
        "",
        "Z",
        "2006-01-02",
        "2006-01-02T15:04:05",
        "2006-01-02T15:04Z",
        "2006-01-02 15:04:05Z",
        "2006-01-02t15:04:05Z",
        "2006-01-02T15:04:05z",
        "2006-1-02T15:04:05Z",
        "2006-01-2T15:04:05Z",
        "206-01-02T15:04:05Z",
        "-006-01-02T15:04:05Z",
        "2006-00-02T15:04:05Z",
        "2006-13-02T15:04:05Z",
        "2006-01-00T15:04:05Z",
        "2006-04-31T15:04:05Z",
        "2023-02-29T15:04:05Z",
        "1900-02-29T15:04:05Z",
        "2006-01-02T24:04:05Z",
        "2006-01-02T15:60:05Z",
        "2006-01-02T15:04:60Z",
        "2016-12-31T23:59:60Z",
        "2006-01-02T15:04:05.Z",
        "2006-01-02T15:04:05.Z",
        "2006-01-02T15:04:05+0700",
        "2006-01-02T15:04:05+07",
        "2006-01-02T15:04:05+25:00",
        "2006-01-02T15:04:05+00:61",
        "2006-01-02T15:04:05ZZ",
        "2006-01-02T15:04:05Z ",
        " 2006-01-02T15:04:05Z",
        "0000-12-31T23:59:59Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t time = 42;
        struct err err = { 0 };

        if (timestamp_parse(str_of(cases[i]), &time, &err) != -ERR_INVALID)
            fail_msg("\"%s\" was read", cases[i]);
        assert_int_equal(err.class, ERR_INVALID);
        assert_int_equal(time, 42);
    }
}

static void every_prefix_of_a_time_is_refused(void **state)
{
    static const char text[] = "2006-01-02T15:04:05.123+07:00";
    int64_t time;

    for (size_t length = 0; length < sizeof(text) - 1; length++)
        assert_int_equal(timestamp_parse((struct str){ text, length }, &time, NULL), -ERR_INVALID);
    assert_int_equal(timestamp_parse(STR("2006-01-02T15:04:05\0Z"), &time, NULL), -ERR_INVALID);
}

/* Counts days by hand through the whole valid range and compares with the formula. */
static void every_day_follows_the_one_before(void **state)
{
    static const int lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    auto_buf struct buf text;
    int64_t time = TIMESTAMP_MIN;

    buf_init(&text, 64);
    for (int year = 1; year <= 9999; year++) {
        for (int month = 1; month <= 12; month++) {
            bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            int days = lengths[month - 1] + (month == 2 && leap);
            int64_t read;

            buf_clear(&text);
            buf_printf(&text, "%04d-%02d-%02dT00:00:00Z", year, month, days);
            assert_int_equal(timestamp_parse(buf_str(&text), &read, NULL), 0);
            assert_int_equal(read, time + (days - 1) * 86400 * TIMESTAMP_SECOND);

            auto_buf struct buf printed;
            buf_init(&printed, 64);
            assert_int_equal(timestamp_print(read, &printed, NULL), 0);
            assert_string_equal(buf_text(&printed), buf_text(&text));
            time += days * 86400 * TIMESTAMP_SECOND;
        }
    }
    assert_int_equal(time, TIMESTAMP_MAX + 1);
}

static void times_outside_the_range_are_not_printed(void **state)
{
    static const int64_t cases[] = { TIMESTAMP_MIN - 1, TIMESTAMP_MAX + 1, INT64_MIN, INT64_MAX };
    auto_arena struct arena arena;
    auto_buf struct buf text;
    struct err err = { 0 };

    arena_init(&arena, 4096);
    buf_init(&text, 64);
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(timestamp_print(cases[i], &text, &err), -ERR_INVALID);
        assert_int_equal(timestamp_print_micro(cases[i], &text, &err), -ERR_INVALID);
        assert_string_equal(timestamp_text(cases[i], &arena), "");
    }
    assert_int_equal(text.len, 0);
    assert_string_equal(timestamp_text(0, &arena), "1970-01-01T00:00:00Z");
}

static void slurm_seconds_become_times_and_back(void **state)
{
    int64_t time = 42;

    assert_int_equal(timestamp_of_seconds(1136214245, &time, NULL), 0);
    assert_int_equal(time, 1136214245000000);
    assert_int_equal(timestamp_to_seconds(time + 999999), 1136214245);
    assert_int_equal(timestamp_to_seconds(-1), -1);
    assert_int_equal(timestamp_to_seconds(-1000000), -1);
    assert_int_equal(timestamp_to_seconds(-1000001), -2);
    assert_int_equal(timestamp_of_seconds(253402300799, &time, NULL), 0);
    assert_int_equal(time, TIMESTAMP_MAX - 999999);
    assert_int_equal(timestamp_of_seconds(253402300800, &time, NULL), -ERR_INVALID);
    assert_int_equal(timestamp_of_seconds(-62135596801, &time, NULL), -ERR_INVALID);
    assert_int_equal(timestamp_of_seconds(INT64_MAX, &time, NULL), -ERR_INVALID);
    assert_int_equal(time, TIMESTAMP_MAX - 999999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_read_and_printed),
        cmocka_unit_test(what_go_lets_pass_we_let_pass),
        cmocka_unit_test(bad_times_are_refused),
        cmocka_unit_test(every_prefix_of_a_time_is_refused),
        cmocka_unit_test(every_day_follows_the_one_before),
        cmocka_unit_test(times_outside_the_range_are_not_printed),
        cmocka_unit_test(slurm_seconds_become_times_and_back),
    };

    return cmocka_run_group_tests_name("timestamp", tests, NULL, NULL);
}
