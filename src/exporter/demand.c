/* demand.c - the nodes that waiting jobs want, for autoscalers: every job counts once. */
#include "exporter/demand.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* ---- the tasks of arrays that run ---- */

enum { MAX_ID = 24 };

static struct str array_of(const struct slurm_job *job, char text[static MAX_ID])
{
    int64_t id = slurm_number_or(job->array_job_id, 0, 0);
    int length = snprintf(text, MAX_ID, "%" PRId64, id);

    return id > 0 ? str_sub(str_of(text), 0, (size_t)length) : STR("");
}

void demand_count_running(struct tally *tally)
{
    struct slurm_cache_walk walk = slurm_cache_walk(tally->view->jobs);
    const struct slurm_object *object;
    enum tally_job_state state;
    char text[MAX_ID];

    while ((object = slurm_cache_next(&walk))) {
        const struct slurm_job *job = slurm_job_of(object);
        struct str key = array_of(job, text);
        double *count;

        if (key.len == 0 || !tally_job_state_of(job, &state) || state == TALLY_JOB_PENDING)
            continue;
        count = map_get(&tally->array_tasks, key);
        if (!count) {
            count = arena_alloc(tally->arena, sizeof(*count));
            (void)map_put(&tally->array_tasks, str_of(arena_strndup(tally->arena, key.at, key.len)),
                          count, NULL);
        }
        ++*count;
    }
}

double demand_running(const struct tally *tally, const struct slurm_job *job)
{
    char text[MAX_ID];
    const double *count = map_get(&tally->array_tasks, array_of(job, text));

    return count ? *count : 0;
}

/* ---- how many nodes ---- */

/* How many such tasks the largest node takes, or the largest nodes where a task has several; 0 when
 * none does. A group without nodes gets one node for each. */
static double tasks_on_node(struct tally *tally, const struct tally_size *size,
                            const struct tres *each)
{
    double nodes = (double)each->nodes, most;

    if (size->node_cpus <= 0)
        return 1;
    most = each->cpus > 0 ? floor(size->node_cpus * nodes / (double)each->cpus) : 1;
    if (each->memory_bytes > 0 && size->node_memory_bytes > 0)
        most = fmin(most, floor(size->node_memory_bytes * nodes / each->memory_bytes));
    for (unsigned i = 0; i < each->gres_count; i++) {
        double has = size->node_gres[tally_gres_index(tally, each->gres[i].name)];

        if (each->gres[i].count > 0)
            most = fmin(most, floor(has * nodes / (double)each->gres[i].count));
    }
    return most;
}

struct need {
    double whole, shared; /* nodes */
};

/* is_exclusive: it, or every job of the partition, gets whole nodes. */
static struct need need_of(struct tally *tally, const struct tally_size *size,
                           const struct tally_request *request, bool is_exclusive)
{
    double on_node;

    if (request->each.nodes > 1 || is_exclusive)
        return (struct need){ .whole = request->at_once * (double)request->each.nodes };
    on_node = tasks_on_node(tally, size, &request->each);
    return (struct need){ .shared = on_node >= 1 ? request->at_once / on_node : 0 };
}

static void add(struct tally_size *size, const struct need *need)
{
    size->whole_nodes += need->whole;
    size->shared_nodes += need->shared;
}

/* Where jobs of one node wait although the free room would do, it does not do for them: one more
 * node helps in any case. */
double tally_nodes_wanted(const struct tally_group *group)
{
    const struct tally_size *size = &group->size;
    double more = ceil(size->shared_nodes - size->free_nodes - 1e-9);

    if (size->shared_nodes > 0 && more < 1)
        more = 1;
    return size->busy + size->whole_nodes + fmax(more, 0);
}

/* ---- where ---- */

enum suits { SUITS_NOT, SUITS_PERHAPS, SUITS }; /* perhaps: it has no nodes now */

static enum suits suits(struct tally *tally, const struct tally_group *group,
                        const struct tally_request *request)
{
    if (group->size.node_cpus <= 0)
        return SUITS_PERHAPS;
    return tasks_on_node(tally, &group->size, &request->each) >= 1 ? SUITS : SUITS_NOT;
}

