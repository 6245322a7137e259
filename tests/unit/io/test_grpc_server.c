/* test_grpc_server.c - calls over a real unix socket: answers, failures, deadlines, bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/grpc_server.h"

#include <errno.h>
#include <sys/stat.h>

#include "grpc_client.h"

enum { MAX_MESSAGE = 200000, MAX_CALLS = 8, MAX_CONNECTIONS = 3, REQUEST_US = 300000 };

struct world {
    struct loop *loop;
    struct grpc_server *server;
    char folder[64], path[128];
    struct grpc_call *held;
    unsigned gone;
    bool fail_when_gone;
    struct client *client;
};

static void on_echo(void *context, struct str message, struct grpc_call *call)
{
    (void)context;
    grpc_reply(call, message);
}

static void on_fail(void *context, struct str message, struct grpc_call *call)
{
    (void)context;
    grpc_fail(call, GRPC_INVALID_ARGUMENT, "wrong: " STR_FMT, STR_ARG(message));
}

static void on_gone(void *context)
{
    struct world *world = context;

    world->gone++;
    if (world->fail_when_gone) {
        grpc_fail(world->held, GRPC_UNAVAILABLE, "too late");
        world->held = NULL;
    }
}

static void on_hold(void *context, struct str message, struct grpc_call *call)
{
    struct world *world = context;

    (void)message;
    world->held = call;
    grpc_call_on_gone(call, on_gone, world);
}

static void on_many(void *context, struct str message, struct grpc_call *call)
{
    grpc_send(call, message);
    on_hold(context, message, call);
}

static const struct grpc_method methods[] = {
    { "/test.Test/Echo", on_echo, false },
    { "/test.Test/Fail", on_fail, false },
    { "/test.Test/Hold", on_hold, false },
    { "/test.Test/Many", on_many, true },
};

static int start(struct world *world, struct err *err)
{
    return grpc_server_new(world->loop,
                           &(struct grpc_server_options){ .path = world->path,
                                                          .methods = methods,
                                                          .method_count = 4,
                                                          .context = world,
                                                          .max_connections = MAX_CONNECTIONS,
                                                          .max_calls = MAX_CALLS,
                                                          .max_message = MAX_MESSAGE,
                                                          .request_us = REQUEST_US },
                           &world->server, err);
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));

    snprintf(world->folder, sizeof(world->folder), "/tmp/grpc-XXXXXX");
    assert_non_null(mkdtemp(world->folder));
    snprintf(world->path, sizeof(world->path), "%s/s.sock", world->folder);
    assert_int_equal(loop_new_real(&world->loop, NULL), 0);
    assert_int_equal(start(world, NULL), 0);
    world->client = client_new(world->loop, world->path);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    client_free(world->client);
    grpc_server_free(world->server);
    if (world->held)
        grpc_fail(world->held, GRPC_UNAVAILABLE, "the server is gone");
    assert_int_equal(rmdir(world->folder), 0); /* the socket was removed */
    loop_free(world->loop);
    free(world);
    return 0;
}

static void expect_message(struct client_call *call, const char *expected)
{
    auto_buf struct buf message;

    buf_init(&message, CLIENT_MAX);
    assert_true(client_take(call, &message));
    assert_string_equal(buf_text(&message), expected);
}

static const struct client_headers usual = { .method = NULL };

static void a_unary_call_is_answered_with_a_message_and_trailers(void **state)
{
    struct world *world = *state;
    struct client_call *call = client_send(world->client, "/test.Test/Echo", usual, STR("hello"));

    client_until(world->client, call->ended);
    expect_message(call, "hello");
    assert_int_equal(call->in.len, 0);
    assert_string_equal(call->http_status, "200");
    assert_string_equal(call->content_type, "application/grpc");
    assert_string_equal(call->grpc_status, "0");
    assert_int_equal(call->header_blocks, 2);
    assert_int_equal(call->error_code, 0);
}

static void an_empty_message_is_a_message(void **state)
{
    struct world *world = *state;
    struct client_call *call = client_send(world->client, "/test.Test/Echo", usual, STR(""));

    client_until(world->client, call->ended);
    expect_message(call, "");
    assert_string_equal(call->grpc_status, "0");
}

static void the_server_speaks_first(void **state)
{
    struct world *world = *state;
    int fd = client_dial(world->path);
    struct pollfd ready = { .fd = fd, .events = POLLIN };

    for (int i = 0; i < 1000 && poll(&ready, 1, 0) == 0; i++)
        loop_step(world->loop);
    assert_int_equal(ready.revents & POLLIN, POLLIN); /* clients wait for our SETTINGS */
    close(fd);
}

