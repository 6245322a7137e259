/* nodeset_drain.c - cordons: a mark on the pod, and a drain of its node in Slurm.
 *
 * Holds: the mark is on the pod before its node is drained, and goes after the drain is gone, so
 * that a drain of ours always has one; only drains with our reason are ended; a reason of others
 * stays. Events tell of a cordon once, when the mark is set. */
#include "engine/event_action.h"
#include "operator/names.h"
#include "operator/nodeset.h"
#include "operator/slurm_actions.h"

static bool is_drained_by_us(const struct worker *worker)
{
    return worker->knowledge == SLURM_PRESENT && slurm_node_is_draining(worker->record) &&
           slurm_reason_is_ours(worker->record);
}

/* It has another reason of ours than the one for a person's cordon. */
static bool is_drained_for_another_cause(const struct worker *worker)
{
    return is_drained_by_us(worker) &&
           !str_ends(str_of(worker->record->reason), STR(" was cordoned"));
}

/* ---- marks ---- */

/* by: NULL when the mark goes. A cordon that a person set is the person's to remove. */
static void plan_mark(struct nodeset *nodeset, const struct worker *worker, const char *by)
{
    const struct kube_object *pod = &worker->pod->object;
    struct json_build *build = nodeset->sync.build;
    struct json_mut *patch;

    if (pod->uid[0] == '\0')
        return; /* it is not created yet */
    if (by && worker->is_cordoned_by_person)
        by = arena_printf(nodeset->sync.plan->arena, "%s" CORDONED_TOO, by);
    patch = json_format(build,
                        "{'metadata':{'uid':%s,'annotations':{'" ANNOTATION_CORDONED_BY "':%s}}}",
                        pod->uid, by);
    if (!worker->is_cordoned_by_person)
        json_put_at(build, patch, by ? json_new_str(build, STR("true")) : json_new_null(build),
                    "metadata", "annotations", ANNOTATION_POD_CORDON);
    (void)plan_merge_patch(nodeset->sync.plan, nodeset->sync.world->pods, &kube_pods, pod->ns,
                           pod->name, NULL, NULL, patch);
}

static void tell_marks(struct nodeset *nodeset, const size_t marked[CAUSES])
{
    static const struct {
        enum worker_cause cause;
        const char *reason, *action, *what;
    } told[] = {
        { CAUSE_SCALE_IN, "ScalingDown", "ScaleDown", "removing" },
        { CAUSE_UPDATE, "RollingUpdate", "RollingUpdate", "replacing" },
        { CAUSE_DELETE, "ScalingDown", "ScaleDown", "removing" },
    };

    for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
        if (marked[told[i].cause] > 0)
            plan_event_done(nodeset->sync.plan, nodeset->sync.object, KUBE_EVENT_NORMAL,
                            told[i].reason, told[i].action, "draining %zu workers before %s them",
                            marked[told[i].cause], told[i].what);
}

static void tell_node_cordon(struct nodeset *nodeset, const struct worker *worker)
{
    plan_event_done(nodeset->sync.plan, nodeset->sync.object, KUBE_EVENT_NORMAL, "NodeCordon",
                    "Cordon", "Node %s is cordoned: draining pod %s", worker->pod->node_name,
                    worker->pod->object.name);
}

/* The pod may have been cordoned by the Slinky operator. Only the reason in Slurm tells. */
static bool has_unknown_cordon(const struct worker *worker)
{
    return worker->is_cordoned_by_person && worker->mark == CAUSE_NONE && !worker->record &&
           worker->knowledge == SLURM_UNREAD;
}

/* The mark goes when Slurm shows that the drain has, or is a person's now, or has no such node. */
static bool may_be_unmarked(const struct worker *worker)
{
    return worker->knowledge != SLURM_UNREAD &&
           !(worker->cause == CAUSE_PERSON ? is_drained_for_another_cause(worker)
                                           : is_drained_by_us(worker));
}

