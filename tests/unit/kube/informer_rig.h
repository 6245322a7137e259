/* informer_rig.h - an informer of pods on virtual time, a scripted API server, and a mirror of what
 * the cache told. */
#ifndef SLINC_TESTS_KUBE_INFORMER_RIG_H
#define SLINC_TESTS_KUBE_INFORMER_RIG_H

#include "fake_transport.h"
#include "kube/informer.h"
#include "mirror.h"

#define SECOND INT64_C(1000000)

struct rig {
    struct clock clock;
    struct loop *loop;
    struct fake_transport *fake;
    struct kube_client *client;
    struct rand rand;
    struct kube_cache *cache;
    struct mirror mirror;
    int by_node;
    struct kube_informer *informer; /* none before rig_start */
};

static inline int rig_up(void **state)
{
    static struct rig rig;

    rig = (struct rig){ 0 };
    clock_init_virtual(&rig.clock, 0);
    rig.loop = loop_new_virtual(&rig.clock);
    rig.fake = fake_transport_new(rig.loop);
    rig.client = kube_client_new(rig.loop, fake_http(rig.fake));
    rand_init(&rig.rand, 1);
    rig.cache = kube_cache_new(&kube_pod_kind, &rig.clock);
    rig.by_node = kube_cache_add_index(rig.cache, keys_by_node);
    mirror_init(&rig.mirror, rig.cache);
    *state = &rig;
    return 0;
}

static inline int rig_down(void **state)
{
    struct rig *rig = *state;

    mirror_check(&rig->mirror, rig->by_node);
    kube_informer_free(rig->informer);
    kube_cache_free(rig->cache);
    mirror_done(&rig->mirror);
    kube_client_free(rig->client);
    fake_transport_free(rig->fake);
    loop_free(rig->loop);
    return 0;
}

static inline void rig_start(struct rig *rig, const struct kube_informer_options *options)
{
    rig->informer = kube_informer_new(rig->client, rig->cache, &rig->rand, options);
    kube_informer_start(rig->informer);
}

/* ---- what the server says ---- */

#define POD_IN(ns, name, version, word)                                                            \
    "{\"metadata\":{\"namespace\":\"" ns "\",\"name\":\"" name "\",\"uid\":\"u-" name              \
    "\",\"resourceVersion\":\"" version "\",\"labels\":{\"v\":\"" word                             \
    "\"}},\"spec\":{\"nodeName\":\"x\"}}"
#define POD(name, version, word) POD_IN("n", name, version, word)
#define LIST(version, items)                                                                       \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" version "\"},\"items\":[" items   \
    "]}"
#define PAGE(version, token, items)                                                                \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" version                           \
    "\",\"continue\":\"" token "\"},\"items\":[" items "]}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define BOOKMARK(version)                                                                          \
    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"" version "\"}}}\n"
#define ERROR(code)                                                                                \
    "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":" code                           \
    ",\"message\":\"of the server\"}}\n"

/* A list, or a watch: its first lines, or NULL for none yet. */
static inline void rig_answer(struct rig *rig, const char *path, const char *body)
{
    fake_answer(rig->fake, "GET", path, (struct fake_answer){ .status = 200, .body = body });
}

static inline void rig_feed(struct rig *rig, const char *path, const char *lines)
{
    assert_true(fake_stream_feed(rig->fake, path, lines));
    fake_run_for(rig->fake, 1000);
}

/* ---- what it was asked ---- */

static inline bool rig_path_has(const struct fake_sent *sent, const char *part)
{
    return strstr(sent->path, part) != NULL;
}

static inline unsigned rig_lists_sent(const struct rig *rig)
{
    unsigned lists = 0;

    for (size_t i = 0; i < fake_sent_count(rig->fake); i++)
        lists += rig_path_has(fake_sent(rig->fake, i), "limit=");
    return lists;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_up, rig_down)

#endif
