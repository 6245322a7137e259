/* test_http_stream.c - answers handed over as they come: order, silence, bounds, cancelling. */
#include "base/mem.h"
#include "exchange.h"
#include "peer.h"

#include <netinet/tcp.h>
#include <sys/resource.h>

struct world {
    struct loop *loop;
    struct peer peer;
    struct http_transport *transport;
};

static const char chunked[] = "HTTP/1.1 200 X\r\nContent-Type: a/b\r\n"
                              "Transfer-Encoding: chunked\r\n\r\n";

static void begin_with(struct world *world, void (*script)(struct peer *peer), void *context)
{
    char url[64];

    assert_int_equal(loop_new_real(&world->loop, NULL), 0);
    peer_start(&world->peer, NULL, script, context);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", world->peer.port);
    assert_int_equal(http_client_new(world->loop, &(struct http_client_options){ .base_url = url },
                                     &world->transport, NULL),
                     0);
}

static void begin(struct world *world, void (*script)(struct peer *peer))
{
    begin_with(world, script, NULL);
}

static void end(struct world *world)
{
    http_transport_free(world->transport);
    peer_stop(&world->peer);
    loop_free(world->loop);
}

static const struct http_request a_watch = { .method = "GET", .path = "/watch", .stream = true };

/* Accepts and reads one request; true when the script may go on. */
static bool take_one(struct peer *peer, struct peer_conn *conn)
{
    if (!peer_accept(peer, conn))
        return false;
    if (peer_read_request(conn))
        return true;
    peer_close(conn);
    return false;
}

static void finish(struct peer_conn *conn)
{
    peer_read_to_end(conn);
    peer_close(conn);
}

static void stream_two_pieces(struct peer *peer)
{
    struct peer_conn conn;

    if (!take_one(peer, &conn))
        return;
    peer_say(&conn, chunked);
    peer_say(&conn, "4\r\none\n\r\n");
    peer_wait(peer);
    peer_say(&conn, "4\r\ntwo\n\r\n0\r\n\r\n");
    finish(&conn);
}

static void a_stream_hands_pieces_over_before_it_ends(void **state)
{
    struct world world = { .loop = NULL };
    struct exchange stream = { .ends = 0 };

    begin(&world, stream_two_pieces);
    exchange_send(&stream, world.loop, world.transport, &a_watch);
    while (stream.body_length < 4)
        run_for(world.loop, MS_US);
    assert_int_equal(stream.heads, 1);
    assert_int_equal(stream.ends, 0);
    assert_string_equal(stream.body, "one\n");
    peer_let_go(&world.peer);
    run_until(world.loop, &stream.ends);
    assert_int_equal(stream.class, 0);
    assert_int_equal(stream.heads, 1);
    assert_string_equal(stream.body, "one\ntwo\n"); /* the answer itself added nothing */
    assert_string_equal(stream.content_type, "a/b");
    end(&world);
}

/* Our end of the connection to this peer. */
static int socket_to(const struct peer *peer)
{
    for (int fd = 0; fd < 256; fd++) {
        struct sockaddr_in address = { 0 };
        socklen_t length = sizeof(address);

        if (getpeername(fd, (struct sockaddr *)&address, &length) == 0 &&
            address.sin_family == AF_INET && ntohs(address.sin_port) == peer->port)
            return fd;
    }
    return -1;
}

static void a_peer_that_acknowledges_nothing_is_given_up_after_20_seconds(void **state)
{
    struct world world = { .loop = NULL };
    struct exchange stream = { .ends = 0 };
    unsigned limit_ms = 0;
    socklen_t length = sizeof(limit_ms);

    begin(&world, stream_two_pieces);
    exchange_send(&stream, world.loop, world.transport, &a_watch);
    while (stream.heads == 0)
        run_for(world.loop, MS_US);
    assert_int_equal(
        getsockopt(socket_to(&world.peer), IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, &length), 0);
    assert_int_equal(limit_ms, 20000);
    peer_let_go(&world.peer);
    run_until(world.loop, &stream.ends);
    end(&world);
}

