/* places.c - which node of a running job each pod of its unit gets.
 *
 * Holds: as long as pods and job do not change the answer is the same; no node gets more pods than
 * the job has room for there, nor two that want the same port of it; rules of members about each
 * other are kept, as if one were bound after the other. */
#include "bridge/places.h"

#include "bridge/ask.h"
#include "bridge/exclude.h"
#include "bridge/node_state.h"
#include "codec/hostlist.h"
#include "slurm/submit.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_PER_NODE = 1 << 12,
    MILLI = 1000,
    DRAFT_STARTS = 8,    /* nodes from which a draft is begun, one after the other */
    MAX_PAIRS = 1 << 17, /* members times nodes, of a draft or where some may move */
    MAX_TRIES = 1 << 24, /* to move somebody; each is a few comparisons */
    MAX_ASIDE = 16 << 20,
};

struct place {
    const char *slurm_name;
    const struct kube_node *node; /* NULL: Kubernetes has none */
    unsigned held;                /* members that are there, and those that are dealt it now */
    int64_t cpu_milli, memory;    /* what these use */
    bool is_busy, was_tried;      /* of a draft */
    unsigned asked_by;            /* the search that asked those there to move; 0: none has */
};

enum fit { FIT_UNKNOWN, FIT_GOOD, FIT_BAD };

struct table {
    const struct bridge_world *world;
    const struct unit *unit;
    struct arena *arena, *aside; /* aside: for what is not kept */
    const struct slurm_job *job; /* NULL: it is a draft */
    struct place *places;
    unsigned count;
    bool has_whole_nodes; /* so it was asked for */
    bool has_all_cpus;    /* so it was given */
    bool is_tied;         /* members mind where the others are: those that are dealt have a seat */
    enum { MIX_UNKNOWN, MIX_ALIKE, MIX_DIFFERS } mix; /* of the nodes that members may use */
    uint8_t *fits;                                    /* enum fit, by member and place */
    unsigned per_node;
    unsigned nodes_left;  /* of a draft: that may still be used */
    bool *has_place;      /* by member */
    struct place **seats; /* by deal */
    unsigned searches, tries;
    bool is_quiet; /* others are asked to move: what stands against that is nobody's trouble */
    struct deals deals;
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
    place->cpu_milli -= pod->requests.cpu_milli;
    place->memory -= pod->requests.memory;
    table->nodes_left += place->held == 0 && !table->job;
}

static struct place *place_named(const struct table *table, const char *kube_node)
{
    for (unsigned i = 0; i < table->count; i++)
        if (table->places[i].node && strcmp(table->places[i].node->object.name, kube_node) == 0)
            return &table->places[i];
    return NULL;
}

