/* plan.h - what to do, as data: the result of looking at one key.
 *
 * A plan function reads the caches and a clock value and fills a plan. It does no I/O and may be
 * called twice with the same result. Actions run in stages: those of one stage side by side, the
 * next stage when all of one have succeeded; the first failure drops the stages behind it, unless
 * nothing depends on what failed, and the key is planned anew. */
#ifndef SLINC_ENGINE_PLAN_H
#define SLINC_ENGINE_PLAN_H

#include "base/arena.h"
#include "base/list.h"
#include "kube/cache.h"
#include "kube/client.h"

struct plan;

/* Layers above may add kinds of action (Slurm calls); the executor knows them by these functions.
 */
struct action;
struct action_type {
    const char *name;       /* "kube", "slurm": a metric label */
    unsigned max_in_flight; /* calls at once; 0 = as many as the engine allows */
    /* Starts it; `finish` must be called exactly once, from the loop. Returns a handle to cancel.
     */
    void *(*start)(void *service, const struct action *action,
                   void (*finish)(void *context, const struct kube_answer *answer), void *context);
    void (*cancel)(void *service, void *handle);
    /* The detail as JSON text, for plan_write. NULL: there is nothing to show. */
    void (*write)(const struct action *action, struct buf *out);
};

/* What people are to be told when an action is done: for those who listen to answers (engine.h). */
struct action_news {
    const struct action_news *next;
    bool is_warning;
    const char *reason, *text;
};

extern const struct action_type action_kube; /* its service is a struct kube_client */

struct action {
    struct list link; /* private */
    const struct action_type *type;
    unsigned stage;
    const char *what; /* for logs: "create configmap a/b"; the first word is a metric label */
    struct kube_request request; /* type kube */
    struct kube_cache *cache;    /* where its effect is laid over; NULL = nowhere */
    struct str predicted;        /* JSON: the object (create), a merge patch; deletes: empty */
    bool is_independent;         /* its failure drops no later stage */
    bool missing_is_fine;        /* GONE counts as done (deletes) */
    bool existing_is_fine;       /* AlreadyExists counts as done (creates) */
    /* Of what the server takes once and refuses from then on (binds): whether a read shows that it
     * has, or never will. Then it is sent again when nobody knows. NULL: it is not of that sort. */
    bool (*is_settled)(const struct kube_object *found);
    const void *detail; /* other types */
    /* Asked at the moment of sending, which in a crowd comes later than the plan: whether what it
     * was planned on still holds. No: nothing is sent, and the key is planned again. NULL: it does.
     */
    bool (*still_holds)(const void *basis);
    const void *basis;              /* in the arena */
    const struct action_news *news; /* in the arena; NULL: none */
};

struct plan_key { /* of the same controller */
    struct list link;
    struct str key;
};

enum { PLAN_MAX_ACTIONS = 4096 }; /* about 20 ms of planning */

struct plan {
    struct arena *arena;
    struct list actions; /* struct action */
    unsigned action_count;
    struct list enqueues;  /* struct plan_key: other keys that are to be planned next */
    unsigned stage;        /* of the actions added next */
    bool is_independent;   /* so are they */
    int64_t look_again_us; /* delay after which to plan this key again; 0 = only on change */
    int64_t rest_us;       /* this key is not planned again before, whatever changes */
    const char *waits;     /* why nothing more is done now, for /debug/state; NULL */
    const char *failure;   /* which steps failed and why; NULL: none */
};

void plan_init(struct plan *plan, struct arena *arena);
void plan_clear(struct plan *plan); /* drops all of it, and what is in the arena */
/* Whether the plan may take more actions. When not, the key is planned again as soon as the actions
 * are done. For loops over as many objects as users like to make. */
bool plan_has_room(struct plan *plan);
void plan_next_stage(struct plan *plan);
void plan_look_again(struct plan *plan, int64_t delay_us); /* the earliest counts */
/* Another key of the same controller is planned next: what this plan saw concerns it. */
void plan_enqueue(struct plan *plan, struct str key);
/* Several reasons are joined by "; ". */
void plan_wait(struct plan *plan, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A step of the plan cannot be done now: what the other steps added is still carried out, and the
 * key comes back by back-off. Several failures are joined by "; ". */
void plan_step_failed(struct plan *plan, const char *step, const struct err *err);

/* An action of another type. what is copied; detail must live as long as the arena. */
struct action *plan_add(struct plan *plan, const struct action_type *type, const char *what,
                        const void *detail);

/* Each copies what it is given into the arena. `cache` may be NULL. Patches carry a resourceVersion
 * precondition when `version` is not NULL; deletes carry the UID, and the version too when given.
 * plan_create fills in apiVersion, kind and namespace where the object lacks them. metadata of
 * plan_bind: labels and annotations to go with it, or NULL.
 *
 * A uid or version that is "" belongs to an object that so far only a create of ours predicts:
 * patch, delete and bind then add nothing and return NULL, and the plan waits. The change from
 * predicted to real brings the key back. */
struct action *plan_create(struct plan *plan, struct kube_cache *cache,
                           const struct kube_resource *resource, const char *ns,
                           const struct json_mut *object);
struct action *plan_merge_patch(struct plan *plan, struct kube_cache *cache,
                                const struct kube_resource *resource, const char *ns,
                                const char *name, const char *subresource, const char *version,
                                const struct json_mut *patch);
/* Patches that are not their own effect: `predicted` is a merge patch that says what they will
 * change (of pods and nodes, conditions are told apart by type: see kinds.h). NULL: nothing is
 * foretold, and the answer shows first.
 *
 * A strategic patch merges lists that the server knows to merge; custom resources have none. A JSON
 * patch is an array of operations; it takes the place of a version by tests, as of /metadata/uid.
 * When one of them fails the outcome is CONFLICT: the key is looked at again and nobody is told. */
struct action *plan_strategic_patch(struct plan *plan, struct kube_cache *cache,
                                    const struct kube_resource *resource, const char *ns,
                                    const char *name, const char *subresource, const char *version,
                                    const struct json_mut *patch, const struct json_mut *predicted);
struct action *plan_json_patch(struct plan *plan, struct kube_cache *cache,
                               const struct kube_resource *resource, const char *ns,
                               const char *name, const char *subresource,
                               const struct json_mut *patch_array,
                               const struct json_mut *predicted);
struct action *plan_delete(struct plan *plan, struct kube_cache *cache,
                           const struct kube_resource *resource, const char *ns, const char *name,
                           const char *uid, const char *version);
/* A pod that gets so many seconds to stop, in place of its own grace period; 0: its own. */
struct action *plan_delete_within(struct plan *plan, struct kube_cache *cache,
                                  const struct kube_resource *resource, const char *ns,
                                  const char *name, const char *uid, const char *version,
                                  int64_t grace_s);
struct action *plan_bind(struct plan *plan, struct kube_cache *cache, const char *ns,
                         const char *pod, const char *uid, const char *node,
                         const struct json_mut *metadata);

/* The plan as canonical JSON, for tests and /debug/state. */
void plan_write(const struct plan *plan, struct buf *out);

#endif
