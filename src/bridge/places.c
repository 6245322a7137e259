/* places.c - which node of a running job each pod of its unit gets.
 *
 * Holds: as long as pods and job do not change the answer is the same; when pods that may use
 * different nodes do not all get one by rank, those that may use the fewest nodes choose first.
 * Whether a node suits a pod is in places_fit.c. */
#include "bridge/places_private.h"

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

static void sit_down(struct table *table, struct place *place, const struct kube_pod *pod)
{
    table->nodes_left -= place->held == 0 && table->nodes_left > 0;
    place->held++;
    place->cpu_milli += pod->requests.cpu_milli;
    place->memory += pod->requests.memory;
}

static void stand_up(struct table *table, struct place *place, const struct kube_pod *pod)
{
    place->held--;
    place->refused = 0;
    place->cpu_milli -= pod->requests.cpu_milli;
    place->memory -= pod->requests.memory;
    table->nodes_left += place->held == 0 && !table->job;
}

static int by_node(const void *a, const void *b)
{
    const struct place *one = *(struct place *const *)a, *other = *(struct place *const *)b;
    int order = strcmp(one->node->object.name, other->node->object.name);

    return order ? order : (one > other) - (one < other);
}

/* The places that Kubernetes has nodes for, by the names of these. */
static struct place **sort_by_node(const struct table *table, unsigned *ret_count)
{
    struct place **sorted = arena_alloc_array(table->arena, table->count + 1, sizeof(*sorted));
    unsigned count = 0;

    for (unsigned i = 0; i < table->count; i++)
        if (table->places[i].node)
            sorted[count++] = &table->places[i];
    qsort(sorted, count, sizeof(*sorted), by_node);
    *ret_count = count;
    return sorted;
}

static struct place *place_named(struct place *const *sorted, unsigned count, const char *kube_node)
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

static void take_those_there(struct table *table)
{
    unsigned count;
    struct place *const *sorted = sort_by_node(table, &count);

    for (unsigned i = 0; i < table->unit->member_count; i++) {
        const struct member *member = &table->unit->members[i];
        struct place *place = place_named(sorted, count, member->pod->node_name);

        if (!place || (member->stage != POD_BOUND && member->stage != POD_ENDING))
            continue;
        sit_down(table, place, member->pod);
        table->deals.will_be_freed |= member->stage == POD_ENDING;
    }
}

static int lay_table(struct table *table, struct err *err)
{
    const struct slurm_job *job = table->job;
    const struct hostlist *list;
    struct hostlist_iter iter;
    struct str name;

    if (hostlist_parse(table->arena, str_of(job->nodes), HOSTLIST_MAX_NAMES, &list, err) < 0)
        return err_wrap(err, "nodes of job %s", job->object.key);
    table->places =
        arena_alloc_array(table->arena, (size_t)hostlist_count(list) + 1, sizeof(*table->places));
    iter = hostlist_iter(list);
    while (hostlist_next(&iter, &name)) {
        struct place *place = &table->places[table->count++];

        *place = (struct place){ .slurm_name = arena_strndup(table->arena, name.at, name.len),
                                 .node = world_node_by_slurm_name(table->world, name) };
    }
    return 0;
}

static void open_all(struct table *table)
{
    for (unsigned i = 0; i <= table->count; i++)
        table->next_open[i] = i;
}

/* The first place from this one on that holds fewer than limit; table->count when there is none.
 * Full places are skipped together: they stay full until open_all. */
static unsigned next_open(struct table *table, unsigned from, unsigned limit)
{
    unsigned at = from;

    while (at < table->count && (table->next_open[at] > at || table->places[at].held >= limit))
        at = table->next_open[at] > at ? table->next_open[at] : at + 1;
    while (from < at) {
        unsigned then = table->next_open[from] > from ? table->next_open[from] : from + 1;

        table->next_open[from] = at;
        from = then;
    }
    return at;
}

/* Of a running job's pods that do not mind each other; 0: the member is in no class. */
static uint64_t class_of(struct table *table, unsigned member)
{
    if (!table->job || table->is_tied || !table->world->eligible)
        return 0;
    if (table->classes[member] == 0)
        table->classes[member] =
            1 + eligible_class(table->world->eligible, table_pod(table, member));
    return table->classes[member] - 1;
}

/* A place that will not do for one pod will do for no other of its class: it only fills up. */
static bool was_refused(struct table *table, const struct place *place, unsigned member)
{
    if (place->refused == 0 || place->refused != class_of(table, member))
        return false;
    if (place->why)
        table_note_misfit(table, place, place->why, false);
    return true;
}

static void remember_refusal(struct table *table, struct place *place, unsigned member)
{
    if (class_of(table, member) == 0)
        return;
    place->refused = class_of(table, member);
    place->why = table->objection ? arena_strdup(table->arena, table->objection) : NULL;
}

