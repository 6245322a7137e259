/* places.c - which node of a running job each pod of its unit gets.
 *
 * Holds: as long as pods and job do not change the answer is the same; no node gets more pods than
 * the job has room for there, nor two that want the same port of it. */
#include "bridge/places.h"

#include "bridge/ask.h"
#include "bridge/exclude.h"
#include "codec/hostlist.h"
#include "slurm/submit.h"

#include <string.h>

enum { MAX_PER_NODE = 1 << 12, MILLI = 1000 };

struct place {
    const char *slurm_name;
    const struct kube_node *node; /* NULL: Kubernetes has none */
    unsigned held;                /* members that are there, and those that are dealt it now */
    int64_t cpu_milli, memory;    /* what these use */
};

struct table {
    const struct bridge_world *world;
    const struct unit *unit;
    struct arena *arena;
    struct place *places;
    unsigned count;
    bool has_whole_nodes;
    unsigned per_node;
};

static void sit_down(struct place *place, const struct kube_pod *pod)
{
    place->held++;
    place->cpu_milli += pod->requests.cpu_milli;
    place->memory += pod->requests.memory;
}

static struct place *place_named(const struct table *table, const char *kube_node)
{
    for (unsigned i = 0; i < table->count; i++)
        if (table->places[i].node && strcmp(table->places[i].node->object.name, kube_node) == 0)
            return &table->places[i];
    return NULL;
}

static void take_those_there(struct table *table, struct deals *deals)
{
    for (unsigned i = 0; i < table->unit->member_count; i++) {
        const struct member *member = &table->unit->members[i];
        struct place *place = place_named(table, member->pod->node_name);

        if (!place || (member->stage != POD_BOUND && member->stage != POD_ENDING))
            continue;
        sit_down(place, member->pod);
        deals->will_be_freed |= member->stage == POD_ENDING;
    }
}

static int lay_table(struct table *table, struct err *err)
{
    const struct slurm_job *job = table->unit->job;
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
static bool has_cpus(const struct slurm_job *job, const struct place *place,
                     const struct kube_pod *pod)
{
    int64_t cpus = job->node_count > 0 ? job->cpus / job->node_count : 0;

    return !places_are_known(job) || cpus * MILLI >= place->node->cpu_milli / MILLI * MILLI ||
           place->cpu_milli + pod->requests.cpu_milli <= cpus * MILLI;
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

/* The rules know of pods that are bound. Those that are dealt the same place now will be. */
static bool clashes(const struct table *table, const struct deals *deals,
                    const struct kube_node *node, const struct kube_pod *pod)
{
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
        if (has_job_that_waits_for(world, buf_str(&key), place->slurm_name, table->arena))
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

static struct place *find_place(const struct table *table, const struct kube_pod *pod,
                                unsigned limit, struct deals *deals)
{
    for (unsigned i = 0; i < table->count; i++) {
        struct place *place = &table->places[i];
        const char *why;

        if (place->held >= limit || clashes(table, deals, place->node, pod))
            continue;
        why = node_misfit(table->world, table->arena, pod, place->node, place->slurm_name);
        if (!why && (limit <= table->per_node || has_room(place, pod)) &&
            has_cpus(table->unit->job, place, pod))
            return place;
        if (why && will_be_free(table, place))
            deals->will_be_freed = true;
        else if (why && !deals->misfit) {
            deals->misfit = place->slurm_name;
            deals->why = why;
        }
    }
    return NULL;
}

/* One round: whoever still waits gets a node that holds fewer than limit. */
static unsigned deal_round(struct table *table, bool *has_place, unsigned limit,
                           struct deals *deals)
{
    unsigned before = deals->count;

    for (unsigned i = 0; i < table->unit->member_count; i++) {
        const struct member *member = &table->unit->members[i];
        struct place *place;

        if (member->stage != POD_WAITS || has_place[i])
            continue;
        place = find_place(table, member->pod, limit, deals);
        if (!place)
            continue;
        sit_down(place, member->pod);
        deals->is_guess |=
            place->held > 1 && !table->has_whole_nodes && !places_are_known(table->unit->job);
        has_place[i] = true;
        deals->at[deals->count++] = (struct deal){ i, place->node };
    }
    return deals->count - before;
}

int places_deal(const struct bridge_world *world, const struct unit *unit,
                const struct job_ask *ask, struct arena *arena, struct deals *ret_deals,
                struct err *err)
{
    struct table table = { .world = world,
                           .unit = unit,
                           .arena = arena,
                           .has_whole_nodes = ask->exclusive,
                           .per_node =
                               ask->tasks_per_node > 1 ? (unsigned)ask->tasks_per_node : 1 };
    bool *has_place = arena_alloc_array(arena, unit->member_count + 1, sizeof(*has_place));
    unsigned limit = table.per_node;
    struct deals deals = { .at = arena_alloc_array(arena, unit->member_count + 1,
                                                   sizeof(*deals.at)) };
    int result = lay_table(&table, err);

    if (result < 0)
        return result;
    take_those_there(&table, &deals);
    (void)deal_round(&table, has_place, limit, &deals);
    while (table.has_whole_nodes && !deals.misfit && deals.count < unit->in[POD_WAITS] &&
           limit < MAX_PER_NODE)
        if (deal_round(&table, has_place, ++limit, &deals) == 0)
            break;
    deals.left = unit->in[POD_WAITS] - deals.count;
    *ret_deals = deals;
    return 0;
}

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
