/* families_diag.c - writers of the families that come from slurmctld's own statistics (/diag).
 *
 * Slurm counts in microseconds and sets most counters back at midnight; Prometheus takes a fall of
 * a counter for a reset. */
#include "exporter/families.h"

static const double microsecond = 1e-6;

static const struct {
    const char *family, *field;
} numbers[] = {
    { "slinc_backfilled_jobs_total", "bf_backfilled_jobs" },
    { "slinc_controller_threads", "server_thread_count" },
    { "slinc_controller_agent_queue", "agent_queue_size" },
    { "slinc_controller_dbd_queue", "dbd_agent_queue_size" },
};

static const struct {
    const char *family, *main, *backfill;
    double unit;
} schedulers[] = {
    { "slinc_scheduler_cycles_total", "schedule_cycle_total", "bf_cycle_counter", 1 },
    { "slinc_scheduler_cycle_seconds_total", "schedule_cycle_sum", "bf_cycle_sum", microsecond },
    { "slinc_scheduler_last_cycle_seconds", "schedule_cycle_last", "bf_cycle_last", microsecond },
    { "slinc_scheduler_last_cycle_timestamp_seconds", NULL, "bf_when_last_cycle", 1 },
    { "slinc_scheduler_queue_jobs", "schedule_queue_length", "bf_queue_len", 1 },
    { "slinc_scheduler_depth_jobs", "schedule_cycle_mean_depth", "bf_last_depth", 1 },
};

/* A field that this version of Slurm does not send is no sample. */
static void sample_field(struct page *page, const struct tally *tally, const char *field,
                         double unit, const char *label)
{
    const struct json *statistics = json_get(tally->view->diag, "statistics");
    struct slurm_number value = slurm_number_of(field ? json_get(statistics, field) : NULL);

    if (value.set)
        page_sample(page, unit * (double)value.number, label);
}

void write_diag_number(struct page *page, const struct tally *tally)
{
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (str_is(str_of(page->family->row.name), numbers[i].family))
            sample_field(page, tally, numbers[i].field, 1, "");
}

void write_diag_scheduler(struct page *page, const struct tally *tally)
{
    for (size_t i = 0; i < sizeof(schedulers) / sizeof(schedulers[0]); i++) {
        if (!str_is(str_of(page->family->row.name), schedulers[i].family))
            continue;
        sample_field(page, tally, schedulers[i].main, schedulers[i].unit, "main");
        sample_field(page, tally, schedulers[i].backfill, schedulers[i].unit, "backfill");
    }
}

static void sample_exits(struct page *page, const struct tally *tally, const char *field,
                         const char *scheduler)
{
    const struct json *exits = json_get(json_get(tally->view->diag, "statistics"), field);
    struct json_iter iter = json_iter(exits);
    const struct json *value;
    struct str reason;

    while (json_next_member(&iter, &reason, &value)) {
        struct slurm_number count = slurm_number_of(value);

        if (count.set)
            page_sample(page, (double)count.number, scheduler,
                        arena_strndup(tally->arena, reason.at, reason.len));
    }
}

void write_diag_exits(struct page *page, const struct tally *tally)
{
    sample_exits(page, tally, "schedule_exit", "main");
    sample_exits(page, tally, "bf_exit", "backfill");
}

void write_diag_rpcs(struct page *page, const struct tally *tally)
{
    const struct json *statistics = json_get(tally->view->diag, "statistics");
    struct json_iter iter = json_iter(json_get(statistics, "rpcs_by_message_type"));
    bool is_time = page->family->unit[0];
    const struct json *rpc;

    while (json_next_item(&iter, &rpc)) {
        struct str type = json_str(json_get(rpc, "message_type"));
        struct slurm_number value =
            slurm_number_of(json_get(rpc, is_time ? "total_time" : "count"));

        if (value.set && type.len > 0)
            page_sample(page, (is_time ? microsecond : 1) * (double)value.number,
                        arena_strndup(tally->arena, type.at, type.len));
    }
}
