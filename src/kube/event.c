/* event.c - Events about objects, with repeats folded into series and rates kept.
 *
 * A series is everything said in the same words about the same object. Its first time creates the
 * Event; later ones only count, and a tick every ten seconds patches the counts that changed.
 *
 * Holds: one call per series is under way; at most MAX_SERIES are remembered; a series is forgotten
 * six minutes after it was last heard of, or when its Event could not be written. */
#include "kube/event.h"

#include "base/map.h"
#include "base/mem.h"
#include "codec/timestamp.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    SECOND_US = 1000000,
    TICK_US = 10 * SECOND_US,
    SERIES_US = 360 * SECOND_US,
    TIMEOUT_US = 10 * SECOND_US,
    MAX_SERIES = 4096,
    MAX_OBJECTS = 4096,
    MAX_WORD = 128, /* reason, action, reporting instance: the API server takes no more */
    MAX_KEY = 4096,
    MAX_BODY = 16 * 1024,
    MAX_STEM = 200, /* of the object's name, in the Event's */
};

/* Holds one second's worth; `level_us` is how much of it is left. */
struct bucket {
    int64_t level_us, at_us;
};

struct series {
    struct kube_recorder *recorder;
    struct kube_call *call;
    char *key, *ns, *name; /* of the Event */
    uint32_t count, written;
    uint64_t round; /* of the recorder, when its count was written last */
    int64_t last_us, last_wall_us;
    bool exists;
};

struct kube_recorder {
    struct kube_client *client;
    struct loop *loop;
    char *controller, *instance;
    unsigned per_second, per_object;
    struct bucket all;
    struct map series, objects; /* struct series by what was said; struct bucket by object */
    struct loop_timer tick;
    uint64_t round;  /* ends when every count that changed was written, in one tick or several */
    unsigned serial; /* Events of one microsecond have different names */
};

/* --- rates --- */

static bool bucket_take(struct bucket *bucket, unsigned per_second, int64_t now_us)
{
    int64_t cost_us = SECOND_US / (int64_t)per_second;

    bucket->level_us += now_us - bucket->at_us;
    if (bucket->level_us > SECOND_US)
        bucket->level_us = SECOND_US;
    bucket->at_us = now_us;
    if (bucket->level_us < cost_us)
        return false;
    bucket->level_us -= cost_us;
    return true;
}

static void forget_quiet_objects(struct kube_recorder *recorder)
{
    int64_t now_us = loop_now_us(recorder->loop);

    map_each (item, &recorder->objects) {
        const struct bucket *bucket = item->value;

        if (now_us - bucket->at_us >= SECOND_US) /* full again: the same as a new one */
            map_remove(&recorder->objects, item->key);
    }
}

static bool object_may(struct kube_recorder *recorder, const struct kube_event_object *regarding)
{
    auto_buf struct buf key = { .max = MAX_KEY };
    struct bucket *bucket;

    buf_printf(&key, "%s/%s/%s/%s", regarding->kind, regarding->ns ? regarding->ns : "",
               regarding->name, regarding->uid ? regarding->uid : "");
    bucket = map_get(&recorder->objects, buf_str(&key));
    if (!bucket) {
        if (recorder->objects.count >= MAX_OBJECTS)
            forget_quiet_objects(recorder);
        bucket = mem_alloc(sizeof(*bucket));
        bucket->level_us = SECOND_US;
        bucket->at_us = loop_now_us(recorder->loop);
        if (map_put(&recorder->objects, buf_str(&key), bucket, NULL) < 0) {
            mem_free(bucket);
            return false;
        }
    }
    return bucket_take(bucket, recorder->per_object, loop_now_us(recorder->loop));
}

/* --- series --- */

static void series_free(void *value)
{
    struct series *series = value;

    kube_call_cancel(series->call);
    mem_free(series->key);
    mem_free(series->ns);
    mem_free(series->name);
    mem_free(series);
}

static void forget(struct series *series)
{
    map_remove(&series->recorder->series, str_of(series->key));
}

/* Room for a new series: the oldest one that is not being written is forgotten early. */
static void make_room(struct kube_recorder *recorder)
{
    map_each (item, &recorder->series) {
        struct series *series = item->value;

        if (series->call)
            continue;
        forget(series);
        return;
    }
}

static void on_created(void *context, const struct kube_answer *answer)
{
    struct series *series = context;

    series->call = NULL;
    switch (answer->outcome) {
    case KUBE_DONE:
    case KUBE_UNKNOWN: /* a patch will tell */
        series->exists = true;
        break;
    default:
        forget(series);
    }
}

static void on_patched(void *context, const struct kube_answer *answer)
{
    struct series *series = context;

    series->call = NULL;
    if (answer->outcome == KUBE_GONE) /* Events live for an hour; the next one starts anew */
        forget(series);
}

