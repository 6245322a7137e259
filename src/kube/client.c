/* client.c - one call to the API server, and what its answer means.
 *
 * Everything a caller may conclude is in three tables: what a verb is on the wire, what a status
 * means, what a failure to get an answer means.
 *
 * Holds: done is called once, from the loop, and never after a cancel; a call is off the client's
 * list before done runs, so done may cancel other calls, send new ones or free the client; a 404,
 * and the 503 of a write, is a fact only when the API server itself says so (a Status), not a proxy
 * in front of it. */
#include "kube/client.h"

#include "base/list.h"
#include "base/mem.h"
#include "io/http_text.h"

#include <stdio.h>

enum {
    DEFAULT_TIMEOUT_US = 30000000,
    MAX_PATH = 8192,
    MAX_ANSWER = 64 << 20,
    MAX_STATUS = 1 << 20, /* a refusal longer than this is not read */
    MAX_MESSAGE = 1024,
    MAX_REASON = 64,
    MAX_RETRY_AFTER = 86400, /* seconds */
};

struct verb {
    const char *name, *method;
    const char *content_type; /* of its body */
    bool writes;
    bool one; /* acts on one object: without a name it would mean all of them */
};

static const struct verb verbs[] = {
    [KUBE_GET] = { "get", "GET", NULL, false, true },
    [KUBE_LIST] = { "list", "GET", NULL, false, false },
    [KUBE_CREATE] = { "create", "POST", "application/json", true, false },
    [KUBE_MERGE_PATCH] = { "patch", "PATCH", "application/merge-patch+json", true, true },
    [KUBE_STRATEGIC_PATCH] = { "patch", "PATCH", "application/strategic-merge-patch+json", true,
                               true },
    [KUBE_JSON_PATCH] = { "patch", "PATCH", "application/json-patch+json", true, true },
    [KUBE_UPDATE] = { "update", "PUT", "application/json", true, true },
    [KUBE_DELETE] = { "delete", "DELETE", "application/json", true, true },
};

static const char *const outcome_names[] = {
    [KUBE_DONE] = "done",       [KUBE_CONFLICT] = "conflict", [KUBE_GONE] = "gone",
    [KUBE_DENIED] = "denied",   [KUBE_INVALID] = "invalid",   [KUBE_UNAVAILABLE] = "unavailable",
    [KUBE_UNKNOWN] = "unknown",
};

/* The first row that holds the status counts. */
static const struct {
    int from, to;
    enum kube_outcome read, write;
} status_outcomes[] = {
    { 200, 299, KUBE_DONE, KUBE_DONE },
    { 300, 399, KUBE_INVALID, KUBE_INVALID }, /* redirects are not followed */
    { 401, 401, KUBE_DENIED, KUBE_DENIED },
    { 403, 403, KUBE_DENIED, KUBE_DENIED },
    { 404, 404, KUBE_GONE, KUBE_GONE }, /* 404, 410, 503 only with a reason: kube_outcome_of */
    { 408, 408, KUBE_UNAVAILABLE, KUBE_UNAVAILABLE }, /* the request never came through */
    { 409, 409, KUBE_CONFLICT, KUBE_CONFLICT },
    { 410, 410, KUBE_GONE, KUBE_GONE },
    { 429, 429, KUBE_UNAVAILABLE, KUBE_UNAVAILABLE },
    { 400, 499, KUBE_INVALID, KUBE_INVALID },
    { 503, 503, KUBE_UNAVAILABLE, KUBE_UNAVAILABLE },
    { 0, 999, KUBE_UNAVAILABLE, KUBE_UNKNOWN }, /* 500, 502, 504 and what nobody should send */
};

static const struct {
    enum err_class class;
    enum kube_outcome read, write;
} failure_outcomes[] = {
    { ERR_UNAVAILABLE, KUBE_UNAVAILABLE, KUBE_UNAVAILABLE },
    { ERR_TIMEOUT, KUBE_UNAVAILABLE, KUBE_UNAVAILABLE },
    { ERR_SYSTEM, KUBE_UNAVAILABLE, KUBE_UNAVAILABLE },
    { ERR_DENIED, KUBE_DENIED, KUBE_DENIED },
    { ERR_INVALID, KUBE_INVALID, KUBE_INVALID },
    { ERR_UNKNOWN, KUBE_UNAVAILABLE, KUBE_UNKNOWN },
    { ERR_TOO_BIG, KUBE_UNAVAILABLE, KUBE_UNKNOWN },
};

struct kube_client {
    struct loop *loop;
    struct http_transport *transport;
    struct list calls;
    unsigned in_flight;
    kube_observer observer;
    void *observer_context;
};

struct kube_call {
    struct list link;
    struct kube_client *client;
    struct http_call *http;    /* NULL for a request refused here */
    struct loop_timer refusal; /* armed for that one */
    struct err why;
    struct kube_request request; /* names copied; without query and body */
    char *ns, *name, *subresource;
    kube_done done;
    void *context;
    int64_t sent_us;
    bool finished;
};

const char *kube_verb_name(enum kube_verb verb)
{
    return verbs[verb].name;
}

