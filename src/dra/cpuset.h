/* cpuset.h - the control group that limits a container to CPUs, version 1 and version 2 alike.
 *
 * The hook program uses these too. */
#ifndef SLINC_DRA_CPUSET_H
#define SLINC_DRA_CPUSET_H

#include "codec/bitmap.h"

enum { CPUSET_MAX_CPUS = 8192 };

/* The folder of the process's control group that has the cpuset controller: from
 * <proc>/<pid>/cgroup and <proc>/self/mountinfo. */
int cpuset_find(const char *proc, int64_t pid, struct buf *ret_folder, struct err *err);

/* What the group is limited to by itself; empty on version 2 when nothing was set. -ERR_NOT_FOUND
 * when the group is gone or has no cpuset controller. */
int cpuset_get(const char *folder, struct bitmap *ret_cpus, struct err *err);

/* Sets it and reads back what holds: anything but exactly these CPUs is an error. */
int cpuset_set(const char *folder, const struct bitmap *cpus, struct err *err);

#endif
