/* slurm_fit.c - on which nodes a job fits, and with which cores, devices and memory.
 *
 * Nodes are taken by weight, then by age; of a node the lowest free cores. Of a range of nodes a
 * job gets as many as can be had. For external jobs required_nodes are candidates, of others all of
 * them are needed.
 *
 * Holds: no core, device or MiB is given out twice. */
#include "base/mem.h"
#include "slurm_private.h"

#include <stdlib.h>

/* One node that may serve, and how many tasks it could take. */
struct candidate {
    const struct ctld_node *node;
    size_t age; /* its place among all */
    int64_t tasks;
    bool required;
};

struct choice {
    const struct slurm_store *store;
    const struct ctld_job *job;
    const struct ctld_partition *partition;
    enum ctld_fit fit;
    struct arena arena;
    const struct hostlist *required, *excluded;
    struct ctld_gres gres[CTLD_MAX_GRES]; /* asked for on each node */
    unsigned gres_count;
    struct candidate *candidates;
    size_t count, required_count;
};

/* ---- words ---- */

bool ctld_list_has(const char *list, struct str word)
{
    struct str rest = str_of(list), item;

    while (rest.len > 0 && str_next(&rest, ',', &item))
        if (str_eq(str_trim(item), word))
            return true;
    return false;
}

bool ctld_features_fit(const char *wanted, const char *features)
{
    struct str any = str_of(wanted), all, word;

    if (!wanted[0])
        return true;
    while (str_next(&any, '|', &all)) {
        bool fits = true;

        while (fits && str_next(&all, '&', &word))
            fits = ctld_list_has(features, str_trim(word));
        if (fits)
            return true;
    }
    return false;
}

bool ctld_gres_ask(struct str item, struct ctld_gres *ret_gres)
{
    struct str name = item, rest = STR(""), type = STR(""), amount;
    uint64_t count = 1;

    *ret_gres = (struct ctld_gres){ .count = 0 };
    if (str_starts(item, STR("gres/")) || str_starts(item, STR("gres:")))
        name = item = str_sub(item, 5, item.len);
    if (str_cut(item, '=', &name, &amount)) { /* as TRES: gpu:type=2 */
        item = name;
        if (str_to_u64(amount, 1, 1 << 16, &count, NULL) < 0)
            return false;
    }
    if (str_cut(item, ':', &name, &rest) && str_to_u64(rest, 1, 1 << 16, &count, NULL) < 0) {
        struct str number = STR("");

        type = rest;
        if (str_cut(rest, ':', &type, &number) && str_to_u64(number, 1, 1 << 16, &count, NULL) < 0)
            return false;
    }
    if (name.len == 0 || name.len >= sizeof(ret_gres->name) || type.len >= sizeof(ret_gres->type))
        return false;
    memcpy(ret_gres->name, name.at, name.len);
    memcpy(ret_gres->type, type.at, type.len);
    ret_gres->count = (unsigned)count;
    return true;
}

bool ctld_in_partition(const struct ctld_partition *partition, const struct ctld_node *node)
{
    return !partition->text[PART_FEATURE][0] ||
           ctld_list_has(node->text[NODE_FEATURES], str_of(partition->text[PART_FEATURE]));
}

static bool hostlist_text_has(const char *list, const char *name)
{
    auto_arena struct arena arena;
    const struct hostlist *hosts;

    arena_init(&arena, CTLD_MAX_MEMORY);
    return list[0] && hostlist_parse(&arena, str_of(list), HOSTLIST_MAX_NAMES, &hosts, NULL) == 0 &&
           hostlist_contains(hosts, str_of(name));
}

bool ctld_is_reserved(const struct slurm_store *store, const struct ctld_node *node,
                      const char *except)
{
    int64_t now_us = ctld_wall_us(store);

    map_each (item, &store->state.reservations) {
        const struct ctld_resv *resv = item->value;

        if (resv->start_us <= now_us && now_us < resv->end_us &&
            strcmp(resv->text[RESV_NAME], except) != 0 &&
            hostlist_text_has(resv->text[RESV_NODES], node->text[NODE_NAME]))
            return true;
    }
    return false;
}

/* ---- how much ---- */

static int64_t at_least_one(int64_t value)
{
    return value > 0 ? value : 1;
}

int64_t ctld_job_nodes(const struct ctld_job *job)
{
    if (job->min_nodes > 0)
        return job->min_nodes;
    if (job->tasks > 0 && job->tasks_per_node > 0)
        return (job->tasks + job->tasks_per_node - 1) / job->tasks_per_node;
    return 1;
}

