/* nodeset_create.c - what must exist for a NodeSet in Kubernetes: the Service and the budget that
 * its cluster shares, sshd_config, the revision, and a pod for every worker that is missing.
 *
 * Holds: an ordinal whose pod is still being deleted is waited for, not skipped; no more than
 * max_unregistered workers of a Slurm cluster exist that Slurm has not seen; the first eight
 * creates are a stage of their own, so that a refusal (a quota, a webhook) is heard before all are
 * sent. */
#include "engine/child.h"
#include "engine/event_action.h"
#include "kube/owners.h"
#include "operator/gpus.h"
#include "operator/names.h"
#include "operator/nodeset.h"
#include "operator/worker_claims.h"

#include <stdlib.h>

enum { FIRST_CREATES = 8, MAX_FAILURES = 64 };

/* A pod that ends as soon as it starts is not made again at once. */
static const int64_t failed_us = 10000000, look_again_us = 1000000;

/* ---- what the cluster shares ---- */

/* The budget counts pods by the size of what controls them, which a NodeSet shows only when it is
 * in StatefulSet mode and no worker is on its way out. */
static bool counts_less(const struct operator_world *world, const struct kube_object *const *owners,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (nodeset_is_daemonset(owners[i]) ||
            (int64_t)kube_cache_count_by(world->pods, world->pods_by_owner,
                                         str_of(owners[i]->uid)) >
                spec_number(owners[i], "replicas"))
            return true;
    return false;
}

int nodeset_plan_shared(struct sync *sync, struct err *err)
{
    const struct operator_world *world = sync->world;
    const struct kube_object *controller = nodeset_of(sync)->controller, *live;
    const struct kube_object **owners;
    const char *name;
    size_t count;
    int result;

    if (!controller)
        return err_set(err, ERR_NOT_FOUND, "Controller %s does not exist",
                       json_str(json_at(sync->spec, "controllerRef", "name")).at);
    owners = nodesets_of(world, sync->plan->arena, controller, &count);
    result = plan_shared_child(sync->plan, world->services, owners, count,
                               worker_service(sync->build, controller), err);
    if (result < 0)
        return result;
    name = arena_printf(sync->plan->arena, "slurm-workers-pdb-%s", controller->name);
    live = kube_cache_get(world->budgets, controller->ns, name);
    return plan_shared_child(
        sync->plan, world->budgets, owners, count,
        worker_budget(sync->build, controller, live, counts_less(world, owners, count)), err);
}

int nodeset_plan_ssh(struct sync *sync, struct err *err)
{
    const struct kube_object *controller = nodeset_of(sync)->controller;

    if (!controller || !nodeset_has_ssh(sync->object))
        return 0;
    return plan_child(sync->plan, sync->world->configmaps, sync->object,
                      worker_ssh_config(sync->build, sync->object, controller), err);
}

/* ---- revisions ---- */

static void trim_revisions(struct nodeset *nodeset)
{
    const struct sync *sync = &nodeset->sync;
    const struct kube_object *surplus[NODESET_MAX_REVISIONS];
    const struct kube_object **pods =
        arena_alloc_array(sync->plan->arena, nodeset->count + 1, sizeof(*pods));
    size_t count;

    for (size_t i = 0; i < nodeset->count; i++)
        pods[i] = &nodeset->workers[i].pod->object;
    count =
        nodeset_revision_surplus(sync->world->revisions, sync->world->pods_by_owner, sync->object,
                                 &nodeset->revision, pods, nodeset->count, surplus);
    for (size_t i = 0; i < count; i++)
        (void)plan_delete(sync->plan, sync->world->revisions, surplus[i]->kind->resource,
                          surplus[i]->ns, surplus[i]->name, surplus[i]->uid, NULL);
}

int nodeset_plan_revision(struct sync *sync, struct err *err)
{
    struct nodeset *nodeset = nodeset_of(sync);
    const struct nodeset_revision *revision = &nodeset->revision;
    const struct kube_resource *resource = kube_cache_kind(sync->world->revisions)->resource;
    struct json_mut *object;
    int result;

    sync->plan->is_independent = false; /* pods name it */
    if (nodeset->revision_err.class != 0)
        return err_set(err, (enum err_class)nodeset->revision_err.class, "%s",
                       nodeset->revision_err.text);
    if (!revision->stored) {
        result = nodeset_revision_object(sync->build, sync->object, revision, &object, err);
        if (result < 0)
            return result;
        (void)plan_create(sync->plan, sync->world->revisions, resource, sync->object->ns, object);
        return 0;
    }
    object = nodeset_revision_patch(sync->build, sync->object, revision);
    if (object)
        (void)plan_merge_patch(sync->plan, sync->world->revisions, resource, sync->object->ns,
                               revision->stored->name, NULL, revision->stored->version, object);
    trim_revisions(nodeset);
    return 0;
}

