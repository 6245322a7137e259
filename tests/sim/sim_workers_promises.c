/* sim_workers_promises.c - what must hold of workers, at every moment:
 *
 * 1. A pod of a worker is not deleted by the operator, nor by the garbage collector after it let
 *    the NodeSet go, while a job runs on its node.
 * 2. A drain with a reason of others is never ended by the operator, nor given another reason, once
 *    the operator had time to see it: Slurm has no conditional writes.
 * 3. When all is calm, the NodeSet has the workers that it wants, all new, ready and in service,
 * and is not Degraded. */
#include "operator/names.h"
#include "sim_workers.h"

#include <stdio.h>

enum { SEEN_US = 20000000 };

/* ---- 1: jobs ---- */

static bool is_deleted(const struct json *pod)
{
    return !pod || json_exists(json_at(pod, "metadata", "deletionTimestamp"));
}

static bool is_theirs(const char *user)
{
    static const char *const others[] = { "people", "kubelet", "scheduler" };

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strcmp(user, others[i]) == 0)
            return true;
    return false;
}

void workers_on_api(void *context, const struct api_change *change)
{
    struct workers_scene *workers = context;
    struct world *world = workers->scene->world;
    struct slurm_store_node node;
    const char *hostname;

    if (strcmp(change->kind->plural, "pods") != 0 || !change->old || is_deleted(change->old) ||
        !is_deleted(change->next) || is_theirs(change->user) ||
        !str_is(json_str(json_at(change->old, "status", "phase")), "Running"))
        return;
    hostname = json_str(json_at(change->old, "spec", "hostname")).at;
    if (slurm_store_find_node(world->slurm, hostname, &node) && node.jobs > 0)
        world_break(world, "%s deletes pod %s, and %u jobs run on it", change->user,
                    json_str(json_at(change->old, "metadata", "name")).at, node.jobs);
}

/* ---- 2: drains of others ---- */

static struct workers_shadow *shadow_of(struct workers_scene *workers, const char *name)
{
    for (unsigned i = 0; i < workers->node_count; i++)
        if (strcmp(workers->nodes[i].name, name) == 0)
            return &workers->nodes[i];
    if (workers->node_count == WORKERS_MAX_NODES)
        return NULL;
    (void)snprintf(workers->nodes[workers->node_count].name, sizeof(workers->nodes[0].name), "%s",
                   name);
    return &workers->nodes[workers->node_count++];
}

static void remember(void *context, const struct slurm_store_node *node)
{
    struct workers_scene *workers = context;
    struct workers_shadow *shadow = shadow_of(workers, node->name);

    if (!shadow)
        return;
    if (shadow->is_drained != node->is_drained || strcmp(shadow->reason, node->reason) != 0)
        shadow->since_us = clock_now_us(&workers->scene->world->clock);
    shadow->is_drained = node->is_drained;
    (void)snprintf(shadow->reason, sizeof(shadow->reason), "%s", node->reason);
}

void workers_remember(struct workers_scene *workers)
{
    slurm_store_visit_nodes(workers->scene->world->slurm, remember, workers);
}

void workers_on_slurm(void *context, const struct slurm_store_change *change)
{
    struct workers_scene *workers = context;
    struct world *world = workers->scene->world;
    const struct slurm_store_node *node = change->node;
    const struct workers_shadow *before;

    workers->scene->changes++;
    if (!node)
        return;
    before = shadow_of(workers, node->name);
    if (before && change->event == SLURM_NODE_CHANGED && strcmp(change->user, "slurm") == 0 &&
        before->is_drained && strcmp(before->reason, WORKERS_REASON) == 0 &&
        before->since_us < clock_now_us(&world->clock) - SEEN_US &&
        (!node->is_drained || strcmp(node->reason, WORKERS_REASON) != 0))
        world_break(world, "the operator takes the drain of node %s, which is an admin's",
                    node->name);
    remember(workers, node);
}

/* ---- 3: when all is calm ---- */

struct counted {
    struct workers_scene *workers;
    int64_t pods;
};

static void check_pod(void *context, const struct json *pod)
{
    struct counted *counted = context;
    struct world *world = counted->workers->scene->world;
    const char *name = json_str(json_at(pod, "metadata", "name")).at;
    const char *hostname = json_str(json_at(pod, "spec", "hostname")).at;
    struct slurm_store_node node;

    if (!str_is(json_str(json_at(pod, "metadata", "labels", LABEL_NAME)), "slurmd"))
        return;
    counted->pods++;
    if (!slurm_store_find_node(world->slurm, hostname, &node))
        world_break(world, "pod %s has no node", name);
    else if (node.is_drained || node.is_down)
        world_break(world, "node %s is %s: %s", hostname, node.state, node.reason);
    if (json_exists(json_at(pod, "metadata", "annotations", ANNOTATION_CORDONED_BY)))
        world_break(world, "pod %s has a mark, and nothing drains it", name);
    if (is_deleted(pod))
        world_break(world, "pod %s is still being deleted", name);
}

static bool is_degraded(const struct json *nodeset)
{
    struct json_iter iter = json_iter(json_at(nodeset, "status", "conditions"));
    const struct json *condition;

    while (json_next_item(&iter, &condition))
        if (str_is(json_str(json_get(condition, "type")), "Degraded"))
            return str_is(json_str(json_get(condition, "status")), "True");
    return false;
}

void workers_when_settled(struct workers_scene *workers)
{
    struct world *world = workers->scene->world;
    const struct json *nodeset = api_store_find(world->store, "nodesets", WORKERS_NS, "w");
    struct counted counted = { .workers = workers };
    int64_t wanted = nodeset ? json_i64_or(json_at(nodeset, "spec", "replicas"), 1) : 0;

    api_store_visit(world->store, "pods", check_pod, &counted);
    if (counted.pods != wanted)
        world_break(world, "there are %lld workers, and %lld are wanted", (long long)counted.pods,
                    (long long)wanted);
    if (json_i64_or(json_at(nodeset, "status", "replicas"), 0) != wanted ||
        json_i64_or(json_at(nodeset, "status", "updatedReplicas"), 0) != wanted)
        world_break(world, "the status of the NodeSet does not count %lld new workers",
                    (long long)wanted);
    if (is_degraded(nodeset))
        world_break(world, "the NodeSet is Degraded, and nothing is refused");
}
