/* cache_index.c - objects found by a text of the owner's choice.
 *
 * A bucket holds the entries with one key, in the order in which they came to have it. Holds: a
 * bucket is never empty; an entry is at most once in a bucket; an update that leaves the keys as
 * they were touches nothing and asks for no memory. */
#include "base/mem.h"
#include "kube/cache_private.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_BUCKETS = 1 << 24 };

struct bucket {
    struct list links;
    size_t count;
    struct str key;
    char text[];
};

struct kube_link {
    struct list in_bucket;
    struct kube_link *next; /* of the same entry and index */
    struct bucket *bucket;
    struct kube_entry *entry;
};

int kube_cache_add_index(struct kube_cache *cache, kube_index_keys keys)
{
    struct map_options options = { .max = MAX_BUCKETS, .borrow_keys = true };
    struct kube_index *index = &cache->indexes[cache->index_count];

    assert(cache->entries.count == 0 && cache->index_count < KUBE_MAX_INDEXES);
    index->keys = keys;
    map_init(&index->buckets, &options);
    return (int)cache->index_count++;
}

void kube_index_done(struct kube_index *index)
{
    map_done(&index->buckets);
}

/* ---- links ---- */

static struct bucket *need_bucket(struct kube_index *index, struct str key)
{
    struct bucket *bucket = map_get(&index->buckets, key);

    if (bucket)
        return bucket;
    bucket = mem_alloc(sizeof(*bucket) + key.len + 1);
    memcpy(bucket->text, key.at, key.len);
    bucket->key = (struct str){ bucket->text, key.len };
    list_init(&bucket->links);
    if (map_put(&index->buckets, bucket->key, bucket, NULL) < 0) {
        fprintf(stderr, "cache: more than %d keys in an index\n", MAX_BUCKETS);
        abort();
    }
    return bucket;
}

static void unlink_all(struct kube_index *index, struct kube_link **chain)
{
    while (*chain) {
        struct kube_link *link = *chain;
        struct bucket *bucket = link->bucket;

        *chain = link->next;
        list_remove(&link->in_bucket);
        bucket->count--;
        mem_free(link);
        if (list_is_empty(&bucket->links)) {
            map_remove(&index->buckets, bucket->key);
            mem_free(bucket);
        }
    }
}

struct emission {
    struct kube_index *index;
    struct kube_entry *entry;
    struct kube_link *const *chain; /* comparing: the link that the next key should have */
    struct kube_link **tail;        /* linking: where the next link goes */
    struct kube_link **first;
    bool differs;
};

static void compare_key(void *context, struct str key)
{
    struct emission *emission = context;
    const struct kube_link *link = *emission->chain;

    if (emission->differs || !link || !str_eq(link->bucket->key, key)) {
        emission->differs = true;
        return;
    }
    emission->chain = &link->next;
}

static void link_key(void *context, struct str key)
{
    struct emission *emission = context;
    struct kube_link *link;

    for (const struct kube_link *other = *emission->first; other; other = other->next)
        if (str_eq(other->bucket->key, key))
            return;
    link = mem_alloc(sizeof(*link));
    link->entry = emission->entry;
    link->bucket = need_bucket(emission->index, key);
    list_push_back(&link->bucket->links, &link->in_bucket);
    link->bucket->count++;
    *emission->tail = link;
    emission->tail = &link->next;
}

void kube_index_update(struct kube_cache *cache, struct kube_entry *entry,
                       const struct kube_object *next)
{
    for (unsigned i = 0; i < cache->index_count; i++) {
        struct emission emission = { .index = &cache->indexes[i],
                                     .entry = entry,
                                     .chain = &entry->links[i],
                                     .tail = &entry->links[i],
                                     .first = &entry->links[i] };

        if (next)
            emission.index->keys(next, compare_key, &emission);
        if (!emission.differs && !*emission.chain)
            continue;
        unlink_all(emission.index, &entry->links[i]);
        if (next)
            emission.index->keys(next, link_key, &emission);
    }
}

/* ---- reading ---- */

struct kube_index_walk kube_cache_by(const struct kube_cache *cache, int index, struct str key)
{
    const struct bucket *bucket;

    assert(index >= 0 && (unsigned)index < cache->index_count);
    bucket = map_get(&cache->indexes[index].buckets, key);
    return (struct kube_index_walk){ .at = bucket ? list_first(&bucket->links) : NULL };
}

size_t kube_cache_count_by(const struct kube_cache *cache, int index, struct str key)
{
    const struct bucket *bucket;

    assert(index >= 0 && (unsigned)index < cache->index_count);
    bucket = map_get(&cache->indexes[index].buckets, key);
    return bucket ? bucket->count : 0;
}

const struct kube_object *kube_index_next(struct kube_index_walk *walk)
{
    const struct list *node = walk->at;
    const struct kube_link *link;

    if (!node)
        return NULL;
    link = list_item(node, const struct kube_link, in_bucket);
    walk->at = node->next == &link->bucket->links ? NULL : node->next;
    return link->entry->upper;
}
