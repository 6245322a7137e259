/* watch.c - one namespace's events, as one stream after the other.
 *
 * Whatever goes wrong ends in `fail`, which waits and watches on from where it was, or gives up
 * when the history is lost.
 *
 * Holds   at most one of the stream and the timer is alive;
 *         `version` is that of the last thing the cache was told, so a new stream begins there;
 *         one object that cannot be decoded stops nothing but itself. */
#include "kube/watch.h"

#include "base/mem.h"
#include "io/http_text.h"
#include "kube/cache_private.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    HEAD_TIMEOUT_US = 30000000,
    FIRST_WAIT_US = 200000,
    LONGEST_WAIT_US = 15000000,
    WAIT_JITTER = 20,           /* percent */
    SHORTEST_LIFE_US = 1000000, /* a stream that ends in order before that has failed */
    HEALTHY_US = 5000000,       /* a stream that lived this long ends the back-off */
    MAX_REFUSALS = 3,           /* of a watch in a row, then the version itself is doubted */
    MAX_PATH = 4096,            /* without selectors */
    MAX_REFUSAL = 16384,
};

enum next_step { THEN_WATCH, THEN_LIST };

void kube_watch_init(struct kube_watch *watch, struct kube_watch_group *group, const char *ns)
{
    *watch = (struct kube_watch){ .group = group, .ns = mem_strdup(ns) };
    buf_init(&watch->refusal, MAX_REFUSAL);
    watch_lines_init(&watch->lines, group->max_object);
}

void kube_watch_done(struct kube_watch *watch)
{
    kube_watch_stop(watch);
    watch_lines_done(&watch->lines);
    buf_done(&watch->refusal);
    mem_free(watch->ns);
}

void kube_watch_stop(struct kube_watch *watch)
{
    if (watch->call)
        http_cancel(kube_client_transport(watch->group->client), watch->call);
    watch->call = NULL;
    loop_timer_stop(&watch->timer);
}

/* ---- when it goes wrong ---- */

int64_t kube_watch_wait(struct rand *rand, unsigned *failures, int64_t retry_after_us)
{
    int64_t wait = FIRST_WAIT_US;

    for (unsigned i = 0; i < *failures && wait < LONGEST_WAIT_US; i++)
        wait *= 2;
    ++*failures;
    wait = rand_jitter(rand, wait, WAIT_JITTER);
    if (wait < retry_after_us)
        wait = retry_after_us;
    return wait < LONGEST_WAIT_US ? wait : LONGEST_WAIT_US;
}

static void on_waited(void *context)
{
    kube_watch_start(context);
}

__attribute__((format(printf, 4, 5))) static void fail(struct kube_watch *watch,
                                                       enum next_step next, int64_t retry_after_us,
                                                       const char *format, ...)
{
    struct kube_watch_group *group = watch->group;
    va_list args;

    va_start(args, format);
    (void)err_setv(&watch->last_error, ERR_UNAVAILABLE, format, args);
    va_end(args);
    (void)err_wrap(&watch->last_error, watch->ns[0] ? "watch of namespace %s" : "watch%s",
                   watch->ns);
    kube_watch_stop(watch);
    if (next == THEN_LIST)
        group->expired(group->context, retry_after_us);
    else
        loop_timer_start(group->loop, &watch->timer,
                         kube_watch_wait(group->rand, &watch->failures, retry_after_us), on_waited,
                         watch);
}

/* ---- what the server says ---- */

void kube_watch_heard(struct kube_watch *watch)
{
    watch->last_contact_us = loop_now_us(watch->group->loop);
}

static bool reached(struct kube_watch *watch, struct str version, uint64_t version_number)
{
    if (version.len == 0 || version.len >= sizeof(watch->version))
        return false;
    memcpy(watch->version, version.at, version.len);
    watch->version[version.len] = '\0';
    watch->version_number = version_number;
    return true;
}

bool kube_watch_listed(struct kube_watch *watch, struct str version)
{
    uint64_t number = 0;

    if (str_to_u64(version, 0, UINT64_MAX, &number, NULL) < 0)
        number = 0;
    watch->refusals = 0;
    return reached(watch, version, number);
}

void kube_watch_take(struct kube_watch *watch, const struct json *root)
{
    struct kube_cache *cache = watch->group->cache;
    const struct kube_object *object;

    if (kube_object_decode(kube_cache_kind(cache), root, &object, NULL) < 0) {
        const struct json *metadata = json_get(root, "metadata");

        watch->group->undecoded++;
        kube_cache_keep(cache, json_str(json_get(metadata, "namespace")).at,
                        json_str(json_get(metadata, "name")).at);
        return;
    }
    kube_cache_seen(cache, object);
    kube_object_unref(object);
}

static enum next_step after_refusal(struct kube_watch *watch, int status)
{
    watch->refusals++;
    return status == 410 || watch->refusals >= MAX_REFUSALS ? THEN_LIST : THEN_WATCH;
}