/* ---- pods that ended ---- */

int nodeset_plan_failed(struct sync *sync, struct err *err)
{
    const struct nodeset *nodeset = nodeset_of(sync);
    const struct operator_world *world = sync->world;
    struct plan *plan = sync->plan;

    (void)err;
    for (size_t i = 0; i < nodeset->count && plan_has_room(plan); i++) {
        const struct worker *worker = &nodeset->workers[i];
        const struct kube_object *pod = &worker->pod->object;
        int64_t wait_us = pod->created_us + failed_us - world->wall_us;

        if (worker->state != WORKER_FAILED)
            continue;
        if (wait_us > 0) {
            plan_look_again(plan, wait_us);
            continue;
        }
        if (nodeset->is_daemonset)
            plan_event_done(plan, nodeset->sync.object,
                            strcmp(worker->pod->phase, "Failed") == 0 ? KUBE_EVENT_WARNING
                                                                      : KUBE_EVENT_NORMAL,
                            strcmp(worker->pod->phase, "Failed") == 0 ? "FailedDaemonPod"
                                                                      : "SucceededDaemonPod",
                            "Info", "pod %s on Node %s ended and is made again", pod->name,
                            worker->pod->node_name);
        (void)plan_delete(plan, world->pods, &kube_pods, pod->ns, pod->name, pod->uid, NULL);
    }
    return 0;
}

/* ---- who is missing ---- */

static bool is_registered(struct arena *arena, const struct slurm_facts *facts,
                          const struct kube_pod *pod)
{
    if (facts && facts->nodes && slurm_cache_is_synced(facts->nodes))
        return slurm_cache_get(facts->nodes, worker_slurm_name(arena, pod, facts->nodes));
    return pod->ready; /* Slurm does not say; slurmd does */
}

/* How many workers may be created now, by what the whole Slurm cluster digests at once. Workers of
 * others that never register (no Node fits them, no image) leave this NodeSet its share. */
static size_t room_to_register(struct nodeset *nodeset)
{
    const struct operator_world *world = nodeset->sync.world;
    const struct kube_object **all, *pod;
    int64_t left = world->max_unregistered, share;
    size_t count;

    all = nodesets_of(world, nodeset->sync.plan->arena, nodeset->controller, &count);
    share = count > 0 ? (left + (int64_t)count - 1) / (int64_t)count : left;
    for (size_t i = 0; i < count; i++) {
        struct kube_index_walk walk =
            kube_cache_by(world->pods, world->pods_by_owner, str_of(all[i]->uid));
        int64_t unregistered = 0;

        while ((pod = kube_index_next(&walk)))
            unregistered +=
                pod->deleted_us == 0 &&
                !is_registered(nodeset->sync.plan->arena, nodeset->facts, kube_pod_of(pod));
        left -= unregistered;
        if (strcmp(all[i]->uid, nodeset->sync.object->uid) == 0)
            share -= unregistered;
    }
    if (left < share)
        left = share;
    return left > 0 ? (size_t)left : 0;
}

static int add_create(struct nodeset *nodeset, struct worker_identity identity, bool was_there,
                      struct err *err)
{
    const struct sync *sync = &nodeset->sync;
    const char *claim = NULL;

    if (kube_cache_get(sync->world->pods, sync->object->ns, identity.name))
        return err_set(err, ERR_CONFLICT, "pod %s exists and is not controlled by the NodeSet",
                       identity.name);
    if (!worker_claims_allow(sync->world, sync->plan->arena, sync->object, &identity, &claim)) {
        plan_wait(sync->plan, "pod %s: claim %s is being deleted", identity.name, claim);
        return 0;
    }
    nodeset->creates[nodeset->create_count++] =
        (struct worker_create){ .identity = identity, .was_there = was_there };
    return 0;
}

static int compare_ordinals(const void *a, const void *b)
{
    int64_t left = (*(const struct worker *const *)a)->ordinal;
    int64_t right = (*(const struct worker *const *)b)->ordinal;

    return (left > right) - (left < right);
}

