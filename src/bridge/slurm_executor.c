/* slurm_executor.c - the service: takes actions from the executor, ends jobs, and tells how it
 * went.
 *
 * Holds: every action is finished once, from the loop, or cancelled; a job is only touched while
 * the cache shows it as the plan saw it. Cancelling many jobs is one call: 100 at once take
 * slurmctld as long as one. */
#include "bridge/slurm_executor_private.h"

#include "base/log.h"

#include "base/mem.h"
#include "bridge/group.h"
#include "bridge/names.h"
#include "slurm/submit.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    SECOND_US = 1000000,
    CANCELS_AT_ONCE = 200, /* in one call */
    FEW_READS = 4,         /* more jobs than that are seen by polling their states */
    EXPECT_US = 2 * SECOND_US,
    ID_TEXT = 24,
    MAX_NODE_BATCH = 500,
    REFUSED_UPDATE_US = 600 * SECOND_US,
};

static const double submit_buckets[] = { 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2,
                                         0.5,   1,     2,    5,    10,   20,  0 };
static const double size_buckets[] = { 1, 2, 5, 10, 20, 50, 100, 200, 500, 0 };

const struct metric_family slurm_executor_metrics[] = {
    [EXECUTOR_SUBMITS] = { .name = "slinc_bridge_asks_total",
                           .help = "Jobs asked for, by way (submit, allocate) and result.",
                           .type = METRIC_COUNTER,
                           .labels = { "way", "result" } },
    [EXECUTOR_SUBMIT_SECONDS] = { .name = "slinc_bridge_ask_duration_seconds",
                                  .help = "Time from sending an ask to its answer.",
                                  .type = METRIC_HISTOGRAM,
                                  .labels = { "way" },
                                  .buckets = submit_buckets },
    [EXECUTOR_CANCELS] = { .name = "slinc_bridge_cancels_total",
                           .help = "Jobs to be cancelled, by how it ended.",
                           .type = METRIC_COUNTER,
                           .labels = { "result" } },
    [EXECUTOR_DUPLICATES] = { .name = "slinc_bridge_duplicate_jobs_total",
                              .help = "Jobs cancelled while their unit had another one that lived.",
                              .type = METRIC_COUNTER },
    [EXECUTOR_NODE_CALLS] = { .name = "slinc_bridge_node_calls_total",
                              .help = "Calls that create, update or delete Slurm nodes, by result.",
                              .type = METRIC_COUNTER,
                              .labels = { "verb", "result" } },
    [EXECUTOR_NODES_PER_CALL] = { .name = "slinc_bridge_nodes_per_call",
                                  .help = "Nodes in one such call.",
                                  .type = METRIC_HISTOGRAM,
                                  .labels = { "verb" },
                                  .buckets = size_buckets },
};
const size_t slurm_executor_metric_count =
    sizeof(slurm_executor_metrics) / sizeof(slurm_executor_metrics[0]);
_Static_assert(sizeof(slurm_executor_metrics) / sizeof(slurm_executor_metrics[0]) ==
                   EXECUTOR_METRICS,
               "a row each");

/* ---- works ---- */

static void task_free(struct slurm_task *task)
{
    loop_timer_stop(&task->timer);
    slurm_call_cancel(task->call);
    if (task->look)
        kube_call_cancel(task->look);
    json_doc_free(task->asked);
    list_remove(&task->queue_link);
    list_remove(&task->link);
    mem_free(task);
}

void task_end(struct slurm_task *task, enum kube_outcome outcome, const char *message)
{
    char text[sizeof(task->message)];
    struct kube_answer answer = {
        .outcome = outcome, .reason = "", .message = text, .retry_after_us = task->retry_after_us
    };
    executor_finish finish = task->finish;
    void *context = task->context;

    snprintf(text, sizeof(text), "%s", message);
    task_free(task);
    finish(context, &answer);
}

static void end_now(void *context)
{
    struct slurm_task *task = context;

    task_end(task, task->outcome, task->message);
}

void task_end_soon(struct slurm_task *task, enum kube_outcome outcome, const char *message)
{
    task->outcome = outcome;
    snprintf(task->message, sizeof(task->message), "%s", message);
    loop_timer_start(task->executor->loop, &task->timer, 0, end_now, task);
}

