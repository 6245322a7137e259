/* eligible_private.h - what the files of eligible share.
 *
 * Each node of Kubernetes has a slot, also a node that is not lent to Slurm: pods on such nodes
 * attract and repel too. A class is all that decides where a pod may run. Its result in each slot
 * is kept, and computed again when the slot has changed since. */
#ifndef SLINC_BRIDGE_ELIGIBLE_PRIVATE_H
#define SLINC_BRIDGE_ELIGIBLE_PRIVATE_H

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "bridge/eligible.h"
#include "bridge/kinds_volume.h"
#include "codec/nodeselector.h"
#include "codec/selector.h"

enum {
    ELIGIBLE_NO_SLOT = -1,
    ELIGIBLE_MAX_TERMS = 64,     /* of one pod and rule */
    ELIGIBLE_MEMORY = 128 << 20, /* of one class or one set of rules: a fuse */
    ELIGIBLE_MAX_NAMES = 1 << 20,
    ELIGIBLE_LOG = 256, /* the last changes of slots: a class that missed more looks at all slots */
};

/* Why a node does not do; after the last one come the extended resources of the class. */
enum eligible_code {
    ELIGIBLE_FREE_SLOT,
    ELIGIBLE_FITS,
    ELIGIBLE_TROUBLE, /* with the pod itself, wherever it goes */
    ELIGIBLE_TAINTS,
    ELIGIBLE_AFFINITY,
    ELIGIBLE_PORTS,
    ELIGIBLE_PODS,
    ELIGIBLE_CPU,
    ELIGIBLE_MEMORY_SHORT,
    ELIGIBLE_EPHEMERAL,
    ELIGIBLE_VOLUME_NODE,
    ELIGIBLE_VOLUME_CLASS,
    ELIGIBLE_SPREAD,
    ELIGIBLE_SPREAD_LABEL,
    ELIGIBLE_ATTRACTED,
    ELIGIBLE_AVOIDS,
    ELIGIBLE_REPELLED,
    ELIGIBLE_EXTENDED, /* the first of them */
};

struct filter_result {
    uint8_t code;
    bool lent : 1, matches : 1, tolerated : 1; /* selector and affinity; taints */
};

struct node_slot {
    const struct kube_node *node; /* the one in the cache; NULL in a free slot */
    const char *slurm_name;       /* in the node's memory */
    bool lent;
    uint64_t born, changed; /* sequence numbers: a node came into the slot; the last change */
    int64_t pods;           /* on the node, ours and others' */
    struct kube_requests of_others; /* what pods of other schedulers take; not the extended ones */
    int64_t *others_extended; /* the same of each extended resource of the node, in its order */
};

/* ---- rules about other pods: eligible_pods.c ---- */

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

/* What pods of one namespace say of other pods, compiled; shared by classes and by the pods on
 * nodes that want to be away from others. */
struct pod_rules {
    struct str key;
    uint64_t number;
    unsigned refs; /* classes */
    struct arena arena;
    struct pod_term *attract, *avoid;
    struct spread *spread;
    unsigned attract_count, avoid_count, spread_count;
    const char *trouble;    /* they cannot be read */
    unsigned owners;        /* pods on nodes with these rules, if avoid_count > 0, and */
    uint32_t *owners_in;    /* how many of them by slot */
    uint64_t owners_change; /* the last change of these */
};

/* How many pods in each slot match all of some terms. */
struct tally {
    struct list link;
    const struct pod_term *terms;
    unsigned term_count;
    struct kube_pairs same; /* and have these labels */
    bool but_ending;        /* and are not being deleted */
    bool is_stale;          /* must be counted anew */
    uint32_t *count;        /* by slot */
    uint64_t changed;
};

struct repelled { /* by one term of the rules of pods on nodes */
    struct pod_rules *by;
    unsigned term;
};

/* ---- classes: eligible_class.c ---- */

struct class_claim {                /* that takes a free volume */
    const struct kube_claim *claim; /* with a reference */
    const char *class;
    const struct selector *labels;
    unsigned number; /* of the pod's claims, each counted once */
};

struct pod_class {
    struct list lru;
    struct str key;
    uint64_t number; /* of no other class, also of none that was forgotten */
    struct arena arena;
    const struct kube_pod *pod; /* the first of its pods, with a reference */
    bool *by_class;             /* of requests.extended: whether a device class stands for it */
    const char *trouble;        /* NULL, or why no node will do */
    bool trouble_passes;        /* a volume is being bound: whoever has a node keeps it */
    const struct nodeselector *affinity; /* NULL for none */
    const struct nodeselector **volumes; /* each must match */
    const struct nodeselector **topologies;
    const char **selected;      /* the node must be each of these */
    struct class_claim *claims; /* the smallest first */
    const char **picks;         /* names of volumes, by claim: the last that were chosen */
    unsigned volume_count, topology_count, selected_count, claim_count;

    struct pod_rules *rules; /* NULL for none */
    bool attracts_itself;
    uint64_t spreads_itself; /* a bit per constraint */
    struct tally *tallies;   /* of attract (one for all), of each avoid, of each spread */
    unsigned tally_count;
    struct repelled *repelled;
    unsigned repelled_count;

    uint64_t seen;                /* the last change that the results know */
    uint64_t seen_log;            /* how much of the log they know */
    struct filter_result *fixed;  /* by slot, without other pods */
    struct filter_result *result; /* by slot; the same array where there are no such rules */
    size_t capacity;
    uint64_t changed; /* the last change that made another set of it */
    bool text_stale;
    struct buf excluded, why;
    struct eligible_set set;
};

