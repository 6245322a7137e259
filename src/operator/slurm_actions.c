/* slurm_actions.c - carries out calls to Slurm clusters.
 *
 * Holds: an action that was started is finished once, also when its client ends before
 * (engine/slurm_lane.h). */
#include "operator/slurm_actions.h"

#include "base/mem.h"
#include "operator/slurm_clusters_private.h"
#include "operator/slurm_view.h"
#include "slurm/calls.h"

enum { MAX_BODY = 1 << 20 };

static const int64_t confirm_us = 10000000; /* so long a pod is as good as deleted */
static const int64_t jobs_us = 15000000;    /* older jobs say nothing of now */

struct call_type;

struct slurm_change { /* detail of an action */
    const struct call_type *type;
    const char *cluster; /* "namespace/name" of the Controller */
    const char *name;    /* of the node or reservation; of the files: their version */
    struct str body;
};

struct call_type {
    const char *what; /* as logs say it: "drain node" */
    struct slurm_call *(*send)(struct slurm_client *client, const struct slurm_change *change,
                               slurm_done done, void *context);
    enum slurm_feed feed; /* which cache the call changes; SLURM_FEEDS: none */
    /* What the answer means; NULL: by its class alone. */
    enum kube_outcome (*judge)(struct cluster *cluster, const char *name,
                               const struct slurm_answer *answer);
};

/* ---- the calls ---- */

static struct slurm_call *send_reconfigure(struct slurm_client *client,
                                           const struct slurm_change *change, slurm_done done,
                                           void *context)
{
    (void)change;
    return slurm_reconfigure(client, done, context);
}

static enum kube_outcome judge_reconfigure(struct cluster *cluster, const char *version,
                                           const struct slurm_answer *answer)
{
    if (answer->error.class != SLURM_DONE)
        return KUBE_UNAVAILABLE;
    slurm_cluster_reconfigured(cluster, version);
    return KUBE_DONE;
}

static struct slurm_call *send_node_update(struct slurm_client *client,
                                           const struct slurm_change *change, slurm_done done,
                                           void *context)
{
    return slurm_node_update(client, change->name, change->body, done, context);
}

static struct slurm_call *send_node_delete(struct slurm_client *client,
                                           const struct slurm_change *change, slurm_done done,
                                           void *context)
{
    return slurm_node_delete(client, change->name, done, context);
}

static struct slurm_call *send_node_read(struct slurm_client *client,
                                         const struct slurm_change *change, slurm_done done,
                                         void *context)
{
    return slurm_send(client,
                      &(struct slurm_request){ .verb = SLURM_GET,
                                               .endpoint = SLURM_NODE,
                                               .name = str_of(change->name),
                                               .timeout_us = confirm_us,
                                               .once = true },
                      done, context);
}

static bool knows_jobs(const struct slurm_poller *poller)
{
    struct slurm_feed_stats stats;

    slurm_poller_stats(poller, SLURM_FEED_JOBS, &stats);
    return !slurm_poller_is_suspicious(poller) && stats.age_us < jobs_us;
}

static enum kube_outcome judge_drained(struct cluster *cluster, const char *node,
                                       const struct slurm_answer *answer)
{
    struct slurm_poller *poller = cluster->lane.poller;
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
    slurm_poller_read(poller, SLURM_FEED_NODES, node);
    return KUBE_CONFLICT; /* the cache thought otherwise */
}

static struct slurm_call *send_reservation_put(struct slurm_client *client,
                                               const struct slurm_change *change, slurm_done done,
                                               void *context)
{
    return slurm_reservation_put(client, change->body, done, context);
}

static struct slurm_call *send_reservation_delete(struct slurm_client *client,
                                                  const struct slurm_change *change,
                                                  slurm_done done, void *context)
{
    return slurm_reservation_delete(client, change->name, done, context);
}

static const struct call_type
    call_reconfigure = { "reconfigure", send_reconfigure, SLURM_FEEDS, judge_reconfigure },
    call_node_update = { "update node", send_node_update, SLURM_FEED_NODES, NULL },
    call_node_delete = { "delete node", send_node_delete, SLURM_FEED_NODES, NULL },
    call_node_is_drained = { "confirm drained", send_node_read, SLURM_FEEDS, judge_drained },
    call_reservation_put = { "put reservation", send_reservation_put, SLURM_FEED_RESERVATIONS,
                             NULL },
    call_reservation_delete = { "delete reservation", send_reservation_delete,
                                SLURM_FEED_RESERVATIONS, NULL };

