/* engine.c - the turn of the wheel: take keys that are due, plan them, hand the plans to the
 * executor, and put the keys where their end says.
 *
 * Holds: a key has at most one work at a time; every work ends in exactly one of queue_done,
 * queue_failed and queue_put_back; nothing is planned before all watched caches are synced, while
 * we may not act, or after engine_stop; with observe_only no plan reaches the executor. One turn
 * takes at most max_per_turn keys and 20 ms. */
#include "engine/engine_private.h"

#include "base/log.h"
#include "base/mem.h"
#include "engine/absent_action.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    DEFAULT_IN_FLIGHT = 64,
    DEFAULT_PER_TURN = 64,
    DEFAULT_ARENA = 64 << 20,
    ARENA_RESERVE = 4, /* a plan that passes its budget still ends in the ordinary way */
    MAX_KEY = 1024,    /* bytes of a key made of an object's names */
    MAX_WORKS = 8192,  /* keys in work at once, of one controller: others must not wait for them */
    MANY_TRIES = 5,    /* a world that is another than we saw, so often, is worth a word */
    SLICE_US = 20000,
    CHEAP_US = 1000,       /* a plan that takes less is made again at every change */
    MAX_PAUSE_US = 500000, /* after the most costly one */
    TICK_US = 1000000,
    TICK_UNSYNCED_US = 50000,
};

static void on_turn(void *context);
static void on_tick(void *context);

static void turn_soon(struct engine *engine)
{
    if (engine->is_started && !engine->is_stopping && !loop_timer_is_armed(&engine->turn))
        loop_timer_start(engine->loop, &engine->turn, 0, on_turn, engine);
}

static void on_answered(void *context, const struct execution *execution,
                        const struct action *action, const struct kube_answer *answer)
{
    const struct engine_options *options = &((const struct engine *)context)->options;
    const struct work *work = (const struct work *)(const void *)((const char *)execution -
                                                                  offsetof(struct work, execution));

    if (options->answered)
        options->answered(options->answered_context, work->owner->controller, work->key, action,
                          answer);
}

static void on_ready(void *context)
{
    turn_soon(context);
}

/* ---- set-up ---- */

static unsigned or_default(unsigned value, unsigned fallback)
{
    return value ? value : fallback;
}

struct engine *engine_new(struct kube_client *client, struct rand *rand, struct metrics *metrics,
                          const struct engine_options *options)
{
    struct engine *engine = mem_alloc(sizeof(*engine));

    if (options)
        engine->options = *options;
    engine->options.max_in_flight = or_default(engine->options.max_in_flight, DEFAULT_IN_FLIGHT);
    engine->options.max_per_turn = or_default(engine->options.max_per_turn, DEFAULT_PER_TURN);
    if (engine->options.arena_budget == 0)
        engine->options.arena_budget = DEFAULT_ARENA;
    if (!engine->options.host)
        engine->options.host = "apiserver";
    engine->client = client;
    engine->loop = kube_client_loop(client);
    engine->rand = rand;
    engine->metrics = metrics;
    engine->settler = settler_new(client, rand);
    engine->executor =
        executor_new(&(struct executor_options){ .loop = engine->loop,
                                                 .settler = engine->settler,
                                                 .metrics = metrics,
                                                 .max_in_flight = engine->options.max_in_flight,
                                                 .may_act = engine->options.may_act,
                                                 .may_act_context = engine->options.may_act_context,
                                                 .answered = on_answered,
                                                 .answered_context = engine });
    executor_add_lane(engine->executor, &action_kube, client);
    executor_add_lane(engine->executor, &action_absent, client);
    rest_metrics_watch(&engine->rest, metrics, engine->options.host, client);
    metrics_on_scrape(metrics, engine_refresh_metrics, engine);
    return engine;
}

void engine_add_service(struct engine *engine, const struct action_type *type, void *service)
{
    executor_add_lane(engine->executor, type, service);
}

static void know_cache(struct engine *engine, struct kube_cache *cache)
{
    for (unsigned i = 0; i < engine->cache_count; i++)
        if (engine->caches[i] == cache)
            return;
    if (engine->cache_count == ENGINE_MAX_CACHES) {
        fprintf(stderr, "engine: more than %d caches\n", ENGINE_MAX_CACHES);
        abort();
    }
    engine->caches[engine->cache_count++] = cache;
}

