/* fuzz_http_server.c - whatever a client sends, every connection ends and every answer is taken.
 *
 * The bytes go to a real server over a real socket, in two parts: the first byte says where to cut,
 * and whether the client leaves before or after the answers. Every second request is answered only
 * when all has been read. */
#include "io/http_server.h"
#include "io/loop_real.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX = 1 << 13, MAX_KEPT = 64, MAX_STEPS = 100000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct loop *loop;
static struct http_server *server;
static struct http_responder *kept[MAX_KEPT];
static size_t kept_count, handled;

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void on_request(void *context, const struct http_view *view,
                       struct http_responder *responder)
{
    struct buf value;

    check(view->method[0] != '\0' && strlen(view->path) < MAX && view->body.len <= 1000);
    buf_init(&value, MAX);
    http_view_query(view, "a", &value, NULL);
    buf_done(&value);
    if (handled++ % 2 == 1 && kept_count < MAX_KEPT)
        kept[kept_count++] = responder;
    else
        http_respond_text(responder, 200, view->path);
}

static void start(void)
{
    static const struct http_route routes[] = { { "/", true, on_request, NULL } };
    struct http_server_options options = { .address = "127.0.0.1",
                                           .routes = routes,
                                           .route_count = 1,
                                           .max_head = 1000,
                                           .max_body = 1000 };

    check(loop_new_real(&loop, NULL) == 0);
    check(http_server_new(loop, &options, &server, NULL) == 0);
}

static int dial(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(http_server_port(server)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct linger at_once = { .l_onoff = 1 }; /* no TIME_WAIT: ports are finite */
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    check(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    return fd;
}

static void answer_kept(void)
{
    while (kept_count > 0)
        http_respond_json(kept[--kept_count], 200, STR("{}"));
}

static void say(int fd, const uint8_t *data, size_t size)
{
    (void)!send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    for (int i = 0; i < 4; i++)
        loop_step(loop);
}

/* Until the server has closed; a reader that never stops, so that it never waits to write. */
static void listen_to_end(int fd)
{
    char junk[4096];
    int steps = 0;

    for (; http_server_connections(server) > 0; steps++) {
        (void)!recv(fd, junk, sizeof(junk), MSG_DONTWAIT);
        loop_step(loop);
        answer_kept();
        check(steps < MAX_STEPS);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > MAX)
        return 0;
    if (!server)
        start();

    bool leaves_early = data[0] & 1;
    size_t cut = (size_t)(data[0] >> 1) % size;
    int fd = dial();

    while (http_server_connections(server) == 0)
        loop_step(loop);
    say(fd, data + 1, cut);
    if (size > cut + 1)
        say(fd, data + 1 + cut, size - 1 - cut);
    if (leaves_early) {
        close(fd);
        fd = -1;
        loop_step(loop);
    } else {
        shutdown(fd, SHUT_WR);
    }
    answer_kept();
    listen_to_end(fd);
    if (fd >= 0)
        close(fd);
    return 0;
}
