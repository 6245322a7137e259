/* plan.c - building plans: each action is a request ready to be sent, and what it will change.
 *
 * Holds: everything an action points to lives in the plan's arena, or is static; a plan has no
 * memory besides. A write says under which condition it may take effect: creates that the name is
 * free, patches that the version is the one planned on (when given), deletes and binds that it is
 * still the same object. */
#include "engine/plan.h"

#include "kube/kinds.h"

#include <ctype.h>

enum { MAX_BODY = 8 << 20, MAX_PATH = 8192 };

static void *start_kube(void *service, const struct action *action,
                        void (*finish)(void *context, const struct kube_answer *answer),
                        void *context)
{
    return kube_send(service, &action->request, finish, context);
}

static void cancel_kube(void *service, void *handle)
{
    kube_call_cancel(handle);
}

const struct action_type action_kube = {
    .name = "kube",
    .start = start_kube,
    .cancel = cancel_kube,
};

void plan_init(struct plan *plan, struct arena *arena)
{
    *plan = (struct plan){ .arena = arena };
    list_init(&plan->actions);
    list_init(&plan->enqueues);
}

void plan_clear(struct plan *plan)
{
    struct arena *arena = plan->arena;

    arena_reset(arena);
    plan_init(plan, arena);
}

bool plan_has_room(struct plan *plan)
{
    size_t budget = plan->arena->budget;

    if (plan->action_count < PLAN_MAX_ACTIONS && plan->arena->used < budget - budget / 4)
        return true;
    plan_look_again(plan, 1);
    return false;
}

void plan_next_stage(struct plan *plan)
{
    plan->stage++;
}

void plan_look_again(struct plan *plan, int64_t delay_us)
{
    if (delay_us < 1)
        delay_us = 1; /* 0 would mean never */
    if (plan->look_again_us == 0 || delay_us < plan->look_again_us)
        plan->look_again_us = delay_us;
}

void plan_enqueue(struct plan *plan, struct str key)
{
    struct plan_key *other = arena_alloc(plan->arena, sizeof(*other));

    other->key = (struct str){ arena_strndup(plan->arena, key.at, key.len), key.len };
    list_push_back(&plan->enqueues, &other->link);
}

void plan_wait(struct plan *plan, const char *format, ...)
{
    va_list args;

    va_start(args, format);

    const char *text = arena_vprintf(plan->arena, format, args);

    va_end(args);
    plan->waits = plan->waits ? arena_printf(plan->arena, "%s; %s", plan->waits, text) : text;
}

void plan_step_failed(struct plan *plan, const char *step, const struct err *err)
{
    const char *text = arena_printf(plan->arena, "%s: %s", step, err->text);

    plan->failure = plan->failure ? arena_printf(plan->arena, "%s; %s", plan->failure, text) : text;
}

/* ---- pieces ---- */

static const char *keep(struct plan *plan, const char *text)
{
    return text ? arena_strdup(plan->arena, text) : NULL;
}

static struct str keep_json(struct plan *plan, const struct json_mut *value)
{
    auto_buf struct buf text;

    buf_init(&text, MAX_BODY);
    json_mut_write(value, &text);
    if (text.overflowed)
        return STR("!"); /* not JSON: the server refuses it, and the refusal is told */
    return (struct str){ arena_strndup(plan->arena, buf_text(&text), text.len), text.len };
}

static struct json_mut *copy_of(struct json_build *build, const struct json_mut *value)
{
    auto_json_doc struct json_doc *doc = json_freeze(value);

    return json_copy(build, json_root(doc));
}

