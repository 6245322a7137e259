/* slurm_parts.c - partitions, reservations, and what the daemons say of themselves. */
#include "slurm_private.h"

#include <inttypes.h>
#include <stdio.h>

#define UNSET    "{\"set\":false,\"infinite\":false,\"number\":0}"
#define INFINITE "{\"set\":false,\"infinite\":true,\"number\":0}"

/* ---- partitions ---- */

struct sums {
    int64_t nodes, cpus, memory;
};

static void add_up(const struct ctld_call *call, const struct ctld_partition *partition,
                   struct sums *sums, struct buf *hosts)
{
    const struct map *nodes = &call->store->state.nodes;
    struct str *names = arena_alloc_array(call->arena, nodes->count + 1, sizeof(*names));

    map_each (item, nodes) {
        const struct ctld_node *node = item->value;

        if (!ctld_in_partition(partition, node))
            continue;
        names[sums->nodes++] = item->key;
        sums->cpus += node->cpus;
        sums->memory += node->memory;
    }
    (void)hostlist_fold(names, (size_t)sums->nodes, hosts, NULL);
}

static void put_limit(struct buf *out, const char *key, int64_t value, const char *otherwise)
{
    if (value > 0) {
        ctld_put_number(out, key, value);
    } else {
        ctld_put(out, key);
        buf_add_text(out, otherwise);
    }
}

static void put_limits(struct buf *out, const struct ctld_partition *partition)
{
    buf_add_text(out, ",\"defaults\":{\"memory_per_cpu\":0,\"partition_memory_per_cpu\":" UNSET
                      ",\"partition_memory_per_node\":{\"set\":true,\"infinite\":false,"
                      "\"number\":0}");
    put_limit(out, "time", partition->default_time, UNSET);
    buf_add_text(out, ",\"job\":\"\"},\"maximums\":{\"cpus_per_node\":" INFINITE
                      ",\"cpus_per_socket\":" INFINITE
                      ",\"memory_per_cpu\":0,\"partition_memory_per_cpu\":" UNSET
                      ",\"partition_memory_per_node\":{\"set\":true,\"infinite\":false,"
                      "\"number\":0},\"shares\":0,\"oversubscribe\":{\"jobs\":0,\"flags\":[]},"
                      "\"over_time_limit\":" UNSET);
    put_limit(out, "nodes", partition->max_nodes, INFINITE);
    put_limit(out, "time", partition->max_time, INFINITE);
    buf_add_text(out, "},\"minimums\":{\"nodes\":0}");
}

void ctld_show_partition(struct ctld_call *call, const struct ctld_partition *partition)
{
    struct buf *out = &call->answer->body;
    const char *feature = partition->text[PART_FEATURE];
    struct sums sums = { .nodes = 0 };
    auto_buf struct buf hosts;

    buf_init(&hosts, HOSTLIST_MAX_TEXT);
    add_up(call, partition, &sums, &hosts);
    ctld_put(out, NULL);
    buf_printf(out,
               "{\"nodes\":{\"allowed_allocation\":\"\",\"configured\":\"%s\",\"total\":%" PRId64
               "},\"cpus\":{\"task_binding\":[],\"total\":%" PRId64 "},\"tres\":{"
               "\"billing_weights\":\"\",\"configured\":\"cpu=%" PRId64 ",mem=%" PRId64
               "M,node=%" PRId64 ",billing=%" PRId64 "\"}",
               buf_text(&hosts), sums.nodes, sums.cpus, sums.cpus, sums.memory, sums.nodes,
               sums.cpus);
    ctld_put_text(out, "name", partition->text[PART_NAME]);
    ctld_put_text(out, "node_sets", feature[0] ? feature : "ALL");
    ctld_put_words(out, "flags", partition->is_default ? "DEFAULT" : "");
    buf_printf(out,
               ",\"partition\":{\"exclusive\":\"NO\",\"oversubscribe\":\"NO\",\"state\":[\"%s\"]"
               "},\"priority\":{\"job_factor\":1,\"tier\":%u}",
               partition->text[PART_STATE], partition->tier);
    put_limits(out, partition);
    buf_add_text(out,
                 ",\"accounts\":{\"allowed\":\"\",\"deny\":\"\"},\"groups\":{\"allowed\":\"\"},"
                 "\"qos\":{\"allowed\":\"\",\"deny\":\"\",\"assigned\":\"\"},"
                 "\"alternate\":\"\",\"cluster\":\"\",\"select_type\":[\"NONE\"],"
                 "\"grace_time\":0,\"preempt_mode\":[\"CLUSTER_GLOBAL\"],\"timeouts\":{"
                 "\"resume\":" UNSET ",\"suspend\":" UNSET "},\"topology\":\"\","
                 "\"suspend_time\":" UNSET "}");
}

