/* http_server_internal.h - what the files of the HTTP server share: http_server.c (its life),
 * http_conn.c (connections and requests), http_responder.c (answers). */
#ifndef SLINC_IO_HTTP_SERVER_INTERNAL_H
#define SLINC_IO_HTTP_SERVER_INTERNAL_H

#include "base/list.h"
#include "io/http_reader.h"
#include "io/http_server.h"

#include <openssl/types.h>

struct bufferevent;
struct evconnlistener;

enum conn_state {
    CONN_IDLE,      /* no byte of a request has come: it is new, or kept alive */
    CONN_READING,   /* a request is coming in */
    CONN_ANSWERING, /* a responder has it */
    CONN_STREAMING, /* an answer goes on */
    CONN_SENDING,   /* the rest of an answer is going out */
    CONN_REFUSED,   /* the same of a refusal; what comes in is not looked at */
};

struct conn {
    struct list link; /* server->conns */
    struct http_server *server;
    enum conn_state state;
    struct bufferevent *bufferevent;
    struct http_reader reader;
    struct loop_timer timer; /* closes the connection */
    struct http_responder *responder;
    bool closes;    /* after this answer */
    bool has_ended; /* the peer sends no more */
};

struct http_server {
    struct loop *loop;
    struct evconnlistener *listener; /* NULL when stopped */
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
void http_conn_stream(struct conn *conn); /* its answer goes on for a while */
void http_conn_end(struct conn *conn);    /* the last piece of its answer was written */
void http_server_close_idle(struct http_server *server);
void http_server_close_all(struct http_server *server);

/* http_peer.c */
void http_server_ask_certificate(SSL_CTX *context);

/* http_server.c */
void http_server_check_stopped(struct http_server *server); /* a connection has gone */

/* http_responder.c */
struct http_responder *http_responder_new(struct conn *conn);
void http_responder_lose(struct http_responder *responder); /* its connection is going */

#endif
