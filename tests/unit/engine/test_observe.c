/* test_observe.c - an engine that only observes: it plans as ever, and sends nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "world.h"

static struct {
    unsigned plans, actions;
    char key[64];
    const struct controller *controller;
} seen;

static void on_observed(void *context, const struct controller *controller, struct str key,
                        const struct plan *plan)
{
    assert_ptr_equal(context, &seen);
    seen.plans++;
    seen.controller = controller;
    snprintf(seen.key, sizeof(seen.key), STR_FMT, STR_ARG(key));
    list_each (const struct action, action, &plan->actions, link)
        seen.actions += action->type == &action_kube;
}

static void begin(struct world *world, world_plan plan)
{
    memset(&seen, 0, sizeof(seen));
    world_begin(world, &(struct engine_options){ .observe_only = true,
                                                 .observed = on_observed,
                                                 .observed_context = &seen });
    world->plan = plan;
}

static int plan_create_and_patch(struct world *world, struct str key, struct plan *plan,
                                 struct err *err)
{
    world_create(world, plan, "new", "1");
    plan_next_stage(plan);
    world_patch(world, plan, "m", "2");
    return 0;
}

static void plans_are_shown_and_nothing_is_sent_or_foretold(void **state)
{
    struct world world;

    begin(&world, plan_create_and_patch);
    world_see(&world, "m", 11, "1");
    world_run(&world, SECOND);
    assert_int_equal(seen.plans, 1);
    assert_int_equal(seen.actions, 2);
    assert_string_equal(seen.key, "a/m");
    assert_ptr_equal(seen.controller, &world.controller);
    world_run(&world, 60 * SECOND);
    assert_int_equal(fake_sent_count(world.fake), 0);
    assert_int_equal(seen.plans, 1);
    assert_string_equal(world_value_of(&world, "m"), "1");
    assert_null(kube_cache_get(world.cache, "a", "new"));
    assert_true(engine_is_idle(world.engine));

    world_see(&world, "m", 12, "3"); /* a change brings it back */
    world_run(&world, SECOND);
    assert_int_equal(seen.plans, 2);
    world_tear_down(&world);
}

static int plan_nothing_for_now(struct world *world, struct str key, struct plan *plan,
                                struct err *err)
{
    plan_look_again(plan, 10 * (int64_t)SECOND);
    return 0;
}

static void empty_plans_are_shown_too_and_keys_come_back_in_time(void **state)
{
    struct world world;

    begin(&world, plan_nothing_for_now);
    engine_enqueue(&world.controller, STR("a/x"));
    world_run(&world, 35 * SECOND);
    assert_int_equal(seen.plans, 4);
    assert_int_equal(seen.actions, 0);
    world_tear_down(&world);
}

static int plan_fails(struct world *world, struct str key, struct plan *plan, struct err *err)
{
    world_create(world, plan, "never", "1");
    return err_set(err, ERR_INVALID, "the spec is odd");
}

static void a_plan_that_fails_is_not_shown(void **state)
{
    struct world world;

    begin(&world, plan_fails);
    engine_enqueue(&world.controller, STR("a/x"));
    world_run(&world, 10 * SECOND);
    assert_true(world.plans > 1);
    assert_int_equal(seen.plans, 0);
    world_tear_down(&world);
}

static void a_stop_ends_it(void **state)
{
    struct world world;

    begin(&world, plan_create_and_patch);
    engine_enqueue(&world.controller, STR("a/x"));
    world_run(&world, MS);
    engine_stop(world.engine, SECOND, world_stopped, &world);
    world_run(&world, MS);
    assert_true(world.stopped);
    engine_enqueue(&world.controller, STR("a/y"));
    world_run(&world, SECOND);
    assert_int_equal(seen.plans, 1);
    world_tear_down(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_are_shown_and_nothing_is_sent_or_foretold),
        cmocka_unit_test(empty_plans_are_shown_too_and_keys_come_back_in_time),
        cmocka_unit_test(a_plan_that_fails_is_not_shown),
        cmocka_unit_test(a_stop_ends_it),
    };

    return cmocka_run_group_tests_name("observe", tests, NULL, NULL);
}
