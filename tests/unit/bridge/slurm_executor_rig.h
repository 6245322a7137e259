/* slurm_executor_rig.h - an executor on virtual time in front of scripted answers; shared by its
 * tests.
 *
 * The poller is not started: tests fill the caches themselves, and its direct reads are answered by
 * the script. Every finished action is noted; finishing twice, or inside start, fails. */
#ifndef SLINC_TESTS_BRIDGE_SLURM_EXECUTOR_RIG_H
#define SLINC_TESTS_BRIDGE_SLURM_EXECUTOR_RIG_H

#include "base/mem.h"
#include "bridge/slurm/slurm_action.h"
#include "fake_transport.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define V45 "/slurm/v0.0.45"
enum { SECOND_US = 1000000, MS_US = 1000, MAX_ENDS = 1200 };

static unsigned rig_version = 45; /* of the API: what the next rig speaks, and gets answers to */

struct end {
    bool is_over;
    enum kube_outcome outcome;
    int64_t retry_after_us, at_us;
    char message[300];
};

struct rig {
    struct clock clock;
    struct loop *loop;
    struct fake_transport *fake, *api;
    const char *objection; /* of the guard to every submit; NULL */
    struct slurm_token *token;
    struct slurm_client *slurm;
    struct kube_client *kube;
    struct slurm_poller *poller;
    struct slurm_cache *jobs, *nodes;
    struct unit_states *unit_states;
    struct node_refusals *node_refusals;
    struct capacity *capacity;
    struct metrics *metrics;
    struct slurm_executor *executor;
    struct arena arena;
    struct plan plan;
    struct json_build *build;
    struct job_desc job;
    struct buf woken; /* "unit ns/uid;" and "node n1;" */
    struct end ends[MAX_ENDS];
    void *handles[MAX_ENDS];
    size_t started;
    bool is_starting;
};

static const struct slurm_owner rig_owner = { .cluster = { "c", 1 }, .release = { "r", 1 } };

static struct rig *the_rig; /* finish is told only which end it is */

static inline void rig_wake_unit(void *context, struct str key)
{
    struct rig *rig = context;

    buf_printf(&rig->woken, "unit " STR_FMT ";", STR_ARG(key));
}

static inline void rig_wake_node(void *context, struct str name)
{
    struct rig *rig = context;

    buf_printf(&rig->woken, "node " STR_FMT ";", STR_ARG(name));
}

static inline void rig_sync(struct rig *rig, struct slurm_cache *cache)
{
    struct slurm_merge *merge = slurm_merge_new(cache, loop_now_us(rig->loop));
    struct slurm_cache_walk walk = slurm_cache_walk(cache);
    const struct slurm_object *object;

    while ((object = slurm_cache_next(&walk)))
        slurm_merge_add(merge, slurm_object_ref(object));
    assert_true(slurm_merge_commit(merge, NULL, NULL));
    slurm_merge_free(merge);
}

/* The guard of the bridge is place_submit_objection; the worlds try it. */
static inline const char *rig_object_to_submit(void *context, struct str key, uint64_t desc_hash,
                                               struct arena *arena)
{
    const struct rig *rig = context;
    const char *pause_why;

    (void)key;
    (void)desc_hash;
    (void)arena;
    if (slurm_executor_denied_us(rig->executor) &&
        slurm_executor_pause_us(rig->executor, &pause_why) > loop_now_us(rig->loop))
        return "Slurm cannot be used";
    return rig->objection;
}

static inline void rig_actor(struct rig *rig, int64_t submits_per_second)
{
    slurm_executor_free(rig->executor);
    rig->executor = slurm_executor_new(
        &(struct slurm_executor_options){ .slurm = rig->slurm,
                                          .poller = rig->poller,
                                          .kube = rig->kube,
                                          .unit_states = rig->unit_states,
                                          .node_refusals = rig->node_refusals,
                                          .capacity = rig->capacity,
                                          .metrics = rig->metrics,
                                          .owner = &rig_owner,
                                          .submits_per_second = submits_per_second,
                                          .object_to_submit = rig_object_to_submit,
                                          .wake_unit = rig_wake_unit,
                                          .wake_node = rig_wake_node,
                                          .context = rig });
}

static inline int rig_up(void **state)
{
    struct rig *rig = mem_alloc(sizeof(*rig));
    struct slurm_client_options options = { .version = rig_version, .seed = 1 };

    clock_init_virtual(&rig->clock, INT64_C(1700000000) * SECOND_US);
    rig->loop = loop_new_virtual(&rig->clock);
    rig->fake = fake_transport_new(rig->loop);
    rig->api = fake_transport_new(rig->loop);
    assert_int_equal(slurm_token_new_minted(&rig->clock, STR("0123456789abcdef0123456789abcdef"),
                                            "slurm", 900, &rig->token, NULL),
                     0);
    rig->slurm = slurm_client_new(rig->loop, fake_http(rig->fake), rig->token, &options);
    rig->kube = kube_client_new(rig->loop, fake_http(rig->api));
    rig->poller =
        slurm_poller_new(rig->slurm, &(struct slurm_poller_options){ .owner = &rig_owner });
    rig->jobs = slurm_poller_cache(rig->poller, SLURM_FEED_JOBS);
    rig->nodes = slurm_poller_cache(rig->poller, SLURM_FEED_NODES);
    rig->unit_states = unit_states_new();
    rig->node_refusals = node_refusals_new();
    rig->capacity = capacity_new(rig->loop, rig->jobs, rig->nodes);
    rig->metrics = metrics_new();
    rig_actor(rig, 0);
    rig_sync(rig, rig->jobs);
    rig_sync(rig, rig->nodes);
    clock_advance_us(&rig->clock, MS_US); /* what follows is later than the lists */
    arena_init(&rig->arena, 64 << 20);
    plan_init(&rig->plan, &rig->arena);
    rig->build = json_build_new();
    buf_init(&rig->woken, 1 << 20);
    job_desc_init(&rig->job);
    rig->job.name = "job";
    rig->job.partition = "p";
    rig->job.exclusive = false;
    the_rig = rig;
    *state = rig;
    return 0;
}

