/* test_http_server_crowd.c - many connections at once: whoever asks something is served, whoever
 * only holds connections loses them first. */
#include "io/http_server.h"
#include "raw_client.h"

#include <sys/resource.h>

enum { CROWD = 2000, FIRST = INADDR_LOOPBACK, STRANGER = INADDR_LOOPBACK + 1000 };

struct world {
    struct loop *loop;
    struct http_server *server;
    struct http_server_options options;
    struct http_responder *kept;
    unsigned handled, gone;
    int fds[CROWD];
};

static void on_hello(void *context, const struct http_view *view, struct http_responder *responder)
{
    http_respond_text(responder, 200, "hello");
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
}

static void on_large(void *context, const struct http_view *view, struct http_responder *responder)
{
    static char large[16 << 20];

    ((struct world *)context)->handled++;
    http_respond(responder, 200, "text/plain", (struct str){ large, sizeof(large) });
}

static void on_stream(void *context, const struct http_view *view, struct http_responder *responder)
{
    on_late(context, view, responder);
    http_stream_begin(responder, "text/event-stream");
}

static void begin(struct world *world)
{
    static struct http_route routes[4];
    struct rlimit files;

    routes[0] = (struct http_route){ "/late", false, on_late, world };
    routes[1] = (struct http_route){ "/large", false, on_large, world };
    routes[2] = (struct http_route){ "/stream", false, on_stream, world };
    routes[3] = (struct http_route){ "/", true, on_hello, NULL };
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_true(files.rlim_cur >= 2 * CROWD);
    assert_int_equal(loop_new_real(&world->loop, NULL), 0);
    world->options.address = "127.0.0.1";
    world->options.routes = routes;
    world->options.route_count = 4;
    assert_int_equal(http_server_new(world->loop, &world->options, &world->server, NULL), 0);
    for (unsigned i = 0; i < CROWD; i++)
        world->fds[i] = -1;
}

static void end(struct world *world)
{
    for (unsigned i = 0; i < CROWD; i++)
        if (world->fds[i] >= 0)
            close(world->fds[i]);
    http_server_free(world->server);
    loop_free(world->loop);
}

static int dial(const struct world *world, in_addr_t from)
{
    return raw_open(http_server_port(world->server), from);
}

/* Everybody who was hung up on comes back at once, from these addresses in turn, and says this. */
static void crowd_in(struct world *world, unsigned addresses, const char *words)
{
    unsigned dialed = 0;

    for (unsigned i = 0; i < CROWD; i++) {
        char junk[256];
        ssize_t got = world->fds[i] < 0 ? 0 : recv(world->fds[i], junk, sizeof(junk), MSG_DONTWAIT);

        if (got > 0 || (got < 0 && errno == EAGAIN))
            continue;
        if (world->fds[i] >= 0)
            close(world->fds[i]);
        world->fds[i] = dial(world, FIRST + i % addresses);
        (void)!send(world->fds[i], words, strlen(words), MSG_NOSIGNAL);
        if (++dialed % 64 == 0) /* the server has a backlog */
            run_for(world->loop, MS_US);
    }
}

