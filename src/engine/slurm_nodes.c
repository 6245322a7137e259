/* slurm_nodes.c - creates, updates and deletes nodes of Slurm, many in one call.
 *
 * Nodes of one size are made by one line, with their addresses in the same order; equal changes and
 * deletions go as one list. What Slurm refuses about a node is remembered, for its plan to tell.
 *
 * Holds: as many addresses as names in one line, or slurmctld ends itself; nodes with gres are made
 * one by one (of a range Slurm would make a part); nothing is deleted while slurmctld is suspected.
 */
#include "engine/slurm_nodes.h"

#include "codec/hostlist.h"
#include "engine/slurm_lane.h"

enum { MAX_CALLS = 2, MAX_BATCH = 500, MAX_BODY = 2 << 20 };

const struct action_type action_slurm_node = SLURM_ACTION_TYPE("slurm-node", MAX_CALLS *MAX_BATCH);

struct creation {
    struct slurm_action base;
    struct slurm_node_ask node;
};

static const struct slurm_node_ask *node_of(const struct slurm_action *action)
{
    return &list_item(action, const struct creation, base)->node;
}

/* ---- which go together ---- */

static bool same_text(const char *a, const char *b)
{
    return str_eq(str_of(a), str_of(b));
}

static bool has_gres(const struct slurm_node_ask *node)
{
    return node->gres && node->gres[0];
}

static bool is_alike(const struct slurm_action *one, const struct slurm_action *other)
{
    const struct slurm_node_ask *a = node_of(one), *b = node_of(other);

    return !has_gres(a) && !has_gres(b) && a->cpus == b->cpus && a->sockets == b->sockets &&
           a->cores_per_socket == b->cores_per_socket &&
           a->threads_per_core == b->threads_per_core && a->memory == b->memory &&
           a->weight == b->weight && same_text(a->features, b->features) &&
           same_text(a->topology, b->topology);
}

static bool has_same_fields(const struct slurm_action *a, const struct slurm_action *b)
{
    return str_eq(a->fields, b->fields);
}

/* ---- refusals ---- */

/* why: NULL when it was done. */
static void note_refusal(const struct slurm_task *task, const char *why)
{
    struct node_refusals *refusals = task->lane->node_refusals;
    struct str node = str_of(task->action->name);
    auto_buf struct buf text = { .max = MAX_BODY };

    if (!refusals || (!why && !node_refusals_have(refusals, node)))
        return;
    slurm_action_write(&(const struct action){ .detail = task->action }, &text);
    if (why)
        node_refusals_add(refusals, node, buf_str(&text), why);
    else if (node_refusals_why(refusals, node, buf_str(&text)))
        node_refusals_forget(refusals, node);
}

/* Slurm said no, and people must see to it. Not of one among many: it is soon alone. A node that is
 * busy is not deleted yet, which is no trouble; for one more than MaxNodeCount there is no room. */
static bool is_refusal(const struct slurm_batch *batch, enum slurm_class class)
{
    bool is_full = class == SLURM_BUSY && batch->type == &slurm_create_node;

    return class == SLURM_FORBIDDEN ||
           (batch->count == 1 && (is_full || slurm_outcome(class) == KUBE_INVALID));
}

static enum kube_outcome judge(struct slurm_task *task, const struct slurm_answer *answer)
{
    const struct slurm_batch *batch = task->batch;
    enum slurm_class class = answer->error.class;

    if (class == SLURM_DONE || is_refusal(batch, class))
        note_refusal(task, class == SLURM_DONE ? NULL : answer->error.text);
    if (class == SLURM_NOT_FOUND && batch->type == &slurm_delete_node && batch->count == 1)
        return KUBE_DONE;
    if (batch->count > 1 && slurm_outcome(class) == KUBE_INVALID)
        return KUBE_CONFLICT; /* about one of them: alone it is told so */
    return slurm_outcome(class);
}

/* ---- calls ---- */

static const struct slurm_action *first_of(const struct slurm_batch *batch)
{
    return list_item(list_first(&batch->tasks), const struct slurm_task, queue_link)->action;
}

static void add_name(struct buf *names, const char *name)
{
    buf_printf(names, "%s%s", names->len > 0 ? "," : "", name);
}

static struct slurm_call *create(struct slurm_batch *batch)
{
    struct slurm_node_ask node = *node_of(first_of(batch));
    auto_buf struct buf names = { .max = MAX_BODY }, addresses = { .max = MAX_BODY };

    list_each (const struct slurm_task, task, &batch->tasks, queue_link) {
        add_name(&names, task->action->name);
        add_name(&addresses, node_of(task->action)->address);
    }
    node.names = buf_text(&names);
    node.address = buf_text(&addresses);
    return slurm_node_create(batch->queue->lane->client, &node, slurm_batch_answered, batch);
}

