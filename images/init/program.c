/* program.c - starting and signalling one program. */
#include "program.h"

#include "base/core_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int64_t program_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A program that cannot enter its group runs all the same, in ours. */
static void enter_cgroup(const char *folder)
{
    char path[1024];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) < 0)
        fprintf(stderr, "slinc-init: %s: %s\n", path, strerror(errno));
    if (fd >= 0)
        close(fd);
}

static _Noreturn void become(const struct program *program)
{
    sigset_t none;

    setpgid(0, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (program->errors > 0)
        dup2(program->errors, STDERR_FILENO);
    if (program->cgroup)
        enter_cgroup(program->cgroup);
    core_dump_restore_limit();
    execvp(program->words.at[0], program->words.at);
    fprintf(stderr, "slinc-init: %s: %s\n", program->words.at[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126); /* as a shell does */
}

int program_start(struct program *program, struct err *err)
{
    pid_t pid = fork();

    if (pid < 0)
        return err_system(err, errno, "fork for %s", program->words.at[0]);
    if (pid == 0)
        become(program);
    setpgid(pid, pid); /* both sides do it, so the group exists whoever comes first */
    program->pid = pid;
    program->starts_at = 0;
    return 0;
}

void program_signal(const struct program *program, int number)
{
    if (program->pid > 0)
        kill(program->pid, number);
}

void program_kill(const struct program *program)
{
    if (program->pid > 0)
        kill(-program->pid, SIGKILL);
}

int program_exit_code(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
