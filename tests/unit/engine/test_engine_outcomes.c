/* test_engine_outcomes.c - where the key goes after each outcome: conflicts, refusals, pauses that
 * are asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "world.h"

/* ---- what is told ---- */

static void a_conflict_is_planned_again_soon_and_is_no_trouble(void **state)
{
    struct world world;

    world_begin_with_map(&world);
    world_plan_once(&world, world_plan_patch);
    fake_status(world.fake, "PATCH", MAPS "/m", 409, "Conflict", "somebody was faster");
    fake_status(world.fake, "PATCH", MAPS "/m", 404, "NotFound", "and it is gone");
    world_ok(&world, "PATCH", MAPS "/m", world_map_text("m", 12, "new"), 0);
    world_run(&world, 200 * MS);
    assert_int_equal(fake_sent_count(world.fake), 3);
    assert_int_equal(world.troubles, 0);
    assert_true(engine_is_idle(world.engine));
    world_tear_down(&world);
}

static void a_refusal_is_told_once_and_its_end_too(void **state)
{
    struct world world;
    unsigned lines;

    world_begin_with_map(&world);
    lines = world.log_lines;
    world_plan_once(&world, world_plan_patch);
    fake_answer(world.fake, "PATCH", MAPS "/m",
                (struct fake_answer){ .status = 403,
                                      .body = "{\"kind\":\"Status\",\"reason\":\"Forbidden\","
                                              "\"message\":\"no rights\"}",
                                      .times = 6 });
    world_ok(&world, "PATCH", MAPS "/m", world_map_text("m", 12, "new"), 0);
    world_run(&world, SECOND);
    assert_int_equal(world.troubles, 1);
    assert_int_equal(world.trouble.outcome, KUBE_DENIED);
    assert_int_equal(world.trouble.status, 403);
    assert_int_equal(world.recoveries, 0);
    assert_int_equal(world.log_lines, lines + 1);
    assert_in_range(fake_sent_count(world.fake), 4, 5); /* 50, 100, 200, 400 ms and jitter */
    world_run(&world, 4 * SECOND);
    assert_int_equal(fake_sent_count(world.fake), 7);
    assert_int_equal(world.troubles, 1);
    assert_int_equal(world.recoveries, 1);
    assert_int_equal(world.log_lines, lines + 2);
    assert_true(engine_is_idle(world.engine));
    world_tear_down(&world);
}

static int plan_patch_and_wait(struct world *world, struct str key, struct plan *plan,
                               struct err *err)
{
    plan_wait(plan, "for better times");
    return world_plan_patch(world, key, plan, err);
}

static void trouble_that_comes_back_is_told_again(void **state)
{
    struct world world;

    world_begin_with_map(&world);
    world_plan_once(&world, plan_patch_and_wait);
    for (unsigned i = 1; i <= 2; i++) {
        fake_status(world.fake, "PATCH", MAPS "/m", 422, "Invalid", "no");
        world_ok(&world, "PATCH", MAPS "/m", world_map_text("m", 11 + 2 * i, "new"), 0);
        world_run(&world, 500 * MS);
        assert_int_equal(world.troubles, i);
        assert_int_equal(world.recoveries, i);
        world_see(&world, "m", 12 + 2 * i, "old");
        engine_enqueue(&world.controller, STR("a/x"));
    }
    world_tear_down(&world);
}

static void a_place_that_is_missing_again_and_again_is_said(void **state)
{
    struct world world;
    auto_buf struct buf out;
    unsigned lines;

    world_begin(&world, NULL);
    world.plan = world_plan_create;
    lines = world.log_lines;
    engine_enqueue(&world.controller, STR("a/one"));
    fake_answer(world.fake, "POST", MAPS,
                (struct fake_answer){ .status = 404,
                                      .body = "{\"kind\":\"Status\",\"reason\":\"NotFound\","
                                              "\"message\":\"namespaces \\\"a\\\" not found\"}",
                                      .times = FAKE_ALWAYS });
    world_run(&world, 100 * MS);
    assert_int_equal(world.log_lines, lines); /* the first time it is no news */
    world_run(&world, 60 * SECOND);
    assert_int_equal(world.log_lines, lines + 1);
    assert_int_equal(world.troubles, 0);
    buf_init(&out, 10000);
    engine_write_state(world.engine, &out);
    assert_non_null(strstr(buf_text(&out), "create configmap a/one: namespaces"));
    world_tear_down(&world);
}

static int plan_create_fine(struct world *world, struct str key, struct plan *plan, struct err *err)
{
    if (world->plans == 1)
        world_create(world, plan, "one", "1")->existing_is_fine = true;
    return 0;
}

static void a_create_that_finds_it_existing_may_be_fine(void **state)
{
    struct world world;

    world_begin(&world, NULL);
    world_plan_once(&world, plan_create_fine);
    fake_status(world.fake, "POST", MAPS, 409, "AlreadyExists", "it is there");
    world_run(&world, SECOND);
    assert_int_equal(fake_sent_count(world.fake), 1);
    assert_true(
        metrics_get(world.metrics, &engine_metrics[METRIC_RECONCILE_ERRORS], "tester", NULL) == 0);
    assert_true(engine_is_idle(world.engine));
    assert_string_equal(world_value_of(&world, "one"), ""); /* what is there is not known yet */
    world_tear_down(&world);
}

