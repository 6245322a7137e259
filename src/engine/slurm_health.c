/* slurm_health.c - the four feeds from Slurm in words and figures: how old, how much, how often
 * asked; and when an episode of trouble with Slurm begins, changes and ends. */
#include "engine/slurm_health.h"

#include "base/log.h"
#include "codec/json.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    SECOND_US = 1000000,
    SILENCE_US = 60 * SECOND_US, /* of one feed: not ready then */
    SAME_WORDS_US = 60 * SECOND_US,
    FAILURES = 2, /* of polls of jobs in a row, once all kinds have been read: trouble */
};

static const char *const names[SLURM_FEEDS] = {
    [SLURM_FEED_JOBS] = "jobs",
    [SLURM_FEED_NODES] = "nodes",
    [SLURM_FEED_PARTITIONS] = "partitions",
    [SLURM_FEED_RESERVATIONS] = "reservations",
};

enum {
    HEALTH_AGE,
    HEALTH_OBJECTS,
    HEALTH_REQUESTS,
    HEALTH_BYTES,
    HEALTH_READS,
    HEALTH_FAILURES,
    HEALTH_SUSPICIONS,
    HEALTH_SUSPICIOUS,
    HEALTH_AGENT,
    HEALTH_AGENT_CALLS,
};

#define FAMILY(kind, title, text, label)                                                           \
    {                                                                                              \
        .name = (title), .help = (text), .type = (kind), .labels = { label }                       \
    }

const struct metric_family slurm_health_metrics[] = {
    [HEALTH_AGE] = FAMILY(METRIC_GAUGE, "slinc_slurm_age_seconds",
                          "Time since the last good poll of this kind began; -1: never.", "kind"),
    [HEALTH_OBJECTS] =
        FAMILY(METRIC_GAUGE, "slinc_slurm_objects", "Slurm's objects in the cache.", "kind"),
    [HEALTH_REQUESTS] = FAMILY(METRIC_COUNTER, "slinc_slurm_requests_total",
                               "Reads sent to slurmrestd, polls and single ones.", "kind"),
    [HEALTH_BYTES] =
        FAMILY(METRIC_COUNTER, "slinc_slurm_bytes_total", "Bytes that they answered.", "kind"),
    [HEALTH_READS] = FAMILY(METRIC_COUNTER, "slinc_slurm_object_reads_total",
                            "Of the reads those of one object.", "kind"),
    [HEALTH_FAILURES] =
        FAMILY(METRIC_COUNTER, "slinc_slurm_failures_total", "Reads that failed.", "kind"),
    [HEALTH_SUSPICIONS] = FAMILY(METRIC_COUNTER, "slinc_slurm_suspicions_total",
                                 "How often slurmctld was suspected of a restart.", NULL),
    [HEALTH_SUSPICIOUS] =
        FAMILY(METRIC_GAUGE, "slinc_slurm_suspicious",
               "1 while it is, and nothing is bound, cancelled or deleted.", NULL),
    [HEALTH_AGENT] =
        FAMILY(METRIC_GAUGE, "slinc_slurm_agent_up",
               "1 while the agent answers pings and reaches slurmctld; 0: slurmrestd is asked "
               "instead. Absent without an agent.",
               NULL),
    [HEALTH_AGENT_CALLS] =
        FAMILY(METRIC_COUNTER, "slinc_slurm_agent_calls_total",
               "Calls sent to the agent: answered; passed on to slurmrestd; lost, without answer.",
               "result"),
};
const size_t slurm_health_metric_count =
    sizeof(slurm_health_metrics) / sizeof(slurm_health_metrics[0]);

static double seconds_of(int64_t age_us)
{
    return age_us == INT64_MAX ? -1 : (double)age_us / 1e6;
}

static size_t objects_in(const struct slurm_health *slurm_health, unsigned feed)
{
    return slurm_cache_count(slurm_poller_cache(slurm_health->poller, (enum slurm_feed)feed));
}

/* ---- /metrics ---- */

static void set(const struct slurm_health *slurm_health, unsigned family, double value,
                const char *kind)
{
    metrics_set(slurm_health->metrics, &slurm_health_metrics[family], value, kind, NULL);
}

static void refresh_agent(const struct slurm_health *slurm_health)
{
    struct slurm_agent_status status;

    if (!slurm_health->client || !slurm_agent_status(slurm_health->client, &status))
        return;
    set(slurm_health, HEALTH_AGENT, status.is_up, NULL);
    set(slurm_health, HEALTH_AGENT_CALLS, (double)status.answered, "answered");
    set(slurm_health, HEALTH_AGENT_CALLS, (double)status.passed_on, "passed on");
    set(slurm_health, HEALTH_AGENT_CALLS, (double)status.lost, "lost");
}