static void ask_over(struct world *world, int fd)
{
    raw_say(fd, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
    raw_read_until(world->loop, fd, "hello");
}

static void ask_from(struct world *world, in_addr_t from)
{
    int fd = dial(world, from);

    ask_over(world, fd);
    close(fd);
}

static void two_thousand_idle_connections_stop_nobody(void **state)
{
    static const struct {
        unsigned addresses;
        const char *words;
    } crowds[] = {
        { 1, "" },
        { 1, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n" }, /* kept alive */
        { 1, "GET /hello HTT" },                         /* never ended */
        { 20, "" },
        { 20, "POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nx" },
    };

    for (size_t i = 0; i < sizeof(crowds) / sizeof(crowds[0]); i++) {
        struct world world = { .loop = NULL };

        begin(&world);

        int stranger = dial(&world, STRANGER);

        ask_over(&world, stranger);
        for (unsigned round = 0; round < 3; round++) {
            crowd_in(&world, crowds[i].addresses, crowds[i].words);
            for (unsigned k = 0; k < 10; k++) {
                ask_from(&world, STRANGER + 1);
                ask_over(&world, stranger); /* one connection, which nobody has taken */
            }
            if (crowds[i].addresses == 1)
                ask_from(&world, FIRST);
            assert_in_range(http_server_connections(world.server), 100, 256);
        }
        close(stranger);
        end(&world);
    }
}

/* Until the handler has the request. */
static struct http_responder *ask_late(struct world *world, int fd, const char *request)
{
    int64_t limit_us = loop_now_us(world->loop) + (int64_t)15 * SECOND_US;
    unsigned before = world->handled;

    raw_say(fd, request);
    while (world->handled == before) {
        run_for(world->loop, MS_US);
        assert_true(loop_now_us(world->loop) < limit_us);
    }
    return world->kept;
}

static void expect_closed(struct world *world, int fd)
{
    char text[256];

    raw_read_to_end(world->loop, fd, text, sizeof(text));
    assert_string_equal(text, "");
}

static void one_address_holds_at_most_half_of_the_connections(void **state)
{
    struct world world = { .options = { .max_connections = 8 } };
    struct http_responder *kept[4];

    begin(&world);
    for (unsigned i = 0; i < 4; i++) {
        world.fds[i] = dial(&world, FIRST);
        kept[i] = ask_late(&world, world.fds[i], "GET /late HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    world.fds[4] = dial(&world, FIRST);
    expect_closed(&world, world.fds[4]);
    for (unsigned i = 5; i < 9; i++) {
        world.fds[i] = dial(&world, STRANGER);
        ask_over(&world, world.fds[i]);
    }
    assert_int_equal(http_server_connections(world.server), 8);
    assert_int_equal(world.gone, 0);
    for (unsigned i = 0; i < 4; i++)
        http_respond_text(kept[i], 200, "done");
    end(&world);
}

static void the_least_is_given_up_first(void **state)
{
    struct world world = { .options = { .max_connections = 4, .max_per_peer = 4 } };
    struct http_responder *stream, *late[3];
    int streams, unread, unfinished, idle;

    begin(&world);
    streams = world.fds[0] = dial(&world, FIRST);
    stream = ask_late(&world, streams, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
    raw_read_until(world.loop, streams, "event-stream");
    unread = world.fds[1] = dial(&world, FIRST);
    (void)ask_late(&world, unread, "GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    unfinished = world.fds[2] = dial(&world, FIRST);
    raw_say(unfinished, "GET /la");
    idle = world.fds[3] = dial(&world, FIRST);
    ask_over(&world, idle);

    for (unsigned i = 0; i < 3; i++) {
        world.fds[4 + i] = dial(&world, FIRST);
        late[i] = ask_late(&world, world.fds[4 + i], "GET /late HTTP/1.1\r\nHost: a\r\n\r\n");
        if (i == 0)
            expect_closed(&world, idle);
        else if (i == 1)
            expect_closed(&world, unfinished);
        assert_int_equal(http_server_connections(world.server), 4);
        assert_int_equal(world.gone, 0);
    }
    world.fds[7] = dial(&world, FIRST); /* the stream is the last that can go */
    run_until(world.loop, &world.gone);
    assert_false(http_stream_send(stream, STR("x"), 100));
    http_stream_end(stream);
    for (unsigned i = 0; i < 3; i++)
        http_respond_text(late[i], 200, "done");
    end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_thousand_idle_connections_stop_nobody),
        cmocka_unit_test(one_address_holds_at_most_half_of_the_connections),
        cmocka_unit_test(the_least_is_given_up_first),
    };

    return cmocka_run_group_tests_name("io/http_server_crowd", tests, NULL, NULL);
}