static void map_to_itself(struct controller *controller, const struct kube_object *object)
{
    char key[MAX_KEY];
    const char *slash = object->ns[0] ? "/" : "";
    int length = snprintf(key, sizeof(key), "%s%s%s", object->ns, slash, object->name);

    if (length > 0 && length < MAX_KEY)
        engine_enqueue(controller, (struct str){ key, (size_t)length });
}

static void on_change(void *context, const struct kube_object *old, const struct kube_object *next)
{
    const struct engine_watch *watch = context;

    if (watch->map)
        watch->map(watch->controller, old, next);
    else
        map_to_itself(watch->controller, next ? next : old);
}

static void free_work(void *value)
{
    struct work *work = value;

    loop_timer_stop(&work->pause);
    arena_done(&work->arena);
    mem_free(work);
}

static struct engine_work *controller_work(struct engine *engine, struct controller *controller)
{
    struct engine_work *owner = mem_alloc(sizeof(*owner));

    owner->engine = engine;
    owner->controller = controller;
    owner->queue = queue_new(engine->loop, engine->rand, ENGINE_MAX_KEYS, on_ready, engine);
    owner->watches = mem_alloc_array(controller->watch_count + 1, sizeof(*owner->watches));
    map_init(&owner->works, &(struct map_options){
                                .max = MAX_WORKS, .borrow_keys = true, .free_value = free_work });
    engine_notes_init(owner);
    return owner;
}

void engine_add(struct engine *engine, struct controller *controller)
{
    if (engine->is_started || engine->controller_count == ENGINE_MAX_CONTROLLERS) {
        fprintf(stderr, "engine: %s was added too late, or is one too many\n", controller->name);
        abort();
    }

    struct engine_work *owner = controller_work(engine, controller);

    controller->work = owner;
    engine->controllers[engine->controller_count++] = owner;
    for (unsigned i = 0; i < controller->watch_count; i++) {
        const struct controller_watch *watch = &controller->watches[i];

        owner->watches[i] = (struct engine_watch){ controller, watch->map };
        know_cache(engine, watch->cache);
        kube_cache_listen(watch->cache, on_change, &owner->watches[i]);
    }
}

void engine_start(struct engine *engine)
{
    engine->is_started = true;
    loop_timer_start(engine->loop, &engine->tick, 0, on_tick, engine);
}

void engine_enqueue(struct controller *controller, struct str key)
{
    queue_add(controller->work->queue, key);
}

void engine_enqueue_after(struct controller *controller, struct str key, int64_t delay_us)
{
    queue_add_after(controller->work->queue, key, delay_us);
}

void engine_wake(struct engine *engine)
{
    turn_soon(engine);
}

/* ---- the end of a work ---- */

static void count_end(const struct work *work, const char *result)
{
    const struct engine *engine = work->owner->engine;
    const char *name = work->owner->controller->name;
    double seconds = (double)(loop_now_us(engine->loop) - work->taken_us) / 1e6;

    metrics_add(engine->metrics, &engine_metrics[METRIC_RECONCILE_TOTAL], 1, name, result, NULL);
    metrics_observe(engine->metrics, &engine_metrics[METRIC_RECONCILE_SECONDS], seconds, name,
                    NULL);
    metrics_observe(engine->metrics, &engine_metrics[METRIC_QUEUE_WORK_SECONDS], seconds, name,
                    NULL);
    if (str_is(STR("error"), result))
        metrics_add(engine->metrics, &engine_metrics[METRIC_RECONCILE_ERRORS], 1, name, NULL);
}

static void check_stopped(struct engine *engine);

enum way_back { BACK_DONE, BACK_FAILED, BACK_AGAIN };

/* Gives the key back to the queue, and frees the work. */
static void end_work(struct work *work, enum way_back way, int64_t not_before_us)
{
    struct engine *engine = work->owner->engine;
    struct queue *queue = work->owner->queue;

    engine->work_count--;
    map_take(&work->owner->works, work->key);
    switch (way) {
    case BACK_DONE:
        queue_done(queue, work->key);
        break;
    case BACK_FAILED:
        queue_failed(queue, work->key, not_before_us);
        break;
    case BACK_AGAIN:
        queue_put_back(queue, work->key);
        break;
    }
    free_work(work);
    turn_soon(engine);
    check_stopped(engine);
}

