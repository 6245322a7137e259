/* harden.c - pods of daemons that need no rights have none: what Pod Security "restricted" asks
 * for.
 *
 * Holds: what a user says of a container's rights stays as it is. A container that runs as root, or
 *        is given capabilities, keeps what such containers have by default. */
#include "operator/build.h"

static const struct json *security_of(const struct json *container)
{
    return json_get(container, "securityContext");
}

static bool runs_as_root(const struct json *pod, const struct json *container)
{
    const struct json *own = security_of(container), *all = security_of(pod);
    int64_t user =
        json_i64_or(json_get(own, "runAsUser"), json_i64_or(json_get(all, "runAsUser"), 0));

    return user == 0;
}

static bool has_rights_of_the_user(const struct json *container)
{
    const struct json *own = security_of(container);

    return json_bool_or(json_get(own, "privileged"), false) ||
           json_exists(json_get(own, "capabilities")) ||
           json_exists(json_get(own, "allowPrivilegeEscalation"));
}

static bool is_ours(const struct component *component, struct str name)
{
    return str_is(name, component->app) || str_is(name, "logfile") || str_is(name, "reconfigure");
}

static void harden_list(struct json_build *build, const struct component *component,
                        const struct json *pod, const char *list, struct json_mut *spec)
{
    struct json_iter iter = json_iter(json_get(pod, list));
    const struct json *container;

    for (size_t i = 0; json_next_item(&iter, &container); i++) {
        struct json_mut *item = json_mut_item(json_mut_get(spec, str_of(list)), i);
        struct json_mut *security;

        if (!is_ours(component, json_str(json_get(container, "name"))) ||
            runs_as_root(pod, container) || has_rights_of_the_user(container))
            continue;
        security = json_object_at(build, item, "securityContext");
        json_put(build, security, "allowPrivilegeEscalation", json_new_bool(build, false));
        json_put(build, security, "capabilities", json_format(build, "{'drop':['ALL']}"));
    }
}

struct json_mut *build_hardened(struct json_build *build, const struct component *component,
                                const struct json_mut *template)
{
    auto_json_doc struct json_doc *doc = json_freeze(template);
    const struct json *pod = json_get(json_root(doc), "spec");
    struct json_mut *hardened = json_copy(build, json_root(doc));
    struct json_mut *spec = json_object_at(build, hardened, "spec");

    if (!json_exists(json_get(security_of(pod), "seccompProfile")))
        json_put_at(build, spec, json_format(build, "{'type':'RuntimeDefault'}"), "securityContext",
                    "seccompProfile");
    harden_list(build, component, pod, "initContainers", spec);
    harden_list(build, component, pod, "containers", spec);
    return hardened;
}
