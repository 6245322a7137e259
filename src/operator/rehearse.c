/* rehearse.c - what the operator would do first in a world, told and not done. */
#include "operator/rehearse.h"

#include "codec/patch.h"
#include "kube/kinds.h"
#include "operator/admit_rules.h"
#include "operator/plans.h"

enum { MAX_PLAN = 64 << 20, MAX_TEXT = 4096, MAX_PATHS = 8, MAX_BODY = 16 << 20 };

struct rehearsal {
    const struct operator_world *world;
    struct arena arena; /* of the plan that is read */
    rehearse_tell tell;
    void *context;
};

/* ---- where two values differ ---- */

struct differences {
    struct arena *arena;
    struct buf *out;
    unsigned count;
    bool images;       /* these are told first, and alone */
    bool with_removed; /* also what the new value does not name */
};

static void add_difference(struct differences *all, const char *path, const struct json *from,
                           const struct json *to)
{
    struct str was = json_str(from), is = json_str(to);
    bool is_image = str_ends(str_of(path), STR(".image")) && was.len > 0 && is.len > 0;

    if (is_image != all->images)
        return;
    if (all->count++ >= MAX_PATHS) {
        if (all->count == MAX_PATHS + 1)
            buf_add_text(all->out, " ...");
        return;
    }
    buf_printf(all->out, "%s%s", all->count > 1 ? ", " : "", path);
    if (is_image)
        buf_printf(all->out, " (" STR_FMT " becomes " STR_FMT ")", STR_ARG(was), STR_ARG(is));
}

/* The item with the same name, or else at the same place. */
static const struct json *item_like(const struct json *array, const struct json *item, size_t index)
{
    struct str name = json_str(json_get(item, "name"));
    struct json_iter iter = json_iter(array);
    const struct json *one;

    if (name.len == 0)
        return json_item(array, index);
    while (json_next_item(&iter, &one))
        if (str_eq(json_str(json_get(one, "name")), name))
            return one;
    return NULL;
}

static void compare(struct differences *all, const char *path, const struct json *from,
                    const struct json *to);

static void compare_items(struct differences *all, const char *path, const struct json *from,
                          const struct json *to)
{
    struct json_iter iter = json_iter(to);
    const struct json *item;

    for (size_t i = 0; json_next_item(&iter, &item); i++) {
        struct str name = json_str(json_get(item, "name"));

        compare(all,
                name.len > 0 ? arena_printf(all->arena, "%s[" STR_FMT "]", path, STR_ARG(name))
                             : arena_printf(all->arena, "%s[%zu]", path, i),
                item_like(from, item, i), item);
    }
    if (all->with_removed && json_len(from) > json_len(to))
        add_difference(all, path, NULL, NULL);
}

static void compare_members(struct differences *all, const char *path, const struct json *from,
                            const struct json *to)
{
    struct json_iter iter = json_iter(to);
    const struct json *value;
    struct str key;

    while (json_next_member(&iter, &key, &value))
        compare(all,
                arena_printf(all->arena, "%s%s" STR_FMT, path, path[0] ? "." : "", STR_ARG(key)),
                json_get_str(from, key), value);
    iter = json_iter(all->with_removed ? from : NULL);
    while (json_next_member(&iter, &key, &value))
        if (!json_get_str(to, key))
            compare(
                all,
                arena_printf(all->arena, "%s%s" STR_FMT, path, path[0] ? "." : "", STR_ARG(key)),
                value, NULL);
}

static void compare(struct differences *all, const char *path, const struct json *from,
                    const struct json *to)
{
    if ((!json_exists(from) && !json_exists(to)) || json_equal(from, to))
        return;
    if (json_is_object(from) && json_is_object(to))
        compare_members(all, path, from, to);
    else if (json_is_array(from) && json_is_array(to))
        compare_items(all, path, from, to);
    else
        add_difference(all, path, from, to);
}

bool operator_rehearse_paths(const struct json *from, const struct json *to, struct buf *out)
{
    auto_arena struct arena arena;
    struct differences all = { .arena = &arena, .out = out, .images = true };

    arena_init(&arena, MAX_PLAN);
    compare(&all, "", from, to);
    all.images = false;
    compare(&all, "", from, to);
    all.with_removed = all.count == 0; /* a stored object has defaults of the server's, too */
    if (all.with_removed)
        compare(&all, "", from, to);
    return !all.with_removed;
}

/* ---- one action ---- */