/* Some steps of the plan failed, and what the others wanted was done. */
static void end_with_failed_steps(struct work *work)
{
    struct engine_work *owner = work->owner;
    const struct engine_options *options = &owner->engine->options;

    if (engine_note_error(owner, work->key, -1, work->plan.failure)) {
        log_warn("a step failed", LOG_TEXT("controller", owner->controller->name),
                 LOG_STR("key", work->key), LOG_TEXT("error", work->plan.failure));
        if (options->step_failed)
            options->step_failed(options->step_failed_context, owner->controller, work->key,
                                 work->plan.failure);
    }
    count_end(work, "error");
    end_work(work, BACK_FAILED, 0);
}

static void on_pause_over(void *context)
{
    end_work(context, BACK_DONE, 0);
}

/* How long the next plan of this key waits: controller.pause_factor, and what the plan wants. */
static int64_t pause_of(const struct work *work)
{
    const struct engine_work *owner = work->owner;
    int64_t pause_us =
        work->cost_us < CHEAP_US ? 0 : owner->controller->pause_factor * work->cost_us;

    if (pause_us > MAX_PAUSE_US)
        pause_us = MAX_PAUSE_US;
    if (pause_us < work->plan.rest_us)
        pause_us = work->plan.rest_us;
    if (pause_us == 0)
        return 0;
    return work->taken_us + work->cost_us + pause_us - loop_now_us(owner->engine->loop);
}

/* A key that pauses stays in work: the queue keeps what is added meanwhile. */
static void end_or_pause(struct work *work)
{
    struct engine *engine = work->owner->engine;
    int64_t pause_us = pause_of(work);

    if (pause_us <= 0 || engine->is_stopping) {
        end_work(work, BACK_DONE, 0);
        return;
    }
    plan_clear(&work->plan); /* its memory */
    loop_timer_start(engine->loop, &work->pause, pause_us, on_pause_over, work);
}

static void end_well(struct work *work)
{
    int64_t again_us = work->plan.look_again_us;

    if (work->plan.failure) {
        end_with_failed_steps(work);
        return;
    }
    engine_note_well(work->owner, work->key);
    count_end(work, again_us > 0 ? "requeue_after" : "success");
    if (again_us > 0)
        queue_add_after(work->owner->queue, work->key, again_us);
    end_or_pause(work);
}

static void end_plan_failed(struct work *work, const struct err *err)
{
    struct engine_work *owner = work->owner;

    if (engine_note_error(owner, work->key, -1, err->text))
        log_warn("cannot plan", LOG_TEXT("controller", owner->controller->name),
                 LOG_STR("key", work->key), LOG_ERROR(err));
    count_end(work, "error");
    end_work(work, BACK_FAILED, 0);
}

static void say_failed(struct work *work, const struct execution_why *why,
                       const struct action *action)
{
    struct engine_work *owner = work->owner;
    const char *error = arena_printf(&work->arena, "%s: %s", action->what, why->message);

    if (engine_note_error(owner, work->key, (int)why->outcome, error))
        log_warn("action failed", LOG_TEXT("controller", owner->controller->name),
                 LOG_STR("key", work->key), LOG_TEXT("action", action->what),
                 LOG_TEXT("outcome", kube_outcome_name(why->outcome)),
                 LOG_I64("status", why->status), LOG_TEXT("error", why->message));
}

static void say_refused(struct work *work, const struct execution_why *why,
                        const struct action *action)
{
    say_failed(work, why, action);
    engine_note_refused(work->owner, work->key, action,
                        &(struct kube_answer){ .outcome = why->outcome,
                                               .status = why->status,
                                               .reason = why->reason,
                                               .message = why->message });
}

static void count_failure(const struct work *work, const struct execution_why *why)
{
    struct metrics *metrics = work->owner->engine->metrics;
    const char *name = work->owner->controller->name;

    if (why->outcome == KUBE_INVALID)
        metrics_add(metrics, &engine_metrics[METRIC_RECONCILE_TERMINAL_ERRORS], 1, name, NULL);
    if (why->outcome == KUBE_UNKNOWN && why->status == 0)
        metrics_add(metrics, &engine_metrics[METRIC_RECONCILE_TIMEOUTS], 1, name, NULL);
}

