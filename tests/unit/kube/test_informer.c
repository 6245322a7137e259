/* test_informer.c - list, watch, and everything that can go wrong with them, on virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "fake_transport.h"
#include "kube/informer.h"
#include "mirror.h"

#include <stdio.h>

#define PODS   "/api/v1/pods"
#define SECOND INT64_C(1000000)

struct world {
    struct clock clock;
    struct loop *loop;
    struct fake_transport *fake;
    struct kube_client *client;
    struct rand rand;
    struct kube_cache *cache;
    struct mirror mirror;
    int by_node;
    struct kube_informer *informer;
};

static void start(struct world *world, const struct kube_informer_options *options)
{
    world->informer = kube_informer_new(world->client, world->cache, &world->rand, options);
    kube_informer_start(world->informer);
}

static int set_up(void **state)
{
    static struct world world;

    world = (struct world){ 0 };
    clock_init_virtual(&world.clock, 0);
    world.loop = loop_new_virtual(&world.clock);
    world.fake = fake_transport_new(world.loop);
    world.client = kube_client_new(world.loop, fake_http(world.fake));
    rand_init(&world.rand, 1);
    world.cache = kube_cache_new(&kube_pod_kind, &world.clock);
    world.by_node = kube_cache_add_index(world.cache, keys_by_node);
    mirror_init(&world.mirror, world.cache);
    *state = &world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    mirror_check(&world->mirror, world->by_node);
    kube_informer_free(world->informer);
    kube_cache_free(world->cache);
    mirror_done(&world->mirror);
    kube_client_free(world->client);
    fake_transport_free(world->fake);
    loop_free(world->loop);
    return 0;
}

/* ---- what the server says ---- */

#define POD_IN(ns, name, version, word)                                                            \
    "{\"metadata\":{\"namespace\":\"" ns "\",\"name\":\"" name "\",\"uid\":\"u-" name              \
    "\",\"resourceVersion\":\"" version "\",\"labels\":{\"v\":\"" word                             \
    "\"}},\"spec\":{\"nodeName\":\"x\"}}"
#define POD(name, version, word) POD_IN("n", name, version, word)
#define LIST(version, items)                                                                       \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" version "\"},\"items\":[" items   \
    "]}"
#define PAGE(version, token, items)                                                                \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" version                           \
    "\",\"continue\":\"" token "\"},\"items\":[" items "]}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define BOOKMARK(version)                                                                          \
    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"" version "\"}}}\n"
#define ERROR(code)                                                                                \
    "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":" code                           \
    ",\"message\":\"of the server\"}}\n"

static void answer(struct world *world, const char *body)
{
    fake_answer(world->fake, "GET", PODS, (struct fake_answer){ .status = 200, .body = body });
}

static void feed(struct world *world, const char *lines)
{
    assert_true(fake_stream_feed(world->fake, PODS, lines));
    fake_run_for(world->fake, 1000);
}

static bool path_has(const struct fake_sent *sent, const char *part)
{
    return strstr(sent->path, part) != NULL;
}

/* Listed with one pod, and watching. */
static void start_watching(struct world *world)
{
    answer(world, LIST("10", POD("a", "5", "one")));
    answer(world, NULL);
    start(world, NULL);
    fake_run_for(world->fake, 1000);
    assert_int_equal(kube_informer_state(world->informer), KUBE_WATCHING);
    assert_int_equal(fake_open_streams(world->fake), 1);
    assert_told(&world->mirror, "a:->one ");
    fake_forget_sent(world->fake);
}

static unsigned lists_sent(const struct world *world)
{
    unsigned lists = 0;

    for (size_t i = 0; i < fake_sent_count(world->fake); i++)
        lists += path_has(fake_sent(world->fake, i), "limit=");
    return lists;
}

/* ---- listing ---- */

static void it_lists_page_by_page_and_then_watches(void **state)
{
    struct world *world = *state;
    const struct fake_sent *watch;

    answer(world, PAGE("10", "more+1", POD("a", "1", "x") "," POD("b", "2", "x")));
    answer(world, PAGE("10", "more2", POD("c", "3", "x")));
    answer(world, LIST("10", POD("d", "4", "x")));
    answer(world, NULL);
    assert_int_equal(kube_informer_state((start(world, NULL), world->informer)), KUBE_LISTING);
    fake_run_for(world->fake, 1000);

    assert_int_equal(fake_sent_count(world->fake), 4);
    assert_string_equal(fake_sent(world->fake, 0)->path, PODS "?limit=500");
    assert_string_equal(fake_sent(world->fake, 1)->path, PODS "?limit=500&continue=more%2B1");
    assert_string_equal(fake_sent(world->fake, 2)->path, PODS "?limit=500&continue=more2");
    watch = fake_sent(world->fake, 3);
    assert_true(watch->stream);
    assert_true(path_has(watch, "?watch=true&allowWatchBookmarks=true&resourceVersion=10&"));
    assert_int_equal(kube_cache_count(world->cache), 4);
    assert_true(kube_cache_is_synced(world->cache));
    assert_int_equal(kube_informer_state(world->informer), KUBE_WATCHING);
    assert_string_equal(kube_informer_last_error(world->informer), "");
}

