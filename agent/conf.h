/* conf.h - the slurm.conf that libslurm needs: five lines.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef SLINC_AGENT_CONF_H
#define SLINC_AGENT_CONF_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

struct conf_ask {
    const char *cluster;
    const char
        *slurmctld; /* host or host:port, several separated by commas: the first, its backups */
    int64_t message_timeout_s;
};

/* -ERR_INVALID for a name that is none: it would be more than one line of slurm.conf. */
int conf_write(const struct conf_ask *ask, struct buf *out, struct err *err);

/* A file that nobody else may read, in place of the one that may be there. */
int conf_save(const char *path, struct str text, struct err *err);

#endif
