/* api_verbs.c - get, create, update and patch. */
#include "api_private.h"
#include "codec/patch.h"

int api_do_get(struct api_call *call)
{
    struct api_doc *doc = api_get(call->table, api_key(call->arena, call->ns, call->name));

    if (!doc)
        return api_refuse_not_found(call, call->kind, call->name);
    api_answer_object(call, 200, api_root(doc));
    return 0;
}

/* ---- what every write goes through ---- */

/* Go has no null in a typed object, and leaves out maps and lists that are empty. */
static struct json_mut *without_nulls(struct json_build *build, const struct json *value)
{
    struct json_iter iter = json_iter(value);
    const struct json *item;
    struct str key;

    if (json_is_object(value)) {
        struct json_mut *object = json_new_object(build);

        while (json_next_member(&iter, &key, &item))
            if (!json_is_null(item))
                json_put_key(build, object, key, without_nulls(build, item));
        return object;
    }
    if (json_is_array(value)) {
        struct json_mut *array = json_new_array(build);

        while (json_next_item(&iter, &item))
            json_push(array, without_nulls(build, item));
        return array;
    }
    return json_copy(build, value);
}

static void drop_empty(struct json_mut *object, const char *key)
{
    const struct json_mut *value = object ? json_mut_get(object, str_of(key)) : NULL;

    if (value && json_mut_type(value) >= JSON_ARRAY && json_mut_len(value) == 0)
        (void)json_remove(object, str_of(key));
}

/* Times of a condition are always written, null or not; which two depends on the kind. */
static void fill_conditions(struct api_call *call, struct json_mut *status, const char *probed)
{
    const char *const times[] = { probed, "lastTransitionTime" };
    const struct json_mut *conditions = status ? json_mut_get(status, STR("conditions")) : NULL;
    size_t count = conditions ? json_mut_len(conditions) : 0;

    for (size_t i = 0; i < count; i++)
        for (size_t at = 0; at < sizeof(times) / sizeof(times[0]); at++) {
            struct json_mut *condition = json_mut_item(conditions, i);

            if (!json_mut_get(condition, str_of(times[at])))
                json_put(call->build, condition, times[at], json_new_null(call->build));
        }
    drop_empty(status, "conditions");
}

/* As Go writes pods and nodes. */
static void normalise_builtin(struct api_call *call, struct json_mut *object)
{
    bool is_node = strcmp(call->kind->plural, "nodes") == 0;

    drop_empty(object, "data");
    drop_empty(object, "binaryData");
    if (is_node)
        drop_empty(json_mut_get(object, STR("spec")), "taints");
    if (is_node || strcmp(call->kind->plural, "pods") == 0)
        fill_conditions(call, json_mut_get(object, STR("status")),
                        is_node ? "lastHeartbeatTime" : "lastProbeTime");
}

void api_normalise(struct api_call *call, struct json_mut **object)
{
    static const char *const in_metadata[] = { "labels", "annotations", "finalizers",
                                               "ownerReferences" };
    auto_json_doc struct json_doc *frozen = json_freeze(*object);

    if (!(call->kind->traits & API_CUSTOM))
        *object = without_nulls(call->build, json_root(frozen));
    for (size_t i = 0; i < sizeof(in_metadata) / sizeof(in_metadata[0]); i++)
        drop_empty(api_metadata(call, *object), in_metadata[i]);
    if (!(call->kind->traits & API_CUSTOM))
        normalise_builtin(call, *object);
}

int api_run_hooks(struct api_call *call, const struct json *old, struct json_mut *next)
{
    struct api_store *store = call->store;
    const struct api_admission admission = {
        .kind = call->kind, .user = call->user, .old = old, .next = next, .build = call->build
    };

    for (unsigned i = 0; i < store->hook_count; i++) {
        struct err why = { .class = 0 };

        if (store->hooks[i].hook(store->hooks[i].context, &admission, &why) < 0)
            return api_refuse_forbidden(call, call->name, why.text);
    }
    return 0;
}

