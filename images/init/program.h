/* program.h - one program under slinc-init: started, signalled, and known by its pid. */
#ifndef SLINC_INIT_PROGRAM_H
#define SLINC_INIT_PROGRAM_H

#include "words.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct program {
    struct words words;
    pid_t pid;          /* 0 while it does not run */
    int status;         /* as waitpid gave it, once it has ended */
    int errors;         /* where its error output goes; 0 for our own */
    const char *cgroup; /* the control group it starts in; NULL for our own */
    int64_t started_at; /* in ms of program_now */
    int64_t starts_at;  /* when a helper that ended is started again */
    int64_t waits_ms;   /* before that start; grows while the helper ends soon after each */
};

int64_t program_now(void); /* ms of the monotonic clock */

/* Forks and execs in a process group of its own, with no signal blocked. */
int program_start(struct program *program, struct err *err);
void program_signal(const struct program *program, int number); /* the program itself */
void program_kill(const struct program *program);               /* and all of its group */

/* As a shell tells it: the exit status, or 128 and the signal. */
int program_exit_code(int status);

#endif
