/* cmd_bridge.c - `slinc bridge`: the bridge against a real cluster and a real Slurm.
 *
 * A list of things made in the order in which they need each other, and freed in the opposite one.
 * SIGTERM stops it cleanly. */
#include "admit/rules.h"
#include "admit/server.h"
#include "admit/watch.h"
#include "base/log.h"
#include "base/mem.h"
#include "bridge/bridge.h"
#include "bridge/checks.h"
#include "bridge/ending.h"
#include "bridge/place.h"
#include "bridge/slurm/slurm_action.h"
#include "bridge/timings.h"
#include "bridge/unit/end_policy.h"
#include "bridge/unit/job_desc.h"
#include "bridge/why.h"
#include "bridge/world/world.h"
#include "cmd/cmd.h"
#include "cmd/flags.h"
#include "cmd/pod_sync.h"
#include "cmd/process.h"
#include "engine/engine_metrics.h"
#include "engine/pod_end.h"
#include "engine/run.h"
#include "engine/slurm_health.h"
#include "io/http_client.h"
#include "io/reload.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    TOKEN_LIFE_S = 300,
    SLURM_CONNECTIONS = 20, /* eight asks, eight reads, and the polls beside them */
    SECOND_US = 1000000,
    LEAVE_LOOK_US = SECOND_US,
    MAX_MARK_KEY = 16 << 10,
    AGENT_CONNECTIONS = 32, /* submits, completes, reads; each waits for one worker of the agent */
};

#define AGENT_SCHEME "unix:"

struct bridge_flags {
    struct process_flags process;
    const char *config, *metrics_address, *health_address, *prolog_address, *lease_ns, *lent_nodes;
    const char *mark_key, *slurm_agent;
    const char *webhook_folder, *bridge_user, *roles;
    bool observe_only, uninstall;
    bool places, admits; /* of the roles */
    int64_t uninstall_s, webhook_port;
};

#define AT(member) offsetof(struct bridge_flags, member)

static const struct flag flags[] = {
    { "config", FLAG_TEXT, AT(config), "/etc/slurm-bridge/config.yaml",
      "the bridge's config file" },
    { "metrics-bind-address", FLAG_TEXT, AT(metrics_address), ":8080",
      "where /metrics is served, and /debug/state and /debug/why to whoever may get these paths" },
    { "health-probe-bind-address", FLAG_TEXT, AT(health_address), ":8081",
      "where /healthz and /readyz are served" },
    { "prolog-bind-address", FLAG_TEXT, AT(prolog_address), "0",
      "where prologs of Slurm's own jobs ask for pods that still stop on their node, such as "
      ":8082; "
      "plain, and everybody may ask; 0: nowhere" },
    { "lease-namespace", FLAG_TEXT, AT(lease_ns), NULL,
      "of the lease that only the leader holds; else the pod's own" },
    { "lent-nodes", FLAG_TEXT, AT(lent_nodes), NULL,
      "ConfigMap beside the lease, for a policy of the API server: the bridge writes the names of "
      "the nodes there that are lent to Slurm; else nowhere" },
    { "mark-key", FLAG_TEXT, AT(mark_key), NULL,
      "file with the secret that proves which jobs are ours where a plugin of the site rewrites "
      "admin comments; in a second line the secret before it, and until when it is believed "
      "(RFC 3339)" },
    { "slurm-agent", FLAG_TEXT, AT(slurm_agent), NULL,
      "where slinc-agent answers, as unix:/path/of/its/socket; without it, and while it does not "
      "answer, every call goes to slurmRestApi" },
    { "roles", FLAG_TEXT, AT(roles), "scheduler,controllers,webhook",
      "what the process does; webhook alone admits pods, without lease and Slurm" },
    { "observe-only", FLAG_BOOL, AT(observe_only), "false",
      "plan and print what would be done, write nothing" },
    { "uninstall", FLAG_BOOL, AT(uninstall), "false",
      "give back all that the bridge holds (finalizers, jobs, nodes in Slurm, taints), then end" },
    { "uninstall-seconds", FLAG_NUMBER, AT(uninstall_s), "120",
      "how long that may take; then the process fails and says what is left" },
    { "webhook-port", FLAG_NUMBER, AT(webhook_port), "9443",
      "where pods are admitted, over TLS; 0: nowhere" },
    { "webhook-cert-dir", FLAG_TEXT, AT(webhook_folder), "/tmp/k8s-webhook-server/serving-certs",
      "of tls.crt and tls.key; they may change at any time" },
    { "bridge-user", FLAG_TEXT, AT(bridge_user), "",
      "whose updates of pods the webhook never refuses, besides its own user's" },
    { "node-workers", FLAG_IGNORED, 0, NULL, "taken, and without effect" },
    { "pod-workers", FLAG_IGNORED, 0, NULL, "taken, and without effect" },
    PROCESS_FLAGS(AT(process)),
    { NULL, FLAG_TEXT, 0, NULL, NULL },
};

