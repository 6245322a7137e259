/* bind.c - puts pods on the nodes that Slurm gave to their job.
 *
 * Holds: the node is one of the running job's; the Binding carries the pod's UID; the pods of a
 * group are bound side by side, all that it needs or none; a node that will not do is given back to
 * Slurm, and not taken again. */
#include "bridge/bind.h"

#include "bridge/names.h"
#include "bridge/places.h"
#include "bridge/slurm_action.h"
#include "bridge/submit.h"
#include "bridge/submit_guard.h"
#include "bridge/tell.h"
#include "bridge/volumes.h"

#include <inttypes.h>

enum {
    LOOK_FOR_FIT_US = 5000000, /* nothing tells a unit that a node has changed */
    LOOK_IF_READY_US = 10000,
    LOOK_IF_FREE_US = 500000, /* nor that pods of others have left one */
    LOOK_IF_COVERED_US = 500000,
    MAX_LOOKS = 32,   /* the others at the next look */
    MANY_MISFITS = 3, /* after so many people should look */
    FORGETFUL_US = 600 * 1000000,
    MAX_BINDS = PLAN_MAX_ACTIONS / 2, /* by one plan: each has an event, too */
};

/* ---- a node that will not do ---- */

/* Slurm gives away only what is free, and shows a job that starts before those that it ended for
 * it. So a node may look full by old news: its other jobs are read since ours was. */
static bool look_at_those_there(const struct bridge_world *world, const struct unit *unit,
                                struct plan *plan, const char *slurm_name)
{
    const struct slurm_cache *jobs = world->slurm_jobs;
    int64_t since_us = slurm_cache_known_us(jobs, unit->job->object.key);
    struct slurm_index_walk walk = slurm_cache_by(jobs, SLURM_JOBS_BY_NODE, str_of(slurm_name));
    const struct slurm_object *other;
    unsigned count = 0;

    while (count < MAX_LOOKS && (other = slurm_index_next(&walk)) != NULL)
        if (slurm_cache_known_us(jobs, other->key) < since_us) {
            plan_slurm_look(plan, slurm_job_of(other));
            count++;
        }
    if (count == 0)
        return false;
    plan_wait(plan, "job %s runs; the other jobs on %s are being read", unit->job->object.key,
              slurm_name);
    plan_look_again(plan, LOOK_IF_FREE_US);
    return true;
}

/* The job ends, and the next one leaves out the nodes that did not do and still will not. A unit
 * whose jobs keep ending is asked for ever more slowly (submit_guard.c). */
static int give_back(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                     const char *slurm_name, const char *why)
{
    unsigned before = unit->state ? unit->state->misfit_count : 0;

    if (before < MANY_MISFITS)
        tell_waiting(world, unit, plan, "NodeMisfit",
                     "job %s was given a node that will not do: %s", unit->job->object.key, why);
    else
        tell_trouble(world, unit, plan, "NodeMisfit",
                     "job %s was given a node that will not do, as %u were before it: %s",
                     unit->job->object.key, before, why);
    plan_event(plan, &unit->pod->object, KUBE_EVENT_WARNING, "SlurmNodeMisfit",
               "job %s is given back: %s", unit->job->object.key, why);
    plan_slurm_give_back(plan, unit->job, slurm_name, why);
    return 0;
}

/* ---- binding ---- */

/* Where a Binding does not carry labels to the pod they go before it. */
static bool plan_label(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                       struct json_build *build, struct json_mut *metadata)
{
    const struct kube_object *pod = &unit->pod->object;
    struct json_mut *patch = json_new_object(build);

    if (unit->recorded_id == unit->job->id)
        return false;
    json_put_text(build, metadata, "uid", pod->uid);
    json_put(build, patch, "metadata", metadata);
    plan_merge_patch(plan, world->pods, &kube_pods, pod->ns, pod->name, NULL, NULL, patch);
    return true;
}

/* What a Binding was planned on. */
struct bind_basis {
    const struct bridge_world *world;
    const char *job, *sluid, *nodes;
};

static bool still_runs(const void *context)
{
    const struct bind_basis *basis = context;
    const struct slurm_object *object = slurm_cache_get(basis->world->slurm_jobs, basis->job);
    const struct slurm_job *job = object ? slurm_job_of(object) : NULL;

    return job && job_phase(job) == JOB_RUNS && str_is(str_of(job->sluid), basis->sluid) &&
           str_is(str_of(job->nodes), basis->nodes) &&
           !slurm_cache_is_behind(basis->world->slurm_jobs, basis->job);
}

