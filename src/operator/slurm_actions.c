/* slurm_actions.c - the kinds of calls to Slurm clusters that plans of the operator ask for; the
 * engine carries them out (engine/slurm_lane.h). */
#include "operator/slurm_actions.h"

#include "operator/slurm_clusters_private.h"
#include "operator/slurm_view.h"
#include "slurm/calls.h"

static const int64_t confirm_us = 10000000; /* so long a pod is as good as deleted */
static const int64_t jobs_us = 15000000;    /* older jobs say nothing of now */

const struct action_type action_slurm_cluster =
    SLURM_ACTION_TYPE("slurm", 4096); /* each cluster has its own limit */

/* ---- the calls ---- */

static struct slurm_call *send_reconfigure(struct slurm_task *task)
{
    return slurm_reconfigure(task->lane->client, slurm_task_answered, task);
}

static enum kube_outcome judge_reconfigure(struct slurm_task *task,
                                           const struct slurm_answer *answer)
{
    if (answer->error.class != SLURM_DONE)
        return KUBE_UNAVAILABLE;
    slurm_cluster_reconfigured(list_item(task->lane, struct cluster, lane), task->action->name);
    return KUBE_DONE;
}

static struct slurm_call *send_node_update(struct slurm_task *task)
{
    return slurm_node_update(task->lane->client, task->action->name, task->action->fields,
                             slurm_task_answered, task);
}

static struct slurm_call *send_node_delete(struct slurm_task *task)
{
    return slurm_node_delete(task->lane->client, task->action->name, slurm_task_answered, task);
}

static struct slurm_call *send_node_read(struct slurm_task *task)
{
    return slurm_send(task->lane->client,
                      &(struct slurm_request){ .verb = SLURM_GET,
                                               .endpoint = SLURM_NODE,
                                               .name = str_of(task->action->name),
                                               .timeout_us = confirm_us,
                                               .once = true },
                      slurm_task_answered, task);
}

static bool knows_jobs(const struct slurm_poller *poller)
{
    struct slurm_feed_stats stats;

    slurm_poller_stats(poller, SLURM_FEED_JOBS, &stats);
    return !slurm_poller_is_suspicious(poller) && stats.age_us < jobs_us;
}

static enum kube_outcome judge_drained(struct slurm_task *task, const struct slurm_answer *answer)
{
    const struct cluster *cluster = list_item(task->lane, struct cluster, lane);
    struct slurm_poller *poller = task->lane->poller;
    auto_slurm_list struct slurm_list list = { .count = 0 };

    if (!poller || !knows_jobs(poller))
        return KUBE_UNAVAILABLE;
    if (answer->error.class == SLURM_NOT_FOUND)
        return KUBE_DONE;
    if (answer->error.class != SLURM_DONE ||
        slurm_list_decode(&slurm_node_kind, answer->body, &list, NULL) < 0 || list.count != 1)
        return KUBE_UNAVAILABLE;
    if (slurm_view_is_drained(cluster->facts, slurm_node_of(list.at[0])))
        return KUBE_DONE;
    slurm_poller_read(poller, SLURM_FEED_NODES, task->action->name);
    slurm_task_say(task, "Slurm shows another state");
    return KUBE_CONFLICT; /* the cache thought otherwise */
}

static struct slurm_call *send_reservation_put(struct slurm_task *task)
{
    return slurm_reservation_put(task->lane->client, task->action->fields, slurm_task_answered,
                                 task);
}

static struct slurm_call *send_reservation_delete(struct slurm_task *task)
{
    return slurm_reservation_delete(task->lane->client, task->action->name, slurm_task_answered,
                                    task);
}

/* What is not there need not be deleted or changed. */
static enum kube_outcome judge_change(struct slurm_task *task, const struct slurm_answer *answer)
{
    enum slurm_class class = answer->error.class;

    (void)task;
    return class == SLURM_NOT_FOUND || class == SLURM_UNKNOWN_NODE ? KUBE_DONE
                                                                   : slurm_outcome(class);
}

/* ---- the rows ---- */

#define ROW(text, subject, what_is_read, sender, judgement)                                        \
    {                                                                                              \
        .what = (text),                                                                            \
        .key = (subject),                                                                          \
        .family = &action_slurm_cluster,                                                           \
        .feed = (what_is_read),                                                                    \
        .send = (sender),                                                                          \
        .judge = (judgement),                                                                      \
    }

static const struct slurm_call_type
    reconfigure = ROW("reconfigure", "version", SLURM_FEEDS, send_reconfigure, judge_reconfigure),
    node_update = ROW("update node", "node", SLURM_FEED_NODES, send_node_update, judge_change),
    node_delete = ROW("delete node", "node", SLURM_FEED_NODES, send_node_delete, judge_change),
    node_is_drained = ROW("confirm drained", "node", SLURM_FEEDS, send_node_read, judge_drained),
    reservation_put = ROW("put reservation", "reservation", SLURM_FEED_RESERVATIONS,
                          send_reservation_put, judge_change),
    reservation_delete = ROW("delete reservation", "reservation", SLURM_FEED_RESERVATIONS,
                             send_reservation_delete, judge_change);

/* ---- for plans ---- */

static void plan_call(struct plan *plan, const struct slurm_call_type *type,
                      const struct kube_object *controller, const char *name,
                      const struct json_mut *fields)
{
    struct slurm_action *action = slurm_action_new(plan, type, sizeof(*action), name);

    action->cluster = arena_printf(plan->arena, "%s/%s", controller->ns, controller->name);
    if (fields)
        slurm_action_set_fields(plan, action, fields);
    (void)slurm_action_add(plan, action, type == &reconfigure ? action->cluster : NULL);
}

void plan_slurm_reconfigure(struct plan *plan, const struct kube_object *controller,
                            const char *version)
{
    plan_call(plan, &reconfigure, controller, version, NULL);
}

void plan_slurm_node_update(struct plan *plan, const struct kube_object *controller,
                            const char *node, const struct json_mut *fields)
{
    plan_call(plan, &node_update, controller, node, fields);
}

void plan_slurm_node_delete(struct plan *plan, const struct kube_object *controller,
                            const char *node)
{
    plan_call(plan, &node_delete, controller, node, NULL);
}

void plan_slurm_node_is_drained(struct plan *plan, const struct kube_object *controller,
                                const char *node)
{
    plan_call(plan, &node_is_drained, controller, node, NULL);
}

void plan_slurm_reservation_put(struct plan *plan, const struct kube_object *controller,
                                const char *name, const struct json_mut *fields)
{
    plan_call(plan, &reservation_put, controller, name, fields);
}

void plan_slurm_reservation_delete(struct plan *plan, const struct kube_object *controller,
                                   const char *name)
{
    plan_call(plan, &reservation_delete, controller, name, NULL);
}
