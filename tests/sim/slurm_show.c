/* slurm_show.c - jobs, nodes, partitions and reservations as slurmrestd prints them.
 *
 * Fields that never differ in the model stand in lists. */
#include "slurm_private.h"

#include <inttypes.h>
#include <stdio.h>

enum constant { EMPTY_TEXT, EMPTY_LIST, ZERO, SET_ZERO, UNSET, INFINITE, NO };

struct constants {
    enum constant value;
    const char *keys; /* separated by ',' */
};

static void put_constants(struct buf *out, const struct constants *constants, size_t count)
{
    static const char *const values[] = {
        [EMPTY_TEXT] = "\"\"",
        [EMPTY_LIST] = "[]",
        [ZERO] = "0",
        [SET_ZERO] = "{\"set\":true,\"infinite\":false,\"number\":0}",
        [UNSET] = "{\"set\":false,\"infinite\":false,\"number\":0}",
        [INFINITE] = "{\"set\":false,\"infinite\":true,\"number\":0}",
        [NO] = "false",
    };

    for (size_t i = 0; i < count; i++) {
        struct str rest = str_of(constants[i].keys), key;

        while (str_next(&rest, ',', &key))
            buf_printf(out, ",\"" STR_FMT "\":%s", STR_ARG(key), values[constants[i].value]);
    }
}

#define PUT_CONSTANTS(out, table) put_constants(out, table, sizeof(table) / sizeof((table)[0]))

/* ---- jobs ---- */

static const struct constants job_constants[] = {
    { EMPTY_TEXT, "allocating_node,array_task_string,batch_features,burst_buffer,"
                  "burst_buffer_state,cluster_features,command,container,container_id,"
                  "cpus_per_tres,cron,dependency,failed_node,federation_origin,"
                  "federation_siblings_active,federation_siblings_viable,het_job_id_set,"
                  "licenses_allocated,memory_per_tres,network,prefer,selinux_context,"
                  "scheduled_nodes,standard_input,standard_output,standard_error,"
                  "stdin_expanded,stdout_expanded,stderr_expanded,state_description,"
                  "submit_line,system_comment,tres_bind,tres_freq,tres_per_job,"
                  "tres_per_socket,tres_per_task" },
    { EMPTY_LIST, "shared,job_size_str,mail_type,priority_by_partition" },
    { ZERO, "association_id,core_spec,nice,required_switches,segment_size,sockets_per_board,"
            "maximum_switch_wait_time" },
    { SET_ZERO, "array_job_id,array_max_tasks,deadline,delay_boot,het_job_id,het_job_offset,"
                "max_cpus,tasks_per_tres,tasks_per_board,minimum_tmp_disk_per_node,preempt_time,"
                "pre_sus_time,resize_time,time_minimum" },
    { UNSET, "array_task_id,cores_per_socket,cpu_frequency_minimum,cpu_frequency_maximum,"
             "cpu_frequency_governor,sockets_per_node,threads_per_core" },
    { INFINITE, "tasks_per_core,tasks_per_socket" },
    { NO, "contiguous,reboot" },
};

void ctld_job_states(const struct ctld_job *job, char words[64])
{
    (void)snprintf(words, 64, "%s%s", ctld_phase_names[job->phase],
                   job->completing_us ? ",COMPLETING" : "");
}

