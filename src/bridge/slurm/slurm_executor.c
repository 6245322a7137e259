/* slurm_executor.c - the service: one lane (engine/slurm_lane.h); reads and updates of jobs.
 *
 * Holds: a job is only touched while the cache shows it as the plan saw it. */
#include "bridge/slurm/slurm_executor_private.h"

#include "base/log.h"
#include "base/mem.h"
#include "slurm/submit.h"

#include <stdio.h>

static const int64_t refused_update_us = 600000000; /* until the same update is sent again */

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
    [EXECUTOR_COMPLETES] = { .name = "slinc_bridge_completes_total",
                             .help = "Jobs ended with what became of their pods, by how it went.",
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

struct slurm_executor *executor_of(const struct slurm_task *task)
{
    return list_item(task->lane, struct slurm_executor, lane);
}

const struct job_action *job_action_of(const struct slurm_action *action)
{
    return list_item(action, const struct job_action, base);
}

struct str job_action_unit(const struct job_action *action)
{
    struct slurm_key key;

    return slurm_key_read(action->key, &key) ? key.unit : action->key;
}

/* ---- jobs: whether it is the one that was planned on ---- */

const char *job_objection(struct slurm_task *task)
{
    const struct slurm_executor *executor = executor_of(task);
    const struct job_action *detail = job_action_of(task->action);
    const struct slurm_object *object = slurm_cache_get(executor->jobs, detail->base.name);
    const struct slurm_job *job = object ? slurm_job_of(object) : NULL;

    if (slurm_poller_is_suspicious(executor->options.poller))
        return "not sent: slurmctld may have been restarted";
    if (!job)
        return "not sent: the job is no longer shown";
    if (detail->sluid[0] && job->sluid[0] && strcmp(detail->sluid, job->sluid) != 0)
        return "not sent: the id belongs to another job";
    if (detail->base.type != &call_cancel && detail->base.type != &call_complete &&
        detail->key.len == 0) /* one that is taken over */
        return slurm_submit_is_marked(job) ? "not sent: the job has a key meanwhile" : NULL;
    if (detail->key.len == 0 || !slurm_submit_is_for(job, executor->options.owner, detail->key))
        return "not sent: the job does not carry the key that was planned on";
    return NULL;
}

bool has_live_job(const struct slurm_executor *executor, struct str unit, int64_t but_id)
{
    struct slurm_index_walk walk = slurm_cache_by(executor->jobs, SLURM_JOBS_BY_KEY, unit);
    const struct slurm_object *object;

    while ((object = slurm_index_next(&walk)))
        if (slurm_job_of(object)->id != but_id &&
            !slurm_job_has_ended(&slurm_job_of(object)->state))
            return true;
    return false;
}

/* ---- jobs: updating ---- */

static struct slurm_call *send_update(struct slurm_task *task)
{
    return slurm_job_update(task->lane->client, job_action_of(task->action)->job_id,
                            task->action->fields, slurm_task_answered, task);
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

static enum kube_outcome judge_sync(struct slurm_task *task, const struct slurm_answer *answer)
{
    const struct slurm_executor *executor = executor_of(task);
    const struct job_action *detail = job_action_of(task->action);
    const struct slurm_error *error = &answer->error;
    struct unit_state *unit =
        unit_states_need(executor->options.unit_states, job_action_unit(detail));
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
    log_info("Slurm refused to change a job", LOG_STR("unit", job_action_unit(detail)),
             LOG_I64("job", detail->job_id), LOG_I64("number", error->number),
             LOG_TEXT("error", error->text));
    last = &unit->last_applied;
    last->refused = job_desc_hash(&detail->job);
    last->site = capacity_generation(executor->options.capacity);
    last->again_us = loop_now_us(executor->lane.loop) + refused_update_us;
    (void)snprintf(unit->submit.text, sizeof(unit->submit.text), "%s", error->text);
    executor->options.wake_unit(executor->options.context, job_action_unit(detail));
    return KUBE_DONE; /* the unit state tells the next plan what to do */
}

static void remember(struct slurm_task *task)
{
    const char *why = slurm_task_objection(task);

    if (why)
        slurm_task_end_soon(task, KUBE_CONFLICT, why);
    else
        slurm_task_end_soon(
            task, judge_sync(task, &(struct slurm_answer){ .error = { .class = SLURM_DONE } }), "");
}

/* ---- jobs: looking ---- */

static void look_at_job(struct slurm_task *task)
{
    slurm_poller_read(task->lane->poller, SLURM_FEED_JOBS, task->action->name);
    slurm_task_end_soon(task, KUBE_DONE, "");
}

/* What a running job was given on its nodes. */
static struct slurm_call *read_layout(struct slurm_task *task)
{
    return slurm_resources_get(task->lane->client, job_action_of(task->action)->job_id,
                               slurm_task_answered, task);
}

static enum kube_outcome judge_layout(struct slurm_task *task, const struct slurm_answer *answer)
{
    const struct slurm_executor_options *options = &executor_of(task)->options;
    const struct job_action *detail = job_action_of(task->action);
    struct err err = { .class = 0 };

    if (answer->error.class != SLURM_DONE)
        return slurm_outcome(answer->error.class);
    if (job_layouts_put(options->layouts, detail->job_id, detail->sluid, answer->body, &err) < 0) {
        slurm_task_say(task, err.text);
        return KUBE_INVALID;
    }
    options->wake_unit(options->context, job_action_unit(detail));
    return KUBE_DONE;
}

/* ---- the rows ---- */

#define JOB_CALL(text, what_is_read)                                                               \
    .what = (text), .family = &action_slurm, .feed = (what_is_read), .write = job_action_write

const struct slurm_call_type call_look = { JOB_CALL("look at job", SLURM_FEEDS),
                                           .start = look_at_job };
const struct slurm_call_type call_layout = { JOB_CALL("read layout of job", SLURM_FEEDS),
                                             .send = read_layout, .judge = judge_layout };
const struct slurm_call_type call_update_job = { JOB_CALL("update job", SLURM_FEED_JOBS),
                                                 .send = send_update, .objection = job_objection };
const struct slurm_call_type call_sync = { JOB_CALL("update job", SLURM_FEED_JOBS),
                                           .send = send_update, .objection = job_objection,
                                           .judge = judge_sync };
const struct slurm_call_type call_remember = { JOB_CALL("remember job", SLURM_FEEDS),
                                               .start = remember, .objection = job_objection };

/* ---- the executor ---- */

static struct slurm_lane *lane_of(struct slurm_service *service, const struct slurm_action *action)
{
    (void)action;
    return &list_item(service, struct slurm_executor, service)->lane;
}

static void batch_answered(const struct slurm_batch *batch, const struct slurm_answer *answer)
{
    struct slurm_executor *executor = list_item(batch->queue->lane, struct slurm_executor, lane);
    struct metrics *metrics = executor->options.metrics;
    const char *verb = batch->type == &slurm_create_node   ? "create"
                       : batch->type == &slurm_update_node ? "update"
                                                           : "delete";

    if (batch->type == &call_cancel) {
        cancels_answered(executor, answer);
        return;
    }
    metrics_observe(metrics, &slurm_executor_metrics[EXECUTOR_NODES_PER_CALL], (double)batch->count,
                    verb, NULL);
    metrics_add(metrics, &slurm_executor_metrics[EXECUTOR_NODE_CALLS], 1, verb,
                slurm_class_name(answer->error.class), NULL);
}

struct slurm_executor *slurm_executor_new(const struct slurm_executor_options *options)
{
    struct slurm_executor *executor = mem_alloc(sizeof(*executor));

    executor->service.lane_of = lane_of;
    executor->options = *options;
    slurm_lane_init(&executor->lane, slurm_client_loop(options->slurm));
    executor->lane.client = options->slurm;
    executor->lane.poller = options->poller;
    executor->lane.kube = options->kube;
    executor->lane.may_act = options->may_act;
    executor->lane.settled = options->wake_node;
    executor->lane.context = options->context;
    executor->lane.answered = batch_answered;
    executor->lane.node_refusals = options->node_refusals;
    executor->jobs = slurm_poller_cache(options->poller, SLURM_FEED_JOBS);
    executor->list_asked_us = INT64_MIN;
    list_init(&executor->submits);
    return executor;
}

void slurm_executor_free(struct slurm_executor *executor)
{
    if (!executor)
        return;
    slurm_lane_done(&executor->lane);
    submit_done(executor);
    mem_free(executor);
}

void slurm_executor_set_message_timeout(struct slurm_executor *executor, int64_t seconds)
{
    executor->message_timeout_s = seconds;
}
