/* subprocess.h - runs a program beside the loop and hands over what it printed: for work that would
 * hold up the loop. */
#ifndef SLINC_IO_SUBPROCESS_H
#define SLINC_IO_SUBPROCESS_H

#include "base/err.h"
#include "base/str.h"
#include "io/loop.h"

enum { SUBPROCESS_MAX_OUTPUT = 1 << 20 };

struct subprocess;

/* result is 0 with the output, when it ended with exit code 0 in time; else -class with err. The
 * output is borrowed until the callback returns, and wiped after it. */
typedef void (*subprocess_done)(void *context, int result, struct str output,
                                const struct err *err);

/* argv ends with NULL; the program gets no input and our standard error. done is called once, from
 * the loop, unless it is cancelled. Returns NULL when it cannot be started: then err says why. */
struct subprocess *subprocess_start(struct loop *loop, const char *const *argv, int64_t timeout_us,
                                    subprocess_done done, void *context, struct err *err);
/* The same with another environment: NAME=VALUE, ends with NULL. A program without '/' in its name
 * is looked for in PATH. */
struct subprocess *subprocess_start_env(struct loop *loop, const char *const *argv,
                                        const char *const *env, int64_t timeout_us,
                                        subprocess_done done, void *context, struct err *err);
void subprocess_cancel(struct subprocess *process); /* ends the program, too */

#endif