/* On so many nodes: at least one on each. */
static int64_t tasks_on(const struct ctld_job *job, int64_t nodes)
{
    int64_t tasks = job->tasks > 0 ? job->tasks : nodes * at_least_one(job->tasks_per_node);

    return tasks > nodes ? tasks : nodes;
}

int64_t ctld_job_cpus(const struct ctld_job *job)
{
    return tasks_on(job, ctld_job_nodes(job)) * at_least_one(job->cpus_per_task);
}

const char *ctld_asks_too_much(const struct slurm_store *store, const struct ctld_job *job)
{
    const struct ctld_partition *partition =
        ctld_partition_find(&store->state, job->text[JOB_PARTITION]);
    int64_t nodes = 0, cpus = 0;

    map_each (item, &store->state.nodes) {
        const struct ctld_node *node = item->value;

        if (partition && ctld_in_partition(partition, node)) {
            nodes++;
            cpus += node->cpus;
        }
    }
    if (ctld_job_nodes(job) > nodes)
        return "PartitionNodeLimit";
    return ctld_job_cpus(job) > cpus ? "PartitionConfig" : NULL;
}

/* ---- which nodes ---- */

static bool is_eligible(const struct choice *choice, const struct ctld_node *node)
{
    const struct ctld_job *job = choice->job;
    struct str name = str_of(node->text[NODE_NAME]);

    if (!ctld_in_partition(choice->partition, node) || (node->external && !job->external) ||
        !ctld_features_fit(job->text[JOB_FEATURES], node->text[NODE_FEATURES]) ||
        hostlist_contains(choice->excluded, name))
        return false;
    if (job->text[JOB_REQUIRED][0] && job->external && !hostlist_contains(choice->required, name))
        return false;
    if (job->text[JOB_RESERVATION][0]) {
        const struct ctld_resv *resv =
            ctld_resv_find(&choice->store->state, job->text[JOB_RESERVATION]);

        if (!resv || !hostlist_text_has(resv->text[RESV_NODES], node->text[NODE_NAME]))
            return false;
    }
    return true;
}

static bool is_available(const struct choice *choice, const struct ctld_node *node)
{
    const struct ctld_job *job = choice->job;
    int64_t limit_us = job->time_limit > 0 ? job->time_limit * 60 * CTLD_SECOND : INT64_MAX / 2;

    if (choice->fit == FIT_EVER)
        return true;
    if (node->down || node->drained || node->whole || (job->exclusive && node->jobs > 0) ||
        ctld_is_reserved(choice->store, node, job->text[JOB_RESERVATION]))
        return false;
    return choice->fit == FIT_NOW || node->planned_us == 0 ||
           ctld_wall_us(choice->store) + limit_us <= node->planned_us;
}

/* Which of the node's gres serves this ask, with enough of it free; CTLD_MAX_GRES: none. */
static unsigned find_gres(const struct choice *choice, const struct ctld_node *node,
                          const struct ctld_gres *ask)
{
    for (unsigned k = 0; k < node->gres_count; k++) {
        const struct ctld_gres *have = &node->gres[k];
        size_t taken = choice->fit == FIT_EVER ? 0 : bitmap_count(&have->busy);

        if (strcmp(have->name, ask->name) == 0 &&
            (!ask->type[0] || strcmp(have->type, ask->type) == 0) &&
            have->count - taken >= ask->count)
            return k;
    }
    return CTLD_MAX_GRES;
}

static int64_t memory_for(const struct ctld_job *job, const struct ctld_node *node, int64_t cpus)
{
    if (job->memory_per_node > 0)
        return job->memory_per_node;
    if (job->memory_per_cpu > 0)
        return job->memory_per_cpu * cpus;
    return node->memory; /* not said: all of it */
}

static int64_t cores_for(const struct ctld_node *node, int64_t cpus)
{
    return (cpus + node->threads - 1) / node->threads;
}

