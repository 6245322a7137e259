/* overlay_rig.h - a cache of pods with a mirror, and our own writes over it; shared by the tests of
 * the overlay, most of which are about the one pod "a" of the namespace "n". */
#ifndef SLINC_TESTS_KUBE_OVERLAY_RIG_H
#define SLINC_TESTS_KUBE_OVERLAY_RIG_H

#include "mirror.h"

struct world {
    struct clock clock;
    struct kube_cache *cache;
    struct mirror mirror;
    int by_node;
};

static inline void world_init(struct world *world)
{
    clock_init_virtual(&world->clock, 0);
    world->cache = kube_cache_new(&kube_pod_kind, &world->clock);
    world->by_node = kube_cache_add_index(world->cache, keys_by_node);
    mirror_init(&world->mirror, world->cache);
}

static inline void world_done(struct world *world)
{
    mirror_check(&world->mirror, world->by_node);
    kube_cache_free(world->cache);
    mirror_done(&world->mirror);
}

static inline int world_up(void **state)
{
    static struct world world;

    world_init(&world);
    *state = &world;
    return 0;
}

static inline int world_down(void **state)
{
    world_done(*state);
    return 0;
}

/* ---- what the watch shows ---- */

static inline void see(struct world *world, const char *uid, uint64_t version, const char *word)
{
    const struct kube_object *object = make_pod("a", uid, version, word);

    kube_cache_seen(world->cache, object);
    kube_object_unref(object);
}

static inline void see_gone(struct world *world, uint64_t version)
{
    kube_cache_seen_gone(world->cache, "n", "a", version);
}

/* ---- what we write ---- */

static inline struct kube_overlay *lay_create(struct world *world, const char *word)
{
    const struct kube_object *object = make_pod("a", NULL, 0, word);
    struct kube_overlay *overlay = kube_overlay_lay(world->cache, "n", "a", object);

    kube_object_unref(object);
    return overlay;
}

static inline struct kube_overlay *lay_patch(struct world *world, const char *patch)
{
    struct json_doc *doc = NULL;

    assert_int_equal(json_parse(str_of(patch), 1000, &doc, NULL), 0);
    return kube_overlay_patch(world->cache, "n", "a", doc);
}

/* A create when there is no uid. */
static inline struct kube_overlay *lay(struct world *world, const char *uid, const char *word)
{
    if (!uid)
        return lay_create(world, word);
    return kube_overlay_patch(world->cache, "n", "a", make_patch(word));
}

static inline struct kube_overlay *lay_deletion(struct world *world)
{
    return kube_overlay_lay(world->cache, "n", "a", NULL);
}

static inline void done(struct kube_overlay *overlay, const char *uid, uint64_t version,
                        const char *word)
{
    const struct kube_object *object = make_pod("a", uid, version, word);

    kube_overlay_done(overlay, object, version);
    kube_object_unref(object);
}

/* And answered, without a version. */
static inline void write_deletion(struct world *world)
{
    kube_overlay_done(lay_deletion(world), NULL, 0);
}

/* ---- doubts, and reads that settle them ---- */

static inline bool doubted(struct world *world)
{
    const char *ns, *name;

    if (!kube_cache_doubt(world->cache, &ns, &name))
        return false;
    assert_string_equal(ns, "n");
    assert_string_equal(name, "a");
    return true;
}

/* After its time, and not a moment earlier. */
static inline void come_to_doubt(struct world *world)
{
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US - 1);
    assert_false(doubted(world));
    clock_advance_us(&world->clock, 1);
    assert_true(doubted(world));
}

static inline void settle(struct world *world, const char *uid, uint64_t version, const char *word)
{
    const struct kube_object *object = make_pod("a", uid, version, word);

    kube_cache_settle_read(world->cache, "n", "a", object, INT64_MAX);
    kube_object_unref(object);
}

static inline void settle_gone(struct world *world)
{
    kube_cache_settle_read(world->cache, "n", "a", NULL, INT64_MAX);
}

/* Nothing is left over the lower view: no doubt is ever raised again. */
static inline void assert_settled(struct world *world)
{
    clock_advance_us(&world->clock, INT64_C(10) * KUBE_OVERLAY_DOUBT_US);
    assert_false(doubted(world));
}

/* The word that readers see; "-" for none. */
#define assert_shown(world, want)                                                                  \
    assert_string_equal(word_of(kube_cache_get((world)->cache, "n", "a")), want)

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_up, world_down)

#endif
