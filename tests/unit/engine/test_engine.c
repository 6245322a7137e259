/* test_engine.c - from a change to a plan to calls, and where the key goes after each outcome. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "world.h"

enum { MS = 1000, SECOND = 1000000 };

static const char *sent_path(struct world *world, size_t index)
{
    return fake_sent_count(world->fake) > index ? fake_sent(world->fake, index)->path : "nothing";
}

static void begin(struct world *world, const struct engine_options *options)
{
    world_set_up(world, options);
    engine_start(world->engine);
    world_sync(world);
    world_run(world, 60 * MS);
}

/* Plans for one key, once; later looks find nothing to do. */
static void plan_once(struct world *world, world_plan plan)
{
    world->plan = plan;
    engine_enqueue(&world->controller, STR("a/x"));
}

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

static int expect_key(struct world *world, struct str key, struct plan *plan, struct err *err)
{
    assert_true(str_is(key, "a/m"));
    return 0;
}

static void a_change_queues_the_key_of_its_object(void **state)
{
    struct world world;

    begin(&world, NULL);
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

    begin(&world, NULL);
    plan_once(&world, plan_again_in_a_minute);
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

    begin(&world, NULL);
    lines = world.log_lines;
    plan_once(&world, plan_fails);
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

    begin(&world, NULL);
    plan_once(&world, plan_two_stages);
    world_ok(&world, "POST", MAPS, world_map_text("one", 11, "1"), 20 * MS);
    world_ok(&world, "POST", MAPS, world_map_text("two", 12, "2"), 50 * MS);
    world_ok(&world, "PATCH", MAPS "/one", world_map_text("one", 13, "3"), 10 * MS);
    world_run(&world, 49 * MS);
    assert_int_equal(fake_sent_count(world.fake), 2);
    world_run(&world, 2 * MS);
    assert_int_equal(fake_sent_count(world.fake), 3);
    assert_string_equal(sent_path(&world, 2), MAPS "/one");
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

    begin(&world, NULL);
    plan_once(&world, plan_two_stages);
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

    begin(&world, NULL);
    world_see(&world, "m", 11, "old");
    world_run(&world, MS);
    world.plans = 0;
    plan_once(&world, plan_patch_slowly);
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

/* ---- limits ---- */

static int plan_many_or_one(struct world *world, struct str key, struct plan *plan, struct err *err)
{
    char name[16];
    int count = str_is(key, "b/many") ? 6 : str_is(key, "c/one") ? 1 : 0;

    if (world->plans > 2)
        return 0;
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof(name), STR_FMT "%d", STR_ARG(str_sub(key, 2, key.len)), i);
        plan_create(plan, NULL, &kube_configmaps, "a",
                    world_value(world, "{\"metadata\":{\"name\":\"x\"}}"))
            ->request.query = arena_strdup(plan->arena, name);
    }
    return 0;
}

static void a_large_plan_and_a_small_one_take_turns_under_the_limit(void **state)
{
    struct world world;

    begin(&world, &(struct engine_options){ .max_in_flight = 2 });
    world.plan = plan_many_or_one;
    engine_enqueue(&world.controller, STR("b/many"));
    engine_enqueue(&world.controller, STR("c/one"));
    fake_answer(world.fake, "POST", MAPS,
                (struct fake_answer){ .status = 201,
                                      .body = "{\"kind\":\"Status\"}",
                                      .delay_us = 10 * MS,
                                      .times = FAKE_ALWAYS });
    world_run(&world, 5 * MS);
    assert_int_equal(fake_sent_count(world.fake), 2);
    assert_string_equal(sent_path(&world, 0), MAPS "?many0");
    assert_string_equal(sent_path(&world, 1), MAPS "?one0");
    world_run(&world, 10 * MS);
    assert_int_equal(fake_sent_count(world.fake), 4);
    world_run(&world, SECOND);
    assert_int_equal(fake_sent_count(world.fake), 7);
    assert_true(engine_is_idle(world.engine));
    world_tear_down(&world);
}

