/* api_store.c - the storage of the API server model: tables of objects, one count of versions, and
 * the history that watches and pages read.
 *
 * Holds: every write has its own version; the history between `compacted` and `version` is whole;
 * an object once written never changes, a newer one takes its place. */
#include "api_store.h"

#include "api_private.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

/* The kinds every cluster has, as far as we speak to them. */
static const struct api_kind builtin_kinds[] = {
    { "", "v1", "namespaces", "Namespace", API_HAS_STATUS | API_RETURNS_DELETED | API_LABEL_NAME },
    { "", "v1", "nodes", "Node", API_HAS_STATUS },
    { "", "v1", "configmaps", "ConfigMap", API_NAMESPACED },
    { "", "v1", "secrets", "Secret", API_NAMESPACED },
    { "", "v1", "services", "Service",
      API_NAMESPACED | API_HAS_STATUS | API_RETURNS_DELETED | API_LABEL_NAME },
    { "", "v1", "events", "Event", API_NAMESPACED | API_UPSERTS },
    { "", "v1", "pods", "Pod",
      API_NAMESPACED | API_HAS_STATUS | API_HAS_GENERATION | API_RETURNS_DELETED | API_GRACEFUL },
    { "", "v1", "persistentvolumes", "PersistentVolume", API_HAS_STATUS },
    { "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim",
      API_NAMESPACED | API_HAS_STATUS },
    { "storage.k8s.io", "v1", "storageclasses", "StorageClass", 0 },
    { "storage.k8s.io", "v1", "csinodes", "CSINode", 0 },
    { "apps", "v1", "statefulsets", "StatefulSet",
      API_NAMESPACED | API_HAS_STATUS | API_HAS_GENERATION },
    { "coordination.k8s.io", "v1", "leases", "Lease",
      API_NAMESPACED | API_UPSERTS | API_NEEDS_VERSION },
    { "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", API_NOT_STORED },
    { "authentication.k8s.io", "v1", "tokenreviews", "TokenReview", API_NOT_STORED },
};

/* ---- versions of objects ---- */

struct api_doc *api_doc_ref(struct api_doc *doc)
{
    if (doc)
        doc->refs++;
    return doc;
}

void api_doc_unref(struct api_doc *doc)
{
    if (!doc || --doc->refs > 0)
        return;
    json_doc_free(doc->doc);
    mem_free(doc);
}

static void unref_value(void *doc)
{
    api_doc_unref(doc);
}

const struct json *api_root(const struct api_doc *doc)
{
    return doc ? json_root(doc->doc) : NULL;
}

static struct api_doc *freeze_as(struct json_build *build, struct json_mut *object,
                                 uint64_t version)
{
    struct api_doc *doc = mem_alloc(sizeof(*doc));
    char number[24];

    (void)snprintf(number, sizeof(number), "%llu", (unsigned long long)version);
    json_put_at(build, object, json_new_str(build, str_of(number)), "metadata", "resourceVersion");
    *doc = (struct api_doc){ .refs = 1, .version = version, .doc = json_freeze(object) };
    return doc;
}

/* ---- the store ---- */

void api_store_add_kind(struct api_store *store, const struct api_kind *kind)
{
    if (store->table_count == API_MAX_KINDS)
        abort();
    struct api_table *table = &store->tables[store->table_count++];

    table->kind = kind;
    map_init(&table->objects,
             &(struct map_options){ .max = API_MAX_OBJECTS, .free_value = unref_value });
}

static void add_namespace(struct api_store *store, const char *name)
{
    struct api_answer answer;
    struct buf body;

    api_answer_init(&answer);
    buf_init(&body, 1000);
    buf_printf(&body, "{\"metadata\":{\"name\":\"%s\"}}", name);
    api_serve(store,
              &(struct api_request){ "POST", STR("/api/v1/namespaces"), STR("application/json"),
                                     buf_str(&body), "system" },
              &answer);
    buf_done(&body);
    api_answer_done(&answer);
}

struct api_store *api_store_new(const struct clock *clock, uint64_t seed)
{
    struct api_store *store = mem_alloc(sizeof(*store));

