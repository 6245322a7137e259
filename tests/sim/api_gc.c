/* api_gc.c - what a cluster's own controllers do behind everybody's back, one step at a time.
 *
 * Namespaces that are being deleted are emptied and then removed; objects whose owners are all gone
 * are deleted; owners deleted in the foreground wait for their dependents, those that orphan them
 * cut the tie first. Each step is one write, made through the same verbs as everybody's. */
#include "api_private.h"

static const char user[] = "controllers";

static void send(struct api_store *store, const char *method, const struct api_kind *kind,
                 const struct json *object, struct str body)
{
    struct str ns = api_meta_str(object, "namespace"), name = api_meta_str(object, "name");
    auto_buf struct buf target;
    struct api_answer answer;

    buf_init(&target, 2000);
    buf_add_text(&target, *kind->group ? "/apis/" : "/api/");
    api_write_api_version(&target, kind);
    if (ns.len > 0)
        buf_printf(&target, "/namespaces/" STR_FMT, STR_ARG(ns));
    buf_printf(&target, "/%s/" STR_FMT, kind->plural, STR_ARG(name));
    api_answer_init(&answer);
    api_serve(store,
              &(struct api_request){ method, buf_str(&target), STR("application/merge-patch+json"),
                                     body, user },
              &answer);
    api_answer_done(&answer);
}

/* ---- namespaces ---- */

static void remove_namespace(struct api_store *store, const struct json *ns)
{
    struct arena arena;
    auto_json_build struct json_build *build = json_build_new();
    struct api_table *table = api_table_of(store, "namespaces");
    struct api_call call = { .store = store,
                             .arena = &arena,
                             .build = build,
                             .table = table,
                             .kind = table->kind,
                             .user = user };
    struct str name = api_meta_str(ns, "name");

    arena_init(&arena, 10000);
    (void)api_commit(&call, arena_printf(&arena, "/" STR_FMT, STR_ARG(name)), NULL);
    arena_done(&arena);
}

/* One object of the namespace is deleted; without any left, the namespace itself. */
static bool empty_namespace(struct api_store *store, const struct json *ns)
{
    bool empty = true;

    for (unsigned i = 0; i < store->table_count; i++) {
        struct api_table *table = &store->tables[i];

        map_each (item, &table->objects) {
            const struct json *object = api_root(item->value);

            if (!str_eq(api_meta_str(object, "namespace"), api_meta_str(ns, "name")))
                continue;
            empty = false;
            if (api_is_deleting(object))
                continue;
            send(store, "DELETE", table->kind, object, STR(""));
            return true;
        }
    }
    if (empty)
        remove_namespace(store, ns);
    return empty;
}

static bool step_namespaces(struct api_store *store)
{
    map_each (item, &api_table_of(store, "namespaces")->objects) {
        const struct json *ns = api_root(item->value);

        if (api_is_deleting(ns) && empty_namespace(store, ns))
            return true;
    }
    return false;
}

/* ---- owners ---- */

static bool is_owned_by(const struct json *object, struct str uid)
{
    struct json_iter iter = json_iter(json_at(object, "metadata", "ownerReferences"));
    const struct json *owner;

    while (json_next_item(&iter, &owner))
        if (str_eq(json_str(json_get(owner, "uid")), uid))
            return true;
    return false;
}

static bool has_lost_all_owners(const struct api_store *store, const struct json *object)
{
    const struct json *owners = json_at(object, "metadata", "ownerReferences");
    struct json_iter iter = json_iter(owners);
    const struct json *owner;

    while (json_next_item(&iter, &owner))
        if (map_has(&store->uids, json_str(json_get(owner, "uid"))))
            return false;
    return json_len(owners) > 0;
}

static bool has_finalizer(const struct json *object, const char *name)
{
    struct json_iter iter = json_iter(json_at(object, "metadata", "finalizers"));
    const struct json *item;

    while (json_next_item(&iter, &item))
        if (str_is(json_str(item), name))
            return true;
    return false;
}

/* The list without the item for which `drop` says so, as a merge patch of one metadata field. */
static void patch_without(struct api_store *store, const struct api_kind *kind,
                          const struct json *object, const char *field, struct str text)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_buf struct buf body;
    struct json_mut *patch = json_new_object(build), *rest = json_new_array(build);
    struct json_iter iter = json_iter(json_at(object, "metadata", field));
    const struct json *item;

    while (json_next_item(&iter, &item))
        if (!str_eq(json_is_string(item) ? json_str(item) : json_str(json_get(item, "uid")), text))
            json_push(rest, json_copy(build, item));
    json_put_at(build, patch, rest, "metadata", field);
    buf_init(&body, API_MAX_BODY);
    json_mut_write(patch, &body);
    send(store, "PATCH", kind, object, buf_str(&body));
}

/* The next dependent of an owner, with its kind; NULL when there is none. */
static const struct json *dependent_of(struct api_store *store, struct str uid, bool untouched,
                                       const struct api_kind **ret_kind)
{
    for (unsigned i = 0; i < store->table_count; i++)
        map_each (item, &store->tables[i].objects) {
            const struct json *object = api_root(item->value);

            if (!is_owned_by(object, uid) || (untouched && api_is_deleting(object)))
                continue;
            *ret_kind = store->tables[i].kind;
            return object;
        }
    return NULL;
}

static bool step_waiting_owner(struct api_store *store, const struct api_kind *kind,
                               const struct json *owner)
{
    bool foreground = has_finalizer(owner, "foregroundDeletion");
    const struct api_kind *of = NULL;
    struct str uid = api_meta_str(owner, "uid");
    const struct json *dependent;

    if (!foreground && !has_finalizer(owner, "orphan"))
        return false;
    dependent = dependent_of(store, uid, foreground, &of);
    if (dependent && foreground)
        send(store, "DELETE", of, dependent, STR(""));
    else if (dependent)
        patch_without(store, of, dependent, "ownerReferences", uid);
    else if (foreground && dependent_of(store, uid, false, &of))
        return false; /* they are on their way */
    else
        patch_without(store, kind, owner, "finalizers",
                      str_of(foreground ? "foregroundDeletion" : "orphan"));
    return true;
}

static bool step_object(struct api_store *store, const struct api_kind *kind,
                        const struct json *object)
{
    if (api_is_deleting(object))
        return step_waiting_owner(store, kind, object);
    if (!has_lost_all_owners(store, object))
        return false;
    send(store, "DELETE", kind, object, STR(""));
    return true;
}

bool api_store_has_work(const struct api_store *store)
{
    return store->may_have_work;
}

bool api_store_step(struct api_store *store)
{
    if (!store->may_have_work)
        return false;
    if (step_namespaces(store))
        return true;
    for (unsigned i = 0; i < store->table_count; i++)
        map_each (item, &store->tables[i].objects) {
            if (step_object(store, store->tables[i].kind, api_root(item->value)))
                return true;
        }
    store->may_have_work = false;
    return false;
}
