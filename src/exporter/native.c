/* native.c - counts jobs and nodes as slurmctld's own endpoints do. */
#include "exporter/native.h"

#include "exporter/legacy_private.h"

#include <stddef.h>
#include <stdio.h>

enum { MAX_GROUPS = 100000 };

static bool is_always(const struct slurm_job *job)
{
    (void)job;
    return true;
}
static bool has_ended(const struct slurm_job *job)
{
    return slurm_job_has_ended(&job->state);
}
static bool is_held(const struct slurm_job *job)
{
    return job->hold;
}
static bool has_started(const struct slurm_job *job)
{
    return !slurm_words_has(&job->state, SLURM_JOB_PENDING);
}

/* A job counts in a row by one of Slurm's words, or by a rule. */
static const struct job_row {
    const char *suffix, *word;
    bool (*rule)(const struct slurm_job *job);
} job_rows[] = {
    { "", NULL, is_always },
    { "_bootfail", "BOOT_FAIL", NULL },
    { "_cancelled", "CANCELLED", NULL },
    { "_completed", "COMPLETED", NULL },
    { "_completing", "COMPLETING", NULL },
    { "_configuring", "CONFIGURING", NULL },
    { "_deadline", "DEADLINE", NULL },
    { "_expediting", "EXPEDITING", NULL },
    { "_failed", "FAILED", NULL },
    { "_fed_requeued", "REQUEUE_FED", NULL },
    { "_finished", NULL, has_ended },
    { "_hold", NULL, is_held },
    { "_node_failed", "NODE_FAIL", NULL },
    { "_outofmemory", "OUT_OF_MEMORY", NULL },
    { "_pending", "PENDING", NULL },
    { "_powerup_node", "POWER_UP_NODE", NULL },
    { "_preempted", "PREEMPTED", NULL },
    { "_requeued", "REQUEUED", NULL },
    { "_resizing", "RESIZING", NULL },
    { "_revoked", "REVOKED", NULL },
    { "_running", "RUNNING", NULL },
    { "_signaling", "SIGNALING", NULL },
    { "_stageout", "STAGE_OUT", NULL },
    { "_started", NULL, has_started },
    { "_suspended", "SUSPENDED", NULL },
    { "_timeout", "TIMEOUT", NULL },
};
enum { JOB_ROWS = sizeof(job_rows) / sizeof(job_rows[0]) };

/* The cluster's families and a partition's spell some states differently; NULL: it has none. */
static const struct node_row {
    const char *cluster, *partition, *word;
    enum tally_node_state state; /* where word is NULL */
} node_rows[] = {
    { "_alloc", "_alloc", "ALLOCATED", 0 },
    { "_blocked", "_blocked", "BLOCKED", 0 },
    { "_cloud", "_cloud", "CLOUD", 0 },
    { "_completing", "_cg", "COMPLETING", 0 },
    { "_down", "_down", "DOWN", 0 },
    { "_drain", "_drain", "DRAIN", 0 },
    { "_drained", "_drained", NULL, TALLY_NODE_DRAINED },
    { "_draining", "_draining", NULL, TALLY_NODE_DRAINING },
    { "_dyn_future", "_dyn_future", "DYNAMIC_FUTURE", 0 },
    { "_dyn_normal", "_dyn_normal", "DYNAMIC_NORM", 0 },
    { "_external", "_external", "EXTERNAL", 0 },
    { "_fail", "_fail", "FAIL", 0 },
    { "_future", "_future", "FUTURE", 0 },
    { "_idle", "_idle", "IDLE", 0 },
    { "_invalid_reg", "_invalid_reg", "INVALID_REG", 0 },
    { "_maint", "_maint", "MAINTENANCE", 0 },
    { "_mixed", "_mixed", "MIXED", 0 },
    { "_noresp", "_no_resp", "NOT_RESPONDING", 0 },
    { "_planned", "_planned", "PLANNED", 0 },
    { "_power_down", "_power_down", "POWER_DOWN", 0 },
    { "_power_up", "_power_up", "POWER_UP", 0 },
    { "_powered_down", "_powered_down", "POWERED_DOWN", 0 },
    { NULL, "_powering_down", "POWERING_DOWN", 0 },
    { "_powering_up", "_powering_up", "POWERING_UP", 0 },
    { "_reboot_issued", "_reboot_issued", "REBOOT_ISSUED", 0 },
    { "_reboot_req", "_reboot_requested", "REBOOT_REQUESTED", 0 },
    { "_resv", "_resv", "RESERVED", 0 },
    { "_unknown", "_unknown", "UNKNOWN", 0 },
};
enum { NODE_ROWS = sizeof(node_rows) / sizeof(node_rows[0]) };