/* Tasks that the node can take. */
static int64_t capacity(const struct choice *choice, const struct ctld_node *node)
{
    const struct ctld_job *job = choice->job;
    bool ever = choice->fit == FIT_EVER;
    int64_t cpus_per_task = at_least_one(job->cpus_per_task);
    int64_t all = (int64_t)node->sockets * node->cores;
    int64_t cores = ever ? all : all - (int64_t)bitmap_count(&node->busy);
    int64_t memory = ever ? node->memory : node->memory - node->alloc_memory;
    int64_t tasks = cores * node->threads / cpus_per_task;

    for (unsigned i = 0; i < choice->gres_count; i++)
        if (find_gres(choice, node, &choice->gres[i]) == CTLD_MAX_GRES)
            return 0;
    if (job->tasks_per_node > 0 && tasks > job->tasks_per_node)
        tasks = job->tasks_per_node;
    while (tasks > 0 && memory_for(job, node, tasks * cpus_per_task) > memory)
        tasks = job->memory_per_cpu > 0 && job->memory_per_node == 0 ? tasks - 1 : 0;
    return tasks;
}

static void collect(struct choice *choice)
{
    const struct map *nodes = &choice->store->state.nodes;

    choice->candidates =
        arena_alloc_array(&choice->arena, nodes->count + 1, sizeof(*choice->candidates));
    map_each (item, nodes) {
        const struct ctld_node *node = item->value;
        int64_t tasks;

        if (!is_eligible(choice, node) || !is_available(choice, node))
            continue;
        tasks = capacity(choice, node);
        if (tasks == 0)
            continue;
        choice->candidates[choice->count] =
            (struct candidate){ node, choice->count, tasks,
                                !choice->job->external &&
                                    hostlist_contains(choice->required,
                                                      str_of(node->text[NODE_NAME])) };
        choice->required_count += choice->candidates[choice->count++].required;
    }
}

/* Required ones first, then light ones; insertion keeps the age order among equals. */
static bool goes_before(const struct candidate *a, const struct candidate *b, bool by_tasks)
{
    if (a->required != b->required)
        return a->required;
    if (by_tasks && a->tasks != b->tasks)
        return a->tasks > b->tasks;
    return a->node->weight < b->node->weight;
}

static void sort(struct candidate *candidates, size_t count, bool by_tasks)
{
    for (size_t i = 1; i < count; i++) {
        struct candidate moved = candidates[i];
        size_t k = i;

        for (; k > 0 && goes_before(&moved, &candidates[k - 1], by_tasks); k--)
            candidates[k] = candidates[k - 1];
        candidates[k] = moved;
    }
}

/* The first `nodes` candidates that take an equal share each; else those that take most. They are
 * moved to the front. */
static bool choose(struct choice *choice, int64_t nodes, int64_t tasks)
{
    int64_t share = (tasks + nodes - 1) / nodes, sum = 0;
    size_t chosen = 0;

    if (nodes > (int64_t)choice->count || nodes < (int64_t)choice->required_count)
        return false;
    sort(choice->candidates, choice->count, false);
    for (size_t i = 0; i < choice->count && (int64_t)chosen < nodes; i++) {
        struct candidate picked = choice->candidates[i];

        if (picked.tasks < share)
            continue;
        for (size_t k = i; k > chosen; k--)
            choice->candidates[k] = choice->candidates[k - 1];
        choice->candidates[chosen++] = picked;
    }
    if ((int64_t)chosen == nodes)
        return true;
    sort(choice->candidates, choice->count, true);
    for (int64_t i = 0; i < nodes; i++)
        sum += choice->candidates[i].tasks;
    return sum >= tasks;
}

/* ---- what exactly ---- */

/* Beside devices Slurm begins at the other end. */
static void take_highest(const struct bitmap *busy, size_t bits, int64_t wanted,
                         struct bitmap *ret_taken)
{
    bitmap_init(ret_taken, bits);
    for (size_t bit = bits; bit > 0 && wanted > 0; bit--)
        if (!bitmap_test(busy, bit - 1)) {
            bitmap_set(ret_taken, bit - 1);
            wanted--;
        }
}

static void take_lowest(const struct bitmap *busy, size_t bits, int64_t wanted,
                        struct bitmap *ret_taken)
{
    bitmap_init(ret_taken, bits);
    for (size_t bit = 0; bit < bits && wanted > 0; bit++)
        if (!bitmap_test(busy, bit)) {
            bitmap_set(ret_taken, bit);
            wanted--;
        }
}

static void make_piece(const struct choice *choice, const struct ctld_node *node, int64_t tasks,
                       struct ctld_piece *ret_piece)
{
    const struct ctld_job *job = choice->job;
    size_t all = (size_t)node->sockets * node->cores;
    int64_t cpus = tasks * at_least_one(job->cpus_per_task);
    int64_t cores = job->exclusive ? (int64_t)all : cores_for(node, cpus);

