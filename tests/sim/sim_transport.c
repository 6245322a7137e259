/* sim_transport.c - calls on the simulated network: sent, lost, served, answered.
 *
 * Holds: exactly one of answered and failed is called per call, from the loop, unless it was
 * cancelled; a body takes effect at most once; all chance comes from one generator, drawn in the
 * order of events, so a run depends on its seed alone. */
#include "sim_transport.h"

#include "base/mem.h"
#include "sim_private.h"

#include <stdlib.h>

enum {
    MILLISECOND = 1000,
    SECOND = 1000000,
    LONG_AFTER_S = 20, /* a lease is taken over after 15 s */
    AGES_AFTER_S = 59, /* whoever waits for what may still come waits for a minute at most */
};

int64_t sim_delay_us(struct sim_net *net)
{
    if (rand_chance(net->rand, net->faults.slow))
        return rand_range(net->rand, 100 * MILLISECOND, 8 * SECOND);
    return rand_range(net->rand, 200, 5 * MILLISECOND);
}

/* ---- what becomes of a call ---- */

enum sim_fate sim_draw(struct rand *rand, const struct sim_chance *chances, size_t count,
                       bool is_write)
{
    for (size_t i = 0; i < count; i++)
        if (rand_chance(rand, chances[i].per_mille) && (is_write || !chances[i].writes_only))
            return chances[i].fate;
    return FATE_ANSWERED;
}

static enum sim_fate draw_fate(struct sim_net *net, bool is_write)
{
    const struct sim_faults *faults = &net->faults;
    const struct sim_chance chances[] = {
        { faults->lost_before, FATE_LOST_BEFORE, false },
        { faults->lost_between, FATE_LOST_BETWEEN, false },
        { faults->lost_after, FATE_LOST_AFTER, false },
        { faults->late, FATE_LATE, true },
        { faults->conflict, FATE_CONFLICT, true },
        { faults->too_many, FATE_TOO_MANY, false },
        { faults->internal / 2, FATE_INTERNAL, false },
        { faults->internal / 2, FATE_INTERNAL_DONE, true },
        { faults->unavailable, FATE_UNAVAILABLE, false },
    };

    return sim_draw(net->rand, chances, sizeof(chances) / sizeof(chances[0]), is_write);
}

static const char *const fate_names[FATE_DRAWN] = {
    "answered",
    "lost before",
    "lost between",
    "lost after",
    "late",
    "conflict",
    "too many",
    "internal",
    "internal done",
    "unavailable",
    "forbidden",
    "cut off",
    "504",
    "504 done",
    "502",
    "dies before",
    "dies after",
    "dies long before",
    "dies ages before",
};

bool sim_call_is_cut(const struct http_call *call)
{
    const struct sim_net *net = call->net;

    return net->cut_user && strcmp(net->cut_user, call->user) == 0 &&
           (!net->cut_part || strstr(call->path, net->cut_part));
}

/* ---- the end of a call ---- */

void sim_call_finish(struct http_call *call)
{
    if (call->gone)
        *call->gone = true;
    list_remove(&call->link);
    loop_timer_stop(&call->timer);
    loop_timer_stop(&call->deadline);
    sim_stream_done(call);
    api_answer_done(&call->answer);
    mem_free(call->method);
    mem_free(call->path);
    mem_free(call->type);
    mem_free(call->body);
    mem_free(call->token);
    mem_free(call->as_user);
    if (call->ticket)
        slurm_store_forget(call->net->slurm, call->ticket);
    mem_free(call);
}

/* Nobody waits any more; a request that has not arrived yet still will. */
static void abandon(struct http_call *call)
{
    call->transport = NULL;
    loop_timer_stop(&call->deadline);
    if (call->stream || call->arrived || call->fate == FATE_CUT_OFF)
        sim_call_finish(call);
}