static void the_server_ends_a_watch_before_silence_would(void **state)
{
    struct world *world = *state;
    const struct fake_sent *watch;
    unsigned seconds = 0;

    start_watching(world);
    answer(world, NULL);
    assert_true(fake_stream_end(world->fake, PODS)); /* too young: watched again after a while */
    fake_run_for(world->fake, SECOND);
    watch = fake_last_sent(world->fake);
    assert_int_equal(watch->idle_us, 60 * SECOND);
    for (const char *at = strstr(watch->path, "timeoutSeconds=") + 15; *at >= '0' && *at <= '9';
         at++)
        seconds = seconds * 10 + (unsigned)(*at - '0');
    assert_in_range(seconds, 30, 45);
}

static void namespace_selectors_and_page_are_asked_for(void **state)
{
    struct world *world = *state;
    struct kube_informer_options options = { .ns = "n",
                                             .label_selector = "app in (a,b)",
                                             .field_selector = "spec.nodeName=x",
                                             .page = 7,
                                             .idle_us = SECOND / 2,
                                             .max_object = 1000 };
    const char *path = "/api/v1/namespaces/n/pods";
    const char *selectors = "&labelSelector=app%20in%20%28a%2Cb%29&fieldSelector=spec.nodeName%3Dx";

    fake_answer(world->fake, "GET", path,
                (struct fake_answer){ .status = 200, .body = LIST("1", "") });
    fake_answer(world->fake, "GET", path, (struct fake_answer){ .status = 200 });
    start(world, &options);
    fake_run_for(world->fake, 1000);
    assert_true(path_has(fake_sent(world->fake, 0), "?limit=7&"));
    assert_true(path_has(fake_sent(world->fake, 0), selectors));
    assert_true(path_has(fake_sent(world->fake, 1), selectors));
    assert_true(path_has(fake_sent(world->fake, 1), "&timeoutSeconds=1&"));
    assert_int_equal(fake_sent(world->fake, 1)->max_answer, 1000);
}

static void an_expired_page_begins_the_list_again(void **state)
{
    struct world *world = *state;

    answer(world, PAGE("10", "t", POD("a", "1", "x") "," POD("b", "2", "x")));
    fake_status(world->fake, "GET", PODS, 410, "Expired", "too old");
    answer(world, LIST("20", POD("a", "1", "x")));
    answer(world, NULL);
    start(world, NULL);
    fake_run_for(world->fake, 1000);
    assert_int_equal(kube_informer_state(world->informer), KUBE_WAITING);
    assert_non_null(strstr(kube_informer_last_error(world->informer), "too old"));
    fake_run_for(world->fake, SECOND);
    assert_string_equal(fake_sent(world->fake, 2)->path, PODS "?limit=1000");
    assert_told(&world->mirror, "a:->x b:->x b:x>- ");
    assert_int_equal(kube_informer_state(world->informer), KUBE_WATCHING);
}

static void failures_wait_longer_and_longer(void **state)
{
    struct world *world = *state;
    int64_t last = 0;

    fake_answer(world->fake, "GET", PODS,
                (struct fake_answer){ .class = ERR_UNAVAILABLE, .times = FAKE_ALWAYS });
    start(world, NULL);
    fake_run_for(world->fake, 300 * SECOND);
    assert_in_range(fake_sent_count(world->fake), 22, 40);
    for (size_t i = 1; i < fake_sent_count(world->fake); i++) {
        int64_t wait = fake_sent(world->fake, i)->at_us - fake_sent(world->fake, i - 1)->at_us;

        assert_in_range(wait, i == 1 ? 160000 : last, 15 * SECOND);
        last = wait > last && wait < 9 * SECOND ? wait : last;
    }
    assert_true(last >= 3 * SECOND);
    assert_int_equal(kube_informer_last_contact_us(world->informer), 0);
    assert_string_not_equal(kube_informer_last_error(world->informer), "");
}

static void the_server_may_ask_for_patience(void **state)
{
    struct world *world = *state;

    fake_answer(world->fake, "GET", PODS,
                (struct fake_answer){ .status = 429, .retry_after_us = 7 * SECOND });
    fake_answer(world->fake, "GET", PODS,
                (struct fake_answer){ .status = 503, .retry_after_us = 3600 * SECOND });
    answer(world, LIST("1", ""));
    answer(world, NULL);
    start(world, NULL);
    fake_run_for(world->fake, 30 * SECOND);
    assert_int_equal(fake_sent(world->fake, 1)->at_us - fake_sent(world->fake, 0)->at_us,
                     7 * SECOND);
    assert_int_equal(fake_sent(world->fake, 2)->at_us - fake_sent(world->fake, 1)->at_us,
                     15 * SECOND); /* but no more than this */
    assert_true(kube_cache_is_synced(world->cache));
}

static void a_list_without_a_version_is_not_believed(void **state)
{
    struct world *world = *state;

    answer(world, "{\"items\":[]}");
    answer(world, LIST("1", ""));
    answer(world, NULL);
    start(world, NULL);
    fake_run_for(world->fake, 1000);
    assert_false(kube_cache_is_synced(world->cache));
    fake_run_for(world->fake, SECOND);
    assert_true(kube_cache_is_synced(world->cache));
}

/* ---- watching ---- */

