/* slurm_executor.c - the service: takes actions from the engine, reads and updates jobs.
 *
 * Holds: every action is finished once, from the loop, or cancelled (engine/slurm_lane.h); a job is
 * only touched while the cache shows it as the plan saw it. */
#include "bridge/slurm/slurm_executor_private.h"

#include "base/log.h"
#include "base/mem.h"
#include "slurm/submit.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    SECOND_US = 1000000,
    MAX_NODE_BATCH = 500,
    REFUSED_UPDATE_US = 600 * SECOND_US,
};

static const double submit_buckets[] = { 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2,
                                         0.5,   1,     2,    5,    10,   20,  0 };
static const double size_buckets[] = { 1, 2, 5, 10, 20, 50, 100, 200, 500, 0 };

const struct metric_family slurm_executor_metrics[] = {
    [EXECUTOR_SUBMITS] = { .name = "slinc_bridge_asks_total",
                           .help = "Jobs submitted, by way (submit, allocate) and result.",
                           .type = METRIC_COUNTER,
                           .labels = { "way", "result" } },
    [EXECUTOR_SUBMIT_SECONDS] = { .name = "slinc_bridge_ask_duration_seconds",
                                  .help = "Time from sending a submit to its answer.",
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

/* ---- tasks ---- */

static void task_done(struct slurm_task *base)
{
    struct executor_task *task = list_item(base, struct executor_task, base);

    if (task->look)
        kube_call_cancel(task->look);
    task_stop_listing(task);
    json_doc_free(task->asked);
}

const char *id_text(int64_t id, char text[ID_TEXT])
{
    (void)snprintf(text, ID_TEXT, "%" PRId64, id);
    return text;
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

void batch_add(struct batch *batch, struct executor_task *task)
{
    list_remove(&task->base.queue_link);
    list_push_back(&batch->tasks, &task->base.queue_link);
    batch->count++;
}

void batch_free(struct batch *batch)
{
    slurm_call_cancel(batch->call);
    list_remove(&batch->link);
    mem_free(batch);
}

/* ---- jobs: whether it is the one that was planned on ---- */

const char *job_objection(const struct slurm_executor *executor, const struct slurm_action *detail)
{
    char key[ID_TEXT];
    const struct slurm_object *object =
        slurm_cache_get(executor->jobs, id_text(detail->job_id, key));
    const struct slurm_job *job = object ? slurm_job_of(object) : NULL;

    if (!slurm_lane_may_send(&executor->lane))
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

void wrote_job(struct slurm_executor *executor, int64_t id, bool read)
{
    char text[ID_TEXT];
    const char *key = id_text(id, text);

    if (read)
        slurm_poller_wrote(executor->options.poller, SLURM_FEED_JOBS, key);
    else
        slurm_cache_wrote(executor->jobs, key, loop_now_us(executor->lane.loop));
}

/* ---- jobs: looking and updating ---- */

struct str slurm_action_unit(const struct slurm_action *detail)
{
    struct slurm_key key;

    return slurm_key_read(detail->key, &key) ? key.unit : detail->key;
}

/* What a job that waits was submitted with is remembered. A change that Slurm refused is not sent
 * again while nothing that matters changes. What it refused may have been made in part, and what it
 * did not answer, too: that is open, and is said again with the next change, or at the next look.
 */
void sync_submitted(struct unit_state *unit, int64_t job_id, const struct job_desc *desc)
{
    unit->last_applied = (struct last_applied){ .job_id = job_id };
    field_hashes_of(desc, &unit->last_applied.hashes);
}

static enum kube_outcome sync_answered(struct executor_task *task, const struct slurm_error *error)
{
    struct slurm_executor *executor = task->executor;
    const struct slurm_action *detail = task->detail;
    struct unit_state *unit =
        unit_states_need(executor->options.unit_states, slurm_action_unit(detail));
    struct last_applied *last;

    unit->last_applied =
        (struct last_applied){ .job_id = detail->job_id, .hashes = detail->hashes };
    if (error->class == SLURM_DONE) {
        unit->last_applied.needs_final_note = field_hashes_have_unknown(&detail->hashes);
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
        return slurm_outcome(error->class);
    log_info("Slurm refused to change a job", LOG_STR("unit", slurm_action_unit(detail)),
             LOG_I64("job", detail->job_id), LOG_I64("number", error->number),
             LOG_TEXT("error", error->text));
    last = &unit->last_applied;
    last->refused = job_desc_hash(&detail->job);
    last->site = capacity_generation(executor->options.capacity);
    last->again_us = loop_now_us(executor->lane.loop) + REFUSED_UPDATE_US;
    (void)snprintf(unit->submit.text, sizeof(unit->submit.text), "%s", error->text);
    executor->options.wake_unit(executor->options.context, slurm_action_unit(detail));
    return KUBE_DONE; /* the unit state tells the next plan what to do */
}

static void on_updated(void *context, const struct slurm_answer *answer)
{
    struct executor_task *task = context;
    struct slurm_executor *executor = task->executor;

    task->base.call = NULL;
    slurm_lane_heard(&executor->lane, answer);
    if (!answer->error.unsent)
        wrote_job(executor, task->detail->job_id, true);
    slurm_task_end(&task->base,
                   task->detail->is_sync ? sync_answered(task, &answer->error)
                                         : slurm_outcome(answer->error.class),
                   answer->error.text);
}

static void update_job(struct executor_task *task)
{
    const char *why = job_objection(task->executor, task->detail);

    if (why)
        slurm_task_end_soon(&task->base, KUBE_CONFLICT, why);
    else if (task->detail->fields.len == 0)
        slurm_task_end_soon(&task->base,
                            sync_answered(task, &(struct slurm_error){ .class = SLURM_DONE }), "");
    else
        task->base.call = slurm_job_update(task->executor->options.slurm, task->detail->job_id,
                                           task->detail->fields, on_updated, task);
}

static void look_at_job(struct executor_task *task)
{
    char key[ID_TEXT];

    slurm_poller_read(task->executor->options.poller, SLURM_FEED_JOBS,
                      id_text(task->detail->job_id, key));
    slurm_task_end_soon(&task->base, KUBE_DONE, "");
}

/* What a running job was given on its nodes. */
static void on_layout(void *context, const struct slurm_answer *answer)
{
    struct executor_task *task = context;
    struct slurm_executor *executor = task->executor;
    const struct slurm_action *detail = task->detail;
    struct err err = { .class = 0 };

    task->base.call = NULL;
    slurm_lane_heard(&executor->lane, answer);
    if (answer->error.class != SLURM_DONE) {
        slurm_task_end(&task->base, slurm_outcome(answer->error.class), answer->error.text);
        return;
    }
    if (job_layouts_put(executor->options.layouts, detail->job_id, detail->sluid, answer->body,
                        &err) < 0) {
        slurm_task_end(&task->base, KUBE_INVALID, err.text);
        return;
    }
    executor->options.wake_unit(executor->options.context, slurm_action_unit(detail));
    slurm_task_end(&task->base, KUBE_DONE, "");
}

/* ---- for the executor ---- */

static void start(struct slurm_task *base)
{
    struct executor_task *task = list_item(base, struct executor_task, base);

    task->executor = list_item(base->lane, struct slurm_executor, lane);
    task->detail = base->detail;
    switch (task->detail->kind) {
    case ACTION_SUBMIT:
        submit_start(task);
        break;
    case ACTION_CANCEL:
        cancel_start(task);
        break;
    case ACTION_LOOK:
        look_at_job(task);
        break;
    case ACTION_LAYOUT:
        base->call = slurm_resources_get(base->lane->client, task->detail->job_id, on_layout, task);
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
}

void *executor_start(void *service, const struct action *action, slurm_task_finish finish,
                     void *context)
{
    struct slurm_executor *executor = service;

    return slurm_task_start(&executor->lane, sizeof(struct executor_task), action, finish, context,
                            start);
}

void executor_cancel(void *service, void *handle)
{
    struct executor_task *task = handle;

    if (task->detail && task->detail->kind == ACTION_SUBMIT)
        submit_cancelled(task);
    slurm_task_free(&task->base);
}

/* ---- the executor ---- */

struct slurm_executor *slurm_executor_new(const struct slurm_executor_options *options)
{
    struct slurm_executor *executor = mem_alloc(sizeof(*executor));

    executor->options = *options;
    executor->cluster = mem_strndup(options->cluster.at, options->cluster.len);
    executor->options.cluster = str_of(executor->cluster);
    slurm_lane_init(&executor->lane, slurm_client_loop(options->slurm));
    executor->lane.client = options->slurm;
    executor->lane.poller = options->poller;
    executor->lane.task_done = task_done;
    executor->lane.may_act = options->may_act;
    executor->lane.context = options->context;
    executor->jobs = slurm_poller_cache(options->poller, SLURM_FEED_JOBS);
    executor->nodes = slurm_poller_cache(options->poller, SLURM_FEED_NODES);
    executor->list_asked_us = INT64_MIN;
    list_init(&executor->batches);
    list_init(&executor->cancels);
    list_init(&executor->list_waiters);
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
    slurm_lane_done(&executor->lane);
    list_each (struct batch, batch, &executor->batches, link)
        batch_free(batch);
    submit_done(executor);
    node_done(executor);
    cancel_done(executor);
    mem_free(executor->cluster);
    mem_free(executor);
}

void slurm_executor_set_message_timeout(struct slurm_executor *executor, int64_t seconds)
{
    executor->message_timeout_s = seconds;
}