void sim_call_fail(struct http_call *call, enum err_class class, const char *why)
{
    const struct http_handlers handlers = call->handlers;
    bool waited_for = call->transport != NULL;
    struct err err;

    trace_line(call->net->trace, "%s %s %s: %s", call->user, call->method, call->path, why);
    (void)err_set(&err, class, "%s %s: %s", call->method, call->path, why);
    sim_call_finish(call);
    if (waited_for)
        handlers.failed(handlers.context, &err);
}

void sim_call_answer(struct http_call *call, int status, struct str body, int retry_after)
{
    const struct http_answer answer = { .status = status,
                                        .body = body,
                                        .retry_after_us = (int64_t)retry_after * SECOND,
                                        .content_type = call->answer_type };

    list_remove(&call->link);
    loop_timer_stop(&call->deadline);
    if (call->transport && call->net->hooks.received)
        call->net->hooks.received(call->net->hooks.context, call->user, call->method, call->path,
                                  status, call->sent_us);
    if (call->transport) {
        call->transport = NULL;
        call->handlers.answered(call->handlers.context, &answer);
    }
    sim_call_finish(call);
}

void sim_call_reset(void *context)
{
    sim_call_fail(context, ERR_UNKNOWN, "connection reset");
}

static void on_deadline(void *context)
{
    struct http_call *call = context;
    const struct http_handlers handlers = call->handlers;
    struct err err;

    trace_line(call->net->trace, "%s %s %s: deadline", call->user, call->method, call->path);
    (void)err_set(&err, ERR_UNKNOWN, "%s %s: no answer before the deadline", call->method,
                  call->path);
    abandon(call);
    handlers.failed(handlers.context, &err);
}

/* ---- at the server ---- */

static struct sim_write *note_write(struct http_call *call)
{
    struct sim_net *net = call->net;

    if (net->write_count == SIM_MAX_WRITES) {
        (void)fprintf(stderr, "sim: more than %d writes\n", SIM_MAX_WRITES);
        abort();
    }
    struct sim_write *write = &net->writes[net->write_count++];

    *write = (struct sim_write){ .number = net->write_count,
                                 .sent_us = call->sent_us,
                                 .arrived_us = loop_now_us(net->loop) };
    (void)snprintf(write->user, sizeof(write->user), "%s", call->user);
    (void)snprintf(write->method, sizeof(write->method), "%s", call->method);
    (void)snprintf(write->path, sizeof(write->path), "%s", call->path);
    return write;
}

static void serve(struct http_call *call)
{
    const struct api_request request = { call->method,
                                         str_of(call->path),
                                         str_of(call->type),
                                         { call->body, call->body_len },
                                         call->user };

    if (call->to_slurm) {
        sim_slurm_serve(call);
        return;
    }
    api_serve(call->net->store, &request, &call->answer);
    trace_line(call->net->trace, "%s %s %s %d (version %llu)", call->user, call->method, call->path,
               call->answer.status, (unsigned long long)api_store_version(call->net->store));
}

/* The process that sent it dies. The call itself lives on: it has arrived. */
static void crash(struct http_call *call)
{
    struct sim_net *net = call->net;
    char user[32];

    memcpy(user, call->user, sizeof(user));
    net->crash_at = 0;
    call->arrived = false; /* keeps it alive while its owner goes */
    trace_line(net->trace, "%s dies", user);
    if (net->hooks.crash)
        net->hooks.crash(net->hooks.context, user);
    call->arrived = true;
}

/* False when the sender died before the write took effect: then it never does. */
static bool serve_write(struct http_call *call)
{
    struct sim_net *net = call->net;
    struct sim_write *write = note_write(call);
    bool dies = net->crash_at == write->number || call->fate == FATE_DIES_BEFORE ||
                call->fate == FATE_DIES_AFTER;
    bool dies_after = call->fate == FATE_DIES_AFTER ||
                      (call->fate != FATE_DIES_BEFORE && net->crash_fate != FATE_DIES_BEFORE);

    if (dies && !dies_after) {
        crash(call);
        return false;
    }
    serve(call);
    write->status = call->answer.status;
    write->effect = call->answer.status > 0 && call->answer.status < 300;
    if (dies)
        crash(call);
    return true;
}

