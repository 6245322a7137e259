/* informer.c - list, then watch, for ever, into one cache.
 *
 * One function moves the state (enter); whatever goes wrong ends in `fail`, which waits and then
 * watches from where it was, or lists anew when the history is lost.
 *
 * Holds   at most one list call, stream or timer is alive, the one that the state names;
 *         `version` is that of the last thing the cache was told, so a new watch begins there;
 *         one object that cannot be decoded stops nothing but itself. */
#include "kube/informer.h"

#include "base/mem.h"
#include "io/http_text.h"
#include "kube/cache_private.h"
#include "kube/watch_lines.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    DEFAULT_PAGE = 500,
    MAX_PAGE = 5000,
    DEFAULT_IDLE_US = 60000000,
    DEFAULT_MAX_OBJECT = 4 << 20,
    HEAD_TIMEOUT_US = 30000000,
    LIST_TIMEOUT_US = 60000000,
    FIRST_WAIT_US = 200000,
    LONGEST_WAIT_US = 15000000,
    WAIT_JITTER = 20,           /* percent */
    SHORTEST_LIFE_US = 1000000, /* a stream that ends in order before that has failed */
    HEALTHY_US = 5000000,       /* a stream that lived this long ends the back-off */
    MAX_REFUSALS = 3,           /* of a watch in a row, then the version itself is doubted */
    MAX_PATH = 4096,            /* without selectors */
    MAX_CONTINUE = 8192,
    MAX_REFUSAL = 16384,
    MAX_VERSION = 64,
};

enum next_step { THEN_WATCH, THEN_LIST };

struct kube_informer {
    struct kube_client *client;
    struct kube_cache *cache;
    struct rand *rand;
    struct loop *loop;
    char *ns, *selectors; /* "&labelSelector=...", escaped */
    unsigned page;
    int64_t idle_us;
    size_t max_object;

    enum kube_informer_state state;
    enum next_step next;     /* after WAITING */
    struct kube_call *list;  /* LISTING */
    struct http_call *watch; /* WATCHING */
    struct loop_timer timer; /* WAITING */

    struct buf continues; /* the token of the next page, escaped */
    char version[MAX_VERSION];
    uint64_t version_number;
    struct watch_lines lines;
    int watch_status;   /* of the stream's head; 0 before it */
    struct buf refusal; /* what came instead of events */
    int64_t watch_since_us;
    unsigned failures, refusals; /* in a row */

    int64_t last_contact_us;
    struct err last_error;
    uint64_t lists, watches, events, undecoded;
};

static void enter(struct kube_informer *informer, enum kube_informer_state state);

/* ---- making one ---- */

static char *write_selectors(const struct kube_informer_options *options)
{
    struct str label = str_of(options->label_selector), field = str_of(options->field_selector);
    auto_buf struct buf query;

    buf_init(&query, 3 * (label.len + field.len) + 64); /* at worst every byte is escaped */
    if (label.len > 0) {
        buf_add_text(&query, "&labelSelector=");
        http_escape(label, &query);
    }
    if (field.len > 0) {
        buf_add_text(&query, "&fieldSelector=");
        http_escape(field, &query);
    }
    return mem_strdup(buf_text(&query));
}

struct kube_informer *kube_informer_new(struct kube_client *client, struct kube_cache *cache,
                                        struct rand *rand,
                                        const struct kube_informer_options *options)
{
    static const struct kube_informer_options none;
    struct kube_informer *informer = mem_alloc(sizeof(*informer));

    if (!options)
        options = &none;
    informer->client = client;
    informer->cache = cache;
    informer->rand = rand;
    informer->loop = kube_client_loop(client);
    informer->ns = mem_strdup(options->ns ? options->ns : "");
    informer->selectors = write_selectors(options);
    informer->page = options->page > 0 ? options->page : DEFAULT_PAGE;
    informer->idle_us = options->idle_us > 0 ? options->idle_us : DEFAULT_IDLE_US;
    informer->max_object = options->max_object > 0 ? options->max_object : DEFAULT_MAX_OBJECT;
    buf_init(&informer->continues, MAX_CONTINUE);
    buf_init(&informer->refusal, MAX_REFUSAL);
    watch_lines_init(&informer->lines, informer->max_object);
    return informer;
}

void kube_informer_start(struct kube_informer *informer)
{
    if (informer->state == KUBE_IDLE)
        enter(informer, KUBE_LISTING);
}

