/* eligible_private.h - what the files of eligible share.
 *
 * A place is a node of Kubernetes in a slot of its own, lent to Slurm or not: pods on nodes that
 * are not lent attract and repel too. A class is all that decides where a pod may run; its result
 * on each place is kept, and looked at again when the place was touched. Every change that a
 * result may depend on gets the next sequence number, so a class knows what it has not seen yet.
 */
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
    ELIGIBLE_LOG = 1024,         /* changes that a class can catch up with place by place */
    ELIGIBLE_NO_PLACE = -1,      /* a change of no single place */
    ELIGIBLE_MAX_TERMS = 64,     /* of one pod and rule */
    ELIGIBLE_MEMORY = 128 << 20, /* of one class or one set of rules: a fuse */
    ELIGIBLE_IP_TEXT = 48,
    ELIGIBLE_PROTOCOL_TEXT = 8,
};

/* Why a place does not do; after the last one come the extended resources of the class. */
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

/* ---- places ---- */

struct eligible_port {
    uint16_t port;
    char protocol[ELIGIBLE_PROTOCOL_TEXT], ip[ELIGIBLE_IP_TEXT]; /* "" for every address */
};

struct eligible_place {
    const struct kube_node *node; /* the one in the cache; NULL in a free slot */
    const char *slurm_name;       /* in the node's memory */
    bool lent;
    uint64_t born;                  /* the change that put a node into this slot */
    int64_t pods;                   /* on it, ours and others' */
    struct kube_requests of_others; /* what pods of other schedulers take; not the extended ones */
    int64_t *others_extended; /* the same of each extended resource of the node, in its order */
    struct eligible_port *ports;
    unsigned port_count;
};

/* The value of one label at every place, as a number. */
struct eligible_column {
    char *key;
    unsigned refs;
    uint32_t *of; /* by slot; 0 where the label is absent */
    uint32_t count;
    struct map values;
};

/* ---- rules about other pods ---- */

struct eligible_term {
    const struct selector *labels;
    const char **namespaces;
    unsigned namespace_count;
    const struct selector *namespace_selector; /* NULL for none */
    struct eligible_column *column;            /* of the topology key */
};

struct eligible_spread {
    struct eligible_term term;
    int64_t max_skew, min_domains;
    bool by_affinity, by_taints; /* nodes that do not match, or are not tolerated, do not count */
    const char **same;           /* matchLabelKeys: labels in which pods must equal this one */
    unsigned same_count;
};

/* What pods of one namespace say of other pods, compiled; shared by classes. */
struct eligible_rules {
    struct str key;
    uint64_t number;
    unsigned refs;
    struct arena arena;
    struct eligible_term *attract, *avoid;
    struct eligible_spread *spread;
    unsigned attract_count, avoid_count, spread_count;
    const char *trouble; /* they cannot be read */
};

/* How many pods at each place match all of some terms. */
struct eligible_tally {
    struct list link;
    const struct eligible_term *terms;
    unsigned term_count;
    struct kube_pairs same; /* and have these labels */
    bool but_ending;        /* and are not being deleted */
    uint32_t *count;        /* by slot */
    uint64_t changed;
};

/* Pods on nodes that want to be away from others: those of one namespace with the same terms. */
struct eligible_repeller {
    struct str key;
    uint64_t number;
    struct arena arena;
    struct eligible_term *terms;
    unsigned term_count;
    unsigned refs, owners; /* classes; pods on nodes */
    uint32_t *count;       /* by slot */
    uint64_t changed;
};

struct eligible_repelled {
    struct eligible_repeller *by;
    unsigned term;
};

/* ---- together ---- */

struct eligible_reserved {
    const struct kube_pod *pod;
    int place;
};

/* ---- classes ---- */

struct eligible_free_volume { /* that names no host */
    const char *name;
    int64_t size;
    const struct nodeselector *where; /* NULL: everywhere */
};

struct eligible_claim { /* that takes a free volume */
    unsigned number;    /* of the pod's claims, each counted once */
    const char *class, *mode, *attributes;
    int64_t size;
    unsigned access;
    const struct selector *labels;
    struct eligible_free_volume *free; /* the smallest first */
    unsigned free_count;
};

