/* informer.c - lists one namespace after the other, then watches them all, for ever, into one
 * cache.
 *
 * One function moves the phase (enter); whatever goes wrong with a list, and a watch that lost its
 * history, ends in `list_later`. A watch that only broke mends itself (watch.c). One namespace of
 * several that we may not list (403; its Role goes with it when it is deleted) is left out of the
 * round, and tried now and then while the others are watched: when it answers, all are listed anew.
 *
 * Holds   all lists of a round lie between one relist_begin and its relist_end, and no watch runs
 *         meanwhile, so what is in none of the lists is gone, and nothing before that;
 *         nothing is gone because its namespace may not be listed;
 *         the cache is told of no version that some watch has not passed. */
#include "kube/informer.h"

#include "base/mem.h"
#include "io/http_text.h"
#include "kube/watch.h"

#include <assert.h>

enum {
    DEFAULT_PAGE = 500,
    MAX_PAGE = 5000,
    DEFAULT_IDLE_US = 60000000,
    DEFAULT_MAX_OBJECT = 4 << 20,
    LIST_TIMEOUT_US = 60000000,
    TRY_DENIED_US = 60000000,
    MAX_CONTINUE = 8192,
};

struct kube_informer {
    struct kube_watch_group group;
    struct kube_watch *watches; /* one per namespace; never none */
    unsigned watch_count;
    unsigned page, max_page; /* objects per page */

    enum kube_informer_state phase; /* WAITING: for the next round of lists */
    struct kube_call *list;         /* LISTING; WATCHING: tries a namespace that was denied */
    unsigned listing;               /* the watch whose namespace is listed, or tried */
    struct loop_timer timer;        /* WAITING; WATCHING: for the next try */
    struct buf continues;           /* the token of the next page, escaped */
    unsigned failures;              /* in a row */
    struct err list_error;
};

static void enter(struct kube_informer *informer, enum kube_informer_state phase);
static void on_moved(void *context);
static void on_healthy(void *context);
static void on_expired(void *context, int64_t retry_after_us);

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

static void add_watch(struct kube_informer *informer, const char *ns)
{
    for (unsigned i = 0; i < informer->watch_count; i++)
        if (strcmp(informer->watches[i].ns, ns) == 0)
            return;
    kube_watch_init(&informer->watches[informer->watch_count++], &informer->group, ns);
}

/* A kind without namespaces has one watch, whatever the options say. */
static void add_watches(struct kube_informer *informer, const struct kube_informer_options *options)
{
    bool namespaced = kube_cache_kind(informer->group.cache)->resource->namespaced;
    unsigned count = namespaced ? options->namespace_count : 0;

    assert(count <= KUBE_INFORMER_MAX_NAMESPACES);
    informer->watches = mem_alloc_array(count > 0 ? count : 1, sizeof(*informer->watches));
    for (unsigned i = 0; i < count; i++)
        add_watch(informer, options->namespaces[i]);
    if (count == 0)
        add_watch(informer, options->ns ? options->ns : "");
}

struct kube_informer *kube_informer_new(struct kube_client *client, struct kube_cache *cache,
                                        struct rand *rand,
                                        const struct kube_informer_options *options)
{
    static const struct kube_informer_options none;
    struct kube_informer *informer = mem_alloc(sizeof(*informer));

    if (!options)
        options = &none;
    informer->group = (struct kube_watch_group){
        .client = client,
        .cache = cache,
        .rand = rand,
        .loop = kube_client_loop(client),
        .selectors = write_selectors(options),
        .idle_us = options->idle_us > 0 ? options->idle_us : DEFAULT_IDLE_US,
        .max_object = options->max_object > 0 ? options->max_object : DEFAULT_MAX_OBJECT,
        .moved = on_moved,
        .healthy = on_healthy,
        .expired = on_expired,
        .context = informer,
    };
    informer->page = options->page > 0 ? options->page : DEFAULT_PAGE;
    informer->max_page = MAX_PAGE;
    buf_init(&informer->continues, MAX_CONTINUE);
    add_watches(informer, options);
    return informer;
}

void kube_informer_start(struct kube_informer *informer)
{
    if (informer->phase == KUBE_IDLE)
        enter(informer, KUBE_LISTING);
}

void kube_informer_free(struct kube_informer *informer)
{
    if (!informer)
        return;
    kube_call_cancel(informer->list);
    loop_timer_stop(&informer->timer);
    for (unsigned i = 0; i < informer->watch_count; i++)
        kube_watch_done(&informer->watches[i]);
    mem_free(informer->watches);
    buf_done(&informer->continues);
    mem_free(informer->group.selectors);
    mem_free(informer);
}

