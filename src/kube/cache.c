/* cache.c - the places of one kind: what was seen there, what readers see, and who is told.
 *
 * Holds   listeners, indexes and the order of walks follow the upper view, which changes in one
 *         function only (set_upper): each change of it is told once, after it can be read;
 *         an entry lives as long as there is a lower object or a cover. */
#include "kube/cache.h"

#include "base/mem.h"
#include "kube/cache_private.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_ENTRIES = 1 << 24, MAX_FACTS = 1 << 24, MAX_UNREADABLE = 1 << 16 }; /* fuses */

/* ---- the cache ---- */

struct kube_cache *kube_cache_new(const struct kube_kind *kind, const struct clock *clock)
{
    struct kube_cache *cache = mem_alloc(sizeof(*cache));
    struct map_options options = { .max = MAX_ENTRIES, .borrow_keys = true };

    cache->kind = kind;
    cache->clock = clock;
    map_init(&cache->entries, &options);
    map_init(&cache->unreadable, &(struct map_options){ .max = MAX_UNREADABLE });
    list_init(&cache->shown);
    list_init(&cache->doubts);
    heap_init(&cache->facts, kube_cover_compare, MAX_FACTS);
    return cache;
}

static void free_entry(struct kube_cache *cache, struct kube_entry *entry)
{
    kube_cover_free(cache, entry);
    kube_index_update(cache, entry, NULL);
    list_remove(&entry->place);
    kube_object_unref(entry->lower);
    kube_object_unref(entry->upper);
    mem_free(entry);
}

void kube_cache_free(struct kube_cache *cache)
{
    if (!cache)
        return;
    map_each (item, &cache->entries)
        free_entry(cache, item->value);
    map_done(&cache->entries);
    for (unsigned i = 0; i < cache->index_count; i++)
        kube_index_done(&cache->indexes[i]);
    heap_done(&cache->facts);
    map_done(&cache->unreadable);
    mem_free(cache);
}

const struct kube_kind *kube_cache_kind(const struct kube_cache *cache)
{
    return cache->kind;
}

void kube_cache_listen(struct kube_cache *cache, kube_change change, void *context)
{
    assert(cache->listener_count < KUBE_MAX_LISTENERS);
    cache->listeners[cache->listener_count].change = change;
    cache->listeners[cache->listener_count].context = context;
    cache->listener_count++;
}

/* ---- entries ---- */

struct key {
    char text[2 * KUBE_MAX_NAME + 2];
    struct str str;
};

static bool key_of(const char *ns, const char *name, struct key *ret_key)
{
    size_t ns_length = ns ? strlen(ns) : 0, name_length = strlen(name);

    if (ns_length > KUBE_MAX_NAME || name_length > KUBE_MAX_NAME)
        return false;
    if (ns_length > 0)
        memcpy(ret_key->text, ns, ns_length);
    ret_key->text[ns_length] = '\0';
    memcpy(ret_key->text + ns_length + 1, name, name_length + 1);
    ret_key->str = (struct str){ ret_key->text, ns_length + 1 + name_length };
    return true;
}

struct kube_entry *kube_entry_find(const struct kube_cache *cache, const char *ns, const char *name)
{
    struct key key;

    return key_of(ns, name, &key) ? map_get(&cache->entries, key.str) : NULL;
}

static struct kube_entry *new_entry(struct kube_cache *cache, struct str key)
{
    size_t links = cache->index_count * sizeof(struct kube_link *);
    struct kube_entry *entry = mem_alloc(sizeof(*entry) + links + key.len + 1);
    char *text = (char *)entry + sizeof(*entry) + links;

    memcpy(text, key.at, key.len);
    entry->key = (struct str){ text, key.len };
    if (map_put(&cache->entries, entry->key, entry, NULL) < 0) {
        fprintf(stderr, "cache: more than %d objects of one kind\n", MAX_ENTRIES);
        abort();
    }
    return entry;
}

/* The names come from objects, whose decoder has bounded them. */
struct kube_entry *kube_entry_need(struct kube_cache *cache, const char *ns, const char *name)
{
    struct kube_entry *entry;
    struct key key;
    bool fits = key_of(ns, name, &key);