struct group {
    const char *name;
    double jobs[JOB_ROWS], cpus, gpus, job_nodes, memory; /* of what runs */
    double partitions;                                    /* of the whole */
    double widest, widest_nohold, node_limit;             /* of jobs that wait */
    double nodes, node_states[NODE_ROWS];
    double node_cpus, node_gpus, cpus_alloc, cpus_effective, cpus_idle;
    double memory_all, memory_alloc, memory_effective, memory_free;
};

struct counts {
    const struct tally *tally;
    struct group all;
    struct map partitions, accounts, users; /* struct group */
    uint64_t job_bits[JOB_ROWS], node_bits[NODE_ROWS];
};

/* ---- counting ---- */

static uint64_t bit_of(const struct slurm_vocabulary *vocabulary, const char *word)
{
    for (unsigned i = 0; word && i < SLURM_WORDS_MAX && vocabulary->words[i]; i++)
        if (str_is(str_of(vocabulary->words[i]), word))
            return UINT64_C(1) << i;
    return 0;
}

static double gpus_of(const struct tres *tres)
{
    double count = 0;

    for (unsigned i = 0; i < tres->gres_count; i++)
        if (str_is(tres->gres[i].name, "gpu") || str_starts(tres->gres[i].name, STR("gpu:")))
            count += (double)tres->gres[i].count;
    return count;
}

static struct group *find_group(struct counts *counts, struct map *map, struct str name)
{
    struct group *group = map_get(map, name);

    if (group)
        return group;
    group = arena_alloc(counts->tally->arena, sizeof(*group));
    group->name = arena_strndup(counts->tally->arena, name.at, name.len);
    return map_put(map, str_of(group->name), group, NULL) < 0 ? NULL : group;
}

static void count_pending(struct group *group, const struct slurm_job *job)
{
    double nodes = (double)job->node_count;

    if (nodes > group->widest)
        group->widest = nodes;
    if (!job->hold && nodes > group->widest_nohold)
        group->widest_nohold = nodes;
    group->node_limit += str_is(str_of(job->reason), "PartitionNodeLimit");
}

static void count_job(const struct counts *counts, struct group *group, const struct slurm_job *job)
{
    struct tres held;

    if (!group)
        return;
    for (unsigned i = 0; i < JOB_ROWS; i++)
        group->jobs[i] += job_rows[i].rule ? job_rows[i].rule(job)
                                           : (job->state.known & counts->job_bits[i]) != 0;
    if (slurm_words_has(&job->state, SLURM_JOB_PENDING))
        count_pending(group, job);
    if (slurm_words_has(&job->state, SLURM_JOB_PENDING) || slurm_job_has_ended(&job->state))
        return;
    tally_allocation_of(job, &held);
    group->cpus += (double)held.cpus;
    group->gpus += gpus_of(&held);
    group->job_nodes += (double)held.nodes;
    group->memory += held.memory_bytes / 1048576.0;
}

static void count_node(const struct counts *counts, struct group *group,
                       const struct tally_node *node)
{
    const struct slurm_node *from = node->node;

    if (!group)
        return;
    group->nodes++;
    for (unsigned i = 0; i < NODE_ROWS; i++)
        group->node_states[i] += node_rows[i].word ? (from->state.known & counts->node_bits[i]) != 0
                                                   : node->state == node_rows[i].state;
    group->node_cpus += (double)from->cpus;
    group->node_gpus += gpus_of(&node->has);
    group->cpus_alloc += (double)from->alloc_cpus;
    group->cpus_effective += (double)from->effective_cpus;
    group->cpus_idle += (double)from->alloc_idle_cpus;
    group->memory_all += (double)from->real_memory;
    group->memory_alloc += (double)from->alloc_memory;
    group->memory_effective += (double)(from->real_memory - from->specialized_memory);
    group->memory_free += (double)slurm_number_or(from->free_memory, 0, 0);
}

/* By its own name where that is shown, else "other"; as on the page of the old series. */
static struct group *find_owner(struct counts *counts, struct map *map, enum tally_owner_kind kind,
                                const char *name)
{
    const struct map *shown = &counts->tally->owners[kind];
    bool is_shown = map_has(shown, str_of(name)) || !map_has(shown, STR("other"));

    return find_group(counts, map, is_shown ? str_of(name) : STR("other"));
}

