/* test_overlay.c - our own writes over what was seen: predictions, their answers, and a watch that
 * is faster or slower than they are (a long random run is in test_overlay_model.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "overlay_rig.h"

/* ---- one write ---- */

static void a_write_is_seen_at_once_and_replaced_by_the_answer(void **state)
{
    struct world *world = *state;
    struct kube_overlay *overlay;

    see(world, "u1", 5, "x");
    overlay = lay(world, "u1", "predicted");
    done(overlay, "u1", 6, "answered");
    assert_told(&world->mirror, "a:->x a:x>predicted a:predicted>answered ");
    see(world, "u1", 6, "answered");
    assert_told(&world->mirror, ""); /* the watch brings nothing new */
    assert_settled(world);
}

static void a_failed_write_restores_what_was_seen(void **state)
{
    struct world *world = *state;

    see(world, "u1", 5, "x");
    kube_overlay_failed(lay(world, "u1", "predicted"));
    assert_told(&world->mirror, "a:->x a:x>predicted a:predicted>x ");
    kube_overlay_failed(lay_deletion(world));
    assert_told(&world->mirror, "a:x>- a:->x ");
    assert_settled(world);
}

static void the_watch_may_be_faster_than_the_answer(void **state)
{
    struct world *world = *state;
    struct kube_overlay *overlay;

    see(world, "u1", 5, "x");
    overlay = lay(world, "u1", "predicted");
    buf_clear(&world->mirror.log);
    see(world, "u1", 6, "written");
    /* It cannot be known yet whether that is ours. */
    assert_told(&world->mirror, "a:predicted>predicted ");
    done(overlay, "u1", 6, "written");
    assert_told(&world->mirror, "a:predicted>written ");
    assert_settled(world);
}

static void an_answer_older_than_the_watch_is_not_shown(void **state)
{
    struct world *world = *state;
    struct kube_overlay *overlay;

    see(world, "u1", 5, "x");
    overlay = lay(world, "u1", "predicted");
    see(world, "u1", 6, "ours");
    see(world, "u1", 7, "of another");
    done(overlay, "u1", 6, "ours");
    assert_told(&world->mirror, "a:->x a:x>predicted a:predicted>predicted a:predicted>predicted "
                                "a:predicted>of another ");
    assert_settled(world);
}

static void an_answer_older_than_the_end_is_not_shown(void **state)
{
    struct world *world = *state;
    struct kube_overlay *overlay;

    see(world, "u1", 5, "x");
    overlay = lay(world, "u1", "predicted");
    see_gone(world, 7);
    assert_told(&world->mirror, "a:->x a:x>predicted a:predicted>- ");
    done(overlay, "u1", 6, "ours"); /* it was deleted after our write */
    assert_told(&world->mirror, "");
    assert_settled(world);
}

static void an_event_older_than_the_end_is_not_shown(void **state)
{
    struct world *world = *state;
    struct kube_overlay *overlay;

    see(world, "u1", 5, "x");
    overlay = lay(world, "u1", "predicted"); /* the place is remembered while this is in flight */
    see_gone(world, 7);
    buf_clear(&world->mirror.log);
    see(world, "u1", 6, "repeated");
    assert_told(&world->mirror, "");
    kube_overlay_failed(overlay);
    assert_told(&world->mirror, "");
    assert_settled(world);
}

/* ---- creates and deletions ---- */

static void a_create_has_no_uid_until_it_is_answered(void **state)
{
    struct world *world = *state;

    done(lay(world, NULL, "predicted"), "u1", 6, "created");
    assert_told(&world->mirror, "a:->predicted a:predicted>created ");
    see(world, "u1", 6, "created");
    assert_told(&world->mirror, "");
    assert_settled(world);
}

static void a_create_may_be_seen_before_its_answer(void **state)
{
    struct world *world = *state;
    struct kube_overlay *overlay = lay(world, NULL, "predicted");

    see(world, "u1", 6, "created");
    see(world, "u1", 7, "later");
    done(overlay, "u1", 6, "created");
    assert_told(&world->mirror, "a:->predicted a:predicted>created a:created>later ");
    assert_settled(world);
}

static void a_deletion_hides_the_object_until_its_end_is_seen(void **state)
{
    struct world *world = *state;

    see(world, "u1", 5, "x");
    write_deletion(world);
    assert_told(&world->mirror, "a:->x a:x>- ");
    see(world, "u1", 6, "a late event");
    assert_told(&world->mirror, "");
    see_gone(world, 7);
    assert_told(&world->mirror, "");
    assert_settled(world);
}

static void a_name_may_come_back_with_another_uid(void **state)
{
    struct world *world = *state;
    struct kube_overlay *overlay;

    see(world, "u1", 5, "x");
    overlay = lay_deletion(world);
    assert_told(&world->mirror, "a:->x a:x>- ");
    see_gone(world, 6);
    see(world, "u2", 7, "another");
    assert_told(&world->mirror, "a:->another ");
    kube_overlay_done(overlay, NULL, 6);
    assert_told(&world->mirror, "");
    assert_settled(world);
}

