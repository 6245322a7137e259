/* test_quantity.c - quantities: read, printed, compared and rounded. */
#include "codec/quantity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static struct quantity read_ok(const char *text)
{
    struct quantity quantity = { 0 };
    struct err err = { 0 };

    if (quantity_parse(str_of(text), &quantity, &err) < 0)
        fail_msg("%s", err.text);
    return quantity;
}

static void assert_prints(const struct quantity *quantity, const char *wanted)
{
    auto_buf struct buf text;

    buf_init(&text, QUANTITY_TEXT_MAX);
    quantity_print(quantity, &text);
    assert_false(text.overflowed);
    assert_string_equal(buf_text(&text), wanted);
}

static void quantities_print_in_canonical_form(void **state)
{
    static const struct {
        const char *text, *canonical;
    } cases[] = {
        { "0", "0" },
        { "-0.000Ki", "0" },
        { "0e5", "0" },
        { "1", "1" },
        { "+01", "1" },
        { "1000", "1k" },
        { "1100000", "1100k" },
        { "0.5", "500m" },
        { "1.500", "1500m" },
        { ".25m", "250u" },
        { "1.", "1" },
        { "100m", "100m" },
        { "1000m", "1" },
        { "12e6", "12e6" },
        { "12E5", "1200e3" },
        { "1e-3", "1e-3" },
        { "1E", "1E" },
        { "1024", "1024" },
        { "1024Ki", "1Mi" },
        { "1000Ki", "1000Ki" },
        { "1.5Gi", "1536Mi" },
        { "0.5Ki", "512" },
        { "0.9765625Ki", "1k" },
        { "1Ki", "1Ki" },
        { "1023.5Ki", "1048064" },
        { "0.0001Ki", "102400u" },
        { "1.1Ki", "1126400m" },
        { "-2.5Gi", "-2560Mi" },
        { "7Ei", "7Ei" },
        { "9223372036854775807", "9223372036854775807" },
        { "9223372036854775807E", "9223372036854775807E" },
        { "9223372036854775807n", "9223372036854775807n" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct quantity quantity = read_ok(cases[i].text);

        assert_prints(&quantity, cases[i].canonical);
    }
}

static void bad_quantities_are_refused(void **state)
{
    static const char *const cases[] = {
        "",     " ",     "1 ",   " 1",    "abc",  "1K",   "1ki",          "1KI",           "1mi",
        "1i",   "1Kib",  "1..2", "1.2.3", "--1",  "+-1",  "1e",           "1e+",           "1e+-3",
        "1e-+", "1e1.5", "1ee3", "1e3e",  "0x10", "1_0",  "1,5",          "1\xc2\xb5",     "1m3",
        "Pi",   "Ei",    ".Pi",  "e-10",  "e",    "1e3k", "1e2147483648", "1e-2147483649", "NaN",
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct quantity quantity = { .scale = 42 };
        struct err err = { 0 };

        if (quantity_parse(str_of(cases[i]), &quantity, &err) != -ERR_INVALID)
            fail_msg("\"%s\" was read", cases[i]);
        assert_int_equal(err.class, ERR_INVALID);
        assert_int_equal(quantity.scale, 42);
    }
}

static void an_error_names_the_quantity_and_is_bounded(void **state)
{
    char text[5000];
    struct quantity quantity;
    struct err err = { 0 };

    assert_int_equal(quantity_parse(STR("12Kx"), &quantity, &err), -ERR_INVALID);
    assert_string_equal(err.text, "quantity \"12Kx\": no such suffix");
    memset(text, 'x', sizeof(text));
    assert_int_equal(quantity_parse((struct str){ text, sizeof(text) }, &quantity, &err),
                     -ERR_INVALID);
    assert_true(strlen(err.text) < 100);
    assert_int_equal(quantity_parse(STR("10e2147483647"), &quantity, &err), -ERR_TOO_BIG);
    assert_int_equal(quantity_parse(STR("x"), &quantity, NULL), -ERR_INVALID);
}

static void a_suffix_without_a_number_is_zero_as_in_go(void **state)
{
    static const char *const cases[] = {
        "+", "-", ".", "-.", "k", "n", "E", "Ki", "Ti", ".Gi", "e3"
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct quantity quantity = read_ok(cases[i]);

        assert_int_equal(quantity_sign(&quantity), 0);
    }
}

static void more_precision_than_nano_rounds_away_from_zero(void **state)
{
    static const struct {
        const char *text, *canonical;
    } cases[] = {
        { "1.5n", "2n" },
        { "0.1n", "1n" },
        { "-1.5n", "-2n" },
        { "1e-30", "1e-9" },
        { "1e-2147483648", "1e-9" },
        { "1.0000000001", "1000000001n" },
        { "0.00000000000000000000000000000000000000000000000001Ki", "1n" },
        { "1.00000000000000000000000000000000000000000000000001", "1000000001n" },
        { "1.123456789123Ki", "1150419752062n" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct quantity quantity = read_ok(cases[i].text);

        assert_prints(&quantity, cases[i].canonical);
    }
}

static void binary_quantities_are_capped_at_int64(void **state)
{
    static const char *const cases[] = { "8Ei", "7.9999999999999999999999999999Ei", "10000Ei",
                                         "100000000000000000000000000000000000000000000Ki",
                                         "9223372036854775807Ei" };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct quantity quantity = read_ok(cases[i]);

        assert_prints(&quantity, "9223372036854775807");
    }

    struct quantity negative = read_ok("-10000Ei");

    assert_prints(&negative, "-9223372036854775807");
}

static void what_has_no_suffix_left_prints_with_an_exponent(void **state)
{
    struct quantity quantity = read_ok("1000E");

    assert_prints(&quantity, "1e21");
    quantity = read_ok("-12345E");
    assert_prints(&quantity, "-12345E");
    quantity = read_ok("1e2147483647");
    assert_prints(&quantity, "10e2147483646");
}

static void digits_after_the_38th_round_away_from_zero(void **state)
{
    struct quantity long_one = read_ok("99999999999999999999999999999999999999");

    assert_prints(&long_one, "99999999999999999999999999999999999999");
    long_one = read_ok("999999999999999999999999999999999999990");
    assert_prints(&long_one, "999999999999999999999999999999999999990");
    long_one = read_ok("-999999999999999999999999999999999999991");
    assert_prints(&long_one, "-1e39");
}

static void equal_values_are_equal_however_written(void **state)
{
    static const char *const cases[][2] = {
        { "1", "1000m" },
        { "1Ki", "1024" },
        { "1.5Gi", "1536Mi" },
        { "1e3", "1k" },
        { "0", "-0.0Ei" },
        { "0.1", "100000000n" },
        { "1000000000000000000", "1E" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct quantity a = read_ok(cases[i][0]), b = read_ok(cases[i][1]);

        assert_int_equal(quantity_cmp(&a, &b), 0);
        assert_true(a.mantissa == b.mantissa);
        assert_int_equal(a.scale, b.scale);
    }
}

static void quantities_have_an_order(void **state)
{
    static const char *const ascending[] = {
        "-1e100",    "-9223372036854775808E",
        "-1Ei",      "-1E",
        "-1",        "-999m",
        "-1n",       "0",
        "1n",        "999m",
        "1",         "1001m",
        "1.0010001", "1k",
        "1Ki",       "1M",
        "1Mi",       "1E",
        "1Ei",       "1e2147483647",
    };

    for (size_t i = 0; i < COUNT(ascending); i++) {
        for (size_t j = 0; j < COUNT(ascending); j++) {
            struct quantity a = read_ok(ascending[i]), b = read_ok(ascending[j]);

            assert_int_equal(quantity_cmp(&a, &b), (i > j) - (i < j));
        }
    }
}

static void signs_are_told(void **state)
{
    struct quantity quantity = read_ok("-1n"), zero = { 0 };

    assert_int_equal(quantity_sign(&quantity), -1);
    quantity = read_ok("1e30");
    assert_int_equal(quantity_sign(&quantity), 1);
    assert_int_equal(quantity_sign(&zero), 0);
    assert_prints(&zero, "0");
}

static void quantities_are_rounded_up_to_whole_units(void **state)
{
    static const struct {
        const char *text;
        int64_t units, milli;
    } cases[] = {
        { "0", 0, 0 },
        { "1", 1, 1000 },
        { "1n", 1, 1 },
        { "1500m", 2, 1500 },
        { "1.0001", 2, 1001 },
        { "-1500m", -1, -1500 },
        { "-1n", 0, 0 },
        { "2k", 2000, 2000000 },
        { "0.5Ki", 512, 512000 },
        { "9223372036854775.807", 9223372036854776, INT64_MAX },
        { "-9223372036854775.808", -9223372036854775, INT64_MIN },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct quantity quantity = read_ok(cases[i].text);
        int64_t units, milli;

        assert_int_equal(quantity_ceil_units(&quantity, &units, NULL), 0);
        assert_int_equal(quantity_ceil_milli(&quantity, &milli, NULL), 0);
        assert_int_equal(units, cases[i].units);
        assert_int_equal(milli, cases[i].milli);
    }
}

static void memory_is_rounded_up_to_mib(void **state)
{
    static const struct {
        const char *text;
        int64_t mib;
    } cases[] = {
        { "0", 0 },
        { "1", 1 },
        { "1Mi", 1 },
        { "1048577", 2 },
        { "1G", 954 },
        { "1.5Gi", 1536 },
        { "-1", 0 },
        { "1048576.000000001", 2 },
        { "8Ei", 8796093022208 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct quantity quantity = read_ok(cases[i].text);
        int64_t mib;

        assert_int_equal(quantity_ceil_mib(&quantity, &mib, NULL), 0);
        assert_int_equal(mib, cases[i].mib);
    }
}

static void values_outside_int64_are_an_error(void **state)
{
    static const char *const cases[] = { "9223372036854775808", "-9223372036854775809", "10E",
                                         "1e40", "-1e2147483647" };
    struct err err = { 0 };
    int64_t value = 42;

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct quantity quantity = read_ok(cases[i]);

        assert_int_equal(quantity_ceil_units(&quantity, &value, &err), -ERR_TOO_BIG);
        assert_int_equal(quantity_ceil_milli(&quantity, &value, &err), -ERR_TOO_BIG);
    }

    struct quantity half = read_ok("9223372036854775807.5"), huge = read_ok("1e30");

    assert_int_equal(quantity_ceil_units(&half, &value, &err), -ERR_TOO_BIG);
    assert_int_equal(quantity_ceil_mib(&huge, &value, &err), -ERR_TOO_BIG);
    assert_int_equal(value, 42);
}

static void numbers_become_quantities(void **state)
{
    struct quantity quantity = quantity_of_units(2048, QUANTITY_BINARY_SI);

    assert_prints(&quantity, "2Ki");
    quantity = quantity_of_units(INT64_MIN, QUANTITY_DECIMAL_SI);
    assert_prints(&quantity, "-9223372036854775808");
}

static void the_longest_text_fits(void **state)
{
    struct quantity longest = read_ok("-99999999999999999999999999999999999999e2147483645");
    auto_buf struct buf text;

    buf_init(&text, QUANTITY_TEXT_MAX);
    quantity_print(&longest, &text);
    assert_false(text.overflowed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantities_print_in_canonical_form),
        cmocka_unit_test(bad_quantities_are_refused),
        cmocka_unit_test(an_error_names_the_quantity_and_is_bounded),
        cmocka_unit_test(a_suffix_without_a_number_is_zero_as_in_go),
        cmocka_unit_test(more_precision_than_nano_rounds_away_from_zero),
        cmocka_unit_test(binary_quantities_are_capped_at_int64),
        cmocka_unit_test(what_has_no_suffix_left_prints_with_an_exponent),
        cmocka_unit_test(digits_after_the_38th_round_away_from_zero),
        cmocka_unit_test(equal_values_are_equal_however_written),
        cmocka_unit_test(quantities_have_an_order),
        cmocka_unit_test(signs_are_told),
        cmocka_unit_test(quantities_are_rounded_up_to_whole_units),
        cmocka_unit_test(memory_is_rounded_up_to_mib),
        cmocka_unit_test(values_outside_int64_are_an_error),
        cmocka_unit_test(numbers_become_quantities),
        cmocka_unit_test(the_longest_text_fits),
    };

    return cmocka_run_group_tests_name("quantity", tests, NULL, NULL);
}
