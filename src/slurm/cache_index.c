/* cache_index.c - jobs by unit key and by node.
 *
 * A bucket holds the entries with one key, in the order in which they came to have it. Holds: a
 * bucket is never empty; an entry is at most once in a bucket; a change that leaves what the keys
 * are made from as it was touches nothing. */
#include "base/mem.h"
#include "codec/hostlist.h"
#include "slurm/cache_private.h"
#include "slurm/submit.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_BUCKETS = 1 << 24, HOSTLIST_ARENA = 64 << 20 };

struct bucket {
    struct list links;
    struct str key;
    char text[];
};

struct slurm_link {
    struct list in_bucket;
    struct slurm_link *next; /* of the same entry and index */
    struct bucket *bucket;
    struct slurm_entry *entry;
};

struct linking {
    struct slurm_cache *cache;
    struct slurm_entry *entry;
    enum slurm_index index;
};

static struct bucket *need_bucket(struct map *buckets, struct str key)
{
    struct bucket *bucket = map_get(buckets, key);

    if (bucket)
        return bucket;
    bucket = mem_alloc(sizeof(*bucket) + key.len + 1);
    if (key.len > 0)
        memcpy(bucket->text, key.at, key.len);
    bucket->key = (struct str){ bucket->text, key.len };
    list_init(&bucket->links);
    if (map_put(buckets, bucket->key, bucket, NULL) < 0) {
        fprintf(stderr, "slurm cache: more than %d keys in an index\n", MAX_BUCKETS);
        abort();
    }
    return bucket;
}

static void link_key(const struct linking *linking, struct str key)
{
    struct slurm_link **chain = &linking->entry->links[linking->index];
    struct bucket *bucket = need_bucket(&linking->cache->buckets[linking->index], key);
    struct slurm_link *link;

    /* The links of one entry are made in one go: had it this key already, it would be the last. */
    if (!list_is_empty(&bucket->links) &&
        list_item(bucket->links.prev, struct slurm_link, in_bucket)->entry == linking->entry)
        return;
    link = mem_alloc(sizeof(*link));
    *link = (struct slurm_link){ .next = *chain, .bucket = bucket, .entry = linking->entry };
    list_push_back(&bucket->links, &link->in_bucket);
    *chain = link;
}

static void unlink_all(struct map *buckets, struct slurm_link **chain)
{
    while (*chain) {
        struct slurm_link *link = *chain;
        struct bucket *bucket = link->bucket;

        *chain = link->next;
        list_remove(&link->in_bucket);
        mem_free(link);
        if (list_is_empty(&bucket->links)) {
            map_remove(buckets, bucket->key);
            mem_free(bucket);
        }
    }
}

/* ---- the indexes ---- */

static bool read_key(const struct linking *linking, const struct slurm_object *object,
                     struct buf *ret_text, struct slurm_key *ret_key)
{
    return slurm_submit_key(slurm_job_of(object), linking->cache->owner, ret_text) &&
           slurm_key_read(buf_str(ret_text), ret_key);
}

/* All jobs of a unit are found together, whatever their attempt. */
static void link_unit(const struct linking *linking, const struct slurm_object *object)
{
    auto_buf struct buf text;
    struct slurm_key key;

    buf_init(&text, SLURM_MAX_KEY);
    if (read_key(linking, object, &text, &key))
        link_key(linking, key.unit);
}

static void link_namespace(const struct linking *linking, const struct slurm_object *object)
{
    auto_buf struct buf text;
    struct slurm_key key;
    struct str ns, name;

    buf_init(&text, SLURM_MAX_KEY);
    if (!slurm_job_has_ended(&slurm_job_of(object)->state) &&
        read_key(linking, object, &text, &key) && str_cut(key.unit, '/', &ns, &name))
        link_key(linking, ns);
}

