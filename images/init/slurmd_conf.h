/* slurmd_conf.h - the pod's limits as slurmd must hear them: one valid --conf value.
 *
 * From the environment, each only if set:
 *   POD_CPUS      cores above it are kept from jobs:   CoreSpecCount = cores - POD_CPUS / threads;
 *                 where the pod has that many CPUs of its own, the others: CPUSpecList = 0-3,8 ...
 *   POD_MEMORY    MiB above it are kept from jobs:     MemSpecLimit  = RealMemory - POD_MEMORY
 *   SLINKY_TOPOLOGY, or POD_TOPOLOGY: the place in the network: Topology = that
 * What the command line says itself wins. Items without a value ("Topology=") are dropped, and
 * several --conf become one, since slurmd reads only the last. */
#ifndef SLINC_INIT_SLURMD_CONF_H
#define SLINC_INIT_SLURMD_CONF_H

#include "words.h"

#include "base/str.h"

#include <stdint.h>

/* What `slurmd -C` prints of the machine. */
struct machine {
    uint64_t boards, sockets, cores, threads; /* per machine, board, socket, core */
    uint64_t memory;                          /* MiB */
};

struct pod {
    uint64_t cpus, memory; /* 0: no limit */
    const char *topology;  /* NULL or "": none */
    const char *kept_cpus; /* as CPUSpecList wants them; "" or NULL: only their number counts */
};

/* Reads the pod's limits from the environment; a value that is no number is an error. */
int slurmd_pod(struct pod *ret_pod, struct err *err);

/* Runs `slurmd -C` once; `slurmd` is a program name or path. */
int slurmd_machine(const char *slurmd, struct machine *ret_machine, struct err *err);

int slurmd_parse_machine(struct str text, struct machine *ret_machine, struct err *err);

/* Replaces every --conf in `words` (the whole slurmd command line) by one at the end. machine is
 * read only if the pod has limits. */
int slurmd_merge(struct words *words, const struct pod *pod, const struct machine *machine,
                 struct err *err);

#endif
