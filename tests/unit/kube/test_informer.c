/* test_informer.c - list, watch, and everything that can go wrong with them, on virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "informer_rig.h"

#define PODS "/api/v1/pods"

static void answer(struct rig *rig, const char *body)
{
    rig_answer(rig, PODS, body);
}

static void feed(struct rig *rig, const char *lines)
{
    rig_feed(rig, PODS, lines);
}

/* Listed with one pod, and watching. */
static void start_watching(struct rig *rig)
{
    answer(rig, LIST("10", POD("a", "5", "one")));
    answer(rig, NULL);
    rig_start(rig, NULL);
    fake_run_for(rig->fake, 1000);
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WATCHING);
    assert_int_equal(fake_open_streams(rig->fake), 1);
    assert_told(&rig->mirror, "a:->one ");
    fake_forget_sent(rig->fake);
}

/* ---- listing ---- */

static void it_lists_page_by_page_and_then_watches(void **state)
{
    struct rig *rig = *state;
    const struct fake_sent *watch;

    answer(rig, PAGE("10", "more+1", POD("a", "1", "x") "," POD("b", "2", "x")));
    answer(rig, PAGE("10", "more2", POD("c", "3", "x")));
    answer(rig, LIST("10", POD("d", "4", "x")));
    answer(rig, NULL);
    assert_int_equal(kube_informer_state((rig_start(rig, NULL), rig->informer)), KUBE_LISTING);
    fake_run_for(rig->fake, 1000);

    assert_int_equal(fake_sent_count(rig->fake), 4);
    assert_string_equal(fake_sent(rig->fake, 0)->path, PODS "?limit=500");
    assert_string_equal(fake_sent(rig->fake, 1)->path, PODS "?limit=500&continue=more%2B1");
    assert_string_equal(fake_sent(rig->fake, 2)->path, PODS "?limit=500&continue=more2");
    watch = fake_sent(rig->fake, 3);
    assert_true(watch->stream);
    assert_true(rig_path_has(watch, "?watch=true&allowWatchBookmarks=true&resourceVersion=10&"));
    assert_int_equal(kube_cache_count(rig->cache), 4);
    assert_true(kube_cache_is_synced(rig->cache));
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WATCHING);
    assert_string_equal(kube_informer_last_error(rig->informer), "");
}

static void the_server_ends_a_watch_before_silence_would(void **state)
{
    struct rig *rig = *state;
    const struct fake_sent *watch;
    unsigned seconds = 0;

    start_watching(rig);
    answer(rig, NULL);
    assert_true(fake_stream_end(rig->fake, PODS)); /* too young: watched again after a while */
    fake_run_for(rig->fake, SECOND);
    watch = fake_last_sent(rig->fake);
    assert_int_equal(watch->idle_us, 60 * SECOND);
    for (const char *at = strstr(watch->path, "timeoutSeconds=") + 15; *at >= '0' && *at <= '9';
         at++)
        seconds = seconds * 10 + (unsigned)(*at - '0');
    assert_in_range(seconds, 30, 45);
}

static void namespace_selectors_and_page_are_asked_for(void **state)
{
    struct rig *rig = *state;
    struct kube_informer_options options = { .ns = "n",
                                             .label_selector = "app in (a,b)",
                                             .field_selector = "spec.nodeName=x",
                                             .page = 7,
                                             .idle_us = SECOND / 2,
                                             .max_object = 1000 };
    const char *path = "/api/v1/namespaces/n/pods";
    const char *selectors = "&labelSelector=app%20in%20%28a%2Cb%29&fieldSelector=spec.nodeName%3Dx";

    fake_answer(rig->fake, "GET", path,
                (struct fake_answer){ .status = 200, .body = LIST("1", "") });
    fake_answer(rig->fake, "GET", path, (struct fake_answer){ .status = 200 });
    rig_start(rig, &options);
    fake_run_for(rig->fake, 1000);
    assert_true(rig_path_has(fake_sent(rig->fake, 0), "?limit=7&"));
    assert_true(rig_path_has(fake_sent(rig->fake, 0), selectors));
    assert_true(rig_path_has(fake_sent(rig->fake, 1), selectors));
    assert_true(rig_path_has(fake_sent(rig->fake, 1), "&timeoutSeconds=1&"));
    assert_int_equal(fake_sent(rig->fake, 1)->max_answer, 1000);
}

