/* assign.c - which node of a running job each pod of its unit gets.
 *
 * Holds: as long as pods and job do not change the answer is the same; the pods that may use the
 * fewest nodes choose first, and pods that may use as many choose by rank. Whether a node suits a
 * pod is in assign_fit.c. */
#include "bridge/run/assign_private.h"

#include "base/map.h"
#include "bridge/run/exclude.h"
#include "bridge/unit/describe.h"
#include "codec/hostlist.h"
#include "slurm/submit.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_PER_NODE = 1 << 12,
    MAX_ASIDE = 64 << 20, /* as the arena of a plan */
};

static void slot_reserve(struct slots *slots, struct slot *slot, const struct kube_pod *pod)
{
    slots->nodes_left -= slot->held == 0 && slots->nodes_left > 0;
    slot->held++;
    slot->cpu_milli += pod->requests.cpu_milli;
    slot->memory += pod->requests.memory;
}

/* Members that are bound or still ending keep their slots. */
static void reserve_for_those_there(struct slots *slots)
{
    static const struct map_options options = { .max = HOSTLIST_MAX_NAMES, .borrow_keys = true };
    const struct unit *unit = slots->unit;
    auto_map struct map by_node;

    map_init(&by_node, &options);
    if (unit->in[POD_BOUND] + unit->in[POD_ENDING] == 0)
        return;
    for (unsigned i = 0; i < slots->count; i++)
        if (slots->at[i].node)
            (void)map_put(&by_node, str_of(slots->at[i].node->object.name), &slots->at[i], NULL);
    for (unsigned i = 0; i < unit->member_count; i++) {
        const struct member *member = &unit->members[i];
        struct slot *slot = map_get(&by_node, str_of(member->pod->node_name));

        if (!slot || (member->stage != POD_BOUND && member->stage != POD_ENDING))
            continue;
        slot_reserve(slots, slot, member->pod);
        slots->assigned.will_be_freed |= member->stage == POD_ENDING;
    }
}

static int slots_of_job(struct slots *slots, struct err *err)
{
    const struct slurm_job *job = slots->job;
    const struct hostlist *list;
    struct hostlist_iter iter;
    struct str name;

    if (hostlist_parse(slots->arena, str_of(job->nodes), HOSTLIST_MAX_NAMES, &list, err) < 0)
        return err_wrap(err, "nodes of job %s", job->object.key);
    slots->at =
        arena_alloc_array(slots->arena, (size_t)hostlist_count(list) + 1, sizeof(*slots->at));
    iter = hostlist_iter(list);
    while (hostlist_next(&iter, &name)) {
        struct slot *slot = &slots->at[slots->count++];

        *slot = (struct slot){ .slurm_name = arena_strndup(slots->arena, name.at, name.len),
                               .node = world_node_by_slurm_name(slots->world, name) };
    }
    return 0;
}

/* ---- the order ---- */

struct ranked {
    unsigned member, fit; /* how many nodes it may use */
};

static int by_fit(const void *a, const void *b)
{
    const struct ranked *one = a, *other = b;

    if (one->fit != other->fit)
        return one->fit < other->fit ? -1 : 1;
    return (one->member > other->member) - (one->member < other->member);
}

/* Pods that have rules about each other are judged by where the others are: their order is their
 * rank, and their classes say nothing. */
static void order_members(struct slots *slots)
{
    const struct unit *unit = slots->unit;
    struct ranked *ranked =
        arena_alloc_array(slots->arena, unit->member_count + 1, sizeof(*ranked));
    bool by_class = slots->world->filter && !slots->reserved && unit->in[POD_WAITS] > 1;
    unsigned count = 0;

    for (unsigned i = 0; i < unit->member_count; i++) {
        struct filter_class class = { 0 };

        if (unit->members[i].stage != POD_WAITS)
            continue;
        if (by_class)
            class = filter_class(slots->world->filter, unit->members[i].pod);
        slots->classes[i] = slots->job ? class.number : 0;
        ranked[count++] = (struct ranked){ i, class.fit };
    }
    qsort(ranked, count, sizeof(*ranked), by_fit);
    for (unsigned i = 0; i < count; i++)
        slots->order[i] = ranked[i].member;
}

