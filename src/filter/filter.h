/* filter.h - which nodes a pod may use, by the rules of Kubernetes' own scheduler: taints, node
 * selectors and affinity, pod affinity and anti-affinity, topology spread, host ports, volumes, and
 * resources.
 *
 * The filter listens to caches of pods, nodes and volumes, and keeps one result per pod class and
 * node. Pods with equal constraints are of one class. A result is computed again when the class is
 * asked about and something that it depends on has changed. What pods of our own scheduler request
 * is not counted here, because whoever uses the filter counts that; it counts only for a pod that
 * is about to be bound (filter_misfit). */
#ifndef SLINC_FILTER_FILTER_H
#define SLINC_FILTER_FILTER_H

#include "base/arena.h"
#include "kube/cache.h"
#include "kube/kinds.h"

enum {
    FILTER_MAX_CLASSES = 1024, /* kept; with one more, all are forgotten and made again */
};

/* Without a cache the rules that need it object to nothing. All outlive the filter. */
struct filter_caches {
    struct kube_cache *pods;       /* of our scheduler */
    struct kube_cache *other_pods; /* of other schedulers; the same kind */
    struct kube_cache *nodes;
    struct kube_cache *namespaces;                 /* for their labels */
    struct kube_cache *claims, *volumes, *classes; /* kube/volume_kinds.h */
    struct kube_cache *daemonsets;                 /* without it no pod is one of a DaemonSet */
};

/* What only the user of the filter knows. Any may be NULL. */
struct filter_hooks {
    /* The name under which filter_nodes lists the node, in memory of the node; NULL: pods of our
     * scheduler cannot get the node. Without the hook each node is listed by its own name. */
    const char *(*name_of)(const void *context, const struct kube_node *node);
    /* A taint that keeps no pod of our scheduler away. */
    bool (*ignores_taint)(const void *context, const struct kube_taint *taint);
    /* An extended resource that a node need not have. */
    bool (*ignores_resource)(const void *context, const char *resource);
    /* What else the pod needs of a node, as "node(s) ..." of a node that has it not; NULL: nothing.
     * Whether the node has it. */
    const char *(*need_of)(const void *context, const struct kube_pod *pod);
    bool (*has_need)(const void *context, const struct kube_node *node);
    /* Whether the pod needs devices, and whether new pods that do cannot use the next one of the
     * node. A pod that was given the node already has others: this is no misfit. */
    bool (*needs_device)(const void *context, const struct kube_pod *pod);
    bool (*is_next_device_out)(const void *context, const struct kube_node *node);
    const void *context;
};

struct filter;

/* Before any object is in the caches. */
struct filter *filter_new(const struct filter_caches *caches, const struct filter_hooks *hooks);
void filter_free(struct filter *filter); /* the caches must not change after it */

/* has_need or is_next_device_out may say something else of this node. */
void filter_node_changed(struct filter *filter, const char *node);
/* ignores_resource may say something else. */
void filter_resources_changed(struct filter *filter);

struct filter_set {
    const char *excluded; /* folded list of the names of nodes that do not fit; "" for none */
    unsigned fit, total;  /* of the nodes that have a name */
    const char *why;      /* "3 node(s) had untolerated taint(s), 1 node(s) ..."; "" */
};

/* Borrowed until the next call into the filter or change of a cache. */
const struct filter_set *filter_nodes(struct filter *filter, const struct kube_pod *pod);

/* Whether the pod may be bound to the node now, with all pods that are there (predicted binds are
 * in the caches), and with those that are reserved (NULL: none). NULL: it fits; else the reason, in
 * the arena. A pod whose volumes are still being bound fits; filter_unbound_claims tells of these.
 */
struct filter_reserved;
const char *filter_misfit(struct filter *filter, struct filter_reserved *reserved,
                          const struct kube_pod *pod, const struct kube_node *node,
                          struct arena *arena);

struct filter_class {
    uint64_t number; /* pods of one class fit the same nodes; 0: a pod with volumes, which does not
                        share its class */
    unsigned fit;    /* how many nodes */
};
struct filter_class filter_class(struct filter *filter, const struct kube_pod *pod);

/* A number that changes whenever filter_nodes of the pod gives another set, and only then: also
 * when the class of the pod was forgotten and made again. */
uint64_t filter_version(struct filter *filter, const struct kube_pod *pod);

/* Called when something changed that the set of a waiting pod may depend on. The listener then asks
 * about every pod that it wants to hear more of. One listener. */
void filter_listen(struct filter *filter, void (*changed)(void *context), void *context);

/* A pod of a DaemonSet that is there, or a static pod of this node: it belongs to its node. The
 * kind of an owner proves nothing, for whoever creates a pod writes its owners. */
bool filter_is_of_node(const struct filter *filter, const struct kube_pod *pod);
/* What such pods of other schedulers request on the node; of the extended resources only those that
 * the node has, in its order, into ret_extended (KUBE_MAX_RESOURCES of them). */
struct kube_requests filter_node_overhead(const struct filter *filter, const struct kube_node *node,
                                          int64_t *ret_extended);

/* ---- pods that are bound together ---- */

/* Whether both pods want the same host port of a node. */
bool filter_ports_collide(const struct kube_pod *a, const struct kube_pod *b);

/* Whether the pod has affinity or anti-affinity to pods, or spread constraints. */
bool filter_has_pod_rules(const struct kube_pod *pod);

/* Pods that a plan is about to bind. They count as bound for the rules of all pods about other
 * pods, and only where the plan asks with them: the filter does not know them. No cache may change
 * before they are freed. */
struct filter_reserved *filter_reserved_new(struct filter *filter);
void filter_reserved_free(struct filter_reserved *reserved); /* takes NULL */
void filter_reserve(struct filter_reserved *reserved, const struct kube_pod *pod,
                    const struct kube_node *node);
void filter_unreserve_all(struct filter_reserved *reserved);

/* What keeps the pod from the node, whatever pods of our scheduler request there now: other pods
 * (bound or reserved), by rules about pods; or anything else. */
enum filter_objection { FILTER_NO_OBJECTION, FILTER_PODS_OBJECT, FILTER_NODE_OBJECTS };
enum filter_objection filter_objection(struct filter *filter, struct filter_reserved *reserved,
                                       const struct kube_pod *pod, const struct kube_node *node);

/* ---- volumes, before the bind ---- */

enum filter_step {
    FILTER_WAIT,        /* a controller is binding or making the volume */
    FILTER_SELECT_NODE, /* the node is written to the claim: the provisioner makes a volume there */
    FILTER_TAKE_VOLUME, /* the claim is written to the free volume */
    FILTER_NO_VOLUME,   /* no free volume is left for it */
};

struct filter_claim { /* that is not bound */
    const char *name;
    const struct kube_object *claim;  /* NULL: it does not exist */
    const struct kube_object *volume; /* that it gets, where that is known; NULL */
    enum filter_step step;
};

/* Appends the claims of a pod that must be bound before the pod is bound to this node, with the
 * next step for each; gives the new count, at most max. The list may begin with the claims of pods
 * that are bound together with this one: their volumes are taken, and no claim is listed twice.
 * Borrowed from the caches. */
unsigned filter_unbound_claims(struct filter *filter, const struct kube_pod *pod, const char *node,
                               struct filter_claim *list, unsigned count, unsigned max);

#endif
