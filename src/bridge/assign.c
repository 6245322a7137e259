/* assign.c - which node of a running job each pod of its unit gets.
 *
 * Holds: as long as pods and job do not change the answer is the same; when pods that may use
 * different nodes do not all get one by rank, those that may use the fewest nodes choose first.
 * Whether a node suits a pod is in assign_fit.c. */
#include "bridge/assign_private.h"

#include "bridge/exclude.h"
#include "bridge/submit.h"
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

static void slot_unreserve(struct slots *slots, struct slot *slot, const struct kube_pod *pod)
{
    slot->held--;
    slot->refused = 0;
    slot->cpu_milli -= pod->requests.cpu_milli;
    slot->memory -= pod->requests.memory;
    slots->nodes_left += slot->held == 0 && !slots->job;
}

static int by_node(const void *a, const void *b)
{
    const struct slot *one = *(struct slot *const *)a, *other = *(struct slot *const *)b;
    int order = strcmp(one->node->object.name, other->node->object.name);

    return order ? order : (one > other) - (one < other);
}

/* The slots that have a Kubernetes node, sorted by its name. */
static struct slot **sort_by_node(const struct slots *slots, unsigned *ret_count)
{
    struct slot **sorted = arena_alloc_array(slots->arena, slots->count + 1, sizeof(*sorted));
    unsigned count = 0;

    for (unsigned i = 0; i < slots->count; i++)
        if (slots->at[i].node)
            sorted[count++] = &slots->at[i];
    qsort(sorted, count, sizeof(*sorted), by_node);
    *ret_count = count;
    return sorted;
}

static struct slot *slot_named(struct slot *const *sorted, unsigned count, const char *kube_node)
{
    unsigned from = 0, to = count;