/* ---- all of them ---- */

/* The first slot from this one on that fits the member. A slot that does not fit one pod fits no
 * other of its class: it only fills up. */
static struct slot *find_slot(struct slots *slots, unsigned first, unsigned member, unsigned limit)
{
    uint64_t class = slots->classes[member];

    for (unsigned i = first; i < slots->count; i++) {
        struct slot *slot = &slots->at[i];

        if (slot->held >= limit || (class && slot->refused == class))
            continue;
        if (slots_fit(slots, slot, member, limit))
            return slot;
        slot->refused = class;
    }
    return NULL;
}

/* Whoever still waits gets a node that holds fewer than limit, once. */
static unsigned assign_round(struct slots *slots, unsigned limit)
{
    struct assignments *assigned = &slots->assigned;
    unsigned before = assigned->count, first = 0;
    uint64_t slotless = 0; /* the class of a member that found no slot */

    for (unsigned k = 0; k < slots->unit->in[POD_WAITS]; k++) {
        unsigned i = slots->order[k];
        const struct kube_pod *pod = slots->unit->members[i].pod;
        struct slot *slot;

        if (slots->slot_of[i] || (slotless && slotless == slots->classes[i]))
            continue;
        while (first < slots->count && slots->at[first].held >= limit)
            first++;
        slot = find_slot(slots, first, i, limit);
        if (!slot) {
            slotless = slots->classes[i];
            continue;
        }
        slot_reserve(slots, slot, pod);
        slots->slot_of[i] = slot;
        assigned->at[assigned->count++] = (struct assignment){ i, slot->node };
        assigned->is_guess |= slot->held > 1 && slots->job && !allocation_is_known(slots->job);
        if (slots->reserved)
            filter_reserve(slots->reserved, pod, slot->node);
    }
    return assigned->count - before;
}

/* A pod that is attracted by a later one, or that others must be spread before, gets its node in a
 * later round. */
static unsigned assign_rounds(struct slots *slots, unsigned limit)
{
    unsigned count = assign_round(slots, limit), more = count;

    while (slots->reserved && more > 0)
        count += more = assign_round(slots, limit);
    return count;
}

static bool has_room(const struct slots *slots)
{
    for (unsigned i = 0; i < slots->count; i++)
        if (slots->at[i].held < slots->per_node)
            return true;
    return false;
}

/* A node gets more pods than were submitted for it only when every node has as many, and when the
 * job has whole nodes. */
void slots_assign(struct slots *slots)
{
    struct assignments *assigned = &slots->assigned;
    unsigned limit = slots->per_node, waiting = slots->unit->in[POD_WAITS];

    order_members(slots);
    (void)assign_rounds(slots, limit);
    while (assigned->count < waiting && slots->job && slots->has_whole_nodes && !has_room(slots) &&
           limit < MAX_PER_NODE)
        if (assign_rounds(slots, ++limit) == 0)
            break;
    assigned->left = waiting - assigned->count;
    if (assigned->left > 0)
        slots_explain(slots, limit);
}

bool assign_has_pod_rules(const struct bridge_world *world, const struct unit *unit)
{
    if (!world->filter || unit->in[POD_WAITS] < 2)
        return false;
    for (unsigned i = 0; i < unit->member_count; i++) {
        const struct kube_pod *pod = unit->members[i].pod;

        if (unit->members[i].stage == POD_WAITS &&
            (filter_has_pod_rules(pod) || (pod->rare && pod->rare->port_count > 0)))
            return true;
    }
    return false;
}

