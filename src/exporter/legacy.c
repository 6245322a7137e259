/* legacy.c - the old series of jobs and nodes: one count for each state and flag, by partition,
 * account and user. The scheduler's are in legacy_diag.c. */
#include "exporter/legacy.h"

#include "base/mem.h"
#include "engine/metrics.h"
#include "exporter/legacy_private.h"

#include <inttypes.h>
#include <stdio.h>

enum { MAX_GROUPS = 100000 };

struct word_row {
    const char *suffix, *word; /* Slurm's; "": none */
};

enum { JOB_STATES = 12, JOB_STAGEOUT = 15, JOB_HOLD = 16, JOB_WORDS = 17 };
enum { NODE_STATES = 7, NODE_WORDS = 15 };

/* A job is in the first of these that it has; then come flags, of which it may have several. */
static const struct word_row job_states[JOB_WORDS] = {
    { "bootfail", "BOOT_FAIL" },
    { "cancelled", "CANCELLED" },
    { "completed", "COMPLETED" },
    { "deadline", "DEADLINE" },
    { "failed", "FAILED" },
    { "pending", "PENDING" },
    { "preempted", "PREEMPTED" },
    { "running", "RUNNING" },
    { "suspended", "SUSPENDED" },
    { "timeout", "TIMEOUT" },
    { "nodefail", "NODE_FAIL" },
    { "outofmemory", "OUT_OF_MEMORY" },
    { "completing", "COMPLETING" },
    { "configuring", "CONFIGURING" },
    { "powerupnode", "POWER_UP_NODE" },
    { "stageout", "STAGE_OUT" },
    { "hold", "" },
};
static const struct word_row node_states[NODE_WORDS] = {
    { "allocated", "ALLOCATED" },
    { "down", "DOWN" },
    { "error", "ERROR" },
    { "future", "FUTURE" },
    { "idle", "IDLE" },
    { "mixed", "MIXED" },
    { "unknown", "UNKNOWN" },
    { "completing", "COMPLETING" },
    { "drain", "DRAIN" },
    { "fail", "FAIL" },
    { "maintenance", "MAINTENANCE" },
    { "notresponding", "NOT_RESPONDING" },
    { "planned", "PLANNED" },
    { "rebootrequested", "REBOOT_REQUESTED" },
    { "reserved", "RESERVED" },
};

struct job_counts {
    double total, words[JOB_WORDS], cpus, memory_mib, widest; /* widest: of those that wait */
};

enum node_figure {
    NODE_CPUS,
    NODE_CPUS_EFFECTIVE,
    NODE_CPUS_ALLOC,
    NODE_CPUS_IDLE,
    NODE_MEMORY,
    NODE_MEMORY_EFFECTIVE,
    NODE_MEMORY_ALLOC,
    NODE_MEMORY_FREE,
    NODE_FIGURES,
};
static const char *const node_figures[NODE_FIGURES] = {
    "cpus_total",   "cpus_effective_total",   "cpus_alloc_total",   "cpus_idle_total",
    "memory_bytes", "memory_effective_bytes", "memory_alloc_bytes", "memory_free_bytes",
};

struct node_counts {
    double total, words[NODE_WORDS], figures[NODE_FIGURES];
};

struct group {
    const char *name, *userid; /* userid: of users */
    struct job_counts jobs;
    struct node_counts nodes;
};

struct counts {
    struct arena *arena;
    const struct tally *owners;
    struct group all;
    struct map partitions, accounts, users; /* struct group */
    uint64_t job_bits[JOB_WORDS], node_bits[NODE_WORDS];
};

/* ---- counting ---- */

/* The bits of the rows' words in a set of Slurm's words. */
static void find_bits(const struct slurm_vocabulary *vocabulary, const struct word_row *rows,
                      unsigned count, uint64_t *ret_bits)
{
    for (unsigned i = 0; i < count; i++)
        for (unsigned k = 0; k < SLURM_WORDS_MAX && vocabulary->words[k]; k++)
            if (str_is(str_of(vocabulary->words[k]), rows[i].word))
                ret_bits[i] = UINT64_C(1) << k;
}

