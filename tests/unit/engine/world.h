/* world.h - an engine on virtual time, a scripted API server, and a controller made of a test. */
#ifndef SLINC_TESTS_ENGINE_WORLD_H
#define SLINC_TESTS_ENGINE_WORLD_H

#include "../kube/fake_transport.h"
#include "base/log.h"
#include "engine/engine.h"
#include "engine/engine_metrics.h"
#include "kube/kinds.h"

#include <stdio.h>

#define MAPS "/api/v1/namespaces/a/configmaps"

enum { MS = 1000, SECOND = 1000000 }; /* of virtual time, in microseconds */

struct world;
typedef int (*world_plan)(struct world *world, struct str key, struct plan *plan, struct err *err);

struct world {
    struct clock clock;
    struct loop *loop;
    struct rand rand;
    struct fake_transport *fake;
    struct kube_client *client;
    struct metrics *metrics;
    struct kube_cache *cache; /* of ConfigMaps */
    struct kube_cache *more;  /* a second one, if the test makes it */
    struct engine *engine;
    struct controller controller;
    struct controller_watch watch;
    struct json_build *build;

    world_plan plan;
    unsigned plans; /* how often plan was called */
    bool may_act;
    unsigned asked; /* how often may_act was */
    unsigned troubles, recoveries;
    struct kube_answer trouble; /* the last one; texts are not kept */
    unsigned log_lines;
    bool stopped;
};

static const struct kube_kind world_kind = { .resource = &kube_configmaps };

static inline int world_do_plan(struct controller *controller, struct str key, struct plan *plan,
                                struct err *err)
{
    struct world *world = controller->context;

    world->plans++;
    return world->plan ? world->plan(world, key, plan, err) : 0;
}

static inline bool world_may_act(void *context)
{
    struct world *world = context;

    world->asked++;
    return world->may_act;
}

static inline void world_trouble(void *context, const struct controller *controller, struct str key,
                                 const struct action *action, const struct kube_answer *answer)
{
    struct world *world = context;

    world->trouble = *answer;
    if (action)
        world->troubles++;
    else
        world->recoveries++;
}

static inline void world_log(void *context, struct str line)
{
    struct world *world = context;

    world->log_lines++;
}

static inline void world_stopped(void *context)
{
    struct world *world = context;

    world->stopped = true;
}

static inline void world_set_up(struct world *world, const struct engine_options *more)
{
    struct engine_options options = more ? *more : (struct engine_options){ 0 };

    *world = (struct world){ .may_act = true };
    clock_init_virtual(&world->clock, INT64_C(1700000000000000));
    log_setup(&(struct log_options){
        .clock = &world->clock, .sink = world_log, .context = world, .format = LOG_FORMAT_JSON });
    world->loop = loop_new_virtual(&world->clock);
    rand_init(&world->rand, 1);
    world->fake = fake_transport_new(world->loop);
    world->client = kube_client_new(world->loop, fake_http(world->fake));
    world->metrics = metrics_new();
    world->cache = kube_cache_new(&world_kind, &world->clock);
    world->build = json_build_new();
    options.may_act = world_may_act;
    options.may_act_context = world;
    options.trouble = world_trouble;
    options.trouble_context = world;
    world->engine = engine_new(world->client, &world->rand, world->metrics, &options);
    world->watch = (struct controller_watch){ .cache = world->cache };
    world->controller = (struct controller){ .name = "tester",
                                             .watches = &world->watch,
                                             .watch_count = 1,
                                             .plan = world_do_plan,
                                             .context = world };
    engine_add(world->engine, &world->controller);
}

static inline void world_tear_down(struct world *world)
{
    engine_free(world->engine);
    kube_client_free(world->client);
    fake_transport_free(world->fake);
    kube_cache_free(world->cache);
    kube_cache_free(world->more);
    metrics_free(world->metrics);
    json_build_free(world->build);
    loop_free(world->loop);
    log_setup(NULL);
}

static inline void world_run(struct world *world, int64_t us)
{
    fake_run_for(world->fake, us);
}

static inline struct json_mut *world_value(struct world *world, const char *text)
{
    struct json_doc *doc = NULL;
    struct json_mut *copy;

    assert_int_equal(json_parse(str_of(text), 1 << 20, &doc, NULL), 0);
    copy = json_copy(world->build, json_root(doc));
    json_doc_free(doc);
    return copy;
}

