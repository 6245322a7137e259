/* slurm_executor_nodes.c - makes, changes and deletes Slurm nodes, many in one call.
 *
 * What comes in one round of the loop is gathered: nodes of one size are made by one line, with
 * their addresses in the same order; equal changes and deletions go as one list. An action is
 * finished when the node cache is as new as its answer, so that the next plan sees what it did.
 * Some answers tell of one node of many: the cache then tells which, and each is planned again.
 * What is refused about a node is remembered, for its plan to tell.
 *
 * Holds: as many addresses as names in one line, or slurmctld ends itself; nodes with gres are made
 * one by one (of a range Slurm would make a part); nothing is deleted while slurmctld is suspected.
 */
#include "bridge/slurm/slurm_executor_private.h"

#include "base/mem.h"
#include "codec/hostlist.h"

#include <stdio.h>

enum {
    SECOND_US = 1000000,
    MAX_CALLS = 2, /* in flight */
    MAX_BATCH = 500,
    MAX_PATH_NAMES = 12000, /* bytes of names in a path, escaped; the transport takes 16 KiB */
    MAX_BODY = 1 << 20,
    FEW_READS = 4,
    SETTLE_LOOK_US = SECOND_US / 20,
    SETTLE_US = 5 * SECOND_US, /* the longest that a finished action waits for the cache */
};

static const char *verb(enum slurm_action_kind kind)
{
    switch (kind) {
    case ACTION_CREATE_NODE:
        return "create";
    case ACTION_UPDATE_NODE:
        return "update";
    default:
        return "delete";
    }
}

/* ---- which go together ---- */

static bool same_text(const char *a, const char *b)
{
    return str_eq(str_of(a), str_of(b));
}

static bool same_size(const struct slurm_node_ask *a, const struct slurm_node_ask *b)
{
    return a->cpus == b->cpus && a->sockets == b->sockets &&
           a->cores_per_socket == b->cores_per_socket &&
           a->threads_per_core == b->threads_per_core && a->memory == b->memory &&
           a->weight == b->weight && same_text(a->features, b->features) &&
           same_text(a->topology, b->topology);
}

static bool has_gres(const struct slurm_action *detail)
{
    return detail->make.gres && detail->make.gres[0];
}

static bool go_together(const struct slurm_action *a, const struct slurm_action *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case ACTION_CREATE_NODE:
        return !has_gres(a) && !has_gres(b) && same_size(&a->make, &b->make);
    case ACTION_UPDATE_NODE:
        return str_eq(a->fields, b->fields);
    default:
        return true;
    }
}

/* ---- seeing what was done ---- */

/* One round through the list; what is not seen yet goes to its end. */
static void look_at_settling(void *context)
{
    struct slurm_executor *executor = context;
    struct list seen, *first;

    list_init(&seen);
    list_each (struct executor_task, task, &executor->settling, base.queue_link) {
        if (slurm_cache_known_us(executor->nodes, task->detail->node) < task->answered_us &&
            loop_now_us(executor->lane.loop) - task->answered_us < SETTLE_US)
            continue;
        list_remove(&task->base.queue_link);
        list_push_back(&seen, &task->base.queue_link);
    }
    if (!list_is_empty(&executor->settling))
        loop_timer_start(executor->lane.loop, &executor->settling_timer, SETTLE_LOOK_US,
                         look_at_settling, executor);
    while ((first = list_first(&seen))) {
        struct executor_task *task = list_item(first, struct executor_task, base.queue_link);

        executor->options.wake_node(executor->options.context, str_of(task->detail->node));
        slurm_task_end(&task->base, task->base.outcome, task->base.message);
    }
}

static void settle(struct executor_task *task, enum kube_outcome outcome, const char *message)
{
    struct slurm_executor *executor = task->executor;

    task->base.outcome = outcome;
    task->answered_us = loop_now_us(executor->lane.loop);
    snprintf(task->base.message, sizeof(task->base.message), "%s", message);
    list_remove(&task->base.queue_link);
    list_push_back(&executor->settling, &task->base.queue_link);
    if (!loop_timer_is_armed(&executor->settling_timer))
        loop_timer_start(executor->lane.loop, &executor->settling_timer, SETTLE_LOOK_US,
                         look_at_settling, executor);
}

/* ---- refusals ---- */

static void write_action(const struct executor_task *task, struct buf *out)
{
    slurm_action_write(&(const struct action){ .detail = task->detail }, out);
}

static void remember_refusal(const struct executor_task *task, const char *why)
{
    auto_buf struct buf text;

    buf_init(&text, MAX_BODY);
    write_action(task, &text);
    node_refusals_add(task->executor->options.node_refusals, str_of(task->detail->node),
                      buf_str(&text), why);
}

static void forget_refusal(const struct executor_task *task)
{
    struct node_refusals *refusals = task->executor->options.node_refusals;
    auto_buf struct buf text;

    buf_init(&text, MAX_BODY);
    if (!node_refusals_have(refusals, str_of(task->detail->node)))
        return;
    write_action(task, &text);
    node_refusals_done(refusals, str_of(task->detail->node), buf_str(&text));
}