static void count_words(double *counts, const uint64_t *bits, unsigned states, unsigned count,
                        const struct slurm_words *words)
{
    bool has_state = false;

    for (unsigned i = 0; i < count; i++) {
        if (!(words->known & bits[i]) || (i < states && has_state))
            continue;
        counts[i]++;
        has_state = true;
    }
}

static void count_job(const struct counts *all, struct job_counts *counts,
                      const struct slurm_job *job)
{
    struct tres held;

    counts->total++;
    count_words(counts->words, all->job_bits, JOB_STATES, JOB_WORDS, &job->state);
    counts->words[JOB_HOLD] += job->hold;
    if (slurm_words_has(&job->state, SLURM_JOB_PENDING)) {
        if (!job->hold && (double)job->node_count > counts->widest)
            counts->widest = (double)job->node_count;
        return;
    }
    if (slurm_job_has_ended(&job->state))
        return;
    tally_allocation_of(job, &held);
    counts->cpus += (double)held.cpus;
    counts->memory_mib += held.memory_bytes / 1048576.0;
}

static double figure_of(const struct slurm_node *node, enum node_figure figure)
{
    switch (figure) {
    case NODE_CPUS:
        return (double)node->cpus;
    case NODE_CPUS_EFFECTIVE:
        return (double)node->effective_cpus;
    case NODE_CPUS_ALLOC:
        return (double)node->alloc_cpus;
    case NODE_CPUS_IDLE:
        return (double)node->alloc_idle_cpus;
    case NODE_MEMORY:
        return (double)node->real_memory;
    case NODE_MEMORY_EFFECTIVE:
        return (double)(node->real_memory - node->specialized_memory);
    case NODE_MEMORY_ALLOC:
        return (double)node->alloc_memory;
    case NODE_MEMORY_FREE:
        return (double)slurm_number_or(node->free_memory, 0, 0);
    case NODE_FIGURES:
        break;
    }
    return 0;
}

static void count_node(const struct counts *all, struct node_counts *counts,
                       const struct slurm_node *node)
{
    counts->total++;
    count_words(counts->words, all->node_bits, NODE_STATES, NODE_WORDS, &node->state);
    for (unsigned i = 0; i < NODE_FIGURES; i++)
        counts->figures[i] += figure_of(node, (enum node_figure)i);
}

static struct group *find_group(struct counts *counts, struct map *map, struct str name)
{
    struct group *group = map_get(map, name);

    if (group)
        return group;
    group = arena_alloc(counts->arena, sizeof(*group));
    group->name = arena_strndup(counts->arena, name.at, name.len);
    if (map_put(map, str_of(group->name), group, NULL) < 0)
        return &counts->all; /* more than any cluster has */
    return group;
}

/* By its own name where that is shown, else "other". Names whose jobs have all ended are shown as
 * long as nobody is under "other". */
static struct group *find_owner(struct counts *counts, struct map *map, enum tally_owner_kind kind,
                                struct str name)
{
    const struct map *shown = &counts->owners->owners[kind];
    bool is_shown = map_has(shown, name) || !map_has(shown, STR("other"));

    return find_group(counts, map, is_shown ? name : STR("other"));
}

static void count_owners(struct counts *counts, const struct slurm_job *job)
{
    char id[24];
    struct group *user;

    if (job->account[0])
        count_job(counts,
                  &find_owner(counts, &counts->accounts, TALLY_ACCOUNT, str_of(job->account))->jobs,
                  job);
    if (!counts->owners->view->shows_users)
        return;
    (void)snprintf(id, sizeof(id), "%" PRId64, job->user_id);
    user = find_owner(counts, &counts->users, TALLY_USER, str_of(job->user[0] ? job->user : id));
    if (!user->userid)
        user->userid =
            str_is(str_of(user->name), "other") ? "other" : arena_strdup(counts->arena, id);
    count_job(counts, &user->jobs, job);
}

