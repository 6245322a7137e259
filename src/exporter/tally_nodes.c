/* tally_nodes.c - the pass over the nodes: the state of each, and who holds what of it.
 *
 * What is in use comes from the node itself. The part that pods hold comes from the jobs there that
 * are pods' (EXTERNAL_JOB); one that spans several nodes counts evenly on each. */
#include "exporter/demand.h"
#include "exporter/tally.h"

#include <math.h>

const char *const tally_node_state_names[TALLY_NODE_STATES] = {
    [TALLY_NODE_IDLE] = "idle",           [TALLY_NODE_MIXED] = "mixed",
    [TALLY_NODE_ALLOCATED] = "allocated", [TALLY_NODE_COMPLETING] = "completing",
    [TALLY_NODE_PLANNED] = "planned",     [TALLY_NODE_RESERVED] = "reserved",
    [TALLY_NODE_MAINT] = "maint",         [TALLY_NODE_DRAINING] = "draining",
    [TALLY_NODE_DRAINED] = "drained",     [TALLY_NODE_DOWN] = "down",
    [TALLY_NODE_FAIL] = "fail",           [TALLY_NODE_POWERED_DOWN] = "powered_down",
    [TALLY_NODE_POWERING] = "powering",   [TALLY_NODE_UNKNOWN] = "unknown",
};
const char *const tally_holder_names[TALLY_HOLDERS] = {
    [TALLY_POD] = "pod",
    [TALLY_JOB] = "job",
    [TALLY_IDLE] = "idle",
    [TALLY_UNUSABLE] = "unusable",
};

static const double mib = 1048576.0;

static enum tally_node_state base_state_of(const struct slurm_words *state)
{
    if (slurm_words_has(state, SLURM_NODE_ALLOCATED))
        return TALLY_NODE_ALLOCATED;
    if (slurm_words_has(state, SLURM_NODE_MIXED))
        return TALLY_NODE_MIXED;
    if (slurm_words_has(state, SLURM_NODE_IDLE))
        return TALLY_NODE_IDLE;
    return TALLY_NODE_UNKNOWN;
}

enum tally_node_state tally_node_state_of(const struct slurm_node *node)
{
    const struct slurm_words *state = &node->state;
    enum tally_node_state base = base_state_of(state);
    bool is_busy = base == TALLY_NODE_ALLOCATED || base == TALLY_NODE_MIXED ||
                   slurm_words_has(state, SLURM_NODE_COMPLETING);

    if (slurm_words_has(state, SLURM_NODE_POWERING_UP) ||
        slurm_words_has(state, SLURM_NODE_POWERING_DOWN))
        return TALLY_NODE_POWERING;
    if (slurm_words_has(state, SLURM_NODE_POWERED_DOWN))
        return TALLY_NODE_POWERED_DOWN;
    if (slurm_words_has(state, SLURM_NODE_FAIL) || slurm_words_has(state, SLURM_NODE_ERROR))
        return TALLY_NODE_FAIL;
    if (slurm_words_has(state, SLURM_NODE_DOWN) ||
        slurm_words_has(state, SLURM_NODE_NOT_RESPONDING))
        return TALLY_NODE_DOWN;
    if (slurm_words_has(state, SLURM_NODE_DRAIN))
        return is_busy ? TALLY_NODE_DRAINING : TALLY_NODE_DRAINED;
    if (slurm_words_has(state, SLURM_NODE_MAINTENANCE))
        return TALLY_NODE_MAINT;
    if (base == TALLY_NODE_IDLE && slurm_words_has(state, SLURM_NODE_COMPLETING))
        return TALLY_NODE_COMPLETING;
    if (base == TALLY_NODE_IDLE && slurm_words_has(state, SLURM_NODE_RESERVED))
        return TALLY_NODE_RESERVED;
    if (base == TALLY_NODE_IDLE && slurm_words_has(state, SLURM_NODE_PLANNED))
        return TALLY_NODE_PLANNED;
    return base;
}

bool tally_node_is_usable(enum tally_node_state state)
{
    return state <= TALLY_NODE_RESERVED;
}

static double at_most(double value, double most)
{
    return value < most ? value : most;
}

/* has: all of it; spare: of that, what Slurm gives to nobody; pods: what pods hold of `used`. */
static void share_out(double *ret_shares, double has, double spare, double used, double pods,
                      bool is_usable)
{
    double rest;

    used = at_most(used, has);
    ret_shares[TALLY_POD] = at_most(pods, used);
    ret_shares[TALLY_JOB] = used - ret_shares[TALLY_POD];
    rest = has - used;
    ret_shares[TALLY_UNUSABLE] = is_usable ? at_most(spare, rest) : rest;
    ret_shares[TALLY_IDLE] = rest - ret_shares[TALLY_UNUSABLE];
}

/* What the pods on a node hold of it. */
static void read_pods(const struct tally *tally, const char *name, struct tres *ret_pods)
{
    struct slurm_index_walk walk;
    const struct slurm_object *object;

    *ret_pods = (struct tres){ .cpus = 0 };
    if (!tally->view->jobs)
        return;
    walk = slurm_cache_by(tally->view->jobs, SLURM_JOBS_BY_NODE, str_of(name));
    while ((object = slurm_index_next(&walk))) {
        const struct slurm_job *job = slurm_job_of(object);
        struct tres held;

        if (tally_holder_of(job) != TALLY_POD)
            continue;
        tally_allocation_of(job, &held);
        ret_pods->cpus += held.cpus / held.nodes;
        ret_pods->memory_bytes += held.memory_bytes / (double)held.nodes;
        for (unsigned i = 0; i < held.gres_count; i++)
            tres_add(ret_pods, held.gres[i].name, held.gres[i].count / held.nodes);
    }
}

