/* app.c - the whole program around the plan: caches, informers, lease, engine. */
#include "app.h"

#include "base/log.h"
#include "base/mem.h"

struct app {
    struct rand rand;
    struct kube_client *client, *lease_client;
    struct kube_cache *configmaps, *namespaces;
    struct kube_informer *configmap_informer, *namespace_informer;
    struct configcopy copy;
    struct metrics *metrics;
    struct kube_lease *lease;
    struct engine *engine;
};

static bool may_act(void *context)
{
    const struct app *app = context;

    return kube_lease_is_held(app->lease);
}

struct app *app_new(struct loop *loop, struct http_transport *api, struct http_transport *lease_api,
                    const struct app_options *options)
{
    struct app *app = mem_alloc(sizeof(*app));
    const struct clock *clock = loop_clock(loop);
    const struct kube_informer_options informing = { .page = options->page };

    rand_init(&app->rand, options->seed);
    app->client = kube_client_new(loop, api);
    app->lease_client = kube_client_new(loop, lease_api);
    app->configmaps = kube_cache_new(&configcopy_configmap_kind, clock);
    app->namespaces = kube_cache_new(&configcopy_namespace_kind, clock);
    app->configmap_informer =
        kube_informer_new(app->client, app->configmaps, &app->rand, &informing);
    app->namespace_informer =
        kube_informer_new(app->client, app->namespaces, &app->rand, &informing);
    app->lease = kube_lease_new(app->lease_client, &app->rand,
                                &(struct kube_lease_options){ .ns = options->lease_ns,
                                                              .name = "configcopy",
                                                              .identity = options->identity });
    app->metrics = metrics_new();
    app->engine = engine_new(app->client, &app->rand, app->metrics,
                             &(struct engine_options){ .max_in_flight = options->max_in_flight,
                                                       .may_act = may_act,
                                                       .may_act_context = app });
    configcopy_init(&app->copy, options->source_ns, app->configmaps, app->namespaces);
    engine_add(app->engine, &app->copy.controller);
    return app;
}

static void on_lease(void *context, bool held)
{
    struct app *app = context;

    log_info(held ? "leading" : "no longer leading");
    if (held)
        engine_wake(app->engine);
}

void app_start(struct app *app)
{
    kube_informer_start(app->configmap_informer);
    kube_informer_start(app->namespace_informer);
    kube_lease_start(app->lease, on_lease, app);
    engine_start(app->engine);
}

/* In the opposite order of use: first those who call, then what is called. */
void app_free(struct app *app)
{
    if (!app)
        return;
    kube_informer_free(app->configmap_informer);
    kube_informer_free(app->namespace_informer);
    engine_free(app->engine);
    kube_lease_free(app->lease);
    metrics_free(app->metrics);
    kube_cache_free(app->configmaps);
    kube_cache_free(app->namespaces);
    kube_client_free(app->client);
    kube_client_free(app->lease_client);
    mem_free(app);
}

bool app_is_leader(const struct app *app)
{
    return kube_lease_is_held(app->lease);
}

struct engine *app_engine(const struct app *app)
{
    return app->engine;
}

struct metrics *app_metrics(const struct app *app)
{
    return app->metrics;
}

struct kube_lease *app_lease(const struct app *app)
{
    return app->lease;
}

void app_add_health(const struct app *app, struct health *health)
{
    health_watch(health, app->configmaps, app->configmap_informer, 0);
    health_watch(health, app->namespaces, app->namespace_informer, 0);
}
