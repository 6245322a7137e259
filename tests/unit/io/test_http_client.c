/* test_http_client.c - calls: what arrives, how often, and what their ends are called. */
#include "base/mem.h"
#include "exchange.h"
#include "peer.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

struct world {
    struct loop *loop;
    struct peer peer;
    struct http_transport *transport;
    struct http_client_options options;
    char url[64];
};

static void begin(struct world *world, void (*script)(struct peer *peer))
{
    assert_int_equal(loop_new_real(&world->loop, NULL), 0);
    peer_start(&world->peer, NULL, script, world);
    snprintf(world->url, sizeof(world->url), "http://127.0.0.1:%u", world->peer.port);
    world->options.base_url = world->url;
    assert_int_equal(http_client_new(world->loop, &world->options, &world->transport, NULL), 0);
}

static void end(struct world *world)
{
    http_transport_free(world->transport);
    peer_stop(&world->peer);
    loop_free(world->loop);
}

static struct exchange ask(struct world *world, const struct http_request *request)
{
    struct exchange exchange = { .ends = 0 };

    exchange_do(&exchange, world->loop, world->transport, request);
    return exchange;
}

static const struct http_request a_get = { .method = "GET", .path = "/x?y=1" };

/* --- requests --- */

static struct str give_token(void *context)
{
    unsigned *asked = context;

    ++*asked;
    return STR("t0ken");
}

static void a_request_carries_what_it_should_and_nothing_else(void **state)
{
    unsigned asked = 0;
    const struct http_header common = { "X-All", "1", false };
    struct world world = { .options = { .bearer_token = give_token,
                                        .bearer_context = &asked,
                                        .headers = &common,
                                        .header_count = 1,
                                        .user_agent = "tester/1" } };

    begin(&world, peer_answers_ok);

    struct exchange done =
        ask(&world, &(struct http_request){
                        .method = "PATCH",
                        .path = "/a/../b?c=%2F",
                        .headers = { { "Content-Type", "a/b", false }, { "X-Empty", "", false } },
                        .header_count = 2,
                        .body = STR("{\"k\":1}") });
    char expected[512];

    assert_int_equal(done.status, 200);
    assert_string_equal(done.body, "ok");
    assert_string_equal(done.content_type, "text/plain");
    assert_int_equal(done.heads, 0);
    assert_int_equal(asked, 1);
    snprintf(expected, sizeof(expected),
             "PATCH /a/../b?c=%%2F HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUser-Agent: tester/1\r\n"
             "Accept: */*\r\nX-All: 1\r\nContent-Type: a/b\r\nX-Empty:\r\n"
             "Authorization: Bearer t0ken\r\nContent-Length: 7\r\n\r\n{\"k\":1}",
             world.peer.port);
    assert_string_equal(world.peer.last, expected);
    end(&world);
}

static void every_method_arrives_as_it_was_named(void **state)
{
    static const struct {
        const char *method, *body, *length;
    } cases[] = {
        { "GET", "", NULL },
        { "HEAD", "", NULL },
        { "DELETE", "", NULL },
        { "DELETE", "{}", "Content-Length: 2\r\n" },
        { "POST", "", "Content-Length: 0\r\n" },
        { "PUT", "abc", "Content-Length: 3\r\n" },
        { "PATCH", "", "Content-Length: 0\r\n" },
    };
    struct world world = { .loop = NULL };

    begin(&world, peer_answers_ok);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct exchange done = ask(&world, &(struct http_request){ .method = cases[i].method,
                                                                   .path = "/p",
                                                                   .body = str_of(cases[i].body) });
        char line[64];

        assert_int_equal(done.status, 200);
        snprintf(line, sizeof(line), "%s /p HTTP/1.1\r\n", cases[i].method);
        assert_memory_equal(world.peer.last, line, strlen(line));
        if (cases[i].length)
            assert_non_null(strstr(world.peer.last, cases[i].length));
        else
            assert_null(strstr(world.peer.last, "Content-Length"));
        if (strcmp(cases[i].method, "HEAD") == 0) { /* our peer sent a body all the same */
            assert_int_equal(done.body_length, 0);
        }
        assert_null(strcasestr(world.peer.last, "\r\nExpect"));
        assert_null(strcasestr(world.peer.last, "\r\nAccept-Encoding"));
    }
    end(&world);
}