/* Whatever the state has under way ends without a callback. */
static void leave(struct kube_informer *informer)
{
    if (informer->list)
        kube_call_cancel(informer->list);
    if (informer->watch)
        http_cancel(kube_client_transport(informer->client), informer->watch);
    informer->list = NULL;
    informer->watch = NULL;
    loop_timer_stop(&informer->timer);
}

void kube_informer_free(struct kube_informer *informer)
{
    if (!informer)
        return;
    leave(informer);
    watch_lines_done(&informer->lines);
    buf_done(&informer->continues);
    buf_done(&informer->refusal);
    mem_free(informer->ns);
    mem_free(informer->selectors);
    mem_free(informer);
}

/* ---- when it goes wrong ---- */

static void on_waited(void *context)
{
    struct kube_informer *informer = context;

    enter(informer, informer->next == THEN_LIST ? KUBE_LISTING : KUBE_WATCHING);
}

static int64_t next_wait(struct kube_informer *informer, int64_t retry_after_us)
{
    int64_t wait = FIRST_WAIT_US;

    for (unsigned i = 0; i < informer->failures && wait < LONGEST_WAIT_US; i++)
        wait *= 2;
    informer->failures++;
    wait = rand_jitter(informer->rand, wait, WAIT_JITTER);
    if (wait < retry_after_us)
        wait = retry_after_us;
    return wait < LONGEST_WAIT_US ? wait : LONGEST_WAIT_US;
}

__attribute__((format(printf, 4, 5))) static void fail(struct kube_informer *informer,
                                                       enum next_step next, int64_t retry_after_us,
                                                       const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)err_setv(&informer->last_error, ERR_UNAVAILABLE, format, args);
    va_end(args);
    leave(informer);
    informer->next = next;
    informer->state = KUBE_WAITING;
    loop_timer_start(informer->loop, &informer->timer, next_wait(informer, retry_after_us),
                     on_waited, informer);
}

static void heard(struct kube_informer *informer)
{
    informer->last_contact_us = loop_now_us(informer->loop);
}

static void reached(struct kube_informer *informer, struct str version, uint64_t version_number)
{
    if (version.len == 0 || version.len >= sizeof(informer->version))
        return;
    memcpy(informer->version, version.at, version.len);
    informer->version[version.len] = '\0';
    informer->version_number = version_number;
}

/* ---- listing ---- */

static void on_page(void *context, const struct kube_answer *answer);

static void send_list(struct kube_informer *informer)
{
    auto_buf struct buf query;
    struct kube_request request = { .verb = KUBE_LIST,
                                    .resource = kube_cache_kind(informer->cache)->resource,
                                    .ns = informer->ns,
                                    .body = STR(""),
                                    .timeout_us = LIST_TIMEOUT_US };

    buf_init(&query, strlen(informer->selectors) + MAX_CONTINUE + 64);
    buf_printf(&query, "limit=%u", informer->page);
    if (informer->continues.len > 0)
        buf_printf(&query, "&continue=%s", buf_text(&informer->continues));
    buf_add_text(&query, informer->selectors);
    request.query = buf_text(&query);
    informer->list = kube_send(informer->client, &request, on_page, informer);
}

static void take_object(struct kube_informer *informer, const struct json *root)
{
    const struct kube_object *object;

    if (kube_object_decode(kube_cache_kind(informer->cache), root, &object, NULL) < 0) {
        const struct json *metadata = json_get(root, "metadata");

        informer->undecoded++;
        kube_cache_keep(informer->cache, json_str(json_get(metadata, "namespace")).at,
                        json_str(json_get(metadata, "name")).at);
        return;
    }
    kube_cache_seen(informer->cache, object);
    kube_object_unref(object);
}

static void list_failed(struct kube_informer *informer, const struct kube_answer *answer)
{
    bool expired = answer->outcome == KUBE_GONE && informer->continues.len > 0;

    /* The history was cut before the last page came: fewer, larger pages are faster. */
    if (expired && informer->page < MAX_PAGE)
        informer->page = informer->page * 2 < MAX_PAGE ? informer->page * 2 : MAX_PAGE;
    fail(informer, THEN_LIST, answer->retry_after_us, "list: %s", answer->message);
}

