/* strangers.h - the nodes that Slurm has and this cluster has not: those that another cluster has
 * marked, whatever their names, and plain machines of Slurm. No pod of ours can run there.
 *
 * Found anew only when a node comes or goes, or changes its name, partitions or mark. */
#ifndef SLINC_BRIDGE_STRANGERS_H
#define SLINC_BRIDGE_STRANGERS_H

#include "kube/cache.h"
#include "slurm/cache.h"

struct strangers;

/* Listens to both caches. They may go first, if nothing else is done with it than freeing it.
 * by_slurm_name: the index of Kubernetes' nodes. cluster: the UID of ours, borrowed. */
struct strangers *strangers_new(struct slurm_cache *slurm_nodes, struct kube_cache *nodes,
                                int by_slurm_name, struct str cluster);
void strangers_free(struct strangers *strangers); /* takes NULL */

/* A folded list of those in one of these partitions ("a,b"; "": in any); "" when there are none.
 * Borrowed until the next call. */
const char *strangers_in(struct strangers *strangers, const char *partitions);

#endif
