/* fake_transport.c - see fake_transport.h.
 *
 * A call has three timers: travel ends in arrival, reply in the answer, guard is the deadline and,
 * for an open stream, the longest silence. Holds: the owner is told once at most; a call lives
 * until the owner was told (or cancelled) and the request has arrived. */
#include "fake_transport.h"

#include "base/list.h"
#include "base/mem.h"
#include "codec/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { MAX_SENT = 1 << 20 };

struct rule {
    struct list link;
    char *method, *path, *body;
    struct fake_answer answer;
    uint32_t left;
};

struct piece {
    struct list link;
    char *text;
    int class; /* without text: 0 = the end, else how it broke */
};

struct http_call {
    struct list link;
    struct fake_transport *fake;
    struct http_handlers handlers;
    struct fake_sent *sent;
    struct loop_timer travel, reply, guard;
    struct fake_answer answer;
    char *body;
    struct list pieces;
    bool told, arrived, open; /* open: a stream whose head was given */
    bool never_arrives;
    bool busy; /* inside one of its own callbacks: not to be freed */
};

struct fake_transport {
    struct http_transport transport;
    struct loop *loop;
    struct list rules, calls;
    struct fake_sent **sent;
    size_t sent_count;
    fake_server server;
    void *server_context;
    int64_t (*travel_us)(void *context, const struct fake_sent *sent);
    void *travel_context;
};

/* --- what was sent --- */

static struct fake_sent *sent_new(const struct http_request *request, int64_t now_us)
{
    struct fake_sent *sent = mem_alloc(sizeof(*sent));

    sent->method = mem_strdup(request->method);
    sent->path = mem_strdup(request->path);
    sent->body = mem_strndup(request->body.len ? request->body.at : "", request->body.len);
    sent->header_count = request->header_count;
    for (unsigned i = 0; i < request->header_count; i++) {
        sent->headers[i].name = mem_strdup(request->headers[i].name);
        sent->headers[i].value = mem_strdup(request->headers[i].value);
    }
    sent->at_us = now_us;
    sent->deadline_us = request->deadline_us;
    sent->idle_us = request->idle_us;
    sent->max_answer = request->max_answer;
    sent->stream = request->stream;
    return sent;
}

static void sent_free(struct fake_sent *sent)
{
    for (unsigned i = 0; i < sent->header_count; i++) {
        mem_free(sent->headers[i].name);
        mem_free(sent->headers[i].value);
    }
    mem_free(sent->method);
    mem_free(sent->path);
    mem_free(sent->body);
    mem_free(sent);
}

size_t fake_sent_count(const struct fake_transport *fake)
{
    return fake->sent_count;
}

const struct fake_sent *fake_sent(const struct fake_transport *fake, size_t index)
{
    if (index >= fake->sent_count) {
        fprintf(stderr, "fake transport: only %zu requests were sent\n", fake->sent_count);
        abort();
    }
    return fake->sent[index];
}

const struct fake_sent *fake_last_sent(const struct fake_transport *fake)
{
    return fake_sent(fake, fake->sent_count - 1);
}

const char *fake_sent_header(const struct fake_sent *sent, const char *name)
{
    for (unsigned i = 0; i < sent->header_count; i++)
        if (strcasecmp(sent->headers[i].name, name) == 0)
            return sent->headers[i].value;
    return NULL;
}

static bool is_of_a_call(const struct fake_transport *fake, const struct fake_sent *sent)
{
    list_each (struct http_call, call, &fake->calls, link) {
        if (call->sent == sent)
            return true;
    }
    return false;
}

void fake_forget_sent(struct fake_transport *fake)
{
    size_t kept = 0;

    for (size_t i = 0; i < fake->sent_count; i++) {
        if (is_of_a_call(fake, fake->sent[i]))
            fake->sent[kept++] = fake->sent[i];
        else
            sent_free(fake->sent[i]);
    }
    fake->sent_count = kept;
}

/* --- calls --- */