static struct tally_group *find_partition(struct tally *tally, const struct slurm_job *job,
                                          const struct tally_request *request)
{
    struct str rest = str_of(job->partition), name;
    struct tally_group *found = NULL;

    while (rest.len > 0 && str_next(&rest, ',', &name)) {
        struct tally_group *group = tally_group(tally, &tally->partitions, name);

        if (!found || suits(tally, group, request) > suits(tally, found, request))
            found = group;
    }
    return found;
}

/* NULL: Slurm has not said what it is like. */
static const struct slurm_partition *partition_of(const struct tally *tally,
                                                  const struct tally_group *group)
{
    const struct slurm_object *object = tally->view->partitions && group
                                            ? slurm_cache_get(tally->view->partitions, group->name)
                                            : NULL;

    return object ? slurm_partition_of(object) : NULL;
}

static bool lists(const struct slurm_partition *partition, const char *nodeset)
{
    struct str rest = str_of(partition->nodesets), name;

    while (rest.len > 0 && str_next(&rest, ',', &name))
        if (str_is(name, nodeset) || str_is(name, DEMAND_ALL_NODES))
            return true;
    return false;
}

static struct tally_group *find_nodeset(struct tally *tally,
                                        const struct slurm_partition *partition,
                                        const struct tally_request *request)
{
    struct tally_group *found = NULL;
    enum suits best = SUITS_NOT;

    map_each (item, &tally->nodesets) {
        struct tally_group *group = item->value;
        enum suits fit = suits(tally, group, request);

        if (fit == SUITS_NOT || fit < best || !partition || !lists(partition, group->name) ||
            (found && fit == best && strcmp(found->name, group->name) < 0))
            continue;
        found = group;
        best = fit;
    }
    return found;
}

/* ---- whether ---- */

/* Slurm says of a job that asks for more nodes than its partition has now that it can never start;
 * more nodes would help, up to the partition's own limit. */
static bool is_larger_than_partition(const struct slurm_partition *partition,
                                     const struct tally_group *group, const struct slurm_job *job,
                                     const struct tally_request *request)
{
    struct str reason = str_of(job->reason);
    double nodes = 0;

    if (!partition || job->hold ||
        (!str_is(reason, "PartitionConfig") && !str_is(reason, "PartitionNodeLimit")))
        return false;
    for (unsigned i = 0; i < TALLY_NODE_STATES; i++)
        nodes += group->nodes[i];
    return (double)request->each.nodes > nodes &&
           (!partition->max_nodes.set ||
            request->each.nodes <= (int64_t)partition->max_nodes.number);
}

struct place {
    struct tally_group *group; /* NULL: more nodes would not help it */
    const struct slurm_partition *partition;
    bool is_exclusive;
};

static struct place place_of(struct tally *tally, const struct slurm_job *job,
                             const struct tally_request *request)
{
    struct place place = { .group = find_partition(tally, job, request) };

    place.partition = partition_of(tally, place.group);
    place.is_exclusive =
        request->is_exclusive ||
        (place.partition && str_is(str_of(place.partition->oversubscribe), "EXCLUSIVE"));
    if (place.group && !slurm_reason_wants_nodes(slurm_reason_of(job->reason, job->hold).class) &&
        !is_larger_than_partition(place.partition, place.group, job, request))
        place.group = NULL;
    return place;
}

double demand_of_job(struct tally *tally, const struct slurm_job *job,
                     const struct tally_request *request)
{
    struct place place = place_of(tally, job, request);
    struct need need = { .whole = 0 };

    if (place.group)
        need = need_of(tally, &place.group->size, request, place.is_exclusive);
    return need.whole + need.shared;
}

struct tally_group *demand_add(struct tally *tally, const struct slurm_job *job,
                               const struct tally_request *request)
{
    struct place place = place_of(tally, job, request);
    struct tally_group *nodeset = find_nodeset(tally, place.partition, request);
    struct need need;

    if (!place.group)
        return nodeset;
    need = need_of(tally, &place.group->size, request, place.is_exclusive);
    add(&place.group->size, &need);
    add(&tally->cluster.size, &need);
    if (nodeset) {
        need = need_of(tally, &nodeset->size, request, place.is_exclusive);
        add(&nodeset->size, &need);
    }
    return nodeset;
}