static void put_time(struct json_build *build, struct json_mut *object, const char *key,
                     int64_t wall_us)
{
    auto_buf struct buf text = { .max = 64 };

    if (timestamp_print_micro(wall_us, &text, NULL) == 0)
        json_put_str(build, object, key, buf_str(&text));
}

static void patch(struct series *series)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_buf struct buf body = { .max = MAX_BODY };
    struct json_mut *root = json_new_object(build);
    struct json_mut *said = json_put_object(build, root, "series");

    json_put_u64(build, said, "count", series->count);
    put_time(build, said, "lastObservedTime", series->last_wall_us);
    json_mut_write(root, &body);

    struct kube_request request = { .verb = KUBE_MERGE_PATCH,
                                    .resource = &kube_events,
                                    .ns = series->ns,
                                    .name = series->name,
                                    .body = buf_str(&body),
                                    .timeout_us = TIMEOUT_US };

    series->written = series->count;
    series->call = kube_send(series->recorder->client, &request, on_patched, series);
}

/* False when it must wait for the next tick. A count that was written in this round waits for the
 * others, so that those who speak all the time leave room for all. */
static bool write_count(struct series *series)
{
    struct kube_recorder *recorder = series->recorder;

    if (series->round == recorder->round)
        return true;
    if (!bucket_take(&recorder->all, recorder->per_second, loop_now_us(recorder->loop)))
        return false;
    series->round = recorder->round;
    patch(series);
    return true;
}

static void on_tick(void *context)
{
    struct kube_recorder *recorder = context;
    int64_t now_us = loop_now_us(recorder->loop);
    bool wrote_all = true;

    map_each (item, &recorder->series) {
        struct series *series = item->value;

        if (series->call)
            continue;
        if (series->exists && series->count > series->written) {
            wrote_all = write_count(series) && wrote_all;
        } else if (now_us - series->last_us >= SERIES_US) {
            forget(series);
        }
    }
    recorder->round += wrote_all;
    forget_quiet_objects(recorder);
    if (recorder->series.count > 0)
        loop_timer_start(recorder->loop, &recorder->tick, TICK_US, on_tick, recorder);
}

/* --- a new Event --- */

struct said { /* one call of kube_event */
    const struct kube_event_object *regarding;
    enum kube_event_type type;
    const char *reason, *action, *note;
};

static const char *type_name(enum kube_event_type type)
{
    return type == KUBE_EVENT_WARNING ? "Warning" : "Normal";
}

static const char *namespace_of(const struct kube_event_object *regarding)
{
    return regarding->ns && regarding->ns[0] ? regarding->ns : "default";
}

/* At most max bytes, whole characters. */
static struct str cut(const char *text, size_t max)
{
    struct str whole = str_of(text);
    size_t length = whole.len <= max ? whole.len : max;

    while (length < whole.len && length > 0 && ((unsigned char)whole.at[length] & 0xc0) == 0x80)
        length--;
    return str_sub(whole, 0, length);
}

/* "<object>.<time in hexadecimal>", as client-go names them. */
static char *event_name(struct kube_recorder *recorder, const char *object)
{
    auto_buf struct buf name = { .max = 256 };
    struct str stem = cut(object, MAX_STEM);
    uint64_t nanos = (uint64_t)clock_wall_us(loop_clock(recorder->loop)) * 1000;

    while (stem.len > 0 && (stem.at[stem.len - 1] == '.' || stem.at[stem.len - 1] == '-'))
        stem.len--;
    nanos += recorder->serial++ % 1000;
    buf_printf(&name, STR_FMT ".%" PRIx64, STR_ARG(stem), nanos);
    return mem_strdup(buf_text(&name));
}

static void put_regarding(struct json_build *build, struct json_mut *root,
                          const struct kube_event_object *object)
{
    const struct {
        const char *key, *value;
    } rows[] = { { "apiVersion", object->api_version },
                 { "kind", object->kind },
                 { "namespace", object->ns },
                 { "name", object->name },
                 { "uid", object->uid } };
    struct json_mut *regarding = json_put_object(build, root, "regarding");

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].value && rows[i].value[0])
            json_put_text(build, regarding, rows[i].key, rows[i].value);
}

static void write_event(const struct series *series, const struct said *said, struct buf *out)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = json_new_object(build);
    struct json_mut *metadata;

    json_put_text(build, root, "apiVersion", "events.k8s.io/v1");
    json_put_text(build, root, "kind", "Event");
    metadata = json_put_object(build, root, "metadata");
    json_put_text(build, metadata, "name", series->name);
    json_put_text(build, metadata, "namespace", series->ns);
    put_time(build, root, "eventTime", series->last_wall_us);
    json_put_text(build, root, "reportingController", series->recorder->controller);
    json_put_str(build, root, "reportingInstance", cut(series->recorder->instance, MAX_WORD));
    json_put_text(build, root, "type", type_name(said->type));
    json_put_str(build, root, "reason", cut(said->reason, MAX_WORD));
    json_put_str(build, root, "action", cut(said->action, MAX_WORD));
    json_put_text(build, root, "note", said->note);
    put_regarding(build, root, said->regarding);
    json_mut_write(root, out);
}

