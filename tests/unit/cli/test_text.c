/* test_text.c - nothing that people wrote into Slurm or Kubernetes drives the terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/text.h"

static const struct {
    const char *text, *plain, *json; /* json: NULL when it is left as it is */
} rows[] = {
    { "", "", NULL },
    { "a pod", "a pod", NULL },
    { "caf\xc3\xa9 \xe2\x86\x92 \xf0\x9f\x90\xa7", "caf\xc3\xa9 \xe2\x86\x92 \xf0\x9f\x90\xa7",
      NULL },
    { "a\x1b[31mb\tc\n", "a [31mb c ", NULL },
    { "a\x7f", "a", "a\\u007f" },
    /* C1: CSI, OSC; as UTF-8, and as the bytes of an 8-bit terminal */
    { "a\xc2\x9b"
      "31mb\xc2\x9d",
      "a31mb", "a\\u009b31mb\\u009d" },
    { "\xc2\x80\xc2\x9f\xc2\xa0", "\xc2\xa0", "\\u0080\\u009f\xc2\xa0" },
    { "a\x9b"
      "31m",
      "a?31m", "a?31m" },
    /* marks of direction */
    { "\xe2\x80\xae"
      "dnes"
      "\xe2\x80\xac",
      "dnes", "\\u202ednes\\u202c" },
    { "\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8\xe2\x81\xa9", "", "\\u2066\\u2067\\u2068\\u2069" },
    { "\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "", "\\u200e\\u200f\\u061c" },
    { "\xe2\x80\xa8\xe2\x80\xa9", "", "\\u2028\\u2029" },
    { "\xd7\x90\xd7\x91", "\xd7\x90\xd7\x91", NULL }, /* Hebrew itself stays */
    /* what is no UTF-8: cut, overlong forms of ESC and of CSI, a surrogate, beyond Unicode */
    { "a\xc3", "a?", "a?" },
    { "\xc0\x9b\xe0\x82\x9b", "?????", "?????" },
    { "\xed\xa0\x80", "???", "???" },
    { "\xf4\x90\x80\x80\xff", "?????", "?????" },
};

static void what_drives_a_terminal_is_left_out(void **state)
{
    struct arena arena;

    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        auto_buf struct buf json = { .max = 1000 };

        assert_string_equal(text_plain(&arena, str_of(rows[i].text)), rows[i].plain);
        text_add_safe(&json, str_of(rows[i].text), true);
        assert_string_equal(buf_text(&json), rows[i].json ? rows[i].json : rows[i].text);
    }
    arena_done(&arena);
}

static void colours_and_lines_stay_in_a_whole_page(void **state)
{
    auto_buf struct buf out = { .max = 1000 };

    text_add_safe(&out,
                  STR("\x1b[31mred\x1b[0m\n\xc2\x9b"
                      "2J"),
                  false);
    assert_string_equal(buf_text(&out), "\x1b[31mred\x1b[0m\n2J");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_drives_a_terminal_is_left_out),
        cmocka_unit_test(colours_and_lines_stay_in_a_whole_page),
    };

    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
