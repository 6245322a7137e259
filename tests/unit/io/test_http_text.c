/* test_http_text.c - what may stand in a request, and percent-encoding. */
#include "io/http_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void methods_are_upper_case_words(void **state)
{
    assert_true(http_is_method(STR("GET")));
    assert_true(http_is_method(STR("ABCDEFGHIJKLMNOP")));
    assert_false(http_is_method(STR("ABCDEFGHIJKLMNOPQ")));
    assert_false(http_is_method(STR("")));
    assert_false(http_is_method(STR("get")));
    assert_false(http_is_method(STR("GET /x")));
    assert_true(http_is_read(STR("HEAD")));
    assert_false(http_is_read(STR("DELETE")));
}

static void a_path_cannot_end_its_line(void **state)
{
    assert_true(http_is_path(STR("/")));
    assert_true(http_is_path(STR("/a/b%20c?x=1&y=%0a")));
    assert_false(http_is_path(STR("")));
    assert_false(http_is_path(STR("a")));
    assert_false(http_is_path(STR("/a b")));
    assert_false(http_is_path(STR("/a\r\nX: y")));
    assert_false(http_is_path(STR("/a\0b")));
    assert_false(http_is_path(STR("/a#b")));
    assert_false(http_is_path(STR("/\xc3\xa4")));
    assert_false(http_is_path(STR("/\x7f")));
}

static void a_header_cannot_end_its_line(void **state)
{
    assert_true(http_is_header_name(STR("X-Slurm_User.token")));
    assert_false(http_is_header_name(STR("")));
    assert_false(http_is_header_name(STR("a b")));
    assert_false(http_is_header_name(STR("a:")));
    assert_false(http_is_header_name(STR("a\0")));
    assert_false(http_is_header_name(STR("a\n")));
    assert_true(http_is_header_value(STR("")));
    assert_true(http_is_header_value(STR("a\tb \xc3\xa4")));
    assert_false(http_is_header_value(STR("a\r")));
    assert_false(http_is_header_value(STR("a\nb")));
    assert_false(http_is_header_value(STR("a\0b")));
    assert_false(http_is_header_value(STR("a\x7f")));
}

static void a_header_line_is_known_by_name_in_any_case(void **state)
{
    struct str value = STR("untouched");

    assert_true(http_header_is(STR("retry-AFTER:  7 \r\n"), "Retry-After", &value));
    assert_true(str_is(value, "7"));
    assert_true(http_header_is(STR("A:"), "a", &value));
    assert_int_equal(value.len, 0);
    assert_false(http_header_is(STR("Retry-After-X: 7"), "Retry-After", &value));
    assert_false(http_header_is(STR("Retry-After"), "Retry-After", &value));
}

static void retry_after_is_read_in_seconds_up_to_a_day(void **state)
{
    static const struct {
        struct str text;
        int64_t seconds;
    } cases[] = {
        { { "7", 1 }, 7 },
        { { "0", 1 }, 0 },
        { { "86400", 5 }, 86400 },
        { { "", 0 }, 0 },
        { { "99999999", 8 }, 86400 },
        { { "-1", 2 }, 0 },
        { { "1.5", 3 }, 0 },
        { { "Fri, 31 Dec 1999 23:59:59 GMT", 29 }, 0 },
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(http_retry_after_us(cases[i].text), cases[i].seconds * 1000000);
}

static void everything_but_plain_characters_is_escaped(void **state)
{
    auto_buf struct buf out;

    buf_init(&out, 64);
    http_escape(STR("aZ09-._~ /?&=%+\xff"), &out);
    assert_string_equal(buf_text(&out), "aZ09-._~%20%2F%3F%26%3D%25%2B%FF");
}

static void a_query_gives_the_first_value_of_a_name(void **state)
{
    static const struct {
        const char *query, *name, *value;
        int result;
    } cases[] = {
        { "a=1&b=2", "b", "2", 0 },
        { "a=1&a=2", "a", "1", 0 },
        { "a", "a", "", 0 },
        { "a=", "a", "", 0 },
        { "a=x%2By+z", "a", "x+y z", 0 },
        { "a=b=c", "a", "b=c", 0 },
        { "%61=1", "a", "1", 0 },
        { "", "a", "", -ERR_NOT_FOUND },
        { "&&", "", "", -ERR_NOT_FOUND },
        { "ab=1", "a", "", -ERR_NOT_FOUND },
        { "a=%", "a", "", -ERR_INVALID },
        { "a=%4", "a", "", -ERR_INVALID },
        { "a=ok%zz", "a", "", -ERR_INVALID },
        { "a=%00", "a", "", -ERR_INVALID },
        { "a=12345678901234567", "a", "1234567890123456", -ERR_TOO_BIG },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_buf struct buf out;

        buf_init(&out, 16);
        assert_int_equal(http_query_get(str_of(cases[i].query), cases[i].name, &out, NULL),
                         cases[i].result);
        assert_string_equal(buf_text(&out), cases[i].value);
    }
}

static void words_are_appended_as_one_line(void **state)
{
    static const struct {
        const char *before;
        struct str words;
        const char *after;
    } cases[] = {
        { "", STR(""), "" },
        { "", STR("  no way\n"), "no way" },
        { "a: ", STR("b"), "a: b" },
        { "", STR("a\nb\x7f."), "a b ." },
        { "", STR("0123456789"), "01234567" },     /* what fits */
        { "0123456", STR("\xc3\xa9"), "0123456" }, /* no half characters */
        { "012345", STR("\xc3\xa9x"), "012345\xc3\xa9" },
        { "", STR("abc\xff-def"), "abc" }, /* nor what is none */
        { "01234567", STR("8"), "01234567" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[9] = "";

        memcpy(text, cases[i].before, strlen(cases[i].before));
        http_add_words(text, sizeof(text), cases[i].words);
        assert_string_equal(text, cases[i].after);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(methods_are_upper_case_words),
        cmocka_unit_test(a_path_cannot_end_its_line),
        cmocka_unit_test(a_header_cannot_end_its_line),
        cmocka_unit_test(a_header_line_is_known_by_name_in_any_case),
        cmocka_unit_test(retry_after_is_read_in_seconds_up_to_a_day),
        cmocka_unit_test(everything_but_plain_characters_is_escaped),
        cmocka_unit_test(a_query_gives_the_first_value_of_a_name),
        cmocka_unit_test(words_are_appended_as_one_line),
    };

    return cmocka_run_group_tests_name("io/http_text", tests, NULL, NULL);
}