/* The body must be an object of this kind, for this place. */
static int check_body(struct api_call *call)
{
    struct str kind = json_str(json_get(call->body, "kind"));
    struct str ns = api_meta_str(call->body, "namespace");
    struct str name = api_meta_str(call->body, "name");

    if (!json_is_object(call->body))
        return api_refuse_bad_request(call,
                                      "the object provided is unrecognized (must be of type %s): "
                                      "couldn't get version/kind; json parse error",
                                      call->kind->kind);
    if ((call->kind->traits & API_CUSTOM) && kind.len == 0)
        return api_refuse_bad_request(call,
                                      "the object provided is unrecognized (must be of type %s): "
                                      "Object 'Kind' is missing in '" STR_FMT "' (" STR_FMT ")",
                                      call->kind->kind, STR_ARG(call->text), STR_ARG(call->text));
    if (kind.len > 0 && !str_is(kind, call->kind->kind))
        return api_refuse_bad_request(call, STR_FMT " in version \"%s\" cannot be handled as a %s",
                                      STR_ARG(kind), call->kind->version, call->kind->kind);
    if (ns.len > 0 && !str_is(ns, call->ns))
        return api_refuse_bad_request(call, "the namespace of the provided object does not match "
                                            "the namespace sent on the request");
    if (*call->name && !str_is(name, call->name))
        return api_refuse_bad_request(
            call, "the name of the object (" STR_FMT ") does not match the name on the URL (%s)",
            STR_ARG(name), call->name);
    return 0;
}

static int check_namespace(struct api_call *call)
{
    const struct api_table *table = api_table_of(call->store, "namespaces");
    struct str name = api_meta_str(call->body, "name");
    const struct api_doc *ns;

    if (!(call->kind->traits & API_NAMESPACED))
        return 0;
    ns = api_get(table, api_key(call->arena, "", call->ns));
    if (!ns)
        return api_refuse_not_found(call, table->kind, call->ns);
    if (api_is_deleting(api_root(ns)))
        return api_refuse_terminating(call, arena_strndup(call->arena, name.at, name.len));
    return 0;
}

/* ---- create ---- */

static int answer_review(struct api_call *call, struct json_mut *object)
{
    auto_json_doc struct json_doc *frozen = NULL;
    int result = api_run_hooks(call, NULL, object);

    if (result < 0)
        return result;
    frozen = json_freeze(object);
    api_answer_object(call, 201, json_root(frozen));
    return 0;
}

static int create_as(struct api_call *call, struct json_mut *object, const char *name)
{
    const char *key = api_key(call->arena, call->ns, name);
    int result;

    call->name = name;
    api_normalise(call, &object);
    if ((result = api_run_hooks(call, NULL, object)) < 0)
        return result;
    if (api_get(call->table, key))
        return api_refuse_exists(call, api_root(api_get(call->table, key)), name);
    api_answer_object(call, 201, api_root(api_commit(call, key, object)));
    return 0;
}

int api_do_create(struct api_call *call)
{
    const char *name = "";
    struct json_mut *object;
    int result;

    if ((result = check_body(call)) < 0)
        return result;
    object = json_copy(call->build, call->body);
    if (call->kind->traits & API_NOT_STORED)
        return answer_review(call, object);
    if ((call->kind->traits & API_NAMESPACED) && !*call->ns)
        return api_refuse_method(call);
    if (api_meta_str(call->body, "resourceVersion").len > 0)
        return api_refuse_unclassified(
            call, "resourceVersion should not be set on objects to be created");
    if ((result = check_namespace(call)) < 0 ||
        (result = api_prepare_create(call, object, &name)) < 0)
        return result;
    return create_as(call, object, name);
}

/* ---- update and patch ---- */

/* An object that was only waiting for its finalizers goes with the last of them. */
static bool was_the_last_finalizer(const struct json *old, const struct json *next)
{
    return api_is_deleting(old) && !api_has_finalizers(next) &&
           json_i64_or(json_at(old, "metadata", "deletionGracePeriodSeconds"), 0) == 0 &&
           json_len(json_at(next, "spec", "finalizers")) == 0;
}

static int write_over(struct api_call *call, const struct api_doc *old, struct json_mut *next)
{
    const char *key = api_key(call->arena, call->ns, call->name);
    int result = api_prepare_update(call, api_root(old), &next);

    if (result < 0 || (result = api_run_hooks(call, api_root(old), next)) < 0)
        return result;
    api_count_generation(call, api_root(old), next);

    auto_json_doc struct json_doc *frozen = json_freeze(next);

    if (was_the_last_finalizer(api_root(old), json_root(frozen))) {
        api_answer_object(call, 200, json_root(frozen));
        (void)api_commit(call, key, NULL);
        return 0;
    }
    api_answer_object(call, 200, api_root(api_commit(call, key, next)));
    return 0;
}