static void count_jobs(struct counts *counts)
{
    struct slurm_cache_walk walk = slurm_cache_walk(counts->tally->view->jobs);
    const struct slurm_object *object;

    while ((object = slurm_cache_next(&walk))) {
        const struct slurm_job *job = slurm_job_of(object);
        struct str rest = str_of(job->partition), name;

        count_job(counts, &counts->all, job);
        if (job->account[0])
            count_job(counts, find_owner(counts, &counts->accounts, TALLY_ACCOUNT, job->account),
                      job);
        if (job->user[0] && counts->tally->view->shows_users)
            count_job(counts, find_owner(counts, &counts->users, TALLY_USER, job->user), job);
        while (!slurm_job_has_ended(&job->state) && rest.len > 0 && str_next(&rest, ',', &name))
            count_job(counts, find_group(counts, &counts->partitions, name), job);
    }
}

static void count_nodes(struct counts *counts)
{
    for (size_t i = 0; i < counts->tally->node_count; i++) {
        const struct tally_node *node = &counts->tally->nodes[i];
        struct str rest = str_of(node->node->partitions), name;

        count_node(counts, &counts->all, node);
        while (rest.len > 0 && str_next(&rest, ',', &name))
            count_node(counts, find_group(counts, &counts->partitions, name), node);
    }
}

/* ---- writing ---- */

struct set { /* of groups: the prefix of its families, its label, where its groups are */
    const char *prefix, *label;
    const struct map *groups; /* NULL: the one that is everything */
    const struct group *all;
};

static void write_family(const struct set *set, const char *suffix, const char *help, size_t at,
                         struct buf *out)
{
    struct legacy_family family = { .row = { .help = help, .type = METRIC_GAUGE } };

    if (set->groups && set->groups->count == 0)
        return;
    (void)snprintf(family.name, sizeof(family.name), "%s%s", set->prefix, suffix);
    family.row.name = family.name;
    family.row.labels[0] = set->groups ? set->label : NULL;
    legacy_head(&family, out);
    if (!set->groups) {
        metrics_write_sample(&family.row, NULL,
                             *(const double *)(const void *)((const char *)set->all + at), out);
        return;
    }
    map_each (item, set->groups) {
        const char *values[] = { ((const struct group *)item->value)->name };

        metrics_write_sample(&family.row, values,
                             *(const double *)(const void *)((const char *)item->value + at), out);
    }
}

#define AT(member) offsetof(struct group, member)

static void write_jobs(const struct set *set, bool has_nodes, struct buf *out)
{
    for (unsigned i = 0; i < JOB_ROWS; i++)
        write_family(set, job_rows[i].suffix, "Jobs in this state or with this flag.",
                     AT(jobs) + i * sizeof(double), out);
    write_family(set, "_cpus_alloc", "CPUs that jobs hold.", AT(cpus), out);
    write_family(set, "_gpus_alloc", "GPUs that jobs hold.", AT(gpus), out);
    if (has_nodes)
        write_family(set, "_nodes_alloc", "Nodes that jobs hold.", AT(job_nodes), out);
    write_family(set, "_memory_alloc", "Memory that jobs hold, in MiB.", AT(memory), out);
}

static void write_partition_jobs(const struct set *set, struct buf *out)
{
    static const struct {
        const char *suffix;
        size_t at;
    } rows[] = {
        { "_min_job_nodes", AT(widest) },
        { "_min_job_nodes_nohold", AT(widest_nohold) },
        { "_max_job_nodes", AT(widest) },
        { "_max_job_nodes_nohold", AT(widest_nohold) },
        { "_wait_part_node_limit", AT(node_limit) },
    };

    write_jobs(set, false, out);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        write_family(set, rows[i].suffix,
                     "Of jobs that wait: nodes of the widest, or their number.", rows[i].at, out);
}

static void write_node_states(const struct set *set, bool is_cluster, struct buf *out)
{
    write_family(set, "", "Nodes.", AT(nodes), out);
    for (unsigned i = 0; i < NODE_ROWS; i++) {
        const char *suffix = is_cluster ? node_rows[i].cluster : node_rows[i].partition;

        if (suffix)
            write_family(set, suffix, "Nodes in this state or with this flag.",
                         AT(node_states) + i * sizeof(double), out);
    }
}

struct figure {
    const char *suffix;
    size_t at;
};

