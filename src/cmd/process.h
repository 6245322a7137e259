/* process.h - what every subcommand that keeps running does before it runs: log, API server,
 * listeners, a name among its replicas. */
#ifndef SLINC_CMD_PROCESS_H
#define SLINC_CMD_PROCESS_H

#include "engine/health.h"
#include "kube/config.h"

enum { PROCESS_IDENTITY = 160 };

/* level: --zap-log-level; encoder: --zap-encoder, "" or NULL: console on a terminal, else json. */
int process_log(const char *level, const char *encoder, struct err *err);

/* Replicas must differ: the host's name (in Kubernetes: the pod's) and some chance. */
void process_identity(char ret_identity[PROCESS_IDENTITY], uint64_t *ret_seed);

/* The way to the API server; leases have one of their own, so that no queue of calls delays them.
 */
struct process_api {
    struct loop *loop;
    struct kube_config *config;
    struct http_transport *api, *lease_api;
};

int process_api_open(struct process_api *api, const struct kube_config_options *options,
                     struct err *err);
void process_api_close(struct process_api *api); /* also one that failed to open */

/* An address is ":8080" or "127.0.0.1:8080"; "0" or "" for none. Errors name the flag. */
struct process_address {
    const char *flag, *address;
};

struct process_listeners {
    struct http_route routes[HEALTH_ROUTES];
    struct http_server *metrics, *health;
};

/* Serves health, metrics and state at both addresses, which may be the same. */
int process_listen(struct process_listeners *listeners, struct loop *loop, struct health *health,
                   struct process_address metrics_at, struct process_address health_at,
                   struct err *err);
void process_listen_end(struct process_listeners *listeners);

/* Says why the process cannot start: a sentence at a terminal, else a line of the log. */
void process_cannot_start(const char *command, const char *encoder, const struct err *err);

#endif
