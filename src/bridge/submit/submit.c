/* submit.c - submits the job of a unit, or says why not yet.
 *
 * Holds: a group is submitted as one, and not before it is complete; pods that exclude each
 * other are submitted one at a time per owner; what cannot be translated and
 * what Slurm refused is told to the pods' owner in words, once, and tried again only when something
 * that matters has changed. */
#include "bridge/submit/submit.h"

#include "bridge/place.h"
#include "bridge/report.h"
#include "bridge/run/exclude.h"
#include "bridge/slurm/slurm_action.h"
#include "bridge/submit/submit_guard.h"
#include "bridge/submit/submit_queue.h"
#include "bridge/unit/translate.h"
#include "bridge/world/hosts.h"
#include "codec/hostlist.h"
#include "device/needs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    SOON_US = 500000,
    A_MOMENT_US = 50000,
    ANSWER_US = 3000000, /* the most that most answers take */
    GATHER_US = 250000,  /* after the last member came: another may */
    GATHER_MAX_US = 2000000,
    LOOK_FOR_NODE_US = 1000000, /* it is being made again; pods that wait are held up meanwhile */
    LOOK_FOR_CHANGE_US = 15000000, /* of nodes, and of owners: of those a unit is not told */
    LOOK_FOR_ROOM_US = 5000000,    /* on a node that was given back: nor of what is free there */
};

/* ---- what is submitted ---- */

/* The members in these stages, by rank. */
static unsigned pods_in(const struct unit *unit, bool waiting, bool bound, struct arena *arena,
                        const struct kube_pod ***ret_pods)
{
    const struct kube_pod **pods =
        arena_alloc_array(arena, unit->member_count + 1, sizeof(const struct kube_pod *));
    unsigned count = 0;

    for (unsigned i = 0; i < unit->member_count; i++)
        if ((waiting && unit->members[i].stage == POD_WAITS) ||
            (bound && unit->members[i].stage == POD_BOUND))
            pods[count++] = unit->members[i].pod;
    *ret_pods = pods;
    return count;
}

static int describe(const struct bridge_world *world, const struct unit *unit, bool waiting,
                    bool bound, struct arena *arena, struct job_desc *ret_desc, struct err *err)
{
    const struct kube_pod **pods;
    struct translate_from from = { .config = world->config,
                                   .slurm_nodes = world->slurm_nodes,
                                   .classes = world->optional[OPTIONAL_DEVICE_CLASSES].cache,
                                   .claims = world->optional[OPTIONAL_CLAIMS].cache,
                                   .owner = unit->owner,
                                   .job = unit->owner_job,
                                   .more = unit->more_owners,
                                   .more_count = unit->more_count,
                                   .name = unit->name,
                                   .is_gang = unit->kind != GROUP_NONE };

    from.pod_count = pods_in(unit, waiting, bound, arena, &pods);
    from.pods = pods;
    if (unit->group && unit->kind == GROUP_COSCHEDULING) {
        from.min_pods = unit->needed < from.pod_count ? unit->needed : from.pod_count;
        from.group_cpu_milli = unit->group->cpu_milli;
        from.group_memory = unit->group->memory;
    }
    if (from.pod_count == 0)
        return err_set(err, ERR_BUG, "a unit without pods is described");
    if (translate(&from, arena, ret_desc, err) < 0)
        return -err->class;
    if (waiting) {
        /* The job of a leader has nodes for the workers that are created when the leader runs. */
        bool comes_later = unit->kind == GROUP_LWS && unit->group && unit->group->leader_first;

        if (comes_later && ret_desc->max_nodes == from.pod_count &&
            from.pod_count < unit->group->size)
            ret_desc->nodes = ret_desc->min_nodes = ret_desc->max_nodes = unit->group->size;
    }
    return 0;
}

int unit_describe(const struct bridge_world *world, const struct unit *unit, struct arena *arena,
                  struct job_desc *ret_desc, struct err *err)
{
    return describe(world, unit, true, true, arena, ret_desc, err);
}

