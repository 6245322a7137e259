/* families.c - the table of series, and the writers of those that are sums. */
#include "exporter/families.h"

#include "base/mem.h"

#include <stddef.h>

static const double wait_buckets[] = { 1,     5,     15,    60,     300,    900, 3600,
                                       14400, 43200, 86400, 259200, 604800, 0 };
static const double ratio_buckets[] = { 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1, 0 };
static const double request_buckets[] = { 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                          0.5,   1,     2.5,  5,     10,   30,  0 };

/* ---- sums by partition, and for the whole cluster ---- */

/* The groups of a family: its first label says which. */
static bool is_by_partition(const struct page *page)
{
    return page->family->row.labels[0] && str_is(str_of(page->family->row.labels[0]), "partition");
}

static void write_groups(struct page *page, const struct tally *tally,
                         void (*write)(struct page *page, const struct tally *tally,
                                       const struct tally_group *group))
{
    if (!is_by_partition(page)) {
        write(page, tally, &tally->cluster);
        return;
    }
    map_each (item, &tally->partitions)
        write(page, tally, item->value);
}

/* One sample of a group, with the partition as the first label where the family has it. */
static void sample_of_group(struct page *page, const struct tally_group *group, double value,
                            const char *a, const char *b)
{
    if (is_by_partition(page))
        page_sample(page, value, group->name, a, b);
    else
        page_sample(page, value, a, b);
}

static void group_jobs(struct page *page, const struct tally *tally,
                       const struct tally_group *group)
{
    (void)tally;
    for (unsigned i = 0; i < TALLY_JOB_STATES; i++)
        sample_of_group(page, group, group->jobs[i], tally_job_state_names[i], "");
}

static void group_reasons(struct page *page, const struct tally *tally,
                          const struct tally_group *group)
{
    (void)tally;
    map_each (item, &group->reasons) {
        const struct tally_reason *reason = item->value;

        for (unsigned class = 0; class < SLURM_REASON_CLASSES; class ++)
            if (reason->jobs[class] > 0)
                sample_of_group(page, group, reason->jobs[class],
                                slurm_reason_class_name((enum slurm_reason_class) class),
                                reason->name);
    }
}

static double figure(const void *object, size_t offset)
{
    return *(const double *)(const void *)((const char *)object + offset);
}

static void group_pending(struct page *page, const struct tally *tally,
                          const struct tally_group *group)
{
    (void)tally;
    for (unsigned class = 0; class < SLURM_REASON_CLASSES; class ++)
        sample_of_group(page, group, figure(&group->pending[class], page->family->at),
                        slurm_reason_class_name((enum slurm_reason_class) class), "");
}

static void group_oldest(struct page *page, const struct tally *tally,
                         const struct tally_group *group)
{
    for (unsigned class = 0; class < SLURM_REASON_CLASSES; class ++) {
        int64_t since_s = group->pending[class].since_s;
        double age = since_s > 0 ? (double)(tally->view->now_s - since_s) : 0;

        sample_of_group(page, group, age > 0 ? age : 0,
                        slurm_reason_class_name((enum slurm_reason_class) class), "");
    }
}

static bool has_gres(const struct tally *tally, unsigned i)
{
    return i < tally->gres_count || (i == TALLY_GRES_KINDS && tally->has_other_gres);
}

static void group_pending_gres(struct page *page, const struct tally *tally,
                               const struct tally_group *group)
{
    for (unsigned i = 0; i < TALLY_GRES; i++)
        for (unsigned class = 0; has_gres(tally, i) && class < SLURM_REASON_CLASSES; class ++)
            sample_of_group(page, group, group->pending[class].gres[i],
                            slurm_reason_class_name((enum slurm_reason_class) class),
                            tally->gres_names[i]);
}

static void group_nodes(struct page *page, const struct tally *tally,
                        const struct tally_group *group)
{
    (void)tally;
    for (unsigned i = 0; i < TALLY_NODE_STATES; i++)
        sample_of_group(page, group, group->nodes[i], tally_node_state_names[i], "");
}

static void group_holders(struct page *page, const struct tally *tally,
                          const struct tally_group *group)
{
    (void)tally;
    for (unsigned i = 0; i < TALLY_HOLDERS; i++)
        sample_of_group(page, group, figure(group, page->family->at + i * sizeof(double)),
                        tally_holder_names[i], "");
}

