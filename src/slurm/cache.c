/* cache.c - keeps the objects of one kind by key, by the time of the reads that showed them.
 *
 * Holds: an entry is in `shown` while it has an object, else in `ghosts`; an object is replaced or
 * removed only by a read that started at or after all that is known of it; each replacement queues
 * exactly one change, whose old is the next of the change before it. */
#include "base/mem.h"
#include "slurm/cache_private.h"
#include "slurm/object_private.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

struct change {
    struct list link;
    const struct slurm_object *old, *next;
};

struct slurm_merge {
    struct slurm_cache *cache;
    int64_t started_us;
    struct slurm_list list;
    size_t capacity;
    size_t done;    /* of the list, by the commit */
    uint64_t round; /* 0 before the commit */
    size_t ignored;
};

struct slurm_cache *slurm_cache_new(const struct slurm_kind *kind, struct loop *loop,
                                    const struct slurm_owner *owner)
{
    struct map_options options = { .max = 2 * SLURM_MAX_LIST, .borrow_keys = true };
    struct slurm_cache *cache = mem_alloc(sizeof(*cache));

    cache->kind = kind;
    cache->loop = loop;
    cache->owner = owner;
    cache->listed_us = INT64_MIN;
    list_init(&cache->shown);
    list_init(&cache->ghosts);
    list_init(&cache->untold);
    map_init(&cache->entries, &options);
    slurm_index_init(cache);
    return cache;
}

static void change_free(struct change *change)
{
    list_remove(&change->link);
    slurm_object_unref(change->old);
    slurm_object_unref(change->next);
    mem_free(change);
}

static void entry_free(struct slurm_cache *cache, struct slurm_entry *entry)
{
    if (entry->object)
        slurm_index_update(cache, entry, entry->object, NULL);
    slurm_object_unref(entry->object);
    list_remove(&entry->place);
    map_remove(&cache->entries, entry->key);
    mem_free(entry);
}

void slurm_cache_free(struct slurm_cache *cache)
{
    if (!cache)
        return;
    loop_timer_stop(&cache->teller);
    list_each (struct change, change, &cache->untold, link)
        change_free(change);
    list_each (struct slurm_entry, entry, &cache->shown, place)
        entry_free(cache, entry);
    list_each (struct slurm_entry, entry, &cache->ghosts, place)
        entry_free(cache, entry);
    slurm_index_done(cache);
    map_done(&cache->entries);
    mem_free(cache);
}

/* ---- telling ---- */

void slurm_cache_listen(struct slurm_cache *cache, slurm_change change, void *context)
{
    assert(cache->listener_count < SLURM_MAX_LISTENERS && cache->entries.count == 0);
    cache->listeners[cache->listener_count].change = change;
    cache->listeners[cache->listener_count++].context = context;
}

static void tell(void *context);

/* What is not shown yet is not told yet. */
static void tell_soon(struct slurm_cache *cache)
{
    if (cache->synced && !list_is_empty(&cache->untold) && !loop_timer_is_armed(&cache->teller))
        loop_timer_start(cache->loop, &cache->teller, 0, tell, cache);
}

static void tell(void *context)
{
    struct slurm_cache *cache = context;

    for (unsigned told = 0; told < SLURM_TOLD_AT_ONCE && !list_is_empty(&cache->untold); told++) {
        struct change *change = list_item(list_pop_front(&cache->untold), struct change, link);

        for (unsigned i = 0; i < cache->listener_count; i++)
            cache->listeners[i].change(cache->listeners[i].context, change->old, change->next);
        change_free(change);
    }
    tell_soon(cache);
}

/* ---- entries ---- */

struct slurm_entry *slurm_entry_find(const struct slurm_cache *cache, struct str key)
{
    return map_get(&cache->entries, key);
}

/* A list speaks of every key, of those that it lacks too, but for those that were kept in spite. */
int64_t slurm_entry_newest(const struct slurm_cache *cache, const struct slurm_entry *entry)
{
    int64_t newest_us = entry->doubted ? INT64_MIN : cache->listed_us;

    if (entry->seen_us > newest_us)
        newest_us = entry->seen_us;
    return entry->floor_us > newest_us ? entry->floor_us : newest_us;
}

static void become_ghost(struct slurm_cache *cache, struct slurm_entry *entry)
{
    list_remove(&entry->place);
    entry->gone_us = loop_now_us(cache->loop);
    list_push_back(&cache->ghosts, &entry->place);
}

static struct slurm_entry *need_entry(struct slurm_cache *cache, struct str key)
{
    struct slurm_entry *entry = slurm_entry_find(cache, key);

    if (entry)
        return entry;
    entry = mem_alloc(sizeof(*entry) + key.len + 1);
    memcpy(entry->text, key.at, key.len);
    entry->key = (struct str){ entry->text, key.len };
    entry->seen_us = entry->floor_us = INT64_MIN;
    if (map_put(&cache->entries, entry->key, entry, NULL) < 0) {
        fprintf(stderr, "slurm cache: more than %d objects\n", 2 * SLURM_MAX_LIST);
        abort();
    }
    become_ghost(cache, entry);
    return entry;
}

