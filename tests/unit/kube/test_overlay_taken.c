/* test_overlay_taken.c - a write that was done and whose answer does not show the object covers
 * until something later than it is seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "overlay_rig.h"

static void a_write_that_was_taken_covers_until_the_watch_shows_it(void **state)
{
    struct world *world = *state;

    see(world, "u1", 5, "x");
    kube_overlay_taken(lay(world, "u1", "y1"));
    assert_told(&world->mirror, "a:->x a:x>y1 ");
    see(world, "u1", 6, "x of others"); /* on the same node: from before our write */
    kube_cache_progress(world->cache, 6);
    assert_told(&world->mirror, "a:y1>y1 ");
    see(world, "u1", 7, "y2");
    assert_told(&world->mirror, "a:y1>y2 ");
    assert_settled(world);
}

static void a_write_that_the_watch_has_shown_ends_when_it_was_taken(void **state)
{
    struct world *world = *state;
    struct kube_overlay *overlay;

    see(world, "u1", 5, "x");
    overlay = lay(world, "u1", "y1");
    see(world, "u1", 6, "y2");
    assert_told(&world->mirror, "a:->x a:x>y1 a:y1>y1 ");
    kube_overlay_taken(overlay);
    assert_told(&world->mirror, "a:y1>y2 ");
    assert_settled(world);
}

static void a_write_that_was_taken_yields_to_what_contradicts_it(void **state)
{
    struct world *world = *state;

    see(world, "u1", 5, "x");
    kube_overlay_taken(lay(world, "u1", "y"));
    see(world, "u1", 6, "z");
    assert_told(&world->mirror, "a:->x a:x>y a:y>z ");
    assert_settled(world);
}

static void a_write_that_was_taken_ends_with_its_object(void **state)
{
    struct world *world = *state;
    struct kube_overlay *overlay;

    see(world, "u1", 5, "x");
    kube_overlay_taken(lay(world, "u1", "y"));
    see_gone(world, 7);
    assert_told(&world->mirror, "a:->x a:x>y a:y>- ");

    see(world, "u2", 8, "x");
    overlay = lay(world, "u2", "y");
    see_gone(world, 10);
    kube_overlay_taken(overlay);
    assert_told(&world->mirror, "a:->x a:x>y a:y>- ");

    see(world, "u3", 11, "x");
    kube_overlay_taken(lay(world, "u3", "y"));
    see(world, "u4", 13, "x"); /* as a list may show it */
    assert_told(&world->mirror, "a:->x a:x>y a:y>- a:->x ");
    assert_settled(world);
}

static void a_write_that_was_taken_ends_with_an_answer_that_shows_it(void **state)
{
    struct world *world = *state;

    see(world, "u1", 5, "x");
    kube_overlay_taken(lay(world, "u1", "y1"));
    done(lay(world, "u1", "y1 and more"), "u1", 7, "y2");
    assert_shown(world, "y2");
    see(world, "u1", 7, "y2");
    assert_settled(world);

    kube_overlay_taken(lay(world, "u1", "z"));
    write_deletion(world);
    assert_shown(world, "-");
    see_gone(world, 9);
    assert_settled(world);
}

static void a_write_that_was_taken_and_is_not_shown_is_read(void **state)
{
    struct world *world = *state;

    see(world, "u1", 5, "x");
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US / 2);
    kube_overlay_taken(lay(world, "u1", "y"));
    come_to_doubt(world);
    assert_shown(world, "y");
    settle(world, "u1", 6, "y2");
    assert_shown(world, "y2");
    see(world, "u1", 6, "y2");
    assert_settled(world);

    kube_overlay_taken(lay(world, "u1", "z"));
    come_to_doubt(world);
    settle(world, "u1", 6, "y2"); /* it did not happen after all */
    assert_shown(world, "y2");
    assert_settled(world);

    kube_overlay_taken(lay(world, "u1", "z"));
    come_to_doubt(world);
    settle_gone(world);
    assert_shown(world, "-");
    see_gone(world, 9);
    assert_settled(world);
}

static void a_create_that_was_taken_ends_when_anything_is_there(void **state)
{
    struct world *world = *state;
    struct kube_overlay *overlay;

    kube_overlay_taken(lay(world, NULL, "y"));
    kube_cache_progress(world->cache, 5);
    assert_told(&world->mirror, "a:->y ");
    see(world, "u1", 6, "y2");
    assert_told(&world->mirror, "a:y>y2 ");
    see_gone(world, 7);

    overlay = lay(world, NULL, "z");
    see(world, "u2", 8, "z2");
    see_gone(world, 9);
    assert_told(&world->mirror, "a:y2>- a:->z a:z>z2 a:z2>- ");
    kube_overlay_taken(overlay); /* it came and went */
    assert_told(&world->mirror, "");
    assert_settled(world);
}

/* The second write leans on the first: what was there before both is news to neither. */
static void an_event_from_before_two_writes_ends_neither(void **state)
{
    struct world *world = *state;
    struct kube_overlay *first, *second;

    see(world, "u1", 5, "x");
    first = lay(world, "u1", "y");
    second = lay(world, "u1", "z");
    kube_overlay_taken(first);
    kube_overlay_taken(second);
    see(world, "u1", 6, "x of others");
    assert_shown(world, "z");
    see(world, "u1", 7, "y of the first");
    assert_shown(world, "z");
    see(world, "u1", 8, "z of the second");
    assert_shown(world, "z of the second");
    assert_settled(world);
}

static void a_read_settles_nothing_that_began_after_it(void **state)
{
    struct world *world = *state;
    int64_t read_us;

    see(world, "u1", 5, "x");
    done(lay(world, "u1", "w"), "u1", 6, "w2");
    come_to_doubt(world);
    read_us = clock_now_us(&world->clock); /* a slow one; it finds version 6 */
    clock_advance_us(&world->clock, 1);
    kube_overlay_taken(lay(world, "u1", "y"));
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US);
    assert_true(doubted(world)); /* both are named */

    const struct kube_object *found = make_pod("a", "u1", 6, "w2");

    kube_cache_settle_read(world->cache, "n", "a", found, read_us);
    kube_object_unref(found);
    assert_shown(world, "y");
    see(world, "u1", 7, "y2");
    assert_settled(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_write_that_was_taken_covers_until_the_watch_shows_it),
        TEST(a_write_that_the_watch_has_shown_ends_when_it_was_taken),
        TEST(a_write_that_was_taken_yields_to_what_contradicts_it),
        TEST(a_write_that_was_taken_ends_with_its_object),
        TEST(a_write_that_was_taken_ends_with_an_answer_that_shows_it),
        TEST(a_write_that_was_taken_and_is_not_shown_is_read),
        TEST(a_create_that_was_taken_ends_when_anything_is_there),
        TEST(an_event_from_before_two_writes_ends_neither),
        TEST(a_read_settles_nothing_that_began_after_it),
    };

    return cmocka_run_group_tests_name("overlay_taken", tests, NULL, NULL);
}