static void list_ended(struct kube_informer *informer, const struct json *metadata)
{
    struct str version = json_str(json_get(metadata, "resourceVersion"));
    uint64_t number = 0;

    if (version.len == 0 || version.len >= sizeof(informer->version)) {
        fail(informer, THEN_LIST, 0, "list: an answer without a resourceVersion");
        return;
    }
    if (str_to_u64(version, 0, UINT64_MAX, &number, NULL) < 0)
        number = 0;
    informer->lists++;
    reached(informer, version, number);
    kube_cache_relist_end(informer->cache, number);
    enter(informer, KUBE_WATCHING);
}

static void on_page(void *context, const struct kube_answer *answer)
{
    struct kube_informer *informer = context;
    const struct json *metadata, *item;
    struct json_iter iter;

    informer->list = NULL;
    if (answer->outcome != KUBE_DONE) {
        list_failed(informer, answer);
        return;
    }
    heard(informer);
    iter = json_iter(json_get(answer->object, "items"));
    while (json_next_item(&iter, &item))
        take_object(informer, item);
    metadata = json_get(answer->object, "metadata");
    buf_clear(&informer->continues);
    http_escape(json_str(json_get(metadata, "continue")), &informer->continues);
    if (informer->continues.overflowed)
        fail(informer, THEN_LIST, 0, "list: a continue token of more than %d bytes", MAX_CONTINUE);
    else if (informer->continues.len > 0)
        send_list(informer);
    else
        list_ended(informer, metadata);
}

/* ---- watching ---- */

static void take_error(struct kube_informer *informer, const struct watch_event *event)
{
    struct str message = json_str(json_get(event->object, "message"));

    informer->refusals++;
    fail(informer,
         event->code == 410 || informer->refusals >= MAX_REFUSALS ? THEN_LIST : THEN_WATCH, 0,
         "watch: error %d: " STR_FMT, event->code, STR_ARG(message));
}

static void take_event(struct kube_informer *informer, const struct watch_event *event)
{
    switch (event->type) {
    case WATCH_ADDED:
    case WATCH_MODIFIED:
        take_object(informer, event->object);
        break;
    case WATCH_DELETED:
        kube_cache_seen_gone(informer->cache, event->ns.at, event->name.at, event->version_number);
        break;
    case WATCH_BOOKMARK:
        break;
    case WATCH_ERROR:
        take_error(informer, event);
        return;
    }
    informer->events += event->type != WATCH_BOOKMARK;
    reached(informer, event->version, event->version_number);
}

static void take_line(struct kube_informer *informer, struct str line)
{
    auto_watch_event struct watch_event event = { 0 };
    struct err err = { 0 };

    if (watch_event_parse(line, &event, &err) < 0)
        fail(informer, THEN_LIST, 0, "%s", err.text); /* what it was is lost */
    else
        take_event(informer, &event);
}

/* A stream is told in order, so everything up to its last event has been told. */
static void take_lines(struct kube_informer *informer, struct str piece)
{
    struct err err = { 0 };
    struct str line;
    int rc = 0;

    watch_lines_feed(&informer->lines, piece);
    while (informer->watch && (rc = watch_lines_next(&informer->lines, &line, &err)) > 0)
        take_line(informer, line);
    kube_cache_progress(informer->cache, informer->version_number);
    if (rc < 0)
        fail(informer, THEN_LIST, 0, "watch: %s", err.text);
}

static void on_head(void *context, int status)
{
    struct kube_informer *informer = context;

    heard(informer);
    informer->watch_status = status;
    if (status != 200)
        return;
    informer->watch_since_us = loop_now_us(informer->loop);
    informer->watches++;
    informer->last_error = (struct err){ 0 };
}

static void on_data(void *context, struct str piece)
{
    struct kube_informer *informer = context;

    heard(informer);
    if (informer->watch_status == 200)
        take_lines(informer, piece);
    else
        buf_add_str(&informer->refusal, piece);
}

/* A stream that lived for a while has shown that all is well. */
static int64_t end_of_life(struct kube_informer *informer)
{
    int64_t lived =
        informer->watch_status == 200 ? loop_now_us(informer->loop) - informer->watch_since_us : 0;

    informer->watch = NULL;
    if (lived >= HEALTHY_US)
        informer->failures = informer->refusals = 0;
    return lived;
}

