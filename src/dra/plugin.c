/* plugin.c - ties the parts of the kubelet plugin together. */
#include "dra/plugin.h"

#include "base/log.h"
#include "base/mem.h"
#include "dra/device_health.h"
#include "dra/files.h"
#include "dra/install.h"
#include "dra/kinds.h"
#include "dra/kubelet_api.h"
#include "dra/metrics.h"
#include "dra/names.h"
#include "dra/preparer.h"
#include "dra/slices.h"
#include "dra/sweep.h"
#include "engine/watch_set.h"

#include <stdio.h>

enum {
    SWEEP_US = 5000000,
    CHECK_US = 60000000,
    MAX_MESSAGE = 64 * 1024,
    ARENA = 1 << 20,
};

struct dra_plugin {
    struct loop *loop;
    struct dra_options options;
    struct buf folder, service_path, registrar_path, records, hook;
    struct cdi cdi;
    struct prepared *prepared;
    struct preparer *preparer;
    struct node_check check;
    char problem[300];
    struct loop_timer sweep_timer, check_timer;

    struct rand rand;
    struct metrics *metrics;
    struct kube_client *client;
    struct kube_cache *node_cache, *slice_cache;
    struct slices slices;
    struct engine *engine;
    struct watch_set *watches;

    struct grpc_server *service, *registrar;
    bool is_registered;
    struct err registration; /* what the kubelet said last, when it refused */
    struct device_health health;
};

/* ---- calls of the kubelet ---- */

static void on_get_info(void *context, struct str message, struct grpc_call *call)
{
    struct dra_plugin *plugin = context;
    struct str version = STR("v1.DRAPlugin");
    struct kubelet_plugin_info info = { .type = STR("DRAPlugin"),
                                        .name = STR(DRA_DRIVER),
                                        .endpoint = buf_str(&plugin->service_path),
                                        .versions = { &version, 1 } };
    auto_buf struct buf out;

    (void)message; /* the request is empty */
    buf_init(&out, MAX_MESSAGE);
    protobuf_encode(&kubelet_plugin_info_message, &info, &out);
    grpc_reply(call, buf_str(&out));
}

static void on_notify(void *context, struct str message, struct grpc_call *call)
{
    struct dra_plugin *plugin = context;
    struct kubelet_registration_status status;
    auto_arena struct arena arena;
    struct err err = { .class = 0 };

    arena_init(&arena, ARENA);
    if (protobuf_decode(&kubelet_registration_status_message, message, &arena, &status, &err) < 0) {
        grpc_fail(call, GRPC_INVALID_ARGUMENT, "%s", err.text);
        return;
    }
    plugin->is_registered = status.is_registered;
    err_write(&plugin->registration, ERR_UNAVAILABLE, "the kubelet did not register us: " STR_FMT,
              STR_ARG(status.error));
    if (status.is_registered)
        log_info("registered with the kubelet");
    else
        log_error("the kubelet refused the plugin", LOG_STR("error", status.error));
    grpc_reply(call, STR(""));
}

static void on_prepare(void *context, struct str message, struct grpc_call *call)
{
    struct dra_plugin *plugin = context;

    preparer_prepare(plugin->preparer, message, call);
}

static void on_unprepare(void *context, struct str message, struct grpc_call *call)
{
    struct dra_plugin *plugin = context;

    preparer_unprepare(plugin->preparer, message, call);
}

static void on_watch_health(void *context, struct str message, struct grpc_call *call)
{
    struct dra_plugin *plugin = context;

    (void)message; /* the request is empty */
    device_health_watch(&plugin->health, call);
}

static const struct grpc_method registrar_methods[] = {
    { KUBELET_GET_INFO, on_get_info, false },
    { KUBELET_NOTIFY, on_notify, false },
};

static const struct grpc_method service_methods[] = {
    { KUBELET_PREPARE, on_prepare, false },
    { KUBELET_UNPREPARE, on_unprepare, false },
    { KUBELET_WATCH_HEALTH, on_watch_health, true },
};

/* ---- looking at the node ---- */

static struct node_paths paths_of(const struct dra_options *options, const char *hook)
{
    return (struct node_paths){ .sys = options->sys,
                                .kubelet_root = options->kubelet_root,
                                .cdi_folder = options->cdi_folder,
                                .hook = hook };
}

