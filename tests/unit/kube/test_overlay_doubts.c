/* test_overlay_doubts.c - a write that nothing shows for long is in doubt and is read; and a read
 * settles only what it can know of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "overlay_rig.h"

static struct kube_overlay *lay_in_doubt(struct world *world, const char *uid, const char *word)
{
    struct kube_overlay *overlay = lay(world, uid, word);

    come_to_doubt(world);
    return overlay;
}

/* Answered with version 6 of u1, which the watch does not show. */
static void create_in_doubt(struct world *world)
{
    done(lay(world, NULL, "predicted"), "u1", 6, "created");
    come_to_doubt(world);
    assert_told(&world->mirror, "a:->predicted a:predicted>created ");
}

static void an_unanswered_write_is_in_doubt_after_a_while(void **state)
{
    struct world *world = *state;
    struct kube_overlay *overlay;

    see(world, "u1", 5, "x");
    overlay = lay_in_doubt(world, "u1", "predicted");
    assert_false(doubted(world)); /* named once */
    come_to_doubt(world);         /* and again, when the read came to nothing */
    buf_clear(&world->mirror.log);
    settle(world, "u1", 6, "found");
    assert_told(&world->mirror, "a:predicted>found ");
    kube_overlay_failed(overlay);
    assert_told(&world->mirror, "");
    see(world, "u1", 6, "found");
    assert_told(&world->mirror, "");
    assert_settled(world);
}

static void an_answer_that_the_watch_does_not_show_is_in_doubt(void **state)
{
    struct world *world = *state;

    create_in_doubt(world);
    settle_gone(world); /* somebody deleted it */
    assert_told(&world->mirror, "a:created>- ");
    see(world, "u1", 6, "created"); /* the watch is late */
    see_gone(world, 7);
    assert_told(&world->mirror, "");
    assert_settled(world);
}

/* Readers see a predicted deletion, which was laid before the answer came: of the answered object
 * nobody has hold but the answer itself, and it is needed to remember that it is gone. */
static void an_answer_that_nobody_sees_may_turn_out_to_be_gone(void **state)
{
    struct world *world = *state;
    struct kube_overlay *first = lay(world, NULL, "first"), *second = lay_deletion(world);

    done(first, "u1", 6, "created");
    assert_told(&world->mirror, "a:->first a:first>- ");
    come_to_doubt(world);
    settle_gone(world); /* somebody deleted it */
    assert_told(&world->mirror, "");
    see(world, "u1", 6, "created"); /* the watch is late */
    assert_told(&world->mirror, "");
    kube_overlay_failed(second);
    see_gone(world, 7);
    assert_told(&world->mirror, "");
    assert_settled(world);
}

static void a_read_that_finds_the_write_settles_it_for_good(void **state)
{
    struct world *world = *state;

    see(world, "u1", 5, "x");
    write_deletion(world);
    come_to_doubt(world);
    settle_gone(world);
    assert_shown(world, "-");
    assert_settled(world); /* still hidden, and not asked about again */
    assert_shown(world, "-");
}

static void a_deletion_that_did_not_happen_shows_the_object_again(void **state)
{
    struct world *world = *state;

    see(world, "u1", 5, "x");
    write_deletion(world);
    come_to_doubt(world);
    settle(world, "u1", 5, "x");
    assert_shown(world, "x");
    assert_settled(world);
}

static void a_read_that_was_overtaken_settles_nothing(void **state)
{
    struct world *world = *state;
    struct kube_overlay *overlay = lay(world, NULL, "predicted");

    come_to_doubt(world); /* the read says: not there */
    done(overlay, "u1", 6, "created after all");
    settle_gone(world);
    assert_shown(world, "created after all");
    see(world, "u1", 6, "created after all");
    settle_gone(world);
    assert_shown(world, "created after all");
    assert_settled(world);
}