static void an_error_is_one_block_of_headers(void **state)
{
    struct world *world = *state;
    struct client_call *call = client_send(world->client, "/test.Test/Fail", usual, STR("50%\n"));

    client_until(world->client, call->ended);
    assert_string_equal(call->http_status, "200");
    assert_string_equal(call->grpc_status, "3");
    assert_string_equal(call->grpc_message, "wrong%3A%2050%25%0A");
    assert_int_equal(call->header_blocks, 1);
    assert_int_equal(call->in.len, 0);
}

static void what_is_no_call_is_refused(void **state)
{
    static const struct {
        const char *path;
        struct client_headers headers;
        const char *http_status, *grpc_status;
    } rows[] = {
        { "/test.Test/Nothing", { .method = NULL }, "200", "12" },
        { "/", { .method = NULL }, "200", "12" },
        { "/test.Test/Echo", { .method = "PUT" }, "405", "2" },
        { "/test.Test/Echo", { .content_type = "application/json" }, "415", "2" },
        { "/test.Test/Echo", { .timeout = "soon" }, "200", "13" },
        { "/test.Test/Echo", { .timeout = "123456789S" }, "200", "13" },
        { "/test.Test/Echo", { .timeout = "S" }, "200", "13" },
        { "/test.Test/Echo", { .content_type = "application/grpc+proto" }, "200", "0" },
        { "/test.Test/Echo", { .timeout = "99999999H" }, "200", "0" },
    };
    struct world *world = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct client_call *call =
            client_send(world->client, rows[i].path, rows[i].headers, STR("x"));

        client_until(world->client, call->ended);
        assert_string_equal(call->http_status, rows[i].http_status);
        assert_string_equal(call->grpc_status, rows[i].grpc_status);
    }
}

static void a_body_that_is_not_one_message_is_refused(void **state)
{
    static const struct {
        struct str body;
        const char *status;
    } rows[] = {
        { { "", 0 }, "13" },
        { { "\0\0\0", 3 }, "13" },
        { { "\0\0\0\0\2x", 6 }, "13" },   /* cut */
        { { "\0\0\0\0\1xyz", 8 }, "13" }, /* more than one */
        { { "\1\0\0\0\1x", 6 }, "12" },   /* compressed */
    };
    struct world *world = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct client_call *call =
            client_send_raw(world->client, "/test.Test/Echo", usual, rows[i].body, false);

        client_until(world->client, call->ended);
        assert_string_equal(call->grpc_status, rows[i].status);
        assert_int_equal(call->header_blocks, 1);
    }
}

/* Larger than the window of a stream, so both sides must let each other go on. */
static void a_large_message_passes_both_ways(void **state)
{
    struct world *world = *state;
    struct client_call *call;
    auto_buf struct buf large, answer;

    buf_init(&large, CLIENT_MAX);
    buf_init(&answer, CLIENT_MAX);
    while (large.len < MAX_MESSAGE)
        buf_add_char(&large, (char)('a' + large.len % 23));
    call = client_send(world->client, "/test.Test/Echo", usual, buf_str(&large));
    client_until(world->client, call->ended);
    assert_true(client_take(call, &answer));
    assert_true(str_eq(buf_str(&answer), buf_str(&large)));
}

static void a_message_that_is_too_large_is_refused_before_it_has_come(void **state)
{
    struct world *world = *state;
    struct client_call *call = client_send_raw(world->client, "/test.Test/Echo", usual,
                                               (struct str){ "\0\x7f\xff\xff\xff", 5 }, true);

    client_until(world->client, call->ended);
    assert_string_equal(call->grpc_status, "8");
    assert_int_equal(call->error_code, NGHTTP2_NO_ERROR);
}

static void headers_that_are_too_large_reset_the_call(void **state)
{
    struct world *world = *state;
    struct client_call *call, *next;
    char *extra = calloc(1, 30000);

    memset(extra, 'x', 29999);
    call = client_send(world->client, "/test.Test/Echo", (struct client_headers){ .extra = extra },
                       STR("x"));
    client_until(world->client, call->ended);
    assert_string_equal(call->grpc_status, "");
    next = client_send(world->client, "/test.Test/Echo", usual, STR("y"));
    client_until(world->client, next->ended);
    assert_string_equal(next->grpc_status, "0");
    free(extra);
}