static void warn_of_accounting(struct ctld_call *call)
{
    ctld_warn(call, "",
              "Slurm accounting storage is disabled. Could not query the following: [TRES].");
}

void ctld_run_partition_get(struct ctld_call *call)
{
    const struct ctld_partition *partition = ctld_partition_find(&call->store->state, call->name);

    ctld_begin(call);
    if (!partition) { /* neither an error nor an array */
        ctld_warn(call, "_partition_get", "Unable to find partition %s", call->name);
        ctld_finish(call);
        return;
    }
    warn_of_accounting(call);
    buf_add_text(&call->answer->body, "\"partitions\":[");
    ctld_show_partition(call, partition);
    buf_add_char(&call->answer->body, ']');
    ctld_put_last_update(call);
    ctld_finish(call);
}

void ctld_run_partitions_list(struct ctld_call *call)
{
    if (ctld_is_unchanged(call, TABLE_PARTITIONS)) {
        ctld_plain(call->answer, 304, "");
        return;
    }
    warn_of_accounting(call);
    ctld_begin(call);
    buf_add_text(&call->answer->body, "\"partitions\":[");
    map_each (item, &call->store->state.partitions)
        ctld_show_partition(call, item->value);
    buf_add_char(&call->answer->body, ']');
    ctld_put_last_update(call);
    ctld_finish(call);
}

/* ---- reservations ---- */

void ctld_show_resv(struct ctld_call *call, const struct ctld_resv *resv)
{
    struct buf *out = &call->answer->body;
    const struct hostlist *hosts;
    struct hostlist_iter iter;
    struct str name;
    int64_t cores = 0, cpus = 0, count = 0;
    char tres[40];

    if (hostlist_parse(call->arena, str_of(resv->text[RESV_NODES]), HOSTLIST_MAX_NAMES, &hosts,
                       NULL) == 0) {
        iter = hostlist_iter(hosts);
        for (; hostlist_next(&iter, &name); count++) {
            const struct ctld_node *node = map_get(&call->store->state.nodes, name);

            cores += node ? (int64_t)node->sockets * node->cores : 0;
            cpus += node ? node->cpus : 0;
        }
    }
    (void)snprintf(tres, sizeof(tres), "cpu=%" PRId64, cpus);
    ctld_put(out, NULL);
    buf_add_char(out, '{');
    ctld_put_text(out, "name", resv->text[RESV_NAME]);
    ctld_put_text(out, "node_list", resv->text[RESV_NODES]);
    ctld_put_int(out, "node_count", count);
    ctld_put_int(out, "core_count", cores);
    ctld_put_text(out, "tres", tres);
    ctld_put_text(out, "users", resv->text[RESV_USERS]);
    ctld_put_text(out, "partition", resv->text[RESV_PARTITION]);
    ctld_put_words(out, "flags", resv->text[RESV_FLAGS]);
    ctld_put_number(out, "start_time", resv->start_us / CTLD_SECOND);
    ctld_put_number(out, "end_time", resv->end_us / CTLD_SECOND);
    buf_add_text(out, ",\"accounts\":\"\",\"burst_buffer\":\"\",\"core_specializations\":[],"
                      "\"features\":\"\",\"groups\":\"\",\"licenses\":\"\",\"max_start_delay\":0,"
                      "\"purge_completed\":{\"time\":{\"set\":true,\"infinite\":false,"
                      "\"number\":300}}}");
}