static void end_failed(struct work *work)
{
    const struct execution_why *why = &work->execution.why;
    const struct action *action = work->execution.failed;
    const char *result = "error";

    switch (why->outcome) {
    case KUBE_DONE:
    case KUBE_CONFLICT:
    case KUBE_GONE: /* the world is another than we saw: look again soon */
        result = "requeue";
        if (queue_failures(work->owner->queue, work->key) >= MANY_TRIES)
            say_failed(work, why, action);
        break;
    case KUBE_DENIED:
    case KUBE_INVALID:
        say_refused(work, why, action);
        break;
    case KUBE_UNAVAILABLE:
    case KUBE_UNKNOWN:
        say_failed(work, why, action);
        break;
    }
    count_failure(work, why);
    count_end(work, result);
    end_work(work, BACK_FAILED, why->not_before_us);
}

static void on_ended(struct execution *execution, enum execution_end end)
{
    struct work *work = list_item(execution, struct work, execution);

    switch (end) {
    case EXECUTION_DONE:
        end_well(work);
        break;
    case EXECUTION_FAILED:
        end_failed(work);
        break;
    case EXECUTION_DROPPED:
        count_end(work, "requeue");
        end_work(work, BACK_AGAIN, 0);
        break;
    }
}

/* ---- a turn ---- */

static void show_plan(const struct work *work)
{
    const struct engine_options *options = &work->owner->engine->options;

    if (options->observed)
        options->observed(options->observed_context, work->owner->controller, work->key,
                          &work->plan);
}

/* What a cache does not have of a namespace that may not be read is not known to be absent. */
static bool can_read_all(const struct controller *controller, struct str key)
{
    struct str ns = STR(""), name;

    (void)str_cut(key, '/', &ns, &name);
    for (unsigned i = 0; i < controller->watch_count; i++)
        if (!kube_cache_is_readable(controller->watches[i].cache, ns))
            return false;
    return true;
}

static int make_plan(struct work *work, struct err *err)
{
    struct controller *controller = work->owner->controller;

    if (!can_read_all(controller, work->key))
        return err_set(err, ERR_DENIED, "this namespace may not be read");
    if (controller->plan(controller, work->key, &work->plan, err) < 0)
        return -err->class;
    if (arena_is_over_budget(&work->arena))
        return err_set(err, ERR_TOO_BIG, "the plan takes %zu bytes, and may take %zu",
                       work->arena.used, work->arena.budget);
    return 0;
}

static void plan_key(struct engine_work *owner, struct str key)
{
    struct engine *engine = owner->engine;
    struct work *work = mem_alloc(sizeof(*work));
    struct err err = { 0 };

    work->owner = owner;
    work->key = key;
    work->taken_us = loop_now_us(engine->loop);
    arena_init_budget(&work->arena, engine->options.arena_budget,
                      engine->options.arena_budget * ARENA_RESERVE);
    plan_init(&work->plan, &work->arena);
    map_put(&owner->works, key, work, NULL); /* plan_next keeps to the maximum */
    engine->work_count++;
    metrics_observe(engine->metrics, &engine_metrics[METRIC_QUEUE_WAIT_SECONDS],
                    (double)queue_waited_us(owner->queue, key) / 1e6, owner->controller->name,
                    NULL);

    if (make_plan(work, &err) < 0) {
        end_plan_failed(work, &err);
        return;
    }
    work->cost_us = loop_now_us(engine->loop) - work->taken_us;
    engine_note_waits(owner, key, work->plan.waits);
    list_each (const struct plan_key, other, &work->plan.enqueues, link)
        queue_add(owner->queue, other->key);
    if (engine->options.observe_only)
        show_plan(work);
    if (engine->options.observe_only || list_is_empty(&work->plan.actions)) {
        end_well(work);
        return;
    }
    list_each (const struct action, action, &work->plan.actions, link)
        if (action->cache)
            know_cache(engine, action->cache);
    execution_begin(engine->executor, &work->execution, &work->plan, on_ended);
}

static bool watches_are_synced(const struct engine_work *owner)
{
    const struct controller *controller = owner->controller;

    for (unsigned i = 0; i < controller->watch_count; i++)
        if (!kube_cache_is_synced(controller->watches[i].cache))
            return false;
    return true;
}

static bool may_plan(const struct engine *engine, const struct engine_work *owner)
{
    return owner->works.count < MAX_WORKS &&
           (engine->is_synced || (engine->options.each_alone && watches_are_synced(owner)));
}

