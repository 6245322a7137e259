/* process.c - start-up that all subcommands share. */
#include "cmd/process.h"

#include "base/log.h"
#include "base/rand.h"
#include "cmd/cmd.h"
#include "io/loop_real.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* Without --zap-encoder: console on a terminal, else json. */
static int start_log(const struct process_flags *flags, struct err *err)
{
    struct log_options options = { .level = LOG_LEVEL_INFO };
    struct str name = str_of(flags->log_encoder);
    int result = log_level_parse(str_of(flags->log_level), &options.level, err);

    if (result < 0)
        return err_wrap(err, "--zap-log-level");
    if (str_is(name, "json"))
        options.format = LOG_FORMAT_JSON;
    else if (str_is(name, "console"))
        options.format = LOG_FORMAT_TEXT;
    else if (name.len > 0)
        return err_set(err, ERR_INVALID, "--zap-encoder: wants json or console");
    log_setup(&options);
    return 0;
}

static void print_help(const struct process_command *command)
{
    auto_buf struct buf out;

    buf_init(&out, 1 << 20);
    buf_printf(&out, "slinc %s: %s\n\nflags:\n", command->name, command->what);
    flags_help(command->flags, &out);
    if (command->help)
        command->help(&out);
    (void)fputs(buf_text(&out), stdout);
}

bool process_begin(const struct process_command *command, int argc, char **argv, void *values,
                   enum run_exit *ret_code)
{
    const struct process_flags *flags =
        (const void *)((const char *)values + command->process_flags);
    struct err err = { .class = 0 };
    bool help;

    if (flags_parse(command->flags, argc, argv, values, &help, &err) < 0 ||
        (!help &&
         ((command->check && command->check(values, &err) < 0) || start_log(flags, &err) < 0))) {
        (void)fprintf(stderr, "slinc %s: %s\n", command->name, err.text);
        *ret_code = RUN_USAGE;
        return false;
    }
    if (!help)
        return true;
    print_help(command);
    *ret_code = RUN_OK;
    return false;
}

void process_identity(char ret_identity[PROCESS_IDENTITY], uint64_t *ret_seed)
{
    struct rand rand;
    char host[100] = "unknown";

    rand_init_real(&rand);
    (void)gethostname(host, sizeof(host) - 1);
    *ret_seed = rand_u64(&rand);
    (void)snprintf(ret_identity, PROCESS_IDENTITY, "%s_%016llx", host,
                   (unsigned long long)rand_u64(&rand));
}

void process_tls_kept(void *server, const struct err *why)
{
    if (why)
        log_warn("renewed certificates for a server cannot be used; the old ones stay in use",
                 LOG_TEXT("server", server), LOG_ERROR(why));
    else
        log_info("the certificates for a server can be used again", LOG_TEXT("server", server));
}

int process_api_open(struct process_api *api, const struct process_flags *flags, struct err *err)
{
    const struct kube_config_options options = { .path = flags->kubeconfig,
                                                 .context = flags->context };
    int result;

    if ((result = loop_new_real(&api->loop, err)) < 0 ||
        (result = kube_config_load(&options, &api->config, err)) < 0 ||
        (result = kube_config_transport(api->loop, api->config, &api->lease_api, err)) < 0)
        return result;
    api->config->tls_kept = process_tls_kept; /* one of the two: they have the same files */
    api->config->tls_context = api->config->server;
    return kube_config_transport(api->loop, api->config, &api->api, err);
}

void process_api_close(struct process_api *api)
{
    http_transport_free(api->lease_api);
    http_transport_free(api->api);
    kube_config_free(api->config);
    loop_free(api->loop);
}

int process_address_read(struct process_address at, char ret_host[PROCESS_MAX_HOST],
                         uint16_t *ret_port, struct err *err)
{
    const char *colon = strrchr(at.address, ':');
    uint64_t port = 0;

    ret_host[0] = '\0';
    if (at.address[0] && !str_is(str_of(at.address), "0")) {
        if (!colon || colon - at.address >= PROCESS_MAX_HOST)
            return err_set(err, ERR_INVALID, "%s: '%s' is no address: wants [HOST]:PORT", at.flag,
                           at.address);
        if (str_to_u64(str_of(colon + 1), 1, UINT16_MAX, &port, err) < 0)
            return err_wrap(err, "%s: the port of '%s'", at.flag, at.address);
        memcpy(ret_host, at.address, (size_t)(colon - at.address));
        ret_host[colon - at.address] = '\0';
    }
    *ret_port = (uint16_t)port;
    return 0;
}

