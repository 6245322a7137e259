/* cache_private.h - what cache.c, cache_index.c and the poller share. Private to src/slurm. */
#ifndef SLINC_SLURM_CACHE_PRIVATE_H
#define SLINC_SLURM_CACHE_PRIVATE_H

#include "base/list.h"
#include "base/map.h"
#include "slurm/cache.h"

enum {
    SLURM_MAX_LISTENERS = 32,
    SLURM_TOLD_AT_ONCE = 500,       /* changes, in one callback */
    SLURM_FILLED_AT_ONCE = 1000,    /* objects of the first list */
    SLURM_GHOST_US = 360 * 1000000, /* longer than any read lives */
};

/* One key. Lives while there is an object, and a while longer: so that an old read cannot bring
 * back what has gone. */
struct slurm_entry {
    struct list place;                 /* in shown, or in ghosts */
    const struct slurm_object *object; /* NULL for a ghost */
    int64_t seen_us;                   /* the start of the read that confirmed it last */
    int64_t floor_us;                  /* of the last write's answer */
    int64_t stated_us; /* of jobs: the start of the states that agreed with it last */
    int64_t gone_us;   /* a ghost: since when */
    int64_t start_us;  /* of jobs: the start of the read that last said an expected start */
    uint64_t round;    /* the last walk over all that met it */
    uint64_t asked;    /* the last of them that asked for it by name */
    bool doubted;      /* the last list lacked it, and it was kept */
    struct slurm_link *links[SLURM_INDEXES];
    struct str key;
    char text[];
};

struct slurm_cache {
    const struct slurm_kind *kind;
    struct loop *loop;
    const struct slurm_owner *owner;
    struct map entries;
    struct list shown, ghosts; /* in order of insertion; the oldest first */
    size_t count;
    struct map buckets[SLURM_INDEXES];
    struct {
        slurm_change change;
        void *context;
    } listeners[SLURM_MAX_LISTENERS];
    unsigned listener_count;
    struct list untold; /* struct change */
    struct loop_timer teller;
    uint64_t generation, round;
    int64_t listed_us;
    bool synced;
};

struct slurm_entry *slurm_entry_find(const struct slurm_cache *cache, struct str key);
/* Reads that started before this do not count. */
int64_t slurm_entry_newest(const struct slurm_cache *cache, const struct slurm_entry *entry);

size_t slurm_merge_count(const struct slurm_merge *merge); /* that were added */

/* ---- cache_index.c ---- */
void slurm_index_init(struct slurm_cache *cache);
void slurm_index_done(struct slurm_cache *cache); /* after all entries have left */
void slurm_index_update(struct slurm_cache *cache, struct slurm_entry *entry,
                        const struct slurm_object *old, const struct slurm_object *next);

#endif
