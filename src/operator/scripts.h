/* scripts.h - the shell scripts that run in sidecars and init containers.
 *
 * They run in images of others (Alpine, Slurm), so they use nothing but a POSIX shell and the
 * usual tools. */
#ifndef SLINC_OPERATOR_SCRIPTS_H
#define SLINC_OPERATOR_SCRIPTS_H

#include "codec/json.h"

/* Runs `scontrol reconfigure` whenever a file in /etc/slurm has changed. */
extern const char script_reconfigure[];

/* The container `logfile`: it makes a FIFO at this path, where a daemon logs to, and writes what
 * comes through it to its standard output. */
struct json_mut *build_logfile(struct json_build *build, const char *path);

/* The init container `initconf`: it puts keys and files of Slurm where the login container finds
 * them, with the owner and the modes that Slurm wants. */
struct json_mut *build_initconf(struct json_build *build);

#endif
