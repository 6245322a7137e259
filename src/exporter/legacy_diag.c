/* legacy_diag.c - the old series of the scheduler, from slurmctld's statistics: one row for each.
 */
#include "exporter/legacy.h"
#include "exporter/legacy_private.h"

#include <stdio.h>

static const struct legacy_row rows[] = {
    { "slurm_scheduler_cycle_depth_total", "schedule_cycle_depth",
      "Jobs looked at, over all cycles." },
    { "slurm_scheduler_cycle_last_seconds", "schedule_cycle_last",
      "Time of the last cycle, in microseconds." },
    { "slurm_scheduler_cycle_max_seconds", "schedule_cycle_max",
      "Time of the longest cycle, in microseconds." },
    { "slurm_scheduler_cycle_mean_seconds", "schedule_cycle_mean",
      "Mean time of a cycle, in microseconds." },
    { "slurm_scheduler_cycle_depth_mean_total", "schedule_cycle_mean_depth",
      "Mean number of jobs looked at in a cycle." },
    { "slurm_scheduler_cycle_perminute_total", "schedule_cycle_per_minute", "Cycles in a minute." },
    { "slurm_scheduler_cycle_sum_seconds_total", "schedule_cycle_sum",
      "Time of all cycles, in microseconds." },
    { "slurm_scheduler_cycle_total", "schedule_cycle_total", "Cycles." },
    { "slurm_scheduler_queue_total", "schedule_queue_length", "Jobs in the queue." },
    { "slurm_scheduler_defaultqueuedepth_total", "schedule_exit/default_queue_depth",
      "Cycles that reached the default queue depth." },
    { "slurm_scheduler_endjobqueue_total", "schedule_exit/end_job_queue",
      "Cycles that came to the end of the queue." },
    { "slurm_scheduler_licenses_total", "schedule_exit/licenses",
      "Cycles that waited for licenses." },
    { "slurm_scheduler_maxjobstart_total", "schedule_exit/max_job_start",
      "Cycles that started as many jobs as allowed." },
    { "slurm_scheduler_maxrpc_total", "schedule_exit/max_rpc_cnt",
      "Cycles that found too many requests waiting." },
    { "slurm_scheduler_maxschedtime_total", "schedule_exit/max_sched_time",
      "Cycles that used up their time." },
    { "slurm_bfscheduler_active_bool", "bf_active", "1 while backfill is at work." },
    { "slurm_bfscheduler_backfilledhetjobs_total", "bf_backfilled_het_jobs",
      "Components of heterogeneous jobs that backfill started." },
    { "slurm_bfscheduler_backfilledjobs_total", "bf_backfilled_jobs",
      "Jobs that backfill started." },
    { "slurm_bfscheduler_cycle_total", "bf_cycle_counter", "Backfill cycles." },
    { "slurm_bfscheduler_cycle_seconds", "bf_cycle_last",
      "Time of the last cycle, in microseconds." },
    { "slurm_bfscheduler_cycle_max_seconds", "bf_cycle_max",
      "Time of the longest cycle, in microseconds." },
    { "slurm_bfscheduler_cycle_mean_seconds", "bf_cycle_mean",
      "Mean time of a cycle, in microseconds." },
    { "slurm_bfscheduler_cycle_sum_seconds", "bf_cycle_sum",
      "Time of all cycles, in microseconds." },
    { "slurm_bfscheduler_depth_mean_total", "bf_depth_mean", "Mean number of jobs looked at." },
    { "slurm_bfscheduler_depth_try_total", "bf_depth_mean_try", "Mean number of jobs tried." },
    { "slurm_bfscheduler_depth_sum_total", "bf_depth_sum", "Jobs looked at, over all cycles." },
    { "slurm_bfscheduler_depth_trysum_total", "bf_depth_try_sum", "Jobs tried, over all cycles." },
    { "slurm_bfscheduler_lastbackfilledjobs_total", "bf_last_backfilled_jobs",
      "Jobs that backfill started since the last reset." },
    { "slurm_bfscheduler_lastdepth_total", "bf_last_depth", "Jobs looked at in the last cycle." },
    { "slurm_bfscheduler_lastdepthtry_total", "bf_last_depth_try",
      "Jobs tried in the last cycle." },
    { "slurm_bfscheduler_queue_total", "bf_queue_len", "Jobs in the queue." },
    { "slurm_bfscheduler_queue_mean_total", "bf_queue_len_mean", "Mean length of the queue." },
    { "slurm_bfscheduler_queue_sum_total", "bf_queue_len_sum",
      "Lengths of the queue, over all cycles." },
    { "slurm_bfscheduler_table_total", "bf_table_size", "Time slots of the last cycle." },
    { "slurm_bfscheduler_tablemean_total", "bf_table_size_mean", "Mean number of time slots." },
    { "slurm_bfscheduler_tablesum_total", "bf_table_size_sum", "Time slots, over all cycles." },
    { "slurm_bfscheduler_lastcycle_timestamp", "bf_when_last_cycle", "When the last cycle began." },
    { "slurm_bfscheduler_maxjobstart_total", "bf_exit/bf_max_job_start",
      "Cycles that started as many jobs as allowed." },
    { "slurm_bfscheduler_maxjobtest_total", "bf_exit/bf_max_job_test",
      "Cycles that tried as many jobs as allowed." },
    { "slurm_bfscheduler_maxtime_total", "bf_exit/bf_max_time", "Cycles that used up their time." },
    { "slurm_bfscheduler_nodespace_total", "bf_exit/bf_node_space_size",
      "Cycles that ran out of time slots." },
    { "slurm_bfscheduler_endjobqueue_total", "bf_exit/end_job_queue",
      "Cycles that came to the end of the queue." },
    { "slurm_bfscheduler_statechanged_total", "bf_exit/state_changed",
      "Cycles that were overtaken by a change." },
    { "slurm_scheduler_jobs_stats_timestamp", "job_states_ts", "When jobs were counted." },
    { "slurm_scheduler_jobs_canceled_total", "jobs_canceled",
      "Jobs that were cancelled since the last reset." },
    { "slurm_scheduler_jobs_completed_total", "jobs_completed",
      "Jobs that completed since the last reset." },
    { "slurm_scheduler_jobs_failed_total", "jobs_failed",
      "Jobs that failed since the last reset." },
    { "slurm_scheduler_jobs_pending_total", "jobs_pending", "Jobs that wait." },
    { "slurm_scheduler_jobs_running_total", "jobs_running", "Jobs that run." },
    { "slurm_scheduler_jobs_started_total", "jobs_started",
      "Jobs that started since the last reset." },
    { "slurm_scheduler_jobs_submitted_total", "jobs_submitted",
      "Jobs that were submitted since the last reset." },
    { "slurm_scheduler_agent_total", "agent_count", "Agents of slurmctld." },
    { "slurm_scheduler_agent_queue_total", "agent_queue_size",
      "Messages that slurmctld has yet to send." },
    { "slurm_scheduler_agent_thread_total", "agent_thread_count", "Threads of these agents." },
    { "slurm_scheduler_thread_total", "server_thread_count",
      "Threads of slurmctld that serve requests." },
    { "slurm_scheduler_dbdagentqueue_total", "dbd_agent_queue_size",
      "Messages that wait for slurmdbd." },
};

