/* test_worlds_read.c - what is refused in a file of worlds, and how the error names it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worlds_read.h"

/* Reads the text as the file w.yaml and expects this error; NULL: none. */
static void expect_read(const char *text, const char *error)
{
    static struct written_worlds all;
    struct err err = { .class = 0 };
    int rc = worlds_read_text(&all, "w.yaml", str_of(text), &err);

    worlds_read_done(&all);
    if (!error) {
        if (rc < 0)
            fail_msg("%s", err.text);
        return;
    }
    assert_int_equal(rc, -ERR_INVALID);
    assert_string_equal(err.text, error);
}

static void every_document_is_a_world(void **state)
{
    static struct written_worlds all;
    struct err err = { .class = 0 };

    (void)state;
    assert_int_equal(
        worlds_read_text(&all, "w.yaml", STR("---\nname: one\n---\nname: two\n"), &err), 0);
    assert_int_equal(all.count, 2);
    assert_string_equal(all.worlds[0].name, "one");
    assert_string_equal(all.worlds[1].name, "two");
    worlds_read_done(&all);
}

static void a_world_without_a_name_is_refused(void **state)
{
    (void)state;
    expect_read("given: {}\n", "w.yaml: a world without a name");
}

static void two_worlds_of_one_name_are_refused(void **state)
{
    (void)state;
    expect_read("name: one\n---\nname: one\n", "w.yaml: there are two worlds 'one'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_document_is_a_world),
        cmocka_unit_test(a_world_without_a_name_is_refused),
        cmocka_unit_test(two_worlds_of_one_name_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
