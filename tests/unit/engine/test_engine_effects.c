/* test_engine_effects.c - deletions and binds: foretold when they are sent, true when the server
 * says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "world.h"

/* ---- deletions ---- */

static int plan_delete_map(struct world *world, struct str key, struct plan *plan, struct err *err)
{
    const struct kube_object *map = kube_cache_get(world->cache, "a", "m");

    if (map && !map->deleted_us)
        plan_delete(plan, world->cache, &kube_configmaps, "a", "m", map->uid, NULL);
    return 0;
}

static void a_deletion_is_foretold_as_under_way_and_only_the_server_says_gone(void **state)
{
    struct world world;

    world_begin_with_map(&world);
    world_plan_once(&world, plan_delete_map);
    fake_answer(world.fake, "DELETE", MAPS "/m",
                (struct fake_answer){ .status = 200,
                                      .body = "{\"kind\":\"Status\",\"status\":\"Success\"}",
                                      .delay_us = 100 * MS });
    world_run(&world, 50 * MS);
    assert_non_null(kube_cache_get(world.cache, "a", "m"));
    assert_true(kube_cache_get(world.cache, "a", "m")->deleted_us > 0);
    world_run(&world, 100 * MS);
    assert_null(kube_cache_get(world.cache, "a", "m"));
    assert_int_equal(fake_sent_count(world.fake), 1);
    world_tear_down(&world);
}

static void a_removal_answered_by_the_object_as_it_was_is_known_at_once(void **state)
{
    struct world world;

    world_begin_with_map(&world);
    world_plan_once(&world, plan_delete_map);
    world_ok(&world, "DELETE", MAPS "/m", world_map_text("m", 11, "old"), 0);
    world_run(&world, SECOND);
    assert_null(kube_cache_get(world.cache, "a", "m"));
    assert_int_equal(fake_sent_count(world.fake), 1);
    world_tear_down(&world);
}

static void deleting_what_is_gone_is_fine(void **state)
{
    struct world world;

    world_begin_with_map(&world);
    world_plan_once(&world, plan_delete_map);
    fake_status(world.fake, "DELETE", MAPS "/m", 404, "NotFound", "gone");
    world_run(&world, SECOND);
    assert_int_equal(fake_sent_count(world.fake), 1);
    assert_null(kube_cache_get(world.cache, "a", "m"));
    assert_true(engine_is_idle(world.engine));
    world_tear_down(&world);
}

static void a_deletion_whose_answer_cannot_be_read_is_not_taken_for_gone(void **state)
{
    struct world world;

    world_begin_with_map(&world);
    world_plan_once(&world, plan_delete_map);
    world_ok(&world, "DELETE", MAPS "/m",
             "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"m\",\"finalizers\":[\"f\"]}}", 0);
    world_run(&world, SECOND);
    assert_int_equal(fake_sent_count(world.fake), 1);
    assert_non_null(kube_cache_get(world.cache, "a", "m"));
    assert_true(kube_cache_get(world.cache, "a", "m")->deleted_us > 0);
    kube_cache_seen_gone(world.cache, "a", "m", 13);
    world_run(&world, 60 * SECOND);
    assert_null(kube_cache_get(world.cache, "a", "m"));
    assert_int_equal(fake_sent_count(world.fake), 1);
    world_tear_down(&world);
}

static void an_object_that_waits_for_its_finalizers_is_not_gone(void **state)
{
    struct world world;

    world_begin_with_map(&world);
    world_plan_once(&world, plan_delete_map);
    world_ok(&world, "DELETE", MAPS "/m",
             "{\"kind\":\"ConfigMap\",\"metadata\":{\"namespace\":\"a\",\"name\":\"m\","
             "\"uid\":\"u-m\",\"resourceVersion\":\"12\",\"finalizers\":[\"f\"],"
             "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"},\"data\":{\"v\":\"old\"}}",
             0);
    world_run(&world, SECOND);
    assert_int_equal(fake_sent_count(world.fake), 1);
    assert_non_null(kube_cache_get(world.cache, "a", "m"));
    assert_true(kube_cache_get(world.cache, "a", "m")->deleted_us > 0);
    world_tear_down(&world);
}

static int plan_delete_twice(struct world *world, struct str key, struct plan *plan,
                             struct err *err)
{
    const struct kube_object *map = kube_cache_get(world->cache, "a", "m");

    if (!str_is(key, "a/x") || world->plans > 3 || !map)
        return 0;
    plan_delete(plan, world->cache, &kube_configmaps, "a", "m", map->uid, NULL);
    plan_next_stage(plan);
    plan_delete(plan, world->cache, &kube_configmaps, "a", "m", map->uid, NULL);
    return 0;
}