/* "patch nodeset a/b status": the kind in small letters, as people write it. */
static const char *describe(struct plan *plan, const char *verb,
                            const struct kube_resource *resource, const char *ns, const char *name,
                            const char *more)
{
    char *kind = arena_strdup(plan->arena, resource->kind);
    bool has_ns = ns && ns[0];

    for (char *c = kind; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return arena_printf(plan->arena, "%s %s %s%s%s%s%s", verb, kind, has_ns ? ns : "",
                        has_ns ? "/" : "", name, more ? " " : "", more ? more : "");
}

struct action *plan_add(struct plan *plan, const struct action_type *type, const char *what,
                        const void *detail)
{
    struct action *action = arena_alloc(plan->arena, sizeof(*action));

    action->type = type;
    action->stage = plan->stage;
    action->is_independent = plan->is_independent;
    action->what = keep(plan, what);
    action->detail = detail;
    action->predicted = STR("");
    action->request.body = STR("");
    list_push_back(&plan->actions, &action->link);
    plan->action_count++;
    return action;
}

static struct action *add_kube(struct plan *plan, struct kube_cache *cache, const char *what,
                               enum kube_verb verb, const struct kube_resource *resource,
                               const char *ns, const char *name, const char *subresource)
{
    struct action *action = plan_add(plan, &action_kube, what, NULL);

    action->cache = cache;
    action->request.verb = verb;
    action->request.resource = resource;
    action->request.ns = resource->namespaced ? keep(plan, ns) : NULL;
    action->request.name = keep(plan, name);
    action->request.subresource = keep(plan, subresource);
    return action;
}

/* ---- the writes ---- */

static void put_missing(struct json_build *build, struct json_mut *object, const char *key,
                        const char *text)
{
    if (!json_mut_get(object, str_of(key)))
        json_put_text(build, object, key, text);
}

static const char *name_of(struct plan *plan, const struct json_mut *object)
{
    auto_json_doc struct json_doc *doc = json_freeze(object);
    const struct json *metadata = json_get(json_root(doc), "metadata");
    struct str name = json_str(json_get(metadata, "name"));

    if (name.len == 0)
        return arena_printf(plan->arena, "%s*", json_str(json_get(metadata, "generateName")).at);
    return arena_strndup(plan->arena, name.at, name.len);
}

struct action *plan_create(struct plan *plan, struct kube_cache *cache,
                           const struct kube_resource *resource, const char *ns,
                           const struct json_mut *object)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *body = copy_of(build, object);
    auto_buf struct buf version;
    const char *what = describe(plan, "create", resource, ns, name_of(plan, object), NULL);
    struct action *action = add_kube(plan, cache, what, KUBE_CREATE, resource, ns, NULL, NULL);

    buf_init(&version, MAX_PATH);
    kube_api_version(&version, resource);
    put_missing(build, body, "apiVersion", buf_text(&version));
    put_missing(build, body, "kind", resource->kind);
    if (resource->namespaced && ns)
        put_missing(build, json_object_at(build, body, "metadata"), "namespace", ns);
    action->request.body = keep_json(plan, body);
    action->predicted = action->request.body;
    return action;
}

/* An object that only a create of ours predicts has no uid or version yet. A write without them has
 * no precondition, and could hit what somebody else puts there first: it waits for the real one. */
static bool is_only_predicted(struct plan *plan, const char *mark, const char *what)
{
    if (!mark || *mark != '\0')
        return false;
    plan_wait(plan, "%s: it is not written yet", what);
    return true;
}

static struct str with_version(struct plan *plan, const struct json_mut *patch, const char *version)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *body = copy_of(build, patch);

    json_put_at(build, body, json_new_str(build, str_of(version)), "metadata", "resourceVersion");
    return keep_json(plan, body);
}

struct action *plan_merge_patch(struct plan *plan, struct kube_cache *cache,
                                const struct kube_resource *resource, const char *ns,
                                const char *name, const char *subresource, const char *version,
                                const struct json_mut *patch)
{
    const char *what = describe(plan, "patch", resource, ns, name, subresource);

    if (is_only_predicted(plan, version, what))
        return NULL;

    struct action *action =
        add_kube(plan, cache, what, KUBE_MERGE_PATCH, resource, ns, name, subresource);

    action->predicted = keep_json(plan, patch);
    action->request.body = version ? with_version(plan, patch, version) : action->predicted;
    return action;
}

/* An empty prediction changes nothing; the answer takes its place. */
static struct str keep_prediction(struct plan *plan, const struct json_mut *predicted)
{
    return predicted ? keep_json(plan, predicted) : STR("{}");
}

struct action *plan_strategic_patch(struct plan *plan, struct kube_cache *cache,
                                    const struct kube_resource *resource, const char *ns,
                                    const char *name, const char *subresource, const char *version,
                                    const struct json_mut *patch, const struct json_mut *predicted)
{
    const char *what = describe(plan, "patch", resource, ns, name, subresource);

    if (is_only_predicted(plan, version, what))
        return NULL;

    struct action *action =
        add_kube(plan, cache, what, KUBE_STRATEGIC_PATCH, resource, ns, name, subresource);

    action->predicted = keep_prediction(plan, predicted);
    action->request.body = version ? with_version(plan, patch, version) : keep_json(plan, patch);
    return action;
}