/* The Node that this ordinal was pinned to: nodeset_status.c. */
static const struct kube_object *pinned_node(const struct nodeset *nodeset, int64_t ordinal)
{
    const struct sync *sync = &nodeset->sync;
    const struct kube_object *node;
    const char *key = arena_printf(sync->plan->arena, "%lld", (long long)ordinal);
    struct str name =
        json_str(json_at(operator_tree(sync->object), "status", "ordinalToNode", key));

    if (!spec_flag(sync->object, "pinToNode") || name.len == 0)
        return NULL;
    node = kube_cache_get(sync->world->nodes, "", name.at);
    return node && nodeset_fits(nodeset, node) ? node : NULL;
}

/* The lowest free ordinals, as many as are missing. One whose pod ended or is being deleted is
 * missing too, and comes when the name is free. One that cannot be made is not in the way of
 * others; the first error counts. */
static int choose_ordinals(struct nodeset *nodeset, size_t room, struct err *err)
{
    struct sync *sync = &nodeset->sync;
    struct worker **by_ordinal =
        arena_alloc_array(sync->plan->arena, nodeset->count + 1, sizeof(struct worker *));
    int64_t missing = nodeset->replicas;
    size_t count = 0, at = 0, failures = 0;

    for (size_t i = 0; i < nodeset->count; i++) {
        struct worker *worker = &nodeset->workers[i];

        if (worker->ordinal >= 0)
            by_ordinal[count++] = worker;
        missing -= worker_is_live(worker) && !worker->is_other_mode;
    }
    qsort(by_ordinal, count, sizeof(struct worker *), compare_ordinals);
    for (int64_t ordinal = 0; missing > 0 && failures < MAX_FAILURES; ordinal++) {
        struct worker_identity identity;
        bool is_used = at < count && by_ordinal[at]->ordinal == ordinal, is_live = false;
        struct err *why = failures == 0 ? err : NULL;

        for (; at < count && by_ordinal[at]->ordinal == ordinal; at++)
            is_live |= worker_is_live(by_ordinal[at]);
        if (is_live)
            continue;
        missing--;
        if (is_used)
            continue;
        nodeset->is_capped = nodeset->create_count >= room;
        if (nodeset->is_capped || !plan_has_room(sync->plan))
            break;
        if (worker_of_ordinal(sync->plan->arena, sync->object, ordinal,
                              pinned_node(nodeset, ordinal), &identity, why) < 0 ||
            add_create(nodeset, identity, false, why) < 0)
            failures++;
    }
    return failures > 0 ? -err->class : 0;
}

/* The first attempt whose name is free; a pod of an earlier one may still be on its way out. */
static int identity_on(const struct nodeset *nodeset, const struct kube_object *node,
                       struct worker_identity *ret_identity, struct err *err)
{
    const struct sync *sync = &nodeset->sync;

    for (unsigned attempt = 0;; attempt++) {
        int result =
            worker_of_node(sync->plan->arena, sync->object, node, attempt, ret_identity, err);

        if (result < 0 || !kube_cache_get(sync->world->pods, sync->object->ns, ret_identity->name))
            return result;
    }
}

static int choose_nodes(struct nodeset *nodeset, size_t room, struct err *err)
{
    size_t failures = 0;

    for (size_t i = 0; i < nodeset->slot_count; i++) {
        const struct daemon_slot *slot = &nodeset->slots[i];
        struct err *why = failures == 0 ? err : NULL;
        struct worker_identity identity;
        int result;

        if (slot->kept || slot->is_taken)
            continue;
        nodeset->is_capped = nodeset->create_count >= room;
        if (nodeset->is_capped || !plan_has_room(nodeset->sync.plan))
            break;
        if ((result = identity_on(nodeset, slot->node, &identity, why)) == 0)
            result = add_create(nodeset, identity, slot->was_there, why);
        failures += result < 0;
    }
    return failures > 0 ? -err->class : 0;
}