static void events_reach_the_cache(void **state)
{
    struct world *world = *state;
    uint64_t lists, watches, events;

    start_watching(world);
    feed(world, EVENT("MODIFIED", POD("a", "11", "two")) EVENT("ADDED", POD("b", "12", "new")));
    feed(world, "{\"type\":\"DELETED\",\"object\":");
    feed(world, POD("a", "13", "last") "}\n" BOOKMARK("20"));
    assert_told(&world->mirror, "a:one>two b:->new a:two>- ");
    kube_informer_counts(world->informer, &lists, &watches, &events);
    assert_int_equal(lists, 1);
    assert_int_equal(watches, 1);
    assert_int_equal(events, 3);
    assert_int_equal(kube_informer_last_contact_us(world->informer),
                     clock_now_us(&world->clock) - 1000);
}

static void an_event_older_than_the_cache_is_ignored(void **state)
{
    struct world *world = *state;

    start_watching(world);
    feed(world, EVENT("MODIFIED", POD("a", "12", "two")));
    feed(world, EVENT("MODIFIED", POD("a", "11", "older")) EVENT("DELETED", POD("a", "4", "old")));
    assert_told(&world->mirror, "a:one>two ");
}

static void a_broken_stream_is_taken_up_where_it_was(void **state)
{
    struct world *world = *state;

    start_watching(world);
    feed(world, EVENT("MODIFIED", POD("a", "11", "two")) BOOKMARK("17"));
    answer(world, NULL);
    assert_true(fake_stream_break(world->fake, PODS, ERR_UNKNOWN));
    fake_run_for(world->fake, 1000);
    assert_int_equal(kube_informer_state(world->informer), KUBE_WAITING);
    assert_string_not_equal(kube_informer_last_error(world->informer), "");
    fake_run_for(world->fake, SECOND);
    assert_int_equal(kube_informer_state(world->informer), KUBE_WATCHING);
    assert_true(path_has(fake_last_sent(world->fake), "&resourceVersion=17&"));
    assert_string_equal(kube_informer_last_error(world->informer), "");
    feed(world, EVENT("MODIFIED", POD("a", "18", "three")));
    assert_told(&world->mirror, "a:one>two a:two>three ");
    assert_int_equal(lists_sent(world), 0);
}

static void half_a_line_is_forgotten_with_its_stream(void **state)
{
    struct world *world = *state;

    start_watching(world);
    feed(world, "{\"type\":\"MODI");
    answer(world, EVENT("MODIFIED", POD("a", "11", "two")));
    assert_true(fake_stream_break(world->fake, PODS, ERR_UNKNOWN));
    fake_run_for(world->fake, SECOND);
    assert_told(&world->mirror, "a:one>two ");
}

static void a_stream_that_ends_in_time_is_renewed_at_once(void **state)
{
    struct world *world = *state;
    size_t before;

    start_watching(world);
    fake_run_for(world->fake, 40 * SECOND);
    feed(world, BOOKMARK("30"));
    before = fake_sent_count(world->fake);
    answer(world, NULL);
    assert_true(fake_stream_end(world->fake, PODS));
    fake_run_for(world->fake, 10);
    assert_int_equal(fake_sent_count(world->fake), before + 1);
    assert_true(path_has(fake_last_sent(world->fake), "&resourceVersion=30&"));
    assert_string_equal(kube_informer_last_error(world->informer), "");
}

static void streams_that_end_at_once_are_not_asked_for_in_a_loop(void **state)
{
    struct world *world = *state;

    start_watching(world);
    fake_answer(world->fake, "GET", PODS,
                (struct fake_answer){ .status = 200, .ends = true, .times = FAKE_ALWAYS });
    assert_true(fake_stream_end(world->fake, PODS));
    fake_run_for(world->fake, 60 * SECOND);
    assert_in_range(fake_sent_count(world->fake), 5, 14);
    assert_int_equal(lists_sent(world), 0);
}

static void silence_counts_as_a_broken_stream(void **state)
{
    struct world *world = *state;

    start_watching(world);
    answer(world, NULL);
    fake_run_for(world->fake, 59 * SECOND);
    assert_int_equal(fake_sent_count(world->fake), 1); /* the open stream's own */
    fake_run_for(world->fake, 2 * SECOND);
    assert_int_equal(fake_sent_count(world->fake), 2);
    assert_true(path_has(fake_last_sent(world->fake), "&resourceVersion=10&"));
}

static void a_lost_history_is_listed_anew(void **state)
{
    static const char *const ends[] = { ERROR("410"), "not JSON\n",
                                        "{\"type\":\"NEW\",\"object\":{}}\n", NULL };
    struct world *world = *state;

    start_watching(world);
    for (size_t i = 0; ends[i]; i++) {
        fake_forget_sent(world->fake);
        answer(world, LIST("40", POD("a", "5", "one")));
        answer(world, NULL);
        feed(world, ends[i]);
        assert_int_equal(fake_open_streams(world->fake), 0);
        assert_int_equal(kube_informer_state(world->informer), KUBE_WAITING);
        fake_run_for(world->fake, 2 * SECOND);
        assert_int_equal(lists_sent(world), 1);
        assert_int_equal(kube_informer_state(world->informer), KUBE_WATCHING);
        assert_true(path_has(fake_last_sent(world->fake), "&resourceVersion=40&"));
    }
    assert_told(&world->mirror, ""); /* nothing had changed */
}

