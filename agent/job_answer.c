/* job_answer.c - a job as slurmrestd shows it: the fields that clients of ours read, by one table.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#include "calls.h"

#include "libslurm_hidden.h"

#include <pwd.h>
#include <stddef.h>
#include <sys/wait.h>

enum kind { TEXT, PLAIN, NUMBER, TIME, OFFSET };

struct row {
    const char *name;
    enum kind kind;
    size_t offset, width;
};

#define AT(member) offsetof(slurm_job_info_t, member), sizeof(((slurm_job_info_t *)NULL)->member)

/* clang-format off */
static const struct row rows[] = {
    { "account", TEXT, AT(account) },
    { "admin_comment", TEXT, AT(admin_comment) },
    { "array_job_id", TIME, AT(array_job_id) },
    { "array_task_id", NUMBER, AT(array_task_id) },
    { "array_max_tasks", TIME, AT(array_max_tasks) },
    { "array_task_string", TEXT, AT(array_task_str) },
    { "comment", TEXT, AT(comment) },
    { "cpus_per_task", NUMBER, AT(cpus_per_task) },
    { "deadline", TIME, AT(deadline) },
    { "dependency", TEXT, AT(dependency) },
    { "eligible_time", TIME, AT(eligible_time) },
    { "end_time", TIME, AT(end_time) },
    { "excluded_nodes", TEXT, AT(exc_nodes) },
    { "extra", TEXT, AT(extra) },
    { "failed_node", TEXT, AT(failed_node) },
    { "features", TEXT, AT(features) },
    { "group_id", PLAIN, AT(group_id) },
    { "licenses", TEXT, AT(licenses) },
    { "licenses_allocated", TEXT, AT(licenses_allocated) },
    { "max_nodes", NUMBER, AT(max_nodes) },
    { "mcs_label", TEXT, AT(mcs_label) },
    { "name", TEXT, AT(name) },
    { "network", TEXT, AT(network) },
    { "nodes", TEXT, AT(nodes) },
    { "nice", OFFSET, AT(nice) },
    { "tasks_per_node", NUMBER, AT(ntasks_per_node) },
    { "cpus", NUMBER, AT(num_cpus) },
    { "node_count", NUMBER, AT(num_nodes) },
    { "tasks", NUMBER, AT(num_tasks) },
    { "partition", TEXT, AT(partition) },
    { "prefer", TEXT, AT(prefer) },
    { "preempt_time", TIME, AT(preempt_time) },
    { "priority", NUMBER, AT(priority) },
    { "qos", TEXT, AT(qos) },
    { "required_nodes", TEXT, AT(req_nodes) },
    { "required_switches", PLAIN, AT(req_switch) },
    { "restart_cnt", PLAIN, AT(restart_cnt) },
    { "resv_name", TEXT, AT(resv_name) },
    { "scheduled_nodes", TEXT, AT(sched_nodes) },
    { "segment_size", PLAIN, AT(segment_size) },
    { "start_time", TIME, AT(start_time) },
    { "state_description", TEXT, AT(state_desc) },
    { "submit_time", TIME, AT(submit_time) },
    { "system_comment", TEXT, AT(system_comment) },
    { "time_limit", NUMBER, AT(time_limit) },
    { "tres_per_job", TEXT, AT(tres_per_job) },
    { "tres_per_node", TEXT, AT(tres_per_node) },
    { "tres_per_task", TEXT, AT(tres_per_task) },
    { "tres_req_str", TEXT, AT(tres_req_str) },
    { "tres_alloc_str", TEXT, AT(tres_alloc_str) },
    { "user_id", PLAIN, AT(user_id) },
    { "maximum_switch_wait_time", PLAIN, AT(wait4switch) },
    { "wckey", TEXT, AT(wckey) },
    { "current_working_directory", TEXT, AT(work_dir) },
};