static void deleting_what_is_being_deleted_changes_nothing(void **state)
{
    struct world world;

    world_begin_with_map(&world);
    world_plan_once(&world, plan_delete_twice);
    fake_answer(world.fake, "DELETE", MAPS "/m",
                (struct fake_answer){ .status = 200,
                                      .body = "{\"kind\":\"Status\",\"status\":\"Success\"}",
                                      .times = 2 });
    world_run(&world, SECOND);
    assert_int_equal(fake_sent_count(world.fake), 2);
    assert_null(kube_cache_get(world.cache, "a", "m"));
    world_tear_down(&world);
}

/* ---- binds ---- */

static int plan_bind_pod(struct world *world, struct str key, struct plan *plan, struct err *err)
{
    struct kube_cache *pods = world->more;
    const struct kube_object *pod = kube_cache_get(pods, "a", "p");

    if (pod && !kube_pod_of(pod)->node_name[0])
        plan_bind(plan, pods, "a", "p", pod->uid, "n1", NULL);
    return 0;
}

#define POD "/api/v1/namespaces/a/pods/p"

static const char *pod_text(unsigned version, const char *node)
{
    static char text[200];

    snprintf(text, sizeof(text),
             "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"a\",\"name\":\"p\","
             "\"uid\":\"u\",\"resourceVersion\":\"%u\"},\"spec\":{\"nodeName\":\"%s\"}}",
             version, node);
    return text;
}

static void see_pod(struct world *world, unsigned version, const char *node)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct kube_object *pod = NULL;

    assert_int_equal(json_parse(str_of(pod_text(version, node)), 1000, &doc, NULL), 0);
    assert_int_equal(kube_object_decode(&kube_pod_kind, json_root(doc), &pod, NULL), 0);
    kube_cache_seen(world->more, pod);
    kube_object_unref(pod);
}

static const char *node_of(const struct world *world)
{
    const struct kube_object *pod = kube_cache_get(world->more, "a", "p");

    return pod ? kube_pod_of(pod)->node_name : "no pod";
}

/* A pod is bound to n1; the answer comes after 50 ms and shows no pod. */
static void begin_with_bind(struct world *world)
{
    world_begin(world, NULL);
    world->more = kube_cache_new(&kube_pod_kind, &world->clock);
    see_pod(world, 11, "");
    fake_answer(world->fake, "POST", POD "/binding",
                (struct fake_answer){ .status = 201,
                                      .body = "{\"kind\":\"Status\",\"status\":\"Success\"}",
                                      .delay_us = 50 * MS });
    world_plan_once(world, plan_bind_pod);
}

static void a_bind_counts_from_the_beginning_and_is_not_read(void **state)
{
    struct world world;

    begin_with_bind(&world);
    for (int i = 0; i < 20; i++) { /* before, during and after the answer */
        world_run(&world, 5 * MS);
        assert_string_equal(node_of(&world), "n1");
    }
    assert_true(engine_is_idle(world.engine));
    engine_enqueue(&world.controller, STR("a/x"));
    see_pod(&world, 12, ""); /* somebody's write from before the bind */
    world_run(&world, SECOND);
    assert_string_equal(node_of(&world), "n1");
    see_pod(&world, 13, "n1");
    world_run(&world, 60 * SECOND);
    assert_int_equal(kube_cache_get(world.more, "a", "p")->version_number, 13);
    assert_int_equal(fake_sent_count(world.fake), 1);
    world_tear_down(&world);
}

static void a_bind_may_be_seen_before_its_answer(void **state)
{
    struct world world;

    begin_with_bind(&world);
    world_run(&world, 20 * MS);
    see_pod(&world, 12, "n1");
    world_run(&world, 60 * SECOND);
    assert_string_equal(node_of(&world), "n1");
    assert_int_equal(kube_cache_get(world.more, "a", "p")->version_number, 12);
    assert_int_equal(fake_sent_count(world.fake), 1);
    world_tear_down(&world);
}

static void a_pod_deleted_after_its_bind_is_gone(void **state)
{
    struct world world;

    for (int64_t after_ms = 20; after_ms <= 100; after_ms += 80) { /* the bind is answered at 50 */
        begin_with_bind(&world);
        world_run(&world, after_ms * MS);
        kube_cache_seen_gone(world.more, "a", "p", 13);
        assert_string_equal(node_of(&world), "no pod");
        world_run(&world, 60 * SECOND);
        assert_string_equal(node_of(&world), "no pod");
        assert_int_equal(fake_sent_count(world.fake), 1);
        world_tear_down(&world);
    }
}