/* ---- the watches ---- */

static uint64_t lowest_version(const struct kube_informer *informer)
{
    uint64_t lowest = UINT64_MAX;

    for (unsigned i = 0; i < informer->watch_count; i++)
        if (!informer->watches[i].is_denied && informer->watches[i].version_number < lowest)
            lowest = informer->watches[i].version_number;
    return lowest;
}

static void on_moved(void *context)
{
    struct kube_informer *informer = context;

    kube_cache_progress(informer->group.cache, lowest_version(informer));
}

static void on_healthy(void *context)
{
    struct kube_informer *informer = context;

    informer->failures = 0;
}

static void on_waited(void *context)
{
    enter(context, KUBE_LISTING);
}

static void list_later(struct kube_informer *informer, int64_t retry_after_us)
{
    struct kube_watch_group *group = &informer->group;

    kube_call_cancel(informer->list);
    informer->list = NULL;
    informer->phase = KUBE_WAITING;
    loop_timer_start(group->loop, &informer->timer,
                     kube_watch_wait(group->rand, &informer->failures, retry_after_us), on_waited,
                     informer);
}

/* The other watches go on until the lists begin. */
static void on_expired(void *context, int64_t retry_after_us)
{
    struct kube_informer *informer = context;

    if (informer->phase == KUBE_WATCHING)
        list_later(informer, retry_after_us);
}

/* ---- listing ---- */

static void on_page(void *context, const struct kube_answer *answer);

static void send_list(struct kube_informer *informer, unsigned limit, kube_done done)
{
    struct kube_watch_group *group = &informer->group;
    auto_buf struct buf query;
    struct kube_request request = { .verb = KUBE_LIST,
                                    .resource = kube_cache_kind(group->cache)->resource,
                                    .ns = informer->watches[informer->listing].ns,
                                    .body = STR(""),
                                    .timeout_us = LIST_TIMEOUT_US };

    buf_init(&query, strlen(group->selectors) + MAX_CONTINUE + 64);
    buf_printf(&query, "limit=%u", limit);
    if (informer->continues.len > 0)
        buf_printf(&query, "&continue=%s", buf_text(&informer->continues));
    buf_add_text(&query, group->selectors);
    request.query = buf_text(&query);
    informer->list = kube_send(group->client, &request, done, informer);
}

__attribute__((format(printf, 3, 4))) static void list_failed(struct kube_informer *informer,
                                                              int64_t retry_after_us,
                                                              const char *format, ...)
{
    const char *ns = informer->watches[informer->listing].ns;
    va_list args;

    va_start(args, format);
    (void)err_setv(&informer->list_error, ERR_UNAVAILABLE, format, args);
    va_end(args);
    (void)err_wrap(&informer->list_error, ns[0] ? "list of namespace %s" : "list%s", ns);
    list_later(informer, retry_after_us);
}

/* When no namespace may be listed, it is not about one of them: nothing was read. */
static bool all_are_denied(struct kube_informer *informer)
{
    for (unsigned i = 0; i < informer->watch_count; i++)
        if (!informer->watches[i].is_denied)
            return false;
    for (unsigned i = 0; i < informer->watch_count; i++)
        informer->watches[i].is_denied = false;
    informer->list_error = informer->watches[0].last_error;
    return true;
}

static void list_next(struct kube_informer *informer)
{
    struct kube_cache *cache = informer->group.cache;

    if (++informer->listing < informer->watch_count) {
        send_list(informer, informer->page, on_page);
        return;
    }
    if (all_are_denied(informer)) {
        list_later(informer, 0);
        return;
    }
    for (unsigned i = 0; i < informer->watch_count; i++)
        kube_cache_set_readable(cache, informer->watches[i].ns, !informer->watches[i].is_denied);
    informer->list_error = (struct err){ 0 };
    kube_cache_relist_end(cache, lowest_version(informer));
    enter(informer, KUBE_WATCHING);
}

static void leave_out(struct kube_informer *informer, const char *message)
{
    struct kube_watch *watch = &informer->watches[informer->listing];

    watch->is_denied = true;
    (void)err_set(&watch->last_error, ERR_DENIED, "list of namespace %s: %s", watch->ns, message);
    buf_clear(&informer->continues);
    list_next(informer);
}

