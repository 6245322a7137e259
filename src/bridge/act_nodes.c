/* act_nodes.c - makes, changes and deletes Slurm nodes, many in one call.
 *
 * What comes in one turn of the loop is gathered: nodes of one shape are made by one line, with
 * their addresses in the same order; equal changes and deletions go as one list. A deed is finished
 * when the node cache is as new as its answer, so that the next plan sees what it did. Some
 * answers tell of one node of many: the cache then tells which, and each is planned again. What is
 * refused about a node is remembered, for its plan to tell.
 *
 * Holds: as many addresses as names in one line, or slurmctld ends itself; nodes with gres are made
 * one by one (of a range Slurm would make a part); nothing is deleted while slurmctld is suspected.
 */
#include "bridge/act_private.h"

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
    SETTLE_US = 5 * SECOND_US, /* the longest that a finished deed waits for the cache */
};

static const char *verb(enum deed_kind kind)
{
    switch (kind) {
    case DEED_CREATE_NODE:
        return "create";
    case DEED_UPDATE_NODE:
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

static bool same_shape(const struct slurm_node_ask *a, const struct slurm_node_ask *b)
{
    return a->cpus == b->cpus && a->sockets == b->sockets &&
           a->cores_per_socket == b->cores_per_socket &&
           a->threads_per_core == b->threads_per_core && a->memory == b->memory &&
           a->weight == b->weight && same_text(a->features, b->features) &&
           same_text(a->topology, b->topology);
}

static bool has_gres(const struct deed *deed)
{
    return deed->make.gres && deed->make.gres[0];
}

static bool go_together(const struct deed *a, const struct deed *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case DEED_CREATE_NODE:
        return !has_gres(a) && !has_gres(b) && same_shape(&a->make, &b->make);
    case DEED_UPDATE_NODE:
        return str_eq(a->fields, b->fields);
    default:
        return true;
    }
}

/* ---- seeing what was done ---- */

static void look_at_settling(void *context);

static bool is_seen(const struct actor *actor, const struct work *work)
{
    return slurm_cache_known_us(actor->nodes, work->deed->node) >= work->answered_us ||
           loop_now_us(actor->loop) - work->answered_us >= SETTLE_US;
}

static void finish(struct work *work)
{
    const struct actor_options *options = &work->actor->options;

    options->wake_node(options->context, str_of(work->deed->node));
    work_end(work, work->outcome, work->message);
}

/* One round through the list; what is not seen yet goes to its end. */
static void look_at_settling(void *context)
{
    struct actor *actor = context;
    struct list seen, *first;

    list_init(&seen);
    list_each (struct work, work, &actor->settling, turn) {
        if (!is_seen(actor, work))
            continue;
        list_remove(&work->turn);
        list_push_back(&seen, &work->turn);
    }
    if (!list_is_empty(&actor->settling))
        loop_timer_start(actor->loop, &actor->settling_timer, SETTLE_LOOK_US, look_at_settling,
                         actor);
    while ((first = list_first(&seen)))
        finish(list_item(first, struct work, turn));
}

static void settle(struct work *work, enum kube_outcome outcome, const char *message)
{
    struct actor *actor = work->actor;

    work->batch = NULL;
    work->outcome = outcome;
    work->answered_us = loop_now_us(actor->loop);
    snprintf(work->message, sizeof(work->message), "%s", message);
    list_remove(&work->turn);
    list_push_back(&actor->settling, &work->turn);
    if (!loop_timer_is_armed(&actor->settling_timer))
        loop_timer_start(actor->loop, &actor->settling_timer, SETTLE_LOOK_US, look_at_settling,
                         actor);
}

/* ---- refusals ---- */

static void write_deed(const struct work *work, struct buf *out)
{
    deed_write(&(const struct action){ .detail = work->deed }, out);
}

static void remember_refusal(const struct work *work, const char *why)
{
    auto_buf struct buf text;

    buf_init(&text, MAX_BODY);
    write_deed(work, &text);
    node_refusals_add(work->actor->options.node_refusals, str_of(work->deed->node), buf_str(&text),
                      why);
}

static void forget_refusal(const struct work *work)
{
    struct node_refusals *refusals = work->actor->options.node_refusals;
    auto_buf struct buf text;

    buf_init(&text, MAX_BODY);
    if (!node_refusals_have(refusals, str_of(work->deed->node)))
        return;
    write_deed(work, &text);
    node_refusals_done(refusals, str_of(work->deed->node), buf_str(&text));
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
        return batch->count == 1 && batch->kind == DEED_CREATE_NODE;
    case SLURM_FORBIDDEN:
        return true;
    default:
        return false;
    }
}