void sim_call_on_answer(void *context)
{
    struct http_call *call = context;

    if (call->to_slurm && call->answer.status == 0)
        sim_call_fail(call, ERR_UNAVAILABLE, "connection refused");
    else if (call->to_slurm && call->answer.status < 0)
        sim_call_fail(call, ERR_UNKNOWN, "connection reset");
    else if (call->fate == FATE_LOST_AFTER)
        sim_call_fail(call, ERR_UNKNOWN, "the answer was lost");
    else if (call->to_slurm && call->stream)
        sim_slurm_stream(call);
    else
        sim_call_answer(call, call->answer.status, buf_str(&call->answer.body),
                        call->answer.retry_after);
}

static void trouble(struct http_call *call, int status, const char *reason, const char *message)
{
    trace_line(call->net->trace, "%s %s %s: injected %d", call->user, call->method, call->path,
               status);
    api_answer_trouble(&call->answer, status, reason, message);
}

/* The server does what it is asked, or says that it cannot. False when the call ends here. */
static bool work(struct http_call *call)
{
    if (call->to_slurm)
        return sim_slurm_work(call, serve_write);
    switch (call->fate) {
    case FATE_CONFLICT:
        trouble(call, 409, "Conflict", "the object has been modified");
        return true;
    case FATE_TOO_MANY:
        call->answer.retry_after = 1;
        trouble(call, 429, "TooManyRequests", "too many requests, please try again later");
        return true;
    case FATE_INTERNAL:
        trouble(call, 500, "InternalError", "etcdserver: request timed out");
        return true;
    case FATE_FORBIDDEN:
        trouble(call, 403, "Forbidden", "exceeded quota");
        return true;
    case FATE_UNAVAILABLE:
        trouble(call, 503, "ServiceUnavailable", "the server is currently unable to serve");
        return true;
    default:
        break;
    }
    if (call->is_write && !serve_write(call))
        return false;
    if (!call->is_write)
        serve(call);
    if (call->fate == FATE_INTERNAL_DONE)
        trouble(call, 500, "InternalError", "etcdserver: request timed out");
    return true;
}

static void on_late_arrival(void *context)
{
    struct http_call *call = context;

    call->arrived = true;
    (void)serve_write(call);
    sim_call_finish(call);
}

/* Its sender is told that nothing is known; it arrives when nobody thinks of it any more. */
static void come_late(struct http_call *call)
{
    struct sim_net *net = call->net;
    const struct http_handlers handlers = call->handlers;
    bool waited_for = call->transport != NULL;
    struct err err;

    trace_line(net->trace, "%s %s %s: cut off", call->user, call->method, call->path);
    (void)err_set(&err, ERR_UNKNOWN, "%s %s: connection reset", call->method, call->path);
    call->transport = NULL;
    loop_timer_stop(&call->deadline);
    loop_timer_start(net->loop, &call->timer, rand_range(net->rand, 0, 3 * SECOND), on_late_arrival,
                     call);
    if (waited_for)
        handlers.failed(handlers.context, &err);
}

static bool is_long_after_death(enum sim_fate fate)
{
    return fate == FATE_DIES_LONG_BEFORE || fate == FATE_DIES_AGES_BEFORE;
}

/* The write that arrives is the one whose sender dies, and that lives on. */
static bool outlives_its_sender(const struct http_call *call)
{
    const struct sim_net *net = call->net;

    return call->to_slurm && call->is_write && call->fate == FATE_ANSWERED &&
           net->crash_at == net->write_count + 1 && is_long_after_death(net->crash_fate);
}

/* As when a gateway holds it, or a kernel sends it again and again for a process that is gone. */
static void come_long_after_death(struct http_call *call)
{
    int64_t after_s = call->fate == FATE_DIES_LONG_BEFORE ? LONG_AFTER_S : AGES_AFTER_S;

    crash(call);
    loop_timer_start(call->net->loop, &call->timer, after_s * SECOND, on_late_arrival, call);
}