static void a_plan_that_waited_too_long_for_its_turn_is_made_anew(void **state)
{
    struct world world;

    begin(&world, &(struct engine_options){ .max_in_flight = 1 });
    world.plan = plan_many_or_one;
    engine_enqueue(&world.controller, STR("b/many"));
    engine_enqueue(&world.controller, STR("c/one"));
    fake_answer(world.fake, "POST", MAPS,
                (struct fake_answer){ .status = 201,
                                      .body = "{\"kind\":\"Status\"}",
                                      .delay_us = 6 * SECOND,
                                      .times = FAKE_ALWAYS });
    world_run(&world, 30 * SECOND);
    assert_int_equal(fake_sent_count(world.fake), 1);
    assert_int_equal(world.plans, 4); /* both were planned again, and then had nothing to do */
    assert_true(engine_is_idle(world.engine));
    world_tear_down(&world);
}

struct slow { /* a service of another type that answers when the test says so */
    void (*finish)(void *context, const struct kube_answer *answer);
    void *context;
    unsigned started, cancelled;
};

static void *slow_start(void *service, const struct action *action,
                        void (*finish)(void *context, const struct kube_answer *answer),
                        void *context)
{
    struct slow *slow = service;

    slow->finish = finish;
    slow->context = context;
    slow->started++;
    return slow;
}

static void slow_cancel(void *service, void *handle)
{
    struct slow *slow = service;

    assert_ptr_equal(handle, slow);
    slow->cancelled++;
}

static const struct action_type slow_type = { .name = "slow",
                                              .start = slow_start,
                                              .cancel = slow_cancel };

static int plan_slow_and_fast(struct world *world, struct str key, struct plan *plan,
                              struct err *err)
{
    if (str_is(key, "a/fast")) {
        world_patch(world, plan, "nothing", "1")->missing_is_fine = true;
        return 0;
    }
    if (world->plans < 10)
        plan_add(plan, &slow_type, "submit job", NULL);
    return 0;
}

static void a_service_that_hangs_does_not_hold_up_the_others(void **state)
{
    struct world world;
    struct slow slow = { 0 };

    world_set_up(&world, &(struct engine_options){ .max_in_flight = 1 });
    engine_add_service(world.engine, &slow_type, &slow);
    engine_start(world.engine);
    world_sync(&world);
    world.plan = plan_slow_and_fast;
    engine_enqueue(&world.controller, STR("a/slow1"));
    engine_enqueue(&world.controller, STR("a/slow2"));
    engine_enqueue(&world.controller, STR("a/fast"));
    fake_status(world.fake, "PATCH", MAPS "/nothing", 404, "NotFound", "not there");
    world_run(&world, SECOND);
    assert_int_equal(slow.started, 1);
    assert_int_equal(fake_sent_count(world.fake), 1);
    assert_false(engine_is_idle(world.engine));
    slow.finish(slow.context,
                &(struct kube_answer){ .outcome = KUBE_DONE, .reason = "", .message = "" });
    world_run(&world, 100 * MS);
    assert_int_equal(slow.started, 2);
    world_tear_down(&world);
    assert_int_equal(slow.cancelled, 1);
}

static const struct action_type narrow_type = {
    .name = "narrow", .max_in_flight = 2, .start = slow_start, .cancel = slow_cancel
};

static int plan_narrow_and_wide(struct world *world, struct str key, struct plan *plan,
                                struct err *err)
{
    for (int i = 0; i < 5; i++)
        plan_add(plan, str_is(key, "a/narrow") ? &narrow_type : &slow_type, "submit job", NULL);
    return 0;
}

static void a_type_of_action_may_have_a_limit_of_its_own(void **state)
{
    struct world world;
    struct slow narrow = { 0 }, wide = { 0 };

    world_set_up(&world, &(struct engine_options){ .max_in_flight = 4 });
    engine_add_service(world.engine, &narrow_type, &narrow);
    engine_add_service(world.engine, &slow_type, &wide);
    engine_start(world.engine);
    world_sync(&world);
    world.plan = plan_narrow_and_wide;
    engine_enqueue(&world.controller, STR("a/narrow"));
    engine_enqueue(&world.controller, STR("a/wide"));
    world_run(&world, SECOND);
    assert_int_equal(narrow.started, 2);
    assert_int_equal(wide.started, 4);
    narrow.finish(narrow.context,
                  &(struct kube_answer){ .outcome = KUBE_DONE, .reason = "", .message = "" });
    world_run(&world, 100 * MS);
    assert_int_equal(narrow.started, 3);
    assert_int_equal(wide.started, 4);
    world_tear_down(&world);
}

