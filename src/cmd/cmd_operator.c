/* cmd_operator.c - `slinc operator`: Slurm clusters as custom resources of Kubernetes.
 *
 * A list of things made in the order in which they need each other, and freed in the opposite one.
 * SIGTERM stops it cleanly. */
#include "cmd/cmd.h"
#include "cmd/flags.h"
#include "cmd/process.h"
#include "engine/run.h"
#include "io/http_client.h"
#include "operator/host_keys.h"
#include "operator/names.h"
#include "operator/operator.h"

#include <stdio.h>

enum { MAX_NAMESPACES = KUBE_INFORMER_MAX_NAMESPACES };

struct operator_flags {
    const char *health_address, *metrics_address, *kubeconfig, *context, *lease_ns, *namespaces;
    const char *log_level, *log_encoder;
};

#define AT(member) offsetof(struct operator_flags, member)

static const struct flag flags[] = {
    { "health-addr", FLAG_TEXT, AT(health_address), ":8081",
      "where /healthz and /readyz are served" },
    { "metrics-addr", FLAG_TEXT, AT(metrics_address), ":8080",
      "where /metrics and /debug/state are served; 0: nowhere" },
    { "kubeconfig", FLAG_TEXT, AT(kubeconfig), NULL, "instead of the pod's service account" },
    { "context", FLAG_TEXT, AT(context), NULL, "of the kubeconfig" },
    { "leader-elect-namespace", FLAG_TEXT, AT(lease_ns), NULL,
      "of the lease that only the leader holds; else the pod's own" },
    { "namespaces", FLAG_TEXT, AT(namespaces), "", "watched, with commas between; empty: all" },
    { "zap-log-level", FLAG_TEXT, AT(log_level), "info", "error, warn, info or debug" },
    { "zap-encoder", FLAG_TEXT, AT(log_encoder), NULL,
      "json or console; else console on a terminal" },
    { "leader-elect", FLAG_IGNORED_BOOL, 0, NULL, "taken, and always true" },
    { "metrics-secure", FLAG_IGNORED_BOOL, 0, NULL, "taken, and without effect" },
    { "enable-http2", FLAG_IGNORED_BOOL, 0, NULL, "taken, and without effect" },
    { "profile", FLAG_IGNORED_BOOL, 0, NULL, "taken, and without effect" },
    { "profile-addr", FLAG_IGNORED, 0, NULL, "taken, and without effect" },
    { "controller-workers", FLAG_IGNORED, 0, NULL, "taken, and without effect" },
    { "restapi-workers", FLAG_IGNORED, 0, NULL, "taken, and without effect" },
    { "accounting-workers", FLAG_IGNORED, 0, NULL, "taken, and without effect" },
    { "nodeset-workers", FLAG_IGNORED, 0, NULL, "taken, and without effect" },
    { "loginset-workers", FLAG_IGNORED, 0, NULL, "taken, and without effect" },
    { "slurmclient-workers", FLAG_IGNORED, 0, NULL, "taken, and without effect" },
    { "token-workers", FLAG_IGNORED, 0, NULL, "taken, and without effect" },
    { "zap-devel", FLAG_IGNORED_BOOL, 0, NULL, "taken, and without effect" },
    { "zap-stacktrace-level", FLAG_IGNORED, 0, NULL, "taken, and without effect" },
    { "zap-time-encoding", FLAG_IGNORED, 0, NULL, "taken, and without effect" },
    { NULL, FLAG_TEXT, 0, NULL, NULL },
};

/* ---- the namespaces of --namespaces ---- */

struct namespaces {
    struct arena arena;
    const char *at[MAX_NAMESPACES];
    unsigned count;
};

static int read_namespaces(const char *text, struct namespaces *ret, struct err *err)
{
    struct str rest = str_of(text), name;

    while (str_next(&rest, ',', &name)) {
        name = str_trim(name);
        if (name.len == 0)
            continue;
        if (ret->count == MAX_NAMESPACES)
            return err_set(err, ERR_INVALID, "--namespaces: more than %d", MAX_NAMESPACES);
        ret->at[ret->count++] = arena_strndup(&ret->arena, name.at, name.len);
    }
    return 0;
}

/* ---- running ---- */

