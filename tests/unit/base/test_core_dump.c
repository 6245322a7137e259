/* test_core_dump.c - a process that holds keys leaves no core, and its children may again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/core_dump.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BEFORE = 4096 };

/* In a process of its own: the leak checker of this one looks into its memory. */
static int in_child(int (*check)(void))
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0)
        _exit(check());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static rlim_t limit(void)
{
    struct rlimit found;

    return getrlimit(RLIMIT_CORE, &found) == 0 ? found.rlim_cur : RLIM_INFINITY;
}

static int forbid(void)
{
    struct rlimit before;

    (void)getrlimit(RLIMIT_CORE, &before);
    before.rlim_cur = before.rlim_max < BEFORE ? before.rlim_max : BEFORE;
    (void)setrlimit(RLIMIT_CORE, &before);
    (void)prctl(PR_SET_DUMPABLE, 1);
    core_dump_forbid();
    if (limit() != 0)
        return 1;
    if (prctl(PR_GET_DUMPABLE) != 0)
        return 2;
    core_dump_restore_limit();
    return limit() == before.rlim_cur ? 0 : 3;
}

static void no_core_is_written_and_nobody_attaches(void **state)
{
    (void)state;
    assert_int_equal(in_child(forbid), 0);
}

static int crash(void)
{
    core_dump_forbid();
    abort();
}

static void a_crash_dumps_nothing(void **state)
{
    int status = in_child(crash);

    (void)state;
    assert_true(WIFSIGNALED(status));
    assert_false(WCOREDUMP(status));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_core_is_written_and_nobody_attaches),
        cmocka_unit_test(a_crash_dumps_nothing),
    };

    return cmocka_run_group_tests_name("core_dump", tests, NULL, NULL);
}