static inline int rig_down(void **state)
{
    struct rig *rig = *state;

    slurm_executor_free(rig->executor);
    slurm_poller_free(rig->poller);
    capacity_free(rig->capacity);
    unit_states_free(rig->unit_states);
    node_refusals_free(rig->node_refusals);
    slurm_client_free(rig->slurm);
    slurm_token_free(rig->token);
    kube_client_free(rig->kube);
    fake_transport_free(rig->fake);
    fake_transport_free(rig->api);
    loop_free(rig->loop);
    metrics_free(rig->metrics);
    arena_done(&rig->arena);
    json_build_free(rig->build);
    buf_done(&rig->woken);
    mem_free(rig);
    return 0;
}

/* ---- actions ---- */

static inline void rig_finished(void *context, const struct kube_answer *answer)
{
    struct end *end = context;

    assert_false(the_rig->is_starting);
    assert_false(end->is_over);
    end->is_over = true;
    end->outcome = answer->outcome;
    end->retry_after_us = answer->retry_after_us;
    end->at_us = loop_now_us(the_rig->loop);
    snprintf(end->message, sizeof(end->message), "%s", answer->message);
}

static inline struct end *rig_do(struct rig *rig, const struct action *action)
{
    size_t index = rig->started++;

    assert_true(index < MAX_ENDS);
    rig->is_starting = true;
    rig->handles[index] =
        action->type->start(rig->executor, action, rig_finished, &rig->ends[index]);
    rig->is_starting = false;
    return &rig->ends[index];
}

static inline void rig_cancel(struct rig *rig, const struct end *end)
{
    action_slurm.cancel(rig->executor, rig->handles[end - rig->ends]);
}

static inline void rig_run(struct rig *rig, int64_t us)
{
    fake_run_for(rig->fake, us);
}

static inline void rig_answers(struct rig *rig, const char *method, const char *path, int status,
                               const char *body)
{
    auto_buf struct buf whole = { .max = 1000 };

    buf_printf(&whole, "/slurm/v0.0.%u%s", rig_version, path);
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

        if (strcmp(sent->method, method) == 0 &&
            strncmp(sent->path + strlen(V45), path, strlen(path)) == 0)
            count++;
    }
    return count;
}

static inline const struct fake_sent *rig_last(const struct rig *rig, const char *method)
{
    for (size_t i = fake_sent_count(rig->fake); i-- > 0;)
        if (strcmp(fake_sent(rig->fake, i)->method, method) == 0)
            return fake_sent(rig->fake, i);
    fail_msg("no %s was sent", method);
    return NULL;
}

/* ---- caches ---- */

/* Nothing else happens meanwhile; listeners hear of it when the loop runs. */
static inline void rig_see(struct rig *rig, struct slurm_cache *cache, const char *text)
{
    const struct slurm_kind *kind = cache == rig->jobs ? &slurm_job_kind : &slurm_node_kind;
    auto_json_doc struct json_doc *doc = NULL;
    const struct slurm_object *object;

    assert_int_equal(json_parse(str_of(text), 100000, &doc, NULL), 0);
    assert_int_equal(slurm_object_decode(kind, json_root(doc), &object, NULL), 0);
    assert_true(slurm_cache_seen(cache, object, loop_now_us(rig->loop)));
    slurm_object_unref(object);
}

static inline const char *rig_job_text(int id, const char *sluid, const char *state,
                                       const char *key)
{
    static char text[1000];

    snprintf(text, sizeof(text),
             "{\"job_id\":%d,\"step_id\":{\"sluid\":\"%s\"},\"job_state\":[\"%s\"],\"partition\":"
             "\"p\",\"flags\":[\"EXTERNAL_JOB\"],\"extra\":\"%s\",\"admin_comment\":\"{"
             "\\\"cluster\\\":\\\"c\\\",\\\"release\\\":\\\"r\\\",\\\"unit\\\":"
             "\\\"%s\\\"}\"}",
             id, sluid, state, key, key);
    return text;
}

static inline void rig_job(struct rig *rig, int id, const char *sluid, const char *state,
                           const char *key)
{
    rig_see(rig, rig->jobs, rig_job_text(id, sluid, state, key));
}

static inline const struct slurm_job *rig_shown(const struct rig *rig, const char *id)
{
    const struct slurm_object *object = slurm_cache_get(rig->jobs, id);

    return object ? slurm_job_of(object) : NULL;
}

/* The answer to a direct read. */
static inline void rig_reads_job(struct rig *rig, int id, const char *state, const char *key)
{
    char path[64], body[1200];

    snprintf(path, sizeof(path), "/job/%d", id);
    snprintf(body, sizeof(body), "{\"jobs\":[%s],\"errors\":[]}",
             rig_job_text(id, "s", state, key));
    rig_answers(rig, "GET", path, 200, body);
}

static inline double rig_count(const struct rig *rig, const char *name, const char *a,
                               const char *b)
{
    for (size_t i = 0; i < slurm_executor_metric_count; i++)
        if (strcmp(slurm_executor_metrics[i].name, name) == 0)
            return metrics_get(rig->metrics, &slurm_executor_metrics[i], a, b, NULL);
    fail_msg("no metric %s", name);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_up, rig_down)

#endif
