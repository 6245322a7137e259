/* device_claims.c - claims for devices and cores, written before a pod is bound.
 *
 * claims_look finds out what is missing and changes nothing; plan_claims writes it. One plan
 * creates the claim, allocates it and tells the pod its name; the next one binds the pod.
 * Kubernetes frees a claim when its pod is over or deleted; what was allocated for a job that is
 * gone is freed here, and our own claim of a pod that waits is deleted.
 *
 * Holds: a claim is allocated only on the node and with the devices of the running job; a device
 * that another claim has is waited for; no job is cancelled while pods of its unit may run; a claim
 * of others is never changed but for its allocation and finalizer. */
#include "bridge/run/device_claims.h"

#include "bridge/world/names.h"
#include "codec/json_format.h"
#include "device/claim_json.h"
#include "device/names.h"
#include "slurm/job_layouts.h"

struct pod_work { /* one pod that is assigned */
    const struct kube_pod *pod;
    const struct kube_node *node;
    struct pod_claims claims;
    struct choice *choices; /* of each claim that is to be allocated; devices NULL: it is */
};

struct claiming {
    const struct bridge_world *world;
    const struct unit *unit;
    struct arena *arena;
    struct plan *plan; /* NULL while looking */
    const struct assignments *assigned;
    const struct slurm_layout *layout;
    struct chooser chooser;
    struct kube_cache *claims;
    struct pod_work *works;
    unsigned count;
    unsigned writes;                   /* claims or pods that are not as they must be */
    const struct kube_object *to_free; /* a claim of another job; NULL */
    struct claims found;               /* READY until something else is found */
};

/* ---- writes ---- */

static void create_claim(struct claiming *claiming, const struct pod_work *work,
                         const struct pod_claim *claim)
{
    auto_json_build struct json_build *build = json_build_new();

    (void)plan_create(claiming->plan, claiming->claims, &device_resource_claims,
                      work->pod->object.ns, claim_json(build, claim, work->pod));
}

/* Without it Kubernetes would not clear the allocation when the pod is over. */
static void add_finalizer(struct claiming *claiming, const struct kube_object *claim)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *patch = json_new_object(build);
    struct json_mut *list =
        json_put_array(build, json_put_object(build, patch, "metadata"), "finalizers");

    for (unsigned i = 0; i < claim->finalizer_count; i++)
        json_push_str(build, list, claim->finalizers[i]);
    json_push_str(build, list, STR(DEVICE_CLAIM_FINALIZER));
    (void)plan_merge_patch(claiming->plan, claiming->claims, &device_resource_claims, claim->ns,
                           claim->name, NULL, claim->version, patch);
}

static void allocate(struct claiming *claiming, const struct pod_work *work,
                     const struct pod_claim *claim, const struct choice *choice)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *patch = json_new_object(build);

    if (claim->found && claim->found->object.uid[0])
        json_put_text(build, json_put_object(build, patch, "metadata"), "uid",
                      claim->found->object.uid);
    json_put(build, patch, "status",
             claim_status_json(build, &(struct claim_status){
                                          .view = &claiming->chooser.view,
                                          .claim = claim,
                                          .choice = choice,
                                          .pod = work->pod,
                                          .node = work->node,
                                          .job = claiming->unit->job->object.key,
                                          .wall_us = claiming->world->facts.wall_us,
                                      }));
    (void)plan_merge_patch(claiming->plan, claiming->claims, &device_resource_claims,
                           work->pod->object.ns, claim->name, "status", NULL, patch);
}

static bool is_told(const struct pod_work *work)
{
    return strcmp(work->pod->extended_claim, pod_claims_extended(&work->claims)) == 0;
}

/* The kubelet finds the claim by this, and reads it when it is told of the pod. What was said for a
 * job on another node is taken back. */
static void tell_pod(struct claiming *claiming, const struct pod_work *work)
{
    auto_json_build struct json_build *build = json_build_new();
    const struct kube_object *pod = &work->pod->object;

    (void)plan_merge_patch(claiming->plan, claiming->world->pods, &kube_pods, pod->ns, pod->name,
                           "status", NULL,
                           json_format(build,
                                       "{'metadata':{'uid':%s},'status':{"
                                       "'extendedResourceClaimStatus':%m}}",
                                       pod->uid, extended_claim_json(build, &work->claims)));
}

