/* pod.c - questions about a pod as it stands in a review. */
#include "admit/admit_private.h"

/* What is looked at, and the type that it has in every pod; absent and null are as good, but for
 * the first two. */
static const struct needed_part {
    const char *path[3];
    enum json_type type;
} parts[] = {
    { { "metadata" }, JSON_OBJECT },
    { { "spec" }, JSON_OBJECT },
    { { "metadata", "labels" }, JSON_OBJECT },
    { { "metadata", "annotations" }, JSON_OBJECT },
    { { "metadata", "finalizers" }, JSON_ARRAY },
    { { "metadata", "ownerReferences" }, JSON_ARRAY },
    { { "metadata", "deletionTimestamp" }, JSON_STRING },
    { { "spec", "nodeName" }, JSON_STRING },
    { { "spec", "schedulerName" }, JSON_STRING },
    { { "spec", "tolerations" }, JSON_ARRAY },
    { { "spec", "containers" }, JSON_ARRAY },
    { { "spec", "initContainers" }, JSON_ARRAY },
    { { "spec", "resources" }, JSON_OBJECT },
    { { "spec", "resourceClaims" }, JSON_ARRAY },
    { { "status" }, JSON_OBJECT },
    { { "status", "phase" }, JSON_STRING },
};

enum { NEEDED_PARTS = 2 };

static int check_part(const struct json *pod, const struct needed_part *needed, struct err *err)
{
    const struct json *part = json_at_path(pod, needed->path);

    if (json_type(part) == needed->type)
        return 0;
    if (!json_exists(part) && needed - parts >= NEEDED_PARTS)
        return 0;
    return err_set(err, ERR_INVALID, "this is no pod: %s%s%s is %s where %s is wanted",
                   needed->path[0], needed->path[1] ? "." : "",
                   needed->path[1] ? needed->path[1] : "", json_type_name(json_type(part)),
                   json_type_name(needed->type));
}

static int check_texts(const struct json *map, const char *what, struct err *err)
{
    struct json_iter iter = json_iter(map);
    const struct json *value;
    struct str key;

    while (json_next_member(&iter, &key, &value))
        if (json_exists(value) && !json_is_string(value))
            return err_set(err, ERR_INVALID, "this is no pod: a value of metadata.%s is no string",
                           what);
    return 0;
}

int admit_pod_check(const struct json *pod, struct err *err)
{
    int result;

    if (!json_is_object(pod))
        return err_set(err, ERR_INVALID, "the review has no pod");
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if ((result = check_part(pod, &parts[i], err)) < 0)
            return result;
    if ((result = check_texts(json_at(pod, "metadata", "labels"), "labels", err)) < 0)
        return result;
    return check_texts(json_at(pod, "metadata", "annotations"), "annotations", err);
}

/* ---- metadata ---- */

struct str admit_label(const struct json *pod, const char *key)
{
    return json_str(json_at(pod, "metadata", "labels", key));
}

struct str admit_annotation(const struct json *pod, const char *key)
{
    return json_str(json_at(pod, "metadata", "annotations", key));
}

bool admit_has_annotation(const struct json *pod, const char *key)
{
    return json_type(json_at(pod, "metadata", "annotations", key)) != JSON_ABSENT;
}

/* The kubelet shows its static pods to us; they are started already. */
bool admit_is_mirror(const struct json *pod)
{
    return admit_has_annotation(pod, "kubernetes.io/config.mirror");
}

struct admit_owner admit_owner(const struct json *pod)
{
    struct json_iter iter = json_iter(json_at(pod, "metadata", "ownerReferences"));
    const struct json *owner;

    while (json_next_item(&iter, &owner))
        if (json_bool_or(json_get(owner, "controller"), false))
            return (struct admit_owner){ .version = json_str(json_get(owner, "apiVersion")),
                                         .kind = json_str(json_get(owner, "kind")),
                                         .name = json_str(json_get(owner, "name")),
                                         .uid = json_str(json_get(owner, "uid")) };
    return (struct admit_owner){ STR(""), STR(""), STR(""), STR("") };
}
