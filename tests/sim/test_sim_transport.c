/* test_sim_transport.c - the simulated network fails as it says: what each fault tells the sender,
 * and whether the write took effect. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim_transport.h"

#define CONFIGMAPS "/api/v1/namespaces/default/configmaps"

struct peer {
    struct clock clock;
    struct rand rand;
    struct trace trace;
    struct loop *loop;
    struct api_store *store;
    struct sim_net *net;
    struct http_transport *transport;
    int status, failed; /* of the last call; failed is an enum err_class */
    int64_t retry_after_us;
    unsigned heads, answers, crashes;
    struct buf data;
};

static void on_crash(void *context, const char *user)
{
    struct peer *peer = context;

    peer->crashes++;
    assert_string_equal(user, "us");
    http_transport_free(peer->transport);
    peer->transport = NULL;
}

static int set_up(void **state)
{
    static struct peer peer;

    peer = (struct peer){ .status = 0 };
    clock_init_virtual(&peer.clock, INT64_C(1767225600000000));
    rand_init(&peer.rand, 7);
    trace_init(&peer.trace, &peer.clock, NULL);
    buf_init(&peer.data, 1u << 20);
    peer.loop = loop_new_virtual(&peer.clock);
    peer.store = api_store_new(&peer.clock, 1);
    peer.net = sim_net_new(peer.loop, peer.store, &peer.rand, &peer.trace,
                           &(struct sim_hooks){ .crash = on_crash, .context = &peer });
    peer.transport = sim_transport_new(peer.net, "us");
    *state = &peer;
    return 0;
}

static int tear_down(void **state)
{
    struct peer *peer = *state;

    http_transport_free(peer->transport);
    sim_net_free(peer->net);
    api_store_free(peer->store);
    loop_free(peer->loop);
    buf_done(&peer->data);
    return 0;
}

static void on_head(void *context, int status)
{
    struct peer *peer = context;

    peer->heads++;
    peer->status = status;
}

static void on_data(void *context, struct str piece)
{
    buf_add_str(&((struct peer *)context)->data, piece);
}

static void on_answer(void *context, const struct http_answer *answer)
{
    struct peer *peer = context;

    peer->answers++;
    peer->status = answer->status;
    peer->retry_after_us = answer->retry_after_us;
}

static void on_failure(void *context, const struct err *why)
{
    struct peer *peer = context;

    peer->answers++;
    peer->failed = why->class;
}

static struct http_call *send(struct peer *peer, const char *method, const char *path,
                              const char *body, bool stream)
{
    const struct http_handlers handlers = { on_head, on_data, on_answer, on_failure, peer };
    struct http_request request = { .method = method,
                                    .path = path,
                                    .body = str_of(body),
                                    .stream = stream,
                                    .idle_us = stream ? 60000000 : 0,
                                    .deadline_us = loop_now_us(peer->loop) + 30000000 };

    return http_send(peer->transport, &request, &handlers);
}

static void create(struct peer *peer)
{
    (void)send(peer, "POST", CONFIGMAPS, "{\"metadata\":{\"name\":\"a\"}}", false);
}

static bool is_there(const struct peer *peer)
{
    return api_store_find(peer->store, "configmaps", "default", "a") != NULL;
}

/* ---- what becomes of a write ---- */

static const struct {
    const char *name;
    struct sim_faults faults;
    int status, failed;
    bool took_effect;
} cases[] = {
    { "no fault", { .slow = 0 }, 201, 0, true },
    { "slow", { .slow = 1000 }, 201, 0, true },
    { "lost before", { .lost_before = 1000 }, 0, ERR_UNAVAILABLE, false },
    { "lost between", { .lost_between = 1000 }, 0, ERR_UNKNOWN, false },
    { "lost after", { .lost_after = 1000 }, 0, ERR_UNKNOWN, true },
    { "late", { .late = 1000 }, 0, ERR_UNKNOWN, true },
    { "conflict", { .conflict = 1000 }, 409, 0, false },
    { "too many", { .too_many = 1000 }, 429, 0, false },
    { "unavailable", { .unavailable = 1000 }, 503, 0, false },
    { "internal", { .internal = 2000 }, 500, 0, false },
};

static void each_fault_tells_what_it_should_and_does_what_it_should(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        void *fresh = NULL;

        print_message("# %s\n", cases[i].name);
        (void)set_up(&fresh);

        struct peer *peer = fresh;

        sim_net_set_faults(peer->net, &cases[i].faults);
        create(peer);
        assert_int_equal(peer->answers, 0); /* never inside the call that sent it */
        loop_run(peer->loop);
        assert_int_equal(peer->answers, 1);
        assert_int_equal(peer->status, cases[i].status);
        assert_int_equal(peer->failed, cases[i].failed);
        assert_int_equal(is_there(peer), cases[i].took_effect);
        assert_int_equal(peer->retry_after_us, cases[i].status == 429 ? 1000000 : 0);
        (void)tear_down(&fresh);
    }
    (void)set_up(state);
}

static void a_late_write_takes_effect_after_its_sender_was_told(void **state)
{
    struct peer *peer = *state;

    sim_net_set_faults(peer->net, &(struct sim_faults){ .late = 1000 });
    create(peer);
    while (peer->answers == 0)
        assert_true(loop_step(peer->loop));
    assert_false(is_there(peer));
    loop_run(peer->loop);
    assert_true(is_there(peer));
}

static void a_cancelled_write_still_arrives(void **state)
{
    struct peer *peer = *state;
    struct http_call *call =
        send(peer, "POST", CONFIGMAPS, "{\"metadata\":{\"name\":\"a\"}}", false);

    http_cancel(peer->transport, call);
    loop_run(peer->loop);
    assert_int_equal(peer->answers, 0);
    assert_true(is_there(peer));
}