    assert(fits);
    entry = map_get(&cache->entries, key.str);
    return entry ? entry : new_entry(cache, key.str);
}

/* ---- the upper view ---- */

bool kube_same_uid(const struct kube_object *a, const struct kube_object *b)
{
    return strcmp(a->uid, b->uid) == 0;
}

static bool is_same_version(const struct kube_object *a, const struct kube_object *b)
{
    return strcmp(a->version, b->version) == 0;
}

/* Versions that are no numbers cannot be compared: what came later counts as newer then. */
bool kube_is_newer(const struct kube_object *a, const struct kube_object *b)
{
    if (a->version_number == 0 || b->version_number == 0)
        return !is_same_version(a, b);
    return a->version_number > b->version_number;
}

static void tell(struct kube_cache *cache, const struct kube_object *old,
                 const struct kube_object *next)
{
    cache->telling = true;
    for (unsigned i = 0; i < cache->listener_count; i++)
        cache->listeners[i].change(cache->listeners[i].context, old, next);
    cache->telling = false;
}

static void replace_upper(struct kube_cache *cache, struct kube_entry *entry,
                          const struct kube_object *next)
{
    const struct kube_object *old = entry->upper;

    if (!old) {
        list_push_back(&cache->shown, &entry->place);
        cache->shown_count++;
    }
    if (!next) {
        list_remove(&entry->place);
        cache->shown_count--;
    }
    entry->upper = next ? kube_object_ref(next) : NULL;
    kube_index_update(cache, entry, next);
    tell(cache, old, next);
    kube_object_unref(old);
}

/* Readers keep the object they have while the server says the same of it, so that what a listener
 * was last told is always what can be read. */
static void set_upper(struct kube_cache *cache, struct kube_entry *entry,
                      const struct kube_object *next, bool predicted)
{
    const struct kube_object *old = entry->upper;
    bool both_known = !predicted && !entry->upper_is_predicted;

    entry->upper_is_predicted = predicted;
    if (old == next)
        return;
    if (old && next && both_known && kube_same_uid(old, next) && is_same_version(old, next))
        return;
    /* Another uid is another object under the same name: the first one is gone. */
    if (old && next && old->uid[0] && next->uid[0] && !kube_same_uid(old, next))
        replace_upper(cache, entry, NULL);
    replace_upper(cache, entry, next);
}

void kube_entry_refresh(struct kube_cache *cache, struct kube_entry *entry)
{
    const struct kube_object *next;
    bool predicted;

    kube_cover_tidy(cache, entry);
    next = kube_cover_view(entry, &predicted);
    set_upper(cache, entry, next, predicted);
    if (!entry->lower && !entry->cover) {
        map_remove(&cache->entries, entry->key);
        free_entry(cache, entry);
    }
}

/* ---- reading ---- */

const struct kube_object *kube_cache_get(const struct kube_cache *cache, const char *ns,
                                         const char *name)
{
    const struct kube_entry *entry = kube_entry_find(cache, ns, name);

    if (cache->lookup)
        cache->lookup(cache->lookup_context, ns, name);
    return entry ? entry->upper : NULL;
}

size_t kube_cache_count(const struct kube_cache *cache)
{
    return cache->shown_count;
}

struct kube_cache_walk kube_cache_walk(const struct kube_cache *cache)
{
    return (struct kube_cache_walk){ .cache = cache, .at = list_first(&cache->shown) };
}

const struct kube_object *kube_cache_next(struct kube_cache_walk *walk)
{
    struct list *node = walk->at;

    if (!node)
        return NULL;
    walk->at = node->next == &walk->cache->shown ? NULL : node->next;
    return list_item(node, struct kube_entry, place)->upper;
}

/* ---- the lower view ---- */

/* A watch tells events in order, so an older one is a repetition. A list is the truth whatever its
 * versions: they go back when the server's storage was restored from a backup. */