static int check_version(struct api_call *call, const struct api_doc *old, struct str asked)
{
    if (asked.len > 0 && !str_eq(asked, api_meta_str(api_root(old), "resourceVersion")))
        return api_refuse_modified(call, call->name);
    if (asked.len == 0 && (call->kind->traits & API_NEEDS_VERSION))
        return api_refuse_invalid(
            call, call->name,
            &(struct api_wrong){ .reason = "FieldValueInvalid",
                                 .field = "metadata.resourceVersion",
                                 .message = "Invalid value: 0: must be specified for an "
                                            "update",
                                 .by_resource = true });
    return 0;
}

int api_do_update(struct api_call *call)
{
    struct api_doc *old = api_get(call->table, api_key(call->arena, call->ns, call->name));
    struct str uid = api_meta_str(call->body, "uid");
    int result = check_body(call);

    if (result < 0)
        return result;
    if (!old && (call->kind->traits & API_UPSERTS) && !*call->subresource) {
        call->name = "";
        return api_do_create(call);
    }
    if (!old)
        return api_refuse_not_found(call, call->kind, call->name);
    if (uid.len > 0 && !str_eq(uid, api_meta_str(api_root(old), "uid")))
        return api_refuse_uid(call, uid, api_meta_str(api_root(old), "uid"));
    if ((result = check_version(call, old, api_meta_str(call->body, "resourceVersion"))) < 0)
        return result;
    return write_over(call, old, json_copy(call->build, call->body));
}

static int apply_patch(struct api_call *call, const struct json *old, struct json_mut **ret_next)
{
    bool ops = str_is(call->content_type, "application/json-patch+json");
    bool strategic = str_is(call->content_type, "application/strategic-merge-patch+json") &&
                     !(call->kind->traits & API_CUSTOM);

    if (!ops && !strategic && !str_is(call->content_type, "application/merge-patch+json"))
        return api_refuse_media_type(call);
    if (ops != json_is_array(call->body) || (!ops && !json_is_object(call->body)))
        return api_refuse_bad_request(
            call, "%sjson: cannot unmarshal %s into Go value of type %s",
            strategic ? "" : "error decoding patch: ", json_type_name(json_type(call->body)),
            ops ? "[]handlers.jsonPatchOp" : "map[string]interface {}");
    if (strategic)
        return api_apply_strategic(call, old, ret_next);
    if (!ops)
        *ret_next = patch_merge_apply(call->build, old, call->body);
    else if (patch_json_apply(call->build, old, call->body, ret_next, NULL) < 0)
        return api_refuse_patch(call);
    return 0;
}

static int check_patched(struct api_call *call, const struct api_doc *doc, const struct json *next)
{
    const struct json *old = api_root(doc);
    struct str uid = api_meta_str(next, "uid");
    int result = check_version(call, doc, api_meta_str(next, "resourceVersion"));

    if (result < 0)
        return result;
    if (!str_eq(api_meta_str(next, "name"), api_meta_str(old, "name")))
        return api_refuse_bad_request(
            call, "the name of the object (" STR_FMT ") does not match the name on the URL (%s)",
            STR_ARG(api_meta_str(next, "name")), call->name);
    if (uid.len > 0 && !str_eq(uid, api_meta_str(old, "uid")))
        return api_refuse_invalid(
            call, call->name,
            &(struct api_wrong){ .reason = "FieldValueInvalid",
                                 .field = "metadata.uid",
                                 .message = arena_printf(call->arena,
                                                         "Invalid value: \"" STR_FMT
                                                         "\": field is immutable",
                                                         STR_ARG(uid)),
                                 .times = 2 });
    return 0;
}

int api_do_patch(struct api_call *call)
{
    struct api_doc *old = api_get(call->table, api_key(call->arena, call->ns, call->name));
    struct json_mut *next = NULL;
    int result;

    if (!old)
        return api_refuse_not_found(call, call->kind, call->name);
    if ((result = apply_patch(call, api_root(old), &next)) < 0)
        return result;

    auto_json_doc struct json_doc *frozen = json_freeze(next);

    if ((result = check_patched(call, old, json_root(frozen))) < 0)
        return result;
    return write_over(call, old, next);
}
