/* http_server.h - a small HTTP/1.1 server, plain, over TLS or on a unix socket: health, metrics,
 * webhooks, the agent.
 *
 * A handler answers at once or later, exactly once, through its responder. Everything from outside
 * is bounded: connections, bytes of a request, the time that a connection is silent, and the time
 * from the first byte of a request to the last byte of its answer. */
#ifndef SLINC_IO_HTTP_SERVER_H
#define SLINC_IO_HTTP_SERVER_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "io/loop.h"

#include <stdbool.h>
#include <stdint.h>

struct http_server;
struct http_responder;
struct conn;

/* Borrowed until the handler returns: a handler that answers later copies what it needs. */
struct http_view {
    const char *method;
    const char *path; /* as sent, escapes and all, without the query */
    struct str query; /* without the '?' */
    struct str body;
    struct conn *conn; /* private; NULL: a copy, which has no headers */
};

const char *http_view_header(const struct http_view *view, const char *name); /* NULL: absent */
/* As http_query_get. */
int http_view_query(const struct http_view *view, const char *name, struct buf *out,
                    struct err *err);
/* Every header line, in order: a name may come several times. */
void http_view_headers(const struct http_view *view,
                       void (*take)(void *context, const char *name, const char *value),
                       void *context);
/* Who the peer is by its certificate: 0 and the common name when it chains to one of these CAs
 * (PEM) and is made for clients; -ERR_NOT_FOUND without one; else -ERR_DENIED, which says why. */
int http_view_peer(const struct http_view *view, struct str ca, char *ret_name, size_t size,
                   struct err *err);

struct http_route {
    const char *path;
    bool is_prefix; /* matches everything that begins with path; else exactly path */
    void (*handle)(void *context, const struct http_view *view, struct http_responder *responder);
    void *context;
};

struct http_server_options {
    /* A unix socket with mode 0600 in place of an address and port: only processes of this user and
     * of root are served. A socket file that is there already is replaced. NULL: none. */
    const char *unix_path;
    const char *address; /* NULL: all, IPv4 and IPv6 */
    uint16_t port;       /* 0: any; see http_server_port */

    const struct http_route *routes; /* the first match wins; borrowed while the server lives */
    size_t route_count;

    const char *cert_file, *key_file; /* PEM, both or neither; looked at again while serving */
    int64_t tls_period_us;            /* between looks; 0 = 10 s */
    /* The files changed: why is NULL when new connections now use them, else what is wrong with
     * them (the old stay in use). May be NULL. */
    void (*tls_changed)(void *context, const struct err *why);
    void *tls_context;

    bool delete_has_body; /* DELETE may have a body, as clients of slurmrestd send it */

    /* Clients may show a certificate. The handshake takes any and none: http_view_peer judges. */
    bool asks_certificate;

    unsigned max_connections; /* 0 = 256; for one more, another is given up (http_evict.c) */
    unsigned max_per_peer;    /* from one address; 0 = half of them, on a unix socket all */
    size_t max_head;          /* 0 = 32 KiB */
    size_t max_body;          /* 0 = 4 MiB; answered with 413 */
    int64_t request_us;       /* 0 = 30 s */
    int64_t idle_us;          /* of a kept-alive connection between requests; 0 = 60 s */
};

int http_server_new(struct loop *loop, const struct http_server_options *options,
                    struct http_server **ret_server, struct err *err);

uint16_t http_server_port(const struct http_server *server);
unsigned http_server_connections(const struct http_server *server);

/* Takes the certificate files now instead of at the next look. */
int http_server_reload_tls(struct http_server *server, struct err *err);

/* Accepts no more, closes idle connections, lets requests under way finish for at most `grace_us`,
 * then calls `stopped` once, from the loop. */
void http_server_stop(struct http_server *server, int64_t grace_us, void (*stopped)(void *context),
                      void *context);

/* Closes everything at once; responders still held may be answered, to no effect. Not from inside a
 * handler. Before the loop is freed. */
void http_server_free(struct http_server *server);

/* --- answering: any one of these ends the responder --- */

void http_respond(struct http_responder *responder, int status, const char *content_type,
                  struct str body);
void http_respond_text(struct http_responder *responder, int status, const char *text);
void http_respond_json(struct http_responder *responder, int status, struct str json);

/* Before answering: a header more; one that is not fit to be sent is left out. */
void http_respond_header(struct http_responder *responder, const char *name, const char *value);

/* --- an answer that goes on, as server-sent events do --- */

enum { HTTP_STREAM_MAX_S = 3600 }; /* then the server closes it, and the peer asks again */

/* Begins an answer of status 200. The responder stays until http_stream_end, which must follow,
 * also when the peer is gone. */
void http_stream_begin(struct http_responder *responder, const char *content_type);
/* Sends a piece. False: the peer is gone, or more than max_behind bytes wait for it already, and
 * nothing is sent. */
bool http_stream_send(struct http_responder *responder, struct str piece, size_t max_behind);
void http_stream_end(struct http_responder *responder);

/* The connection is gone: whatever is answered goes nowhere. `gone` is told once; the responder is
 * still to be ended, there or later. A peer that hangs up while it waits is noticed when the answer
 * is written, or at the request's deadline. */
void http_responder_on_gone(struct http_responder *responder, void (*gone)(void *context),
                            void *context);

#endif