static void an_expired_page_begins_the_list_again(void **state)
{
    struct rig *rig = *state;

    answer(rig, PAGE("10", "t", POD("a", "1", "x") "," POD("b", "2", "x")));
    fake_status(rig->fake, "GET", PODS, 410, "Expired", "too old");
    answer(rig, LIST("20", POD("a", "1", "x")));
    answer(rig, NULL);
    rig_start(rig, NULL);
    fake_run_for(rig->fake, 1000);
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WAITING);
    assert_non_null(strstr(kube_informer_last_error(rig->informer), "too old"));
    fake_run_for(rig->fake, SECOND);
    assert_string_equal(fake_sent(rig->fake, 2)->path, PODS "?limit=1000");
    assert_told(&rig->mirror, "a:->x b:->x b:x>- ");
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WATCHING);
}

static void a_page_that_is_too_long_is_asked_for_with_fewer_objects(void **state)
{
    struct rig *rig = *state;

    fake_answer(rig->fake, "GET", PODS, (struct fake_answer){ .class = ERR_TOO_BIG });
    answer(rig, PAGE("10", "t", POD("a", "1", "x")));
    fake_status(rig->fake, "GET", PODS, 410, "Expired", "too old");
    answer(rig, LIST("20", POD("a", "1", "x")));
    answer(rig, NULL);
    rig_start(rig, NULL);
    fake_run_for(rig->fake, 2 * SECOND);
    assert_string_equal(fake_sent(rig->fake, 0)->path, PODS "?limit=500");
    assert_string_equal(fake_sent(rig->fake, 1)->path, PODS "?limit=250");
    assert_string_equal(fake_sent(rig->fake, 3)->path, PODS "?limit=250"); /* 500 are too many */
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WATCHING);
}

static void a_page_has_one_object_at_least(void **state)
{
    struct rig *rig = *state;

    fake_answer(rig->fake, "GET", PODS,
                (struct fake_answer){ .class = ERR_TOO_BIG, .times = FAKE_ALWAYS });
    rig_start(rig, NULL);
    fake_run_for(rig->fake, 200 * SECOND);
    assert_string_equal(fake_last_sent(rig->fake)->path, PODS "?limit=1");
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WAITING);
}

static void failures_wait_longer_and_longer(void **state)
{
    struct rig *rig = *state;
    int64_t last = 0;

    fake_answer(rig->fake, "GET", PODS,
                (struct fake_answer){ .class = ERR_UNAVAILABLE, .times = FAKE_ALWAYS });
    rig_start(rig, NULL);
    fake_run_for(rig->fake, 300 * SECOND);
    assert_in_range(fake_sent_count(rig->fake), 22, 40);
    for (size_t i = 1; i < fake_sent_count(rig->fake); i++) {
        int64_t wait = fake_sent(rig->fake, i)->at_us - fake_sent(rig->fake, i - 1)->at_us;

        assert_in_range(wait, i == 1 ? 160000 : last, 15 * SECOND);
        last = wait > last && wait < 9 * SECOND ? wait : last;
    }
    assert_true(last >= 3 * SECOND);
    assert_int_equal(kube_informer_last_contact_us(rig->informer), 0);
    assert_string_not_equal(kube_informer_last_error(rig->informer), "");
}

