/* slurm_action.h - calls to Slurm as actions of plans: a row for each kind of call.
 *
 * A kind of call is a struct slurm_call_type. A plan adds a struct slurm_action of that kind, which
 * is copied into its arena; a lane (slurm_lane.h) carries it out. The service of every action_type
 * made here is a struct slurm_service. */
#ifndef SLINC_ENGINE_SLURM_ACTION_H
#define SLINC_ENGINE_SLURM_ACTION_H

#include "engine/plan.h"
#include "slurm/client.h"
#include "slurm/poller.h"

typedef void (*slurm_task_finish)(void *context, const struct kube_answer *answer);

struct slurm_action;
struct slurm_batch;
struct slurm_lane;
struct slurm_task;

/* The lane reads this object from the API server just before it sends the action, and drops the
 * action if the object exists. With a uid, an object of that name with another uid counts as
 * absent. Name NULL: no object of the namespace may object; one does that has this uid, or
 * that `objects` says so of. */
struct action_unless {
    const struct kube_resource *resource;
    const char *ns, *name, *uid;
    bool (*objects)(const struct json *object, const struct action_unless *unless,
                    const struct slurm_action *action);
    const char *about;                /* for `objects`, as is uid then; NULL */
    const struct action_unless *also; /* asked when this one does not object; NULL */
};

struct slurm_call_type {
    const char *what; /* in plans and logs, in front of the name: "update node" */
    const char *key;  /* of the name in the action's JSON; NULL: `write` shows it */
    const struct action_type *family;
    enum slurm_feed feed; /* read again after the answer; SLURM_FEEDS: nothing is */

    /* A call is sent alone by `send`, or for several actions by `send_all`. Each gives its own
     * call, which answers to slurm_task_answered or slurm_batch_answered. */
    struct slurm_call *(*send)(struct slurm_task *task);
    struct slurm_call *(*send_all)(struct slurm_batch *batch);
    size_t max_batch;   /* actions in one call */
    unsigned max_calls; /* in flight, of those that share the feed */
    bool settles;       /* the action ends when the cache is as new as the answer */
    bool (*go_together)(const struct slurm_action *a, const struct slurm_action *b); /* NULL: all */

    /* The rest may be NULL. */
    void (*start)(struct slurm_task *task);            /* instead of slurm_task_go */
    void (*before)(struct slurm_task *task);           /* the guard did not object */
    const char *(*objection)(struct slurm_task *task); /* when it is sent: why it must not be */
    /* What the answer means; task->message is its text. NULL: by its class alone. */
    enum kube_outcome (*judge)(struct slurm_task *task, const struct slurm_answer *answer);
    void (*write)(const struct slurm_action *action, struct json_build *build,
                  struct json_mut *into);

    size_t task_size; /* of an owner's task that begins with a slurm_task */
    void (*cancelled)(struct slurm_task *task); /* nobody waits for it any more */
    void (*done)(struct slurm_task *task);      /* ends what the owner's task holds */
};

/* Owners that need more put this first into a struct of their own. */
struct slurm_action {
    const struct slurm_call_type *type;
    const char *cluster;                /* for lane_of, where there are several; NULL */
    const char *name;                   /* of the node, the reservation; the id of a job */
    struct str fields;                  /* JSON text to be sent; may be empty */
    const struct action_unless *unless; /* NULL: none */
};

/* ---- for plans ---- */

/* size: at least a struct slurm_action; zeroed behind it. name is copied. */
void *slurm_action_new(struct plan *plan, const struct slurm_call_type *type, size_t size,
                       const char *name);
void slurm_action_set_fields(struct plan *plan, struct slurm_action *action,
                             const struct json_mut *fields);
void slurm_action_set_unless(struct plan *plan, struct slurm_action *action,
                             const struct action_unless *unless); /* takes NULL */
/* about: in the action's text, instead of its name; NULL. */
struct action *slurm_action_add(struct plan *plan, const struct slurm_action *action,
                                const char *about);

/* ---- for the executor ---- */

struct slurm_service { /* an owner puts this first into a struct of its own */
    struct slurm_lane *(*lane_of)(struct slurm_service *service, const struct slurm_action *action);
};

void *slurm_action_start(void *service, const struct action *action, slurm_task_finish finish,
                         void *context);
void slurm_action_cancel(void *service, void *handle);
void slurm_action_write(const struct action *action, struct buf *out);

#define SLURM_ACTION_TYPE(label, limit)                                                            \
    {                                                                                              \
        .name = (label),                                                                           \
        .max_in_flight = (limit),                                                                  \
        .start = slurm_action_start,                                                               \
        .cancel = slurm_action_cancel,                                                             \
        .write = slurm_action_write,                                                               \
    }

#endif
