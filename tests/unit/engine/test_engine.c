/* test_engine.c - from a change to a plan to calls: when keys are planned, how stages go, who may
 * act, how it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "world.h"

/* ---- when keys are planned ---- */

static void nothing_is_planned_before_all_caches_are_synced(void **state)
{
    struct world world;

    world_set_up(&world, NULL);
    engine_enqueue(&world.controller, STR("a/x"));
    engine_start(world.engine);
    world_run(&world, 5 * SECOND);
    assert_int_equal(world.plans, 0);
    assert_false(engine_is_idle(world.engine));
    world_sync(&world);
    world_run(&world, 60 * MS);
    assert_int_equal(world.plans, 1);
    assert_true(engine_is_idle(world.engine));
    world_tear_down(&world);
}

static void nothing_is_planned_in_a_namespace_that_may_not_be_read(void **state)
{
    struct world world;

    world_begin(&world, NULL);
    kube_cache_set_readable(world.cache, "a", false);
    engine_enqueue(&world.controller, STR("a/x"));
    world_run(&world, 5 * SECOND);
    assert_int_equal(world.plans, 0);
    engine_enqueue(&world.controller, STR("b/x"));
    world_run(&world, MS);
    assert_int_equal(world.plans, 1);
    kube_cache_set_readable(world.cache, "a", true);
    world_run(&world, 60 * SECOND);
    assert_int_equal(world.plans, 2);
    world_tear_down(&world);
}

static int expect_key(struct world *world, struct str key, struct plan *plan, struct err *err)
{
    assert_true(str_is(key, "a/m"));
    return 0;
}

static void a_change_queues_the_key_of_its_object(void **state)
{
    struct world world;

    world_begin(&world, NULL);
    world.plan = expect_key;
    world_see(&world, "m", 11, "1");
    world_run(&world, MS);
    assert_int_equal(world.plans, 1);
    kube_cache_seen_gone(world.cache, "a", "m", 12);
    world_run(&world, MS);
    assert_int_equal(world.plans, 2);
    world_run(&world, 60 * SECOND);
    assert_int_equal(world.plans, 2);
    world_tear_down(&world);
}

static int plan_again_in_a_minute(struct world *world, struct str key, struct plan *plan,
                                  struct err *err)
{
    plan_look_again(plan, 60 * (int64_t)SECOND);
    return 0;
}

static void a_plan_may_ask_to_be_looked_at_again(void **state)
{
    struct world world;

    world_begin(&world, NULL);
    world_plan_once(&world, plan_again_in_a_minute);
    world_run(&world, 59 * SECOND);
    assert_int_equal(world.plans, 1);
    world_run(&world, 62 * SECOND);
    assert_int_equal(world.plans, 3);
    assert_true(metrics_get(world.metrics, &engine_metrics[METRIC_RECONCILE_TOTAL], "tester",
                            "requeue_after", NULL) == 3);
    world_tear_down(&world);
}

static void a_turn_takes_no_more_keys_than_allowed(void **state)
{
    struct world world;
    char key[16];
    unsigned before, turns = 0;

    world_set_up(&world, &(struct engine_options){ .max_per_turn = 10 });
    world_sync(&world);
    for (int i = 0; i < 95; i++) {
        snprintf(key, sizeof(key), "a/%d", i);
        engine_enqueue(&world.controller, str_of(key));
    }
    engine_start(world.engine);
    while (!engine_is_idle(world.engine)) {
        before = world.plans;
        assert_true(loop_step(world.loop));
        assert_true(world.plans - before <= 10);
        turns += world.plans > before;
    }
    assert_int_equal(world.plans, 95);
    assert_int_equal(turns, 10);
    world_tear_down(&world);
}

static int plan_fails(struct world *world, struct str key, struct plan *plan, struct err *err)
{
    world_create(world, plan, "never", "1");
    return err_set(err, ERR_INVALID, "the spec is odd");
}