    while (from < to) {
        unsigned middle = from + (to - from) / 2;

        if (strcmp(sorted[middle]->node->object.name, kube_node) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from < count && strcmp(sorted[from]->node->object.name, kube_node) == 0 ? sorted[from]
                                                                                   : NULL;
}

static void reserve_for_those_there(struct slots *slots)
{
    unsigned count;
    struct slot *const *sorted = sort_by_node(slots, &count);

    for (unsigned i = 0; i < slots->unit->member_count; i++) {
        const struct member *member = &slots->unit->members[i];
        struct slot *slot = slot_named(sorted, count, member->pod->node_name);

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

static void open_all(struct slots *slots)
{
    for (unsigned i = 0; i <= slots->count; i++)
        slots->next_open[i] = i;
}

/* The first slot from this one on that holds fewer than limit; slots->count when there is none.
 * Full slots are skipped together: they stay full until open_all. */
static unsigned next_open(struct slots *slots, unsigned from, unsigned limit)
{
    unsigned at = from;

    while (at < slots->count && (slots->next_open[at] > at || slots->at[at].held >= limit))
        at = slots->next_open[at] > at ? slots->next_open[at] : at + 1;
    while (from < at) {
        unsigned then = slots->next_open[from] > from ? slots->next_open[from] : from + 1;

        slots->next_open[from] = at;
        from = then;
    }
    return at;
}

/* Of a running job's pods that do not mind each other; 0: the member is in no class. */
static uint64_t class_of(struct slots *slots, unsigned member)
{
    if (!slots->job || slots->has_pod_rules || !slots->world->eligible)
        return 0;
    if (slots->classes[member] == 0)
        slots->classes[member] =
            1 + eligible_class(slots->world->eligible, slots_pod(slots, member));
    return slots->classes[member] - 1;
}

/* A place that will not do for one pod will do for no other of its class: it only fills up. */
static bool was_refused(struct slots *slots, const struct slot *slot, unsigned member)
{
    if (slot->refused == 0 || slot->refused != class_of(slots, member))
        return false;
    if (slot->why)
        slots_note_misfit(slots, slot, slot->why, false);
    return true;
}

static struct slot *find_free(struct slots *slots, unsigned member, unsigned limit)
{
    for (unsigned i = next_open(slots, 0, limit); i < slots->count;
         i = next_open(slots, i + 1, limit)) {
        struct slot *slot = &slots->at[i];

        if (was_refused(slots, slot, member))
            continue;
        slots->objection = NULL;
        if (slots_suits(slots, slot, member, limit))
            return slot;
        if (class_of(slots, member) != 0) {
            slot->refused = class_of(slots, member);
            slot->why = slots->objection ? arena_strdup(slots->arena, slots->objection) : NULL;
        }
    }
    return NULL;
}

/* What stood against one that has a place in the end does not matter. */
static struct slot *slot_for(struct slots *slots, unsigned member, unsigned limit)
{
    struct assignments *assigned = &slots->assigned, before = *assigned;
    struct slot *slot = find_free(slots, member, limit);

    if (slot) {
        assigned->misfit = before.misfit;
        assigned->why = before.why;
        assigned->is_among_own = before.is_among_own;
    }
    return slot;
}

/* ---- all of them ---- */

/* One round: whoever still waits gets a node that holds fewer than limit. */
static unsigned assign_round(struct slots *slots, unsigned limit)
{
    unsigned before = slots->assigned.count;

    open_all(slots);
    slots->slotless = 0;
    for (unsigned k = 0; k < slots->unit->in[POD_WAITS]; k++) {
        unsigned i = slots->order[k];
        struct slot *slot;

        if (slots->has_slot[i] || (slots->slotless && slots->slotless == class_of(slots, i)))
            continue;
        slot = slot_for(slots, i, limit);
        if (slot) {
            const struct kube_pod *pod = slots->unit->members[i].pod;

            slot_reserve(slots, slot, pod);
            slots->has_slot[i] = true;
            slots->slot_of[slots->assigned.count] = slot;
            slots->assigned.at[slots->assigned.count++] = (struct assignment){ i, slot->node };
            slots->assigned.is_guess |=
                slot->held > 1 && slots->job && !allocation_is_known(slots->job);
            if (slots->has_pod_rules)
                eligible_reserve(slots->world->eligible, pod, slot->node);
        } else
            slots->slotless = class_of(slots, i);
    }
    return slots->assigned.count - before;
}

/* Who is drawn to a later one, or has to wait until others are spread, comes after these: only what
 * stands against those that are left in the end counts. */
static unsigned assign_rounds(struct slots *slots, unsigned limit)
{
    unsigned count = assign_round(slots, limit), more = count;

    while (slots->has_pod_rules && more > 0) {
        slots->assigned.misfit = slots->assigned.why = NULL;
        slots->assigned.is_among_own = false;
        more = assign_round(slots, limit);
        count += more;
    }
    return count;
}

/* No pod is put beside another while a slot that was submitted stays empty. */
static bool all_nodes_will_do(const struct slots *slots)
{
    if (slots->assigned.misfit && !slots->assigned.is_among_own)
        return false;
    for (unsigned i = 0; slots->assigned.misfit && i < slots->count; i++)
        if (slots->at[i].held < slots->per_node)
            return false;
    return true;
}

/* A node that somebody has is not the one that will not do: he came after whoever did not want it.
 */
static void blame_an_empty_slot(struct slots *slots)
{
    struct assignments *assigned = &slots->assigned;
    const struct kube_pod *pod = NULL;
    bool is_taken = false;

    for (unsigned i = 0; assigned->misfit && i < slots->count; i++)
        is_taken |= slots->at[i].slurm_name == assigned->misfit && slots->at[i].held > 0;
    if (!is_taken || assigned->is_among_own)
        return;
    for (unsigned i = 0; !pod && i < slots->unit->member_count; i++)
        if (slots->unit->members[i].stage == POD_WAITS && !slots->has_slot[i])
            pod = slots->unit->members[i].pod;
    assigned->misfit = assigned->why = NULL;
    for (unsigned i = 0; pod && !assigned->misfit && i < slots->count; i++)
        if (slots->at[i].held == 0)
            (void)slots_will_do(slots, &slots->at[i], pod);
}

static void assign_to_all(struct slots *slots)
{
    unsigned limit = slots->per_node;

    (void)assign_rounds(slots, limit);
    while (slots->has_whole_nodes && slots->job && all_nodes_will_do(slots) &&
           slots->assigned.count < slots->unit->in[POD_WAITS] && limit < MAX_PER_NODE)
        if (assign_rounds(slots, ++limit) == 0)
            break;
}

/* ---- the most constrained first ---- */

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

/* False: all may use as many. */
static bool order_by_fit(const struct slots *slots)
{
    unsigned count = slots->unit->in[POD_WAITS];
    struct ranked *ranked = arena_alloc_array(slots->arena, count + 1, sizeof(*ranked));

    for (unsigned i = 0; i < count; i++)
        ranked[i] = (struct ranked){
            slots->order[i],
            eligible_nodes(slots->world->eligible, slots_pod(slots, slots->order[i]))->fit
        };
    qsort(ranked, count, sizeof(*ranked), by_fit);
    for (unsigned i = 0; i < count; i++)
        slots->order[i] = ranked[i].member;
    return count > 0 && ranked[0].fit != ranked[count - 1].fit;
}

static void unreserve_all(struct slots *slots)
{
    struct assignments *assigned = &slots->assigned;

    for (unsigned i = 0; i < assigned->count; i++)
        slot_unreserve(slots, slots->slot_of[i], slots_pod(slots, assigned->at[i].member));
    memset(slots->has_slot, 0, slots->unit->member_count * sizeof(*slots->has_slot));
    *assigned = (struct assignments){ .at = assigned->at };
}

/* By rank; if that leaves some without a node, once more with those first that may use the fewest
 * nodes. Pods that mind each other are judged by where the others are: their order is their rank.
 */
void slots_assign(struct slots *slots)
{
    struct assignments *assigned = &slots->assigned;
    unsigned waiting = 0;

    slots->next_open =
        arena_alloc_array(slots->arena, (size_t)slots->count + 1, sizeof(*slots->next_open));
    slots->order = arena_alloc_array(slots->arena, slots->unit->member_count + 1, sizeof(unsigned));
    for (unsigned i = 0; i < slots->unit->member_count; i++)
        if (slots->unit->members[i].stage == POD_WAITS)
            slots->order[waiting++] = i;
    assign_to_all(slots);
    if (assigned->count < waiting && assigned->count > 0 && !slots->has_pod_rules &&
        slots->world->eligible && order_by_fit(slots)) {
        bool will_be_freed = assigned->will_be_freed;

        unreserve_all(slots);
        assigned->will_be_freed = will_be_freed;
        assign_to_all(slots);
    }
    if (slots->job)
        blame_an_empty_slot(slots);
    assigned->left = waiting - assigned->count;
    if (slots->has_pod_rules)
        eligible_unreserve_all(slots->world->eligible);
}

bool assign_has_pod_rules(const struct bridge_world *world, const struct unit *unit)
{
    if (!world->eligible || unit->in[POD_WAITS] < 2)
        return false;
    for (unsigned i = 0; i < unit->member_count; i++) {
        const struct kube_pod *pod = unit->members[i].pod;

        if (unit->members[i].stage == POD_WAITS &&
            (eligible_minds_others(pod) || (pod->rare && pod->rare->port_count > 0)))
            return true;
    }
    return false;
}

struct slots slots_new(const struct bridge_world *world, const struct unit *unit,
                       const struct job_desc *desc, struct arena *arena, struct arena *aside)
{
    arena_init(aside, MAX_ASIDE);
    return (struct slots){
        .world = world,
        .unit = unit,
        .arena = arena,
        .aside = aside,
        .has_whole_nodes = desc->exclusive,
        .has_pod_rules = assign_has_pod_rules(world, unit),
        .per_node = desc->tasks_per_node > 1 ? (unsigned)desc->tasks_per_node : 1,
        .has_slot = arena_alloc_array(arena, unit->member_count + 1, sizeof(bool)),
        .classes = arena_alloc_array(arena, unit->member_count + 1, sizeof(uint64_t)),
        .slot_of = arena_alloc_array(arena, unit->member_count + 1, sizeof(struct slot *)),
        .assigned = { .at = arena_alloc_array(arena, unit->member_count + 1,
                                              sizeof(struct assignment)) },
    };
}

int assign_nodes(const struct bridge_world *world, const struct unit *unit,
                 const struct job_desc *desc, struct arena *arena, struct assignments *ret_assigned,
                 struct err *err)
{
    auto_arena struct arena aside;
    struct slots slots = slots_new(world, unit, desc, arena, &aside);
    int result;

    slots.job = unit->job;
    result = slots_of_job(&slots, err);
    if (result < 0)
        return result;
    slots.has_all_cpus = slots_has_all_cpus(&slots);
    reserve_for_those_there(&slots);
    slots_assign(&slots);
    *ret_assigned = slots.assigned;
    return 0;
}

/* ---- whom a job has no place for ---- */

static bool is_assigned(const struct unit *unit, const struct assignments *assigned,
                        const struct kube_pod *pod)
{
    for (unsigned i = 0; i < assigned->count; i++)
        if (unit->members[assigned->at[i].member].pod == pod)
            return true;
    return false;
}

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
    if (unit.is_behind || unit.job_count != 1 || job_phase(unit.job) != JOB_RUNS ||
        !unit.job->nodes[0] || !unit.owner)
        return false;
    if (pod_stage(world, pod) == POD_BOUND)
        return !unit_is_of_former(&unit, pod) && is_stranded(&unit, pod, arena, world);
    if (unit_describe(world, &unit, arena, &desc, &err) < 0 ||
        assign_nodes(world, &unit, &desc, arena, &assigned, &err) < 0)
        return false;
    return !is_assigned(&unit, &assigned, pod) && !assigned.will_be_freed &&
           (unit.in[POD_BOUND] > 0 || assigned.count >= (unsigned)unit.needed);
}