/* Controllers take turns too. False when nothing is due, or all is in work that may be. */
static bool plan_next(struct engine *engine)
{
    for (unsigned i = 0; i < engine->controller_count; i++) {
        unsigned at = (engine->next_controller + i) % engine->controller_count;
        struct str key;

        if (!may_plan(engine, engine->controllers[at]) ||
            !queue_take(engine->controllers[at]->queue, &key))
            continue;
        engine->next_controller = at + 1;
        plan_key(engine->controllers[at], key);
        return true;
    }
    return false;
}

bool engine_may_act(const struct engine *engine)
{
    const struct engine_options *options = &engine->options;

    return !options->may_act || options->may_act(options->may_act_context);
}

static void on_turn(void *context)
{
    struct engine *engine = context;
    int64_t until_us = loop_now_us(engine->loop) + SLICE_US;

    if ((!engine->is_synced && !engine->options.each_alone) || !engine_may_act(engine))
        return; /* the tick looks again */
    for (unsigned count = 0;; count++) {
        if (count == engine->options.max_per_turn || loop_now_us(engine->loop) >= until_us) {
            turn_soon(engine);
            return;
        }
        if (!plan_next(engine))
            return;
    }
}

static bool all_synced(const struct engine *engine)
{
    for (unsigned i = 0; i < engine->cache_count; i++)
        if (!kube_cache_is_synced(engine->caches[i]))
            return false;
    return true;
}

static void on_tick(void *context)
{
    struct engine *engine = context;

    if (!engine->is_synced && all_synced(engine)) {
        engine->is_synced = true;
        log_info("all caches are synced, planning begins",
                 LOG_U64("controllers", engine->controller_count));
    }
    for (unsigned i = 0; i < engine->cache_count; i++)
        settler_look(engine->settler, engine->caches[i]);
    turn_soon(engine);
    loop_timer_start(engine->loop, &engine->tick, engine->is_synced ? TICK_US : TICK_UNSYNCED_US,
                     on_tick, engine);
}

bool engine_is_idle(const struct engine *engine)
{
    if (engine->work_count > 0)
        return false;
    for (unsigned i = 0; i < engine->controller_count; i++) {
        struct queue_stats stats;

        queue_stats(engine->controllers[i]->queue, &stats);
        if (stats.waiting > 0)
            return false;
    }
    return true;
}

/* ---- the end ---- */

static void on_stopped(void *context)
{
    struct engine *engine = context;
    void (*stopped)(void *context) = engine->stopped;

    loop_timer_stop(&engine->stop);
    engine->stopped = NULL;
    if (stopped)
        stopped(engine->stopped_context);
}

static void check_stopped(struct engine *engine)
{
    if (engine->is_stopping && engine->stopped && engine->work_count == 0)
        loop_timer_start(engine->loop, &engine->stop, 0, on_stopped, engine);
}

static void stop_work(struct work *work)
{
    if (loop_timer_is_armed(&work->pause))
        end_work(work, BACK_DONE, 0);
    else
        execution_drop(&work->execution);
}

void engine_stop(struct engine *engine, int64_t within_us, void (*done)(void *context),
                 void *context)
{
    engine->is_stopping = true;
    engine->stopped = done;
    engine->stopped_context = context;
    loop_timer_stop(&engine->turn);
    loop_timer_stop(&engine->tick);
    loop_timer_start(engine->loop, &engine->stop, within_us, on_stopped, engine);
    for (unsigned i = 0; i < engine->controller_count; i++)
        map_each (item, &engine->controllers[i]->works)
            stop_work(item->value);
    check_stopped(engine);
}

static void free_controller(struct engine_work *owner)
{
    map_each (item, &owner->works) {
        struct work *work = item->value;

        if (!loop_timer_is_armed(&work->pause))
            execution_give_up(&work->execution);
    }
    owner->controller->work = NULL;
    map_done(&owner->works);
    map_done(&owner->notes);
    queue_free(owner->queue);
    mem_free(owner->watches);
    mem_free(owner);
}

void engine_free(struct engine *engine)
{
    if (!engine)
        return;
    loop_timer_stop(&engine->turn);
    loop_timer_stop(&engine->tick);
    loop_timer_stop(&engine->stop);
    kube_client_observe(engine->client, NULL, NULL);
    for (unsigned i = 0; i < engine->controller_count; i++)
        free_controller(engine->controllers[i]);
    executor_free(engine->executor);
    settler_free(engine->settler);
    mem_free(engine);
}