static void learn(const struct batch *batch, const struct work *work,
                  const struct slurm_error *error)
{
    if (error->class == SLURM_DONE)
        forget_refusal(work);
    else if (is_refusal(batch, error->class))
        remember_refusal(work, error->text);
}

/* ---- answers ---- */

static enum kube_outcome outcome_of(const struct batch *batch, const struct slurm_error *error)
{
    if (error->class == SLURM_NOT_FOUND && batch->kind == DEED_DELETE_NODE && batch->count == 1)
        return KUBE_DONE;
    if (batch->count > 1 && act_outcome(error->class) == KUBE_INVALID)
        return KUBE_CONFLICT; /* about one of them: alone it is told so */
    return act_outcome(error->class);
}

static void adapt(struct batch *batch, enum kube_outcome outcome)
{
    size_t *max = &batch->actor->batch_max[batch->kind];

    if (outcome == KUBE_DONE)
        *max = *max * 2 < MAX_BATCH ? *max * 2 : MAX_BATCH;
    else if (outcome == KUBE_CONFLICT && batch->count > 1)
        *max = (batch->count + 1) / 2;
}

static void send_nodes(void *context);

static void send_soon(struct actor *actor)
{
    if (!list_is_empty(&actor->node_works) && !loop_timer_is_armed(&actor->node_timer))
        loop_timer_start(actor->loop, &actor->node_timer, 0, send_nodes, actor);
}

/* Reads after it: one by one, or all in one list. */
static void read_again(struct batch *batch)
{
    struct slurm_poller *poller = batch->actor->options.poller;

    list_each (const struct work, work, &batch->works, turn) {
        if (batch->count <= FEW_READS)
            slurm_poller_wrote(poller, SLURM_FEED_NODES, work->deed->node);
        else
            slurm_cache_wrote(batch->actor->nodes, work->deed->node,
                              loop_now_us(batch->actor->loop));
    }
    slurm_poller_expect(poller, loop_now_us(batch->actor->loop) + SETTLE_US);
    if (batch->count > FEW_READS)
        slurm_poller_refresh(poller, SLURM_FEED_NODES);
}

static void on_answer(void *context, const struct slurm_answer *answer)
{
    struct batch *batch = context;
    struct actor *actor = batch->actor;
    const struct slurm_error *error = &answer->error;
    enum kube_outcome outcome = outcome_of(batch, error);
    struct list *first;

    batch->call = NULL;
    actor->node_calls--;
    slurm_poller_heard(actor->options.poller, answer);
    metrics_add(actor->options.metrics, &actor_metrics[ACTOR_NODE_CALLS], 1, verb(batch->kind),
                slurm_class_name(error->class), NULL);
    adapt(batch, outcome);
    if (!error->unsent)
        read_again(batch);
    while ((first = list_first(&batch->works))) {
        struct work *work = list_item(first, struct work, turn);

        learn(batch, work, error);
        settle(work, outcome, error->text);
        if (error->unsent) /* there is nothing to see */
            work->answered_us = INT64_MIN;
    }
    batch_free(batch);
    send_soon(actor);
}

/* ---- calls ---- */

static struct slurm_call *create(struct batch *batch)
{
    const struct work *first = list_item(list_first(&batch->works), const struct work, turn);
    struct slurm_node_ask ask = first->deed->make;
    auto_buf struct buf names;
    auto_buf struct buf addresses;

    buf_init(&names, MAX_BODY);
    buf_init(&addresses, MAX_BODY);
    list_each (const struct work, work, &batch->works, turn) {
        buf_printf(&names, "%s%s", names.len > 0 ? "," : "", work->deed->node);
        buf_printf(&addresses, "%s%s", addresses.len > 0 ? "," : "", work->deed->make.address);
    }
    ask.names = buf_text(&names);
    ask.address = buf_text(&addresses);
    return slurm_node_create(batch->actor->options.slurm, &ask, on_answer, batch);
}

static struct slurm_call *update(struct batch *batch)
{
    struct slurm_client *slurm = batch->actor->options.slurm;
    const struct work *first = list_item(list_first(&batch->works), const struct work, turn);
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *doc = NULL;
    struct json_mut *body, *names;
    auto_buf struct buf text;