static void free_claim(const struct bridge_world *world, struct plan *plan,
                       const struct kube_object *claim)
{
    auto_json_build struct json_build *build = json_build_new();

    (void)plan_merge_patch(plan, world->optional[OPTIONAL_CLAIMS].cache, &device_resource_claims,
                           claim->ns, claim->name, "status", claim->version,
                           json_format(build,
                                       "{'metadata':{'uid':%s},'status':{'allocation':null,"
                                       "'reservedFor':null}}",
                                       claim->uid));
}

/* ---- what is to be done for one claim ---- */

/* With those that are over: pods that take their places are left their cores. */
static unsigned sharers_of(const struct claiming *claiming, const struct kube_node *node)
{
    unsigned count = 0;

    for (unsigned i = 0; i < claiming->assigned->count; i++)
        count += claiming->assigned->at[i].node == node &&
                 !claiming->unit->members[claiming->assigned->at[i].member].pod->node_name[0];
    for (unsigned i = 0; i < claiming->unit->member_count; i++)
        count += strcmp(claiming->unit->members[i].pod->node_name, node->object.name) == 0;
    return count;
}

static struct job_node job_node_of(const struct claiming *claiming, const struct kube_node *node)
{
    const char *name = world_record_name(claiming->world, node);
    struct job_node found = { node, world_slurm_node(claiming->world, str_of(name)), NULL };

    for (size_t i = 0; !found.given && i < claiming->layout->count; i++)
        if (strcmp(claiming->layout->nodes[i].name, name) == 0)
            found.given = &claiming->layout->nodes[i];
    return found;
}

static void stop(struct claiming *claiming, enum claims_state state, const char *why)
{
    claiming->found.state = state;
    claiming->found.why = why;
}

static const char *about(const struct claiming *claiming, const struct pod_claim *claim,
                         const char *what)
{
    return arena_printf(claiming->arena, "resourceclaim \"%s\" %s", claim->name, what);
}

/* A claim whose node or devices are not those of the job is freed, unless its pod is bound, and
 * allocated by the next plan. */
static void look_at_claim(struct claiming *claiming, const struct pod_work *work, unsigned at)
{
    const struct pod_claim *claim = &work->claims.at[at];
    const struct kube_resource_claim *found = claim->found;
    struct job_node where;
    enum choose_state state;
    const char *why = "";

    if (found && claim->kind != POD_CLAIM_USER &&
        strcmp(found->object.owner.uid, work->pod->object.uid) != 0) {
        stop(claiming, CLAIMS_REFUSED, about(claiming, claim, "belongs to another pod"));
        return;
    }
    if (found && found->object.deleted_us) {
        stop(claiming, CLAIMS_WAIT, about(claiming, claim, "is being deleted"));
        return;
    }
    if (found && found->is_allocated && work->pod->node_name[0])
        return;
    where = job_node_of(claiming, work->node);
    if (found && found->is_allocated) {
        if (choose_agrees(&claiming->chooser, &where, claim))
            return;
        claiming->to_free = &found->object;
        stop(claiming, CLAIMS_WAIT, about(claiming, claim, "is freed: it is of another job"));
        return;
    }
    state = choose_devices(&claiming->chooser, work->pod, &where, claim,
                           sharers_of(claiming, work->node), &work->choices[at], &why);
    if (state == CHOOSE_DONE) {
        claiming->writes++;
        return;
    }
    claiming->found.node = world_record_name(claiming->world, work->node);
    stop(claiming, state == CHOOSE_HELD ? CLAIMS_HELD : CLAIMS_MISFIT, why);
}

static bool is_stuck(const struct claiming *claiming)
{
    return claiming->found.state != CLAIMS_READY;
}