static bool same_unit(const struct slurm_object *old, const struct slurm_object *next)
{
    const struct slurm_job *a = slurm_job_of(old), *b = slurm_job_of(next);

    return strcmp(a->admin_comment, b->admin_comment) == 0 && strcmp(a->extra, b->extra) == 0 &&
           slurm_words_has(&a->flags, SLURM_JOB_EXTERNAL) ==
               slurm_words_has(&b->flags, SLURM_JOB_EXTERNAL);
}

static bool same_namespace(const struct slurm_object *old, const struct slurm_object *next)
{
    return same_unit(old, next) && slurm_job_has_ended(&slurm_job_of(old)->state) ==
                                       slurm_job_has_ended(&slurm_job_of(next)->state);
}

static void link_nodes(const struct linking *linking, const struct slurm_object *object)
{
    const struct slurm_job *job = slurm_job_of(object);
    const struct hostlist *list;
    auto_arena struct arena arena;
    struct hostlist_iter iter;
    struct str name;

    arena_init(&arena, HOSTLIST_ARENA);
    if (job->nodes[0] == '\0' || slurm_job_has_ended(&job->state) ||
        hostlist_parse(&arena, str_of(job->nodes), HOSTLIST_MAX_NAMES, &list, NULL) < 0)
        return;
    iter = hostlist_iter(list);
    while (hostlist_next(&iter, &name))
        link_key(linking, name);
}

static bool same_nodes(const struct slurm_object *old, const struct slurm_object *next)
{
    const struct slurm_job *a = slurm_job_of(old), *b = slurm_job_of(next);

    return strcmp(a->nodes, b->nodes) == 0 &&
           slurm_job_has_ended(&a->state) == slurm_job_has_ended(&b->state);
}

static const struct {
    const struct slurm_kind *kind;
    void (*link)(const struct linking *linking, const struct slurm_object *object);
    bool (*same)(const struct slurm_object *old, const struct slurm_object *next);
} indexes[SLURM_INDEXES] = {
    [SLURM_JOBS_BY_KEY] = { &slurm_job_kind, link_unit, same_unit },
    [SLURM_JOBS_BY_NODE] = { &slurm_job_kind, link_nodes, same_nodes },
    [SLURM_JOBS_BY_NAMESPACE] = { &slurm_job_kind, link_namespace, same_namespace },
};

void slurm_index_init(struct slurm_cache *cache)
{
    struct map_options options = { .max = MAX_BUCKETS, .borrow_keys = true };

    for (unsigned i = 0; i < SLURM_INDEXES; i++)
        map_init(&cache->buckets[i], &options);
}

void slurm_index_done(struct slurm_cache *cache)
{
    for (unsigned i = 0; i < SLURM_INDEXES; i++)
        map_done(&cache->buckets[i]);
}

void slurm_index_update(struct slurm_cache *cache, struct slurm_entry *entry,
                        const struct slurm_object *old, const struct slurm_object *next)
{
    for (unsigned i = 0; i < SLURM_INDEXES; i++) {
        struct linking linking = { cache, entry, (enum slurm_index)i };

        if (indexes[i].kind != cache->kind || (old && next && indexes[i].same(old, next)))
            continue;
        unlink_all(&cache->buckets[i], &entry->links[i]);
        if (next)
            indexes[i].link(&linking, next);
    }
}

/* ---- reading ---- */

struct slurm_index_walk slurm_cache_by(const struct slurm_cache *cache, enum slurm_index index,
                                       struct str key)
{
    const struct bucket *bucket = cache->synced ? map_get(&cache->buckets[index], key) : NULL;

    return (struct slurm_index_walk){ .at = bucket ? list_first(&bucket->links) : NULL };
}

const struct slurm_object *slurm_index_next(struct slurm_index_walk *walk)
{
    const struct list *node = walk->at;
    const struct slurm_link *link;

    if (!node)
        return NULL;
    link = list_item(node, const struct slurm_link, in_bucket);
    walk->at = node->next == &link->bucket->links ? NULL : node->next;
    return link->entry->object;
}