static void take_event(struct kube_watch *watch, const struct watch_event *event)
{
    struct str message;

    switch (event->type) {
    case WATCH_ADDED:
    case WATCH_MODIFIED:
        kube_watch_take(watch, event->object);
        break;
    case WATCH_DELETED:
        kube_cache_seen_gone(watch->group->cache, event->ns.at, event->name.at,
                             event->version_number);
        break;
    case WATCH_BOOKMARK:
        break;
    case WATCH_ERROR:
        message = json_str(json_get(event->object, "message"));
        fail(watch, after_refusal(watch, event->code), 0, "error %d: " STR_FMT, event->code,
             STR_ARG(message));
        return;
    }
    (void)reached(watch, event->version, event->version_number);
}

static void take_line(struct kube_watch *watch, struct str line)
{
    auto_watch_event struct watch_event event = { 0 };
    struct err err = { 0 };

    if (watch_event_parse(line, &event, &err) < 0)
        fail(watch, THEN_LIST, 0, "%s", err.text); /* what it was is lost */
    else
        take_event(watch, &event);
}

/* A stream is told in order, so everything up to its last event has been told. */
static void take_lines(struct kube_watch *watch, struct str piece)
{
    struct err err = { 0 };
    struct str line;
    int rc = 0;

    watch_lines_feed(&watch->lines, piece);
    while (watch->call && (rc = watch_lines_next(&watch->lines, &line, &err)) > 0)
        take_line(watch, line);
    watch->group->moved(watch->group->context);
    if (rc < 0)
        fail(watch, THEN_LIST, 0, "%s", err.text);
}

/* ---- the stream ---- */

static void on_head(void *context, int status)
{
    struct kube_watch *watch = context;

    kube_watch_heard(watch);
    watch->status = status;
    if (status != 200)
        return;
    watch->since_us = loop_now_us(watch->group->loop);
    watch->last_error = (struct err){ 0 };
}

static void on_data(void *context, struct str piece)
{
    struct kube_watch *watch = context;

    kube_watch_heard(watch);
    if (watch->status == 200)
        take_lines(watch, piece);
    else
        buf_add_str(&watch->refusal, piece);
}

/* A stream that lived for a while has shown that all is well. */
static int64_t end_of_life(struct kube_watch *watch)
{
    struct kube_watch_group *group = watch->group;
    int64_t lived = watch->status == 200 ? loop_now_us(group->loop) - watch->since_us : 0;

    watch->call = NULL;
    if (lived >= HEALTHY_US) {
        watch->failures = watch->refusals = 0;
        group->healthy(group->context);
    }
    return lived;
}

static void refused(struct kube_watch *watch, const struct http_answer *answer)
{
    auto_json_doc struct json_doc *doc = NULL;
    struct str message = STR("");

    if (json_parse(buf_str(&watch->refusal), MAX_REFUSAL, &doc, NULL) == 0)
        message = json_str(json_get(json_root(doc), "message"));
    fail(watch, after_refusal(watch, answer->status), answer->retry_after_us, "HTTP %d: " STR_FMT,
         answer->status, STR_ARG(message));
}

static void on_ended(void *context, const struct http_answer *answer)
{
    struct kube_watch *watch = context;
    int64_t lived = end_of_life(watch);

    if (answer->status != 200)
        refused(watch, answer);
    else if (lived < SHORTEST_LIFE_US)
        fail(watch, THEN_WATCH, 0, "ended after %" PRId64 " ms", lived / 1000);
    else
        kube_watch_start(watch);
}

static void on_broken(void *context, const struct err *why)
{
    struct kube_watch *watch = context;

    end_of_life(watch);
    fail(watch, why->class == ERR_TOO_BIG ? THEN_LIST : THEN_WATCH, 0, "%s", why->text);
}

/* The server is asked to end the stream before silence counts as broken, and not always after the
 * same time, so that the watches of many kinds do not come in step. */
static int64_t watch_seconds(const struct kube_watch_group *group)
{
    int64_t longest = group->idle_us * 3 / 4 / 1000000;
    int64_t seconds = rand_range(group->rand, longest * 3 / 4, longest);

    return seconds > 1 ? seconds : 1;
}

void kube_watch_start(struct kube_watch *watch)
{
    struct kube_watch_group *group = watch->group;
    auto_buf struct buf path;
    struct http_request request = { .method = "GET",
                                    .headers = { { "Accept", "application/json", false } },
                                    .header_count = 1,
                                    .body = STR(""),
                                    .deadline_us = loop_now_us(group->loop) + HEAD_TIMEOUT_US,
                                    .idle_us = group->idle_us,
                                    .max_answer = group->max_object,
                                    .stream = true };
    struct http_handlers handlers = { .on_head = on_head,
                                      .on_data = on_data,
                                      .answered = on_ended,
                                      .failed = on_broken,
                                      .context = watch };

    kube_watch_stop(watch);
    buf_init(&path, strlen(group->selectors) + MAX_PATH);
    kube_path(&path, kube_cache_kind(group->cache)->resource, watch->ns, NULL, NULL);
    buf_add_text(&path, "?watch=true&allowWatchBookmarks=true&resourceVersion=");
    http_escape(str_of(watch->version), &path);
    buf_printf(&path, "&timeoutSeconds=%" PRId64 "%s", watch_seconds(group), group->selectors);
    request.path = buf_text(&path);
    watch->status = 0;
    buf_clear(&watch->refusal);
    watch_lines_reset(&watch->lines);
    watch->call = http_send(kube_client_transport(group->client), &request, &handlers);
}
