/* client.c - the life of a call: waits for the version and its turn, is sent, perhaps sent again.
 *
 * A call is always in one state, and advance() moves it towards CALL_SENT.
 *
 * Holds: done runs once, last, and never from inside slurm_send or a walk over the calls; a call is
 * off the list before done runs, so done may cancel other calls, send new ones, free the client. */
#include "slurm/client.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/rand.h"
#include "io/http_text.h"
#include "slurm/client_private.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    READ_TIMEOUT_US = 60000000,
    WRITE_TIMEOUT_US = 12000000,
    TRY_TIMEOUT_US = 15000000,
    FIRST_PAUSE_US = 250000,
    LONGEST_PAUSE_US = 8000000,
};

static void advance(struct slurm_call *call);
static void wake_those_in_turn(struct slurm_client *client);

static bool is_bulk(const struct slurm_call *call)
{
    return call->verb == SLURM_GET && slurm_endpoint(call->endpoint)->bulk;
}

static int64_t now_us(const struct slurm_call *call)
{
    return loop_now_us(call->client->loop);
}

/* Where the last try went. */
static struct http_transport *transport_of(const struct slurm_call *call)
{
    return call->is_by_agent ? call->client->agent.transport : call->client->transport;
}

/* ---- the end ---- */

static void call_free(struct slurm_call *call)
{
    loop_timer_stop(&call->timer);
    slurm_intake_stop(call);
    mem_free(call->name);
    mem_free(call->query);
    mem_free(call->body);
    mem_free(call->user);
    mem_free(call);
}

/* Gives up the turn, if it had it. */
static void leave_wire(struct slurm_call *call)
{
    call->http = NULL;
    if (call->client->bulk != call)
        return;
    call->client->bulk = NULL;
    wake_those_in_turn(call->client);
}

static void take_off(struct slurm_call *call)
{
    leave_wire(call);
    call->state = CALL_ENDED;
    loop_timer_stop(&call->timer);
    list_remove(&call->link);
    call->client->in_flight--;
}

static void finish(struct slurm_call *call, const struct slurm_error *error, struct json_doc **doc)
{
    struct slurm_client *client = call->client;
    struct slurm_answer answer = { .error = *error,
                                   .body = doc ? json_root(*doc) : NULL,
                                   .owner = doc,
                                   .version = client->version,
                                   .tries = call->tries,
                                   .sent_us = call->sent_us,
                                   .took_us = now_us(call) - call->started_us,
                                   .bytes = call->bytes,
                                   .retry_after_us = call->retry_after_us,
                                   .by_agent = call->is_by_agent };

    take_off(call);
    if (client->observer)
        client->observer(client->observer_context, call->verb, call->endpoint, &answer);
    call->done(call->context, &answer); /* may free the client */
    call_free(call);
}

static void on_timer(void *context)
{
    struct slurm_call *call = context;
    bool for_version = call->state == CALL_WAITS_FOR_VERSION;
    struct err late = { 0 };

    switch (call->state) {
    case CALL_PAUSES:
        advance(call);
        return;
    case CALL_WAITS_FOR_VERSION:
    case CALL_WAITS_FOR_TURN:
        err_set(&late, ERR_TIMEOUT, "the deadline passed while waiting for %s",
                for_version ? "the server's version" : "another list");
        slurm_classify_failure(call->verb, call->endpoint, &late, &call->error);
        finish(call, &call->error, NULL);
        return;
    case CALL_ENDS_LATER:
        finish(call, &call->error, NULL);
        return;
    case CALL_SENT: /* a long list that goes on and on */
        http_cancel(transport_of(call), call->http);
        err_set(&late, ERR_UNKNOWN, "the deadline passed before the whole list had come");
        slurm_classify_failure(call->verb, call->endpoint, &late, &call->error);
        finish(call, &call->error, NULL);
        return;
    case CALL_ENDED:
        return;
    }
}

static void enter(struct slurm_call *call, enum call_state state, int64_t delay_us)
{
    call->state = state;
    loop_timer_start(call->client->loop, &call->timer, delay_us > 0 ? delay_us : 0, on_timer, call);
}