static void a_plan_that_fails_is_dropped_and_comes_back_by_back_off(void **state)
{
    struct world world;
    unsigned lines;

    world_begin(&world, NULL);
    lines = world.log_lines;
    world_plan_once(&world, plan_fails);
    world_run(&world, 10 * SECOND);
    assert_in_range(world.plans, 6, 10);
    assert_int_equal(fake_sent_count(world.fake), 0);
    assert_int_equal(world.log_lines, lines + 1);
    world.plan = NULL;
    world_run(&world, 15 * SECOND);
    assert_int_equal(world.log_lines, lines + 2);
    assert_true(engine_is_idle(world.engine));
    world_tear_down(&world);
}

static int plan_too_much(struct world *world, struct str key, struct plan *plan, struct err *err)
{
    world_create(world, plan, "never", "1");
    for (int i = 0; i < 30; i++)
        (void)arena_alloc(plan->arena, 1000);
    return 0;
}

static void a_plan_beyond_its_memory_is_dropped_and_the_process_goes_on(void **state)
{
    struct world world;

    world_begin(&world, &(struct engine_options){ .arena_budget = 10000 });
    world_plan_once(&world, plan_too_much);
    world_run(&world, 10 * SECOND);
    assert_in_range(world.plans, 6, 10);
    assert_int_equal(fake_sent_count(world.fake), 0);
    assert_true(metrics_get(world.metrics, &engine_metrics[METRIC_RECONCILE_ERRORS], "tester",
                            NULL) == world.plans);
    world_tear_down(&world);
}

static int plan_another(struct world *world, struct str key, struct plan *plan, struct err *err)
{
    if (str_is(key, "a/x"))
        plan_enqueue(plan, STR("a/y"));
    return 0;
}

static void a_plan_may_have_another_key_planned_next(void **state)
{
    struct world world;

    world_begin(&world, NULL);
    world_plan_once(&world, plan_another);
    world_run(&world, SECOND);
    assert_int_equal(world.plans, 2);
    assert_true(engine_is_idle(world.engine));
    world_tear_down(&world);
}

/* ---- stages ---- */

static int plan_two_stages(struct world *world, struct str key, struct plan *plan, struct err *err)
{
    if (world->plans > 1)
        return 0;
    world_create(world, plan, "one", "1");
    world_create(world, plan, "two", "2");
    plan_next_stage(plan);
    world_patch(world, plan, "one", "3");
    return 0;
}

static void stages_go_in_turn_and_their_actions_side_by_side(void **state)
{
    struct world world;

    world_begin(&world, NULL);
    world_plan_once(&world, plan_two_stages);
    world_ok(&world, "POST", MAPS, world_map_text("one", 11, "1"), 20 * MS);
    world_ok(&world, "POST", MAPS, world_map_text("two", 12, "2"), 50 * MS);
    world_ok(&world, "PATCH", MAPS "/one", world_map_text("one", 13, "3"), 10 * MS);
    world_run(&world, 49 * MS);
    assert_int_equal(fake_sent_count(world.fake), 2);
    world_run(&world, 2 * MS);
    assert_int_equal(fake_sent_count(world.fake), 3);
    assert_string_equal(world_sent_path(&world, 2), MAPS "/one");
    world_run(&world, SECOND);
    assert_true(engine_is_idle(world.engine));
    assert_string_equal(world_value_of(&world, "one"), "3");
    assert_true(metrics_get(world.metrics, &engine_metrics[METRIC_ACTIONS], "kube", "create",
                            "done", NULL) == 2);
    assert_true(metrics_get(world.metrics, &engine_metrics[METRIC_REST_REQUESTS], "200",
                            "apiserver", "POST", NULL) == 2);
    world_tear_down(&world);
}

static void effects_of_all_stages_are_seen_at_once_and_gone_when_they_fail(void **state)
{
    struct world world;

    world_begin(&world, NULL);
    world_plan_once(&world, plan_two_stages);
    world_ok(&world, "POST", MAPS, world_map_text("one", 11, "1"), 20 * MS);
    fake_status(world.fake, "POST", MAPS, 403, "Forbidden", "no");
    world_run(&world, 10 * MS);
    assert_string_equal(world_value_of(&world, "one"), "3");
    assert_string_equal(world_value_of(&world, "two"), ""); /* refused already */
    world_run(&world, 20 * MS);
    assert_string_equal(world_value_of(&world, "one"), "1"); /* the server's own words */
    assert_int_equal(fake_sent_count(world.fake), 2);        /* the second stage never went */
    world_run(&world, SECOND);
    assert_true(world.plans >= 2);
    world_tear_down(&world);
}

