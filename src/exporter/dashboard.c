/* dashboard.c - the panels of the dashboards, and their JSON. */
#include "exporter/dashboard.h"

#include "codec/json.h"

enum { WIDE = 12, HIGH = 8, PER_ROW = 2 };

static const struct curve {
    const char *panel; /* its title; the curves of a panel follow each other */
    const char *unit;  /* Grafana's word */
    const char *query, *legend;
} cluster_curves[] = {
    { "Nodes by state", "short", "sum by (state) (slinc_cluster_nodes) > 0", "{{state}}" },
    { "CPUs by who has them", "short", "slinc_cluster_cpus", "{{holder}}" },
    { "Generic resources in use", "percentunit",
      "sum by (gres) (slinc_cluster_gres{holder=~\"pod|job\"}) / sum by (gres) "
      "(slinc_cluster_gres)",
      "{{gres}}" },
    { "CPUs in use by partition", "percentunit",
      "sum by (partition) (slinc_cpus{holder=~\"pod|job\"}) / sum by (partition) (slinc_cpus)",
      "{{partition}}" },
    { "Jobs", "short", "slinc_cluster_jobs", "{{state}}" },
    { "Waiting jobs by reason", "short", "sum by (class, reason) (slinc_cluster_pending_jobs)",
      "{{class}}: {{reason}}" },
    { "Nodes that waiting jobs ask for", "short", "sum by (class) (slinc_cluster_pending_nodes)",
      "{{class}}" },
    { "Nodes wanted by partition", "short", "slinc_nodes_wanted", "{{partition}}" },
    { "Longest wait", "s", "slinc_cluster_pending_oldest_seconds", "{{class}}" },
    { "Time until start, median and 95 %", "s",
      "histogram_quantile(0.5, sum by (le) (rate(slinc_job_wait_seconds_bucket[1h])))", "median" },
    { "Time until start, median and 95 %", "s",
      "histogram_quantile(0.95, sum by (le) (rate(slinc_job_wait_seconds_bucket[1h])))", "95 %" },
    { "Jobs that ended", "short", "sum by (result) (increase(slinc_jobs_finished_total[1h]))",
      "{{result}}" },
    { "CPUs of the largest accounts", "short",
      "topk(10, sum by (account) (slinc_account_cpus{state=\"running\"}))", "{{account}}" },
    { "Scheduler cycles", "s",
      "rate(slinc_scheduler_cycle_seconds_total[5m]) / rate(slinc_scheduler_cycles_total[5m])",
      "{{scheduler}}" },
    { "slurmctld", "short", "slinc_controller_threads", "threads" },
    { "slurmctld", "short", "slinc_controller_dbd_queue", "waiting for slurmdbd" },
    { "Age of the data", "s", "slinc_slurm_age_seconds", "{{kind}}" },
    { "Hidden from the exporter", "short", "slinc_slurm_restricted", "{{by}}" },
};

/* What the bridge's own /metrics has. */
static const struct curve bridge_curves[] = {
    { "Pods that wait for a node", "short", "sum(slinc_bridge_waiting_pods)", "pods" },
    { "Pods that reached this point, by minute", "short",
      "sum by (reached) (rate(slinc_bridge_pods_total[5m])) * 60", "{{reached}}" },
    { "Steps of a pod's life, median", "s",
      "histogram_quantile(0.5, sum by (step, le) (rate(slinc_bridge_step_seconds_bucket[5m])))",
      "{{step}}" },
    { "Steps of a pod's life, 99 %", "s",
      "histogram_quantile(0.99, sum by (step, le) (rate(slinc_bridge_step_seconds_bucket[5m])))",
      "{{step}}" },
    { "Jobs asked for, by minute", "short",
      "sum by (way, result) (rate(slinc_bridge_asks_total[5m])) * 60", "{{way}}: {{result}}" },
    { "Time to Slurm's answer, 95 %", "s",
      "histogram_quantile(0.95, sum by (way, le) "
      "(rate(slinc_bridge_ask_duration_seconds_bucket[5m])))",
      "{{way}}" },
    { "Answers of the webhook, by minute", "short",
      "sum by (webhook, verdict) (rate(slinc_bridge_admissions_total[5m])) * 60",
      "{{webhook}}: {{verdict}}" },
    { "Jobs cancelled, by minute", "short",
      "sum by (result) (rate(slinc_bridge_cancels_total[5m])) * 60", "{{result}}" },
    { "Duplicate jobs", "short", "sum(slinc_bridge_duplicate_jobs_total)", "cancelled" },
    { "Actions that did not end well, by minute", "short",
      "sum by (type, verb, outcome) (rate(slinc_actions_total{outcome!=\"done\"}[5m])) * 60",
      "{{type}} {{verb}}: {{outcome}}" },
    { "Age of the caches", "s", "max by (kind) (slinc_cache_age_seconds)", "{{kind}}" },
    { "Keys due", "short", "sum by (name) (workqueue_depth)", "{{name}}" },
    { "Leader", "short", "sum by (name) (leader_election_master_status)", "{{name}}" },
    { "Memory", "bytes", "process_resident_memory_bytes", "{{instance}}" },
};