static void count_all(struct counts *counts, const struct tally_view *view)
{
    const struct slurm_object *object;
    struct str rest, name;

    if (view->jobs) {
        struct slurm_cache_walk walk = slurm_cache_walk(view->jobs);

        while ((object = slurm_cache_next(&walk))) {
            count_job(counts, &counts->all.jobs, slurm_job_of(object));
            count_owners(counts, slurm_job_of(object));
            rest = str_of(slurm_job_of(object)->partition);
            while (rest.len > 0 && str_next(&rest, ',', &name))
                count_job(counts, &find_group(counts, &counts->partitions, name)->jobs,
                          slurm_job_of(object));
        }
    }
    if (view->nodes) {
        struct slurm_cache_walk walk = slurm_cache_walk(view->nodes);

        while ((object = slurm_cache_next(&walk))) {
            count_node(counts, &counts->all.nodes, slurm_node_of(object));
            rest = str_of(slurm_node_of(object)->partitions);
            while (rest.len > 0 && str_next(&rest, ',', &name))
                count_node(counts, &find_group(counts, &counts->partitions, name)->nodes,
                           slurm_node_of(object));
        }
    }
}

/* ---- writing ---- */

void legacy_head(struct legacy_family *family, struct buf *out)
{
    metrics_write_head(&family->row, out);
}

/* Sets the name: prefix, word and suffix. */
static void name_family(struct legacy_family *family, const char *prefix, const char *word,
                        const char *suffix, const char *help)
{
    (void)snprintf(family->name, sizeof(family->name), "%s%s%s", prefix, word, suffix);
    family->row.name = family->name;
    family->row.help = help;
    family->row.type = METRIC_GAUGE;
}

/* One family over all groups of a map, or over the one group that is everything. */
static void write_figure(struct legacy_family *family, const struct map *groups,
                         const struct group *all, size_t at, struct buf *out)
{
    if (!groups) {
        legacy_head(family, out);
        metrics_write_sample(&family->row, NULL,
                             *(const double *)(const void *)((const char *)all + at), out);
        return;
    }
    if (groups->count == 0)
        return;
    legacy_head(family, out);
    map_each (item, groups) {
        const struct group *group = item->value;
        const char *values[] = { group->userid ? group->userid : group->name, group->name };

        metrics_write_sample(&family->row, values,
                             *(const double *)(const void *)((const char *)group + at), out);
    }
}

#define JOBS_AT(member)  (offsetof(struct group, jobs) + offsetof(struct job_counts, member))
#define NODES_AT(member) (offsetof(struct group, nodes) + offsetof(struct node_counts, member))

static const struct job_set {
    const char *jobs_prefix, *sums_prefix;
    const char *labels[3];
    bool has_stageout, has_widest;
} job_sets[] = {
    { "slurm_jobs_", "slurm_jobs_", { NULL }, true, false },
    { "slurm_partition_jobs_", "slurm_partition_jobs_", { "partition" }, true, true },
    { "slurm_account_jobs_", "slurm_account_", { "account" }, false, false },
    { "slurm_user_jobs_", "slurm_user_", { "userid", "username" }, false, false },
};

static void write_jobs(const struct job_set *set, const struct map *groups, const struct group *all,
                       struct buf *out)
{
    struct legacy_family family = { .row = { .labels = { set->labels[0], set->labels[1] } } };

