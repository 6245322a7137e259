/* test_overlay.c - our own writes over what was seen: the hard cases one by one (a long random run
 * is in test_overlay_model.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mirror.h"

struct world {
    struct clock clock;
    struct kube_cache *cache;
    struct mirror mirror;
    int by_node;
};

static void world_init(struct world *world)
{
    clock_init_virtual(&world->clock, 0);
    world->cache = kube_cache_new(&kube_pod_kind, &world->clock);
    world->by_node = kube_cache_add_index(world->cache, keys_by_node);
    mirror_init(&world->mirror, world->cache);
}

static void world_done(struct world *world)
{
    mirror_check(&world->mirror, world->by_node);
    kube_cache_free(world->cache);
    mirror_done(&world->mirror);
}

static int set_up(void **state)
{
    static struct world world;

    world_init(&world);
    *state = &world;
    return 0;
}

static int tear_down(void **state)
{
    world_done(*state);
    return 0;
}

static void see(struct world *world, const char *uid, uint64_t version, const char *word)
{
    const struct kube_object *object = make_pod("a", uid, version, word);

    kube_cache_seen(world->cache, object);
    kube_object_unref(object);
}

static struct kube_overlay *lay(struct world *world, const char *uid, const char *word)
{
    const struct kube_object *object = make_pod("a", uid, 0, word);
    struct kube_overlay *overlay = kube_overlay_lay(world->cache, "n", "a", object);

    kube_object_unref(object);
    return overlay;
}

static struct kube_overlay *lay_deletion(struct world *world)
{
    return kube_overlay_lay(world->cache, "n", "a", NULL);
}

static void done(struct kube_overlay *overlay, const char *uid, uint64_t version, const char *word)
{
    const struct kube_object *object = make_pod("a", uid, version, word);

    kube_overlay_done(overlay, object, version);
    kube_object_unref(object);
}

static void settle(struct world *world, const char *uid, uint64_t version, const char *word)
{
    const struct kube_object *object = make_pod("a", uid, version, word);

    kube_cache_settle(world->cache, "n", "a", object);
    kube_object_unref(object);
}

static bool doubted(struct world *world)
{
    const char *ns, *name;

    if (!kube_cache_doubt(world->cache, &ns, &name))
        return false;
    assert_string_equal(ns, "n");
    assert_string_equal(name, "a");
    return true;
}

/* Nothing is left over the lower view: no doubt is ever raised again. */
static void assert_settled(struct world *world)
{
    clock_advance_us(&world->clock, INT64_C(10) * KUBE_OVERLAY_DOUBT_US);
    assert_false(doubted(world));
}

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
    assert_told(&world->mirror, ""); /* it cannot be known yet whether that is ours */
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
    assert_told(&world->mirror, "a:->x a:x>predicted a:predicted>of another ");
    assert_settled(world);
}

static void an_answer_older_than_the_end_is_not_shown(void **state)
{
    struct world *world = *state;
    struct kube_overlay *overlay;

    see(world, "u1", 5, "x");
    overlay = lay(world, "u1", "predicted");
    kube_cache_seen_gone(world->cache, "n", "a", 7);
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
    kube_cache_seen_gone(world->cache, "n", "a", 7);
    buf_clear(&world->mirror.log);
    see(world, "u1", 6, "repeated");
    assert_told(&world->mirror, "");
    kube_overlay_failed(overlay);
    assert_told(&world->mirror, "");
    assert_settled(world);
}

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
    kube_overlay_done(lay_deletion(world), NULL, 0);
    assert_told(&world->mirror, "a:->x a:x>- ");
    see(world, "u1", 6, "a late event");
    assert_told(&world->mirror, "");
    kube_cache_seen_gone(world->cache, "n", "a", 7);
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
    kube_cache_seen_gone(world->cache, "n", "a", 6);
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
    kube_overlay_done(lay_deletion(world), NULL, 0);
    buf_clear(&world->mirror.log);
    see(world, "u2", 9, "another"); /* as a list may show it */
    assert_told(&world->mirror, "a:->another ");
    assert_settled(world);
}