static void refuse_stream(struct peer *peer)
{
    struct peer_conn conn;

    if (!take_one(peer, &conn))
        return;
    peer_answer(&conn, 410, "gone");
    finish(&conn);
}

static void a_refused_stream_tells_the_status_and_the_reason(void **state)
{
    struct world world = { .loop = NULL };
    struct exchange stream = { .ends = 0 };

    begin(&world, refuse_stream);
    exchange_do(&stream, world.loop, world.transport, &a_watch);
    assert_int_equal(stream.status, 410);
    assert_int_equal(stream.heads, 1);
    assert_string_equal(stream.body, "gone");
    end(&world);
}

static void cut_stream(struct peer *peer)
{
    struct peer_conn conn;

    if (!take_one(peer, &conn))
        return;
    peer_say(&conn, chunked);
    peer_say(&conn, "4\r\none\n\r\n");
    peer_close(&conn);
}

static void a_stream_that_is_cut_off_is_unknown(void **state)
{
    struct world world = { .loop = NULL };
    struct exchange stream = { .ends = 0 };

    begin(&world, cut_stream);
    exchange_do(&stream, world.loop, world.transport, &a_watch);
    assert_int_equal(stream.class, ERR_UNKNOWN);
    assert_string_equal(stream.body, "one\n");
    end(&world);
}

/* Two streams that go on, one that ends, and a call; each on the next connection. */
static void stream_once_each(struct peer *peer)
{
    struct peer_conn conns[4];
    bool *ended_stream_hung_up = peer->context;
    char byte;

    for (int i = 0; i < 4; i++) {
        if (!take_one(peer, &conns[i]))
            conns[i] = (struct peer_conn){ .peer = peer, .fd = -1 };
        peer_say(&conns[i], i < 2 ? chunked : "HTTP/1.1 200 X\r\nContent-Length: 2\r\n\r\nok");
        if (i == 2)
            *ended_stream_hung_up = peer_read(&conns[i], &byte, 1) == 0;
    }
    for (int i = 0; i < 4; i++)
        finish(&conns[i]);
}

static void a_stream_has_a_connection_of_its_own(void **state)
{
    struct world world = { .loop = NULL };
    struct exchange streams[2] = { { .ends = 0 } }, third = { .ends = 0 }, call = { .ends = 0 };
    bool hung_up = false;

    begin_with(&world, stream_once_each, &hung_up);
    for (int i = 0; i < 2; i++) {
        exchange_send(&streams[i], world.loop, world.transport, &a_watch);
        while (streams[i].heads == 0)
            run_for(world.loop, MS_US);
    }
    exchange_do(&third, world.loop, world.transport, &a_watch); /* ends; is not kept alive */
    exchange_do(&call, world.loop, world.transport,
                &(struct http_request){ .method = "GET", .path = "/" });
    assert_int_equal(call.status, 200);
    assert_int_equal(world.peer.connections, 4);
    assert_int_equal(streams[0].ends + streams[1].ends, 0);
    end(&world);
    assert_true(hung_up);
}

/* --- silence --- */

static void stream_then_hang(struct peer *peer)
{
    struct peer_conn conn;

    if (!take_one(peer, &conn))
        return;
    peer_say(&conn, chunked);
    peer_say(&conn, "4\r\none\n\r\n");
    finish(&conn);
}

static void a_stream_whose_peer_hangs_ends_after_the_idle_time(void **state)
{
    struct world world = { .loop = NULL };
    struct exchange stream = { .ends = 0 };
    struct http_request request = a_watch;

    begin(&world, stream_then_hang);
    request.idle_us = 200 * MS_US;

    int64_t before_us = loop_now_us(world.loop);

    exchange_do(&stream, world.loop, world.transport, &request);
    assert_int_equal(stream.class, ERR_UNKNOWN);
    assert_string_equal(stream.body, "one\n");
    assert_in_range(loop_now_us(world.loop) - before_us, 200 * MS_US, 5 * SECOND_US);
    end(&world);
}