static void read_large(struct peer *peer)
{
    struct peer_conn conn;
    char piece[65536];
    size_t got = 0;

    if (!peer_accept(peer, &conn))
        return;
    while (got < 3000000) {
        ssize_t part = peer_read(&conn, piece, sizeof(piece));

        if (part <= 0)
            break;
        got += (size_t)part;
    }
    peer_answer(&conn, 201, "made");
    peer_read_to_end(&conn);
    peer_close(&conn);
}

static void a_large_body_arrives_without_waiting_for_leave(void **state)
{
    struct world world = { .loop = NULL };
    char *body = mem_alloc(3000000);

    memset(body, 'x', 3000000);
    begin(&world, read_large);

    struct exchange done =
        ask(&world,
            &(struct http_request){ .method = "POST", .path = "/p", .body = { body, 3000000 } });

    assert_int_equal(done.status, 201);
    end(&world);
    mem_free(body);
}

static void a_base_url_may_have_a_path_in_front(void **state)
{
    struct world world = { .loop = NULL };
    char url[96];

    begin(&world, peer_answers_ok);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/proxy/k8s/", world.peer.port);
    http_transport_free(world.transport);
    world.options.base_url = url;
    assert_int_equal(http_client_new(world.loop, &world.options, &world.transport, NULL), 0);
    assert_int_equal(ask(&world, &a_get).status, 200);
    assert_memory_equal(world.peer.last, "GET /proxy/k8s/x?y=1 HTTP", 25);
    end(&world);
}

static void unfit_options_are_refused(void **state)
{
    const struct http_header bad = { "X", "a\r\nY: b", false };
    const struct http_client_options cases[] = {
        { .base_url = NULL },
        { .base_url = "" },
        { .base_url = "ftp://h" },
        { .base_url = "file:///etc/passwd" },
        { .base_url = "http://" },
        { .base_url = "http://u:p@h/" },
        { .base_url = "http://h/?q=1" },
        { .base_url = "http://h/#f" },
        { .base_url = "http://h:99999" },
        { .base_url = "http://h", .server_name = "a b" },
        { .base_url = "http://h", .server_name = "" },
        { .base_url = "http://h", .user_agent = "a\nb" },
        { .base_url = "http://h", .headers = &bad, .header_count = 1 },
        { .base_url = "http://h", .headers = &bad, .header_count = HTTP_MAX_HEADERS + 1 },
        { .base_url = "https://h", .tls = { .ca = STR("no certificate") } },
    };
    struct loop *loop;

    assert_int_equal(loop_new_real(&loop, NULL), 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct http_transport *transport = NULL;
        struct err err = { 0 };

        assert_int_equal(http_client_new(loop, &cases[i], &transport, &err), -ERR_INVALID);
        assert_null(transport);
        assert_true(err.text[0] != '\0');
    }
    loop_free(loop);
}

static void an_unfit_request_is_refused_from_the_loop_and_never_sent(void **state)
{
    const struct http_request cases[] = {
        { .method = "get", .path = "/" },
        { .method = "GET", .path = "x" },
        { .method = "GET", .path = "/a b" },
        { .method = NULL, .path = NULL },
        { .method = "GET", .path = "/\r\nX: y" },
        { .method = "GET",
          .path = "/",
          .headers = { { "A", "b\r\nC: d", false } },
          .header_count = 1 },
        { .method = "GET", .path = "/", .headers = { { "A b", "c", false } }, .header_count = 1 },
        { .method = "GET", .path = "/", .headers = { { "Host", "c", false } }, .header_count = 1 },
        { .method = "GET",
          .path = "/",
          .headers = { { "transfer-encoding", "chunked", false } },
          .header_count = 1 },
        { .method = "GET", .path = "/", .headers = { { "A", "1", false } }, .header_count = 17 },
    };
    struct world world = { .loop = NULL };

    begin(&world, peer_answers_ok);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct exchange exchange = { .ends = 0 };

        exchange_send(&exchange, world.loop, world.transport, &cases[i]);
        assert_int_equal(exchange.ends, 0);
        run_until(world.loop, &exchange.ends);
        assert_int_equal(exchange.class, ERR_INVALID);
    }
    assert_int_equal(world.peer.connections, 0);
    end(&world);
}

