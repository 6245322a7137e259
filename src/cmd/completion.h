/* completion.h - completion of the command line for bash, zsh and fish, and for kubectl's plugins:
 * from the table of commands and their flags. The scripts ask the program itself (`slinc
 * __complete WORDS`), so that they are right for the version that is installed. Pure. */
#ifndef SLINC_CMD_COMPLETION_H
#define SLINC_CMD_COMPLETION_H

#include "cmd/terminal.h"

enum { COMPLETION_MAX = 1 << 16 };

struct command {
    const char *name, *what; /* name NULL: behind the last */
    int (*run)(int argc, char **argv);
    const struct terminal_command *terminal; /* in place of run: a command for people */
};

extern const char completion_help[];

/* False: no such shell. */
bool completion_script(struct str shell, struct buf *out);

/* What may stand in the last of these words (which may be ""), one a line with its meaning behind a
 * tab, then the line ":4", as kubectl wants it: no file names beside. */
void completion_candidates(const struct command *commands, int count, char *const *words,
                           struct buf *out);

#endif
