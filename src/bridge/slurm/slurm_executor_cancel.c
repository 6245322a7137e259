/* slurm_executor_cancel.c - cancels jobs: many in one call, each only if its guard does not object.
 *
 * Holds: a job is cancelled only if the objects of its guard (action_unless) are gone by a direct
 * read, and the cache shows it as the plan saw it when the call is sent. Cancelling many jobs is
 * one call: 100 at once take slurmctld as long as one. Lists of a guard are read page by page, two
 * at a time. */
#include "bridge/slurm/slurm_executor_private.h"

#include "base/log.h"
#include "bridge/world/group.h"
#include "bridge/world/names.h"
#include "io/http_text.h"
#include "slurm/submit.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    SECOND_US = 1000000,
    LISTS_AT_ONCE = 2,
    PODS_PER_PAGE = 500,
    MAX_QUERY = 16384,
    CANCELS_AT_ONCE = 200, /* in one call */
    FEW_READS = 4,         /* more jobs than that are seen by polling their states */
    EXPECT_US = 2 * SECOND_US,
};

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
    bears_id =
        str_is(kube_pairs_get(&object->labels, BRIDGE_JOB_LABEL, &found), id_text(job_id, id));
    group_key(kube_pod_of(object), &key);
    (void)kube_pairs_get(&object->annotations, BRIDGE_ALONE_ANNOTATION, &alone);
    placed = str_is(buf_str(&key), unless->unit) && !alone && (unless->job_id == 0 || !found);
    placed = kube_pod_of(object)->node_name[0] &&
             (placed || (bears_id && !kube_pod_is_finished(kube_pod_of(object))));
    kube_object_unref(object);
    return placed;
}

static bool list_has(const struct json *list, const struct executor_task *task)
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

static void ask_unless(struct executor_task *task);
static void on_unless(void *context, const struct kube_answer *answer);

/* token: where the list goes on, as the page before said; "" for the first page. */
static void read_page(struct executor_task *task, struct str token)
{
    const struct action_unless *unless = task->unless;
    auto_buf struct buf query = { .max = MAX_QUERY };

    buf_printf(&query, "limit=%d", PODS_PER_PAGE);
    if (token.len > 0) {
        buf_add_text(&query, "&continue=");
        http_escape(token, &query);
    }
    if (query.overflowed) {
        slurm_task_end(&task->base, KUBE_UNAVAILABLE, "a list goes on by a token that is too long");
        return;
    }
    task->look = kube_send(task->executor->options.kube,
                           &(struct kube_request){ .verb = KUBE_LIST,
                                                   .resource = unless->resource,
                                                   .ns = unless->ns,
                                                   .query = buf_text(&query) },
                           on_unless, task);
}

static void send_lists(void *context)
{
    struct slurm_executor *executor = context;
    struct list *first;

    while (executor->lists_in_flight < LISTS_AT_ONCE &&
           (first = list_pop_front(&executor->list_waiters)) != NULL) {
        struct executor_task *task = list_item(first, struct executor_task, base.queue_link);

        task->is_listing = true;
        executor->lists_in_flight++;
        read_page(task, STR(""));
    }
}

void task_stop_listing(struct executor_task *task)
{
    struct slurm_executor *executor = task->executor;

    if (!task->is_listing)
        return;
    task->is_listing = false;
    executor->lists_in_flight--;
    if (!list_is_empty(&executor->list_waiters))
        loop_timer_start(executor->lane.loop, &executor->list_timer, 0, send_lists, executor);
}

/* Unknown is not gone. */
static void on_unless(void *context, const struct kube_answer *answer)
{
    struct executor_task *task = context;
    const struct action_unless *unless = task->unless;
    struct str uid = json_str(json_at(answer->object, "metadata", "uid"));
    struct str token = json_str(json_at(answer->object, "metadata", "continue"));
    bool is_done = answer->outcome == KUBE_DONE, is_gone;

    task->look = NULL;
    if (unless->name)
        is_gone = answer->outcome == KUBE_GONE || (is_done && uid.len > 0 && unless->uid &&
                                                   unless->uid[0] && !str_is(uid, unless->uid));
    else
        is_gone = is_done && json_is_array(json_get(answer->object, "items")) &&
                  !list_has(answer->object, task);
    if (is_gone && !unless->name && token.len > 0) {
        read_page(task, token);
        return;
    }
    task_stop_listing(task);
    if (is_gone) {
        task->unless = unless->also;
        ask_unless(task);
    } else if (is_done) {
        slurm_task_end(&task->base, KUBE_CONFLICT, "the object is still there");
    } else {
        slurm_task_end(&task->base, answer->outcome, answer->message);
    }
}