static int64_t answer_delay_us(struct http_call *call)
{
    return call->to_slurm ? sim_slurm_answer_delay_us(call) : sim_delay_us(call->net);
}

static void on_arrival(void *context)
{
    struct http_call *call = context;

    if (call->fate == FATE_LOST_BEFORE) {
        sim_call_fail(call, ERR_UNAVAILABLE, "no connection");
        return;
    }
    if (call->fate == FATE_LOST_BETWEEN) {
        sim_call_fail(call, ERR_UNKNOWN, "connection reset");
        return;
    }
    if (call->fate == FATE_CUT_OFF)
        return; /* its deadline ends it */
    if (call->fate == FATE_LATE) {
        come_late(call);
        return;
    }
    if (call->to_agent && sim_agent_holds(call, on_arrival))
        return;
    if (outlives_its_sender(call))
        call->fate = call->net->crash_fate;
    if (is_long_after_death(call->fate)) {
        come_long_after_death(call);
        return;
    }
    if (call->stream && !call->to_slurm) {
        sim_stream_open(call);
        return;
    }
    call->arrived = true;
    if (!work(call) || (call->fate != FATE_LOST_AFTER && !call->transport))
        sim_call_finish(call);
    else if (!call->ticket)
        loop_timer_start(call->net->loop, &call->timer, answer_delay_us(call), sim_call_on_answer,
                         call);
}

/* ---- our side ---- */

static const char *header(const struct http_request *request, const char *name)
{
    for (unsigned i = 0; i < request->header_count; i++)
        if (strcasecmp(request->headers[i].name, name) == 0)
            return request->headers[i].value;
    return "";
}

static void choose_fate(struct http_call *call)
{
    struct sim_net *net = call->net;

    net->next_fate = FATE_DRAWN;
    if (net->hooks.sent)
        net->hooks.sent(net->hooks.context, call->user, call->method, call->path,
                        (struct str){ call->body, call->body_len });
    call->fate =
        call->to_slurm ? sim_slurm_fate(net, call->is_write) : draw_fate(net, call->is_write);
    if (net->next_fate != FATE_DRAWN)
        call->fate = net->next_fate;
    if (sim_call_is_cut(call))
        call->fate = FATE_CUT_OFF;
}

static struct http_call *transport_send(struct http_transport *base,
                                        const struct http_request *request,
                                        const struct http_handlers *handlers)
{
    struct sim_transport *transport = (struct sim_transport *)base;
    struct sim_net *net = transport->net;
    struct http_call *call = mem_alloc(sizeof(*call));
    int64_t now_us = loop_now_us(net->loop);

    *call = (struct http_call){ .net = net,
                                .transport = transport,
                                .handlers = *handlers,
                                .method = mem_strdup(request->method),
                                .path = mem_strdup(request->path),
                                .type = mem_strdup(header(request, "Content-Type")),
                                .body = mem_strndup(request->body.at ? request->body.at : "",
                                                    request->body.len),
                                .body_len = request->body.len,
                                .stream = request->stream,
                                .is_write = strcmp(request->method, "GET") != 0,
                                .sent_us = now_us,
                                .idle_us = request->idle_us,
                                .answer_type = "application/json",
                                .to_slurm = transport->to_slurm,
                                .to_agent = transport->to_agent,
                                .token = mem_strdup(header(request, "X-SLURM-USER-TOKEN")),
                                .as_user = mem_strdup(header(request, "X-SLURM-USER-NAME")) };
    memcpy(call->user, transport->user, sizeof(call->user));
    api_answer_init(&call->answer);
    choose_fate(call);
    trace_line(net->trace, "%s sends %s %s (%s) %s", call->user, call->method, call->path,
               fate_names[call->fate], call->body);
    list_push_back(&net->calls, &call->link);
    loop_timer_start(net->loop, &call->timer,
                     call->to_slurm ? sim_slurm_delay_us(net) : sim_delay_us(net), on_arrival,
                     call);
    if (request->deadline_us > 0)
        loop_timer_start(net->loop, &call->deadline, request->deadline_us - now_us, on_deadline,
                         call);
    return call;
}