/* Whether a JSON patch tests the uid or the version of an object that has none yet. */
static bool tests_for_none(const struct json_mut *patch_array)
{
    auto_json_doc struct json_doc *doc = json_freeze(patch_array);
    struct json_iter iter = json_iter(json_root(doc));
    const struct json *op;

    while (json_next_item(&iter, &op)) {
        struct str path = json_str(json_get(op, "path"));

        if (str_is(json_str(json_get(op, "op")), "test") &&
            (str_is(path, "/metadata/uid") || str_is(path, "/metadata/resourceVersion")) &&
            json_str(json_get(op, "value")).len == 0)
            return true;
    }
    return false;
}

/* The version that the cache has of an object; NULL when it is not there. */
static const char *version_in(const struct kube_cache *cache, const struct kube_resource *resource,
                              const char *ns, const char *name)
{
    const struct kube_object *object =
        cache ? kube_cache_get(cache, resource->namespaced && ns ? ns : "", name) : NULL;

    return object ? object->version : NULL;
}

struct action *plan_json_patch(struct plan *plan, struct kube_cache *cache,
                               const struct kube_resource *resource, const char *ns,
                               const char *name, const char *subresource,
                               const struct json_mut *patch_array, const struct json_mut *predicted)
{
    const char *what = describe(plan, "patch", resource, ns, name, subresource);

    if (is_only_predicted(plan, tests_for_none(patch_array) ? "" : NULL, what) ||
        is_only_predicted(plan, version_in(cache, resource, ns, name), what))
        return NULL;

    struct action *action =
        add_kube(plan, cache, what, KUBE_JSON_PATCH, resource, ns, name, subresource);

    action->predicted = keep_prediction(plan, predicted);
    action->request.body = keep_json(plan, patch_array);
    return action;
}

struct action *plan_delete(struct plan *plan, struct kube_cache *cache,
                           const struct kube_resource *resource, const char *ns, const char *name,
                           const char *uid, const char *version)
{
    return plan_delete_within(plan, cache, resource, ns, name, uid, version, 0);
}

struct action *plan_delete_within(struct plan *plan, struct kube_cache *cache,
                                  const struct kube_resource *resource, const char *ns,
                                  const char *name, const char *uid, const char *version,
                                  int64_t grace_s)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *body = json_new_object(build);
    struct json_mut *preconditions;
    const char *what = describe(plan, "delete", resource, ns, name, NULL);

    if (is_only_predicted(plan, uid, what) || is_only_predicted(plan, version, what))
        return NULL;

    struct action *action = add_kube(plan, cache, what, KUBE_DELETE, resource, ns, name, NULL);

    json_put_text(build, body, "apiVersion", "v1");
    json_put_text(build, body, "kind", "DeleteOptions");
    json_put_text(build, body, "propagationPolicy", "Background");
    if (grace_s > 0)
        json_put_i64(build, body, "gracePeriodSeconds", grace_s);
    preconditions = json_put_object(build, body, "preconditions");
    json_put_text(build, preconditions, "uid", uid);
    if (version)
        json_put_text(build, preconditions, "resourceVersion", version);
    action->request.body = keep_json(plan, body);
    action->missing_is_fine = true;
    return action;
}

/* What of the metadata goes with a bind: labels and annotations, nothing else. */
static void put_marks(struct json_build *build, struct json_mut *into,
                      const struct json_mut *metadata)
{
    static const char *const marks[] = { "labels", "annotations" };

    for (size_t i = 0; metadata && i < sizeof(marks) / sizeof(marks[0]); i++) {
        const struct json_mut *mark = json_mut_get(metadata, str_of(marks[i]));

        if (mark)
            json_put(build, into, marks[i], copy_of(build, mark));
    }
}

