/* assign_fit.c - whether a pod may have a slot on a node of its job, or on one that Slurm may give.
 *
 * Holds: no node gets more pods than the job has room for there, nor two that want the same port of
 * it; rules of members about each other are kept, as if one were bound after the other. */
#include "bridge/run/assign_private.h"

#include "bridge/run/bind.h"
#include "bridge/run/exclude.h"
#include "codec/host_set.h"
#include "slurm/submit.h"

enum { MILLI = 1000 };

bool allocation_is_known(const struct slurm_job *job)
{
    return job->tres_alloc[0] && job->cpus > 0 && job->node_count > 0;
}

/* Pods that were not there when the job was submitted may want more than its places have; all of
 * these are alike. */
static bool has_cpus(const struct slots *slots, const struct slot *slot, const struct kube_pod *pod)
{
    const struct slurm_job *job = slots->job;
    int64_t cpus = job->node_count > 0 ? job->cpus / job->node_count : 0;

    return !allocation_is_known(job) || slots->has_all_cpus ||
           slot->cpu_milli + pod->requests.cpu_milli <= cpus * MILLI;
}

/* Its nodes may differ: what it has of each is not known, unless it has all of them. */
bool slots_has_all_cpus(const struct slots *slots)
{
    int64_t cpus = 0;

    for (unsigned i = 0; i < slots->count; i++) {
        if (!slots->at[i].node)
            return false;
        cpus += slots->at[i].node->cpu_milli / MILLI;
    }
    return allocation_is_known(slots->job) && slots->job->cpus >= cpus;
}

/* Because of pods that are assigned to the same slot. */
static bool has_no_port_for(const struct slots *slots, const struct slot *slot,
                            const struct kube_pod *pod)
{
    const struct assignments *assigned = &slots->assigned;

    if (!pod->rare || pod->rare->port_count == 0 || slot->held == 0)
        return false;
    for (unsigned i = 0; i < assigned->count; i++) {
        unsigned other = assigned->at[i].member;

        if (slots->slot_of[other] == slot &&
            filter_ports_collide(pod, slots->unit->members[other].pod))
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

/* A pod there has lost its job, and the one that is to rebook it waits for what this job has. */
static bool is_waited_for(struct slots *slots, const struct slot *slot)
{
    const struct bridge_world *world = slots->world;
    struct kube_index_walk walk =
        kube_cache_by(world->pods, world->pods_by_node, str_of(slot->node->object.name));
    const struct kube_object *object;

    while ((object = kube_index_next(&walk)) != NULL) {
        auto_buf struct buf key;

        buf_init(&key, SLURM_MAX_KEY);
        world_unit_key(world, kube_pod_of(object), &key);
        if (has_job_that_waits_for(world, buf_str(&key), slot->slurm_name, &slots->aside))
            return true;
    }
    return false;
}

/* ---- one member ---- */

/* What is on a node that Slurm may give does not matter: it gives only what is free. */
bool slots_fit(struct slots *slots, const struct slot *slot, unsigned member, unsigned limit)
{
    const struct kube_pod *pod = slots->unit->members[member].pod;

    if (has_no_port_for(slots, slot, pod))
        return false;
    if (!slots->job)
        return (slot->held > 0 || slots->nodes_left > 0) &&
               filter_objection(slots->world->filter, slots->reserved, pod, slot->node) ==
                   FILTER_NO_OBJECTION;
    arena_reset(&slots->aside);
    /* One pod more than was submitted, on a node that the job has alone. */
    return !node_misfit(slots->world, slots->reserved, &slots->aside, pod, slot->node,
                        slot->slurm_name) &&
           (limit <= slots->per_node ||
            (slot->cpu_milli + pod->requests.cpu_milli <= slot->node->cpu_milli &&
             slot->memory + pod->requests.memory <= slot->node->memory)) &&
           has_cpus(slots, slot, pod);
}

/* The first one counts; a reason of the node comes before one of the group's own pods. A node that
 * a pod has fits in itself. */
static void record(struct slots *slots, const struct slot *slot, const char *why, bool is_among_own)
{
    struct assignments *assigned = &slots->assigned;

    if ((assigned->misfit && (is_among_own || !assigned->is_among_own)) ||
        (!is_among_own && slot->held > 0))
        return;
    assigned->misfit = slot->slurm_name;
    assigned->why = arena_strdup(slots->arena, why);
    assigned->is_among_own = is_among_own;
}

static void explain_slot(struct slots *slots, const struct slot *slot, const struct kube_pod *pod)
{
    const struct bridge_world *world = slots->world;
    bool pods_object =
        slots->reserved && slot->node &&
        filter_objection(world->filter, slots->reserved, pod, slot->node) == FILTER_PODS_OBJECT;
    const char *why;

    arena_reset(&slots->aside);
    if (has_no_port_for(slots, slot, pod)) {
        record(slots, slot, "pods of its group want the same port of a node", true);
        return;
    }
    if (!slots->job) {
        if (pods_object)
            record(slots, slot,
                   filter_misfit(world->filter, slots->reserved, pod, slot->node, &slots->aside),
                   true);
        return;
    }
    why = node_misfit(world, slots->reserved, &slots->aside, pod, slot->node, slot->slurm_name);
    if (!why)
        return;
    /* The pods of its own group object; pods of others were excluded when Slurm was asked. */
    if (pods_object && slots->assigned.count > 0)
        record(slots, slot, arena_printf(&slots->aside, "%s, by the pods of its own group", why),
               true);
    else if (!slot->node || !node_takes_pods(slot->node) ||
             !world_is_being_left(world, slot->node->object.name) || is_waited_for(slots, slot))
        record(slots, slot, why, false);
    else if (job_has_run_for(world, slots->job, world_place_wait_s(world)))
        record(slots, slot,
               arena_printf(&slots->aside, "%s, and pods that Slurm ended still run there", why),
               false);
    else
        slots->assigned.will_be_freed = true;
}

void slots_explain(struct slots *slots, unsigned limit)
{
    unsigned first = 0;

    while (slots->slot_of[slots->order[first]])
        first++;
    for (unsigned i = 0; i < slots->count; i++)
        if (slots->at[i].held < limit)
            explain_slot(slots, &slots->at[i], slots->unit->members[slots->order[first]].pod);
}
