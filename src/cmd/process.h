/* process.h - what every subcommand that keeps running does before it runs: log, API server,
 * listeners, a name among its replicas. */
#ifndef SLINC_CMD_PROCESS_H
#define SLINC_CMD_PROCESS_H

#include "cmd/flags.h"
#include "engine/health.h"
#include "engine/run.h"
#include "kube/config.h"
#include "kube/guard.h"

enum { PROCESS_IDENTITY = 160, PROCESS_MAX_HOST = 128 };

/* Flags that all commands with a log have. */
struct process_flags {
    const char *kubeconfig, *context, *log_level, *log_encoder;
    const char *metrics_folder; /* of tls.crt and tls.key */
    bool metrics_secure;
};

#define PROCESS_FLAG_AT(at, member) ((at) + offsetof(struct process_flags, member))

/* Their rows in a table of flags; at: the offset of a struct process_flags. */
#define PROCESS_OWN_FLAGS(at)                                                                      \
    { "kubeconfig", FLAG_TEXT, PROCESS_FLAG_AT(at, kubeconfig), NULL,                              \
      "instead of the pod's service account" },                                                    \
        { "context", FLAG_TEXT, PROCESS_FLAG_AT(at, context), NULL, "of the kubeconfig" },         \
        { "zap-log-level", FLAG_TEXT, PROCESS_FLAG_AT(at, log_level), "info",                      \
          "error, warn, info or debug" },                                                          \
        { "zap-encoder", FLAG_TEXT, PROCESS_FLAG_AT(at, log_encoder), NULL,                        \
          "json or console; else console on a terminal" }

/* Of commands that serve metrics. */
#define PROCESS_METRICS_FLAGS(at)                                                                  \
    { "metrics-secure", FLAG_BOOL, PROCESS_FLAG_AT(at, metrics_secure), "false",                   \
      "serve metrics over TLS, and only to who may get their path (a nonResourceURL of RBAC)" },   \
        { "metrics-cert-dir", FLAG_TEXT, PROCESS_FLAG_AT(at, metrics_folder),                      \
          "/tmp/k8s-metrics-server/metrics-certs",                                                 \
          "of tls.crt and tls.key for --metrics-secure; they may change at any time" }

/* And those that the commands of Slinky have. */
#define PROCESS_FLAGS(at)                                                                          \
    PROCESS_OWN_FLAGS(at), PROCESS_METRICS_FLAGS(at),                                              \
        { "leader-elect", FLAG_IGNORED_BOOL, 0, NULL, "taken, and always true" },                  \
        { "enable-http2", FLAG_IGNORED_BOOL, 0, NULL, "taken, and without effect" },               \
        { "zap-devel", FLAG_IGNORED_BOOL, 0, NULL, "taken, and without effect" },                  \
        { "zap-stacktrace-level", FLAG_IGNORED, 0, NULL, "taken, and without effect" },            \
        { "zap-time-encoding", FLAG_IGNORED, 0, NULL, "taken, and without effect" }

struct process_command {
    const char *name, *what;                     /* what it does, in half a line, for --help */
    const struct flag *flags;                    /* of a struct whose pointer is `values` below */
    size_t process_flags;                        /* where in it the struct process_flags is */
    int (*check)(void *values, struct err *err); /* NULL: the flags need no more checks */
    void (*help)(struct buf *out);               /* what --help says behind the flags; NULL */
};

/* Reads the command line and starts the log. False: the process is to end with *ret_code, because
 * --help was printed, or because the command line is wrong, which was said. */
bool process_begin(const struct process_command *command, int argc, char **argv, void *values,
                   enum run_exit *ret_code);

/* Replicas must differ: the host's name (in Kubernetes: the pod's) and some chance. */
void process_identity(char ret_identity[PROCESS_IDENTITY], uint64_t *ret_seed);

/* The way to the API server; leases have one of their own, so that no queue of calls delays them.
 */
struct process_api {
    struct loop *loop;
    struct kube_config *config;
    struct http_transport *api, *lease_api;
};

/* For http_client_options: says that renewed files of TLS are of no use. server: its URL. */
void process_tls_kept(void *server, const struct err *why);

int process_api_open(struct process_api *api, const struct process_flags *flags, struct err *err);
void process_api_close(struct process_api *api); /* also one that failed to open */

/* An address is ":8080" or "127.0.0.1:8080"; "0" or "" for none. Errors name the flag. */
struct process_address {
    const char *flag, *address;
};

/* *ret_port is 0 when the address says none; ret_host is "" when it names no host. */
int process_address_read(struct process_address at, char ret_host[PROCESS_MAX_HOST],
                         uint16_t *ret_port, struct err *err);

enum { PROCESS_OWN_ROUTES = 16, PROCESS_DEBUG_ROUTES = 4 };

struct process_listeners {
    /* What the subcommand serves itself: beside its metrics, and for those who may alone. */
    struct http_route own[PROCESS_OWN_ROUTES], debug[PROCESS_DEBUG_ROUTES];
    size_t own_count, debug_count;
    /* The rest is private. */
    struct http_route probes[HEALTH_ROUTES];
    struct http_route routes[PROCESS_OWN_ROUTES + HEALTH_METRICS_ROUTES + PROCESS_DEBUG_ROUTES +
                             HEALTH_ROUTES + 1];
    size_t route_count;
    struct kube_client *client;
    struct guard *guard;
    struct http_server *metrics, *health;
};

struct process_serve {
    struct loop *loop;
    struct http_transport *api; /* judges who asks; NULL: nothing is served that needs a right */
    struct health *of;
    const struct process_flags *flags;
    struct process_address metrics, health;
};

/* Serves at one address what probes ask, at the other everything; they may be the same. */
int process_listen(struct process_listeners *listeners, const struct process_serve *serve,
                   struct err *err);
void process_listen_end(struct process_listeners *listeners);

/* Says why the process cannot start: a sentence at a terminal, else a line of the log. */
void process_cannot_start(const char *command, const struct process_flags *flags,
                          const struct err *err);

#endif
