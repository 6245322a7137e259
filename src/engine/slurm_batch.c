/* slurm_batch.c - one call for many actions.
 *
 * What comes in one round of the loop is gathered, by the feed that it writes to. Actions of one
 * kind that go together are sent by one call. Some answers tell of one action of many: a refused
 * call halves the next ones, until the bad action is alone. An action that settles ends when the
 * cache is as new as its answer, so that the next plan sees what it did. */
#include "engine/slurm_lane.h"

#include "base/mem.h"

enum {
    SECOND_US = 1000000,
    MAX_NAMES = 12000, /* bytes of names, escaped: in a path; the transport takes 16 KiB */
    FEW_READS = 4,     /* more are seen by a list, or by a poll of their states */
    EXPECT_US = 2 * SECOND_US,
    SETTLE_LOOK_US = SECOND_US / 20,
    SETTLE_US = 5 * SECOND_US, /* the longest that an answered action waits for the cache */
};

static void end_batch(struct slurm_batch *batch)
{
    batch->queue->calls--;
    slurm_call_cancel(batch->call);
    list_remove(&batch->link);
    mem_free(batch);
}

void slurm_queues_init(struct slurm_lane *lane)
{
    list_init(&lane->batches);
    list_init(&lane->settling);
    for (unsigned i = 0; i < SLURM_FEEDS; i++) {
        lane->queues[i].lane = lane;
        list_init(&lane->queues[i].tasks);
    }
}

void slurm_queues_done(struct slurm_lane *lane)
{
    list_each (struct slurm_batch, batch, &lane->batches, link)
        end_batch(batch);
    for (unsigned i = 0; i < SLURM_FEEDS; i++)
        loop_timer_stop(&lane->queues[i].timer);
    loop_timer_stop(&lane->settling_timer);
}

bool slurm_lane_is_sending(const struct slurm_lane *lane, const struct slurm_call_type *type)
{
    list_each (const struct slurm_batch, batch, &lane->batches, link)
        if (batch->type == type)
            return true;
    return false;
}

/* ---- gathering and sending ---- */

static struct slurm_task *first_of(const struct list *tasks)
{
    struct list *first = list_first(tasks);

    return first ? list_item(first, struct slurm_task, queue_link) : NULL;
}

static size_t *max_of(struct slurm_queue *queue, const struct slurm_call_type *type)
{
    unsigned i = 0;

    while (i < SLURM_QUEUE_TYPES - 1 && queue->sizes[i].type && queue->sizes[i].type != type)
        i++;
    if (queue->sizes[i].type != type) {
        queue->sizes[i].type = type;
        queue->sizes[i].max = type->max_batch;
    }
    return &queue->sizes[i].max;
}

static bool go_together(const struct slurm_action *a, const struct slurm_action *b)
{
    return a->type == b->type && (!a->type->go_together || a->type->go_together(a, b));
}

/* The first that waits, and all that may go with it. What waited may be objected to meanwhile. */
static struct slurm_batch *gather(struct slurm_queue *queue, const struct slurm_action *like)
{
    struct slurm_batch *batch = mem_alloc(sizeof(*batch));
    size_t bytes = 0, max = *max_of(queue, like->type);
    const char *why;

    batch->queue = queue;
    batch->type = like->type;
    list_init(&batch->tasks);
    list_push_back(&queue->lane->batches, &batch->link);
    queue->calls++;
    list_each (struct slurm_task, task, &queue->tasks, queue_link) {
        if (task->action != like && !go_together(like, task->action))
            continue;
        bytes += strlen(task->action->name) + strlen("%2C");
        if (batch->count >= max || (batch->count > 0 && bytes > MAX_NAMES))
            break;
        list_remove(&task->queue_link);
        if ((why = slurm_task_objection(task))) {
            slurm_task_end_soon(task, KUBE_CONFLICT, why);
            continue;
        }
        list_push_back(&batch->tasks, &task->queue_link);
        task->batch = batch;
        batch->count++;
    }
    return batch;
}

static void send_gathered(void *context)
{
    struct slurm_queue *queue = context;
    const struct slurm_task *first;

    while ((first = first_of(&queue->tasks)) && queue->calls < first->action->type->max_calls) {
        struct slurm_batch *batch = gather(queue, first->action);

        if (batch->count > 0)
            batch->call = batch->type->send_all(batch);
        else
            end_batch(batch);
    }
}

