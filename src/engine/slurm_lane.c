/* slurm_lane.c - the tasks of one Slurm cluster: sent in their order, ended once. */
#include "engine/slurm_lane.h"

#include "base/mem.h"
#include "engine/executor.h"

#include <stdio.h>

enum kube_outcome slurm_outcome(enum slurm_class class)
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

/* ---- lanes ---- */

void slurm_lane_init(struct slurm_lane *lane, struct loop *loop)
{
    *lane = (struct slurm_lane){ .loop = loop };
    list_init(&lane->tasks);
    list_init(&lane->waiting);
    list_init(&lane->list_waiters);
    slurm_queues_init(lane);
}

static void stop(struct slurm_lane *lane)
{
    slurm_queues_done(lane);
    loop_timer_stop(&lane->list_timer);
    loop_timer_stop(&lane->next);
}

void slurm_lane_close(struct slurm_lane *lane, const char *reason)
{
    struct list *first;

    lane->client = NULL;
    lane->poller = NULL;
    lane->paused_until_us = 0;
    while ((first = list_first(&lane->tasks)) != NULL)
        slurm_task_end(list_item(first, struct slurm_task, link), KUBE_UNAVAILABLE, reason);
    stop(lane);
}

void slurm_lane_done(struct slurm_lane *lane)
{
    list_each (struct slurm_task, task, &lane->tasks, link)
        slurm_task_free(task);
    stop(lane);
}

/* Every answer that a call of the lane gets: a 429 pauses the lane, a 502 is a sign of a restart of
 * slurmctld. */
void slurm_lane_heard(struct slurm_lane *lane, const struct slurm_answer *answer)
{
    int64_t pause_us = answer->retry_after_us;

    if (pause_us > SLURM_LANE_PAUSE_US)
        pause_us = SLURM_LANE_PAUSE_US;
    if (pause_us > 0 && loop_now_us(lane->loop) + pause_us > lane->paused_until_us)
        lane->paused_until_us = loop_now_us(lane->loop) + pause_us;
    if (lane->poller)
        slurm_poller_heard(lane->poller, answer);
}

bool slurm_lane_may_send(const struct slurm_lane *lane)
{
    return !lane->may_act || lane->may_act(lane->context);
}

/* ---- the turn of a task ---- */

static void send(struct slurm_task *task)
{
    struct slurm_lane *lane = task->lane;
    int64_t now_us = loop_now_us(lane->loop), left_us = lane->paused_until_us - now_us;

    if (!lane->client) {
        slurm_task_end_soon(task, KUBE_UNAVAILABLE, "no slurmrestd is known");
    } else if (now_us - task->started_us > EXECUTOR_STALE_US) {
        slurm_task_end_soon(task, KUBE_CONFLICT, "not sent: it waited too long for its turn");
    } else if (left_us > 0) {
        task->retry_after_us = left_us;
        slurm_task_end_soon(task, KUBE_UNAVAILABLE, "not sent: slurmrestd asked for a pause");
    } else {
        task->is_sent = true;
        lane->sent++;
        (task->action->type->start ? task->action->type->start : slurm_task_go)(task);
    }
}

static void send_waiting(void *context)
{
    struct slurm_lane *lane = context;
    struct list *first;

    while (lane->sent < lane->max_tasks && (first = list_first(&lane->waiting)) != NULL) {
        list_remove(first);
        send(list_item(first, struct slurm_task, queue_link));
    }
}

struct slurm_task *slurm_task_start(struct slurm_lane *lane, const struct slurm_action *action,
                                    slurm_task_finish finish, void *context)
{
    struct slurm_task *task =
        mem_alloc(action->type->task_size ? action->type->task_size : sizeof(*task));

    task->lane = lane;
    task->action = action;
    task->started_us = loop_now_us(lane->loop);
    task->finish = finish;
    task->context = context;
    list_push_back(&lane->tasks, &task->link);
    if (lane->max_tasks > 0 && lane->sent >= lane->max_tasks)
        list_push_back(&lane->waiting, &task->queue_link);
    else
        send(task);
    return task;
}

/* ---- its call ---- */

void slurm_task_go(struct slurm_task *task)
{
    task->unless = task->action->unless;
    slurm_guard_ask(task);
}

const char *slurm_task_objection(struct slurm_task *task)
{
    if (!slurm_lane_may_send(task->lane))
        return "not sent: this process does not lead any more";
    return task->action->type->objection ? task->action->type->objection(task) : NULL;
}

void slurm_task_ready(struct slurm_task *task)
{
    const struct slurm_call_type *type = task->action->type;
    const char *why;

    if (type->before)
        type->before(task);
    if (type->send_all)
        slurm_queue_add(task);
    else if ((why = slurm_task_objection(task)))
        slurm_task_end_soon(task, KUBE_CONFLICT, why);
    else
        task->call = type->send(task);
}

void slurm_task_say(struct slurm_task *task, const char *message)
{
    (void)snprintf(task->message, sizeof(task->message), "%s", message);
}

enum kube_outcome slurm_task_judge(struct slurm_task *task, const struct slurm_answer *answer)
{
    slurm_task_say(task, answer->error.text);
    return task->action->type->judge ? task->action->type->judge(task, answer)
                                     : slurm_outcome(answer->error.class);
}

void slurm_task_answered(void *context, const struct slurm_answer *answer)
{
    struct slurm_task *task = context;
    struct slurm_lane *lane = task->lane;
    enum slurm_feed feed = task->action->type->feed;

    task->call = NULL;
    slurm_lane_heard(lane, answer);
    if (lane->poller && feed != SLURM_FEEDS && !answer->error.unsent)
        slurm_poller_wrote(lane->poller, feed, task->action->name);
    slurm_task_end(task, slurm_task_judge(task, answer), task->message);
}

/* ---- its end ---- */

void slurm_task_free(struct slurm_task *task)
{
    struct slurm_lane *lane = task->lane;

    if (task->action->type->done)
        task->action->type->done(task);
    slurm_guard_stop(task);
    loop_timer_stop(&task->timer);
    slurm_call_cancel(task->call);
    list_remove(&task->queue_link);
    list_remove(&task->link);
    lane->sent -= task->is_sent;
    if (!list_is_empty(&lane->waiting))
        loop_timer_start(lane->loop, &lane->next, 0, send_waiting, lane);
    mem_free(task);
}

void slurm_task_end(struct slurm_task *task, enum kube_outcome outcome, const char *message)
{
    char text[sizeof(task->message)];
    struct kube_answer answer = {
        .outcome = outcome, .reason = "", .message = text, .retry_after_us = task->retry_after_us
    };
    slurm_task_finish finish = task->finish;
    void *context = task->context;

    (void)snprintf(text, sizeof(text), "%s", message);
    slurm_task_free(task);
    finish(context, &answer);
}

static void end_now(void *context)
{
    struct slurm_task *task = context;

    slurm_task_end(task, task->outcome, task->message);
}

void slurm_task_end_soon(struct slurm_task *task, enum kube_outcome outcome, const char *message)
{
    task->outcome = outcome;
    slurm_task_say(task, message);
    loop_timer_start(task->lane->loop, &task->timer, 0, end_now, task);
}
