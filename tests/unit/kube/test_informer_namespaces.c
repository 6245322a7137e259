/* test_informer_namespaces.c - one informer of several namespaces: listed in turn, watched
 * together, and none of them hides what became of another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "informer_rig.h"

#include <stdio.h>

#define M_PODS "/api/v1/namespaces/m/pods"
#define N_PODS "/api/v1/namespaces/n/pods"

static void start_both(struct rig *rig)
{
    char m[] = "m", n[] = "n";
    const char *names[] = { m, n, m };
    struct kube_informer_options options = { .ns = "not used",
                                             .namespaces = names,
                                             .namespace_count = 3 };

    rig_start(rig, &options);
    m[0] = n[0] = '?'; /* the names were copied */
    names[0] = names[1] = names[2] = NULL;
}

/* m has the pod a and is at version 10, n has b and is at 12. */
static void watch_both(struct rig *rig)
{
    rig_answer(rig, M_PODS, LIST("10", POD_IN("m", "a", "5", "one")));
    rig_answer(rig, N_PODS, LIST("12", POD_IN("n", "b", "6", "one")));
    rig_answer(rig, M_PODS, NULL);
    rig_answer(rig, N_PODS, NULL);
    start_both(rig);
    fake_run_for(rig->fake, 1000);
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WATCHING);
    assert_int_equal(fake_open_streams(rig->fake), 2);
    assert_told(&rig->mirror, "a:->one b:->one ");
}

static void namespaces_are_listed_in_turn_and_watched_together(void **state)
{
    struct rig *rig = *state;

    watch_both(rig);
    assert_int_equal(fake_sent_count(rig->fake), 4); /* a name given twice counts once */
    assert_string_equal(fake_sent(rig->fake, 0)->path, M_PODS "?limit=500");
    assert_string_equal(fake_sent(rig->fake, 1)->path, N_PODS "?limit=500");
    assert_true(rig_path_has(fake_sent(rig->fake, 2), M_PODS "?watch=true&"));
    assert_true(rig_path_has(fake_sent(rig->fake, 2), "&resourceVersion=10&"));
    assert_true(rig_path_has(fake_sent(rig->fake, 3), N_PODS "?watch=true&"));
    assert_true(rig_path_has(fake_sent(rig->fake, 3), "&resourceVersion=12&"));

    rig_feed(rig, M_PODS, "{\"type\":\"MODIFIED\",\"object\":"); /* lines do not mix */
    rig_feed(rig, N_PODS, EVENT("ADDED", POD_IN("n", "c", "13", "new")));
    rig_feed(rig, M_PODS, POD_IN("m", "a", "14", "two") "}\n");
    assert_told(&rig->mirror, "c:->new a:one>two ");
}

/* A server with three namespaces, of which two may be read. */
static struct fake_answer serve_three(void *context, const struct fake_sent *sent)
{
    bool watch = rig_path_has(sent, "watch=true");

    if (rig_path_has(sent, M_PODS "?"))
        return (struct fake_answer){ .status = 200,
                                     .body =
                                         watch ? NULL : LIST("10", POD_IN("m", "a", "5", "one")) };
    if (rig_path_has(sent, N_PODS "?"))
        return (struct fake_answer){ .status = 200,
                                     .body =
                                         watch ? NULL : LIST("12", POD_IN("n", "b", "6", "one")) };
    ++*(unsigned *)context;
    return (struct fake_answer){ .status = 200, .body = LIST("12", POD_IN("o", "c", "7", "one")) };
}

static void an_object_of_an_unwatched_namespace_never_appears(void **state)
{
    struct rig *rig = *state;
    unsigned others = 0;

    fake_serve(rig->fake, serve_three, &others);
    start_both(rig);
    fake_run_for(rig->fake, 200 * SECOND);
    assert_int_equal(others, 0);
    assert_int_equal(kube_cache_count(rig->cache), 2);
    assert_null(kube_cache_get(rig->cache, "o", "c"));
    assert_told(&rig->mirror, "a:->one b:->one ");
}

