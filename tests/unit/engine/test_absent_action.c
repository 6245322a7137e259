/* test_absent_action.c - a write that must not be done while an object exists waits for the API
 * server's word that there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/absent_action.h"
#include "world.h"

#define PODS           "/api/v1/namespaces/a/pods?labelSelector=app%3Da"
#define POD_OF(uid)    "{\"metadata\":{\"name\":\"p\",\"ownerReferences\":[{\"uid\":\"" uid "\"}]}}"
#define LIST_OF(items) "{\"kind\":\"PodList\",\"metadata\":{},\"items\":[" items "]}"

/* For a/x: m is to say "new", once m owns no pod. */
static int plan_patch_when_alone(struct world *world, struct str key, struct plan *plan,
                                 struct err *err)
{
    if (!str_is(key, "a/x") || str_is(STR("new"), world_value_of(world, "m")))
        return 0;
    plan_confirm_absent(plan, &kube_pods, kube_cache_get(world->cache, "a", "m"),
                        "labelSelector=app%3Da");
    plan_next_stage(plan);
    world_patch(world, plan, "m", "new");
    return 0;
}

static void begin(struct world *world)
{
    world_begin_with_map(world);
    world_plan_once(world, plan_patch_when_alone);
    world_ok(world, "PATCH", MAPS "/m", world_map_text("m", 12, "new"), 0);
}

static void pods_of_others_do_not_keep_the_write_back(void **state)
{
    struct world world;

    begin(&world);
    world_ok(&world, "GET", PODS, LIST_OF(POD_OF("u-other") ",{\"metadata\":{\"name\":\"free\"}}"),
             0);
    world_run(&world, 200 * MS);
    assert_int_equal(fake_sent_count(world.fake), 2);
    assert_string_equal(world_sent_path(&world, 1), MAPS "/m");
    assert_true(engine_is_idle(world.engine));
    world_tear_down(&world);
}

static void a_pod_that_no_cache_has_shown_keeps_the_write_back_until_it_is_gone(void **state)
{
    struct world world;

    begin(&world);
    world_ok(&world, "GET", PODS, LIST_OF(POD_OF("u-other") "," POD_OF("u-m")), 0);
    world_ok(&world, "GET", PODS, LIST_OF(""), 0);
    world_run(&world, 200 * MS);
    assert_int_equal(fake_sent_count(world.fake), 3);
    assert_string_equal(world_sent_path(&world, 1), PODS);
    assert_string_equal(world_sent_path(&world, 2), MAPS "/m");
    assert_int_equal(world.troubles, 0);
    world_tear_down(&world);
}

static void a_server_that_does_not_answer_keeps_the_write_back(void **state)
{
    struct world world;

    begin(&world);
    fake_status(world.fake, "GET", PODS, 403, "Forbidden", "no rights");
    fake_status(world.fake, "GET", PODS, 500, "InternalError", "no");
    world_ok(&world, "GET", PODS, LIST_OF(""), 0);
    world_run(&world, SECOND);
    assert_int_equal(fake_sent_count(world.fake), 4);
    assert_string_equal(world_sent_path(&world, 2), PODS);
    assert_string_equal(world_sent_path(&world, 3), MAPS "/m");
    world_tear_down(&world);
}

static void an_engine_that_ends_takes_its_question_back(void **state)
{
    struct world world;

    begin(&world);
    world_ok(&world, "GET", PODS, LIST_OF(""), SECOND);
    world_run(&world, 100 * MS);
    assert_int_equal(fake_sent_count(world.fake), 1);
    world_tear_down(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_of_others_do_not_keep_the_write_back),
        cmocka_unit_test(a_pod_that_no_cache_has_shown_keeps_the_write_back_until_it_is_gone),
        cmocka_unit_test(a_server_that_does_not_answer_keeps_the_write_back),
        cmocka_unit_test(an_engine_that_ends_takes_its_question_back),
    };

    return cmocka_run_group_tests_name("absent_action", tests, NULL, NULL);
}