static void a_refused_watch_of_an_old_version_is_listed_anew(void **state)
{
    struct world *world = *state;

    start_watching(world);
    fake_status(world->fake, "GET", PODS, 410, "Expired", "too old resource version");
    answer(world, LIST("40", POD("b", "30", "new")));
    answer(world, NULL);
    assert_true(fake_stream_break(world->fake, PODS, ERR_UNKNOWN));
    fake_run_for(world->fake, 5 * SECOND);
    assert_told(&world->mirror, "b:->new a:one>- ");
    assert_int_equal(kube_informer_state(world->informer), KUBE_WATCHING);
}

static void events_after_an_error_are_not_taken(void **state)
{
    struct world *world = *state;

    start_watching(world);
    feed(world, ERROR("410") EVENT("MODIFIED", POD("a", "50", "of the dead stream")));
    assert_told(&world->mirror, "");
    assert_non_null(strstr(kube_informer_last_error(world->informer), "of the server"));
}

static void other_errors_wait_and_watch_again(void **state)
{
    struct world *world = *state;

    start_watching(world);
    answer(world, NULL);
    feed(world, ERROR("500"));
    fake_run_for(world->fake, SECOND);
    assert_int_equal(lists_sent(world), 0);
    assert_true(path_has(fake_last_sent(world->fake), "&resourceVersion=10&"));

    fake_status(world->fake, "GET", PODS, 403, "Forbidden", "pods is forbidden");
    answer(world, NULL);
    assert_true(fake_stream_break(world->fake, PODS, ERR_UNKNOWN));
    fake_run_for(world->fake, 700000);
    assert_non_null(strstr(kube_informer_last_error(world->informer), "403: pods is forbidden"));
    fake_run_for(world->fake, 3 * SECOND);
    assert_int_equal(kube_informer_state(world->informer), KUBE_WATCHING);
    assert_int_equal(lists_sent(world), 0);
}

static void a_watch_that_is_refused_again_and_again_is_listed_anew(void **state)
{
    struct world *world = *state;

    start_watching(world);
    for (int i = 0; i < 3; i++)
        fake_status(world->fake, "GET", PODS, 500, "InternalError", "no");
    answer(world, LIST("3", POD("a", "2", "restored"))); /* the storage came from a backup */
    answer(world, NULL);
    assert_true(fake_stream_break(world->fake, PODS, ERR_UNKNOWN));
    fake_run_for(world->fake, 20 * SECOND);
    assert_told(&world->mirror, "a:one>restored ");
    assert_int_equal(fake_answers_left(world->fake), 0);
}

static void a_line_over_the_bound_is_listed_instead(void **state)
{
    struct kube_informer_options options = { .max_object = 300 };
    struct world *world = *state;
    char piece[250];

    answer(world, LIST("10", POD("a", "5", "one")));
    answer(world, NULL);
    start(world, &options);
    fake_run_for(world->fake, 1000);
    memset(piece, 'x', sizeof(piece) - 1);
    piece[sizeof(piece) - 1] = '\0';
    feed(world, piece);
    assert_int_equal(fake_open_streams(world->fake), 1);
    answer(world, LIST("20", POD("a", "15", "two")));
    answer(world, NULL);
    feed(world, piece);
    assert_int_equal(fake_open_streams(world->fake), 0);
    fake_run_for(world->fake, SECOND);
    assert_told(&world->mirror, "a:->one a:one>two ");
    assert_int_equal(fake_open_streams(world->fake), 1);
}

static void a_line_that_the_transport_refuses_is_listed_instead(void **state)
{
    struct world *world = *state;

    start_watching(world);
    answer(world, LIST("20", POD("a", "15", "two")));
    answer(world, NULL);
    assert_true(fake_stream_break(world->fake, PODS, ERR_TOO_BIG));
    fake_run_for(world->fake, SECOND);
    assert_told(&world->mirror, "a:one>two ");
}

static void one_bad_object_does_not_stop_the_others(void **state)
{
    static const char bad_list[] = "{\"metadata\":{\"namespace\":\"n\",\"name\":\"a\"}},{},[]";
    struct world *world = *state;

    start_watching(world);
    feed(world,
         EVENT("MODIFIED", "{\"metadata\":{\"namespace\":\"n\",\"name\":\"a\","
                           "\"resourceVersion\":\"21\"}}") EVENT("ADDED", POD("b", "22", "good")));
    assert_told(&world->mirror, "b:->good "); /* a stays as it was */
    assert_int_equal(kube_informer_undecoded(world->informer), 1);

    answer(world, NULL);
    assert_true(fake_stream_break(world->fake, PODS, ERR_UNKNOWN));
    fake_run_for(world->fake, SECOND);
    assert_true(path_has(fake_last_sent(world->fake), "&resourceVersion=22&"));

    auto_buf struct buf list = { .max = 1000 };

    buf_printf(&list, LIST("40", "%s," POD("c", "31", "good")), bad_list);
    answer(world, buf_text(&list));
    answer(world, NULL);
    feed(world, ERROR("410"));
    fake_run_for(world->fake, 2 * SECOND);
    assert_told(&world->mirror, "c:->good b:good>- "); /* a is there, whatever it is now */
    assert_int_equal(kube_informer_undecoded(world->informer), 4);
}

