/* engine_private.h - what engine.c, engine_notes.c and engine_state.c share. Private to them. */
#ifndef SLINC_ENGINE_ENGINE_PRIVATE_H
#define SLINC_ENGINE_ENGINE_PRIVATE_H

#include "base/map.h"
#include "engine/engine.h"
#include "engine/engine_metrics.h"
#include "engine/executor.h"

enum { ENGINE_MAX_CACHES = 64, ENGINE_MAX_CONTROLLERS = 64, ENGINE_MAX_KEYS = 1 << 20 };

struct work { /* one key between queue_take and its end */
    struct engine_work *owner;
    struct str key; /* the queue's */
    struct arena arena;
    struct plan plan;
    struct execution execution;
    int64_t taken_us, cost_us; /* when it was taken; how long the plan took */
    struct loop_timer pause;   /* armed: the plan is carried out, and the next one waits */
};

struct note {      /* what is to be said of a key, from one look at it to the next */
    char *waits;   /* of the last plan; NULL */
    char *error;   /* NULL: it went well */
    int outcome;   /* enum kube_outcome of the error; -1: the plan itself failed */
    bool told;     /* trouble was called for it */
    bool is_shown; /* used inside engine_write_state */
};

struct engine_watch { /* what a cache's listener is given */
    struct controller *controller;
    controller_map map;
};

struct engine_work { /* one controller */
    struct engine *engine;
    struct controller *controller;
    struct queue *queue;
    struct engine_watch *watches;
    struct map works; /* key -> struct work */
    struct map notes; /* key -> struct note */
};

struct engine {
    struct engine_options options;
    struct kube_client *client;
    struct loop *loop;
    struct rand *rand;
    struct metrics *metrics;
    struct rest_metrics rest;
    struct settler *settler;
    struct executor *executor;

    struct engine_work *controllers[ENGINE_MAX_CONTROLLERS];
    unsigned controller_count;
    unsigned next_controller; /* whose turn it is */
    struct kube_cache *caches[ENGINE_MAX_CACHES];
    unsigned cache_count;
    size_t work_count;

    bool is_started, is_synced, is_stopping;
    struct loop_timer turn; /* armed: keys are planned at the next chance */
    struct loop_timer tick; /* doubts, leadership, the first sync */
    struct loop_timer stop; /* the time given to engine_stop */
    void (*stopped)(void *context);
    void *stopped_context;
};

bool engine_may_act(const struct engine *engine);
void engine_refresh_metrics(void *engine); /* before a scrape */

/* ---- engine_notes.c ---- */
void engine_notes_init(struct engine_work *owner);
void engine_note_waits(struct engine_work *owner, struct str key, const char *waits); /* or NULL */
/* True when it is news: the key went well before, or failed in another way. */
bool engine_note_error(struct engine_work *owner, struct str key, int outcome, const char *error);
/* After an error: tells the trouble, unless it was told. */
void engine_note_refused(struct engine_work *owner, struct str key, const struct action *action,
                         const struct kube_answer *answer);
void engine_note_well(struct engine_work *owner, struct str key);

#endif