static void take_those_there(struct table *table)
{
    for (unsigned i = 0; i < table->unit->member_count; i++) {
        const struct member *member = &table->unit->members[i];
        struct place *place = place_named(table, member->pod->node_name);

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

bool places_are_known(const struct slurm_job *job)
{
    return job->tres_alloc[0] && job->cpus > 0 && job->node_count > 0;
}

/* A place more than Slurm was asked for, on a node that is the job's alone. */
static bool has_room(const struct place *place, const struct kube_pod *pod)
{
    return place->cpu_milli + pod->requests.cpu_milli <= place->node->cpu_milli &&
           place->memory + pod->requests.memory <= place->node->memory;
}

/* Pods that were not there when the job was asked for may want more than its places have; all of
 * these are alike. */
static bool has_cpus(const struct table *table, const struct place *place,
                     const struct kube_pod *pod)
{
    const struct slurm_job *job = table->job;
    int64_t cpus = job->node_count > 0 ? job->cpus / job->node_count : 0;

    return !places_are_known(job) || table->has_all_cpus ||
           place->cpu_milli + pod->requests.cpu_milli <= cpus * MILLI;
}

/* Its nodes may differ: what it has of each is not known, unless it has all of them. */
static bool has_all_cpus(const struct table *table)
{
    int64_t cpus = 0;

    for (unsigned i = 0; i < table->count; i++) {
        if (!table->places[i].node)
            return false;
        cpus += table->places[i].node->cpu_milli / MILLI;
    }
    return places_are_known(table->job) && table->job->cpus >= cpus;
}

static bool is_any_address(const char *ip)
{
    return !ip[0] || strcmp(ip, "0.0.0.0") == 0;
}

static bool want_one_port(const struct kube_rare *a, const struct kube_rare *b)
{
    for (unsigned i = 0; i < a->port_count; i++)
        for (unsigned k = 0; k < b->port_count; k++) {
            const struct kube_port *left = &a->ports[i], *right = &b->ports[k];

            if (left->port == right->port && strcmp(left->protocol, right->protocol) == 0 &&
                (is_any_address(left->ip) || is_any_address(right->ip) ||
                 strcmp(left->ip, right->ip) == 0))
                return true;
        }
    return false;
}

/* Those that are dealt the same place now. */
static bool has_no_port_for(const struct table *table, const struct kube_node *node,
                            const struct kube_pod *pod)
{
    const struct deals *deals = &table->deals;

    for (unsigned i = 0; pod->rare && pod->rare->port_count > 0 && i < deals->count; i++) {
        const struct kube_pod *other = table->unit->members[deals->at[i].member].pod;

        if (deals->at[i].node == node && other->rare && want_one_port(pod->rare, other->rare))
            return true;
    }
    return false;
}

static bool has_job_that_waits_for(const struct bridge_world *world, struct str key,
                                   const char *slurm_name, struct arena *arena)
{
    struct slurm_index_walk walk = slurm_cache_by(world->slurm_jobs, SLURM_JOBS_BY_KEY, key);
    const struct slurm_object *object;

    while ((object = slurm_index_next(&walk)) != NULL) {
        const struct slurm_job *job = slurm_job_of(object);

        if (job_phase(job) == JOB_WAITS && job->required_nodes[0] &&
            hosts_have(arena, job->required_nodes, slurm_name))
            return true;
    }
    return false;
}

/* A pod there has lost its job, and the one that is to cover it waits for what this job has. */
static bool is_waited_for(const struct table *table, const struct place *place)
{
    const struct bridge_world *world = table->world;
    struct kube_index_walk walk =
        kube_cache_by(world->pods, world->pods_by_node, str_of(place->node->object.name));
    const struct kube_object *object;

    while ((object = kube_index_next(&walk)) != NULL) {
        auto_buf struct buf key;

        buf_init(&key, SLURM_MAX_KEY);
        world_unit_key(world, kube_pod_of(object), &key);
        if (has_job_that_waits_for(world, buf_str(&key), place->slurm_name, table->aside))
            return true;
    }
    return false;
}

/* Who waits for us is not waited for. */
static bool will_be_free(const struct table *table, const struct place *place)
{
    return place->node && world_is_being_left(table->world, place->node->object.name) &&
           !is_waited_for(table, place);
}

/* ---- one member ---- */

/* The first that stands against it is told. */
static void note_misfit(struct table *table, const struct place *place, const char *why,
                        bool is_among_own)
{
    struct deals *deals = &table->deals;

    if (table->is_quiet || (deals->misfit && (is_among_own || !deals->is_among_own)))
        return;
    deals->misfit = place->slurm_name;
    deals->why = arena_strdup(table->arena, why);
    deals->is_among_own = is_among_own;
}

/* Of its own group; else it was excluded when Slurm was asked. */
static bool is_kept_away(const struct table *table, const struct place *place,
                         const struct kube_pod *pod)
{
    return table->is_tied && table->deals.count > 0 && place->node &&
           eligible_objection(table->world->eligible, pod, place->node) == ELIGIBLE_PODS_OBJECT;
}

/* Whether the pod may go there, with those that were dealt theirs. */
static bool will_do(struct table *table, const struct place *place, const struct kube_pod *pod)
{
    const char *why;

    if (has_no_port_for(table, place->node, pod)) {
        note_misfit(table, place, "pods of its group want the same port of a node", true);
        return false;
    }
    arena_reset(table->aside);
    why = node_misfit(table->world, table->aside, pod, place->node, place->slurm_name);
    if (!why || table->is_quiet)
        return !why;
    if (is_kept_away(table, place, pod))
        note_misfit(table, place,
                    arena_printf(table->aside, "%s, by the pods of its own group", why), true);
    else if (will_be_free(table, place))
        table->deals.will_be_freed = true;
    else
        note_misfit(table, place, why, false);
    return false;
}

/* The same of a node that Slurm may give: what is on it now does not matter. */
static bool would_do(struct table *table, const struct place *place, const struct kube_pod *pod)
{
    enum eligible_objection objection;

    if (place->held == 0 && table->nodes_left == 0)
        return false;
    if (has_no_port_for(table, place->node, pod)) {
        note_misfit(table, place, "pods of its group want the same port of a node", true);
        return false;
    }
    objection = eligible_objection(table->world->eligible, pod, place->node);
    if (objection == ELIGIBLE_PODS_OBJECT && !table->deals.misfit)
        note_misfit(table, place,
                    eligible_misfit(table->world->eligible, pod, place->node, table->arena), true);
    return objection == ELIGIBLE_NO_OBJECTION;
}

static const struct kube_pod *pod_of(const struct table *table, unsigned member)
{
    return table->unit->members[member].pod;
}

/* The same, of which the answer does not change while pods that do not mind each other are dealt.
 */
static bool fits(struct table *table, const struct place *place, unsigned member)
{
    uint8_t *fit = &table->fits[(size_t)member * table->count + (size_t)(place - table->places)];
    const struct kube_pod *pod = pod_of(table, member);

    if (*fit == FIT_UNKNOWN)
        *fit = (table->job ? will_do(table, place, pod)
                           : eligible_objection(table->world->eligible, pod, place->node) ==
                                 ELIGIBLE_NO_OBJECTION)
                   ? FIT_GOOD
                   : FIT_BAD;
    return *fit == FIT_GOOD && (table->job || place->held > 0 || table->nodes_left > 0);
}

static bool suits(struct table *table, const struct place *place, unsigned member, unsigned limit)
{
    const struct kube_pod *pod = pod_of(table, member);
    bool is_good;

    if (table->is_quiet)
        is_good = ++table->tries <= MAX_TRIES && fits(table, place, member);
    else
        is_good = table->job ? will_do(table, place, pod) : would_do(table, place, pod);
    return is_good && (!table->job || ((limit <= table->per_node || has_room(place, pod)) &&
                                       has_cpus(table, place, pod)));
}

static struct place *find_free(struct table *table, unsigned member, unsigned limit)
{
    for (unsigned i = 0; i < table->count; i++)
        if (table->places[i].held < limit && suits(table, &table->places[i], member, limit))
            return &table->places[i];
    return NULL;
}

/* ---- moving others ---- */

static struct place *find_place(struct table *table, unsigned member, unsigned limit);

/* Whether whoever has this deal finds another place, so that the member can have this one. */
static bool is_given_up(struct table *table, unsigned deal, unsigned member, unsigned limit,
                        unsigned search)
{
    unsigned owner = table->deals.at[deal].member;
    const struct kube_pod *pod = pod_of(table, member), *other = pod_of(table, owner);
    struct place *place = table->seats[deal], *elsewhere = NULL;

    stand_up(table, place, other);
    if (suits(table, place, member, limit)) {
        place->asked_by = search;
        sit_down(table, place, pod); /* so that nobody moves to where it is wanted */
        elsewhere = find_place(table, owner, limit);
        stand_up(table, place, pod);
    }
    if (elsewhere) {
        table->seats[deal] = elsewhere;
        table->deals.at[deal].node = elsewhere->node;
    }
    sit_down(table, table->seats[deal], other);
    return elsewhere != NULL;
}

/* A free place; else that of another, who finds one in the same way. Those who could not move once
 * are not asked again before somebody has. */
static struct place *find_place(struct table *table, unsigned member, unsigned limit)
{
    struct place *found = find_free(table, member, limit);
    unsigned search = ++table->searches;

    for (unsigned i = 0; !found && i < table->deals.count; i++) {
        struct place *place = table->seats[i];

        if ((!place->asked_by || place->asked_by == search) &&
            is_given_up(table, i, member, limit, search))
            found = place;
    }
    return found;
}

/* Whether members that wait may use different nodes. */
static bool is_mixed(const struct table *table)
{
    const struct unit *unit = table->unit;
    const char *first = NULL;

    for (unsigned i = 0; i < unit->member_count; i++) {
        const char *excluded;

        if (unit->members[i].stage != POD_WAITS)
            continue;
        excluded = eligible_nodes(table->world->eligible, unit->members[i].pod)->excluded;
        if (!first)
            first = arena_strdup(table->arena, excluded);
        else if (strcmp(first, excluded) != 0)
            return true;
    }
    return false;
}

/* Where pods mind each other, a move would change what is open to the rest. */
static bool may_move(struct table *table)
{
    if (table->is_tied || !table->world->eligible || table->deals.count == 0)
        return false;
    if (table->mix == MIX_UNKNOWN) {
        bool is_small = table->count <= MAX_PAIRS / (table->unit->member_count + 1);

        table->mix = is_small && is_mixed(table) ? MIX_DIFFERS : MIX_ALIKE;
        if (table->mix == MIX_DIFFERS)
            table->fits = arena_alloc_array(table->arena, table->unit->member_count, table->count);
    }
    return table->mix == MIX_DIFFERS;
}

/* What stood against one that has a place in the end does not matter. */
static struct place *place_for(struct table *table, unsigned member, unsigned limit)
{
    struct deals *deals = &table->deals, before = *deals;
    struct place *place = find_free(table, member, limit);

    if (!place && may_move(table)) {
        table->is_quiet = true;
        place = find_place(table, member, limit);
        table->is_quiet = false;
    }
    if (place) {
        deals->misfit = before.misfit;
        deals->why = before.why;
        deals->is_among_own = before.is_among_own;
    }
    return place;
}

/* ---- all of them ---- */

/* Somebody has moved, or there is more room: who could not move before may be able to now. */
static void ask_all_again(struct table *table)
{
    for (unsigned i = 0; table->searches > 0 && i < table->count; i++)
        table->places[i].asked_by = 0;
}

static void deal_to(struct table *table, unsigned member, struct place *place)
{
    const struct kube_pod *pod = table->unit->members[member].pod;

    sit_down(table, place, pod);
    ask_all_again(table);
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

    ask_all_again(table);
    for (unsigned i = 0; i < table->unit->member_count; i++) {
        const struct member *member = &table->unit->members[i];
        struct place *place;

        if (member->stage != POD_WAITS || table->has_place[i])
            continue;
        place = place_for(table, i, limit);
        if (place)
            deal_to(table, i, place);
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
            (void)will_do(table, &table->places[i], pod);
}

static void deal_all(struct table *table)
{
    unsigned limit = table->per_node;
    struct deals *deals = &table->deals;

    (void)deal_rounds(table, limit);
    while (table->has_whole_nodes && table->job && all_nodes_will_do(table) &&
           deals->count < table->unit->in[POD_WAITS] && limit < MAX_PER_NODE)
        if (deal_rounds(table, ++limit) == 0)
            break;
    if (table->job)
        blame_an_empty_place(table);
    deals->left = table->unit->in[POD_WAITS] - deals->count;
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

static struct table new_table(const struct bridge_world *world, const struct unit *unit,
                              const struct job_ask *ask, struct arena *arena, struct arena *aside)
{
    arena_init(aside, MAX_ASIDE);
    return (struct table){
        .world = world,
        .unit = unit,
        .arena = arena,
        .aside = aside,
        .has_whole_nodes = ask->exclusive,
        .is_tied = places_are_tied(world, unit),
        .per_node = ask->tasks_per_node > 1 ? (unsigned)ask->tasks_per_node : 1,
        .has_place = arena_alloc_array(arena, unit->member_count + 1, sizeof(bool)),
        .seats = arena_alloc_array(arena, unit->member_count + 1, sizeof(struct place *)),
        .deals = { .at = arena_alloc_array(arena, unit->member_count + 1, sizeof(struct deal)) },
    };
}

int places_deal(const struct bridge_world *world, const struct unit *unit,
                const struct job_ask *ask, struct arena *arena, struct deals *ret_deals,
                struct err *err)
{
    auto_arena struct arena aside;
    struct table table = new_table(world, unit, ask, arena, &aside);
    int result;

    table.job = unit->job;
    result = lay_table(&table, err);
    if (result < 0)
        return result;
    table.has_all_cpus = has_all_cpus(&table);
    take_those_there(&table);
    deal_all(&table);
    *ret_deals = table.deals;
    return 0;
}

/* ---- drafts ---- */

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
    const struct unit_memory *memory = table->unit->memory;
    const char *name = world_slurm_name(node);

    for (unsigned i = 0; memory && i < memory->misfit_count; i++)
        if (strcmp(memory->misfits[i], name) == 0)
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

static void lay_draft(struct table *table, const struct job_ask *ask)
{
    struct kube_cache_walk walk = kube_cache_walk(table->world->nodes);
    const struct kube_object *object;

    table->places = arena_alloc_array(table->arena, kube_cache_count(table->world->nodes) + 1,
                                      sizeof(*table->places));
    while ((object = kube_cache_next(&walk)) != NULL) {
        const struct kube_node *node = kube_node_of(object);
        const char *name = world_slurm_name(node);
        const struct slurm_node *slurm = world_slurm_node(table->world, str_of(name));

        if (slurm && is_candidate(table->world, node, slurm, ask->partition) &&
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
        table->places[i].held = table->places[i].asked_by = 0;
    if (table->fits) /* places have moved */
        memset(table->fits, FIT_UNKNOWN, (size_t)table->unit->member_count * table->count);
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
                           const struct job_ask *ask)
{
    return world->eligible && ask->partition[0] && !ask->constraints[0] && !ask->reservation[0] &&
           ask->switches < 0 && ask->segment_size < 0 &&
           kube_cache_count(world->nodes) <= MAX_PAIRS / (unit->in[POD_WAITS] + 1);
}

bool places_draft(const struct bridge_world *world, const struct unit *unit,
                  const struct job_ask *ask, struct arena *arena, struct draft *ret_draft)
{
    auto_arena struct arena aside;
    struct table table = new_table(world, unit, ask, arena, &aside);
    struct draft draft = { .nodes = NULL };
    int64_t least = ask->min_nodes > 0 ? ask->min_nodes : 1;
    unsigned best = 0;

    if (!can_be_drafted(world, unit, ask))
        return false;
    lay_draft(&table, ask);
    for (unsigned i = 0; i < DRAFT_STARTS && !draft.is_enough && start_anew(&table); i++) {
        table.nodes_left = ask->max_nodes > 0 ? (unsigned)ask->max_nodes : unit->in[POD_WAITS];
        deal_all(&table);
        for (unsigned k = 0; k < table.count; k++)
            table.places[k].was_tried |= table.places[k].held > 0;
        table.places[0].was_tried = true;
        keep_best(&table, &draft, &best);
        draft.is_enough = best >= (uint64_t)unit->needed && draft.count >= least;
    }
    *ret_draft = draft;
    return true;
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
                     const struct member *member, struct arena *arena)
{
    const struct kube_object *node = kube_cache_get(world->nodes, "", member->pod->node_name);

    if (member->recorded_id && member->recorded_id != job->id)
        return false;
    return !job->required_nodes[0] || !node ||
           hosts_have(arena, job->required_nodes, world_slurm_name(kube_node_of(node)));
}

/* Bound, by another job than the one that its group has now, on a node that is not of that job. */
static bool is_stranded(const struct unit *unit, const struct kube_pod *pod, struct arena *arena,
                        const struct bridge_world *world)
{
    const struct kube_object *node = kube_cache_get(world->nodes, "", pod->node_name);

    for (unsigned i = 0; i < unit->member_count; i++)
        if (unit->members[i].pod == pod && unit->members[i].recorded_id &&
            places_given_by(world, unit->job, &unit->members[i], arena))
            return false;
    return node && !hosts_have(arena, unit->job->nodes, world_slurm_name(kube_node_of(node)));
}

bool places_lack_for(const struct bridge_world *world, const struct kube_pod *pod,
                     struct arena *arena)
{
    struct err err = { .class = 0 };
    auto_buf struct buf key;
    struct unit unit;
    struct job_ask ask;
    struct deals deals;

    buf_init(&key, SLURM_MAX_KEY);
    group_key(pod, &key);
    unit_gather(world, buf_str(&key), arena, &unit);
    if (unit.is_behind || unit.job_count != 1 || job_phase(unit.job) != JOB_RUNS ||
        !unit.job->nodes[0] || !unit.root)
        return false;
    if (pod_stage(world, pod) == POD_BOUND)
        return is_stranded(&unit, pod, arena, world);
    if (unit_describe(world, &unit, arena, &ask, &err) < 0 ||
        places_deal(world, &unit, &ask, arena, &deals, &err) < 0)
        return false;
    return !is_dealt(&unit, &deals, pod) && !deals.will_be_freed &&
           (unit.in[POD_BOUND] > 0 || deals.count >= (unsigned)unit.needed);
}