static void every_write_is_on_record(void **state)
{
    struct peer *peer = *state;

    create(peer);
    create(peer);
    (void)send(peer, "GET", CONFIGMAPS, NULL, false);
    loop_run(peer->loop);
    assert_int_equal(sim_net_write_count(peer->net), 2);
    assert_true(sim_net_write(peer->net, 1)->effect);
    assert_int_equal(sim_net_write(peer->net, 2)->status, 409);
    assert_string_equal(sim_net_write(peer->net, 1)->user, "us");
    assert_string_equal(sim_net_write(peer->net, 1)->path, CONFIGMAPS);
    assert_true(sim_net_write(peer->net, 1)->arrived_us > sim_net_write(peer->net, 1)->sent_us);
}

static void a_partition_swallows_calls_until_their_deadline(void **state)
{
    struct peer *peer = *state;

    sim_net_cut(peer->net, "us", "configmaps");
    create(peer);
    (void)send(peer, "GET", "/api/v1/namespaces", NULL, false);
    loop_run(peer->loop);
    assert_int_equal(peer->answers, 2);
    assert_int_equal(peer->status, 200);
    assert_int_equal(peer->failed, ERR_UNKNOWN);
    assert_false(is_there(peer));
    sim_net_cut(peer->net, NULL, NULL);
    create(peer);
    loop_run(peer->loop);
    assert_true(is_there(peer));
}

/* ---- crashes ---- */

static void a_crash_before_a_write_leaves_nothing(void **state)
{
    struct peer *peer = *state;

    sim_net_crash_at(peer->net, 1, FATE_DIES_BEFORE);
    create(peer);
    loop_run(peer->loop);
    assert_int_equal(peer->crashes, 1);
    assert_int_equal(peer->answers, 0);
    assert_false(is_there(peer));
}

static void a_crash_after_a_write_leaves_the_write(void **state)
{
    struct peer *peer = *state;

    sim_net_crash_at(peer->net, 1, FATE_DIES_AFTER);
    create(peer);
    loop_run(peer->loop);
    assert_int_equal(peer->crashes, 1);
    assert_int_equal(peer->answers, 0);
    assert_true(is_there(peer));
}

/* ---- watches ---- */

static void a_watch_brings_lines_and_ends_in_order_when_its_time_is_up(void **state)
{
    struct peer *peer = *state;

    (void)send(peer, "GET", CONFIGMAPS "?watch=1&timeoutSeconds=30", NULL, true);
    create(peer);
    loop_run(peer->loop);
    assert_int_equal(peer->heads, 1);
    assert_non_null(strstr(buf_text(&peer->data), "\"ADDED\""));
    assert_int_equal(peer->answers, 2); /* the create's, and the end of the stream */
    assert_int_equal(peer->failed, 0);
}

static void a_stalled_watch_is_noticed_by_its_silence(void **state)
{
    struct peer *peer = *state;

    (void)send(peer, "GET", CONFIGMAPS "?watch=1&timeoutSeconds=600", NULL, true);
    sim_net_set_faults(peer->net, &(struct sim_faults){ .watch_stalled = 1000 });
    loop_run(peer->loop);
    assert_int_equal(peer->failed, ERR_UNKNOWN);
    assert_int_equal(peer->data.len, 0);
    assert_in_range(loop_now_us(peer->loop), 60000000, 63000000);
}

static void a_broken_watch_fails(void **state)
{
    struct peer *peer = *state;

    (void)send(peer, "GET", CONFIGMAPS "?watch=1", NULL, true);
    sim_net_set_faults(peer->net, &(struct sim_faults){ .watch_broken = 1000 });
    loop_run(peer->loop);
    assert_int_equal(peer->failed, ERR_UNKNOWN);
}

static void an_expired_watch_is_refused_with_410(void **state)
{
    struct peer *peer = *state;

    (void)send(peer, "GET", CONFIGMAPS "?watch=1", NULL, true);
    sim_net_set_faults(peer->net, &(struct sim_faults){ .watch_expired = 1000 });
    loop_run(peer->loop);
    assert_int_equal(peer->status, 410);
    assert_int_equal(peer->answers, 1);
    assert_non_null(strstr(buf_text(&peer->data), "\"Expired\""));
}

static void a_call_past_its_deadline_is_unknown(void **state)
{
    struct peer *peer = *state;
    const struct http_handlers handlers = { on_head, on_data, on_answer, on_failure, peer };
    struct http_request request = { .method = "GET",
                                    .path = CONFIGMAPS,
                                    .body = STR(""),
                                    .deadline_us = loop_now_us(peer->loop) + 10 };

    (void)http_send(peer->transport, &request, &handlers);
    loop_run(peer->loop);
    assert_int_equal(peer->failed, ERR_UNKNOWN);
    assert_int_equal(peer->answers, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_fault_tells_what_it_should_and_does_what_it_should,
                                  tear_down),
        TEST(a_late_write_takes_effect_after_its_sender_was_told),
        TEST(a_cancelled_write_still_arrives),
        TEST(every_write_is_on_record),
        TEST(a_partition_swallows_calls_until_their_deadline),
        TEST(a_crash_before_a_write_leaves_nothing),
        TEST(a_crash_after_a_write_leaves_the_write),
        TEST(a_watch_brings_lines_and_ends_in_order_when_its_time_is_up),
        TEST(a_stalled_watch_is_noticed_by_its_silence),
        TEST(a_broken_watch_fails),
        TEST(an_expired_watch_is_refused_with_410),
        TEST(a_call_past_its_deadline_is_unknown),
    };

    return cmocka_run_group_tests_name("sim_transport", tests, NULL, NULL);
}