static void group_gres(struct page *page, const struct tally *tally,
                       const struct tally_group *group)
{
    for (unsigned i = 0; i < TALLY_GRES; i++) {
        double all = 0;

        for (unsigned holder = 0; holder < TALLY_HOLDERS; holder++)
            all += group->gres[i][holder];
        for (unsigned holder = 0; all > 0 && holder < TALLY_HOLDERS; holder++)
            sample_of_group(page, group, group->gres[i][holder], tally->gres_names[i],
                            tally_holder_names[holder]);
    }
}

#define GROUP_WRITER(name)                                                                         \
    static void write_##name(struct page *page, const struct tally *tally)                         \
    {                                                                                              \
        write_groups(page, tally, group_##name);                                                   \
    }
GROUP_WRITER(jobs)
GROUP_WRITER(reasons)
GROUP_WRITER(pending)
GROUP_WRITER(oldest)
GROUP_WRITER(pending_gres)
GROUP_WRITER(nodes)
GROUP_WRITER(holders)
GROUP_WRITER(gres)

/* ---- sums by account, user and QOS ---- */

static enum tally_owner_kind owner_kind(const struct page *page)
{
    struct str label = str_of(page->family->row.labels[0]);

    return str_is(label, "account") ? TALLY_ACCOUNT
           : str_is(label, "user")  ? TALLY_USER
                                    : TALLY_QOS;
}

static void write_owner(struct page *page, const struct tally *tally)
{
    map_each (item, &tally->owners[owner_kind(page)]) {
        const struct tally_owner *owner = item->value;

        for (unsigned i = 0; i < TALLY_STANDINGS; i++)
            page_sample(page, figure(owner, page->family->at + i * sizeof(double)), owner->name,
                        tally_standing_names[i]);
    }
}

static void write_owner_gres(struct page *page, const struct tally *tally)
{
    map_each (item, &tally->owners[owner_kind(page)]) {
        const struct tally_owner *owner = item->value;

        for (unsigned i = 0; i < TALLY_GRES; i++)
            for (unsigned k = 0; k < TALLY_STANDINGS; k++)
                if (owner->gres[i][k] > 0)
                    page_sample(page, owner->gres[i][k], owner->name, tally_standing_names[k],
                                tally->gres_names[i]);
    }
}

static void write_owner_billing(struct page *page, const struct tally *tally)
{
    map_each (item, &tally->owners[owner_kind(page)]) {
        const struct tally_owner *owner = item->value;

        page_sample(page, owner->billing, owner->name);
    }
}

/* ---- the table ---- */

#define ROW(kind, title, what, ...)                                                                \
    .row = { .name = "slinc_" title, .help = (what), .type = (kind), .labels = { __VA_ARGS__ } }
#define GAUGE(title, what, ...)   ROW(METRIC_GAUGE, title, what, __VA_ARGS__)
#define COUNTER(title, what, ...) ROW(METRIC_COUNTER, title, what, __VA_ARGS__)
#define KEPT(kind, title, what, limits, ...)                                                       \
    .row = { .name = "slinc_" title,                                                               \
             .help = (what),                                                                       \
             .type = (kind),                                                                       \
             .buckets = (limits),                                                                  \
             .max_series = 2000,                                                                   \
             .labels = { __VA_ARGS__ } }
#define IN(type, member) .at = offsetof(struct type, member)

/* A family by partition, and its twin for the whole cluster, which counts everything once. */
#define BOTH(title, what, label, second, ...)                                                      \
    { GAUGE(title, what ", in each partition that it lists.", "partition", label, second),         \
      __VA_ARGS__ },                                                                               \
    {                                                                                              \
        GAUGE("cluster_" title, what ", each once.", label, second), __VA_ARGS__                   \
    }

#define OWNER(kind, words)                                                                         \
    { GAUGE(kind "_jobs", "Jobs of this " words ", running or pending.", kind, "state"),           \
      .unit = "",                                                                                  \
      .from = "job records; an array counts its waiting tasks",                                    \
      .needs = NEEDS_JOBS,                                                                         \
      .write = write_owner,                                                                        \
      IN(tally_owner, jobs) },                                                                     \
        { GAUGE(kind "_nodes",                                                                     \
                "Nodes that these jobs hold or ask for; a node counts for each job.", kind,        \
                "state"),                                                                          \
          .unit = "",                                                                              \
          .from = "tres_alloc_str, tres_req_str",                                                  \
          .needs = NEEDS_JOBS,                                                                     \
          .write = write_owner,                                                                    \
          IN(tally_owner, nodes) },                                                                \
        { GAUGE(kind "_cpus", "CPUs that these jobs hold or ask for.", kind, "state"),             \
          .unit = "",                                                                              \
          .from = "tres_alloc_str, tres_req_str",                                                  \
          .needs = NEEDS_JOBS,                                                                     \
          .write = write_owner,                                                                    \
          IN(tally_owner, cpus) },                                                                 \
        { GAUGE(kind "_memory_bytes", "Memory that these jobs hold or ask for.", kind, "state"),   \
          .unit = "bytes",                                                                         \
          .from = "tres_alloc_str, tres_req_str",                                                  \
          .needs = NEEDS_JOBS,                                                                     \
          .write = write_owner,                                                                    \
          IN(tally_owner, memory_bytes) },                                                         \
        { GAUGE(kind "_gres", "Generic resources that these jobs hold or ask for.", kind, "state", \
                "gres"),                                                                           \
          .unit = "", .from = "tres_alloc_str, tres_req_str, tres_per_job, tres_per_node",         \
          .needs = NEEDS_JOBS, .write = write_owner_gres },                                        \
    {                                                                                              \
        GAUGE(kind "_billing", "Slurm's billing units of the jobs that run.", kind), .unit = "",   \
            .from = "billing of tres_alloc_str", .needs = NEEDS_JOBS, .write = write_owner_billing \
    }

const struct family families[] = {
    [FAMILY_REQUEST_SECONDS] = { KEPT(METRIC_HISTOGRAM, "slurm_request_duration_seconds",
                                      "Time that slurmrestd took to answer.", request_buckets,
                                      "kind"),
                                 .unit = "seconds", .from = "every request" },
    [FAMILY_FAILURES] = { KEPT(METRIC_COUNTER, "slurm_failures_total",
                               "Requests that did not succeed, by what Slurm meant.", NULL, "kind",
                               "class"),
                          .unit = "", .from = "every request" },
    [FAMILY_JOB_WAIT] = { KEPT(METRIC_HISTOGRAM, "job_wait_seconds",
                               "Time from when a job could start until it did.", wait_buckets,
                               "partition", "holder"),
                          .unit = "seconds",
                          .from = "start_time less eligible_time of each start seen" },
    [FAMILY_JOB_RUN] = { KEPT(METRIC_HISTOGRAM, "job_run_seconds",
                              "Time that a job ran, by how it ended.", wait_buckets, "partition",
                              "result"),
                         .unit = "seconds", .from = "end_time less start_time of each end seen" },
    [FAMILY_JOB_LIMIT_USED] = { KEPT(METRIC_HISTOGRAM, "job_time_limit_used_ratio",
                                     "Part of its time limit that a job used.", ratio_buckets,
                                     "partition"),
                                .unit = "ratio", .from = "run time by time_limit" },
    [FAMILY_JOBS_FINISHED] = { KEPT(METRIC_COUNTER, "jobs_finished_total",
                                    "Jobs that ended, each once.", NULL, "partition", "result"),
                               .unit = "", .from = "each end seen, by id and time of submission" },
    [FAMILY_API_OWNED] = { KEPT(METRIC_GAUGE, "external_metrics_owned",
                                "1 while the APIService of external.metrics.k8s.io is this "
                                "exporter's, 0 while it is another's.",
                                NULL, NULL),
                           .unit = "", .from = "the APIService, where --external-metrics is on" },

    { GAUGE("slurm_up", "1 while this kind is read from Slurm; 0: what it would say is absent.",
            "kind"),
      .unit = "", .from = "the age of the last good read", .needs = NEEDS_HEALTH,
      .write = write_up },
    { GAUGE("slurm_age_seconds", "Time since the last good read of this kind began.", "kind"),
      .unit = "seconds", .from = "the poller", .needs = NEEDS_HEALTH, .write = write_age },
    { GAUGE("slurm_restricted",
            "1 when Slurm hides these things from the exporter's user: they are absent, not 0.",
            "by"),
      .unit = "", .from = "PrivateData, MCS and the user's rights", .needs = NEEDS_HEALTH,
      .write = write_restricted },
    { GAUGE("slurm_info", "Which Slurm this is.", "cluster", "version", "parser"), .unit = "",
      .from = "/conf", .needs = NEEDS_HEALTH, .write = write_info },
    { GAUGE("exporter_folded_names", "Names that are counted under \"other\".", "label"),
      .unit = "", .from = "--max-names", .needs = NEEDS_JOBS | NEEDS_HEALTH,
      .write = write_folded },

    { GAUGE("jobs", "Jobs that have not ended, in each partition that they list.", "partition",
            "state"),
      .unit = "", .from = "job_state; an array counts its waiting tasks", .needs = NEEDS_JOBS,
      .write = write_jobs },
    { GAUGE("cluster_jobs", "Jobs that have not ended, each once.", "state"), .unit = "",
      .from = "job_state; an array counts its waiting tasks", .needs = NEEDS_JOBS,
      .write = write_jobs },
    BOTH("pending_jobs", "Jobs that wait, by Slurm's reason and its class", "class", "reason",
         .unit = "", .from = "state_reason; the class as in the table of reasons",
         .needs = NEEDS_JOBS, .write = write_reasons),
    BOTH("pending_nodes", "Nodes that waiting jobs ask for", "class", NULL, .unit = "",
         .from = "tres_req_str; of an array those tasks that may run at once", .needs = NEEDS_JOBS,
         .write = write_pending, IN(tally_pending, nodes)),
    BOTH("pending_cpus", "CPUs that waiting jobs ask for", "class", NULL, .unit = "",
         .from = "tres_req_str; of an array those tasks that may run at once", .needs = NEEDS_JOBS,
         .write = write_pending, IN(tally_pending, cpus)),
    BOTH("pending_memory_bytes", "Memory that waiting jobs ask for", "class", NULL, .unit = "bytes",
         .from = "tres_req_str; of an array those tasks that may run at once", .needs = NEEDS_JOBS,
         .write = write_pending, IN(tally_pending, memory_bytes)),
    BOTH("pending_gres", "Generic resources that waiting jobs ask for", "class", "gres", .unit = "",
         .from = "tres_req_str, tres_per_job, tres_per_node", .needs = NEEDS_JOBS,
         .write = write_pending_gres),
    BOTH("pending_oldest_seconds", "How long the job that could start first has waited", "class",
         NULL, .unit = "seconds", .from = "now less eligible_time", .needs = NEEDS_JOBS,
         .write = write_oldest),

    { GAUGE(
          "nodes_wanted",
          "Nodes that are in use, and those that waiting jobs need which more nodes would help; a "
          "total, for autoscalers.",
          "partition"),
      .unit = "", .from = "nodes in use; tres_req_str of jobs of class priority and resources",
      .needs = NEEDS_NODES | NEEDS_JOBS, .write = write_wanted },
    { GAUGE("nodeset_nodes_wanted",
            "The same for a NodeSet of slurm.conf: the number of workers that it should have.",
            "nodeset"),
      .unit = "", .from = "nodes in use that have its feature; jobs as in slinc_nodes_wanted",
      .needs = NEEDS_NODES | NEEDS_JOBS, .write = write_nodeset_wanted },
    BOTH("nodes", "Nodes by the one state that describes them", "state", NULL, .unit = "",
         .from = "state of nodes", .needs = NEEDS_NODES, .write = write_nodes),
    BOTH("cpus", "CPUs by who has them: pod, job, idle or unusable", "holder", NULL, .unit = "",
         .from = "cpus, effective_cpus, alloc_cpus; pods by their jobs' tres_alloc_str",
         .needs = NEEDS_NODES | NEEDS_JOBS, .write = write_holders, IN(tally_group, cpus)),
    BOTH("memory_bytes", "Memory by who has it", "holder", NULL, .unit = "bytes",
         .from = "real_memory, specialized_memory, alloc_memory; pods by their jobs",
         .needs = NEEDS_NODES | NEEDS_JOBS, .write = write_holders, IN(tally_group, memory_bytes)),
    BOTH("gres", "Generic resources by who has them", "gres", "holder", .unit = "",
         .from = "gres, gres_used of nodes; pods by their jobs", .needs = NEEDS_NODES | NEEDS_JOBS,
         .write = write_gres),

    OWNER("account", "account"),
    OWNER("user", "user"),
    OWNER("qos", "QOS"),

    { GAUGE("reservation_nodes", "Nodes of a reservation.", "reservation"), .unit = "",
      .from = "node_count", .needs = NEEDS_RESERVATIONS, .write = write_reservation,
      IN(slurm_reservation, node_count) },
    { GAUGE("reservation_start_timestamp_seconds", "When it begins.", "reservation"),
      .unit = "seconds", .from = "start_time", .needs = NEEDS_RESERVATIONS,
      .write = write_reservation, IN(slurm_reservation, start_time) },
    { GAUGE("reservation_end_timestamp_seconds", "When it ends.", "reservation"), .unit = "seconds",
      .from = "end_time", .needs = NEEDS_RESERVATIONS, .write = write_reservation,
      IN(slurm_reservation, end_time) },
    { GAUGE("licenses", "Licenses that there are.", "license"), .unit = "", .from = "Total",
      .needs = NEEDS_LICENSES, .write = write_license },
    { GAUGE("licenses_used", "Licenses in use.", "license"), .unit = "", .from = "Used",
      .needs = NEEDS_LICENSES, .write = write_license },
    { GAUGE("licenses_reserved", "Licenses that reservations keep.", "license"), .unit = "",
      .from = "Reserved", .needs = NEEDS_LICENSES, .write = write_license },

    { COUNTER("scheduler_cycles_total", "Cycles of the main scheduler and of backfill.",
              "scheduler"),
      .unit = "", .from = "/diag: schedule_cycle_total, bf_cycle_counter", .needs = NEEDS_DIAG,
      .write = write_diag_scheduler },
    { COUNTER("scheduler_cycle_seconds_total", "Time that these cycles took.", "scheduler"),
      .unit = "seconds", .from = "/diag: schedule_cycle_sum, bf_cycle_sum", .needs = NEEDS_DIAG,
      .write = write_diag_scheduler },
    { GAUGE("scheduler_last_cycle_seconds", "Time that the last cycle took.", "scheduler"),
      .unit = "seconds", .from = "/diag: schedule_cycle_last, bf_cycle_last", .needs = NEEDS_DIAG,
      .write = write_diag_scheduler },
    { GAUGE("scheduler_last_cycle_timestamp_seconds", "When the last cycle began.", "scheduler"),
      .unit = "seconds", .from = "/diag: bf_when_last_cycle", .needs = NEEDS_DIAG,
      .write = write_diag_scheduler },
    { GAUGE("scheduler_queue_jobs", "Jobs that it looked through last.", "scheduler"), .unit = "",
      .from = "/diag: schedule_queue_length, bf_queue_len", .needs = NEEDS_DIAG,
      .write = write_diag_scheduler },
    { GAUGE("scheduler_depth_jobs", "Jobs that it tried to start, on average or last.",
            "scheduler"),
      .unit = "", .from = "/diag: schedule_cycle_mean_depth, bf_last_depth", .needs = NEEDS_DIAG,
      .write = write_diag_scheduler },
    { COUNTER("scheduler_exits_total", "Cycles by why they ended.", "scheduler", "reason"),
      .unit = "", .from = "/diag: schedule_exit, bf_exit", .needs = NEEDS_DIAG,
      .write = write_diag_exits },
    { COUNTER("backfilled_jobs_total", "Jobs that backfill started."), .unit = "",
      .from = "/diag: bf_backfilled_jobs", .needs = NEEDS_DIAG, .write = write_diag_number },
    { GAUGE("controller_threads", "Threads of slurmctld that serve requests."), .unit = "",
      .from = "/diag: server_thread_count", .needs = NEEDS_DIAG, .write = write_diag_number },
    { GAUGE("controller_agent_queue", "Messages that slurmctld has yet to send."), .unit = "",
      .from = "/diag: agent_queue_size", .needs = NEEDS_DIAG, .write = write_diag_number },
    { GAUGE("controller_dbd_queue", "Messages that wait for slurmdbd."), .unit = "",
      .from = "/diag: dbd_agent_queue_size", .needs = NEEDS_DIAG, .write = write_diag_number },
    { COUNTER("controller_rpcs_total", "Requests that slurmctld served.", "type"), .unit = "",
      .from = "/diag: rpcs_by_message_type", .needs = NEEDS_DIAG, .write = write_diag_rpcs },
    { COUNTER("controller_rpc_seconds_total", "Time that they took.", "type"), .unit = "seconds",
      .from = "/diag: rpcs_by_message_type", .needs = NEEDS_DIAG, .write = write_diag_rpcs },

    { GAUGE("node_state", "1 for the state that the node is in.", "node", "state"), .unit = "",
      .from = "state of the node", .page = FAMILY_NODES, .needs = NEEDS_NODES,
      .write = write_node_state },
    { GAUGE("node_cpus", "CPUs of the node.", "node"), .unit = "", .from = "cpus",
      .page = FAMILY_NODES, .needs = NEEDS_NODES, .write = write_node_total, IN(slurm_node, cpus) },
    { GAUGE("node_memory_bytes", "Memory of the node.", "node"), .unit = "bytes",
      .from = "real_memory", .page = FAMILY_NODES, .needs = NEEDS_NODES, .write = write_node_total,
      IN(slurm_node, real_memory) },
    { GAUGE("node_cpus_allocated", "CPUs in use, by who has them.", "node", "holder"), .unit = "",
      .from = "alloc_cpus; pods by their jobs", .page = FAMILY_NODES,
      .needs = NEEDS_NODES | NEEDS_JOBS, .write = write_node_by_holder, IN(tally_node, cpus) },
    { GAUGE("node_memory_allocated_bytes", "Memory in use, by who has it.", "node", "holder"),
      .unit = "bytes", .from = "alloc_memory; pods by their jobs", .page = FAMILY_NODES,
      .needs = NEEDS_NODES | NEEDS_JOBS, .write = write_node_by_holder,
      IN(tally_node, memory_bytes) },
    { GAUGE("node_gres", "Generic resources of the node.", "node", "gres"), .unit = "",
      .from = "gres", .page = FAMILY_NODES, .needs = NEEDS_NODES, .write = write_node_gres },
    { GAUGE("node_gres_allocated", "Generic resources in use.", "node", "gres"), .unit = "",
      .from = "gres_used", .page = FAMILY_NODES, .needs = NEEDS_NODES,
      .write = write_node_gres_used },
    { GAUGE("node_reason_info", "Why a node is drained, down or failing; the first 80 bytes.",
            "node", "reason"),
      .unit = "", .from = "reason", .page = FAMILY_NODES, .needs = NEEDS_NODES,
      .write = write_node_reason },
    { GAUGE("node_reason_timestamp_seconds", "Since when.", "node"), .unit = "seconds",
      .from = "reason_changed_at", .page = FAMILY_NODES, .needs = NEEDS_NODES,
      .write = write_node_reason_time },
};
const size_t family_count = sizeof(families) / sizeof(families[0]);

/* ---- the text ---- */

void page_add(struct page *page, double value, const char *const *values)
{
    if (page->take) {
        page->take(page->context, page->family, values, value);
        return;
    }
    if (page->samples++ == 0)
        metrics_write_head(&page->family->row, page->out);
    metrics_write_sample(&page->family->row, values, value, page->out);
}

static unsigned what_is_there(const struct tally_view *view)
{
    return (view->jobs ? NEEDS_JOBS : 0u) | (view->nodes ? NEEDS_NODES : 0u) |
           (view->reservations ? NEEDS_RESERVATIONS : 0u) | (view->diag ? NEEDS_DIAG : 0u) |
           (view->licenses ? NEEDS_LICENSES : 0u) | (view->health ? NEEDS_HEALTH : 0u);
}

bool family_is_shown(const struct family *family, const struct tally_view *view)
{
    return (family->needs & ~what_is_there(view)) == 0;
}

void families_write(const struct tally *tally, enum family_page wanted, struct buf *out)
{
    for (size_t i = 0; i < family_count; i++) {
        const struct family *family = &families[i];
        struct page page = { .out = out, .family = family };

        if (family->write && family->page == wanted && family_is_shown(family, tally->view))
            family->write(&page, tally);
    }
}

void families_reference(struct buf *out)
{
    static const char *const pages[] = { "/metrics", "/metrics/nodes" };

    buf_add_text(out, "| Metric | Type | Unit | Labels | Path | Meaning | Computed from |\n"
                      "|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < family_count; i++) {
        const struct family *family = &families[i];

        buf_printf(out, "| `%s` | %s | %s | ", family->row.name, metric_type_name(family->row.type),
                   family->unit);
        for (unsigned k = 0; k < METRICS_MAX_LABELS && family->row.labels[k]; k++)
            buf_printf(out, "%s`%s`", k > 0 ? ", " : "", family->row.labels[k]);
        buf_printf(out, " | `%s` | %s | %s |\n", pages[family->page], family->row.help,
                   family->from);
    }
}
