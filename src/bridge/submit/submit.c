/* submit.c - what is known before a job is submitted, and the action that submits it. */
#include "bridge/submit/submit.h"

#include "bridge/run/rebook.h"
#include "bridge/slurm/slurm_action.h"
#include "codec/host_set.h"
#include "device/needs.h"
#include "slurm/capacity.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    GATHER_US = 250000, /* after the last member came: another may */
    GATHER_MAX_US = 2000000,
};

/* ---- groups ---- */

int64_t group_grows_us(const struct bridge_world *world, const struct unit *unit)
{
    const struct unit_state *state = unit->state;
    int64_t now_us = world->facts.now_us;

    if (!unit->owner.is_open || !state || now_us - state->seen_us > GATHER_MAX_US ||
        now_us - state->grown_us >= GATHER_US)
        return 0;
    return state->grown_us + GATHER_US - now_us;
}

const char *group_end(const struct unit *unit)
{
    const char *phase =
        unit->owner.group && unit->kind == GROUP_COSCHEDULING ? unit->owner.group->phase : "";

    return str_is(str_of(phase), "Failed") || str_is(str_of(phase), "Finished") ? phase : NULL;
}

/* ---- how many there may be ---- */

/* Slurm counts jobs that have ended until it forgets them, and so does the cache. */
bool submit_leaves_a_tenth(const struct bridge_world *world)
{
    int64_t most = world->facts.max_jobs;
    size_t jobs =
        slurm_cache_count(world->slurm_jobs) + unit_states_in(world->unit_states, SUBMIT_SENT);

    return most <= 0 || (int64_t)jobs < most - most / 10;
}

struct in_flight {
    struct str ns;
    int64_t count;
};

static void count_in_flight(void *context, const struct unit_state *unit)
{
    struct in_flight *found = context;

    found->count +=
        (unit->submit.state == SUBMIT_SENT || unit->submit.state == SUBMIT_UNRESOLVED) &&
        str_starts(unit->key, found->ns) && unit->key.at[found->ns.len] == '/';
}

bool submit_is_over_cap(const struct bridge_world *world, const struct unit *unit)
{
    int64_t most = world->config->jobs_per_namespace;
    struct in_flight found = { .count = 0 };
    struct slurm_index_walk walk;
    struct str name;

    if (most == 0 || !str_cut(unit->key, '/', &found.ns, &name))
        return false;
    if (unit_states_in(world->unit_states, SUBMIT_SENT) > 0 ||
        unit_states_in(world->unit_states, SUBMIT_UNRESOLVED) > 0)
        unit_states_each(world->unit_states, count_in_flight, &found);
    walk = slurm_cache_by(world->slurm_jobs, SLURM_JOBS_BY_NAMESPACE, found.ns);
    while (found.count < most && slurm_index_next(&walk))
        found.count++;
    return found.count >= most;
}

/* ---- nodes and devices ---- */

bool exclusion_leaves_enough(const struct exclusion *exclusion, const struct job_desc *desc)
{
    return exclusion->total == 0 || exclusion->fit >= (uint64_t)job_desc_least_nodes(desc);
}

const char *exclusion_text(const struct exclusion *exclusion, const struct job_desc *desc,
                           struct arena *arena)
{
    const char *why = exclusion->why;

    if (exclusion->fit > 0 || !why[0])
        why = arena_printf(arena, "its pods need %" PRId64 "%s%s", job_desc_least_nodes(desc),
                           why[0] ? ", " : "", why);
    return arena_printf(arena, "%u/%u nodes are available: %s", exclusion->fit, exclusion->total,
                        why);
}

const char *too_few_devices(const struct bridge_world *world, const struct unit *unit,
                            struct arena *arena)
{
    struct device_view view = world_device_view(world);

    for (unsigned i = 0; i < unit->member_count; i++) {
        const struct kube_pod *pod = unit->members[i].pod;
        struct device_amounts amounts;

        if (device_amounts_of(&view, pod, arena, &amounts, NULL) < 0)
            continue;
        for (unsigned k = 0; k < amounts.count; k++) {
            const struct device_row *row = amounts.at[k].row;
            const char *node;
            int64_t most = capacity_most(world->capacity, row->gres, row->type, &node);

            if (device_row_is_cpu(row) || amounts.at[k].amount <= most)
                continue;
            return arena_printf(
                arena, "; pod %s needs %" PRId64 " devices of %s on one node, and %s",
                pod->object.name, amounts.at[k].amount, row->class[0] ? row->class : row->resource,
                node[0] ? arena_printf(arena, "node %s has the most, %" PRId64, node, most)
                        : "no node has any");
        }
    }
    return "";
}

/* ---- rebooking ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The most bound members on one node, at least 1. */
static unsigned most_on_one(const struct unit *unit, struct arena *arena)
{
    const char **nodes = arena_alloc_array(arena, unit->member_count + 1, sizeof(*nodes));
    unsigned bound = 0, here = 0, most = 1;

    for (unsigned i = 0; i < unit->member_count; i++)
        if (unit->members[i].stage == POD_BOUND)
            nodes[bound++] = unit->members[i].pod->node_name;
    qsort(nodes, bound, sizeof(*nodes), by_text);
    for (unsigned i = 0; i < bound; i++) {
        here = i > 0 && strcmp(nodes[i], nodes[i - 1]) == 0 ? here + 1 : 1;
        most = here > most ? here : most;
    }
    return most;
}

/* On these nodes and no others, several pods on one node where they are. */
static void require_nodes(struct job_desc *job, const char *nodes, unsigned node_count,
                          unsigned per_node)
{
    job->required_nodes = nodes;
    job->priority = REBOOK_PRIORITY;
    if (node_count == 1 && per_node == 1 && job->max_nodes <= 1)
        return;
    job->nodes = job->min_nodes = job->max_nodes = node_count;
    if (job->memory > 0 && job->tasks_per_node <= 1)
        job->memory *= per_node;
    if (job->tasks_per_node < per_node)
        job->tasks_per_node = per_node;
    if (job->tasks >= 0)
        job->tasks = node_count * job->tasks_per_node;
}

int describe_rebooking(const struct bridge_world *world, const struct unit *unit, const char *nodes,
                       struct arena *arena, struct job_desc *ret_desc, struct err *err)
{
    struct unit as_found = *unit;

    if (!as_found.owner.object)
        as_found.owner.object = &unit->pod->object;
    if (unit_describe(world, &as_found, DESCRIBE_BOUND, arena, ret_desc, err) < 0)
        return -err->class;
    job_desc_drop_waits(ret_desc);
    require_nodes(ret_desc, nodes, hosts_count(arena, nodes), most_on_one(unit, arena));
    return 0;
}

/* ---- the action ---- */

void plan_submit(const struct unit *unit, struct plan *plan, const struct job_desc *desc,
                 enum described described, bool at_once)
{
    const struct str *names;
    unsigned count = unit_names(unit, described, plan->arena, &names);

    plan_slurm_submit(plan, &(struct submit_request){ .key = unit->key,
                                                      .uid = unit->uid,
                                                      .attempt = unit->jobs.attempt + 1,
                                                      .job = desc,
                                                      .pods = names,
                                                      .pod_count = count,
                                                      .at_once = at_once });
}