static void calls_end_in_any_order(void **state)
{
    struct world *world = *state;
    struct client_call *first = client_send(world->client, "/test.Test/Hold", usual, STR("1"));
    struct client_call *second = client_send(world->client, "/test.Test/Echo", usual, STR("2"));

    client_until(world->client, second->ended && world->held);
    assert_false(first->ended);
    grpc_reply(world->held, STR("later"));
    world->held = NULL;
    client_until(world->client, first->ended);
    expect_message(first, "later");
    assert_int_equal(world->gone, 0);
}

static void the_deadline_of_the_client_ends_a_call(void **state)
{
    struct world *world = *state;
    int64_t began_us = loop_now_us(world->loop);
    struct client_call *call = client_send(world->client, "/test.Test/Hold",
                                           (struct client_headers){ .timeout = "50m" }, STR("x"));

    client_until(world->client, call->ended);
    assert_string_equal(call->grpc_status, "4");
    assert_in_range(loop_now_us(world->loop) - began_us, 50000, CLIENT_PATIENCE_US);
    assert_int_equal(world->gone, 1);
    assert_true(grpc_call_is_gone(world->held));
    grpc_reply(world->held, STR("to no effect"));
    world->held = NULL;
}

static void a_call_without_a_deadline_gets_one(void **state)
{
    struct world *world = *state;
    struct client_call *call = client_send_raw(world->client, "/test.Test/Echo", usual,
                                               (struct str){ "\0\0\0\0\2x", 6 }, true);

    client_until(world->client, call->ended);
    assert_string_equal(call->grpc_status, "4");
}

static void a_client_that_cancels_is_noticed(void **state)
{
    struct world *world = *state;
    struct client_call *call = client_send(world->client, "/test.Test/Hold", usual, STR("x"));

    world->fail_when_gone = true;
    client_until(world->client, world->held);
    nghttp2_submit_rst_stream(world->client->session, 0, call->stream, NGHTTP2_CANCEL);
    client_until(world->client, world->gone == 1);
    assert_null(world->held);
}

static void a_client_that_hangs_up_is_noticed(void **state)
{
    struct world *world = *state;

    client_send(world->client, "/test.Test/Hold", usual, STR("x"));
    client_until(world->client, world->held);
    assert_int_equal(grpc_server_connections(world->server), 1);
    shutdown(world->client->fd, SHUT_RDWR);
    client_until(world->client, world->gone == 1);
    assert_int_equal(grpc_server_connections(world->server), 0);
}

static void a_stream_sends_until_it_is_ended(void **state)
{
    struct world *world = *state;
    struct client_call *call = client_send(world->client, "/test.Test/Many", usual, STR("one"));
    auto_buf struct buf message;
    int64_t until_us;

    buf_init(&message, 100);
    client_until(world->client, client_take(call, &message));
    assert_string_equal(buf_text(&message), "one");
    until_us = loop_now_us(world->loop) + REQUEST_US * 3 / 2; /* no deadline ends it */
    client_until(world->client, loop_now_us(world->loop) > until_us);
    assert_false(call->ended);
    grpc_send(world->held, STR("two"));
    client_until(world->client, client_take(call, &message));
    assert_string_equal(buf_text(&message), "two");
    grpc_fail(world->held, GRPC_UNAVAILABLE, "the end");
    world->held = NULL;
    client_until(world->client, call->ended);
    assert_string_equal(call->grpc_status, "14");
}

static void a_client_that_never_reads_does_not_stop_the_others(void **state)
{
    struct world *world = *state;
    struct client *other = client_new(world->loop, world->path);
    struct client_call *stuck, *call;
    auto_buf struct buf large;

    buf_init(&large, CLIENT_MAX);
    while (large.len < MAX_MESSAGE)
        buf_add_char(&large, 'x');
    world->client->no_window = true;
    stuck = client_send(world->client, "/test.Test/Echo", usual, buf_str(&large));
    client_until(world->client, stuck->in.len >= 65535);
    call = client_send(other, "/test.Test/Echo", usual, STR("x"));
    client_until(other, call->ended);
    assert_string_equal(call->grpc_status, "0");
    client_until(world->client, stuck->ended); /* at its deadline */
    assert_int_equal(stuck->error_code, NGHTTP2_CANCEL);
    client_free(other);
}

