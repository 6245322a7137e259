/* executor.h - carries plans out: stages in turn, the actions of a stage side by side.
 *
 * Each type of action has a lane of its own, with its own limit of calls in flight and its own
 * pause when the other side asks for one, so that a slow Slurm never holds up Kubernetes and the
 * other way round. In a lane the executions take turns, one action each. Private to the layer. */
#ifndef SLINC_ENGINE_EXECUTOR_H
#define SLINC_ENGINE_EXECUTOR_H

#include "engine/effect.h"
#include "engine/metrics.h"
#include "engine/settle.h"

enum {
    EXECUTOR_MAX_LANES = 8,
    EXECUTOR_STALE_US = 5000000,  /* a plan that waited longer for its turn is dropped */
    EXECUTOR_PAUSE_US = 15000000, /* the longest that the other side may ask for */
};

struct executor;
struct execution;

struct executor_options {
    struct loop *loop;
    struct settler *settler;
    struct metrics *metrics;
    unsigned max_in_flight; /* per lane, where its type names none */
    bool (*may_act)(void *context);
    void *may_act_context;
    /* Told of every answer, before the execution goes on. NULL: nobody. */
    void (*answered)(void *context, const struct execution *execution, const struct action *action,
                     const struct kube_answer *answer);
    void *answered_context;
};

struct executor *executor_new(const struct executor_options *options);
void executor_free(struct executor *executor); /* every execution has ended or was given up */
void executor_add_lane(struct executor *executor, const struct action_type *type, void *service);
unsigned executor_in_flight(const struct executor *executor); /* sent, not answered */
size_t executor_overlays(const struct executor *executor);    /* predictions laid, not settled */

enum execution_end {
    EXECUTION_DONE,    /* every action went well */
    EXECUTION_FAILED,  /* one did not: see failed and why */
    EXECUTION_DROPPED, /* not all was sent: we may not act, or the plan is too old, or a stop */
};

struct execution_why { /* a copy of the answer that counts */
    enum kube_outcome outcome;
    int status;
    char reason[64], message[512];
    int64_t not_before_us; /* when the other side named a time; else 0 */
};

/* One plan on its way; the caller's memory, at least until `ended` is called. */
struct execution {
    struct executor *executor;
    struct plan *plan;
    void (*ended)(struct execution *execution, enum execution_end end);

    const struct action *failed; /* the worst failure; NULL when there was none */
    struct execution_why why;

    unsigned unfinished; /* private: steps of this stage */
    int64_t planned_us;  /* private */
    bool is_dropped;     /* private */
    bool is_stopped;     /* private: a failure on which later stages depend */
    bool is_hurried;     /* private: nothing is read any more */
    struct list steps;   /* private: of all stages not yet ended */
    struct list link;    /* private */
};

/* Lays the predicted effects now, sends from the loop. `ended` is called once, from the loop. */
void execution_begin(struct executor *executor, struct execution *execution, struct plan *plan,
                     void (*ended)(struct execution *execution, enum execution_end end));
/* Nothing more is sent. Ends when what is in flight has been answered. */
void execution_drop(struct execution *execution);
/* Ends without a callback; what is in flight is cancelled and its effect stays in doubt. */
void execution_give_up(struct execution *execution);

#endif