/* ---- the ends of the wires ---- */

struct ends {
    struct bridge_config config;
    struct process_api kube;
    struct bridge_links links;
    struct slurm_owner owner;
    char *mark_key;
    size_t mark_key_len;
};

/* Any Slurm user can write a text like ours into a job: without the secret none counts. */
static int read_mark_key(struct ends *ends, const char *path, struct err *err)
{
    struct str text;
    int result;

    if (!path) {
        log_warn("no --mark-key: jobs whose admin comment a plugin of the site rewrites are lost");
        return 0;
    }
    result = reload_read(path, MAX_MARK_KEY, &ends->mark_key, &ends->mark_key_len, err);
    text = (struct str){ ends->mark_key, ends->mark_key_len };
    if (result == 0)
        result = slurm_owner_read(&ends->owner, text, err);
    return result < 0 ? err_wrap(err, "--mark-key %s", path) : 0;
}

/* The webhook must be served before there is a token: the file is awaited. A key signs tokens that
 * die soon, which shortens every wait after a lost answer. */
static int open_token(struct ends *ends, struct err *err)
{
    const struct bridge_config *config = &ends->config;
    const char *path = getenv("SLURM_JWT_FILE");

    if (config->jwt_key_file[0])
        return slurm_token_new_key_file(loop_clock(ends->links.loop), config->jwt_key_file,
                                        config->jwt_user[0] ? config->jwt_user : "slurm",
                                        TOKEN_LIFE_S, &ends->links.token, err);
    if (!path || !path[0])
        return err_set(err, ERR_INVALID,
                       "there is no token for Slurm: set SLURM_JWT_FILE to a file that holds one, "
                       "or jwtKeyFile in the config");
    ends->links.token = slurm_token_new_awaited(ends->links.loop, path);
    slurm_token_set_user(ends->links.token, config->jwt_user);
    return 0;
}

static int open_slurm(struct ends *ends, struct err *err)
{
    const char *url = ends->config.slurm_rest_api;
    bool is_unix = str_starts(str_of(url), STR("unix://"));
    const struct http_client_options options = {
        .base_url = is_unix ? "http://slurmrestd" : url,
        .unix_socket = is_unix ? url + sizeof("unix://") - 1 : NULL,
        .tls.ca_file = ends->config.slurm_rest_ca_file[0] ? ends->config.slurm_rest_ca_file : NULL,
        .tls_kept = process_tls_kept,
        .tls_context = (void *)(uintptr_t)url,
        .http1_only = true,
        .max_connections = SLURM_CONNECTIONS,
    };
    int result = http_client_new(ends->links.loop, &options, &ends->links.slurm, err);

    return result < 0 ? err_wrap(err, "slurmRestApi %s", url) : 0;
}

/* One that is not there yet is awaited: the client pings it. */
static int open_agent(struct ends *ends, const char *address, struct err *err)
{
    const struct http_client_options options = { .base_url = "http://slinc-agent",
                                                 .unix_socket = address + strlen(AGENT_SCHEME),
                                                 .http1_only = true,
                                                 .max_connections = AGENT_CONNECTIONS };
    int result = http_client_new(ends->links.loop, &options, &ends->links.agent, err);

    return result < 0 ? err_wrap(err, "--slurm-agent %s", address) : 0;
}

static int ends_open(struct ends *ends, const struct bridge_flags *values, struct err *err)
{
    int result;

    if (bridge_config_load(values->config, &ends->config, err) < 0)
        return err_wrap(err, "--config %s", values->config);
    if ((result = process_api_open(&ends->kube, &values->process, err)) < 0)
        return result;
    ends->links = (struct bridge_links){ .loop = ends->kube.loop,
                                         .api = ends->kube.api,
                                         .lease_api = ends->kube.lease_api };
    if (!values->places)
        return 0;
    if ((result = read_mark_key(ends, values->mark_key, err)) < 0 ||
        (result = open_token(ends, err)) < 0 || (result = open_slurm(ends, err)) < 0)
        return result;
    return values->slurm_agent ? open_agent(ends, values->slurm_agent, err) : 0;
}

