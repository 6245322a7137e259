/* supervise.c - the loop of slinc-init: one signal at a time, nothing asynchronous.
 *
 * All signals of interest stay blocked and are taken by sigtimedwait, so there are no handlers and
 * no races between a signal and a wait. */
#include "supervise.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

enum { RESTART_MS = 1000, RESTART_MAX_MS = 60000, LIVES_MS = 10000, IDLE_MS = 60000 };

struct run {
    struct program *programs; /* [0] is the main one */
    size_t count;
    int64_t grace_ms;
    int64_t deadline; /* 0 while nothing is ending; then when the rest is killed */
    bool stopped;
};

static const int watched[] = { SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 };

static void watched_set(sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++)
        sigaddset(set, watched[i]);
}

void supervise_prepare(void)
{
    sigset_t set;

    watched_set(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static void start(struct program *program)
{
    struct err err;

    program->started_at = program_now();
    if (program_start(program, &err)) {
        fprintf(stderr, "slinc-init: %s\n", err.text);
        program->status = 126 << 8; /* as if it had exited with 126 */
        program->starts_at = program_now() + RESTART_MS;
    }
}

static void end_all(struct run *run, int number)
{
    if (run->deadline == 0)
        run->deadline = program_now() + run->grace_ms;
    for (size_t i = 0; i < run->count; i++)
        program_signal(&run->programs[i], number);
}

static void helper_ended(struct run *run, struct program *helper)
{
    if (run->deadline != 0)
        return;
    if (helper->waits_ms == 0 || program_now() - helper->started_at >= LIVES_MS)
        helper->waits_ms = RESTART_MS;
    else if (helper->waits_ms < RESTART_MAX_MS)
        helper->waits_ms *= 2;
    fprintf(stderr, "slinc-init: %s ended with %d, starting it again in %lld s\n",
            helper->words.at[0], program_exit_code(helper->status),
            (long long)helper->waits_ms / 1000);
    helper->starts_at = program_now() + helper->waits_ms;
}

static void note_end(struct run *run, pid_t pid, int status)
{
    for (size_t i = 0; i < run->count; i++) {
        struct program *program = &run->programs[i];

        if (program->pid != pid)
            continue;
        program->pid = 0;
        program->status = status;
        if (i == 0)
            end_all(run, SIGTERM);
        else
            helper_ended(run, program);
    }
}

static void reap(struct run *run)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        note_end(run, pid, status);
}

static void take_signal(struct run *run, int number)
{
    switch (number) {
    case SIGCHLD:
        reap(run);
        break;
    case SIGTERM:
    case SIGINT:
        run->stopped = true;
        end_all(run, number);
        break;
    default:
        program_signal(&run->programs[0], number);
    }
}

/* Starts the helpers whose time has come and kills whoever outlived the deadline. */
static void take_timers(struct run *run)
{
    int64_t now = program_now();

    for (size_t i = 0; i < run->count; i++) {
        struct program *program = &run->programs[i];

        if (run->deadline != 0 && now >= run->deadline)
            program_kill(program);
        else if (i > 0 && run->deadline == 0 && program->starts_at && now >= program->starts_at)
            start(program);
    }
}

static int64_t sleep_ms(const struct run *run)
{
    int64_t now = program_now(), until = now + IDLE_MS;

    if (run->deadline != 0) /* past it everybody was killed: look again soon */
        return run->deadline > now ? run->deadline - now : 100;
    for (size_t i = 1; i < run->count; i++)
        if (run->programs[i].starts_at && run->programs[i].starts_at < until)
            until = run->programs[i].starts_at;
    return until > now ? until - now : 0;
}

static bool is_running(const struct run *run)
{
    for (size_t i = 0; i < run->count; i++)
        if (run->programs[i].pid > 0)
            return true;
    return false;
}

int supervise(struct program *programs, size_t count, int64_t grace_ms, bool *ret_stopped)
{
    struct run run = { .programs = programs, .count = count, .grace_ms = grace_ms };
    sigset_t set;

    watched_set(&set);
    for (size_t i = count; i > 0; i--) /* helpers first: the main program may need them */
        start(&programs[i - 1]);
    if (programs[0].pid == 0)
        end_all(&run, SIGTERM);
    while (run.deadline == 0 || is_running(&run)) {
        int64_t ms = sleep_ms(&run);
        struct timespec wait = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
        int number = sigtimedwait(&set, NULL, &wait);

        if (number > 0)
            take_signal(&run, number);
        take_timers(&run);
    }
    *ret_stopped = run.stopped;
    return program_exit_code(programs[0].status);
}
