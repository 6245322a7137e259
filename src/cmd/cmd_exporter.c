/* cmd_exporter.c - `slinc exporter`: Slurm's figures for Prometheus and for autoscalers.
 *
 * A list of things made in the order in which they need each other, and freed in the opposite one.
 * SIGTERM stops it cleanly. */
#include "cmd/cmd.h"
#include "cmd/flags.h"
#include "cmd/process.h"
#include "codec/duration.h"
#include "engine/engine_metrics.h"
#include "engine/run.h"
#include "exporter/api.h"
#include "exporter/dashboard.h"
#include "exporter/exporter.h"
#include "exporter/families.h"
#include "exporter/legacy.h"
#include "exporter/rules.h"
#include "exporter/ui.h"
#include "io/http_client.h"
#include "io/loop_real.h"
#include "io/reload.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    TOKEN_LIFE_S = 300,
    SLURM_CONNECTIONS = 8,
    BRIDGE_CONNECTIONS = 4,
    SECOND_US = 1000000,
    NANOS_PER_US = 1000
};

struct exporter_flags {
    const char *server, *cache_freq, *metrics_address, *health_address, *legacy_path, *user_labels;
    const char *ui_address;
    const char *ca_file, *key_file, *key_user, *api_address, *api_folder, *api_service, *bridge;
    const char *bridge_token_file, *bridge_ca_file;
    struct process_flags process;
    const char *print;
    bool external, view, ui;
    int64_t job_list_s, stale_s, max_names;
    int64_t poll_us;         /* of cache_freq */
    enum source_users users; /* of user_labels */
};

#define AT(member) offsetof(struct exporter_flags, member)

static const struct flag flags[] = {
    { "server", FLAG_TEXT, AT(server), "http://localhost:6820",
      "slurmrestd: a URL, or unix:// and the path of its socket" },
    { "server-ca-file", FLAG_TEXT, AT(ca_file), "",
      "the CA of a server that is https://, which may change at any time; none: the system's" },
    { "cache-freq", FLAG_TEXT, AT(cache_freq), "5s",
      "between polls of Slurm, at least 1s; a slow slurmrestd is asked less often" },
    { "job-list-seconds", FLAG_NUMBER, AT(job_list_s), "30",
      "between whole job lists, which tell why jobs wait" },
    { "stale-seconds", FLAG_NUMBER, AT(stale_s), "60", "what was read longer ago is not shown" },
    { "max-names", FLAG_NUMBER, AT(max_names), "200",
      "accounts, users and QOS that are shown by name; the rest is \"other\"" },
    { "user-labels", FLAG_TEXT, AT(user_labels), "auto",
      "name: users are shown; off: not; auto: unless PrivateData hides users" },
    { "legacy-path", FLAG_TEXT, AT(legacy_path), "",
      "where Slinky's old series are served besides /metrics/slinky" },
    { "jwt-key-file", FLAG_TEXT, AT(key_file), "", "signs tokens with Slurm's jwt.key" },
    { "jwt-user", FLAG_TEXT, AT(key_user), "slurm", "whose tokens it signs" },
    { "external-metrics", FLAG_BOOL, AT(external), "false",
      "serve external.metrics.k8s.io for HorizontalPodAutoscalers, over TLS" },
    { "view-api", FLAG_BOOL, AT(view), "false",
      "serve view.slinky.slurm.net: jobs and nodes, for `slinc queue`, `nodes` and `why`" },
    { "bridge", FLAG_TEXT, AT(bridge), "",
      "where the metrics of slinc bridge are served: the view API asks there why a pod waits, for "
      "whoever may get that pod" },
    { "bridge-token-file", FLAG_TEXT, AT(bridge_token_file), "",
      "a token for the bridge, which may change at any time; none: it is asked without" },
    { "bridge-ca-file", FLAG_TEXT, AT(bridge_ca_file), "",
      "the CA of a bridge that is https://, which may change at any time; none: the system's" },
    { "ui", FLAG_BOOL, AT(ui), "false",
      "serve the live page /ui/ beside these APIs, to whoever may list and watch "
      "ui.view.slinky.slurm.net" },
    { "api-bind-address", FLAG_TEXT, AT(api_address), ":6443", "where these APIs are served" },
    { "api-cert-dir", FLAG_TEXT, AT(api_folder), "/etc/slinc/api",
      "of tls.crt and tls.key; they may change at any time" },
    { "api-service", FLAG_TEXT, AT(api_service), "",
      "NAMESPACE/NAME of the Service that the APIService should name; another owner is reported" },
    { "print", FLAG_TEXT, AT(print), "",
      "cluster or bridge: print a dashboard for Grafana; rules: rules and alerts for Prometheus; "
      "and "
      "end" },
    { "metrics-bind-address", FLAG_TEXT, AT(metrics_address), ":8080",
      "where /metrics and the paths below it are served" },
    { "health-probe-bind-address", FLAG_TEXT, AT(health_address), ":8081",
      "where /healthz and /readyz are served" },
    { "ui-bind-address", FLAG_TEXT, AT(ui_address), "0",
      "where the live page /ui/ is served, too, to everybody who gets there; 0: nowhere" },
    PROCESS_FLAGS(AT(process)),
    { NULL, FLAG_TEXT, 0, NULL, NULL },
};