const char *kube_outcome_name(enum kube_outcome outcome)
{
    return outcome_names[outcome];
}

/* --- what it means --- */

enum kube_outcome kube_outcome_of(enum kube_verb verb, int status, const char *reason)
{
    bool writes = verbs[verb].writes, has_reason = reason && reason[0];

    /* The API server's "not there" comes with its word for it. Without one it comes from something
     * in front, or from a server that does not have all its paths yet: no fact about the object. */
    if ((status == 404 || status == 410) && !has_reason)
        return KUBE_UNAVAILABLE;
    /* A proxy in front also says so when the connection broke after it had sent the request. */
    if (status == 503 && writes && !has_reason)
        return KUBE_UNKNOWN;
    for (size_t i = 0; i < sizeof(status_outcomes) / sizeof(status_outcomes[0]); i++)
        if (status >= status_outcomes[i].from && status <= status_outcomes[i].to)
            return writes ? status_outcomes[i].write : status_outcomes[i].read;
    return writes ? KUBE_UNKNOWN : KUBE_UNAVAILABLE;
}

static enum kube_outcome outcome_of_failure(enum kube_verb verb, int class)
{
    bool writes = verbs[verb].writes;

    for (size_t i = 0; i < sizeof(failure_outcomes) / sizeof(failure_outcomes[0]); i++)
        if (failure_outcomes[i].class == (enum err_class) class)
            return writes ? failure_outcomes[i].write : failure_outcomes[i].read;
    return writes ? KUBE_UNKNOWN : KUBE_UNAVAILABLE;
}

/* --- the end of a call --- */

static void call_free(struct kube_call *call)
{
    loop_timer_stop(&call->refusal);
    mem_free(call->ns);
    mem_free(call->name);
    mem_free(call->subresource);
    mem_free(call);
}

static void take_off(struct kube_call *call)
{
    list_remove(&call->link);
    call->client->in_flight--;
}

static void finish(struct kube_call *call, const struct kube_answer *answer)
{
    struct kube_client *client = call->client;

    call->finished = true;
    take_off(call);
    if (client->observer)
        client->observer(client->observer_context, &call->request, answer->status,
                         loop_now_us(client->loop) - call->sent_us);
    call->done(call->context, answer); /* may free the client */
    call_free(call);
}

static bool is_status(const struct json *root)
{
    return str_is(json_str(json_get(root, "kind")), "Status");
}

/* A JSON patch whose test failed, or that names a place which is not there: somebody wrote first.
 * The server says so by a 422 about no object; one that finds the result wrong names the object and
 * the fields. */
static bool says_patch_does_not_fit(enum kube_verb verb, int status, const struct json *root)
{
    const struct json *details = json_get(root, "details");

    return verb == KUBE_JSON_PATCH && status == 422 &&
           str_is(json_str(json_get(root, "reason")), "Invalid") &&
           json_str(json_get(details, "name")).len == 0 &&
           json_len(json_get(details, "causes")) == 0;
}

static void answer_refused(struct kube_call *call, const struct http_answer *http)
{
    auto_json_doc struct json_doc *doc = NULL;
    char message[MAX_MESSAGE] = "", reason[MAX_REASON] = "", text[160] = "";
    struct kube_answer answer = { .status = http->status,
                                  .message = message,
                                  .reason = reason,
                                  .retry_after_us = http->retry_after_us };

    json_parse(http->body, MAX_STATUS, &doc, NULL); /* what cannot be read is no Status */

    const struct json *root = is_status(json_root(doc)) ? json_root(doc) : NULL;
    int64_t seconds = json_i64_or(json_at(root, "details", "retryAfterSeconds"), 0);

    http_add_words(reason, sizeof(reason), json_str(json_get(root, "reason")));
    http_add_words(message, sizeof(message), json_str(json_get(root, "message")));
    if (answer.retry_after_us == 0 && seconds > 0 && seconds <= MAX_RETRY_AFTER)
        answer.retry_after_us = seconds * 1000000;
    if (message[0] == '\0') {
        http_add_words(text, sizeof(text), root ? STR("") : http->body);
        snprintf(message, sizeof(message), "HTTP %d%s%s", http->status, text[0] ? ": " : "", text);
    }
    answer.outcome = says_patch_does_not_fit(call->request.verb, http->status, root)
                         ? KUBE_CONFLICT
                         : kube_outcome_of(call->request.verb, http->status, reason);
    finish(call, &answer);
}

static void answer_done(struct kube_call *call, const struct http_answer *http)
{
    auto_json_doc struct json_doc *doc = NULL;
    struct err err = { 0 };
    struct kube_answer answer = {
        .outcome = KUBE_DONE, .status = http->status, .reason = "", .message = ""
    };
    int result = json_parse(http->body, MAX_ANSWER, &doc, &err);

    if (result == 0 && !json_is_object(json_root(doc)))
        result = err_set(&err, ERR_INVALID, "not an object");
    if (result < 0) {
        err_wrap(&err, "HTTP %d with a body that cannot be read", http->status);
        answer.outcome = verbs[call->request.verb].writes ? KUBE_UNKNOWN : KUBE_UNAVAILABLE;
        answer.message = err.text;
    } else {
        answer.object = json_root(doc);
    }
    finish(call, &answer);
}