static void tell(const struct rehearsal *rehearsal, enum rehearsed what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void tell(const struct rehearsal *rehearsal, enum rehearsed what, const char *format, ...)
{
    auto_buf struct buf text = { .max = MAX_TEXT };
    va_list args;

    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    rehearsal->tell(rehearsal->context, what, buf_text(&text));
}

/* What a patch changes in an object that is there. */
static void read_patch(const struct rehearsal *rehearsal, const struct action *action,
                       const struct json *body)
{
    const struct kube_request *request = &action->request;
    const struct kube_object *object =
        action->cache ? kube_cache_get(action->cache, request->ns, request->name) : NULL;
    const char *kind = request->resource->kind;
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *next = NULL;
    auto_buf struct buf paths = { .max = MAX_TEXT };
    bool rolls = json_exists(json_at(body, "spec", "template")), is_named;

    if (!object || kube_cache_kind(action->cache)->size > 0 || request->subresource ||
        request->resource == &kube_secrets)
        return; /* pods and Nodes get annotations; nothing is told of Secrets */
    next = json_freeze(patch_merge_apply(build, operator_tree(object), body));
    if (rolls)
        is_named = operator_rehearse_paths(json_at(operator_tree(object), "spec", "template"),
                                           json_at(json_root(next), "spec", "template"), &paths);
    else
        is_named = operator_rehearse_paths(json_get(operator_tree(object), "spec"),
                                           json_get(json_root(next), "spec"), &paths);
    if (!rolls)
        is_named |= operator_rehearse_paths(json_get(operator_tree(object), "data"),
                                            json_get(json_root(next), "data"), &paths);
    /* What is named no more is most often a default, which the server puts back at once. */
    if (paths.len > 0 && is_named)
        tell(rehearsal, rolls ? REHEARSED_ROLLS : REHEARSED_CHANGES, "%s %s/%s: %s%s", kind,
             object->ns, object->name, rolls ? "its pods are replaced: " : "", buf_text(&paths));
    else if (paths.len > 0 && rolls)
        tell(rehearsal, REHEARSED_CHANGES,
             "%s %s/%s: its pods are replaced only if one of these is no default: %s", kind,
             object->ns, object->name, buf_text(&paths));
}

/* The newest of the NodeSet's revisions that are stored. */
static const struct json *newest_revision(const struct operator_world *world,
                                          const struct kube_object *nodeset)
{
    struct kube_index_walk walk =
        kube_cache_by(world->revisions, world->pods_by_owner, str_of(nodeset->uid));
    const struct json *newest = NULL;
    const struct kube_object *one;

    while ((one = kube_index_next(&walk)))
        if (!newest || json_i64_or(json_get(operator_tree(one), "revision"), 0) >
                           json_i64_or(json_get(newest, "revision"), 0))
            newest = operator_tree(one);
    return newest;
}

/* Workers that exist get a revision that is new. */
static void read_revision(const struct rehearsal *rehearsal, const struct kube_object *nodeset,
                          const struct json *body)
{
    const struct operator_world *world = rehearsal->world;
    size_t workers = kube_cache_count_by(world->pods, world->pods_by_owner, str_of(nodeset->uid));
    bool waits =
        str_is(json_str(json_at(operator_spec(nodeset), "updateStrategy", "type")), "OnDelete");
    auto_buf struct buf paths = { .max = MAX_TEXT };

    if (workers == 0)
        return;
    operator_rehearse_paths(json_get(newest_revision(world, nodeset), "data"),
                            json_get(body, "data"), &paths);
    tell(rehearsal, waits ? REHEARSED_CHANGES : REHEARSED_ROLLS,
         "NodeSet %s/%s: its %zu workers %s: %s", nodeset->ns, nodeset->name, workers,
         waits ? "are of an old revision, and are replaced when somebody deletes them"
               : "are replaced, each after its drain",
         buf_text(&paths));
}

static void read_action(const struct rehearsal *rehearsal, const struct kube_object *object,
                        const struct action *action)
{
    const struct kube_request *request = &action->request;
    auto_json_doc struct json_doc *body = NULL;
    const char *kind;

    if (action->type != &action_kube)
        return;
    kind = request->resource->kind;
    if (request->body.len > 0 && json_parse(request->body, MAX_BODY, &body, NULL) < 0)
        return;
    if (request->verb == KUBE_DELETE && strcmp(kind, "Pod") == 0)
        tell(rehearsal, REHEARSED_ROLLS, "Pod %s/%s is deleted", request->ns, request->name);
    else if (request->verb == KUBE_CREATE && strcmp(kind, "ControllerRevision") == 0)
        read_revision(rehearsal, object, json_root(body));
    else if (request->verb == KUBE_MERGE_PATCH && strcmp(kind, object->kind->resource->kind) != 0)
        read_patch(rehearsal, action, json_root(body));
}

/* ---- all ---- */

/* The write of a plan to its own custom resource: a finalizer, which the other steps wait for.
 * NULL: there is none. */
static struct kube_overlay *lay_own_write(const struct kube_object *object, const struct plan *plan)
{
    list_each (const struct action, action, &plan->actions, link) {
        const struct kube_request *request = &action->request;
        struct json_doc *patch = NULL;

        if (action->type == &action_kube && request->verb == KUBE_MERGE_PATCH && action->cache &&
            !request->subresource && request->resource == object->kind->resource &&
            json_parse(action->predicted, MAX_BODY, &patch, NULL) == 0)
            return kube_overlay_patch(action->cache, object->ns, object->name, patch);
    }
    return NULL;
}

static void rehearse_one(struct rehearsal *rehearsal, const struct operator_plan *row,
                         const struct kube_object *object)
{
    const struct kube_cache *cache = operator_world_cache(rehearsal->world, row->kind);
    struct kube_overlay *own;
    struct plan plan;

    plan_init(&plan, &rehearsal->arena);
    row->plan(rehearsal->world, object, &plan);
    own = lay_own_write(object, &plan);
    if (own) {
        plan_clear(&plan);
        object = kube_cache_get(cache, object->ns, object->name);
        row->plan(rehearsal->world, object, &plan);
    }
    list_each (const struct action, action, &plan.actions, link)
        read_action(rehearsal, object, action);
    if (plan.failure)
        tell(rehearsal, REHEARSED_FAILS, "%s %s/%s: %s", row->kind, object->ns, object->name,
             plan.failure);
    plan_clear(&plan);
    if (own)
        kube_overlay_failed(own);
}

void operator_rehearse(const struct operator_world *world, rehearse_tell tell_one, void *context)
{
    struct rehearsal rehearsal = { .world = world, .tell = tell_one, .context = context };

    arena_init(&rehearsal.arena, MAX_PLAN);
    for (size_t i = 0; i < operator_plan_count; i++) {
        struct kube_cache_walk walk =
            kube_cache_walk(operator_world_cache(world, operator_plans[i].kind));
        const struct kube_object *object;

        while ((object = kube_cache_next(&walk)))
            if (object->deleted_us == 0)
                rehearse_one(&rehearsal, &operator_plans[i], object);
    }
    arena_done(&rehearsal.arena);
}

/* ---- the webhook ---- */

/* An review_find over the world; what is no kind of the operator is not known. */
static enum review_known find_in_world(void *context, struct str uid,
                                       const struct kube_resource *resource, struct str ns,
                                       struct str name, const struct json **ret_object)
{
    const struct rehearsal *rehearsal = context;
    struct kube_cache *cache = operator_world_cache(rehearsal->world, resource->kind);
    const struct kube_object *found;

    (void)uid;
    if (!cache || kube_cache_kind(cache)->size > 0)
        return REVIEW_CANNOT_BE_READ;
    found = kube_cache_get(cache, ns.at, name.at);
    if (!found)
        return REVIEW_ABSENT;
    *ret_object = operator_tree(found);
    return REVIEW_EXISTS;
}

static void tell_findings(const struct rehearsal *rehearsal, enum rehearsed what,
                          const struct admit_check *check, const struct admit_findings *findings)
{
    for (unsigned i = 0; i < findings->count; i++)
        tell(rehearsal, what, "%s " STR_FMT "/" STR_FMT ": " STR_FMT, check->kind,
             STR_ARG(check->ns), STR_ARG(check->name), STR_ARG(findings->at[i]));
}

void operator_rehearse_review(const struct operator_world *world, const char *kind,
                              const struct json *old, const struct json *object,
                              rehearse_tell tell_one, void *context)
{
    struct rehearsal rehearsal = { .world = world, .tell = tell_one, .context = context };
    struct admit_check check = { .kind = kind,
                                 .ns = json_str(json_at(object, "metadata", "namespace")),
                                 .name = json_str(json_at(object, "metadata", "name")),
                                 .object = object,
                                 .old = old,
                                 .arena = &rehearsal.arena,
                                 .find = find_in_world,
                                 .find_context = &rehearsal };

    arena_init(&rehearsal.arena, MAX_PLAN);
    admit_check(&check);
    tell_findings(&rehearsal, REHEARSED_REFUSED, &check, &check.mistyped);
    tell_findings(&rehearsal, REHEARSED_REFUSED, &check, &check.denials);
    tell_findings(&rehearsal, REHEARSED_WARNED, &check, &check.warnings);
    arena_done(&rehearsal.arena);
}