static void ends_close(struct ends *ends)
{
    http_transport_free(ends->links.slurm);
    http_transport_free(ends->links.agent);
    slurm_token_free(ends->links.token);
    if (ends->mark_key)
        mem_free_secret(ends->mark_key, ends->mark_key_len + 1);
    process_api_close(&ends->kube);
    bridge_config_done(&ends->config);
}

static int listen_for_health(struct process_listeners *listeners, const struct ends *ends,
                             struct health *health, const struct bridge_flags *values,
                             struct err *err)
{
    return process_listen(listeners,
                          &(struct process_serve){
                              .loop = ends->links.loop,
                              .api = ends->links.api,
                              .of = health,
                              .flags = &values->process,
                              .metrics = { "--metrics-bind-address", values->metrics_address },
                              .health = { "--health-probe-bind-address", values->health_address } },
                          err);
}

/* What prologs ask. *ret_server stays NULL when nobody is to. */
static int listen_for_prologs(struct loop *loop, const struct http_route *route,
                              const char *address, struct http_server **ret_server, struct err *err)
{
    const struct process_address at = { "--prolog-bind-address", address };
    char host[PROCESS_MAX_HOST];
    uint16_t port = 0;
    int result = process_address_read(at, host, &port, err);

    if (result < 0 || port == 0)
        return result;
    result = http_server_new(loop,
                             &(struct http_server_options){ .address = host[0] ? host : NULL,
                                                            .port = port,
                                                            .routes = route,
                                                            .route_count = 1,
                                                            .request_us = 5 * SECOND_US },
                             ret_server, err);
    return result < 0 ? err_wrap(err, "%s", at.flag) : 0;
}

/* ---- the webhook ---- */

struct webhook {
    struct kube_client *client;
    struct admit *admit;
    struct admit_self *self;
    struct webhook_server *server;
};

/* One that only looks, or gives all back, changes no pods. */
static bool wants_webhook(const struct bridge_flags *values)
{
    return values->admits && values->webhook_port > 0 && !values->observe_only &&
           !values->uninstall;
}

static int webhook_open(struct webhook *webhook, const struct ends *ends,
                        const struct bridge_flags *values, const struct bridge_world *world,
                        struct metrics *metrics, struct health *health, struct err *err)
{
    const struct webhook_options options = { .metrics = metrics,
                                             .port = (uint16_t)values->webhook_port,
                                             .folder = values->webhook_folder,
                                             .is_needed = !values->places };
    int result = admit_new(&ends->config, world, &webhook->admit, err);

    if (result < 0)
        return result;
    admit_trust_also(webhook->admit, str_of(values->bridge_user));
    result = admit_server_new(ends->links.loop, webhook->admit, options, &webhook->server, err);
    if (result < 0)
        return result;
    webhook_server_add_health(webhook->server, health);
    webhook->client = kube_client_new(ends->links.loop, ends->links.api);
    webhook->self = admit_self_new(webhook->client, webhook->admit);
    return 0;
}

static void webhook_close(struct webhook *webhook)
{
    admit_self_free(webhook->self);
    kube_client_free(webhook->client);
    webhook_server_free(webhook->server);
    admit_free(webhook->admit);
}

/* ---- leaving ---- */

struct leaving {
    struct loop *loop;
    struct bridge *bridge;
    struct run *run;
    struct loop_timer timer;
    int64_t until_us;
};

static void look_if_left(void *context)
{
    struct leaving *leaving = context;
    auto_buf struct buf left;
    struct err err = { .class = 0 };

    buf_init(&left, 1024);
    if (bridge_has_left(leaving->bridge, &left)) {
        log_info("the bridge has given back all it held");
        run_stop(leaving->run);
    } else if (loop_now_us(leaving->loop) > leaving->until_us) {
        (void)err_set(&err, ERR_TIMEOUT, "not all could be given back: %s are left",
                      buf_text(&left));
        run_fail(leaving->run, &err);
    } else {
        loop_timer_start(leaving->loop, &leaving->timer, LEAVE_LOOK_US, look_if_left, leaving);
    }
}

/* ---- running ---- */

