/* http_server_internal.h - what the files of the HTTP server share: http_server.c (its life),
 * http_conn.c (connections and requests), http_responder.c (answers). */
#ifndef SLINC_IO_HTTP_SERVER_INTERNAL_H
#define SLINC_IO_HTTP_SERVER_INTERNAL_H

#include "base/list.h"
#include "base/map.h"
#include "io/http_reader.h"
#include "io/http_server.h"

#include <openssl/types.h>

struct bufferevent;
struct evconnlistener;
struct sockaddr;

enum conn_state {                 /* in the order in which they are given up */
                  CONN_IDLE,      /* no byte of a request has come: it is new, or kept alive */
                  CONN_REFUSED,   /* a refusal is going out; what comes in is not looked at */
                  CONN_READING,   /* a request is coming in */
                  CONN_SENDING,   /* the rest of an answer is going out */
                  CONN_STREAMING, /* an answer goes on */
                  CONN_ANSWERING, /* a responder has a request: never given up */
};

struct http_holder { /* an address that holds connections */
    unsigned count;
    unsigned char address[16]; /* IPv6, or IPv4 as ::ffff:a.b.c.d */
};

struct conn {
    struct list link; /* server->conns */
    struct http_server *server;
    enum conn_state state;
    int64_t since_us; /* it is in this state */
    struct http_holder *holder;
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
    unsigned max_connections, max_per_peer, conn_count;
    size_t max_head, max_body;
    bool delete_has_body;
    int64_t request_us, idle_us;
    struct list conns;
    struct map holders; /* by address */

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
int http_server_listen(struct http_server *server, const struct http_server_options *options,
                       struct err *err);
void http_conn_stream(struct conn *conn); /* its answer goes on for a while */
void http_conn_end(struct conn *conn);    /* the last piece of its answer was written */
void http_server_close_idle(struct http_server *server);
void http_server_close_all(struct http_server *server);

void http_conn_close(struct conn *conn);

/* http_unix.c */
int http_unix_listen(const char *path, int *ret_fd, struct err *err);
bool http_unix_is_allowed(int fd); /* the peer is of this user or root; true for other sockets */

/* http_evict.c */
struct http_holder *http_holder_enter(struct http_server *server, const struct sockaddr *address);
void http_holder_leave(struct http_server *server, struct http_holder *holder);
bool http_make_room(struct http_server *server, const struct http_holder *holder);

/* http_peer.c */
void http_server_ask_certificate(SSL_CTX *context);

/* http_server.c */
void http_server_check_stopped(struct http_server *server); /* a connection has gone */

/* http_responder.c */
struct http_responder *http_responder_new(struct conn *conn);
void http_responder_lose(struct http_responder *responder); /* its connection is going */

#endif
