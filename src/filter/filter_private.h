/* filter_private.h - what the files of the filter share.
 *
 * Each node of Kubernetes has a slot, also a node that our pods cannot get: pods on such a node
 * count for the rules of other pods. A class has a result for each slot. */
#ifndef SLINC_FILTER_FILTER_PRIVATE_H
#define SLINC_FILTER_FILTER_PRIVATE_H

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "codec/nodeselector.h"
#include "codec/selector.h"
#include "filter/filter.h"
#include "kube/volume_kinds.h"

enum {
    FILTER_NO_SLOT = -1,
    FILTER_MAX_TERMS = 64,     /* of one pod and rule */
    FILTER_MEMORY = 128 << 20, /* of one class or one set of rules: a fuse */
    FILTER_MAX_NAMES = 1 << 20,
    FILTER_MAX_TEXT = 4 << 20, /* of one rule, as JSON */
};

/* Why a node does not fit; after the last one come the extended resources of the class. */
enum filter_code {
    FILTER_FREE_SLOT,
    FILTER_FITS,
    FILTER_TROUBLE, /* with the pod itself, on every node */
    FILTER_TAINTS,
    FILTER_AFFINITY,
    FILTER_PORTS,
    FILTER_PODS,
    FILTER_NEED,
    FILTER_DEVICE_OUT, /* never the code of a result: only for pods without a node */
    FILTER_CPU,
    FILTER_MEMORY_SHORT,
    FILTER_EPHEMERAL,
    FILTER_VOLUME_NODE,
    FILTER_VOLUME_CLASS,
    FILTER_SPREAD,
    FILTER_SPREAD_LABEL,
    FILTER_POD_AFFINITY,
    FILTER_POD_ANTI_AFFINITY,
    FILTER_ANTI_AFFINITY_OF_OTHERS,
    FILTER_EXTENDED, /* the first of them */
};

struct filter_result {
    uint8_t code;
    bool named : 1, matches : 1, tolerated : 1; /* selector and affinity; taints */
    bool device_out : 1;                        /* the next device, for a class that needs any */
};

struct node_slot {
    const struct kube_node *node; /* the one in the cache; NULL in a free slot */
    const char *name;             /* filter_hooks.name_of, in the node's memory; NULL for none */
    uint64_t name_hash;
    uint64_t changed;               /* sequence number of the last change */
    int64_t pods;                   /* on the node, ours and others' */
    struct kube_requests of_others; /* what pods of other schedulers request, but for */
    int64_t *others_extended;       /* the extended resources of the node, in its order */
};

/* ---- rules about other pods: pod_rules.c, pod_judge.c ---- */

struct pod_term {
    const struct selector *labels;
    const char **namespaces;
    unsigned namespace_count;
    const struct selector *namespace_selector; /* NULL for none */
    const char *topology_key;
};

struct spread {
    struct pod_term term;
    int64_t max_skew, min_domains;
    bool by_affinity, by_taints; /* nodes that do not match, or are not tolerated, do not count */
    const char **same;           /* matchLabelKeys: labels in which pods must equal this one */
    unsigned same_count;
};

/* What pods of one namespace say about other pods, compiled. Classes use the rules, and so do bound
 * pods with anti-affinity: their holders. Rules live until filter_forget. */
struct pod_rules {
    struct arena arena;
    struct str key;
    uint64_t number;
    struct pod_term *attract, *avoid;
    struct spread *spread;
    unsigned attract_count, avoid_count, spread_count;
    const char *trouble;  /* they cannot be read */
    unsigned holders;     /* bound pods with these rules, if avoid_count > 0, and */
    uint32_t *holders_in; /* how many of them by slot; NULL without any */
    uint64_t holders_changed;
};

