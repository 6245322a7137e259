/* cache.h - what we believe is in Slurm, for one kind: jobs, nodes, partitions or reservations.
 *
 * Slurm has no versions, so time is the order: every read is stamped with when it STARTED (loop
 * time), and what it shows is at least that new. An object remembers the stamp of the read that
 * last confirmed it; a read that started earlier neither changes nor removes it. The answer to a
 * write raises a floor for its key: reads that started before it say nothing about the key.
 *
 * Readers see the state before a merge or the state after it, never one between: a merge is
 * prepared in slices and takes effect in one call, at about 1 us for each change. The first fill is
 * in slices too, and shown as a whole: an unsynced cache shows nothing. Changes are told from the
 * loop, a slice at a time, in order, each once; the cache may then already be newer than what is
 * told. Walks are in order of insertion, so that a run replays exactly. */
#ifndef SLINC_SLURM_CACHE_H
#define SLINC_SLURM_CACHE_H

#include "io/loop.h"
#include "slurm/mark.h"
#include "slurm/object.h"

struct slurm_cache;

/* slurmctld forgets the expected starts of all jobs when a backfill cycle begins, and finds them
 * anew one by one. So an expected start stays this long after Slurm said it last. */
enum { SLURM_START_KEPT_US = 300 * 1000000 };

/* owner: whose keys count (submit.h), borrowed; for jobs only, NULL: nobody's. The loop is
 * borrowed.
 */
struct slurm_cache *slurm_cache_new(const struct slurm_kind *kind, struct loop *loop,
                                    const struct slurm_owner *owner);
void slurm_cache_free(struct slurm_cache *cache); /* takes NULL; untold changes are forgotten */

/* ---- reading; borrowed until the cache changes ---- */

const struct slurm_object *slurm_cache_get(const struct slurm_cache *cache, const char *key);
size_t slurm_cache_count(const struct slurm_cache *cache);
bool slurm_cache_is_synced(const struct slurm_cache *cache);      /* one list has been merged */
uint64_t slurm_cache_generation(const struct slurm_cache *cache); /* another: it has changed */

struct slurm_cache_walk {
    const struct slurm_cache *cache; /* private */
    const struct list *at;
};
struct slurm_cache_walk slurm_cache_walk(const struct slurm_cache *cache);
const struct slurm_object *slurm_cache_next(struct slurm_cache_walk *walk); /* NULL at the end */

/* All objects, with references of the list's own: stays as it is while the cache goes on. */
struct slurm_list slurm_cache_snapshot(const struct slurm_cache *cache);

/* "At least as new as my write": what the cache shows about the key, also that there is none, is
 * as new as this (loop time). INT64_MIN when nothing is known. */
int64_t slurm_cache_known_us(const struct slurm_cache *cache, const char *key);
/* A write about the key was answered later than what the cache shows of it, or it is known to have
 * changed since: how it is now is not seen yet. */
bool slurm_cache_is_behind(const struct slurm_cache *cache, const char *key);
/* When the last list that was merged, or said that nothing had changed, had started. */
int64_t slurm_cache_listed_us(const struct slurm_cache *cache);

enum slurm_index {
    SLURM_JOBS_BY_KEY,       /* the unit of its key (submit.h); ended jobs too */
    SLURM_JOBS_BY_NODE,      /* jobs that have not ended, by each of their nodes */
    SLURM_JOBS_BY_NAMESPACE, /* those of ours that have not, by what their unit begins with */
    SLURM_INDEXES,           /* how many there are */
};

struct slurm_index_walk {
    const struct list *at; /* private */
};
/* Empty for an index that is about another kind. */
struct slurm_index_walk slurm_cache_by(const struct slurm_cache *cache, enum slurm_index index,
                                       struct str key);
const struct slurm_object *slurm_index_next(struct slurm_index_walk *walk);

/* old or next is NULL for new or gone objects. Both are the same when a read after a write shows
 * the object unchanged: it is no longer behind. An id that Slurm has given to another job is one
 * change, with two sluids. Listeners come before the first object; they may write the cache. */
typedef void (*slurm_change)(void *context, const struct slurm_object *old,
                             const struct slurm_object *next);
void slurm_cache_listen(struct slurm_cache *cache, slurm_change change, void *context);

/* ---- writing: single reads and writes ---- */

/* Takes a reference of its own. False when the cache already knows something newer. */
bool slurm_cache_seen(struct slurm_cache *cache, const struct slurm_object *object,
                      int64_t started_us);
/* The server said that there is none; nothing else counts as that. */
bool slurm_cache_seen_gone(struct slurm_cache *cache, const char *key, int64_t started_us);
/* A write about this key was answered at this time, or it is known to have changed by then. */
void slurm_cache_wrote(struct slurm_cache *cache, const char *key, int64_t at_us);

/* ---- writing: lists ---- */

/* A list that started then said that nothing had changed since the last one. */
void slurm_cache_unchanged(struct slurm_cache *cache, int64_t started_us);

struct slurm_merge; /* several may be under way; the youngest start wins, object by object */

struct slurm_merge *slurm_merge_new(struct slurm_cache *cache, int64_t started_us);
void slurm_merge_add(struct slurm_merge *merge, const struct slurm_object *object); /* takes it */
/* Takes effect. may_go is asked for each object that the list lacks; NULL keeps them all. False:
 * the cache is still being filled, call again from the loop. */
typedef bool (*slurm_may_go)(void *context, const struct slurm_object *object);
bool slurm_merge_commit(struct slurm_merge *merge, slurm_may_go may_go, void *context);
/* After the commit: what the list said and was not believed, because something newer was known or
 * because may_go said no. Above 0, the next list must not be asked for changes only. */
size_t slurm_merge_ignored(const struct slurm_merge *merge);
void slurm_merge_free(struct slurm_merge *merge); /* takes NULL */

#endif