static void a_replacement_may_be_seen_without_the_end_of_the_first(void **state)
{
    struct world *world = *state;

    see(world, "u1", 5, "x");
    write_deletion(world);
    buf_clear(&world->mirror.log);
    see(world, "u2", 9, "another"); /* as a list may show it */
    assert_told(&world->mirror, "a:->another ");
    assert_settled(world);
}

static void a_chain_of_replacements_hides_all_that_went_before(void **state)
{
    struct world *world = *state;

    see(world, "u1", 5, "x");
    write_deletion(world);
    done(lay(world, NULL, "predicted"), "u2", 9, "second");
    write_deletion(world);
    assert_told(&world->mirror, "a:->x a:x>- a:->predicted a:predicted>second a:second>- ");
    see(world, "u1", 6, "late");
    see_gone(world, 8);
    see(world, "u2", 9, "second");
    see_gone(world, 10);
    assert_told(&world->mirror, "");
    assert_settled(world);
}

/* ---- two writes ---- */

static void the_newest_of_two_writes_covers_until_its_own_answer(void **state)
{
    struct world *world = *state;
    struct kube_overlay *first, *second;

    see(world, "u1", 5, "x");
    first = lay(world, "u1", "one");
    second = lay(world, "u1", "one and two");
    assert_told(&world->mirror, "a:->x a:x>one a:one>one and two ");
    done(first, "u1", 6, "answered one");
    assert_told(&world->mirror, "a:one and two>one and two ");
    done(second, "u1", 7, "answered both");
    assert_told(&world->mirror, "a:one and two>answered both ");
    see(world, "u1", 6, "answered one");
    assert_told(&world->mirror, "");
    see(world, "u1", 7, "answered both");
    assert_told(&world->mirror, "");
    assert_settled(world);
}

static void when_the_second_write_fails_the_first_ones_answer_shows(void **state)
{
    struct world *world = *state;
    struct kube_overlay *first, *second;

    see(world, "u1", 5, "x");
    first = lay(world, "u1", "one");
    second = lay(world, "u1", "two");
    done(first, "u1", 6, "answered");
    kube_overlay_failed(second);
    assert_told(&world->mirror, "a:->x a:x>one a:one>two a:two>two a:two>answered ");

    first = lay(world, "u1", "three");
    second = lay(world, "u1", "four");
    kube_overlay_failed(first);
    kube_overlay_failed(second);
    assert_told(&world->mirror, "a:answered>three a:three>four a:four>four a:four>answered ");
    see(world, "u1", 6, "answered");
    assert_settled(world);
}

static const char *annotation_of(struct world *world, const char *key)
{
    const struct kube_object *pod = kube_cache_get(world->cache, "n", "a");
    bool found;
    struct str value = kube_pairs_get(&pod->annotations, key, &found);

    return found ? value.at : "-";
}

/* The first write may wait for its answer for long. */
static void a_write_in_flight_hides_no_answer_to_another_one(void **state)
{
    struct world *world = *state;
    struct kube_overlay *slow;

    see(world, "u1", 5, "x");
    slow = lay_patch(world, "{\"metadata\":{\"annotations\":{\"slow\":\"yes\"}}}");
    done(lay(world, "u1", "y"), "u1", 6, "y");
    assert_shown(world, "y");
    assert_string_equal(annotation_of(world, "slow"), "yes");
    see(world, "u1", 6, "y");
    see(world, "u1", 7, "z of others");
    assert_shown(world, "z of others");
    assert_string_equal(annotation_of(world, "slow"), "yes");
    assert_string_equal(kube_cache_get(world->cache, "n", "a")->version, "7");
    kube_overlay_failed(slow);
    assert_shown(world, "z of others");
    assert_string_equal(annotation_of(world, "slow"), "-");
    assert_settled(world);
}

static void a_write_in_flight_shows_nothing_of_an_object_that_is_gone(void **state)
{
    struct world *world = *state;
    struct kube_overlay *patch;

    see(world, "u1", 5, "x");
    patch = lay(world, "u1", "y");
    write_deletion(world);
    assert_shown(world, "-");
    done(lay(world, NULL, "new"), "u2", 8, "new");
    assert_shown(world, "new");
    kube_overlay_failed(patch);
    see(world, "u2", 8, "new");
    assert_shown(world, "new");
    assert_settled(world);
}

static void a_create_in_flight_hides_no_object_that_an_answer_shows(void **state)
{
    struct world *world = *state;
    struct kube_overlay *first = lay(world, NULL, "x"), *second = lay(world, NULL, "y");

    done(first, "u1", 6, "x");
    assert_shown(world, "x");
    kube_overlay_failed(second); /* it exists already */
    see(world, "u1", 6, "x");
    assert_settled(world);
}

static void a_patch_of_nothing_is_not_laid(void **state)
{
    struct world *world = *state;

    assert_null(lay(world, "u1", "y"));
    see(world, "u1", 5, "x");
    assert_null(lay_patch(world, "[]"));
    assert_shown(world, "x");
    assert_settled(world);
}

