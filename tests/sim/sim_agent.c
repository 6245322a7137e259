/* sim_agent.c - slinc-agent on the simulated network: a second server before the same slurmctld,
 * which can die, hang, refuse, and be slow.
 *
 * It answers what slurmrestd does for the paths that it has, by a token of its own, and completes
 * jobs. What it has handed to slurmctld lives on when it dies.
 *
 * Holds: what it refuses with 501 or 503 has no effect. */
#include "sim_private.h"

enum { SECOND = 1000000 };

void sim_net_set_agent(struct sim_net *net, enum sim_agent state)
{
    enum sim_agent before = net->agent;

    static const char *const names[] = { "up", "down", "hangs" };

    trace_line(net->trace, "agent: %s", names[state]);
    net->agent = state;
    list_each (struct http_call, call, &net->calls, link) {
        if (!call->to_agent)
            continue;
        if (state == SIM_AGENT_DOWN && call->arrived) /* its answer goes with it */
            loop_timer_start(net->loop, &call->timer, 0, sim_call_reset, call);
        else if (before == SIM_AGENT_HANGS && call->is_held) /* read at last */
            loop_timer_start(net->loop, &call->timer, rand_range(net->rand, 0, SECOND / 10),
                             state == SIM_AGENT_UP ? call->arrive : sim_call_reset, call);
    }
}

bool sim_agent_holds(struct http_call *call, void (*arrive)(void *context))
{
    call->arrive = arrive;
    call->is_held = call->net->agent == SIM_AGENT_HANGS;
    return call->is_held;
}

static void answer(struct http_call *call, int status, const char *text)
{
    call->answer.status = status;
    buf_clear(&call->answer.body);
    buf_add_text(&call->answer.body, text);
    trace_line(call->net->trace, "%s %s %s: the agent says %d", call->user, call->method,
               call->path, status);
}

/* One that was asked a moment ago whether slurmctld is there may not know better. */
static void ping(struct http_call *call)
{
    enum slurm_store_ctld ctld = slurm_store_ctld(call->net->slurm);
    bool is_up =
        ctld == SLURM_CTLD_UP || (ctld == SLURM_CTLD_STOPPED && rand_chance(call->net->rand, 500));

    answer(call, 200,
           is_up ? "{\"agent\":\"1\",\"slurm\":\"26.05.5\",\"slurmctld\":\"up\"}"
                 : "{\"agent\":\"1\",\"slurm\":\"26.05.5\",\"slurmctld\":\"down\"}");
}

bool sim_agent_answers(struct http_call *call)
{
    struct sim_net *net = call->net;
    unsigned refuses = net->slurm_faults.agent_refuses;

    if (net->agent == SIM_AGENT_DOWN)
        call->answer.status = 0; /* refused */
    else if (strcmp(call->path, "/agent/v1/ping") == 0)
        ping(call);
    else if (rand_chance(net->rand, refuses / 2))
        answer(call, 501, "{\"errors\":[{\"error_number\":0,\"error\":\"not by the agent\"}]}");
    else if (rand_chance(net->rand, refuses / 2))
        answer(call, 503, "{\"errors\":[{\"error_number\":0,\"error\":\"its queue is full\"}]}");
    else
        return false;
    return true;
}

struct http_transport *sim_transport_new_agent(struct sim_net *net, const char *user)
{
    struct http_transport *base = sim_transport_new_slurm(net, user);

    ((struct sim_transport *)base)->to_agent = true;
    return base;
}