static void on_answered(void *context, const struct http_answer *http)
{
    if (http->status >= 200 && http->status <= 299)
        answer_done(context, http);
    else
        answer_refused(context, http);
}

static void on_failed(void *context, const struct err *why)
{
    struct kube_call *call = context;
    struct kube_answer answer = { .outcome = outcome_of_failure(call->request.verb, why->class),
                                  .reason = "",
                                  .message = why->text,
                                  .is_too_big = why->class == ERR_TOO_BIG };

    finish(call, &answer);
}

static void on_refusal(void *context)
{
    struct kube_call *call = context;

    on_failed(call, &call->why);
}

/* --- sending --- */

/* What must never be sent: a request that means more than the caller can have wanted. */
static int check(const struct kube_request *request, struct err *err)
{
    const struct verb *verb = &verbs[request->verb];
    const struct kube_resource *resource = request->resource;
    bool has_name = request->name && request->name[0];
    bool has_ns = request->ns && request->ns[0];

    if (verb->one && !has_name)
        return err_set(err, ERR_INVALID, "%s %s: no name", verb->name, resource->plural);
    if (resource->namespaced && !has_ns && (verb->one || request->verb == KUBE_CREATE))
        return err_set(err, ERR_INVALID, "%s %s: no namespace", verb->name, resource->plural);
    return 0;
}

static int write_target(const struct kube_request *request, struct buf *out, struct err *err)
{
    if (check(request, err) < 0)
        return -ERR_INVALID;
    kube_path(out, request->resource, request->ns, request->name, request->subresource);
    if (request->query && request->query[0])
        buf_printf(out, "?%s", request->query);
    return buf_check(out, "path", err);
}

static void refuse(struct kube_call *call)
{
    call->why.class = ERR_INVALID; /* nothing was sent, and nothing will be */
    loop_timer_start(call->client->loop, &call->refusal, 0, on_refusal, call);
}

static void send_call(struct kube_call *call, const struct kube_request *request, const char *path)
{
    const struct verb *verb = &verbs[request->verb];
    int64_t timeout_us = request->timeout_us > 0 ? request->timeout_us : DEFAULT_TIMEOUT_US;
    struct http_request http = { .method = verb->method,
                                 .path = path,
                                 .headers = { { "Accept", "application/json", false } },
                                 .header_count = 1,
                                 .body = verb->writes ? request->body : STR(""),
                                 .deadline_us = call->sent_us + timeout_us,
                                 .max_answer = MAX_ANSWER };
    struct http_handlers handlers = { .answered = on_answered,
                                      .failed = on_failed,
                                      .context = call };

    if (http.body.len > 0)
        http.headers[http.header_count++] =
            (struct http_header){ "Content-Type", verb->content_type, false };
    call->http = http_send(call->client->transport, &http, &handlers);
}

struct kube_call *kube_send(struct kube_client *client, const struct kube_request *request,
                            kube_done done, void *context)
{
    struct kube_call *call = mem_alloc(sizeof(*call));
    auto_buf struct buf path = { .max = MAX_PATH };

    call->client = client;
    call->ns = request->ns ? mem_strdup(request->ns) : NULL;
    call->name = request->name ? mem_strdup(request->name) : NULL;
    call->subresource = request->subresource ? mem_strdup(request->subresource) : NULL;
    call->request = (struct kube_request){ .verb = request->verb,
                                           .resource = request->resource,
                                           .ns = call->ns,
                                           .name = call->name,
                                           .subresource = call->subresource,
                                           .body = STR(""),
                                           .timeout_us = request->timeout_us };
    call->done = done;
    call->context = context;
    call->sent_us = loop_now_us(client->loop);
    list_push_back(&client->calls, &call->link);
    client->in_flight++;

    if (write_target(request, &path, &call->why) < 0)
        refuse(call);
    else
        send_call(call, request, buf_text(&path));
    return call;
}

void kube_call_cancel(struct kube_call *call)
{
    if (!call || call->finished)
        return;
    take_off(call);
    if (call->http)
        http_cancel(call->client->transport, call->http);
    call_free(call);
}

/* --- the client --- */

struct kube_client *kube_client_new(struct loop *loop, struct http_transport *transport)
{
    struct kube_client *client = mem_alloc(sizeof(*client));

    client->loop = loop;
    client->transport = transport;
    list_init(&client->calls);
    return client;
}

void kube_client_free(struct kube_client *client)
{
    struct list *node;

    if (!client)
        return;
    while ((node = list_first(&client->calls)))
        kube_call_cancel(list_item(node, struct kube_call, link));
    mem_free(client);
}

struct loop *kube_client_loop(const struct kube_client *client)
{
    return client->loop;
}

struct http_transport *kube_client_transport(const struct kube_client *client)
{
    return client->transport;
}

unsigned kube_client_in_flight(const struct kube_client *client)
{
    return client->in_flight;
}

void kube_client_observe(struct kube_client *client, kube_observer observer, void *context)
{
    client->observer = observer;
    client->observer_context = context;
}