static void look_at_pod(struct claiming *claiming, struct pod_work *work)
{
    struct err err = { .class = 0 };
    int rc = pod_claims_of(&claiming->chooser.view, work->pod, work->node, claiming->arena,
                           &work->claims, &err);

    if (rc < 0) {
        stop(claiming, rc == -ERR_NOT_FOUND ? CLAIMS_WAIT : CLAIMS_REFUSED,
             arena_strdup(claiming->arena, err.text));
        return;
    }
    work->choices =
        arena_alloc_array(claiming->arena, work->claims.count + 1, sizeof(*work->choices));
    for (unsigned i = 0; i < work->claims.count && !is_stuck(claiming); i++)
        look_at_claim(claiming, work, i);
    claiming->writes += !is_told(work);
}

/* ---- the plan ---- */

static void write_first(struct claiming *claiming, const struct pod_work *work)
{
    for (unsigned i = 0; i < work->claims.count; i++) {
        const struct pod_claim *claim = &work->claims.at[i];

        if (!claim->found)
            create_claim(claiming, work, claim);
        else if (!kube_object_has_finalizer(&claim->found->object, DEVICE_CLAIM_FINALIZER))
            add_finalizer(claiming, &claim->found->object);
    }
}

static void write_rest(struct claiming *claiming, const struct pod_work *work)
{
    for (unsigned i = 0; i < work->claims.count; i++) {
        const struct pod_claim *claim = &work->claims.at[i];

        if (work->choices[i].devices)
            allocate(claiming, work, claim, &work->choices[i]);
    }
    if (!is_told(work))
        tell_pod(claiming, work);
}

static bool wants_claims(const struct kube_pod *pod)
{
    return pod->rare && (pod->rare->claim_count > 0 || pod->rare->device_ask_count > 0);
}

/* Few pods want any. */
static void find_works(struct claiming *claiming)
{
    const struct assignments *assigned = claiming->assigned;

    claiming->works =
        arena_alloc_array(claiming->arena, assigned->count + 1, sizeof(*claiming->works));
    for (unsigned i = 0; i < assigned->count; i++) {
        const struct kube_pod *pod = claiming->unit->members[assigned->at[i].member].pod;

        if (wants_claims(pod))
            claiming->works[claiming->count++] =
                (struct pod_work){ .pod = pod, .node = assigned->at[i].node };
    }
}

/* Kubernetes is about to free the claim of a pod that is over: such a claim is waited for, as those
 * of others are. */
static struct chooser chooser_of(const struct claiming *claiming)
{
    const struct unit *unit = claiming->unit;
    const struct kube_pod **pods =
        arena_alloc_array(claiming->arena, unit->member_count, sizeof(const struct kube_pod *));
    unsigned count = 0;

    for (unsigned i = 0; i < unit->member_count; i++)
        if (unit->members[i].stage != POD_OVER)
            pods[count++] = unit->members[i].pod;
    return (struct chooser){ .view = world_device_view(claiming->world),
                             .pods = pods,
                             .pod_count = count,
                             .arena = claiming->arena };
}

struct claims claims_look(const struct bridge_world *world, const struct unit *unit,
                          const struct assignments *assigned, struct arena *arena)
{
    struct claiming *claiming = arena_alloc(arena, sizeof(*claiming));

    *claiming = (struct claiming){ .world = world,
                                   .unit = unit,
                                   .arena = arena,
                                   .assigned = assigned,
                                   .claims = world->optional[OPTIONAL_CLAIMS].cache };
    find_works(claiming);
    if (claiming->count == 0)
        return claiming->found;
    claiming->layout = job_layouts_get(world->layouts, unit->job);
    if (!claiming->layout)
        return (struct claims){ .state = CLAIMS_UNREAD };
    claiming->chooser = chooser_of(claiming);
    for (unsigned i = 0; i < claiming->count && !is_stuck(claiming); i++)
        look_at_pod(claiming, &claiming->works[i]);
    if (!is_stuck(claiming) && claiming->writes > 0)
        claiming->found.state = CLAIMS_UNWRITTEN;
    claiming->found.claiming = claiming;
    return claiming->found;
}

void plan_claims(struct plan *plan, const struct claims *claims)
{
    struct claiming claiming = *claims->claiming;

    claiming.plan = plan;
    if (claiming.to_free)
        free_claim(claiming.world, plan, claiming.to_free);
    if (claims->state != CLAIMS_UNWRITTEN)
        return;
    for (unsigned i = 0; i < claiming.count; i++)
        write_first(&claiming, &claiming.works[i]);
    plan_next_stage(plan);
    for (unsigned i = 0; i < claiming.count; i++)
        write_rest(&claiming, &claiming.works[i]);
}