/* Slurm said no, and people must see to it. Not of one among many: it is soon alone. A node that is
 * busy is not deleted yet, which is no trouble; for one more than MaxNodeCount there is no room. */
static bool is_refusal(const struct batch *batch, enum slurm_class class)
{
    switch (class) {
    case SLURM_INVALID:
    case SLURM_UNSATISFIABLE:
    case SLURM_NOT_SUPPORTED:
        return batch->count == 1;
    case SLURM_BUSY:
        return batch->count == 1 && batch->kind == ACTION_CREATE_NODE;
    case SLURM_FORBIDDEN:
        return true;
    default:
        return false;
    }
}

/* ---- answers ---- */

static enum kube_outcome outcome_of(const struct batch *batch, const struct slurm_error *error)
{
    if (error->class == SLURM_NOT_FOUND && batch->kind == ACTION_DELETE_NODE && batch->count == 1)
        return KUBE_DONE;
    if (batch->count > 1 && slurm_outcome(error->class) == KUBE_INVALID)
        return KUBE_CONFLICT; /* about one of them: alone it is told so */
    return slurm_outcome(error->class);
}

static void send_nodes(void *context);

static void send_soon(struct slurm_executor *executor)
{
    if (!list_is_empty(&executor->node_tasks) && !loop_timer_is_armed(&executor->node_timer))
        loop_timer_start(executor->lane.loop, &executor->node_timer, 0, send_nodes, executor);
}

/* Reads after it: one by one, or all in one list. */
static void read_again(struct batch *batch)
{
    struct slurm_poller *poller = batch->executor->options.poller;

    list_each (const struct executor_task, task, &batch->tasks, base.queue_link) {
        if (batch->count <= FEW_READS)
            slurm_poller_wrote(poller, SLURM_FEED_NODES, task->detail->node);
        else
            slurm_cache_wrote(batch->executor->nodes, task->detail->node,
                              loop_now_us(batch->executor->lane.loop));
    }
    slurm_poller_expect(poller, loop_now_us(batch->executor->lane.loop) + SETTLE_US);
    if (batch->count > FEW_READS)
        slurm_poller_refresh(poller, SLURM_FEED_NODES);
}

static void on_answer(void *context, const struct slurm_answer *answer)
{
    struct batch *batch = context;
    struct slurm_executor *executor = batch->executor;
    const struct slurm_error *error = &answer->error;
    enum kube_outcome outcome = outcome_of(batch, error);
    struct list *first;
    size_t *max;

    batch->call = NULL;
    executor->node_calls--;
    slurm_lane_heard(&executor->lane, answer);
    metrics_add(executor->options.metrics, &slurm_executor_metrics[EXECUTOR_NODE_CALLS], 1,
                verb(batch->kind), slurm_class_name(error->class), NULL);
    max = &batch->executor->batch_max[batch->kind];
    if (outcome == KUBE_DONE)
        *max = *max * 2 < MAX_BATCH ? *max * 2 : MAX_BATCH;
    else if (outcome == KUBE_CONFLICT && batch->count > 1)
        *max = (batch->count + 1) / 2;
    if (!error->unsent)
        read_again(batch);
    while ((first = list_first(&batch->tasks))) {
        struct executor_task *task = list_item(first, struct executor_task, base.queue_link);

        if (error->class == SLURM_DONE)
            forget_refusal(task);
        else if (is_refusal(batch, error->class))
            remember_refusal(task, error->text);
        settle(task, outcome, error->text);
        if (error->unsent) /* there is nothing to see */
            task->answered_us = INT64_MIN;
    }
    batch_free(batch);
    send_soon(executor);
}

/* ---- calls ---- */

static struct slurm_call *create(struct batch *batch)
{
    const struct executor_task *first =
        list_item(list_first(&batch->tasks), const struct executor_task, base.queue_link);
    struct slurm_node_ask ask = first->detail->make;
    auto_buf struct buf names;
    auto_buf struct buf addresses;

    buf_init(&names, MAX_BODY);
    buf_init(&addresses, MAX_BODY);
    list_each (const struct executor_task, task, &batch->tasks, base.queue_link) {
        buf_printf(&names, "%s%s", names.len > 0 ? "," : "", task->detail->node);
        buf_printf(&addresses, "%s%s", addresses.len > 0 ? "," : "", task->detail->make.address);
    }
    ask.names = buf_text(&names);
    ask.address = buf_text(&addresses);
    return slurm_node_create(batch->executor->options.slurm, &ask, on_answer, batch);
}

static struct slurm_call *update(struct batch *batch)
{
    struct slurm_client *slurm = batch->executor->options.slurm;
    const struct executor_task *first =
        list_item(list_first(&batch->tasks), const struct executor_task, base.queue_link);
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *doc = NULL;
    struct json_mut *body, *names;
    auto_buf struct buf text;

