/* sim_slurm.c - calls to Slurm on the simulated network: what becomes of them on the way, and the
 * answers that slurmrestd gives late.
 *
 * Holds: a call that slurmrestd has not answered keeps its ticket, and gives it back when its
 * sender leaves; the request itself then lives on in slurmrestd. */
#include "sim_private.h"

#include <inttypes.h>

enum { MILLISECOND = 1000 };

enum sim_fate sim_slurm_fate(struct sim_net *net, bool is_write)
{
    const struct sim_faults *faults = &net->slurm_faults;
    const struct sim_chance chances[] = {
        { faults->lost_before, FATE_LOST_BEFORE, false },
        { faults->lost_between, FATE_LOST_BETWEEN, false },
        { faults->lost_after, FATE_LOST_AFTER, false },
        { faults->late, FATE_LATE, true },
        { faults->timeout / 2, FATE_TIMEOUT, false },
        { faults->timeout / 2, FATE_TIMEOUT_DONE, true },
        { faults->bad_gateway, FATE_BAD_GATEWAY, false },
        { faults->internal / 2, FATE_INTERNAL, false },
        { faults->internal / 2, FATE_INTERNAL_DONE, true },
    };

    return sim_draw(net->rand, chances, sizeof(chances) / sizeof(chances[0]), is_write);
}

int64_t sim_slurm_delay_us(struct sim_net *net)
{
    if (rand_chance(net->rand, net->slurm_faults.slow))
        return rand_range(net->rand, 100 * MILLISECOND, 8000 * MILLISECOND);
    return rand_range(net->rand, MILLISECOND, 10 * MILLISECOND);
}

/* ---- at slurmrestd ---- */

static struct slurm_store_request request_of(const struct http_call *call)
{
    return (struct slurm_store_request){
        .method = call->method,
        .target = str_of(call->path),
        .content_type = str_of(call->type),
        .body = { call->body, call->body_len },
        .token = str_of(call->token),
        .user = call->as_user,
        .by_agent = call->to_agent,
    };
}

static void take_answer(struct http_call *call, const struct slurm_store_answer *answer)
{
    call->answer.status = answer->status;
    call->answer_type = answer->content_type;
    buf_clear(&call->answer.body);
    buf_add_str(&call->answer.body, buf_str(&answer->body));
    trace_line(call->net->trace, "%s %s %s %d", call->user, call->method, call->path,
               answer->status);
}

static void on_answered(void *context, const struct slurm_store_answer *answer)
{
    struct http_call *call = context;

    take_answer(call, answer);
    if (call->is_asking)
        return;
    call->ticket = 0; /* it had to wait for slurmctld */
    loop_timer_start(call->net->loop, &call->timer, sim_slurm_delay_us(call->net),
                     sim_call_on_answer, call);
}

void sim_slurm_serve(struct http_call *call)
{
    struct slurm_store_request request = request_of(call);

    call->is_asking = true;
    call->ticket = slurm_store_ask(call->net->slurm, &request, on_answered, call);
    call->is_asking = false;
    if (call->ticket)
        trace_line(call->net->trace, "%s %s %s waits in slurmrestd", call->user, call->method,
                   call->path);
}

static void trouble(struct http_call *call, int status)
{
    struct slurm_store_request request = request_of(call);
    struct slurm_store_answer answer;

    if (call->ticket)
        slurm_store_forget(call->net->slurm, call->ticket);
    call->ticket = 0;
    slurm_store_answer_init(&answer);
    slurm_store_trouble(call->net->slurm, status, &request, &answer);
    take_answer(call, &answer);
    slurm_store_answer_done(&answer);
}

bool sim_slurm_work(struct http_call *call, bool (*serve_write)(struct http_call *call))
{
    if (call->to_agent && sim_agent_answers(call))
        return true;
    if (call->fate == FATE_TIMEOUT || call->fate == FATE_BAD_GATEWAY ||
        call->fate == FATE_INTERNAL) {
        trouble(call, call->fate == FATE_TIMEOUT       ? 504
                      : call->fate == FATE_BAD_GATEWAY ? 502
                                                       : 500);
        return true;
    }
    if (call->is_write && !serve_write(call))
        return false;
    if (!call->is_write)
        sim_slurm_serve(call);
    if (call->fate == FATE_TIMEOUT_DONE || call->fate == FATE_INTERNAL_DONE)
        trouble(call, call->fate == FATE_TIMEOUT_DONE ? 504 : 500);
    return true;
}