static int plan_one_alone(struct world *world, struct str key, struct plan *plan, struct err *err)
{
    if (world->plans > 1)
        return 0;
    plan->is_independent = true;
    world_create(world, plan, "one", "1");
    plan->is_independent = false;
    world_create(world, plan, "two", "2");
    plan_next_stage(plan);
    world_patch(world, plan, "two", "3");
    return 0;
}

static void a_failure_on_which_nothing_depends_drops_no_later_stage(void **state)
{
    struct world world;

    world_begin(&world, NULL);
    world_plan_once(&world, plan_one_alone);
    fake_status(world.fake, "POST", MAPS, 403, "Forbidden", "no");
    world_ok(&world, "POST", MAPS, world_map_text("two", 12, "2"), 20 * MS);
    world_ok(&world, "PATCH", MAPS "/two", world_map_text("two", 13, "3"), 10 * MS);
    world_run(&world, 50 * MS);
    assert_int_equal(fake_sent_count(world.fake), 3);
    assert_string_equal(world_sent_path(&world, 2), MAPS "/two");
    world_run(&world, SECOND);
    assert_true(world.plans >= 2); /* and it is planned again */
    world_tear_down(&world);
}

static int plan_patch_slowly(struct world *world, struct str key, struct plan *plan,
                             struct err *err)
{
    if (world->plans > 1)
        return 0;
    world_patch(world, plan, "m", "new");
    return 0;
}

static void a_key_is_not_planned_while_its_actions_are_in_flight(void **state)
{
    struct world world;

    world_begin(&world, NULL);
    world_see(&world, "m", 11, "old");
    world_run(&world, MS);
    world.plans = 0;
    world_plan_once(&world, plan_patch_slowly);
    world_ok(&world, "PATCH", MAPS "/m", world_map_text("m", 12, "new"), 500 * MS);
    world_run(&world, 100 * MS);
    engine_enqueue(&world.controller, STR("a/x"));
    engine_enqueue(&world.controller, STR("a/x"));
    world_run(&world, 300 * MS);
    assert_string_equal(world_value_of(&world, "m"), "new");
    world_run(&world, 500 * MS);
    assert_int_equal(fake_sent_count(world.fake), 1);
    assert_string_equal(world_value_of(&world, "m"), "new");
    /* once for a/x itself, once more after its work; and a/m, which its effect changed */
    assert_in_range(world.plans, 3, 4);
    world_tear_down(&world);
}

/* ---- who may act ---- */

static void without_the_lease_nothing_is_planned_and_nothing_lost(void **state)
{
    struct world world;

    world_begin(&world, NULL);
    world.may_act = false;
    world_plan_once(&world, plan_two_stages);
    world_run(&world, 10 * SECOND);
    assert_int_equal(world.plans, 0);
    assert_false(engine_is_idle(world.engine));
    world_ok(&world, "POST", MAPS, world_map_text("one", 11, "1"), 0);
    world_ok(&world, "POST", MAPS, world_map_text("two", 12, "2"), 0);
    world_ok(&world, "PATCH", MAPS "/one", world_map_text("one", 13, "3"), 0);
    world.may_act = true;
    engine_wake(world.engine);
    world_run(&world, MS);
    assert_int_equal(fake_sent_count(world.fake), 3);
    world_tear_down(&world);
}

static void a_lease_lost_between_two_sends_drops_the_rest(void **state)
{
    struct world world;

    world_begin(&world, NULL);
    world_plan_once(&world, plan_two_stages);
    world_ok(&world, "POST", MAPS, world_map_text("one", 11, "1"), 10 * MS);
    world_ok(&world, "POST", MAPS, world_map_text("two", 12, "2"), 10 * MS);
    world_run(&world, 5 * MS);
    world.may_act = false;
    world_run(&world, 2 * SECOND);
    assert_int_equal(fake_sent_count(world.fake), 2);
    assert_string_equal(world_value_of(&world, "one"), "1");
    assert_int_equal(world.troubles, 0);
    world.plans = 1;
    world.may_act = true;
    world_run(&world, 2 * SECOND); /* noticed by itself */
    assert_true(world.plans > 1);
    world_tear_down(&world);
}

