/* places_fit.c - whether a pod may have a place on a node of its job, or one that Slurm may give.
 *
 * Holds: no node gets more pods than the job has room for there, nor two that want the same port of
 * it; rules of members about each other are kept, as if one were bound after the other. */
#include "bridge/places_private.h"

#include "bridge/exclude.h"
#include "bridge/hosts.h"
#include "slurm/submit.h"

#include <string.h>

enum { MILLI = 1000 };

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
bool table_has_all_cpus(const struct table *table)
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

/* Because of pods that are dealt the same place now. */
static bool has_no_port_for(const struct table *table, const struct place *place,
                            const struct kube_pod *pod)
{
    const struct deals *deals = &table->deals;

    if (!pod->rare || pod->rare->port_count == 0 || place->held == 0)
        return false;
    for (unsigned i = 0; i < deals->count; i++) {
        const struct kube_pod *other = table->unit->members[deals->at[i].member].pod;

        if (table->seats[i] == place && other->rare && want_one_port(pod->rare, other->rare))
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

void table_note_misfit(struct table *table, const struct place *place, const char *why,
                       bool is_among_own)
{
    struct deals *deals = &table->deals;

    if (deals->misfit && (is_among_own || !deals->is_among_own))
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
bool table_will_do(struct table *table, const struct place *place, const struct kube_pod *pod)
{
    const char *why;

    if (has_no_port_for(table, place, pod)) {
        table_note_misfit(table, place, "pods of its group want the same port of a node", true);
        return false;
    }
    arena_reset(table->aside);
    why = node_misfit(table->world, table->aside, pod, place->node, place->slurm_name);
    if (!why)
        return true;
    if (is_kept_away(table, place, pod))
        table_note_misfit(table, place,
                          arena_printf(table->aside, "%s, by the pods of its own group", why),
                          true);
    else if (will_be_free(table, place))
        table->deals.will_be_freed = true;
    else
        table_note_misfit(table, place, table->objection = why, false);
    return false;
}

/* The same of a node that Slurm may give: what is on it now does not matter. */
static bool would_do(struct table *table, const struct place *place, const struct kube_pod *pod)
{
    enum eligible_objection objection;

    if (place->held == 0 && table->nodes_left == 0)
        return false;
    if (has_no_port_for(table, place, pod)) {
        table_note_misfit(table, place, "pods of its group want the same port of a node", true);
        return false;
    }
    objection = eligible_objection(table->world->eligible, pod, place->node);
    if (objection == ELIGIBLE_PODS_OBJECT && !table->deals.misfit)
        table_note_misfit(table, place,
                          eligible_misfit(table->world->eligible, pod, place->node, table->arena),
                          true);
    return objection == ELIGIBLE_NO_OBJECTION;
}

bool table_suits(struct table *table, const struct place *place, unsigned member, unsigned limit)
{
    const struct kube_pod *pod = table_pod(table, member);

    if (!table->job)
        return would_do(table, place, pod);
    return table_will_do(table, place, pod) && (limit <= table->per_node || has_room(place, pod)) &&
           has_cpus(table, place, pod);
}
