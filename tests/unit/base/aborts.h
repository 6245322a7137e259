/* aborts.h - for tests that say "this is a defect and ends the process". */
#ifndef SLINC_TESTS_BASE_ABORTS_H
#define SLINC_TESTS_BASE_ABORTS_H

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs the body in a child, silently; true when it aborted. */
static bool aborts(void (*body)(void))
{
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        struct rlimit no_core = { 0, 0 };

        setrlimit(RLIMIT_CORE, &no_core);
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        body();
        _exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
           WTERMSIG(status) == SIGABRT;
}

#endif