int nodeset_plan_pods(struct sync *sync, struct err *err)
{
    struct nodeset *nodeset = nodeset_of(sync);
    const char *why;
    size_t room;
    int result;

    if (!nodeset->template || nodeset->template_err.class != 0)
        return err_set(err, (enum err_class)nodeset->template_err.class, "%s",
                       nodeset->template_err.text);
    if (nodeset->adopted_count > 0) /* who is missing shows when these are seen */
        return 0;
    why = gpus_wait(sync->world, sync->plan->arena, nodeset->controller, sync->object);
    room = why ? 0 : room_to_register(nodeset);
    nodeset->creates = arena_alloc_array(sync->plan->arena, room + 1, sizeof(*nodeset->creates));
    result = nodeset->is_daemonset ? choose_nodes(nodeset, room, err)
                                   : choose_ordinals(nodeset, room, err);
    if (nodeset->is_capped) {
        plan_wait(sync->plan, why ? "workers wait: %s" : "%s",
                  why ? why
                      : arena_printf(sync->plan->arena,
                                     "%lld workers have not registered yet, and no more may",
                                     (long long)sync->world->max_unregistered));
        plan_look_again(sync->plan, look_again_us);
    }
    return result;
}

/* ---- claims ---- */

/* By the policy of the NodeSet; one that is condemned by scale-in takes its claims along. */
static void plan_claim(struct nodeset *nodeset, const struct worker *worker, const char *name)
{
    const struct sync *sync = &nodeset->sync;
    const struct kube_object *claim = kube_cache_get(sync->world->claims, sync->object->ns, name);
    struct json_mut *patch = NULL;
    enum worker_claim_state state;

    if (!claim || claim->deleted_us != 0 || !worker_owns_claim(sync->object, worker->pod, name))
        return;
    state = worker_claim_owners(sync->build, sync->object, &worker->pod->object,
                                worker->cause == CAUSE_SCALE_IN, claim, &patch);
    if (state == CLAIM_CONFLICT && patch)
        (void)plan_event_done(sync->plan, sync->object, KUBE_EVENT_WARNING, "ConflictingController",
                              "Info", "claim %s is controlled by another object", name);
    if (patch)
        (void)plan_merge_patch(sync->plan, sync->world->claims, claim->kind->resource, claim->ns,
                               name, NULL, claim->version, patch);
}

int nodeset_plan_claims(struct sync *sync, struct err *err)
{
    struct nodeset *nodeset = nodeset_of(sync);

    (void)err;
    for (size_t i = 0; i < nodeset->count && plan_has_room(sync->plan); i++) {
        const struct worker *worker = &nodeset->workers[i];
        const struct kube_rare *rare = worker->pod->rare;

        for (unsigned k = 0; rare && worker_is_live(worker) && k < rare->volume_claim_count; k++)
            plan_claim(nodeset, worker, rare->volume_claims[k]);
    }
    return 0;
}

/* ---- creating them ---- */

static void create_claims(struct nodeset *nodeset, const struct worker_identity *identity)
{
    const struct sync *sync = &nodeset->sync;
    struct json_iter iter = json_iter(json_get(sync->spec, "volumeClaimTemplates"));
    const struct kube_resource *resource = kube_cache_kind(sync->world->claims)->resource;
    struct arena *arena = sync->plan->arena;
    const struct json *template;

    while (json_next_item(&iter, &template)) {
        const char *name = worker_claim_name(arena, sync->object, template, identity);

        if (!kube_cache_get(sync->world->claims, sync->object->ns, name))
            plan_create(sync->plan, sync->world->claims, resource, sync->object->ns,
                        worker_claim(sync->build, arena, sync->object, template, identity))
                ->existing_is_fine = true;
    }
}

void nodeset_create(struct nodeset *nodeset)
{
    const struct sync *sync = &nodeset->sync;
    bool has_claims = json_len(json_get(sync->spec, "volumeClaimTemplates")) > 0;

    for (size_t i = 0; i < nodeset->create_count; i++)
        create_claims(nodeset, &nodeset->creates[i].identity);
    if (nodeset->create_count > 0)
        plan_event_done(sync->plan, sync->object, KUBE_EVENT_NORMAL, "ScalingUp", "ScaleUp",
                        "creating %zu workers", nodeset->create_count);
    for (size_t i = 0; i < nodeset->create_count; i++) {
        const struct worker_create *create = &nodeset->creates[i];

        if (i == FIRST_CREATES || (i == 0 && has_claims))
            plan_next_stage(sync->plan);
        (void)plan_create(sync->plan, sync->world->pods, &kube_pods, sync->object->ns,
                          worker_pod(sync->build, sync->plan->arena, sync->object,
                                     nodeset->template, &create->identity, create->was_there));
    }
}