/* One byte each time the test has let 60 ms pass: together far longer than the idle time. */
static void stream_slowly(struct peer *peer)
{
    struct peer_conn conn;

    if (!take_one(peer, &conn))
        return;
    peer_say(&conn, chunked);
    for (int i = 0; i < 10 && peer_wait(peer); i++)
        peer_say(&conn, "1\r\n\n\r\n");
    peer_say(&conn, "0\r\n\r\n");
    finish(&conn);
}

static void a_stream_with_signs_of_life_goes_on(void **state)
{
    struct world world = { .loop = NULL };
    struct exchange stream = { .ends = 0 };
    struct http_request request = a_watch;

    begin(&world, stream_slowly);
    request.idle_us = 400 * MS_US;
    request.deadline_us = loop_now_us(world.loop) + 300 * MS_US; /* counts until the head only */
    exchange_send(&stream, world.loop, world.transport, &request);
    while (stream.heads == 0)
        run_for(world.loop, MS_US);
    for (unsigned i = 0; i < 10; i++) {
        run_for(world.loop, 60 * MS_US);
        peer_let_go(&world.peer);
    }
    run_until(world.loop, &stream.ends);
    assert_int_equal(stream.class, 0);
    assert_int_equal(stream.body_length, 10);
    end(&world);
}

static void hang_before_head(struct peer *peer)
{
    struct peer_conn conn;

    if (!take_one(peer, &conn))
        return;
    peer_say(&conn, "HTTP/1.1 200 X\r\nTransfer-En");
    finish(&conn);
}

static void a_stream_without_a_head_by_the_deadline_is_unknown(void **state)
{
    struct world world = { .loop = NULL };
    struct exchange stream = { .ends = 0 };
    struct http_request request = a_watch;

    begin(&world, hang_before_head);
    request.deadline_us = loop_now_us(world.loop) + 200 * MS_US;
    exchange_do(&stream, world.loop, world.transport, &request);
    assert_int_equal(stream.class, ERR_UNKNOWN);
    assert_int_equal(stream.heads, 0);
    end(&world);
}

/* --- bounds --- */

static bool with_line_ends;

static void stream_100_megabytes(struct peer *peer)
{
    enum { PIECE = 1 << 20 };
    struct peer_conn conn;
    char *piece = mem_alloc(PIECE);

    memset(piece, 'x', PIECE);
    if (with_line_ends)
        for (size_t i = 99; i < PIECE; i += 100)
            piece[i] = '\n';
    if (!take_one(peer, &conn)) {
        mem_free(piece);
        return;
    }
    peer_say(&conn, "HTTP/1.1 200 X\r\nContent-Length: 104857600\r\n\r\n");
    for (int i = 0; i < 100; i++)
        if (!peer_write(&conn, piece, PIECE))
            break;
    finish(&conn);
    mem_free(piece);
}