    buf_init(&text, MAX_BODY);
    if (batch->count == 1)
        return slurm_node_update(slurm, first->deed->node, first->deed->fields, on_answer, batch);
    (void)json_parse(first->deed->fields, MAX_BODY, &doc, NULL); /* an object: see node_start */
    body = json_copy(build, json_root(doc));
    names = json_put_array(build, body, "name");
    list_each (const struct work, work, &batch->works, turn)
        json_push_str(build, names, str_of(work->deed->node));
    json_mut_write(body, &text);
    return slurm_nodes_update(slurm, buf_str(&text), on_answer, batch);
}

static struct slurm_call *delete(struct batch *batch)
{
    auto_buf struct buf names;

    buf_init(&names, MAX_BODY);
    list_each (const struct work, work, &batch->works, turn)
        buf_printf(&names, "%s%s", names.len > 0 ? "," : "", work->deed->node);
    return slurm_node_delete(batch->actor->options.slurm, buf_text(&names), on_answer, batch);
}

static void send_batch(struct batch *batch)
{
    struct actor *actor = batch->actor;

    actor->node_calls++;
    metrics_observe(actor->options.metrics, &actor_metrics[ACTOR_NODES_PER_CALL],
                    (double)batch->count, verb(batch->kind), NULL);
    if (batch->kind == DEED_CREATE_NODE)
        batch->call = create(batch);
    else if (batch->kind == DEED_UPDATE_NODE)
        batch->call = update(batch);
    else
        batch->call = delete (batch);
}

/* ---- gathering ---- */

/* The first that waits, and all that may go with it. */
static struct batch *gather(struct actor *actor)
{
    const struct work *first = list_item(list_first(&actor->node_works), const struct work, turn);
    const struct deed *like = first->deed;
    struct batch *batch = batch_new(actor, like->kind);
    size_t path = 0;

    list_each (struct work, work, &actor->node_works, turn) {
        size_t length = strlen(work->deed->node) + strlen("%2C");

        if (batch->count > 0 && !go_together(like, work->deed))
            continue;
        if (like->kind == DEED_DELETE_NODE && path + length > MAX_PATH_NAMES)
            break;
        path += length;
        batch_add(batch, work);
        if (batch->count >= actor->batch_max[like->kind])
            break;
    }
    return batch;
}

static void refuse(struct actor *actor, bool deletions_only, const char *why)
{
    struct list refused, *first;

    list_init(&refused);
    list_each (struct work, work, &actor->node_works, turn) {
        if (deletions_only && work->deed->kind != DEED_DELETE_NODE)
            continue;
        list_remove(&work->turn);
        list_push_back(&refused, &work->turn);
    }
    while ((first = list_first(&refused)))
        work_end(list_item(first, struct work, turn), KUBE_CONFLICT, why);
}

static void send_nodes(void *context)
{
    struct actor *actor = context;

    if (!act_may_send(actor))
        refuse(actor, false, "not sent: this bridge does not lead any more");
    else if (slurm_poller_is_suspicious(actor->options.poller))
        refuse(actor, true, "not sent: slurmctld may have been restarted");
    while (actor->node_calls < MAX_CALLS && !list_is_empty(&actor->node_works))
        send_batch(gather(actor));
}

static void enqueue(struct work *work)
{
    list_push_back(&work->actor->node_works, &work->turn);
    send_soon(work->actor);
}

/* ---- what could spoil a whole call is refused alone ---- */

static bool is_object(struct str text)
{
    auto_json_doc struct json_doc *doc = NULL;

    return json_parse(text, MAX_BODY, &doc, NULL) == 0 && json_is_object(json_root(doc));
}

static int check(const struct deed *deed, struct err *err)
{
    auto_buf struct buf line;
    int result = hostlist_check_name(str_of(deed->node), err);

    buf_init(&line, MAX_BODY);
    if (result == 0 && deed->kind == DEED_CREATE_NODE)
        result = slurm_node_line(&deed->make, &line, err);
    if (result == 0 && deed->kind == DEED_UPDATE_NODE && !is_object(deed->fields))
        result = err_set(err, ERR_INVALID, "the fields of node %s are no object", deed->node);
    return result;
}

void node_start(struct work *work)
{
    struct err why = { 0 };

    if (check(work->deed, &why) < 0) {
        remember_refusal(work, why.text);
        work_end_soon(work, KUBE_INVALID, why.text);
    } else {
        work_unless(work, enqueue);
    }
}

void node_done(struct actor *actor)
{
    loop_timer_stop(&actor->node_timer);
    loop_timer_stop(&actor->settling_timer);
}