/* A job that named no type holds some of whatever type there is. */
static double count_gres(const struct tres *tres, struct str name)
{
    struct str kind = name, type;
    double count = 0;

    (void)str_cut(name, ':', &kind, &type);
    for (unsigned i = 0; i < tres->gres_count; i++)
        if (str_eq(tres->gres[i].name, name) || str_eq(tres->gres[i].name, kind))
            count += (double)tres->gres[i].count;
    return count;
}

static void read_node(const struct tally *tally, const struct slurm_node *node,
                      struct tally_node *ret)
{
    double cpus = (double)node->cpus, memory = (double)node->real_memory * mib;
    double spare = node->effective_cpus > 0 ? cpus - (double)node->effective_cpus : 0;
    bool is_usable;

    ret->node = node;
    ret->state = tally_node_state_of(node);
    is_usable = tally_node_is_usable(ret->state);
    read_pods(tally, node->name, &ret->pods);
    share_out(ret->cpus, cpus, spare, (double)node->alloc_cpus, (double)ret->pods.cpus, is_usable);
    share_out(ret->memory_bytes, memory, (double)node->specialized_memory * mib,
              (double)node->alloc_memory * mib, ret->pods.memory_bytes, is_usable);
    tres_add_gres(&ret->has, str_of(node->gres), 1);
    tres_add_gres(&ret->used, str_of(node->gres_used), 1);
}

/* A node that drains is no supply: it will go. The free part of a busy node is that of its scarcest
 * resource. */
static void add_size(struct tally *tally, struct tally_size *size, const struct tally_node *node)
{
    double cpus = (double)node->node->cpus, memory = (double)node->node->real_memory * mib;
    bool is_busy = node->node->alloc_cpus > 0 || node->state == TALLY_NODE_COMPLETING;

    size->node_cpus = fmax(size->node_cpus, cpus);
    size->node_memory_bytes = fmax(size->node_memory_bytes, memory);
    for (unsigned i = 0; i < node->has.gres_count; i++) {
        struct str name = node->has.gres[i].name, kind = name, type;
        double *most = &size->node_gres[tally_gres_index(tally, name)], *any;

        (void)str_cut(name, ':', &kind, &type); /* a job may ask for any type */
        any = &size->node_gres[tally_gres_index(tally, kind)];
        *most = fmax(*most, (double)node->has.gres[i].count);
        *any = fmax(*any, (double)node->has.gres[i].count);
    }
    if (!tally_node_is_usable(node->state) || !is_busy)
        return;
    size->busy++;
    if (cpus > 0 && memory > 0)
        size->free_nodes +=
            fmin(node->cpus[TALLY_IDLE] / cpus, node->memory_bytes[TALLY_IDLE] / memory);
}

static void add_node(struct tally *tally, struct tally_group *group, const struct tally_node *node)
{
    group->has_nodes = true;
    group->nodes[node->state]++;
    add_size(tally, &group->size, node);
    for (unsigned holder = 0; holder < TALLY_HOLDERS; holder++) {
        group->cpus[holder] += node->cpus[holder];
        group->memory_bytes[holder] += node->memory_bytes[holder];
    }
    for (unsigned i = 0; i < node->has.gres_count; i++) {
        struct str name = node->has.gres[i].name;
        double shares[TALLY_HOLDERS], *sums = group->gres[tally_gres_index(tally, name)];

        share_out(shares, (double)node->has.gres[i].count, 0, count_gres(&node->used, name),
                  count_gres(&node->pods, name), tally_node_is_usable(node->state));
        for (unsigned holder = 0; holder < TALLY_HOLDERS; holder++)
            sums[holder] += shares[holder];
    }
}

/* A partition or NodeSet without nodes has none, which is not the same as being unknown: an
 * autoscaler that went to zero must still be told a number. */
static void add_partitions(struct tally *tally)
{
    struct slurm_cache_walk walk = slurm_cache_walk(tally->view->partitions);
    const struct slurm_object *object;

    while ((object = slurm_cache_next(&walk))) {
        const struct slurm_partition *partition = slurm_partition_of(object);
        struct str rest = str_of(partition->nodesets), name;

        (void)tally_group(tally, &tally->partitions, str_of(partition->name));
        while (rest.len > 0 && str_next(&rest, ',', &name))
            if (!str_is(name, DEMAND_ALL_NODES))
                (void)tally_group(tally, &tally->nodesets, name);
    }
}

/* The nodes of a NodeSet are those with the feature of its name (`NodeSet=w Feature=w`, as our
 * operator writes it). */
static void add_to_nodesets(struct tally *tally, const struct tally_node *node)
{
    struct str rest = str_of(node->node->features), name;
    struct tally_group *nodeset;

    while (rest.len > 0 && str_next(&rest, ',', &name))
        if ((nodeset = map_get(&tally->nodesets, name)))
            add_node(tally, nodeset, node);
}

void tally_nodes(struct tally *tally)
{
    struct slurm_cache_walk walk = slurm_cache_walk(tally->view->nodes);
    const struct slurm_object *object;

    if (tally->view->partitions)
        add_partitions(tally);
    tally->nodes = arena_alloc_array(tally->arena, slurm_cache_count(tally->view->nodes) + 1,
                                     sizeof(*tally->nodes));
    while ((object = slurm_cache_next(&walk))) {
        struct tally_node *node = &tally->nodes[tally->node_count++];
        struct str rest = str_of(slurm_node_of(object)->partitions), name;

        read_node(tally, slurm_node_of(object), node);
        add_node(tally, &tally->cluster, node);
        add_to_nodesets(tally, node);
        while (rest.len > 0 && str_next(&rest, ',', &name))
            add_node(tally, tally_group(tally, &tally->partitions, name), node);
    }
}