static void a_pod_that_is_seen_on_another_node_is_there(void **state)
{
    struct world world;

    for (int64_t after_ms = 20; after_ms <= 100; after_ms += 80) {
        begin_with_bind(&world);
        world_run(&world, after_ms * MS);
        see_pod(&world, 12, "n2");
        world_run(&world, 60 * SECOND);
        assert_string_equal(node_of(&world), "n2");
        assert_int_equal(fake_sent_count(world.fake), 1);
        world_tear_down(&world);
    }
}

static void a_bind_that_the_watch_does_not_show_is_read_after_a_while(void **state)
{
    struct world world;

    begin_with_bind(&world);
    world_run(&world, 5 * SECOND);
    assert_int_equal(fake_sent_count(world.fake), 1);
    assert_string_equal(node_of(&world), "n1");
    world_ok(&world, "GET", POD, pod_text(12, "n3"), 0);
    world_run(&world, 1500 * MS);
    assert_int_equal(fake_sent_count(world.fake), 2);
    assert_string_equal(node_of(&world), "n3");
    see_pod(&world, 12, "n3");
    world_run(&world, 60 * SECOND);
    assert_int_equal(fake_sent_count(world.fake), 2);
    world_tear_down(&world);
}

static void a_bind_that_ended_unclearly_is_read_at_once(void **state)
{
    struct world world;

    world_begin(&world, NULL);
    world.more = kube_cache_new(&kube_pod_kind, &world.clock);
    see_pod(&world, 11, "");
    fake_answer(world.fake, "POST", POD "/binding", (struct fake_answer){ .class = ERR_UNKNOWN });
    world_ok(&world, "GET", POD, pod_text(12, "n1"), 0);
    world_plan_once(&world, plan_bind_pod);
    world_run(&world, SECOND);
    assert_int_equal(fake_sent_count(world.fake), 2);
    assert_int_equal(kube_cache_get(world.more, "a", "p")->version_number, 12);
    world_tear_down(&world);
}

static size_t posts_sent(const struct world *world)
{
    size_t posts = 0;

    for (size_t i = 0; i < fake_sent_count(world->fake); i++)
        posts += strcmp(fake_sent(world->fake, i)->method, "POST") == 0;
    return posts;
}

/* A pod without a node, whose first Binding ends unclearly after a while. */
static void begin_with_unclear_bind(struct world *world, const struct engine_options *options,
                                    int64_t after_us)
{
    world_begin(world, options);
    world->more = kube_cache_new(&kube_pod_kind, &world->clock);
    see_pod(world, 11, "");
    fake_answer(world->fake, "POST", POD "/binding",
                (struct fake_answer){ .class = ERR_UNKNOWN, .delay_us = after_us });
    world->plans = 0;
}

/* The first may still come: until the second is answered nobody else gets its place. */
static void a_bind_that_no_read_shows_is_sent_again_before_others_are_planned(void **state)
{
    static const struct fake_answer seconds[] = {
        { .status = 201, .body = "{\"kind\":\"Status\"}", .delay_us = 50 * MS },
        { .status = 409, .body = "{\"kind\":\"Status\",\"reason\":\"Conflict\"}" },
        { .status = 503, .body = "{\"kind\":\"Status\"}" },
    };

    for (size_t i = 0; i < 2 * sizeof(seconds) / sizeof(seconds[0]); i++) {
        struct world world;
        int64_t after_us = i % 2 == 0 ? 0 : 6 * SECOND; /* a plan gets too old to be begun in 5 */

        begin_with_unclear_bind(&world, NULL, after_us);
        world_ok(&world, "GET", POD, pod_text(11, ""), 0);
        if (after_us > 0) /* a doubt of 5 s is read, too */
            world_ok(&world, "GET", POD, pod_text(11, ""), 0);
        fake_answer(world.fake, "POST", POD "/binding", seconds[i / 2]);
        fake_answer(world.fake, "GET", POD,
                    (struct fake_answer){
                        .status = 200, .body = pod_text(12, "n1"), .times = FAKE_ALWAYS });
        world_plan_once(&world, plan_bind_pod);
        for (int64_t passed_us = 0; passed_us < after_us + SECOND; passed_us += 5 * MS) {
            world_run(&world, 5 * MS);
            assert_string_equal(node_of(&world), "n1");
        }
        assert_int_equal(posts_sent(&world), 2);
        world_tear_down(&world);
    }
}

/* In a lane for one call the first is answered when the second has waited too long. */
static int plan_two_binds(struct world *world, struct str key, struct plan *plan, struct err *err)
{
    if (world->plans > 1)
        return 0;
    plan_bind(plan, world->more, "a", "p", "u", "n1", NULL);
    plan_bind(plan, world->more, "a", "q", "u", "n2", NULL);
    return 0;
}

