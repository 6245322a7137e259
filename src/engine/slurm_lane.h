/* slurm_lane.h - calls to one Slurm cluster as actions of plans.
 *
 * A lane belongs to one Slurm cluster: it has the client, the poller and the tasks, which are
 * actions on their way. Who acts on several Slurm clusters has a lane for each, so that a slow or
 * full one delays no other: each lane has its own limit of tasks and its own pause after a 429.
 *
 * Holds: a task ends once, from the loop, never inside slurm_task_start; a lane that is closed ends
 * every task that it took; a task that waited for its turn is sent only if we still lead and it did
 * not wait for too long. */
#ifndef SLINC_ENGINE_SLURM_LANE_H
#define SLINC_ENGINE_SLURM_LANE_H

#include "base/list.h"
#include "engine/plan.h"
#include "slurm/client.h"
#include "slurm/poller.h"

enum { SLURM_LANE_PAUSE_US = 15000000 }; /* the longest pause that a server may ask for */

typedef void (*slurm_task_finish)(void *context, const struct kube_answer *answer);

struct slurm_task;

struct slurm_lane {
    struct loop *loop;
    struct slurm_client *client; /* NULL: every task ends at once as UNAVAILABLE */
    struct slurm_poller *poller; /* NULL: there is none */
    unsigned max_tasks;          /* that are sent at once; the others wait; 0: no limit */
    void (*task_done)(struct slurm_task *task); /* ends what the owner's task holds; NULL */
    bool (*may_act)(void *context);             /* asked when something is sent; NULL: always */
    void *context;

    struct list tasks, waiting; /* private from here on */
    unsigned sent;
    int64_t paused_until_us;
    struct loop_timer next;
};

/* One action on its way. An owner that needs more puts this first into a struct of its own. */
struct slurm_task {
    struct slurm_lane *lane;
    const void *detail;        /* of the action: the plan's, until the task ends */
    struct slurm_call *call;   /* is cancelled with the task; NULL: none is on its way */
    struct list queue_link;    /* the owner's, once the task is sent: a queue, or a call for many */
    struct loop_timer timer;   /* the owner's, until slurm_task_end_soon */
    int64_t retry_after_us;    /* for the answer; 0 */
    enum kube_outcome outcome; /* these two are the owner's, until slurm_task_end_soon */
    char message[280];

    struct list link; /* private from here on */
    bool is_sent;
    int64_t started_us;
    void (*send)(struct slurm_task *task);
    slurm_task_finish finish;
    void *context;
};

void slurm_lane_init(struct slurm_lane *lane, struct loop *loop); /* the rest is set by its owner */
/* Every task ends as UNAVAILABLE for this reason, and its call is cancelled. */
void slurm_lane_close(struct slurm_lane *lane, const char *reason);
void slurm_lane_done(struct slurm_lane *lane); /* every task ends without callback */

/* For action_type.start: makes a task of `size` bytes, at least a struct slurm_task, zeroed behind
 * it. send is called now or from the loop, unless the lane has no client or pauses. */
struct slurm_task *slurm_task_start(struct slurm_lane *lane, size_t size,
                                    const struct action *action, slurm_task_finish finish,
                                    void *context, void (*send)(struct slurm_task *task));
/* Whether we lead now. Who gathers tasks, or reads something before, asks when it sends. */
bool slurm_lane_may_send(const struct slurm_lane *lane);

/* For action_type.cancel: no callback follows. A write that was sent may still take effect. */
void slurm_task_free(struct slurm_task *task);

/* Tells the engine; the task is gone afterwards. Only from the loop. */
void slurm_task_end(struct slurm_task *task, enum kube_outcome outcome, const char *message);
void slurm_task_end_soon(struct slurm_task *task, enum kube_outcome outcome, const char *message);

/* Every answer that a call of the lane gets: a 429 pauses the lane, a 502 is a sign of a restart of
 * slurmctld. */
void slurm_lane_heard(struct slurm_lane *lane, const struct slurm_answer *answer);

/* What an error class means for a plan, where the caller knows no better. */
enum kube_outcome slurm_outcome(enum slurm_class class);

#endif