static void a_unix_socket_takes_the_place_of_the_host(void **state)
{
    char path[] = "/tmp/slinc-unix-XXXXXX";
    char socket_path[64];
    struct world world = { .options = { .base_url = "http://localhost" } };

    assert_non_null(mkdtemp(path));
    snprintf(socket_path, sizeof(socket_path), "%s/s", path);
    assert_int_equal(loop_new_real(&world.loop, NULL), 0);
    peer_start_unix(&world.peer, socket_path, peer_answers_ok, NULL);
    world.options.unix_socket = socket_path;
    assert_int_equal(http_client_new(world.loop, &world.options, &world.transport, NULL), 0);
    assert_int_equal(ask(&world, &a_get).status, 200);
    end(&world);
    unlink(socket_path);
    rmdir(path);
}

static void proxies_of_the_environment_never_stand_before_the_loopback(void **state)
{
    for (int from_environment = 0; from_environment < 2; from_environment++) {
        struct world world = { .options = { .proxy_from_environment = from_environment } };

        setenv("http_proxy", "http://127.0.0.1:1", 1);
        begin(&world, peer_answers_ok);
        assert_int_equal(ask(&world, &a_get).status, 200);
        end(&world);
        unsetenv("http_proxy");
    }
}

static void a_proxy_of_the_environment_is_used_only_when_asked(void **state)
{
    struct world world = { .options = { .proxy_from_environment = true } };
    char proxy[64];

    begin(&world, peer_answers_ok); /* our peer plays the proxy */
    http_transport_free(world.transport);
    snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%u", world.peer.port);
    setenv("http_proxy", proxy, 1);
    world.options.base_url = "http://service.invalid:80";
    assert_int_equal(http_client_new(world.loop, &world.options, &world.transport, NULL), 0);
    assert_int_equal(ask(&world, &a_get).status, 200);
    assert_memory_equal(world.peer.last, "GET http://service.invalid", 26);
    http_transport_free(world.transport);
    world.options.proxy_from_environment = false;
    assert_int_equal(http_client_new(world.loop, &world.options, &world.transport, NULL), 0);
    assert_int_equal(ask(&world, &a_get).class, ERR_UNAVAILABLE); /* there is no such name */
    unsetenv("http_proxy");
    end(&world);
}

/* --- answers --- */

static void say_busy(struct peer *peer)
{
    struct peer_conn conn;

    if (!peer_accept(peer, &conn))
        return;
    if (peer_read_request(&conn))
        peer_say(&conn, "HTTP/1.1 100 Continue\r\nRetry-After: 99\r\n\r\n"
                        "HTTP/1.1 429 Busy\r\nretry-after: 7\r\nContent-Type: a/b\r\n"
                        "Content-Length: 4\r\n\r\nbusy");
    peer_read_to_end(&conn);
    peer_close(&conn);
}

static void an_answer_tells_when_to_come_again(void **state)
{
    struct world world = { .loop = NULL };

    begin(&world, say_busy);

    struct exchange done = ask(&world, &a_get);

    assert_int_equal(done.status, 429);
    assert_int_equal(done.retry_after_us, 7 * SECOND_US);
    assert_string_equal(done.content_type, "a/b");
    assert_string_equal(done.body, "busy");
    end(&world);
}

static void say_elsewhere(struct peer *peer)
{
    struct peer_conn conn;

    if (!peer_accept(peer, &conn))
        return;
    while (peer_read_request(&conn))
        peer_say(&conn, "HTTP/1.1 307 There\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n");
    peer_close(&conn);
}

