/* fuzz_grpc_server.c - whatever a client sends, every connection ends and every call is answered.
 *
 * The bytes go to a real server over a real socket, behind the preface that begins a connection.
 * The first byte says where to cut them and whether the client leaves early. Every second call is
 * answered only when all has been read. */
#include "io/grpc_server.h"
#include "io/loop_real.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MAX = 1 << 13, MAX_KEPT = 64, MAX_STEPS = 100000, MAX_MESSAGE = 1000 };

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0"; /* and SETTINGS */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct loop *loop;
static struct grpc_server *server;
static char path[64];
static struct grpc_call *kept[MAX_KEPT];
static size_t kept_count, handled;

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void on_call(void *context, struct str message, struct grpc_call *call)
{
    (void)context;
    check(message.len <= MAX_MESSAGE);
    if (handled++ % 2 == 1 && kept_count < MAX_KEPT)
        kept[kept_count++] = call;
    else
        grpc_reply(call, message);
}

static void start(void)
{
    static const struct grpc_method methods[] = { { "/a", on_call, false },
                                                  { "/b", on_call, true } };

    snprintf(path, sizeof(path), "/tmp/fuzz-grpc-%d.sock", (int)getpid());
    check(loop_new_real(&loop, NULL) == 0);
    check(grpc_server_new(
              loop,
              &(struct grpc_server_options){
                  .path = path, .methods = methods, .method_count = 2, .max_message = MAX_MESSAGE },
              &server, NULL) == 0);
}

static int dial(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(address.sun_path, path, strlen(path) + 1);
    check(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    return fd;
}

static void answer_kept(void)
{
    while (kept_count > 0)
        grpc_fail(kept[--kept_count], GRPC_UNAVAILABLE, "late");
}

static void say(int fd, const void *data, size_t size)
{
    (void)!send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    for (int i = 0; i < 4; i++)
        loop_step(loop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char junk[4096];
    int steps = 0;

    if (size < 1 || size > MAX)
        return 0;
    if (!server)
        start();

    size_t cut = (size_t)(data[0] >> 1) % size;
    int fd = dial();

    while (grpc_server_connections(server) == 0)
        loop_step(loop);
    say(fd, preface, sizeof(preface) - 1);
    say(fd, data + 1, cut);
    if (size > cut + 1)
        say(fd, data + 1 + cut, size - 1 - cut);
    if (data[0] & 1)
        answer_kept();
    shutdown(fd, SHUT_WR);
    for (; grpc_server_connections(server) > 0; steps++) {
        (void)!recv(fd, junk, sizeof(junk), MSG_DONTWAIT);
        loop_step(loop);
        check(steps < MAX_STEPS);
    }
    answer_kept();
    close(fd);
    return 0;
}
