/* nodeset_delete.c - the end of workers, and of the NodeSet.
 *
 * Holds: the pod of a worker that may run jobs is deleted only in the stage behind a question to
 * Slurm whether it is drained; no answer, an old one and no slurmrestd are no "yes". */
#include "engine/absent_action.h"
#include "engine/event_action.h"
#include "operator/names.h"
#include "operator/nodeset.h"
#include "operator/nodeset_partition.h"
#include "operator/slurm_actions.h"

static const int64_t look_again_us = 2000000;

/* ---- workers ---- */

static void plan_pod_delete(struct nodeset *nodeset, const struct worker *worker,
                            const char *version)
{
    const struct kube_object *pod = &worker->pod->object;

    (void)plan_delete(nodeset->sync.plan, nodeset->sync.world->pods, &kube_pods, pod->ns, pod->name,
                      pod->uid, version);
}

static void tell_why(struct nodeset *nodeset, const struct worker *worker)
{
    if (worker->why)
        plan_event_done(nodeset->sync.plan, nodeset->sync.object, KUBE_EVENT_NORMAL, worker->why,
                        "Info", "pod %s is made again with the hostname of its Node",
                        worker->pod->object.name);
    if (worker->cause == CAUSE_UNREGISTERED)
        plan_event_done(nodeset->sync.plan, nodeset->sync.object, KUBE_EVENT_WARNING,
                        "SlurmNodeNotRegistered", "Delete",
                        "pod %s is ready, and Slurm has no node %s: the pod is made again",
                        worker->pod->object.name, worker->slurm_name);
}

/* A pod without a Node has run nothing; it must still be without one when it is deleted. */
void nodeset_plan_confirms(struct nodeset *nodeset)
{
    struct plan *plan = nodeset->sync.plan;
    const char *trouble = nodeset_slurm_trouble(nodeset);
    const struct worker *kept = NULL;
    size_t waiting = 0, busy = 0;

    for (size_t i = 0; i < nodeset->count && plan_has_room(plan); i++) {
        struct worker *worker = &nodeset->workers[i];

        if (!worker_is_live(worker) || !worker_is_condemned(worker))
            continue;
        if (worker->pod->node_name[0] == '\0') {
            plan_pod_delete(nodeset, worker, worker->pod->object.version);
        } else if (trouble || worker->knowledge == SLURM_UNREAD) {
            waiting++;
        } else if (worker->mark != worker->cause) {
            continue; /* the mark comes first, and is a new version of the pod */
        } else if (worker->cause == CAUSE_UPDATE && nodeset_drain_would_be_lost(nodeset, worker)) {
            kept = worker;
        } else if (worker->state == WORKER_DRAINED || worker->knowledge == SLURM_ABSENT) {
            plan_slurm_node_is_drained(plan, nodeset->controller, worker->slurm_name);
            worker->is_confirmed = true;
        } else {
            busy++;
        }
    }
    if (waiting > 0)
        plan_wait(plan, "%zu workers cannot be removed: %s", waiting,
                  trouble ? trouble : "what Slurm last said of them is old");
    if (busy > 0)
        plan_wait(plan, "%zu workers are removed when their jobs have ended", busy);
    if (kept)
        plan_wait(
            plan,
            "worker %s is replaced when its node is undrained, or when the comment of the node "
            "has room for the reason of the drain: %s",
            kept->pod->object.name, kept->record->reason);
}

/* One that Slurm does not know may be about to register, and become ready: its pod must still be
 * the one that was read. */
void nodeset_plan_deletions(struct nodeset *nodeset)
{
    for (size_t i = 0; i < nodeset->count; i++) {
        const struct worker *worker = &nodeset->workers[i];

        if (!worker->is_confirmed)
            continue;
        tell_why(nodeset, worker);
        plan_pod_delete(nodeset, worker,
                        worker->knowledge == SLURM_ABSENT ? worker->pod->object.version : NULL);
    }
}

/* ---- the NodeSet ---- */

/* When its Controller goes too, or there is nobody to ask, the NodeSet waits for nothing: an
 * uninstall never hangs. A namespace that goes takes the Controller along. */
bool nodeset_must_drain(const struct nodeset *nodeset)
{
    const struct operator_world *world = nodeset->sync.world;
    bool is_skipped = false;

    (void)kube_pairs_get(&nodeset->sync.object->annotations, ANNOTATION_SKIP_DRAIN, &is_skipped);
    if (is_skipped || !nodeset->controller || nodeset->controller->deleted_us != 0)
        return false;
    return nodeset->facts ? nodeset->facts->has_restapi : world->speaks_slurm;
}

const char *nodeset_end_waits(const struct nodeset *nodeset)
{
    struct arena *arena = nodeset->sync.plan->arena;
    const char *trouble = nodeset_slurm_trouble(nodeset);

    if (!nodeset_must_drain(nodeset) || !spec_flag(nodeset->sync.object, "partition.enabled"))
        return NULL;
    if (trouble)
        return arena_printf(arena, "whether jobs name its partition is not known: %s", trouble);
    return partition_needed_by(nodeset->facts, arena, nodeset_slurm_name(nodeset->sync.object));
}

static void remove_finalizer(struct nodeset *nodeset)
{
    const struct kube_object *object = nodeset->sync.object;
    struct json_build *build = nodeset->sync.build;
    struct json_mut *patch = json_new_object(build);
    struct json_mut *list = json_new_array(build);

    for (unsigned i = 0; i < object->finalizer_count; i++)
        if (!str_is(object->finalizers[i], FINALIZER_DRAIN) &&
            !str_is(object->finalizers[i], FINALIZER_RESERVATION))
            json_push_str(build, list, object->finalizers[i]);
    json_put_at(build, patch, list, "metadata", "finalizers");
    (void)plan_merge_patch(nodeset->sync.plan, nodeset->sync.world->nodesets,
                           object->kind->resource, object->ns, object->name, NULL, object->version,
                           patch);
}

/* Once the NodeSet is gone the garbage collector deletes its pods, whatever runs there. Somebody
 * who began to lead a moment ago may not have seen them. */
static void confirm_no_workers(struct nodeset *nodeset)
{
    const struct kube_object *object = nodeset->sync.object;

    plan_confirm_absent(nodeset->sync.plan, &kube_pods, object,
                        arena_printf(nodeset->sync.plan->arena,
                                     "labelSelector=app.kubernetes.io%%2Fname%%3Dslurmd%%2C"
                                     "app.kubernetes.io%%2Finstance%%3D%s",
                                     object->name));
}

void nodeset_plan_end(struct nodeset *nodeset)
{
    const struct kube_object *object = nodeset->sync.object;
    const char *waits = nodeset_end_waits(nodeset);

    if (!kube_object_has_finalizer(object, FINALIZER_DRAIN) &&
        !kube_object_has_finalizer(object, FINALIZER_RESERVATION))
        return;
    if (!nodeset_must_drain(nodeset)) {
        remove_finalizer(nodeset);
    } else if (nodeset->count == 0 && !waits && !nodeset_may_have_reservation(nodeset)) {
        confirm_no_workers(nodeset);
        plan_next_stage(nodeset->sync.plan);
        remove_finalizer(nodeset);
    } else {
        if (nodeset->count == 0 && waits)
            plan_wait(nodeset->sync.plan, "%s", waits);
        plan_look_again(nodeset->sync.plan, look_again_us); /* job records go without a word */
    }
}
