/* test_str.c - slices are compared, cut and read without looking past their end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void assert_str(struct str s, const char *text)
{
    assert_int_equal(s.len, strlen(text));
    assert_memory_equal(s.at, text, s.len);
}

static void equality_is_by_bytes_and_length(void **state)
{
    assert_true(str_eq(STR("abc"), STR("abc")));
    assert_false(str_eq(STR("abc"), STR("ab")));
    assert_false(str_eq(STR("abc"), STR("abd")));
    assert_true(str_eq(STR(""), str_of(NULL)));
    assert_false(str_eq(STR("a\0b"), STR("a\0c")));
    assert_true(str_is(STR("abc"), "abc"));
    assert_false(str_is(STR("abc"), "abcd"));
}

static void order_is_by_bytes_then_length(void **state)
{
    assert_true(str_cmp(STR("a"), STR("b")) < 0);
    assert_true(str_cmp(STR("b"), STR("a")) > 0);
    assert_true(str_cmp(STR("a"), STR("aa")) < 0);
    assert_true(str_cmp(STR("aa"), STR("a")) > 0);
    assert_true(str_cmp(STR("\xff"), STR("a")) > 0); /* bytes are unsigned */
    assert_int_equal(str_cmp(STR("aa"), STR("aa")), 0);
    assert_int_equal(str_cmp(STR(""), STR("")), 0);
}

static void starts_and_ends(void **state)
{
    assert_true(str_starts(STR("slinky.slurm.net/a"), STR("slinky.")));
    assert_true(str_starts(STR("a"), STR("")));
    assert_false(str_starts(STR("a"), STR("ab")));
    assert_false(str_starts(STR("ba"), STR("a")));
    assert_true(str_ends(STR("name.json"), STR(".json")));
    assert_true(str_ends(STR("a"), STR("a")));
    assert_true(str_ends(STR(""), STR("")));
    assert_false(str_ends(STR("json"), STR(".json")));
    assert_false(str_ends(STR("ab"), STR("a")));
}

static void a_part_is_clamped_to_the_whole(void **state)
{
    assert_str(str_sub(STR("abcd"), 1, 3), "bc");
    assert_str(str_sub(STR("abcd"), 1, 99), "bcd");
    assert_str(str_sub(STR("abcd"), 9, 99), "");
    assert_str(str_sub(STR("abcd"), 3, 1), "");
    assert_str(str_sub(STR("abcd"), 0, SIZE_MAX), "abcd");
}

static void trimming_takes_blanks_at_both_ends(void **state)
{
    assert_str(str_trim(STR(" \t\r\n a b \n")), "a b");
    assert_str(str_trim(STR(" \t ")), "");
    assert_str(str_trim(STR("")), "");
    assert_str(str_trim(STR("\v")), "\v");
}

