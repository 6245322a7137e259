/* reason.h - why a job waits: a table of Slurm's reasons, with what each means, who has to act and
 * what helps. Terminal, page, metrics and the bridge speak from it. */
#ifndef SLINC_SLURM_REASON_H
#define SLINC_SLURM_REASON_H

#include "base/arena.h"
#include "base/buf.h"

#include <stdbool.h>

enum slurm_reason_class {
    SLURM_REASON_PRIORITY,    /* others come first */
    SLURM_REASON_RESOURCES,   /* nodes are busy */
    SLURM_REASON_LIMIT,       /* a limit of an association, QOS or account */
    SLURM_REASON_DEPENDENCY,  /* another job */
    SLURM_REASON_TIME,        /* it begins later */
    SLURM_REASON_HOLD,        /* held by its user or an administrator */
    SLURM_REASON_RESERVATION, /* a reservation that has not begun, or is full */
    SLURM_REASON_LICENSE,
    SLURM_REASON_STARTING, /* what it needs besides nodes is being prepared or is taken */
    SLURM_REASON_NEVER,    /* it cannot start unless somebody changes something */
    SLURM_REASON_CLASSES,  /* how many there are */
};

struct slurm_reason {
    const char *word; /* Slurm's; a '*' at the end: begins so */
    enum slurm_reason_class class;
    const char *actor; /* who has to act; "": nobody */
    const char *text;  /* what it means, for a cell of a table */
    const char *help;  /* what helps; {x} is a field of `scontrol update`, {id} the job's number */
};

/* The row of Slurm's word (state_reason), not of its free text. "" means "None". is_held: the job
 * is held, whatever the word. Of a word that no row knows, the text is the word itself (borrowed),
 * help and actor are "", and the class is RESOURCES: the job waits, and nobody has to act. */
struct slurm_reason slurm_reason_of(const char *word, bool is_held);

/* Slurm's word as the reason of a Kubernetes condition: a CamelCase word. Without a reason
 * "Pending", because Slurm's "None" would say the opposite of what is meant. In the arena. */
const char *slurm_reason_condition(const char *word, struct arena *arena);

/* The rows in the order in which they are tried; NULL behind the last. */
const struct slurm_reason *slurm_reason_row(size_t index);

const char *slurm_reason_class_name(enum slurm_reason_class class); /* "priority" ... */

/* A job of this class starts when there are more nodes. */
bool slurm_reason_wants_nodes(enum slurm_reason_class class);

void slurm_reason_reference(struct buf *out);                   /* the table as Markdown */
void slurm_reason_help_cell(const char *help, struct buf *out); /* a help in such a table */

#endif
