/* api_path.c - from a method and a target to the call it means.
 *
 * /api/v1/... is the core group, /apis/GROUP/VERSION/... all others; then, for what lives in a
 * namespace, namespaces/NAME, then the plural, a name, a subresource. With nothing behind the
 * version the question is which resources there are. */
#include "api_private.h"
#include "io/http_text.h"

enum { MAX_SEGMENTS = 8 };

struct segments {
    const char *at[MAX_SEGMENTS];
    unsigned count;
};

static char *decoded(struct arena *arena, struct str text)
{
    char *out = arena_alloc(arena, text.len + 1);
    size_t length = 0;

    for (size_t i = 0; i < text.len; i++) {
        uint64_t high = 0, low = 0;
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char *a, *b;

        if (text.at[i] == '%' && i + 2 < text.len && (a = strchr(digits, text.at[i + 1])) &&
            (b = strchr(digits, text.at[i + 2]))) {
            high = (uint64_t)(a - digits) % 16;
            low = (uint64_t)(b - digits) % 16;
            out[length++] = (char)(high << 4 | low);
            i += 2;
        } else {
            out[length++] = text.at[i];
        }
    }
    return out;
}

static void split(struct arena *arena, struct str path, struct segments *segments)
{
    struct str part;

    while (str_next(&path, '/', &part))
        if (part.len > 0 && segments->count < MAX_SEGMENTS)
            segments->at[segments->count++] = decoded(arena, part);
}

static struct api_table *find_table(struct api_store *store, const char *group, const char *version,
                                    const char *plural, bool *ret_group_known)
{
    for (unsigned i = 0; i < store->table_count; i++) {
        const struct api_kind *kind = store->tables[i].kind;

        if (strcmp(kind->group, group) != 0 || strcmp(kind->version, version) != 0)
            continue;
        *ret_group_known = true;
        if (strcmp(kind->plural, plural) == 0)
            return &store->tables[i];
    }
    return NULL;
}

static const char *segment(const struct segments *segments, unsigned index)
{
    return index < segments->count ? segments->at[index] : "";
}

/* "GET /apis/GROUP/VERSION": what there is. */
static bool is_discovery(const struct api_call *call, const struct segments *segments, unsigned at)
{
    return segments->count == at && strcmp(call->method, "GET") == 0;
}

/* Where the plural stands, and with it name and subresource. */
static void place(struct api_call *call, const struct segments *segments, unsigned at)
{
    call->name = segment(segments, at + 1);
    call->subresource = segment(segments, at + 2);
}

int api_route(struct api_call *call, const struct api_request *request)
{
    struct segments segments = { .count = 0 };
    struct str path = request->target, query = STR("");
    bool known = false;

    (void)str_cut(request->target, '?', &path, &query);
    split(call->arena, path, &segments);
    call->method = request->method;
    call->user = request->user ? request->user : "";
    call->query = query;
    call->content_type = request->content_type;
    call->ns = "";

    bool core = strcmp(segment(&segments, 0), "api") == 0;
    unsigned at = core ? 2 : 3;

    call->group = core ? "" : segment(&segments, 1);
    call->version = segment(&segments, at - 1);
    if (strcmp(segment(&segments, at), "namespaces") == 0 && segments.count > at + 2 &&
        strcmp(segment(&segments, at + 2), "status") != 0) {
        call->ns = segment(&segments, at + 1);
        at += 2;
    }
    call->table =
        find_table(call->store, call->group, call->version, segment(&segments, at), &known);
    place(call, &segments, at);
    if (!call->table && known && is_discovery(call, &segments, at))
        return 0;
    if (!call->table)
        return known ? api_refuse_no_resource(call)
                     : api_refuse_plain(call, 404, "404 page not found\n");
    call->kind = call->table->kind;
    if (*call->ns && !(call->kind->traits & API_NAMESPACED))
        return api_refuse_no_resource(call);
    return 0;
}

struct str api_query(const struct api_call *call, const char *name)
{
    auto_buf struct buf value;

    buf_init(&value, 1u << 20);
    if (http_query_get(call->query, name, &value, NULL) < 0)
        return STR("");
    return (struct str){ arena_strndup(call->arena, buf_text(&value), value.len), value.len };
}

bool api_is_watch(const struct api_request *request)
{
    auto_buf struct buf value;
    struct str path, query;

    buf_init(&value, 100);
    if (!str_cut(request->target, '?', &path, &query) ||
        http_query_get(query, "watch", &value, NULL) < 0)
        return false;
    return strcmp(buf_text(&value), "1") == 0 || strcmp(buf_text(&value), "true") == 0;
}
