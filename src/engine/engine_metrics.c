/* engine_metrics.c - one row per metric family; and the one that counts calls. */
#include "engine/engine_metrics.h"

#include <stdio.h>

/* controller-runtime's, for times of reconciles. */
static const double reconcile_buckets[] = {
    0.005, 0.01, 0.025, 0.05, 0.1,  0.15, 0.2,  0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6,
    0.7,   0.8,  0.9,   1.0,  1.25, 1.5,  1.75, 2.0,  2.5, 3.0,  3.5, 4.0,  4.5, 5,
    6,     7,    8,     9,    10,   15,   20,   25,   30,  40,   50,  60,   0,
};

/* client-go's, for times of queues. */
static const double queue_buckets[] = { 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2,
                                        1e-1, 1,    10,   100,  1000, 0 };

static const double call_buckets[] = { 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                       0.5,   1,      2.5,   5,    10,    30,   0 };

#define COUNTER(title, text, ...)                                                                  \
    {                                                                                              \
        .name = (title), .help = (text), .type = METRIC_COUNTER, .labels = { __VA_ARGS__ }         \
    }
#define GAUGE(title, text, ...)                                                                    \
    {                                                                                              \
        .name = (title), .help = (text), .type = METRIC_GAUGE, .labels = { __VA_ARGS__ }           \
    }
