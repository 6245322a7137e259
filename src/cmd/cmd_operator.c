/* cmd_operator.c - `slinc operator`: Slurm clusters as custom resources of Kubernetes.
 *
 * A list of things made in the order in which they need each other, and freed in the opposite one.
 * SIGTERM stops it cleanly. */
#include "cmd/cmd.h"
#include "cmd/definitions.h"
#include "cmd/flags.h"
#include "cmd/process.h"
#include "codec/sshkey.h"
#include "engine/engine_metrics.h"
#include "engine/run.h"
#include "io/http_client.h"
#include "operator/admit.h"
#include "operator/names.h"
#include "operator/operator.h"
#include "operator/spec.h"

#include <stdio.h>

enum { MAX_NAMESPACES = KUBE_INFORMER_MAX_NAMESPACES, MAX_UNREGISTERED = 1 << 20 };

struct namespaces {
    struct arena arena;
    const char *at[MAX_NAMESPACES];
    unsigned count;
};

struct operator_flags {
    struct process_flags process;
    const char *health_address, *metrics_address, *server_address, *cert_folder;
    const char *lease_ns, *namespace_list;
    struct namespaces namespaces; /* of the list */
    const char *propagated_conditions;
    int64_t max_unregistered;
    bool webhook_only, print_fields;
};

#define AT(member) offsetof(struct operator_flags, member)

static const struct flag flags[] = {
    { "health-addr", FLAG_TEXT, AT(health_address), ":8081",
      "where /healthz and /readyz are served" },
    { "metrics-addr", FLAG_TEXT, AT(metrics_address), ":8080",
      "where /metrics is served, and /debug/state to whoever may get it; 0: nowhere" },
    { "server-addr", FLAG_TEXT, AT(server_address), ":9443",
      "where custom resources are validated, over TLS; 0: nowhere" },
    { "webhook-cert-dir", FLAG_TEXT, AT(cert_folder), "/tmp/k8s-webhook-server/serving-certs",
      "of tls.crt and tls.key; they may change at any time" },
    { "webhook-only", FLAG_BOOL, AT(webhook_only), "false",
      "validate custom resources and do nothing else, without a lease" },
    { "print-fields", FLAG_BOOL, AT(print_fields), "false",
      "print every field of the custom resources, and end" },
    { "leader-elect-namespace", FLAG_TEXT, AT(lease_ns), NULL,
      "of the lease that only the leader holds; else the pod's own" },
    { "namespaces", FLAG_TEXT, AT(namespace_list), "", "watched, with commas between; empty: all" },
    { "propagated-node-conditions", FLAG_TEXT, AT(propagated_conditions), "",
      "types of Node conditions whose reason explains why a cordoned Node is drained" },
    { "max-unregistered-workers", FLAG_NUMBER, AT(max_unregistered), "500",
      "workers of a Slurm cluster that may exist and have not registered yet" },
    { "profile", FLAG_IGNORED_BOOL, 0, NULL, "taken, and without effect" },
    { "profile-addr", FLAG_IGNORED, 0, NULL, "taken, and without effect" },
    { "controller-workers", FLAG_IGNORED, 0, NULL, "taken, and without effect" },
    { "restapi-workers", FLAG_IGNORED, 0, NULL, "taken, and without effect" },
    { "accounting-workers", FLAG_IGNORED, 0, NULL, "taken, and without effect" },
    { "nodeset-workers", FLAG_IGNORED, 0, NULL, "taken, and without effect" },
    { "loginset-workers", FLAG_IGNORED, 0, NULL, "taken, and without effect" },
    { "slurmclient-workers", FLAG_IGNORED, 0, NULL, "taken, and without effect" },
    { "token-workers", FLAG_IGNORED, 0, NULL, "taken, and without effect" },
    PROCESS_FLAGS(AT(process)),
    { NULL, FLAG_TEXT, 0, NULL, NULL },
};

/* ---- the webhook ---- */