enum kube_outcome executor_outcome(enum slurm_class class)
{
    switch (class) {
    case SLURM_DONE:
    case SLURM_NOT_MODIFIED:
        return KUBE_DONE;
    case SLURM_NOT_FOUND:
    case SLURM_EXISTS:
    case SLURM_BUSY:
    case SLURM_UNKNOWN_NODE:
        return KUBE_CONFLICT;
    case SLURM_AUTH:
    case SLURM_FORBIDDEN:
        return KUBE_DENIED;
    case SLURM_INVALID:
    case SLURM_UNSATISFIABLE:
    case SLURM_NOT_SUPPORTED:
        return KUBE_INVALID;
    case SLURM_UNAVAILABLE:
    case SLURM_TIMEOUT:
        return KUBE_UNAVAILABLE;
    case SLURM_UNKNOWN:
    case SLURM_CLASSES:
        break;
    }
    return KUBE_UNKNOWN;
}

/* ---- only if the object is gone ---- */

/* Members that have a job of their own do not count. A pod that cannot be read might, and one that
 * bears the id of the job runs by it, whatever its group is now. */
static bool is_placed_in(const struct json *item, const struct action_unless *unless,
                         int64_t job_id)
{
    const struct kube_object *object;
    auto_buf struct buf key = { .max = SLURM_MAX_KEY };
    bool alone, placed, found, bears_id;
    char id[ID_TEXT];

    if (kube_object_decode(&kube_pod_kind, item, &object, NULL) < 0)
        return true;
    snprintf(id, sizeof(id), "%" PRId64, job_id);
    bears_id = str_is(kube_pairs_get(&object->labels, BRIDGE_JOB_LABEL, &found), id);
    group_key(kube_pod_of(object), &key);
    (void)kube_pairs_get(&object->annotations, BRIDGE_ALONE_ANNOTATION, &alone);
    placed = str_is(buf_str(&key), unless->unit) && !alone && (unless->job_id == 0 || !found);
    placed = kube_pod_of(object)->node_name[0] &&
             (placed || (bears_id && !kube_pod_is_finished(kube_pod_of(object))));
    kube_object_unref(object);
    return placed;
}

static bool list_has(const struct json *list, const struct slurm_task *task)
{
    struct json_iter iter = json_iter(json_get(list, "items"));
    const struct action_unless *unless = task->unless;
    const struct json *item;

    while (json_next_item(&iter, &item))
        if (unless->unit ? is_placed_in(item, unless, task->detail->job_id)
                         : str_is(json_str(json_at(item, "metadata", "uid")), unless->uid))
            return true;
    return false;
}

static void ask_unless(struct slurm_task *task);

/* Unknown is not gone. */
static void on_unless(void *context, const struct kube_answer *answer)
{
    struct slurm_task *task = context;
    const struct action_unless *unless = task->unless;
    struct str uid = json_str(json_at(answer->object, "metadata", "uid"));
    bool is_done = answer->outcome == KUBE_DONE, is_gone;

    task->look = NULL;
    if (unless->name)
        is_gone = answer->outcome == KUBE_GONE || (is_done && uid.len > 0 && unless->uid &&
                                                   unless->uid[0] && !str_is(uid, unless->uid));
    else
        is_gone = is_done && json_is_array(json_get(answer->object, "items")) &&
                  !list_has(answer->object, task);
    if (is_gone) {
        task->unless = unless->also;
        ask_unless(task);
    } else if (is_done) {
        task_end(task, KUBE_CONFLICT, "the object is still there");
    } else {
        task_end(task, answer->outcome, answer->message);
    }
}

static void ask_unless(struct slurm_task *task)
{
    const struct action_unless *unless = task->unless;
    struct kube_request request;

    if (!unless) {
        task->next(task);
        return;
    }
    request = (struct kube_request){
        .verb = unless->name ? KUBE_GET : KUBE_LIST,
        .resource = unless->resource,
        .ns = unless->ns,
        .name = unless->name,
    };
    task->look = kube_send(task->executor->options.kube, &request, on_unless, task);
}

void task_unless(struct slurm_task *task, void (*next)(struct slurm_task *task))
{
    task->next = next;
    task->unless = task->detail->has_unless ? &task->detail->unless : NULL;
    ask_unless(task);
}