struct eligible {
    struct eligible_caches caches;
    char *scheduler_name;
    uint64_t sequence; /* every change that a result may depend on gets the next number */
    uint64_t last_number;
    void (*changed)(void *context);
    void *context;

    struct node_slot *slots;
    size_t slot_count, capacity; /* in use or freed; allocated */
    struct map by_name;          /* slot + 1 */
    uint32_t log[ELIGIBLE_LOG];  /* slots in the order of their changes, as a ring */
    uint64_t logged;             /* into it, ever */
    int pods_by_node, others_by_node, pods_by_claim, others_by_claim; /* indexes */

    struct map columns; /* labels of nodes as numbers, by key */
    struct map rules;
    struct list tallies;
    bool owners_stale; /* owners of rules must be counted anew */
    struct reserved {
        const struct kube_pod *pod;
        int slot;
    } *reserved; /* pods that will be bound together; within one plan */
    unsigned reserved_count, reserved_room;

    struct map classes;
    struct list lru;   /* the least recently used first */
    bool forgot_rules; /* a class that counted pods is no longer kept */
    struct buf key;

    int volumes_by_class, volumes_by_claim; /* indexes */
    uint64_t volumes_changed;
    struct map selectors; /* those of free volumes, by text */
    struct arena selector_memory;
};

/* ---- eligible.c ---- */
void eligible_touch(struct eligible *eligible, int slot); /* or ELIGIBLE_NO_SLOT */
bool eligible_same_pairs(const struct kube_pairs *a, const struct kube_pairs *b);
bool eligible_is_ours(const struct eligible *eligible, const struct kube_pod *pod);
bool eligible_is_placed(const struct kube_pod *pod); /* bound and not finished: rules count it */
int eligible_slot_of(const struct eligible *eligible, const char *node); /* or NO_SLOT */
void eligible_put(struct map *map, struct str key, void *value);         /* or it ends */

/* The placed pods on a node, of both caches. Pods of ours among those of others count once. */
struct pods_walk {
    const struct eligible *eligible;
    struct kube_index_walk walk;
    struct str node;
    bool in_others;
};
struct pods_walk eligible_pods_on(const struct eligible *eligible, const char *node);
const struct kube_pod *eligible_next_pod(struct pods_walk *walk);
/* Adds a request to what is taken; of extended resources, those that the node has, in its order. */
void eligible_add_up(const struct kube_amounts *has, const struct kube_requests *requests,
                     struct kube_requests *taken, int64_t *taken_extended);

/* ---- eligible_class.c ---- */
/* The class of the pod, up to date. */
struct pod_class *pod_class_get(struct eligible *eligible, const struct kube_pod *pod);
void pod_class_write(struct eligible *eligible, struct pod_class *pod_class); /* its set */
/* With all that is on the node now, ours too. */
unsigned pod_class_fits_now(struct eligible *eligible, const struct pod_class *pod_class,
                            const struct kube_pod *pod, int slot);
/* The words for a code, as Kubernetes' scheduler has them. */
const char *pod_class_words(const struct pod_class *pod_class, unsigned code, struct arena *arena);
void pod_classes_done(struct eligible *eligible);
/* False: the text cannot be read. */
bool eligible_read_selector(struct arena *arena, const char *text, const struct nodeselector **ret,
                            struct err *err);

/* ---- eligible_pods.c ---- */
/* The rules of this pod about other pods: a new reference, or NULL when it has none. */
struct pod_rules *pod_rules_get(struct eligible *eligible, const struct kube_pod *pod);
void pod_rules_release(struct eligible *eligible, struct pod_rules *rules);
/* A pod came to a slot, or left it. A pod that is merely about to: nobody is told. */
void eligible_count_pod(struct eligible *eligible, int slot, const struct kube_pod *pod,
                        int direction);
void eligible_count_anew(struct eligible *eligible); /* nodes came or went, namespaces changed */
void eligible_count_owners(struct eligible *eligible);
/* The labels of one node changed. */
void eligible_relabel(struct eligible *eligible, const struct kube_pairs *old,
                      const struct kube_pairs *next);
/* What of the pod and its surroundings decides; appended to the key. */
void eligible_pods_key(struct eligible *eligible, const struct kube_pod *pod,
                       const struct pod_rules *rules, struct buf *key);
void eligible_pods_setup(struct eligible *eligible, struct pod_class *pod_class);
void eligible_pods_release(struct eligible *eligible, struct pod_class *pod_class);
/* Other pods over results that know all but these. False: nothing of them changed since `seen`. */
bool eligible_pods_judge(struct eligible *eligible, struct pod_class *pod_class, bool touched);
void eligible_pods_done(struct eligible *eligible);

/* ---- eligible_volumes.c ---- */
void eligible_volumes_key(struct eligible *eligible, const struct kube_pod *pod, struct buf *key);
void eligible_volumes_setup(struct eligible *eligible, struct pod_class *pod_class);
void eligible_volumes_listen(struct eligible *eligible);
/* Chooses a free volume for each claim into class->picks: none that is taken. False: one gets none.
 */
bool eligible_pick_volumes(struct eligible *eligible, const struct pod_class *pod_class,
                           const struct kube_node *node, const struct eligible_open *taken,
                           unsigned taken_count);

#endif
