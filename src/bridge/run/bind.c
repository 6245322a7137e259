/* bind.c - binds pods to the nodes that Slurm gave to their job.
 *
 * Holds: the node belongs to the running job; the Binding carries the pod's UID; the pods of a
 * group are bound together, as many as the group needs or none; a node that does not fit is given
 * back to Slurm, and the next job excludes it. */
#include "bridge/run/bind.h"

#include "bridge/slurm/slurm_action.h"
#include "bridge/unit/conditions.h"
#include "bridge/unit/describe.h"
#include "bridge/world/names.h"

enum {
    SECOND_US = 1000000,
    MAX_LOOKS = 32, /* the others at the next look */
    FORGETFUL_US = 600 * 1000000,
    MAX_BINDS = PLAN_MAX_ACTIONS / 2, /* by one plan: each has an event, too */
};

bool job_has_run_for(const struct bridge_world *world, const struct slurm_job *job, int64_t seconds)
{
    const struct bridge_facts *facts = &world->facts;

    return allocation_is_known(job) &&
           (facts->wall_us + facts->slurm_skew_us) / SECOND_US - job->start_time >= seconds;
}

/* The whole record is read when the pods are old enough: no job is older than its pods. */
void plan_read_start(const struct bridge_world *world, const struct unit *unit, int64_t seconds,
                     struct plan *plan)
{
    const struct bridge_facts *facts = &world->facts;

    if (!allocation_is_known(unit->job) &&
        facts->wall_us - unit->created_us >= seconds * SECOND_US &&
        facts->now_us - slurm_cache_known_us(world->slurm_jobs, unit->job->object.key) >= SECOND_US)
        plan_slurm_look(plan, unit->job);
}

/* ---- a node that does not fit ---- */

/* Slurm gives only free resources to a job, and shows the job before the jobs that it ended for it.
 * So a node may look full because the cache is old: its other jobs are read again first. */
static unsigned find_stale(const struct bridge_world *world, const struct unit *unit,
                           const char *slurm_name, const struct slurm_job *ret_jobs[MAX_LOOKS])
{
    const struct slurm_cache *jobs = world->slurm_jobs;
    int64_t since_us = slurm_cache_known_us(jobs, unit->job->object.key);
    struct slurm_index_walk walk = slurm_cache_by(jobs, SLURM_JOBS_BY_NODE, str_of(slurm_name));
    const struct slurm_object *other;
    unsigned count = 0;

    while (count < MAX_LOOKS && (other = slurm_index_next(&walk)) != NULL)
        if (slurm_cache_known_us(jobs, other->key) < since_us)
            ret_jobs[count++] = slurm_job_of(other);
    return count;
}

bool node_has_stale_jobs(const struct bridge_world *world, const struct unit *unit,
                         const char *slurm_name)
{
    const struct slurm_job *jobs[MAX_LOOKS];

    return find_stale(world, unit, slurm_name, jobs) > 0;
}

void plan_read_stale_jobs(const struct bridge_world *world, const struct unit *unit,
                          const char *slurm_name, struct plan *plan)
{
    const struct slurm_job *jobs[MAX_LOOKS];
    unsigned count = find_stale(world, unit, slurm_name, jobs);

    for (unsigned i = 0; i < count; i++)
        plan_slurm_look(plan, jobs[i]);
}

/* ---- binding ---- */

/* Before Kubernetes 1.35 a Binding does not carry labels to the pod: a patch writes them first. The
 * label alone may be there since the pod waits. */
static bool plan_label(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                       struct json_build *build, struct json_mut *metadata, const char *node)
{
    const struct kube_object *pod = &unit->pod->object;
    struct json_mut *patch = json_new_object(build);
    bool found;

    if (unit->jobs.recorded_id == unit->job->id &&
        str_is(kube_pairs_get(&pod->annotations, BRIDGE_NODE_ANNOTATION, &found), node))
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

    if (!world->facts.bind_takes_metadata &&
        plan_label(world, unit, plan, build, metadata, node->object.name))
        return false; /* the change of the pod brings the unit back */
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

    plan_placed(world, unit->pod, plan, unit->job, node->object.name);
    plan_event(plan, pod, KUBE_EVENT_NORMAL, "Scheduled",
               "Successfully assigned %s/%s to %s (job %s)%s", pod->ns, pod->name,
               node->object.name, unit->job->object.key,
               lacks_cpu_claim(world->config, unit->pod)
                   ? "; it is not pinned to cores, because it was made without the bridge's webhook"
                   : "");
}

/* All bindings are one stage, and so are under way together; of a very large group the rest is
 * bound by the next plan. */
void plan_bind_all(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
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

/* Members for which the job has no slot report that by plans of their own. */
int assign_waiting(const struct bridge_world *world, const struct unit *unit, struct arena *arena,
                   struct assignments *ret_assigned, struct err *err)
{
    struct job_desc desc;
    struct err why = { .class = 0 };

    if (unit->kind == GROUP_NONE || !unit->owner.object ||
        unit_describe(world, unit, DESCRIBE_BOTH, arena, &desc, &why) < 0) {
        job_desc_init(&desc);
        desc.exclusive = false; /* nothing says that the job has whole nodes */
    }
    return assign_nodes(world, unit, &desc, arena, ret_assigned, err);
}

/* Such pods may wait long for their new jobs, until other jobs give back the resources. */
const char *node_with_forgotten_pod(const struct bridge_world *world,
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

struct unit plan_left_over(const struct unit *unit, struct plan *plan,
                           const struct assignments *assigned)
{
    struct unit rest = *unit;
    bool *is_assigned;
    struct member *members;

    if (unit->kind == GROUP_NONE || assigned->left == 0 || assigned->will_be_freed ||
        (unit->in[POD_BOUND] == 0 && assigned->count < (uint64_t)unit->owner.needed))
        return rest;
    is_assigned = arena_alloc_array(plan->arena, unit->member_count + 1, sizeof(*is_assigned));
    rest.members = members =
        arena_alloc_array(plan->arena, unit->member_count + 1, sizeof(*members));
    rest.member_count = 0;
    for (unsigned i = 0; i < assigned->count; i++)
        is_assigned[assigned->at[i].member] = true;
    for (unsigned i = 0; i < unit->member_count; i++)
        if (unit->members[i].stage == POD_WAITS && !is_assigned[i])
            plan_enqueue_member(plan, &unit->members[i]);
        else
            members[rest.member_count++] = unit->members[i];
    return rest;
}

bool assigned_is_enough(const struct unit *unit, const struct assignments *assigned)
{
    return unit->in[POD_BOUND] > 0 || assigned->count >= (uint64_t)unit->owner.needed ||
           assigned->left == 0;
}