static void end_later(struct slurm_call *call, const struct slurm_error *error)
{
    call->error = *error;
    enter(call, CALL_ENDS_LATER, 0);
}

static void refuse(struct slurm_call *call, const struct err *why)
{
    struct slurm_error error;

    slurm_classify_failure(call->verb, call->endpoint, why, &error);
    error.unsent = error.nothing_done = true;
    end_later(call, &error);
}

/* ---- once more? ---- */

/* How long to pause before the next try; -1 when there is none. */
static int64_t pause_for(struct slurm_call *call, const struct slurm_error *error,
                         int64_t retry_after_us)
{
    int64_t pause_us = FIRST_PAUSE_US;

    if (slurm_is_write(call->verb, call->endpoint) || call->once ||
        (error->class != SLURM_UNAVAILABLE && error->class != SLURM_TIMEOUT))
        return -1;
    for (unsigned i = 1; i < call->tries && pause_us < LONGEST_PAUSE_US; i++)
        pause_us *= 2;
    pause_us = rand_jitter(&call->client->rand, pause_us, 50);
    if (pause_us < retry_after_us)
        pause_us = retry_after_us;
    return now_us(call) + pause_us < call->deadline_us ? pause_us : -1;
}

/* From the loop only. */
static void settle(struct slurm_call *call, const struct slurm_error *error, int64_t retry_after_us,
                   struct json_doc **doc)
{
    int64_t pause_us = pause_for(call, error, retry_after_us);

    if (pause_us < 0) {
        finish(call, error, doc);
        return;
    }
    leave_wire(call);
    enter(call, CALL_PAUSES, pause_us);
}

static bool may_send_again(const struct slurm_call *call)
{
    const struct slurm_client_options *options = &call->client->options;

    return !slurm_is_write(call->verb, call->endpoint) || !options->may_write ||
           options->may_write(options->may_write_context);
}

/* Another call may have had it renewed while this one was under way with the old one. */
static bool gets_new_token(struct slurm_call *call, const struct slurm_error *error)
{
    struct slurm_token *token = call->client->token;

    if (error->class != SLURM_AUTH || call->renewed)
        return false;
    call->renewed = true;
    (void)slurm_token_renew(token);
    return (call->token_turn != call->client->token_turn ||
            slurm_token_mark(token) != call->token_mark) &&
           may_send_again(call);
}

/* The agent did nothing: slurmrestd is asked instead, if it has such a path. If not, an agent that
 * had no time is asked again. */
static void pass_on(struct slurm_call *call, int status, const char *why, int64_t retry_after_us)
{
    struct slurm_error error = { .class = SLURM_UNAVAILABLE, .nothing_done = true, .unsent = true };
    int64_t pause_us = rand_jitter(&call->client->rand, FIRST_PAUSE_US, 50);

    if (pause_us < retry_after_us)
        pause_us = retry_after_us;
    call->client->agent.passed_on++;
    leave_wire(call);
    if (slurm_endpoint(call->endpoint)->agent_only && status == 503 &&
        now_us(call) + pause_us < call->deadline_us) {
        enter(call, CALL_PAUSES, pause_us);
        return;
    }
    call->is_passed_on = true;
    if (!slurm_endpoint(call->endpoint)->agent_only && may_send_again(call)) {
        advance(call);
        return;
    }
    snprintf(error.text, sizeof(error.text), "the agent did not do it: %s", why);
    finish(call, &error, NULL);
}

/* 501 and 503: it cannot do this, or has no time. Its token is not ours to renew. */
static bool is_left_to_slurmrestd(const struct slurm_call *call, const struct slurm_error *error)
{
    return call->is_by_agent &&
           (error->http == 501 || error->http == 503 || error->class == SLURM_AUTH);
}

/* ---- answers ---- */