/* A field that this version of Slurm does not send is no sample. */
void legacy_write_rows(const struct legacy_row *from, size_t count, const struct json *statistics,
                       struct buf *out)
{
    for (size_t i = 0; i < count; i++) {
        struct legacy_family family = { .row = { .help = from[i].help, .type = METRIC_GAUGE } };
        struct str object, member;
        const struct json *value = json_get(statistics, from[i].field);
        struct slurm_number number;

        if (str_cut(str_of(from[i].field), '/', &object, &member))
            value = json_get_str(json_get_str(statistics, object), member);
        number = slurm_number_of(value);
        if (json_is_bool(value))
            number = slurm_number_set(json_bool_or(value, false));
        if (!number.set)
            continue;
        (void)snprintf(family.name, sizeof(family.name), "%s", from[i].name);
        family.row.name = family.name;
        legacy_head(&family, out);
        metrics_write_sample(&family.row, NULL, (double)number.number, out);
    }
}

void legacy_write_diag(const struct json *statistics, struct buf *out)
{
    legacy_write_rows(rows, sizeof(rows) / sizeof(rows[0]), statistics, out);
}

void legacy_reference(struct buf *out)
{
    buf_add_text(out, "| Metric | Field of /diag | Meaning |\n|---|---|---|\n");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        buf_printf(out, "| `%s` | `%s` | %s |\n", rows[i].name, rows[i].field, rows[i].help);
}