/* {"kind":"ConfigMap", ... "data":{"k":value}} */
static inline const char *world_map_text(const char *name, unsigned version, const char *value)
{
    static char text[4][400];
    static unsigned next;
    char *into = text[next++ % 4];

    snprintf(into, sizeof(text[0]),
             "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"namespace\":\"a\","
             "\"name\":\"%s\",\"uid\":\"u-%s\",\"resourceVersion\":\"%u\"},\"data\":{\"k\":"
             "\"%s\"}}",
             name, name, version, value);
    return into;
}

static inline void world_see(struct world *world, const char *name, unsigned version,
                             const char *value)
{
    const struct kube_object *object = NULL;
    struct json_doc *doc = NULL;

    assert_int_equal(json_parse(str_of(world_map_text(name, version, value)), 1000, &doc, NULL), 0);
    assert_int_equal(kube_object_decode(&world_kind, json_root(doc), &object, NULL), 0);
    json_doc_free(doc);
    kube_cache_seen(world->cache, object);
    kube_object_unref(object);
}

/* One list has ended; with what was seen since relist_begin. */
static inline void world_sync(struct world *world)
{
    kube_cache_relist_begin(world->cache);
    kube_cache_relist_end(world->cache, 10);
}

/* data.k of a ConfigMap as plans see it; "" when there is none. */
static inline const char *world_value_of(const struct world *world, const char *name)
{
    const struct kube_object *object = kube_cache_get(world->cache, "a", name);
    const struct kube_tree *tree = (const struct kube_tree *)(const void *)object;

    return object ? json_str(json_at(tree->root, "data", "k")).at : "";
}

static inline struct action *world_patch(struct world *world, struct plan *plan, const char *name,
                                         const char *value)
{
    char text[200];

    snprintf(text, sizeof(text), "{\"data\":{\"k\":\"%s\"}}", value);
    return plan_merge_patch(plan, world->cache, &kube_configmaps, "a", name, NULL, NULL,
                            world_value(world, text));
}

static inline struct action *world_create(struct world *world, struct plan *plan, const char *name,
                                          const char *value)
{
    char text[200];

    snprintf(text, sizeof(text), "{\"metadata\":{\"name\":\"%s\"},\"data\":{\"k\":\"%s\"}}", name,
             value);
    return plan_create(plan, world->cache, &kube_configmaps, "a", world_value(world, text));
}

static inline void world_ok(struct world *world, const char *method, const char *path,
                            const char *body, int64_t delay_us)
{
    fake_answer(world->fake, method, path,
                (struct fake_answer){ .status = 200, .body = body, .delay_us = delay_us });
}

static inline const char *world_sent_path(struct world *world, size_t index)
{
    return fake_sent_count(world->fake) > index ? fake_sent(world->fake, index)->path : "nothing";
}

/* ---- beginnings that many tests share ---- */

static inline void world_begin(struct world *world, const struct engine_options *options)
{
    world_set_up(world, options);
    engine_start(world->engine);
    world_sync(world);
    world_run(world, 60 * MS);
}

/* There is a ConfigMap m that says "old". */
static inline void world_begin_with_map(struct world *world)
{
    world_begin(world, NULL);
    world_see(world, "m", 11, "old");
    world_run(world, MS);
    world->plans = 0;
}

/* Plans for one key, a/x, once; later looks find nothing to do. */
static inline void world_plan_once(struct world *world, world_plan plan)
{
    world->plan = plan;
    engine_enqueue(&world->controller, STR("a/x"));
}

/* A plan for a/x: m is to say "new". */
static inline int world_plan_patch(struct world *world, struct str key, struct plan *plan,
                                   struct err *err)
{
    if (str_is(key, "a/x") && !str_is(STR("new"), world_value_of(world, "m")))
        world_patch(world, plan, "m", "new");
    return 0;
}

/* A plan for any key: its ConfigMap is to exist. */
static inline int world_plan_create(struct world *world, struct str key, struct plan *plan,
                                    struct err *err)
{
    char name[16];

    snprintf(name, sizeof(name), STR_FMT, STR_ARG(str_sub(key, 2, key.len)));
    if (!kube_cache_get(world->cache, "a", name))
        world_create(world, plan, name, "1");
    return 0;
}

#endif