/* ---- the end ---- */

static void a_stop_waits_for_what_is_in_flight_and_sends_nothing_more(void **state)
{
    struct world world;
    unsigned plans;

    world_begin(&world, NULL);
    world_plan_once(&world, plan_two_stages);
    world_ok(&world, "POST", MAPS, world_map_text("one", 11, "1"), 100 * MS);
    world_ok(&world, "POST", MAPS, world_map_text("two", 12, "2"), 300 * MS);
    world_run(&world, 50 * MS);
    plans = world.plans;
    engine_stop(world.engine, 10 * SECOND, world_stopped, &world);
    engine_enqueue(&world.controller, STR("a/y"));
    world_run(&world, 200 * MS);
    assert_false(world.stopped);
    world_run(&world, 100 * MS);
    assert_true(world.stopped);
    world_run(&world, 10 * SECOND);
    assert_int_equal(fake_sent_count(world.fake), 2);
    assert_int_equal(world.plans, plans);
    world_tear_down(&world);
}

static void a_stop_with_nothing_to_wait_for_still_answers_from_the_loop(void **state)
{
    struct world world;

    world_begin(&world, NULL);
    engine_stop(world.engine, 10 * SECOND, world_stopped, &world);
    assert_false(world.stopped);
    world_run(&world, MS);
    assert_true(world.stopped);
    world_tear_down(&world);
}

static void a_stop_ends_when_its_time_is_up(void **state)
{
    struct world world;

    world_begin_with_map(&world);
    world_plan_once(&world, world_plan_patch);
    fake_answer(world.fake, "PATCH", MAPS "/m", (struct fake_answer){ .status = 0 });
    world_run(&world, 10 * MS);
    engine_stop(world.engine, 2 * SECOND, world_stopped, &world);
    world_run(&world, 1900 * MS);
    assert_false(world.stopped);
    world_run(&world, 200 * MS);
    assert_true(world.stopped);
    world_tear_down(&world); /* with a call in flight */
}

static void a_stop_does_not_wait_for_reads(void **state)
{
    struct world world;

    world_begin_with_map(&world);
    world_plan_once(&world, world_plan_patch);
    fake_answer(world.fake, "PATCH", MAPS "/m", (struct fake_answer){ .class = ERR_UNKNOWN });
    fake_answer(world.fake, "GET", MAPS "/m", (struct fake_answer){ .status = 0 });
    world_run(&world, 10 * MS);
    assert_int_equal(fake_sent_count(world.fake), 2);
    engine_stop(world.engine, 2 * SECOND, world_stopped, &world);
    world_run(&world, MS);
    assert_true(world.stopped);
    world_tear_down(&world);
}

/* ---- what is shown ---- */

static int plan_and_wait(struct world *world, struct str key, struct plan *plan, struct err *err)
{
    if (str_is(key, "a/waits"))
        plan_wait(plan, "for Slurm: \"%s\"", "Resources");
    if (str_is(key, "a/later"))
        plan_look_again(plan, 5 * SECOND);
    if (str_is(key, "a/bad"))
        return err_set(err, ERR_INVALID, "odd");
    if (str_is(key, "a/acts"))
        world_patch(world, plan, "m", "new");
    return 0;
}