static void nothing_is_gone_before_every_list_has_ended(void **state)
{
    struct rig *rig = *state;

    watch_both(rig);
    rig_answer(rig, M_PODS, LIST("20", ""));
    fake_status(rig->fake, "GET", N_PODS, 500, "InternalError", "not now");
    rig_feed(rig, M_PODS, ERROR("410"));
    fake_run_for(rig->fake, 300000);
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WAITING);
    assert_non_null(strstr(kube_informer_last_error(rig->informer), "not now"));
    assert_told(&rig->mirror, "");                     /* a is in no list, but n was not heard */
    assert_int_equal(fake_open_streams(rig->fake), 0); /* no event between the lists */

    rig_answer(rig, M_PODS, LIST("21", ""));
    rig_answer(rig, N_PODS, PAGE("22", "more", POD_IN("n", "b", "6", "one")));
    rig_answer(rig, N_PODS, LIST("22", POD_IN("n", "c", "7", "one")));
    rig_answer(rig, M_PODS, NULL);
    rig_answer(rig, N_PODS, NULL);
    fake_run_for(rig->fake, SECOND);
    assert_told(&rig->mirror, "c:->one a:one>- ");
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WATCHING);
    assert_string_equal(kube_informer_last_error(rig->informer), "");
}

static void a_lost_history_of_one_lists_all_without_a_flicker(void **state)
{
    struct rig *rig = *state;

    watch_both(rig);
    fake_forget_sent(rig->fake);
    rig_feed(rig, M_PODS, ERROR("410"));
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WAITING);
    rig_feed(rig, N_PODS, EVENT("MODIFIED", POD_IN("n", "b", "13", "two"))); /* still heard */
    rig_answer(rig, M_PODS, LIST("30", POD_IN("m", "a", "5", "one")));
    rig_answer(rig, N_PODS, LIST("31", POD_IN("n", "b", "13", "two")));
    rig_answer(rig, M_PODS, NULL);
    rig_answer(rig, N_PODS, NULL);
    fake_run_for(rig->fake, SECOND);
    assert_told(&rig->mirror, "b:one>two ");
    assert_int_equal(rig_lists_sent(rig), 2);
    assert_int_equal(fake_open_streams(rig->fake), 2);
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WATCHING);
    assert_true(rig_path_has(fake_last_sent(rig->fake), N_PODS "?watch=true"));
    assert_true(rig_path_has(fake_last_sent(rig->fake), "&resourceVersion=31&"));
}

static void two_lost_histories_are_listed_once(void **state)
{
    struct rig *rig = *state;

    watch_both(rig);
    fake_forget_sent(rig->fake);
    rig_answer(rig, M_PODS, LIST("30", POD_IN("m", "a", "5", "one")));
    rig_answer(rig, N_PODS, LIST("31", POD_IN("n", "b", "6", "one")));
    rig_answer(rig, M_PODS, NULL);
    rig_answer(rig, N_PODS, NULL);
    rig_feed(rig, M_PODS, ERROR("410"));
    rig_feed(rig, N_PODS, ERROR("410"));
    fake_run_for(rig->fake, 250000); /* one failure, not two */
    assert_int_equal(rig_lists_sent(rig), 2);
    fake_run_for(rig->fake, 5 * SECOND);
    assert_int_equal(rig_lists_sent(rig), 2);
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WATCHING);
    assert_told(&rig->mirror, "");
}

static void one_silent_namespace_is_noticed_while_the_other_talks(void **state)
{
    struct rig *rig = *state;
    int64_t begin_us;

    watch_both(rig);
    begin_us = kube_informer_last_contact_us(rig->informer);
    fake_forget_sent(rig->fake);
    for (int i = 0; i < 5; i++) {
        fake_run_for(rig->fake, 11 * SECOND);
        rig_feed(rig, N_PODS, BOOKMARK("20"));
    }
    assert_int_equal(kube_informer_last_contact_us(rig->informer), begin_us);
    rig_answer(rig, M_PODS, NULL);
    fake_run_for(rig->fake, 6 * SECOND); /* the minute is over for m */
    assert_true(rig_path_has(fake_last_sent(rig->fake), M_PODS "?watch=true"));
    assert_true(rig_path_has(fake_last_sent(rig->fake), "&resourceVersion=10&"));
    assert_true(kube_informer_last_contact_us(rig->informer) > begin_us);
    assert_int_equal(rig_lists_sent(rig), 0);
}

static void last_contact_is_never_until_every_namespace_was_heard(void **state)
{
    struct rig *rig = *state;

    fake_run_for(rig->fake, SECOND);
    rig_answer(rig, M_PODS, LIST("10", ""));
    fake_answer(rig->fake, "GET", N_PODS,
                (struct fake_answer){ .class = ERR_UNAVAILABLE, .times = FAKE_ALWAYS });
    start_both(rig);
    fake_run_for(rig->fake, 1000);
    assert_int_equal(kube_informer_last_contact_us(rig->informer), 0);
    assert_false(kube_cache_is_synced(rig->cache));
}

