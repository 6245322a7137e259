/* slurm_executor_private.h - the actions as data, and what the files of the executor share. */
#ifndef SLINC_BRIDGE_SLURM_EXECUTOR_PRIVATE_H
#define SLINC_BRIDGE_SLURM_EXECUTOR_PRIVATE_H

#include "base/list.h"
#include "base/map.h"
#include "bridge/slurm/slurm_action.h"
#include "bridge/unit/job_change.h"
#include "engine/slurm_lane.h"

/* ---- slurm_action.c: the detail of an action; all of it lives in the plan's arena ---- */

enum slurm_action_kind {
    ACTION_SUBMIT,
    ACTION_CANCEL,
    ACTION_LOOK,
    ACTION_LAYOUT,
    ACTION_UPDATE_JOB,
    ACTION_CREATE_NODE,
    ACTION_UPDATE_NODE,
    ACTION_DELETE_NODE,
    ACTION_KINDS, /* how many there are */
};

struct slurm_action {
    enum slurm_action_kind kind;

    struct str key; /* SUBMIT: of the unit. Of a job: as it was planned on, with its attempt */
    struct str uid; /* SUBMIT: in the job's key; "" */
    unsigned attempt;
    struct job_desc job;
    const struct str *pods;
    unsigned pod_count;
    bool at_once;

    int64_t job_id; /* CANCEL, LOOK, LAYOUT, UPDATE_JOB */
    const char *sluid;
    const char *why;
    const char *misfit;         /* CANCEL: a node that will not do; NULL */
    bool is_sync;               /* UPDATE_JOB: to make it as `job` says; */
    struct field_hashes hashes; /* until then these count */

    const char *node;           /* CREATE_NODE, UPDATE_NODE, DELETE_NODE */
    struct slurm_node_ask make; /* CREATE_NODE */
    struct str fields;          /* UPDATE_*: JSON text */

    const struct action_unless *unless; /* CANCEL, DELETE_NODE; NULL */
};

/* The detail as JSON; for plan_write. */
void slurm_action_write(const struct action *action, struct buf *out);

enum { QUEUED_SLICES = 20, QUEUED_SLICE_US = 100000 };

/* ---- slurm_executor.c: an action on its way ---- */

struct batch;

struct executor_task {
    struct slurm_task base; /* its queue_link: in a list of those that wait, or in its batch */
    struct slurm_executor *executor;
    const struct slurm_action *detail;
    void (*next)(struct executor_task *task); /* what follows when `unless` does not object */
    const struct action_unless *unless;       /* the one that is being asked */
    struct kube_call *look;
    bool is_listing;        /* one of lists_in_flight */
    uint64_t reserved;      /* SUBMIT, immediate */
    struct json_doc *asked; /* SUBMIT: the job as it was sent */
    int64_t answered_us;    /* of a node: the task ends when the cache is as new as that */
};

struct batch { /* one call for several actions; those that were cancelled since have left it */
    struct list link;
    struct slurm_executor *executor;
    enum slurm_action_kind kind;
    struct slurm_call *call;
    struct list tasks;
    size_t count; /* when it was sent */
};

struct pause { /* grows while refusals follow each other, without a success between */
    unsigned level;
    int64_t until_us;
};

struct slurm_executor {
    struct slurm_executor_options options;
    struct slurm_lane lane;
    char *cluster;
    struct slurm_cache *jobs, *nodes;
    int64_t message_timeout_s;
    struct list batches;

    struct list submits; /* struct executor_task: wait until fewer are in flight */
    unsigned submits_in_flight;
    unsigned queued[QUEUED_SLICES]; /* submits taken, by tenths of a second */
    int64_t queued_slice;           /* the youngest of these, counted from 0 */
    struct loop_timer submit_timer;
    int64_t next_submit_us; /* when the throttle lets the next one through */
    struct pause full;
    char full_why[280];
    int64_t denied_us; /* since when submits are denied, whatever they ask for; 0: they are not */
    struct loop_timer settle_timer;
    int64_t list_asked_us; /* when a whole list was last asked for, to settle */

    struct list list_waiters; /* struct executor_task: their guards are to list objects */
    unsigned lists_in_flight;
    struct loop_timer list_timer;
    struct list cancels; /* gathered */
    struct loop_timer cancel_timer;
    int64_t cancels_until_us; /* a cancel without a clear answer may take effect until then */

    struct list node_tasks; /* gathered, or waiting for a call to end */
    struct loop_timer node_timer;
    unsigned node_calls;            /* in flight */
    size_t batch_max[ACTION_KINDS]; /* halved by a refusal, so that one bad node is soon alone */
    struct list settling;           /* answered, and not yet seen in the cache */
    struct loop_timer settling_timer;
};

void *executor_start(void *service, const struct action *action, slurm_task_finish finish,
                     void *context);
void executor_cancel(void *service, void *handle);

enum { ID_TEXT = 24 };
const char *id_text(int64_t id, char text[ID_TEXT]); /* the key of a job in the cache */
/* Why the job that an action is about must not be touched now; NULL when it may be. */
const char *job_objection(const struct slurm_executor *executor, const struct slurm_action *detail);
/* read: read it now, else the next poll shows what became of it. */
void wrote_job(struct slurm_executor *executor, int64_t id, bool read);

struct batch *batch_new(struct slurm_executor *executor, enum slurm_action_kind kind);
void batch_add(struct batch *batch, struct executor_task *task);
void batch_free(struct batch *batch); /* its tasks are not freed; ends its call */

enum slurm_executor_metric {
    EXECUTOR_SUBMITS,
    EXECUTOR_SUBMIT_SECONDS,
    EXECUTOR_CANCELS,
    EXECUTOR_DUPLICATES,
    EXECUTOR_NODE_CALLS,
    EXECUTOR_NODES_PER_CALL,
    EXECUTOR_METRICS, /* how many there are */
};

struct str slurm_action_unit(
    const struct slurm_action *detail); /* of its key: without the attempt */
/* The unit's job is as the submit says. */
void sync_submitted(struct unit_state *unit, int64_t job_id, const struct job_desc *desc);

/* ---- slurm_executor_submit.c ---- */
void submit_start(struct executor_task *task);
void submit_cancelled(struct executor_task *task);
void submit_done(struct slurm_executor *executor);
/* The last submit of the unit made no job, and the same one would not for the next minutes. */
void submit_keep_refusal(struct slurm_executor *executor, struct unit_state *unit);

/* ---- slurm_executor_unresolved.c ---- */
/* is_answered: see struct submit_record. */
void submit_unresolved(struct slurm_executor *executor, struct str key, int64_t settles_us,
                       bool is_answered);

/* ---- slurm_executor_cancel.c ---- */
void cancel_start(struct executor_task *task);
void cancel_done(struct slurm_executor *executor);
/* next is called if `unless` does not object; else it ends. */
void task_unless(struct executor_task *task, void (*next)(struct executor_task *task));
void task_stop_listing(struct executor_task *task); /* the next one may */

/* ---- slurm_executor_nodes.c ---- */
void node_start(struct executor_task *task);
void node_done(struct slurm_executor *executor);

#endif