static void put_texts(struct buf *out, const struct ctld_job *job)
{
    static const struct {
        const char *key;
        enum ctld_job_text text;
    } texts[] = {
        { "account", JOB_ACCOUNT },
        { "admin_comment", JOB_ADMIN_COMMENT },
        { "comment", JOB_COMMENT },
        { "current_working_directory", JOB_DIRECTORY },
        { "excluded_nodes", JOB_EXCLUDED },
        { "extra", JOB_EXTRA },
        { "features", JOB_FEATURES },
        { "licenses", JOB_LICENSES },
        { "mcs_label", JOB_MCS },
        { "name", JOB_NAME },
        { "nodes", JOB_NODES },
        { "partition", JOB_PARTITION },
        { "qos", JOB_QOS },
        { "required_nodes", JOB_REQUIRED },
        { "resv_name", JOB_RESERVATION },
        { "state_reason", JOB_REASON },
        { "tres_per_node", JOB_TRES_PER_NODE },
        { "user_name", JOB_USER },
        { "mail_user", JOB_USER },
        { "wckey", JOB_WCKEY },
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        ctld_put_text(out, texts[i].key, job->text[texts[i].text]);
}

/* Cpus that it has, or asks for. */
static int64_t cpus_of(const struct slurm_store *store, const struct ctld_job *job)
{
    int64_t cpus = 0;

    for (unsigned i = 0; i < job->piece_count; i++) {
        const struct ctld_node *node = ctld_node_find(&store->state, job->pieces[i].node);

        cpus += (int64_t)bitmap_count(&job->pieces[i].cores) * (node ? node->threads : 1);
    }
    return job->piece_count > 0 ? cpus : ctld_job_cpus(job);
}

static void put_tres(struct buf *out, const char *key, const struct ctld_job *job, int64_t cpus,
                     int64_t nodes)
{
    auto_buf struct buf text;
    int64_t memory = 0;

    for (unsigned i = 0; i < job->piece_count; i++)
        memory += job->pieces[i].memory;
    if (job->piece_count == 0)
        memory =
            job->memory_per_node > 0 ? job->memory_per_node * nodes : job->memory_per_cpu * cpus;
    buf_init(&text, 4096);
    buf_printf(&text, "cpu=%" PRId64, cpus);
    if (memory > 0)
        buf_printf(&text, ",mem=%" PRId64 "M", memory);
    buf_printf(&text, ",node=%" PRId64 ",billing=%" PRId64, nodes, cpus);
    ctld_put_text(out, key, buf_text(&text));
}

static void put_times(struct buf *out, const struct ctld_job *job)
{
    int64_t start_us = job->start_us ? job->start_us : job->expected_us, end_us = job->end_us;

    if (!end_us && job->phase != PHASE_PENDING && ctld_job_ends_us(job) != INT64_MAX)
        end_us = ctld_job_ends_us(job);
    else if (!end_us && job->phase != PHASE_PENDING) /* unlimited is a year to Slurm */
        end_us = job->start_us + INT64_C(365) * 24 * 3600 * CTLD_SECOND;
    ctld_put_number(out, "submit_time", job->submit_us / CTLD_SECOND);
    ctld_put_number(out, "eligible_time", job->eligible_us / CTLD_SECOND);
    ctld_put_number(out, "accrue_time", job->eligible_us / CTLD_SECOND);
    ctld_put_number(out, "last_sched_evaluation", job->start_us / CTLD_SECOND);
    ctld_put_number(out, "preemptable_time", job->start_us / CTLD_SECOND);
    ctld_put_number(out, "start_time", start_us / CTLD_SECOND);
    ctld_put_number(out, "end_time", end_us / CTLD_SECOND);
    ctld_put_number(out, "suspend_time", job->suspended_us / CTLD_SECOND);
    if (job->time_limit > 0)
        ctld_put_number(out, "time_limit", job->time_limit);
    else
        ctld_put_infinite(out, "time_limit");
}

static void put_flags(struct buf *out, const struct ctld_job *job)
{
    auto_buf struct buf words;

    buf_init(&words, 1000);
    buf_add_text(&words, "EXACT_TASK_COUNT_REQUESTED");
    if (job->piece_count > 0)
        buf_add_text(&words, ",JOB_WAS_RUNNING");
    if (job->memory_per_node > 0)
        buf_add_text(&words, ",EXACT_MEMORY_REQUESTED");
    if (job->external)
        buf_add_text(&words, ",EXTERNAL_JOB");
    if (!job->text[JOB_ACCOUNT][0])
        buf_add_text(&words, ",USING_DEFAULT_ACCOUNT");
    if (!job->text[JOB_QOS][0])
        buf_add_text(&words, ",USING_DEFAULT_QOS");
    buf_add_text(&words, ",USING_DEFAULT_WCKEY");
    if (job->max_nodes == 0)
        buf_add_text(&words, ",JOB_IMPLICIT_MAX_NODES");
    ctld_put_words(out, "flags", buf_text(&words));
}

static void put_number_or_unset(struct buf *out, const char *key, int64_t value)
{
    if (value > 0)
        ctld_put_number(out, key, value);
    else
        ctld_put_unset(out, key);
}

static void put_sizes(struct ctld_call *call, const struct ctld_job *job)
{
    struct buf *out = &call->answer->body;
    int64_t nodes = job->piece_count > 0 ? job->piece_count : ctld_job_nodes(job);
    int64_t cpus = cpus_of(call->store, job);

    ctld_put_number(out, "node_count", nodes);
    ctld_put_number(out, "cpus", cpus);
    ctld_put_number(out, "tasks", job->tasks > 0 ? job->tasks : nodes);
    ctld_put_number(out, "cpus_per_task", job->cpus_per_task > 0 ? job->cpus_per_task : 1);
    ctld_put_number(out, "tasks_per_node", job->tasks_per_node);
    ctld_put_number(out, "minimum_cpus_per_node", job->cpus_per_task > 0 ? job->cpus_per_task : 1);
    ctld_put_number(out, "max_nodes",
                    job->max_nodes     ? job->max_nodes
                    : job->piece_count ? 0
                                       : nodes);
    put_number_or_unset(out, "memory_per_cpu", job->memory_per_node > 0 ? 0 : job->memory_per_cpu);
    if (job->memory_per_node > 0 || job->memory_per_cpu == 0)
        ctld_put_number(out, "memory_per_node", job->memory_per_node);
    else
        ctld_put_unset(out, "memory_per_node");
    if (job->piece_count > 0)
        ctld_put_number(out, "billable_tres", cpus);
    else
        ctld_put_unset(out, "billable_tres");
    put_tres(out, "tres_req_str", job, ctld_job_cpus(job), ctld_job_nodes(job));
    if (job->piece_count > 0)
        put_tres(out, "tres_alloc_str", job, cpus, nodes);
    else
        ctld_put_text(out, "tres_alloc_str", "");
}

/* A signal is told instead of a code. */
static void put_exit(struct buf *out, const char *key, int code, int signal)
{
    ctld_put(out, key);
    if (signal) {
        buf_printf(out,
                   "{\"status\":[\"SIGNALED\"],\"return_code\":{\"set\":false,\"infinite\":false,"
                   "\"number\":0},\"signal\":{\"id\":{\"set\":true,\"infinite\":false,\"number\":%d"
                   "},\"name\":\"HUP\"}}",
                   signal);
        return;
    }
    buf_printf(
        out,
        "{\"status\":[\"%s\"],\"return_code\":{\"set\":true,\"infinite\":false,\"number\":%d"
        "},\"signal\":{\"id\":{\"set\":false,\"infinite\":false,\"number\":0},\"name\":\"\"}}",
        code ? "ERROR" : "SUCCESS", code);
}

static void put_identity(struct ctld_call *call, const struct ctld_job *job)
{
    struct buf *out = &call->answer->body;
    int64_t group = job->group_id >= 0 ? job->group_id : job->user_id;
    char words[64];

    ctld_put_int(out, "job_id", job->id);
    ctld_job_states(job, words);
    ctld_put_words(out, "job_state", words);
    ctld_put_int(out, "user_id", job->user_id);
    ctld_put_int(out, "group_id", group);
    ctld_put_text(out, "group_name", ctld_user_of(call->store, group));
    if (call->version >= 44)
        buf_printf(out,
                   ",\"step_id\":{\"sluid\":\"%s\",\"job_id\":{\"set\":true,\"infinite\":false,"
                   "\"number\":%" PRId64 "},\"step_het_component\":{\"set\":false,\"infinite\":"
                   "false,\"number\":0},\"step_id\":\"entire\"}",
                   job->sluid, job->id);
}

static void put_gres_detail(struct buf *out, const struct slurm_store *store,
                            const struct ctld_job *job)
{
    char text[100];

    ctld_put(out, "gres_detail");
    buf_add_char(out, '[');
    for (unsigned i = 0; i < job->piece_count; i++) {
        const struct ctld_node *node = ctld_node_find(&store->state, job->pieces[i].node);

        for (unsigned k = 0; node && k < node->gres_count; k++) {
            size_t count = bitmap_count(&job->pieces[i].devices[k]);

            if (count == 0)
                continue;
            (void)snprintf(text, sizeof(text), "%s:%s(CNT:%zu)", node->gres[k].name,
                           node->gres[k].type, count);
            ctld_put_text(out, NULL, text);
        }
    }
    buf_add_char(out, ']');
}

void ctld_show_job(struct ctld_call *call, const struct ctld_job *job)
{
    struct buf *out = &call->answer->body;

    ctld_put(out, NULL);
    buf_add_char(out, '{');
    put_identity(call, job);
    put_texts(out, job);
    put_flags(out, job);
    put_sizes(call, job);
    put_times(out, job);
    put_exit(out, "exit_code", job->exit_code, job->exit_signal);
    put_exit(out, "derived_exit_code", 0, 0);
    put_gres_detail(out, call->store, job);
    ctld_put_text(out, "batch_host", job->piece_count > 0 ? job->pieces[0].node : "");
    ctld_put_bool(out, "batch_flag", job->batch);
    ctld_put_bool(out, "hold", job->priority == 0);
    ctld_put_number(out, "priority", job->priority);
    ctld_put_bool(out, "requeue", job->requeue);
    ctld_put_int(out, "restart_cnt", job->restarts);
    ctld_put_text(out, "cluster", call->store->options.cluster);
    buf_add_text(out, ",\"job_resources\":null,\"profile\":[\"NOT_SET\"],\"thread_spec\":32766");
    PUT_CONSTANTS(out, job_constants);
    buf_add_char(out, '}');
}

/* ---- what a job has on each node ---- */

static void put_index(struct buf *out, const struct ctld_gres *gres, const struct bitmap *devices)
{
    if (!gres->has_files) {
        buf_add_text(out, "null");
        return;
    }
    buf_add_char(out, '"');
    bitmap_print_ranges(devices, out);
    buf_add_char(out, '"');
}

static void put_devices(struct buf *out, const struct ctld_node *node,
                        const struct ctld_piece *piece)
{
    ctld_put(out, "gres");
    buf_add_char(out, '[');
    for (unsigned k = 0; node && k < node->gres_count; k++) {
        size_t count = bitmap_count(&piece->devices[k]);

        if (count == 0)
            continue;
        ctld_put(out, NULL);
        buf_add_char(out, '{');
        ctld_put_text(out, "name", node->gres[k].name);
        ctld_put_text(out, "type", node->gres[k].type);
        ctld_put_int(out, "count", (int64_t)count);
        ctld_put(out, "index");
        put_index(out, &node->gres[k], &piece->devices[k]);
        buf_add_char(out, '}');
    }
    buf_add_char(out, ']');
}

void ctld_show_layout(struct ctld_call *call, const struct ctld_job *job)
{
    struct buf *out = &call->answer->body;

    ctld_put(out, "nodes");
    buf_add_char(out, '[');
    for (unsigned i = 0; job->holds && i < job->piece_count; i++) {
        const struct ctld_piece *piece = &job->pieces[i];
        const struct ctld_node *node = ctld_node_find(&call->store->state, piece->node);
        auto_buf struct buf cores;

        buf_init(&cores, 1u << 20);
        bitmap_print_hex(&piece->cores, &cores);
        ctld_put(out, NULL);
        buf_add_char(out, '{');
        ctld_put_text(out, "node", piece->node);
        ctld_put_int(out, "sockets_per_node", node ? node->sockets : 1);
        ctld_put_int(out, "cores_per_socket", node ? node->cores : 1);
        ctld_put_int(out, "mem_alloc", piece->memory);
        ctld_put_text(out, "core_bitmap", buf_text(&cores));
        ctld_put_unset(out, "channel");
        put_devices(out, node, piece);
        buf_add_char(out, '}');
    }
    buf_add_char(out, ']');
}

/* ---- nodes ---- */

static const struct constants node_constants[] = {
    { EMPTY_TEXT, "architecture,burstbuffer_network_address,cluster_name,specialized_cpus,gpu_spec,"
                  "instance_id,instance_type,mcs_label,operating_system,owner" },
    { EMPTY_LIST, "cert_flags" },
    { ZERO, "specialized_cores,cpu_binding,cpu_load,specialized_memory,res_cores_per_gpu,"
            "temporary_disk" },
    { SET_ZERO, "boot_time,tls_cert_last_renewal,resume_after,slurmd_start_time" },
    { UNSET, "free_mem" },
    { INFINITE, "suspend_time" },
};

static void put_partitions(struct buf *out, const struct slurm_store *store,
                           const struct ctld_node *node)
{
    ctld_put(out, "partitions");
    buf_add_char(out, '[');
    map_each (item, &store->state.partitions) {
        const struct ctld_partition *partition = item->value;

        if (ctld_in_partition(partition, node))
            ctld_put_text(out, NULL, partition->text[PART_NAME]);
    }
    buf_add_char(out, ']');
}

static void put_node_state(struct ctld_call *call, const struct ctld_node *node)
{
    char words[100];
    bool shows_external = node->external && call->version >= 44;

    (void)snprintf(words, sizeof(words), "%s%s%s%s%s", ctld_node_state(node),
                   shows_external ? ",EXTERNAL" : "", node->drained ? ",DRAIN" : "",
                   ctld_is_reserved(call->store, node, "") ? ",RESERVED" : "",
                   node->dynamic ? ",DYNAMIC_NORM" : "");
    ctld_put_words(&call->answer->body, "state", words);
}

static void put_gres(struct buf *out, const struct ctld_node *node)
{
    auto_buf struct buf used;

    buf_init(&used, 4096);
    for (unsigned k = 0; k < node->gres_count; k++) {
        const struct ctld_gres *gres = &node->gres[k];
        buf_printf(&used, "%s%s%s%s:%u", k > 0 ? "," : "", gres->name, gres->type[0] ? ":" : "",
                   gres->type, node->shown.gres[k]);
        if (!gres->has_files)
            continue;
        buf_add_text(&used, "(IDX:");
        if (node->shown.gres[k] == 0)
            buf_add_text(&used, "N/A");
        else
            bitmap_print_ranges(&gres->busy, &used);
        buf_add_char(&used, ')');
    }
    ctld_put_text(out, "gres", node->text[NODE_GRES]);
    ctld_put_text(out, "gres_used", buf_text(&used));
    ctld_put_text(out, "gres_drained", "N/A");
}

static void put_node_sizes(struct buf *out, const struct ctld_node *node)
{
    unsigned busy = node->shown.cpus;
    char tres[120], used[120] = "";

    (void)snprintf(tres, sizeof(tres), "cpu=%u,mem=%" PRId64 "M,billing=%u", node->cpus,
                   node->memory, node->cpus);
    if (busy > 0)
        (void)snprintf(used, sizeof(used), "cpu=%u,mem=%" PRId64 "M", busy, node->shown.memory);
    ctld_put_int(out, "boards", 1);
    ctld_put_int(out, "sockets", node->sockets);
    ctld_put_int(out, "cores", node->cores);
    ctld_put_int(out, "threads", node->threads);
    ctld_put_int(out, "cpus", node->cpus);
    ctld_put_int(out, "effective_cpus", node->cpus);
    ctld_put_int(out, "alloc_cpus", busy);
    ctld_put_int(out, "alloc_idle_cpus", node->cpus > busy ? node->cpus - busy : 0);
    ctld_put_int(out, "real_memory", node->memory);
    ctld_put_int(out, "alloc_memory", node->shown.memory);
    ctld_put_int(out, "weight", node->weight);
    ctld_put_text(out, "tres", tres);
    ctld_put_text(out, "tres_used", used);
}

static const char *reservation_of(const struct slurm_store *store, const struct ctld_node *node)
{
    map_each (item, &store->state.reservations) {
        const struct ctld_resv *resv = item->value;

        if (ctld_is_reserved(store, node, "") &&
            !ctld_is_reserved(store, node, resv->text[RESV_NAME]))
            return resv->text[RESV_NAME];
    }
    return "";
}

void ctld_show_node(struct ctld_call *call, const struct ctld_node *node)
{
    struct buf *out = &call->answer->body;

    ctld_put(out, NULL);
    buf_add_char(out, '{');
    ctld_put_text(out, "name", node->text[NODE_NAME]);
    put_node_state(call, node);
    ctld_put_text(out, "address", node->text[NODE_ADDRESS]);
    ctld_put_text(out, "hostname", node->text[NODE_NAME]);
    ctld_put_words(out, "features", node->text[NODE_FEATURES]);
    ctld_put_words(out, "active_features", node->text[NODE_ACTIVE]);
    put_partitions(out, call->store, node);
    put_gres(out, node);
    put_node_sizes(out, node);
    ctld_put_text(out, "comment", node->text[NODE_COMMENT]);
    ctld_put_text(out, "extra", node->text[NODE_EXTRA]);
    ctld_put_text(out, "reason", node->text[NODE_REASON]);
    ctld_put_text(out, "reason_set_by_user", node->text[NODE_REASON_USER]);
    ctld_put_number(out, "reason_changed_at", node->reason_us / CTLD_SECOND);
    ctld_put_number(out, "last_busy", node->last_busy_us / CTLD_SECOND);
    ctld_put_text(out, "topology", node->text[NODE_TOPOLOGY]);
    ctld_put_text(out, "reservation", reservation_of(call->store, node));
    ctld_put_text(out, "version", node->external ? "" : "26.05.5");
    ctld_put_words(out, "next_state_after_reboot", "INVALID");
    ctld_put_int(out, "port", 6818);
    buf_add_text(out, ",\"energy\":{\"average_watts\":0,\"base_consumed_energy\":0,"
                      "\"consumed_energy\":0,\"current_watts\":{\"set\":true,\"infinite\":false,"
                      "\"number\":0},\"previous_consumed_energy\":0,\"last_collected\":0}");
    PUT_CONSTANTS(out, node_constants);
    buf_add_char(out, '}');
}
