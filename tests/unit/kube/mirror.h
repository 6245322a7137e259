/* mirror.h - for tests of the cache: small pods, and a listener that replays every change.
 *
 * A pod here is its name, uid, version and a word, its label "v", by which tests tell versions
 * apart; its node name is the word's first letter. */
#ifndef SLINC_TESTS_KUBE_MIRROR_H
#define SLINC_TESTS_KUBE_MIRROR_H

#include "base/buf.h"
#include "base/map.h"
#include "kube/cache.h"
#include "kube/kinds.h"

/* version 0: predicted, without uid when that is NULL. */
static inline const struct kube_object *make_pod(const char *name, const char *uid,
                                                 uint64_t version, const char *word)
{
    auto_buf struct buf text = { .max = 1000 };
    auto_json_doc struct json_doc *doc = NULL;
    const struct kube_object *object = NULL;

    buf_printf(&text, "{\"metadata\":{\"namespace\":\"n\",\"name\":\"%s\",\"uid\":\"%s\",", name,
               uid ? uid : "");
    if (version > 0)
        buf_printf(&text, "\"resourceVersion\":\"%llu\",", (unsigned long long)version);
    buf_printf(&text, "\"labels\":{\"v\":\"%s\"}},\"spec\":{\"nodeName\":\"%c\"}}", word, word[0]);
    assert_int_equal(json_parse(buf_str(&text), text.max, &doc, NULL), 0);
    assert_int_equal(version > 0
                         ? kube_object_decode(&kube_pod_kind, json_root(doc), &object, NULL)
                         : kube_object_predicted(&kube_pod_kind, json_root(doc), &object, NULL),
                     0);
    return object;
}

/* What a write of ours will make of a pod. */
static inline struct json_doc *make_patch(const char *word)
{
    auto_buf struct buf text = { .max = 1000 };
    struct json_doc *doc = NULL;

    buf_printf(&text, "{\"metadata\":{\"labels\":{\"v\":\"%s\"}},\"spec\":{\"nodeName\":\"%c\"}}",
               word, word[0]);
    assert_int_equal(json_parse(buf_str(&text), text.max, &doc, NULL), 0);
    return doc;
}

static inline const char *word_of(const struct kube_object *object)
{
    return object ? kube_pairs_get(&object->labels, "v", NULL).at : "-";
}

struct mirror {
    struct kube_cache *cache;
    struct map objects; /* what the changes add up to */
    struct buf log;     /* "name:old>next " per change */
    unsigned changes;
};

static inline void mirror_free_object(void *object)
{
    kube_object_unref(object);
}

static inline void mirror_change(void *context, const struct kube_object *old,
                                 const struct kube_object *next)
{
    struct mirror *mirror = context;
    const struct kube_object *any = next ? next : old;

    assert_non_null(any);
    assert_ptr_equal(map_get(&mirror->objects, str_of(any->name)), old);
    assert_ptr_not_equal(old, next);
    /* A listener that looks finds what it is told. */
    assert_ptr_equal(kube_cache_get(mirror->cache, any->ns, any->name), next);
    mirror->changes++;
    buf_printf(&mirror->log, "%s:%s>%s ", any->name, word_of(old), word_of(next));
    if (next)
        assert_int_equal(
            map_put(&mirror->objects, str_of(next->name), (void *)kube_object_ref(next), NULL), 0);
    else
        assert_true(map_remove(&mirror->objects, str_of(old->name)));
}

static inline void mirror_init(struct mirror *mirror, struct kube_cache *cache)
{
    struct map_options options = { .max = 10000, .free_value = mirror_free_object };

    *mirror = (struct mirror){ .cache = cache };
    map_init(&mirror->objects, &options);
    buf_init(&mirror->log, 1 << 24);
    kube_cache_listen(cache, mirror_change, mirror);
}

static inline void mirror_done(struct mirror *mirror)
{
    map_done(&mirror->objects);
    buf_done(&mirror->log);
}

/* The changes since the last call. */
#define assert_told(mirror, want)                                                                  \
    do {                                                                                           \
        assert_string_equal(buf_text(&(mirror)->log), want);                                       \
        buf_clear(&(mirror)->log);                                                                 \
    } while (0)

static inline void keys_by_node(const struct kube_object *object, kube_index_emit emit,
                                void *context)
{
    emit(context, str_of(kube_pod_of(object)->node_name));
}

/* The changes replayed, a walk and a look-up all give the same; so does the index by node. */
static inline void mirror_check(const struct mirror *mirror, int index)
{
    struct kube_cache_walk walk = kube_cache_walk(mirror->cache);
    const struct kube_object *object;
    size_t walked = 0, indexed = 0;

    while ((object = kube_cache_next(&walk))) {
        walked++;
        assert_ptr_equal(map_get(&mirror->objects, str_of(object->name)), object);
        assert_ptr_equal(kube_cache_get(mirror->cache, object->ns, object->name), object);
    }
    assert_int_equal(walked, mirror->objects.count);
    assert_int_equal(walked, kube_cache_count(mirror->cache));
    for (char node = 'a'; node <= 'z'; node++) {
        struct kube_index_walk at = kube_cache_by(mirror->cache, index, (struct str){ &node, 1 });

        while ((object = kube_index_next(&at))) {
            indexed++;
            assert_int_equal(kube_pod_of(object)->node_name[0], node);
            assert_ptr_equal(map_get(&mirror->objects, str_of(object->name)), object);
        }
    }
    assert_int_equal(indexed, walked);
}

#endif