/* ---- batches ---- */

struct batch *batch_new(struct slurm_executor *executor, enum slurm_action_kind kind)
{
    struct batch *batch = mem_alloc(sizeof(*batch));

    batch->executor = executor;
    batch->kind = kind;
    list_init(&batch->tasks);
    list_push_back(&executor->batches, &batch->link);
    return batch;
}

void batch_add(struct batch *batch, struct slurm_task *task)
{
    list_remove(&task->queue_link);
    list_push_back(&batch->tasks, &task->queue_link);
    task->batch = batch;
    batch->count++;
}

void batch_free(struct batch *batch)
{
    slurm_call_cancel(batch->call);
    list_remove(&batch->link);
    mem_free(batch);
}

/* ---- jobs: whether it is the one that was planned on ---- */

static const struct slurm_job *shown(const struct slurm_executor *executor, int64_t id)
{
    const struct slurm_object *object;
    char key[ID_TEXT];

    snprintf(key, sizeof(key), "%" PRId64, id);
    object = slurm_cache_get(executor->jobs, key);
    return object ? slurm_job_of(object) : NULL;
}

bool executor_may_send(const struct slurm_executor *executor)
{
    return !executor->options.may_act || executor->options.may_act(executor->options.context);
}

/* Why the job that an action is about must not be touched now; NULL when it may be. */
static const char *objection(const struct slurm_executor *executor,
                             const struct slurm_action *detail)
{
    const struct slurm_job *job = shown(executor, detail->job_id);

    if (!executor_may_send(executor))
        return "not sent: this bridge does not lead any more";
    if (slurm_poller_is_suspicious(executor->options.poller))
        return "not sent: slurmctld may have been restarted";
    if (!job)
        return "not sent: the job is no longer shown";
    if (detail->sluid[0] && job->sluid[0] && strcmp(detail->sluid, job->sluid) != 0)
        return "not sent: the id belongs to another job";
    if (detail->kind == ACTION_UPDATE_JOB &&
        detail->key.len == 0) /* one that is being taken over */
        return job->extra[0] ? "not sent: the job has a key meanwhile" : NULL;
    if (detail->key.len == 0 || !slurm_submit_is_for(job, executor->options.cluster, detail->key))
        return "not sent: the job does not carry the key that was planned on";
    return NULL;
}

static void wrote_job(struct slurm_executor *executor, int64_t id, bool read)
{
    char key[ID_TEXT];

    snprintf(key, sizeof(key), "%" PRId64, id);
    if (read)
        slurm_poller_wrote(executor->options.poller, SLURM_FEED_JOBS, key);
    else
        slurm_cache_wrote(executor->jobs, key, loop_now_us(executor->loop));
}

/* ---- jobs: cancelling ---- */

struct str slurm_action_unit(const struct slurm_action *detail)
{
    struct slurm_key key;

    return slurm_key_read(detail->key, &key) ? key.unit : detail->key;
}

static bool has_another(const struct slurm_executor *executor, const struct slurm_action *detail)
{
    struct slurm_index_walk walk =
        slurm_cache_by(executor->jobs, SLURM_JOBS_BY_KEY, slurm_action_unit(detail));
    const struct slurm_object *object;

    while ((object = slurm_index_next(&walk))) {
        const struct slurm_job *job = slurm_job_of(object);

        if (job->id != detail->job_id && !slurm_job_has_ended(&job->state))
            return true;
    }
    return false;
}

static void cancel_ended(struct slurm_task *task, const struct slurm_error *error, bool read)
{
    struct slurm_executor *executor = task->executor;
    bool is_over = error->class == SLURM_DONE || error->class == SLURM_NOT_FOUND;
    struct slurm_key key = { .attempt = 0 };

    (void)slurm_key_read(task->detail->key, &key);
    metrics_add(executor->options.metrics, &slurm_executor_metrics[EXECUTOR_CANCELS], 1,
                slurm_class_name(error->class), NULL);
    log_info("cancelled a job", LOG_STR("unit", slurm_action_unit(task->detail)),
             LOG_U64("attempt", key.attempt), LOG_I64("job", task->detail->job_id),
             LOG_TEXT("sluid", task->detail->sluid), LOG_TEXT("why", task->detail->why),
             LOG_TEXT("result", slurm_class_name(error->class)));
    if (!error->unsent)
        wrote_job(executor, task->detail->job_id, read);
    task_end(task, is_over ? KUBE_DONE : executor_outcome(error->class), error->text);
}