static void answers_may_come_in_another_order(void **state)
{
    struct world *world = *state;
    struct kube_overlay *first, *second;

    see(world, "u1", 5, "x");
    first = lay(world, "u1", "one");
    second = lay(world, "u1", "two");
    done(second, "u1", 7, "newest");
    assert_told(&world->mirror, "a:->x a:x>one a:one>two a:two>one ");
    done(first, "u1", 6, "older");
    assert_told(&world->mirror, "a:one>newest ");
    see(world, "u1", 7, "newest");
    assert_settled(world);
}

/* ---- lists and bookmarks ---- */

static void list_without_it(struct world *world, uint64_t version)
{
    kube_cache_relist_begin(world->cache);
    kube_cache_relist_end(world->cache, version);
}

static void a_relist_leaves_what_is_newer_than_itself(void **state)
{
    struct world *world = *state;

    see(world, "u1", 5, "x");
    done(lay(world, "u1", "predicted"), "u1", 9, "answered");
    buf_clear(&world->mirror.log);
    kube_cache_relist_begin(world->cache);
    see(world, "u1", 7, "on the list");
    kube_cache_relist_end(world->cache, 8);
    assert_told(&world->mirror, "");
    list_without_it(world, 8); /* it was made later, or deleted earlier */
    assert_told(&world->mirror, "");
    list_without_it(world, 10);
    assert_told(&world->mirror, "a:answered>- ");
    assert_settled(world);
}

static void a_relist_lets_a_prediction_cover(void **state)
{
    struct world *world = *state;
    struct kube_overlay *overlay = lay(world, NULL, "predicted");

    buf_clear(&world->mirror.log);
    list_without_it(world, 8);
    assert_told(&world->mirror, "");
    kube_overlay_failed(overlay);
    assert_told(&world->mirror, "a:predicted>- ");
    assert_settled(world);
}

static void a_bookmark_past_the_answer_takes_it_away(void **state)
{
    struct world *world = *state;

    /* Written so that our own selector does not match it any more. */
    done(lay(world, NULL, "predicted"), "u1", 6, "created");
    kube_cache_progress(world->cache, 5);
    assert_told(&world->mirror, "a:->predicted a:predicted>created ");
    kube_cache_progress(world->cache, 6);
    assert_told(&world->mirror, "a:created>- ");
    see(world, "u2", 7, "x");
    kube_overlay_done(lay_deletion(world), NULL, 8);
    buf_clear(&world->mirror.log);
    kube_cache_progress(world->cache, 7);
    assert_told(&world->mirror, "");
    see_gone(world, 8);
    kube_cache_progress(world->cache, 8);
    assert_told(&world->mirror, "");
    assert_settled(world);
}

static void an_answer_that_was_passed_already_changes_nothing(void **state)
{
    struct world *world = *state;
    struct kube_overlay *overlay;

    see(world, "u1", 5, "x");
    overlay = lay(world, "u1", "predicted");
    see(world, "u1", 6, "ours");
    see_gone(world, 7);
    kube_cache_progress(world->cache, 9);
    done(overlay, "u1", 6, "ours");
    assert_shown(world, "-");
    assert_settled(world);
}

static void a_cache_may_go_with_writes_in_flight(void **state)
{
    struct world *world = *state;

    see(world, "u1", 5, "x");
    lay(world, "u1", "one");
    lay_deletion(world);
    kube_overlay_taken(lay(world, NULL, "two"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_write_is_seen_at_once_and_replaced_by_the_answer),
        TEST(a_failed_write_restores_what_was_seen),
        TEST(the_watch_may_be_faster_than_the_answer),
        TEST(an_answer_older_than_the_watch_is_not_shown),
        TEST(an_answer_older_than_the_end_is_not_shown),
        TEST(an_event_older_than_the_end_is_not_shown),
        TEST(a_create_has_no_uid_until_it_is_answered),
        TEST(a_create_may_be_seen_before_its_answer),
        TEST(a_deletion_hides_the_object_until_its_end_is_seen),
        TEST(a_name_may_come_back_with_another_uid),
        TEST(a_replacement_may_be_seen_without_the_end_of_the_first),
        TEST(a_chain_of_replacements_hides_all_that_went_before),
        TEST(the_newest_of_two_writes_covers_until_its_own_answer),
        TEST(when_the_second_write_fails_the_first_ones_answer_shows),
        TEST(a_write_in_flight_hides_no_answer_to_another_one),
        TEST(a_write_in_flight_shows_nothing_of_an_object_that_is_gone),
        TEST(a_create_in_flight_hides_no_object_that_an_answer_shows),
        TEST(a_patch_of_nothing_is_not_laid),
        TEST(answers_may_come_in_another_order),
        TEST(a_relist_leaves_what_is_newer_than_itself),
        TEST(a_relist_lets_a_prediction_cover),
        TEST(a_bookmark_past_the_answer_takes_it_away),
        TEST(an_answer_that_was_passed_already_changes_nothing),
        TEST(a_cache_may_go_with_writes_in_flight),
    };

    return cmocka_run_group_tests_name("overlay", tests, NULL, NULL);
}
