/* http_conn.c - connections and requests of the server, on evhttp.
 *
 * evhttp reads and writes HTTP. What it lacks is here: a record for each connection from the moment
 * it is accepted, with one timer that bounds what the connection does now. evhttp shows us its
 * connection object only with a whole request, which a slow sender never completes; so a connection
 * is claimed in the round after it was accepted, through the bufferevent that we made for it (see
 * claim).
 *
 * Holds: every connection of evhttp has exactly one struct conn, freed when evhttp closes it; a
 * conn always has its timer armed; a responder outlives its connection and its server. */
#include "io/http_server_internal.h"

#include "base/mem.h"
#include "io/http_text.h"
#include "io/loop_real.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/http.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { US_PER_SECOND = 1000000 };

/* --- a connection and its time --- */

static void conn_free(struct conn *conn)
{
    struct http_server *server = conn->server;

    loop_timer_stop(&conn->timer);
    if (conn->responder)
        http_responder_lose(conn->responder);
    if (!conn->connection)
        bufferevent_decref(conn->bufferevent); /* never claimed: our reference is still held */
    list_remove(&conn->link);
    server->conn_count--;
    mem_free(conn);
    http_server_check_stopped(server);
}

static void on_time_up(void *context)
{
    struct conn *conn = context;

    evhttp_connection_free(conn->connection); /* calls on_close */
}

static void conn_limit(struct conn *conn, enum conn_state state, int64_t limit_us)
{
    conn->state = state;
    loop_timer_start(conn->server->loop, &conn->timer, limit_us, on_time_up, conn);
}

static void on_close(struct evhttp_connection *connection, void *context)
{
    struct conn *conn = context;

    evhttp_connection_set_closecb(connection, NULL, NULL);
    evbuffer_remove_cb_entry(bufferevent_get_input(conn->bufferevent), conn->input_watch);
    conn_free(conn);
}

/* The first byte of a further request starts its time. */
static void on_input(struct evbuffer *input, const struct evbuffer_cb_info *info, void *context)
{
    struct conn *conn = context;

    if (info->n_added == 0)
        return;
    conn->has_begun = true;
    if (conn->state == CONN_IDLE)
        conn_limit(conn, CONN_READING, conn->server->request_us);
}

/* Takes hold of evhttp's connection object: it is the argument of the callbacks that evhttp has set
 * on our bufferevent. They are NULL when evhttp has let go of it already. */
static bool claim(struct conn *conn)
{
    void *connection = NULL;

    if (conn->connection)
        return true;
    bufferevent_getcb(conn->bufferevent, NULL, NULL, NULL, &connection);
    if (!connection)
        return false;
    conn->connection = connection;
    evhttp_connection_set_closecb(conn->connection, on_close, conn);
    bufferevent_decref(conn->bufferevent);
    return true;
}

static void on_accepted(void *context)
{
    struct conn *conn = context;
    struct http_server *server = conn->server;

    if (!claim(conn)) {
        conn_free(conn);
        return;
    }
    if (conn->is_excess || server->stopping)
        on_time_up(conn);
    else
        conn_limit(conn, CONN_READING, conn->deadline_us - loop_now_us(server->loop));
}

static struct bufferevent *new_tls_bufferevent(struct http_server *server, struct event_base *base)
{
    SSL *ssl = SSL_new(server->tls_context);
    struct bufferevent *made = NULL;

    if (ssl)
        made = bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING,
                                              BEV_OPT_CLOSE_ON_FREE);
    if (made)
        bufferevent_openssl_set_allow_dirty_shutdown(made, 1);
    else
        SSL_free(ssl);
    return made;
}

/* evhttp has accepted a connection and wants a bufferevent for it. */
static struct bufferevent *on_accept(struct event_base *base, void *context)
{
    struct http_server *server = context;
    bool is_excess = server->conn_count >= server->max_connections;
    struct bufferevent *made = NULL;

    if (server->tls_context && !is_excess) {
        made = new_tls_bufferevent(server, base);
        is_excess = !made;
    }
    if (!made) /* plain; also for one that is closed right away, where no handshake is worth it */
        made = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    if (!made)
        abort(); /* out of memory */

    struct conn *conn = mem_alloc(sizeof(*conn));

    *conn = (struct conn){ .server = server, .bufferevent = made, .is_excess = is_excess };
    conn->deadline_us = loop_now_us(server->loop) + server->request_us;
    conn->input_watch = evbuffer_add_cb(bufferevent_get_input(made), on_input, conn);
    /* While an answer goes out nobody takes what comes in: beyond a whole request the peer waits.
     */
    bufferevent_setwatermark(made, EV_READ, 0, server->max_head + server->max_body);
    bufferevent_incref(made);
    list_push_back(&server->conns, &conn->link);
    server->conn_count++;
    loop_timer_start(server->loop, &conn->timer, 0, on_accepted, conn);
    return made;
}

/* --- a request --- */

static struct conn *conn_of(struct http_server *server, struct evhttp_connection *connection)
{
    struct bufferevent *bufferevent = evhttp_connection_get_bufferevent(connection);

    list_each (struct conn, conn, &server->conns, link)
        if (conn->bufferevent == bufferevent)
            return conn;
    return NULL;
}