static void the_watch_takes_overlays_away(void **state)
{
    struct world *world = *state;
    const struct kube_object *predicted = make_pod("z", NULL, 0, "predicted");
    const struct kube_object *created = make_pod("z", "u-z", 15, "created");

    start_watching(world);
    kube_overlay_done(kube_overlay_lay(world->cache, "n", "z", predicted), created, 15);
    feed(world, BOOKMARK("14"));
    assert_told(&world->mirror, "z:->predicted z:predicted>created ");
    feed(world, BOOKMARK("15")); /* passed without showing it: outside of what we watch */
    assert_told(&world->mirror, "z:created>- ");
    kube_object_unref(predicted);
    kube_object_unref(created);
}

/* ---- several namespaces ---- */

#define M_PODS "/api/v1/namespaces/m/pods"
#define N_PODS "/api/v1/namespaces/n/pods"

static void answer_at(struct world *world, const char *path, const char *body)
{
    fake_answer(world->fake, "GET", path, (struct fake_answer){ .status = 200, .body = body });
}

static void feed_at(struct world *world, const char *path, const char *lines)
{
    assert_true(fake_stream_feed(world->fake, path, lines));
    fake_run_for(world->fake, 1000);
}

static void start_both(struct world *world)
{
    char m[] = "m", n[] = "n";
    const char *names[] = { m, n, m };
    struct kube_informer_options options = { .ns = "not used",
                                             .namespaces = names,
                                             .namespace_count = 3 };

    start(world, &options);
    m[0] = n[0] = '?'; /* the names were copied */
    names[0] = names[1] = names[2] = NULL;
}

/* m has the pod a and is at version 10, n has b and is at 12. */
static void watch_both(struct world *world)
{
    answer_at(world, M_PODS, LIST("10", POD_IN("m", "a", "5", "one")));
    answer_at(world, N_PODS, LIST("12", POD_IN("n", "b", "6", "one")));
    answer_at(world, M_PODS, NULL);
    answer_at(world, N_PODS, NULL);
    start_both(world);
    fake_run_for(world->fake, 1000);
    assert_int_equal(kube_informer_state(world->informer), KUBE_WATCHING);
    assert_int_equal(fake_open_streams(world->fake), 2);
    assert_told(&world->mirror, "a:->one b:->one ");
}

static void namespaces_are_listed_in_turn_and_watched_together(void **state)
{
    struct world *world = *state;
    uint64_t lists, watches, events;

    watch_both(world);
    assert_int_equal(fake_sent_count(world->fake), 4); /* a name given twice counts once */
    assert_string_equal(fake_sent(world->fake, 0)->path, M_PODS "?limit=500");
    assert_string_equal(fake_sent(world->fake, 1)->path, N_PODS "?limit=500");
    assert_true(path_has(fake_sent(world->fake, 2), M_PODS "?watch=true&"));
    assert_true(path_has(fake_sent(world->fake, 2), "&resourceVersion=10&"));
    assert_true(path_has(fake_sent(world->fake, 3), N_PODS "?watch=true&"));
    assert_true(path_has(fake_sent(world->fake, 3), "&resourceVersion=12&"));

    feed_at(world, M_PODS, "{\"type\":\"MODIFIED\",\"object\":"); /* lines do not mix */
    feed_at(world, N_PODS, EVENT("ADDED", POD_IN("n", "c", "13", "new")));
    feed_at(world, M_PODS, POD_IN("m", "a", "14", "two") "}\n");
    assert_told(&world->mirror, "c:->new a:one>two ");
    kube_informer_counts(world->informer, &lists, &watches, &events);
    assert_int_equal(lists, 1);
    assert_int_equal(watches, 2);
    assert_int_equal(events, 2);
}

/* A server with three namespaces, of which two may be read. */
static struct fake_answer serve_three(void *context, const struct fake_sent *sent)
{
    bool watch = path_has(sent, "watch=true");

    if (path_has(sent, M_PODS "?"))
        return (struct fake_answer){ .status = 200,
                                     .body =
                                         watch ? NULL : LIST("10", POD_IN("m", "a", "5", "one")) };
    if (path_has(sent, N_PODS "?"))
        return (struct fake_answer){ .status = 200,
                                     .body =
                                         watch ? NULL : LIST("12", POD_IN("n", "b", "6", "one")) };
    ++*(unsigned *)context;
    return (struct fake_answer){ .status = 200, .body = LIST("12", POD_IN("o", "c", "7", "one")) };
}

static void an_object_of_an_unwatched_namespace_never_appears(void **state)
{
    struct world *world = *state;
    unsigned others = 0;

    fake_serve(world->fake, serve_three, &others);
    start_both(world);
    fake_run_for(world->fake, 200 * SECOND);
    assert_int_equal(others, 0);
    assert_int_equal(kube_cache_count(world->cache), 2);
    assert_null(kube_cache_get(world->cache, "o", "c"));
    assert_told(&world->mirror, "a:->one b:->one ");
}