static void look_at_node(void *context)
{
    struct dra_plugin *plugin = context;
    struct node_paths paths = paths_of(&plugin->options, buf_text(&plugin->hook));
    struct topology *old = plugin->check.topology;
    const struct node_check_row *row;
    char problem[sizeof(plugin->problem)] = "";

    node_check_run(&paths, &plugin->check);
    row = node_check_problem(&plugin->check);
    if (row)
        (void)snprintf(problem, sizeof(problem), "%s: %s", row->name, row->text);
    if (row && strcmp(problem, plugin->problem) != 0)
        log_error("this node cannot pin containers", LOG_TEXT("problem", problem));
    else if (!row && plugin->problem[0])
        log_info("this node can pin containers again");
    memcpy(plugin->problem, problem, sizeof(problem));
    plugin->slices.topology = row ? NULL : plugin->check.topology;
    plugin->slices.problem = row ? plugin->problem : NULL;
    preparer_set_node(plugin->preparer, plugin->slices.topology, plugin->slices.problem);
    device_health_set(&plugin->health, plugin->check.topology, plugin->slices.problem);
    slices_changed(&plugin->slices);
    topology_free(old);
    loop_timer_start(plugin->loop, &plugin->check_timer, CHECK_US, look_at_node, plugin);
}

static void sweep(void *context)
{
    struct dra_plugin *plugin = context;
    struct sweep_result result;
    struct err err = { .class = 0 };
    int failed = sweep_records(buf_text(&plugin->records), &result, &err);

    if (failed < 0 && failed != -ERR_UNAVAILABLE)
        log_error("cannot look at pinned containers", LOG_ERROR(&err));
    if (failed == 0) {
        metrics_set(plugin->metrics, &dra_metric_containers, result.containers, NULL);
        metrics_add(plugin->metrics, &dra_metric_repairs, result.repairs, NULL);
        if (result.repairs > 0)
            log_warn("set cpusets again that somebody changed", LOG_U64("count", result.repairs),
                     LOG_TEXT("last", result.last_repair));
        if (result.errors > 0)
            log_error("cannot repair cpusets", LOG_U64("count", result.errors),
                      LOG_ERROR(&result.last_error));
    }
    metrics_set(plugin->metrics, &dra_metric_claims, (double)prepared_count(plugin->prepared),
                NULL);
    loop_timer_start(plugin->loop, &plugin->sweep_timer, SWEEP_US, sweep, plugin);
}

/* ---- the life of the plugin ---- */

/* A reboot empties /var/run; a new version has a new hook. */
static int write_cdi_files(struct dra_plugin *plugin, struct err *err)
{
    const struct prepared_claim *claim;

    for (size_t i = 0; (claim = prepared_at(plugin->prepared, i)); i++) {
        int result = cdi_write(&plugin->cdi, claim, err);

        if (result < 0)
            return err_wrap(err, "claim %s/%s", claim->ns, claim->name);
    }
    return 0;
}

static int open_state(struct dra_plugin *plugin, struct err *err)
{
    auto_buf struct buf checkpoint;
    int result;

    buf_init(&checkpoint, FILES_MAX_PATH);
    path_join(&checkpoint, buf_text(&plugin->folder), "checkpoint.json");
    if ((result = folder_make(buf_text(&plugin->records), 0700, err)) < 0 ||
        (result = install_hook(plugin->options.hook_program, buf_text(&plugin->folder),
                               &plugin->hook, err)) < 0 ||
        (result = prepared_open(buf_text(&checkpoint), &plugin->prepared, err)) < 0)
        return result;
    plugin->cdi = (struct cdi){ .folder = plugin->options.cdi_folder,
                                .hook = buf_text(&plugin->hook),
                                .records = buf_text(&plugin->records) };
    return write_cdi_files(plugin, err);
}

static void set_paths(struct dra_plugin *plugin)
{
    const char *root = plugin->options.kubelet_root;
    struct buf *all[] = { &plugin->folder, &plugin->service_path, &plugin->registrar_path,
                          &plugin->records, &plugin->hook };

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        buf_init(all[i], FILES_MAX_PATH);
    path_join(&plugin->folder, root, "plugins", DRA_DRIVER);
    path_join(&plugin->service_path, buf_text(&plugin->folder), "dra.sock");
    path_join(&plugin->registrar_path, root, "plugins_registry", DRA_DRIVER "-reg.sock");
    path_join(&plugin->records, buf_text(&plugin->folder), "containers");
}

static void make_engine(struct dra_plugin *plugin, struct http_transport *api)
{
    auto_buf struct buf node_selector, slice_selector;

    buf_init(&node_selector, FILES_MAX_PATH);
    buf_init(&slice_selector, FILES_MAX_PATH);
    buf_printf(&node_selector, "metadata.name=%s", plugin->options.node);
    buf_printf(&slice_selector, "spec.nodeName=%s,spec.driver=" DRA_DRIVER, plugin->options.node);
    plugin->client = kube_client_new(plugin->loop, api);
    plugin->node_cache = kube_cache_new(&dra_node_kind, loop_clock(plugin->loop));
    plugin->slice_cache = kube_cache_new(&dra_slice_kind, loop_clock(plugin->loop));
    slices_init(&plugin->slices, plugin->options.node, plugin->node_cache, plugin->slice_cache);
    plugin->engine = engine_new(plugin->client, &plugin->rand, plugin->metrics,
                                &(struct engine_options){ .max_in_flight = 4 });
    engine_add(plugin->engine, &plugin->slices.controller);

    const struct watch_row rows[] = {
        { .cache = plugin->node_cache, .field_selector = buf_text(&node_selector) },
        { .cache = plugin->slice_cache, .field_selector = buf_text(&slice_selector) },
    };

    plugin->watches = watch_set_new(plugin->client, &plugin->rand, rows, 2, NULL, 0, 0);
}