void ctld_run_resv_get(struct ctld_call *call)
{
    const struct ctld_resv *resv = ctld_resv_find(&call->store->state, call->name);

    if (!resv) {
        ctld_refuse(call, 0);
        return;
    }
    ctld_begin(call);
    buf_add_text(&call->answer->body, "\"reservations\":[");
    ctld_show_resv(call, resv);
    buf_add_char(&call->answer->body, ']');
    ctld_put_last_update(call);
    ctld_finish(call);
}

void ctld_run_resvs_list(struct ctld_call *call)
{
    if (ctld_is_unchanged(call, TABLE_RESERVATIONS)) {
        ctld_plain(call->answer, 304, "");
        return;
    }
    ctld_begin(call);
    buf_add_text(&call->answer->body, "\"reservations\":[");
    map_each (item, &call->store->state.reservations)
        ctld_show_resv(call, item->value);
    buf_add_char(&call->answer->body, ']');
    ctld_put_last_update(call);
    ctld_finish(call);
}

static void set_list(char **slot, const struct json *value)
{
    struct json_iter iter = json_iter(value);
    const struct json *item;
    auto_buf struct buf text;

    buf_init(&text, CTLD_MAX_BODY);
    if (!json_exists(value))
        return;
    if (json_is_string(value))
        buf_add_str(&text, json_str(value));
    while (json_is_array(value) && json_next_item(&iter, &item))
        buf_printf(&text, "%s" STR_FMT, text.len > 0 ? "," : "", STR_ARG(json_str(item)));
    ctld_set(slot, buf_text(&text));
}

static int64_t number_at(const struct json *ask, const char *key)
{
    const struct json *value = json_get(ask, key);

    return json_i64_or(value, json_i64_or(json_get(value, "number"), 0));
}

/* Creates it, or changes the one of that name. */
void ctld_run_resv_put(struct ctld_call *call)
{
    const struct json *ask = call->body;
    struct str name = json_str(json_get(ask, "name"));
    int64_t start = number_at(ask, "start_time"), end = number_at(ask, "end_time");
    struct ctld_resv *resv = ctld_resv_find(&call->store->state, name.at);

    if (!call->privileged) {
        ctld_refuse(call, 2010);
        return;
    }
    if (!resv && start == 0) {
        ctld_refuse_as(call, 2053, "A start time must be given.  No reservation created.",
                       "validate_resv_create_desc");
        return;
    }
    if (!resv)
        resv = ctld_resv_add(&call->store->state, name.at);
    if (start > 0)
        resv->start_us = start * CTLD_SECOND;
    if (end == 0)
        end = resv->start_us / CTLD_SECOND + 60 * number_at(ask, "duration");
    resv->end_us = end * CTLD_SECOND;
    set_list(&resv->text[RESV_NODES], json_get(ask, "node_list"));
    set_list(&resv->text[RESV_USERS], json_get(ask, "users"));
    set_list(&resv->text[RESV_FLAGS], json_get(ask, "flags"));
    ctld_touch(call->store, TABLE_RESERVATIONS);
    ctld_begin(call);
    buf_add_text(&call->answer->body, "\"reservations\":[");
    ctld_show_resv(call, resv);
    buf_add_char(&call->answer->body, ']');
    ctld_finish(call);
}

void ctld_run_resv_delete(struct ctld_call *call)
{
    if (!call->privileged || !ctld_resv_find(&call->store->state, call->name)) {
        ctld_refuse(call, call->privileged ? 2053 : 2010);
        return;
    }
    map_remove(&call->store->state.reservations, str_of(call->name));
    ctld_touch(call->store, TABLE_RESERVATIONS);
    ctld_begin(call);
    ctld_finish(call);
}

/* ---- the daemons ---- */