static struct place *find_free(struct table *table, unsigned member, unsigned limit)
{
    for (unsigned i = next_open(table, 0, limit); i < table->count;
         i = next_open(table, i + 1, limit)) {
        struct place *place = &table->places[i];

        if (was_refused(table, place, member))
            continue;
        table->objection = NULL;
        if (table_suits(table, place, member, limit))
            return place;
        remember_refusal(table, place, member);
    }
    return NULL;
}

/* What stood against one that has a place in the end does not matter. */
static struct place *place_for(struct table *table, unsigned member, unsigned limit)
{
    struct deals *deals = &table->deals, before = *deals;
    struct place *place = find_free(table, member, limit);

    if (place) {
        deals->misfit = before.misfit;
        deals->why = before.why;
        deals->is_among_own = before.is_among_own;
    }
    return place;
}

/* ---- all of them ---- */

static void deal_to(struct table *table, unsigned member, struct place *place)
{
    const struct kube_pod *pod = table->unit->members[member].pod;

    sit_down(table, place, pod);
    table->has_place[member] = true;
    table->seats[table->deals.count] = place;
    table->deals.at[table->deals.count++] = (struct deal){ member, place->node };
    table->deals.is_guess |= place->held > 1 && table->job && !places_are_known(table->job);
    if (table->is_tied)
        eligible_seat(table->world->eligible, pod, place->node);
}

/* One round: whoever still waits gets a node that holds fewer than limit. */
static unsigned deal_round(struct table *table, unsigned limit)
{
    unsigned before = table->deals.count;

    open_all(table);
    table->placeless = 0;
    for (unsigned k = 0; k < table->unit->in[POD_WAITS]; k++) {
        unsigned i = table->order[k];
        struct place *place;

        if (table->has_place[i] || (table->placeless && table->placeless == class_of(table, i)))
            continue;
        place = place_for(table, i, limit);
        if (place)
            deal_to(table, i, place);
        else
            table->placeless = class_of(table, i);
    }
    return table->deals.count - before;
}

/* Who is drawn to a later one, or has to wait until others are spread, comes after these: only what
 * stands against those that are left in the end counts. */
static unsigned deal_rounds(struct table *table, unsigned limit)
{
    unsigned dealt = deal_round(table, limit), more = dealt;

    while (table->is_tied && more > 0) {
        table->deals.misfit = table->deals.why = NULL;
        table->deals.is_among_own = false;
        more = deal_round(table, limit);
        dealt += more;
    }
    return dealt;
}

/* Nobody is put beside another while a place that Slurm was asked for stays empty. */
static bool all_nodes_will_do(const struct table *table)
{
    if (table->deals.misfit && !table->deals.is_among_own)
        return false;
    for (unsigned i = 0; table->deals.misfit && i < table->count; i++)
        if (table->places[i].held < table->per_node)
            return false;
    return true;
}

/* A node that somebody has is not the one that will not do: he came after whoever did not want it.
 */
static void blame_an_empty_place(struct table *table)
{
    struct deals *deals = &table->deals;
    const struct kube_pod *pod = NULL;
    bool is_taken = false;

    for (unsigned i = 0; deals->misfit && i < table->count; i++)
        is_taken |= table->places[i].slurm_name == deals->misfit && table->places[i].held > 0;
    if (!is_taken || deals->is_among_own)
        return;
    for (unsigned i = 0; !pod && i < table->unit->member_count; i++)
        if (table->unit->members[i].stage == POD_WAITS && !table->has_place[i])
            pod = table->unit->members[i].pod;
    deals->misfit = deals->why = NULL;
    for (unsigned i = 0; pod && !deals->misfit && i < table->count; i++)
        if (table->places[i].held == 0)
            (void)table_will_do(table, &table->places[i], pod);
}

