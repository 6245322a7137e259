/* http_server_internal.h - what the files of the HTTP server share: http_server.c (its life),
 * http_conn.c (connections and requests), http_responder.c (answers). */
#ifndef SLINC_IO_HTTP_SERVER_INTERNAL_H
#define SLINC_IO_HTTP_SERVER_INTERNAL_H

#include "base/list.h"
#include "io/http_server.h"

#include <openssl/types.h>

struct bufferevent;
struct evbuffer_cb_entry;
struct evhttp;
struct evhttp_bound_socket;
struct evhttp_connection;

enum conn_state {
    CONN_NEW,       /* accepted in this round of the loop; not claimed from evhttp yet */
    CONN_READING,   /* a request is awaited for the first time, or is coming in */
    CONN_ANSWERING, /* a responder has it, or the answer is going out */
    CONN_IDLE,      /* kept alive between requests */
};

struct conn {
    struct list link; /* server->conns */
    struct http_server *server;
    enum conn_state state;
    struct bufferevent *bufferevent;
    struct evhttp_connection *connection; /* NULL until claimed; until then bufferevent is ours */
    struct evbuffer_cb_entry *input_watch;
    struct loop_timer timer; /* closes the connection */
    int64_t deadline_us;     /* of its first request */
    struct http_responder *responder;
    bool has_begun; /* bytes of the current request have come */
    bool is_excess; /* over the maximum: to be closed */
};

struct http_server {
    struct loop *loop;
    struct evhttp *http;
    struct evhttp_bound_socket *listener; /* NULL when stopped */
    uint16_t port;
    const struct http_route *routes;
    size_t route_count;
    unsigned max_connections, conn_count;
    size_t max_head, max_body;
    int64_t request_us, idle_us;
    struct list conns;

    SSL_CTX *tls_context; /* for new connections; NULL: plain */
    char *cert_file, *key_file;
    bool asks_certificate;
    struct reload_file *cert_watch, *key_watch;
    void (*tls_changed)(void *context, const struct err *why);
    void *tls_changed_context;

    bool stopping;
    struct loop_timer stop_timer;
    void (*stopped)(void *context);
    void *stopped_context;
};

/* http_conn.c */
int http_server_listen(struct http_server *server, const char *address, uint16_t port,
                       struct err *err);
void http_server_answered(struct conn *conn); /* the last byte of the answer is out */
void http_server_streams(struct conn *conn);  /* its answer goes on for a while */
void http_server_close_idle(struct http_server *server);
void http_server_close_all(struct http_server *server);

/* http_peer.c */
void http_server_ask_certificate(SSL_CTX *context);

/* http_server.c */
void http_server_check_stopped(struct http_server *server); /* a connection has gone */

/* http_responder.c */
struct http_responder *http_responder_new(struct conn *conn, struct evhttp_request *request);
void http_responder_lose(struct http_responder *responder); /* its connection is going */

#endif