static void the_server_may_ask_for_patience(void **state)
{
    struct rig *rig = *state;

    fake_answer(rig->fake, "GET", PODS,
                (struct fake_answer){ .status = 429, .retry_after_us = 7 * SECOND });
    fake_answer(rig->fake, "GET", PODS,
                (struct fake_answer){ .status = 503, .retry_after_us = 3600 * SECOND });
    answer(rig, LIST("1", ""));
    answer(rig, NULL);
    rig_start(rig, NULL);
    fake_run_for(rig->fake, 30 * SECOND);
    assert_int_equal(fake_sent(rig->fake, 1)->at_us - fake_sent(rig->fake, 0)->at_us, 7 * SECOND);
    assert_int_equal(fake_sent(rig->fake, 2)->at_us - fake_sent(rig->fake, 1)->at_us,
                     15 * SECOND); /* but no more than this */
    assert_true(kube_cache_is_synced(rig->cache));
}

static void a_list_without_a_version_is_not_believed(void **state)
{
    struct rig *rig = *state;

    answer(rig, "{\"items\":[]}");
    answer(rig, LIST("1", ""));
    answer(rig, NULL);
    rig_start(rig, NULL);
    fake_run_for(rig->fake, 1000);
    assert_false(kube_cache_is_synced(rig->cache));
    fake_run_for(rig->fake, SECOND);
    assert_true(kube_cache_is_synced(rig->cache));
}

/* ---- watching ---- */

static void events_reach_the_cache(void **state)
{
    struct rig *rig = *state;

    start_watching(rig);
    feed(rig, EVENT("MODIFIED", POD("a", "11", "two")) EVENT("ADDED", POD("b", "12", "new")));
    feed(rig, "{\"type\":\"DELETED\",\"object\":");
    feed(rig, POD("a", "13", "last") "}\n" BOOKMARK("20"));
    assert_told(&rig->mirror, "a:one>two b:->new a:two>- ");
    assert_int_equal(kube_informer_last_contact_us(rig->informer),
                     clock_now_us(&rig->clock) - 1000);
}

static void an_event_older_than_the_cache_is_ignored(void **state)
{
    struct rig *rig = *state;

    start_watching(rig);
    feed(rig, EVENT("MODIFIED", POD("a", "12", "two")));
    feed(rig, EVENT("MODIFIED", POD("a", "11", "older")) EVENT("DELETED", POD("a", "4", "old")));
    assert_told(&rig->mirror, "a:one>two ");
}

static void a_broken_stream_is_taken_up_where_it_was(void **state)
{
    struct rig *rig = *state;

    start_watching(rig);
    feed(rig, EVENT("MODIFIED", POD("a", "11", "two")) BOOKMARK("17"));
    answer(rig, NULL);
    assert_true(fake_stream_break(rig->fake, PODS, ERR_UNKNOWN));
    fake_run_for(rig->fake, 1000);
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WAITING);
    assert_string_not_equal(kube_informer_last_error(rig->informer), "");
    fake_run_for(rig->fake, SECOND);
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WATCHING);
    assert_true(rig_path_has(fake_last_sent(rig->fake), "&resourceVersion=17&"));
    assert_string_equal(kube_informer_last_error(rig->informer), "");
    feed(rig, EVENT("MODIFIED", POD("a", "18", "three")));
    assert_told(&rig->mirror, "a:one>two a:two>three ");
    assert_int_equal(rig_lists_sent(rig), 0);
}

static void half_a_line_is_forgotten_with_its_stream(void **state)
{
    struct rig *rig = *state;

    start_watching(rig);
    feed(rig, "{\"type\":\"MODI");
    answer(rig, EVENT("MODIFIED", POD("a", "11", "two")));
    assert_true(fake_stream_break(rig->fake, PODS, ERR_UNKNOWN));
    fake_run_for(rig->fake, SECOND);
    assert_told(&rig->mirror, "a:one>two ");
}

