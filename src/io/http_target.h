/* http_target.h - what all calls of one HTTP client have in common: where they go, and as whom.
 * Private to the client. */
#ifndef SLINC_IO_HTTP_TARGET_H
#define SLINC_IO_HTTP_TARGET_H

#include "io/http_client.h"

struct curl_slist;

struct http_target {
    struct loop *loop;
    char *base_url;                /* no '/' at the end; with the server name, if one is given */
    char *host_header;             /* "Host: ..." when the URL does not say it; else NULL */
    char *unix_socket;             /* NULL: TCP */
    char *user_agent;              /* never NULL */
    struct curl_slist *connect_to; /* where the server name really lives */
    struct curl_slist *headers;    /* of every request */
    struct tls_material *tls;
    char *ca_file, *cert_file, *key_file; /* to read again; NULL when the text came from memory */
    struct str (*bearer_token)(void *context);
    void *bearer_context;
    bool https, insecure, http1_only, gzip, use_proxy;
    long connect_timeout_ms;
    size_t max_head;
};

/* On error, http_target_done is still to be called. */
int http_target_init(struct http_target *target, struct loop *loop,
                     const struct http_client_options *options, struct err *err);
void http_target_done(struct http_target *target);

int http_target_reload_tls(struct http_target *target, const struct tls_source *tls,
                           struct err *err);

/* Appends a header in libcurl's form; refuses what would break the request or is the transport's to
 * say. */
int http_target_add_header(struct curl_slist **list, const char *name, struct str value,
                           struct err *err);
void http_target_free_headers(struct curl_slist *list); /* wipes them first */

#endif