/* One for all bindings of a plan: the list of nodes may be long. */
static const struct bind_basis *basis_of(const struct bridge_world *world,
                                         const struct slurm_job *job, struct plan *plan)
{
    struct bind_basis *basis = arena_alloc(plan->arena, sizeof(*basis));

    *basis = (struct bind_basis){ world, arena_strdup(plan->arena, job->object.key),
                                  arena_strdup(plan->arena, job->sluid),
                                  arena_strdup(plan->arena, job->nodes) };
    return basis;
}

/* Pods that lost their jobs may wait long for others to give back what they use. */
static bool may_be_forgetful(const struct bridge_world *world)
{
    const struct bridge_facts *facts = &world->facts;

    return facts->uncovered > 0 ||
           (facts->restarted_us && facts->now_us - facts->restarted_us < FORGETFUL_US);
}

static struct json_mut *binding_metadata(const struct unit *unit, struct json_build *build,
                                         const struct kube_node *node)
{
    struct json_mut *metadata = json_new_object(build);
    struct json_mut *annotations = json_put_object(build, metadata, "annotations");

    json_put_text(build, json_put_object(build, metadata, "labels"), BRIDGE_JOB_LABEL,
                  unit->job->object.key);
    json_put_text(build, annotations, BRIDGE_NODE_ANNOTATION, node->object.name);
    if (unit->kind == GROUP_NONE && group_of(unit->pod).kind != GROUP_NONE)
        json_put_text(build, annotations, BRIDGE_ALONE_ANNOTATION, "true");
    return metadata;
}

/* On what is known now: nothing is bound in a later stage of a plan, whose job may have ended.
 * False: its labels go first. */
static bool bind_to(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                    const struct kube_node *node, const struct bind_basis *basis)
{
    const struct kube_object *pod = &unit->pod->object;
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *metadata = binding_metadata(unit, build, node);
    struct action *action;

    if (!world->facts.bind_takes_metadata && plan_label(world, unit, plan, build, metadata)) {
        plan_look_again(plan, LOOK_IF_READY_US);
        return false;
    }
    if (!world->facts.bind_takes_metadata)
        metadata = NULL;
    action =
        plan_bind(plan, world->pods, pod->ns, pod->name, pod->uid, node->object.name, metadata);
    if (action) {
        action->basis = basis;
        action->still_holds = still_runs;
    }
    return true;
}

static void tell_bound(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                       const struct kube_node *node)
{
    const struct kube_object *pod = &unit->pod->object;

    tell_placed(world, unit, plan, unit->job, node->object.name);
    plan_event(plan, pod, KUBE_EVENT_NORMAL, "Scheduled",
               "Successfully assigned %s/%s to %s (job %s)", pod->ns, pod->name, node->object.name,
               unit->job->object.key);
}

/* All bindings are one stage, and so are under way together; of a very large group the rest is
 * bound by the next plan. */
static void bind_all(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                     const struct deals *deals)
{
    const struct bind_basis *basis = basis_of(world, unit->job, plan);
    unsigned count = deals->count < MAX_BINDS ? deals->count : MAX_BINDS;
    bool all = true;

    for (unsigned i = 0; i < count; i++) {
        struct unit one = unit_focus(unit, deals->at[i].member);

        all &= bind_to(world, &one, plan, deals->at[i].node, basis);
    }
    if (count < deals->count)
        plan_look_again(plan, 1);
    if (!all)
        return;
    plan_next_stage(plan);
    for (unsigned i = 0; i < count; i++) {
        struct unit one = unit_focus(unit, deals->at[i].member);

        tell_bound(world, &one, plan, deals->at[i].node);
    }
}

/* ---- which nodes ---- */

/* Members that the job has no place for are told by plans of their own (place.c). */
static int deal(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                struct deals *ret_deals, struct err *err)
{
    struct job_desc desc;
    struct err why = { .class = 0 };

    if (unit->kind == GROUP_NONE || !unit->root ||
        unit_describe(world, unit, plan->arena, &desc, &why) < 0) {
        job_desc_init(&desc);
        desc.exclusive = false; /* nobody says that its nodes are its own */
    }
    return places_deal(world, unit, &desc, plan->arena, ret_deals, err);
}

static int read_places(const struct unit *unit, struct plan *plan)
{
    plan_slurm_look(plan, unit->job);
    plan_wait(plan, "what job %s has on its nodes is being read", unit->job->object.key);
    plan_look_again(plan, LOOK_FOR_FIT_US);
    return 0;
}

static const char *uncovered_on(const struct bridge_world *world, const struct deals *deals)
{
    for (unsigned i = 0; may_be_forgetful(world) && i < deals->count; i++)
        if (world_has_uncovered(world, deals->at[i].node->object.name))
            return world_record_name(world, deals->at[i].node);
    return NULL;
}