static int plan_next_door(struct controller *controller, struct str key, struct plan *plan,
                          struct err *err)
{
    unsigned *plans = controller->context;

    (*plans)++;
    return 0;
}

static int plan_slow(struct world *world, struct str key, struct plan *plan, struct err *err)
{
    plan_add(plan, &slow_type, "submit job", NULL);
    return 0;
}

static void keys_that_wait_for_a_service_leave_room_for_other_controllers(void **state)
{
    struct world world;
    struct slow slow = { 0 };
    unsigned plans = 0;
    struct controller other = { .name = "other", .plan = plan_next_door, .context = &plans };
    char key[16];

    world_set_up(&world, &(struct engine_options){ .max_in_flight = 1 });
    engine_add_service(world.engine, &slow_type, &slow);
    engine_add(world.engine, &other);
    engine_start(world.engine);
    world_sync(&world);
    world.plan = plan_slow;
    for (int i = 0; i < 20000; i++) {
        snprintf(key, sizeof(key), "a/%d", i);
        engine_enqueue(&world.controller, str_of(key));
    }
    world_run(&world, SECOND);
    assert_int_equal(slow.started, 1);
    assert_true(world.plans < 20000); /* not all at once */
    engine_enqueue(&other, STR("b/1"));
    world_run(&world, SECOND);
    assert_int_equal(plans, 1);
    world_tear_down(&world);
}

/* ---- who may act ---- */

