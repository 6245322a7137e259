/* sieve.c - lines in, lines out, a few times a second.
 *
 * The process looks at its input in intervals, since a look for every line would cost as much as
 * the lines do; the pipe is long enough for what comes in between.
 *
 * Holds: a line is let through or left out as a whole, by its first LINE_MAX_BYTES. */
#include "sieve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LINE_MAX_BYTES = 64 * 1024,
    PIPE_BYTES = 1024 * 1024,
    REST_MS = 50,
    END_S = 2,
};

bool sieve_wants(const struct sieve *sieve, struct str line)
{
    for (size_t i = 0; i < sieve->count; i++)
        if (memmem(line.at, line.len, sieve->texts[i], strlen(sieve->texts[i])))
            return false;
    return true;
}

static void write_all(const char *at, size_t length)
{
    while (length > 0) {
        ssize_t done = write(STDERR_FILENO, at, length);

        if (done < 0 && errno != EINTR)
            _exit(0); /* nobody is there to read it */
        if (done > 0) {
            at += done;
            length -= (size_t)done;
        }
    }
}

/* Gives out the whole lines of text, or all of it when no more fits; returns what is left. `goes`
 * is the fate of a line that was too long to be seen whole, until its end. */
static size_t pass_lines(const struct sieve *sieve, char *text, size_t length, int *goes)
{
    char *at = text, *end = text + length, *stop;

    while ((stop = memchr(at, '\n', (size_t)(end - at))) ||
           (at == text && length == LINE_MAX_BYTES)) {
        char *next = stop ? stop + 1 : end;
        bool wanted =
            *goes < 0 ? sieve_wants(sieve, (struct str){ at, (size_t)(next - at) }) : *goes > 0;

        if (wanted)
            write_all(at, (size_t)(next - at));
        *goes = stop ? -1 : wanted;
        at = next;
    }
    memmove(text, at, (size_t)(end - at));
    return (size_t)(end - at);
}

static _Noreturn void run(const struct sieve *sieve, int from)
{
    static char text[LINE_MAX_BYTES];
    size_t length = 0;
    int goes = -1;
    ssize_t got;

    while ((got = read(from, text + length, sizeof(text) - length)) > 0 ||
           (got < 0 && errno == EINTR)) {
        if (got < 0)
            continue;
        length = pass_lines(sieve, text, length + (size_t)got, &goes);
        if ((size_t)got < sizeof(text) / 2)
            nanosleep(&(struct timespec){ .tv_nsec = REST_MS * 1000000L }, NULL);
    }
    if (length > 0 && (goes > 0 || (goes < 0 && sieve_wants(sieve, (struct str){ text, length }))))
        write_all(text, length);
    _exit(0);
}

int sieve_start(struct sieve *sieve, struct err *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_system(err, errno, "pipe");
    fcntl(ends[0], F_SETPIPE_SZ, PIPE_BYTES); /* more than the user's share is refused: less does */
    sieve->pid = fork();
    if (sieve->pid < 0)
        return err_system(err, errno, "fork");
    if (sieve->pid == 0) {
        close(ends[1]);
        run(sieve, ends[0]);
    }
    close(ends[0]);
    sieve->input = ends[1];
    return 0;
}

void sieve_end(struct sieve *sieve)
{
    struct timespec wait = { .tv_sec = END_S };
    sigset_t child;

    close(sieve->input);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD); /* blocked by now, so none is missed */
    while (waitpid(sieve->pid, NULL, WNOHANG) == 0 && sigtimedwait(&child, NULL, &wait) > 0)
        continue;
}
