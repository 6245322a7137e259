/* reason.h - why a job waits, in ten classes that say who must act. */
#ifndef SLINC_EXPORTER_REASON_H
#define SLINC_EXPORTER_REASON_H

#include "base/buf.h"

enum reason_class {
    REASON_PRIORITY,    /* others come first */
    REASON_RESOURCES,   /* nodes are busy */
    REASON_LIMIT,       /* a limit of an association, QOS or account */
    REASON_DEPENDENCY,  /* another job */
    REASON_TIME,        /* it may not begin yet */
    REASON_HOLD,        /* held by its user or an administrator */
    REASON_RESERVATION, /* a reservation that has not begun, or is full */
    REASON_LICENSE,
    REASON_STARTING, /* nodes boot, burst buffers stage in */
    REASON_NEVER,    /* it cannot start unless somebody changes something */
    REASON_CLASSES,  /* how many there are */
};

const char *reason_class_name(enum reason_class class);  /* "priority" ... */
const char *reason_class_actor(enum reason_class class); /* who has to act; "" for nobody */

/* reason: Slurm's word (state_reason), not its free text. hold: the job is held, whatever the
 * reason. A word that no row knows means RESOURCES: the job waits and nobody has to act. */
enum reason_class reason_class_of(const char *reason, bool hold);

/* A job of this class starts when there are more nodes. */
bool reason_wants_nodes(enum reason_class class);

void reason_reference(struct buf *out); /* the classes as a table (Markdown) */

#endif