    *ret_piece = (struct ctld_piece){ .node = mem_strdup(node->text[NODE_NAME]),
                                      .memory = memory_for(job, node, cpus) };
    (choice->gres_count > 0 ? take_highest : take_lowest)(&node->busy, all, cores,
                                                          &ret_piece->cores);
    for (unsigned i = 0; i < choice->gres_count; i++) {
        unsigned k = find_gres(choice, node, &choice->gres[i]);

        take_lowest(&node->gres[k].busy, node->gres[k].count, choice->gres[i].count,
                    &ret_piece->devices[k]);
    }
}

static int by_age(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;

    return a->age < b->age ? -1 : a->age > b->age;
}

/* One node is filled before the next, but each gets a task: six on two are five and one. */
static struct ctld_piece *make_pieces(const struct choice *choice, int64_t nodes, int64_t tasks)
{
    struct ctld_piece *pieces = mem_alloc_array((size_t)nodes, sizeof(*pieces));

    qsort(choice->candidates, (size_t)nodes, sizeof(*choice->candidates), by_age);

    for (int64_t i = 0; i < nodes; i++) {
        int64_t share = tasks - (nodes - i - 1);

        if (share > choice->candidates[i].tasks)
            share = choice->candidates[i].tasks;
        tasks -= share;
        make_piece(choice, choice->candidates[i].node, share, &pieces[i]);
    }
    return pieces;
}

/* ---- the whole question ---- */

static bool prepare(struct choice *choice)
{
    const struct ctld_job *job = choice->job;
    struct str rest = str_of(job->text[JOB_TRES_PER_NODE]), item;

    choice->partition = ctld_partition_find(&choice->store->state, job->text[JOB_PARTITION]);
    while (rest.len > 0 && choice->gres_count < CTLD_MAX_GRES && str_next(&rest, ',', &item))
        choice->gres_count += ctld_gres_ask(item, &choice->gres[choice->gres_count]);
    return choice->partition &&
           hostlist_parse(&choice->arena, str_of(job->text[JOB_REQUIRED]), HOSTLIST_MAX_NAMES,
                          &choice->required, NULL) == 0 &&
           hostlist_parse(&choice->arena, str_of(job->text[JOB_EXCLUDED]), HOSTLIST_MAX_NAMES,
                          &choice->excluded, NULL) == 0;
}

/* Of a range as many nodes as can be had; who names no range gets as few as will do. 0: it does not
 * fit. */
static int64_t choose_count(struct choice *choice)
{
    const struct ctld_job *job = choice->job;
    int64_t least = ctld_job_nodes(job), tasks = tasks_on(job, least);
    int64_t most = job->max_nodes > 0 ? job->max_nodes : job->min_nodes > 0 ? least : tasks;
    bool has_range = job->max_nodes > 0;

    if (!job->external && job->text[JOB_REQUIRED][0] &&
        choice->required_count < hostlist_count(choice->required))
        return 0;
    if (most > (int64_t)choice->count)
        most = (int64_t)choice->count;
    for (int64_t i = least; i <= most; i++) {
        int64_t nodes = has_range ? most - (i - least) : i;

        if (choose(choice, nodes, tasks_on(job, nodes)))
            return nodes;
    }
    return 0;
}

bool ctld_fit(const struct slurm_store *store, const struct ctld_job *job, enum ctld_fit fit,
              struct ctld_piece **ret_pieces, unsigned *ret_count)
{
    struct choice choice = { .store = store, .job = job, .fit = fit };
    int64_t nodes = 0;

    arena_init(&choice.arena, CTLD_MAX_MEMORY);
    if (prepare(&choice)) {
        collect(&choice);
        nodes = choose_count(&choice);
    }
    if (nodes > 0 && ret_pieces) {
        *ret_pieces = make_pieces(&choice, nodes, tasks_on(job, nodes));
        *ret_count = (unsigned)nodes;
    }
    arena_done(&choice.arena);
    return nodes > 0;
}

bool ctld_node_could(const struct slurm_store *store, const struct ctld_job *job,
                     const struct ctld_node *node)
{
    struct choice choice = { .store = store, .job = job, .fit = FIT_EVER };
    bool could;

    arena_init(&choice.arena, CTLD_MAX_MEMORY);
    could = prepare(&choice) && is_eligible(&choice, node) && capacity(&choice, node) > 0;
    arena_done(&choice.arena);
    return could;
}