/* ---- the type of action ---- */

/* What is not there need not be deleted or changed. */
static enum kube_outcome outcome_of(enum slurm_class class)
{
    return class == SLURM_NOT_FOUND || class == SLURM_UNKNOWN_NODE ? KUBE_DONE
                                                                   : slurm_outcome(class);
}

static void on_answer(void *context, const struct slurm_answer *answer)
{
    struct slurm_task *task = context;
    struct cluster *cluster = list_item(task->lane, struct cluster, lane);
    const struct slurm_change *change = task->detail;
    const struct call_type *type = change->type;
    enum kube_outcome outcome;

    task->call = NULL;
    slurm_lane_heard(task->lane, answer);
    outcome =
        type->judge ? type->judge(cluster, change->name, answer) : outcome_of(answer->error.class);
    if (task->lane->poller && type->feed != SLURM_FEEDS)
        slurm_poller_wrote(task->lane->poller, type->feed, change->name);
    slurm_task_end(task, outcome,
                   type->judge && outcome == KUBE_CONFLICT ? "Slurm shows another state"
                                                           : answer->error.text);
}

static void send(struct slurm_task *task)
{
    const struct slurm_change *change = task->detail;

    task->call = change->type->send(task->lane->client, change, on_answer, task);
}

static void *start(void *service, const struct action *action, slurm_task_finish finish,
                   void *context)
{
    struct slurm_clusters *clusters = service;
    const struct slurm_change *change = action->detail;
    struct cluster *cluster = map_get(&clusters->all, str_of(change->cluster));

    return slurm_task_start(cluster ? &cluster->lane : &clusters->nowhere,
                            sizeof(struct slurm_task), action, finish, context, send);
}

static void cancel(void *service, void *handle)
{
    (void)service;
    slurm_task_free(handle);
}

static void write_detail(const struct action *action, struct buf *out)
{
    const struct slurm_change *change = action->detail;

    if (change->body.len > 0)
        buf_add_str(out, change->body);
    else
        buf_printf(out, "{\"name\":\"%s\"}", change->name);
}

const struct action_type action_slurm_cluster = {
    .name = "slurm",
    .max_in_flight = 4096, /* each cluster has its own limit */
    .start = start,
    .cancel = cancel,
    .write = write_detail,
};

static void plan_call(struct plan *plan, const struct call_type *type,
                      const struct kube_object *controller, const char *name,
                      const struct json_mut *body)
{
    struct slurm_change *change = arena_alloc(plan->arena, sizeof(*change));
    auto_buf struct buf text = { .max = MAX_BODY };

    *change = (struct slurm_change){
        .type = type,
        .cluster = arena_printf(plan->arena, "%s/%s", controller->ns, controller->name),
        .name = arena_strdup(plan->arena, name),
    };
    if (body) {
        json_mut_write(body, &text);
        change->body = (struct str){ arena_strndup(plan->arena, text.data, text.len), text.len };
    }
    (void)plan_add(plan, &action_slurm_cluster,
                   type == &call_reconfigure
                       ? arena_printf(plan->arena, "%s %s", type->what, change->cluster)
                       : arena_printf(plan->arena, "%s %s", type->what, name),
                   change);
}

void plan_slurm_reconfigure(struct plan *plan, const struct kube_object *controller,
                            const char *version)
{
    plan_call(plan, &call_reconfigure, controller, version, NULL);
}

void plan_slurm_node_update(struct plan *plan, const struct kube_object *controller,
                            const char *node, const struct json_mut *fields)
{
    plan_call(plan, &call_node_update, controller, node, fields);
}

void plan_slurm_node_delete(struct plan *plan, const struct kube_object *controller,
                            const char *node)
{
    plan_call(plan, &call_node_delete, controller, node, NULL);
}

void plan_slurm_node_is_drained(struct plan *plan, const struct kube_object *controller,
                                const char *node)
{
    plan_call(plan, &call_node_is_drained, controller, node, NULL);
}

void plan_slurm_reservation_put(struct plan *plan, const struct kube_object *controller,
                                const char *name, const struct json_mut *fields)
{
    plan_call(plan, &call_reservation_put, controller, name, fields);
}

void plan_slurm_reservation_delete(struct plan *plan, const struct kube_object *controller,
                                   const char *name)
{
    plan_call(plan, &call_reservation_delete, controller, name, NULL);
}