static enum run_exit run_operator(struct slurm_operator *program, struct loop *loop,
                                  const struct operator_flags *values)
{
    struct metrics *metrics = operator_metrics(program);
    struct health *health = health_new(loop, metrics, operator_engine(program));
    struct run *run = run_new(loop, &(struct run_options){ .engine = operator_engine(program),
                                                           .lease = operator_lease(program),
                                                           .lease_name = OPERATOR_LEASE,
                                                           .health = health,
                                                           .metrics = metrics });
    struct process_listeners listeners = { .metrics = NULL };
    struct err err = { .class = 0 };
    enum run_exit code;

    operator_add_health(program, health);
    if (process_listen(&listeners, loop, health,
                       (struct process_address){ "--metrics-addr", values->metrics_address },
                       (struct process_address){ "--health-addr", values->health_address },
                       &err) < 0)
        run_fail(run, &err);
    operator_start(program);
    code = run_loop(run);
    process_listen_end(&listeners);
    run_free(run);
    health_free(health);
    return code;
}

static struct http_transport *connect_slurm(void *context, const char *url, struct err *err)
{
    struct http_client_options options = { .base_url = url, .max_connections = 4 };
    struct http_transport *transport;

    return http_client_new(context, &options, &transport, err) < 0 ? NULL : transport;
}

static enum run_exit run_with(const struct process_api *api, const struct namespaces *namespaces,
                              const struct operator_flags *values)
{
    const struct operator_links links = { .loop = api->loop,
                                          .api = api->api,
                                          .lease_api = api->lease_api,
                                          .connect_slurm = connect_slurm,
                                          .connect_context = api->loop };
    struct operator_options options = { .lease_ns = values->lease_ns,
                                        .host_keys_program = "/proc/self/exe",
                                        .namespaces = namespaces->at,
                                        .namespace_count = namespaces->count };
    char identity[PROCESS_IDENTITY];
    struct slurm_operator *program;
    enum run_exit code;

    process_identity(identity, &options.seed);
    options.identity = identity;
    if (!options.lease_ns || !options.lease_ns[0])
        options.lease_ns = api->config->ns;
    program = operator_new(&links, &options);
    code = run_operator(program, api->loop, values);
    operator_free(program);
    return code;
}

static void print_help(void)
{
    auto_buf struct buf out;

    buf_init(&out, 1 << 20);
    buf_add_text(&out,
                 "slinc operator: Slurm clusters as custom resources of Kubernetes\n\nflags:\n");
    flags_help(flags, &out);
    (void)fputs(buf_text(&out), stdout);
}

/* Prints a new set of SSH host keys: the operator runs this beside its loop. */
int cmd_host_keys(int argc, char **argv)
{
    auto_buf struct buf keys;
    struct err err = { .class = 0 };

    (void)argc;
    (void)argv;
    buf_init(&keys, 1 << 20);
    if (host_keys_make(&keys, &err) < 0) {
        (void)fprintf(stderr, "slinc host-keys: %s\n", err.text);
        return RUN_FAILED;
    }
    (void)puts(buf_text(&keys));
    return RUN_OK;
}

int cmd_operator(int argc, char **argv)
{
    struct operator_flags values = { .health_address = NULL };
    struct process_api api = { .loop = NULL };
    struct namespaces namespaces = { .count = 0 };
    struct err err = { .class = 0 };
    enum run_exit code = RUN_FAILED;
    bool help;

    arena_init(&namespaces.arena, 1 << 20);
    if (flags_parse(flags, argc, argv, &values, &help, &err) < 0 ||
        (!help && (read_namespaces(values.namespaces, &namespaces, &err) < 0 ||
                   process_log(values.log_level, values.log_encoder, &err) < 0))) {
        (void)fprintf(stderr, "slinc operator: %s\n", err.text);
        code = RUN_USAGE;
    } else if (help) {
        print_help();
        code = RUN_OK;
    } else if (process_api_open(&api,
                                &(struct kube_config_options){ .path = values.kubeconfig,
                                                               .context = values.context },
                                &err) < 0) {
        process_cannot_start("operator", values.log_encoder, &err);
    } else {
        code = run_with(&api, &namespaces, &values);
    }
    process_api_close(&api);
    arena_done(&namespaces.arena);
    return (int)code;
}