static void splitting_gives_every_part(void **state)
{
    static const struct {
        const char *text;
        const char *parts[4];
        size_t count;
    } cases[] = {
        { "", { "" }, 1 },      { "a", { "a" }, 1 },           { "a,b,c", { "a", "b", "c" }, 3 },
        { ",", { "", "" }, 2 }, { "a,,", { "a", "", "" }, 3 }, { ",a", { "", "a" }, 2 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str rest = str_of(cases[i].text), part = { NULL, 0 };
        size_t count = 0;

        while (str_next(&rest, ',', &part)) {
            assert_true(count < cases[i].count);
            assert_str(part, cases[i].parts[count++]);
        }
        assert_int_equal(count, cases[i].count);
        assert_false(str_next(&rest, ',', &part));
    }
}

static void cutting_is_at_the_first_separator(void **state)
{
    struct str before = STR("old"), after = STR("old");

    assert_false(str_cut(STR("abc"), '=', &before, &after));
    assert_false(str_cut(STR(""), '=', &before, &after));
    assert_str(before, "old");
    assert_str(after, "old");
    assert_true(str_cut(STR("a=b=c"), '=', &before, &after));
    assert_str(before, "a");
    assert_str(after, "b=c");
    assert_true(str_cut(STR("="), '=', &before, &after));
    assert_str(before, "");
    assert_str(after, "");
}

static void a_text_is_cut_into_itself(void **state)
{
    struct str rest = STR("a=b"), first;

    assert_true(str_cut(rest, '=', &first, &rest));
    assert_str(first, "a");
    assert_str(rest, "b");
}

static void whole_numbers_are_read(void **state)
{
    static const struct {
        const char *text;
        uint64_t value;
    } cases[] = {
        { "0", 0 },
        { "7", 7 },
        { "007", 7 },
        { "18446744073709551615", UINT64_MAX },
        { "000000000000000000000000000001", 1 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t value = 99;

        assert_int_equal(str_to_u64(str_of(cases[i].text), 0, UINT64_MAX, &value, NULL), 0);
        assert_int_equal(value, cases[i].value);
    }
}

static void signed_numbers_are_read(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {
        { "0", 0 },   { "-0", 0 },  { "9223372036854775807", INT64_MAX },
        { "-1", -1 }, { "42", 42 }, { "-9223372036854775808", INT64_MIN },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t value = 99;

        assert_int_equal(str_to_i64(str_of(cases[i].text), INT64_MIN, INT64_MAX, &value, NULL), 0);
        assert_int_equal(value, cases[i].value);
    }
}

static void what_is_not_a_whole_number_is_refused(void **state)
{
    static const char *const cases[] = {
        "",    "-",   "+",    "+1",  " 1",       "1 ",
        "1.0", "1e3", "0x10", "abc", "--1",      "99999999999999999999",
        "1\n", "1,2", "-+1",  "1-",  "\xd9\xa1", "-9223372036854775809",
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct err err = { 0 };
        uint64_t unsigned_value = 99;
        int64_t signed_value = 99;

        assert_int_equal(str_to_u64(str_of(cases[i]), 0, UINT64_MAX, &unsigned_value, &err),
                         -ERR_INVALID);
        assert_int_equal(str_to_i64(str_of(cases[i]), INT64_MIN, INT64_MAX, &signed_value, &err),
                         -ERR_INVALID);
        assert_int_equal(unsigned_value, 99);
        assert_int_equal(signed_value, 99);
    }
    uint64_t value;

    assert_int_equal(str_to_u64(STR("-1"), 0, 9, &value, NULL), -ERR_INVALID);
    assert_int_equal(str_to_u64(STR("18446744073709551616"), 0, UINT64_MAX, &value, NULL),
                     -ERR_INVALID);
    assert_int_equal(str_to_u64(STR("1\0"), 0, 9, &value, NULL), -ERR_INVALID);
}

static void a_number_out_of_range_names_the_range(void **state)
{
    struct err err = { 0 };
    uint64_t unsigned_value = 99;
    int64_t signed_value = 99;

    assert_int_equal(str_to_u64(STR("11"), 2, 10, &unsigned_value, &err), -ERR_INVALID);
    assert_string_equal(err.text, "\"11\" is not a whole number from 2 to 10");
    assert_int_equal(str_to_u64(STR("1"), 2, 10, &unsigned_value, &err), -ERR_INVALID);
    assert_int_equal(str_to_i64(STR("-6"), -5, 5, &signed_value, &err), -ERR_INVALID);
    assert_string_equal(err.text, "\"-6\" is not a whole number from -5 to 5");
    assert_int_equal(unsigned_value, 99);
    assert_int_equal(signed_value, 99);
    assert_int_equal(str_to_u64(STR("10"), 2, 10, &unsigned_value, &err), 0);
    assert_int_equal(str_to_i64(STR("-5"), -5, 5, &signed_value, &err), 0);
}

static void utf8_is_checked_strictly(void **state)
{
    static const struct {
        struct str text;
        bool valid;
    } cases[] = {
        { STR(""), true },
        { STR("plain"), true },
        { STR("a\0b"), true },
        { STR("\xc3\xa9"), true },
        { STR("\xe2\x82\xac"), true },
        { STR("\xf0\x9f\x90\x8e"), true },
        { STR("\xed\x9f\xbf"), true },     /* the last before the surrogates */
        { STR("\xee\x80\x80"), true },     /* the first behind them */
        { STR("\xf4\x8f\xbf\xbf"), true }, /* the last of all */
        { STR("\x80"), false },            /* no lead byte */
        { STR("\xc3"), false },            /* cut short */
        { STR("\xe2\x82"), false },
        { STR("\xf0\x9f\x90"), false },
        { STR("\xc3("), false }, /* no continuation */
        { STR("\xe2\x82("), false },
        { STR("\xc0\x80"), false }, /* overlong */
        { STR("\xc1\xbf"), false },
        { STR("\xe0\x9f\xbf"), false },
        { STR("\xf0\x8f\xbf\xbf"), false },
        { STR("\xed\xa0\x80"), false }, /* a surrogate */
        { STR("\xed\xbf\xbf"), false },
        { STR("\xf4\x90\x80\x80"), false }, /* above U+10FFFF */
        { STR("\xf5\x80\x80\x80"), false },
        { STR("\xff"), false },
        { STR("ok\xff"), false },
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(str_is_utf8(cases[i].text), cases[i].valid);
}

static void a_character_knows_its_length(void **state)
{
    assert_int_equal(str_utf8_char(STR("")), 0);
    assert_int_equal(str_utf8_char(STR("abc")), 1);
    assert_int_equal(str_utf8_char(STR("\xc3\xa9x")), 2);
    assert_int_equal(str_utf8_char(STR("\xe2\x82\xacx")), 3);
    assert_int_equal(str_utf8_char(STR("\xf0\x9f\x90\x8ex")), 4);
    assert_int_equal(str_utf8_char(STR("\xffx")), 0);
}

static void secrets_are_compared_whole(void **state)
{
    assert_true(str_eq_secret(STR("token"), STR("token")));
    assert_true(str_eq_secret(STR(""), STR("")));
    assert_false(str_eq_secret(STR("token"), STR("tokem")));
    assert_false(str_eq_secret(STR("token"), STR("xoken")));
    assert_false(str_eq_secret(STR("token"), STR("toke")));
    assert_false(str_eq_secret(STR("\x80"), STR("\x00")));
}

static void letters_are_the_same_in_either_case(void **state)
{
    (void)state;
    assert_true(str_eq_nocase(STR("NodeName"), STR("nODEnAME")));
    assert_true(str_eq_nocase(STR(""), STR("")));
    assert_false(str_eq_nocase(STR("NodeName"), STR("NodeNames")));
    assert_false(str_eq_nocase(STR("a["), STR("A{")));
    assert_false(str_eq_nocase(STR("\xc3\x84"), STR("\xc3\xa4")));
}

static void letters_and_digits_are_those_of_ascii(void **state)
{
    (void)state;
    for (const char *good = "azAZ09"; *good; good++)
        assert_true(str_is_alnum(*good));
    for (const char *wrong = "/:@[`{_-\xc3\xa4"; *wrong; wrong++)
        assert_false(str_is_alnum(*wrong));
    assert_false(str_is_alnum('\0'));
}

static void a_hex_digit_has_its_value_in_either_case(void **state)
{
    static const char digits[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";

    (void)state;
    for (int i = 0; i < 16; i++) {
        assert_int_equal(str_hex_digit(digits[i]), i);
        assert_int_equal(str_hex_digit(upper[i]), i);
    }
    for (const char *wrong = "gG/:@` x\n"; *wrong; wrong++)
        assert_int_equal(str_hex_digit(*wrong), -1);
    assert_int_equal(str_hex_digit('\0'), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letters_are_the_same_in_either_case),
        cmocka_unit_test(letters_and_digits_are_those_of_ascii),
        cmocka_unit_test(a_hex_digit_has_its_value_in_either_case),
        cmocka_unit_test(equality_is_by_bytes_and_length),
        cmocka_unit_test(order_is_by_bytes_then_length),
        cmocka_unit_test(starts_and_ends),
        cmocka_unit_test(a_part_is_clamped_to_the_whole),
        cmocka_unit_test(trimming_takes_blanks_at_both_ends),
        cmocka_unit_test(splitting_gives_every_part),
        cmocka_unit_test(cutting_is_at_the_first_separator),
        cmocka_unit_test(a_text_is_cut_into_itself),
        cmocka_unit_test(whole_numbers_are_read),
        cmocka_unit_test(signed_numbers_are_read),
        cmocka_unit_test(what_is_not_a_whole_number_is_refused),
        cmocka_unit_test(a_number_out_of_range_names_the_range),
        cmocka_unit_test(utf8_is_checked_strictly),
        cmocka_unit_test(a_character_knows_its_length),
        cmocka_unit_test(secrets_are_compared_whole),
    };

    return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
