/* admit_server.c - the paths of the bridge's webhook. */
#include "bridge/admit_server.h"

#include "base/mem.h"
#include "engine/webhook.h"

enum { HOOKS = ADMIT_VALIDATE + 1 };
_Static_assert(ADMIT_MAX_BODY == (int)WEBHOOK_MAX_BODY, "what is read can be parsed");

static const char *const paths[HOOKS] = {
    [ADMIT_MUTATE] = "/mutate--v1-pod", [ADMIT_VALIDATE] = "/validate--v1-pod"
};

const struct metric_family admit_metrics[] = {
    { .name = "slinc_bridge_admissions_total",
      .help = "Answers of the webhook: allowed, changed, refused, not-known or unreadable.",
      .type = METRIC_COUNTER,
      .labels = { "webhook", "verdict" } },
    { .name = "slinc_bridge_admissions_held_total",
      .help = "Answers held back because a namespace or an owner was not seen yet.",
      .type = METRIC_COUNTER,
      .labels = { "webhook" } },
};
const size_t admit_metric_count = sizeof(admit_metrics) / sizeof(admit_metrics[0]);

struct hook {
    const struct admit *admit;
    enum admit_hook which;
};

struct admit_server {
    struct hook hooks[HOOKS];
    struct webhook_server *webhook;
};

static struct webhook_answer review(void *context, struct str body, struct buf *out)
{
    const struct hook *hook = context;
    struct admit_answer answer = admit_review(hook->admit, hook->which, body, out);

    return (struct webhook_answer){ answer.status, admit_verdict_name(answer.verdict),
                                    answer.is_early };
}

int admit_server_new(struct loop *loop, const struct admit_server_options *options,
                     struct admit_server **ret_server, struct err *err)
{
    struct admit_server *server = mem_alloc(sizeof(*server));
    struct webhook_path table[HOOKS];
    const struct webhook_options webhook = { .paths = table,
                                             .path_count = HOOKS,
                                             .metrics = options->metrics,
                                             .results = &admit_metrics[0],
                                             .held = &admit_metrics[1],
                                             .address = options->address,
                                             .port = options->port,
                                             .folder = options->folder,
                                             .reload_us = options->look_us,
                                             .hold_us = options->hold_us,
                                             .is_needed = options->is_needed };
    int result;

    for (unsigned i = 0; i < HOOKS; i++) {
        server->hooks[i] = (struct hook){ options->admit, (enum admit_hook)i };
        table[i] = (struct webhook_path){ paths[i], review, &server->hooks[i] };
    }
    result = webhook_server_new(loop, &webhook, &server->webhook, err);
    if (result < 0)
        mem_free(server);
    else
        *ret_server = server;
    return result;
}

void admit_server_free(struct admit_server *server)
{
    if (!server)
        return;
    webhook_server_free(server->webhook);
    mem_free(server);
}

bool admit_server_is_serving(const struct admit_server *server)
{
    return webhook_server_is_serving(server->webhook);
}

uint16_t admit_server_port(const struct admit_server *server)
{
    return webhook_server_port(server->webhook);
}

void admit_server_add_health(struct admit_server *server, struct health *health)
{
    webhook_server_add_health(server->webhook, health);
}
