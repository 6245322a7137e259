/* test_cache.c - the lower view: what is seen is told once, found, walked and indexed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kube/cache_private.h"
#include "mirror.h"

#include <stdio.h>

struct world {
    struct clock clock;
    struct kube_cache *cache;
    struct mirror mirror;
    int by_node;
};

static int set_up(void **state)
{
    static struct world world;

    clock_init_virtual(&world.clock, 0);
    world.cache = kube_cache_new(&kube_pod_kind, &world.clock);
    world.by_node = kube_cache_add_index(world.cache, keys_by_node);
    mirror_init(&world.mirror, world.cache);
    *state = &world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    mirror_check(&world->mirror, world->by_node);
    kube_cache_free(world->cache);
    mirror_done(&world->mirror);
    return 0;
}

static void see(struct world *world, const char *name, const char *uid, uint64_t version,
                const char *word)
{
    const struct kube_object *object = make_pod(name, uid, version, word);

    kube_cache_seen(world->cache, object);
    kube_object_unref(object);
}

static void walk(const struct world *world, struct buf *out)
{
    struct kube_cache_walk at = kube_cache_walk(world->cache);
    const struct kube_object *object;

    while ((object = kube_cache_next(&at)))
        buf_printf(out, "%s=%s ", object->name, word_of(object));
}

static void assert_walk(const struct world *world, const char *want)
{
    auto_buf struct buf out = { .max = 10000 };

    walk(world, &out);
    assert_string_equal(buf_text(&out), want);
}

static void what_is_seen_is_told_and_found(void **state)
{
    struct world *world = *state;

    assert_ptr_equal(kube_cache_kind(world->cache), &kube_pod_kind);
    see(world, "a", "u1", 1, "x");
    see(world, "b", "u2", 2, "y");
    see(world, "a", "u1", 3, "z");
    kube_cache_seen_gone(world->cache, "n", "b", 4);
    assert_told(&world->mirror, "a:->x b:->y a:x>z b:y>- ");
    assert_string_equal(word_of(kube_cache_get(world->cache, "n", "a")), "z");
    assert_null(kube_cache_get(world->cache, "n", "b"));
    assert_null(kube_cache_get(world->cache, "other", "a"));
    assert_null(kube_cache_get(world->cache, NULL, "a"));
    assert_null(kube_cache_get(world->cache, "na", ""));
    assert_int_equal(kube_cache_count(world->cache), 1);
}

static void the_same_or_an_older_version_is_not_told(void **state)
{
    struct world *world = *state;

    see(world, "a", "u1", 5, "x");
    buf_clear(&world->mirror.log);
    see(world, "a", "u1", 5, "same");
    see(world, "a", "u1", 4, "older");
    kube_cache_seen_gone(world->cache, "n", "a", 4);
    kube_cache_seen_gone(world->cache, "n", "unknown", 9);
    assert_told(&world->mirror, "");
    assert_string_equal(word_of(kube_cache_get(world->cache, "n", "a")), "x");
}

static void versions_that_are_no_numbers_go_by_order(void **state)
{
    struct world *world = *state;
    const char *const versions[] = { "b", "a", "a" };

    for (size_t i = 0; i < 3; i++) {
        auto_json_doc struct json_doc *doc = NULL;
        const struct kube_object *object = NULL;
        char text[200];

        snprintf(text, sizeof(text),
                 "{\"metadata\":{\"namespace\":\"n\",\"name\":\"a\",\"uid\":\"u\","
                 "\"resourceVersion\":\"%s\",\"labels\":{\"v\":\"%zu\"}}}",
                 versions[i], i);
        assert_int_equal(json_parse(str_of(text), 1000, &doc, NULL), 0);
        assert_int_equal(kube_object_decode(&kube_pod_kind, json_root(doc), &object, NULL), 0);
        kube_cache_seen(world->cache, object);
        kube_object_unref(object);
    }
    assert_told(&world->mirror, "a:->0 a:0>1 ");
    kube_cache_seen_gone(world->cache, "n", "a", 0);
    assert_told(&world->mirror, "a:1>- ");
}

static void another_uid_is_another_object(void **state)
{
    struct world *world = *state;

    see(world, "a", "u1", 1, "x");
    see(world, "b", "u9", 2, "y");
    see(world, "a", "u2", 3, "z");
    assert_told(&world->mirror, "a:->x b:->y a:x>- a:->z ");
    assert_walk(world, "b=y a=z ");
}

static void a_walk_is_in_order_of_insertion(void **state)
{
    struct world *world = *state;

    see(world, "c", "u1", 1, "x");
    see(world, "a", "u2", 2, "x");
    see(world, "b", "u3", 3, "x");
    see(world, "a", "u2", 4, "y");
    assert_walk(world, "c=x a=y b=x ");
    kube_cache_seen_gone(world->cache, "n", "c", 5);
    see(world, "c", "u4", 6, "z");
    assert_walk(world, "a=y b=x c=z ");
}

static void a_relist_takes_away_what_it_did_not_show(void **state)
{
    struct world *world = *state;

    assert_false(kube_cache_is_synced(world->cache));
    kube_cache_relist_begin(world->cache);
    see(world, "a", "u1", 1, "x");
    see(world, "b", "u2", 2, "x");
    see(world, "c", "u3", 3, "x");
    assert_false(kube_cache_is_synced(world->cache));
    kube_cache_relist_end(world->cache, 5);
    assert_true(kube_cache_is_synced(world->cache));
    buf_clear(&world->mirror.log);

    kube_cache_relist_begin(world->cache); /* this one breaks off */
    see(world, "b", "u2", 2, "x");
    kube_cache_relist_begin(world->cache);
    see(world, "a", "u1", 1, "x");
    see(world, "c", "u3", 7, "y");
    see(world, "d", "u4", 8, "x");
    assert_told(&world->mirror, "c:x>y d:->x ");
    kube_cache_relist_end(world->cache, 9);
    assert_told(&world->mirror, "b:x>- ");
}

