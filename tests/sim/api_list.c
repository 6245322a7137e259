/* api_list.c - lists, whole or in pages of one moment.
 *
 * Holds: all pages of one list show the objects as they were at its first page; the state of a past
 * version is the present one with the history undone. When that history is compacted: 410. */
#include "api_private.h"
#include "codec/base64.h"

#include <stdlib.h>

struct page {
    uint64_t version; /* of the moment shown */
    uint64_t limit;   /* 0: no limit */
    struct str after; /* key behind which this page begins; "" = at the start */
};

static int read_number(struct api_call *call, struct str text, const char *format,
                       uint64_t *ret_number)
{
    if (str_to_u64(text, 0, UINT64_MAX, ret_number, NULL) == 0)
        return 0;
    return api_refuse_bad_request(call, "%s\"" STR_FMT "\": invalid syntax", format, STR_ARG(text));
}

/* A token is "VERSION KEY" in base64. */
static int read_token(struct api_call *call, struct str token, struct page *page)
{
    auto_buf struct buf text;
    struct str version, after;

    buf_init(&text, 1000);
    if (base64_decode(token, BASE64_URL | BASE64_UNPADDED, &text, NULL) < 0 ||
        !str_cut(buf_str(&text), ' ', &version, &after) ||
        str_to_u64(version, 1, call->store->version, &page->version, NULL) < 0)
        return api_refuse_bad_request(call, "invalid continue token");
    page->after = (struct str){ arena_strndup(call->arena, after.at, after.len), after.len };
    if (page->version < call->store->compacted)
        return api_refuse_expired(call, "The provided continue parameter is too old to display a "
                                        "consistent list result.");
    return 0;
}

static int read_page(struct api_call *call, struct page *page)
{
    struct str limit = api_query(call, "limit"), token = api_query(call, "continue");
    struct str version = api_query(call, "resourceVersion");
    uint64_t wanted = 0;
    int result;

    *page = (struct page){ .version = call->store->version, .after = STR("") };
    if (limit.len > 0 &&
        (result = read_number(call, limit, "strconv.ParseInt: parsing ", &page->limit)) < 0)
        return result;
    if (version.len > 0 && str_to_u64(version, 0, UINT64_MAX, &wanted, NULL) < 0)
        return api_refuse_bad_request(call,
                                      "invalid resource version: resourceVersion: Invalid value: "
                                      "\"" STR_FMT "\": strconv.ParseUint: parsing \"" STR_FMT
                                      "\": invalid syntax",
                                      STR_ARG(version), STR_ARG(version));
    if (wanted > call->store->version)
        return api_refuse_future(call, wanted);
    /* Any version will do: the real server then answers from its cache, which knows no pages. */
    if (str_is(version, "0"))
        page->limit = 0;
    return token.len > 0 ? read_token(call, token, page) : 0;
}

/* ---- the moment ---- */

static void undo(const struct api_event *event, struct map *view)
{
    if (!event->old)
        (void)map_remove(view, str_of(event->key));
    else if (map_put(view, str_of(event->key), event->old, NULL) < 0)
        abort();
}

static void state_at(const struct api_call *call, uint64_t version, struct map *view)
{
    const struct api_store *store = call->store;

    map_each (item, &call->table->objects) {
        if (map_put(view, item->key, item->value, NULL) < 0)
            abort();
    }
    for (size_t i = store->event_count; i > 0 && store->events[i - 1].version > version; i--)
        if (store->events[i - 1].kind == call->kind)
            undo(&store->events[i - 1], view);
}

static int by_key(const void *a, const void *b)
{
    return str_cmp((*(struct map_item *const *)a)->key, (*(struct map_item *const *)b)->key);
}

static struct map_item **sorted(struct arena *arena, struct map *view)
{
    struct map_item **items = arena_alloc_array(arena, view->count + 1, sizeof(struct map_item *));
    size_t count = 0;

    map_each (item, view)
        items[count++] = item;
    qsort(items, count, sizeof(struct map_item *), by_key);
    return items;
}

/* ---- the answer ---- */

static void add_item(struct api_call *call, struct json_mut *items, const struct json *object)
{
    struct json_mut *item = json_copy(call->build, object);

    if (!(call->kind->traits & API_CUSTOM)) {
        (void)json_remove(item, STR("kind"));
        (void)json_remove(item, STR("apiVersion"));
    }
    json_push(items, item);
}

static void put_token(struct api_call *call, struct json_mut *metadata, uint64_t version,
                      struct str after)
{
    auto_buf struct buf token;
    const char *text =
        arena_printf(call->arena, "%llu " STR_FMT, (unsigned long long)version, STR_ARG(after));

    buf_init(&token, 2000);
    base64_encode(str_of(text), BASE64_URL | BASE64_UNPADDED, &token);
    json_put_str(call->build, metadata, "continue", buf_str(&token));
}

static struct json_mut *list_head(struct api_call *call, uint64_t version)
{
    auto_buf struct buf text;
    struct json_mut *root = json_new_object(call->build);

    buf_init(&text, 600);
    buf_printf(&text, "%sList", call->kind->kind);
    json_put_str(call->build, root, "kind", buf_str(&text));
    buf_clear(&text);
    api_write_api_version(&text, call->kind);
    json_put_str(call->build, root, "apiVersion", buf_str(&text));
    buf_clear(&text);
    buf_printf(&text, "%llu", (unsigned long long)version);
    json_put_str(call->build, json_put_object(call->build, root, "metadata"), "resourceVersion",
                 buf_str(&text));
    return root;
}

static void put_rest(struct api_call *call, struct json_mut *metadata,
                     const struct api_selection *selection, const struct page *page,
                     struct str last, uint64_t left)
{
    put_token(call, metadata, page->version, last);
    if (!selection->narrow)
        json_put_u64(call->build, metadata, "remainingItemCount", left);
}

static void answer_page(struct api_call *call, const struct api_selection *selection,
                        const struct page *page, struct map *view)
{
    struct json_mut *root = list_head(call, page->version);
    struct json_mut *items = json_put_array(call->build, root, "items");
    struct map_item **item = sorted(call->arena, view);
    struct str last = STR("");
    uint64_t taken = 0, left = 0;

    for (; *item; item++) {
        const struct json *object = api_root((*item)->value);

        if (str_cmp((*item)->key, page->after) <= 0 || !api_is_selected(selection, object))
            continue;
        if (page->limit > 0 && taken == page->limit) {
            left++;
            continue;
        }
        add_item(call, items, object);
        last = (*item)->key;
        taken++;
    }
    if (left > 0)
        put_rest(call, json_object_at(call->build, root, "metadata"), selection, page, last, left);
    call->answer->status = 200;
    json_mut_write(root, &call->answer->body);
}

int api_do_list(struct api_call *call)
{
    struct api_selection selection;
    struct page page;
    auto_map struct map view;
    int result;

    map_init(&view, &(struct map_options){ .max = API_MAX_OBJECTS });
    if ((result = api_select(call, call->arena, &selection)) < 0 ||
        (result = read_page(call, &page)) < 0)
        return result;
    state_at(call, page.version, &view);
    answer_page(call, &selection, &page, &view);
    return 0;
}