static long peak_memory_kb(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void a_line_of_100_megabytes_breaks_the_bound_not_the_memory(void **state)
{
    struct world world = { .loop = NULL };
    struct exchange stream = { .ends = 0 };
    struct http_request request = a_watch;

    with_line_ends = false;
    request.max_answer = 1 << 20;
    begin(&world, stream_100_megabytes);

    long before_kb = peak_memory_kb();

    exchange_do(&stream, world.loop, world.transport, &request);
    assert_int_equal(stream.class, ERR_TOO_BIG);
    assert_in_range(stream.body_length, 0, 1 << 20);
    assert_in_range(peak_memory_kb() - before_kb, 0, 16 * 1024);
    end(&world);
}

static void a_hundred_megabytes_of_short_lines_pass_through(void **state)
{
    struct world world = { .loop = NULL };
    struct exchange stream = { .ends = 0 };
    struct http_request request = a_watch;

    with_line_ends = true;
    request.max_answer = 176; /* the lines are not in step with the pieces: 99, and 176 at a seam */
    begin(&world, stream_100_megabytes);

    long before_kb = peak_memory_kb();

    exchange_do(&stream, world.loop, world.transport, &request);
    assert_int_equal(stream.class, 0);
    assert_int_equal(stream.body_length, 100 << 20);
    assert_in_range(peak_memory_kb() - before_kb, 0, 16 * 1024);
    end(&world);
}

static void stream_lines_of_ten(struct peer *peer)
{
    struct peer_conn conn;

    if (!take_one(peer, &conn))
        return;
    peer_say(&conn, chunked);
    peer_say(&conn, "6\r\n012345\r\n"); /* the line comes in two pieces */
    peer_wait(peer);
    peer_say(&conn, "5\r\n6789\n\r\n0\r\n\r\n");
    finish(&conn);
}

static int class_with_line_bound(size_t bound)
{
    struct world world = { .loop = NULL };
    struct exchange stream = { .ends = 0 };
    struct http_request request = a_watch;

    request.max_answer = bound;
    begin(&world, stream_lines_of_ten);
    exchange_send(&stream, world.loop, world.transport, &request);
    while (stream.body_length < 6)
        run_for(world.loop, MS_US);
    peer_let_go(&world.peer);
    run_until(world.loop, &stream.ends);
    end(&world);
    return stream.class;
}

static void a_line_is_measured_across_pieces(void **state)
{
    assert_int_equal(class_with_line_bound(10), 0);
    assert_int_equal(class_with_line_bound(9), ERR_TOO_BIG);
}

/* --- cancelling --- */

static void cancel_in(bool on_head, bool on_data)
{
    struct world world = { .loop = NULL };
    struct exchange other = { .ends = 0 };
    struct exchange stream = { .cancel_on_head = on_head,
                               .cancel_on_data = on_data,
                               .other = &other };

    begin(&world, stream_then_hang);
    exchange_send(&stream, world.loop, world.transport, &a_watch);
    exchange_send(&other, world.loop, world.transport, &a_watch); /* nobody answers this one */
    while (stream.heads == 0 || (on_data && stream.body_length == 0))
        run_for(world.loop, MS_US);
    run_for(world.loop, 20 * MS_US);
    assert_int_equal(stream.heads, 1);
    assert_int_equal(stream.ends + other.ends, 0);
    assert_int_equal(stream.body_length, on_data ? 4 : 0);
    end(&world);
}

static void a_stream_may_be_cancelled_with_others_when_its_head_comes(void **state)
{
    cancel_in(true, false);
}

static void a_stream_may_be_cancelled_with_others_when_data_comes(void **state)
{
    cancel_in(false, true);
}

static void a_stream_cancelled_and_freed_at_once_leaves_nothing(void **state)
{
    struct world world = { .loop = NULL };
    struct exchange stream = { .cancel_on_data = true };

    begin(&world, stream_then_hang);
    exchange_send(&stream, world.loop, world.transport, &a_watch);
    while (stream.body_length == 0)
        loop_run(world.loop);
    end(&world);
    assert_int_equal(stream.ends, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_hands_pieces_over_before_it_ends),
        cmocka_unit_test(a_peer_that_acknowledges_nothing_is_given_up_after_20_seconds),
        cmocka_unit_test(a_refused_stream_tells_the_status_and_the_reason),
        cmocka_unit_test(a_stream_that_is_cut_off_is_unknown),
        cmocka_unit_test(a_stream_has_a_connection_of_its_own),
        cmocka_unit_test(a_stream_whose_peer_hangs_ends_after_the_idle_time),
        cmocka_unit_test(a_stream_with_signs_of_life_goes_on),
        cmocka_unit_test(a_stream_without_a_head_by_the_deadline_is_unknown),
        cmocka_unit_test(a_line_of_100_megabytes_breaks_the_bound_not_the_memory),
        cmocka_unit_test(a_hundred_megabytes_of_short_lines_pass_through),
        cmocka_unit_test(a_line_is_measured_across_pieces),
        cmocka_unit_test(a_stream_may_be_cancelled_with_others_when_its_head_comes),
        cmocka_unit_test(a_stream_may_be_cancelled_with_others_when_data_comes),
        cmocka_unit_test(a_stream_cancelled_and_freed_at_once_leaves_nothing),
    };

    return cmocka_run_group_tests_name("io/http_stream", tests, NULL, NULL);
}
