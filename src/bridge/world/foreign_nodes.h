/* foreign_nodes.h - the nodes that Slurm has and this cluster has not: those that another bridge
 * has marked, whatever their names, and plain machines of Slurm. No pod of ours can run there.
 *
 * Found anew only when a node comes or goes, or changes its name, partitions or mark. */
#ifndef SLINC_BRIDGE_FOREIGN_NODES_H
#define SLINC_BRIDGE_FOREIGN_NODES_H

#include "kube/cache.h"
#include "slurm/cache.h"

struct foreign_nodes;

/* Listens to both caches. They may go first, if nothing else is done with it than freeing it.
 * by_slurm_name: the index of Kubernetes' nodes. we: borrowed. */
struct foreign_nodes *foreign_nodes_new(struct slurm_cache *slurm_nodes, struct kube_cache *nodes,
                                        int by_slurm_name, const struct slurm_owner *we);
void foreign_nodes_free(struct foreign_nodes *foreign_nodes); /* takes NULL */

/* A folded list of those in one of these partitions ("a,b"; "": in any); "" when there are none.
 * Borrowed until the next call. */
const char *foreign_nodes_in(struct foreign_nodes *foreign_nodes, const char *partitions);

#endif