static void one_broken_stream_does_not_disturb_the_other(void **state)
{
    struct rig *rig = *state;

    watch_both(rig);
    rig_feed(rig, M_PODS, BOOKMARK("15"));
    fake_forget_sent(rig->fake);
    assert_true(fake_stream_break(rig->fake, M_PODS, ERR_UNKNOWN));
    fake_run_for(rig->fake, 1000);
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WAITING);
    assert_non_null(strstr(kube_informer_last_error(rig->informer), "namespace m"));
    assert_int_equal(fake_open_streams(rig->fake), 1);
    rig_feed(rig, N_PODS, EVENT("MODIFIED", POD_IN("n", "b", "13", "two")));
    assert_told(&rig->mirror, "b:one>two ");

    rig_answer(rig, M_PODS, NULL);
    fake_run_for(rig->fake, SECOND);
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WATCHING);
    assert_string_equal(kube_informer_last_error(rig->informer), "");
    assert_true(rig_path_has(fake_last_sent(rig->fake), M_PODS "?watch=true"));
    assert_true(rig_path_has(fake_last_sent(rig->fake), "&resourceVersion=15&"));
    assert_int_equal(rig_lists_sent(rig), 0);
    assert_int_equal(fake_answers_left(rig->fake), 0);
}

static void each_watch_has_a_back_off_of_its_own(void **state)
{
    struct rig *rig = *state;

    watch_both(rig);
    fake_answer(rig->fake, "GET", M_PODS,
                (struct fake_answer){ .class = ERR_UNAVAILABLE, .times = FAKE_ALWAYS });
    assert_true(fake_stream_break(rig->fake, M_PODS, ERR_UNKNOWN));
    fake_run_for(rig->fake, 50 * SECOND);
    fake_forget_sent(rig->fake);
    rig_answer(rig, N_PODS, NULL);
    assert_true(fake_stream_break(rig->fake, N_PODS, ERR_UNKNOWN));
    fake_run_for(rig->fake, 250000);
    assert_true(rig_path_has(fake_last_sent(rig->fake), N_PODS "?watch=true"));
    assert_int_equal(fake_open_streams(rig->fake), 1);
    fake_forget_sent(rig->fake);
    fake_run_for(rig->fake, 50 * SECOND); /* and n's health is no reason to hurry for m */
    assert_in_range(fake_sent_count(rig->fake), 3, 5);
}

static void a_healthy_stream_ends_the_back_off_of_lists(void **state)
{
    struct rig *rig = *state;

    fake_answer(rig->fake, "GET", M_PODS,
                (struct fake_answer){ .class = ERR_UNAVAILABLE, .times = 4 });
    fake_serve(rig->fake, serve_three, &(unsigned){ 0 });
    start_both(rig);
    fake_run_for(rig->fake, 20 * SECOND);
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WATCHING);
    assert_true(fake_stream_end(rig->fake, N_PODS));
    fake_run_for(rig->fake, 1000);
    fake_forget_sent(rig->fake);
    rig_feed(rig, M_PODS, ERROR("410"));
    fake_run_for(rig->fake, 250000);
    assert_int_equal(rig_lists_sent(rig), 2);
}

static void a_list_makes_refusals_forgotten(void **state)
{
    struct rig *rig = *state;

    watch_both(rig);
    for (int i = 0; i < 3; i++)
        fake_status(rig->fake, "GET", M_PODS, 500, "InternalError", "no");
    fake_serve(rig->fake, serve_three, &(unsigned){ 0 });
    assert_true(fake_stream_break(rig->fake, M_PODS, ERR_UNKNOWN));
    fake_run_for(rig->fake, 5 * SECOND);
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WATCHING);
    fake_forget_sent(rig->fake);
    rig_feed(rig, M_PODS, ERROR("500"));
    fake_run_for(rig->fake, 10 * SECOND);
    assert_int_equal(rig_lists_sent(rig), 0);
    assert_int_equal(fake_open_streams(rig->fake), 2);
}

static void progress_is_what_every_watch_has_passed(void **state)
{
    struct rig *rig = *state;
    const struct kube_object *predicted = make_pod("z", NULL, 0, "predicted");
    const struct kube_object *listed = make_pod("y", "u-y", 11, "created");
    const struct kube_object *created = make_pod("z", "u-z", 15, "created");

    watch_both(rig);
    kube_overlay_done(kube_overlay_lay(rig->cache, "n", "y", listed), listed, 11);
    kube_overlay_done(kube_overlay_lay(rig->cache, "n", "z", predicted), created, 15);
    assert_told(&rig->mirror, "y:->created z:->predicted z:predicted>created ");
    rig_feed(rig, N_PODS, BOOKMARK("14"));
    assert_told(&rig->mirror, ""); /* m is still at its list, 10 */
    rig_feed(rig, M_PODS, BOOKMARK("40"));
    assert_told(&rig->mirror, "y:created>- "); /* and n has not passed 15 */
    rig_feed(rig, N_PODS, BOOKMARK("15"));
    assert_told(&rig->mirror, "z:created>- ");
    kube_object_unref(predicted);
    kube_object_unref(listed);
    kube_object_unref(created);
}

