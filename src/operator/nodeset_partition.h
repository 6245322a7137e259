/* nodeset_partition.h - the partition of a NodeSet in slurm.conf. */
#ifndef SLINC_OPERATOR_NODESET_PARTITION_H
#define SLINC_OPERATOR_NODESET_PARTITION_H

#include "operator/world.h"

/* Why the partition must stay in slurm.conf: the job record that names it, or that Slurm does not
 * say whether there is one; NULL: no job needs it. In the arena. */
const char *partition_needed_by(const struct slurm_facts *facts, struct arena *arena,
                                struct str partition);

/* What the line of the NodeSet's partition says behind its nodes; NULL: there is no such line. A
 * NodeSet that is being deleted, or whose partition was switched off while jobs name it, has a
 * partition that takes no more jobs. In the arena. */
const char *nodeset_partition_options(const struct operator_world *world, struct arena *arena,
                                      const struct kube_object *controller,
                                      const struct kube_object *nodeset);

/* Whether slurm.conf has a line for a partition that was switched off: nothing tells when it may
 * go. */
bool nodeset_partitions_linger(const struct operator_world *world, struct arena *arena,
                               const struct kube_object *controller);

#endif