static void a_chain_of_replacements_hides_all_that_went_before(void **state)
{
    struct world *world = *state;

    see(world, "u1", 5, "x");
    kube_overlay_done(lay_deletion(world), NULL, 0);
    done(lay(world, NULL, "predicted"), "u2", 9, "second");
    kube_overlay_done(lay_deletion(world), NULL, 0);
    assert_told(&world->mirror, "a:->x a:x>- a:->predicted a:predicted>second a:second>- ");
    see(world, "u1", 6, "late");
    kube_cache_seen_gone(world->cache, "n", "a", 8);
    see(world, "u2", 9, "second");
    kube_cache_seen_gone(world->cache, "n", "a", 10);
    assert_told(&world->mirror, "");
    assert_settled(world);
}

static void the_newest_of_two_writes_covers_until_its_own_answer(void **state)
{
    struct world *world = *state;
    struct kube_overlay *first, *second;

    see(world, "u1", 5, "x");
    first = lay(world, "u1", "one");
    second = lay(world, "u1", "one and two");
    assert_told(&world->mirror, "a:->x a:x>one a:one>one and two ");
    done(first, "u1", 6, "answered one");
    assert_told(&world->mirror, "");
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
    assert_told(&world->mirror, "a:->x a:x>one a:one>two a:two>answered ");

    first = lay(world, "u1", "three");
    second = lay(world, "u1", "four");
    kube_overlay_failed(first);
    kube_overlay_failed(second);
    assert_told(&world->mirror, "a:answered>three a:three>four a:four>answered ");
    see(world, "u1", 6, "answered");
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
    kube_cache_relist_begin(world->cache);
    kube_cache_relist_end(world->cache, 8); /* not on it: it was made later, or deleted earlier */
    assert_told(&world->mirror, "");
    kube_cache_relist_begin(world->cache);
    kube_cache_relist_end(world->cache, 10);
    assert_told(&world->mirror, "a:answered>- ");
    assert_settled(world);
}

static void a_relist_lets_a_prediction_cover(void **state)
{
    struct world *world = *state;
    struct kube_overlay *overlay = lay(world, NULL, "predicted");

    buf_clear(&world->mirror.log);
    kube_cache_relist_begin(world->cache);
    kube_cache_relist_end(world->cache, 8);
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
    kube_cache_seen_gone(world->cache, "n", "a", 8);
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
    kube_cache_seen_gone(world->cache, "n", "a", 7);
    kube_cache_progress(world->cache, 9);
    done(overlay, "u1", 6, "ours");
    assert_null(kube_cache_get(world->cache, "n", "a"));
    assert_settled(world);
}

/* ---- doubts ---- */

static void an_unanswered_write_is_in_doubt_after_a_while(void **state)
{
    struct world *world = *state;
    struct kube_overlay *overlay;

    see(world, "u1", 5, "x");
    overlay = lay(world, "u1", "predicted");
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US - 1);
    assert_false(doubted(world));
    clock_advance_us(&world->clock, 1);
    assert_true(doubted(world));
    assert_false(doubted(world)); /* named once */
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US);
    assert_true(doubted(world)); /* and again, when the read came to nothing */
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

    done(lay(world, NULL, "predicted"), "u1", 6, "created");
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US);
    assert_true(doubted(world));
    buf_clear(&world->mirror.log);
    kube_cache_settle(world->cache, "n", "a", NULL); /* somebody deleted it */
    assert_told(&world->mirror, "a:created>- ");
    see(world, "u1", 6, "created"); /* the watch is late */
    kube_cache_seen_gone(world->cache, "n", "a", 7);
    assert_told(&world->mirror, "");
    assert_settled(world);
}

/* Readers see the second prediction, which was laid before the answer came: of the answered object
 * nobody has hold but the answer itself, and it is needed to remember that it is gone. */
static void an_answer_that_nobody_sees_may_turn_out_to_be_gone(void **state)
{
    struct world *world = *state;
    struct kube_overlay *first = lay(world, NULL, "first"), *second = lay(world, NULL, "second");

    done(first, "u1", 6, "created");
    assert_told(&world->mirror, "a:->first a:first>second ");
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US);
    assert_true(doubted(world));
    kube_cache_settle(world->cache, "n", "a", NULL); /* somebody deleted it */
    assert_told(&world->mirror, "a:second>- ");
    see(world, "u1", 6, "created"); /* the watch is late */
    assert_told(&world->mirror, "");
    kube_overlay_failed(second);
    kube_cache_seen_gone(world->cache, "n", "a", 7);
    assert_told(&world->mirror, "");
    assert_settled(world);
}