static const struct dashboard {
    const char *name, *title, *uid;
    const struct curve *curves;
    size_t count;
} dashboards[] = {
    [DASHBOARD_CLUSTER] = { "cluster", "Slinc / Slurm", "slinc-slurm", cluster_curves,
                            sizeof(cluster_curves) / sizeof(cluster_curves[0]) },
    [DASHBOARD_BRIDGE] = { "bridge", "Slinc / Bridge", "slinc-bridge", bridge_curves,
                           sizeof(bridge_curves) / sizeof(bridge_curves[0]) },
};

const char *dashboard_name(enum dashboard_kind kind)
{
    return dashboards[kind].name;
}

const char *dashboard_query(enum dashboard_kind kind, size_t i)
{
    return i < dashboards[kind].count ? dashboards[kind].curves[i].query : NULL;
}

static void put_text(struct buf *out, const char *key, const char *text)
{
    buf_printf(out, "\"%s\": ", key);
    json_escape(out, str_of(text));
}

static bool is_same_panel(const struct curve *curves, size_t i)
{
    return i > 0 && str_is(str_of(curves[i].panel), curves[i - 1].panel);
}

static void begin_panel(size_t index, const struct curve *curve, struct buf *out)
{
    buf_printf(out, "%s\n    {\"id\": %zu, \"type\": \"timeseries\", ", index > 0 ? "," : "",
               index + 1);
    put_text(out, "title", curve->panel);
    buf_add_text(out, ",\n     \"datasource\": {\"type\": \"prometheus\", \"uid\": \"${source}\"}, "
                      "\"fieldConfig\": {\"defaults\": {");
    put_text(out, "unit", curve->unit);
    buf_printf(out,
               "}, \"overrides\": []},\n     \"gridPos\": {\"x\": %zu, \"y\": %zu, \"w\": %d, "
               "\"h\": %d}, \"targets\": [",
               index % PER_ROW * WIDE, index / PER_ROW * HIGH, WIDE, HIGH);
}

void dashboard_write(enum dashboard_kind kind, struct buf *out)
{
    const struct dashboard *dashboard = &dashboards[kind];
    const struct curve *curves = dashboard->curves;
    size_t panels = 0;

    buf_printf(out,
               "{\n  \"title\": \"%s\", \"uid\": \"%s\", \"tags\": [\"slinc\", \"slurm\"], "
               "\"schemaVersion\": 39, \"editable\": true,\n"
               "  \"refresh\": \"30s\", \"time\": {\"from\": \"now-6h\", \"to\": \"now\"},\n"
               "  \"templating\": {\"list\": [{\"name\": \"source\", \"label\": \"Prometheus\", "
               "\"type\": \"datasource\", \"query\": \"prometheus\"}]},\n  \"panels\": [",
               dashboard->title, dashboard->uid);
    for (size_t i = 0; i < dashboard->count; i++) {
        bool goes_on = is_same_panel(curves, i);

        if (!goes_on)
            begin_panel(panels++, &curves[i], out);
        buf_printf(out, "%s\n      {\"refId\": \"%c\", ", goes_on ? "," : "", goes_on ? 'B' : 'A');
        put_text(out, "expr", curves[i].query);
        buf_add_text(out, ", ");
        put_text(out, "legendFormat", curves[i].legend);
        buf_add_char(out, '}');
        if (i + 1 == dashboard->count || !is_same_panel(curves, i + 1))
            buf_add_text(out, "]}");
    }
    buf_add_text(out, "\n  ]\n}\n");
}