/* A server with two namespaces, of which one may be forbidden. */
struct half {
    bool is_denied[2]; /* m, n */
    const char *lists[2];
};

static struct fake_answer serve_half(void *context, const struct fake_sent *sent)
{
    const struct half *half = context;
    int which = rig_path_has(sent, N_PODS "?");

    if (half->is_denied[which])
        return (struct fake_answer){ .status = 403,
                                     .body = "{\"kind\":\"Status\",\"reason\":\"Forbidden\","
                                             "\"message\":\"no rights\"}" };
    return (struct fake_answer){ .status = 200, .body = sent->stream ? NULL : half->lists[which] };
}

static void a_namespace_that_may_not_be_listed_stops_no_other(void **state)
{
    struct rig *rig = *state;
    struct half half = { .lists = { LIST("30", POD_IN("m", "a", "5", "one")),
                                    LIST("31", POD_IN("n", "c", "9", "one")) } };

    watch_both(rig);
    fake_serve(rig->fake, serve_half, &half);
    half.is_denied[1] = true; /* the namespace was deleted, and its Role with it */
    assert_true(fake_stream_end(rig->fake, N_PODS));
    fake_run_for(rig->fake, 10 * SECOND);
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WATCHING);
    assert_non_null(strstr(kube_informer_last_error(rig->informer), "namespace n: no rights"));
    assert_told(&rig->mirror, ""); /* b is not gone because nobody may see it */
    assert_false(kube_cache_is_readable(rig->cache, STR("n")));
    assert_true(kube_cache_is_readable(rig->cache, STR("m")));
    rig_feed(rig, M_PODS, EVENT("MODIFIED", POD_IN("m", "a", "40", "two")));
    assert_told(&rig->mirror, "a:one>two ");

    half.lists[0] = LIST("41", POD_IN("m", "a", "40", "two"));
    fake_forget_sent(rig->fake);
    fake_run_for(rig->fake, 130 * SECOND);
    assert_int_equal(rig_lists_sent(rig), 2); /* of n alone; m's watch goes on */
    assert_in_range(loop_now_us(rig->loop) - kube_informer_last_contact_us(rig->informer), 0,
                    61 * SECOND);

    half.is_denied[1] = false;
    fake_run_for(rig->fake, 62 * SECOND);
    assert_told(&rig->mirror, "c:->one b:one>- ");
    assert_true(kube_cache_is_readable(rig->cache, STR("n")));
    assert_int_equal(fake_open_streams(rig->fake), 2);
    assert_string_equal(kube_informer_last_error(rig->informer), "");
}

static void a_namespace_that_was_never_readable_does_not_keep_others_from_being_read(void **state)
{
    struct rig *rig = *state;
    struct half half = { .is_denied = { true, false },
                         .lists = { LIST("9", ""), LIST("31", POD_IN("n", "b", "9", "one")) } };

    fake_serve(rig->fake, serve_half, &half);
    start_both(rig);
    fake_run_for(rig->fake, SECOND);
    assert_true(kube_cache_is_synced(rig->cache));
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WATCHING);
    assert_false(kube_cache_is_readable(rig->cache, STR("m")));
    assert_told(&rig->mirror, "b:->one ");
}

static void nothing_is_read_while_every_namespace_is_forbidden(void **state)
{
    struct rig *rig = *state;
    struct half half = { .is_denied = { true, true },
                         .lists = { LIST("30", POD_IN("m", "a", "5", "one")),
                                    LIST("31", POD_IN("n", "b", "6", "one")) } };

    fake_serve(rig->fake, serve_half, &half);
    start_both(rig);
    fake_run_for(rig->fake, 100 * SECOND);
    assert_false(kube_cache_is_synced(rig->cache));
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WAITING);
    assert_int_equal(kube_informer_last_contact_us(rig->informer), 0);
    assert_non_null(strstr(kube_informer_last_error(rig->informer), "no rights"));
    half.is_denied[0] = half.is_denied[1] = false;
    fake_run_for(rig->fake, 16 * SECOND);
    assert_told(&rig->mirror, "a:->one b:->one ");
    assert_string_equal(kube_informer_last_error(rig->informer), "");
}

