/* sweep.h - sets pinned cpusets again when somebody else changed them, and forgets containers that
 * are gone.
 *
 * systemd, a static CPU manager and in-place resizes write cpusets, too. Containers of the same pod
 * that no hook pinned (the pause container, ephemeral containers) get the CPUs of the pinned ones.
 */
#ifndef SLINC_DRA_SWEEP_H
#define SLINC_DRA_SWEEP_H

#include "base/err.h"

struct sweep_result {
    unsigned containers; /* that are pinned */
    unsigned repairs;    /* cpusets that were set again */
    unsigned errors;
    char last_repair[256]; /* for the log: folder and CPUs */
    struct err last_error;
};

/* One look at the records of this folder. -ERR_UNAVAILABLE: a hook holds the lock; nothing is done.
 */
int sweep_records(const char *records, struct sweep_result *ret_result, struct err *err);

#endif