static enum run_exit run_bridge(const struct ends *ends, struct bridge *bridge,
                                const struct bridge_flags *values)
{
    struct loop *loop = ends->links.loop;
    struct health *health = health_new(loop, bridge_metrics(bridge), bridge_engine(bridge));
    struct run *run =
        run_new(loop, &(struct run_options){ .engine = bridge_engine(bridge),
                                             .lease = bridge_lease(bridge),
                                             .lease_name = ends->config.scheduler_name,
                                             .may_release = bridge_may_release,
                                             .may_release_context = bridge,
                                             .health = health,
                                             .metrics = bridge_metrics(bridge) });
    struct checks *checks = bridge_checks_new(loop, bridge);
    struct leaving leaving = { .loop = loop,
                               .bridge = bridge,
                               .run = run,
                               .until_us = loop_now_us(loop) + values->uninstall_s * SECOND_US };
    struct process_listeners listeners = { .metrics = NULL };
    struct webhook webhook = { .admit = NULL };
    struct kube_client *client = kube_client_new(loop, ends->links.api);
    struct pod_sync *pod_sync = NULL;
    const struct http_route for_prologs = {
        .path = ENDING_PATH, .is_prefix = true, .handle = ending_serve, .context = bridge
    };
    struct http_server *prologs = NULL;
    const char *pod = getenv("POD_NAME");
    struct err err = { .class = 0 };
    enum run_exit code;

    if (pod && !values->observe_only)
        pod_sync = pod_sync_new(client, ends->links.token, ends->kube.config->ns, pod);
    bridge_add_health(bridge, health);
    checks_add_health(checks, health);
    listeners.debug[listeners.debug_count++] =
        (struct http_route){ .path = "/debug/why", .handle = why_serve, .context = bridge };
    listeners.debug[listeners.debug_count++] =
        (struct http_route){ .path = "/debug/checks", .handle = checks_serve, .context = checks };
    if (listen_for_health(&listeners, ends, health, values, &err) < 0 ||
        listen_for_prologs(loop, &for_prologs, values->prolog_address, &prologs, &err) < 0 ||
        (wants_webhook(values) && webhook_open(&webhook, ends, values, bridge_world(bridge),
                                               bridge_metrics(bridge), health, &err) < 0))
        run_fail(run, &err);
    bridge_start(bridge);
    checks_start(checks);
    if (values->uninstall)
        loop_timer_start(loop, &leaving.timer, LEAVE_LOOK_US, look_if_left, &leaving);
    code = run_loop(run);
    loop_timer_stop(&leaving.timer);
    pod_sync_free(pod_sync);
    kube_client_free(client);
    checks_free(checks);
    webhook_close(&webhook);
    http_server_free(prologs);
    process_listen_end(&listeners);
    run_free(run);
    health_free(health);
    return code;
}

/* The webhook alone: every replica answers, none leads. */
static enum run_exit run_webhook(const struct ends *ends, const struct bridge_flags *values)
{
    struct loop *loop = ends->links.loop;
    struct metrics *metrics = metrics_new();
    struct health *health = health_new(loop, metrics, NULL);
    struct run *run = run_new(loop, &(struct run_options){ .health = health, .metrics = metrics });
    struct kube_client *client = kube_client_new(loop, ends->links.api);
    struct process_listeners listeners = { .metrics = NULL };
    struct webhook webhook = { .admit = NULL };
    struct err err = { .class = 0 };
    struct admit_watch *watch;
    char identity[PROCESS_IDENTITY];
    enum run_exit code;
    uint64_t seed;

    process_identity(identity, &seed);
    watch = admit_watch_new(client, seed);
    admit_watch_add_health(watch, health);
    if (listen_for_health(&listeners, ends, health, values, &err) < 0 ||
        webhook_open(&webhook, ends, values, admit_watch_world(watch), metrics, health, &err) < 0)
        run_fail(run, &err);
    code = run_loop(run);
    webhook_close(&webhook);
    process_listen_end(&listeners);
    admit_watch_free(watch);
    kube_client_free(client);
    run_free(run);
    health_free(health);
    metrics_free(metrics);
    return code;
}

static enum run_exit run_with(struct ends *ends, const struct bridge_flags *values)
{
    struct bridge_options options = { .config = &ends->config,
                                      .lease_ns = values->lease_ns,
                                      .lent_nodes = values->lent_nodes,
                                      .owner = ends->owner,
                                      .uninstall = values->uninstall,
                                      .observe_only = values->observe_only };
    char identity[PROCESS_IDENTITY];
    struct bridge *bridge;
    enum run_exit code;

    for (const char *line = ends->config.warnings; *line; line = "")
        log_warn("config", LOG_TEXT("warning", line));
    if (!values->places)
        return run_webhook(ends, values);
    process_identity(identity, &options.seed);
    options.identity = identity;
    if (!options.lease_ns)
        options.lease_ns = ends->kube.config->ns;
    bridge = bridge_new(&ends->links, &options);
    code = run_bridge(ends, bridge, values);
    bridge_free(bridge);
    return code;
}

