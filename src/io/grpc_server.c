/* grpc_server.c - the socket of a gRPC server, and its connections. */
#include "io/grpc_server.h"

#include "base/mem.h"
#include "io/grpc_server_internal.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    DEFAULT_CONNECTIONS = 16,
    DEFAULT_CALLS = 64,
    DEFAULT_MESSAGE = 1 << 20,
    DEFAULT_REQUEST_US = 60000000,
    BACKLOG = 16,
};

static void on_connection(void *context, unsigned events)
{
    struct grpc_server *server = context;
    int fd = accept4(server->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    (void)events;
    if (fd < 0)
        return; /* the client left already, or descriptors ran out: the next one is tried again */
    if (server->conn_count == server->options.max_connections)
        (void)close(fd);
    else
        grpc_conn_accept(server, fd);
}

/* A socket that an earlier process left is replaced; any other file stays. */
static int remove_socket(const char *path, struct err *err)
{
    struct stat found;

    if (lstat(path, &found) < 0)
        return errno == ENOENT ? 0 : err_system(err, errno, "%s", path);
    if (!S_ISSOCK(found.st_mode))
        return err_set(err, ERR_EXISTS, "%s is there and is no socket", path);
    if (unlink(path) < 0)
        return err_system(err, errno, "remove %s", path);
    return 0;
}

/* The socket gets its mode between bind and listen: nobody can connect before that. */
static int listen_at(struct grpc_server *server, struct err *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int result = remove_socket(server->path, err);

    if (result < 0)
        return result;
    memcpy(address.sun_path, server->path, strlen(server->path) + 1);
    server->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (server->fd < 0)
        return err_system(err, errno, "socket");
    if (bind(server->fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return err_system(err, errno, "bind %s", server->path);
    if (chmod(server->path, S_IRUSR | S_IWUSR) < 0 || listen(server->fd, BACKLOG) < 0)
        return err_system(err, errno, "listen at %s", server->path);
    server->watch = loop_fd_new(server->loop, server->fd, LOOP_FD_READ, on_connection, server);
    return 0;
}

static void fill_defaults(struct grpc_server_options *options)
{
    if (!options->max_connections)
        options->max_connections = DEFAULT_CONNECTIONS;
    if (!options->max_calls)
        options->max_calls = DEFAULT_CALLS;
    if (!options->max_message)
        options->max_message = DEFAULT_MESSAGE;
    if (!options->request_us)
        options->request_us = DEFAULT_REQUEST_US;
}

int grpc_server_new(struct loop *loop, const struct grpc_server_options *options,
                    struct grpc_server **ret_server, struct err *err)
{
    struct grpc_server *server;
    int result;

    if (strlen(options->path) > GRPC_MAX_PATH)
        return err_set(err, ERR_TOO_BIG, "%s: the path of a socket has at most %d bytes",
                       options->path, GRPC_MAX_PATH);
    server = mem_alloc(sizeof(*server));
    *server = (struct grpc_server){ .loop = loop, .options = *options, .fd = -1 };
    memcpy(server->path, options->path, strlen(options->path) + 1);
    fill_defaults(&server->options);
    list_init(&server->conns);
    result = grpc_conn_callbacks(&server->callbacks, err);
    if (result == 0)
        result = listen_at(server, err);
    if (result < 0) {
        grpc_server_free(server);
        return result;
    }
    *ret_server = server;
    return 0;
}

void grpc_server_free(struct grpc_server *server)
{
    if (!server)
        return;
    if (server->watch)
        (void)unlink(server->path);
    loop_fd_free(server->watch);
    if (server->fd >= 0)
        (void)close(server->fd);
    list_each (struct grpc_conn, conn, &server->conns, link) {
        grpc_conn_free(conn);
    }
    nghttp2_session_callbacks_del(server->callbacks);
    mem_free(server);
}

unsigned grpc_server_connections(const struct grpc_server *server)
{
    return server->conn_count;
}