struct webhook {
    struct operator_admit *admit; /* NULL: nothing is validated here */
    struct kube_client *client;
    char host[PROCESS_MAX_HOST];
};

static int webhook_open(struct webhook *webhook, const struct process_api *api,
                        const struct operator_flags *values, struct metrics *metrics,
                        struct health *health, struct err *err)
{
    struct operator_admit_options options = { .metrics = metrics,
                                              .folder = values->cert_folder,
                                              .is_needed = values->webhook_only };
    int result =
        process_address_read((struct process_address){ "--server-addr", values->server_address },
                             webhook->host, &options.port, err);

    if (result < 0 || options.port == 0)
        return result;
    webhook->client = kube_client_new(api->loop, api->api);
    options.client = webhook->client;
    options.address = webhook->host[0] ? webhook->host : NULL;
    if ((result = operator_admit_new(&options, &webhook->admit, err)) < 0)
        return result;
    operator_admit_add_health(webhook->admit, health);
    return 0;
}

static void webhook_close(struct webhook *webhook)
{
    operator_admit_free(webhook->admit);
    kube_client_free(webhook->client);
}

/* ---- running ---- */

static int listen_for_health(struct process_listeners *listeners, const struct process_api *api,
                             struct health *health, const struct operator_flags *values,
                             struct err *err)
{
    return process_listen(
        listeners,
        &(struct process_serve){ .loop = api->loop,
                                 .api = api->api,
                                 .of = health,
                                 .flags = &values->process,
                                 .metrics = { "--metrics-addr", values->metrics_address },
                                 .health = { "--health-addr", values->health_address } },
        err);
}

static enum run_exit run_operator(struct slurm_operator *program, const struct process_api *api,
                                  const struct operator_flags *values)
{
    struct loop *loop = api->loop;
    struct metrics *metrics = operator_metrics(program);
    struct health *health = health_new(loop, metrics, operator_engine(program));
    struct run *run = run_new(loop, &(struct run_options){ .engine = operator_engine(program),
                                                           .lease = operator_lease(program),
                                                           .lease_name = OPERATOR_LEASE,
                                                           .health = health,
                                                           .metrics = metrics });
    struct process_listeners listeners = { .metrics = NULL };
    struct webhook webhook = { .admit = NULL };
    struct definitions *definitions = definitions_new(loop, api->api, health);
    struct err err = { .class = 0 };
    enum run_exit code;

    operator_add_health(program, health);
    if (listen_for_health(&listeners, api, health, values, &err) < 0 ||
        webhook_open(&webhook, api, values, metrics, health, &err) < 0)
        run_fail(run, &err);
    operator_start(program);
    code = run_loop(run);
    webhook_close(&webhook);
    process_listen_end(&listeners);
    run_free(run);
    health_free(health);
    definitions_free(definitions);
    return code;
}

/* The webhook alone: every replica answers, none leads. */
static enum run_exit run_webhook(const struct process_api *api, const struct operator_flags *values)
{
    struct metrics *metrics = metrics_new();
    struct health *health = health_new(api->loop, metrics, NULL);
    struct run *run =
        run_new(api->loop, &(struct run_options){ .health = health, .metrics = metrics });
    struct process_listeners listeners = { .metrics = NULL };
    struct webhook webhook = { .admit = NULL };
    struct err err = { .class = 0 };
    enum run_exit code;

    if (listen_for_health(&listeners, api, health, values, &err) < 0 ||
        webhook_open(&webhook, api, values, metrics, health, &err) < 0)
        run_fail(run, &err);
    code = run_loop(run);
    webhook_close(&webhook);
    process_listen_end(&listeners);
    run_free(run);
    health_free(health);
    metrics_free(metrics);
    return code;
}

static struct http_transport *connect_slurm(void *context, const char *url, struct err *err)
{
    struct http_client_options options = { .base_url = url, .max_connections = 4 };
    struct http_transport *transport;

    return http_client_new(context, &options, &transport, err) < 0 ? NULL : transport;
}

