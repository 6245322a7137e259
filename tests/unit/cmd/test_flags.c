/* test_flags.c - command lines, as they are written by people and by charts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cmd/flags.h"

#include <string.h>

struct values {
    const char *text;
    bool on;
    int64_t number;
};

static const struct flag flags[] = {
    { "text", FLAG_TEXT, offsetof(struct values, text), "usual", "a text" },
    { "on", FLAG_BOOL, offsetof(struct values, on), "false", "a switch" },
    { "number", FLAG_NUMBER, offsetof(struct values, number), "3", "a number" },
    { "old", FLAG_IGNORED, 0, NULL, "taken, and without effect" },
    { "old-switch", FLAG_IGNORED_BOOL, 0, NULL, "taken, and without effect" },
    { NULL, FLAG_TEXT, 0, NULL, NULL },
};

static int parse(const char *const *arguments, struct values *values, bool *help, struct err *err)
{
    int count = 0;

    while (arguments[count])
        count++;
    *values = (struct values){ .text = NULL };
    return flags_parse(flags, count, (char *const *)arguments, values, help, err);
}

static void flags_are_read_in_every_form_that_go_takes(void **state)
{
    static const struct {
        const char *arguments[4];
        struct values values;
    } cases[] = {
        { { NULL }, { "usual", false, 3 } },
        { { "--text", "a" }, { "a", false, 3 } },
        { { "-text=a" }, { "a", false, 3 } },
        { { "--text=a=b" }, { "a=b", false, 3 } },
        { { "--text=" }, { "", false, 3 } },
        { { "--on" }, { "usual", true, 3 } },
        { { "-on=true", "--number", "0" }, { "usual", true, 0 } },
        { { "--on", "--on=false" }, { "usual", false, 3 } },
        { { "--old", "--on", "--old-switch" }, { "usual", false, 3 } }, /* --on is the value */
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct values values;
        struct err err = { .class = 0 };
        bool help;

        assert_int_equal(parse(cases[i].arguments, &values, &help, &err), 0);
        assert_string_equal(values.text, cases[i].values.text);
        assert_int_equal(values.on, cases[i].values.on);
        assert_int_equal(values.number, cases[i].values.number);
        assert_false(help);
    }
}

static void what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *arguments[3];
        const char *text;
    } cases[] = {
        { { "--nothing" }, "unknown flag --nothing" },
        { { "--nothing=1" }, "unknown flag --nothing" },
        { { "word" }, "'word' is no flag" },
        { { "--text" }, "--text wants a value" },
        { { "--on=maybe" }, "--on: wants true or false, not 'maybe'" },
        { { "--number=-1" }, "--number" },
        { { "--number", "x" }, "--number" },
        { { "--" }, "'--' is no flag" },
        { { "-" }, "'-' is no flag" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct values values;
        struct err err = { .class = 0 };
        bool help;

        assert_int_equal(parse(cases[i].arguments, &values, &help, &err), -ERR_INVALID);
        if (!strstr(err.text, cases[i].text))
            fail_msg("%s: %s", cases[i].text, err.text);
    }
}

static void help_is_asked_for_and_lists_every_flag(void **state)
{
    static const char *const asks[] = { "--help", "-h", "-help" };
    struct values values;
    struct err err = { .class = 0 };
    auto_buf struct buf out;
    bool help;

    for (size_t i = 0; i < 3; i++) {
        const char *arguments[] = { "--on", asks[i], NULL };

        assert_int_equal(parse(arguments, &values, &help, &err), 0);
        assert_true(help);
    }
    buf_init(&out, 10000);
    flags_help(flags, &out);
    for (const struct flag *flag = flags; flag->name; flag++)
        assert_non_null(strstr(buf_text(&out), flag->name));
    assert_non_null(strstr(buf_text(&out), "(default usual)"));
}

static void words_may_stand_among_the_flags(void **state)
{
    const char *given[] = { "why", "--on", "pod", "--text", "a", "--", "--odd" };
    char **arguments = (char **)(uintptr_t)given, *words[3];
    struct values values = { .text = NULL };
    struct err err = { .class = 0 };
    int count;
    bool help;

    assert_int_equal(flags_parse_mixed(flags, 7, arguments, &values, &help, words, 3, &count, &err),
                     0);
    assert_int_equal(count, 3);
    assert_string_equal(words[0], "why");
    assert_string_equal(words[1], "pod");
    assert_string_equal(words[2], "--odd");
    assert_true(values.on);
    assert_string_equal(values.text, "a");
    assert_int_equal(flags_parse_mixed(flags, 7, arguments, &values, &help, words, 2, &count, &err),
                     -ERR_INVALID);
    assert_string_equal(err.text, "too many words; see --help");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_are_read_in_every_form_that_go_takes),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(help_is_asked_for_and_lists_every_flag),
        cmocka_unit_test(words_may_stand_among_the_flags),
    };

    return cmocka_run_group_tests_name("flags", tests, NULL, NULL);
}