static void transport_cancel(struct http_transport *base, struct http_call *call)
{
    if (call)
        abandon(call);
}

static void transport_free(struct http_transport *base)
{
    struct sim_transport *transport = (struct sim_transport *)base;

    list_each (struct http_call, call, &transport->net->calls, link) {
        if (call->transport == transport)
            abandon(call);
    }
    mem_free(transport);
}

struct http_transport *sim_transport_new(struct sim_net *net, const char *user)
{
    static const struct http_transport_ops ops = { transport_send, transport_cancel,
                                                   transport_free };
    struct sim_transport *transport = mem_alloc(sizeof(*transport));

    transport->base.ops = &ops;
    transport->net = net;
    (void)snprintf(transport->user, sizeof(transport->user), "%s", user);
    return &transport->base;
}

struct http_transport *sim_transport_new_slurm(struct sim_net *net, const char *user)
{
    struct http_transport *base = sim_transport_new(net, user);

    ((struct sim_transport *)base)->to_slurm = true;
    return base;
}

/* ---- the network ---- */

static void on_change(void *context, const struct api_change *change)
{
    struct sim_net *net = context;

    list_each (struct http_call, call, &net->calls, link) {
        if (call->watch)
            sim_stream_notice(call);
    }
}

struct sim_net *sim_net_new(struct loop *loop, struct api_store *store, struct rand *rand,
                            struct trace *trace, const struct sim_hooks *hooks)
{
    struct sim_net *net = mem_alloc(sizeof(*net));

    net->loop = loop;
    net->store = store;
    net->rand = rand;
    net->trace = trace;
    net->hooks = *hooks;
    net->writes = mem_alloc_array(SIM_MAX_WRITES, sizeof(*net->writes));
    list_init(&net->calls);
    api_store_listen(store, on_change, net);
    return net;
}

void sim_net_free(struct sim_net *net)
{
    struct list *node;

    if (!net)
        return;
    loop_timer_stop(&net->slurm_timer);
    while ((node = list_first(&net->calls)))
        sim_call_finish(list_item(node, struct http_call, link));
    if (net->slurm)
        slurm_store_on_wake(net->slurm, NULL, NULL);
    mem_free(net->writes);
    mem_free(net);
}

void sim_net_set_faults(struct sim_net *net, const struct sim_faults *faults)
{
    net->faults = faults ? *faults : (struct sim_faults){ .slow = 0 };
}

/* The other side knows nothing of what was sent in vain, and says so when it is heard again. */
static void reset_cut_calls(struct sim_net *net)
{
    list_each (struct http_call, call, &net->calls, link) {
        if (call->fate == FATE_CUT_OFF && !call->watch)
            loop_timer_start(net->loop, &call->timer, rand_range(net->rand, 0, 5 * SECOND),
                             sim_call_reset, call);
    }
}

void sim_net_cut(struct sim_net *net, const char *user, const char *part)
{
    if (!user)
        reset_cut_calls(net);
    trace_line(net->trace, user ? "partition: %s %s" : "partition ends%s%s", user ? user : "",
               user && part ? part : "");
    net->cut_user = user;
    net->cut_part = part;
}

void sim_net_choose(struct sim_net *net, enum sim_fate fate)
{
    net->next_fate = fate;
}

void sim_net_crash_at(struct sim_net *net, uint64_t number, enum sim_fate fate)
{
    net->crash_at = number;
    net->crash_fate = fate;
}

uint64_t sim_net_write_count(const struct sim_net *net)
{
    return net->write_count;
}

const struct sim_write *sim_net_write(const struct sim_net *net, uint64_t number)
{
    return &net->writes[number - 1];
}