static int check_flags(void *flag_values, struct err *err)
{
    struct exporter_flags *values = flag_values;
    struct str users = str_of(values->user_labels);

    if (duration_parse(str_of(values->cache_freq), &values->poll_us, err) < 0)
        return err_wrap(err, "--cache-freq");
    values->poll_us /= NANOS_PER_US;
    if (values->poll_us < SECOND_US)
        return err_set(err, ERR_INVALID, "--cache-freq: wants at least 1s");
    if (str_is(users, "name"))
        values->users = SOURCE_USERS_SHOWN;
    else if (str_is(users, "off"))
        values->users = SOURCE_USERS_HIDDEN;
    else if (!str_is(users, "auto"))
        return err_set(err, ERR_INVALID, "--user-labels: wants name, off or auto");
    if (values->max_names < 1 || values->max_names > 10000)
        return err_set(err, ERR_INVALID, "--max-names: wants 1 to 10000");
    return 0;
}

/* ---- the way to Slurm ---- */

struct links {
    struct loop *loop;
    struct process_api kube; /* where the API is served */
    struct slurm_token *token;
    struct http_transport *slurm, *bridge; /* bridge: NULL when it is not asked */
    struct reload_file *bridge_token;      /* NULL: none */
};

/* The pages must be served before there is a token: a file is awaited. */
static int open_token(struct links *links, const struct exporter_flags *values, struct err *err)
{
    const char *path = getenv("SLURM_JWT_FILE"), *text = getenv("SLURM_JWT");

    if (values->key_file[0])
        return slurm_token_new_key_file(loop_clock(links->loop), values->key_file, values->key_user,
                                        TOKEN_LIFE_S, &links->token, err);
    if (path && path[0]) {
        links->token = slurm_token_new_awaited(links->loop, path);
        return 0;
    }
    if (text && text[0])
        return slurm_token_new_static(str_of(text), &links->token, err);
    return err_set(err, ERR_INVALID,
                   "there is no token for Slurm: set SLURM_JWT_FILE to a file that holds one, "
                   "SLURM_JWT to the token, or --jwt-key-file");
}

static bool serves_api(const struct exporter_flags *values)
{
    return values->external || values->view || values->ui;
}

/* Where nobody is judged nothing is asked of Kubernetes, and no account is needed. */
static int open_loop(struct links *links, const struct exporter_flags *values, struct err *err)
{
    int result;

    if (!serves_api(values) && !values->process.metrics_secure)
        return loop_new_real(&links->loop, err);
    result = process_api_open(&links->kube, &values->process, err);
    links->loop = links->kube.loop;
    return result < 0 ? err_wrap(err, "the API server") : 0;
}

static struct str bridge_token(void *context)
{
    const struct links *links = context;

    return links->bridge_token ? str_trim(reload_file_content(links->bridge_token)) : STR("");
}