static const char *method_of(const struct evhttp_request *request)
{
    switch (evhttp_request_get_command(request)) {
    case EVHTTP_REQ_GET:
        return "GET";
    case EVHTTP_REQ_HEAD:
        return "HEAD";
    case EVHTTP_REQ_POST:
        return "POST";
    case EVHTTP_REQ_PUT:
        return "PUT";
    case EVHTTP_REQ_PATCH:
        return "PATCH";
    case EVHTTP_REQ_DELETE:
        return "DELETE";
    default:
        return "";
    }
}

static struct http_view view_of(struct evhttp_request *request)
{
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
    const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
    struct evbuffer *input = evhttp_request_get_input_buffer(request);
    size_t length = evbuffer_get_length(input);
    const char *body = length > 0 ? (const char *)evbuffer_pullup(input, -1) : "";

    return (struct http_view){
        .method = method_of(request),
        .path = path ? path : "",
        .query = str_of(uri ? evhttp_uri_get_query(uri) : NULL),
        .body = body ? (struct str){ body, length } : STR(""),
        .request = request,
    };
}

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

static void handle(struct http_server *server, struct evhttp_request *request,
                   struct http_responder *responder)
{
    struct http_view view = view_of(request);
    const struct http_route *route = route_for(server, view.path);

    if (!route) {
        http_respond_text(responder, 404, "not found\n");
        return;
    }

    int64_t entered_us = loop_real_enter(server->loop);

    route->handle(route->context, &view, responder);
    loop_real_leave(server->loop, entered_us);
}

static void on_request(struct evhttp_request *request, void *context)
{
    struct http_server *server = context;
    struct conn *conn = conn_of(server, evhttp_request_get_connection(request));

    if (!conn || conn->is_excess || !claim(conn)) {
        evhttp_add_header(evhttp_request_get_output_headers(request), "Connection", "close");
        evhttp_send_reply(request, 503, "too many connections", NULL);
        return;
    }
    if (conn->state == CONN_NEW) /* a whole request in the first round */
        conn_limit(conn, CONN_READING, conn->deadline_us - loop_now_us(server->loop));
    conn->state = CONN_ANSWERING; /* the time goes on */
    handle(server, request, http_responder_new(conn, request));
}

void http_server_answered(struct conn *conn)
{
    struct http_server *server = conn->server;

    conn->has_begun = evbuffer_get_length(bufferevent_get_input(conn->bufferevent)) > 0;
    if (server->stopping)
        conn_limit(conn, CONN_IDLE, 0);
    else if (conn->has_begun)
        conn_limit(conn, CONN_READING, server->request_us);
    else
        conn_limit(conn, CONN_IDLE, server->idle_us);
}

void http_server_streams(struct conn *conn)
{
    conn_limit(conn, CONN_ANSWERING, (int64_t)HTTP_STREAM_MAX_S * US_PER_SECOND);
}

const char *http_view_header(const struct http_view *view, const char *name)
{
    return evhttp_find_header(evhttp_request_get_input_headers(view->request), name);
}

int http_view_query(const struct http_view *view, const char *name, struct buf *out,
                    struct err *err)
{
    return http_query_get(view->query, name, out, err);
}

/* --- setting up --- */

/* Head and body of an answer are two writes. Without this the second waits until the peer has
 * acknowledged the first, which it puts off for 40 ms. Accepted sockets take it from the listener.
 */
static void send_at_once(int listener)
{
    int on = 1;

    (void)setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

int http_server_listen(struct http_server *server, const char *address, uint16_t port,
                       struct err *err)
{
    struct evhttp *http = evhttp_new(loop_real_base(server->loop));

    server->http = http;
    if (!http)
        return err_set(err, ERR_SYSTEM, "libevent cannot make a server");
    evhttp_set_allowed_methods(http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST |
                                         EVHTTP_REQ_PUT | EVHTTP_REQ_PATCH | EVHTTP_REQ_DELETE);
    evhttp_set_max_headers_size(http, (ev_ssize_t)server->max_head);
    evhttp_set_max_body_size(http, (ev_ssize_t)server->max_body);
    evhttp_set_default_content_type(http, NULL);
    evhttp_set_timeout(http, 2 * HTTP_STREAM_MAX_S); /* the time is kept here, see conn_limit */
    evhttp_set_bevcb(http, on_accept, server);
    evhttp_set_gencb(http, on_request, server);
    server->listener = evhttp_bind_socket_with_handle(http, address ? address : "::", port);
    if (!server->listener && !address)
        server->listener = evhttp_bind_socket_with_handle(http, "0.0.0.0", port);
    if (!server->listener)
        return err_system(err, errno, "listen on %s port %u", address ? address : "any address",
                          (unsigned)port);
    send_at_once(evhttp_bound_socket_get_fd(server->listener));
    return 0;
}

void http_server_close_idle(struct http_server *server)
{
    list_each (struct conn, conn, &server->conns, link)
        if (conn->state == CONN_IDLE || (conn->state == CONN_READING && !conn->has_begun))
            on_time_up(conn);
}

void http_server_close_all(struct http_server *server)
{
    if (server->http)
        evhttp_free(server->http); /* closes what was claimed */
    server->http = NULL;
    while (!list_is_empty(&server->conns))
        conn_free(list_item(list_first(&server->conns), struct conn, link));
}
