/* cache.h - what we believe is in the API server, for one kind: what was seen, and over it what our
 * own writes will do.
 *
 * Plans read the upper view. A write lays its predicted effect over the cache when it is sent; the
 * answer replaces the prediction by the server's own words; the watch, once it has passed that
 * version, takes the overlay away; a failed write takes it away at once. So two keys never race for
 * the same place. After KUBE_OVERLAY_DOUBT_US without either, the owner is asked to read the object
 * directly.
 *
 * Iteration is in order of insertion, so that a run replays exactly. */
#ifndef SLINC_KUBE_CACHE_H
#define SLINC_KUBE_CACHE_H

#include "base/clock.h"
#include "kube/object.h"

enum { KUBE_OVERLAY_DOUBT_US = 5000000 };

struct kube_cache;

struct kube_cache *kube_cache_new(const struct kube_kind *kind, const struct clock *clock);
void kube_cache_free(struct kube_cache *cache);
const struct kube_kind *kube_cache_kind(const struct kube_cache *cache);

/* ---- reading: the upper view; borrowed until the cache changes ---- */
const struct kube_object *kube_cache_get(const struct kube_cache *cache, const char *ns,
                                         const char *name);
size_t kube_cache_count(const struct kube_cache *cache);

struct kube_cache_walk {
    const struct kube_cache *cache;
    void *at;
};
struct kube_cache_walk kube_cache_walk(const struct kube_cache *cache);
const struct kube_object *kube_cache_next(struct kube_cache_walk *walk); /* NULL at the end */

/* ---- indexes: objects by a text of our choice, kept as objects change ---- */
typedef void (*kube_index_emit)(void *context, struct str key);
typedef void (*kube_index_keys)(const struct kube_object *object, kube_index_emit emit,
                                void *context);
int kube_cache_add_index(struct kube_cache *cache, kube_index_keys keys); /* before any object */
struct kube_index_walk {
    const void *at;
};
struct kube_index_walk kube_cache_by(const struct kube_cache *cache, int index, struct str key);
const struct kube_object *kube_index_next(struct kube_index_walk *walk);
size_t kube_cache_count_by(const struct kube_cache *cache, int index, struct str key);

/* ---- derived views and queues listen here: old or next is NULL for new or gone objects ---- */
typedef void (*kube_change)(void *context, const struct kube_object *old,
                            const struct kube_object *next);
void kube_cache_listen(struct kube_cache *cache, kube_change change, void *context);

/* ---- the informer writes the lower view ---- */
void kube_cache_seen(struct kube_cache *cache,
                     const struct kube_object *object); /* takes a reference of its own */
void kube_cache_seen_gone(struct kube_cache *cache, const char *ns, const char *name,
                          uint64_t version_number);
void kube_cache_relist_begin(struct kube_cache *cache);
void kube_cache_relist_end(struct kube_cache *cache,
                           uint64_t version_number); /* what was not seen is gone */
void kube_cache_progress(struct kube_cache *cache, uint64_t version_number); /* a bookmark */
bool kube_cache_is_synced(const struct kube_cache *cache); /* one list has ended */
/* A namespace that the lists leave out because we may not read it: a relist does not take its
 * objects away, and what the cache does not have of it is unknown. From the beginning all are
 * readable. */
void kube_cache_set_readable(struct kube_cache *cache, const char *ns, bool is_readable);
bool kube_cache_is_readable(const struct kube_cache *cache, struct str ns);

/* ---- of objects that are read by name, not listed (reader.h) ---- */
/* Told of every name that kube_cache_get is asked for; NULL: nobody is. */
typedef void (*kube_lookup)(void *context, const char *ns, const char *name);
void kube_cache_on_lookup(struct kube_cache *cache, kube_lookup lookup, void *context);
/* A read of one object: found is NULL when the server said that there is none. It counts for
 * nothing while a write of ours is not settled there: it may have been sent before the write. */
void kube_cache_read(struct kube_cache *cache, const char *ns, const char *name,
                     const struct kube_object *found);

/* ---- the executor writes the overlay ----
 * Every overlay is ended by exactly one call of done, taken or failed. Several may lie over one
 * object, one per write in flight: readers see all of them, applied in their order to the newest
 * object that the watch or an answer has shown. A prediction stops covering when the watch shows
 * that it is about another object than the one that is there now. */
struct kube_overlay;
/* next is the object that is to be created, or NULL for a predicted deletion. */
struct kube_overlay *kube_overlay_lay(struct kube_cache *cache, const char *ns, const char *name,
                                      const struct kube_object *next);
/* What readers see there will be changed by this merge patch, which the overlay takes. NULL when
 * there is nothing to change, or the patch does not fit the kind: then nothing is laid. */
struct kube_overlay *kube_overlay_patch(struct kube_cache *cache, const char *ns, const char *name,
                                        struct json_doc *patch);
/* The write was done: object is what the server answered (NULL: gone, as of version_number, 0 when
 * the answer named none). */
void kube_overlay_done(struct kube_overlay *overlay, const struct kube_object *object,
                       uint64_t version_number);
/* The write was done, and the answer did not show the object (a bind is answered by a Status). The
 * prediction stays until something newer is known of what it changes: that the watch, another
 * answer or, after KUBE_OVERLAY_DOUBT_US, a direct read shows it, or shows otherwise. */
void kube_overlay_taken(struct kube_overlay *overlay);
void kube_overlay_failed(struct kube_overlay *overlay);
/* The first place in doubt for longer than KUBE_OVERLAY_DOUBT_US: unanswered, or answered and not
 * seen. The owner reads the object and calls kube_cache_settle_read with what it found. Each is
 * named once, and again when it was not settled for as long again. False when there is none. The
 * names are borrowed until the cache changes. */
bool kube_cache_doubt(struct kube_cache *cache, const char **ret_ns, const char **ret_name);
/* found is NULL when the server said that there is none (nothing else counts as that). Only doubts
 * named before the read count as settled: what was written and answered is overtaken by what was
 * found. A write in flight covers no longer when that shows it, or shows otherwise, and still wants
 * its done, taken or failed; when things are as they were before, it may come yet, and covers. The
 * read was sent at read_us, and the place may have been named again since: it settles nothing that
 * began after it. */
void kube_cache_settle_read(struct kube_cache *cache, const char *ns, const char *name,
                            const struct kube_object *found, int64_t read_us);

#endif
