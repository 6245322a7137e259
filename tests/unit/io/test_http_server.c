/* test_http_server.c - requests, late answers, bounds and time, and an orderly end. */
#include "exchange.h"
#include "io/http_server.h"
#include "raw_client.h"

#include <time.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

struct world {
    struct loop *loop;
    struct http_server *server;
    struct http_server_options options;
    struct http_transport *transport;
    struct http_responder *kept;
    unsigned handled, gone, stopped;
    char method[16], path[64], query[64], header[64], body[64];
};

/* --- handlers --- */

static void on_echo(void *context, const struct http_view *view, struct http_responder *responder)
{
    struct world *world = context;
    const char *header = http_view_header(view, "x-test");
    struct buf query;

    buf_init(&query, sizeof(world->query) - 1);
    world->handled++;
    if (http_view_query(view, "q", &query, NULL) == 0)
        snprintf(world->query, sizeof(world->query), "%s", buf_text(&query));
    buf_done(&query);
    snprintf(world->method, sizeof(world->method), "%s", view->method);
    snprintf(world->path, sizeof(world->path), "%s", view->path);
    snprintf(world->header, sizeof(world->header), "%s", header ? header : "(none)");
    snprintf(world->body, sizeof(world->body), "%.*s", (int)(view->body.len % 64), view->body.at);
    http_respond_header(responder, "Retry-After", "3");
    http_respond_header(responder, "X-Bad", "a\r\nSet-Cookie: b");
    http_respond_json(responder, 200, STR("{\"ok\":true}"));
}

static void on_gone(void *context)
{
    struct world *world = context;

    world->gone++;
    loop_stop(world->loop);
}

static void on_late(void *context, const struct http_view *view, struct http_responder *responder)
{
    struct world *world = context;

    world->handled++;
    world->kept = responder;
    http_responder_on_gone(responder, on_gone, world);
    loop_stop(world->loop);
}

static void begin(struct world *world)
{
    static struct http_route routes[4];
    char url[64];

    routes[0] = (struct http_route){ "/echo", false, on_echo, world };
    routes[1] = (struct http_route){ "/late", false, on_late, world };
    routes[2] = (struct http_route){ "/apis/", true, on_echo, world };
    assert_int_equal(loop_new_real(&world->loop, NULL), 0);
    world->options.address = "127.0.0.1";
    world->options.routes = routes;
    world->options.route_count = 3;
    assert_int_equal(http_server_new(world->loop, &world->options, &world->server, NULL), 0);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", http_server_port(world->server));
    assert_int_equal(http_client_new(world->loop, &(struct http_client_options){ .base_url = url },
                                     &world->transport, NULL),
                     0);
}

static void end(struct world *world)
{
    http_transport_free(world->transport);
    http_server_free(world->server);
    loop_free(world->loop);
}

static struct exchange ask(struct world *world, const char *method, const char *path,
                           struct str body)
{
    struct exchange done = { .ends = 0 };

    exchange_do(&done, world->loop, world->transport,
                &(struct http_request){ .method = method,
                                        .path = path,
                                        .body = body,
                                        .headers = { { "X-Test", "yes", false } },
                                        .header_count = 1 });
    return done;
}

static int raw_connect(const struct world *world)
{
    return raw_open(http_server_port(world->server), INADDR_LOOPBACK);
}

/* --- requests and answers --- */

static void a_request_reaches_its_handler_and_the_answer_comes_back(void **state)
{
    struct world world = { .loop = NULL };

    begin(&world);

    struct exchange done = ask(&world, "POST", "/echo?p=1&q=a%20b", STR("hello"));

    assert_int_equal(done.status, 200);
    assert_string_equal(done.body, "{\"ok\":true}");
    assert_string_equal(done.content_type, "application/json");
    assert_int_equal(done.retry_after_us, 3 * SECOND_US);
    assert_string_equal(world.method, "POST");
    assert_string_equal(world.path, "/echo");
    assert_string_equal(world.query, "a b");
    assert_string_equal(world.header, "yes");
    assert_string_equal(world.body, "hello");
    end(&world);
}

static void routes_match_exactly_or_by_prefix(void **state)
{
    static const struct {
        const char *path;
        int status;
    } cases[] = {
        { "/echo", 200 },      { "/echo/", 404 },  { "/ech", 404 },
        { "/apis/v1/x", 200 }, { "/apis/", 200 },  { "/apis", 404 },
        { "/", 404 },          { "/echo?x", 200 }, { "/%65cho", 404 },
    };
    struct world world = { .loop = NULL };

    begin(&world);
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(ask(&world, "GET", cases[i].path, STR("")).status, cases[i].status);
    end(&world);
}