/* Whether an entry of `status` is about this job: by id, or by the name that it was cancelled by.
 */
static bool is_about(const struct json *status, const struct slurm_action *detail)
{
    struct str name = json_str(json_get(status, "step_id")), rest;
    int64_t id = json_i64_or(json_at(status, "job_id", "number"), 0), number;

    (void)str_cut(name, '.', &name, &rest); /* "99999.0" is a step of it */
    if (id <= 0 && str_to_i64(name, 1, INT64_MAX, &number, NULL) == 0)
        id = number;
    return id == detail->job_id || (detail->sluid[0] && str_is(name, detail->sluid));
}

/* What became of one job of many. An entry that does not say whose it is may be any's. */
static struct slurm_error error_of(const struct json *statuses, const struct slurm_action *detail)
{
    struct slurm_error error = { .class = SLURM_DONE };
    struct json_iter iter = json_iter(statuses);
    const struct json *status;

    while (json_next_item(&iter, &status)) {
        if (is_about(status, detail)) {
            slurm_classify_status(status, &error);
            return error;
        }
        if (json_i64_or(json_at(status, "job_id", "number"), 0) <= 0 &&
            json_str(json_get(status, "step_id")).len == 0) {
            error.class = SLURM_UNKNOWN;
            snprintf(error.text, sizeof(error.text), "one of several jobs was not cancelled");
        }
    }
    return error;
}

static void on_cancelled(void *context, const struct slurm_answer *answer)
{
    struct batch *batch = context;
    struct slurm_executor *executor = batch->executor;
    const struct json *statuses =
        answer->error.class == SLURM_DONE ? json_get(answer->body, "status") : NULL;
    bool read = batch->count <= FEW_READS;
    struct list *first;
    int64_t until_us;

    batch->call = NULL;
    slurm_poller_heard(executor->options.poller, answer);
    /* A cancel without a clear answer may take effect as long as a submit may. */
    until_us = answer->sent_us +
               slurm_submit_fence_us(executor->options.slurm, executor->message_timeout_s);
    if (answer->error.class != SLURM_DONE && !answer->error.nothing_done &&
        until_us > executor->cancels_until_us)
        executor->cancels_until_us = until_us;
    slurm_poller_expect(executor->options.poller, loop_now_us(executor->loop) + EXPECT_US);
    while ((first = list_first(&batch->tasks))) {
        struct slurm_task *task = list_item(first, struct slurm_task, queue_link);
        struct slurm_error error = answer->error;

        if (error.class == SLURM_DONE)
            error = error_of(statuses, task->detail);
        cancel_ended(task, &error, read);
    }
    batch_free(batch);
}

/* By its sluid where that is known: a cancel that waits in slurmrestd while slurmctld is down must
 * not hit another job that has got the id since. */
static const char *name_of(const struct slurm_action *detail, char id[ID_TEXT])
{
    if (detail->sluid[0])
        return detail->sluid;
    snprintf(id, ID_TEXT, "%" PRId64, detail->job_id);
    return id;
}

static struct batch *gather_cancels(struct slurm_executor *executor, const char **names,
                                    char (*ids)[ID_TEXT])
{
    struct batch *batch = batch_new(executor, ACTION_CANCEL);
    struct list *first;

    while (batch->count < CANCELS_AT_ONCE && (first = list_first(&executor->cancels))) {
        struct slurm_task *task = list_item(first, struct slurm_task, queue_link);
        const char *why = objection(executor, task->detail);

        if (why) {
            task_end(task, KUBE_CONFLICT, why);
            continue;
        }
        if (has_another(executor, task->detail))
            metrics_add(executor->options.metrics, &slurm_executor_metrics[EXECUTOR_DUPLICATES], 1,
                        NULL);
        names[batch->count] = name_of(task->detail, ids[batch->count]);
        batch_add(batch, task);
    }
    return batch;
}