static void a_redirect_is_an_answer_and_is_not_followed(void **state)
{
    struct world world = { .loop = NULL };

    begin(&world, say_elsewhere);
    assert_int_equal(ask(&world, &a_get).status, 307);
    assert_int_equal(world.peer.arrivals, 1);
    end(&world);
}

/* Reads one request, writes the text of the case, hangs up. */
struct broken_answer {
    const char *text;
    size_t repeat; /* of the last character */
    size_t max_answer;
    int class;
};

static const struct broken_answer *broken;

static void say_broken(struct peer *peer)
{
    struct peer_conn conn;

    if (!peer_accept(peer, &conn))
        return;
    if (peer_read_request(&conn) && peer_say(&conn, broken->text)) {
        const char *last = broken->text + strlen(broken->text) - 1;

        for (size_t i = 0; i < broken->repeat; i++)
            if (!peer_write(&conn, last, 1))
                break;
        if (broken->repeat > 0)
            peer_say(&conn, "\r\n\r\n");
    }
    shutdown(conn.fd, SHUT_WR);
    peer_read_to_end(&conn);
    peer_close(&conn);
}

static void a_broken_answer_has_the_right_name(void **state)
{
    static const struct broken_answer cases[] = {
        { "HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\nhalf", 0, 0, ERR_UNKNOWN },
        { "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", 0, 0, ERR_UNKNOWN },
        { "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 0, 0, ERR_UNKNOWN },
        { "HTTP/1.1 200 X\r\nContent-Le", 0, 0, ERR_UNKNOWN },
        { "rubbish\r\n\r\n", 0, 0, ERR_UNKNOWN },
        { "HTTP/1.1 200 X\r\nContent-Length: 11\r\n\r\n0123456789.", 0, 10, ERR_TOO_BIG },
        { "HTTP/1.1 200 X\r\nContent-Length: 10\r\n\r\n0123456789", 0, 10, 0 },
        { "HTTP/1.1 200 X\r\nX-Long: a", 70000, 0, ERR_TOO_BIG },
        { "HTTP/1.1 200 X\r\nContent-Length: 0\r\nX-Long: a", 60000, 0, 0 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct world world = { .loop = NULL };

        broken = &cases[i];
        begin(&world, say_broken);

        struct exchange done =
            ask(&world, &(struct http_request){ .method = "POST",
                                                .path = "/",
                                                .body = STR("x"),
                                                .max_answer = cases[i].max_answer });

        assert_int_equal(done.class, cases[i].class);
        assert_int_equal(world.peer.arrivals, 1);
        end(&world);
    }
}

static void say_packed(struct peer *peer)
{
    static const unsigned char packed[] = { 0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00,
                                            0x00, 0x02, 0x03, 0xcb, 0x48, 0xcd, 0xc9,
                                            0xc9, 0x57, 0xc8, 0x40, 0x27, 0x01, 0xe3,
                                            0x51, 0x3d, 0x8d, 0x17, 0x00, 0x00, 0x00 };
    struct peer_conn conn;
    char head[96];

    if (!peer_accept(peer, &conn))
        return;
    snprintf(head, sizeof(head),
             "HTTP/1.1 200 X\r\nContent-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n",
             sizeof(packed));
    if (peer_read_request(&conn) && peer_say(&conn, head))
        peer_write(&conn, (const char *)packed, sizeof(packed));
    peer_read_to_end(&conn);
    peer_close(&conn);
}

static void a_packed_answer_is_bounded_by_its_unpacked_size(void **state)
{
    for (size_t max = 22; max <= 23; max++) {
        struct world world = { .options = { .gzip = true } };
        struct http_request request = a_get;

        request.max_answer = max;
        begin(&world, say_packed);

        struct exchange done = ask(&world, &request);

        assert_int_equal(done.class, max < 23 ? ERR_TOO_BIG : 0);
        if (max == 23)
            assert_string_equal(done.body, "hello hello hello hello");
        assert_non_null(strstr(world.peer.last, "Accept-Encoding: gzip"));
        end(&world);
    }
}

/* --- sent at most once --- */

/* The second request on the connection arrives, and the connection dies under it: in order, or by a
 * reset. What comes then is counted. */
static bool dies_by_reset;

static void die_under_the_second(struct peer *peer)
{
    struct peer_conn conn;

    if (!peer_accept(peer, &conn))
        return;
    if (peer_read_request(&conn) && peer_answer(&conn, 200, "first"))
        peer_read_request(&conn);
    if (dies_by_reset)
        peer_reset(&conn);
    else
        peer_close(&conn);
    peer_answers_ok(peer);
}

static void a_change_arrives_once_when_a_kept_alive_connection_dies_under_it(void **state)
{
    static const struct {
        const char *method, *body;
    } cases[] = {
        { "POST", "a job" }, { "POST", "" },   { "PUT", "x" },    { "PATCH", "x" },
        { "PATCH", "" },     { "DELETE", "" }, { "DELETE", "x" },
    };

    for (size_t i = 0; i < 2 * COUNT(cases); i++) {
        struct world world = { .loop = NULL };

        dies_by_reset = i % 2;
        begin(&world, die_under_the_second);
        assert_string_equal(ask(&world, &a_get).body, "first");

        struct exchange done =
            ask(&world, &(struct http_request){ .method = cases[i / 2].method,
                                                .path = "/",
                                                .body = str_of(cases[i / 2].body) });

        assert_int_equal(done.class, ERR_UNKNOWN);
        run_for(world.loop, 20 * MS_US);
        assert_int_equal(world.peer.arrivals, 2); /* the read, and the change: once */
        end(&world);
    }
}

static void a_read_is_repeated_when_a_kept_alive_connection_dies_under_it(void **state)
{
    struct world world = { .loop = NULL };

    dies_by_reset = false;
    begin(&world, die_under_the_second);
    assert_string_equal(ask(&world, &a_get).body, "first");
    assert_string_equal(ask(&world, &a_get).body, "ok");
    assert_int_equal(world.peer.arrivals, 3);
    end(&world);
}

/* The connection is closed while nobody looks; the next request finds it dead or writes into it. */
static void die_after_the_first(struct peer *peer)
{
    struct peer_conn conn;

    if (!peer_accept(peer, &conn))
        return;
    if (peer_read_request(&conn))
        peer_answer(&conn, 200, "first");
    peer_wait(peer);
    peer_reset(&conn);
    peer_answers_ok(peer);
}

static void a_change_on_a_connection_that_died_before_is_sent_at_most_once(void **state)
{
    struct world world = { .loop = NULL };

    begin(&world, die_after_the_first);
    assert_string_equal(ask(&world, &a_get).body, "first");
    peer_let_go(&world.peer);

    struct exchange done =
        ask(&world, &(struct http_request){ .method = "POST", .path = "/", .body = STR("x") });

    /* Noticed in time, it goes over a new connection; else it is unknown. Never both. */
    if (done.class == 0)
        assert_int_equal(world.peer.arrivals, 2);
    else
        assert_int_equal(done.class, ERR_UNKNOWN);
    assert_in_range(world.peer.arrivals, 1, 2);
    end(&world);
}

static void a_kept_alive_connection_is_used_again(void **state)
{
    struct world world = { .loop = NULL };

    begin(&world, peer_answers_ok);
    for (int i = 0; i < 5; i++)
        assert_int_equal(ask(&world, &a_get).status, 200);
    assert_int_equal(world.peer.arrivals, 5);
    assert_int_equal(world.peer.connections, 1);
    end(&world);
}

static void calls_wait_for_one_of_the_allowed_connections(void **state)
{
    struct world world = { .options = { .max_connections = 1 } };
    struct exchange calls[5] = { { .ends = 0 } };

    begin(&world, peer_answers_ok);
    for (size_t i = 0; i < COUNT(calls); i++)
        exchange_send(&calls[i], world.loop, world.transport, &a_get);
    for (size_t i = 0; i < COUNT(calls); i++) {
        run_until(world.loop, &calls[i].ends);
        assert_int_equal(calls[i].status, 200);
    }
    assert_int_equal(world.peer.connections, 1);
    end(&world);
}

/* --- time and cancelling --- */

static void hang(struct peer *peer)
{
    struct peer_conn conn;

    if (!peer_accept(peer, &conn))
        return;
    peer_read_request(&conn);
    peer_read_to_end(&conn);
    peer_close(&conn);
}

static void a_deadline_after_sending_is_unknown(void **state)
{
    static const char *const methods[] = { "GET", "DELETE", "POST" };

    for (size_t i = 0; i < COUNT(methods); i++) {
        struct world world = { .loop = NULL };

        begin(&world, hang);

        struct exchange done = ask(
            &world, &(struct http_request){ .method = methods[i],
                                            .path = "/",
                                            .deadline_us = loop_now_us(world.loop) + 300 * MS_US });

        assert_int_equal(done.class, ERR_UNKNOWN);
        assert_int_equal(world.peer.arrivals, 1);
        end(&world);
    }
}

/* TCP connects, and the TLS handshake is never answered: nothing was sent. */
static struct exchange ask_a_mute_tls_peer(int64_t deadline_us, int64_t connect_us)
{
    struct world world = { .options = { .connect_timeout_us = connect_us } };
    char url[64];

    begin(&world, hang);
    http_transport_free(world.transport);
    snprintf(url, sizeof(url), "https://127.0.0.1:%u", world.peer.port);
    world.options.base_url = url;
    assert_int_equal(http_client_new(world.loop, &world.options, &world.transport, NULL), 0);

    struct exchange done =
        ask(&world, &(struct http_request){ .method = "POST",
                                            .path = "/",
                                            .body = STR("x"),
                                            .deadline_us = loop_now_us(world.loop) + deadline_us });

    assert_int_equal(world.peer.arrivals, 0);
    end(&world);
    return done;
}

static void a_deadline_before_sending_is_a_timeout(void **state)
{
    assert_int_equal(ask_a_mute_tls_peer(300 * MS_US, 0).class, ERR_TIMEOUT);
}

static void no_connection_in_the_time_for_connecting_is_unavailable(void **state)
{
    assert_int_equal(ask_a_mute_tls_peer(10 * SECOND_US, 200 * MS_US).class, ERR_UNAVAILABLE);
}

static void a_deadline_that_has_passed_sends_nothing(void **state)
{
    struct world world = { .loop = NULL };

    begin(&world, peer_answers_ok);
    assert_int_equal(
        ask(&world, &(struct http_request){ .method = "GET", .path = "/", .deadline_us = 1 }).class,
        ERR_TIMEOUT);
    assert_int_equal(world.peer.connections, 0);
    end(&world);
}

static void a_refused_connection_is_unavailable(void **state)
{
    struct world world = { .options = { .base_url = "http://127.0.0.1:1" } };

    assert_int_equal(loop_new_real(&world.loop, NULL), 0);
    assert_int_equal(http_client_new(world.loop, &world.options, &world.transport, NULL), 0);

    struct exchange done = ask(&world, &a_get);

    assert_int_equal(done.class, ERR_UNAVAILABLE);
    assert_memory_equal(done.why, "GET /x: ", 8); /* what failed, without the query */
    http_transport_free(world.transport);
    loop_free(world.loop);
}

static void a_cancelled_call_is_never_heard_of_again(void **state)
{
    struct world world = { .loop = NULL };
    struct exchange early = { .ends = 0 }, late = { .ends = 0 };

    begin(&world, hang);
    exchange_send(&early, world.loop, world.transport, &a_get);
    http_cancel(world.transport, early.call); /* before it was sent */
    exchange_send(&late, world.loop, world.transport, &a_get);
    while (world.peer.arrivals == 0)
        run_for(world.loop, MS_US);
    http_cancel(world.transport, late.call);
    run_for(world.loop, 20 * MS_US);
    assert_int_equal(early.ends + late.ends, 0);
    assert_int_equal(world.peer.connections, 1);
    end(&world);
}

static void a_freed_transport_ends_its_calls_in_silence(void **state)
{
    struct world world = { .loop = NULL };
    struct exchange sent = { .ends = 0 }, waiting = { .ends = 0 };

    begin(&world, hang);
    exchange_send(&sent, world.loop, world.transport, &a_get);
    while (world.peer.arrivals == 0)
        run_for(world.loop, MS_US);
    exchange_send(&waiting, world.loop, world.transport, &a_get);
    end(&world);
    assert_int_equal(sent.ends + waiting.ends, 0);
}

struct chain {
    struct world *world;
    struct exchange victim;
    unsigned answers, done;
};

static void on_chain(void *context, const struct http_answer *answer);

static void send_link(struct chain *chain)
{
    struct http_request request = a_get;
    struct http_handlers handlers = { .answered = on_chain, .context = chain };

    request.deadline_us = loop_now_us(chain->world->loop) + (int64_t)10 * SECOND_US;
    http_send(chain->world->transport, &request, &handlers);
}

static void on_chain(void *context, const struct http_answer *answer)
{
    struct chain *chain = context;

    if (++chain->answers == 3) {
        chain->done = 1;
        loop_stop(chain->world->loop);
        return;
    }
    if (chain->answers == 1)
        http_cancel(chain->world->transport, chain->victim.call);
    send_link(chain);
}

static void calls_may_be_sent_and_cancelled_from_inside_callbacks(void **state)
{
    struct world world = { .options = { .max_connections = 1 } };
    struct chain chain = { .world = &world };

    begin(&world, peer_answers_ok);
    send_link(&chain);
    exchange_send(&chain.victim, world.loop, world.transport, &a_get); /* waits behind the first */
    run_until(world.loop, &chain.done);
    assert_int_equal(chain.victim.ends, 0);
    assert_int_equal(chain.answers, 3);
    end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_carries_what_it_should_and_nothing_else),
        cmocka_unit_test(every_method_arrives_as_it_was_named),
        cmocka_unit_test(a_large_body_arrives_without_waiting_for_leave),
        cmocka_unit_test(a_base_url_may_have_a_path_in_front),
        cmocka_unit_test(unfit_options_are_refused),
        cmocka_unit_test(an_unfit_request_is_refused_from_the_loop_and_never_sent),
        cmocka_unit_test(a_unix_socket_takes_the_place_of_the_host),
        cmocka_unit_test(proxies_of_the_environment_never_stand_before_the_loopback),
        cmocka_unit_test(a_proxy_of_the_environment_is_used_only_when_asked),
        cmocka_unit_test(an_answer_tells_when_to_come_again),
        cmocka_unit_test(a_redirect_is_an_answer_and_is_not_followed),
        cmocka_unit_test(a_broken_answer_has_the_right_name),
        cmocka_unit_test(a_packed_answer_is_bounded_by_its_unpacked_size),
        cmocka_unit_test(a_change_arrives_once_when_a_kept_alive_connection_dies_under_it),
        cmocka_unit_test(a_read_is_repeated_when_a_kept_alive_connection_dies_under_it),
        cmocka_unit_test(a_change_on_a_connection_that_died_before_is_sent_at_most_once),
        cmocka_unit_test(a_kept_alive_connection_is_used_again),
        cmocka_unit_test(calls_wait_for_one_of_the_allowed_connections),
        cmocka_unit_test(a_deadline_after_sending_is_unknown),
        cmocka_unit_test(a_deadline_before_sending_is_a_timeout),
        cmocka_unit_test(no_connection_in_the_time_for_connecting_is_unavailable),
        cmocka_unit_test(a_deadline_that_has_passed_sends_nothing),
        cmocka_unit_test(a_refused_connection_is_unavailable),
        cmocka_unit_test(a_cancelled_call_is_never_heard_of_again),
        cmocka_unit_test(a_freed_transport_ends_its_calls_in_silence),
        cmocka_unit_test(calls_may_be_sent_and_cancelled_from_inside_callbacks),
    };

    return cmocka_run_group_tests_name("io/http_client", tests, NULL, NULL);
}