static void all_the_usual_methods_are_served(void **state)
{
    static const char *const methods[] = { "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE" };
    struct world world = { .loop = NULL };

    begin(&world);
    for (size_t i = 0; i < COUNT(methods); i++) {
        struct exchange done = ask(&world, methods[i], "/echo", STR(""));

        assert_int_equal(done.status, 200);
        assert_int_equal(done.body_length, i == 1 ? 0 : 11);
        assert_string_equal(world.method, methods[i]);
    }
    assert_int_equal(http_server_connections(world.server), 1); /* all over one, kept alive */
    end(&world);
}

static void two_requests_sent_at_once_are_answered_in_turn(void **state)
{
    struct world world = { .loop = NULL };
    char text[4096];

    begin(&world);

    int fd = raw_connect(&world);

    raw_say(fd, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n"
                "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    raw_read_to_end(world.loop, fd, text, sizeof(text));
    assert_int_equal(world.handled, 2);
    assert_non_null(strstr(strstr(text, "{\"ok\":true}") + 1, "{\"ok\":true}"));
    assert_null(strstr(text, "Set-Cookie"));
    close(fd);
    end(&world);
}

static void a_client_that_waits_before_its_body_is_told_to_go_on(void **state)
{
    struct world world = { .loop = NULL };

    begin(&world);

    int fd = raw_connect(&world);

    raw_say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                "Content-Length: 5\r\n\r\n");
    raw_read_until(world.loop, fd, "HTTP/1.1 100 Continue\r\n\r\n");
    assert_int_equal(world.handled, 0);
    raw_say(fd, "hello");
    raw_read_until(world.loop, fd, "{\"ok\":true}");
    assert_string_equal(world.body, "hello");
    close(fd);
    end(&world);
}

static void who_ends_its_side_is_still_answered(void **state)
{
    struct world world = { .loop = NULL };
    char text[4096];

    begin(&world);

    int fd = raw_connect(&world);

    raw_say(fd, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\nGET /late HTTP/1.1\r\nHost: a\r\n\r\n");
    shutdown(fd, SHUT_WR);
    while (world.handled < 2)
        run_for(world.loop, MS_US);
    run_for(world.loop, 5 * MS_US);
    assert_int_equal(world.gone, 0);
    http_respond_text(world.kept, 200, "at last");
    raw_read_to_end(world.loop, fd, text, sizeof(text));
    assert_non_null(strstr(text, "{\"ok\":true}"));
    assert_non_null(strstr(text, "at last"));
    close(fd);
    end(&world);
}

/* --- late answers --- */

static void an_answer_may_come_later(void **state)
{
    struct world world = { .loop = NULL };
    struct exchange done = { .ends = 0 };

    begin(&world);
    exchange_send(&done, world.loop, world.transport,
                  &(struct http_request){ .method = "GET", .path = "/late" });
    run_until(world.loop, &world.handled);
    run_for(world.loop, 5 * MS_US);
    assert_int_equal(done.ends, 0);
    assert_int_equal(world.gone, 0);
    http_respond_text(world.kept, 503, "not yet");
    run_until(world.loop, &done.ends);
    assert_int_equal(done.status, 503);
    assert_string_equal(done.body, "not yet");
    assert_int_equal(world.gone, 0);
    end(&world);
}

static void an_answer_to_one_who_has_left_does_no_harm(void **state)
{
    struct world world = { .loop = NULL };

    begin(&world);
    for (int by_reset = 0; by_reset < 2; by_reset++) {
        int fd = raw_connect(&world);
        struct linger linger = { .l_onoff = by_reset };

        world.handled = 0;
        raw_say(fd, "GET /late HTTP/1.1\r\nHost: a\r\n\r\n");
        run_until(world.loop, &world.handled);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
        close(fd);
        run_for(world.loop, 5 * MS_US);
        http_respond_text(world.kept, 200, "anybody?");
        while (http_server_connections(world.server) > 0)
            run_for(world.loop, MS_US);
    }
    end(&world);
}

static void a_request_without_an_answer_ends_at_its_deadline(void **state)
{
    struct world world = { .options = { .request_us = 150 * MS_US } };
    char text[256];

    begin(&world);

    int fd = raw_connect(&world);

    raw_say(fd, "GET /late HTTP/1.1\r\nHost: a\r\n\r\n");
    raw_read_to_end(world.loop, fd, text, sizeof(text));
    assert_string_equal(text, "");
    assert_int_equal(world.gone, 1);
    http_respond_header(world.kept, "A", "b");
    http_respond_text(world.kept, 200, "too late"); /* only ends the responder */
    close(fd);
    end(&world);
}

static void a_responder_outlives_its_server(void **state)
{
    struct world world = { .loop = NULL };
    int fd;

    begin(&world);
    fd = raw_connect(&world);
    raw_say(fd, "GET /late HTTP/1.1\r\nHost: a\r\n\r\n");
    run_until(world.loop, &world.handled);
    http_transport_free(world.transport);
    http_server_free(world.server);
    assert_int_equal(world.gone, 1);
    http_respond_json(world.kept, 200, STR("{}"));
    close(fd);
    loop_free(world.loop);
}

/* --- bounds --- */

static void a_body_over_the_maximum_is_refused(void **state)
{
    struct world world = { .options = { .max_body = 1000 } };
    char body[1001];

    memset(body, 'x', sizeof(body));
    begin(&world);
    assert_int_equal(ask(&world, "POST", "/echo", (struct str){ body, 1000 }).status, 200);
    assert_int_equal(ask(&world, "POST", "/echo", (struct str){ body, 1001 }).status, 413);
    assert_int_equal(world.handled, 1);
    end(&world);
}

static void a_chunked_body_over_the_maximum_is_refused(void **state)
{
    struct world world = { .options = { .max_body = 1000 } };
    char text[1024];

    begin(&world);

    int fd = raw_connect(&world);

    raw_say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                "fffffff\r\nxxxx");
    raw_read_to_end(world.loop, fd, text, sizeof(text));
    assert_int_equal(world.handled, 0);
    assert_memory_equal(text, "HTTP/1.1 413", 12);
    close(fd);
    end(&world);
}