    store->clock = clock;
    rand_init(&store->rand, seed);
    map_init(&store->uids, &(struct map_options){ .max = (size_t)API_MAX_OBJECTS * 4 });
    for (size_t i = 0; i < sizeof(builtin_kinds) / sizeof(builtin_kinds[0]); i++)
        api_store_add_kind(store, &builtin_kinds[i]);
    add_namespace(store, "default");
    add_namespace(store, "kube-system");
    return store;
}

static void event_done(struct api_event *event)
{
    mem_free(event->key);
    api_doc_unref(event->old);
    api_doc_unref(event->next);
    api_doc_unref(event->gone);
}

void api_store_free(struct api_store *store)
{
    if (!store)
        return;
    for (size_t i = 0; i < store->event_count; i++)
        event_done(&store->events[i]);
    mem_free(store->events);
    for (unsigned i = 0; i < store->table_count; i++)
        map_done(&store->tables[i].objects);
    map_done(&store->uids);
    mem_free(store);
}

uint64_t api_store_version(const struct api_store *store)
{
    return store->version;
}

char *api_key(struct arena *arena, const char *ns, const char *name)
{
    return arena_printf(arena, "%s/%s", ns, name);
}

struct api_doc *api_get(const struct api_table *table, const char *key)
{
    return map_get(&table->objects, str_of(key));
}

/* "podgroups", or "podgroups.scheduling.x-k8s.io" where two groups have one. */
static bool is_named(const struct api_kind *kind, const char *plural)
{
    size_t length = strlen(kind->plural);

    return strncmp(kind->plural, plural, length) == 0 &&
           (!plural[length] ||
            (plural[length] == '.' && strcmp(kind->group, plural + length + 1) == 0));
}

struct api_table *api_table_of(const struct api_store *store, const char *plural)
{
    for (unsigned i = 0; i < store->table_count; i++)
        if (is_named(store->tables[i].kind, plural))
            return (struct api_table *)&store->tables[i];
    return NULL;
}

const struct json *api_store_find(const struct api_store *store, const char *plural, const char *ns,
                                  const char *name)
{
    const struct api_table *table = api_table_of(store, plural);
    char key[600];

    (void)snprintf(key, sizeof(key), "%s/%s", ns, name);
    return table ? api_root(api_get(table, key)) : NULL;
}

void api_store_visit(const struct api_store *store, const char *plural, api_visit visit,
                     void *context)
{
    const struct api_table *table = api_table_of(store, plural);

    if (!table)
        return;
    map_each (item, &table->objects)
        visit(context, api_root(item->value));
}

void api_store_listen(struct api_store *store, api_listener listener, void *context)
{
    if (store->listener_count == API_MAX_HOOKS)
        abort();
    store->listeners[store->listener_count].listener = listener;
    store->listeners[store->listener_count++].context = context;
}

void api_store_admit(struct api_store *store, api_hook hook, void *context)
{
    if (store->hook_count == API_MAX_HOOKS)
        abort();
    store->hooks[store->hook_count].hook = hook;
    store->hooks[store->hook_count++].context = context;
}

/* ---- history ---- */

void api_store_compact(struct api_store *store, uint64_t version)
{
    size_t drop = 0;

    while (drop < store->event_count && store->events[drop].version <= version)
        event_done(&store->events[drop++]);
    store->event_count -= drop;
    memmove(store->events, store->events + drop, store->event_count * sizeof(*store->events));
    if (version > store->compacted)
        store->compacted = version > store->version ? store->version : version;
}

static void remember(struct api_store *store, const struct api_event *event)
{
    if (store->event_count >= API_HISTORY)
        api_store_compact(store, store->events[API_HISTORY / 2].version);
    if (store->event_count == store->event_capacity) {
        store->event_capacity = store->event_capacity ? store->event_capacity * 2 : 256;
        store->events =
            mem_resize_array(store->events, store->event_capacity, sizeof(*store->events));
    }
    store->events[store->event_count++] = *event;
}