void nodeset_plan_marks(struct nodeset *nodeset)
{
    size_t marked[CAUSES] = { 0 };

    for (size_t i = 0; i < nodeset->count && plan_has_room(nodeset->sync.plan); i++) {
        const struct worker *worker = &nodeset->workers[i];
        const char *by = worker_cause_name(worker->cause);

        /* A pod without a Node that has to go is deleted as it is. */
        if (!worker_is_live(worker) ||
            (worker_is_condemned(worker) && worker->pod->node_name[0] == '\0'))
            continue;
        if (by[0] && has_unknown_cordon(worker))
            continue;
        if (by[0] && (worker->mark != worker->cause || !worker->is_cordoned)) {
            plan_mark(nodeset, worker, by);
            marked[worker->cause] += worker->mark != worker->cause;
            if (worker->cause == CAUSE_NODE && worker->mark != CAUSE_NODE)
                tell_node_cordon(nodeset, worker);
        } else if (!by[0] && worker->mark != CAUSE_NONE && may_be_unmarked(worker)) {
            plan_mark(nodeset, worker, NULL);
        }
    }
    tell_marks(nodeset, marked);
}

/* ---- drains ---- */

static void plan_drain(struct nodeset *nodeset, const struct worker *worker)
{
    const char *reason =
        worker_drain_reason(nodeset->sync.world, nodeset->sync.plan->arena, worker);

    plan_slurm_node_update(
        nodeset->sync.plan, nodeset->controller, worker->slurm_name,
        json_format(nodeset->sync.build, "{'state':['DRAIN'],'reason':%s}", reason));
}

void nodeset_plan_drains(struct nodeset *nodeset)
{
    for (size_t i = 0; i < nodeset->count && plan_has_room(nodeset->sync.plan); i++) {
        const struct worker *worker = &nodeset->workers[i];

        if (!worker_is_live(worker) || worker->cause == CAUSE_NONE ||
            worker->knowledge != SLURM_PRESENT)
            continue;
        /* Another cause of ours gets another reason; a reason of others stays. */
        if (!slurm_node_is_draining(worker->record) ||
            (worker->cause == CAUSE_PERSON
                 ? worker->mark != CAUSE_NONE && is_drained_for_another_cause(worker)
                 : worker->mark != worker->cause && slurm_reason_is_ours(worker->record)))
            plan_drain(nodeset, worker);
    }
}

/* ---- undrains ---- */

static void plan_state(struct nodeset *nodeset, const struct worker *worker, const char *state)
{
    plan_slurm_node_update(nodeset->sync.plan, nodeset->controller, worker->slurm_name,
                           json_format(nodeset->sync.build, "{'state':[%s]}", state));
}

/* The pod that ended set its node down, with our reason; the new pod under its name has registered,
 * and Slurm leaves the node down. Whoever else sets a node down gives a reason. */
static bool is_down_by_us(const struct worker *worker)
{
    return worker->knowledge == SLURM_PRESENT && worker->is_healthy &&
           slurm_words_has(&worker->record->state, SLURM_NODE_DOWN) &&
           !slurm_words_has(&worker->record->state, SLURM_NODE_NOT_RESPONDING) &&
           (slurm_reason_is_ours(worker->record) || worker->record->reason[0] == '\0');
}

void nodeset_plan_undrains(struct nodeset *nodeset)
{
    for (size_t i = 0; i < nodeset->count && plan_has_room(nodeset->sync.plan); i++) {
        const struct worker *worker = &nodeset->workers[i];
        const char *lost = worker_lost_drain(nodeset->sync.plan->arena, worker);

        /* Before the pod has a Node it is not known whether others drained this Node. */
        if (!worker_is_live(worker) || worker->cause != CAUSE_NONE || !worker->pod->node_name[0])
            continue;
        if (lost) /* it stays drained, with the reason that it had */
            plan_slurm_node_update(
                nodeset->sync.plan, nodeset->controller, worker->slurm_name,
                json_format(nodeset->sync.build, "{'state':['DRAIN'],'reason':%s}", lost));
        else if (is_down_by_us(worker))
            plan_state(nodeset, worker, "RESUME");
        else if (is_drained_by_us(worker))
            plan_state(nodeset, worker, "UNDRAIN");
    }
}