static void call_free(struct http_call *call)
{
    struct list *node;

    while ((node = list_pop_front(&call->pieces))) {
        struct piece *piece = list_item(node, struct piece, link);

        mem_free(piece->text);
        mem_free(piece);
    }
    loop_timer_stop(&call->travel);
    loop_timer_stop(&call->reply);
    loop_timer_stop(&call->guard);
    list_remove(&call->link);
    mem_free(call->body);
    mem_free(call);
}

/* A request under way cannot be called back: it stays until it has arrived. */
static void free_when_over(struct http_call *call)
{
    if (call->told && call->arrived && !call->busy)
        call_free(call);
}

static void tell_failed(struct http_call *call, int class)
{
    struct err why = { 0 };

    call->told = true;
    call->busy = true;
    loop_timer_stop(&call->guard);
    loop_timer_stop(&call->reply);
    err_write(&why, (enum err_class) class, "%s %s: %s", call->sent->method, call->sent->path,
              err_class_name(class));
    call->handlers.failed(call->handlers.context, &why);
    call->busy = false;
    free_when_over(call);
}

static void tell_answered(struct http_call *call, struct str body)
{
    struct http_answer answer = { .status = call->answer.status,
                                  .body = body,
                                  .retry_after_us = call->answer.retry_after_us,
                                  .content_type = call->answer.content_type
                                                      ? call->answer.content_type
                                                      : "application/json" };

    call->told = true;
    call->busy = true;
    loop_timer_stop(&call->guard);
    call->handlers.answered(call->handlers.context, &answer);
    call->busy = false;
    free_when_over(call);
}

static void on_silence(void *context)
{
    struct http_call *call = context;

    tell_failed(call, call->never_arrives ? ERR_TIMEOUT : ERR_UNKNOWN);
}

/* --- streams --- */

static void heard(struct http_call *call)
{
    loop_timer_stop(&call->guard);
    if (call->sent->idle_us > 0)
        loop_timer_start(call->fake->loop, &call->guard, call->sent->idle_us, on_silence, call);
}

static void on_piece(void *context);

static void next_piece(struct http_call *call)
{
    if (!list_is_empty(&call->pieces))
        loop_timer_start(call->fake->loop, &call->reply, 0, on_piece, call);
}

static void give_piece(struct http_call *call, struct str text)
{
    heard(call);
    call->busy = true;
    if (call->handlers.on_data)
        call->handlers.on_data(call->handlers.context, text);
    call->busy = false;
    if (call->told)
        free_when_over(call);
    else
        next_piece(call);
}

static void on_piece(void *context)
{
    struct http_call *call = context;
    struct piece *piece = list_item(list_pop_front(&call->pieces), struct piece, link);
    struct piece taken = *piece;

    mem_free(piece);
    if (taken.text && call->sent->max_answer > 0 && strlen(taken.text) > call->sent->max_answer)
        tell_failed(call, ERR_TOO_BIG);
    else if (taken.text)
        give_piece(call, str_of(taken.text));
    else if (taken.class)
        tell_failed(call, taken.class);
    else
        tell_answered(call, STR(""));
    mem_free(taken.text);
}

static void push_piece(struct http_call *call, const char *text, int class)
{
    struct piece *piece = mem_alloc(sizeof(*piece));

    piece->text = text ? mem_strdup(text) : NULL;
    piece->class = class;
    list_push_back(&call->pieces, &piece->link);
    if (!loop_timer_is_armed(&call->reply))
        next_piece(call);
}

static void open_stream(struct http_call *call)
{
    call->open = true;
    heard(call);
    call->busy = true;
    if (call->handlers.on_head)
        call->handlers.on_head(call->handlers.context, call->answer.status);
    call->busy = false;
    if (call->told) {
        free_when_over(call);
        return;
    }
    if (call->body)
        push_piece(call, call->body, 0);
    if (call->answer.ends || call->answer.status != 200)
        push_piece(call, NULL, 0);
}

/* --- a call's way --- */