static void send_soon(struct slurm_queue *queue)
{
    if (!list_is_empty(&queue->tasks) && !loop_timer_is_armed(&queue->timer))
        loop_timer_start(queue->lane->loop, &queue->timer, 0, send_gathered, queue);
}

void slurm_queue_add(struct slurm_task *task)
{
    struct slurm_queue *queue = &task->lane->queues[task->action->type->feed];

    list_push_back(&queue->tasks, &task->queue_link);
    send_soon(queue);
}

/* ---- settling ---- */

static bool is_seen(const struct slurm_lane *lane, const struct slurm_task *task)
{
    struct slurm_cache *cache = slurm_poller_cache(lane->poller, task->action->type->feed);

    return slurm_cache_known_us(cache, task->action->name) >= task->answered_us ||
           loop_now_us(lane->loop) - task->answered_us >= SETTLE_US;
}

/* One round through the list; what is not seen yet stays. */
static void look_at_settling(void *context)
{
    struct slurm_lane *lane = context;
    struct list seen;
    struct slurm_task *task;

    list_init(&seen);
    list_each (struct slurm_task, waiting, &lane->settling, queue_link)
        if (is_seen(lane, waiting)) {
            list_remove(&waiting->queue_link);
            list_push_back(&seen, &waiting->queue_link);
        }
    if (!list_is_empty(&lane->settling))
        loop_timer_start(lane->loop, &lane->settling_timer, SETTLE_LOOK_US, look_at_settling, lane);
    while ((task = first_of(&seen))) {
        if (lane->settled)
            lane->settled(lane->context, str_of(task->action->name));
        slurm_task_end(task, task->outcome, task->message);
    }
}

static void settle(struct slurm_task *task, enum kube_outcome outcome, int64_t answered_us)
{
    struct slurm_lane *lane = task->lane;

    task->outcome = outcome;
    task->answered_us = answered_us;
    list_remove(&task->queue_link);
    list_push_back(&lane->settling, &task->queue_link);
    if (!loop_timer_is_armed(&lane->settling_timer))
        loop_timer_start(lane->loop, &lane->settling_timer, SETTLE_LOOK_US, look_at_settling, lane);
}

/* ---- answers ---- */

static void learn_size(const struct slurm_batch *batch, enum slurm_class class)
{
    size_t *max = max_of(batch->queue, batch->type);
    enum kube_outcome outcome = slurm_outcome(class);

    if (outcome == KUBE_DONE)
        *max = *max * 2 < batch->type->max_batch ? *max * 2 : batch->type->max_batch;
    else if ((outcome == KUBE_CONFLICT || outcome == KUBE_INVALID) && batch->count > 1)
        *max = (batch->count + 1) / 2;
}

/* One by one, or all in one list. States of jobs are polled in any case. */
static void read_again(const struct slurm_batch *batch)
{
    const struct slurm_lane *lane = batch->queue->lane;
    enum slurm_feed feed = batch->type->feed;
    int64_t now_us = loop_now_us(lane->loop);

    list_each (const struct slurm_task, task, &batch->tasks, queue_link)
        if (batch->count <= FEW_READS)
            slurm_poller_wrote(lane->poller, feed, task->action->name);
        else
            slurm_cache_wrote(slurm_poller_cache(lane->poller, feed), task->action->name, now_us);
    slurm_poller_expect(lane->poller, now_us + (batch->type->settles ? SETTLE_US : EXPECT_US));
    if (batch->count > FEW_READS && feed != SLURM_FEED_JOBS)
        slurm_poller_refresh(lane->poller, feed);
}

void slurm_batch_answered(void *context, const struct slurm_answer *answer)
{
    struct slurm_batch *batch = context;
    struct slurm_queue *queue = batch->queue;
    struct slurm_lane *lane = queue->lane;
    int64_t answered_us = loop_now_us(lane->loop); /* the clock runs on: before the read begins */
    struct slurm_task *task;

    batch->call = NULL;
    slurm_lane_heard(lane, answer);
    learn_size(batch, answer->error.class);
    if (lane->answered)
        lane->answered(batch, answer);
    if (!answer->error.unsent)
        read_again(batch);
    while ((task = first_of(&batch->tasks))) {
        enum kube_outcome outcome = slurm_task_judge(task, answer);

        if (!batch->type->settles)
            slurm_task_end(task, outcome, task->message);
        else /* of what was never sent there is nothing to see */
            settle(task, outcome, answer->error.unsent ? INT64_MIN : answered_us);
    }
    end_batch(batch);
    send_soon(queue);
}