static void a_bind_in_doubt_is_sent_again_though_the_rest_of_its_plan_is_too_old(void **state)
{
    struct world world;

    begin_with_unclear_bind(&world, &(struct engine_options){ .max_in_flight = 1 }, 6 * SECOND);
    fake_answer(
        world.fake, "GET", POD,
        (struct fake_answer){ .status = 200, .body = pod_text(11, ""), .times = FAKE_ALWAYS });
    fake_answer(world.fake, "POST", POD "/binding",
                (struct fake_answer){ .status = 201, .body = "{\"kind\":\"Status\"}" });
    world_plan_once(&world, plan_two_binds);
    for (int i = 0; i < 70; i++) {
        world_run(&world, 100 * MS);
        assert_string_equal(node_of(&world), "n1");
    }
    assert_int_equal(posts_sent(&world), 2);
    assert_true(engine_is_idle(world.engine));
    world_tear_down(&world);
}

static int plan_bind_or_create(struct world *world, struct str key, struct plan *plan,
                               struct err *err)
{
    if (str_is(key, "a/x"))
        return plan_bind_pod(world, key, plan, err);
    return world_plan_create(world, key, plan, err);
}

static void a_bind_in_doubt_is_sent_again_during_a_pause(void **state)
{
    struct world world;

    begin_with_unclear_bind(&world, NULL, 100 * MS);
    fake_answer(world.fake, "POST", MAPS,
                (struct fake_answer){ .status = 429, .retry_after_us = 8 * SECOND });
    world_ok(&world, "GET", POD, pod_text(11, ""), 0);
    fake_answer(world.fake, "POST", POD "/binding",
                (struct fake_answer){ .status = 201, .body = "{\"kind\":\"Status\"}" });
    world_plan_once(&world, plan_bind_or_create);
    engine_enqueue(&world.controller, STR("a/y"));
    for (int i = 0; i < 10; i++) {
        world_run(&world, 50 * MS);
        assert_string_equal(node_of(&world), "n1");
    }
    assert_int_equal(posts_sent(&world), 3);
    world_tear_down(&world);
}

static bool is_wanted_once(const void *basis)
{
    const struct world *world = basis;

    return fake_sent_count(world->fake) == 0;
}

static int plan_bind_once(struct world *world, struct str key, struct plan *plan, struct err *err)
{
    struct action *action;

    if (world->plans > 1)
        return 0;
    action = plan_bind(plan, world->more, "a", "p", "u", "n1", NULL);
    action->still_holds = is_wanted_once;
    action->basis = world;
    return 0;
}

static void a_bind_that_is_not_right_any_more_is_not_sent_again(void **state)
{
    struct world world;

    world_begin(&world, NULL);
    world.more = kube_cache_new(&kube_pod_kind, &world.clock);
    see_pod(&world, 11, "");
    fake_answer(world.fake, "POST", POD "/binding", (struct fake_answer){ .class = ERR_UNKNOWN });
    world_ok(&world, "GET", POD, pod_text(11, ""), 0);
    world.plans = 0;
    world_plan_once(&world, plan_bind_once);
    world_run(&world, SECOND);
    assert_string_equal(node_of(&world), "");
    assert_int_equal(fake_sent_count(world.fake), 2);
    world_tear_down(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deletion_is_foretold_as_under_way_and_only_the_server_says_gone),
        cmocka_unit_test(a_removal_answered_by_the_object_as_it_was_is_known_at_once),
        cmocka_unit_test(deleting_what_is_gone_is_fine),
        cmocka_unit_test(a_deletion_whose_answer_cannot_be_read_is_not_taken_for_gone),
        cmocka_unit_test(an_object_that_waits_for_its_finalizers_is_not_gone),
        cmocka_unit_test(deleting_what_is_being_deleted_changes_nothing),
        cmocka_unit_test(a_bind_counts_from_the_beginning_and_is_not_read),
        cmocka_unit_test(a_bind_may_be_seen_before_its_answer),
        cmocka_unit_test(a_pod_deleted_after_its_bind_is_gone),
        cmocka_unit_test(a_pod_that_is_seen_on_another_node_is_there),
        cmocka_unit_test(a_bind_that_the_watch_does_not_show_is_read_after_a_while),
        cmocka_unit_test(a_bind_that_ended_unclearly_is_read_at_once),
        cmocka_unit_test(a_bind_that_no_read_shows_is_sent_again_before_others_are_planned),
        cmocka_unit_test(a_bind_in_doubt_is_sent_again_though_the_rest_of_its_plan_is_too_old),
        cmocka_unit_test(a_bind_in_doubt_is_sent_again_during_a_pause),
        cmocka_unit_test(a_bind_that_is_not_right_any_more_is_not_sent_again),
    };

    return cmocka_run_group_tests_name("engine_effects", tests, NULL, NULL);
}