/* ---- pauses ---- */

#define UNAVAILABLE "{\"kind\":\"Status\",\"reason\":\"ServiceUnavailable\"}"

static void a_server_that_names_a_time_is_left_alone_until_then(void **state)
{
    struct world world;

    world_begin_with_map(&world);
    world_plan_once(&world, world_plan_patch);
    fake_answer(
        world.fake, "PATCH", MAPS "/m",
        (struct fake_answer){ .status = 503, .body = UNAVAILABLE, .retry_after_us = 3 * SECOND });
    world_ok(&world, "PATCH", MAPS "/m", world_map_text("m", 12, "new"), 0);
    world_run(&world, 2900 * MS);
    assert_int_equal(fake_sent_count(world.fake), 1);
    world_run(&world, 200 * MS);
    assert_int_equal(fake_sent_count(world.fake), 2);
    world_tear_down(&world);
}

static void too_many_requests_make_every_key_wait(void **state)
{
    struct world world;

    world_begin(&world, NULL);
    world.plan = world_plan_create;
    engine_enqueue(&world.controller, STR("a/one"));
    fake_answer(world.fake, "POST", MAPS,
                (struct fake_answer){ .status = 429, .retry_after_us = 4 * SECOND });
    world_run(&world, 100 * MS);
    engine_enqueue(&world.controller, STR("a/two"));
    world_run(&world, 3800 * MS);
    assert_int_equal(fake_sent_count(world.fake), 1);
    world_ok(&world, "POST", MAPS, world_map_text("one", 11, "1"), 0);
    world_ok(&world, "POST", MAPS, world_map_text("two", 12, "1"), 0);
    world_run(&world, 300 * MS);
    assert_int_equal(fake_sent_count(world.fake), 3);
    assert_true(engine_is_idle(world.engine));
    world_tear_down(&world);
}

static void no_server_can_ask_for_a_pause_without_end(void **state)
{
    static const int statuses[] = { 429, 503 };
    struct world world;

    for (size_t i = 0; i < 2; i++) {
        world_begin_with_map(&world);
        world_plan_once(&world, world_plan_patch);
        fake_answer(world.fake, "PATCH", MAPS "/m",
                    (struct fake_answer){ .status = statuses[i],
                                          .body = UNAVAILABLE,
                                          .retry_after_us = 86400 * (int64_t)SECOND });
        fake_answer(world.fake, "PATCH", MAPS "/m", (struct fake_answer){ .class = ERR_UNKNOWN });
        fake_answer(
            world.fake, "GET", MAPS "/m",
            (struct fake_answer){ .status = 429, .retry_after_us = 86400 * (int64_t)SECOND });
        fake_answer(world.fake, "GET", MAPS "/m",
                    (struct fake_answer){ .status = 200,
                                          .body = world_map_text("m", 12, "new"),
                                          .times = FAKE_ALWAYS });
        world_run(&world, 14 * SECOND);
        assert_int_equal(fake_sent_count(world.fake), 1);
        world_run(&world, 2 * SECOND);
        assert_int_equal(fake_sent_count(world.fake), 3);
        assert_false(engine_is_idle(world.engine));
        world_run(&world, 15 * SECOND);
        assert_true(engine_is_idle(world.engine));
        world_tear_down(&world);
    }
}

static void a_pause_is_not_made_shorter_by_a_later_refusal(void **state)
{
    struct world world;

    world_begin(&world, NULL);
    world.plan = world_plan_create;
    fake_answer(world.fake, "POST", MAPS,
                (struct fake_answer){ .status = 429, .retry_after_us = 8 * SECOND });
    fake_answer(
        world.fake, "POST", MAPS,
        (struct fake_answer){ .status = 429, .retry_after_us = SECOND, .delay_us = 100 * MS });
    engine_enqueue(&world.controller, STR("a/one"));
    engine_enqueue(&world.controller, STR("a/two"));
    world_run(&world, 7 * SECOND);
    assert_int_equal(fake_sent_count(world.fake), 2);
    fake_answer(world.fake, "POST", MAPS,
                (struct fake_answer){
                    .status = 200, .body = "{\"kind\":\"Status\"}", .times = FAKE_ALWAYS });
    world_run(&world, 2 * SECOND);
    assert_int_equal(fake_sent_count(world.fake), 4);
    world_tear_down(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_conflict_is_planned_again_soon_and_is_no_trouble),
        cmocka_unit_test(a_refusal_is_told_once_and_its_end_too),
        cmocka_unit_test(trouble_that_comes_back_is_told_again),
        cmocka_unit_test(a_place_that_is_missing_again_and_again_is_said),
        cmocka_unit_test(a_create_that_finds_it_existing_may_be_fine),
        cmocka_unit_test(a_server_that_names_a_time_is_left_alone_until_then),
        cmocka_unit_test(too_many_requests_make_every_key_wait),
        cmocka_unit_test(no_server_can_ask_for_a_pause_without_end),
        cmocka_unit_test(a_pause_is_not_made_shorter_by_a_later_refusal),
    };

    return cmocka_run_group_tests_name("engine_outcomes", tests, NULL, NULL);
}