    buf_init(&text, MAX_BODY);
    if (batch->count == 1)
        return slurm_node_update(slurm, first->detail->node, first->detail->fields, on_answer,
                                 batch);
    (void)json_parse(first->detail->fields, MAX_BODY, &doc, NULL); /* an object: see node_start */
    body = json_copy(build, json_root(doc));
    names = json_put_array(build, body, "name");
    list_each (const struct executor_task, task, &batch->tasks, base.queue_link)
        json_push_str(build, names, str_of(task->detail->node));
    json_mut_write(body, &text);
    return slurm_nodes_update(slurm, buf_str(&text), on_answer, batch);
}

static struct slurm_call *delete(struct batch *batch)
{
    auto_buf struct buf names;

    buf_init(&names, MAX_BODY);
    list_each (const struct executor_task, task, &batch->tasks, base.queue_link)
        buf_printf(&names, "%s%s", names.len > 0 ? "," : "", task->detail->node);
    return slurm_node_delete(batch->executor->options.slurm, buf_text(&names), on_answer, batch);
}

static void send_batch(struct batch *batch)
{
    struct slurm_executor *executor = batch->executor;

    executor->node_calls++;
    metrics_observe(executor->options.metrics, &slurm_executor_metrics[EXECUTOR_NODES_PER_CALL],
                    (double)batch->count, verb(batch->kind), NULL);
    if (batch->kind == ACTION_CREATE_NODE)
        batch->call = create(batch);
    else if (batch->kind == ACTION_UPDATE_NODE)
        batch->call = update(batch);
    else
        batch->call = delete (batch);
}

/* ---- gathering ---- */

/* The first that waits, and all that may go with it. */
static struct batch *gather(struct slurm_executor *executor)
{
    const struct executor_task *first =
        list_item(list_first(&executor->node_tasks), const struct executor_task, base.queue_link);
    const struct slurm_action *like = first->detail;
    struct batch *batch = batch_new(executor, like->kind);
    size_t path = 0;

    list_each (struct executor_task, task, &executor->node_tasks, base.queue_link) {
        size_t length = strlen(task->detail->node) + strlen("%2C");

        if (batch->count > 0 && !go_together(like, task->detail))
            continue;
        if (like->kind == ACTION_DELETE_NODE && path + length > MAX_PATH_NAMES)
            break;
        path += length;
        batch_add(batch, task);
        if (batch->count >= executor->batch_max[like->kind])
            break;
    }
    return batch;
}

static void refuse(struct slurm_executor *executor, bool deletions_only, const char *why)
{
    struct list refused, *first;

    list_init(&refused);
    list_each (struct executor_task, task, &executor->node_tasks, base.queue_link) {
        if (deletions_only && task->detail->kind != ACTION_DELETE_NODE)
            continue;
        list_remove(&task->base.queue_link);
        list_push_back(&refused, &task->base.queue_link);
    }
    while ((first = list_first(&refused)))
        slurm_task_end(list_item(first, struct slurm_task, queue_link), KUBE_CONFLICT, why);
}

static void send_nodes(void *context)
{
    struct slurm_executor *executor = context;

    if (!slurm_lane_may_send(&executor->lane))
        refuse(executor, false, "not sent: this bridge does not lead any more");
    else if (slurm_poller_is_suspicious(executor->options.poller))
        refuse(executor, true, "not sent: slurmctld may have been restarted");
    while (executor->node_calls < MAX_CALLS && !list_is_empty(&executor->node_tasks))
        send_batch(gather(executor));
}

static void enqueue(struct executor_task *task)
{
    list_push_back(&task->executor->node_tasks, &task->base.queue_link);
    send_soon(task->executor);
}

/* ---- what could spoil a whole call is refused alone ---- */

static int check(const struct slurm_action *detail, struct err *err)
{
    auto_buf struct buf line = { .max = MAX_BODY };
    auto_json_doc struct json_doc *doc = NULL;
    int result = hostlist_check_name(str_of(detail->node), err);

    if (result == 0 && detail->kind == ACTION_CREATE_NODE)
        result = slurm_node_line(&detail->make, &line, err);
    if (result == 0 && detail->kind == ACTION_UPDATE_NODE &&
        (json_parse(detail->fields, MAX_BODY, &doc, NULL) < 0 || !json_is_object(json_root(doc))))
        result = err_set(err, ERR_INVALID, "the fields of node %s are no object", detail->node);
    return result;
}

void node_start(struct executor_task *task)
{
    struct err why = { 0 };

    if (check(task->detail, &why) < 0) {
        remember_refusal(task, why.text);
        slurm_task_end_soon(&task->base, KUBE_INVALID, why.text);
    } else {
        task_unless(task, enqueue);
    }
}

void node_done(struct slurm_executor *executor)
{
    loop_timer_stop(&executor->node_timer);
    loop_timer_stop(&executor->settling_timer);
}