static void nothing_is_gone_before_every_list_has_ended(void **state)
{
    struct world *world = *state;

    watch_both(world);
    answer_at(world, M_PODS, LIST("20", ""));
    fake_status(world->fake, "GET", N_PODS, 500, "InternalError", "not now");
    feed_at(world, M_PODS, ERROR("410"));
    fake_run_for(world->fake, 300000);
    assert_int_equal(kube_informer_state(world->informer), KUBE_WAITING);
    assert_non_null(strstr(kube_informer_last_error(world->informer), "not now"));
    assert_told(&world->mirror, "");                     /* a is in no list, but n was not heard */
    assert_int_equal(fake_open_streams(world->fake), 0); /* no event between the lists */

    answer_at(world, M_PODS, LIST("21", ""));
    answer_at(world, N_PODS, PAGE("22", "more", POD_IN("n", "b", "6", "one")));
    answer_at(world, N_PODS, LIST("22", POD_IN("n", "c", "7", "one")));
    answer_at(world, M_PODS, NULL);
    answer_at(world, N_PODS, NULL);
    fake_run_for(world->fake, SECOND);
    assert_told(&world->mirror, "c:->one a:one>- ");
    assert_int_equal(kube_informer_state(world->informer), KUBE_WATCHING);
    assert_string_equal(kube_informer_last_error(world->informer), "");
}

static void a_lost_history_of_one_lists_all_without_a_flicker(void **state)
{
    struct world *world = *state;

    watch_both(world);
    fake_forget_sent(world->fake);
    feed_at(world, M_PODS, ERROR("410"));
    assert_int_equal(kube_informer_state(world->informer), KUBE_WAITING);
    feed_at(world, N_PODS, EVENT("MODIFIED", POD_IN("n", "b", "13", "two"))); /* still heard */
    answer_at(world, M_PODS, LIST("30", POD_IN("m", "a", "5", "one")));
    answer_at(world, N_PODS, LIST("31", POD_IN("n", "b", "13", "two")));
    answer_at(world, M_PODS, NULL);
    answer_at(world, N_PODS, NULL);
    fake_run_for(world->fake, SECOND);
    assert_told(&world->mirror, "b:one>two ");
    assert_int_equal(lists_sent(world), 2);
    assert_int_equal(fake_open_streams(world->fake), 2);
    assert_int_equal(kube_informer_state(world->informer), KUBE_WATCHING);
    assert_true(path_has(fake_last_sent(world->fake), N_PODS "?watch=true"));
    assert_true(path_has(fake_last_sent(world->fake), "&resourceVersion=31&"));
}

static void two_lost_histories_are_listed_once(void **state)
{
    struct world *world = *state;

    watch_both(world);
    fake_forget_sent(world->fake);
    answer_at(world, M_PODS, LIST("30", POD_IN("m", "a", "5", "one")));
    answer_at(world, N_PODS, LIST("31", POD_IN("n", "b", "6", "one")));
    answer_at(world, M_PODS, NULL);
    answer_at(world, N_PODS, NULL);
    feed_at(world, M_PODS, ERROR("410"));
    feed_at(world, N_PODS, ERROR("410"));
    fake_run_for(world->fake, 250000); /* one failure, not two */
    assert_int_equal(lists_sent(world), 2);
    fake_run_for(world->fake, 5 * SECOND);
    assert_int_equal(lists_sent(world), 2);
    assert_int_equal(kube_informer_state(world->informer), KUBE_WATCHING);
    assert_told(&world->mirror, "");
}

static void one_silent_namespace_is_noticed_while_the_other_talks(void **state)
{
    struct world *world = *state;
    int64_t begin_us;

    watch_both(world);
    begin_us = kube_informer_last_contact_us(world->informer);
    fake_forget_sent(world->fake);
    for (int i = 0; i < 5; i++) {
        fake_run_for(world->fake, 11 * SECOND);
        feed_at(world, N_PODS, BOOKMARK("20"));
    }
    assert_int_equal(kube_informer_last_contact_us(world->informer), begin_us);
    answer_at(world, M_PODS, NULL);
    fake_run_for(world->fake, 6 * SECOND); /* the minute is over for m */
    assert_true(path_has(fake_last_sent(world->fake), M_PODS "?watch=true"));
    assert_true(path_has(fake_last_sent(world->fake), "&resourceVersion=10&"));
    assert_true(kube_informer_last_contact_us(world->informer) > begin_us);
    assert_int_equal(lists_sent(world), 0);
}

static void last_contact_is_never_until_every_namespace_was_heard(void **state)
{
    struct world *world = *state;

    fake_run_for(world->fake, SECOND);
    answer_at(world, M_PODS, LIST("10", ""));
    fake_answer(world->fake, "GET", N_PODS,
                (struct fake_answer){ .class = ERR_UNAVAILABLE, .times = FAKE_ALWAYS });
    start_both(world);
    fake_run_for(world->fake, 1000);
    assert_int_equal(kube_informer_last_contact_us(world->informer), 0);
    assert_false(kube_cache_is_synced(world->cache));
}

static void one_broken_stream_does_not_disturb_the_other(void **state)
{
    struct world *world = *state;

    watch_both(world);
    feed_at(world, M_PODS, BOOKMARK("15"));
    fake_forget_sent(world->fake);
    assert_true(fake_stream_break(world->fake, M_PODS, ERR_UNKNOWN));
    fake_run_for(world->fake, 1000);
    assert_int_equal(kube_informer_state(world->informer), KUBE_WAITING);
    assert_non_null(strstr(kube_informer_last_error(world->informer), "namespace m"));
    assert_int_equal(fake_open_streams(world->fake), 1);
    feed_at(world, N_PODS, EVENT("MODIFIED", POD_IN("n", "b", "13", "two")));
    assert_told(&world->mirror, "b:one>two ");

    answer_at(world, M_PODS, NULL);
    fake_run_for(world->fake, SECOND);
    assert_int_equal(kube_informer_state(world->informer), KUBE_WATCHING);
    assert_string_equal(kube_informer_last_error(world->informer), "");
    assert_true(path_has(fake_last_sent(world->fake), M_PODS "?watch=true"));
    assert_true(path_has(fake_last_sent(world->fake), "&resourceVersion=15&"));
    assert_int_equal(lists_sent(world), 0);
    assert_int_equal(fake_answers_left(world->fake), 0);
}

