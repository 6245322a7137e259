/* describe.h - what a unit wants of Slurm, and the pods that it is for. */
#ifndef SLINC_BRIDGE_DESCRIBE_H
#define SLINC_BRIDGE_DESCRIBE_H

#include "bridge/unit/job_desc.h"
#include "bridge/unit/unit.h"

/* Which members a description is for. */
enum described { DESCRIBE_WAITING = 1, DESCRIBE_BOUND = 2, DESCRIBE_BOTH = 3 };

/* The job description of a unit. -ERR_INVALID: it cannot be described, and err says why. */
int unit_describe(const struct bridge_world *world, const struct unit *unit,
                  enum described described, struct arena *arena, struct job_desc *ret_desc,
                  struct err *err);

/* The names of these members, as "namespace/name", by rank. */
unsigned unit_names(const struct unit *unit, enum described described, struct arena *arena,
                    const struct str **ret_names);

/* The Slurm names of the nodes that its bound members use, folded, as far as Slurm has them. */
const char *unit_nodes(const struct bridge_world *world, const struct unit *unit,
                       struct arena *arena);

#endif
