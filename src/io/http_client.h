/* http_client.h - the transport of http.h over the network, on libcurl.
 *
 * Calls share kept-alive connections (HTTP/2 where the server speaks it over TLS); a stream has an
 * HTTP/1.1 connection of its own. Redirects are not followed. A request is given to the network
 * once: only GET and HEAD are repeated, when a kept-alive connection turns out to be dead before a
 * byte of the answer came.
 *
 * The transport is freed before the loop, and never from inside one of its own callbacks; what is
 * under way then ends without a callback. */
#ifndef SLINC_IO_HTTP_CLIENT_H
#define SLINC_IO_HTTP_CLIENT_H

#include "io/http.h"
#include "io/loop.h"
#include "io/tls_source.h"

struct http_client_options {
    const char *base_url;    /* http:// or https://, host, port, perhaps a path in front of all */
    const char *unix_socket; /* connect there instead of to the host; may be NULL */

    struct tls_source tls; /* no CA: the system's. Files are looked at again while we run */
    int64_t tls_period_us; /* between looks; 0 = 60 s */
    /* Files that changed are of no use (why), and the old ones stay in use; NULL: this is over.
     * Told once for each reason. May be NULL. */
    void (*tls_kept)(void *context, const struct err *why);
    void *tls_context;
    const char *server_name; /* the certificate must be for this name instead of the host */
    bool insecure;           /* takes any certificate */

    /* Asked for each request; the text is borrowed until the call returns. Empty: none is sent. */
    struct str (*bearer_token)(void *context);
    void *bearer_context;

    const struct http_header *headers; /* sent with each request */
    unsigned header_count;             /* HTTP_MAX_HEADERS at most */
    const char *user_agent;            /* NULL: "slinc" */

    bool http1_only;             /* else HTTP/2 is offered over TLS */
    bool gzip;                   /* accept it; max_answer counts the unpacked bytes */
    bool proxy_from_environment; /* else none; never for loopback */

    unsigned max_connections;   /* for calls; 0 = 16 */
    unsigned max_streams;       /* 0 = 64; more wait, until their deadline */
    int64_t connect_timeout_us; /* 0 = 10 s */
    size_t max_head;            /* bytes of an answer's header; 0 = 64 KiB */
};

/* Everything in options is copied. The loop must run on real time. */
int http_client_new(struct loop *loop, const struct http_client_options *options,
                    struct http_transport **ret_transport, struct err *err);

/* Reads the files of options.tls again at once, or takes new material when `tls` is given; new
 * connections use it, what is under way goes on. On error all stays as it was. */
int http_client_reload_tls(struct http_transport *transport, const struct tls_source *tls,
                           struct err *err);

#endif