static void a_stream_that_ends_in_time_is_renewed_at_once(void **state)
{
    struct rig *rig = *state;
    size_t before;

    start_watching(rig);
    fake_run_for(rig->fake, 40 * SECOND);
    feed(rig, BOOKMARK("30"));
    before = fake_sent_count(rig->fake);
    answer(rig, NULL);
    assert_true(fake_stream_end(rig->fake, PODS));
    fake_run_for(rig->fake, 10);
    assert_int_equal(fake_sent_count(rig->fake), before + 1);
    assert_true(rig_path_has(fake_last_sent(rig->fake), "&resourceVersion=30&"));
    assert_string_equal(kube_informer_last_error(rig->informer), "");
}

static void streams_that_end_at_once_are_not_asked_for_in_a_loop(void **state)
{
    struct rig *rig = *state;

    start_watching(rig);
    fake_answer(rig->fake, "GET", PODS,
                (struct fake_answer){ .status = 200, .ends = true, .times = FAKE_ALWAYS });
    assert_true(fake_stream_end(rig->fake, PODS));
    fake_run_for(rig->fake, 60 * SECOND);
    assert_in_range(fake_sent_count(rig->fake), 5, 14);
    assert_int_equal(rig_lists_sent(rig), 0);
}

static void silence_counts_as_a_broken_stream(void **state)
{
    struct rig *rig = *state;

    start_watching(rig);
    answer(rig, NULL);
    fake_run_for(rig->fake, 59 * SECOND);
    assert_int_equal(fake_sent_count(rig->fake), 1); /* the open stream's own */
    fake_run_for(rig->fake, 2 * SECOND);
    assert_int_equal(fake_sent_count(rig->fake), 2);
    assert_true(rig_path_has(fake_last_sent(rig->fake), "&resourceVersion=10&"));
}

static void a_lost_history_is_listed_anew(void **state)
{
    static const char *const ends[] = { ERROR("410"), "not JSON\n",
                                        "{\"type\":\"NEW\",\"object\":{}}\n", NULL };
    struct rig *rig = *state;

    start_watching(rig);
    for (size_t i = 0; ends[i]; i++) {
        fake_forget_sent(rig->fake);
        answer(rig, LIST("40", POD("a", "5", "one")));
        answer(rig, NULL);
        feed(rig, ends[i]);
        assert_int_equal(fake_open_streams(rig->fake), 0);
        assert_int_equal(kube_informer_state(rig->informer), KUBE_WAITING);
        fake_run_for(rig->fake, 2 * SECOND);
        assert_int_equal(rig_lists_sent(rig), 1);
        assert_int_equal(kube_informer_state(rig->informer), KUBE_WATCHING);
        assert_true(rig_path_has(fake_last_sent(rig->fake), "&resourceVersion=40&"));
    }
    assert_told(&rig->mirror, ""); /* nothing had changed */
}

static void a_refused_watch_of_an_old_version_is_listed_anew(void **state)
{
    struct rig *rig = *state;

    start_watching(rig);
    fake_status(rig->fake, "GET", PODS, 410, "Expired", "too old resource version");
    answer(rig, LIST("40", POD("b", "30", "new")));
    answer(rig, NULL);
    assert_true(fake_stream_break(rig->fake, PODS, ERR_UNKNOWN));
    fake_run_for(rig->fake, 5 * SECOND);
    assert_told(&rig->mirror, "b:->new a:one>- ");
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WATCHING);
}

static void events_after_an_error_are_not_taken(void **state)
{
    struct rig *rig = *state;

    start_watching(rig);
    feed(rig, ERROR("410") EVENT("MODIFIED", POD("a", "50", "of the dead stream")));
    assert_told(&rig->mirror, "");
    assert_non_null(strstr(kube_informer_last_error(rig->informer), "of the server"));
}

