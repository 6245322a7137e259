/* topology.h - the cores of this machine in the order in which Slurm counts them.
 *
 * slurmd numbers cores as hwloc does (its "logical" numbers): sockets, then NUMA nodes and L3
 * caches, then cores, each ordered by the lowest CPU number in it. core_id of Linux has another
 * order on some machines and is not used. Cores of the efficient kind (Intel's E-cores) do not
 * count. */
#ifndef SLINC_DRA_TOPOLOGY_H
#define SLINC_DRA_TOPOLOGY_H

#include "codec/bitmap.h"

enum { TOPOLOGY_MAX_CORES = 4096, TOPOLOGY_MAX_THREADS = 8, TOPOLOGY_MAX_NUMA = 128 };

struct topology_core {
    unsigned socket;                     /* 0, 1, ... in Slurm's order */
    unsigned numa;                       /* Linux's number of the NUMA node */
    unsigned l3;                         /* lowest CPU of the L3 cache */
    unsigned cpus[TOPOLOGY_MAX_THREADS]; /* ascending */
    unsigned thread_count;
};

struct topology {
    struct topology_core *cores; /* core i of Slurm is cores[i] */
    unsigned core_count, sockets, cores_per_socket, threads_per_core;
};

/* Reads <sys>/devices/system. -ERR_INVALID when sockets or cores differ in size: Slurm cannot
 * describe such a machine. */
int topology_read(const char *sys, struct topology **ret_topology, struct err *err);
void topology_free(struct topology *topology); /* takes NULL */

/* The cores of one NUMA node, as a device has them. */
struct topology_numa {
    unsigned number, socket, first_core, core_count, l3_count;
};

/* NUMA nodes with cores, in the order of their first core; at most TOPOLOGY_MAX_NUMA. */
unsigned topology_numas(const struct topology *topology,
                        struct topology_numa ret_numas[TOPOLOGY_MAX_NUMA]);

/* What Slurm chose, and the geometry in which it counted. */
struct topology_choice {
    struct str cores; /* "0-1,8" */
    unsigned sockets, cores_per_socket, threads_per_core;
};

/* All CPUs of these cores. -ERR_INVALID when the geometry is not this machine's, or there is no
 * such core, or none is chosen. */
int topology_cpus(const struct topology *topology, const struct topology_choice *choice,
                  struct bitmap *ret_cpus, struct bitmap *ret_cores, struct err *err);

#endif