    name_family(&family, set->jobs_prefix, "", "total", "Jobs.");
    write_figure(&family, groups, all, JOBS_AT(total), out);
    for (unsigned i = 0; i < JOB_WORDS; i++) {
        if (i == JOB_STAGEOUT && !set->has_stageout)
            continue;
        name_family(&family, set->jobs_prefix, job_states[i].suffix, "_total",
                    "Jobs in this state or with this flag.");
        write_figure(&family, groups, all, JOBS_AT(words) + i * sizeof(double), out);
    }
    name_family(&family, set->sums_prefix, "cpus_alloc", "_total", "CPUs that jobs hold.");
    write_figure(&family, groups, all, JOBS_AT(cpus), out);
    name_family(&family, set->sums_prefix, "memory_alloc", "_bytes",
                "Memory that jobs hold, in MiB.");
    write_figure(&family, groups, all, JOBS_AT(memory_mib), out);
    if (!set->has_widest)
        return;
    name_family(&family, set->jobs_prefix, "pending_maxnodecount", "_total",
                "Nodes of the widest job that waits and is not held.");
    write_figure(&family, groups, all, JOBS_AT(widest), out);
}

static void write_node_states(const char *prefix, const char *label, const struct map *groups,
                              const struct group *all, struct buf *out)
{
    struct legacy_family family = { .row = { .labels = { label } } };

    name_family(&family, prefix, "", "total", "Nodes.");
    write_figure(&family, groups, all, NODES_AT(total), out);
    for (unsigned i = 0; i < NODE_WORDS; i++) {
        name_family(&family, prefix, node_states[i].suffix, "_total",
                    "Nodes in this state or with this flag.");
        write_figure(&family, groups, all, NODES_AT(words) + i * sizeof(double), out);
    }
    for (unsigned i = 0; groups && i < NODE_FIGURES; i++) {
        name_family(&family, prefix, node_figures[i], "",
                    i < NODE_MEMORY ? "CPUs of its nodes." : "Memory of its nodes, in MiB.");
        write_figure(&family, groups, all, NODES_AT(figures) + i * sizeof(double), out);
    }
}

static void write_each_node(const struct tally_view *view, struct buf *out)
{
    struct legacy_family family = { .row = { .labels = { "node" } } };

    for (unsigned i = 0; i < NODE_FIGURES; i++) {
        struct slurm_cache_walk walk = slurm_cache_walk(view->nodes);
        const struct slurm_object *object;

        name_family(&family, "slurm_node_", node_figures[i], "",
                    i < NODE_MEMORY ? "CPUs of the node." : "Memory of the node, in MiB.");
        legacy_head(&family, out);
        while ((object = slurm_cache_next(&walk))) {
            const char *values[] = { slurm_node_of(object)->name };

            metrics_write_sample(&family.row, values,
                                 figure_of(slurm_node_of(object), (enum node_figure)i), out);
        }
    }
}

void legacy_write(const struct tally_view *view, const struct tally *owners, struct buf *out)
{
    struct counts counts = { .arena = owners->arena, .owners = owners };
    const struct map_options options = { .max = MAX_GROUPS, .borrow_keys = true };

    map_init(&counts.partitions, &options);
    map_init(&counts.accounts, &options);
    map_init(&counts.users, &options);
    find_bits(&slurm_job_states, job_states, JOB_WORDS, counts.job_bits);
    find_bits(&slurm_node_states, node_states, NODE_WORDS, counts.node_bits);
    count_all(&counts, view);
    if (view->jobs) {
        write_jobs(&job_sets[0], NULL, &counts.all, out);
        write_jobs(&job_sets[1], &counts.partitions, NULL, out);
        write_jobs(&job_sets[2], &counts.accounts, NULL, out);
        write_jobs(&job_sets[3], &counts.users, NULL, out);
    }
    if (view->nodes) {
        write_node_states("slurm_nodes_", NULL, NULL, &counts.all, out);
        write_node_states("slurm_partition_nodes_", "partition", &counts.partitions, NULL, out);
        write_each_node(view, out);
    }
    if (view->diag)
        legacy_write_diag(json_get(view->diag, "statistics"), out);
    map_done(&counts.partitions);
    map_done(&counts.accounts);
    map_done(&counts.users);
}
