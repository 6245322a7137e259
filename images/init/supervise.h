/* supervise.h - keeps one main program and its helpers running, and ends them together. */
#ifndef SLINC_INIT_SUPERVISE_H
#define SLINC_INIT_SUPERVISE_H

#include "program.h"

/* Blocks the signals that supervise waits for and becomes the parent of orphans. Call once, before
 * any program starts. */
void supervise_prepare(void);

/* Runs programs[0], the main one, with the rest as helpers, until the main program has ended.
 *   TERM, INT         go to all; who is left after grace_ms is killed
 *   HUP, USR1, USR2   go to the main program
 *   a helper's end    starts it again a second later, or twice the last wait when it lived for less
 *                     than 10 s
 *   the main's end    ends the helpers
 * Other children are reaped silently. Returns the main program's exit code; *ret_stopped tells
 * that TERM or INT came. */
int supervise(struct program *programs, size_t count, int64_t grace_ms, bool *ret_stopped);

#endif
