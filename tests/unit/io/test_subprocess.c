/* test_subprocess.c - a program runs beside the loop; its output, its failure and its hang are
 * told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/loop_real.h"
#include "io/subprocess.h"

#include <stdio.h>

enum { SECOND = 1000000 };

struct seen {
    struct loop *loop;
    int result;
    size_t length;
    char output[64], error[256];
};

static void on_done(void *context, int result, struct str output, const struct err *err)
{
    struct seen *seen = context;

    seen->result = result;
    seen->length = output.len;
    (void)snprintf(seen->output, sizeof(seen->output), STR_FMT, STR_ARG(output));
    (void)snprintf(seen->error, sizeof(seen->error), "%s", result < 0 ? err->text : "");
    loop_stop(seen->loop);
}

static void run(struct seen *seen, const char *script, int64_t timeout_us)
{
    const char *const argv[] = { "/bin/sh", "-c", script, NULL };

    assert_int_equal(loop_new_real(&seen->loop, NULL), 0);
    assert_non_null(subprocess_start(seen->loop, argv, timeout_us, on_done, seen, NULL));
    loop_run(seen->loop);
    loop_free(seen->loop);
}

static void the_output_of_a_program_is_handed_over(void **state)
{
    struct seen seen = { .result = -1 };

    run(&seen, "echo one; echo two", 60 * SECOND);
    assert_int_equal(seen.result, 0);
    assert_string_equal(seen.output, "one\ntwo\n");
}

static void more_than_a_pipe_holds_is_handed_over_whole(void **state)
{
    struct seen seen = { .result = -1 };

    run(&seen, "exec head -c 1000000 /dev/zero", 60 * SECOND);
    assert_int_equal(seen.result, 0);
    assert_int_equal(seen.length, 1000000);
}

static void a_program_that_fails_gives_no_output(void **state)
{
    struct seen seen = { .result = 0 };

    run(&seen, "echo half; exit 3", 60 * SECOND);
    assert_int_equal(seen.result, -ERR_SYSTEM);
    assert_string_equal(seen.output, "");
}

static void a_program_that_hangs_is_ended(void **state)
{
    struct seen seen = { .result = 0 };

    run(&seen, "exec sleep 600", SECOND / 10);
    assert_int_equal(seen.result, -ERR_TIMEOUT);
}

static void a_program_that_closes_its_output_and_hangs_is_ended(void **state)
{
    struct seen seen = { .result = 0 };

    run(&seen, "exec >&-; exec sleep 600", SECOND / 10);
    assert_int_equal(seen.result, -ERR_TIMEOUT);
}

static void a_program_that_is_not_there_is_named(void **state)
{
    const char *const argv[] = { "/no/such/program", NULL };
    struct err err = { 0 };
    struct seen seen = { .result = 0 };

    assert_int_equal(loop_new_real(&seen.loop, NULL), 0);
    assert_null(subprocess_start(seen.loop, argv, SECOND, on_done, &seen, &err));
    assert_true(str_starts(str_of(err.text), STR("/no/such/program: ")));
    loop_free(seen.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_output_of_a_program_is_handed_over),
        cmocka_unit_test(more_than_a_pipe_holds_is_handed_over_whole),
        cmocka_unit_test(a_program_that_fails_gives_no_output),
        cmocka_unit_test(a_program_that_hangs_is_ended),
        cmocka_unit_test(a_program_that_closes_its_output_and_hangs_is_ended),
        cmocka_unit_test(a_program_that_is_not_there_is_named),
    };

    return cmocka_run_group_tests_name("subprocess", tests, NULL, NULL);
}