static void other_errors_wait_and_watch_again(void **state)
{
    struct rig *rig = *state;

    start_watching(rig);
    answer(rig, NULL);
    feed(rig, ERROR("500"));
    fake_run_for(rig->fake, SECOND);
    assert_int_equal(rig_lists_sent(rig), 0);
    assert_true(rig_path_has(fake_last_sent(rig->fake), "&resourceVersion=10&"));

    fake_status(rig->fake, "GET", PODS, 403, "Forbidden", "pods is forbidden");
    answer(rig, NULL);
    assert_true(fake_stream_break(rig->fake, PODS, ERR_UNKNOWN));
    fake_run_for(rig->fake, 700000);
    assert_non_null(strstr(kube_informer_last_error(rig->informer), "403: pods is forbidden"));
    fake_run_for(rig->fake, 3 * SECOND);
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WATCHING);
    assert_int_equal(rig_lists_sent(rig), 0);
}

static void a_watch_that_is_refused_again_and_again_is_listed_anew(void **state)
{
    struct rig *rig = *state;

    start_watching(rig);
    for (int i = 0; i < 3; i++)
        fake_status(rig->fake, "GET", PODS, 500, "InternalError", "no");
    answer(rig, LIST("3", POD("a", "2", "restored"))); /* the storage came from a backup */
    answer(rig, NULL);
    assert_true(fake_stream_break(rig->fake, PODS, ERR_UNKNOWN));
    fake_run_for(rig->fake, 20 * SECOND);
    assert_told(&rig->mirror, "a:one>restored ");
    assert_int_equal(fake_answers_left(rig->fake), 0);
}

static void a_line_over_the_bound_is_listed_instead(void **state)
{
    struct kube_informer_options options = { .max_object = 300 };
    struct rig *rig = *state;
    char piece[250];

    answer(rig, LIST("10", POD("a", "5", "one")));
    answer(rig, NULL);
    rig_start(rig, &options);
    fake_run_for(rig->fake, 1000);
    memset(piece, 'x', sizeof(piece) - 1);
    piece[sizeof(piece) - 1] = '\0';
    feed(rig, piece);
    assert_int_equal(fake_open_streams(rig->fake), 1);
    answer(rig, LIST("20", POD("a", "15", "two")));
    answer(rig, NULL);
    feed(rig, piece);
    assert_int_equal(fake_open_streams(rig->fake), 0);
    fake_run_for(rig->fake, SECOND);
    assert_told(&rig->mirror, "a:->one a:one>two ");
    assert_int_equal(fake_open_streams(rig->fake), 1);
}

static void a_line_that_the_transport_refuses_is_listed_instead(void **state)
{
    struct rig *rig = *state;

    start_watching(rig);
    answer(rig, LIST("20", POD("a", "15", "two")));
    answer(rig, NULL);
    assert_true(fake_stream_break(rig->fake, PODS, ERR_TOO_BIG));
    fake_run_for(rig->fake, SECOND);
    assert_told(&rig->mirror, "a:one>two ");
}

static void one_bad_object_does_not_stop_the_others(void **state)
{
    static const char bad_list[] = "{\"metadata\":{\"namespace\":\"n\",\"name\":\"a\"}},{},[]";
    struct rig *rig = *state;

    start_watching(rig);
    feed(rig,
         EVENT("MODIFIED", "{\"metadata\":{\"namespace\":\"n\",\"name\":\"a\","
                           "\"resourceVersion\":\"21\"}}") EVENT("ADDED", POD("b", "22", "good")));
    assert_told(&rig->mirror, "b:->good "); /* a stays as it was */
    assert_int_equal(kube_informer_undecoded(rig->informer), 1);

    answer(rig, NULL);
    assert_true(fake_stream_break(rig->fake, PODS, ERR_UNKNOWN));
    fake_run_for(rig->fake, SECOND);
    assert_true(rig_path_has(fake_last_sent(rig->fake), "&resourceVersion=22&"));

    auto_buf struct buf list = { .max = 1000 };

    buf_printf(&list, LIST("40", "%s," POD("c", "31", "good")), bad_list);
    answer(rig, buf_text(&list));
    answer(rig, NULL);
    feed(rig, ERROR("410"));
    fake_run_for(rig->fake, 2 * SECOND);
    assert_told(&rig->mirror, "c:->good b:good>- "); /* a is there, whatever it is now */
    assert_int_equal(kube_informer_undecoded(rig->informer), 4);
}

