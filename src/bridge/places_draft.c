/* places_draft.c - nodes on which the pods of a unit could be dealt, chosen among all that Slurm
 * has. */
#include "bridge/places_private.h"

#include "bridge/exclude.h"
#include "bridge/node_state.h"

#include <stdlib.h>
#include <string.h>

enum { DRAFT_STARTS = 8 }; /* nodes from which a draft is begun, one after the other */

static bool will_do_for_some(const struct table *table, const struct kube_node *node)
{
    const struct unit *unit = table->unit;

    for (unsigned i = 0; i < unit->member_count; i++) {
        arena_reset(table->aside);
        if (unit->members[i].stage == POD_WAITS &&
            !node_misfit(table->world, table->aside, unit->members[i].pod, node,
                         world_slurm_name(node)))
            return true;
    }
    return false;
}

/* It was given before, and will still not do. */
static bool is_misfit(const struct table *table, const struct kube_node *node)
{
    const struct unit_state *state = table->unit->state;
    const char *name = world_slurm_name(node);

    for (unsigned i = 0; state && i < state->misfit_count; i++)
        if (strcmp(state->misfits[i], name) == 0)
            return !will_do_for_some(table, node);
    return false;
}

static bool is_candidate(const struct bridge_world *world, const struct kube_node *node,
                         const struct slurm_node *slurm, const char *partition)
{
    struct str rest = str_of(slurm->partitions), name;

    if (node->object.deleted_us || node->unschedulable || !node->ready || node_is_out(slurm) ||
        world_has_uncovered(world, node->object.name))
        return false;
    while (str_next(&rest, ',', &name))
        if (str_is(name, partition))
            return true;
    return false;
}

static int by_use_and_name(const void *a, const void *b)
{
    const struct place *one = a, *other = b;

    if (one->is_busy != other->is_busy)
        return one->is_busy ? 1 : -1;
    return strcmp(one->slurm_name, other->slurm_name);
}

static void lay_draft(struct table *table, const struct job_desc *desc)
{
    struct kube_cache_walk walk = kube_cache_walk(table->world->nodes);
    const struct kube_object *object;

    table->places = arena_alloc_array(table->arena, kube_cache_count(table->world->nodes) + 1,
                                      sizeof(*table->places));
    while ((object = kube_cache_next(&walk)) != NULL) {
        const struct kube_node *node = kube_node_of(object);
        const char *name = world_slurm_name(node);
        const struct slurm_node *slurm = world_slurm_node(table->world, str_of(name));

        if (slurm && is_candidate(table->world, node, slurm, desc->partition) &&
            !is_misfit(table, node))
            table->places[table->count++] =
                (struct place){ .slurm_name = name, .node = node, .is_busy = node_is_busy(slurm) };
    }
    qsort(table->places, table->count, sizeof(*table->places), by_use_and_name);
}

/* From the first node on that no draft has used; false when there is none. */
static bool start_anew(struct table *table)
{
    unsigned start = 0;
    struct place first;

    while (start < table->count && table->places[start].was_tried)
        start++;
    if (start == table->count)
        return false;
    first = table->places[start];
    memmove(&table->places[1], &table->places[0], start * sizeof(first));
    table->places[0] = first;
    for (unsigned i = 0; i < table->count; i++)
        table->places[i].held = 0;
    memset(table->has_place, 0, table->unit->member_count * sizeof(*table->has_place));
    table->deals = (struct deals){ .at = table->deals.at };
    return true;
}

/* The nodes that are used, if it is the best so far. */
static void keep_best(struct table *table, struct draft *draft, unsigned *best)
{
    if (table->deals.count < *best || (table->deals.count == *best && draft->nodes))
        return;
    *best = table->deals.count;
    draft->nodes = arena_alloc_array(table->arena, table->count + 1, sizeof(*draft->nodes));
    draft->count = 0;
    draft->why = table->deals.why;
    for (unsigned i = 0; i < table->count; i++)
        if (table->places[i].held > 0)
            draft->nodes[draft->count++] = table->places[i].node;
}

static bool can_be_drafted(const struct bridge_world *world, const struct unit *unit,
                           const struct job_desc *desc)
{
    return world->eligible && desc->partition[0] && !desc->constraints[0] &&
           !desc->reservation[0] && desc->switches < 0 && desc->segment_size < 0 &&
           kube_cache_count(world->nodes) <= PLACES_MAX_PAIRS / (unit->in[POD_WAITS] + 1);
}

bool places_draft(const struct bridge_world *world, const struct unit *unit,
                  const struct job_desc *desc, struct arena *arena, struct draft *ret_draft)
{
    auto_arena struct arena aside;
    struct table table = table_new(world, unit, desc, arena, &aside);
    struct draft draft = { .nodes = NULL };
    int64_t least = job_desc_least_nodes(desc);
    unsigned best = 0;

    if (!can_be_drafted(world, unit, desc))
        return false;
    lay_draft(&table, desc);
    for (unsigned i = 0; i < DRAFT_STARTS && !draft.is_enough && start_anew(&table); i++) {
        table.nodes_left = desc->max_nodes > 0 ? (unsigned)desc->max_nodes : unit->in[POD_WAITS];
        table_deal(&table);
        for (unsigned k = 0; k < table.count; k++)
            table.places[k].was_tried |= table.places[k].held > 0;
        table.places[0].was_tried = true;
        keep_best(&table, &draft, &best);
        draft.is_enough = best >= (uint64_t)unit->needed && draft.count >= least;
    }
    *ret_draft = draft;
    return true;
}