void ctld_run_ping(struct ctld_call *call)
{
    enum slurm_store_ctld ctld = call->store->ctld;
    bool is_good = call->user && ctld == SLURM_CTLD_UP;
    const char *status = is_good                      ? "No error"
                         : ctld == SLURM_CTLD_DOWN    ? ctld_error_words(1800)
                         : ctld == SLURM_CTLD_STOPPED ? ctld_error_words(5004)
                                                      : ctld_error_words(1007);
    struct buf *out = &call->answer->body;

    ctld_begin(call);
    buf_add_text(out, "\"pings\":[{");
    ctld_put_text(out, "hostname", "slurm-controller-0");
    ctld_put_bool(out, "responding", is_good);
    ctld_put_int(out, "latency", 1000);
    ctld_put_bool(out, "primary", true);
    if (call->version >= 45) {
        ctld_put_text(out, "status", status);
    } else {
        ctld_put_text(out, "pinged", is_good ? "UP" : "DOWN");
        ctld_put_text(out, "mode", "primary");
    }
    buf_add_text(out, "}]");
    ctld_finish(call);
}

void ctld_run_conf(struct ctld_call *call)
{
    const struct slurm_store *store = call->store;
    const struct slurm_store_options *options = &store->options;
    struct buf *out = &call->answer->body;
    bool none = strcmp(options->private_data, "none") == 0;

    ctld_begin(call);
    buf_add_text(out, "\"slurm_conf\":{");
    ctld_put_words(out, "PrivateData", none ? "" : options->private_data);
    buf_add_text(out, ",\"MCSPlugin\":\"\",\"MCSParameters\":[],\"AuthAltTypes\":[\"auth/jwt\"]");
    ctld_put_text(out, "AuthAltParameters", "jwks=/keys.json,userclaimfield=" CTLD_USER_CLAIM);
    ctld_put_text(out, "SlurmUser", options->slurm_user);
    ctld_put_int(out, "SlurmUserId", ctld_uid(call->store, options->slurm_user));
    ctld_put_int(out, "MessageTimeout", options->message_timeout_s);
    ctld_put_text(out, "ClusterName", options->cluster);
    ctld_put_int(out, "MinJobAge", options->min_job_age_s);
    ctld_put_int(out, "MaxJobCount", options->max_job_count);
    buf_add_text(out, "},\"slurm_conf_meta\":{");
    ctld_put_int(out, "LastUpdate", ctld_wall_us(store) / CTLD_SECOND);
    ctld_put_int(out, "BOOT_TIME", store->boot_us / CTLD_SECOND);
    ctld_put_number(out, "ClusterId", 0);
    ctld_put_int(out, "HashValue", 1279073181);
    ctld_put_number(out, "NEXT_JOB_ID", store->state.next_id);
    ctld_put_text(out, "SLURM_CONF", "/etc/slurm/slurm.conf");
    ctld_put_text(out, "SLURM_VERSION", "26.05.5");
    buf_add_char(out, '}');
    ctld_finish(call);
}

void ctld_run_diag(struct ctld_call *call)
{
    struct buf *out = &call->answer->body;

    ctld_begin(call);
    buf_add_text(out, "\"statistics\":{");
    ctld_put_number(out, "req_time", ctld_wall_us(call->store) / CTLD_SECOND);
    ctld_put_number(out, "req_time_start", call->store->boot_us / CTLD_SECOND);
    ctld_put_int(out, "server_thread_count", 1);
    buf_add_char(out, '}');
    ctld_finish(call);
}

void ctld_run_licenses(struct ctld_call *call)
{
    ctld_warn(call, "", "Zero licenses to dump");
    ctld_begin(call);
    buf_add_text(&call->answer->body, "\"licenses\":[]");
    ctld_put_last_update(call);
    ctld_finish(call);
}

void ctld_run_reconfigure(struct ctld_call *call)
{
    if (!call->privileged) {
        ctld_refuse(call, 2010);
        return;
    }
    ctld_begin(call);
    ctld_finish(call);
}
