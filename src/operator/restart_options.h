/* restart_options.h - options of slurm.conf that slurmctld takes only when it starts.
 *
 * Since Slurm 23.11 a reconfigure starts a new slurmctld process, which reads everything anew: so
 * nearly all options take effect without a restart of the pod. The table in restart_options.c has
 * the others. Their values stand in an annotation of the pod template; another value rolls the
 * pods. */
#ifndef SLINC_OPERATOR_RESTART_OPTIONS_H
#define SLINC_OPERATOR_RESTART_OPTIONS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

/* "AuthType=auth/slurm SlurmctldPort=6817": those of the table that this slurm.conf names, in the
 * order of the table. -ERR_INVALID when the text cannot be read. */
int restart_options(struct arena *arena, struct str conf, const char **ret_text, struct err *err);

#endif