#define HISTOGRAM(title, text, bounds, ...)                                                        \
    {                                                                                              \
        .name = (title), .help = (text), .type = METRIC_HISTOGRAM, .buckets = (bounds),            \
        .labels = {                                                                                \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

const struct metric_family engine_metrics[ENGINE_METRIC_COUNT] = {
    [METRIC_RECONCILE_TOTAL] =
        COUNTER("controller_runtime_reconcile_total",
                "Keys looked at, by how it ended: success, requeue, requeue_after or error.",
                "controller", "result"),
    [METRIC_RECONCILE_ERRORS] = COUNTER("controller_runtime_reconcile_errors_total",
                                        "Keys whose plan or whose actions failed.", "controller"),
    [METRIC_RECONCILE_TERMINAL_ERRORS] =
        COUNTER("controller_runtime_terminal_reconcile_errors_total",
                "Keys whose actions were refused as invalid.", "controller"),
    [METRIC_RECONCILE_PANICS] =
        COUNTER("controller_runtime_reconcile_panics_total",
                "Always 0; kept for dashboards that ask for it.", "controller"),
    [METRIC_RECONCILE_TIMEOUTS] = COUNTER("controller_runtime_reconcile_timeouts_total",
                                          "Actions that got no answer in time.", "controller"),
    [METRIC_RECONCILE_SECONDS] =
        HISTOGRAM("controller_runtime_reconcile_time_seconds",
                  "Time from taking a key to the last answer to its actions.", reconcile_buckets,
                  "controller"),
    [METRIC_MAX_CONCURRENT] = GAUGE("controller_runtime_max_concurrent_reconciles",
                                    "Calls that may be in flight at once.", "controller"),
    [METRIC_ACTIVE_WORKERS] =
        GAUGE("controller_runtime_active_workers", "Keys being worked on.", "controller"),

    [METRIC_WEBHOOK_REQUESTS] =
        COUNTER("controller_runtime_webhook_requests_total",
                "Admission requests answered, by HTTP status.", "webhook", "code"),
    [METRIC_WEBHOOK_SECONDS] =
        HISTOGRAM("controller_runtime_webhook_latency_seconds",
                  "Time to answer admission requests.", call_buckets, "webhook"),
    [METRIC_WEBHOOK_IN_FLIGHT] = GAUGE("controller_runtime_webhook_requests_in_flight",
                                       "Admission requests being answered.", "webhook"),
    [METRIC_CERTIFICATE_READS] =
        COUNTER("certwatcher_read_certificate_total", "Reads of the serving certificate.", NULL),
    [METRIC_CERTIFICATE_ERRORS] = COUNTER("certwatcher_read_certificate_errors_total",
                                          "Reads of the serving certificate that failed.", NULL),

    [METRIC_QUEUE_DEPTH] = GAUGE("workqueue_depth", "Keys due and not yet taken.", "name"),
    [METRIC_QUEUE_ADDS] = COUNTER("workqueue_adds_total", "Additions of keys.", "name"),
    [METRIC_QUEUE_WAIT_SECONDS] =
        HISTOGRAM("workqueue_queue_duration_seconds",
                  "How long keys were due before they were taken.", queue_buckets, "name"),
    [METRIC_QUEUE_WORK_SECONDS] = HISTOGRAM("workqueue_work_duration_seconds",
                                            "How long keys were worked on.", queue_buckets, "name"),
    [METRIC_QUEUE_UNFINISHED_SECONDS] =
        GAUGE("workqueue_unfinished_work_seconds", "Time spent so far on all keys being worked on.",
              "name"),
    [METRIC_QUEUE_LONGEST_SECONDS] =
        GAUGE("workqueue_longest_running_processor_seconds",
              "Time spent so far on the key worked on for longest.", "name"),
    [METRIC_QUEUE_RETRIES] =
        COUNTER("workqueue_retries_total", "Keys that came back by back-off.", "name"),
    [METRIC_QUEUE_DROPPED] =
        COUNTER("slinc_queue_dropped_total",
                "Keys lost because the queue was full; more than 0 is a defect.", "name"),

    [METRIC_REST_REQUESTS] = COUNTER(
        "rest_client_requests_total",
        "Calls to the API server, by HTTP status (<error>: no answer).", "code", "host", "method"),
    [METRIC_REST_SECONDS] =
        HISTOGRAM("rest_client_request_duration_seconds",
                  "Time to the answer of calls to the API server.", call_buckets, "host", "verb"),
    [METRIC_LEADER] =
        GAUGE("leader_election_master_status", "1 while this process holds the lease.", "name"),

    [METRIC_PROCESS_CPU] = COUNTER("process_cpu_seconds_total", "User and system CPU time.", NULL),
    [METRIC_PROCESS_MAX_FDS] = GAUGE("process_max_fds", "Limit of open file descriptors.", NULL),
    [METRIC_PROCESS_OPEN_FDS] = GAUGE("process_open_fds", "Open file descriptors.", NULL),
    [METRIC_PROCESS_RESIDENT] = GAUGE("process_resident_memory_bytes", "Resident memory.", NULL),
    [METRIC_PROCESS_START] =
        GAUGE("process_start_time_seconds", "Start of the process, in seconds since 1970.", NULL),
    [METRIC_PROCESS_VIRTUAL] = GAUGE("process_virtual_memory_bytes", "Virtual memory.", NULL),
    [METRIC_PROCESS_VIRTUAL_MAX] = GAUGE("process_virtual_memory_max_bytes",
                                         "Limit of virtual memory; -1 when there is none.", NULL),

    [METRIC_ACTIONS] = COUNTER("slinc_actions_total", "Actions carried out, by how they ended.",
                               "type", "verb", "outcome"),
    [METRIC_ACTION_SECONDS] =
        HISTOGRAM("slinc_action_duration_seconds", "Time from sending an action to its answer.",
                  call_buckets, "type", "verb"),
    [METRIC_IN_FLIGHT] =
        GAUGE("slinc_actions_in_flight", "Actions sent and not yet answered.", NULL),
    [METRIC_BUILD_INFO] =
        GAUGE("slinc_build_info", "Always 1; its label is the program's version.", "version"),
    [METRIC_CACHE_AGE] =
        GAUGE("slinc_cache_age_seconds",
              "Time since the server was last heard of for this kind; -1: never.", "kind"),
    [METRIC_CACHE_OBJECTS] =
        GAUGE("slinc_cache_objects", "Objects in the cache of this kind.", "kind"),
    [METRIC_CACHE_UNDECODED] = COUNTER(
        "slinc_cache_undecoded_total",
        "Objects of this kind that could not be decoded: the cache keeps what it had.", "kind"),
    [METRIC_OVERLAYS] =
        GAUGE("slinc_overlay_size", "Predicted effects of our own writes that lie over the caches.",
              NULL),
    [METRIC_LOOP_LONGEST] = GAUGE("slinc_loop_longest_seconds",
                                  "Longest run of one callback since the last scrape.", NULL),
};

/* ---- calls ---- */

static const char *method_of(enum kube_verb verb)
{
    static const char *const methods[] = {
        [KUBE_GET] = "GET",
        [KUBE_LIST] = "GET",
        [KUBE_CREATE] = "POST",
        [KUBE_MERGE_PATCH] = "PATCH",
        [KUBE_STRATEGIC_PATCH] = "PATCH",
        [KUBE_JSON_PATCH] = "PATCH",
        [KUBE_UPDATE] = "PUT",
        [KUBE_DELETE] = "DELETE",
    };

    return methods[verb];
}

static void on_call(void *context, const struct kube_request *request, int status, int64_t took_us)
{
    const struct rest_metrics *rest = context;
    const char *method = method_of(request->verb);
    char code[16] = "<error>";

    if (status > 0)
        snprintf(code, sizeof(code), "%d", status);
    metrics_add(rest->metrics, &engine_metrics[METRIC_REST_REQUESTS], 1, code, rest->host, method,
                NULL);
    metrics_observe(rest->metrics, &engine_metrics[METRIC_REST_SECONDS], (double)took_us / 1e6,
                    rest->host, method, NULL);
}

void rest_metrics_watch(struct rest_metrics *rest, struct metrics *metrics, const char *host,
                        struct kube_client *client)
{
    *rest = (struct rest_metrics){ .metrics = metrics, .host = host };
    kube_client_observe(client, on_call, rest);
}