/* Drops what goes above the rates. */
static void create(struct kube_recorder *recorder, struct str key, const struct said *said)
{
    auto_buf struct buf body = { .max = MAX_BODY };
    struct series *series;

    if (!object_may(recorder, said->regarding) ||
        !bucket_take(&recorder->all, recorder->per_second, loop_now_us(recorder->loop)))
        return;
    if (recorder->series.count >= MAX_SERIES)
        make_room(recorder);
    series = mem_alloc(sizeof(*series));
    series->recorder = recorder;
    series->key = mem_strndup(key.at, key.len);
    series->ns = mem_strdup(namespace_of(said->regarding));
    series->name = event_name(recorder, said->regarding->name);
    series->count = series->written = 1;
    series->last_us = loop_now_us(recorder->loop);
    series->last_wall_us = clock_wall_us(loop_clock(recorder->loop));
    if (map_put(&recorder->series, str_of(series->key), series, NULL) < 0) {
        series_free(series);
        return;
    }
    write_event(series, said, &body);

    struct kube_request request = { .verb = KUBE_CREATE,
                                    .resource = &kube_events,
                                    .ns = series->ns,
                                    .body = buf_str(&body),
                                    .timeout_us = TIMEOUT_US };

    series->call = kube_send(recorder->client, &request, on_created, series);
    if (!loop_timer_is_armed(&recorder->tick))
        loop_timer_start(recorder->loop, &recorder->tick, TICK_US, on_tick, recorder);
}

static void say(struct kube_recorder *recorder, const struct said *said)
{
    const struct kube_event_object *regarding = said->regarding;
    auto_buf struct buf key = { .max = MAX_KEY };
    struct series *series;
    int64_t now_us = loop_now_us(recorder->loop);

    buf_printf(&key, "%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s", regarding->kind,
               regarding->ns ? regarding->ns : "", regarding->name,
               regarding->uid ? regarding->uid : "", type_name(said->type), said->reason,
               said->action, said->note);
    series = map_get(&recorder->series, buf_str(&key));
    if (series && now_us - series->last_us < SERIES_US) {
        if (series->count < INT32_MAX)
            series->count++;
        series->last_us = now_us;
        series->last_wall_us = clock_wall_us(loop_clock(recorder->loop));
        return;
    }
    if (series)
        forget(series);
    if (!key.overflowed)
        create(recorder, buf_str(&key), said);
}

void kube_event(struct kube_recorder *recorder, const struct kube_event_object *regarding,
                enum kube_event_type type, const char *reason, const char *action, const char *note,
                ...)
{
    char whole[KUBE_EVENT_MAX_NOTE + 8], text[KUBE_EVENT_MAX_NOTE + 1];
    struct said said = { .regarding = regarding,
                         .type = type,
                         .reason = reason,
                         .action = action && action[0] ? action : reason,
                         .note = text };
    struct str shown;
    va_list args;

    va_start(args, note);
    vsnprintf(whole, sizeof(whole), note, args);
    va_end(args);
    shown = cut(whole, KUBE_EVENT_MAX_NOTE);
    memcpy(text, shown.at, shown.len);
    text[shown.len] = '\0';
    say(recorder, &said);
}

/* --- the recorder --- */

struct kube_recorder *kube_recorder_new(struct kube_client *client,
                                        const struct kube_recorder_options *options)
{
    struct kube_recorder *recorder = mem_alloc(sizeof(*recorder));

    recorder->client = client;
    recorder->loop = kube_client_loop(client);
    recorder->controller = mem_strdup(options->controller);
    recorder->instance = mem_strdup(options->instance);
    recorder->round = 1;
    recorder->per_second = options->per_second ? options->per_second : 20;
    recorder->per_object = options->per_object ? options->per_object : 5;
    recorder->all = (struct bucket){ .level_us = SECOND_US, .at_us = loop_now_us(recorder->loop) };
    map_init(
        &recorder->series,
        &(struct map_options){ .max = MAX_SERIES, .borrow_keys = true, .free_value = series_free });
    map_init(&recorder->objects,
             &(struct map_options){ .max = MAX_OBJECTS, .free_value = mem_free });
    return recorder;
}

void kube_recorder_free(struct kube_recorder *recorder)
{
    if (!recorder)
        return;
    loop_timer_stop(&recorder->tick);
    map_done(&recorder->series);
    map_done(&recorder->objects);
    mem_free(recorder->controller);
    mem_free(recorder->instance);
    mem_free(recorder);
}

struct loop *kube_recorder_loop(const struct kube_recorder *recorder)
{
    return recorder->loop;
}