static void on_certificate(void *context, const struct err *why)
{
    (void)context;
    if (why)
        log_warn("the certificate of the metrics is not usable; the old one stays", LOG_ERROR(why));
    else
        log_info("the metrics have a new certificate");
}

/* folder: of the certificate; NULL: plain. */
static int listen_at(struct loop *loop, struct process_address at, const struct http_route *routes,
                     size_t count, const char *folder, struct http_server **ret_server,
                     struct err *err)
{
    char host[PROCESS_MAX_HOST], cert_file[PATH_MAX], key_file[PATH_MAX];
    uint16_t port = 0;
    int result = process_address_read(at, host, &port, err);

    if (result < 0 || port == 0)
        return result;
    (void)snprintf(cert_file, sizeof(cert_file), "%s/tls.crt", folder);
    (void)snprintf(key_file, sizeof(key_file), "%s/tls.key", folder);
    result = http_server_new(loop,
                             &(struct http_server_options){ .address = host[0] ? host : NULL,
                                                            .port = port,
                                                            .routes = routes,
                                                            .route_count = count,
                                                            .cert_file = folder ? cert_file : NULL,
                                                            .key_file = folder ? key_file : NULL,
                                                            .tls_changed = on_certificate },
                             ret_server, err);
    return result < 0 ? err_wrap(err, "%s", at.flag) : 0;
}

static void add_route(struct process_listeners *listeners, struct http_route route, bool is_guarded)
{
    listeners->routes[listeners->route_count++] =
        is_guarded ? guard_route(listeners->guard, route) : route;
}

/* All that the process serves. /version tells a command which servers there are, and is open. */
static void gather_routes(struct process_listeners *listeners, struct health *health,
                          bool is_secure)
{
    struct http_route metrics[HEALTH_METRICS_ROUTES];

    health_routes(health, listeners->probes);
    health_metrics_routes(health, metrics);
    for (size_t i = 0; i < listeners->own_count; i++)
        add_route(listeners, listeners->own[i], is_secure);
    for (size_t i = 0; i < HEALTH_METRICS_ROUTES; i++)
        add_route(listeners, metrics[i], is_secure && strcmp(metrics[i].path, "/version") != 0);
    for (size_t i = 0; i < HEALTH_ROUTES; i++)
        add_route(listeners, listeners->probes[i], false);
    for (size_t i = 0; i < listeners->debug_count && listeners->guard; i++)
        add_route(listeners, listeners->debug[i], true);
    if (listeners->guard)
        add_route(listeners, health_state_route(health), true);
}

int process_listen(struct process_listeners *listeners, const struct process_serve *serve,
                   struct err *err)
{
    bool is_secure = serve->flags->metrics_secure;
    bool is_one = strcmp(serve->metrics.address, serve->health.address) == 0;
    int result;

    if (is_secure && !serve->api)
        return err_set(err, ERR_INVALID, "--metrics-secure: there is no API server to ask");
    health_version(serve->of, cmd_version);
    if (serve->api) {
        listeners->client = kube_client_new(serve->loop, serve->api);
        listeners->guard = guard_new(listeners->client);
    }
    gather_routes(listeners, serve->of, is_secure);
    result = listen_at(serve->loop, serve->metrics, listeners->routes, listeners->route_count,
                       is_secure ? serve->flags->metrics_folder : NULL, &listeners->metrics, err);
    if (result < 0 || is_one)
        return result;
    return listen_at(serve->loop, serve->health, listeners->probes, HEALTH_ROUTES, NULL,
                     &listeners->health, err);
}

void process_listen_end(struct process_listeners *listeners)
{
    guard_free(listeners->guard);
    kube_client_free(listeners->client);
    http_server_free(listeners->health);
    http_server_free(listeners->metrics);
}

void process_cannot_start(const char *command, const struct process_flags *flags,
                          const struct err *err)
{
    if (isatty(STDERR_FILENO) && !str_is(str_of(flags->log_encoder), "json"))
        (void)fprintf(stderr, "slinc %s: cannot start: %s\n", command, err->text);
    else
        log_error("cannot start", LOG_ERROR(err));
}