static void without_the_lease_nothing_is_planned_and_nothing_lost(void **state)
{
    struct world world;

    begin(&world, NULL);
    world.may_act = false;
    plan_once(&world, plan_two_stages);
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

    begin(&world, NULL);
    plan_once(&world, plan_two_stages);
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

/* ---- outcomes ---- */

static int plan_patch_until_new(struct world *world, struct str key, struct plan *plan,
                                struct err *err)
{
    if (str_is(key, "a/x") && !str_is(STR("new"), world_value_of(world, "m")))
        world_patch(world, plan, "m", "new");
    return 0;
}

static void begin_with_map(struct world *world)
{
    begin(world, NULL);
    world_see(world, "m", 11, "old");
    world_run(world, MS);
    world->plans = 0;
}

static void a_conflict_is_planned_again_soon_and_is_no_trouble(void **state)
{
    struct world world;

    begin_with_map(&world);
    plan_once(&world, plan_patch_until_new);
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

    begin_with_map(&world);
    lines = world.log_lines;
    plan_once(&world, plan_patch_until_new);
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
    return plan_patch_until_new(world, key, plan, err);
}

static void trouble_that_comes_back_is_told_again(void **state)
{
    struct world world;

    begin_with_map(&world);
    plan_once(&world, plan_patch_and_wait);
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

static void a_server_that_names_a_time_is_left_alone_until_then(void **state)
{
    struct world world;

    begin_with_map(&world);
    plan_once(&world, plan_patch_until_new);
    fake_answer(world.fake, "PATCH", MAPS "/m",
                (struct fake_answer){ .status = 503, .retry_after_us = 3 * SECOND });
    world_ok(&world, "PATCH", MAPS "/m", world_map_text("m", 12, "new"), 0);
    world_run(&world, 2900 * MS);
    assert_int_equal(fake_sent_count(world.fake), 1);
    world_run(&world, 200 * MS);
    assert_int_equal(fake_sent_count(world.fake), 2);
    world_tear_down(&world);
}

static int plan_create_by_key(struct world *world, struct str key, struct plan *plan,
                              struct err *err)
{
    char name[16];

    snprintf(name, sizeof(name), STR_FMT, STR_ARG(str_sub(key, 2, key.len)));
    if (!kube_cache_get(world->cache, "a", name))
        world_create(world, plan, name, "1");
    return 0;
}

static void too_many_requests_make_every_key_wait(void **state)
{
    struct world world;

    begin(&world, NULL);
    world.plan = plan_create_by_key;
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
        begin_with_map(&world);
        plan_once(&world, plan_patch_until_new);
        fake_answer(world.fake, "PATCH", MAPS "/m",
                    (struct fake_answer){ .status = statuses[i],
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

    begin(&world, NULL);
    world.plan = plan_create_by_key;
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

static void a_place_that_is_missing_again_and_again_is_said(void **state)
{
    struct world world;
    auto_buf struct buf out;
    unsigned lines;

    begin(&world, NULL);
    world.plan = plan_create_by_key;
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

static void an_unclear_end_is_read_before_the_key_is_planned_again(void **state)
{
    struct world world;

    begin_with_map(&world);
    plan_once(&world, plan_patch_until_new);
    fake_answer(world.fake, "PATCH", MAPS "/m", (struct fake_answer){ .class = ERR_UNKNOWN });
    fake_status(world.fake, "GET", MAPS "/m", 500, "InternalError", "not now");
    world_ok(&world, "GET", MAPS "/m", world_map_text("m", 11, "old"), 100 * MS);
    world_ok(&world, "PATCH", MAPS "/m", world_map_text("m", 13, "new"), 0);
    world_run(&world, 150 * MS); /* the first read failed, the second waits */
    assert_int_equal(fake_sent_count(world.fake), 2);
    assert_string_equal(world_value_of(&world, "m"), "new"); /* it may have happened */
    world_run(&world, SECOND);
    assert_int_equal(fake_sent_count(world.fake), 4);
    assert_string_equal(fake_sent(world.fake, 2)->method, "GET");
    assert_string_equal(fake_sent(world.fake, 3)->method, "PATCH");
    assert_true(engine_is_idle(world.engine));
    world_tear_down(&world);
}

static void an_unclear_end_that_went_well_is_not_sent_again(void **state)
{
    struct world world;

    begin_with_map(&world);
    plan_once(&world, plan_patch_until_new);
    fake_answer(world.fake, "PATCH", MAPS "/m", (struct fake_answer){ .class = ERR_UNKNOWN });
    world_ok(&world, "GET", MAPS "/m", world_map_text("m", 12, "new"), 0);
    world_ok(&world, "GET", MAPS "/m", world_map_text("m", 12, "new"), 0);
    world_run(&world, 20 * SECOND);
    assert_int_equal(fake_sent_count(world.fake), 3); /* and one read, as no watch showed it */
    assert_string_equal(fake_sent(world.fake, 1)->method, "GET");
    assert_string_equal(fake_sent(world.fake, 2)->method, "GET");
    assert_string_equal(world_value_of(&world, "m"), "new");
    world_tear_down(&world);
}

static void an_unclear_create_that_never_came_is_made_again(void **state)
{
    struct world world;

    begin(&world, NULL);
    world.plan = plan_create_by_key;
    engine_enqueue(&world.controller, STR("a/one"));
    fake_answer(world.fake, "POST", MAPS, (struct fake_answer){ .class = ERR_UNKNOWN });
    fake_status(world.fake, "GET", MAPS "/one", 404, "NotFound", "no such map");
    world_ok(&world, "POST", MAPS, world_map_text("one", 11, "1"), 0);
    world_run(&world, SECOND);
    assert_int_equal(fake_sent_count(world.fake), 3);
    assert_string_equal(world_value_of(&world, "one"), "1");
    world_tear_down(&world);
}

static void what_the_watch_does_not_show_in_time_is_read_once(void **state)
{
    struct world world;

    begin_with_map(&world);
    plan_once(&world, plan_patch_until_new);
    world_ok(&world, "PATCH", MAPS "/m", world_map_text("m", 12, "new"), 0);
    world_run(&world, 4 * SECOND);
    assert_int_equal(fake_sent_count(world.fake), 1);
    world_ok(&world, "GET", MAPS "/m", world_map_text("m", 12, "new"), 0);
    world_run(&world, 3 * SECOND);
    assert_int_equal(fake_sent_count(world.fake), 2);
    assert_string_equal(world_value_of(&world, "m"), "new");
    world_tear_down(&world);
}

static void a_place_in_doubt_is_read_once_at_a_time(void **state)
{
    struct world world;

    begin_with_map(&world);
    plan_once(&world, plan_patch_until_new);
    world_ok(&world, "PATCH", MAPS "/m", world_map_text("m", 12, "new"), 0);
    fake_answer(world.fake, "GET", MAPS "/m",
                (struct fake_answer){ .status = 0, .times = FAKE_ALWAYS });
    world_run(&world, 30 * SECOND);
    assert_int_equal(fake_sent_count(world.fake), 2);
    assert_string_equal(world_value_of(&world, "m"), "new");
    world_tear_down(&world);
}

static void a_read_does_not_undo_a_write_that_is_still_on_its_way(void **state)
{
    struct world world;

    begin_with_map(&world);
    plan_once(&world, plan_patch_until_new);
    world_ok(&world, "PATCH", MAPS "/m", world_map_text("m", 12, "new"), 8 * SECOND);
    fake_answer(world.fake, "GET", MAPS "/m",
                (struct fake_answer){ .status = 200, .body = world_map_text("m", 11, "old") });
    for (int i = 0; i < 90; i++) { /* the read comes after 5 seconds, the answer after 8 */
        world_run(&world, 100 * MS);
        assert_string_equal(world_value_of(&world, "m"), "new");
    }
    assert_int_equal(fake_sent_count(world.fake), 2);
    assert_true(engine_is_idle(world.engine));
    world_tear_down(&world);
}

#define UNREADABLE "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"m\"}}"

static void an_object_that_cannot_be_read_does_not_hold_its_key(void **state)
{
    struct world world;

    begin_with_map(&world);
    plan_once(&world, plan_patch_until_new);
    fake_answer(world.fake, "PATCH", MAPS "/m", (struct fake_answer){ .class = ERR_UNKNOWN });
    fake_answer(world.fake, "GET", MAPS "/m",
                (struct fake_answer){ .status = 200, .body = UNREADABLE, .times = FAKE_ALWAYS });
    world_ok(&world, "PATCH", MAPS "/m", world_map_text("m", 12, "new"), 0);
    world_run(&world, SECOND);
    assert_int_equal(fake_answers_left(world.fake), 0);
    assert_string_equal(world_value_of(&world, "m"), "new");
    world_tear_down(&world);
}

static void objects_that_cannot_be_read_do_not_hold_up_other_doubts(void **state)
{
    struct world world;
    char name[16];

    begin(&world, NULL);
    world.plan = plan_create_by_key;
    for (int i = 0; i < 20; i++) {
        auto_buf struct buf path;

        snprintf(name, sizeof(name), "a/m%d", i);
        buf_init(&path, 100);
        buf_printf(&path, MAPS "/m%d", i);
        world_ok(&world, "POST", MAPS, world_map_text(name + 2, 11 + (unsigned)i, "1"), 0);
        fake_answer(
            world.fake, "GET", buf_text(&path),
            (struct fake_answer){ .status = 200,
                                  .body = i < 19 ? UNREADABLE : world_map_text("m19", 40, "2"),
                                  .times = FAKE_ALWAYS });
        engine_enqueue(&world.controller, str_of(name));
        world_run(&world, MS);
    }
    world_run(&world, 8 * SECOND);
    assert_string_equal(world_value_of(&world, "m19"), "2");
    assert_string_equal(world_value_of(&world, "m0"), "1");
    world_tear_down(&world);
}

static void what_the_watch_shows_is_not_read(void **state)
{
    struct world world;

    begin_with_map(&world);
    plan_once(&world, plan_patch_until_new);
    world_ok(&world, "PATCH", MAPS "/m", world_map_text("m", 12, "new"), 0);
    world_run(&world, SECOND);
    world_see(&world, "m", 12, "new");
    world_run(&world, 60 * SECOND);
    assert_int_equal(fake_sent_count(world.fake), 1);
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

    begin(&world, NULL);
    plan_once(&world, plan_create_fine);
    fake_status(world.fake, "POST", MAPS, 409, "AlreadyExists", "it is there");
    world_run(&world, SECOND);
    assert_int_equal(fake_sent_count(world.fake), 1);
    assert_true(
        metrics_get(world.metrics, &engine_metrics[METRIC_RECONCILE_ERRORS], "tester", NULL) == 0);
    assert_true(engine_is_idle(world.engine));
    assert_string_equal(world_value_of(&world, "one"), ""); /* what is there is not known yet */
    world_tear_down(&world);
}

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

    begin_with_map(&world);
    plan_once(&world, plan_delete_map);
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

    begin_with_map(&world);
    plan_once(&world, plan_delete_map);
    world_ok(&world, "DELETE", MAPS "/m", world_map_text("m", 11, "old"), 0);
    world_run(&world, SECOND);
    assert_null(kube_cache_get(world.cache, "a", "m"));
    assert_int_equal(fake_sent_count(world.fake), 1);
    world_tear_down(&world);
}

static void deleting_what_is_gone_is_fine(void **state)
{
    struct world world;

    begin_with_map(&world);
    plan_once(&world, plan_delete_map);
    fake_status(world.fake, "DELETE", MAPS "/m", 404, "NotFound", "gone");
    world_run(&world, SECOND);
    assert_int_equal(fake_sent_count(world.fake), 1);
    assert_null(kube_cache_get(world.cache, "a", "m"));
    assert_true(engine_is_idle(world.engine));
    world_tear_down(&world);
}

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
    begin(world, NULL);
    world->more = kube_cache_new(&kube_pod_kind, &world->clock);
    see_pod(world, 11, "");
    fake_answer(world->fake, "POST", POD "/binding",
                (struct fake_answer){ .status = 201,
                                      .body = "{\"kind\":\"Status\",\"status\":\"Success\"}",
                                      .delay_us = 50 * MS });
    plan_once(world, plan_bind_pod);
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

    begin(&world, NULL);
    world.more = kube_cache_new(&kube_pod_kind, &world.clock);
    see_pod(&world, 11, "");
    fake_answer(world.fake, "POST", POD "/binding", (struct fake_answer){ .class = ERR_UNKNOWN });
    world_ok(&world, "GET", POD, pod_text(12, "n1"), 0);
    plan_once(&world, plan_bind_pod);
    world_run(&world, SECOND);
    assert_int_equal(fake_sent_count(world.fake), 2);
    assert_int_equal(kube_cache_get(world.more, "a", "p")->version_number, 12);
    world_tear_down(&world);
}

static void a_deletion_whose_answer_cannot_be_read_is_not_taken_for_gone(void **state)
{
    struct world world;

    begin_with_map(&world);
    plan_once(&world, plan_delete_map);
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

    begin_with_map(&world);
    plan_once(&world, plan_delete_twice);
    fake_answer(world.fake, "DELETE", MAPS "/m",
                (struct fake_answer){ .status = 200,
                                      .body = "{\"kind\":\"Status\",\"status\":\"Success\"}",
                                      .times = 2 });
    world_run(&world, SECOND);
    assert_int_equal(fake_sent_count(world.fake), 2);
    assert_null(kube_cache_get(world.cache, "a", "m"));
    world_tear_down(&world);
}

/* ---- the end ---- */

static void a_stop_waits_for_what_is_in_flight_and_sends_nothing_more(void **state)
{
    struct world world;
    unsigned plans;

    begin(&world, NULL);
    plan_once(&world, plan_two_stages);
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

    begin(&world, NULL);
    engine_stop(world.engine, 10 * SECOND, world_stopped, &world);
    assert_false(world.stopped);
    world_run(&world, MS);
    assert_true(world.stopped);
    world_tear_down(&world);
}

static void a_stop_ends_when_its_time_is_up(void **state)
{
    struct world world;

    begin_with_map(&world);
    plan_once(&world, plan_patch_until_new);
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

    begin_with_map(&world);
    plan_once(&world, plan_patch_until_new);
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

    begin_with_map(&world);
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

    begin(&world, NULL);
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
        cmocka_unit_test(a_change_queues_the_key_of_its_object),
        cmocka_unit_test(a_plan_may_ask_to_be_looked_at_again),
        cmocka_unit_test(a_turn_takes_no_more_keys_than_allowed),
        cmocka_unit_test(a_plan_that_fails_is_dropped_and_comes_back_by_back_off),
        cmocka_unit_test(stages_go_in_turn_and_their_actions_side_by_side),
        cmocka_unit_test(effects_of_all_stages_are_seen_at_once_and_gone_when_they_fail),
        cmocka_unit_test(a_key_is_not_planned_while_its_actions_are_in_flight),
        cmocka_unit_test(a_large_plan_and_a_small_one_take_turns_under_the_limit),
        cmocka_unit_test(a_plan_that_waited_too_long_for_its_turn_is_made_anew),
        cmocka_unit_test(a_service_that_hangs_does_not_hold_up_the_others),
        cmocka_unit_test(a_type_of_action_may_have_a_limit_of_its_own),
        cmocka_unit_test(keys_that_wait_for_a_service_leave_room_for_other_controllers),
        cmocka_unit_test(without_the_lease_nothing_is_planned_and_nothing_lost),
        cmocka_unit_test(a_lease_lost_between_two_sends_drops_the_rest),
        cmocka_unit_test(a_conflict_is_planned_again_soon_and_is_no_trouble),
        cmocka_unit_test(a_refusal_is_told_once_and_its_end_too),
        cmocka_unit_test(trouble_that_comes_back_is_told_again),
        cmocka_unit_test(a_server_that_names_a_time_is_left_alone_until_then),
        cmocka_unit_test(too_many_requests_make_every_key_wait),
        cmocka_unit_test(no_server_can_ask_for_a_pause_without_end),
        cmocka_unit_test(a_pause_is_not_made_shorter_by_a_later_refusal),
        cmocka_unit_test(a_place_that_is_missing_again_and_again_is_said),
        cmocka_unit_test(an_unclear_end_is_read_before_the_key_is_planned_again),
        cmocka_unit_test(an_unclear_end_that_went_well_is_not_sent_again),
        cmocka_unit_test(an_unclear_create_that_never_came_is_made_again),
        cmocka_unit_test(what_the_watch_does_not_show_in_time_is_read_once),
        cmocka_unit_test(a_place_in_doubt_is_read_once_at_a_time),
        cmocka_unit_test(a_read_does_not_undo_a_write_that_is_still_on_its_way),
        cmocka_unit_test(an_object_that_cannot_be_read_does_not_hold_its_key),
        cmocka_unit_test(objects_that_cannot_be_read_do_not_hold_up_other_doubts),
        cmocka_unit_test(what_the_watch_shows_is_not_read),
        cmocka_unit_test(a_create_that_finds_it_existing_may_be_fine),
        cmocka_unit_test(a_deletion_is_foretold_as_under_way_and_only_the_server_says_gone),
        cmocka_unit_test(a_removal_answered_by_the_object_as_it_was_is_known_at_once),
        cmocka_unit_test(deleting_what_is_gone_is_fine),
        cmocka_unit_test(deleting_what_is_being_deleted_changes_nothing),
        cmocka_unit_test(a_bind_counts_from_the_beginning_and_is_not_read),
        cmocka_unit_test(a_bind_may_be_seen_before_its_answer),
        cmocka_unit_test(a_pod_deleted_after_its_bind_is_gone),
        cmocka_unit_test(a_pod_that_is_seen_on_another_node_is_there),
        cmocka_unit_test(a_bind_that_the_watch_does_not_show_is_read_after_a_while),
        cmocka_unit_test(a_bind_that_ended_unclearly_is_read_at_once),
        cmocka_unit_test(a_deletion_whose_answer_cannot_be_read_is_not_taken_for_gone),
        cmocka_unit_test(a_stop_waits_for_what_is_in_flight_and_sends_nothing_more),
        cmocka_unit_test(a_stop_with_nothing_to_wait_for_still_answers_from_the_loop),
        cmocka_unit_test(a_stop_ends_when_its_time_is_up),
        cmocka_unit_test(a_stop_does_not_wait_for_reads),
        cmocka_unit_test(the_state_shows_every_key_in_words),
        cmocka_unit_test(a_scrape_shows_queues_and_controllers),
    };

    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
