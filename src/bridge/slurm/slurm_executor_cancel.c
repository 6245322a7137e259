/* slurm_executor_cancel.c - ends jobs: cancels many in one call, each only if its guard does not
 * object; completes those whose pods are over, by the agent.
 *
 * Holds: a job is cancelled only if the objects of its guard (action_unless) are gone by a direct
 * read, and the cache shows it as the plan saw it when the call is sent. Cancelling many jobs is
 * one call: 100 at once take slurmctld as long as one. */
#include "bridge/slurm/slurm_executor_private.h"

#include "base/log.h"
#include "bridge/world/group.h"
#include "bridge/world/names.h"
#include "slurm/agent.h"
#include "slurm/submit.h"

#include <stdio.h>

enum { MAX_BATCH = 200, MAX_CALLS = 5, EXPECT_END_US = 2000000 };

/* Members that have a job of their own do not count. A pod that cannot be read might, and one that
 * bears the id of the job runs by it, whatever its group is now. */
bool pod_of_group_objects(const struct json *pod, const struct action_unless *unless,
                          const struct slurm_action *cancel)
{
    const struct kube_object *object;
    auto_buf struct buf key = { .max = SLURM_MAX_KEY };
    bool alone, placed, found, bears_id;

    if (kube_object_decode(&kube_pod_kind, pod, &object, NULL) < 0)
        return true;
    bears_id = str_is(kube_pairs_get(&object->labels, BRIDGE_JOB_LABEL, &found), cancel->name);
    group_key(kube_pod_of(object), &key);
    (void)kube_pairs_get(&object->annotations, BRIDGE_ALONE_ANNOTATION, &alone);
    placed = str_is(buf_str(&key), unless->about) && !alone && (!unless->uid || !found);
    placed = kube_pod_of(object)->node_name[0] &&
             (placed || (bears_id && !kube_pod_is_finished(kube_pod_of(object))));
    kube_object_unref(object);
    return placed;
}

/* ---- sending ---- */

static void give_up(struct slurm_task *task)
{
    struct unit_states *states = executor_of(task)->options.unit_states;
    const struct job_action *detail = job_action_of(task->action);
    struct unit_state *state;
    struct slurm_key key;

    /* Before the cancel: the next submit, whoever plans it, must not get this node again. */
    if (detail->misfit)
        unit_state_add_misfit(unit_states_need(states, job_action_unit(detail)), detail->misfit,
                              detail->misfit_devices, detail->why,
                              loop_now_us(executor_of(task)->lane.loop));
    /* Whatever becomes of the cancel, and even if it comes only when the job runs. The attempts of
     * a group go on when its object is made again, so the uid in the key makes no difference. */
    state = unit_states_find(states, job_action_unit(detail));
    if (state && slurm_key_read(detail->key, &key))
        unit_state_give_up(state, key.attempt);
}

static struct slurm_call *send(struct slurm_batch *batch)
{
    struct slurm_client *client = batch->queue->lane->client;
    bool takes_sluids = slurm_client_version(client) >= SLURM_CANCEL_BY_SLUID;
    const char *names[MAX_BATCH];
    size_t count = 0;

    list_each (const struct slurm_task, task, &batch->tasks, queue_link) {
        const struct slurm_executor *executor = executor_of(task);
        const struct job_action *detail = job_action_of(task->action);

        if (has_live_job(executor, job_action_unit(detail), detail->job_id))
            metrics_add(executor->options.metrics, &slurm_executor_metrics[EXECUTOR_DUPLICATES], 1,
                        NULL);
        /* By its sluid where that is known: a cancel that waits in slurmrestd while slurmctld is
         * down must not hit another job that has got the id since. */
        names[count++] = takes_sluids && detail->sluid[0] ? detail->sluid : detail->base.name;
    }
    return slurm_jobs_cancel_named(client, names, count, slurm_batch_answered, batch);
}

/* ---- answers ---- */

/* Whether an entry of `status` is about this job: by id, or by the name that it was cancelled by.
 */
static bool is_about(const struct json *status, const struct job_action *detail)
{
    struct str name = json_str(json_get(status, "step_id")), rest;
    int64_t id = json_i64_or(json_at(status, "job_id", "number"), 0), number;

    (void)str_cut(name, '.', &name, &rest); /* "99999.0" is a step of it */
    if (id <= 0 && str_to_i64(name, 1, INT64_MAX, &number, NULL) == 0)
        id = number;
    return id == detail->job_id || (detail->sluid[0] && str_is(name, detail->sluid));
}

/* What became of one job of many. An entry that does not say whose it is may be any's. */
static struct slurm_error error_of(const struct json *statuses, const struct job_action *detail)
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