static void write_figures(const struct set *set, const struct figure *figures, size_t count,
                          struct buf *out)
{
    for (size_t i = 0; i < count; i++)
        write_family(set, figures[i].suffix, "CPUs or GPUs, or memory in MiB.", figures[i].at, out);
}

static void write_partitions(const struct counts *counts, struct buf *out)
{
    static const struct figure sums[] = { { "_cpus", AT(node_cpus) }, { "_gpus", AT(node_gpus) } };
    static const struct figure parts[] = {
        { "_cpus_efctv", AT(cpus_effective) },  { "_cpus_idle", AT(cpus_idle) },
        { "_cpus_alloc", AT(cpus_alloc) },      { "_mem_alloc", AT(memory_alloc) },
        { "_mem_avail", AT(memory_effective) }, { "_mem_free", AT(memory_free) },
        { "_mem_tot", AT(memory_all) },
    };
    const struct set partition = { "slurm_partition", "partition", &counts->partitions, NULL };
    const struct set nodes = { "slurm_partition_nodes", "partition", &counts->partitions, NULL };

    write_node_states(&nodes, false, out);
    write_figures(&partition, sums, sizeof(sums) / sizeof(sums[0]), out);
    write_figures(&nodes, parts, sizeof(parts) / sizeof(parts[0]), out);
}

/* Node by node: a group for each. */
static void write_each_node(struct counts *counts, struct buf *out)
{
    static const struct figure figures[] = {
        { "_cpus", AT(node_cpus) },
        { "_cpus_alloc", AT(cpus_alloc) },
        { "_cpus_effective", AT(cpus_effective) },
        { "_cpus_idle", AT(cpus_idle) },
        { "_gpus", AT(node_gpus) },
        { "_gpus_alloc", AT(gpus) },
        { "_memory_bytes", AT(memory_all) },
        { "_memory_alloc_bytes", AT(memory_alloc) },
        { "_memory_effective_bytes", AT(memory_effective) },
        { "_memory_free_bytes", AT(memory_free) },
    };
    struct map groups;
    const struct set set = { "slurm_node", "node", &groups, NULL };

    map_init(&groups, &(struct map_options){ .max = MAX_GROUPS, .borrow_keys = true });
    for (size_t i = 0; i < counts->tally->node_count; i++) {
        const struct tally_node *node = &counts->tally->nodes[i];
        struct group *group = find_group(counts, &groups, str_of(node->node->name));

        count_node(counts, group, node);
        if (group)
            group->gpus = gpus_of(&node->used);
    }
    write_figures(&set, figures, sizeof(figures) / sizeof(figures[0]), out);
    map_done(&groups);
}

void native_write(const struct tally *tally, struct buf *out)
{
    struct counts counts = { .tally = tally };
    const struct map_options options = { .max = MAX_GROUPS, .borrow_keys = true };

    map_init(&counts.partitions, &options);
    map_init(&counts.accounts, &options);
    map_init(&counts.users, &options);
    for (unsigned i = 0; i < JOB_ROWS; i++)
        counts.job_bits[i] = bit_of(&slurm_job_states, job_rows[i].word);
    for (unsigned i = 0; i < NODE_ROWS; i++)
        counts.node_bits[i] = bit_of(&slurm_node_states, node_rows[i].word);
    if (tally->view->jobs)
        count_jobs(&counts);
    if (tally->view->nodes)
        count_nodes(&counts);
    if (tally->view->jobs) {
        write_jobs(&(struct set){ "slurm_jobs", NULL, NULL, &counts.all }, true, out);
        write_partition_jobs(
            &(struct set){ "slurm_partition_jobs", "partition", &counts.partitions, NULL }, out);
        write_jobs(&(struct set){ "slurm_account_jobs", "account", &counts.accounts, NULL }, true,
                   out);
        write_jobs(&(struct set){ "slurm_user_jobs", "username", &counts.users, NULL }, true, out);
    }
    if (tally->view->nodes) {
        write_node_states(&(struct set){ "slurm_nodes", NULL, NULL, &counts.all }, true, out);
        write_partitions(&counts, out);
        write_each_node(&counts, out);
    }
    if (tally->view->partitions) {
        counts.all.partitions = (double)slurm_cache_count(tally->view->partitions);
        write_family(&(struct set){ "slurm_partitions", NULL, NULL, &counts.all }, "",
                     "Partitions.", AT(partitions), out);
    }
    if (tally->view->diag)
        native_write_diag(json_get(tally->view->diag, "statistics"), out);
    map_done(&counts.partitions);
    map_done(&counts.accounts);
    map_done(&counts.users);
}
