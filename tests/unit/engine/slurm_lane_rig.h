/* slurm_lane_rig.h - a lane on virtual time in front of scripted answers; shared by its tests.
 *
 * The poller is not started: tests fill the caches themselves, and its direct reads are answered by
 * the script. Every finished action is noted; finishing twice, or inside start, fails. */
#ifndef SLINC_TESTS_ENGINE_SLURM_LANE_RIG_H
#define SLINC_TESTS_ENGINE_SLURM_LANE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "engine/slurm_lane.h"
#include "engine/slurm_nodes.h"
#include "fake_transport.h"

#include <stdio.h>

#define V45  "/slurm/v0.0.45"
#define FINE "{\"errors\":[],\"warnings\":[]}"
enum { SECOND_US = 1000000, MS_US = 1000, MAX_ENDS = 1200 };

struct end {
    bool is_over;
    enum kube_outcome outcome;
    int64_t retry_after_us;
    char message[300];
};

struct rig {
    struct slurm_service service;
    struct slurm_lane lane;
    struct clock clock;
    struct loop *loop;
    struct fake_transport *fake, *api;
    struct slurm_token *token;
    struct slurm_client *client;
    struct kube_client *kube;
    struct slurm_poller *poller;
    struct slurm_cache *nodes;
    struct arena arena;
    struct plan plan;
    struct json_build *build;
    struct buf settled; /* "n1;" */
    struct end ends[MAX_ENDS];
    void *handles[MAX_ENDS];
    size_t started;
    bool is_starting, leads;
};

static struct rig *the_rig; /* finish is told only which end it is */

static inline struct slurm_lane *rig_lane(struct slurm_service *service,
                                          const struct slurm_action *action)
{
    (void)action;
    return &list_item(service, struct rig, service)->lane;
}

static inline bool rig_may_act(void *context)
{
    return ((struct rig *)context)->leads;
}

static inline void rig_settled(void *context, struct str name)
{
    buf_printf(&((struct rig *)context)->settled, STR_FMT ";", STR_ARG(name));
}

/* A list that began now has what the cache has. */
static inline void rig_sync(struct rig *rig)
{
    struct slurm_merge *merge = slurm_merge_new(rig->nodes, loop_now_us(rig->loop));
    struct slurm_cache_walk walk = slurm_cache_walk(rig->nodes);
    const struct slurm_object *object;

    while ((object = slurm_cache_next(&walk)))
        slurm_merge_add(merge, slurm_object_ref(object));
    assert_true(slurm_merge_commit(merge, NULL, NULL));
    slurm_merge_free(merge);
}

static inline int rig_up(void **state)
{
    struct rig *rig = mem_alloc(sizeof(*rig));
    struct slurm_client_options options = { .version = 45, .seed = 1 };

    clock_init_virtual(&rig->clock, INT64_C(1700000000) * SECOND_US);
    rig->loop = loop_new_virtual(&rig->clock);
    rig->fake = fake_transport_new(rig->loop);
    rig->api = fake_transport_new(rig->loop);
    assert_int_equal(slurm_token_new_minted(&rig->clock, STR("0123456789abcdef0123456789abcdef"),
                                            "slurm", 900, &rig->token, NULL),
                     0);
    rig->client = slurm_client_new(rig->loop, fake_http(rig->fake), rig->token, &options);
    rig->kube = kube_client_new(rig->loop, fake_http(rig->api));
    rig->poller = slurm_poller_new(rig->client, NULL);
    rig->nodes = slurm_poller_cache(rig->poller, SLURM_FEED_NODES);
    rig->service.lane_of = rig_lane;
    slurm_lane_init(&rig->lane, rig->loop);
    rig->lane.client = rig->client;
    rig->lane.poller = rig->poller;
    rig->lane.kube = rig->kube;
    rig->lane.may_act = rig_may_act;
    rig->lane.settled = rig_settled;
    rig->lane.context = rig;
    rig->lane.node_refusals = node_refusals_new();
    rig->leads = true;
    rig_sync(rig);
    clock_advance_us(&rig->clock, MS_US); /* what follows is later than the list */
    arena_init(&rig->arena, 64 << 20);
    plan_init(&rig->plan, &rig->arena);
    rig->build = json_build_new();
    buf_init(&rig->settled, 1 << 20);
    the_rig = rig;
    *state = rig;
    return 0;
}

static inline int rig_down(void **state)
{
    struct rig *rig = *state;

    slurm_lane_done(&rig->lane);
    slurm_poller_free(rig->poller);
    node_refusals_free(rig->lane.node_refusals);
    slurm_client_free(rig->client);
    slurm_token_free(rig->token);
    kube_client_free(rig->kube);
    fake_transport_free(rig->fake);
    fake_transport_free(rig->api);
    loop_free(rig->loop);
    arena_done(&rig->arena);
    json_build_free(rig->build);
    buf_done(&rig->settled);
    mem_free(rig);
    return 0;
}

/* Another rig in place of the test's own, for the next case of a table. */
static inline struct rig *rig_fresh(void **state)
{
    rig_down(state);
    rig_up(state);
    return *state;
}

static inline void rig_finished(void *context, const struct kube_answer *answer)
{
    struct end *end = context;

    assert_false(the_rig->is_starting);
    assert_false(end->is_over);
    end->is_over = true;
    end->outcome = answer->outcome;
    end->retry_after_us = answer->retry_after_us;
    (void)snprintf(end->message, sizeof(end->message), "%s", answer->message);
}

static inline struct end *rig_do(struct rig *rig, const struct action *action)
{
    size_t index = rig->started++;

    assert_true(index < MAX_ENDS);
    rig->is_starting = true;
    rig->handles[index] =
        action->type->start(&rig->service, action, rig_finished, &rig->ends[index]);
    rig->is_starting = false;
    return &rig->ends[index];
}

static inline void rig_cancel(struct rig *rig, const struct end *end)
{
    slurm_action_cancel(&rig->service, rig->handles[end - rig->ends]);
}

static inline void rig_run(struct rig *rig, int64_t us)
{
    fake_run_for(rig->fake, us);
}

static inline void rig_answers(struct rig *rig, const char *method, const char *path, int status,
                               const char *body)
{
    auto_buf struct buf whole = { .max = 1000 };

    buf_printf(&whole, V45 "%s", path);
    fake_answer(rig->fake, method, buf_text(&whole),
                (struct fake_answer){ .status = status, .body = body });
}

static inline const char *rig_refusal(int number, char text[200])
{
    snprintf(text, 200, "{\"errors\":[{\"error_number\":%d,\"error\":\"words of %d\"}]}", number,
             number);
    return text;
}

/* How many requests of this method went to a path that begins so. */
static inline size_t rig_sent(const struct rig *rig, const char *method, const char *path)
{
    size_t count = 0;

    for (size_t i = 0; i < fake_sent_count(rig->fake); i++) {
        const struct fake_sent *sent = fake_sent(rig->fake, i);

        count += strcmp(sent->method, method) == 0 &&
                 strncmp(sent->path + strlen(V45), path, strlen(path)) == 0;
    }
    return count;
}

/* The answer to a direct read. */
static inline void rig_reads_node(struct rig *rig, const char *name)
{
    char path[64], body[200];

    snprintf(path, sizeof(path), "/node/%s", name);
    snprintf(body, sizeof(body), "{\"nodes\":[{\"name\":\"%s\"}],\"errors\":[]}", name);
    rig_answers(rig, "GET", path, 200, body);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_up, rig_down)

#endif