static void the_state_shows_every_key_in_words(void **state)
{
    static const char *const keys[] = { "a/waits", "a/later", "a/bad", "a/acts", "a/well" };
    static const char *const words[] = {
        "{\"key\":\"a/later\",\"state\":\"delayed\",\"failures\":0,",
        "{\"key\":\"a/bad\",\"state\":\"backing-off\",\"failures\":1,",
        "\"error\":\"odd\"",
        "{\"key\":\"a/acts\",\"state\":\"acting\",\"failures\":0,",
        "\"actions\":[\"patch configmap a/m\"]",
        "{\"key\":\"a/waits\",\"state\":\"at-rest\",\"failures\":0,",
        "\"waits\":\"for Slurm: \\\"Resources\\\"\"}",
        "\"inFlight\":1",
        "\"name\":\"tester\"",
    };
    struct world world;
    auto_buf struct buf out;
    auto_json_doc struct json_doc *doc = NULL;

    world_begin_with_map(&world);
    world.plan = plan_and_wait;
    fake_answer(world.fake, "PATCH", MAPS "/m", (struct fake_answer){ .status = 0 });
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        engine_enqueue(&world.controller, str_of(keys[i]));
    world_run(&world, 10 * MS);
    buf_init(&out, 100000);
    engine_write_state(world.engine, &out);
    assert_int_equal(json_parse(buf_str(&out), 100000, &doc, NULL), 0);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (!strstr(buf_text(&out), words[i]))
            fail_msg("no %s in %s", words[i], buf_text(&out));
    assert_null(strstr(buf_text(&out), "a/well"));
    world_tear_down(&world);
}

static void a_scrape_shows_queues_and_controllers(void **state)
{
    static const char *const lines[] = {
        "workqueue_depth{name=\"tester\"} 0\n",
        "workqueue_adds_total{name=\"tester\"} 1\n",
        "workqueue_retries_total{name=\"tester\"} 0\n",
        "workqueue_unfinished_work_seconds{name=\"tester\"} 0\n",
        "controller_runtime_reconcile_total{controller=\"tester\",result=\"success\"} 1\n",
        "controller_runtime_reconcile_errors_total{controller=\"tester\"} 0\n",
        "controller_runtime_reconcile_panics_total{controller=\"tester\"} 0\n",
        "controller_runtime_max_concurrent_reconciles{controller=\"tester\"} 64\n",
        "controller_runtime_active_workers{controller=\"tester\"} 0\n",
        "controller_runtime_reconcile_time_seconds_count{controller=\"tester\"} 1\n",
        "slinc_actions_in_flight 0\n",
    };
    struct world world;
    auto_buf struct buf out;

    world_begin(&world, NULL);
    engine_enqueue(&world.controller, STR("a/x"));
    world_run(&world, MS);
    buf_init(&out, 1 << 20);
    metrics_write(world.metrics, &out);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (!strstr(buf_text(&out), lines[i]))
            fail_msg("no %s in %s", lines[i], buf_text(&out));
    world_tear_down(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_planned_before_all_caches_are_synced),
        cmocka_unit_test(nothing_is_planned_in_a_namespace_that_may_not_be_read),
        cmocka_unit_test(a_change_queues_the_key_of_its_object),
        cmocka_unit_test(a_plan_may_ask_to_be_looked_at_again),
        cmocka_unit_test(a_turn_takes_no_more_keys_than_allowed),
        cmocka_unit_test(a_plan_that_fails_is_dropped_and_comes_back_by_back_off),
        cmocka_unit_test(a_plan_beyond_its_memory_is_dropped_and_the_process_goes_on),
        cmocka_unit_test(a_plan_may_have_another_key_planned_next),
        cmocka_unit_test(stages_go_in_turn_and_their_actions_side_by_side),
        cmocka_unit_test(a_failure_on_which_nothing_depends_drops_no_later_stage),
        cmocka_unit_test(effects_of_all_stages_are_seen_at_once_and_gone_when_they_fail),
        cmocka_unit_test(a_key_is_not_planned_while_its_actions_are_in_flight),
        cmocka_unit_test(without_the_lease_nothing_is_planned_and_nothing_lost),
        cmocka_unit_test(a_lease_lost_between_two_sends_drops_the_rest),
        cmocka_unit_test(a_stop_waits_for_what_is_in_flight_and_sends_nothing_more),
        cmocka_unit_test(a_stop_with_nothing_to_wait_for_still_answers_from_the_loop),
        cmocka_unit_test(a_stop_ends_when_its_time_is_up),
        cmocka_unit_test(a_stop_does_not_wait_for_reads),
        cmocka_unit_test(the_state_shows_every_key_in_words),
        cmocka_unit_test(a_scrape_shows_queues_and_controllers),
    };

    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