static void a_write_laid_after_the_question_is_not_settled_by_it(void **state)
{
    struct world *world = *state;
    struct kube_overlay *first, *second;

    see(world, "u1", 5, "x");
    first = lay_in_doubt(world, "u1", "one");
    second = lay(world, "u1", "two");
    settle(world, "u1", 5, "x");
    assert_shown(world, "two");
    kube_overlay_failed(second);
    assert_shown(world, "one"); /* in flight */
    kube_overlay_failed(first);
    assert_shown(world, "x");
    assert_settled(world);
}

static void an_answer_after_the_question_outlives_it(void **state)
{
    struct world *world = *state;

    create_in_doubt(world); /* the read finds version 6 */
    done(lay(world, "u1", "predicted"), "u1", 7, "patched");
    settle(world, "u1", 6, "created");
    assert_shown(world, "patched");
    settle_gone(world);
    assert_shown(world, "patched");
    see(world, "u1", 7, "patched");
    assert_settled(world);
}

static void a_read_that_finds_what_is_known_tells_nothing(void **state)
{
    struct world *world = *state;

    create_in_doubt(world);
    settle(world, "u1", 6, "created");
    assert_told(&world->mirror, "");
    assert_settled(world);
}

static void a_late_event_of_what_is_gone_ends_no_prediction(void **state)
{
    struct world *world = *state;
    struct kube_overlay *first = lay(world, NULL, "first");

    done(lay(world, NULL, "second"), "u1", 6, "created");
    write_deletion(world);
    see(world, "u1", 6, "created");
    assert_told(&world->mirror, "a:->first a:first>created a:created>- a:->first ");
    see_gone(world, 7);
    assert_told(&world->mirror, "");
    kube_overlay_failed(first);
    assert_told(&world->mirror, "a:first>- ");
    assert_settled(world);
}

static void a_read_that_finds_things_as_before_leaves_a_write_in_flight(void **state)
{
    struct world *world = *state;
    struct kube_overlay *overlay;

    see(world, "u1", 5, "x");
    overlay = lay_in_doubt(world, "u1", "y");
    settle(world, "u1", 6, "x of others");
    assert_shown(world, "y");
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US - 1);
    assert_false(doubted(world));
    kube_overlay_taken(overlay);
    come_to_doubt(world);
    settle(world, "u1", 7, "y2");
    assert_shown(world, "y2");
    see_gone(world, 8);

    overlay = lay_in_doubt(world, NULL, "z");
    settle_gone(world);
    assert_shown(world, "z");
    done(overlay, "u2", 9, "z2");
    see(world, "u2", 9, "z2");
    assert_settled(world);
}

static void a_read_that_finds_the_object_gone_or_changed_ends_a_prediction(void **state)
{
    struct world *world = *state;
    struct kube_overlay *overlay;

    see(world, "u1", 5, "x");
    overlay = lay_in_doubt(world, "u1", "y");
    settle(world, "u1", 6, "z");
    assert_shown(world, "z");
    kube_overlay_taken(overlay);
    assert_shown(world, "z");

    overlay = lay_in_doubt(world, "u1", "y");
    settle_gone(world);
    assert_shown(world, "-");
    kube_overlay_taken(overlay);
    assert_shown(world, "-");
    see_gone(world, 8);
    assert_settled(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_unanswered_write_is_in_doubt_after_a_while),
        TEST(an_answer_that_the_watch_does_not_show_is_in_doubt),
        TEST(an_answer_that_nobody_sees_may_turn_out_to_be_gone),
        TEST(a_read_that_finds_the_write_settles_it_for_good),
        TEST(a_deletion_that_did_not_happen_shows_the_object_again),
        TEST(a_read_that_was_overtaken_settles_nothing),
        TEST(a_write_laid_after_the_question_is_not_settled_by_it),
        TEST(an_answer_after_the_question_outlives_it),
        TEST(a_read_that_finds_what_is_known_tells_nothing),
        TEST(a_late_event_of_what_is_gone_ends_no_prediction),
        TEST(a_read_that_finds_things_as_before_leaves_a_write_in_flight),
        TEST(a_read_that_finds_the_object_gone_or_changed_ends_a_prediction),
    };

    return cmocka_run_group_tests_name("overlay_doubts", tests, NULL, NULL);
}