/* Lists may be long, and many jobs may wait for theirs at once: a few are read at a time. */
static void ask_unless(struct executor_task *task)
{
    struct slurm_executor *executor = task->executor;
    const struct action_unless *unless = task->unless;

    if (!unless) {
        task->next(task);
    } else if (!unless->name) {
        list_push_back(&executor->list_waiters, &task->base.queue_link);
        send_lists(executor);
    } else {
        task->look = kube_send(executor->options.kube,
                               &(struct kube_request){ .verb = KUBE_GET,
                                                       .resource = unless->resource,
                                                       .ns = unless->ns,
                                                       .name = unless->name },
                               on_unless, task);
    }
}

void task_unless(struct executor_task *task, void (*next)(struct executor_task *task))
{
    task->next = next;
    task->unless = task->detail->unless;
    ask_unless(task);
}

/* ---- cancelling ---- */

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

static void cancel_ended(struct executor_task *task, const struct slurm_error *error, bool read)
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
    slurm_task_end(&task->base, is_over ? KUBE_DONE : slurm_outcome(error->class), error->text);
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
    slurm_lane_heard(&executor->lane, answer);
    /* A cancel without a clear answer may take effect as long as a submit may. */
    until_us = answer->sent_us +
               slurm_submit_fence_us(executor->options.slurm, executor->message_timeout_s);
    if (answer->error.class != SLURM_DONE && !answer->error.nothing_done &&
        until_us > executor->cancels_until_us)
        executor->cancels_until_us = until_us;
    slurm_poller_expect(executor->options.poller, loop_now_us(executor->lane.loop) + EXPECT_US);
    while ((first = list_first(&batch->tasks))) {
        struct executor_task *task = list_item(first, struct executor_task, base.queue_link);
        struct slurm_error error = answer->error;

        if (error.class == SLURM_DONE)
            error = error_of(statuses, task->detail);
        cancel_ended(task, &error, read);
    }
    batch_free(batch);
}

static struct batch *gather_cancels(struct slurm_executor *executor, const char **names,
                                    char (*ids)[ID_TEXT])
{
    struct batch *batch = batch_new(executor, ACTION_CANCEL);
    struct list *first;

    while (batch->count < CANCELS_AT_ONCE && (first = list_first(&executor->cancels))) {
        struct executor_task *task = list_item(first, struct executor_task, base.queue_link);
        const char *why = job_objection(executor, task->detail);

        if (why) {
            slurm_task_end(&task->base, KUBE_CONFLICT, why);
            continue;
        }
        if (has_another(executor, task->detail))
            metrics_add(executor->options.metrics, &slurm_executor_metrics[EXECUTOR_DUPLICATES], 1,
                        NULL);
        /* By its sluid where that is known: a cancel that waits in slurmrestd while slurmctld is
         * down must not hit another job that has got the id since. */
        names[batch->count] = task->detail->sluid[0]
                                  ? task->detail->sluid
                                  : id_text(task->detail->job_id, ids[batch->count]);
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
        loop_timer_start(executor->lane.loop, &executor->cancel_timer, 0, send_cancels, executor);
}

static void cancel_job(struct executor_task *task)
{
    struct slurm_executor *executor = task->executor;
    const struct slurm_action *detail = task->detail;
    struct unit_state *state;
    struct slurm_key key;

    /* Before the cancel: the next submit, whoever plans it, must not get this node again. */
    if (detail->misfit)
        unit_state_add_misfit(
            unit_states_need(executor->options.unit_states, slurm_action_unit(detail)),
            detail->misfit);
    /* Whatever becomes of the cancel, and even if it comes only when the job runs. The attempts of
     * a group go on when its object is made again, so the uid in the key makes no difference. */
    state = unit_states_find(executor->options.unit_states, slurm_action_unit(detail));
    if (state && slurm_key_read(detail->key, &key))
        unit_state_give_up(state, key.attempt);
    list_push_back(&executor->cancels, &task->base.queue_link);
    if (!loop_timer_is_armed(&executor->cancel_timer))
        loop_timer_start(executor->lane.loop, &executor->cancel_timer, 0, send_cancels, executor);
}

void cancel_start(struct executor_task *task)
{
    task_unless(task, cancel_job);
}

void cancel_done(struct slurm_executor *executor)
{
    loop_timer_stop(&executor->cancel_timer);
    loop_timer_stop(&executor->list_timer);
}

bool slurm_executor_has_unanswered_cancels(const struct slurm_executor *executor)
{
    list_each (const struct batch, batch, &executor->batches, link)
        if (batch->kind == ACTION_CANCEL)
            return true;
    return loop_now_us(executor->lane.loop) < executor->cancels_until_us;
}