static int open_bridge(struct links *links, const struct exporter_flags *values, struct err *err)
{
    const struct http_client_options options = {
        .base_url = values->bridge,
        .tls.ca_file = values->bridge_ca_file[0] ? values->bridge_ca_file : NULL,
        .tls_kept = process_tls_kept,
        .tls_context = (void *)(uintptr_t)values->bridge,
        .bearer_token = bridge_token,
        .bearer_context = links,
        .max_connections = BRIDGE_CONNECTIONS,
    };
    int result = 0;

    if (values->bridge_token_file[0])
        result = reload_file_new(links->loop,
                                 &(struct reload_options){ .path = values->bridge_token_file },
                                 &links->bridge_token, err);
    if (result < 0)
        return err_wrap(err, "--bridge-token-file");
    result = http_client_new(links->loop, &options, &links->bridge, err);
    return result < 0 ? err_wrap(err, "--bridge %s", values->bridge) : 0;
}

static int links_open(struct links *links, const struct exporter_flags *values, struct err *err)
{
    bool is_unix = str_starts(str_of(values->server), STR("unix://"));
    const struct http_client_options options = {
        .base_url = is_unix ? "http://slurmrestd" : values->server,
        .unix_socket = is_unix ? values->server + sizeof("unix://") - 1 : NULL,
        .tls.ca_file = values->ca_file[0] ? values->ca_file : NULL,
        .tls_kept = process_tls_kept,
        .tls_context = (void *)(uintptr_t)values->server,
        .http1_only = true,
        .max_connections = SLURM_CONNECTIONS,
    };
    int result;

    if ((result = open_loop(links, values, err)) < 0 ||
        (result = open_token(links, values, err)) < 0)
        return result;
    result = http_client_new(links->loop, &options, &links->slurm, err);
    if (result < 0)
        return err_wrap(err, "--server %s", values->server);
    return values->view && values->bridge[0] ? open_bridge(links, values, err) : 0;
}

static void links_close(struct links *links)
{
    http_transport_free(links->slurm);
    http_transport_free(links->bridge);
    reload_file_free(links->bridge_token);
    slurm_token_free(links->token);
    if (links->kube.loop)
        process_api_close(&links->kube);
    else
        loop_free(links->loop);
}

/* ---- the live page ---- */

struct page_server {
    struct kube_client *kube; /* for the lives of pods; NULL: nothing is asked of Kubernetes */
    struct ui *ui;            /* NULL: it is served nowhere */
    struct http_route routes[UI_ROUTES];
    struct http_server *server; /* NULL: only the API serves it */
};

static int page_open(struct page_server *page, const struct links *links, struct exporter *exporter,
                     const struct exporter_flags *values, struct err *err)
{
    struct process_address at = { "--ui-bind-address", values->ui_address };
    char host[PROCESS_MAX_HOST];
    uint16_t port;
    int result = process_address_read(at, host, &port, err);

    if (result < 0 || (port == 0 && !values->ui))
        return result;
    if (serves_api(values))
        page->kube = kube_client_new(links->loop, links->kube.api);
    page->ui = ui_new(links->loop, exporter_source(exporter), page->kube);
    if (port == 0)
        return 0;
    result = http_server_new(
        links->loop,
        &(struct http_server_options){ .address = host[0] ? host : NULL,
                                       .port = port,
                                       .routes = page->routes,
                                       .route_count = ui_routes(page->ui, page->routes) },
        &page->server, err);
    return result < 0 ? err_wrap(err, "--ui-bind-address") : 0;
}

static void page_close(struct page_server *page)
{
    ui_free(page->ui);
    http_server_free(page->server);
    if (page->kube)
        kube_client_free(page->kube);
}

/* ---- running ---- */

static int open_api(const struct links *links, const struct exporter_flags *values,
                    struct exporter *exporter, struct metrics *metrics, struct ui *ui,
                    struct api **ret_api, struct err *err)
{
    struct process_address at = { "--api-bind-address", values->api_address };
    struct api_options options = { .folder = values->api_folder,
                                   .service = values->external ? values->api_service : "",
                                   .ui = values->ui ? ui : NULL,
                                   .bridge = links->bridge };
    char host[PROCESS_MAX_HOST];
    int result = process_address_read(at, host, &options.port, err);

    if (result < 0)
        return result;
    options.address = host[0] ? host : NULL;
    result = api_new(links->loop, links->kube.api, exporter, metrics, &options, ret_api, err);
    return result < 0 ? err_wrap(err, "the aggregated API") : 0;
}

