/* api_bind.c - POST pods/NAME/binding: the one way to give a pod a node.
 *
 * Holds: a pod gets a node once; labels and annotations of the Binding's metadata are merged into
 * the pod in the same write (Kubernetes 1.35 and later). */
#include "api_private.h"

static void merge_into(struct api_call *call, struct json_mut *pod, const char *what)
{
    struct json_iter iter = json_iter(json_at(call->body, "metadata", what));
    const struct json *value;
    struct str key;

    while (json_next_member(&iter, &key, &value))
        json_put_key(call->build, json_object_at(call->build, pod, "metadata", what), key,
                     json_copy(call->build, value));
}

/* The end of the list when there is none. */
static size_t place_of_scheduled(const struct json_mut *conditions)
{
    auto_json_doc struct json_doc *doc = json_freeze(conditions);
    struct json_iter iter = json_iter(json_root(doc));
    const struct json *condition;
    size_t place = 0;

    while (json_next_item(&iter, &condition) &&
           !str_is(json_str(json_get(condition, "type")), "PodScheduled"))
        place++;
    return place;
}

static void put_scheduled(struct api_call *call, struct json_mut *pod)
{
    struct json_mut *status = json_object_at(call->build, pod, "status");
    struct json_mut *conditions = json_mut_get(status, STR("conditions"));
    struct json_mut *condition = json_new_object(call->build);
    size_t place;

    if (!conditions)
        conditions = json_put_array(call->build, status, "conditions");
    json_put_text(call->build, condition, "type", "PodScheduled");
    json_put_text(call->build, condition, "status", "True");
    json_put(call->build, condition, "lastProbeTime", json_new_null(call->build));
    api_put_time(call, condition, "lastTransitionTime", 0);
    place = place_of_scheduled(conditions);
    if (place < json_mut_len(conditions))
        json_replace_item(conditions, place, condition);
    else
        json_push(conditions, condition);
}

static int check_pod(struct api_call *call, const struct json *pod)
{
    struct str uid = api_meta_str(call->body, "uid"), had = api_meta_str(pod, "uid");
    struct str node = json_str(json_at(pod, "spec", "nodeName"));

    if (uid.len > 0 && !str_eq(uid, had))
        return api_refuse_uid(call, uid, had);
    if (api_is_deleting(pod))
        return api_refuse_binding(call, "pod %s is being deleted, cannot be assigned to a host",
                                  call->name);
    if (node.len > 0)
        return api_refuse_binding(call, "pod %s is already assigned to node \"" STR_FMT "\"",
                                  call->name, STR_ARG(node));
    return 0;
}

int api_do_bind(struct api_call *call)
{
    const char *key = api_key(call->arena, call->ns, call->name);
    const struct api_doc *old = api_get(call->table, key);
    struct str node = json_str(json_at(call->body, "target", "name"));
    int result;

    if (strcmp(call->kind->plural, "pods") != 0)
        return api_refuse_no_resource(call);
    if (node.len == 0)
        return api_refuse_unclassified(call, "target.name: Required value");
    if (!old)
        return api_refuse_not_found(call, call->kind, call->name);
    if ((result = check_pod(call, api_root(old))) < 0)
        return result;

    struct json_mut *pod = json_copy(call->build, api_root(old));

    json_put_at(call->build, pod, json_new_str(call->build, node), "spec", "nodeName");
    merge_into(call, pod, "labels");
    merge_into(call, pod, "annotations");
    put_scheduled(call, pod);
    if ((result = api_run_hooks(call, api_root(old), pod)) < 0)
        return result;
    (void)api_commit(call, key, pod);
    api_answer_done_status(call, 201);
    return 0;
}