static void forget_old_ghosts(struct slurm_cache *cache)
{
    int64_t before_us = loop_now_us(cache->loop) - SLURM_GHOST_US;

    list_each (struct slurm_entry, entry, &cache->ghosts, place) {
        if (entry->gone_us >= before_us)
            return;
        entry_free(cache, entry);
    }
}

/* Takes a reference of its own of next; NULL: gone. */
static void replace(struct slurm_cache *cache, struct slurm_entry *entry,
                    const struct slurm_object *next)
{
    struct change *change = mem_alloc(sizeof(*change));

    change->old = entry->object; /* with the entry's reference */
    change->next = next ? slurm_object_ref(next) : NULL;
    list_push_back(&cache->untold, &change->link);
    slurm_index_update(cache, entry, entry->object, next);
    if (!next) {
        become_ghost(cache, entry);
        cache->count--;
    } else if (!entry->object) {
        list_remove(&entry->place);
        list_push_back(&cache->shown, &entry->place);
        cache->count++;
    }
    entry->object = next ? slurm_object_ref(next) : NULL;
    entry->doubted = false;
}

/* A read shows the object as it was. Who waits for a read after a write is told all the same. */
static void confirm(struct slurm_cache *cache, struct slurm_entry *entry, int64_t started_us)
{
    bool was_behind = slurm_cache_is_behind(cache, entry->text);
    struct change *change;

    entry->seen_us = started_us;
    entry->doubted = false;
    if (!was_behind || !entry->object)
        return;
    change = mem_alloc(sizeof(*change));
    change->old = slurm_object_ref(entry->object);
    change->next = slurm_object_ref(entry->object);
    list_push_back(&cache->untold, &change->link);
}

/* What a read that started then showed. True when it made a difference. */
static bool apply(struct slurm_cache *cache, struct slurm_entry *entry,
                  const struct slurm_object *next, int64_t started_us)
{
    const struct slurm_object *old = entry->object;

    if (old == next || (old && next && slurm_object_equal(old, next))) {
        confirm(cache, entry, started_us);
        return false;
    }
    entry->seen_us = started_us;
    replace(cache, entry, next);
    return true;
}

/* Before it is compared with what is shown. */
static void keep_start(struct slurm_entry *entry, const struct slurm_object *next,
                       int64_t started_us)
{
    if (!next || next->kind != &slurm_job_kind)
        return;
    if (slurm_job_expected_start(slurm_job_of(next)) > 0)
        entry->start_us = started_us;
    else if (entry->object && started_us - entry->start_us <= SLURM_START_KEPT_US)
        slurm_job_keep_start(entry->object, next);
}

/* ---- single reads and writes ---- */

static bool saw(struct slurm_cache *cache, struct str key, const struct slurm_object *next,
                int64_t started_us)
{
    struct slurm_entry *entry = need_entry(cache, key);

    if (started_us < slurm_entry_newest(cache, entry))
        return false;
    keep_start(entry, next, started_us);
    if (apply(cache, entry, next, started_us))
        cache->generation++;
    forget_old_ghosts(cache);
    tell_soon(cache);
    return true;
}

bool slurm_cache_seen(struct slurm_cache *cache, const struct slurm_object *object,
                      int64_t started_us)
{
    return saw(cache, str_of(object->key), object, started_us);
}

bool slurm_cache_seen_gone(struct slurm_cache *cache, const char *key, int64_t started_us)
{
    return saw(cache, str_of(key), NULL, started_us);
}

void slurm_cache_wrote(struct slurm_cache *cache, const char *key, int64_t at_us)
{
    struct slurm_entry *entry = need_entry(cache, str_of(key));

    if (at_us > entry->floor_us)
        entry->floor_us = at_us;
    if (!entry->object)
        become_ghost(cache, entry);
}

/* ---- lists ---- */

void slurm_cache_unchanged(struct slurm_cache *cache, int64_t started_us)
{
    if (cache->synced && started_us > cache->listed_us)
        cache->listed_us = started_us;
}

struct slurm_merge *slurm_merge_new(struct slurm_cache *cache, int64_t started_us)
{
    struct slurm_merge *merge = mem_alloc(sizeof(*merge));

    merge->cache = cache;
    merge->started_us = started_us;
    return merge;
}

/* Most objects of a list are as they were: those are confirmed now, and the one that is shown
 * stands for the new one, so that the commit has little left to do. */
