/* http_conn.c - connections of the server: what comes in is read into requests, one at a time, and
 * handed to its route; what goes out is waited for.
 *
 * Holds: a conn always has its timer armed; it has at most one request; a responder outlives its
 * connection and its server. */
#include "io/http_server_internal.h"

#include "base/mem.h"
#include "io/http_text.h"
#include "io/loop_real.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
    US_PER_SECOND = 1000000,
    LINGER_US = US_PER_SECOND, /* for a refusal to be read */
    MAX_AHEAD = 64 << 10,      /* of what a peer sends before it has its answer */
    BACKLOG = 512,
};

static void read_requests(struct conn *conn);

/* --- a connection and its time --- */

void http_conn_close(struct conn *conn)
{
    struct http_server *server = conn->server;

    loop_timer_stop(&conn->timer);
    if (conn->responder)
        http_responder_lose(conn->responder);
    bufferevent_free(conn->bufferevent);
    http_reader_done(&conn->reader);
    http_holder_leave(server, conn->holder);
    list_remove(&conn->link);
    server->conn_count--;
    mem_free(conn);
    http_server_check_stopped(server);
}

static void on_time_up(void *context)
{
    http_conn_close(context);
}

static void conn_limit(struct conn *conn, enum conn_state state, int64_t limit_us)
{
    conn->state = state;
    conn->since_us = loop_now_us(conn->server->loop);
    loop_timer_start(conn->server->loop, &conn->timer, limit_us, on_time_up, conn);
}

static bool awaits_request(const struct conn *conn)
{
    return conn->state == CONN_IDLE || conn->state == CONN_READING;
}

static bool has_unsent(const struct conn *conn)
{
    return evbuffer_get_length(bufferevent_get_output(conn->bufferevent)) > 0;
}

/* The answer is out. */
static void conn_answered(struct conn *conn)
{
    if (conn->closes || conn->server->stopping) {
        http_conn_close(conn);
        return;
    }
    http_reader_next(&conn->reader);
    conn_limit(conn, CONN_IDLE, conn->server->idle_us);
    bufferevent_enable(conn->bufferevent, EV_READ);
    read_requests(conn);
    if (conn->has_ended && awaits_request(conn))
        conn_limit(conn, conn->state, 0);
}

void http_conn_end(struct conn *conn)
{
    conn->state = CONN_SENDING; /* the time goes on */
    if (!has_unsent(conn))
        conn_limit(conn, CONN_SENDING, 0);
}

void http_conn_stream(struct conn *conn)
{
    conn->closes = true;
    conn_limit(conn, CONN_STREAMING, (int64_t)HTTP_STREAM_MAX_S * US_PER_SECOND);
}

/* --- a request --- */

static const struct http_route *route_for(const struct http_server *server, const char *path)
{
    struct str asked = str_of(path);

    for (size_t i = 0; i < server->route_count; i++) {
        const struct http_route *route = &server->routes[i];

        if (route->is_prefix ? str_starts(asked, str_of(route->path)) : str_is(asked, route->path))
            return route;
    }
    return NULL;
}

static void handle(struct conn *conn)
{
    struct http_server *server = conn->server;
    const struct http_reader *reader = &conn->reader;
    const struct http_view view = { .method = reader->method,
                                    .path = reader->path,
                                    .query = reader->query,
                                    .body = buf_str(&reader->body),
                                    .conn = conn };
    const struct http_route *route = route_for(server, view.path);
    struct http_responder *responder = http_responder_new(conn);

    conn->state = CONN_ANSWERING; /* the time goes on */
    conn->closes = reader->closes;
    if (!route) {
        http_respond_text(responder, 404, "not found\n");
        return;
    }

    int64_t entered_us = loop_real_enter(server->loop);

    route->handle(route->context, &view, responder);
    loop_real_leave(server->loop, entered_us);
}