static void deal_to_all(struct table *table)
{
    unsigned limit = table->per_node;

    (void)deal_rounds(table, limit);
    while (table->has_whole_nodes && table->job && all_nodes_will_do(table) &&
           table->deals.count < table->unit->in[POD_WAITS] && limit < MAX_PER_NODE)
        if (deal_rounds(table, ++limit) == 0)
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
static bool order_by_fit(const struct table *table)
{
    unsigned count = table->unit->in[POD_WAITS];
    struct ranked *ranked = arena_alloc_array(table->arena, count + 1, sizeof(*ranked));

    for (unsigned i = 0; i < count; i++)
        ranked[i] = (struct ranked){
            table->order[i],
            eligible_nodes(table->world->eligible, table_pod(table, table->order[i]))->fit
        };
    qsort(ranked, count, sizeof(*ranked), by_fit);
    for (unsigned i = 0; i < count; i++)
        table->order[i] = ranked[i].member;
    return count > 0 && ranked[0].fit != ranked[count - 1].fit;
}

static void take_back_all(struct table *table)
{
    struct deals *deals = &table->deals;

    for (unsigned i = 0; i < deals->count; i++)
        stand_up(table, table->seats[i], table_pod(table, deals->at[i].member));
    memset(table->has_place, 0, table->unit->member_count * sizeof(*table->has_place));
    *deals = (struct deals){ .at = deals->at };
}

/* By rank; if that leaves some without a node, once more with those first that may use the fewest
 * nodes. Pods that mind each other are judged by where the others are: their order is their rank.
 */
void table_deal(struct table *table)
{
    struct deals *deals = &table->deals;
    unsigned waiting = 0;

    table->next_open =
        arena_alloc_array(table->arena, (size_t)table->count + 1, sizeof(*table->next_open));
    table->order = arena_alloc_array(table->arena, table->unit->member_count + 1, sizeof(unsigned));
    for (unsigned i = 0; i < table->unit->member_count; i++)
        if (table->unit->members[i].stage == POD_WAITS)
            table->order[waiting++] = i;
    deal_to_all(table);
    if (deals->count < waiting && deals->count > 0 && !table->is_tied && table->world->eligible &&
        order_by_fit(table)) {
        bool will_be_freed = deals->will_be_freed;

        take_back_all(table);
        deals->will_be_freed = will_be_freed;
        deal_to_all(table);
    }
    if (table->job)
        blame_an_empty_place(table);
    deals->left = waiting - deals->count;
    if (table->is_tied)
        eligible_leave_seats(table->world->eligible);
}

bool places_are_tied(const struct bridge_world *world, const struct unit *unit)
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

struct table table_new(const struct bridge_world *world, const struct unit *unit,
                       const struct job_desc *desc, struct arena *arena, struct arena *aside)
{
    arena_init(aside, MAX_ASIDE);
    return (struct table){
        .world = world,
        .unit = unit,
        .arena = arena,
        .aside = aside,
        .has_whole_nodes = desc->exclusive,
        .is_tied = places_are_tied(world, unit),
        .per_node = desc->tasks_per_node > 1 ? (unsigned)desc->tasks_per_node : 1,
        .has_place = arena_alloc_array(arena, unit->member_count + 1, sizeof(bool)),
        .classes = arena_alloc_array(arena, unit->member_count + 1, sizeof(uint64_t)),
        .seats = arena_alloc_array(arena, unit->member_count + 1, sizeof(struct place *)),
        .deals = { .at = arena_alloc_array(arena, unit->member_count + 1, sizeof(struct deal)) },
    };
}

int places_deal(const struct bridge_world *world, const struct unit *unit,
                const struct job_desc *desc, struct arena *arena, struct deals *ret_deals,
                struct err *err)
{
    auto_arena struct arena aside;
    struct table table = table_new(world, unit, desc, arena, &aside);
    int result;

    table.job = unit->job;
    result = lay_table(&table, err);
    if (result < 0)
        return result;
    table.has_all_cpus = table_has_all_cpus(&table);
    take_those_there(&table);
    table_deal(&table);
    *ret_deals = table.deals;
    return 0;
}

/* ---- whom a job has no place for ---- */

static bool is_dealt(const struct unit *unit, const struct deals *deals, const struct kube_pod *pod)
{
    for (unsigned i = 0; i < deals->count; i++)
        if (unit->members[deals->at[i].member].pod == pod)
            return true;
    return false;
}

bool places_given_by(const struct bridge_world *world, const struct slurm_job *job,
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
            places_given_by(world, unit->job, &required, &unit->members[i]))
            return false;
    return node &&
           !hosts_have(arena, unit->job->nodes, world_record_name(world, kube_node_of(node)));
}

bool places_lack_for(const struct bridge_world *world, const struct kube_pod *pod,
                     struct arena *arena)
{
    struct err err = { .class = 0 };
    auto_buf struct buf key;
    struct unit unit;
    struct job_desc desc;
    struct deals deals;

    buf_init(&key, SLURM_MAX_KEY);
    group_key(pod, &key);
    unit_gather(world, buf_str(&key), arena, &unit);
    if (unit.is_behind || unit.job_count != 1 || job_phase(unit.job) != JOB_RUNS ||
        !unit.job->nodes[0] || !unit.root)
        return false;
    if (pod_stage(world, pod) == POD_BOUND)
        return !unit_is_of_former(&unit, pod) && is_stranded(&unit, pod, arena, world);
    if (unit_describe(world, &unit, arena, &desc, &err) < 0 ||
        places_deal(world, &unit, &desc, arena, &deals, &err) < 0)
        return false;
    return !is_dealt(&unit, &deals, pod) && !deals.will_be_freed &&
           (unit.in[POD_BOUND] > 0 || deals.count >= (unsigned)unit.needed);
}