static void a_read_that_finds_the_write_settles_it_for_good(void **state)
{
    struct world *world = *state;

    see(world, "u1", 5, "x");
    kube_overlay_done(lay_deletion(world), NULL, 0);
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US);
    assert_true(doubted(world));
    kube_cache_settle(world->cache, "n", "a", NULL);
    assert_null(kube_cache_get(world->cache, "n", "a"));
    assert_settled(world); /* still hidden, and not asked about again */
    assert_null(kube_cache_get(world->cache, "n", "a"));
}

static void a_deletion_that_did_not_happen_shows_the_object_again(void **state)
{
    struct world *world = *state;

    see(world, "u1", 5, "x");
    kube_overlay_done(lay_deletion(world), NULL, 0);
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US);
    assert_true(doubted(world));
    settle(world, "u1", 5, "x");
    assert_string_equal(word_of(kube_cache_get(world->cache, "n", "a")), "x");
    assert_settled(world);
}

static void a_read_that_was_overtaken_settles_nothing(void **state)
{
    struct world *world = *state;
    struct kube_overlay *overlay = lay(world, NULL, "predicted");

    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US);
    assert_true(doubted(world)); /* the read says: not there */
    done(overlay, "u1", 6, "created after all");
    kube_cache_settle(world->cache, "n", "a", NULL);
    assert_string_equal(word_of(kube_cache_get(world->cache, "n", "a")), "created after all");
    see(world, "u1", 6, "created after all");
    kube_cache_settle(world->cache, "n", "a", NULL);
    assert_string_equal(word_of(kube_cache_get(world->cache, "n", "a")), "created after all");
    assert_settled(world);
}

static void a_write_laid_after_the_question_is_not_settled_by_it(void **state)
{
    struct world *world = *state;
    struct kube_overlay *first, *second;

    see(world, "u1", 5, "x");
    first = lay(world, "u1", "one");
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US);
    assert_true(doubted(world));
    second = lay(world, "u1", "two");
    settle(world, "u1", 5, "x");
    assert_string_equal(word_of(kube_cache_get(world->cache, "n", "a")), "two");
    kube_overlay_failed(second);
    assert_string_equal(word_of(kube_cache_get(world->cache, "n", "a")), "one"); /* in flight */
    kube_overlay_failed(first);
    assert_string_equal(word_of(kube_cache_get(world->cache, "n", "a")), "x");
    assert_settled(world);
}

static void an_answer_after_the_question_outlives_it(void **state)
{
    struct world *world = *state;

    done(lay(world, NULL, "predicted"), "u1", 6, "created");
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US);
    assert_true(doubted(world)); /* the read finds version 6 */
    done(lay(world, "u1", "predicted"), "u1", 7, "patched");
    settle(world, "u1", 6, "created");
    assert_string_equal(word_of(kube_cache_get(world->cache, "n", "a")), "patched");
    kube_cache_settle(world->cache, "n", "a", NULL);
    assert_string_equal(word_of(kube_cache_get(world->cache, "n", "a")), "patched");
    see(world, "u1", 7, "patched");
    assert_settled(world);
}

static void a_read_that_finds_what_is_known_tells_nothing(void **state)
{
    struct world *world = *state;

    done(lay(world, NULL, "predicted"), "u1", 6, "created");
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US);
    assert_true(doubted(world));
    buf_clear(&world->mirror.log);
    settle(world, "u1", 6, "created");
    assert_told(&world->mirror, "");
    assert_settled(world);
}

