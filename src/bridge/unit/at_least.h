/* at_least.h - a job gets at least what its pods request, whatever annotations say. Pure. */
#ifndef SLINC_BRIDGE_AT_LEAST_H
#define SLINC_BRIDGE_AT_LEAST_H

#include "bridge/unit/job_desc.h"

struct at_least {     /* what the neediest pod requests, amount by amount */
    int64_t cpus;     /* 0: nothing */
    int64_t memory;   /* MiB; 0: nothing */
    const char *gres; /* "gres/gpu=2,gres/fpga:x=1" */
    int64_t per_node; /* pods on a node of the job */
};

/* Whether the text asks for no device at all, as sbatch takes it. */
bool gres_is_none(const char *text);

/* Raises the CPUs, the memory and the gres of the job to what the pods request. A gres that lacks
 * some keeps its type where it names one. Texts are in the arena. -ERR_INVALID: too long. */
int at_least_raise(struct job_desc *desc, const struct at_least *least, struct arena *arena,
                   struct err *err);

#endif