static enum run_exit run_exporter(const struct links *links, const struct exporter_flags *values)
{
    const struct exporter_options options = {
        .source = { .poll_us = values->poll_us,
                    .list_us = values->job_list_s * SECOND_US,
                    .stale_us = values->stale_s * SECOND_US,
                    .users = values->users },
        .max_names = (size_t)values->max_names,
        .legacy_path = values->legacy_path,
    };
    struct metrics *metrics = metrics_new();
    struct health *health = health_new(links->loop, metrics, NULL);
    struct run *run =
        run_new(links->loop, &(struct run_options){ .health = health, .metrics = metrics });
    struct exporter *exporter =
        exporter_new(links->loop, links->slurm, links->token, metrics, &options);
    struct process_listeners listeners = { .metrics = NULL };
    struct api *api = NULL;
    struct page_server page = { .ui = NULL };
    struct err err = { .class = 0 };
    enum run_exit code;

    health_slurm(health, source_slurm_version(exporter_source(exporter)));
    listeners.own_count = exporter_routes(exporter, listeners.own);
    if (process_listen(&listeners,
                       &(struct process_serve){
                           .loop = links->loop,
                           .api = links->kube.api,
                           .of = health,
                           .flags = &values->process,
                           .metrics = { "--metrics-bind-address", values->metrics_address },
                           .health = { "--health-probe-bind-address", values->health_address } },
                       &err) < 0 ||
        page_open(&page, links, exporter, values, &err) < 0 ||
        (serves_api(values) && open_api(links, values, exporter, metrics, page.ui, &api, &err) < 0))
        run_fail(run, &err);
    exporter_start(exporter);
    code = run_loop(run);
    process_listen_end(&listeners);
    page_close(&page); /* ends the streams, the API's too */
    api_free(api);
    exporter_free(exporter);
    run_free(run);
    health_free(health);
    metrics_free(metrics);
    return code;
}

static void write_reference(struct buf *out)
{
    buf_add_text(out, "\nmetrics of Slurm:\n\n");
    families_reference(out);
    buf_add_text(out, "\nwhy jobs wait:\n\n");
    slurm_reason_reference(out);
    buf_add_text(out, "\nmetrics of the scheduler under their old names, on /metrics/slinky:\n\n");
    legacy_reference(out);
    buf_add_text(out, "\nmetrics of the process:\n\n");
    metrics_write_reference(engine_metrics, ENGINE_METRIC_COUNT, out);
    buf_add_text(out, "\nSLURM_JWT_FILE names the file with the token for Slurm; SLURM_JWT holds "
                      "it itself.\n");
}

static enum run_exit print_file(const char *name)
{
    auto_buf struct buf out;

    buf_init(&out, 1 << 20);
    if (str_is(str_of(name), "rules"))
        rules_write(&out);
    for (unsigned i = 0; i < DASHBOARDS; i++)
        if (str_is(str_of(name), dashboard_name((enum dashboard_kind)i)))
            dashboard_write((enum dashboard_kind)i, &out);
    if (out.len == 0) {
        (void)fputs("slinc exporter: --print wants cluster, bridge or rules\n", stderr);
        return RUN_USAGE;
    }
    (void)fputs(buf_text(&out), stdout);
    return RUN_OK;
}

static const struct process_command command = {
    .name = "exporter",
    .what = "shows Slurm's figures to Prometheus and autoscalers",
    .flags = flags,
    .process_flags = AT(process),
    .check = check_flags,
    .help = write_reference,
};

int cmd_exporter(int argc, char **argv)
{
    struct exporter_flags values = { .server = NULL };
    struct links links = { .loop = NULL };
    struct err err = { .class = 0 };
    enum run_exit code = RUN_FAILED;

    if (!process_begin(&command, argc, argv, &values, &code))
        return (int)code;
    if (values.print[0])
        return (int)print_file(values.print);
    if (links_open(&links, &values, &err) == 0)
        code = run_exporter(&links, &values);
    else
        process_cannot_start("exporter", &values.process, &err);
    links_close(&links);
    return (int)code;
}
