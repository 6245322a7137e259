/* http_server.c - the life of a server: start, change of certificates, stop.
 *
 * Holds: tls_context is always a whole, checked pair; connections keep the one they began with. */
#include "io/http_server.h"

#include "base/mem.h"
#include "io/http_server_internal.h"
#include "io/reload.h"
#include "io/tls.h"

#include <event2/listener.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

enum {
    DEFAULT_CONNECTIONS = 256,
    DEFAULT_HEAD = 32 * 1024,
    DEFAULT_BODY = 4 << 20,
    US_PER_SECOND = 1000000,
    MAX_PEM = 1 << 20,
};

static const int64_t default_request_us = 30 * (int64_t)US_PER_SECOND;
static const int64_t default_idle_us = 60 * (int64_t)US_PER_SECOND;

/* --- TLS --- */

int http_server_reload_tls(struct http_server *server, struct err *err)
{
    struct tls_source files = { .cert_file = server->cert_file, .key_file = server->key_file };
    struct tls_material *material;
    SSL_CTX *fresh;
    int result = tls_material_new(&files, &material, err);

    if (result < 0)
        return result;
    result = tls_server_context(material, &fresh, err);
    tls_material_unref(material);
    if (result < 0)
        return result;
    if (server->asks_certificate)
        http_server_ask_certificate(fresh);
    SSL_CTX_free(server->tls_context);
    server->tls_context = fresh;
    return 0;
}

/* Certificate and key change one after the other: between the two they do not fit, which is told
 * and does no harm. */
static void on_file_changed(void *context, struct str content)
{
    struct http_server *server = context;
    struct err why = { .class = 0 };
    int result = http_server_reload_tls(server, &why);

    if (server->tls_changed)
        server->tls_changed(server->tls_changed_context, result < 0 ? &why : NULL);
}

static void on_file_stale(void *context, const struct err *why)
{
    struct http_server *server = context;

    if (server->tls_changed)
        server->tls_changed(server->tls_changed_context, why);
}

static int start_tls(struct http_server *server, const struct http_server_options *options,
                     struct err *err)
{
    struct reload_options watch = {
        .max = MAX_PEM,
        .period_us = options->tls_period_us,
        .changed = on_file_changed,
        .stale = on_file_stale,
        .context = server,
    };

    if (!options->cert_file != !options->key_file)
        return err_set(err, ERR_INVALID, "a certificate and its key go together");
    if (!options->cert_file)
        return 0;
    server->cert_file = mem_strdup(options->cert_file);
    server->key_file = mem_strdup(options->key_file);
    watch.path = options->cert_file;

    int result = reload_file_new(server->loop, &watch, &server->cert_watch, err);

    watch.path = options->key_file;
    if (result == 0)
        result = reload_file_new(server->loop, &watch, &server->key_watch, err);
    return result < 0 ? result : http_server_reload_tls(server, err);
}

/* --- start --- */

static uint16_t port_of(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = { .any.sa_family = AF_UNSPEC };
    socklen_t length = sizeof(address);

    if (getsockname(fd, &address.any, &length) < 0)
        return 0;
    if (address.any.sa_family == AF_INET6)
        return ntohs(address.v6.sin6_port);
    return address.any.sa_family == AF_INET ? ntohs(address.v4.sin_port) : 0;
}

static int64_t or_default(int64_t value, int64_t fallback)
{
    return value > 0 ? value : fallback;
}

int http_server_new(struct loop *loop, const struct http_server_options *options,
                    struct http_server **ret_server, struct err *err)
{
    struct http_server *server = mem_alloc(sizeof(*server));

    *server = (struct http_server){
        .loop = loop,
        .routes = options->routes,
        .route_count = options->route_count,
        .max_connections =
            options->max_connections ? options->max_connections : DEFAULT_CONNECTIONS,
        .max_head = options->max_head ? options->max_head : DEFAULT_HEAD,
        .max_body = options->max_body ? options->max_body : DEFAULT_BODY,
        .request_us = or_default(options->request_us, default_request_us),
        .idle_us = or_default(options->idle_us, default_idle_us),
        .asks_certificate = options->asks_certificate,
        .delete_has_body = options->delete_has_body,
        .tls_changed = options->tls_changed,
        .tls_changed_context = options->tls_context,
    };
    list_init(&server->conns);
    map_init(&server->holders, &(struct map_options){ .max = server->max_connections + 1,
                                                      .borrow_keys = true,
                                                      .free_value = mem_free });
    server->max_per_peer = options->max_per_peer ? options->max_per_peer
                           : options->unix_path  ? server->max_connections
                                                 : (server->max_connections + 1) / 2;

    int result = start_tls(server, options, err);

    if (result == 0)
        result = http_server_listen(server, options, err);
    if (result < 0) {
        http_server_free(server);
        return result;
    }
    server->port = port_of(evconnlistener_get_fd(server->listener));
    *ret_server = server;
    return 0;
}

uint16_t http_server_port(const struct http_server *server)
{
    return server->port;
}

unsigned http_server_connections(const struct http_server *server)
{
    return server->conn_count;
}

/* --- stop --- */

static void on_stopped(void *context)
{
    struct http_server *server = context;
    void (*stopped)(void *context) = server->stopped;

    server->stopped = NULL;
    http_server_close_all(server);
    if (stopped)
        stopped(server->stopped_context); /* may free the server */
}

void http_server_check_stopped(struct http_server *server)
{
    if (server->stopping && server->stopped && server->conn_count == 0)
        loop_timer_start(server->loop, &server->stop_timer, 0, on_stopped, server);
}

void http_server_stop(struct http_server *server, int64_t grace_us, void (*stopped)(void *context),
                      void *context)
{
    if (server->stopping)
        return;
    server->stopping = true;
    server->stopped = stopped;
    server->stopped_context = context;
    evconnlistener_free(server->listener);
    server->listener = NULL;
    loop_timer_start(server->loop, &server->stop_timer, grace_us, on_stopped, server);
    http_server_close_idle(server);
    http_server_check_stopped(server);
}

void http_server_free(struct http_server *server)
{
    if (!server)
        return;
    server->stopping = true;
    server->stopped = NULL;
    if (server->listener)
        evconnlistener_free(server->listener);
    http_server_close_all(server);
    loop_timer_stop(&server->stop_timer);
    reload_file_free(server->cert_watch);
    reload_file_free(server->key_watch);
    map_done(&server->holders);
    SSL_CTX_free(server->tls_context);
    mem_free(server->cert_file);
    mem_free(server->key_file);
    mem_free(server);
}
