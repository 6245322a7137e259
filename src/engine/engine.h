/* engine.h - observe, plan, act: ties caches, queues, plan functions and the executor together.
 *
 * A controller is a table: what it watches, how a change becomes keys, and its plan function. The
 * engine plans a key when it is due and none of its actions is in flight, lays the predicted
 * effects over the caches, sends, and queues the key again if something failed. Only the holder of
 * the lease acts (may_act is asked at every send). Per call: a deadline, a place in the concurrency
 * limit, metrics. */
#ifndef SLINC_ENGINE_ENGINE_H
#define SLINC_ENGINE_ENGINE_H

#include "engine/metrics.h"
#include "engine/plan.h"
#include "engine/queue.h"
#include "kube/informer.h"

struct engine;
struct controller;

/* Adds the keys that a change concerns: calls engine_enqueue. old or next may be NULL. */
typedef void (*controller_map)(struct controller *controller, const struct kube_object *old,
                               const struct kube_object *next);

struct controller_watch {
    struct kube_cache *cache;
    controller_map map; /* NULL: the key is "ns/name", or "name" when it has no namespace */
};

struct controller {
    const char *name; /* a metric label, and the first part of log lines */
    const struct controller_watch *watches;
    unsigned watch_count;
    /* 0, or -class with err set: the plan is dropped, the key comes back by back-off. */
    int (*plan)(struct controller *controller, struct str key, struct plan *plan, struct err *err);
    void *context; /* the caller's */
    /* A key whose plan took a millisecond or longer is planned again only after so many times that
     * time (half a second at most), so that many changes cost few plans; 0 = at every change. */
    unsigned pause_factor;
    struct engine_work *work; /* private */
};

struct engine_options {
    unsigned max_in_flight;         /* calls at once, per type of action that names no limit of its
                                       own; 0 = 64 */
    unsigned max_per_turn;          /* keys planned before the loop gets a turn; 0 = 64 */
    size_t arena_budget;            /* of one plan, which fails beyond it; 0 = 64 MiB */
    bool (*may_act)(void *context); /* NULL = always */
    void *may_act_context;
    const char *host; /* of the API server, for metrics; NULL = "apiserver" */
    /* A controller begins when the caches that it watches itself are synced, whatever becomes of
     * the others': a kind that we may not list stops only those who need it. */
    bool each_alone;
    /* Told once when the server begins to refuse an action of a key (DENIED or INVALID) and once
     * when the key goes well again: then action is NULL and the outcome DONE. */
    void (*trouble)(void *context, const struct controller *controller, struct str key,
                    const struct action *action, const struct kube_answer *answer);
    void *trouble_context;
    /* Told of the answer to every action, good or bad: for Events about what was done. */
    void (*answered)(void *context, const struct controller *controller, struct str key,
                     const struct action *action, const struct kube_answer *answer);
    void *answered_context;
    /* Told when steps of a plan failed (plan_step_failed), in other words than the last time. */
    void (*step_failed)(void *context, const struct controller *controller, struct str key,
                        const char *failure);
    void *step_failed_context;
    /* Plans are made, shown to `observed` and dropped: nothing is sent, nothing is laid over the
     * caches. Every plan is shown, the empty ones too, and borrowed until observed returns; keys
     * come back on changes and by look_again, as ever. */
    bool observe_only;
    void (*observed)(void *context, const struct controller *controller, struct str key,
                     const struct plan *plan); /* may be NULL */
    void *observed_context;
};

struct engine *engine_new(struct kube_client *client, struct rand *rand, struct metrics *metrics,
                          const struct engine_options *options);
/* All controllers are added before engine_start. Plans begin when every watched cache is synced.
 * Controllers, caches, client and metrics outlive the engine; once it is freed no watched cache
 * may change and the metrics may not be written. */
void engine_add(struct engine *engine, struct controller *controller);
/* Who carries out actions of another type than action_kube. It has a limit of its own. */
void engine_add_service(struct engine *engine, const struct action_type *type, void *service);
void engine_start(struct engine *engine);
/* No new plans; done is called when nothing is in flight, or when the time is up. */
void engine_stop(struct engine *engine, int64_t within_us, void (*done)(void *context),
                 void *context);
void engine_free(struct engine *engine);
void engine_wake(struct engine *engine); /* may_act may say yes now; else noticed in a second */

void engine_enqueue(struct controller *controller, struct str key);
void engine_enqueue_after(struct controller *controller, struct str key, int64_t delay_us);
bool engine_is_idle(const struct engine *engine); /* nothing queued due, nothing in flight */

/* GET /debug/state: every controller, key, its state in words, failures, what it waits for. */
void engine_write_state(const struct engine *engine, struct buf *out);

#endif