int unit_describe_waiting(const struct bridge_world *world, const struct unit *unit,
                          struct arena *arena, struct job_desc *ret_desc, struct err *err)
{
    return describe(world, unit, true, false, arena, ret_desc, err);
}

/* "namespace/name" of each. */
static struct str *names_of(const struct kube_pod *const *pods, unsigned count, struct arena *arena)
{
    struct str *names = arena_alloc_array(arena, count + 1, sizeof(*names));

    for (unsigned i = 0; i < count; i++)
        names[i] = str_of(arena_printf(arena, "%s/%s", pods[i]->object.ns, pods[i]->object.name));
    return names;
}

unsigned unit_names_waiting(const struct unit *unit, struct arena *arena,
                            const struct str **ret_names)
{
    const struct kube_pod **pods;
    unsigned count = pods_in(unit, true, false, arena, &pods);

    *ret_names = names_of(pods, count, arena);
    return count;
}

/* ---- asking ---- */

static void submit_by_mode(const struct bridge_world *world, const struct unit *unit,
                           struct plan *plan, const struct job_desc *job, bool bound)
{
    enum submit_mode way = bound ? SUBMIT_QUEUED : submit_mode(world, unit, job);
    const struct kube_pod **pods;
    unsigned count;

    if (way == SUBMIT_SOON) {
        plan_wait(plan, "jobs that were queued just now are about to start");
        plan_look_again(plan, A_MOMENT_US);
        return;
    }
    count = pods_in(unit, !bound, bound, plan->arena, &pods);
    plan_slurm_submit(plan, &(struct submit_request){ .key = unit->key,
                                                      .uid = unit->uid,
                                                      .attempt = unit->attempt + 1,
                                                      .job = job,
                                                      .pods = names_of(pods, count, plan->arena),
                                                      .pod_count = count,
                                                      .at_once = way == SUBMIT_AT_ONCE });
}

/* A report about a submit that is on its way would be out of date before anybody has read it, and
 * such writes would slow down other pods. */
static bool is_about_to_be_answered(const struct bridge_world *world, const struct unit *unit,
                                    struct plan *plan)
{
    int64_t left_us;

    if (unit_submit_state(unit) != SUBMIT_SENT)
        return false;
    left_us = unit->state->submit.sent_us + ANSWER_US - world->facts.now_us;
    if (left_us > 0)
        plan_look_again(plan, left_us);
    return left_us > 0;
}

