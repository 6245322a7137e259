/* agent.c - whether the agent can be used: a ping now and then, and at once after a call that got
 * no answer. */
#include "slurm/agent.h"

#include "slurm/client_private.h"

#include <stdio.h>

enum {
    PING_US = 5000000,         /* between pings while it is up */
    PING_TIMEOUT_US = 2000000, /* of one ping */
    FIRST_PAUSE_US = 250000,   /* between pings while it is down: doubled each time, */
    LONGEST_PAUSE_US = 15000000,
    MAX_PING = 64 << 10,
    MAX_COMPLETE = 512,
    WILL_RUN_US = 1000000, /* somebody waits for it */
};

static void send_ping(void *context);

/* ---- what a ping says ---- */

static void ping_later(struct slurm_client *client, int64_t pause_us)
{
    loop_timer_start(client->loop, &client->agent.timer, pause_us, send_ping, client);
}

/* why is "" when it is up. */
static void pinged(struct slurm_client *client, const char *why)
{
    struct slurm_agent *agent = &client->agent;

    agent->is_known = true;
    agent->is_up = agent->was_up = why[0] == '\0';
    (void)snprintf(agent->why, sizeof(agent->why), "%s", why);
    if (agent->is_up)
        agent->pause_us = 0;
    else if (agent->pause_us < LONGEST_PAUSE_US)
        agent->pause_us = agent->pause_us > 0 ? 2 * agent->pause_us : FIRST_PAUSE_US;
    ping_later(client, agent->is_up ? PING_US : agent->pause_us);
}

static void on_ping_answered(void *context, const struct http_answer *http)
{
    struct slurm_client *client = context;
    struct slurm_agent *agent = &client->agent;
    auto_json_doc struct json_doc *doc = NULL;
    const struct json *root;
    char why[sizeof(agent->why)] = "";

    agent->ping = NULL;
    if (http->status == 200)
        (void)json_parse(http->body, MAX_PING, &doc, NULL);
    root = json_root(doc);
    (void)snprintf(agent->version, sizeof(agent->version), STR_FMT,
                   STR_ARG(json_str(json_get(root, "slurm"))));
    if (!json_is_object(root))
        (void)snprintf(why, sizeof(why), "its ping was answered with %d", http->status);
    else if (!str_is(json_str(json_get(root, "slurmctld")), "up"))
        (void)snprintf(why, sizeof(why), "it cannot reach slurmctld (Slurm %s)", agent->version);
    pinged(client, why);
}

static void on_ping_failed(void *context, const struct err *why)
{
    struct slurm_client *client = context;

    client->agent.ping = NULL;
    pinged(client, why->text);
}

static void send_ping(void *context)
{
    struct slurm_client *client = context;
    struct slurm_agent *agent = &client->agent;
    const struct http_request http = { .method = "GET",
                                       .path = "/agent/v1/ping",
                                       .deadline_us = loop_now_us(client->loop) + PING_TIMEOUT_US,
                                       .max_answer = MAX_PING };
    const struct http_handlers handlers = { .answered = on_ping_answered,
                                            .failed = on_ping_failed,
                                            .context = client };

    loop_timer_stop(&agent->timer);
    if (!agent->ping)
        agent->ping = http_send(agent->transport, &http, &handlers);
}

/* ---- for the client ---- */

void slurm_client_use_agent(struct slurm_client *client, struct http_transport *transport)
{
    client->agent = (struct slurm_agent){ .transport = transport, .why = "not pinged yet" };
    ping_later(client, 0);
}

void slurm_agent_done(struct slurm_client *client)
{
    loop_timer_stop(&client->agent.timer);
    if (client->agent.ping)
        http_cancel(client->agent.transport, client->agent.ping);
}

bool slurm_agent_takes(const struct slurm_call *call)
{
    const struct slurm_client *client = call->client;

    return client->agent.is_up && !call->is_passed_on && client->version == SLURM_VERSION_MAX &&
           slurm_endpoint(call->endpoint)->agent & SLURM_VERB(call->verb);
}

/* A ping that is under way began before: its answer says nothing. */
void slurm_agent_lost(struct slurm_client *client)
{
    struct slurm_agent *agent = &client->agent;

    agent->lost++;
    agent->is_up = false;
    if (agent->ping)
        http_cancel(agent->transport, agent->ping);
    agent->ping = NULL;
    ping_later(client, 0);
}

bool slurm_agent_status(const struct slurm_client *client, struct slurm_agent_status *ret_status)
{
    const struct slurm_agent *agent = &client->agent;

    if (!agent->transport)
        return false;
    *ret_status = (struct slurm_agent_status){ .is_known = agent->is_known,
                                               .is_up = agent->was_up,
                                               .why = agent->why,
                                               .version = agent->version,
                                               .answered = agent->answered,
                                               .passed_on = agent->passed_on,
                                               .lost = agent->lost };
    return true;
}

bool slurm_agent_is_up(const struct slurm_client *client)
{
    return client->agent.is_up && client->version == SLURM_VERSION_MAX;
}

/* ---- calls of its own ---- */

struct slurm_call *slurm_job_complete(struct slurm_client *client, int64_t id, const char *sluid,
                                      uint32_t wait_status, slurm_done done, void *context)
{
    char name[24] = "";
    struct slurm_request request = { .verb = SLURM_POST, .endpoint = SLURM_JOB_COMPLETE };
    auto_buf struct buf body;

    if (id > 0) /* without its name the request is refused */
        (void)snprintf(name, sizeof(name), "%lld", (long long)id);
    request.name = str_of(name);
    buf_init(&body, MAX_COMPLETE);
    buf_add_text(&body, "{\"sluid\":");
    json_escape(&body, str_of(sluid));
    buf_printf(&body, ",\"return_code\":%u}", wait_status);
    request.body = buf_str(&body);
    return slurm_send(client, &request, done, context);
}

struct slurm_call *slurm_will_run(struct slurm_client *client, struct str body, slurm_done done,
                                  void *context)
{
    const struct slurm_request request = {
        .verb = SLURM_POST, .endpoint = SLURM_WILL_RUN, .body = body, .timeout_us = WILL_RUN_US
    };

    return slurm_send(client, &request, done, context);
}