static void a_late_event_of_what_is_gone_ends_no_prediction(void **state)
{
    struct world *world = *state;
    struct kube_overlay *first = lay(world, NULL, "first");

    done(lay(world, NULL, "second"), "u1", 6, "created");
    kube_overlay_done(lay_deletion(world), NULL, 0);
    see(world, "u1", 6, "created");
    assert_told(&world->mirror, "a:->first a:first>second a:second>first a:first>- a:->first ");
    kube_cache_seen_gone(world->cache, "n", "a", 7);
    assert_told(&world->mirror, "");
    kube_overlay_failed(first);
    assert_told(&world->mirror, "a:first>- ");
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

/* ---- done, and not shown by the answer ---- */

static const char *word_now(struct world *world)
{
    return word_of(kube_cache_get(world->cache, "n", "a"));
}

static void a_write_that_was_taken_covers_until_the_watch_shows_it(void **state)
{
    struct world *world = *state;

    see(world, "u1", 5, "x");
    kube_overlay_taken(lay(world, "u1", "y1"));
    assert_told(&world->mirror, "a:->x a:x>y1 ");
    see(world, "u1", 6, "x of others"); /* on the same node: from before our write */
    kube_cache_progress(world->cache, 6);
    assert_told(&world->mirror, "");
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
    assert_told(&world->mirror, "a:->x a:x>y1 ");
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
    kube_cache_seen_gone(world->cache, "n", "a", 7);
    assert_told(&world->mirror, "a:->x a:x>y a:y>- ");

    see(world, "u2", 8, "x");
    overlay = lay(world, "u2", "y");
    kube_cache_seen_gone(world->cache, "n", "a", 10);
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
    assert_string_equal(word_now(world), "y2");
    see(world, "u1", 7, "y2");
    assert_settled(world);

    kube_overlay_taken(lay(world, "u1", "z"));
    kube_overlay_done(lay_deletion(world), NULL, 0);
    assert_string_equal(word_now(world), "-");
    kube_cache_seen_gone(world->cache, "n", "a", 9);
    assert_settled(world);
}

static void a_write_that_was_taken_and_is_not_shown_is_read(void **state)
{
    struct world *world = *state;

    see(world, "u1", 5, "x");
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US / 2);
    kube_overlay_taken(lay(world, "u1", "y"));
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US - 1);
    assert_false(doubted(world));
    clock_advance_us(&world->clock, 1);
    assert_true(doubted(world));
    assert_string_equal(word_now(world), "y");
    settle(world, "u1", 6, "y2");
    assert_string_equal(word_now(world), "y2");
    see(world, "u1", 6, "y2");
    assert_settled(world);

    kube_overlay_taken(lay(world, "u1", "z"));
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US);
    assert_true(doubted(world));
    settle(world, "u1", 6, "y2"); /* it did not happen after all */
    assert_string_equal(word_now(world), "y2");
    assert_settled(world);

    kube_overlay_taken(lay(world, "u1", "z"));
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US);
    assert_true(doubted(world));
    kube_cache_settle(world->cache, "n", "a", NULL);
    assert_string_equal(word_now(world), "-");
    kube_cache_seen_gone(world->cache, "n", "a", 9);
    assert_settled(world);
}

static void a_read_that_finds_things_as_before_leaves_a_write_in_flight(void **state)
{
    struct world *world = *state;
    struct kube_overlay *overlay;

    see(world, "u1", 5, "x");
    overlay = lay(world, "u1", "y");
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US);
    assert_true(doubted(world));
    settle(world, "u1", 6, "x of others");
    assert_string_equal(word_now(world), "y");
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US - 1);
    assert_false(doubted(world));
    kube_overlay_taken(overlay);
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US);
    assert_true(doubted(world));
    settle(world, "u1", 7, "y2");
    assert_string_equal(word_now(world), "y2");
    kube_cache_seen_gone(world->cache, "n", "a", 8);

    overlay = lay(world, NULL, "z");
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US);
    assert_true(doubted(world));
    kube_cache_settle(world->cache, "n", "a", NULL);
    assert_string_equal(word_now(world), "z");
    done(overlay, "u2", 9, "z2");
    see(world, "u2", 9, "z2");
    assert_settled(world);
}

static void a_read_that_finds_the_object_gone_or_changed_ends_a_prediction(void **state)
{
    struct world *world = *state;
    struct kube_overlay *overlay;

    see(world, "u1", 5, "x");
    overlay = lay(world, "u1", "y");
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US);
    assert_true(doubted(world));
    settle(world, "u1", 6, "z");
    assert_string_equal(word_now(world), "z");
    kube_overlay_taken(overlay);
    assert_string_equal(word_now(world), "z");

    overlay = lay(world, "u1", "y");
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US);
    assert_true(doubted(world));
    kube_cache_settle(world->cache, "n", "a", NULL);
    assert_string_equal(word_now(world), "-");
    kube_overlay_taken(overlay);
    assert_string_equal(word_now(world), "-");
    kube_cache_seen_gone(world->cache, "n", "a", 8);
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
    kube_cache_seen_gone(world->cache, "n", "a", 7);

    overlay = lay(world, NULL, "z");
    see(world, "u2", 8, "z2");
    kube_cache_seen_gone(world->cache, "n", "a", 9);
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
    assert_string_equal(word_now(world), "z");
    see(world, "u1", 7, "y of the first");
    assert_string_equal(word_now(world), "z");
    see(world, "u1", 8, "z of the second");
    assert_string_equal(word_now(world), "z of the second");
    assert_settled(world);
}