static void list_refused(struct kube_informer *informer, const struct kube_answer *answer)
{
    bool expired = answer->outcome == KUBE_GONE && informer->continues.len > 0;

    if (answer->status == 403 && informer->watch_count > 1) {
        leave_out(informer, answer->message);
        return;
    }
    /* The history was cut before the last page came: fewer, larger pages are faster. */
    if (expired && informer->page < informer->max_page)
        informer->page =
            informer->page * 2 < informer->max_page ? informer->page * 2 : informer->max_page;
    if (answer->is_too_big && informer->page > 1)
        informer->max_page = informer->page /= 2;
    list_failed(informer, answer->retry_after_us, "%s", answer->message);
}

static void list_ended(struct kube_informer *informer, struct str version)
{
    struct kube_watch *watch = &informer->watches[informer->listing];

    if (!kube_watch_listed(watch, version)) {
        list_failed(informer, 0, "an answer without a resourceVersion");
        return;
    }
    watch->is_denied = false;
    list_next(informer);
}

static void on_page(void *context, const struct kube_answer *answer)
{
    struct kube_informer *informer = context;
    struct kube_watch *watch = &informer->watches[informer->listing];
    const struct json *metadata, *item;
    struct json_iter iter;

    informer->list = NULL;
    if (answer->outcome != KUBE_DONE) {
        list_refused(informer, answer);
        return;
    }
    kube_watch_heard(watch);
    iter = json_iter(json_get(answer->object, "items"));
    while (json_next_item(&iter, &item))
        kube_watch_take(watch, item);
    metadata = json_get(answer->object, "metadata");
    buf_clear(&informer->continues);
    http_escape(json_str(json_get(metadata, "continue")), &informer->continues);
    if (informer->continues.overflowed)
        list_failed(informer, 0, "a continue token of more than %d bytes", MAX_CONTINUE);
    else if (informer->continues.len > 0)
        send_list(informer, informer->page, on_page);
    else
        list_ended(informer, json_str(json_get(metadata, "resourceVersion")));
}

/* ---- namespaces that we may not list ---- */

static void try_denied(struct kube_informer *informer, unsigned from);

static void on_tried(void *context, const struct kube_answer *answer)
{
    struct kube_informer *informer = context;

    informer->list = NULL;
    if (answer->outcome == KUBE_DONE)
        enter(informer, KUBE_LISTING);
    else
        try_denied(informer, informer->listing + 1);
}

static void on_time_to_try(void *context)
{
    try_denied(context, 0);
}

/* One after the other, then a pause. */
static void try_denied(struct kube_informer *informer, unsigned from)
{
    for (unsigned i = from; i < informer->watch_count; i++)
        if (informer->watches[i].is_denied) {
            informer->listing = i;
            send_list(informer, 1, on_tried);
            return;
        }
    loop_timer_start(informer->group.loop, &informer->timer, TRY_DENIED_US, on_time_to_try,
                     informer);
}

/* ---- phases ---- */

static void begin_watching(struct kube_informer *informer)
{
    for (unsigned i = 0; i < informer->watch_count; i++) {
        if (!informer->watches[i].is_denied)
            kube_watch_start(&informer->watches[i]);
        else
            loop_timer_start(informer->group.loop, &informer->timer, TRY_DENIED_US, on_time_to_try,
                             informer);
    }
}

static void begin_listing(struct kube_informer *informer)
{
    for (unsigned i = 0; i < informer->watch_count; i++)
        kube_watch_stop(&informer->watches[i]);
    informer->listing = 0;
    buf_clear(&informer->continues);
    kube_cache_relist_begin(informer->group.cache);
    send_list(informer, informer->page, on_page);
}

static void enter(struct kube_informer *informer, enum kube_informer_state phase)
{
    informer->phase = phase;
    if (phase == KUBE_WATCHING)
        begin_watching(informer);
    else
        begin_listing(informer);
}

/* ---- how it is ---- */

enum kube_informer_state kube_informer_state(const struct kube_informer *informer)
{
    for (unsigned i = 0; i < informer->watch_count; i++)
        if (informer->phase == KUBE_WATCHING && !informer->watches[i].call &&
            !informer->watches[i].is_denied)
            return KUBE_WAITING;
    return informer->phase;
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
    int64_t oldest = INT64_MAX;

    for (unsigned i = 0; i < informer->watch_count; i++)
        if (!informer->watches[i].is_denied && informer->watches[i].last_contact_us < oldest)
            oldest = informer->watches[i].last_contact_us;
    return oldest;
}

const char *kube_informer_last_error(const struct kube_informer *informer)
{
    const char *text = informer->list_error.text;

    for (unsigned i = 0; i < informer->watch_count && !text[0]; i++)
        text = informer->watches[i].last_error.text;
    return text;
}

uint64_t kube_informer_undecoded(const struct kube_informer *informer)
{
    return informer->group.undecoded;
}
