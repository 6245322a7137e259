/* cgroup.h - the container's control group: a child for slurmd alone, and the CPUs of the pod.
 *
 * Version 2 of control groups lets a group hand controllers to its children only if it holds no
 * process itself. So our own processes move into the child `init`, slurmd starts in the child
 * `slurmd`, and all controllers are handed down: slurmd can then limit the memory and the CPUs of
 * jobs. Version 1 has no such rule, and nothing is done there. */
#ifndef SLINC_INIT_CGROUP_H
#define SLINC_INIT_CGROUP_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

enum { CGROUP_PATH_MAX = 512, CGROUP_CPUS_MAX = 4096 };

/* sys: where sysfs is mounted, "/sys". The child that slurmd starts in; "" where it stays with us:
 * version 1, the machine's own root (it has no cgroup.type), or a file system that cannot be
 * written to (then a line says so). */
int cgroup_arrange(const char *sys, char ret_child[CGROUP_PATH_MAX], struct err *err);

/* The CPUs that are kept from a pod which has `cpus` of its own, as Slurm numbers them: by package,
 * core and thread. Nothing is added where the pod has no CPUs of its own (their number is another),
 * or where the machine does not tell. */
int cgroup_kept_cpus(const char *sys, uint64_t cpus, struct buf *ret_ranges, struct err *err);

#endif