int64_t sim_slurm_answer_delay_us(struct http_call *call)
{
    bool times_out = call->fate == FATE_TIMEOUT || call->fate == FATE_TIMEOUT_DONE ||
                     call->fate == FATE_BAD_GATEWAY;

    return sim_slurm_delay_us(call->net) +
           (times_out ? slurm_store_message_timeout_us(call->net->slurm) : 0);
}

/* ---- long lists, in pieces ---- */

static void on_piece(void *context)
{
    struct http_call *call = context;
    struct sim_net *net = call->net;
    struct str rest = str_sub(buf_str(&call->answer.body), call->given, SIZE_MAX);
    size_t length = rest.len / 2 + rand_below(net->rand, rest.len / 2 + 2);

    if (rest.len == 0) {
        sim_call_answer(call, call->answer.status, STR(""), 0);
        return;
    }
    if (rand_chance(net->rand, net->slurm_faults.watch_broken)) {
        sim_call_fail(call, ERR_UNKNOWN, "the list broke off");
        return;
    }
    if (rand_chance(net->rand, net->slurm_faults.watch_stalled))
        return; /* the silence ends it */
    rest = str_sub(rest, 0, length > 0 ? length : 1);
    call->given += rest.len;
    loop_timer_start(net->loop, &call->timer, sim_slurm_delay_us(net), on_piece, call);
    (void)sim_stream_give(call, rest);
}

void sim_slurm_stream(struct http_call *call)
{
    loop_timer_stop(&call->deadline);
    sim_stream_heard(call);
    loop_timer_start(call->net->loop, &call->timer, 0, on_piece, call);
    call->handlers.on_head(call->handlers.context, call->answer.status);
}

/* ---- what slurmctld does by itself ---- */

static void on_due(void *context)
{
    struct sim_net *net = context;
    int64_t next_us;

    slurm_store_step(net->slurm);
    next_us = slurm_store_next_us(net->slurm);
    loop_timer_stop(&net->slurm_timer); /* the step itself may have armed it */
    if (next_us == INT64_MAX)
        return;
    next_us -= loop_now_us(net->loop);
    loop_timer_start(net->loop, &net->slurm_timer, next_us > 0 ? next_us : 0, on_due, net);
}

static void on_wake(void *context)
{
    struct sim_net *net = context;

    loop_timer_start(net->loop, &net->slurm_timer, 0, on_due, net);
}

static void on_change(void *context, const struct slurm_store_change *change)
{
    static const char *const events[] = {
        [SLURM_JOB_TAKEN] = "taken",      [SLURM_JOB_STARTED] = "started",
        [SLURM_JOB_OVER] = "over",        [SLURM_JOB_BACK] = "back in the queue",
        [SLURM_JOB_CHANGED] = "changed",  [SLURM_JOB_FORGOTTEN] = "forgotten",
        [SLURM_JOB_LOST] = "lost",        [SLURM_NODE_ADDED] = "added",
        [SLURM_NODE_CHANGED] = "changed", [SLURM_NODE_REMOVED] = "removed",
    };
    const struct sim_net *net = context;

    if (change->job)
        trace_line(net->trace, "slurm: job %" PRId64 " %s: %s %s %s", change->job->id,
                   events[change->event], change->job->state, change->job->reason,
                   change->job->nodes);
    else
        trace_line(net->trace, "slurm: node %s %s: %s", change->node->name, events[change->event],
                   change->node->state);
}

void sim_net_add_slurm(struct sim_net *net, struct slurm_store *slurm)
{
    net->slurm = slurm;
    slurm_store_listen(slurm, on_change, net);
    slurm_store_on_wake(slurm, on_wake, net);
    on_wake(net);
}

void sim_net_set_slurm_faults(struct sim_net *net, const struct sim_faults *faults)
{
    net->slurm_faults = faults ? *faults : (struct sim_faults){ .slow = 0 };
}