static void a_lost_history_is_listed_also_while_a_forbidden_namespace_is_tried(void **state)
{
    struct rig *rig = *state;
    struct half half = { .is_denied = { true, false },
                         .lists = { LIST("9", ""), LIST("31", POD_IN("n", "b", "9", "one")) } };

    fake_serve(rig->fake, serve_half, &half);
    start_both(rig);
    fake_run_for(rig->fake, SECOND);
    fake_answer(rig->fake, "GET", M_PODS, (struct fake_answer){ 0 }); /* the try hangs */
    fake_run_for(rig->fake, 61 * SECOND);
    assert_int_equal(fake_answers_left(rig->fake), 0);
    half.lists[1] = LIST("50", POD_IN("n", "b", "49", "two"));
    rig_feed(rig, N_PODS, ERROR("410"));
    fake_run_for(rig->fake, 2 * SECOND);
    assert_told(&rig->mirror, "b:->one b:one>two ");
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WATCHING);
}

static struct fake_answer serve_nothing(void *context, const struct fake_sent *sent)
{
    return (struct fake_answer){ .status = 200, .body = sent->stream ? NULL : LIST("1", "") };
}

static void as_many_namespaces_as_the_bound_are_watched(void **state)
{
    struct rig *rig = *state;
    char names[KUBE_INFORMER_MAX_NAMESPACES][16];
    const char *pointers[KUBE_INFORMER_MAX_NAMESPACES];
    struct kube_informer_options options = { .namespaces = pointers,
                                             .namespace_count = KUBE_INFORMER_MAX_NAMESPACES };

    for (int i = 0; i < KUBE_INFORMER_MAX_NAMESPACES; i++) {
        snprintf(names[i], sizeof(names[i]), "n%d", i);
        pointers[i] = names[i];
    }
    fake_serve(rig->fake, serve_nothing, NULL);
    rig_start(rig, &options);
    fake_run_for(rig->fake, SECOND);
    assert_int_equal(fake_open_streams(rig->fake), KUBE_INFORMER_MAX_NAMESPACES);
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WATCHING);
}

static void a_kind_without_namespaces_has_one_watch(void **state)
{
    struct rig *rig = *state;
    struct kube_cache *nodes = kube_cache_new(&kube_node_kind, &rig->clock);
    struct kube_informer_options options = { .namespaces = (const char *[]){ "m", "n" },
                                             .namespace_count = 2 };
    struct kube_informer *informer = kube_informer_new(rig->client, nodes, &rig->rand, &options);

    fake_serve(rig->fake, serve_nothing, NULL);
    kube_informer_start(informer);
    fake_run_for(rig->fake, 1000);
    assert_int_equal(fake_sent_count(rig->fake), 2);
    assert_string_equal(fake_sent(rig->fake, 0)->path, "/api/v1/nodes?limit=500");
    kube_informer_free(informer);
    kube_cache_free(nodes);
}

static void several_watches_can_be_freed_while_one_waits(void **state)
{
    struct rig *rig = *state;

    watch_both(rig);
    assert_true(fake_stream_break(rig->fake, N_PODS, ERR_UNKNOWN));
    fake_run_for(rig->fake, 1000);
    kube_informer_free(rig->informer);
    rig->informer = NULL;
    assert_int_equal(fake_open_streams(rig->fake), 0);
    fake_run_for(rig->fake, 60 * SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(namespaces_are_listed_in_turn_and_watched_together),
        TEST(an_object_of_an_unwatched_namespace_never_appears),
        TEST(nothing_is_gone_before_every_list_has_ended),
        TEST(a_lost_history_of_one_lists_all_without_a_flicker),
        TEST(two_lost_histories_are_listed_once),
        TEST(one_silent_namespace_is_noticed_while_the_other_talks),
        TEST(last_contact_is_never_until_every_namespace_was_heard),
        TEST(one_broken_stream_does_not_disturb_the_other),
        TEST(each_watch_has_a_back_off_of_its_own),
        TEST(a_healthy_stream_ends_the_back_off_of_lists),
        TEST(a_list_makes_refusals_forgotten),
        TEST(progress_is_what_every_watch_has_passed),
        TEST(a_namespace_that_may_not_be_listed_stops_no_other),
        TEST(a_namespace_that_was_never_readable_does_not_keep_others_from_being_read),
        TEST(nothing_is_read_while_every_namespace_is_forbidden),
        TEST(a_lost_history_is_listed_also_while_a_forbidden_namespace_is_tried),
        TEST(as_many_namespaces_as_the_bound_are_watched),
        TEST(a_kind_without_namespaces_has_one_watch),
        TEST(several_watches_can_be_freed_while_one_waits),
    };

    return cmocka_run_group_tests_name("informer_namespaces", tests, NULL, NULL);
}
