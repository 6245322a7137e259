/* http_client.c - the calls of one transport: waiting, running, ended, cancelled.
 *
 * Two libcurl multi handles: one for calls, whose connections are kept and shared, one for streams,
 * whose connections are their own. Callers may send and cancel from inside any callback, libcurl's
 * included; so sending only queues, and cancelling while libcurl is on the stack only marks.
 *
 * Holds: a call is in exactly one of the three lists, or its last callback is running. */
#include "io/http_client.h"

#include "base/mem.h"
#include "io/curl_loop.h"
#include "io/http_call.h"
#include "io/http_target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_CALLS = 1 << 16,
    DEFAULT_CONNECTIONS = 16,
    DEFAULT_STREAMS = 64,
    DEFAULT_TLS_US = 60 * 1000000,
    US_PER_MS = 1000,
};

struct http_client {
    struct http_transport transport; /* first: a transport is one of these */
    struct loop *loop;
    struct http_target target;
    struct curl_loop calls, streams;
    struct list waiting, running, dead;
    struct loop_timer start_timer, tls_timer;
    int64_t tls_period_us;
    void (*tls_kept)(void *context, const struct err *why);
    void *tls_context;
    struct err tls_why; /* what was told last; class 0: the files are of use */
    unsigned waiting_count;
    unsigned count;   /* calls alive */
    unsigned calling; /* callbacks of ours on the stack */
};

static struct http_client *client_of(struct http_transport *transport)
{
    return (struct http_client *)(void *)transport;
}

static struct curl_loop *driver_of(struct http_client *client, const struct http_call *call)
{
    return call->stream ? &client->streams : &client->calls;
}

static bool is_inside_curl(const struct http_client *client)
{
    return client->calls.inside || client->streams.inside;
}

/* --- the end of a call --- */

/* Out of libcurl and out of the lists; the memory is left for the last callback. */
static void detach(struct http_client *client, struct http_call *call)
{
    loop_timer_stop(&call->timer);
    list_remove(&call->link);
    if (call->state == CALL_WAITING)
        client->waiting_count--;
    else
        curl_loop_remove(driver_of(client, call), call->easy);
    call->state = CALL_DEAD;
    client->count--;
}

static void fail(struct http_client *client, struct http_call *call, const struct err *why)
{
    detach(client, call);
    client->calling++;
    call->handlers.failed(call->handlers.context, why);
    client->calling--;
    http_call_free(call);
}

static void answer(struct http_client *client, struct http_call *call)
{
    struct http_answer answer = {
        .status = http_call_status(call),
        .body = buf_str(&call->answer),
        .retry_after_us = call->retry_after_us,
        .content_type = call->content_type,
    };

    detach(client, call);
    client->calling++;
    call->handlers.answered(call->handlers.context, &answer);
    client->calling--;
    http_call_free(call);
}

static void bury_dead(struct http_client *client)
{
    struct list *node;

    while ((node = list_pop_front(&client->dead))) {
        struct http_call *call = list_item(node, struct http_call, link);

        curl_loop_remove(driver_of(client, call), call->easy);
        http_call_free(call);
    }
}

static void collect(struct http_client *client, struct curl_loop *driver)
{
    struct err why;
    CURL *easy;
    CURLcode code;

    bury_dead(client);
    while (curl_loop_next_ended(driver, &easy, &code)) {
        struct http_call *call = NULL;

        curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&call);
        if (code == CURLE_OK && call->head_done) {
            answer(client, call);
            continue;
        }
        if (code == CURLE_OK) /* libcurl takes an end in the middle of the head for a success */
            code = CURLE_PARTIAL_FILE;
        http_call_explain(call, code, &why);
        fail(client, call, &why);
    }
}

static void on_calls_progressed(void *context)
{
    struct http_client *client = context;

    collect(client, &client->calls);
}

static void on_streams_progressed(void *context)
{
    struct http_client *client = context;

    collect(client, &client->streams);
}

void http_call_on_time(void *context)
{
    struct http_call *call = context;
    struct err why;

    if (call->head_done && call->stream)
        err_set(&why, ERR_UNKNOWN, "%s: nothing was heard for %lld ms", call->name,
                (long long)(call->idle_us / US_PER_MS));
    else if (call->attempts > 0)
        err_set(&why, ERR_UNKNOWN, "%s: no answer before the deadline", call->name);
    else
        err_set(&why, ERR_TIMEOUT, "%s: no connection before the deadline", call->name);
    /* The next call must not go to a peer that may be gone. libcurl closes a connection of HTTP/1
     * by itself, one of HTTP/2 only when it is told so. */
    if (call->attempts > 0)
        curl_easy_setopt(call->easy, CURLOPT_FORBID_REUSE, 1L);
    fail(call->client, call, &why);
}

/* --- the start of a call --- */

static void start(struct http_client *client, struct http_call *call)
{
    struct err why = { .class = 0 };

    if (call->refusal.class) {
        why = call->refusal;
        fail(client, call, &why);
        return;
    }
    if (loop_now_us(client->loop) >= call->deadline_us) {
        http_call_on_time(call);
        return;
    }
    if (curl_loop_add(driver_of(client, call), call->easy, &why) < 0) {
        fail(client, call, &why);
        return;
    }
    call->state = CALL_RUNNING;
    client->waiting_count--;
    list_remove(&call->link);
    list_push_back(&client->running, &call->link);
}