static struct slurm_call *update(struct slurm_batch *batch)
{
    struct slurm_client *client = batch->queue->lane->client;
    const struct slurm_action *first = first_of(batch);
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *doc = NULL;
    auto_buf struct buf text = { .max = MAX_BODY };
    struct json_mut *body, *names;

    if (batch->count == 1)
        return slurm_node_update(client, first->name, first->fields, slurm_batch_answered, batch);
    (void)json_parse(first->fields, MAX_BODY, &doc, NULL); /* an object: see check */
    body = json_copy(build, json_root(doc));
    names = json_put_array(build, body, "name");
    list_each (const struct slurm_task, task, &batch->tasks, queue_link)
        json_push_str(build, names, str_of(task->action->name));
    json_mut_write(body, &text);
    return slurm_nodes_update(client, buf_str(&text), slurm_batch_answered, batch);
}

static struct slurm_call *delete(struct slurm_batch *batch)
{
    auto_buf struct buf names = { .max = MAX_BODY };

    list_each (const struct slurm_task, task, &batch->tasks, queue_link)
        add_name(&names, task->action->name);
    return slurm_node_delete(batch->queue->lane->client, buf_text(&names), slurm_batch_answered,
                             batch);
}

static const char *deletion_objection(struct slurm_task *task)
{
    return slurm_poller_is_suspicious(task->lane->poller)
               ? "not sent: slurmctld may have been restarted"
               : NULL;
}

/* ---- what could spoil a whole call is refused alone ---- */

static int check(const struct slurm_action *action, struct err *err)
{
    auto_buf struct buf line = { .max = MAX_BODY };
    auto_json_doc struct json_doc *doc = NULL;
    int result = hostlist_check_name(str_of(action->name), err);

    if (result == 0 && action->type == &slurm_create_node)
        result = slurm_node_line(node_of(action), &line, err);
    if (result == 0 && action->type == &slurm_update_node &&
        (json_parse(action->fields, MAX_BODY, &doc, NULL) < 0 || !json_is_object(json_root(doc))))
        result = err_set(err, ERR_INVALID, "the fields of node %s are no object", action->name);
    return result;
}

static void start(struct slurm_task *task)
{
    struct err why = { .class = 0 };

    if (check(task->action, &why) == 0) {
        slurm_task_go(task);
        return;
    }
    note_refusal(task, why.text);
    slurm_task_end_soon(task, KUBE_INVALID, why.text);
}

/* ---- the rows ---- */

static void write_creation(const struct slurm_action *action, struct json_build *build,
                           struct json_mut *into)
{
    auto_buf struct buf line = { .max = MAX_BODY };
    struct err why = { .class = 0 };

    if (slurm_node_line(node_of(action), &line, &why) == 0)
        json_put_str(build, into, "line", buf_str(&line));
    else
        json_put_text(build, into, "invalid", why.text);
}

#define NODE_CALL(verb)                                                                            \
    .what = verb " slurm node", .key = "node", .family = &action_slurm_node,                       \
    .feed = SLURM_FEED_NODES, .max_batch = MAX_BATCH, .max_calls = MAX_CALLS, .settles = true,     \
    .start = start, .judge = judge

const struct slurm_call_type slurm_create_node = { NODE_CALL("create"), .send_all = create,
                                                   .go_together = is_alike,
                                                   .write = write_creation };
const struct slurm_call_type slurm_update_node = { NODE_CALL("update"), .send_all = update,
                                                   .go_together = has_same_fields };
const struct slurm_call_type slurm_delete_node = { NODE_CALL("delete"), .send_all = delete,
                                                   .objection = deletion_objection };

/* ---- for plans ---- */

struct action *plan_slurm_create_node(struct plan *plan, const struct slurm_node_ask *desc)
{
    struct creation *creation =
        slurm_action_new(plan, &slurm_create_node, sizeof(*creation), desc->names);
    const char **texts[] = { &creation->node.names,    &creation->node.address,
                             &creation->node.features, &creation->node.topology,
                             &creation->node.gres,     &creation->node.gres_conf };

    creation->node = *desc;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (*texts[i])
            *texts[i] = arena_strdup(plan->arena, *texts[i]);
    return slurm_action_add(plan, &creation->base, NULL);
}

struct action *plan_slurm_update_node(struct plan *plan, const char *name,
                                      const struct json_mut *fields)
{
    struct slurm_action *action = slurm_action_new(plan, &slurm_update_node, sizeof(*action), name);

    slurm_action_set_fields(plan, action, fields);
    return slurm_action_add(plan, action, NULL);
}

struct action *plan_slurm_delete_node(struct plan *plan, const char *name,
                                      const struct action_unless *unless)
{
    struct slurm_action *action = slurm_action_new(plan, &slurm_delete_node, sizeof(*action), name);

    slurm_action_set_unless(plan, action, unless);
    return slurm_action_add(plan, action, NULL);
}