static void each_watch_has_a_back_off_of_its_own(void **state)
{
    struct world *world = *state;

    watch_both(world);
    fake_answer(world->fake, "GET", M_PODS,
                (struct fake_answer){ .class = ERR_UNAVAILABLE, .times = FAKE_ALWAYS });
    assert_true(fake_stream_break(world->fake, M_PODS, ERR_UNKNOWN));
    fake_run_for(world->fake, 50 * SECOND);
    fake_forget_sent(world->fake);
    answer_at(world, N_PODS, NULL);
    assert_true(fake_stream_break(world->fake, N_PODS, ERR_UNKNOWN));
    fake_run_for(world->fake, 250000);
    assert_true(path_has(fake_last_sent(world->fake), N_PODS "?watch=true"));
    assert_int_equal(fake_open_streams(world->fake), 1);
    fake_forget_sent(world->fake);
    fake_run_for(world->fake, 50 * SECOND); /* and n's health is no reason to hurry for m */
    assert_in_range(fake_sent_count(world->fake), 3, 5);
}

static void a_healthy_stream_ends_the_back_off_of_lists(void **state)
{
    struct world *world = *state;

    fake_answer(world->fake, "GET", M_PODS,
                (struct fake_answer){ .class = ERR_UNAVAILABLE, .times = 4 });
    fake_serve(world->fake, serve_three, &(unsigned){ 0 });
    start_both(world);
    fake_run_for(world->fake, 20 * SECOND);
    assert_int_equal(kube_informer_state(world->informer), KUBE_WATCHING);
    assert_true(fake_stream_end(world->fake, N_PODS));
    fake_run_for(world->fake, 1000);
    fake_forget_sent(world->fake);
    feed_at(world, M_PODS, ERROR("410"));
    fake_run_for(world->fake, 250000);
    assert_int_equal(lists_sent(world), 2);
}

static void a_list_makes_refusals_forgotten(void **state)
{
    struct world *world = *state;

    watch_both(world);
    for (int i = 0; i < 3; i++)
        fake_status(world->fake, "GET", M_PODS, 500, "InternalError", "no");
    fake_serve(world->fake, serve_three, &(unsigned){ 0 });
    assert_true(fake_stream_break(world->fake, M_PODS, ERR_UNKNOWN));
    fake_run_for(world->fake, 5 * SECOND);
    assert_int_equal(kube_informer_state(world->informer), KUBE_WATCHING);
    fake_forget_sent(world->fake);
    feed_at(world, M_PODS, ERROR("500"));
    fake_run_for(world->fake, 10 * SECOND);
    assert_int_equal(lists_sent(world), 0);
    assert_int_equal(fake_open_streams(world->fake), 2);
}

static void progress_is_what_every_watch_has_passed(void **state)
{
    struct world *world = *state;
    const struct kube_object *predicted = make_pod("z", NULL, 0, "predicted");
    const struct kube_object *listed = make_pod("y", "u-y", 11, "created");
    const struct kube_object *created = make_pod("z", "u-z", 15, "created");

    watch_both(world);
    kube_overlay_done(kube_overlay_lay(world->cache, "n", "y", listed), listed, 11);
    kube_overlay_done(kube_overlay_lay(world->cache, "n", "z", predicted), created, 15);
    assert_told(&world->mirror, "y:->created z:->predicted z:predicted>created ");
    feed_at(world, N_PODS, BOOKMARK("14"));
    assert_told(&world->mirror, ""); /* m is still at its list, 10 */
    feed_at(world, M_PODS, BOOKMARK("40"));
    assert_told(&world->mirror, "y:created>- "); /* and n has not passed 15 */
    feed_at(world, N_PODS, BOOKMARK("15"));
    assert_told(&world->mirror, "z:created>- ");
    kube_object_unref(predicted);
    kube_object_unref(listed);
    kube_object_unref(created);
}

static struct fake_answer serve_nothing(void *context, const struct fake_sent *sent)
{
    return (struct fake_answer){ .status = 200, .body = sent->stream ? NULL : LIST("1", "") };
}

static void as_many_namespaces_as_the_bound_are_watched(void **state)
{
    struct world *world = *state;
    char names[KUBE_INFORMER_MAX_NAMESPACES][16];
    const char *pointers[KUBE_INFORMER_MAX_NAMESPACES];
    struct kube_informer_options options = { .namespaces = pointers,
                                             .namespace_count = KUBE_INFORMER_MAX_NAMESPACES };

    for (int i = 0; i < KUBE_INFORMER_MAX_NAMESPACES; i++) {
        snprintf(names[i], sizeof(names[i]), "n%d", i);
        pointers[i] = names[i];
    }
    fake_serve(world->fake, serve_nothing, NULL);
    start(world, &options);
    fake_run_for(world->fake, SECOND);
    assert_int_equal(fake_open_streams(world->fake), KUBE_INFORMER_MAX_NAMESPACES);
    assert_int_equal(kube_informer_state(world->informer), KUBE_WATCHING);
}

