/* preselect.c - nodes on which the pods of a unit could be assigned, chosen among all that Slurm
 * has. */
#include "bridge/run/assign_private.h"

#include "bridge/nodes/node_state.h"
#include "bridge/run/exclude.h"

#include <stdlib.h>
#include <string.h>

enum { PRESELECT_STARTS = 8 }; /* nodes from which a preselection is begun, one after the other */

static bool will_do_for_some(struct slots *slots, const struct kube_node *node)
{
    const struct unit *unit = slots->unit;

    for (unsigned i = 0; i < unit->member_count; i++) {
        arena_reset(&slots->aside);
        if (unit->members[i].stage == POD_WAITS &&
            !node_misfit(slots->world, NULL, &slots->aside, unit->members[i].pod, node,
                         world_slurm_name(node)))
            return true;
    }
    return false;
}

/* It was given before, and will still not do. */
static bool is_misfit(struct slots *slots, const struct kube_node *node)
{
    const struct unit_state *state = slots->unit->state;
    const char *name = world_slurm_name(node);

    for (unsigned i = 0; state && i < state->misfit_count; i++)
        if (strcmp(state->misfits[i].name, name) == 0)
            return do_devices_not_do(slots->world, &state->misfits[i]) ||
                   !will_do_for_some(slots, node);
    return false;
}

static bool is_candidate(const struct bridge_world *world, const struct kube_node *node,
                         const struct slurm_node *slurm, const char *partition)
{
    return node_takes_pods(node) && !node_is_out(slurm) &&
           slurm_partitions_have(slurm->partitions, str_of(partition)) &&
           !world_has_pod_without_job(world, node->object.name);
}

static int by_use_and_name(const void *a, const void *b)
{
    const struct slot *one = a, *other = b;

    if (one->is_busy != other->is_busy)
        return one->is_busy ? 1 : -1;
    return strcmp(one->slurm_name, other->slurm_name);
}

static void slots_of_all_nodes(struct slots *slots, const struct job_desc *desc)
{
    struct kube_cache_walk walk = kube_cache_walk(slots->world->nodes);
    const struct kube_object *object;

    slots->at = arena_alloc_array(slots->arena, kube_cache_count(slots->world->nodes) + 1,
                                  sizeof(*slots->at));
    while ((object = kube_cache_next(&walk)) != NULL) {
        const struct kube_node *node = kube_node_of(object);
        const char *name = world_slurm_name(node);
        const struct slurm_node *slurm = world_slurm_node(slots->world, str_of(name));

        if (slurm && is_candidate(slots->world, node, slurm, desc->partition) &&
            !is_misfit(slots, node))
            slots->at[slots->count++] = (struct slot){ .slurm_name = name,
                                                       .node = node,
                                                       .is_busy = slurm_node_is_busy(slurm) };
    }
    qsort(slots->at, slots->count, sizeof(*slots->at), by_use_and_name);
}

/* From the first node on that no preselection has used; false when there is none. */
static bool start_anew(struct slots *slots)
{
    unsigned start = 0;
    struct slot first;

    while (start < slots->count && slots->at[start].was_tried)
        start++;
    if (start == slots->count)
        return false;
    first = slots->at[start];
    memmove(&slots->at[1], &slots->at[0], start * sizeof(first));
    slots->at[0] = first;
    for (unsigned i = 0; i < slots->count; i++)
        slots->at[i].held = 0;
    if (slots->reserved)
        filter_unreserve_all(slots->reserved);
    memset(slots->slot_of, 0, slots->unit->member_count * sizeof(*slots->slot_of));
    slots->assigned = (struct assignments){ .at = slots->assigned.at };
    return true;
}

/* The nodes that are used, if it is the best so far. */
static void keep_best(struct slots *slots, struct preselection *preselection, unsigned *best)
{
    if (slots->assigned.count < *best || (slots->assigned.count == *best && preselection->nodes))
        return;
    *best = slots->assigned.count;
    preselection->nodes =
        arena_alloc_array(slots->arena, slots->count + 1, sizeof(*preselection->nodes));
    preselection->count = 0;
    preselection->why = slots->assigned.why;
    for (unsigned i = 0; i < slots->count; i++)
        if (slots->at[i].held > 0)
            preselection->nodes[preselection->count++] = slots->at[i].node;
}

bool preselect_nodes(const struct bridge_world *world, const struct unit *unit,
                     const struct job_desc *desc, struct arena *arena,
                     struct preselection *ret_preselection)
{
    struct preselection preselection = { .nodes = NULL };
    struct slots slots;
    int64_t least = job_desc_least_nodes(desc);
    unsigned best = 0;

    if (!world->filter || !desc->partition[0] || desc->constraints[0] || desc->reservation[0] ||
        desc->switches >= 0 || desc->segment_size >= 0 ||
        kube_cache_count(world->nodes) > ASSIGN_MAX_PAIRS / (unit->in[POD_WAITS] + 1))
        return false;
    slots_init(&slots, world, unit, desc, arena);
    slots_of_all_nodes(&slots, desc);
    for (unsigned i = 0; i < PRESELECT_STARTS && !preselection.is_enough && start_anew(&slots);
         i++) {
        slots.nodes_left = desc->max_nodes > 0 ? (unsigned)desc->max_nodes : unit->in[POD_WAITS];
        slots_assign(&slots);
        for (unsigned k = 0; k < slots.count; k++)
            slots.at[k].was_tried |= slots.at[k].held > 0;
        slots.at[0].was_tried = true;
        keep_best(&slots, &preselection, &best);
        preselection.is_enough =
            best >= (uint64_t)unit->owner.needed && preselection.count >= least;
    }
    slots_done(&slots);
    *ret_preselection = preselection;
    return true;
}
