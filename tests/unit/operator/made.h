/* made.h - objects of a test's world, written as text: made(&desk, "{'kind':'NodeSet',...}").
 *
 * As desk_add; an object that is made again takes the place of the one before. */
#ifndef SLINC_TESTS_OPERATOR_MADE_H
#define SLINC_TESTS_OPERATOR_MADE_H

#include "../codec/parsed.h"
#include "codec/json_format.h"
#include "desk.h"

static inline const struct kube_object *made_json(struct desk *desk, const struct json *object)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *doc = NULL;
    struct json_mut *copy = json_copy(build, object);
    const struct kube_kind *kind;
    struct err err = { 0 };
    static int version = 1;
    char text[16];

    (void)snprintf(text, sizeof(text), "%d", ++version);
    json_put_at(build, copy, json_new_str(build, str_of(text)), "metadata", "resourceVersion");
    doc = json_freeze(copy);
    if (desk_add(desk, json_root(doc), &err) < 0)
        fail_msg("%s", err.text);
    kind =
        kube_cache_kind(operator_world_cache(&desk->world, json_str(json_get(object, "kind")).at));
    return kube_cache_get(operator_world_cache(&desk->world, kind->resource->kind),
                          kind->resource->namespaced ? "site" : "",
                          json_str(json_at(object, "metadata", "name")).at);
}

static inline const struct kube_object *made(struct desk *desk, const char *text)
{
    auto_json_doc struct json_doc *doc = parsed(text);

    return made_json(desk, json_root(doc));
}

/* The NodeSet "n" with this spec. */
static inline const struct kube_object *made_nodeset(struct desk *desk, const char *spec)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *given = parsed(spec);
    auto_json_doc struct json_doc *object = json_freeze(json_format(
        build, "{'kind':'NodeSet','metadata':{'name':'n'},'spec':%j}", json_root(given)));

    return made_json(desk, json_root(object));
}

#endif
