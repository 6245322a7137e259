/* pod.c - questions about a pod as it stands in a review, and about who sent it.
 *
 * Holds: whoever creates a pod may write any owner and any annotation on it, so these say what the
 * pod is only in a request of the account that makes such pods. */
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

/* ---- pods that belong to their nodes ---- */

static bool has_group(const struct admit_request *request, const char *wanted)
{
    struct json_iter iter = json_iter(request->review.groups);
    const struct json *group;

    while (json_next_item(&iter, &group))
        if (str_is(json_str(group), wanted))
            return true;
    return false;
}

bool admit_is_of_kubelet(const struct admit_request *request)
{
    struct str node = json_str(json_at(request->review.object, "spec", "nodeName"));
    struct str user = request->review.user, prefix = STR("system:node:");

    return admit_has_annotation(request->review.object, "kubernetes.io/config.mirror") &&
           node.len > 0 && has_group(request, "system:nodes") && str_starts(user, prefix) &&
           str_eq(str_sub(user, prefix.len, user.len), node);
}

/* Where controllers share an account, the kind of the owner tells them apart: each writes the
 * owner of its pods itself. */
bool admit_is_of_daemonset(const struct admit_request *request)
{
    struct admit_owner owner = admit_owner(request->review.object);
    struct str user = request->review.user;

    if (!str_is(owner.kind, "DaemonSet") || !str_starts(owner.version, STR("apps/")))
        return false;
    return request->op != ADMIT_CREATE ||
           str_is(user, "system:serviceaccount:kube-system:daemon-set-controller") ||
           str_is(user, "system:kube-controller-manager");
}
