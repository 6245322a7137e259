/* fuzz_exporter_request.c - what a request to the exporter's API says: the path, the cookie, the
 * headers of the front proxy, and the ConfigMap that names those headers. The first line is the
 * path, the second the cookie, then come lines "name: value"; behind an empty line the ConfigMap.
 *
 * Holds: a path asks for nothing with a '/' in it, and the bridge is asked only about names; a
 * cookie's token ends where the cookie does; only a header that the ConfigMap names says who
 * somebody is. */
#include "base/mem.h"
#include "exporter/api_page.h"
#include "exporter/external.h"
#include "exporter/view.h"
#include "kube/access.h"

#include <stdlib.h>
#include <strings.h>

enum { MEMORY = 16 << 20, MAX_DATA = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static bool has_char(struct str text, char c)
{
    return memchr(text.at, c, text.len) != NULL;
}

static void check_path(struct str path)
{
    struct external_question external;
    struct view_question view;

    if (external_parse(path, &external, NULL) == 0 && external.kind == EXTERNAL_IS_VALUE) {
        must(external.ns.len > 0 && !has_char(external.ns, '/'));
        must(external.metric.len > 0 && !has_char(external.metric, '/'));
    }
    if (view_parse(path, &view, NULL) == 0 && view.kind == VIEW_IS_WHY) {
        must(view.ns.len > 0 && view.pod.len > 0);
        must(strspn(view.ns.at, "abcdefghijklmnopqrstuvwxyz0123456789-.") >= view.ns.len);
        must(strspn(view.pod.at, "abcdefghijklmnopqrstuvwxyz0123456789-.") >= view.pod.len);
    }
}

static void check_cookie(struct str header)
{
    struct str token;

    if (!api_page_cookie(header, &token))
        return;
    must(!has_char(token, ';') && token.at >= header.at);
    must(token.at + token.len <= header.at + header.len);
}

static bool is_listed(const struct json *names, const char *header)
{
    struct json_iter iter = json_iter(names);
    const struct json *name;
    bool found = false;

    while (json_next_item(&iter, &name))
        found = found || strcasecmp(json_str(name).at, header) == 0;
    return found;
}

/* As access_ask_proxied walks them. */
static void check_headers(const struct access_proxy *proxy, struct str lines)
{
    auto_arena struct arena arena;
    struct access_user user = { .name = NULL };
    struct str line, name, value;
    bool has_name = false;

    arena_init(&arena, MEMORY);
    while (lines.len > 0 && str_next(&lines, '\n', &line)) {
        const char *header;

        if (!str_cut(line, ':', &name, &value))
            continue;
        header = arena_strndup(&arena, name.at, name.len);
        has_name = has_name || is_listed(proxy->users, header);
        value = str_trim(value);
        access_take_header(proxy, &user, &arena, header,
                           arena_strndup(&arena, value.at, value.len));
    }
    must((user.name != NULL) == has_name);
    must(user.group_count <= KUBE_REVIEW_MAX_GROUPS);
    if (user.extra) {
        auto_json_doc struct json_doc *extra = json_freeze(user.extra);
        struct json_iter iter = json_iter(json_root(extra));
        const struct json *list;
        struct str key;

        while (json_next_member(&iter, &key, &list))
            must(key.len > 0 && json_is_array(list) && json_len(list) > 0);
    }
    json_build_free(user.extra_build);
}

static void check_proxy(struct str text, struct str lines)
{
    auto_json_doc struct json_doc *data = NULL;
    struct json_doc *docs[5] = { NULL };
    struct access_proxy proxy;
    struct err err = { 0 };

    if (json_parse(text, MAX_DATA, &data, NULL) < 0)
        return;
    if (access_read_proxy(json_root(data), docs, &proxy, &err) < 0) {
        must(err.text[0] != '\0');
    } else {
        must(proxy.ca.len > 0);
        check_headers(&proxy, lines);
    }
    for (unsigned i = 0; i < 5; i++)
        json_doc_free(docs[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_free char *text = mem_strndup(size > 0 ? (const char *)data : "", size);
    struct str rest = str_of(text), path, cookie = STR("");
    const char *end;

    (void)str_next(&rest, '\n', &path);
    check_path(path);
    if (rest.at)
        (void)str_next(&rest, '\n', &cookie);
    check_cookie(cookie);
    end = rest.at ? strstr(rest.at, "\n\n") : NULL;
    if (end)
        check_proxy(str_of(end + 2), (struct str){ rest.at, (size_t)(end - rest.at) });
    return 0;
}
