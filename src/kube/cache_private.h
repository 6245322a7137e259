/* cache_private.h - what cache.c, cache_index.c, overlay.c, shown.c and watch.c share. */
#ifndef SLINC_KUBE_CACHE_PRIVATE_H
#define SLINC_KUBE_CACHE_PRIVATE_H

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "kube/cache.h"

enum { KUBE_MAX_INDEXES = 8, KUBE_MAX_LISTENERS = 32 };

/* One place: a namespace and a name. Lives while anything is known of it. */
struct kube_entry {
    struct list place;                       /* in the order of the upper view, while it is there */
    const struct kube_object *lower, *upper; /* what was seen; what readers see */
    struct kube_cover *cover;                /* what our writes lay over it; mostly NULL */
    struct str key;                          /* the namespace, a NUL byte, the name */
    uint64_t seen_version;                   /* of the last thing seen of it, its end included */
    uint32_t round;                          /* the last relist that had it */
    bool upper_is_predicted;
    struct kube_link *links[]; /* one chain per index; the key's text follows */
};

/* Something that should be settled soon, by the answer or by the watch. */
struct kube_doubt {
    struct list link; /* in cache->doubts, the oldest first */
    struct kube_entry *entry;
    int64_t begun_us; /* what was read before this says nothing of it */
    int64_t since_us; /* begun, or asked about last */
    bool asked;       /* the owner was asked to read the object, and nothing has happened since */
};

struct kube_cover {
    struct list overlays;             /* struct kube_overlay, the oldest first */
    const struct kube_object *answer; /* the server's own words, newer than what was seen */
    const struct kube_object *gone;   /* this one, by its uid, is no more, seen or not */
    uint64_t gone_version;            /* as of; 0 = not known */
    uint64_t passed_by;               /* the key in cache->facts */
    struct heap_node node;
    struct kube_doubt doubt; /* of answer and gone */
};

struct kube_index {
    kube_index_keys keys;
    struct map buckets;
};

struct kube_cache {
    const struct kube_kind *kind;
    const struct clock *clock;
    struct map entries;
    struct list shown; /* entries with an upper object, in order of insertion */
    size_t shown_count;
    struct kube_index indexes[KUBE_MAX_INDEXES];
    unsigned index_count;
    struct {
        kube_change change;
        void *context;
    } listeners[KUBE_MAX_LISTENERS];
    unsigned listener_count;
    kube_lookup lookup; /* mostly NULL */
    void *lookup_context;
    struct list doubts;
    struct heap facts;     /* covers, by the version that makes them old */
    uint64_t passed;       /* the watch has told everything up to here */
    struct map unreadable; /* namespaces, with the value NULL; mostly none */
    uint32_t round;
    bool relisting, synced;
    bool telling; /* a listener runs: nobody may change the cache */
};

struct kube_entry *kube_entry_find(const struct kube_cache *cache, const char *ns,
                                   const char *name);
struct kube_entry *kube_entry_need(struct kube_cache *cache, const char *ns, const char *name);
/* Works out the upper view anew, tells listeners of a change, and frees what is not needed: the
 * entry itself too. */
void kube_entry_refresh(struct kube_cache *cache, struct kube_entry *entry);

bool kube_same_uid(const struct kube_object *a, const struct kube_object *b);
bool kube_is_newer(const struct kube_object *a, const struct kube_object *b);

/* The object exists though it could not be decoded: the end of a relist leaves it alone. */
void kube_cache_keep(struct kube_cache *cache, const char *ns, const char *name);

/* ---- cache_index.c ---- */
void kube_index_update(struct kube_cache *cache, struct kube_entry *entry,
                       const struct kube_object *next); /* NULL: in no index */
void kube_index_done(struct kube_index *index);

/* ---- overlay.c: what lies over the lower view ---- */
const struct kube_object *kube_cover_view(const struct kube_entry *entry, bool *ret_predicted);
void kube_cover_seen(struct kube_cache *cache, struct kube_entry *entry,
                     const struct kube_object *object);
void kube_cover_gone(struct kube_cache *cache, struct kube_entry *entry, uint64_t version_number);
void kube_cover_pass(struct kube_cache *cache, uint64_t version_number);
/* Frees writes that were taken and are over, and then an empty cover. */
void kube_cover_tidy(struct kube_cache *cache, struct kube_entry *entry);
void kube_cover_free(struct kube_cache *cache, struct kube_entry *entry); /* with its overlays */
bool kube_cover_is_settled(const struct kube_entry *entry); /* no write, and no doubt about one */
int kube_cover_compare(const struct heap_node *a, const struct heap_node *b);

/* ---- shown.c ----
 * A write that was to make `next` of `before`: does `seen` show it, or something newer than it? */
bool kube_is_shown(const struct kube_object *before, const struct kube_object *next,
                   const struct kube_object *seen);

#endif
