/* definitions.c - the operator's look at the definitions of its custom resources. */
#include "cmd/definitions.h"

#include "base/log.h"
#include "base/mem.h"
#include "cli/definitions.h"

enum { PERIOD_US = 15 * 1000000, ANSWER_US = 10 * 1000000, UNKNOWN = -1 };

static const struct kube_resource resource = { "apiextensions.k8s.io", "v1",
                                               "customresourcedefinitions",
                                               "CustomResourceDefinition", false };

struct definitions {
    struct loop *loop;
    struct kube_client *client;
    struct loop_timer timer;
    unsigned at;                       /* the one that is read */
    int64_t levels[DEFINITIONS_COUNT]; /* UNKNOWN: it could not be read */
};

static void look(void *context);

static void note(int64_t *level, int64_t now, const char *name)
{
    if (now != *level && now < DEFINITIONS_LEVEL)
        log_warn("a definition is older than this operator wants: the API server drops the fields "
                 "that it lacks; upgrade the chart slurm-operator-crds",
                 LOG_TEXT("definition", name), LOG_I64("level", now),
                 LOG_I64("wanted", DEFINITIONS_LEVEL));
    else if (now != *level && *level != UNKNOWN)
        log_info("the definition is as new as this operator wants", LOG_TEXT("definition", name));
    *level = now;
}

/* What could not be read is not told: it is no fact about the definition. */
static void on_answer(void *context, const struct kube_answer *answer)
{
    struct definitions *definitions = context;

    if (answer->outcome == KUBE_DONE)
        note(&definitions->levels[definitions->at], definitions_level(answer->object),
             definitions_names[definitions->at]);
    definitions->at = (definitions->at + 1) % DEFINITIONS_COUNT;
    loop_timer_start(definitions->loop, &definitions->timer, definitions->at == 0 ? PERIOD_US : 0,
                     look, definitions);
}

static void look(void *context)
{
    struct definitions *definitions = context;
    const struct kube_request request = { .verb = KUBE_GET,
                                          .resource = &resource,
                                          .name = definitions_names[definitions->at],
                                          .timeout_us = ANSWER_US };

    (void)kube_send(definitions->client, &request, on_answer, definitions);
}

static void write_state(void *context, struct buf *out)
{
    const struct definitions *definitions = context;
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = json_new_object(build), *levels;

    json_put_i64(build, root, "wanted", DEFINITIONS_LEVEL);
    levels = json_put_object(build, root, "levels");
    for (unsigned i = 0; i < DEFINITIONS_COUNT; i++)
        if (definitions->levels[i] != UNKNOWN)
            json_put_i64(build, levels, definitions_names[i], definitions->levels[i]);
    json_mut_write(root, out);
}

struct definitions *definitions_new(struct loop *loop, struct http_transport *api,
                                    struct health *health)
{
    struct definitions *definitions = mem_alloc(sizeof(*definitions));

    definitions->loop = loop;
    definitions->client = kube_client_new(loop, api);
    for (unsigned i = 0; i < DEFINITIONS_COUNT; i++)
        definitions->levels[i] = UNKNOWN;
    health_show(health, "definitions", write_state, definitions);
    loop_timer_start(loop, &definitions->timer, 0, look, definitions);
    return definitions;
}

void definitions_free(struct definitions *definitions)
{
    if (!definitions)
        return;
    loop_timer_stop(&definitions->timer);
    kube_client_free(definitions->client);
    mem_free(definitions);
}