/* Pods and nodes are placed by one plan under one lease: scheduler and controllers are one role. */
static int read_roles(struct bridge_flags *values, struct err *err)
{
    struct str rest = str_of(values->roles), role;
    bool scheduler = false, controllers = false;

    while (str_next(&rest, ',', &role)) {
        scheduler |= str_is(role, "scheduler");
        controllers |= str_is(role, "controllers");
        values->admits |= str_is(role, "webhook");
        if (!str_is(role, "scheduler") && !str_is(role, "controllers") && !str_is(role, "webhook"))
            return err_set(err, ERR_INVALID,
                           "--roles: \"" STR_FMT "\" is none of scheduler, controllers and webhook",
                           STR_ARG(role));
    }
    if (scheduler != controllers)
        return err_set(err, ERR_INVALID,
                       "--roles: scheduler and controllers share one lease: name both or neither");
    values->places = scheduler;
    return 0;
}

static int check_flags(void *flag_values, struct err *err)
{
    struct bridge_flags *values = flag_values;
    int result = read_roles(values, err);

    if (result < 0)
        return result;
    if (values->slurm_agent && values->slurm_agent[0] == '\0')
        values->slurm_agent = NULL;
    if (values->slurm_agent && !str_starts(str_of(values->slurm_agent), STR(AGENT_SCHEME "/")))
        return err_set(err, ERR_INVALID, "--slurm-agent: wants " AGENT_SCHEME "/path, not %s",
                       values->slurm_agent);
    if (values->webhook_port > UINT16_MAX)
        return err_set(err, ERR_INVALID, "--webhook-port: wants at most %d", UINT16_MAX);
    if (!values->places && !wants_webhook(values))
        return err_set(err, ERR_INVALID,
                       "--roles=webhook goes without --observe-only, --uninstall and a "
                       "--webhook-port of 0");
    return 0;
}

static void metrics_reference(struct buf *out)
{
    const struct {
        const char *about;
        const struct metric_family *families;
        size_t count;
    } tables[] = {
        { "pods on their way", timings_metrics, timings_metric_count },
        { "jobs of Slurm's own beside them", ending_metrics, ending_metric_count },
        { "what is asked of Slurm", slurm_executor_metrics, slurm_executor_metric_count },
        { "what is heard of Slurm", slurm_health_metrics, slurm_health_metric_count },
        { "the webhook", admit_metrics, admit_metric_count },
        { "the process and its work", engine_metrics, ENGINE_METRIC_COUNT },
    };

    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        buf_printf(out, "\nmetrics, %s:\n\n", tables[i].about);
        metrics_write_reference(tables[i].families, tables[i].count, out);
    }
}

static void write_reference(struct buf *out)
{
    buf_add_text(out, "\nconfig file:\n\n");
    bridge_config_reference(out);
    buf_add_text(out,
                 "\nannotations of the pod, or of its owner or group instead, if it has one:\n\n");
    job_desc_reference(out);
    buf_add_text(out, "\nwhat Slurm does to a job, and what that means for its pod:\n\n");
    job_end_reference(out);
    buf_add_text(
        out, "\nhow a pod ends, and what its job in Slurm is told, where there is an agent:\n\n");
    pod_end_reference(out);
    buf_add_text(
        out, "\nthe phases of a unit (a pod, or the pods of a group), in the order in which they "
             "are looked for:\n\n");
    place_reference(out);
    buf_add_text(out, "\nwhat the webhook refuses:\n\n");
    admit_rules_reference(out);
    metrics_reference(out);
    buf_add_text(
        out, "\nSLURM_JWT_FILE names the file with the token for Slurm. POD_NAME is our own pod: "
             "when Slurm refuses the token, the pod gets an annotation, so that kubelet "
             "brings a new one.\n");
}

static const struct process_command command = {
    .name = "bridge",
    .what = "lets Slurm place the pods of Kubernetes",
    .flags = flags,
    .process_flags = AT(process),
    .check = check_flags,
    .help = write_reference,
};

int cmd_bridge(int argc, char **argv)
{
    struct bridge_flags values = { .config = NULL };
    struct ends ends = { .kube = { .loop = NULL } };
    struct err err = { .class = 0 };
    enum run_exit code = RUN_FAILED;

    if (!process_begin(&command, argc, argv, &values, &code))
        return (int)code;
    if (ends_open(&ends, &values, &err) == 0)
        code = run_with(&ends, &values);
    else
        process_cannot_start("bridge", &values.process, &err);
    ends_close(&ends);
    return (int)code;
}