static enum run_exit run_with(const struct process_api *api, const struct operator_flags *values)
{
    const struct operator_links links = { .loop = api->loop,
                                          .api = api->api,
                                          .lease_api = api->lease_api,
                                          .connect_slurm = connect_slurm,
                                          .connect_context = api->loop };
    struct operator_options options = { .lease_ns = values->lease_ns,
                                        .dns_domain = api->config->cluster_domain,
                                        .host_keys_program = "/proc/self/exe",
                                        .namespaces = values->namespaces.at,
                                        .namespace_count = values->namespaces.count,
                                        .propagated_conditions = values->propagated_conditions };
    char identity[PROCESS_IDENTITY];
    struct slurm_operator *program;
    enum run_exit code;

    if (values->webhook_only)
        return run_webhook(api, values);
    if (values->max_unregistered > 0 && values->max_unregistered <= MAX_UNREGISTERED)
        options.max_unregistered = (unsigned)values->max_unregistered;
    process_identity(identity, &options.seed);
    options.identity = identity;
    if (!options.lease_ns || !options.lease_ns[0])
        options.lease_ns = api->config->ns;
    program = operator_new(&links, &options);
    code = run_operator(program, api, values);
    operator_free(program);
    return code;
}

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

static int check_flags(void *flag_values, struct err *err)
{
    struct operator_flags *values = flag_values;
    char host[PROCESS_MAX_HOST];
    uint16_t port = 0;
    int result = process_address_read(
        (struct process_address){ "--server-addr", values->server_address }, host, &port, err);

    if (result == 0 && port == 0 && values->webhook_only)
        result = err_set(err, ERR_INVALID, "--webhook-only needs a --server-addr that is not 0");
    return result < 0 ? result : read_namespaces(values->namespace_list, &values->namespaces, err);
}

static void write_reference(struct buf *out)
{
    buf_add_text(out, "\nwhat the webhook refuses:\n\n");
    admit_rules_describe(out);
    buf_add_text(out, "\nmetrics, the webhook:\n\n");
    metrics_write_reference(operator_admit_metrics, operator_admit_metric_count, out);
    buf_add_text(out, "\nmetrics, the process and its work:\n\n");
    metrics_write_reference(engine_metrics, ENGINE_METRIC_COUNT, out);
}

/* Prints a new set of SSH host keys: the operator runs this beside its loop. */
int cmd_host_keys(int argc, char **argv)
{
    auto_buf struct buf keys;
    struct err err = { .class = 0 };

    (void)argc;
    (void)argv;
    buf_init(&keys, 1 << 20);
    if (sshkey_make_host(&keys, &err) < 0) {
        (void)fprintf(stderr, "slinc host-keys: %s\n", err.text);
        return RUN_FAILED;
    }
    (void)puts(buf_text(&keys));
    return RUN_OK;
}

static enum run_exit print_fields(void)
{
    auto_buf struct buf out;

    buf_init(&out, 1 << 20);
    spec_print(&out);
    (void)fputs(buf_text(&out), stdout);
    return RUN_OK;
}

static const struct process_command command = {
    .name = "operator",
    .what = "Slurm clusters as custom resources of Kubernetes",
    .flags = flags,
    .process_flags = AT(process),
    .check = check_flags,
    .help = write_reference,
};

int cmd_operator(int argc, char **argv)
{
    struct operator_flags values = { .health_address = NULL };
    struct process_api api = { .loop = NULL };
    struct err err = { .class = 0 };
    enum run_exit code = RUN_FAILED;

    arena_init(&values.namespaces.arena, 1 << 20);
    if (process_begin(&command, argc, argv, &values, &code)) {
        if (values.print_fields)
            code = print_fields();
        else if (process_api_open(&api, &values.process, &err) == 0)
            code = run_with(&api, &values);
        else
            process_cannot_start("operator", &values.process, &err);
        process_api_close(&api);
    }
    arena_done(&values.namespaces.arena);
    return (int)code;
}