void slurm_merge_add(struct slurm_merge *merge, const struct slurm_object *object)
{
    struct slurm_entry *entry = need_entry(merge->cache, str_of(object->key));
    struct slurm_list *list = &merge->list;

    keep_start(entry, object, merge->started_us);
    if (entry->object && merge->started_us >= slurm_entry_newest(merge->cache, entry) &&
        slurm_object_equal(entry->object, object)) {
        confirm(merge->cache, entry, merge->started_us);
        slurm_object_unref(object);
        object = slurm_object_ref(entry->object);
    }
    if (list->count == merge->capacity) {
        merge->capacity = merge->capacity ? 2 * merge->capacity : 64;
        list->at = mem_resize_array(list->at, merge->capacity, sizeof(const void *));
    }
    list->at[list->count++] = object;
}

static void commit_one(struct slurm_merge *merge, const struct slurm_object *object)
{
    struct slurm_entry *entry = need_entry(merge->cache, str_of(object->key));

    entry->round = merge->round;
    if (merge->started_us >= slurm_entry_newest(merge->cache, entry))
        apply(merge->cache, entry, object, merge->started_us);
    else if (!entry->object || !slurm_object_equal(entry->object, object))
        merge->ignored++;
}

static void commit_missing(struct slurm_merge *merge, slurm_may_go may_go, void *context)
{
    list_each (struct slurm_entry, entry, &merge->cache->shown, place) {
        if (entry->round == merge->round)
            continue;
        if (merge->started_us <= slurm_entry_newest(merge->cache, entry)) {
            merge->ignored++;
        } else if (may_go && may_go(context, entry->object)) {
            apply(merge->cache, entry, NULL, merge->started_us);
        } else {
            entry->doubted = true;
            merge->ignored++;
        }
    }
}

bool slurm_merge_commit(struct slurm_merge *merge, slurm_may_go may_go, void *context)
{
    struct slurm_cache *cache = merge->cache;
    size_t left = cache->synced ? SIZE_MAX : SLURM_FILLED_AT_ONCE;

    if (merge->round == 0)
        merge->round = ++cache->round;
    while (merge->done < merge->list.count && left-- > 0)
        commit_one(merge, merge->list.at[merge->done++]);
    if (merge->done < merge->list.count)
        return false;
    commit_missing(merge, may_go, context);
    if (merge->started_us > cache->listed_us)
        cache->listed_us = merge->started_us;
    cache->synced = true;
    cache->generation++;
    forget_old_ghosts(cache);
    tell_soon(cache);
    return true;
}

size_t slurm_merge_count(const struct slurm_merge *merge)
{
    return merge->list.count;
}

size_t slurm_merge_ignored(const struct slurm_merge *merge)
{
    return merge->ignored;
}

void slurm_merge_free(struct slurm_merge *merge)
{
    if (!merge)
        return;
    slurm_list_done(&merge->list);
    mem_free(merge);
}

/* ---- reading ---- */

const struct slurm_object *slurm_cache_get(const struct slurm_cache *cache, const char *key)
{
    const struct slurm_entry *entry = slurm_entry_find(cache, str_of(key));

    return entry && cache->synced ? entry->object : NULL;
}

size_t slurm_cache_count(const struct slurm_cache *cache)
{
    return cache->synced ? cache->count : 0;
}

bool slurm_cache_is_synced(const struct slurm_cache *cache)
{
    return cache->synced;
}

uint64_t slurm_cache_generation(const struct slurm_cache *cache)
{
    return cache->generation;
}

struct slurm_cache_walk slurm_cache_walk(const struct slurm_cache *cache)
{
    return (struct slurm_cache_walk){ cache, cache->synced ? list_first(&cache->shown) : NULL };
}

const struct slurm_object *slurm_cache_next(struct slurm_cache_walk *walk)
{
    const struct slurm_entry *entry;

    if (!walk->at)
        return NULL;
    entry = list_item(walk->at, const struct slurm_entry, place);
    walk->at = walk->at->next == &walk->cache->shown ? NULL : walk->at->next;
    return entry->object;
}

struct slurm_list slurm_cache_snapshot(const struct slurm_cache *cache)
{
    struct slurm_list list = { .at = mem_alloc_array(cache->count + 1, sizeof(const void *)) };
    struct slurm_cache_walk walk = slurm_cache_walk(cache);
    const struct slurm_object *object;

    while ((object = slurm_cache_next(&walk)))
        list.at[list.count++] = slurm_object_ref(object);
    return list;
}

int64_t slurm_cache_known_us(const struct slurm_cache *cache, const char *key)
{
    const struct slurm_entry *entry = slurm_entry_find(cache, str_of(key));
    int64_t known_us = entry ? entry->seen_us : INT64_MIN;

    if (entry && (entry->doubted || cache->listed_us < entry->floor_us))
        return known_us; /* the list did not speak of it, or it was not believed */
    return known_us > cache->listed_us ? known_us : cache->listed_us;
}

bool slurm_cache_is_behind(const struct slurm_cache *cache, const char *key)
{
    const struct slurm_entry *entry = slurm_entry_find(cache, str_of(key));

    return entry && slurm_cache_known_us(cache, key) < entry->floor_us;
}

int64_t slurm_cache_listed_us(const struct slurm_cache *cache)
{
    return cache->listed_us;
}