static void on_reply(void *context)
{
    struct http_call *call = context;
    struct str body = str_of(call->body);
    size_t max = call->sent->max_answer ? call->sent->max_answer : (size_t)64 << 20;

    if (call->answer.class)
        tell_failed(call, call->answer.class);
    else if (call->sent->stream)
        open_stream(call);
    else if (body.len > max)
        tell_failed(call, ERR_TOO_BIG);
    else
        tell_answered(call, body);
}

static bool path_matches(const char *pattern, const char *path)
{
    size_t length = strlen(pattern);

    if (strcmp(pattern, path) == 0)
        return true;
    return !strchr(pattern, '?') && strncmp(pattern, path, length) == 0 && path[length] == '?';
}

static void rule_free(struct rule *rule)
{
    list_remove(&rule->link);
    mem_free(rule->method);
    mem_free(rule->path);
    mem_free(rule->body);
    mem_free(rule);
}

static void take_answer(struct http_call *call, const struct fake_answer *answer)
{
    call->answer = *answer;
    call->body = answer->body ? mem_strdup(answer->body) : NULL;
    call->answer.body = NULL;
}

static void choose_answer(struct http_call *call)
{
    struct fake_transport *fake = call->fake;

    list_each (struct rule, rule, &fake->rules, link) {
        if (strcmp(rule->method, call->sent->method) != 0 ||
            !path_matches(rule->path, call->sent->path))
            continue;
        take_answer(call, &rule->answer);
        if (rule->left != FAKE_ALWAYS && --rule->left == 0)
            rule_free(rule);
        return;
    }
    if (!fake->server) {
        fprintf(stderr, "fake transport: no answer for %s %s\n", call->sent->method,
                call->sent->path);
        abort();
    }
    struct fake_answer answer = fake->server(fake->server_context, call->sent);

    take_answer(call, &answer);
}

static void on_arrival(void *context)
{
    struct http_call *call = context;

    call->arrived = true;
    if (call->never_arrives) {
        if (call->told)
            free_when_over(call);
        else
            tell_failed(call, ERR_UNAVAILABLE);
        return;
    }
    call->busy = true;
    choose_answer(call);
    call->busy = false;
    if (call->told)
        free_when_over(call);
    else if (call->answer.status || call->answer.class)
        loop_timer_start(call->fake->loop, &call->reply, call->answer.delay_us, on_reply, call);
}

static void keep_sent(struct fake_transport *fake, struct fake_sent *sent)
{
    if (fake->sent_count >= MAX_SENT) {
        fprintf(stderr, "fake transport: more than %d requests; use fake_forget_sent\n", MAX_SENT);
        abort();
    }
    fake->sent = mem_resize_array(fake->sent, fake->sent_count + 1, sizeof(struct fake_sent *));
    fake->sent[fake->sent_count++] = sent;
}

static struct http_call *fake_send(struct http_transport *transport,
                                   const struct http_request *request,
                                   const struct http_handlers *handlers)
{
    struct fake_transport *fake = (struct fake_transport *)transport;
    struct http_call *call = mem_alloc(sizeof(*call));
    int64_t now_us = loop_now_us(fake->loop);

    call->fake = fake;
    call->handlers = *handlers;
    call->sent = sent_new(request, now_us);
    list_init(&call->pieces);
    list_push_back(&fake->calls, &call->link);
    keep_sent(fake, call->sent);

    int64_t travel_us = fake->travel_us ? fake->travel_us(fake->travel_context, call->sent) : 0;

    call->never_arrives = travel_us < 0;
    loop_timer_start(fake->loop, &call->travel, travel_us < 0 ? -travel_us : travel_us, on_arrival,
                     call);
    if (request->deadline_us > 0)
        loop_timer_start(fake->loop, &call->guard, request->deadline_us - now_us, on_silence, call);
    return call;
}

static void fake_cancel(struct http_transport *transport, struct http_call *call)
{
    call->told = true;
    call->sent->cancelled = true;
    loop_timer_stop(&call->guard);
    loop_timer_stop(&call->reply);
    free_when_over(call);
}

/* --- the fake itself --- */

