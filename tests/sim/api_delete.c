/* api_delete.c - deletion: preconditions, finalizers, grace, and what happens to dependents.
 *
 * An object goes at once, or is marked (deletionTimestamp) and goes when the last finalizer has
 * been taken away and the grace period has become 0. Pods wait for whoever runs them: the real one
 * is the kubelet, here it is the test, which deletes once more with a grace period of 0. */
#include "api_private.h"

struct ask {
    const struct json *uid, *version; /* preconditions; absent: none. "" is one that fails */
    int64_t grace;                    /* -1: the default */
    struct str propagation;
};

static int read_ask(struct api_call *call, struct ask *ask)
{
    const struct json *preconditions = json_get(call->body, "preconditions");
    struct str grace = api_query(call, "gracePeriodSeconds");

    *ask = (struct ask){ .uid = json_get(preconditions, "uid"),
                         .version = json_get(preconditions, "resourceVersion"),
                         .grace = json_i64_or(json_get(call->body, "gracePeriodSeconds"), -1),
                         .propagation = json_str(json_get(call->body, "propagationPolicy")) };
    if (grace.len > 0 && str_to_i64(grace, 0, INT32_MAX, &ask->grace, NULL) < 0)
        return api_refuse_bad_request(call, "invalid gracePeriodSeconds");
    if (ask->propagation.len == 0)
        ask->propagation = api_query(call, "propagationPolicy");
    return 0;
}

static int check_preconditions(struct api_call *call, const struct json *old, const struct ask *ask)
{
    struct str uid = api_meta_str(old, "uid"), version = api_meta_str(old, "resourceVersion");

    if (json_exists(ask->uid) && !str_eq(json_str(ask->uid), uid))
        return api_refuse_stale_precondition(call, "UID", json_str(ask->uid), uid);
    if (json_exists(ask->version) && !str_eq(json_str(ask->version), version))
        return api_refuse_stale_precondition(call, "ResourceVersion", json_str(ask->version),
                                             version);
    return 0;
}

/* How long the one who runs it may take. */
static int64_t grace_of(const struct api_call *call, const struct json *old, const struct ask *ask)
{
    struct str phase = json_str(json_at(old, "status", "phase"));

    if (!(call->kind->traits & API_GRACEFUL) ||
        json_str(json_at(old, "spec", "nodeName")).len == 0 || str_is(phase, "Succeeded") ||
        str_is(phase, "Failed"))
        return 0;
    if (ask->grace >= 0)
        return ask->grace;
    return json_i64_or(json_at(old, "spec", "terminationGracePeriodSeconds"), 30);
}

static void add_finalizer(struct api_call *call, struct json_mut *object, struct str name)
{
    struct json_mut *metadata = api_metadata(call, object);
    struct json_mut *finalizers = json_mut_get(metadata, STR("finalizers"));

    if (!finalizers)
        finalizers = json_put_array(call->build, metadata, "finalizers");
    json_push_str(call->build, finalizers, name);
}

/* Foreground and Orphan are finalizers that the garbage collector takes away (api_gc.c). */
static struct str dependents_finalizer(const struct ask *ask)
{
    if (str_is(ask->propagation, "Foreground"))
        return STR("foregroundDeletion");
    return str_is(ask->propagation, "Orphan") ? STR("orphan") : STR("");
}

static struct json_mut *marked(struct api_call *call, const struct json *old, const struct ask *ask,
                               int64_t grace)
{
    struct json_mut *next = json_copy(call->build, old);
    struct json_mut *metadata = api_metadata(call, next);
    int64_t generation = json_i64_or(json_at(old, "metadata", "generation"), 0);
    int64_t already =
        json_i64_or(json_at(old, "metadata", "deletionGracePeriodSeconds"), INT64_MAX);
    bool first = !api_is_deleting(old);

    if (first && dependents_finalizer(ask).len > 0)
        add_finalizer(call, next, dependents_finalizer(ask));
    if (first && generation > 0)
        json_put_i64(call->build, metadata, "generation", generation + 1);
    if (first || grace < already) {
        api_put_time(call, metadata, "deletionTimestamp", grace);
        json_put_i64(call->build, metadata, "deletionGracePeriodSeconds", grace);
    }
    return next;
}

static int delete_namespace(struct api_call *call, const struct api_doc *old, const char *key)
{
    struct json_mut *next = json_copy(call->build, api_root(old));

    if (!api_is_deleting(api_root(old)))
        api_put_time(call, api_metadata(call, next), "deletionTimestamp", 0);
    json_put_at(call->build, next, json_new_str(call->build, STR("Terminating")), "status",
                "phase");
    api_answer_object(call, 200, api_root(api_commit(call, key, next)));
    return 0;
}

static void answer_gone(struct api_call *call, const char *key, struct str uid)
{
    const struct api_doc *gone = api_commit(call, key, NULL);

    if (call->kind->traits & API_RETURNS_DELETED)
        api_answer_object(call, 200, api_root(gone));
    else
        api_answer_deleted(call, call->name, uid);
}

static int delete_object(struct api_call *call, const struct api_doc *old, const char *key,
                         const struct ask *ask)
{
    const struct json *root = api_root(old);
    int64_t grace = grace_of(call, root, ask);
    struct str uid = api_meta_str(root, "uid");
    bool stays = grace > 0 || api_has_finalizers(root) || dependents_finalizer(ask).len > 0;

    uid = str_of(arena_strndup(call->arena, uid.at, uid.len));
    if (stays || (call->kind->traits & API_GRACEFUL)) {
        const struct api_doc *next = api_commit(call, key, marked(call, root, ask, grace));

        if (stays) {
            api_answer_object(call, 200, api_root(next));
            return 0;
        }
    }
    answer_gone(call, key, uid);
    return 0;
}

int api_do_delete(struct api_call *call)
{
    const char *key = api_key(call->arena, call->ns, call->name);
    const struct api_doc *old = api_get(call->table, key);
    struct ask ask;
    int result;

    if (!old)
        return api_refuse_not_found(call, call->kind, call->name);
    if ((result = read_ask(call, &ask)) < 0 ||
        (result = check_preconditions(call, api_root(old), &ask)) < 0 ||
        (result = api_run_hooks(call, api_root(old), NULL)) < 0)
        return result;
    if (strcmp(call->kind->plural, "namespaces") == 0)
        return delete_namespace(call, old, key);
    return delete_object(call, old, key, &ask);
}
