/* main.c - the example controller against a real cluster.
 *
 *     configcopy --source-namespace config [--lease-namespace default] [--kubeconfig FILE]
 *                [--context NAME] [--port 8080]
 *
 * A list of things made in the order in which they need each other, and freed in the opposite one.
 * SIGTERM stops it cleanly. /readyz and /metrics are on --port, and /debug/state for whoever may
 * get that path. */
#include "app.h"
#include "base/log.h"
#include "engine/run.h"
#include "io/loop_real.h"
#include "kube/config.h"
#include "kube/guard.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUTES = HEALTH_ROUTES + HEALTH_METRICS_ROUTES + 1 };

struct flags {
    struct kube_config_options config;
    const char *source_ns, *lease_ns;
    uint16_t port;
};

static int read_flags(int argc, char **argv, struct flags *flags, struct err *err)
{
    static const struct option names[] = {
        { "source-namespace", required_argument, NULL, 's' },
        { "lease-namespace", required_argument, NULL, 'l' },
        { "kubeconfig", required_argument, NULL, 'k' },
        { "context", required_argument, NULL, 'c' },
        { "port", required_argument, NULL, 'p' },
        { NULL, 0, NULL, 0 },
    };
    uint64_t port;
    int flag;

    *flags = (struct flags){ .lease_ns = "default", .port = 8080 };
    while ((flag = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (flag) {
        case 's':
            flags->source_ns = optarg;
            break;
        case 'l':
            flags->lease_ns = optarg;
            break;
        case 'k':
            flags->config.path = optarg;
            break;
        case 'c':
            flags->config.context = optarg;
            break;
        case 'p':
            if (str_to_u64(str_of(optarg), 1, UINT16_MAX, &port, err) < 0)
                return err_wrap(err, "--port");
            flags->port = (uint16_t)port;
            break;
        default:
            return err_set(err, ERR_INVALID, "unknown flag");
        }
    }
    return flags->source_ns ? 0 : err_set(err, ERR_INVALID, "--source-namespace is missing");
}

/* What stands between us and the cluster. */
struct link {
    struct loop *loop;
    struct kube_config *config;
    struct http_transport *api, *lease_api;
};

static int link_open(struct link *link, const struct flags *flags, struct err *err)
{
    int result;

    if ((result = loop_new_real(&link->loop, err)) < 0 ||
        (result = kube_config_load(&flags->config, &link->config, err)) < 0 ||
        (result = kube_config_transport(link->loop, link->config, &link->api, err)) < 0 ||
        (result = kube_config_transport(link->loop, link->config, &link->lease_api, err)) < 0)
        return result;
    return 0;
}

static void link_close(struct link *link)
{
    http_transport_free(link->lease_api);
    http_transport_free(link->api);
    kube_config_free(link->config);
    loop_free(link->loop);
}

static int serve_health(struct link *link, struct health *health, uint16_t port,
                        struct guard *guard, struct http_route routes[ROUTES],
                        struct http_server **ret_server, struct err *err)
{
    health_routes(health, routes);
    health_metrics_routes(health, routes + HEALTH_ROUTES);
    routes[ROUTES - 1] = guard_route(guard, health_state_route(health));
    return http_server_new(
        link->loop,
        &(struct http_server_options){ .port = port, .routes = routes, .route_count = ROUTES },
        ret_server, err);
}

static enum run_exit run_app(struct link *link, struct app *app, const struct flags *flags)
{
    struct health *health = health_new(link->loop, app_metrics(app), app_engine(app));
    struct kube_client *client = kube_client_new(link->loop, link->api);
    struct guard *guard = guard_new(client);
    struct http_route routes[ROUTES];
    struct http_server *server = NULL;
    struct err err = { .class = 0 };
    struct run *run = run_new(link->loop, &(struct run_options){ .engine = app_engine(app),
                                                                 .lease = app_lease(app),
                                                                 .lease_name = "configcopy",
                                                                 .health = health,
                                                                 .metrics = app_metrics(app) });
    enum run_exit code;

    app_add_health(app, health);
    if (serve_health(link, health, flags->port, guard, routes, &server, &err) < 0)
        run_fail(run, &err);
    app_start(app);
    code = run_loop(run);
    guard_free(guard);
    kube_client_free(client);
    http_server_free(server);
    run_free(run);
    health_free(health);
    return code;
}

/* Replicas must differ: the host's name (in Kubernetes: the pod's) and some chance. */
static void choose_identity(char identity[160], uint64_t *ret_seed)
{
    struct rand rand;
    char host[100] = "unknown";

    rand_init_real(&rand);
    (void)gethostname(host, sizeof(host) - 1);
    *ret_seed = rand_u64(&rand);
    (void)snprintf(identity, 160, "%s_%016llx", host, (unsigned long long)rand_u64(&rand));
}

int main(int argc, char **argv)
{
    struct link link = { .loop = NULL };
    struct flags flags;
    struct err err = { .class = 0 };
    enum run_exit code = RUN_FAILED;
    char identity[160];
    uint64_t seed;

    if (read_flags(argc, argv, &flags, &err) < 0) {
        (void)fprintf(stderr, "configcopy: %s\n", err.text);
        return RUN_USAGE;
    }
    choose_identity(identity, &seed);
    if (link_open(&link, &flags, &err) == 0) {
        struct app *app = app_new(link.loop, link.api, link.lease_api,
                                  &(struct app_options){ .source_ns = flags.source_ns,
                                                         .lease_ns = flags.lease_ns,
                                                         .identity = identity,
                                                         .seed = seed });

        code = run_app(&link, app, &flags);
        app_free(app);
    } else {
        log_error("cannot start", LOG_ERROR(&err));
    }
    link_close(&link);
    return (int)code;
}