static void on_answered(void *context, const struct http_answer *http)
{
    struct slurm_call *call = context;
    struct slurm_client *client = call->client;
    struct http_answer answer = *http;
    bool in_pieces = slurm_intake_rest(call, &answer.body);
    auto_json_doc struct json_doc *doc = NULL;
    struct slurm_error error;

    call->http = NULL;
    if (!in_pieces)
        call->bytes = http->body.len;
    slurm_wire_read(call->verb, call->endpoint, &answer, &doc, &error);
    if (is_left_to_slurmrestd(call, &error)) {
        pass_on(call, http->status, error.text, http->retry_after_us);
        return;
    }
    client->agent.answered += call->is_by_agent;
    if (gets_new_token(call, &error)) {
        leave_wire(call);
        advance(call);
        return;
    }
    if (error.class == SLURM_NOT_SUPPORTED && error.http == 404 && client->options.version == 0 &&
        !slurm_endpoint(call->endpoint)->db)
        client->version = 0; /* the server may have become another one: ask again next time */
    if (call->item && !in_pieces && error.class == SLURM_DONE)
        slurm_intake_tree(call, json_root(doc));
    call->retry_after_us = http->status == 429 ? http->retry_after_us : 0;
    settle(call, &error, http->retry_after_us, &doc);
}

static void on_failed(void *context, const struct err *why)
{
    struct slurm_call *call = context;
    struct slurm_error error;

    call->http = NULL;
    slurm_classify_failure(call->verb, call->endpoint, why, &error);
    if (call->is_by_agent)
        slurm_agent_lost(call->client);
    if (call->is_by_agent && error.unsent && now_us(call) < call->deadline_us)
        pass_on(call, 0, error.text, 0);
    else
        settle(call, &error, 0, NULL);
}

/* ---- sending ---- */

static int64_t try_deadline(const struct slurm_call *call)
{
    int64_t longest = call->client->options.try_timeout_us;
    bool whole = is_bulk(call) || slurm_is_write(call->verb, call->endpoint);

    if (whole || call->deadline_us - call->sent_us < longest)
        return call->deadline_us;
    return call->sent_us + longest;
}

static void send_try(struct slurm_call *call)
{
    struct slurm_client *client = call->client;
    struct http_request http = { .method = slurm_verb_name(call->verb),
                                 .body = { call->body, call->body_len },
                                 .max_answer = slurm_endpoint(call->endpoint)->max_answer };
    struct http_handlers handlers = { .answered = on_answered,
                                      .failed = on_failed,
                                      .context = call };
    auto_buf struct buf path;
    struct err why = { 0 };

    call->is_by_agent = slurm_agent_takes(call);
    buf_init(&path, SLURM_MAX_PATH);
    slurm_wire_path(&path, client->version, call->endpoint, call->name, call->query);
    if (buf_check(&path, "path", &why) < 0 ||
        slurm_wire_headers(client, call->user ? call->user : client->user, call->token_s,
                           call->is_by_agent, &http, &why) < 0) {
        refuse(call, &why);
        return;
    }
    call->token_mark = slurm_token_mark(client->token);
    call->token_turn = client->token_turn;
    http.path = buf_text(&path);
    call->tries++;
    call->sent_us = now_us(call);
    http.deadline_us = try_deadline(call);
    call->state = CALL_SENT;
    call->bytes = 0;
    call->retry_after_us = 0;
    loop_timer_stop(&call->timer);
    if (is_bulk(call))
        client->bulk = call;
    if (is_bulk(call) && call->item) {
        slurm_intake_start(call, &http, &handlers);
        enter(call, CALL_SENT, call->deadline_us - call->sent_us); /* io sees to the head's alone */
    }
    call->http = http_send(transport_of(call), &http, &handlers);
}

