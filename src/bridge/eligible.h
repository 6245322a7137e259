/* eligible.h - which nodes a pod may use, by the rules that Kubernetes' own scheduler goes by.
 *
 * Slurm decides where a pod runs and when; what it cannot know goes to it as excluded nodes:
 * taints, node selectors and affinity, pod affinity and anti-affinity, topology spread, host ports,
 * volumes, and what a node can never hold. How much cpu and memory our own pods use is Slurm's to
 * judge and is never looked at. The same rules are asked once more when a pod is bound.
 *
 * Pods with equal constraints share one shape, and one set of nodes. A set is brought up to date
 * when it is asked for: by the nodes that changed since, and, where the rules look at other pods,
 * by the domains that those changed. */
#ifndef SLINC_BRIDGE_ELIGIBLE_H
#define SLINC_BRIDGE_ELIGIBLE_H

#include "base/arena.h"
#include "kube/cache.h"
#include "kube/kinds.h"

enum {
    ELIGIBLE_MAX_SHAPES = 1024, /* kept; the least recently used goes first */
};

/* What it reads. Any may be NULL: the rules that need it then do not object. All outlive it. */
struct eligible_caches {
    struct kube_cache *pods;       /* of our scheduler */
    struct kube_cache *other_pods; /* of other schedulers; the same kind */
    struct kube_cache *nodes;
    struct kube_cache *namespaces;                             /* for the labels only */
    struct kube_cache *claims, *volumes, *classes, *csi_nodes; /* kinds_volume.h */
};

struct eligible_set {
    const char *excluded; /* folded list of the Slurm names that the pod may not use; "" for none */
    unsigned fit, total;  /* of the nodes that are lent to Slurm */
    const char *why;      /* "3 node(s) had untolerated taint(s), 1 node(s) ...", for people; "" */
};

struct eligible;

/* Listens to the caches: before any object is in them. */
struct eligible *eligible_new(const struct eligible_caches *caches, const char *scheduler_name);
void eligible_free(struct eligible *eligible); /* the caches must not change after it */

/* Borrowed until the next call into eligible or change of a cache. */
const struct eligible_set *eligible_nodes(struct eligible *eligible, const struct kube_pod *pod);

/* Whether this pod may be bound to this node now, given what is on it (predicted binds included:
 * they are in the caches). NULL, or the reason for people, in the arena. A pod whose volumes are
 * still being bound is no misfit: eligible_claims_to_select tells that it is not ready. */
const char *eligible_misfit(struct eligible *eligible, const struct kube_pod *pod,
                            const struct kube_node *node, struct arena *arena);

uint64_t eligible_generation(const struct eligible *eligible); /* changes whenever a set may have */

/* Called when something changed that the set of a waiting pod may depend on. One listener. */
void eligible_listen(struct eligible *eligible, void (*changed)(void *context), void *context);

/* Which claims must be told of the node before the bind: those that wait for their first consumer
 * and whose selected node is not this one yet. Fills up to max, returns the count. ret_ready is
 * false while some claim of the pod is not bound. */
unsigned eligible_claims_to_select(struct eligible *eligible, const struct kube_pod *pod,
                                   const char *node, const struct kube_object **ret_claims,
                                   unsigned max, bool *ret_ready);

#endif