static void send_cancels(void *context)
{
    struct slurm_executor *executor = context;
    const char *names[CANCELS_AT_ONCE];
    char ids[CANCELS_AT_ONCE][ID_TEXT];
    struct batch *batch = gather_cancels(executor, names, ids);

    if (batch->count == 0)
        batch_free(batch);
    else
        batch->call = slurm_jobs_cancel_named(executor->options.slurm, names, batch->count,
                                              on_cancelled, batch);
    if (!list_is_empty(&executor->cancels))
        loop_timer_start(executor->loop, &executor->cancel_timer, 0, send_cancels, executor);
}

static void cancel_job(struct slurm_task *task)
{
    struct slurm_executor *executor = task->executor;
    struct str unit;
    uint64_t attempt;

    /* Before the cancel: the next submit, whoever plans it, must not get this node again. */
    if (task->detail->misfit)
        unit_state_add_misfit(
            unit_states_need(executor->options.unit_states, slurm_action_unit(task->detail)),
            task->detail->misfit);
    /* Whatever becomes of the cancel, and even if it comes only when the job runs. */
    unit = slurm_action_unit(task->detail);
    if (unit.len < task->detail->key.len && unit_states_get(executor->options.unit_states, unit) &&
        str_to_u64(str_sub(task->detail->key, unit.len + 1, task->detail->key.len), 1, UINT32_MAX,
                   &attempt, NULL) == 0)
        unit_state_give_up(unit_states_need(executor->options.unit_states, unit),
                           (unsigned)attempt);
    list_push_back(&executor->cancels, &task->queue_link);
    if (!loop_timer_is_armed(&executor->cancel_timer))
        loop_timer_start(executor->loop, &executor->cancel_timer, 0, send_cancels, executor);
}

/* ---- jobs: looking and updating ---- */

/* What a job that waits was submitted with is remembered. A change that Slurm refused is not sent
 * again while nothing that matters changes. What it refused may have been made in part, and what it
 * did not answer, too: that is open, and is said again with the next change, or at the next look.
 */
void sync_submitted(struct unit_state *unit, int64_t job_id, const struct job_desc *desc)
{
    unit->last_applied = (struct last_applied){ .job_id = job_id };
    field_hashes_of(desc, &unit->last_applied.hashes);
}

static enum kube_outcome sync_answered(struct slurm_task *task, const struct slurm_error *error)
{
    struct slurm_executor *executor = task->executor;
    const struct slurm_action *detail = task->detail;
    struct unit_state *unit =
        unit_states_need(executor->options.unit_states, slurm_action_unit(detail));
    struct last_applied *last;

    unit->last_applied =
        (struct last_applied){ .job_id = detail->job_id, .hashes = detail->hashes };
    if (error->class == SLURM_DONE) {
        unit->last_applied.settles = field_hashes_have_unknown(&detail->hashes);
        field_hashes_settle(&unit->last_applied.hashes, &detail->job);
        return KUBE_DONE;
    }
    /* The job started or ended before the update came: the answer says nothing about the change. */
    if (error->number == 2021 || error->number == 2083 || error->number == 2084)
        return KUBE_CONFLICT;
    /* By an answer that is about the change. Others come again with the next look: slurmctld also
     * says "try again" (11) while it goes through the queue. */
    if (error->class != SLURM_INVALID && error->class != SLURM_UNSATISFIABLE &&
        error->class != SLURM_NOT_SUPPORTED && error->class != SLURM_FORBIDDEN)
        return executor_outcome(error->class);
    log_info("Slurm refused to change a job", LOG_STR("unit", slurm_action_unit(detail)),
             LOG_I64("job", detail->job_id), LOG_I64("number", error->number),
             LOG_TEXT("error", error->text));
    last = &unit->last_applied;
    last->refused = job_desc_hash(&detail->job);
    last->site = capacity_generation(executor->options.capacity);
    last->again_us = loop_now_us(executor->loop) + REFUSED_UPDATE_US;
    (void)snprintf(unit->submit.text, sizeof(unit->submit.text), "%s", error->text);
    executor->options.wake_unit(executor->options.context, slurm_action_unit(detail));
    return KUBE_DONE; /* the unit state tells the next plan what to do */
}

