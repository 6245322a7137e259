/* subprocess.c - one child process: a pipe from it, a deadline, an exit code. */
#include "io/subprocess.h"

#include "base/buf.h"
#include "base/mem.h"
#include "io/loop_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { LOOK_US = 5000 };

struct subprocess {
    struct loop *loop;
    pid_t pid;
    int fd;
    struct loop_fd *watch;
    struct loop_timer deadline, look;
    struct buf output;
    subprocess_done done;
    void *context;
};

static void release(struct subprocess *process)
{
    loop_timer_stop(&process->deadline);
    loop_timer_stop(&process->look);
    loop_fd_free(process->watch);
    (void)close(process->fd);
    mem_free_secret(process->output.data, process->output.len);
    mem_free(process);
}

/* Of a program that was killed: it is gone in a moment. */
static void kill_and_reap(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static void finish(struct subprocess *process, int result, const struct err *err)
{
    process->done(process->context, result, result == 0 ? buf_str(&process->output) : STR(""), err);
    release(process);
}

/* Its output has ended, and it ends in a moment. One that does not is ended at the deadline. */
static void look_for_end(void *context)
{
    struct subprocess *process = context;
    struct err err = { .class = 0 };
    int status = 0, result = 0;
    pid_t ended = waitpid(process->pid, &status, WNOHANG);

    if (ended == 0) {
        loop_timer_start(process->loop, &process->look, LOOK_US, look_for_end, process);
        return;
    }
    if (ended < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        result = err_set(&err, ERR_SYSTEM, "the program ended with status %d", status);
    else
        result = buf_check(&process->output, "its output", &err);
    finish(process, result, &err);
}

static void on_ready(void *context, unsigned events)
{
    struct subprocess *process = context;
    char bytes[4096];
    ssize_t length = read(process->fd, bytes, sizeof(bytes));

    (void)events;
    if (length > 0) {
        buf_add(&process->output, bytes, (size_t)length);
    } else if (length == 0 || (errno != EAGAIN && errno != EINTR)) {
        loop_fd_free(process->watch);
        process->watch = NULL;
        look_for_end(process);
    }
}

static void on_deadline(void *context)
{
    struct subprocess *process = context;
    struct err err = { .class = 0 };

    kill_and_reap(process->pid);
    finish(process, err_set(&err, ERR_TIMEOUT, "the program did not end in time"), &err);
}

static int spawn(const char *const *argv, const char *const *env, int output, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    int number;

    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    number = posix_spawnp(ret_pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv,
                          (char *const *)(uintptr_t)env);
    (void)posix_spawn_file_actions_destroy(&actions);
    return number;
}

struct subprocess *subprocess_start(struct loop *loop, const char *const *argv, int64_t timeout_us,
                                    subprocess_done done, void *context, struct err *err)
{
    return subprocess_start_env(loop, argv, (const char *const *)environ, timeout_us, done, context,
                                err);
}

struct subprocess *subprocess_start_env(struct loop *loop, const char *const *argv,
                                        const char *const *env, int64_t timeout_us,
                                        subprocess_done done, void *context, struct err *err)
{
    struct subprocess *process;
    int ends[2], number;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0) {
        (void)err_system(err, errno, "pipe");
        return NULL;
    }
    /* Our end only: programs take a full pipe that does not block for an error. */
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    number = spawn(argv, env, ends[1], &pid);
    (void)close(ends[1]);
    if (number != 0) {
        (void)close(ends[0]);
        (void)err_system(err, number, "%s", argv[0]);
        return NULL;
    }
    process = mem_alloc(sizeof(*process));
    process->loop = loop;
    process->pid = pid;
    process->fd = ends[0];
    process->done = done;
    process->context = context;
    buf_init(&process->output, SUBPROCESS_MAX_OUTPUT);
    process->watch = loop_fd_new(loop, process->fd, LOOP_FD_READ, on_ready, process);
    loop_timer_start(loop, &process->deadline, timeout_us, on_deadline, process);
    return process;
}

void subprocess_cancel(struct subprocess *process)
{
    kill_and_reap(process->pid);
    release(process);
}
