/* kind.c - which fields of each kind are kept: one row per field. */
#include "slurm/object_private.h"

#include <stddef.h>

#define TEXT(kind, member, ...)                                                                    \
    { { __VA_ARGS__, NULL }, SLURM_FIELD_TEXT, offsetof(struct slurm_##kind, member), NULL }
#define LIST(kind, member, ...)                                                                    \
    { { __VA_ARGS__, NULL }, SLURM_FIELD_LIST, offsetof(struct slurm_##kind, member), NULL }
#define INT(kind, member, ...)                                                                     \
    { { __VA_ARGS__, NULL }, SLURM_FIELD_INT, offsetof(struct slurm_##kind, member), NULL }
#define NUMBER(kind, member, ...)                                                                  \
    { { __VA_ARGS__, NULL }, SLURM_FIELD_NUMBER, offsetof(struct slurm_##kind, member), NULL }
#define BOOL(kind, member, ...)                                                                    \
    { { __VA_ARGS__, NULL }, SLURM_FIELD_BOOL, offsetof(struct slurm_##kind, member), NULL }
#define WORDS(kind, member, vocabulary, ...)                                                       \
    { { __VA_ARGS__, NULL }, SLURM_FIELD_WORDS, offsetof(struct slurm_##kind, member), vocabulary }

#define KIND(words, list, id, kind, rows)                                                          \
    { words, list, id, sizeof(struct slurm_##kind), rows, sizeof(rows) / sizeof(rows[0]) };        \
    _Static_assert(sizeof(rows) / sizeof(rows[0]) <= SLURM_MAX_FIELDS, "too many fields")

static const struct slurm_field job_fields[] = {
    INT(job, id, "job_id"),
    TEXT(job, sluid, "step_id", "sluid"),
    TEXT(job, name, "name"),
    TEXT(job, reason, "state_reason"),
    TEXT(job, reason_text, "state_description"),
    LIST(job, partition, "partition"),
    TEXT(job, account, "account"),
    TEXT(job, qos, "qos"),
    TEXT(job, reservation, "resv_name"),
    TEXT(job, user, "user_name"),
    TEXT(job, admin_comment, "admin_comment"),
    TEXT(job, comment, "comment"),
    TEXT(job, extra, "extra"),
    LIST(job, nodes, "nodes"),
    LIST(job, required_nodes, "required_nodes"),
    LIST(job, excluded_nodes, "excluded_nodes"),
    LIST(job, scheduled_nodes, "scheduled_nodes"),
    TEXT(job, tres_alloc, "tres_alloc_str"),
    TEXT(job, tres_request, "tres_req_str"),
    TEXT(job, tres_per_job, "tres_per_job"),
    TEXT(job, tres_per_node, "tres_per_node"),
    TEXT(job, array_tasks, "array_task_string"),
    TEXT(job, features, "features"),
    TEXT(job, prefer, "prefer"),
    TEXT(job, licenses, "licenses"),
    LIST(job, shared, "shared"),
    WORDS(job, state, &slurm_job_states, "job_state"),
    WORDS(job, flags, &slurm_job_flags, "flags"),
    NUMBER(job, priority, "priority"),
    NUMBER(job, time_limit, "time_limit"),
    NUMBER(job, exit_code, "exit_code", "return_code"),
    NUMBER(job, array_job_id, "array_job_id"),
    NUMBER(job, array_task_id, "array_task_id"),
    NUMBER(job, array_max_tasks, "array_max_tasks"),
    NUMBER(job, memory_per_node, "memory_per_node"),
    INT(job, user_id, "user_id"),
    INT(job, group_id, "group_id"),
    INT(job, node_count, "node_count"),
    INT(job, cpus, "cpus"),
    INT(job, restarts, "restart_cnt"),
    INT(job, submit_time, "submit_time"),
    INT(job, eligible_time, "eligible_time"),
    INT(job, start_time, "start_time"),
    INT(job, end_time, "end_time"),
    BOOL(job, hold, "hold"),
};

static const struct slurm_field node_fields[] = {
    TEXT(node, name, "name"),
    TEXT(node, address, "address"),
    TEXT(node, hostname, "hostname"),
    TEXT(node, reason, "reason"),
    TEXT(node, comment, "comment"),
    TEXT(node, extra, "extra"),
    TEXT(node, version, "version"),
    LIST(node, features, "features"),
    LIST(node, active_features, "active_features"),
    LIST(node, partitions, "partitions"),
    TEXT(node, reservation, "reservation"),
    TEXT(node, topology, "topology"),
    TEXT(node, gres, "gres"),
    TEXT(node, gres_used, "gres_used"),
    TEXT(node, tres, "tres"),
    WORDS(node, state, &slurm_node_states, "state"),
    NUMBER(node, free_memory, "free_mem"),
    INT(node, cpus, "cpus"),
    INT(node, effective_cpus, "effective_cpus"),
    INT(node, alloc_cpus, "alloc_cpus"),
    INT(node, alloc_idle_cpus, "alloc_idle_cpus"),
    INT(node, sockets, "sockets"),
    INT(node, cores, "cores"),
    INT(node, threads, "threads"),
    INT(node, real_memory, "real_memory"),
    INT(node, specialized_memory, "specialized_memory"),
    INT(node, alloc_memory, "alloc_memory"),
    INT(node, weight, "weight"),
    INT(node, reason_time, "reason_changed_at"),
};

static const struct slurm_field partition_fields[] = {
    TEXT(partition, name, "name"),
    LIST(partition, nodes, "nodes", "configured"),
    TEXT(partition, topology, "topology"),
    LIST(partition, nodesets, "node_sets"),
    TEXT(partition, oversubscribe, "partition", "oversubscribe"),
    LIST(partition, flags, "flags"),
    LIST(partition, accounts, "accounts", "allowed"),
    LIST(partition, denied_accounts, "accounts", "deny"),
    LIST(partition, groups, "groups", "allowed"),
    LIST(partition, qos, "qos", "allowed"),
    LIST(partition, denied_qos, "qos", "deny"),
    WORDS(partition, state, &slurm_partition_states, "partition", "state"),
    NUMBER(partition, max_time, "maximums", "time"),
    NUMBER(partition, default_time, "defaults", "time"),
    NUMBER(partition, max_nodes, "maximums", "nodes"),
};

static const struct slurm_field reservation_fields[] = {
    TEXT(reservation, name, "name"),
    LIST(reservation, nodes, "node_list"),
    LIST(reservation, users, "users"),
    LIST(reservation, accounts, "accounts"),
    TEXT(reservation, partition, "partition"),
    TEXT(reservation, features, "features"),
    TEXT(reservation, tres, "tres"),
    WORDS(reservation, flags, &slurm_reservation_flags, "flags"),
    INT(reservation, start_time, "start_time"),
    INT(reservation, end_time, "end_time"),
    INT(reservation, node_count, "node_count"),
    INT(reservation, core_count, "core_count"),
};

static const struct slurm_field ping_fields[] = {
    TEXT(ping, hostname, "hostname"),
    TEXT(ping, status, "status"),
    BOOL(ping, responding, "responding"),
};

const struct slurm_kind slurm_job_kind = KIND("job", "jobs", "job_id", job, job_fields);
const struct slurm_kind slurm_node_kind = KIND("node", "nodes", "name", node, node_fields);
const struct slurm_kind slurm_partition_kind =
    KIND("partition", "partitions", "name", partition, partition_fields);
const struct slurm_kind slurm_reservation_kind =
    KIND("reservation", "reservations", "name", reservation, reservation_fields);
const struct slurm_kind slurm_ping_kind = KIND("ping", "pings", "hostname", ping, ping_fields);