/* Not from under those of its own that are still ending. */
static int give_forgotten_back(const struct bridge_world *world, const struct unit *unit,
                               struct plan *plan, const char *slurm_name)
{
    if (unit->in[POD_ENDING] == 0)
        return give_back(world, unit, plan, slurm_name,
                         "a pod whose job Slurm has forgotten runs there");
    plan_wait(plan, "a pod whose job Slurm has forgotten runs on %s", slurm_name);
    plan_look_again(plan, LOOK_IF_FREE_US);
    return 0;
}

/* Members of a group that the running job has no place for, now or soon (places_lack_for). */
static void enqueue_left_over(const struct unit *unit, struct plan *plan, const struct deals *deals)
{
    bool *is_dealt = arena_alloc_array(plan->arena, unit->member_count + 1, sizeof(*is_dealt));

    if (unit->kind == GROUP_NONE || deals->left == 0 || deals->will_be_freed ||
        (unit->in[POD_BOUND] == 0 && deals->count < (uint64_t)unit->needed))
        return;
    for (unsigned i = 0; i < deals->count; i++)
        is_dealt[deals->at[i].member] = true;
    for (unsigned i = 0; i < unit->member_count; i++)
        if (unit->members[i].stage == POD_WAITS && !is_dealt[i])
            plan_enqueue_member(plan, &unit->members[i]);
}

static bool is_enough(const struct unit *unit, const struct deals *deals)
{
    return unit->in[POD_BOUND] > 0 || deals->count >= (uint64_t)unit->needed || deals->left == 0;
}

/* Of a group that is placed already nothing is given back. */
static int place_rest_later(const struct bridge_world *world, const struct unit *unit,
                            struct plan *plan, const struct deals *deals)
{
    bool is_placed = unit->in[POD_BOUND] > 0 || unit->in[POD_ENDING] > 0;

    if (deals->misfit && !is_placed && !deals->is_among_own &&
        look_at_those_there(world, unit, plan, deals->misfit))
        return 0;
    if (deals->misfit && !is_placed)
        return give_back(world, unit, plan, deals->misfit, deals->why);
    if (deals->will_be_freed) {
        tell_waiting(world, unit, plan, "PlaceNotFree",
                     "job %s runs; its place is free when the pods there are gone",
                     unit->job->object.key);
        plan_look_again(plan, LOOK_IF_FREE_US);
        return 0;
    }
    if (!is_placed && !is_enough(unit, deals)) { /* it was asked for others */
        tell_waiting(world, unit, plan, "TooFewPlaces",
                     "job %s has no place for %u of its pods: it is given back",
                     unit->job->object.key, deals->left);
        plan_slurm_cancel(plan, unit->job, NULL, "it has too few places for its pods");
        return 0;
    }
    plan_wait(plan, "job %s has no place for %u of its pods", unit->job->object.key, deals->left);
    plan_look_again(plan, LOOK_FOR_FIT_US);
    return 0;
}

static int place_waiting(const struct bridge_world *world, const struct unit *unit,
                         struct plan *plan, bool is_prepared, struct err *err)
{
    struct deals deals;
    const char *forgotten;

    if (!unit->job->nodes[0]) {
        plan_slurm_look(plan, unit->job); /* its state was seen, its nodes not yet */
        plan_wait(plan, "the nodes of job %s are being read", unit->job->object.key);
        plan_look_again(plan, LOOK_FOR_FIT_US);
        return 0;
    }
    if (unit->in[POD_BOUND] + unit->in[POD_ENDING] > 0 && !places_are_known(unit->job))
        return read_places(unit, plan); /* others than those it was asked for may join it */
    if (deal(world, unit, plan, &deals, err) < 0)
        return -err->class;
    if (deals.is_guess) /* it may have been asked for fewer, before more of them came */
        return read_places(unit, plan);
    enqueue_left_over(unit, plan, &deals);
    if (deals.count == 0 || !is_enough(unit, &deals))
        return place_rest_later(world, unit, plan, &deals);
    if (rebooking_comes_first(world)) {
        plan_wait(plan, "pods that may have lost their jobs come first");
        plan_look_again(plan, LOOK_IF_COVERED_US);
        return 0;
    }
    if ((forgotten = uncovered_on(world, &deals)) != NULL && unit->in[POD_BOUND] == 0)
        return give_forgotten_back(world, unit, plan, forgotten);
    if (!is_prepared) {
        plan_wait(plan, "it is being prepared to be bound");
        plan_look_again(plan, LOOK_IF_READY_US);
        return 0;
    }
    if (plan_volumes(world, unit, plan, &deals))
        return 0;
    bind_all(world, unit, plan, &deals);
    return 0;
}

int plan_place(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
               bool is_prepared, struct err *err)
{
    struct unit those = unit_in(unit, POD_WAITS);

    return place_waiting(world, &those, plan, is_prepared, err);
}