static void tell(struct api_store *store, const struct api_event *event, const char *user)
{
    const struct api_change change = { .kind = event->kind,
                                       .user = user,
                                       .version = event->version,
                                       .old = api_root(event->old),
                                       .next = api_root(event->next) };

    for (unsigned i = 0; i < store->listener_count; i++)
        store->listeners[i].listener(store->listeners[i].context, &change);
}

static void note_uid(struct api_store *store, const struct api_doc *old, const struct api_doc *next)
{
    if (!next)
        (void)map_remove(&store->uids, api_meta_str(api_root(old), "uid"));
    else if (!old && map_put(&store->uids, api_meta_str(api_root(next), "uid"), NULL, NULL) < 0)
        abort();
}

/* Whether the tree says anything new; both carry the old resourceVersion when compared. */
static bool says_the_same(const struct api_doc *old, struct json_mut *next)
{
    struct json_doc *frozen = json_freeze(next);
    bool same = json_equal(json_root(old->doc), json_root(frozen));

    json_doc_free(frozen);
    return same;
}

static struct api_doc *last_words(struct api_call *call, const struct api_doc *old,
                                  uint64_t version)
{
    return freeze_as(call->build, json_copy(call->build, api_root(old)), version);
}

struct api_doc *api_commit(struct api_call *call, const char *key, struct json_mut *next)
{
    struct api_store *store = call->store;
    struct api_doc *old = api_doc_ref(api_get(call->table, key));
    struct api_event event = { .kind = call->kind, .old = old };

    if (old && next && says_the_same(old, next)) {
        api_doc_unref(old);
        return old;
    }
    event.version = ++store->version;
    event.key = mem_strdup(key);
    if (next) {
        event.next = freeze_as(call->build, next, event.version);
        if (map_put(&call->table->objects, str_of(key), api_doc_ref(event.next), NULL) < 0)
            abort();
    } else {
        event.gone = last_words(call, old, event.version);
        (void)map_remove(&call->table->objects, str_of(key));
    }
    note_uid(store, old, event.next);
    store->may_have_work = true;
    remember(store, &event);
    tell(store, &event, call->user);
    return event.next ? event.next : event.gone;
}

/* ---- serving ---- */

void api_answer_init(struct api_answer *answer)
{
    *answer = (struct api_answer){ .status = 0 };
    buf_init(&answer->body, API_MAX_ANSWER);
}

void api_answer_done(struct api_answer *answer)
{
    buf_done(&answer->body);
}

struct verb {
    const char *method;
    bool on_object; /* needs a name, else must have none */
    const char *subresource;
    int (*run)(struct api_call *call);
};

static const struct verb verbs[] = {
    { "GET", true, "", api_do_get },       { "GET", true, "status", api_do_get },
    { "GET", false, "", api_do_list },     { "POST", false, "", api_do_create },
    { "PUT", true, "", api_do_update },    { "PUT", true, "status", api_do_update },
    { "PATCH", true, "", api_do_patch },   { "PATCH", true, "status", api_do_patch },
    { "DELETE", true, "", api_do_delete }, { "POST", true, "binding", api_do_bind },
};

static int run_verb(struct api_call *call)
{
    if (!call->table)
        return api_do_discover(call);
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        const struct verb *verb = &verbs[i];

        if (strcmp(verb->method, call->method) == 0 && verb->on_object == (*call->name != '\0') &&
            strcmp(verb->subresource, call->subresource) == 0)
            return verb->run(call);
    }
    return api_refuse_method(call);
}

void api_serve(struct api_store *store, const struct api_request *request,
               struct api_answer *answer)
{
    struct arena arena;
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *body = NULL;
    struct api_call call = { .store = store, .answer = answer, .arena = &arena, .build = build };

    arena_init(&arena, 256u << 20);
    call.text = request->body;
    if (request->body.len == 0 || json_parse(request->body, API_MAX_BODY, &body, NULL) == 0)
        call.body = json_root(body);
    if (api_route(&call, request) == 0)
        (void)run_verb(&call);
    arena_done(&arena);
}