static void a_read_settles_nothing_that_began_after_it(void **state)
{
    struct world *world = *state;
    int64_t read_us;

    see(world, "u1", 5, "x");
    done(lay(world, "u1", "w"), "u1", 6, "w2");
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US);
    assert_true(doubted(world));
    read_us = clock_now_us(&world->clock); /* a slow one; it finds version 6 */
    clock_advance_us(&world->clock, 1);
    kube_overlay_taken(lay(world, "u1", "y"));
    clock_advance_us(&world->clock, KUBE_OVERLAY_DOUBT_US);
    assert_true(doubted(world)); /* both are named */

    const struct kube_object *found = make_pod("a", "u1", 6, "w2");

    kube_cache_settle_read(world->cache, "n", "a", found, read_us);
    kube_object_unref(found);
    assert_string_equal(word_now(world), "y");
    see(world, "u1", 7, "y2");
    assert_settled(world);
}

#define in_world(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_world(a_write_is_seen_at_once_and_replaced_by_the_answer),
        in_world(a_failed_write_restores_what_was_seen),
        in_world(the_watch_may_be_faster_than_the_answer),
        in_world(an_answer_older_than_the_watch_is_not_shown),
        in_world(an_answer_older_than_the_end_is_not_shown),
        in_world(an_event_older_than_the_end_is_not_shown),
        in_world(a_create_has_no_uid_until_it_is_answered),
        in_world(a_create_may_be_seen_before_its_answer),
        in_world(a_deletion_hides_the_object_until_its_end_is_seen),
        in_world(a_name_may_come_back_with_another_uid),
        in_world(a_replacement_may_be_seen_without_the_end_of_the_first),
        in_world(a_chain_of_replacements_hides_all_that_went_before),
        in_world(the_newest_of_two_writes_covers_until_its_own_answer),
        in_world(when_the_second_write_fails_the_first_ones_answer_shows),
        in_world(answers_may_come_in_another_order),
        in_world(a_relist_leaves_what_is_newer_than_itself),
        in_world(a_relist_lets_a_prediction_cover),
        in_world(a_bookmark_past_the_answer_takes_it_away),
        in_world(an_answer_that_was_passed_already_changes_nothing),
        in_world(an_unanswered_write_is_in_doubt_after_a_while),
        in_world(an_answer_that_the_watch_does_not_show_is_in_doubt),
        in_world(an_answer_that_nobody_sees_may_turn_out_to_be_gone),
        in_world(a_read_that_finds_the_write_settles_it_for_good),
        in_world(a_deletion_that_did_not_happen_shows_the_object_again),
        in_world(a_read_that_was_overtaken_settles_nothing),
        in_world(a_write_laid_after_the_question_is_not_settled_by_it),
        in_world(an_answer_after_the_question_outlives_it),
        in_world(a_read_that_finds_what_is_known_tells_nothing),
        in_world(a_late_event_of_what_is_gone_ends_no_prediction),
        in_world(a_write_that_was_taken_covers_until_the_watch_shows_it),
        in_world(a_write_that_the_watch_has_shown_ends_when_it_was_taken),
        in_world(a_write_that_was_taken_yields_to_what_contradicts_it),
        in_world(a_write_that_was_taken_ends_with_its_object),
        in_world(a_write_that_was_taken_ends_with_an_answer_that_shows_it),
        in_world(a_write_that_was_taken_and_is_not_shown_is_read),
        in_world(a_read_that_finds_things_as_before_leaves_a_write_in_flight),
        in_world(a_read_that_finds_the_object_gone_or_changed_ends_a_prediction),
        in_world(a_create_that_was_taken_ends_when_anything_is_there),
        in_world(an_event_from_before_two_writes_ends_neither),
        in_world(a_read_settles_nothing_that_began_after_it),
        in_world(a_cache_may_go_with_writes_in_flight),
    };

    return cmocka_run_group_tests_name("overlay", tests, NULL, NULL);
}