static enum kube_outcome judge(struct slurm_task *task, const struct slurm_answer *answer)
{
    const struct slurm_executor *executor = executor_of(task);
    const struct job_action *detail = job_action_of(task->action);
    struct slurm_error error = answer->error;
    struct slurm_key key = { .attempt = 0 };

    if (error.class == SLURM_DONE)
        error = error_of(json_get(answer->body, "status"), detail);
    (void)slurm_key_read(detail->key, &key);
    metrics_add(executor->options.metrics, &slurm_executor_metrics[EXECUTOR_CANCELS], 1,
                slurm_class_name(error.class), NULL);
    log_info("cancelled a job", LOG_STR("unit", job_action_unit(detail)),
             LOG_U64("attempt", key.attempt), LOG_I64("job", detail->job_id),
             LOG_TEXT("sluid", detail->sluid), LOG_TEXT("why", detail->why),
             LOG_TEXT("result", slurm_class_name(error.class)));
    slurm_task_say(task, error.text);
    return error.class == SLURM_NOT_FOUND ? KUBE_DONE : slurm_outcome(error.class);
}

/* A cancel without a clear answer may take effect as long as a submit may. */
void cancels_answered(struct slurm_executor *executor, const struct slurm_answer *answer)
{
    int64_t until_us = answer->sent_us +
                       slurm_submit_fence_us(executor->options.slurm, executor->message_timeout_s);

    if (answer->error.class != SLURM_DONE && !answer->error.nothing_done &&
        until_us > executor->cancels_until_us)
        executor->cancels_until_us = until_us;
}

bool slurm_executor_has_unanswered_cancels(const struct slurm_executor *executor)
{
    return slurm_lane_is_sending(&executor->lane, &call_cancel) ||
           executor->completes_in_flight > 0 ||
           loop_now_us(executor->lane.loop) < executor->cancels_until_us;
}

const struct slurm_call_type call_cancel = { .what = "cancel job",
                                             .family = &action_slurm_cancel,
                                             .feed = SLURM_FEED_JOBS,
                                             .send_all = send,
                                             .max_batch = MAX_BATCH,
                                             .max_calls = MAX_CALLS,
                                             .before = give_up,
                                             .objection = job_objection,
                                             .judge = judge,
                                             .write = job_action_write };

/* ---- completing ---- */

static struct slurm_call *send_complete(struct slurm_task *task)
{
    const struct job_action *detail = job_action_of(task->action);

    executor_of(task)->completes_in_flight++;
    return slurm_job_complete(task->lane->client, detail->job_id, detail->sluid,
                              detail->wait_status, slurm_task_answered, task);
}

/* The state of the job is polled in any case: it is not read for itself. */
static enum kube_outcome judge_complete(struct slurm_task *task, const struct slurm_answer *answer)
{
    struct slurm_executor *executor = executor_of(task);
    const struct job_action *detail = job_action_of(task->action);
    const struct slurm_error *error = &answer->error;
    int64_t now_us = loop_now_us(executor->lane.loop);

    executor->completes_in_flight--;
    cancels_answered(executor, answer);
    if (error->class != SLURM_DONE && error->nothing_done)
        unit_states_need(executor->options.unit_states, job_action_unit(detail))->ends_by_cancel =
            true;
    if (!error->unsent) {
        slurm_cache_wrote(executor->jobs, detail->base.name, now_us);
        slurm_poller_expect(executor->options.poller, now_us + EXPECT_END_US);
    }
    metrics_add(executor->options.metrics, &slurm_executor_metrics[EXECUTOR_COMPLETES], 1,
                slurm_class_name(error->class), NULL);
    log_info("completed a job", LOG_STR("unit", job_action_unit(detail)),
             LOG_I64("job", detail->job_id), LOG_TEXT("sluid", detail->sluid),
             LOG_U64("waitStatus", detail->wait_status),
             LOG_TEXT("result", slurm_class_name(error->class)));
    return error->class == SLURM_NOT_FOUND ? KUBE_DONE : slurm_outcome(error->class);
}

static void complete_cancelled(struct slurm_task *task)
{
    struct slurm_executor *executor = executor_of(task);

    if (!task->call)
        return;
    executor->completes_in_flight--;
    executor->cancels_until_us =
        loop_now_us(executor->lane.loop) +
        slurm_submit_fence_us(executor->options.slurm, executor->message_timeout_s);
}

const struct slurm_call_type call_complete = { .what = "complete job",
                                               .family = &action_slurm_cancel,
                                               .feed = SLURM_FEEDS,
                                               .send = send_complete,
                                               .before = give_up,
                                               .objection = job_objection,
                                               .judge = judge_complete,
                                               .write = job_action_write,
                                               .cancelled = complete_cancelled };
