/* engine_state.c - the engine as others see it: GET /debug/state, and the gauges of a scrape.
 *
 * Nothing of an object's content is shown, only names and reasons: plans may carry secrets. */
#include "codec/json.h"
#include "engine/engine_private.h"

static const char *state_name(enum queue_state state, const struct work *work)
{
    switch (state) {
    case QUEUE_WAITING:
        return "waiting";
    case QUEUE_DELAYED:
        return "delayed";
    case QUEUE_BACKING_OFF:
        return "backing-off";
    case QUEUE_WORKING:
        return work && work->execution.executor ? "acting" : "planning";
    }
    return "";
}

static double seconds_of(int64_t us)
{
    return us > 0 ? (double)us / 1e6 : 0;
}

static void add_text(struct buf *out, const char *key, const char *text)
{
    if (!text)
        return;
    buf_printf(out, ",\"%s\":", key);
    json_escape(out, str_of(text));
}

static void write_actions(struct buf *out, const struct work *work)
{
    const char *separator = "";

    buf_add_text(out, ",\"actions\":[");
    list_each (const struct action, action, &work->plan.actions, link) {
        buf_add_text(out, separator);
        json_escape(out, str_of(action->what));
        separator = ",";
    }
    buf_add_char(out, ']');
}

struct view { /* what the walk over one queue is given */
    struct buf *out;
    const struct engine_work *owner;
    const char *separator;
    int64_t now_us;
};

static void write_key(void *context, const struct queue_view *key)
{
    struct view *view = context;
    struct buf *out = view->out;
    const struct work *work = map_get(&view->owner->works, key->key);
    struct note *note = map_get(&view->owner->notes, key->key);

    buf_printf(out, "%s{\"key\":", view->separator);
    json_escape(out, key->key);
    buf_printf(out, ",\"state\":\"%s\",\"failures\":%u,\"forSeconds\":%.3f",
               state_name(key->state, work), key->failures,
               seconds_of(view->now_us - key->since_us));
    if (key->state == QUEUE_DELAYED || key->state == QUEUE_BACKING_OFF)
        buf_printf(out, ",\"dueInSeconds\":%.3f", seconds_of(key->due_us - view->now_us));
    if (note) {
        add_text(out, "error", note->error);
        add_text(out, "waits", note->waits);
        note->is_shown = true;
    }
    if (work)
        write_actions(out, work);
    buf_add_char(out, '}');
    view->separator = ",";
}

/* Keys that nothing is to be done for, and of which there is something to say. */
static void write_rest(struct view *view)
{
    map_each (item, &view->owner->notes) {
        struct note *note = item->value;
        bool is_shown = note->is_shown;

        note->is_shown = false;
        if (is_shown)
            continue;
        buf_printf(view->out, "%s{\"key\":", view->separator);
        json_escape(view->out, item->key);
        buf_add_text(view->out, ",\"state\":\"at-rest\",\"failures\":0");
        add_text(view->out, "error", note->error);
        add_text(view->out, "waits", note->waits);
        buf_add_char(view->out, '}');
        view->separator = ",";
    }
}

static void write_controller(const struct engine_work *owner, struct buf *out)
{
    struct view view = { out, owner, "", loop_now_us(owner->engine->loop) };
    struct queue_stats stats;

    queue_stats(owner->queue, &stats);
    buf_add_text(out, "{\"name\":");
    json_escape(out, str_of(owner->controller->name));
    buf_printf(out, ",\"waiting\":%zu,\"working\":%zu,\"delayed\":%zu,\"dropped\":%llu,\"keys\":[",
               stats.waiting, stats.working, stats.delayed, (unsigned long long)stats.dropped);
    queue_each(owner->queue, write_key, &view);
    write_rest(&view);
    buf_add_text(out, "]}");
}

static const char *bool_text(bool value)
{
    return value ? "true" : "false";
}

void engine_write_state(const struct engine *engine, struct buf *out)
{
    buf_printf(out, "{\"synced\":%s,\"mayAct\":%s,\"stopping\":%s,\"inFlight\":%u",
               bool_text(engine->is_synced), bool_text(engine_may_act(engine)),
               bool_text(engine->is_stopping), executor_in_flight(engine->executor));
    buf_add_text(out, ",\"controllers\":[");
    for (unsigned i = 0; i < engine->controller_count; i++) {
        if (i > 0)
            buf_add_char(out, ',');
        write_controller(engine->controllers[i], out);
    }
    buf_add_text(out, "]}");
}

/* ---- metrics ---- */

struct spent { /* time spent so far on the keys of one queue that are in work */
    int64_t now_us, sum_us, longest_us;
};

static void add_spent(void *context, const struct queue_view *key)
{
    struct spent *spent = context;
    int64_t us = spent->now_us - key->since_us;

    if (key->state != QUEUE_WORKING)
        return;
    spent->sum_us += us;
    if (us > spent->longest_us)
        spent->longest_us = us;
}

static void set(const struct engine_work *owner, enum engine_metric metric, double value)
{
    metrics_set(owner->engine->metrics, &engine_metrics[metric], value, owner->controller->name,
                NULL);
}

static void refresh_controller(const struct engine_work *owner)
{
    struct spent spent = { .now_us = loop_now_us(owner->engine->loop) };
    struct queue_stats stats;

    queue_stats(owner->queue, &stats);
    queue_each(owner->queue, add_spent, &spent);
    set(owner, METRIC_QUEUE_DEPTH, (double)stats.waiting);
    set(owner, METRIC_QUEUE_ADDS, (double)stats.added);
    set(owner, METRIC_QUEUE_RETRIES, (double)stats.retried);
    set(owner, METRIC_QUEUE_DROPPED, (double)stats.dropped);
    set(owner, METRIC_QUEUE_UNFINISHED_SECONDS, seconds_of(spent.sum_us));
    set(owner, METRIC_QUEUE_LONGEST_SECONDS, seconds_of(spent.longest_us));
    set(owner, METRIC_ACTIVE_WORKERS, (double)stats.working);
    set(owner, METRIC_MAX_CONCURRENT, owner->engine->options.max_in_flight);
}

/* Counters that stay at 0 are shown too: alerts on a rate need their first value. */
static void touch_counters(const struct engine_work *owner)
{
    static const enum engine_metric counters[] = { METRIC_RECONCILE_ERRORS,
                                                   METRIC_RECONCILE_TERMINAL_ERRORS,
                                                   METRIC_RECONCILE_PANICS,
                                                   METRIC_RECONCILE_TIMEOUTS };

    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
        metrics_add(owner->engine->metrics, &engine_metrics[counters[i]], 0,
                    owner->controller->name, NULL);
}

void engine_refresh_metrics(void *context)
{
    struct engine *engine = context;

    for (unsigned i = 0; i < engine->controller_count; i++) {
        refresh_controller(engine->controllers[i]);
        touch_counters(engine->controllers[i]);
    }
    metrics_set(engine->metrics, &engine_metrics[METRIC_IN_FLIGHT],
                executor_in_flight(engine->executor), NULL);
    metrics_set(engine->metrics, &engine_metrics[METRIC_OVERLAYS],
                (double)executor_overlays(engine->executor), NULL);
    metrics_set(engine->metrics, &engine_metrics[METRIC_LOOP_LONGEST],
                seconds_of(loop_take_longest_us(engine->loop)), NULL);
}
