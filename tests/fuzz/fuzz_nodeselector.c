/* fuzz_nodeselector.c - whatever JSON is compiled: a selector matches exactly when one of its terms
 * alone does, and a pod with only that selector matches the same nodes. */
#include "codec/nodeselector.h"

#include <stdlib.h>

enum { ARENA = 256 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool lookup(const void *data, struct str key, struct str *ret_value)
{
    static const char *const values[] = { "", "a", "5", "x" };
    size_t kind = key.len > 0 ? (size_t)(unsigned char)key.at[0] : 0;

    (void)data;
    if (kind % 5 == 4)
        return false;
    *ret_value = str_of(values[kind % 5]);
    return true;
}

static const struct nodeselector_node node = { { "n1", 2 }, { lookup, NULL } };

/* {"nodeSelectorTerms": [term]}, or the spec of a pod that requires the selector. */
static struct json_doc *wrapped(const struct json *term, const struct json *selector)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = json_new_object(build);

    if (selector)
        json_put_at(build, root, json_copy(build, selector), "affinity", "nodeAffinity",
                    "requiredDuringSchedulingIgnoredDuringExecution");
    else
        json_push(json_put_array(build, root, "nodeSelectorTerms"), json_copy(build, term));
    return json_freeze(root);
}

static bool term_matches(struct arena *arena, const struct json *term)
{
    auto_json_doc struct json_doc *doc = wrapped(term, NULL);
    const struct nodeselector *selector;

    if (nodeselector_from_json(arena, json_root(doc), &selector, NULL) < 0)
        abort();
    return nodeselector_matches(selector, &node);
}

static bool pod_matches(struct arena *arena, const struct json *value)
{
    auto_json_doc struct json_doc *doc = wrapped(NULL, value);
    const struct nodeselector_pod *pod;

    if (nodeselector_from_pod_spec(arena, json_root(doc), &pod, NULL) < 0)
        abort();
    return nodeselector_pod_matches(pod, &node);
}

static void fuzz_selector(struct arena *arena, const struct json *value)
{
    const struct nodeselector *selector;
    struct json_iter iter = json_iter(json_get(value, "nodeSelectorTerms"));
    const struct json *term;
    bool any = !json_exists(value);

    if (nodeselector_from_json(arena, value, &selector, NULL) < 0)
        return;
    while (json_next_item(&iter, &term))
        any = term_matches(arena, term) || any;
    if (nodeselector_matches(selector, &node) != any)
        abort();
    if (json_exists(value) && pod_matches(arena, value) != any)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { size > 0 ? (const char *)data : "", size };
    auto_json_doc struct json_doc *doc = NULL;
    auto_arena struct arena arena;
    const struct nodeselector_pod *pod;

    arena_init(&arena, ARENA);
    if (json_parse(text, 1 << 16, &doc, NULL) < 0)
        return 0;
    fuzz_selector(&arena, json_root(doc));
    if (nodeselector_from_pod_spec(&arena, json_root(doc), &pod, NULL) == 0)
        (void)nodeselector_pod_matches(pod, &node);
    return 0;
}
