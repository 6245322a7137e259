/* act_private.h - the deeds as data, and what the files of the actor share. */
#ifndef SLINC_BRIDGE_ACT_PRIVATE_H
#define SLINC_BRIDGE_ACT_PRIVATE_H

#include "base/list.h"
#include "base/map.h"
#include "bridge/act.h"

/* ---- act_plan.c: the detail of an action; all of it lives in the plan's arena ---- */

enum deed_kind {
    DEED_ASK,
    DEED_CANCEL,
    DEED_LOOK,
    DEED_UPDATE_JOB,
    DEED_CREATE_NODE,
    DEED_UPDATE_NODE,
    DEED_DELETE_NODE,
    DEED_KINDS, /* how many there are */
};

struct deed {
    enum deed_kind kind;

    struct str key; /* ASK: of the unit. Of a job: as it was planned on, with its attempt */
    struct str uid; /* ASK: in the job's key; "" */
    unsigned attempt;
    struct job_ask job;
    const struct str *pods;
    unsigned pod_count;
    bool at_once;

    int64_t job_id; /* CANCEL, LOOK, UPDATE_JOB */
    const char *sluid;
    const char *why;
    const char *misfit;     /* CANCEL: a node that will not do; NULL */
    bool follows;           /* UPDATE_JOB: to make it as `job` says; */
    struct job_marks marks; /* until then these count */

    const char *node;           /* CREATE_NODE, UPDATE_NODE, DELETE_NODE */
    struct slurm_node_ask make; /* CREATE_NODE */
    struct str fields;          /* UPDATE_*: JSON text */

    bool has_unless;
    struct act_unless unless;
};

/* The detail as JSON; for plan_write. */
void deed_write(const struct action *action, struct buf *out);

enum { QUEUED_SLICES = 20, QUEUED_SLICE_US = 100000 };

/* ---- act.c: a deed on its way ---- */

typedef void (*act_finish)(void *context, const struct kube_answer *answer);

struct batch;

struct work {
    struct list link; /* in actor.works */
    struct list turn; /* in a list of those that wait, or in its batch */
    struct actor *actor;
    const struct deed *deed; /* the plan's, until this is finished or cancelled */
    act_finish finish;
    void *context;
    void (*next)(struct work *work); /* what follows when `unless` has been seen to */
    const struct act_unless *unless; /* the one that is being asked */
    struct loop_timer timer;
    struct slurm_call *call;
    struct kube_call *look;
    struct batch *batch;    /* that it was sent with */
    uint64_t promise;       /* ASK, immediate */
    struct json_doc *asked; /* ASK: the job as it was sent */
    int64_t answered_us;    /* of a node: finished when the cache is as new */

    enum kube_outcome outcome; /* to be told */
    int64_t retry_after_us;
    char message[280];
};

struct batch { /* one call for several deeds; those that were cancelled since have left it */
    struct list link;
    struct actor *actor;
    enum deed_kind kind;
    struct slurm_call *call;
    struct list works;
    size_t count; /* when it was sent */
};

struct pause { /* grows while refusals follow each other, without a success between */
    unsigned level;
    int64_t until_us;
};

struct actor {
    struct actor_options options;
    char *cluster;
    struct loop *loop;
    struct slurm_cache *jobs, *nodes;
    int64_t message_timeout_s;
    struct list works, batches;

    struct list asks; /* struct work: wait until fewer are in flight */
    unsigned asks_in_flight;
    unsigned queued[QUEUED_SLICES]; /* submits taken, by tenths of a second */
    int64_t queued_slice;           /* the youngest of these, counted from 0 */
    struct loop_timer ask_timer;
    int64_t next_ask_us; /* when the throttle lets the next one through */
    struct pause full;
    char full_why[280];
    int64_t denied_us; /* since when submits are denied, whatever they ask for; 0: they are not */
    struct map partitions; /* refused immediate asks: struct partition_pause */
    struct loop_timer settle_timer;
    int64_t list_asked_us; /* when a whole list was last asked for, to settle */

    struct list cancels; /* gathered */
    struct loop_timer cancel_timer;
    int64_t cancels_until_us; /* a cancel without a clear answer may take effect until then */

    struct list node_works; /* gathered, or waiting for a call to end */
    struct loop_timer node_timer;
    unsigned node_calls;          /* in flight */
    size_t batch_max[DEED_KINDS]; /* halved by a refusal, so that one bad node is soon alone */
    struct list settling;         /* answered, and not yet seen in the cache */
    struct loop_timer settling_timer;
};

void *act_start(void *service, const struct action *action, act_finish finish, void *context);
void act_cancel(void *service, void *handle);

/* Tells the executor; the work is gone afterwards. Only from the loop, never from act_start. */
void work_end(struct work *work, enum kube_outcome outcome, const char *message);
void work_end_soon(struct work *work, enum kube_outcome outcome, const char *message);
/* next is called if `unless` does not object; else it ends. */
void work_unless(struct work *work, void (*next)(struct work *work));

enum kube_outcome act_outcome(enum slurm_class class);
bool act_may_send(const struct actor *actor); /* we lead, now */
/* Why the job that a deed is about must not be touched now; NULL when it may be. */
const char *act_objection(const struct actor *actor, const struct deed *deed);

struct batch *batch_new(struct actor *actor, enum deed_kind kind);
void batch_add(struct batch *batch, struct work *work);
void batch_free(struct batch *batch); /* without works; ends its call */

int64_t pause_more(struct pause *pause, int64_t now_us, int64_t longest_us);

enum actor_metric {
    ACTOR_ASKS,
    ACTOR_ASK_SECONDS,
    ACTOR_CANCELS,
    ACTOR_DUPLICATES,
    ACTOR_NODE_CALLS,
    ACTOR_NODES_PER_CALL,
    ACTOR_METRICS, /* how many there are */
};

struct str deed_unit(const struct deed *deed); /* of its key: without the attempt */

/* ---- act_ask.c ---- */
void ask_start(struct work *work);
void ask_cancelled(struct work *work);
void ask_done(struct actor *actor);

/* ---- act_follow.c ---- */
/* The unit's job is as the ask says. */
void follow_asked(struct unit_memory *unit, int64_t job_id, const struct job_ask *ask);
/* Writes down what became of an update that follows; how it ends. */
enum kube_outcome follow_answered(struct work *work, const struct slurm_error *error);

/* ---- act_nodes.c ---- */
void node_start(struct work *work);
void node_done(struct actor *actor);

#endif
