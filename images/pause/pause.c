/* pause.c - PID 1 of a pod: holds its namespaces open, reaps what is left to it, ends on TERM or
 * INT.
 *
 * Static and tiny, since every pod runs one. */
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

static void block(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGCHLD);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGTERM);
    sigprocmask(SIG_BLOCK, signals, NULL);
}

int main(void)
{
    sigset_t signals;

    block(&signals); /* blocked signals wait for sigwaitinfo, so none is lost */
    for (;;) {
        int number = sigwaitinfo(&signals, NULL);

        if (number == SIGTERM || number == SIGINT)
            return 0;
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    }
}