/* How many pods in each slot match all of some terms. */
struct pod_count {
    struct list link;
    const struct pod_term *terms;
    unsigned term_count;
    struct kube_pairs same; /* and have these labels */
    bool but_ending;        /* and are not being deleted */
    bool is_stale;          /* must be counted anew */
    uint32_t *in;           /* by slot */
    uint64_t changed;
};

/* ---- classes: pod_class.c ---- */

struct class_claim {                /* that takes a free volume */
    const struct kube_claim *claim; /* with a reference */
    const struct selector *labels;
    unsigned number; /* of the pod's claims, each counted once */
};

struct pod_class {
    struct arena arena;
    struct str key;
    uint64_t number;            /* of no other class, also of none that was forgotten */
    const struct kube_pod *pod; /* the first of its pods, with a reference */
    uint64_t ignored;           /* a bit per extended resource: a node need not have it */
    const char *need;           /* filter_hooks.need_of */
    bool needs_device;
    const char *trouble; /* NULL, or why no node fits */
    bool trouble_passes; /* a volume is being bound: a pod that has a node keeps it */
    const struct nodeselector *affinity; /* NULL for none */
    const struct nodeselector **volumes; /* each must match */
    const struct nodeselector **topologies;
    const char **selected;      /* the node must be each of these */
    struct class_claim *claims; /* the smallest first */
    const char **picks;         /* names of volumes, by claim: the last that were chosen */
    unsigned volume_count, topology_count, selected_count, claim_count;

    const struct pod_rules *rules; /* NULL for none */
    bool is_avoided;               /* anti-affinity of bound pods is about pods of the class */
    struct pod_count *counts;      /* of attract (one for all), of each avoid, of each spread */
    unsigned count_count;

    uint64_t seen;                /* the last change that the results know */
    struct filter_result *fixed;  /* by slot, without other pods */
    struct filter_result *result; /* by slot; the same array where pods do not matter */
    size_t capacity;
    uint64_t hash; /* of the nodes with a name and their results */
    unsigned fit;  /* of these nodes */
    bool text_stale;
    struct buf excluded, why;
    struct filter_set set;
};

struct filter {
    struct filter_caches caches;
    struct filter_hooks hooks;
    uint64_t sequence; /* every change that a result may depend on gets the next number */
    uint64_t slots_changed, names_changed, volumes_changed; /* the last of these */
    uint64_t last_number;
    void (*changed)(void *context);
    void *context;

    struct node_slot *slots;
    size_t slot_count, capacity; /* in use or freed; allocated */
    struct map by_name;          /* slot + 1, by the name in Kubernetes */
    int pods_by_node, others_by_node, pods_by_claim, others_by_claim; /* indexes */

    struct map topologies; /* of nodes, by label */
    struct map rules;
    size_t max_rules;
    struct list counts;
    bool holders_stale; /* holders of rules must be counted anew */
    bool has_forgotten; /* a class that counted pods may no longer be kept */

    struct map classes;
    struct buf key;

    int volumes_by_class, volumes_by_claim; /* indexes */
    struct map selectors;                   /* those of free volumes, by text */
    struct arena selector_memory;
};

/* ---- filter.c ---- */
void filter_touch(struct filter *filter, int slot); /* or FILTER_NO_SLOT */
bool filter_same_pairs(const struct kube_pairs *a, const struct kube_pairs *b);
bool filter_is_placed(const struct kube_pod *pod); /* bound and not finished: rules count it */
int filter_slot_of(const struct filter *filter, const char *node);     /* or FILTER_NO_SLOT */
void filter_put(struct map *map, struct str key, void *value);         /* or the process ends */
struct nodeselector_node filter_subject(const struct kube_node *node); /* for node selectors */

/* The placed pods on a node, of both caches. */
struct pods_walk {
    const struct filter *filter;
    struct kube_index_walk walk;
    struct str node;
    bool in_others;
};
struct pods_walk filter_pods_on(const struct filter *filter, const char *node);
const struct kube_pod *filter_next_pod(struct pods_walk *walk);
/* Adds a request to what is taken; of extended resources, those that the node has, in its order. */
void filter_add_up(const struct kube_amounts *has, const struct kube_requests *requests,
                   struct kube_requests *taken, int64_t *taken_extended);

