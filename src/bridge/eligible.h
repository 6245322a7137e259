/* eligible.h - which nodes a pod may use, by the rules that Kubernetes' own scheduler goes by.
 *
 * Slurm decides where a pod runs and when; what it cannot know goes to it as excluded nodes:
 * taints, node selectors and affinity, pod affinity and anti-affinity, topology spread, host ports,
 * volumes, and what a node can never hold. How much cpu and memory our own pods use is Slurm's to
 * judge and is never looked at. The same rules are asked once more when a pod is bound.
 *
 * Pods with equal constraints share one class, and one set of nodes. A set is brought up to date
 * when it is submitted: by the nodes that changed since, and, where the rules look at other pods,
 * by the domains that those changed. */
#ifndef SLINC_BRIDGE_ELIGIBLE_H
#define SLINC_BRIDGE_ELIGIBLE_H

#include "base/arena.h"
#include "kube/cache.h"
#include "kube/kinds.h"

enum {
    ELIGIBLE_MAX_CLASSES = 1024, /* kept; the least recently used goes first */
};

/* What it reads. Any may be NULL: the rules that need it then do not object. All outlive it. */
struct eligible_caches {
    struct kube_cache *pods;       /* of our scheduler */
    struct kube_cache *other_pods; /* of other schedulers; the same kind */
    struct kube_cache *nodes;
    struct kube_cache *namespaces;                 /* for the labels only */
    struct kube_cache *claims, *volumes, *classes; /* kinds_volume.h */
    struct kube_cache *device_classes;             /* kinds_device.h */
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
 * still being bound is no misfit: eligible_open_claims tells that it is not ready. */
const char *eligible_misfit(struct eligible *eligible, const struct kube_pod *pod,
                            const struct kube_node *node, struct arena *arena);

/* Pods of one class have the same constraints and no volumes: a node will do for all of them or for
 * none. 0: the pod is in no class. */
uint64_t eligible_class(struct eligible *eligible, const struct kube_pod *pod);

/* Another number whenever the set of nodes of the pod may be another. */
uint64_t eligible_result(struct eligible *eligible, const struct kube_pod *pod);

uint64_t eligible_generation(const struct eligible *eligible); /* changes whenever a set may have */

/* Called when something changed that the set of a waiting pod may depend on. One listener. */
void eligible_listen(struct eligible *eligible, void (*changed)(void *context), void *context);

/* ---- what belongs to a node ---- */

/* A pod of a DaemonSet, or a static pod: it belongs to its node. */
bool eligible_is_of_node(const struct kube_pod *pod);
/* What such pods of other schedulers request on the node; of the extended resources only those that
 * the node has, in its order, into ret_extended (room for KUBE_MAX_RESOURCES). */
struct kube_requests eligible_node_overhead(const struct eligible *eligible,
                                            const struct kube_node *node, int64_t *ret_extended);

/* ---- together ---- */

/* Whether both pods want the same host port of a node. */
bool eligible_want_one_port(const struct kube_pod *a, const struct kube_pod *b);

/* Whether it has rules about where other pods are. */
bool eligible_minds_others(const struct kube_pod *pod);

/* Pods that will be bound together: one that is reserved counts as placed for all that are judged
 * after it. All leave again before the plan ends, and before anything changes a cache. */
void eligible_reserve(struct eligible *eligible, const struct kube_pod *pod,
                      const struct kube_node *node);
void eligible_unreserve_all(struct eligible *eligible);

/* Who keeps the pod away from the node, whatever our own pods take there now: pods, with and
 * without a reservation, by the rules about each other; or the node itself. */
enum eligible_objection { ELIGIBLE_NO_OBJECTION, ELIGIBLE_PODS_OBJECT, ELIGIBLE_NODE_OBJECTS };
enum eligible_objection eligible_objection(struct eligible *eligible, const struct kube_pod *pod,
                                           const struct kube_node *node);

/* ---- before the bind ---- */

enum eligible_step {
    ELIGIBLE_WAIT,        /* others are at it */
    ELIGIBLE_SELECT_NODE, /* the claim is told of the node: its volume is made there */
    ELIGIBLE_TAKE_VOLUME, /* the volume is told of the claim */
    ELIGIBLE_NO_VOLUME,   /* there is none left for it */
};

struct eligible_open { /* a claim that is not bound */
    const char *name;
    const struct kube_object *claim;  /* NULL: it is not there */
    const struct kube_object *volume; /* that it gets, where that is known; NULL */
    enum eligible_step step;
};

/* Appends the claims of a pod that must be bound before it is, and what is to be done for each when
 * it goes to this node; gives the new count, at most max. The list may begin with those of pods
 * that go with it: their volumes are taken, and no claim is listed twice. Borrowed from the caches.
 */
unsigned eligible_open_claims(struct eligible *eligible, const struct kube_pod *pod,
                              const char *node, struct eligible_open *list, unsigned count,
                              unsigned max);

/* Where what is written to a volume shows; NULL when none are watched. */
struct kube_cache *eligible_volume_cache(const struct eligible *eligible);

#endif