void slots_init(struct slots *slots, const struct bridge_world *world, const struct unit *unit,
                const struct job_desc *desc, struct arena *arena)
{
    size_t most = (size_t)unit->member_count + 1;

    *slots = (struct slots){
        .world = world,
        .unit = unit,
        .arena = arena,
        .has_whole_nodes = desc->exclusive,
        .per_node = desc->tasks_per_node > 1 ? (unsigned)desc->tasks_per_node : 1,
        .order = arena_alloc_array(arena, most, sizeof(unsigned)),
        .classes = arena_alloc_array(arena, most, sizeof(uint64_t)),
        .slot_of = arena_alloc_array(arena, most, sizeof(struct slot *)),
        .assigned = { .at = arena_alloc_array(arena, most, sizeof(struct assignment)) },
    };
    arena_init(&slots->aside, MAX_ASIDE);
    if (assign_has_pod_rules(world, unit))
        slots->reserved = filter_reserved_new(world->filter);
}

void slots_done(struct slots *slots)
{
    filter_reserved_free(slots->reserved);
    arena_done(&slots->aside);
}

int assign_nodes(const struct bridge_world *world, const struct unit *unit,
                 const struct job_desc *desc, struct arena *arena, struct assignments *ret_assigned,
                 struct err *err)
{
    struct slots slots;
    int result;

    slots_init(&slots, world, unit, desc, arena);
    slots.job = unit->job;
    result = slots_of_job(&slots, err);
    if (result >= 0) {
        slots.has_all_cpus = slots_has_all_cpus(&slots);
        reserve_for_those_there(&slots);
        slots_assign(&slots);
        *ret_assigned = slots.assigned;
    }
    slots_done(&slots);
    return result;
}

/* ---- whom a job has no place for ---- */

bool assigned_by(const struct bridge_world *world, const struct slurm_job *job,
                 const struct host_set *required, const struct member *member)
{
    const struct kube_object *node = kube_cache_get(world->nodes, "", member->pod->node_name);

    if (member->recorded_id && member->recorded_id != job->id)
        return false;
    return !job->required_nodes[0] || !node ||
           host_set_has(required, world_record_name(world, kube_node_of(node)));
}

/* Bound, by another job than the one that its group has now, on a node that is not of that job. */
static bool is_stranded(const struct unit *unit, const struct kube_pod *pod, struct arena *arena,
                        const struct bridge_world *world)
{
    const struct kube_object *node = kube_cache_get(world->nodes, "", pod->node_name);
    struct host_set required = host_set_of(arena, unit->job->required_nodes);

    for (unsigned i = 0; i < unit->member_count; i++)
        if (unit->members[i].pod == pod && unit->members[i].recorded_id &&
            assigned_by(world, unit->job, &required, &unit->members[i]))
            return false;
    return node &&
           !hosts_have(arena, unit->job->nodes, world_record_name(world, kube_node_of(node)));
}

bool assign_lacks_slot_for(const struct bridge_world *world, const struct kube_pod *pod,
                           struct arena *arena)
{
    struct err err = { .class = 0 };
    auto_buf struct buf key;
    struct unit unit;
    struct job_desc desc;
    struct assignments assigned;

    buf_init(&key, SLURM_MAX_KEY);
    group_key(pod, &key);
    unit_gather(world, buf_str(&key), arena, &unit);
    if (unit.jobs.is_behind || unit.jobs.count != 1 || job_phase(unit.job) != JOB_RUNS ||
        !unit.job->nodes[0] || !unit.owner.object)
        return false;
    if (pod_stage(world, pod) == POD_BOUND)
        return !unit_is_of_former(&unit, pod) && is_stranded(&unit, pod, arena, world);
    if (unit_describe(world, &unit, DESCRIBE_BOTH, arena, &desc, &err) < 0 ||
        assign_nodes(world, &unit, &desc, arena, &assigned, &err) < 0)
        return false;
    for (unsigned i = 0; i < assigned.count; i++)
        if (unit.members[assigned.at[i].member].pod == pod)
            return false;
    return !assigned.will_be_freed &&
           (unit.in[POD_BOUND] > 0 || assigned.count >= (unsigned)unit.owner.needed);
}