struct pod_class {
    struct list lru;
    struct str key;
    uint64_t number; /* of no other class, also of none that was forgotten */
    struct arena arena;
    const char *trouble; /* NULL, or why no node will do */
    bool trouble_passes; /* a volume is being bound: whoever has a node keeps it */
    struct kube_requests requests;
    struct kube_pairs selector;
    const struct nodeselector *affinity; /* NULL for none */
    struct kube_toleration *tolerations;
    struct eligible_port *ports;
    const struct nodeselector **volumes; /* each must match */
    const struct nodeselector **classes;
    const char **selected;         /* the node must be each of these */
    struct eligible_claim *claims; /* the smallest first */
    const char **picks;            /* names of volumes, by claim: the last that were chosen */
    unsigned toleration_count, port_count, volume_count, class_count, selected_count, claim_count;

    struct eligible_rules *rules; /* NULL for none */
    bool attracts_itself;
    uint64_t spreads_itself;        /* a bit per constraint */
    struct eligible_tally *tallies; /* of attract (one for all), of each avoid, of each spread */
    unsigned tally_count;
    struct eligible_repelled *repelled;
    unsigned repelled_count;

    uint64_t seen;                /* the last change that the results know */
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
    int pods_by_node, others_by_node; /* indexes */
    uint64_t sequence;
    int log[ELIGIBLE_LOG]; /* the place that a change was about, by its number */
    void (*changed)(void *context);
    void *context;

    struct eligible_place *places;
    size_t place_count, capacity; /* slots in use or freed; allocated */
    size_t *free_slots, free_count;
    struct map by_name; /* slot + 1 */
    struct map columns;
    struct map rules, repellers;
    struct list tallies;
    uint64_t last_number;
    struct eligible_reserved *reserved; /* of pods that will be bound together; within one plan */
    unsigned reserved_count, reserved_room;

    struct map classes;
    struct list lru; /* the least recently used first */
    size_t class_bytes;
    bool forgot_rules; /* a class that counted pods is no longer kept */
    struct buf key;

    int pods_by_claim, others_by_claim;     /* indexes of placed pods: "namespace/claim" */
    int volumes_by_class, volumes_by_claim; /* indexes: see eligible_static.c */
    struct eligible_column *hosts;          /* the label by which volumes name their host */
    uint64_t hostless_changed;              /* how often a free volume changed that names none */
    struct buf volume_key;
};

/* ---- eligible.c ---- */
/* Something changed: of one place, or ELIGIBLE_NO_PLACE. */
void eligible_touch(struct eligible *eligible, int place);
bool eligible_same_pairs(const struct kube_pairs *a, const struct kube_pairs *b);
bool eligible_same_amounts(const struct kube_amounts *a, const struct kube_amounts *b);
struct selector_subject eligible_labels(const struct kube_pairs *labels);
bool eligible_is_ours(const struct eligible *eligible, const struct kube_pod *pod);
bool eligible_is_placed(const struct kube_pod *pod); /* bound and not finished: rules count it */

/* The placed pods on a node, of both caches. Pods of ours among those of others count once. */
struct eligible_walk {
    const struct eligible *eligible;
    struct kube_index_walk walk;
    struct str node;
    bool in_others;
};
struct eligible_walk eligible_pods_on(const struct eligible *eligible, const char *node);
const struct kube_pod *eligible_next_pod(struct eligible_walk *walk);

/* ---- eligible_places.c ---- */
void eligible_places_init(struct eligible *eligible);
void eligible_places_done(struct eligible *eligible);
void eligible_node_changed(void *context, const struct kube_object *old,
                           const struct kube_object *next);
int eligible_place_of(const struct eligible *eligible, const char *node); /* or NO_PLACE */
/* A pod came to this place or left it; the index has it already. */
void eligible_place_take(struct eligible *eligible, int place, const struct kube_pod *pod,
                         int direction);
struct eligible_column *eligible_column_get(struct eligible *eligible, struct str key);
void eligible_column_release(struct eligible *eligible, struct eligible_column *column);
struct eligible_port eligible_port_of(const struct kube_port *port);

/* ---- eligible_node.c ---- */
bool eligible_taint_passes(const char *key); /* it says how the node is, and excludes nothing */
struct filter_result eligible_judge(struct eligible *eligible, const struct pod_class *pod_class,
                                    size_t place);
/* With all that is on the node now, ours too; the code and ELIGIBLE_FITS as above. */
unsigned eligible_judge_now(struct eligible *eligible, const struct pod_class *pod_class,
                            const struct kube_pod *pod, size_t place);