/* As Slurm's data parser calls them; those that are not here are of no use to a client of ours. */
static const struct {
    uint64_t bit;
    const char *word;
} flags[] = {
    { KILL_INV_DEP, "KILL_INVALID_DEPENDENCY" },
    { NO_KILL_INV_DEP, "NO_KILL_INVALID_DEPENDENCY" },
    { JOB_NTASKS_SET, "EXACT_TASK_COUNT_REQUESTED" },
    { JOB_CPUS_SET, "EXACT_CPU_COUNT_REQUESTED" },
    { JOB_WAS_RUNNING, "JOB_WAS_RUNNING" },
    { JOB_MEM_SET, "EXACT_MEMORY_REQUESTED" },
    { EXTERNAL_JOB, "EXTERNAL_JOB" },
    { USE_DEFAULT_ACCT, "USING_DEFAULT_ACCOUNT" },
    { USE_DEFAULT_PART, "USING_DEFAULT_PARTITION" },
    { USE_DEFAULT_QOS, "USING_DEFAULT_QOS" },
    { USE_DEFAULT_WCKEY, "USING_DEFAULT_WCKEY" },
    { JOB_DEPENDENT, "DEPENDENT" },
    { JOB_PART_ASSIGNED, "PARTITION_ASSIGNED" },
}, states[] = {
    { JOB_LAUNCH_FAILED, "LAUNCH_FAILED" },
    { JOB_REQUEUE, "REQUEUED" },
    { JOB_REQUEUE_HOLD, "REQUEUE_HOLD" },
    { JOB_SPECIAL_EXIT, "SPECIAL_EXIT" },
    { JOB_RESIZING, "RESIZING" },
    { JOB_CONFIGURING, "CONFIGURING" },
    { JOB_COMPLETING, "COMPLETING" },
    { JOB_STOPPED, "STOPPED" },
    { JOB_RECONFIG_FAIL, "RECONFIG_FAIL" },
    { JOB_POWER_UP_NODE, "POWER_UP_NODE" },
    { JOB_REVOKED, "REVOKED" },
    { JOB_REQUEUE_FED, "REQUEUE_FED" },
    { JOB_RESV_DEL_HOLD, "RESV_DEL_HOLD" },
    { JOB_SIGNALING, "SIGNALING" },
    { JOB_STAGE_OUT, "STAGE_OUT" },
    { JOB_EXPEDITING, "EXPEDITING" },
};

static const char *const bases[JOB_END] = {
    [JOB_PENDING] = "PENDING",       [JOB_RUNNING] = "RUNNING",     [JOB_SUSPENDED] = "SUSPENDED",
    [JOB_COMPLETE] = "COMPLETED",    [JOB_CANCELLED] = "CANCELLED", [JOB_FAILED] = "FAILED",
    [JOB_TIMEOUT] = "TIMEOUT",       [JOB_NODE_FAIL] = "NODE_FAIL", [JOB_PREEMPTED] = "PREEMPTED",
    [JOB_BOOT_FAIL] = "BOOT_FAIL",   [JOB_DEADLINE] = "DEADLINE",   [JOB_OOM] = "OUT_OF_MEMORY",
};
/* clang-format on */

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

void job_answer_state(struct agent_answer *answer, struct json_mut *object, const char *key,
                      uint32_t state)
{
    struct json_mut *words = json_put_array(answer->build, object, key);
    uint32_t base = state & JOB_STATE_BASE;

    if (base < JOB_END)
        json_push_str(answer->build, words, str_of(bases[base]));
    for (size_t i = 0; i < COUNT(states); i++)
        if (state & states[i].bit)
            json_push_str(answer->build, words, str_of(states[i].word));
}

static uint64_t number_at(const slurm_job_info_t *job, const struct row *row)
{
    const char *at = (const char *)job + row->offset;

    switch (row->width) {
    case 2:
        return *(const uint16_t *)(const void *)at;
    case 4:
        return *(const uint32_t *)(const void *)at;
    default:
        return *(const uint64_t *)(const void *)at;
    }
}

