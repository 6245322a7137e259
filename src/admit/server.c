/* server.c - the paths of the bridge's webhook. */
#include "admit/server.h"

_Static_assert(ADMIT_MAX_BODY == (int)WEBHOOK_MAX_BODY, "what is read can be parsed");

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

static struct webhook_answer review(const struct admit *admit, enum admit_hook hook,
                                    struct str body, struct buf *out)
{
    struct admit_answer answer = admit_review(admit, hook, body, out);

    return (struct webhook_answer){ answer.status, admit_verdict_name(answer.verdict),
                                    answer.is_early };
}

static struct webhook_answer mutate(void *context, struct str body, struct buf *out)
{
    return review(context, ADMIT_MUTATE, body, out);
}

static struct webhook_answer validate(void *context, struct str body, struct buf *out)
{
    return review(context, ADMIT_VALIDATE, body, out);
}

int admit_server_new(struct loop *loop, struct admit *admit, struct webhook_options options,
                     struct webhook_server **ret_server, struct err *err)
{
    const struct webhook_path paths[] = { { "/mutate--v1-pod", mutate, admit },
                                          { "/validate--v1-pod", validate, admit } };

    options.paths = paths;
    options.path_count = sizeof(paths) / sizeof(paths[0]);
    options.results = &admit_metrics[0];
    options.held = &admit_metrics[1];
    return webhook_server_new(loop, &options, ret_server, err);
}