static void a_kind_without_namespaces_has_one_watch(void **state)
{
    struct world *world = *state;
    struct kube_cache *nodes = kube_cache_new(&kube_node_kind, &world->clock);
    struct kube_informer_options options = { .namespaces = (const char *[]){ "m", "n" },
                                             .namespace_count = 2 };
    struct kube_informer *informer =
        kube_informer_new(world->client, nodes, &world->rand, &options);

    fake_serve(world->fake, serve_nothing, NULL);
    kube_informer_start(informer);
    fake_run_for(world->fake, 1000);
    assert_int_equal(fake_sent_count(world->fake), 2);
    assert_string_equal(fake_sent(world->fake, 0)->path, "/api/v1/nodes?limit=500");
    kube_informer_free(informer);
    kube_cache_free(nodes);
}

static void several_watches_can_be_freed_while_one_waits(void **state)
{
    struct world *world = *state;

    watch_both(world);
    assert_true(fake_stream_break(world->fake, N_PODS, ERR_UNKNOWN));
    fake_run_for(world->fake, 1000);
    kube_informer_free(world->informer);
    world->informer = NULL;
    assert_int_equal(fake_open_streams(world->fake), 0);
    fake_run_for(world->fake, 60 * SECOND);
}

static void it_can_be_freed_in_every_state(void **state)
{
    struct world *world = *state;

    kube_informer_free(NULL);
    start(world, NULL);
    kube_informer_free(world->informer); /* listing */

    fake_answer(world->fake, "GET", PODS, (struct fake_answer){ .status = 500 });
    fake_answer(world->fake, "GET", PODS, (struct fake_answer){ .class = ERR_UNAVAILABLE });
    start(world, NULL);
    fake_run_for(world->fake, 1000);
    assert_int_equal(kube_informer_state(world->informer), KUBE_WAITING);
    kube_informer_free(world->informer);

    answer(world, LIST("1", ""));
    answer(world, NULL);
    start(world, NULL);
    fake_run_for(world->fake, 1000);
    assert_int_equal(kube_informer_state(world->informer), KUBE_WATCHING);
    kube_informer_free(world->informer);
    world->informer = NULL;
    assert_int_equal(fake_open_streams(world->fake), 0);
    fake_run_for(world->fake, 60 * SECOND);
}

static void states_have_names(void **state)
{
    assert_string_equal(kube_informer_state_name(KUBE_IDLE), "idle");
    assert_string_equal(kube_informer_state_name(KUBE_LISTING), "listing");
    assert_string_equal(kube_informer_state_name(KUBE_WATCHING), "watching");
    assert_string_equal(kube_informer_state_name(KUBE_WAITING), "waiting");
}

#define in_world(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_world(it_lists_page_by_page_and_then_watches),
        in_world(the_server_ends_a_watch_before_silence_would),
        in_world(namespace_selectors_and_page_are_asked_for),
        in_world(an_expired_page_begins_the_list_again),
        in_world(failures_wait_longer_and_longer),
        in_world(the_server_may_ask_for_patience),
        in_world(a_list_without_a_version_is_not_believed),
        in_world(events_reach_the_cache),
        in_world(an_event_older_than_the_cache_is_ignored),
        in_world(a_broken_stream_is_taken_up_where_it_was),
        in_world(half_a_line_is_forgotten_with_its_stream),
        in_world(a_stream_that_ends_in_time_is_renewed_at_once),
        in_world(streams_that_end_at_once_are_not_asked_for_in_a_loop),
        in_world(silence_counts_as_a_broken_stream),
        in_world(a_lost_history_is_listed_anew),
        in_world(a_refused_watch_of_an_old_version_is_listed_anew),
        in_world(events_after_an_error_are_not_taken),
        in_world(other_errors_wait_and_watch_again),
        in_world(a_watch_that_is_refused_again_and_again_is_listed_anew),
        in_world(a_line_over_the_bound_is_listed_instead),
        in_world(a_line_that_the_transport_refuses_is_listed_instead),
        in_world(one_bad_object_does_not_stop_the_others),
        in_world(the_watch_takes_overlays_away),
        in_world(namespaces_are_listed_in_turn_and_watched_together),
        in_world(an_object_of_an_unwatched_namespace_never_appears),
        in_world(nothing_is_gone_before_every_list_has_ended),
        in_world(a_lost_history_of_one_lists_all_without_a_flicker),
        in_world(two_lost_histories_are_listed_once),
        in_world(one_silent_namespace_is_noticed_while_the_other_talks),
        in_world(last_contact_is_never_until_every_namespace_was_heard),
        in_world(one_broken_stream_does_not_disturb_the_other),
        in_world(each_watch_has_a_back_off_of_its_own),
        in_world(a_healthy_stream_ends_the_back_off_of_lists),
        in_world(a_list_makes_refusals_forgotten),
        in_world(progress_is_what_every_watch_has_passed),
        in_world(as_many_namespaces_as_the_bound_are_watched),
        in_world(a_kind_without_namespaces_has_one_watch),
        in_world(several_watches_can_be_freed_while_one_waits),
        in_world(it_can_be_freed_in_every_state),
        cmocka_unit_test(states_have_names),
    };

    return cmocka_run_group_tests_name("informer", tests, NULL, NULL);
}
