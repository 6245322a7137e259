/* slurm_lane.h - carries out the actions on one Slurm cluster (slurm_action.h).
 *
 * A lane belongs to one Slurm cluster: it has the client, the poller and the tasks, which are
 * actions on their way. Who acts on several Slurm clusters has a lane for each, so that a slow or
 * full one delays no other: each lane has its own limit of tasks and its own pause after a 429.
 *
 * A task goes through these steps: its turn in the lane; its guard, by direct reads of objects of
 * Kubernetes (slurm_guard.c); its call, alone or in one with others of the same turn of the loop
 * (slurm_batch.c); its answer.
 *
 * Holds: a task ends once, from the loop, never inside slurm_task_start; a lane that is closed ends
 * every task that it took; a task that waited for its turn is sent only if we still lead and it did
 * not wait for too long. */
#ifndef SLINC_ENGINE_SLURM_LANE_H
#define SLINC_ENGINE_SLURM_LANE_H

#include "engine/node_refusals.h"
#include "engine/slurm_action.h"

enum {
    SLURM_LANE_PAUSE_US = 15000000, /* the longest pause that a server may ask for */
    SLURM_QUEUE_TYPES = 4,
};

struct slurm_queue { /* actions that wait to be sent together; private */
    struct slurm_lane *lane;
    struct list tasks;
    unsigned calls; /* in flight */
    struct loop_timer timer;
    struct { /* a refusal halves it, so that the one bad action of many is soon alone */
        const struct slurm_call_type *type;
        size_t max;
    } sizes[SLURM_QUEUE_TYPES];
};

struct slurm_lane {
    struct loop *loop;
    struct slurm_client *client;    /* NULL: every task ends at once as UNAVAILABLE */
    struct slurm_poller *poller;    /* NULL: there is none; needed for calls about many */
    struct kube_client *kube;       /* needed for action_unless */
    unsigned max_tasks;             /* that are sent at once; the others wait; 0: no limit */
    bool (*may_act)(void *context); /* asked when something is sent; NULL: always */
    void (*settled)(void *context, struct str name); /* the cache shows what was done; NULL */
    void *context;
    /* A call for many was answered; NULL. */
    void (*answered)(const struct slurm_batch *batch, const struct slurm_answer *answer);
    struct node_refusals *node_refusals; /* what Slurm refuses about nodes; NULL: is not kept */

    struct list tasks, waiting; /* private from here on */
    unsigned sent;
    int64_t paused_until_us;
    struct loop_timer next;
    struct list batches, settling;
    struct slurm_queue queues[SLURM_FEEDS];
    struct loop_timer settling_timer;
    struct list list_waiters; /* their guards are to list objects */
    unsigned lists_in_flight;
    struct loop_timer list_timer;
};

/* One action on its way. */
struct slurm_task {
    struct slurm_lane *lane;
    const struct slurm_action *action; /* the plan's, until the task ends */
    struct slurm_call *call; /* is cancelled with the task; NULL: none of its own is on its way */
    const struct slurm_batch *batch; /* NULL: it is sent alone, or not yet */
    struct list queue_link;          /* where it waits; the owner's with a `start` of its own */
    struct loop_timer timer;         /* the owner's, until slurm_task_end_soon */
    int64_t retry_after_us;          /* for the answer; 0 */
    char message[280];               /* the same */

    struct list link; /* private from here on */
    bool is_sent, is_listing;
    int64_t started_us, answered_us;
    enum kube_outcome outcome;
    const struct action_unless *unless; /* the one that is being asked */
    struct kube_call *look;
    slurm_task_finish finish;
    void *context;
};

struct slurm_batch { /* one call for several tasks; those that were cancelled since have left it */
    struct list link;
    struct slurm_queue *queue;
    const struct slurm_call_type *type;
    struct slurm_call *call;
    struct list tasks; /* struct slurm_task by queue_link */
    size_t count;      /* when it was sent */
};

void slurm_lane_init(struct slurm_lane *lane, struct loop *loop); /* the rest is set by its owner */
/* Every task ends as UNAVAILABLE for this reason, and its call is cancelled. */
void slurm_lane_close(struct slurm_lane *lane, const char *reason);
void slurm_lane_done(struct slurm_lane *lane); /* every task ends without callback */

/* send is called now or from the loop, unless the lane has no client or pauses. */
struct slurm_task *slurm_task_start(struct slurm_lane *lane, const struct slurm_action *action,
                                    slurm_task_finish finish, void *context);
/* For action_type.cancel: no callback follows. A write that was sent may still take effect. */
void slurm_task_free(struct slurm_task *task);

/* ---- for rows of slurm_call_type ---- */

/* Whether we lead now. Who reads something before asks when it sends. */
bool slurm_lane_may_send(const struct slurm_lane *lane);
bool slurm_lane_is_sending(const struct slurm_lane *lane, const struct slurm_call_type *type);

void slurm_task_go(struct slurm_task *task); /* its guard is asked, and it is sent */
/* Why the task must not be sent now; NULL when it may be. */
const char *slurm_task_objection(struct slurm_task *task);
void slurm_task_say(struct slurm_task *task, const char *message);

/* Tells the engine; the task is gone afterwards. Only from the loop. */
void slurm_task_end(struct slurm_task *task, enum kube_outcome outcome, const char *message);
void slurm_task_end_soon(struct slurm_task *task, enum kube_outcome outcome, const char *message);

/* A slurm_done each; context: the task, or the batch. */
void slurm_task_answered(void *task, const struct slurm_answer *answer);
void slurm_batch_answered(void *batch, const struct slurm_answer *answer);

/* What an error class means for a plan, where the caller knows no better. */
enum kube_outcome slurm_outcome(enum slurm_class class);

/* ---- private ---- */

enum kube_outcome slurm_task_judge(struct slurm_task *task, const struct slurm_answer *answer);
void slurm_lane_heard(struct slurm_lane *lane, const struct slurm_answer *answer);
/* slurm_guard.c: calls slurm_task_ready when nothing objects. */
void slurm_guard_ask(struct slurm_task *task);
void slurm_guard_stop(struct slurm_task *task);
void slurm_task_ready(struct slurm_task *task);
/* slurm_batch.c */
void slurm_queues_init(struct slurm_lane *lane);
void slurm_queues_done(struct slurm_lane *lane);
void slurm_queue_add(struct slurm_task *task);

#endif