static void fake_free(struct http_transport *transport)
{
    struct fake_transport *fake = (struct fake_transport *)transport;
    struct list *node;

    while ((node = list_first(&fake->calls)))
        call_free(list_item(node, struct http_call, link));
    while ((node = list_first(&fake->rules)))
        rule_free(list_item(node, struct rule, link));
    for (size_t i = 0; i < fake->sent_count; i++)
        sent_free(fake->sent[i]);
    mem_free(fake->sent);
    mem_free(fake);
}

struct fake_transport *fake_transport_new(struct loop *loop)
{
    static const struct http_transport_ops ops = { .send = fake_send,
                                                   .cancel = fake_cancel,
                                                   .free = fake_free };
    struct fake_transport *fake = mem_alloc(sizeof(*fake));

    fake->transport.ops = &ops;
    fake->loop = loop;
    list_init(&fake->rules);
    list_init(&fake->calls);
    return fake;
}

void fake_transport_free(struct fake_transport *fake)
{
    if (fake)
        fake_free(&fake->transport);
}

struct http_transport *fake_http(struct fake_transport *fake)
{
    return &fake->transport;
}

void fake_answer(struct fake_transport *fake, const char *method, const char *path,
                 struct fake_answer answer)
{
    struct rule *rule = mem_alloc(sizeof(*rule));

    rule->method = mem_strdup(method);
    rule->path = mem_strdup(path);
    rule->body = answer.body ? mem_strdup(answer.body) : NULL;
    rule->answer = answer;
    rule->answer.body = rule->body;
    rule->left = answer.times ? answer.times : 1;
    list_push_back(&fake->rules, &rule->link);
}

void fake_status(struct fake_transport *fake, const char *method, const char *path, int status,
                 const char *reason, const char *message)
{
    auto_buf struct buf body;

    buf_init(&body, 4096);
    buf_printf(&body, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"%s\",\"reason\":",
               status < 300 ? "Success" : "Failure");
    json_escape(&body, str_of(reason));
    buf_add_text(&body, ",\"message\":");
    json_escape(&body, str_of(message));
    buf_printf(&body, ",\"code\":%d}", status);
    fake_answer(fake, method, path,
                (struct fake_answer){ .status = status, .body = buf_text(&body) });
}

size_t fake_answers_left(const struct fake_transport *fake)
{
    size_t left = 0;

    list_each (struct rule, rule, &fake->rules, link) {
        left += rule->left == FAKE_ALWAYS ? 0 : rule->left;
    }
    return left;
}

void fake_serve(struct fake_transport *fake, fake_server server, void *context)
{
    fake->server = server;
    fake->server_context = context;
}

void fake_travel(struct fake_transport *fake,
                 int64_t (*travel_us)(void *context, const struct fake_sent *sent), void *context)
{
    fake->travel_us = travel_us;
    fake->travel_context = context;
}

static bool stream_push(struct fake_transport *fake, const char *path, const char *text, int class)
{
    struct http_call *youngest = NULL;

    list_each (struct http_call, call, &fake->calls, link) {
        if (call->open && !call->told && path_matches(path, call->sent->path))
            youngest = call;
    }
    if (youngest)
        push_piece(youngest, text, class);
    return youngest != NULL;
}

bool fake_stream_feed(struct fake_transport *fake, const char *path, const char *piece)
{
    return stream_push(fake, path, piece, 0);
}

bool fake_stream_end(struct fake_transport *fake, const char *path)
{
    return stream_push(fake, path, NULL, 0);
}

bool fake_stream_break(struct fake_transport *fake, const char *path, int class)
{
    return stream_push(fake, path, NULL, class);
}

unsigned fake_open_streams(const struct fake_transport *fake)
{
    unsigned open = 0;

    list_each (struct http_call, call, &fake->calls, link) {
        open += call->open && !call->told;
    }
    return open;
}

static void stop_loop(void *context)
{
    loop_stop(context);
}

void fake_run_for(struct fake_transport *fake, int64_t us)
{
    struct loop_timer end = { 0 };

    loop_timer_start(fake->loop, &end, us, stop_loop, fake->loop);
    loop_run(fake->loop);
    loop_timer_stop(&end);
}
