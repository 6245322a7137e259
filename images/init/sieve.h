/* sieve.h - a process that takes a program's error output and leaves out the lines nobody reads.
 *
 * slurmrestd writes two lines about each request and has no setting against it: at hundreds of
 * requests a second they hide its errors, and keeping them costs more than some of the requests. */
#ifndef SLINC_INIT_SIEVE_H
#define SLINC_INIT_SIEVE_H

#include "base/str.h"

#include <sys/types.h>

enum { SIEVE_TEXTS_MAX = 16 };

struct sieve {
    const char *texts[SIEVE_TEXTS_MAX]; /* a line that contains one of them is left out */
    size_t count;
    int input; /* for the program to write to, once it runs */
    pid_t pid;
};

bool sieve_wants(const struct sieve *sieve, struct str line);

/* Starts the process; what it lets through goes to our own error output, a moment later. */
int sieve_start(struct sieve *sieve, struct err *err);

/* Waits until the rest is through. Who still holds the input then is not waited for. */
void sieve_end(struct sieve *sieve);

#endif