static struct str bind_body(struct plan *plan, const struct action *action, const char *uid,
                            const char *node, const struct json_mut *metadata)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *body = json_new_object(build);
    struct json_mut *meta, *target;

    json_put_text(build, body, "apiVersion", "v1");
    json_put_text(build, body, "kind", "Binding");
    meta = json_put_object(build, body, "metadata");
    json_put_text(build, meta, "name", action->request.name);
    json_put_text(build, meta, "namespace", action->request.ns);
    json_put_text(build, meta, "uid", uid);
    put_marks(build, meta, metadata);
    target = json_put_object(build, body, "target");
    json_put_text(build, target, "apiVersion", "v1");
    json_put_text(build, target, "kind", "Node");
    json_put_text(build, target, "name", node);
    return keep_json(plan, body);
}

static struct str bind_effect(struct plan *plan, const char *node, const struct json_mut *metadata)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *patch = json_new_object(build);

    json_put_text(build, json_put_object(build, patch, "spec"), "nodeName", node);
    if (metadata)
        put_marks(build, json_put_object(build, patch, "metadata"), metadata);
    return keep_json(plan, patch);
}

static bool is_bound_or_ends(const struct kube_object *found)
{
    return kube_pod_of(found)->node_name[0] || found->deleted_us;
}

struct action *plan_bind(struct plan *plan, struct kube_cache *cache, const char *ns,
                         const char *pod, const char *uid, const char *node,
                         const struct json_mut *metadata)
{
    const char *to = arena_printf(plan->arena, "to %s", node);
    const char *what = describe(plan, "bind", &kube_pods, ns, pod, to);

    if (is_only_predicted(plan, uid, what))
        return NULL;

    struct action *action =
        add_kube(plan, cache, what, KUBE_CREATE, &kube_pods, ns, pod, "binding");

    action->request.body = bind_body(plan, action, uid, node, metadata);
    action->predicted = bind_effect(plan, node, metadata);
    action->is_settled = is_bound_or_ends;
    return action;
}

/* ---- as text ---- */

static void put_json_text(struct json_build *build, struct json_mut *into, const char *key,
                          struct str text)
{
    auto_json_doc struct json_doc *doc = NULL;

    if (text.len == 0)
        return;
    if (json_parse(text, MAX_BODY, &doc, NULL) == 0)
        json_put(build, into, key, json_copy(build, json_root(doc)));
    else
        json_put_str(build, into, key, text);
}

static void put_request(struct json_build *build, struct json_mut *into,
                        const struct kube_request *request)
{
    auto_buf struct buf path;

    buf_init(&path, MAX_PATH);
    kube_path(&path, request->resource, request->ns, request->name, request->subresource);
    if (request->query)
        buf_printf(&path, "?%s", request->query);
    json_put_text(build, into, "verb", kube_verb_name(request->verb));
    json_put_text(build, into, "path", buf_text(&path));
    put_json_text(build, into, "body", request->body);
}

static struct json_mut *action_json(struct json_build *build, const struct action *action)
{
    struct json_mut *into = json_new_object(build);
    auto_buf struct buf detail;

    json_put_u64(build, into, "stage", action->stage);
    json_put_text(build, into, "type", action->type->name);
    json_put_text(build, into, "what", action->what);
    if (action->type == &action_kube)
        put_request(build, into, &action->request);
    if (action->missing_is_fine)
        json_put_bool(build, into, "missingIsFine", true);
    if (action->existing_is_fine)
        json_put_bool(build, into, "existingIsFine", true);

    buf_init(&detail, MAX_BODY);
    if (action->type->write)
        action->type->write(action, &detail);
    put_json_text(build, into, "detail", buf_str(&detail));
    return into;
}

void plan_write(const struct plan *plan, struct buf *out)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = json_new_object(build);
    struct json_mut *actions = json_put_array(build, root, "actions");

    list_each (const struct action, action, &plan->actions, link)
        json_push(actions, action_json(build, action));
    if (!list_is_empty(&plan->enqueues)) {
        struct json_mut *keys = json_put_array(build, root, "enqueues");

        list_each (const struct plan_key, other, &plan->enqueues, link)
            json_push_str(build, keys, other->key);
    }
    if (plan->look_again_us > 0)
        json_put_i64(build, root, "lookAgainUs", plan->look_again_us);
    if (plan->waits)
        json_put_text(build, root, "waits", plan->waits);

    auto_json_doc struct json_doc *doc = json_freeze(root);

    json_write_canonical(json_root(doc), out);
}
