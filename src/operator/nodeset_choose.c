/* nodeset_choose.c - which workers go, and which are drained.
 *
 * Holds: who is drained for scale-in or for an update is chosen again before anybody else, so that
 * drains do not wander; workers that are being deleted count as gone, so that nobody goes in their
 * place; a drain for an update outlives every change of the size. */
#include "operator/nodeset.h"

#include <stdlib.h>

/* ---- the order of deletion ---- */

static int less(int64_t a, int64_t b) /* smaller goes first */
{
    return (a > b) - (a < b);
}

static int phase_rank(const struct kube_pod *pod)
{
    return strcmp(pod->phase, "Running") == 0 ? 2 : strcmp(pod->phase, "Unknown") == 0;
}

static bool is_on_its_way(const struct worker *worker)
{
    return worker->mark >= CAUSE_UPDATE;
}

/* A busy one whose end is not known ends last; one without a job is free now. */
static int64_t end_of(const struct worker *worker)
{
    return worker->deadline_us == 0 && worker->is_busy ? INT64_MAX : worker->deadline_us;
}

int worker_compare(const struct worker *a, const struct worker *b)
{
    const struct kube_pod *left = a->pod, *right = b->pod;
    const int order[] = {
        less(is_on_its_way(b), is_on_its_way(a)),
        less(left->node_name[0] != '\0', right->node_name[0] != '\0'),
        less(phase_rank(left), phase_rank(right)),
        less(left->ready, right->ready),
        less(a->deletion_cost, b->deletion_cost),
        less(end_of(a), end_of(b)),
        less(b->is_cordoned, a->is_cordoned),
        less(b->ordinal, a->ordinal),
        less(right->ready_since_us, left->ready_since_us),
        less(right->object.created_us, left->object.created_us),
    };

    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
        if (order[i] != 0)
            return order[i];
    return strcmp(left->object.name, right->object.name);
}

static int compare_places(const void *a, const void *b)
{
    return worker_compare(*(struct worker *const *)a, *(struct worker *const *)b);
}

void workers_sort(struct worker **workers, size_t count)
{
    qsort(workers, count, sizeof(struct worker *), compare_places);
}

/* ---- who goes ---- */

/* One too many: the first by the order of deletion. Those of the other scaling mode go when those
 * of this one are all there. */
static void choose_surplus(struct nodeset *nodeset)
{
    struct worker **live =
        arena_alloc_array(nodeset->sync.plan->arena, nodeset->count + 1, sizeof(struct worker *));
    size_t count = 0;

    for (size_t i = 0; i < nodeset->count; i++)
        if (worker_is_live(&nodeset->workers[i]) && !nodeset->workers[i].is_other_mode)
            live[count++] = &nodeset->workers[i];
    if ((int64_t)count > nodeset->replicas) {
        workers_sort(live, count);
        for (size_t i = 0; i < count - (size_t)nodeset->replicas; i++)
            live[i]->cause = CAUSE_SCALE_IN;
    }
    for (size_t i = 0; i < nodeset->count; i++)
        if (nodeset->workers[i].is_other_mode && (int64_t)count >= nodeset->replicas)
            nodeset->workers[i].cause = CAUSE_SCALE_IN;
}

/* A Node that was deleted while it was cordoned is not uncordoned: its pod goes with it. */
static bool has_cordoned_node(const struct worker *worker)
{
    return worker->node ? worker->node->unschedulable
                        : worker->mark == CAUSE_NODE && worker->pod->node_name[0];
}

/* A cordon drains a worker and does not delete it. */
static void choose_cordoned(struct worker *worker)
{
    if (worker->cause != CAUSE_NONE)
        return;
    if (has_cordoned_node(worker))
        worker->cause = CAUSE_NODE;
    else if (worker->is_cordoned_by_person)
        worker->cause = CAUSE_PERSON;
}

void nodeset_choose(struct nodeset *nodeset)
{
    if (nodeset->sync.object->deleted_us != 0) {
        for (size_t i = 0; i < nodeset->count; i++)
            if (nodeset_must_drain(nodeset))
                nodeset->workers[i].cause = CAUSE_DELETE;
        return;
    }
    if (nodeset->replicas < 0)
        nodeset->replicas = 0;
    if (nodeset->is_daemonset)
        nodeset_choose_daemons(nodeset);
    else
        choose_surplus(nodeset);
    nodeset_choose_update(nodeset);
    nodeset_choose_unregistered(nodeset);
    for (size_t i = 0; i < nodeset->count; i++)
        choose_cordoned(&nodeset->workers[i]);
}
