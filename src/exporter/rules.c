/* rules.c - the table of rules and alerts, and its JSON. */
#include "exporter/rules.h"

#include "codec/json.h"

static const struct rule {
    const char *name;
    const char *query;
    const char *holds;    /* how long an alert must hold; NULL: it is a recorded series */
    const char *severity; /* of an alert */
    const char *words;
} rules[] = {
    { "slinc:cpus_used:ratio",
      "sum by (partition) (slinc_cpus{holder=~\"pod|job\"}) / sum by (partition) (slinc_cpus)",
      NULL, NULL, NULL },
    { "slinc:gres_used:ratio",
      "sum by (partition, gres) (slinc_gres{holder=~\"pod|job\"}) / sum by (partition, gres) "
      "(slinc_gres)",
      NULL, NULL, NULL },
    { "slinc:cpus_unusable:ratio",
      "sum(slinc_cluster_cpus{holder=\"unusable\"}) / sum(slinc_cluster_cpus)", NULL, NULL, NULL },
    { "slinc:job_wait_seconds:p50_1h",
      "histogram_quantile(0.5, sum by (partition, le) (rate(slinc_job_wait_seconds_bucket[1h])))",
      NULL, NULL, NULL },
    { "slinc:job_wait_seconds:p95_1h",
      "histogram_quantile(0.95, sum by (partition, le) (rate(slinc_job_wait_seconds_bucket[1h])))",
      NULL, NULL, NULL },
    { "slinc:jobs_failed:ratio15m",
      "sum(rate(slinc_jobs_finished_total{result!~\"completed|cancelled\"}[15m])) / "
      "sum(rate(slinc_jobs_finished_total[15m]))",
      NULL, NULL, NULL },
    { "slinc:nodes_wanted:max5m", "max_over_time(slinc_nodes_wanted[5m])", NULL, NULL, NULL },
    { "slinc:account_billing:avg1d", "avg_over_time(slinc_account_billing[1d])", NULL, NULL, NULL },

    { "SlurmUnreachable", "sum by (kind) (slinc_slurm_up == 0)", "2m", "critical",
      "The exporter has not read {{ $labels.kind }} from Slurm for longer than --stale-seconds: "
      "their series are absent." },
    { "SlurmDataStale", "slinc_slurm_age_seconds{kind=~\"jobs|nodes\"} > 30", "2m", "warning",
      "What is known of Slurm's {{ $labels.kind }} is {{ $value | humanizeDuration }} old." },
    { "SlurmRestricted", "slinc_slurm_restricted == 1", "5m", "warning",
      "PrivateData or missing rights hide {{ $labels.by }} from the exporter's user: their series "
      "are absent." },
    { "BackfillStalled",
      "time() - slinc_scheduler_last_cycle_timestamp_seconds{scheduler=\"backfill\"} > 600 and "
      "on() sum(slinc_cluster_pending_jobs) > 0",
      "5m", "warning",
      "Backfill has not run for {{ $value | humanizeDuration }} while jobs wait." },
    { "SchedulerCycleSlow", "slinc_scheduler_last_cycle_seconds{scheduler=\"main\"} > 5", "10m",
      "warning", "A cycle of Slurm's main scheduler takes {{ $value | humanizeDuration }}." },
    { "ControllerThreadsHigh", "slinc_controller_threads > 200", "5m", "warning",
      "slurmctld serves requests with {{ $value }} threads; it has 256." },
    { "DbdQueueGrowing",
      "slinc_controller_dbd_queue > 1000 and deriv(slinc_controller_dbd_queue[15m]) > 0", "15m",
      "warning", "{{ $value }} messages wait for slurmdbd, and the number grows." },
    { "NodesDown",
      "sum(slinc_cluster_nodes{state=~\"down|fail\"}) / sum(slinc_cluster_nodes) > 0.02", "10m",
      "warning", "{{ $value | humanizePercentage }} of all nodes are down." },
    { "NodeDrainedLong",
      "time() - slinc_node_reason_timestamp_seconds > 86400 and on(node) "
      "slinc_node_state{state=~\"drained|draining\"} == 1",
      "1h", "info",
      "Node {{ $labels.node }} has been drained for {{ $value | humanizeDuration }}." },
    { "PendingNever", "sum by (partition, reason) (slinc_pending_jobs{class=\"never\"}) > 0", "15m",
      "info",
      "{{ $value }} jobs of partition {{ $labels.partition }} cannot start as they are: "
      "{{ $labels.reason }}." },
    { "OldestPending",
      "slinc_pending_oldest_seconds{class=\"resources\"} > 86400 and on(partition) "
      "slinc_nodes{state=\"idle\"} > 0",
      "30m", "info",
      "A job of partition {{ $labels.partition }} has waited for free nodes for "
      "{{ $value | humanizeDuration }} while nodes are idle." },
    { "FailureBurst", "slinc:jobs_failed:ratio15m > 0.5", "15m", "warning",
      "{{ $value | humanizePercentage }} of the jobs that ended in the last 15 minutes failed." },
    { "JobsHeldByAdmin", "sum by (partition) (slinc_pending_jobs{reason=\"JobHeldAdmin\"}) > 0",
      "1h", "info",
      "{{ $value }} jobs of partition {{ $labels.partition }} are held by an "
      "administrator." },
    { "HpaBlind", "slinc_external_metrics_owned == 0", "5m", "warning",
      "external.metrics.k8s.io is not the exporter's: no HorizontalPodAutoscaler reads it." },
    { "BridgeNotBinding",
      "sum(slinc_bridge_waiting_pods) > 0 and sum(rate(slinc_bridge_pods_total{reached=\"bound\"}"
      "[15m])) == 0 and on() sum(slinc_cluster_nodes{state=\"idle\"}) > 0",
      "15m", "warning", "{{ $value }} pods wait, nodes are idle, and the bridge binds none." },
};
enum { RULES = sizeof(rules) / sizeof(rules[0]) };

const char *rules_query(size_t i)
{
    return i < RULES ? rules[i].query : NULL;
}

static void put_text(struct buf *out, const char *key, const char *text)
{
    buf_printf(out, "\"%s\": ", key);
    json_escape(out, str_of(text));
}

static void write_rule(const struct rule *rule, struct buf *out)
{
    buf_add_text(out, "\n      {");
    put_text(out, rule->holds ? "alert" : "record", rule->name);
    buf_add_text(out, ", ");
    put_text(out, "expr", rule->query);
    if (rule->holds) {
        buf_printf(out, ",\n       \"for\": \"%s\", \"labels\": {\"severity\": \"%s\"}, ",
                   rule->holds, rule->severity);
        buf_add_text(out, "\"annotations\": {");
        put_text(out, "summary", rule->words);
        buf_add_char(out, '}');
    }
    buf_add_char(out, '}');
}

static void write_group(const char *name, bool alerts, struct buf *out)
{
    const char *between = "";

    buf_printf(out, "\n    {\"name\": \"%s\", \"rules\": [", name);
    for (size_t i = 0; i < RULES; i++) {
        if (!!rules[i].holds != alerts)
            continue;
        buf_add_text(out, between);
        write_rule(&rules[i], out);
        between = ",";
    }
    buf_add_text(out, "]}");
}

void rules_write(struct buf *out)
{
    buf_add_text(out, "{\"groups\": [");
    write_group("slinc.rules", false, out);
    buf_add_char(out, ',');
    write_group("slinc.alerts", true, out);
    buf_add_text(out, "\n]}\n");
}
