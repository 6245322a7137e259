/* http_call.h - one call of the HTTP client as libcurl sees it. Private to http_client.c and
 * http_call.c. */
#ifndef SLINC_IO_HTTP_CALL_H
#define SLINC_IO_HTTP_CALL_H

#include "base/buf.h"
#include "base/list.h"
#include "io/http.h"
#include "io/http_target.h"
#include "io/loop.h"
#include "io/tls.h"

#include <curl/curl.h>

enum call_state {
    CALL_WAITING, /* client->waiting: to be given to libcurl from the loop */
    CALL_RUNNING, /* client->running: libcurl has it */
    CALL_DEAD,    /* client->dead, or its last callback runs: nobody hears of it again */
};

struct http_call {
    struct list link;
    enum call_state state;
    void *client;
    const struct http_target *target; /* outlives the call */
    struct http_handlers handlers;
    struct loop_timer timer; /* the deadline; for a stream with its head, the idle time */

    CURL *easy;
    struct curl_slist *headers;
    struct tls_material *tls;
    char *name; /* "GET /path", for errors */
    struct buf body;
    size_t body_read; /* handed to libcurl; never handed out twice */
    int64_t deadline_us, idle_us;
    size_t max_answer;
    bool stream, read_only;

    unsigned attempts; /* times the request began to be written; > 0 means it may have arrived */
    bool head_done, too_big;
    size_t head_bytes, line_bytes;
    struct buf answer;
    int64_t retry_after_us;
    char content_type[128];
    char curl_text[CURL_ERROR_SIZE];
    struct err refusal; /* class 0 when the request is fit to be sent */
};

/* Never NULL: what is wrong with the request is in `refusal`. */
struct http_call *http_call_new(const struct http_target *target,
                                const struct http_request *request,
                                const struct http_handlers *handlers);
void http_call_free(struct http_call *call);

int http_call_status(const struct http_call *call);

/* The class and text for a call that libcurl ended with this code, CURLE_OK excepted. */
void http_call_explain(const struct http_call *call, CURLcode code, struct err *ret_err);

/* The idle time starts anew; also replaces the deadline once a stream's head has come. */
void http_call_alive(struct http_call *call);
void http_call_on_time(void *context); /* in http_client.c: the call's timer */

#endif