static void a_header_over_the_maximum_is_refused(void **state)
{
    struct world world = { .options = { .max_head = 1000 } };
    char text[2048];

    begin(&world);

    int fd = raw_connect(&world);

    memset(text, 'x', 1500);
    text[1500] = '\0';
    raw_say(fd, "GET /echo HTTP/1.1\r\nX: ");
    raw_say(fd, text);
    raw_read_to_end(world.loop, fd, text, sizeof(text));
    assert_int_equal(world.handled, 0);
    close(fd);
    end(&world);
}

static void rubbish_gets_no_handler(void **state)
{
    static const char *const cases[] = {
        "rubbish\r\n\r\n",
        "\r\n\r\n\r\n",
        "GET\r\n\r\n",
        "GET /echo HTTP/9.9\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        "BREW /echo HTTP/1.1\r\n\r\n",
        "POST /echo HTTP/1.1\r\nContent-Length: -5\r\n\r\nxxxxx",
        "POST /echo HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\nxxxxx",
        "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    };
    struct world world = { .options = { .request_us = 300 * MS_US, .idle_us = 300 * MS_US } };
    char text[1024];

    begin(&world);
    for (size_t i = 0; i < COUNT(cases); i++) {
        int fd = raw_connect(&world);

        raw_say(fd, cases[i]);
        raw_read_to_end(world.loop, fd, text, sizeof(text));
        close(fd);
        assert_null(strstr(text, " 200 "));
    }
    assert_int_equal(world.handled, 0);
    end(&world);
}

/* What hides in the body of one request would be another one, on the API server's own connection.
 */
static void a_request_that_hides_another_is_refused_and_nothing_behind_it_is_served(void **state)
{
    static const char hidden[] = "GET /echo HTTP/1.1\r\nHost: a\r\nX-Remote-User: admin\r\n\r\n";
    static const char *const heads[] = {
        "HEAD /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 53\r\n\r\n",
        "HEAD /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 53\r\n\r\n",
        "GET /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "DELETE /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 53\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 53\r\n"
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 53\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        "0\r\nX-Remote-User: admin\r\n\r\n",
        "GET /echo HTTP/1.1\r\nHost: a\r\nX-Test: a\r\n X-Remote-User: admin\r\n\r\n",
        "GET /echo HTTP/1.1\nHost: a\n\n",
    };
    struct world world = { .loop = NULL };
    char text[1024];

    begin(&world);
    for (size_t i = 0; i < COUNT(heads); i++) {
        int fd = raw_connect(&world);

        raw_say(fd, heads[i]);
        raw_say(fd, hidden);
        raw_read_to_end(world.loop, fd, text, sizeof(text));
        close(fd);
        assert_memory_equal(text, "HTTP/1.1 400", 12);
        assert_non_null(strstr(text, "Connection: close"));
        assert_null(strstr(text + 12, "HTTP/1.1 "));
    }
    assert_int_equal(world.handled, 0);
    end(&world);
}

/* A connection that is being answered is never given up for another. */
static void connections_over_the_maximum_are_closed_at_once(void **state)
{
    struct world world = { .options = { .max_connections = 3, .max_per_peer = 3 } };
    struct http_responder *kept[3];
    int fds[3];
    char text[256];

    begin(&world);
    for (size_t i = 0; i < COUNT(fds); i++) {
        fds[i] = raw_connect(&world);
        raw_say(fds[i], "GET /late HTTP/1.1\r\nHost: a\r\n\r\n");
        while (world.handled <= i)
            run_for(world.loop, MS_US);
        kept[i] = world.kept;
    }

    int excess = raw_connect(&world);

    raw_say(excess, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
    raw_read_to_end(world.loop, excess, text, sizeof(text));
    assert_int_equal(world.handled, 3);
    assert_int_equal(world.gone, 0);
    close(excess);
    assert_int_equal(http_server_connections(world.server), 3);
    http_respond_text(kept[0], 200, "done"); /* idle from now on: it makes room */
    raw_read_until(world.loop, fds[0], "done");
    assert_int_equal(ask(&world, "GET", "/echo", STR("")).status, 200);
    assert_int_equal(world.gone, 0);
    for (size_t i = 0; i < COUNT(fds); i++)
        close(fds[i]);
    http_respond_text(kept[1], 200, "done");
    http_respond_text(kept[2], 200, "done");
    end(&world);
}

/* --- time --- */

/* Says a byte whenever the loop has had a millisecond, which would keep any idle timer happy. */
static int64_t dribble_until_closed(struct world *world, const char *beginning)
{
    int64_t start_us = loop_now_us(world->loop);
    int fd = raw_connect(world);
    char byte;

    raw_say(fd, beginning);
    while (recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN) {
        send(fd, "x", 1, MSG_NOSIGNAL);
        run_for(world->loop, MS_US);
        assert_true(loop_now_us(world->loop) - start_us < (int64_t)15 * SECOND_US);
    }
    close(fd);
    return loop_now_us(world->loop) - start_us;
}

static void a_slow_sender_is_cut_off_at_the_deadline(void **state)
{
    static const char *const beginnings[] = {
        "G",
        "GET /echo HTTP/1.1\r\nX: ",
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n",
    };
    struct world world = { .options = { .request_us = 200 * MS_US } };

    begin(&world);
    for (size_t i = 0; i < COUNT(beginnings); i++)
        assert_in_range(dribble_until_closed(&world, beginnings[i]), 190 * MS_US, 3 * SECOND_US);
    assert_int_equal(world.handled, 0);
    assert_int_equal(http_server_connections(world.server), 0);
    end(&world);
}

static void a_silent_connection_is_closed_at_the_deadline(void **state)
{
    struct world world = { .options = { .request_us = 100 * MS_US } };
    char text[16];

    begin(&world);

    int fd = raw_connect(&world);

    raw_read_to_end(world.loop, fd, text, sizeof(text));
    close(fd);
    end(&world);
}

static void a_kept_alive_connection_is_closed_after_the_idle_time(void **state)
{
    struct world world = { .options = { .idle_us = 100 * MS_US } };
    char text[1024];

    begin(&world);

    int64_t start_us = loop_now_us(world.loop);
    int fd = raw_connect(&world);

    raw_say(fd, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
    raw_read_to_end(world.loop, fd, text, sizeof(text));
    assert_memory_equal(text, "HTTP/1.1 200", 12);
    assert_in_range(loop_now_us(world.loop) - start_us, 100 * MS_US, 5 * SECOND_US);
    close(fd);
    end(&world);
}

static void a_second_request_has_a_deadline_of_its_own(void **state)
{
    struct world world = { .options = { .request_us = 200 * MS_US, .idle_us = 10 * SECOND_US } };
    char text[1024];

    begin(&world);

    int fd = raw_connect(&world);

    raw_say(fd, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
    raw_read_until(world.loop, fd, "{\"ok\":true}");
    run_for(world.loop, 250 * MS_US); /* idle for longer than a request may take */
    assert_int_equal(http_server_connections(world.server), 1);

    int64_t start_us = loop_now_us(world.loop);

    raw_say(fd, "GET /ec");
    raw_read_to_end(world.loop, fd, text, sizeof(text));
    assert_in_range(loop_now_us(world.loop) - start_us, 190 * MS_US, 5 * SECOND_US);
    close(fd);
    end(&world);
}

/* --- the end --- */

static void on_stopped(void *context)
{
    struct world *world = context;

    world->stopped++;
    loop_stop(world->loop);
}

static void a_stop_lets_requests_finish_and_closes_the_rest(void **state)
{
    struct world world = { .loop = NULL };
    char text[1024];

    begin(&world);

    int idle = raw_connect(&world), silent = raw_connect(&world), busy = raw_connect(&world);

    raw_say(idle, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
    raw_read_until(world.loop, idle, "{\"ok\":true}");
    world.handled = 0;
    raw_say(busy, "GET /late HTTP/1.1\r\nHost: a\r\n\r\n");
    run_until(world.loop, &world.handled);
    assert_int_equal(http_server_connections(world.server), 3);

    http_server_stop(world.server, 10 * SECOND_US, on_stopped, &world);
    raw_read_to_end(world.loop, idle, text, sizeof(text));
    raw_read_to_end(world.loop, silent, text, sizeof(text));
    assert_int_equal(world.stopped, 0);
    assert_int_equal(http_server_connections(world.server), 1);
    http_respond_text(world.kept, 200, "done");
    run_until(world.loop, &world.stopped);
    raw_read_to_end(world.loop, busy, text, sizeof(text));
    assert_non_null(strstr(text, "Connection: close"));
    assert_non_null(strstr(text, "done"));
    close(idle);
    close(silent);
    close(busy);
    end(&world);
}

static void a_stop_waits_no_longer_than_it_was_told(void **state)
{
    struct world world = { .loop = NULL };

    begin(&world);

    int busy = raw_connect(&world);

    raw_say(busy, "GET /late HTTP/1.1\r\nHost: a\r\n\r\n");
    run_until(world.loop, &world.handled);
    http_server_stop(world.server, 100 * MS_US, on_stopped, &world);
    http_server_stop(world.server, 100 * MS_US, on_stopped, &world); /* once is enough */
    run_until(world.loop, &world.stopped);
    assert_int_equal(world.gone, 1);
    http_respond_text(world.kept, 200, "late");
    run_for(world.loop, 5 * MS_US);
    assert_int_equal(world.stopped, 1);
    close(busy);
    end(&world);
}

static void a_port_in_use_is_an_error(void **state)
{
    struct world world = { .loop = NULL };
    struct http_server *second = NULL;

    begin(&world);
    world.options.port = http_server_port(world.server);
    assert_int_equal(http_server_new(world.loop, &world.options, &second, NULL), -ERR_SYSTEM);
    assert_null(second);
    http_server_free(NULL);
    end(&world);
}

/* --- answers that go on --- */

static struct http_responder *begin_stream(struct world *world, int *ret_fd)
{
    begin(world);
    *ret_fd = raw_connect(world);
    raw_say(*ret_fd, "GET /late HTTP/1.1\r\nHost: a\r\n\r\n");
    loop_run(world->loop);
    assert_non_null(world->kept);
    http_stream_begin(world->kept, "text/event-stream");
    return world->kept;
}

static void a_stream_goes_on_past_the_deadline_of_a_request(void **state)
{
    struct world world = { .options.request_us = 50 * MS_US };
    char text[4096];
    int fd;
    struct http_responder *responder = begin_stream(&world, &fd);

    assert_true(http_stream_send(responder, STR("one"), 1024));
    raw_read_until(world.loop, fd, "one");
    run_for(world.loop, 200 * MS_US);
    assert_true(http_stream_send(responder, STR("two"), 1024));
    http_stream_end(responder);
    raw_read_to_end(world.loop, fd, text, sizeof(text));
    assert_non_null(strstr(text, "two"));
    assert_int_equal(world.gone, 0);
    close(fd);
    end(&world);
}

static void a_reader_that_falls_behind_is_sent_no_more(void **state)
{
    static char piece[1 << 16];
    struct world world = { .loop = NULL };
    unsigned sent = 0;
    int fd;
    struct http_responder *responder = begin_stream(&world, &fd);

    memset(piece, 'x', sizeof(piece));
    while (sent < 1000 &&
           http_stream_send(responder, (struct str){ piece, sizeof(piece) }, 1 << 20)) {
        run_for(world.loop, MS_US);
        sent++;
    }
    assert_in_range(sent, 16, 999);
    http_stream_end(responder);
    close(fd);
    end(&world);
}

static void what_is_sent_to_a_stream_is_not_taken_in_without_end(void **state)
{
    enum { PLENTY = 64 << 20, PATIENCE = 200 };
    static char piece[1 << 16];
    struct world world = { .loop = NULL };
    size_t taken = 0;
    unsigned refused = 0; /* times in a row */
    int fd;
    struct http_responder *responder = begin_stream(&world, &fd);

    while (taken < PLENTY && refused < PATIENCE) {
        ssize_t sent = send(fd, piece, sizeof(piece), MSG_DONTWAIT | MSG_NOSIGNAL);

        assert_true(sent > 0 || errno == EAGAIN);
        taken += sent > 0 ? (size_t)sent : 0;
        refused = sent > 0 ? 0 : refused + 1;
        if (sent < 0)
            run_for(world.loop, MS_US);
    }
    assert_true(taken < PLENTY / 2); /* 64 KiB of ours, and what two kernel buffers hold */

    clock_t before = clock();

    run_for(world.loop, 300 * MS_US); /* what waits is left alone */
    assert_true(clock() - before < CLOCKS_PER_SEC / 10);
    assert_int_equal(world.gone, 0);
    http_stream_end(responder);
    close(fd);
    end(&world);
}

static void a_stream_to_one_who_has_left_ends(void **state)
{
    struct world world = { .loop = NULL };
    unsigned tries = 0;
    int fd;
    struct http_responder *responder = begin_stream(&world, &fd);

    close(fd);
    while (world.gone == 0 && tries++ < 1000) {
        (void)http_stream_send(responder, STR("hello"), 1024);
        run_for(world.loop, MS_US);
    }
    assert_int_equal(world.gone, 1);
    assert_false(http_stream_send(responder, STR("hello"), 1024));
    http_stream_end(responder);
    end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_reaches_its_handler_and_the_answer_comes_back),
        cmocka_unit_test(routes_match_exactly_or_by_prefix),
        cmocka_unit_test(all_the_usual_methods_are_served),
        cmocka_unit_test(two_requests_sent_at_once_are_answered_in_turn),
        cmocka_unit_test(a_client_that_waits_before_its_body_is_told_to_go_on),
        cmocka_unit_test(who_ends_its_side_is_still_answered),
        cmocka_unit_test(an_answer_may_come_later),
        cmocka_unit_test(an_answer_to_one_who_has_left_does_no_harm),
        cmocka_unit_test(a_request_without_an_answer_ends_at_its_deadline),
        cmocka_unit_test(a_responder_outlives_its_server),
        cmocka_unit_test(a_body_over_the_maximum_is_refused),
        cmocka_unit_test(a_chunked_body_over_the_maximum_is_refused),
        cmocka_unit_test(a_header_over_the_maximum_is_refused),
        cmocka_unit_test(rubbish_gets_no_handler),
        cmocka_unit_test(a_request_that_hides_another_is_refused_and_nothing_behind_it_is_served),
        cmocka_unit_test(connections_over_the_maximum_are_closed_at_once),
        cmocka_unit_test(a_slow_sender_is_cut_off_at_the_deadline),
        cmocka_unit_test(a_silent_connection_is_closed_at_the_deadline),
        cmocka_unit_test(a_kept_alive_connection_is_closed_after_the_idle_time),
        cmocka_unit_test(a_second_request_has_a_deadline_of_its_own),
        cmocka_unit_test(a_stop_lets_requests_finish_and_closes_the_rest),
        cmocka_unit_test(a_stop_waits_no_longer_than_it_was_told),
        cmocka_unit_test(a_port_in_use_is_an_error),
        cmocka_unit_test(a_stream_goes_on_past_the_deadline_of_a_request),
        cmocka_unit_test(a_reader_that_falls_behind_is_sent_no_more),
        cmocka_unit_test(what_is_sent_to_a_stream_is_not_taken_in_without_end),
        cmocka_unit_test(a_stream_to_one_who_has_left_ends),
    };

    return cmocka_run_group_tests_name("io/http_server", tests, NULL, NULL);
}
