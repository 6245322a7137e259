/* sim_stream.c - watches on the simulated network: pieces of lines that come, break off or stop.
 *
 * Holds: what comes is in order and without gaps up to the point where it ends; lines may be cut
 * anywhere. A stalled stream says nothing: only the silence can be noticed. */
#include "base/mem.h"
#include "sim_private.h"

enum { SECOND = 1000000, MAX_EVENTS = 8, DEFAULT_END_S = 1800 };

static void on_silence(void *context)
{
    sim_call_fail(context, ERR_UNKNOWN, "nothing was heard");
}

void sim_stream_heard(struct http_call *call)
{
    if (call->idle_us > 0)
        loop_timer_start(call->net->loop, &call->deadline, call->idle_us, on_silence, call);
}

bool sim_stream_give(struct http_call *call, struct str piece)
{
    bool gone = false;

    if (piece.len == 0)
        return true;
    sim_stream_heard(call);
    call->gone = &gone;
    call->handlers.on_data(call->handlers.context, piece);
    if (!gone)
        call->gone = NULL;
    return !gone;
}

static bool hand_over_cut(struct http_call *call, struct str text)
{
    size_t cut = rand_below(call->net->rand, 4) == 0 ? rand_below(call->net->rand, text.len) : 0;

    return sim_stream_give(call, str_sub(text, 0, cut)) &&
           sim_stream_give(call, str_sub(text, cut, text.len));
}

static void end_in_order(struct http_call *call, int status)
{
    trace_line(call->net->trace, "%s watch %s ends", call->user, call->path);
    sim_call_answer(call, status, STR(""), 0);
}

/* False when it went wrong: the call is gone, or will never say anything again. */
static bool still_well(struct http_call *call)
{
    struct sim_net *net = call->net;

    if (call->stalled)
        return false;
    if (rand_chance(net->rand, net->faults.watch_broken)) {
        sim_call_fail(call, ERR_UNKNOWN, "the watch broke off");
        return false;
    }
    if (sim_call_is_cut(call) || rand_chance(net->rand, net->faults.watch_stalled)) {
        trace_line(net->trace, "%s watch %s stalls", call->user, call->path);
        call->stalled = true;
        return false;
    }
    return true;
}

static void pump(void *context)
{
    struct http_call *call = context;
    auto_buf struct buf text;
    unsigned count = 0, most = 1 + (unsigned)rand_below(call->net->rand, MAX_EVENTS);

    buf_init(&text, 64u << 20);
    if (!still_well(call))
        return;
    while (count < most && api_watch_next(call->watch, &text))
        count++;
    if (count > 0)
        trace_line(call->net->trace, "%s sees %u events of %s", call->user, count, call->path);
    if (text.len > 0 && !hand_over_cut(call, buf_str(&text)))
        return;
    if (api_watch_has_ended(call->watch))
        end_in_order(call, 200);
    else if (count == most)
        sim_stream_notice(call);
}

void sim_stream_notice(struct http_call *call)
{
    if (!call->stalled && !loop_timer_is_armed(&call->timer))
        loop_timer_start(call->net->loop, &call->timer, sim_delay_us(call->net), pump, call);
}

static void on_beat(void *context)
{
    struct http_call *call = context;
    auto_buf struct buf text;

    buf_init(&text, 10000);
    if (!still_well(call))
        return;
    loop_timer_start(call->net->loop, &call->beat,
                     rand_range(call->net->rand, 40 * SECOND, 70 * SECOND), on_beat, call);
    api_watch_bookmark(call->watch, &text);
    if (text.len > 0)
        (void)hand_over_cut(call, buf_str(&text));
}

static void on_end(void *context)
{
    struct http_call *call = context;
    auto_buf struct buf text;

    buf_init(&text, 10000);
    if (call->stalled || sim_call_is_cut(call))
        return;
    api_watch_bookmark(call->watch, &text);
    if (text.len == 0 || hand_over_cut(call, buf_str(&text)))
        end_in_order(call, 200);
}

static void refuse(struct http_call *call)
{
    bool gone = false;

    trace_line(call->net->trace, "%s watch %s refused: %d", call->user, call->path,
               call->answer.status);
    call->gone = &gone;
    call->handlers.on_head(call->handlers.context, call->answer.status);
    if (gone)
        return;
    call->gone = NULL;
    if (sim_stream_give(call, buf_str(&call->answer.body)))
        sim_call_answer(call, call->answer.status, STR(""), call->answer.retry_after);
}

/* What a server in trouble says in place of a stream. */
static bool is_troubled(struct http_call *call)
{
    struct sim_net *net = call->net;

    if (call->fate == FATE_TOO_MANY) {
        call->answer.retry_after = 1;
        api_answer_trouble(&call->answer, 429, "TooManyRequests", "too many requests");
    } else if (call->fate == FATE_INTERNAL) {
        api_answer_trouble(&call->answer, 500, "InternalError", "etcdserver: no leader");
    } else if (call->fate == FATE_UNAVAILABLE) {
        api_answer_trouble(&call->answer, 503, "ServiceUnavailable", "restarting");
    } else if (rand_chance(net->rand, net->faults.watch_expired)) {
        api_answer_trouble(&call->answer, 410, "Expired", "too old resource version");
    } else {
        return false;
    }
    return true;
}

void sim_stream_open(struct http_call *call)
{
    struct sim_net *net = call->net;
    const struct api_request request = { call->method, str_of(call->path), str_of(call->type),
                                         STR(""), call->user };
    int64_t end_us;

    if (is_troubled(call) ||
        api_watch_open(net->store, &request, &call->answer, &call->watch) < 0) {
        refuse(call);
        return;
    }
    trace_line(net->trace, "%s watch %s opens", call->user, call->path);
    loop_timer_stop(&call->deadline);
    sim_stream_heard(call);
    end_us = api_watch_timeout_us(call->watch);
    loop_timer_start(net->loop, &call->end, end_us > 0 ? end_us : (int64_t)DEFAULT_END_S * SECOND,
                     on_end, call);
    loop_timer_start(net->loop, &call->beat, rand_range(net->rand, 40 * SECOND, 70 * SECOND),
                     on_beat, call);
    sim_stream_notice(call);
    call->handlers.on_head(call->handlers.context, 200);
}

void sim_stream_done(struct http_call *call)
{
    loop_timer_stop(&call->beat);
    loop_timer_stop(&call->end);
    api_watch_free(call->watch);
    call->watch = NULL;
}