static void refresh(void *context)
{
    const struct slurm_health *slurm_health = context;
    struct slurm_feed_stats stats;

    refresh_agent(slurm_health);
    if (!slurm_health->poller)
        return;
    for (unsigned feed = 0; feed < SLURM_FEEDS; feed++) {
        slurm_poller_stats(slurm_health->poller, (enum slurm_feed)feed, &stats);
        set(slurm_health, HEALTH_AGE, seconds_of(stats.age_us), names[feed]);
        set(slurm_health, HEALTH_OBJECTS, (double)objects_in(slurm_health, feed), names[feed]);
        set(slurm_health, HEALTH_REQUESTS, (double)stats.requests, names[feed]);
        set(slurm_health, HEALTH_BYTES, (double)stats.bytes, names[feed]);
        set(slurm_health, HEALTH_READS, (double)stats.reads, names[feed]);
        set(slurm_health, HEALTH_FAILURES, (double)stats.failures, names[feed]);
    }
    set(slurm_health, HEALTH_SUSPICIONS, (double)slurm_poller_suspicions(slurm_health->poller),
        NULL);
    set(slurm_health, HEALTH_SUSPICIOUS, slurm_poller_is_suspicious(slurm_health->poller), NULL);
}

/* ---- /debug/state ---- */

static void write_feed(const struct slurm_health *slurm_health, unsigned feed, struct buf *out)
{
    struct slurm_feed_stats stats;

    slurm_poller_stats(slurm_health->poller, (enum slurm_feed)feed, &stats);
    buf_printf(out,
               "{\"kind\":\"%s\",\"objects\":%zu,\"ageSeconds\":%.3f,\"requests\":%" PRIu64
               ",\"bytes\":%" PRIu64 ",\"failures\":%" PRIu64 ",\"error\":",
               names[feed], objects_in(slurm_health, feed), seconds_of(stats.age_us),
               stats.requests, stats.bytes, stats.failures);
    json_escape(out, str_of(stats.last_error));
    buf_add_char(out, '}');
}

static void write_state(void *context, struct buf *out)
{
    const struct slurm_health *slurm_health = context;

    if (!slurm_health->poller) {
        buf_add_text(out, "null");
        return;
    }
    buf_printf(out, "{\"suspicious\":%s,\"suspicion\":",
               slurm_poller_is_suspicious(slurm_health->poller) ? "true" : "false");
    json_escape(out, str_of(slurm_poller_why(slurm_health->poller)));
    buf_add_text(out, ",\"feeds\":[");
    for (unsigned feed = 0; feed < SLURM_FEEDS; feed++) {
        if (feed > 0)
            buf_add_char(out, ',');
        write_feed(slurm_health, feed, out);
    }
    buf_add_text(out, "]}");
}

/* ---- /readyz ---- */

static bool are_heard(void *context, struct buf *why)
{
    const struct slurm_health *slurm_health = context;
    struct slurm_feed_stats stats;

    if (!slurm_health->poller) {
        buf_add_text(why, "it is not known yet which cluster this is");
        return false;
    }
    for (unsigned feed = 0; feed < SLURM_FEEDS; feed++) {
        slurm_poller_stats(slurm_health->poller, (enum slurm_feed)feed, &stats);
        if (stats.age_us < SILENCE_US)
            continue;
        buf_printf(why, "nothing heard from Slurm for %" PRId64 " s: %s",
                   stats.age_us == INT64_MAX ? -1 : stats.age_us / SECOND_US, stats.last_error);
        return false;
    }
    return true;
}

void slurm_health_init(struct slurm_health *slurm_health, struct metrics *metrics)
{
    *slurm_health = (struct slurm_health){ .metrics = metrics };
    metrics_on_scrape(metrics, refresh, slurm_health);
}

void slurm_health_add_health(struct slurm_health *slurm_health, struct health *health)
{
    health_check(health, "slurm", are_heard, slurm_health);
    health_show(health, "slurm", write_state, slurm_health);
}

/* ---- trouble ---- */

bool slurm_trouble_update(struct slurm_trouble *trouble, const char *why, int64_t now_us)
{
    bool is_on = trouble->why[0] != '\0';

    if (strcmp(trouble->why, why) == 0 ||
        (is_on && why[0] && now_us - trouble->since_us < SAME_WORDS_US))
        return false;
    if (why[0])
        log_warn("pods wait because the bridge cannot use Slurm", LOG_TEXT("why", why));
    else
        log_info("the bridge can use Slurm again");
    (void)snprintf(trouble->why, sizeof(trouble->why), "%s", why);
    trouble->since_us = now_us;
    return true;
}

const char *slurm_trouble_of_polls(const struct slurm_poller *poller)
{
    bool is_synced = slurm_poller_is_synced(poller);
    struct slurm_feed_stats stats;

    for (unsigned feed = 0; feed < SLURM_FEEDS; feed++) {
        slurm_poller_stats(poller, (enum slurm_feed)feed, &stats);
        if (is_synced ? feed == SLURM_FEED_JOBS && stats.failed_in_a_row >= FAILURES
                      : stats.failed_in_a_row > 0)
            return stats.last_error;
    }
    return "";
}
