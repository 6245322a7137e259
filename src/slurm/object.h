/* object.h - jobs, nodes and the rest as small immutable structs, shared by reference count.
 *
 * Each kind has a table of fields, read by name: what a version of Slurm does not send is unset (0,
 * false, ""), what it adds is ignored, so v0.0.42 to v0.0.45 are one schema. One object is one
 * block of memory, texts included; texts are never NULL. Times are seconds since 1970, 0 = none;
 * memory is MiB. */
#ifndef SLINC_SLURM_OBJECT_H
#define SLINC_SLURM_OBJECT_H

#include "base/arena.h"
#include "base/err.h"
#include "codec/bitmap.h"
#include "codec/json.h"
#include "slurm/value.h"

enum {
    SLURM_MAX_OBJECT_TEXT = 16 << 20, /* bytes of all texts of one object */
    SLURM_MAX_LIST = 1 << 22,         /* objects in one list */
    SLURM_MAX_LAYOUT_NODES = 64 * 1024,
    SLURM_MAX_LAYOUT_GRES = 256 * 1024, /* of all nodes */
    SLURM_LAYOUT_MEMORY = 64 << 20,     /* the most that a layout takes from its arena */
};

struct slurm_kind;
extern const struct slurm_kind slurm_job_kind, slurm_node_kind, slurm_partition_kind,
    slurm_reservation_kind, slurm_ping_kind;

struct slurm_object {
    unsigned refs; /* private */
    const struct slurm_kind *kind;
    const char *key; /* unique within the kind: job id, name */
};

struct slurm_job {
    struct slurm_object object;
    int64_t id;
    const char *sluid; /* unique for ever, ids are not; "" before v0.0.44 */
    const char *name, *reason, *reason_text;
    const char *partition; /* several while pending, separated by ',' */
    const char *account, *qos, *reservation, *user;
    const char *admin_comment, *comment, *extra;
    const char *nodes; /* hostlist; "" while pending */
    const char *required_nodes, *excluded_nodes, *scheduled_nodes;
    const char *tres_alloc, *tres_request, *tres_per_job, *tres_per_node, *licenses;
    const char *array_tasks;       /* of those that wait: "1-9:2"; Slurm may end it with "..." */
    const char *features, *prefer; /* that its nodes must have; that they had better have */
    const char *shared;            /* "none": whole nodes are its own (--exclusive) */
    struct slurm_words state, flags;
    struct slurm_number priority, time_limit; /* time_limit in minutes */
    struct slurm_number exit_code;
    struct slurm_number array_job_id, array_task_id, array_max_tasks, memory_per_node;
    int64_t user_id, group_id, node_count, cpus, restarts;
    int64_t submit_time, eligible_time, start_time, end_time;
    bool hold;
};

struct slurm_node {
    struct slurm_object object;
    const char *name, *address, *hostname, *reason, *comment, *extra, *version;
    const char *features, *active_features; /* separated by ',' */
    const char *partitions, *reservation, *topology, *gres, *gres_used, *tres;
    struct slurm_words state;
    struct slurm_number free_memory;
    int64_t cpus, effective_cpus, alloc_cpus, alloc_idle_cpus, sockets, cores, threads;
    int64_t real_memory, specialized_memory, alloc_memory, weight;
    int64_t reason_time;
};

struct slurm_partition {
    struct slurm_object object;
    const char *name, *nodes, *topology;
    const char *nodesets;      /* those of slurm.conf that it lists; "ALL": every node */
    const char *oversubscribe; /* "EXCLUSIVE": jobs get whole nodes; "" before v0.0.44 */
    const char *flags, *accounts, *denied_accounts, *groups, *qos, *denied_qos; /* lists by ',' */
    struct slurm_words state;
    struct slurm_number max_time, default_time; /* minutes */
    struct slurm_number max_nodes;
};

struct slurm_reservation {
    struct slurm_object object;
    const char *name, *nodes, *users, *accounts, *partition, *features, *tres; /* lists by ',' */
    struct slurm_words flags;
    int64_t start_time, end_time, node_count, core_count;
};

struct slurm_ping { /* one slurmctld */
    struct slurm_object object;
    const char *hostname, *status;
    bool responding;
};

/* A new object with one reference. -ERR_INVALID when the key is missing, naming it. */
int slurm_object_decode(const struct slurm_kind *kind, const struct json *value,
                        const struct slurm_object **ret_object, struct err *err);
const struct slurm_object *slurm_object_ref(const struct slurm_object *object);
void slurm_object_unref(const struct slurm_object *object); /* takes NULL */
bool slurm_object_equal(const struct slurm_object *a, const struct slurm_object *b);

static inline const struct slurm_job *slurm_job_of(const struct slurm_object *object)
{
    return (const struct slurm_job *)(const void *)object;
}
static inline const struct slurm_node *slurm_node_of(const struct slurm_object *object)
{
    return (const struct slurm_node *)(const void *)object;
}
static inline const struct slurm_partition *slurm_partition_of(const struct slurm_object *object)
{
    return (const struct slurm_partition *)(const void *)object;
}
static inline const struct slurm_reservation *slurm_reservation_of(
    const struct slurm_object *object)
{
    return (const struct slurm_reservation *)(const void *)object;
}
static inline const struct slurm_ping *slurm_ping_of(const struct slurm_object *object)
{
    return (const struct slurm_ping *)(const void *)object;
}

/* When Slurm expects a pending job to start; 0 when it does not say. */
int64_t slurm_job_expected_start(const struct slurm_job *job);
bool slurm_node_is_busy(const struct slurm_node *node); /* has work, or clears up after it */

/* ---- whole answers ---- */

struct slurm_list {
    const struct slurm_object **at; /* each with a reference of the list */
    size_t count;
    int64_t last_update; /* to be given back as update_time; 0 when the answer had none */
};

/* Takes the answer of a list or of a single read. One object that cannot be read fails the whole:
 * a list with a hole would look as if that object had gone. */
int slurm_list_decode(const struct slurm_kind *kind, const struct json *body,
                      struct slurm_list *ret_list, struct err *err);
void slurm_list_done(struct slurm_list *list);

#define auto_slurm_list __attribute__((cleanup(slurm_list_done)))

/* One item of /jobs/state/. */
struct slurm_brief {
    struct str id;  /* "7", or an expression for a part of an array; borrowed */
    int64_t number; /* the same as a number; 0 when it is an expression */
    uint64_t state; /* known words of slurm_job_states, one bit each */
};
int slurm_brief_of(const struct json *item, struct slurm_brief *ret_brief, struct err *err);

/* ---- what a running job was given (/resources/{id}) ---- */

struct slurm_gres {
    const char *name, *type, *index; /* index: "0-1,3", "" when Slurm names none */
    int64_t count;
};

struct slurm_layout_node {
    const char *name;
    const char *cores; /* hexadecimal map over sockets * cores_per_socket */
    int64_t sockets, cores_per_socket, memory;
    struct slurm_number channel; /* IMEX */
    const struct slurm_gres *gres;
    size_t gres_count;
};

struct slurm_layout {
    const struct slurm_layout_node *nodes;
    size_t count;
};

/* Everything lives in the arena, which must allow SLURM_LAYOUT_MEMORY. */
int slurm_layout_decode(struct arena *arena, const struct json *body,
                        struct slurm_layout *ret_layout, struct err *err);
int slurm_layout_cores(const struct slurm_layout_node *node, struct bitmap *ret_cores,
                       struct err *err);

#endif
