/* worker.h - the process that calls libslurm, one call at a time.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef SLINC_AGENT_WORKER_H
#define SLINC_AGENT_WORKER_H

/* The first argument that makes the program a worker. */
#define WORKER_ARGUMENT "--worker"

/* Serves the socket until the other side closes it; gives the process's exit code. */
int worker_run(int fd);

#endif
