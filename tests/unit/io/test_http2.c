/* test_http2.c - calls multiplexed over HTTP/2, against nghttpd where it is installed. */
#include "certs.h"
#include "exchange.h"
#include "peer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

enum { DAY = 86400, CALLS = 50 };

struct world {
    struct loop *loop;
    struct http_transport *transport;
    struct cert ca, server;
    pid_t child;
    int out; /* what nghttpd prints: a line for each connection and each frame */
    char folder[32], url[64], seen[1 << 16];
};

static const char *const places[] = { "/usr/sbin/nghttpd", "/usr/bin/nghttpd",
                                      "/usr/local/bin/nghttpd" };

static const char *find_nghttpd(void)
{
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (access(places[i], X_OK) == 0)
            return places[i];
    return NULL;
}

/* A port that was free a moment ago: nghttpd cannot be told to choose one. */
static unsigned free_port(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    close(fd);
    return ntohs(address.sin_port);
}

static void start_child(struct world *world, const char *program, unsigned port)
{
    char docs[64], port_text[16], key[64], cert[64];
    int out[2];

    snprintf(docs, sizeof(docs), "--htdocs=%s", world->folder);
    snprintf(port_text, sizeof(port_text), "%u", port);
    snprintf(key, sizeof(key), "%s/key", world->folder);
    snprintf(cert, sizeof(cert), "%s/cert", world->folder);
    write_file(key, world->server.key_pem);
    write_file(cert, world->server.cert_pem);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    world->child = fork();
    if (world->child == 0) {
        dup2(out[1], STDOUT_FILENO);
        dup2(out[1], STDERR_FILENO);
        execl(program, program, "-v", "--echo-upload", docs, port_text, key, cert, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    world->out = out[0];
    fcntl(world->out, F_SETFL, O_NONBLOCK);
}

static void wait_for_port(unsigned port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

    for (int i = 0; i < 500; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int result = connect(fd, (struct sockaddr *)&address, sizeof(address));

        close(fd);
        if (result == 0)
            return;
        poll(NULL, 0, 10);
    }
    fail_msg("nghttpd does not listen");
}

static bool begin(struct world *world)
{
    const char *program = find_nghttpd();
    unsigned port = free_port();
    char file[64];

    if (!program)
        return false;
    snprintf(world->folder, sizeof(world->folder), "/tmp/slinc-h2-XXXXXX");
    assert_non_null(mkdtemp(world->folder));
    snprintf(file, sizeof(file), "%s/hello", world->folder);
    write_file(file, "hello");
    cert_make(&world->ca, "test CA", NULL, NULL, DAY);
    cert_make(&world->server, "server", "IP:127.0.0.1", &world->ca, DAY);
    start_child(world, program, port);
    wait_for_port(port);
    assert_int_equal(loop_new_real(&world->loop, NULL), 0);
    snprintf(world->url, sizeof(world->url), "https://127.0.0.1:%u", port);

    struct http_client_options options = { .base_url = world->url,
                                           .tls = { .ca = str_of(world->ca.cert_pem) } };

    assert_int_equal(http_client_new(world->loop, &options, &world->transport, NULL), 0);
    return true;
}

static void drain_output(struct world *world)
{
    size_t got = strlen(world->seen);
    ssize_t part;

    while (got + 1 < sizeof(world->seen) &&
           (part = read(world->out, world->seen + got, sizeof(world->seen) - 1 - got)) > 0)
        got += (size_t)part;
    world->seen[got] = '\0';
}

static void end(struct world *world)
{
    char command[96];

    if (world->transport)
        http_transport_free(world->transport);
    if (world->child > 0) {
        kill(world->child, SIGKILL);
        waitpid(world->child, NULL, 0);
    }
    close(world->out);
    loop_free(world->loop);
    cert_free(&world->ca);
    cert_free(&world->server);
    snprintf(command, sizeof(command), "rm -rf %s", world->folder);
    assert_int_equal(system(command), 0);
}

static unsigned connections_of(struct world *world)
{
    unsigned connections = 0;

    drain_output(world);
    for (const char *at = world->seen; (at = strstr(at, "The negotiated protocol: h2")); at++)
        connections++;
    return connections;
}

static void many_calls_share_one_connection(void **state)
{
    static struct exchange calls[CALLS];
    static struct world world;

    if (!begin(&world))
        skip();
    for (size_t i = 0; i < CALLS; i++) {
        calls[i] = (struct exchange){ .ends = 0 };
        exchange_send(&calls[i], world.loop, world.transport,
                      &(struct http_request){ .method = "GET", .path = "/hello" });
    }
    for (size_t i = 0; i < CALLS; i++) {
        run_until(world.loop, &calls[i].ends);
        assert_int_equal(calls[i].status, 200);
        assert_string_equal(calls[i].body, "hello");
    }
    assert_int_equal(connections_of(&world), 1);
    end(&world);
}

static void bodies_go_over_http2_whole_and_large(void **state)
{
    static struct world world;
    static char body[300000];
    static const char *const methods[] = { "POST", "PUT", "PATCH" };

    if (!begin(&world))
        skip();
    memset(body, 'b', sizeof(body));
    for (size_t i = 0; i < 3; i++) {
        struct exchange done = { .ends = 0 }, empty = { .ends = 0 };

        exchange_do(&done, world.loop, world.transport,
                    &(struct http_request){
                        .method = methods[i], .path = "/any", .body = { body, sizeof(body) } });
        assert_int_equal(done.class, 0);
        if (i < 2) { /* nghttpd sends POST and PUT back */
            assert_int_equal(done.status, 200);
            assert_int_equal(done.body_length, sizeof(body));
        }
        exchange_do(&empty, world.loop, world.transport,
                    &(struct http_request){ .method = methods[i], .path = "/hello" });
        assert_int_equal(empty.class, 0);
    }
    end(&world);
}

static void a_server_that_dies_leaves_changes_unknown(void **state)
{
    static struct world world;
    struct exchange first = { .ends = 0 }, change = { .ends = 0 }, after = { .ends = 0 };

    if (!begin(&world))
        skip();
    exchange_do(&first, world.loop, world.transport,
                &(struct http_request){ .method = "GET", .path = "/hello" });
    assert_int_equal(first.status, 200);
    kill(world.child, SIGSTOP); /* alive, and silent */
    exchange_send(&change, world.loop, world.transport,
                  &(struct http_request){ .method = "DELETE", .path = "/hello" });
    run_for(world.loop, 50 * MS_US);
    assert_int_equal(change.ends, 0);
    kill(world.child, SIGKILL);
    run_until(world.loop, &change.ends);
    assert_int_equal(change.class, ERR_UNKNOWN);
    exchange_do(&after, world.loop, world.transport,
                &(struct http_request){ .method = "DELETE", .path = "/hello" });
    assert_int_equal(after.class, ERR_UNAVAILABLE);
    end(&world);
}

static void a_connection_that_did_not_answer_is_not_used_again(void **state)
{
    static struct world world;
    struct exchange first = { .ends = 0 }, late = { .ends = 0 }, after = { .ends = 0 };

    if (!begin(&world))
        skip();
    exchange_do(&first, world.loop, world.transport,
                &(struct http_request){ .method = "GET", .path = "/hello" });
    assert_int_equal(first.status, 200);
    kill(world.child, SIGSTOP);
    exchange_do(&late, world.loop, world.transport,
                &(struct http_request){ .method = "GET",
                                        .path = "/hello",
                                        .deadline_us = loop_now_us(world.loop) + 100 * MS_US });
    assert_int_equal(late.class, ERR_UNKNOWN);
    kill(world.child, SIGCONT);
    exchange_do(&after, world.loop, world.transport,
                &(struct http_request){ .method = "GET", .path = "/hello" });
    assert_int_equal(after.status, 200);
    assert_int_equal(connections_of(&world), 2);
    end(&world);
}

static void a_cancelled_call_leaves_the_others_on_its_connection_alone(void **state)
{
    static struct exchange calls[CALLS];
    static struct world world;

    if (!begin(&world))
        skip();
    for (size_t i = 0; i < CALLS; i++) {
        calls[i] = (struct exchange){ .ends = 0 };
        exchange_send(&calls[i], world.loop, world.transport,
                      &(struct http_request){ .method = "GET", .path = "/hello" });
    }
    run_until(world.loop, &calls[0].ends);
    for (size_t i = 1; i < CALLS; i += 2)
        if (!calls[i].ends) {
            http_cancel(world.transport, calls[i].call);
            calls[i].ends = 99;
        }
    for (size_t i = 0; i < CALLS; i += 2) {
        run_until(world.loop, &calls[i].ends);
        assert_string_equal(calls[i].body, "hello");
    }
    end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_calls_share_one_connection),
        cmocka_unit_test(bodies_go_over_http2_whole_and_large),
        cmocka_unit_test(a_server_that_dies_leaves_changes_unknown),
        cmocka_unit_test(a_connection_that_did_not_answer_is_not_used_again),
        cmocka_unit_test(a_cancelled_call_leaves_the_others_on_its_connection_alone),
    };

    return cmocka_run_group_tests_name("io/http2", tests, NULL, NULL);
}
