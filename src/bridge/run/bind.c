/* bind.c - binds pods to the nodes that Slurm gave to their job.
 *
 * Holds: the node belongs to the running job; the Binding carries the pod's UID; the pods of a
 * group are bound together, as many as the group needs or none; a node that does not fit is given
 * back to Slurm, and the next job excludes it. */
#include "bridge/run/bind.h"

#include "bridge/place.h"
#include "bridge/report.h"
#include "bridge/run/assign.h"
#include "bridge/run/device_claims.h"
#include "bridge/slurm/slurm_action.h"
#include "bridge/submit/submit.h"
#include "bridge/submit/submit_guard.h"
#include "bridge/world/names.h"

#include <inttypes.h>

enum {
    SECOND_US = 1000000,
    LOOK_FOR_FIT_US = 5000000, /* nothing tells a unit that a node has changed */
    LOOK_IF_READY_US = 10000,
    LOOK_IF_FREE_US = 500000, /* nor that pods of others have left one */
    LOOK_IF_REBOOKED_US = 500000,
    MAX_LOOKS = 32,   /* the others at the next look */
    MANY_MISFITS = 3, /* after so many people should look */
    FORGETFUL_US = 600 * 1000000,
    MAX_BINDS = PLAN_MAX_ACTIONS / 2, /* by one plan: each has an event, too */
};

/* Often only the nodes of a job were read when it started. Its start is then none, or the one that
 * Slurm expected. The whole record is read when the pods are old enough: no job is older. */
bool job_ran_for(const struct bridge_world *world, const struct unit *unit, int64_t seconds,
                 struct plan *plan)
{
    const struct bridge_facts *facts = &world->facts;
    const struct slurm_job *job = unit->job;

    if (allocation_is_known(job))
        return (facts->wall_us + facts->slurm_skew_us) / SECOND_US - job->start_time >= seconds;
    if (facts->wall_us - unit->created_us >= seconds * SECOND_US &&
        facts->now_us - slurm_cache_known_us(world->slurm_jobs, job->object.key) >= SECOND_US)
        plan_slurm_look(plan, job);
    return false;
}

/* ---- a node that does not fit ---- */

/* Slurm gives only free resources to a job, and shows the job before the jobs that it ended for it.
 * So a node may look full because the cache is old: its other jobs are read again first. */
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

/* The job is cancelled, and the next one excludes the nodes that did not fit and still do not. A
 * unit whose jobs keep ending is submitted ever more slowly (submit_guard.c). */
static int give_back(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                     const char *slurm_name, const char *why)
{
    unsigned before = unit->state ? unit->state->misfit_count : 0;

    if (before < MANY_MISFITS)
        report_waiting(world, unit, plan, "NodeMisfit",
                       "job %s was given a node that will not do: %s", unit->job->object.key, why);
    else
        report_trouble(world, unit, plan, "NodeMisfit",
                       "job %s was given a node that will not do, as %u were before it: %s",
                       unit->job->object.key, before, why);
    plan_event(plan, &unit->pod->object, KUBE_EVENT_WARNING, "SlurmNodeMisfit",
               "job %s is given back: %s", unit->job->object.key, why);
    plan_slurm_give_back(plan, unit->job, slurm_name, why);
    return 0;
}

/* ---- binding ---- */

/* Before Kubernetes 1.35 a Binding does not carry labels to the pod: a patch writes them first. */
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

/* Bindings are never in a later stage of a plan, because the job may have ended by then. False: the
 * labels are written first. */
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

/* The webhook was away when the pod was made. */
static bool lacks_cpu_claim(const struct bridge_config *config, const struct kube_pod *pod)
{
    bool says;
    struct str exclusive =
        kube_pairs_get(&pod->object.annotations, BRIDGE_ANNOTATION_PREFIX "exclusive", &says);

    return bridge_config_pins(config, says, exclusive) && !device_needs_cores(pod);
}