static void a_list_is_the_truth_even_when_versions_went_back(void **state)
{
    struct world *world = *state;

    see(world, "a", "u1", 100, "x");
    see(world, "b", "u2", 101, "x");
    buf_clear(&world->mirror.log);
    kube_cache_relist_begin(world->cache);
    see(world, "a", "u1", 50, "restored");
    kube_cache_relist_end(world->cache, 60);
    assert_told(&world->mirror, "a:x>restored b:x>- ");
    see(world, "a", "u1", 61, "y");
    assert_told(&world->mirror, "a:restored>y ");
}

static void what_could_not_be_decoded_stays(void **state)
{
    struct world *world = *state;

    see(world, "a", "u1", 1, "x");
    see(world, "b", "u2", 2, "x");
    buf_clear(&world->mirror.log);
    kube_cache_relist_begin(world->cache);
    kube_cache_keep(world->cache, "n", "a");
    kube_cache_keep(world->cache, "n", "never seen");
    kube_cache_relist_end(world->cache, 3);
    assert_told(&world->mirror, "b:x>- ");
}

/* ---- indexes ---- */

static void keys_by_letters(const struct kube_object *object, kube_index_emit emit, void *context)
{
    for (const char *at = word_of(object); *at; at++)
        emit(context, (struct str){ at, 1 });
}

static void assert_by(const struct kube_cache *cache, int index, const char *key, const char *want)
{
    struct kube_index_walk at = kube_cache_by(cache, index, str_of(key));
    auto_buf struct buf out = { .max = 1000 };
    const struct kube_object *object;

    while ((object = kube_index_next(&at)))
        buf_printf(&out, "%s ", object->name);
    assert_string_equal(buf_text(&out), want);
}

static void an_object_is_under_each_of_its_keys_once(void **state)
{
    struct clock clock;
    struct kube_cache *cache;
    struct world world = { 0 };
    int letters, node;

    clock_init_virtual(&clock, 0);
    cache = world.cache = kube_cache_new(&kube_pod_kind, &clock);
    node = kube_cache_add_index(cache, keys_by_node);
    letters = kube_cache_add_index(cache, keys_by_letters);

    see(&world, "a", "u1", 1, "xyx");
    see(&world, "b", "u2", 2, "yz");
    assert_by(cache, letters, "x", "a ");
    assert_by(cache, letters, "y", "a b ");
    assert_by(cache, letters, "z", "b ");
    assert_by(cache, letters, "", "");
    assert_by(cache, node, "x", "a ");

    see(&world, "a", "u1", 3, "z");
    assert_by(cache, letters, "x", "");
    assert_by(cache, letters, "y", "b ");
    assert_by(cache, letters, "z", "b a ");
    see(&world, "b", "u2", 4, "w");
    assert_by(cache, letters, "z", "a ");
    kube_cache_seen_gone(cache, "n", "a", 5);
    assert_by(cache, letters, "z", "");
    assert_by(cache, node, "z", "");
    kube_cache_free(cache);
}

static void every_listener_is_told(void **state)
{
    struct world *world = *state;
    struct mirror second;

    mirror_init(&second, world->cache);
    see(world, "a", "u1", 1, "x");
    kube_cache_seen_gone(world->cache, "n", "a", 2);
    assert_told(&world->mirror, "a:->x a:x>- ");
    assert_told(&second, "a:->x a:x>- ");
    mirror_done(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_seen_is_told_and_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_same_or_an_older_version_is_not_told, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(versions_that_are_no_numbers_go_by_order, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(another_uid_is_another_object, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_walk_is_in_order_of_insertion, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_relist_takes_away_what_it_did_not_show, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_list_is_the_truth_even_when_versions_went_back, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_could_not_be_decoded_stays, set_up, tear_down),
        cmocka_unit_test(an_object_is_under_each_of_its_keys_once),
        cmocka_unit_test_setup_teardown(every_listener_is_told, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("cache", tests, NULL, NULL);
}
