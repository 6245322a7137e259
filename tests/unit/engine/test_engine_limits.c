/* test_engine_limits.c - how much goes at once: large and small plans, services that hang, other
 * controllers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "world.h"

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

    world_begin(&world, &(struct engine_options){ .max_in_flight = 2 });
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
    assert_string_equal(world_sent_path(&world, 0), MAPS "?many0");
    assert_string_equal(world_sent_path(&world, 1), MAPS "?one0");
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

    world_begin(&world, &(struct engine_options){ .max_in_flight = 1 });
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

static int plan_of_3_ms(struct world *world, struct str key, struct plan *plan, struct err *err)
{
    clock_advance_us(&world->clock, 3 * MS);
    return 0;
}

static unsigned plans_at_a_change_each_ms(unsigned pause_factor, world_plan plan)
{
    struct world world;
    unsigned plans;

    world_begin(&world, NULL);
    world.controller.pause_factor = pause_factor;
    world.plan = plan;
    for (int i = 0; i < 100; i++) {
        engine_enqueue(&world.controller, STR("a/one"));
        world_run(&world, MS);
    }
    world_run(&world, SECOND);
    assert_true(engine_is_idle(world.engine));
    plans = world.plans;
    world_tear_down(&world);
    return plans;
}

static void a_costly_plan_is_not_made_at_every_change(void **state)
{
    assert_int_equal(plans_at_a_change_each_ms(0, plan_of_3_ms), 100);
    assert_in_range(plans_at_a_change_each_ms(8, plan_of_3_ms), 4, 6); /* in 27 ms, one */
    assert_int_equal(plans_at_a_change_each_ms(8, NULL), 100);         /* it costs nothing */
}

static int plan_that_rests(struct world *world, struct str key, struct plan *plan, struct err *err)
{
    plan->rest_us = 25 * MS;
    return 0;
}

static void a_plan_that_wants_a_rest_is_not_made_again_before(void **state)
{
    assert_in_range(plans_at_a_change_each_ms(0, plan_that_rests), 4, 6);
}

static void begin_with_a_key_that_pauses(struct world *world)
{
    world_begin(world, NULL);
    world->controller.pause_factor = 8;
    world->plan = plan_of_3_ms;
    engine_enqueue(&world->controller, STR("a/one"));
    world_run(world, MS);
    assert_false(engine_is_idle(world->engine));
}

static void a_key_that_pauses_delays_no_stop(void **state)
{
    struct world world;

    begin_with_a_key_that_pauses(&world);
    engine_stop(world.engine, SECOND, world_stopped, &world);
    world_run(&world, MS);
    assert_true(world.stopped);
    world_tear_down(&world);
}

static void a_key_may_pause_when_the_engine_ends(void **state)
{
    struct world world;

    begin_with_a_key_that_pauses(&world);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_plan_and_a_small_one_take_turns_under_the_limit),
        cmocka_unit_test(a_plan_that_waited_too_long_for_its_turn_is_made_anew),
        cmocka_unit_test(a_costly_plan_is_not_made_at_every_change),
        cmocka_unit_test(a_plan_that_wants_a_rest_is_not_made_again_before),
        cmocka_unit_test(a_key_that_pauses_delays_no_stop),
        cmocka_unit_test(a_key_may_pause_when_the_engine_ends),
        cmocka_unit_test(a_service_that_hangs_does_not_hold_up_the_others),
        cmocka_unit_test(a_type_of_action_may_have_a_limit_of_its_own),
        cmocka_unit_test(keys_that_wait_for_a_service_leave_room_for_other_controllers),
    };

    return cmocka_run_group_tests_name("engine_limits", tests, NULL, NULL);
}