/* Slurm says only that it refused the job. "": no node has too few devices. */
static const char *too_few_devices(const struct bridge_world *world, const struct unit *unit,
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

static int submit_or_wait(const struct bridge_world *world, const struct unit *unit,
                          struct plan *plan, const struct job_desc *job, bool bound)
{
    struct guard_result view = submit_guard_check(world, unit, job_desc_hash(job), plan->arena);
    const char *lack;

    switch (view.guard) {
    case GUARD_OPEN:
        if (bound || submit_queue_is_free(world, unit, plan))
            submit_by_mode(world, unit, plan, job, bound);
        return 0;
    case GUARD_LATER:
        if (view.trouble_us)
            report_slurm_trouble(world, unit, plan, view.trouble_us, view.why);
        else if (is_about_to_be_answered(world, unit, plan))
            plan_wait(plan, "%s", view.why);
        else
            report_waiting(world, unit, plan, "WaitingForSlurm", "%s", view.why);
        break;
    case GUARD_REFUSED:
        lack = too_few_devices(world, unit, plan->arena);
        if (report_trouble(world, unit, plan, "Refused", "Slurm refused the job: %s%s", view.why,
                           lack))
            plan_event(plan, &unit->pod->object, KUBE_EVENT_WARNING, "FailedScheduling",
                       "Slurm refused the job: %s%s", view.why, lack);
        plan_look_again(plan, LOOK_FOR_CHANGE_US);
        break;
    }
    if (view.again_us > 0)
        plan_look_again(plan, view.again_us);
    return 0;
}

/* Controllers create pods one by one: pods that come within a moment belong to the same submit. */
static bool may_grow(const struct bridge_world *world, const struct unit *unit, struct plan *plan)
{
    const struct unit_state *state = unit->state;
    int64_t now_us = world->facts.now_us;

    if (!unit->is_open || !state || now_us - state->seen_us > GATHER_MAX_US ||
        now_us - state->grown_us >= GATHER_US)
        return false;
    plan_wait(plan, "more pods of its %s may come", group_kind_name(unit->kind));
    plan_look_again(plan, state->grown_us + GATHER_US - now_us);
    return true;
}

/* The phase in which the PodGroup ended; NULL. */
static const char *group_end(const struct unit *unit)
{
    const char *phase = unit->group && unit->kind == GROUP_COSCHEDULING ? unit->group->phase : "";

    return str_is(str_of(phase), "Failed") || str_is(str_of(phase), "Finished") ? phase : NULL;
}

static bool is_complete(const struct bridge_world *world, const struct unit *unit,
                        struct plan *plan)
{
    const char *phase = group_end(unit);

    if (phase) {
        report_trouble(world, unit, plan, "GroupEnded", "PodGroup coscheduling status is %s",
                       phase);
        return false;
    }
    if (unit->in[POD_WAITS] >= (uint64_t)unit->needed)
        return true;
    report_waiting(world, unit, plan, "GroupIncomplete",
                   "not enough pending pods to create external job: %u of %" PRId64
                   " pods of its %s are there",
                   unit->in[POD_WAITS], unit->needed, group_kind_name(unit->kind));
    plan_look_again(plan, LOOK_FOR_CHANGE_US);
    return false;
}

static bool leaves_enough(const struct exclusion *exclusion, const struct job_desc *job)
{
    return exclusion->total == 0 || exclusion->fit >= (uint64_t)job_desc_least_nodes(job);
}

bool unit_has_nodes(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                    const struct exclusion *exclusion, const struct job_desc *job)
{
    int64_t wanted = job_desc_least_nodes(job);
    const char *why = exclusion->why;

    if (leaves_enough(exclusion, job))
        return true;
    if (exclusion->fit > 0 || !why[0])
        why = arena_printf(plan->arena, "its pods need %" PRId64 "%s%s", wanted, why[0] ? ", " : "",
                           why);
    if (report_trouble(world, unit, plan, "NoNodeFits", "%u/%u nodes are available: %s",
                       exclusion->fit, exclusion->total, why))
        plan_event(plan, &unit->pod->object, KUBE_EVENT_WARNING, "FailedScheduling",
                   "%u/%u nodes are available: %s", exclusion->fit, exclusion->total, why);
    plan_look_again(plan, unit->state && unit->state->misfit_count > 0 ? LOOK_FOR_ROOM_US
                                                                       : LOOK_FOR_CHANGE_US);
    return false;
}

bool unit_can_be_submitted(const struct bridge_world *world, const struct unit *unit,
                           struct arena *arena)
{
    struct exclusion exclusion;
    struct job_desc job;
    struct err err = { .class = 0 };

    if (unit->stage != POD_WAITS || unit->is_elsewhere || unit->job || unit->inherited ||
        !unit->owner || group_end(unit) || unit->in[POD_WAITS] < (uint64_t)unit->needed ||
        describe(world, unit, true, false, arena, &job, &err) < 0)
        return false;
    exclusion = exclusion_of(world, unit, job.partition, arena);
    job.excluded_nodes = exclusion.nodes;
    return leaves_enough(&exclusion, &job) &&
           submit_guard_check(world, unit, job_desc_hash(&job), arena).guard == GUARD_OPEN;
}

int plan_submit(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                struct err *err)
{
    struct exclusion exclusion;
    struct job_desc job;
    struct err why = { .class = 0 };

    if (!unit->owner) {
        report_waiting(world, unit, plan, "OwnerUnknown", "%s has not been seen", unit->wanting);
        plan_look_again(plan, SOON_US);
        return 0;
    }
    if (!is_complete(world, unit, plan) || may_grow(world, unit, plan))
        return 0;
    if (describe(world, unit, true, false, plan->arena, &job, &why) < 0) {
        report_trouble(world, unit, plan, "Invalid", "%s", why.text);
        plan_look_again(plan, LOOK_FOR_CHANGE_US);
        return 0;
    }
    exclusion = exclusion_of(world, unit, job.partition, plan->arena);
    job.excluded_nodes = exclusion.nodes;
    if (!unit_has_nodes(world, unit, plan, &exclusion, &job))
        return 0; /* Slurm cannot say why */
    return submit_or_wait(world, unit, plan, &job, false);
}

/* ---- rebooking ---- */

const char *unit_nodes(const struct bridge_world *world, const struct unit *unit,
                       struct arena *arena)
{
    struct str *names = arena_alloc_array(arena, unit->member_count + 1, sizeof(*names));
    auto_buf struct buf list;
    struct err err = { .class = 0 };
    unsigned count = 0;

    buf_init(&list, HOSTLIST_MAX_TEXT);
    for (unsigned i = 0; i < unit->member_count; i++) {
        const struct kube_pod *pod = unit->members[i].pod;
        const struct kube_object *node = kube_cache_get(world->nodes, "", pod->node_name);
        struct str name = node ? str_of(world_record_name(world, kube_node_of(node))) : STR("");

        if (unit->members[i].stage == POD_BOUND && world_slurm_node(world, name))
            names[count++] = name;
    }
    if (count == 0 || hostlist_fold(names, count, &list, &err) < 0)
        return "";
    return arena_strdup(arena, buf_text(&list));
}

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

/* On these nodes and no others, before all others, several pods on one where they are. */
static void require_nodes(struct job_desc *job, const char *nodes, unsigned node_count,
                          unsigned per_node)
{
    job->required_nodes = nodes;
    job->priority = REBOOK_PRIORITY;
    if (node_count == 1 && per_node == 1)
        return;
    job->nodes = job->min_nodes = job->max_nodes = node_count;
    if (job->memory > 0 && job->tasks_per_node <= 1)
        job->memory *= per_node;
    if (job->tasks_per_node < per_node)
        job->tasks_per_node = per_node;
    if (job->tasks >= 0)
        job->tasks = node_count * job->tasks_per_node;
}

/* The pods use their nodes already, so the job names these nodes, and it is submitted even if the
 * owner with the annotations is gone. */
int plan_resubmit(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                  struct err *err)
{
    const struct kube_object *node = kube_cache_get(world->nodes, "", unit->pod->node_name);
    struct unit as_found = *unit;
    const char *nodes = unit_nodes(world, unit, plan->arena);
    struct job_desc job;
    struct err why = { .class = 0 };

    if (!node && !nodes[0]) {
        plan_wait(plan, "its node %s is not known", unit->pod->node_name);
        plan_look_again(plan, LOOK_FOR_CHANGE_US);
        return 0;
    }
    if (!nodes[0]) {
        report_trouble(world, unit, plan, "NotCovered", "it runs on %s, which Slurm does not have",
                       unit->pod->node_name);
        plan_look_again(plan, LOOK_FOR_NODE_US);
        return 0;
    }
    if (!as_found.owner)
        as_found.owner = &unit->pod->object;
    if (describe(world, &as_found, false, true, plan->arena, &job, &why) < 0) {
        report_trouble(world, unit, plan, "Invalid", "%s", why.text);
        plan_look_again(plan, LOOK_FOR_CHANGE_US);
        return 0;
    }
    job_desc_drop_waits(&job);
    require_nodes(&job, nodes, hosts_count(plan->arena, nodes), most_on_one(unit, plan->arena));
    return submit_or_wait(world, unit, plan, &job, true);
}