static void advance(struct slurm_call *call)
{
    const struct slurm_endpoint_row *row = slurm_endpoint(call->endpoint);
    struct slurm_client *client = call->client;
    int64_t left_us = call->deadline_us - now_us(call);

    if (client->version == 0) {
        enter(call, CALL_WAITS_FOR_VERSION, left_us);
        slurm_version_ask(client);
    } else if (client->version < row->since) {
        struct slurm_error error = { .class = SLURM_NOT_SUPPORTED,
                                     .nothing_done = true,
                                     .unsent = true };

        snprintf(error.text, sizeof(error.text), "%s needs v0.0.%u, the server has v0.0.%u",
                 row->name, row->since, client->version);
        end_later(call, &error);
    } else if (row->agent_only && !slurm_agent_takes(call)) {
        struct slurm_error error = { .class = SLURM_UNAVAILABLE,
                                     .nothing_done = true,
                                     .unsent = true };

        snprintf(error.text, sizeof(error.text), "%s needs the agent%s%s", row->name,
                 client->agent.transport ? ": " : "", client->agent.why);
        end_later(call, &error);
    } else if (is_bulk(call) && client->bulk) {
        enter(call, CALL_WAITS_FOR_TURN, left_us);
    } else {
        send_try(call);
    }
}

/* All of them: the first may be cancelled or refused before it sends. The others wait again. */
static void wake_those_in_turn(struct slurm_client *client)
{
    list_each (struct slurm_call, call, &client->calls, link)
        if (call->state == CALL_WAITS_FOR_TURN)
            enter(call, CALL_PAUSES, 0);
}

/* Those who waited go on, or fail as the ping did. Nothing is called back from here. */
void slurm_version_settled(struct slurm_client *client, const struct slurm_error *error)
{
    client->asked = 0;
    list_each (struct slurm_call, call, &client->calls, link) {
        int64_t pause_us = 0;

        if (call->state != CALL_WAITS_FOR_VERSION)
            continue;
        if (error) {
            call->tries++;
            pause_us = pause_for(call, error, 0);
        }
        if (pause_us >= 0)
            enter(call, CALL_PAUSES, pause_us);
        else
            end_later(call, error);
    }
}

/* ---- calls ---- */

static struct slurm_call *call_new(struct slurm_client *client, enum slurm_verb verb,
                                   enum slurm_endpoint endpoint, slurm_done done, void *context)
{
    struct slurm_call *call = mem_alloc(sizeof(*call));

    call->client = client;
    call->verb = verb;
    call->endpoint = endpoint;
    call->done = done;
    call->context = context;
    call->started_us = loop_now_us(client->loop);
    list_push_back(&client->calls, &call->link);
    client->in_flight++;
    return call;
}

static char *escape_query(const struct slurm_request *request, struct err *err)
{
    auto_buf struct buf query;

    buf_init(&query, SLURM_MAX_PATH);
    for (size_t i = 0; i < request->query_count; i++) {
        buf_printf(&query, "%s%s=", i > 0 ? "&" : "", request->query[i].name);
        http_escape(request->query[i].value, &query);
    }
    return buf_check(&query, "query", err) < 0 ? NULL : mem_strdup(buf_text(&query));
}

/* What must not be sent: without its name a call about one job would be about all of them. */
static int copy_request(struct slurm_call *call, const struct slurm_request *request,
                        struct err *err)
{
    const struct slurm_endpoint_row *row = slurm_endpoint(request->endpoint);
    auto_buf struct buf name;

    buf_init(&name, SLURM_MAX_PATH);
    if (row->takes_name != (request->name.len > 0))
        return err_set(err, ERR_INVALID, "%s %s %s a name", slurm_verb_name(request->verb),
                       row->name, row->takes_name ? "without" : "with");
    if (request->user && !http_is_header_value(str_of(request->user)))
        return err_set(err, ERR_INVALID, "a user name that fits into no header");
    if (request->name.len > 0)
        http_escape(request->name, &name);
    if (buf_check(&name, "name", err) < 0)
        return -ERR_TOO_BIG;
    if (str_is(request->name, ".") || str_is(request->name, ".."))
        return err_set(err, ERR_INVALID, "'" STR_FMT "' is not a name", STR_ARG(request->name));
    call->name = mem_strdup(buf_text(&name));
    call->query = escape_query(request, err);
    if (!call->query)
        return -ERR_TOO_BIG;
    call->body = mem_strndup(request->body.len ? request->body.at : "", request->body.len);
    call->body_len = request->body.len;
    call->user = request->user ? mem_strdup(request->user) : NULL;
    return 0;
}