static bool is_news(const struct kube_cache *cache, const struct kube_entry *entry,
                    const struct kube_object *object)
{
    if (entry->lower && cache->relisting)
        return !is_same_version(object, entry->lower);
    if (entry->lower)
        return kube_is_newer(object, entry->lower);
    return object->version_number == 0 || object->version_number > entry->seen_version ||
           cache->relisting;
}

static void set_lower(struct kube_entry *entry, const struct kube_object *next)
{
    const struct kube_object *old = entry->lower;

    entry->lower = next ? kube_object_ref(next) : NULL;
    kube_object_unref(old);
}

void kube_cache_seen(struct kube_cache *cache, const struct kube_object *object)
{
    struct kube_entry *entry = kube_entry_need(cache, object->ns, object->name);
    const struct kube_object *upper = entry->upper;

    assert(!cache->telling);
    entry->round = cache->round;
    if (!is_news(cache, entry, object))
        return;
    /* What an answer brought already is not kept twice. */
    if (upper && !entry->upper_is_predicted && kube_same_uid(upper, object) &&
        is_same_version(upper, object))
        object = upper;
    set_lower(entry, object);
    entry->seen_version = object->version_number;
    if (entry->cover)
        kube_cover_seen(cache, entry, object);
    kube_entry_refresh(cache, entry);
}

static void entry_gone(struct kube_cache *cache, struct kube_entry *entry, uint64_t version_number)
{
    set_lower(entry, NULL);
    if (version_number > 0)
        entry->seen_version = version_number;
    if (entry->cover)
        kube_cover_gone(cache, entry, version_number);
    kube_entry_refresh(cache, entry);
}

void kube_cache_seen_gone(struct kube_cache *cache, const char *ns, const char *name,
                          uint64_t version_number)
{
    struct kube_entry *entry = kube_entry_find(cache, ns, name);

    assert(!cache->telling);
    if (!entry || (version_number > 0 && version_number < entry->seen_version))
        return;
    entry_gone(cache, entry, version_number);
}

void kube_cache_on_lookup(struct kube_cache *cache, kube_lookup lookup, void *context)
{
    cache->lookup = lookup;
    cache->lookup_context = context;
}

void kube_cache_read(struct kube_cache *cache, const char *ns, const char *name,
                     const struct kube_object *found)
{
    const struct kube_entry *entry = kube_entry_find(cache, ns, name);

    if (entry && !kube_cover_is_settled(entry))
        return;
    if (found)
        kube_cache_seen(cache, found);
    else
        kube_cache_seen_gone(cache, ns, name, 0);
}

void kube_cache_keep(struct kube_cache *cache, const char *ns, const char *name)
{
    struct kube_entry *entry = kube_entry_find(cache, ns, name);

    if (entry)
        entry->round = cache->round;
}

void kube_cache_relist_begin(struct kube_cache *cache)
{
    assert(!cache->telling);
    cache->round++;
    cache->relisting = true;
}

void kube_cache_relist_end(struct kube_cache *cache, uint64_t version_number)
{
    assert(cache->relisting);
    map_each (item, &cache->entries) {
        struct kube_entry *entry = item->value;

        if (entry->round != cache->round && kube_cache_is_readable(cache, str_of(entry->key.at)))
            entry_gone(cache, entry, version_number);
    }
    cache->relisting = false;
    cache->synced = true;
    cache->passed = 0; /* the list decides, even when its version went back */
    kube_cache_progress(cache, version_number);
}

void kube_cache_progress(struct kube_cache *cache, uint64_t version_number)
{
    assert(!cache->telling);
    if (version_number <= cache->passed)
        return;
    cache->passed = version_number;
    kube_cover_pass(cache, version_number);
}

void kube_cache_set_readable(struct kube_cache *cache, const char *ns, bool is_readable)
{
    if (is_readable)
        map_remove(&cache->unreadable, str_of(ns));
    else
        (void)map_put(&cache->unreadable, str_of(ns), NULL, NULL);
}

bool kube_cache_is_readable(const struct kube_cache *cache, struct str ns)
{
    return cache->unreadable.count == 0 || !map_has(&cache->unreadable, ns);
}

bool kube_cache_is_synced(const struct kube_cache *cache)
{
    return cache->synced;
}