static void put_row(struct agent_answer *answer, struct json_mut *one, const slurm_job_info_t *job,
                    const struct row *row)
{
    const char *text;

    switch (row->kind) {
    case TEXT:
        text = *(const char *const *)(const void *)((const char *)job + row->offset);
        json_put_text(answer->build, one, row->name, text ? text : "");
        return;
    case PLAIN:
        json_put_u64(answer->build, one, row->name, number_at(job, row));
        return;
    case NUMBER:
        agent_put_number(answer, one, row->name, number_at(job, row), 8 * (unsigned)row->width);
        return;
    case TIME:
        agent_put_number(answer, one, row->name, number_at(job, row), 64);
        return;
    case OFFSET:
        json_put_i64(answer->build, one, row->name, (int64_t)number_at(job, row) - NICE_OFFSET);
        return;
    }
}

/* slurmctld does not always say the name: then the one that this machine knows, as slurmrestd. */
static void put_user(struct agent_answer *answer, struct json_mut *one, const slurm_job_info_t *job)
{
    const struct passwd *found = job->user_name ? NULL : getpwuid(job->user_id);

    json_put_text(answer->build, one, "user_name",
                  job->user_name ? job->user_name
                  : found        ? found->pw_name
                                 : "");
}

static void put_exit_code(struct agent_answer *answer, struct json_mut *one, uint32_t code)
{
    struct json_mut *exit_code = json_put_object(answer->build, one, "exit_code"), *signal;
    bool is_signal = WIFSIGNALED((int)code);

    signal = json_put_object(answer->build, exit_code, "signal");
    agent_put_number(answer, exit_code, "return_code",
                     code == NO_VAL ? NO_VAL
                     : is_signal    ? NO_VAL
                                    : (uint32_t)WEXITSTATUS((int)code),
                     32);
    agent_put_number(answer, signal, "id", is_signal ? (uint32_t)WTERMSIG((int)code) : NO_VAL16,
                     16);
}

static void put_job(struct agent_answer *answer, struct json_mut *jobs, const slurm_job_info_t *job)
{
    struct json_mut *one = json_new_object(answer->build), *list, *step;
    char sluid[SLUID_TEXT];

    json_put_i64(answer->build, one, "job_id", job->step_id.job_id);
    for (size_t i = 0; i < COUNT(rows); i++)
        put_row(answer, one, job, &rows[i]);
    job_answer_state(answer, one, "job_state", job->job_state);
    json_put_text(answer->build, one, "state_reason",
                  slurm_job_state_reason_string((enum job_state_reason)job->state_reason));
    list = json_put_array(answer->build, one, "flags");
    for (size_t i = 0; i < COUNT(flags); i++)
        if (job->bitflags & flags[i].bit)
            json_push_str(answer->build, list, str_of(flags[i].word));
    put_user(answer, one, job);
    put_exit_code(answer, one, job->exit_code);
    json_put_bool(answer->build, one, "hold", job->priority == 0);
    agent_put_number(answer, one, "memory_per_node",
                     job->pn_min_memory & MEM_PER_CPU ? NO_VAL64 : job->pn_min_memory, 64);
    step = json_put_object(answer->build, one, "step_id");
    sluid_write(job->step_id.sluid, sluid);
    json_put_text(answer->build, step, "sluid", sluid);
    json_push(jobs, one);
}

void job_answer(const job_info_msg_t *found, struct agent_answer *answer)
{
    struct json_mut *jobs = json_put_array(answer->build, answer->root, "jobs");

    for (uint32_t i = 0; i < found->record_count; i++)
        put_job(answer, jobs, &found->job_array[i]);
    agent_put_number(answer, answer->root, "last_backfill", (uint64_t)found->last_backfill, 64);
    agent_put_number(answer, answer->root, "last_update", (uint64_t)found->last_update, 64);
}