struct slurm_call *slurm_send(struct slurm_client *client, const struct slurm_request *request,
                              slurm_done done, void *context)
{
    struct slurm_call *call = call_new(client, request->verb, request->endpoint, done, context);
    int64_t usual_us = slurm_is_write(request->verb, request->endpoint)
                           ? client->options.write_timeout_us
                           : client->options.read_timeout_us;
    struct err why = { 0 };

    call->deadline_us =
        call->started_us + (request->timeout_us > 0 ? request->timeout_us : usual_us);
    call->token_s = request->token_s;
    call->item = request->item;
    call->once = request->once || request->item;
    if (copy_request(call, request, &why) < 0) {
        why.class = ERR_INVALID;
        refuse(call, &why);
    } else {
        advance(call);
    }
    return call;
}

struct slurm_call *slurm_send_refused(struct slurm_client *client, enum slurm_verb verb,
                                      enum slurm_endpoint endpoint, const struct err *why,
                                      slurm_done done, void *context)
{
    struct slurm_call *call = call_new(client, verb, endpoint, done, context);
    struct err invalid = *why;

    invalid.class = ERR_INVALID; /* also when it was too big: the same call will fail again */
    refuse(call, &invalid);
    return call;
}

void slurm_call_cancel(struct slurm_call *call)
{
    if (!call || call->state == CALL_ENDED)
        return;
    if (call->http)
        http_cancel(transport_of(call), call->http);
    take_off(call);
    call_free(call);
}

/* ---- the client ---- */

struct slurm_client *slurm_client_new(struct loop *loop, struct http_transport *transport,
                                      struct slurm_token *token,
                                      const struct slurm_client_options *options)
{
    struct slurm_client *client = mem_alloc(sizeof(*client));

    client->loop = loop;
    client->transport = transport;
    client->token = token;
    if (options)
        client->options = *options;
    client->version = client->options.version;
    client->user = mem_strdup(client->options.user ? client->options.user : "");
    client->options.user = client->user;
    if (client->options.read_timeout_us <= 0)
        client->options.read_timeout_us = READ_TIMEOUT_US;
    if (client->options.write_timeout_us <= 0)
        client->options.write_timeout_us = WRITE_TIMEOUT_US;
    if (client->options.try_timeout_us <= 0)
        client->options.try_timeout_us = TRY_TIMEOUT_US;
    if (client->options.seed)
        rand_init(&client->rand, client->options.seed);
    else
        rand_init_real(&client->rand);
    list_init(&client->calls);
    return client;
}

void slurm_client_free(struct slurm_client *client)
{
    struct list *node;

    if (!client)
        return;
    while ((node = list_first(&client->calls)))
        slurm_call_cancel(list_item(node, struct slurm_call, link));
    if (client->ping)
        http_cancel(client->transport, client->ping);
    slurm_agent_done(client);
    mem_free(client->user);
    mem_free(client);
}

struct loop *slurm_client_loop(const struct slurm_client *client)
{
    return client->loop;
}

struct slurm_token *slurm_client_token(const struct slurm_client *client)
{
    return client->token;
}

void slurm_client_set_token(struct slurm_client *client, struct slurm_token *token)
{
    client->token = token;
    client->token_turn++;
}

const char *slurm_client_user(const struct slurm_client *client)
{
    return client->user;
}

unsigned slurm_client_version(const struct slurm_client *client)
{
    return client->version;
}

unsigned slurm_client_in_flight(const struct slurm_client *client)
{
    return client->in_flight;
}

struct json_doc *slurm_answer_take(const struct slurm_answer *answer)
{
    struct json_doc *doc = answer->owner ? *answer->owner : NULL;

    if (answer->owner)
        *answer->owner = NULL;
    return doc;
}

void slurm_client_observe(struct slurm_client *client, slurm_observer observer, void *context)
{
    client->observer = observer;
    client->observer_context = context;
}