int dra_plugin_new(struct loop *loop, struct http_transport *api, const struct dra_options *options,
                   struct dra_plugin **ret_plugin, struct err *err)
{
    struct dra_plugin *plugin = mem_alloc(sizeof(*plugin));
    int result;

    plugin->loop = loop;
    plugin->options = *options;
    plugin->metrics = metrics_new();
    rand_init(&plugin->rand, options->seed);
    set_paths(plugin);
    make_engine(plugin, api);
    if ((result = open_state(plugin, err)) < 0) {
        dra_plugin_free(plugin);
        return result;
    }
    plugin->preparer =
        preparer_new(&(struct preparer_options){ .client = plugin->client,
                                                 .prepared = plugin->prepared,
                                                 .cdi = &plugin->cdi,
                                                 .node = plugin->options.node,
                                                 .metrics = plugin->metrics,
                                                 .patience_us = options->patience_us });
    *ret_plugin = plugin;
    return 0;
}

int dra_plugin_start(struct dra_plugin *plugin, struct err *err)
{
    const struct grpc_server_options service = { .path = buf_text(&plugin->service_path),
                                                 .methods = service_methods,
                                                 .method_count = 3,
                                                 .context = plugin,
                                                 .max_message = MAX_MESSAGE };
    const struct grpc_server_options registrar = { .path = buf_text(&plugin->registrar_path),
                                                   .methods = registrar_methods,
                                                   .method_count = 2,
                                                   .context = plugin,
                                                   .max_message = MAX_MESSAGE };
    int result;

    device_health_start(&plugin->health, plugin->loop, plugin->options.node);
    engine_start(plugin->engine);
    look_at_node(plugin);
    sweep(plugin);
    if ((result = grpc_server_new(plugin->loop, &service, &plugin->service, err)) < 0 ||
        (result = grpc_server_new(plugin->loop, &registrar, &plugin->registrar, err)) < 0)
        return result;
    watch_set_start(plugin->watches);
    log_info("serving the kubelet", LOG_STR("socket", buf_str(&plugin->service_path)),
             LOG_U64("prepared_claims", prepared_count(plugin->prepared)));
    return 0;
}

void dra_plugin_free(struct dra_plugin *plugin)
{
    struct buf *all[] = { NULL, NULL, NULL, NULL, NULL };

    if (!plugin)
        return;
    loop_timer_stop(&plugin->sweep_timer);
    loop_timer_stop(&plugin->check_timer);
    grpc_server_free(plugin->registrar);
    grpc_server_free(plugin->service);
    device_health_end(&plugin->health);
    preparer_free(plugin->preparer);
    watch_set_free(plugin->watches);
    engine_free(plugin->engine);
    kube_cache_free(plugin->slice_cache);
    kube_cache_free(plugin->node_cache);
    kube_client_free(plugin->client);
    metrics_free(plugin->metrics);
    prepared_free(plugin->prepared);
    topology_free(plugin->check.topology);
    all[0] = &plugin->folder;
    all[1] = &plugin->service_path;
    all[2] = &plugin->registrar_path;
    all[3] = &plugin->records;
    all[4] = &plugin->hook;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        buf_done(all[i]);
    mem_free(plugin);
}

struct engine *dra_plugin_engine(struct dra_plugin *plugin)
{
    return plugin->engine;
}

struct metrics *dra_plugin_metrics(struct dra_plugin *plugin)
{
    return plugin->metrics;
}

static bool check_registered(void *context, struct buf *why)
{
    struct dra_plugin *plugin = context;

    if (plugin->is_registered)
        return true;
    buf_add_text(why, plugin->registration.class ? plugin->registration.text
                                                 : "the kubelet has not registered the plugin yet");
    return false;
}

void dra_plugin_add_health(struct dra_plugin *plugin, struct health *health)
{
    watch_set_add_health(plugin->watches, health);
    health_check(health, "kubelet", check_registered, plugin);
}

int dra_check(const struct dra_options *options, struct node_check *ret_check, struct err *err)
{
    auto_buf struct buf folder, hook;
    struct node_paths paths;
    int result;

    buf_init(&folder, FILES_MAX_PATH);
    buf_init(&hook, FILES_MAX_PATH);
    path_join(&folder, options->kubelet_root, "plugins", DRA_DRIVER);
    if ((result = folder_make(buf_text(&folder), 0700, err)) < 0 ||
        (result = install_hook(options->hook_program, buf_text(&folder), &hook, err)) < 0)
        return result;
    paths = paths_of(options, buf_text(&hook));
    node_check_run(&paths, ret_check);
    return 0;
}