static void report_bound(const struct bridge_world *world, const struct unit *unit,
                         struct plan *plan, const struct kube_node *node)
{
    const struct kube_object *pod = &unit->pod->object;

    report_placed(world, unit, plan, unit->job, node->object.name);
    plan_event(plan, pod, KUBE_EVENT_NORMAL, "Scheduled",
               "Successfully assigned %s/%s to %s (job %s)%s", pod->ns, pod->name,
               node->object.name, unit->job->object.key,
               lacks_cpu_claim(world->config, unit->pod)
                   ? "; it is not pinned to cores, because it was made without the bridge's webhook"
                   : "");
}

/* All bindings are one stage, and so are under way together; of a very large group the rest is
 * bound by the next plan. */
static void bind_all(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                     const struct assignments *assigned)
{
    const struct bind_basis *basis = basis_of(world, unit->job, plan);
    unsigned count = assigned->count < MAX_BINDS ? assigned->count : MAX_BINDS;
    bool all = true;

    for (unsigned i = 0; i < count; i++) {
        struct unit one = unit_focus(unit, assigned->at[i].member);

        all &= bind_to(world, &one, plan, assigned->at[i].node, basis);
    }
    if (count < assigned->count)
        plan_look_again(plan, 1);
    if (!all)
        return;
    plan_next_stage(plan);
    for (unsigned i = 0; i < count; i++) {
        struct unit one = unit_focus(unit, assigned->at[i].member);

        report_bound(world, &one, plan, assigned->at[i].node);
    }
}

/* ---- which nodes ---- */

/* Members for which the job has no slot report that by plans of their own (place.c). */
static int assign(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                  struct assignments *ret_assigned, struct err *err)
{
    struct job_desc desc;
    struct err why = { .class = 0 };

    if (unit->kind == GROUP_NONE || !unit->owner ||
        unit_describe(world, unit, plan->arena, &desc, &why) < 0) {
        job_desc_init(&desc);
        desc.exclusive = false; /* nothing says that the job has whole nodes */
    }
    return assign_nodes(world, unit, &desc, plan->arena, ret_assigned, err);
}

static int read_places(const struct unit *unit, struct plan *plan)
{
    plan_slurm_look(plan, unit->job);
    plan_wait(plan, "what job %s has on its nodes is being read", unit->job->object.key);
    plan_look_again(plan, LOOK_FOR_FIT_US);
    return 0;
}

/* A node with a pod whose job Slurm has forgotten; NULL: there is none. Such pods may wait long for
 * their new jobs, until other jobs give back the resources. */
static const char *pod_without_job_on(const struct bridge_world *world,
                                      const struct assignments *assigned)
{
    const struct bridge_facts *facts = &world->facts;
    bool may_be = facts->rebooking > 0 ||
                  (facts->restarted_us && facts->now_us - facts->restarted_us < FORGETFUL_US);

    for (unsigned i = 0; may_be && i < assigned->count; i++)
        if (world_has_pod_without_job(world, assigned->at[i].node->object.name))
            return world_record_name(world, assigned->at[i].node);
    return NULL;
}

/* The job is not given back while pods of the unit are still ending on it. */
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

/* Members of a group that the running job has no place for, now or soon (assign_lacks_slot_for). */
static void enqueue_left_over(const struct unit *unit, struct plan *plan,
                              const struct assignments *assigned)
{
    bool *is_assigned =
        arena_alloc_array(plan->arena, unit->member_count + 1, sizeof(*is_assigned));

    if (unit->kind == GROUP_NONE || assigned->left == 0 || assigned->will_be_freed ||
        (unit->in[POD_BOUND] == 0 && assigned->count < (uint64_t)unit->needed))
        return;
    for (unsigned i = 0; i < assigned->count; i++)
        is_assigned[assigned->at[i].member] = true;
    for (unsigned i = 0; i < unit->member_count; i++)
        if (unit->members[i].stage == POD_WAITS && !is_assigned[i])
            plan_enqueue_member(plan, &unit->members[i]);
}

