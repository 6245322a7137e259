/* http.h - one HTTP exchange, as data, and the transport that carries it out.
 *
 * A transport is the network (http_client.c, on libcurl) or a simulator behind the same three
 * calls; nothing above knows which. What the answer means (a conflict, a refusal) is for the layers
 * above; here there are only answers, and the ways of not getting one:
 *
 * - ERR_UNAVAILABLE: nothing reached the other side (no connection). Safe to send again.
 * - ERR_TIMEOUT: the deadline passed before anything was sent. Safe to send again.
 * - ERR_UNKNOWN: it was sent, and no whole answer came back. Only reads may be sent again.
 * - ERR_TOO_BIG: the answer broke a bound. For writes, as ERR_UNKNOWN.
 * - ERR_DENIED: TLS: the peer is not who it should be. Nothing was sent.
 * - ERR_INVALID: the request itself is not fit to be sent. Nothing was sent.
 * - ERR_CANCELED: http_cancel was called (no callback follows).
 *
 * Invariant: a body is sent at most once. The transport never repeats a request that may change
 * something; a GET or HEAD may be, on a kept-alive connection that turns out to be dead. */
#ifndef SLINC_IO_HTTP_H
#define SLINC_IO_HTTP_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define HTTP_MAX_HEADERS 16

struct http_header {
    const char *name;
    const char *value; /* no CR, LF or NUL: refused */
    bool secret;       /* never printed */
};

/* Borrowed by http_send only until it returns. */
struct http_request {
    const char *method;
    const char *path; /* with query, beginning with '/' */
    struct http_header headers[HTTP_MAX_HEADERS];
    unsigned header_count;
    struct str body;     /* copied; empty means none */
    int64_t deadline_us; /* on the loop's clock; for a stream: until the answer's head has come */
    int64_t idle_us;     /* streams: longest silence before it counts as broken; 0 = none */
    size_t max_answer;   /* bytes of body; for a stream: of one line. 0 = 64 MiB */
    bool stream;         /* hand the body over as it comes, on a connection of its own (HTTP/1.1) */
};

struct http_answer {
    int status;
    struct str body;        /* whole, or empty for a stream; borrowed until the callback returns */
    int64_t retry_after_us; /* Retry-After in seconds form, else 0 */
    const char *content_type; /* "" when absent */
};

/* Exactly one of answered / failed is called, and nothing after it; on_head and on_data come before
 * them and only for streams: on_head once with the status, then on_data per piece. A stream that
 * ends in order calls answered with an empty body. */
struct http_handlers {
    void (*on_head)(void *context, int status);
    void (*on_data)(void *context, struct str piece);
    void (*answered)(void *context, const struct http_answer *answer);
    void (*failed)(void *context, const struct err *why);
    void *context;
};

struct http_call; /* lives until its last callback or http_cancel */

struct http_transport {
    const struct http_transport_ops *ops;
};

struct http_transport_ops {
    /* Callbacks never run inside send: a refusal comes as `failed` from the loop. */
    struct http_call *(*send)(struct http_transport *transport, const struct http_request *request,
                              const struct http_handlers *handlers);
    void (*cancel)(struct http_transport *transport, struct http_call *call);
    void (*free)(struct http_transport *transport);
};

static inline struct http_call *http_send(struct http_transport *transport,
                                          const struct http_request *request,
                                          const struct http_handlers *handlers)
{
    return transport->ops->send(transport, request, handlers);
}

static inline void http_cancel(struct http_transport *transport, struct http_call *call)
{
    transport->ops->cancel(transport, call);
}

static inline void http_transport_free(struct http_transport *transport)
{
    if (transport)
        transport->ops->free(transport);
}

#endif
