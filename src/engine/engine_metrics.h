/* engine_metrics.h - the metric families that every subcommand has, and those who feed them.
 *
 * Names, labels and buckets of the first groups are those of controller-runtime and client-go:
 * dashboards and alerts made for them keep working. */
#ifndef SLINC_ENGINE_ENGINE_METRICS_H
#define SLINC_ENGINE_ENGINE_METRICS_H

#include "engine/metrics.h"
#include "kube/client.h"

enum engine_metric {
    METRIC_RECONCILE_TOTAL,
    METRIC_RECONCILE_ERRORS,
    METRIC_RECONCILE_TERMINAL_ERRORS,
    METRIC_RECONCILE_PANICS,
    METRIC_RECONCILE_TIMEOUTS,
    METRIC_RECONCILE_SECONDS,
    METRIC_MAX_CONCURRENT,
    METRIC_ACTIVE_WORKERS,

    METRIC_WEBHOOK_REQUESTS,
    METRIC_WEBHOOK_SECONDS,
    METRIC_WEBHOOK_IN_FLIGHT,
    METRIC_CERTIFICATE_READS,
    METRIC_CERTIFICATE_ERRORS,

    METRIC_QUEUE_DEPTH,
    METRIC_QUEUE_ADDS,
    METRIC_QUEUE_WAIT_SECONDS,
    METRIC_QUEUE_WORK_SECONDS,
    METRIC_QUEUE_UNFINISHED_SECONDS,
    METRIC_QUEUE_LONGEST_SECONDS,
    METRIC_QUEUE_RETRIES,
    METRIC_QUEUE_DROPPED,

    METRIC_REST_REQUESTS,
    METRIC_REST_SECONDS,
    METRIC_LEADER,

    METRIC_PROCESS_CPU,
    METRIC_PROCESS_MAX_FDS,
    METRIC_PROCESS_OPEN_FDS,
    METRIC_PROCESS_RESIDENT,
    METRIC_PROCESS_START,
    METRIC_PROCESS_VIRTUAL,
    METRIC_PROCESS_VIRTUAL_MAX,

    METRIC_ACTIONS,
    METRIC_ACTION_SECONDS,
    METRIC_IN_FLIGHT,
    METRIC_BUILD_INFO,
    METRIC_CACHE_AGE,
    METRIC_CACHE_OBJECTS,
    METRIC_CACHE_UNDECODED,
    METRIC_OVERLAYS,
    METRIC_LOOP_LONGEST,

    ENGINE_METRIC_COUNT
};

extern const struct metric_family engine_metrics[ENGINE_METRIC_COUNT];

/* Counts every call of a client as rest_client_requests_total. The struct is the caller's and must
 * stay while the client is used; host is borrowed. */
struct rest_metrics {
    struct metrics *metrics;
    const char *host;
};
void rest_metrics_watch(struct rest_metrics *rest, struct metrics *metrics, const char *host,
                        struct kube_client *client);

/* process_*, read from /proc at every scrape. */
void process_metrics_watch(struct metrics *metrics);

#endif