/* ---- pod_class.c ---- */
/* The class of the pod, up to date. */
struct pod_class *pod_class_get(struct filter *filter, const struct kube_pod *pod);
void pod_class_free(void *pod_class);
void pod_class_write(struct filter *filter, struct pod_class *pod_class); /* its set */
/* With all that is on the node now, ours too. */
unsigned pod_class_fits_now(struct filter *filter, const struct pod_class *pod_class,
                            const struct kube_pod *pod, int slot);
/* The words for a code, as Kubernetes' scheduler has them. */
void pod_class_words(const struct pod_class *pod_class, unsigned code, struct buf *out);
/* False: the text cannot be read. */
bool filter_read_selector(struct arena *arena, const char *text, const struct nodeselector **ret,
                          struct err *err);

/* ---- pod_rules.c ---- */
struct pod_rules *pod_rules_of(struct filter *filter, const struct kube_pod *pod); /* or NULL */
void pod_rules_free(void *rules);
bool pod_term_matches(const struct filter *filter, const struct pod_term *term,
                      const struct kube_pod *pod);

/* ---- pod_judge.c ---- */
/* A pod came to a slot, or left it. */
void filter_count_pod(struct filter *filter, int slot, const struct kube_pod *pod, int direction);
void filter_count_anew(struct filter *filter); /* nodes came or went, namespaces changed */
void filter_count_holders(struct filter *filter);
/* The labels of one node changed. */
void filter_relabel(struct filter *filter, const struct kube_pairs *old,
                    const struct kube_pairs *next);
void filter_drop_topologies(struct filter *filter);
/* What of the pod, of its rules and of the rules about it decides; appended to the key. True: rules
 * of bound pods are about it. */
bool pod_rules_key(struct filter *filter, const struct kube_pod *pod, const struct pod_rules *rules,
                   struct buf *key);
void pod_class_setup_counts(struct filter *filter, struct pod_class *pod_class);
/* Whether the pod is one of those that are counted. */
bool pod_count_has(const struct filter *filter, const struct pod_count *count,
                   const struct kube_pod *pod);
/* Other pods over results that know all but these, for a pod of the class. counts: those of the
 * class, or copies with other pods. */
void pod_class_judge(struct filter *filter, const struct pod_class *pod_class,
                     const struct kube_pod *pod, const struct pod_count *counts,
                     struct filter_result *results);
/* Where FITS is said: pods with a term of anti-affinity about the pod of the results. */
void pod_judge_holders(struct filter *filter, const struct pod_term *term,
                       const uint32_t *holders_in, struct filter_result *results);
/* The same over the results of the class. False: nothing of other pods changed since `seen`. */
bool pod_class_judge_pods(struct filter *filter, struct pod_class *pod_class,
                          const struct kube_pod *pod, bool touched);

/* ---- reserved.c ---- */
/* What is true for the pod, by slot, if the reserved pods were bound. The class is that of the pod,
 * up to date. Borrowed until the next call. */
const struct filter_result *filter_reserved_results(struct filter_reserved *reserved,
                                                    const struct pod_class *pod_class,
                                                    const struct kube_pod *pod);

/* ---- volume_rules.c ---- */
void volume_rules_key(struct filter *filter, const struct kube_pod *pod, struct buf *key);
void pod_class_setup_volumes(struct filter *filter, struct pod_class *pod_class);
void volume_rules_listen(struct filter *filter);
/* Chooses a free volume for each claim into picks: none that is taken. False: one gets none. */
bool pod_class_pick_volumes(struct filter *filter, const struct pod_class *pod_class,
                            const struct kube_node *node, const struct filter_claim *taken,
                            unsigned taken_count);

#endif