static void watch_refused(struct kube_informer *informer, const struct http_answer *answer)
{
    auto_json_doc struct json_doc *doc = NULL;
    struct str message = STR("");
    enum next_step next;

    if (json_parse(buf_str(&informer->refusal), MAX_REFUSAL, &doc, NULL) == 0)
        message = json_str(json_get(json_root(doc), "message"));
    informer->refusals++;
    next = answer->status == 410 || informer->refusals >= MAX_REFUSALS ? THEN_LIST : THEN_WATCH;
    fail(informer, next, answer->retry_after_us, "watch: HTTP %d: " STR_FMT, answer->status,
         STR_ARG(message));
}

static void on_ended(void *context, const struct http_answer *answer)
{
    struct kube_informer *informer = context;
    int64_t lived = end_of_life(informer);

    if (answer->status != 200)
        watch_refused(informer, answer);
    else if (lived < SHORTEST_LIFE_US)
        fail(informer, THEN_WATCH, 0, "watch: ended after %" PRId64 " ms", lived / 1000);
    else
        enter(informer, KUBE_WATCHING);
}

static void on_broken(void *context, const struct err *why)
{
    struct kube_informer *informer = context;

    end_of_life(informer);
    fail(informer, why->class == ERR_TOO_BIG ? THEN_LIST : THEN_WATCH, 0, "watch: %s", why->text);
}

/* The server is asked to end the stream before silence counts as broken, and not always after the
 * same time, so that the watches of many kinds do not come in step. */
static int64_t watch_seconds(struct kube_informer *informer)
{
    int64_t longest = informer->idle_us * 3 / 4 / 1000000;
    int64_t seconds = rand_range(informer->rand, longest * 3 / 4, longest);

    return seconds > 1 ? seconds : 1;
}

static void send_watch(struct kube_informer *informer)
{
    auto_buf struct buf path;
    struct http_request request = { .method = "GET",
                                    .headers = { { "Accept", "application/json", false } },
                                    .header_count = 1,
                                    .body = STR(""),
                                    .deadline_us = loop_now_us(informer->loop) + HEAD_TIMEOUT_US,
                                    .idle_us = informer->idle_us,
                                    .max_answer = informer->max_object,
                                    .stream = true };
    struct http_handlers handlers = { .on_head = on_head,
                                      .on_data = on_data,
                                      .answered = on_ended,
                                      .failed = on_broken,
                                      .context = informer };

    buf_init(&path, strlen(informer->selectors) + MAX_PATH);
    kube_path(&path, kube_cache_kind(informer->cache)->resource, informer->ns, NULL, NULL);
    buf_add_text(&path, "?watch=true&allowWatchBookmarks=true&resourceVersion=");
    http_escape(str_of(informer->version), &path);
    buf_printf(&path, "&timeoutSeconds=%" PRId64 "%s", watch_seconds(informer),
               informer->selectors);
    request.path = buf_text(&path);
    informer->watch_status = 0;
    buf_clear(&informer->refusal);
    watch_lines_reset(&informer->lines);
    informer->watch = http_send(kube_client_transport(informer->client), &request, &handlers);
}

static void enter(struct kube_informer *informer, enum kube_informer_state state)
{
    leave(informer);
    informer->state = state;
    if (state == KUBE_LISTING) {
        informer->refusals = 0;
        buf_clear(&informer->continues);
        kube_cache_relist_begin(informer->cache);
        send_list(informer);
    } else if (state == KUBE_WATCHING) {
        send_watch(informer);
    }
}

/* ---- how it is ---- */

enum kube_informer_state kube_informer_state(const struct kube_informer *informer)
{
    return informer->state;
}

const char *kube_informer_state_name(enum kube_informer_state state)
{
    static const char *const names[] = {
        [KUBE_IDLE] = "idle",
        [KUBE_LISTING] = "listing",
        [KUBE_WATCHING] = "watching",
        [KUBE_WAITING] = "waiting",
    };

    return names[state];
}

int64_t kube_informer_last_contact_us(const struct kube_informer *informer)
{
    return informer->last_contact_us;
}

const char *kube_informer_last_error(const struct kube_informer *informer)
{
    return informer->last_error.text;
}

void kube_informer_counts(const struct kube_informer *informer, uint64_t *ret_lists,
                          uint64_t *ret_watches, uint64_t *ret_events)
{
    *ret_lists = informer->lists;
    *ret_watches = informer->watches;
    *ret_events = informer->events;
}

uint64_t kube_informer_undecoded(const struct kube_informer *informer)
{
    return informer->undecoded;
}