/* As many as wait now: what callbacks send meanwhile has its turn in the next round. */
static void on_start(void *context)
{
    struct http_client *client = context;
    unsigned waiting = client->waiting_count;

    for (; waiting > 0 && !list_is_empty(&client->waiting); waiting--)
        start(client, list_item(list_first(&client->waiting), struct http_call, link));
    if (!list_is_empty(&client->waiting))
        loop_timer_start(client->loop, &client->start_timer, 0, on_start, client);
}

static struct http_call *client_send(struct http_transport *transport,
                                     const struct http_request *request,
                                     const struct http_handlers *handlers)
{
    struct http_client *client = client_of(transport);
    struct http_call *call = http_call_new(&client->target, request, handlers);

    call->client = client;
    if (client->count >= MAX_CALLS && !call->refusal.class)
        err_set(&call->refusal, ERR_UNAVAILABLE, "more than %d calls at once", MAX_CALLS);
    client->count++;
    client->waiting_count++;
    list_push_back(&client->waiting, &call->link);
    if (!call->refusal.class)
        loop_timer_start(client->loop, &call->timer, call->deadline_us - loop_now_us(client->loop),
                         http_call_on_time, call);
    if (!loop_timer_is_armed(&client->start_timer))
        loop_timer_start(client->loop, &client->start_timer, 0, on_start, client);
    return call;
}

static void client_cancel(struct http_transport *transport, struct http_call *call)
{
    struct http_client *client = client_of(transport);

    if (!call || call->state == CALL_DEAD) /* its last callback is running */
        return;
    if (call->state == CALL_RUNNING && is_inside_curl(client)) {
        call->state = CALL_DEAD;
        loop_timer_stop(&call->timer);
        list_remove(&call->link);
        list_push_back(&client->dead, &call->link);
        client->count--;
        return;
    }
    detach(client, call);
    http_call_free(call);
}

/* --- making and ending a client --- */

static void drop_calls(struct http_client *client, struct list *calls)
{
    while (!list_is_empty(calls))
        client_cancel(&client->transport, list_item(list_first(calls), struct http_call, link));
}

static void client_free(struct http_transport *transport)
{
    struct http_client *client = client_of(transport);

    if (client->calling > 0 || is_inside_curl(client)) {
        fprintf(stderr, "http client: freed from inside its own callback\n");
        abort();
    }
    drop_calls(client, &client->waiting);
    drop_calls(client, &client->running);
    loop_timer_stop(&client->start_timer);
    loop_timer_stop(&client->tls_timer);
    curl_loop_done(&client->calls);
    curl_loop_done(&client->streams);
    http_target_done(&client->target);
    mem_free(client);
    curl_global_cleanup();
}

static const struct http_transport_ops client_ops = {
    .send = client_send,
    .cancel = client_cancel,
    .free = client_free,
};

/* Mounted certificates are renewed in place. Files that cannot be read, or do not fit together in
 * the middle of a swap, leave what is in use; the next look finds them whole. */
static void on_tls_timer(void *context)
{
    struct http_client *client = context;
    struct err why = { .class = 0 };

    (void)http_target_reload_tls(&client->target, NULL, &why);
    if (client->tls_kept && strcmp(why.text, client->tls_why.text) != 0)
        client->tls_kept(client->tls_context, why.class ? &why : NULL);
    client->tls_why = why;
    loop_timer_start(client->loop, &client->tls_timer, client->tls_period_us, on_tls_timer, client);
}

static void follow_tls_files(struct http_client *client, const struct http_client_options *options)
{
    if (!options->tls.ca_file && !options->tls.cert_file && !options->tls.key_file)
        return;
    client->tls_kept = options->tls_kept;
    client->tls_context = options->tls_context;
    client->tls_period_us = options->tls_period_us > 0 ? options->tls_period_us : DEFAULT_TLS_US;
    loop_timer_start(client->loop, &client->tls_timer, client->tls_period_us, on_tls_timer, client);
}

static long or_default(unsigned value, long fallback)
{
    return value > 0 ? (long)value : fallback;
}

int http_client_new(struct loop *loop, const struct http_client_options *options,
                    struct http_transport **ret_transport, struct err *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return err_set(err, ERR_SYSTEM, "libcurl cannot start");

    struct http_client *client = mem_alloc(sizeof(*client));

    client->transport.ops = &client_ops;
    client->loop = loop;
    list_init(&client->waiting);
    list_init(&client->running);
    list_init(&client->dead);

    int result = http_target_init(&client->target, loop, options, err);

    if (result == 0)
        result = curl_loop_init(&client->calls, loop,
                                or_default(options->max_connections, DEFAULT_CONNECTIONS),
                                on_calls_progressed, client, err);
    if (result == 0)
        result = curl_loop_init(&client->streams, loop,
                                or_default(options->max_streams, DEFAULT_STREAMS),
                                on_streams_progressed, client, err);
    if (result < 0) {
        client_free(&client->transport);
        return result;
    }
    follow_tls_files(client, options);
    *ret_transport = &client->transport;
    return 0;
}

int http_client_reload_tls(struct http_transport *transport, const struct tls_source *tls,
                           struct err *err)
{
    return http_target_reload_tls(&client_of(transport)->target, tls, err);
}
