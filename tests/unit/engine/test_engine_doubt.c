/* test_engine_doubt.c - what may or may not have happened is read, once, before anybody builds on
 * it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "world.h"

/* ---- calls without a clear end ---- */

static void an_unclear_end_is_read_before_the_key_is_planned_again(void **state)
{
    struct world world;

    world_begin_with_map(&world);
    world_plan_once(&world, world_plan_patch);
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

    world_begin_with_map(&world);
    world_plan_once(&world, world_plan_patch);
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

    world_begin(&world, NULL);
    world.plan = world_plan_create;
    engine_enqueue(&world.controller, STR("a/one"));
    fake_answer(world.fake, "POST", MAPS, (struct fake_answer){ .class = ERR_UNKNOWN });
    fake_status(world.fake, "GET", MAPS "/one", 404, "NotFound", "no such map");
    world_ok(&world, "POST", MAPS, world_map_text("one", 11, "1"), 0);
    world_run(&world, SECOND);
    assert_int_equal(fake_sent_count(world.fake), 3);
    assert_string_equal(world_value_of(&world, "one"), "1");
    world_tear_down(&world);
}

/* ---- what the watch is to show ---- */

static void what_the_watch_does_not_show_in_time_is_read_once(void **state)
{
    struct world world;

    world_begin_with_map(&world);
    world_plan_once(&world, world_plan_patch);
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

    world_begin_with_map(&world);
    world_plan_once(&world, world_plan_patch);
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

    world_begin_with_map(&world);
    world_plan_once(&world, world_plan_patch);
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

    world_begin_with_map(&world);
    world_plan_once(&world, world_plan_patch);
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

    world_begin(&world, NULL);
    world.plan = world_plan_create;
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

    world_begin_with_map(&world);
    world_plan_once(&world, world_plan_patch);
    world_ok(&world, "PATCH", MAPS "/m", world_map_text("m", 12, "new"), 0);
    world_run(&world, SECOND);
    world_see(&world, "m", 12, "new");
    world_run(&world, 60 * SECOND);
    assert_int_equal(fake_sent_count(world.fake), 1);
    world_tear_down(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unclear_end_is_read_before_the_key_is_planned_again),
        cmocka_unit_test(an_unclear_end_that_went_well_is_not_sent_again),
        cmocka_unit_test(an_unclear_create_that_never_came_is_made_again),
        cmocka_unit_test(what_the_watch_does_not_show_in_time_is_read_once),
        cmocka_unit_test(a_place_in_doubt_is_read_once_at_a_time),
        cmocka_unit_test(a_read_does_not_undo_a_write_that_is_still_on_its_way),
        cmocka_unit_test(an_object_that_cannot_be_read_does_not_hold_its_key),
        cmocka_unit_test(objects_that_cannot_be_read_do_not_hold_up_other_doubts),
        cmocka_unit_test(what_the_watch_shows_is_not_read),
    };

    return cmocka_run_group_tests_name("engine_doubt", tests, NULL, NULL);
}