static void more_calls_than_allowed_wait_for_the_first(void **state)
{
    struct world *world = *state;
    struct client_call *calls[MAX_CALLS * 4];

    for (int i = 0; i < MAX_CALLS * 4; i++)
        calls[i] = client_send(world->client, "/test.Test/Echo", usual, STR("x"));
    for (int i = 0; i < MAX_CALLS * 4; i++) {
        client_until(world->client, calls[i]->ended);
        assert_true(calls[i]->grpc_status[0] == '0' ||
                    calls[i]->error_code == NGHTTP2_REFUSED_STREAM);
    }
    assert_string_equal(calls[0]->grpc_status, "0");
}

static void more_connections_than_allowed_are_closed(void **state)
{
    struct world *world = *state;
    struct client *others[MAX_CONNECTIONS];
    struct client_call *call;

    client_until(world->client, world->client->has_settings);
    for (int i = 0; i < MAX_CONNECTIONS; i++)
        others[i] = client_new(world->loop, world->path);
    client_until(others[MAX_CONNECTIONS - 1], others[MAX_CONNECTIONS - 1]->is_closed);
    call = client_send(others[0], "/test.Test/Echo", usual, STR("x"));
    client_until(others[0], call->ended);
    assert_int_equal(grpc_server_connections(world->server), MAX_CONNECTIONS);
    for (int i = 0; i < MAX_CONNECTIONS; i++)
        client_free(others[i]);
}

static void what_is_no_http2_is_hung_up_on(void **state)
{
    struct world *world = *state;
    struct client *other = client_new(world->loop, world->path);

    assert_int_equal(send(other->fd, "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
    client_until(other, other->is_closed);
    client_free(other);
}

static void the_socket_is_for_its_owner_only(void **state)
{
    struct world *world = *state;
    struct stat found;

    assert_int_equal(stat(world->path, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0600);
}

static void a_socket_of_an_earlier_process_is_replaced(void **state)
{
    struct world *world = *state;
    struct grpc_server *old = world->server;
    struct client_call *call;
    struct client *other;

    assert_int_equal(start(world, NULL), 0);
    other = client_new(world->loop, world->path);
    call = client_send(other, "/test.Test/Echo", usual, STR("x"));
    client_until(other, call->ended);
    assert_string_equal(call->grpc_status, "0");
    client_free(other);
    grpc_server_free(world->server);
    world->server = old;
}

static void a_file_that_is_no_socket_stays(void **state)
{
    struct world *world = *state;
    struct grpc_server *old = world->server;
    struct err err = { 0 };
    FILE *file;

    strcat(world->path, ".txt");
    file = fopen(world->path, "w");
    fclose(file);
    assert_int_equal(start(world, &err), -ERR_EXISTS);
    assert_int_equal(unlink(world->path), 0);
    world->server = old;
}

static void a_path_that_is_too_long_is_refused(void **state)
{
    struct world *world = *state;
    struct grpc_server *old = world->server;
    struct err err = { 0 };

    memset(world->path, 'x', GRPC_MAX_PATH + 1);
    assert_int_equal(start(world, &err), -ERR_TOO_BIG);
    world->server = old;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_unary_call_is_answered_with_a_message_and_trailers),
        TEST(an_empty_message_is_a_message),
        TEST(the_server_speaks_first),
        TEST(an_error_is_one_block_of_headers),
        TEST(what_is_no_call_is_refused),
        TEST(a_body_that_is_not_one_message_is_refused),
        TEST(a_large_message_passes_both_ways),
        TEST(a_message_that_is_too_large_is_refused_before_it_has_come),
        TEST(headers_that_are_too_large_reset_the_call),
        TEST(calls_end_in_any_order),
        TEST(the_deadline_of_the_client_ends_a_call),
        TEST(a_call_without_a_deadline_gets_one),
        TEST(a_client_that_cancels_is_noticed),
        TEST(a_client_that_hangs_up_is_noticed),
        TEST(a_stream_sends_until_it_is_ended),
        TEST(a_client_that_never_reads_does_not_stop_the_others),
        TEST(more_calls_than_allowed_wait_for_the_first),
        TEST(more_connections_than_allowed_are_closed),
        TEST(what_is_no_http2_is_hung_up_on),
        TEST(the_socket_is_for_its_owner_only),
        TEST(a_socket_of_an_earlier_process_is_replaced),
        TEST(a_file_that_is_no_socket_stays),
        TEST(a_path_that_is_too_long_is_refused),
    };

    return cmocka_run_group_tests_name("grpc_server", tests, NULL, NULL);
}
