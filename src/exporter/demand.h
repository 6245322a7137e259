/* demand.h - the nodes that waiting jobs want, for autoscalers: every job counts once.
 *
 * A job counts in the first partition that it lists whose nodes take one of its tasks, and in the
 * first NodeSet of that partition, by name, whose nodes do. A partition or NodeSet without nodes is
 * chosen only where no other takes it. */
#ifndef SLINC_EXPORTER_DEMAND_H
#define SLINC_EXPORTER_DEMAND_H

#include "exporter/tally.h"

#define DEMAND_ALL_NODES "ALL" /* what a partition lists that has every node */

/* Of waiting jobs only those are wanted which more nodes would help. It is a total: nodes that are
 * idle count towards it, drained ones do not. */
double tally_nodes_wanted(const struct tally_group *group);

/* The nodes that one waiting job wants; a part of one for what shares its node. */
double demand_of_job(struct tally *tally, const struct slurm_job *job,
                     const struct tally_request *request);

/* ---- for the pass over the jobs ---- */

void demand_count_running(struct tally *tally);
double demand_running(const struct tally *tally, const struct slurm_job *job); /* of its array */

/* Adds a waiting job to the sizes; gives the NodeSet it counts in, NULL when there is none. */
struct tally_group *demand_add(struct tally *tally, const struct slurm_job *job,
                               const struct tally_request *request);

#endif
