/* api_watch.c - what a watcher sees: the changes behind a version, in order, each once.
 *
 * Holds: an object that comes into the selection is ADDED and one that leaves it is DELETED,
 * whatever was done to it; a DELETED event carries the object as it last was, under the version of
 * its leaving. A watch that begins, or has fallen, behind the history gets one ERROR event with 410
 * and ends. */
#include "api_private.h"
#include "base/mem.h"

#include <stdio.h>

struct api_watch {
    struct api_store *store;
    struct arena arena;
    struct api_selection selection;
    uint64_t version; /* everything up to here has been given */
    int64_t timeout_us;
    bool bookmarks, ended;
    struct buf first; /* ADDED events for what is there, when no version was named */
};

static int read_version(struct api_call *call, struct api_watch *watch)
{
    struct str version = api_query(call, "resourceVersion");
    struct str timeout = api_query(call, "timeoutSeconds");
    int64_t seconds = 0;

    if (version.len > 0 && str_to_u64(version, 0, UINT64_MAX, &watch->version, NULL) < 0)
        return api_refuse_unclassified(
            call, arena_printf(call->arena,
                               "resourceVersion: Invalid value: \"" STR_FMT "\": strconv.ParseUint:"
                               " parsing \"" STR_FMT "\": invalid syntax",
                               STR_ARG(version), STR_ARG(version)));
    if (timeout.len > 0 && str_to_i64(timeout, 0, 86400, &seconds, NULL) == 0)
        watch->timeout_us = seconds * 1000000;
    return 0;
}

static void write_event(const struct json *object, const char *type, struct buf *out)
{
    buf_printf(out, "{\"type\":\"%s\",\"object\":", type);
    json_write(object, out);
    buf_add_text(out, "}\n");
}

/* Without a version, a watch begins with all there is. */
static void give_all(struct api_call *call, struct api_watch *watch)
{
    map_each (item, &call->table->objects) {
        const struct json *object = api_root(item->value);

        if (api_is_selected(&watch->selection, object))
            write_event(object, "ADDED", &watch->first);
    }
    watch->version = watch->store->version;
}

static int open_watch(struct api_call *call, struct api_watch *watch)
{
    struct str bookmarks = api_query(call, "allowWatchBookmarks");
    int result;

    if (*call->name)
        return api_refuse_method(call);
    if ((result = api_select(call, &watch->arena, &watch->selection)) < 0 ||
        (result = read_version(call, watch)) < 0)
        return result;
    watch->bookmarks = str_is(bookmarks, "true") || str_is(bookmarks, "1");
    if (watch->version == 0)
        give_all(call, watch);
    call->answer->status = 200;
    return 0;
}

int api_watch_open(struct api_store *store, const struct api_request *request,
                   struct api_answer *answer, struct api_watch **ret_watch)
{
    auto_arena struct arena arena;
    struct api_call call = { .store = store, .answer = answer, .arena = &arena };
    struct api_watch *watch = mem_alloc(sizeof(*watch));
    int result;

    arena_init(&arena, 1u << 20);
    watch->store = store;
    arena_init(&watch->arena, 4u << 20);
    buf_init(&watch->first, API_MAX_ANSWER);
    result = api_route(&call, request);
    if (result == 0)
        result = call.table ? open_watch(&call, watch) : api_refuse_no_resource(&call);
    if (result < 0) {
        api_watch_free(watch);
        return result;
    }
    *ret_watch = watch;
    return 0;
}

void api_watch_free(struct api_watch *watch)
{
    if (!watch)
        return;
    arena_done(&watch->arena);
    buf_done(&watch->first);
    mem_free(watch);
}

bool api_watch_has_ended(const struct api_watch *watch)
{
    return watch->ended;
}

int64_t api_watch_timeout_us(const struct api_watch *watch)
{
    return watch->timeout_us;
}

/* The first event behind a version: versions rise along the history. */
static size_t first_behind(const struct api_store *store, uint64_t version)
{
    size_t low = 0, high = store->event_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (store->events[middle].version <= version)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool selects(const struct api_watch *watch, const struct api_doc *doc)
{
    return doc && api_is_selected(&watch->selection, api_root(doc));
}

/* The object as it was, under a later version. */
static void write_left(const struct api_event *event, struct buf *out)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *object = json_copy(build, api_root(event->old));
    char version[24];

    (void)snprintf(version, sizeof(version), "%llu", (unsigned long long)event->version);
    json_put_at(build, object, json_new_str(build, str_of(version)), "metadata", "resourceVersion");
    buf_add_text(out, "{\"type\":\"DELETED\",\"object\":");
    json_mut_write(object, out);
    buf_add_text(out, "}\n");
}

/* False when this watcher has nothing to see in it. */
static bool give(const struct api_watch *watch, const struct api_event *event, struct buf *out)
{
    bool was = selects(watch, event->old), is = selects(watch, event->next);

    if (event->kind != watch->selection.kind || (!was && !is))
        return false;
    if (is)
        write_event(api_root(event->next), was ? "MODIFIED" : "ADDED", out);
    else if (event->gone)
        write_event(api_root(event->gone), "DELETED", out);
    else
        write_left(event, out);
    return true;
}

static bool give_expired(struct api_watch *watch, struct buf *out)
{
    char message[100];

    (void)snprintf(message, sizeof(message), "too old resource version: %llu (%llu)",
                   (unsigned long long)watch->version, (unsigned long long)watch->store->compacted);
    watch->ended = true;
    buf_add_text(out, "{\"type\":\"ERROR\",\"object\":");
    api_write_expired(out, message);
    buf_add_text(out, "}\n");
    return true;
}

static bool give_first(struct api_watch *watch, struct buf *out)
{
    struct str line, rest;

    if (!str_cut(buf_str(&watch->first), '\n', &line, &rest))
        return false;
    buf_add_str(out, line);
    buf_add_char(out, '\n');
    buf_drop_front(&watch->first, line.len + 1);
    return true;
}

bool api_watch_next(struct api_watch *watch, struct buf *out)
{
    const struct api_store *store = watch->store;

    if (watch->ended)
        return false;
    if (give_first(watch, out))
        return true;
    if (watch->version < store->compacted)
        return give_expired(watch, out);
    for (size_t i = first_behind(store, watch->version); i < store->event_count; i++) {
        watch->version = store->events[i].version;
        if (give(watch, &store->events[i], out))
            return true;
    }
    return false;
}

void api_watch_bookmark(struct api_watch *watch, struct buf *out)
{
    const struct api_kind *kind = watch->selection.kind;

    if (!watch->bookmarks || watch->ended || watch->first.len > 0 ||
        watch->version < watch->store->version)
        return;
    buf_printf(out, "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"%s\",\"apiVersion\":\"",
               kind->kind);
    api_write_api_version(out, kind);
    buf_printf(out, "\",\"metadata\":{\"resourceVersion\":\"%llu\"}}}\n",
               (unsigned long long)watch->version);
}