static void the_watch_takes_overlays_away(void **state)
{
    struct rig *rig = *state;
    const struct kube_object *predicted = make_pod("z", NULL, 0, "predicted");
    const struct kube_object *created = make_pod("z", "u-z", 15, "created");

    start_watching(rig);
    kube_overlay_done(kube_overlay_lay(rig->cache, "n", "z", predicted), created, 15);
    feed(rig, BOOKMARK("14"));
    assert_told(&rig->mirror, "z:->predicted z:predicted>created ");
    feed(rig, BOOKMARK("15")); /* passed without showing it: outside of what we watch */
    assert_told(&rig->mirror, "z:created>- ");
    kube_object_unref(predicted);
    kube_object_unref(created);
}

/* ---- the end ---- */

static void it_can_be_freed_in_every_state(void **state)
{
    struct rig *rig = *state;

    kube_informer_free(NULL);
    rig_start(rig, NULL);
    kube_informer_free(rig->informer); /* listing */

    fake_answer(rig->fake, "GET", PODS, (struct fake_answer){ .status = 500 });
    fake_answer(rig->fake, "GET", PODS, (struct fake_answer){ .class = ERR_UNAVAILABLE });
    rig_start(rig, NULL);
    fake_run_for(rig->fake, 1000);
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WAITING);
    kube_informer_free(rig->informer);

    answer(rig, LIST("1", ""));
    answer(rig, NULL);
    rig_start(rig, NULL);
    fake_run_for(rig->fake, 1000);
    assert_int_equal(kube_informer_state(rig->informer), KUBE_WATCHING);
    kube_informer_free(rig->informer);
    rig->informer = NULL;
    assert_int_equal(fake_open_streams(rig->fake), 0);
    fake_run_for(rig->fake, 60 * SECOND);
}

static void states_have_names(void **state)
{
    assert_string_equal(kube_informer_state_name(KUBE_IDLE), "idle");
    assert_string_equal(kube_informer_state_name(KUBE_LISTING), "listing");
    assert_string_equal(kube_informer_state_name(KUBE_WATCHING), "watching");
    assert_string_equal(kube_informer_state_name(KUBE_WAITING), "waiting");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_lists_page_by_page_and_then_watches),
        TEST(the_server_ends_a_watch_before_silence_would),
        TEST(namespace_selectors_and_page_are_asked_for),
        TEST(an_expired_page_begins_the_list_again),
        TEST(a_page_that_is_too_long_is_asked_for_with_fewer_objects),
        TEST(a_page_has_one_object_at_least),
        TEST(failures_wait_longer_and_longer),
        TEST(the_server_may_ask_for_patience),
        TEST(a_list_without_a_version_is_not_believed),
        TEST(events_reach_the_cache),
        TEST(an_event_older_than_the_cache_is_ignored),
        TEST(a_broken_stream_is_taken_up_where_it_was),
        TEST(half_a_line_is_forgotten_with_its_stream),
        TEST(a_stream_that_ends_in_time_is_renewed_at_once),
        TEST(streams_that_end_at_once_are_not_asked_for_in_a_loop),
        TEST(silence_counts_as_a_broken_stream),
        TEST(a_lost_history_is_listed_anew),
        TEST(a_refused_watch_of_an_old_version_is_listed_anew),
        TEST(events_after_an_error_are_not_taken),
        TEST(other_errors_wait_and_watch_again),
        TEST(a_watch_that_is_refused_again_and_again_is_listed_anew),
        TEST(a_line_over_the_bound_is_listed_instead),
        TEST(a_line_that_the_transport_refuses_is_listed_instead),
        TEST(one_bad_object_does_not_stop_the_others),
        TEST(the_watch_takes_overlays_away),
        TEST(it_can_be_freed_in_every_state),
        cmocka_unit_test(states_have_names),
    };

    return cmocka_run_group_tests_name("informer", tests, NULL, NULL);
}
