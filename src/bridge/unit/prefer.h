/* prefer.h - what pods would rather have of their nodes, as far as Slurm can be told.
 *
 * Slurm takes one expression over features: it tries the nodes that match first, each time it looks
 * at the job, and then all others. So one preferred term of the node affinity counts: the heaviest
 * whose expressions are all `In` over labels that become features (nodeFeatures), the first of
 * several. Values that no node of Slurm has as a feature are left out, since Slurm refuses to hear
 * of them; a term with an expression of which nothing is left is no term. */
#ifndef SLINC_BRIDGE_PREFER_H
#define SLINC_BRIDGE_PREFER_H

#include "base/arena.h"
#include "bridge/world/config.h"
#include "kube/kinds.h"
#include "slurm/cache.h"

struct prefer_from {
    const struct bridge_config *config;
    const struct slurm_cache *slurm_nodes; /* NULL: nothing is preferred */
    const struct kube_pod *const *pods;
    unsigned pod_count;
};

/* "(eu-1a|eu-1b)&nvme", in the arena; "" when there is none, or the pods do not all have the same.
 */
const char *prefer_of(const struct prefer_from *from, struct arena *arena);

#endif