static bool is_enough(const struct unit *unit, const struct assignments *assigned)
{
    return unit->in[POD_BOUND] > 0 || assigned->count >= (uint64_t)unit->needed ||
           assigned->left == 0;
}

/* The job of a group that has bound pods is never given back. */
static int place_rest_later(const struct bridge_world *world, const struct unit *unit,
                            struct plan *plan, const struct assignments *assigned)
{
    bool is_placed = unit->in[POD_BOUND] > 0 || unit->in[POD_ENDING] > 0;

    if (assigned->misfit && !is_placed && !assigned->is_among_own &&
        look_at_those_there(world, unit, plan, assigned->misfit))
        return 0;
    if (assigned->misfit && !is_placed)
        return give_back(world, unit, plan, assigned->misfit, assigned->why);
    if (assigned->will_be_freed) {
        report_waiting(world, unit, plan, "PlaceNotFree",
                       "job %s runs; its place is free when the pods there are gone",
                       unit->job->object.key);
        plan_look_again(plan, LOOK_IF_FREE_US);
        return 0;
    }
    if (!is_placed && !is_enough(unit, assigned)) { /* it was submitted for others */
        report_waiting(world, unit, plan, "TooFewPlaces",
                       "job %s has no place for %u of its pods: it is given back",
                       unit->job->object.key, assigned->left);
        plan_slurm_cancel(plan, unit->job, NULL, "it has too few places for its pods");
        return 0;
    }
    plan_wait(plan, "job %s has no place for %u of its pods", unit->job->object.key,
              assigned->left);
    plan_look_again(plan, LOOK_FOR_FIT_US);
    return 0;
}

int plan_place(const struct bridge_world *world, const struct unit *whole, struct plan *plan,
               bool is_prepared, struct err *err)
{
    const struct unit waiting = unit_in(whole, POD_WAITS), *unit = &waiting;
    struct claims_misfit misfit;
    struct assignments assigned;
    const char *forgotten;

    if (!unit->job->nodes[0]) {
        plan_slurm_look(plan, unit->job); /* its state was seen, its nodes not yet */
        plan_wait(plan, "the nodes of job %s are being read", unit->job->object.key);
        plan_look_again(plan, LOOK_FOR_FIT_US);
        return 0;
    }
    if (unit->in[POD_BOUND] + unit->in[POD_ENDING] > 0 && !allocation_is_known(unit->job))
        return read_places(unit, plan); /* pods that came after the submit may join it */
    if (assign(world, unit, plan, &assigned, err) < 0)
        return -err->class;
    if (assigned.is_guess) /* it may have been submitted for fewer pods */
        return read_places(unit, plan);
    enqueue_left_over(unit, plan, &assigned);
    if (assigned.count == 0 || !is_enough(unit, &assigned))
        return place_rest_later(world, unit, plan, &assigned);
    if (rebooking_comes_first(world)) {
        plan_wait(plan, "pods that may have lost their jobs come first");
        plan_look_again(plan, LOOK_IF_REBOOKED_US);
        return 0;
    }
    if ((forgotten = pod_without_job_on(world, &assigned)) != NULL && unit->in[POD_BOUND] == 0)
        return give_forgotten_back(world, unit, plan, forgotten);
    if (!is_prepared) {
        plan_wait(plan, "it is being prepared to be bound");
        plan_look_again(plan, LOOK_IF_READY_US);
        return 0;
    }
    if (plan_volumes(world, unit, plan, &assigned))
        return 0;
    switch (plan_claims(world, unit, plan, &assigned, &misfit)) {
    case CLAIMS_WAIT:
        return 0;
    case CLAIMS_MISFIT:
        return give_back(world, unit, plan, misfit.node, misfit.why);
    case CLAIMS_READY:
        break;
    }
    bind_all(world, unit, plan, &assigned);
    return 0;
}