/* Bytes that are no request mean nothing, nor do those behind them. */
static void refuse(struct conn *conn)
{
    char text[256];

    (void)snprintf(text, sizeof(text), "%s\n", conn->reader.why);
    conn->closes = true;
    http_respond_text(http_responder_new(conn), conn->reader.status, text);
    conn_limit(conn, CONN_REFUSED, conn->server->request_us);
}

static void read_requests(struct conn *conn)
{
    struct evbuffer *input = bufferevent_get_input(conn->bufferevent);
    size_t length = evbuffer_get_length(input);
    struct str bytes = { length > 0 ? (const char *)evbuffer_pullup(input, -1) : "", length };
    enum http_progress progress;

    if (length == 0)
        return;
    if (conn->state == CONN_IDLE) /* the first byte of a request starts its time */
        conn_limit(conn, CONN_READING, conn->server->request_us);
    progress = http_reader_take(&conn->reader, &bytes);
    evbuffer_drain(input, length - bytes.len);
    if (progress == HTTP_COMPLETE) {
        handle(conn);
    } else if (progress == HTTP_REFUSED) {
        refuse(conn);
    } else if (conn->reader.expects_continue) {
        conn->reader.expects_continue = false;
        bufferevent_write(conn->bufferevent, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    }
}

/* --- what happens on the socket --- */

static void on_readable(struct bufferevent *bufferevent, void *context)
{
    struct conn *conn = context;
    struct evbuffer *input = bufferevent_get_input(bufferevent);

    if (awaits_request(conn))
        read_requests(conn);
    else if (conn->state == CONN_REFUSED)
        evbuffer_drain(input, evbuffer_get_length(input));
    else if (evbuffer_get_length(input) >= MAX_AHEAD) /* a watermark would call back for ever */
        bufferevent_disable(bufferevent, EV_READ);
}

/* Closing at once would reset the connection under the refusal while bytes still come in. */
static void linger(struct conn *conn)
{
    SSL *ssl = bufferevent_openssl_get_ssl(conn->bufferevent);

    if (ssl)
        (void)SSL_shutdown(ssl);
    (void)shutdown(bufferevent_getfd(conn->bufferevent), SHUT_WR);
    conn_limit(conn, CONN_REFUSED, conn->has_ended ? 0 : LINGER_US);
}

static void on_written(struct bufferevent *bufferevent, void *context)
{
    struct conn *conn = context;

    if (has_unsent(conn))
        return;
    if (conn->state == CONN_SENDING)
        conn_answered(conn);
    else if (conn->state == CONN_REFUSED)
        linger(conn);
}

/* A client may end its side when it has asked. Who listens to a stream keeps it open. */
static bool waits_for_answer(const struct conn *conn)
{
    return conn->state == CONN_ANSWERING || conn->state == CONN_SENDING ||
           (conn->state == CONN_REFUSED && has_unsent(conn));
}

static void on_event(struct bufferevent *bufferevent, short what, void *context)
{
    struct conn *conn = context;

    if (what & BEV_EVENT_CONNECTED) /* the handshake is done */
        return;
    conn->has_ended = true;
    if (!(what & BEV_EVENT_EOF) || !waits_for_answer(conn))
        http_conn_close(conn);
}

/* --- a new one --- */

static struct bufferevent *new_tls_bufferevent(struct http_server *server, evutil_socket_t fd)
{
    SSL *ssl = SSL_new(server->tls_context);
    struct bufferevent *made = NULL;

    if (ssl)
        made = bufferevent_openssl_socket_new(loop_real_base(server->loop), fd, ssl,
                                              BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
    if (made)
        bufferevent_openssl_set_allow_dirty_shutdown(made, 1);
    else
        SSL_free(ssl);
    return made;
}

static void on_accepted(struct evconnlistener *listener, evutil_socket_t fd,
                        struct sockaddr *address, int address_length, void *context)
{
    struct http_server *server = context;
    struct http_holder *holder;
    int on = 1;

    if (!http_unix_is_allowed(fd)) {
        evutil_closesocket(fd);
        return;
    }
    holder = http_holder_enter(server, address);
    if (!http_make_room(server, holder)) {
        http_holder_leave(server, holder);
        evutil_closesocket(fd);
        return;
    }

    struct bufferevent *made =
        server->tls_context
            ? new_tls_bufferevent(server, fd)
            : bufferevent_socket_new(loop_real_base(server->loop), fd, BEV_OPT_CLOSE_ON_FREE);

    if (!made)
        abort(); /* out of memory */

    struct conn *conn = mem_alloc(sizeof(*conn));

    *conn = (struct conn){ .server = server, .holder = holder, .bufferevent = made };
    http_reader_init(&conn->reader, server->max_head, server->max_body);
    conn->reader.delete_has_body = server->delete_has_body;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    bufferevent_setcb(made, on_readable, on_written, on_event, conn);
    bufferevent_enable(made, EV_READ | EV_WRITE);
    list_push_back(&server->conns, &conn->link);
    server->conn_count++;
    conn_limit(conn, CONN_IDLE, server->request_us);
}

/* --- what a handler asks of its request --- */

const char *http_view_header(const struct http_view *view, const char *name)
{
    return view->conn ? http_reader_header(&view->conn->reader, name) : NULL;
}

void http_view_headers(const struct http_view *view,
                       void (*take)(void *context, const char *name, const char *value),
                       void *context)
{
    const struct http_reader *reader = &view->conn->reader;

    for (size_t i = 0; i < reader->line_count; i++)
        take(context, reader->lines[i].name, reader->lines[i].value);
}

int http_view_query(const struct http_view *view, const char *name, struct buf *out,
                    struct err *err)
{
    return http_query_get(view->query, name, out, err);
}

/* --- all of them --- */

static struct evconnlistener *listen_on(struct http_server *server, const char *address,
                                        uint16_t port)
{
    struct evutil_addrinfo hints = { .ai_family = AF_UNSPEC,
                                     .ai_socktype = SOCK_STREAM,
                                     .ai_flags = EVUTIL_AI_PASSIVE | EVUTIL_AI_NUMERICSERV };
    struct evutil_addrinfo *found = NULL;
    struct evconnlistener *listener = NULL;
    char port_text[8];

    (void)snprintf(port_text, sizeof(port_text), "%u", (unsigned)port);
    if (evutil_getaddrinfo(address, port_text, &hints, &found) == 0)
        listener = evconnlistener_new_bind(loop_real_base(server->loop), on_accepted, server,
                                           LEV_OPT_REUSEABLE | LEV_OPT_CLOSE_ON_FREE |
                                               LEV_OPT_CLOSE_ON_EXEC,
                                           BACKLOG, found->ai_addr, (int)found->ai_addrlen);
    if (found)
        evutil_freeaddrinfo(found);
    return listener;
}

static int listen_unix(struct http_server *server, const char *path, struct err *err)
{
    int fd, result = http_unix_listen(path, &fd, err);

    if (result < 0)
        return result;
    server->listener =
        evconnlistener_new(loop_real_base(server->loop), on_accepted, server,
                           LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, BACKLOG, fd);
    if (!server->listener)
        abort(); /* out of memory */
    return 0;
}

int http_server_listen(struct http_server *server, const struct http_server_options *options,
                       struct err *err)
{
    const char *address = options->address;
    uint16_t port = options->port;

    if (options->unix_path)
        return listen_unix(server, options->unix_path, err);
    server->listener = listen_on(server, address ? address : "::", port);
    if (!server->listener && !address)
        server->listener = listen_on(server, "0.0.0.0", port);
    if (!server->listener)
        return err_system(err, errno, "listen on %s port %u", address ? address : "any address",
                          (unsigned)port);
    return 0;
}

void http_server_close_idle(struct http_server *server)
{
    list_each (struct conn, conn, &server->conns, link)
        if (conn->state == CONN_IDLE || conn->state == CONN_REFUSED)
            http_conn_close(conn);
}

void http_server_close_all(struct http_server *server)
{
    while (!list_is_empty(&server->conns))
        http_conn_close(list_item(list_first(&server->conns), struct conn, link));
}