static void on_updated(void *context, const struct slurm_answer *answer)
{
    struct slurm_task *task = context;
    struct slurm_executor *executor = task->executor;

    task->call = NULL;
    slurm_poller_heard(executor->options.poller, answer);
    if (!answer->error.unsent)
        wrote_job(executor, task->detail->job_id, true);
    task_end(task,
             task->detail->is_sync ? sync_answered(task, &answer->error)
                                   : executor_outcome(answer->error.class),
             answer->error.text);
}

static void update_job(struct slurm_task *task)
{
    const char *why = objection(task->executor, task->detail);

    if (why)
        task_end_soon(task, KUBE_CONFLICT, why);
    else if (task->detail->fields.len == 0)
        task_end_soon(task, sync_answered(task, &(struct slurm_error){ .class = SLURM_DONE }), "");
    else
        task->call = slurm_job_update(task->executor->options.slurm, task->detail->job_id,
                                      task->detail->fields, on_updated, task);
}

static void look_at_job(struct slurm_task *task)
{
    char key[ID_TEXT];

    snprintf(key, sizeof(key), "%" PRId64, task->detail->job_id);
    slurm_poller_read(task->executor->options.poller, SLURM_FEED_JOBS, key);
    task_end_soon(task, KUBE_DONE, "");
}

/* ---- for the executor ---- */

void *executor_start(void *service, const struct action *action, executor_finish finish,
                     void *context)
{
    struct slurm_executor *executor = service;
    struct slurm_task *task = mem_alloc(sizeof(*task));

    task->executor = executor;
    task->detail = action->detail;
    task->finish = finish;
    task->context = context;
    list_push_back(&executor->tasks, &task->link);
    switch (task->detail->kind) {
    case ACTION_SUBMIT:
        submit_start(task);
        break;
    case ACTION_CANCEL:
        task_unless(task, cancel_job);
        break;
    case ACTION_LOOK:
        look_at_job(task);
        break;
    case ACTION_LAYOUT:
        layout_start(task);
        break;
    case ACTION_UPDATE_JOB:
        update_job(task);
        break;
    case ACTION_CREATE_NODE:
    case ACTION_UPDATE_NODE:
    case ACTION_DELETE_NODE:
    case ACTION_KINDS:
        node_start(task);
        break;
    }
    return task;
}

void executor_cancel(void *service, void *handle)
{
    struct slurm_task *task = handle;

    if (task->detail->kind == ACTION_SUBMIT)
        submit_cancelled(task);
    task_free(task);
}

/* ---- the executor ---- */

struct slurm_executor *slurm_executor_new(const struct slurm_executor_options *options)
{
    struct slurm_executor *executor = mem_alloc(sizeof(*executor));

    executor->options = *options;
    executor->cluster = mem_strndup(options->cluster.at, options->cluster.len);
    executor->options.cluster = str_of(executor->cluster);
    executor->loop = slurm_client_loop(options->slurm);
    executor->jobs = slurm_poller_cache(options->poller, SLURM_FEED_JOBS);
    executor->nodes = slurm_poller_cache(options->poller, SLURM_FEED_NODES);
    executor->list_asked_us = INT64_MIN;
    list_init(&executor->tasks);
    list_init(&executor->batches);
    list_init(&executor->cancels);
    list_init(&executor->submits);
    list_init(&executor->node_tasks);
    list_init(&executor->settling);
    for (size_t i = 0; i < ACTION_KINDS; i++)
        executor->batch_max[i] = MAX_NODE_BATCH;
    return executor;
}

void slurm_executor_free(struct slurm_executor *executor)
{
    if (!executor)
        return;
    list_each (struct slurm_task, task, &executor->tasks, link)
        task_free(task);
    list_each (struct batch, batch, &executor->batches, link)
        batch_free(batch);
    submit_done(executor);
    node_done(executor);
    loop_timer_stop(&executor->cancel_timer);
    mem_free(executor->cluster);
    mem_free(executor);
}

bool slurm_executor_has_unanswered_cancels(const struct slurm_executor *executor)
{
    list_each (const struct batch, batch, &executor->batches, link)
        if (batch->kind == ACTION_CANCEL)
            return true;
    return loop_now_us(executor->loop) < executor->cancels_until_us;
}

void slurm_executor_set_message_timeout(struct slurm_executor *executor, int64_t seconds)
{
    executor->message_timeout_s = seconds;
}