/* ---- of pods that are bound ---- */

static bool has_lost_allocation(const struct bridge_world *world, const struct kube_pod *pod,
                                const struct kube_node *node, struct arena *arena)
{
    struct device_view view = world_device_view(world);
    struct pod_claims claims;

    if (!wants_claims(pod) || pod_claims_of(&view, pod, node, arena, &claims, NULL) < 0)
        return false;
    for (unsigned i = 0; i < claims.count; i++)
        if (claims.at[i].found && !claims.at[i].found->is_allocated)
            return true;
    return false;
}

struct claims claims_look_at_bound(const struct bridge_world *world, const struct unit *unit,
                                   struct arena *arena)
{
    struct assignments *lost = arena_alloc(arena, sizeof(*lost));

    lost->at = arena_alloc_array(arena, unit->member_count + 1, sizeof(*lost->at));
    for (unsigned i = 0; i < unit->member_count; i++) {
        const struct kube_pod *pod = unit->members[i].pod;
        const struct kube_object *node = kube_cache_get(world->nodes, "", pod->node_name);

        if (unit->members[i].stage == POD_BOUND && node &&
            has_lost_allocation(world, pod, kube_node_of(node), arena))
            lost->at[lost->count++] = (struct assignment){ i, kube_node_of(node) };
    }
    return claims_look(world, unit, lost, arena);
}

/* ---- freeing ---- */

static bool is_reserved_for(const struct kube_resource_claim *claim, const struct kube_pod *pod)
{
    for (unsigned i = 0; i < claim->user_count; i++)
        if (strcmp(claim->users[i].uid, pod->object.uid) != 0)
            return false;
    return claim->user_count > 0 || strcmp(claim->object.owner.uid, pod->object.uid) == 0;
}

static const struct kube_object *claim_named(const struct bridge_world *world,
                                             const struct kube_pod *pod, const char *name)
{
    const struct kube_object *object =
        kube_cache_get(world->optional[OPTIONAL_CLAIMS].cache, pod->object.ns, name);

    return object && object->deleted_us == 0 ? object : NULL;
}

static void free_by_name(const struct bridge_world *world, const struct kube_pod *pod,
                         struct plan *plan, const char *name)
{
    const struct kube_object *object = claim_named(world, pod, name);

    if (object && kube_resource_claim_of(object)->is_allocated &&
        is_reserved_for(kube_resource_claim_of(object), pod))
        free_claim(world, plan, object);
}

/* Quotas count the claim that we made for the resources of containers, and the next node may need
 * none. */
static void delete_own(const struct bridge_world *world, const struct kube_pod *pod,
                       struct plan *plan, const char *name)
{
    const struct kube_object *object = claim_named(world, pod, name);

    if (object && !kube_resource_claim_of(object)->is_allocated &&
        strcmp(object->owner.uid, pod->object.uid) == 0)
        (void)plan_delete(plan, world->optional[OPTIONAL_CLAIMS].cache, &device_resource_claims,
                          object->ns, object->name, object->uid, object->version);
}

void plan_free_claims(const struct bridge_world *world, const struct unit *unit, struct plan *plan)
{
    for (unsigned i = 0; i < unit->member_count; i++) {
        const struct kube_pod *pod = unit->members[i].pod;
        const char *own;

        if (!wants_claims(pod) || unit->members[i].stage != POD_WAITS)
            continue;
        own = arena_printf(plan->arena, DEVICE_CLAIM_PREFIX "%s", pod->object.uid);
        free_by_name(world, pod, plan, own);
        delete_own(world, pod, plan, own);
        for (unsigned k = 0; k < pod->rare->claim_count; k++) {
            const struct kube_claim_ref *ref = &pod->rare->claims[k];
            struct str name = kube_pairs_get(&pod->template_claims, ref->name, NULL);

            if (ref->claim[0] || name.len > 0)
                free_by_name(world, pod, plan, ref->claim[0] ? ref->claim : name.at);
        }
    }
}