/* Adds a request to what is taken; of extended resources, those that the node has, in its order. */
void eligible_add_up(const struct kube_amounts *has, const struct kube_requests *requests,
                     struct kube_requests *taken, int64_t *taken_extended);

/* ---- eligible_terms.c ---- */
/* The rules of this pod about other pods: a new reference, or NULL when it has none. */
struct eligible_rules *eligible_rules_get(struct eligible *eligible, const struct kube_pod *pod);
void eligible_rules_release(struct eligible *eligible, struct eligible_rules *rules);
bool eligible_term_matches(const struct eligible *eligible, const struct eligible_term *term,
                           const struct kube_pod *pod);
/* A list of PodAffinityTerm, of a pod in this namespace. */
int eligible_terms_compile(struct eligible *eligible, struct arena *arena, const char *text,
                           const char *ns, struct eligible_term **ret_terms, unsigned *ret_count,
                           struct err *err);
void eligible_terms_release(struct eligible *eligible, const struct eligible_term *terms,
                            unsigned count);

/* ---- eligible_pods.c ---- */
/* A pod came to a place, or left it. */
void eligible_pods_take(struct eligible *eligible, int place, const struct kube_pod *pod,
                        int direction);
/* The same of a pod that is merely about to: nobody is told. */
void eligible_pods_reserve(struct eligible *eligible, int place, const struct kube_pod *pod,
                           int direction);
void eligible_pods_recount(struct eligible *eligible, int place); /* node new, gone or renamed */
void eligible_pods_grow(struct eligible *eligible, size_t from);
void eligible_pods_namespace_changed(struct eligible *eligible);
/* What of the pod and its surroundings decides; appended to the key. */
void eligible_pods_key(struct eligible *eligible, const struct kube_pod *pod,
                       const struct eligible_rules *rules, struct buf *key);
void eligible_pods_setup(struct eligible *eligible, struct pod_class *pod_class,
                         const struct kube_pod *pod);
void eligible_pods_release(struct eligible *eligible, struct pod_class *pod_class);
bool eligible_pods_changed(const struct pod_class *pod_class); /* since its `seen` */
void eligible_pods_init(struct eligible *eligible);
void eligible_pods_done(struct eligible *eligible);

/* ---- eligible_domains.c ---- */
/* Over results that know all but other pods. */
void eligible_domains_judge(const struct eligible *eligible, struct pod_class *pod_class);

/* ---- eligible_reserve.c ---- */
void eligible_reserve_done(struct eligible *eligible);

/* ---- eligible_volumes.c ---- */
void eligible_volumes_key(struct eligible *eligible, const struct kube_pod *pod, struct buf *key);
void eligible_volumes_setup(struct eligible *eligible, struct pod_class *pod_class,
                            const struct kube_pod *pod);
void eligible_volumes_listen(struct eligible *eligible);

/* ---- eligible_static.c ---- */
void eligible_static_init(struct eligible *eligible);
void eligible_static_done(struct eligible *eligible);
/* There are volumes to be watched in all of these. */
bool eligible_static_has_free(struct eligible *eligible, const char *class);
/* The volume that names this claim, if it can be used; NULL. */
const struct kube_volume *eligible_static_reserved(struct eligible *eligible,
                                                   const struct kube_claim *claim);
void eligible_static_key(const struct eligible *eligible, const struct kube_claim *claim,
                         const char *class, struct buf *key);
void eligible_static_add(struct eligible *eligible, struct pod_class *pod_class,
                         const struct kube_claim *claim, const char *class, unsigned number);
/* Chooses a volume for each claim into class->picks: none that is taken. False: one gets none. */
bool eligible_static_pick(struct eligible *eligible, const struct pod_class *pod_class,
                          const struct kube_node *node, const struct eligible_open *taken,
                          unsigned taken_count);
void eligible_static_changed(struct eligible *eligible, const struct kube_volume *old,
                             const struct kube_volume *next);

/* ---- eligible_class.c ---- */
/* The class of the pod, up to date. */
struct pod_class *pod_class_get(struct eligible *eligible, const struct kube_pod *pod);
void pod_class_write(struct eligible *eligible, struct pod_class *pod_class); /* its set */
/* The words for a code, as Kubernetes' scheduler has them. */
const char *eligible_words(const struct pod_class *pod_class, unsigned code, struct arena *arena);
void pod_classes_init(struct eligible *eligible);
void pod_classes_done(struct eligible *eligible);

#endif
