/* build.c - names, labels, containers, pod templates and Services of children. */
#include "operator/build.h"

#include "codec/podmerge.h"
#include "operator/names.h"

#include <stdio.h>

enum { MAX_NAME = KUBE_MAX_NAME + 64 };

const struct component component_slurmctld = { "slurmctld", "controller", "-controller",
                                               SLURMCTLD_PORT, true };
const struct component component_slurmdbd = { "slurmdbd", "accounting", "-accounting",
                                              SLURMDBD_PORT, true };
const struct component component_slurmrestd = { "slurmrestd", "restapi", "-restapi",
                                                SLURMRESTD_PORT, true };
const struct component component_login = { "login", "login", "", SSH_PORT, false };
const struct component component_slurmd = { "slurmd", "worker", "", SLURMD_PORT, false };

/* ---- names and labels ---- */

struct json_mut *build_name(struct json_build *build, const struct kube_object *owner,
                            const char *suffix)
{
    char name[MAX_NAME];

    (void)snprintf(name, sizeof(name), "%s%s", owner->name, suffix);
    return json_new_str(build, str_of(name));
}

struct json_mut *build_selector(struct json_build *build, const struct component *component,
                                const struct kube_object *owner)
{
    return json_format(build, "{'" LABEL_INSTANCE "':%s,'" LABEL_NAME "':%s}", owner->name,
                       component->app);
}

/* kubectl and Helm keep notes about the custom resource there; on a child they mean nothing, and
 * in a pod template they would restart the pods at every `kubectl apply`. */
static bool is_private_annotation(struct str key)
{
    return str_is(key, "kubectl.kubernetes.io/last-applied-configuration") ||
           str_starts(key, STR("meta.helm.sh/"));
}

static void put_pairs(struct json_build *build, struct json_mut *into, const struct json *pairs)
{
    struct json_iter iter = json_iter(pairs);
    const struct json *value;
    struct str key;

    while (json_next_member(&iter, &key, &value))
        if (json_is_string(value) && !is_private_annotation(key))
            json_put_key(build, into, key, json_copy(build, value));
}

static void put_metadata(struct json_build *build, struct json_mut *labels,
                         struct json_mut *annotations, const struct json *metadata)
{
    put_pairs(build, labels, json_get(metadata, "labels"));
    put_pairs(build, annotations, json_get(metadata, "annotations"));
}

struct json_mut *build_metadata(struct json_build *build, const struct component *component,
                                const struct kube_object *owner, const char *suffix,
                                unsigned sources)
{
    struct json_mut *metadata = json_new_object(build);
    struct json_mut *labels = json_new_object(build), *annotations = json_new_object(build);
    const struct json *tree = operator_tree(owner);

    json_put(build, metadata, "name", build_name(build, owner, suffix));
    if (sources & META_OWNER)
        put_metadata(build, labels, annotations, json_get(tree, "metadata"));
    if (sources & META_TEMPLATE)
        put_metadata(build, labels, annotations, json_at(tree, "spec", "template", "metadata"));
    if (sources & META_SERVICE)
        put_metadata(build, labels, annotations, json_at(tree, "spec", "service", "metadata"));
    if (sources & META_MONITOR)
        put_metadata(build, labels, annotations,
                     json_at(tree, "spec", "metrics", "serviceMonitor"));
    json_put_text(build, labels, LABEL_INSTANCE, owner->name);
    json_put_text(build, labels, LABEL_NAME, component->app);
    json_put_text(build, labels, LABEL_COMPONENT, component->component);
    json_put(build, metadata, "labels", labels);
    if (json_mut_len(annotations) > 0)
        json_put(build, metadata, "annotations", annotations);
    return metadata;
}

/* ---- pods ---- */

void build_conf_server(const struct kube_object *controller, char ret_text[BUILD_MAX_SERVER])
{
    const struct json *spec = operator_spec(controller);
    const struct json *elsewhere = json_get(spec, "externalConfig");

    if (spec_flag(controller, "external"))
        (void)snprintf(ret_text, BUILD_MAX_SERVER, "%s:%lld",
                       json_str(json_get(elsewhere, "host")).at,
                       (long long)json_i64_or(json_get(elsewhere, "port"), SLURMCTLD_PORT));
    else
        (void)snprintf(ret_text, BUILD_MAX_SERVER, "%s-controller.%s:%d", controller->name,
                       controller->ns, SLURMCTLD_PORT);
}

int build_container(struct json_build *build, const struct kube_object *owner, const char *key,
                    const struct json_mut *ours, struct json_mut **ret_container, struct err *err)
{
    auto_json_doc struct json_doc *base = json_freeze(ours);
    int result =
        podmerge(build, json_root(base), json_get(operator_spec(owner), key), ret_container, err);

    return result < 0 ? err_wrap(err, "spec.%s", key) : 0;
}

int build_template(struct json_build *build, const struct component *component,
                   const struct kube_object *owner, unsigned sources,
                   const struct json_mut *annotations, const struct json_mut *pod_spec,
                   struct json_mut **ret_template, struct err *err)
{
    auto_json_doc struct json_doc *base = json_freeze(pod_spec);
    auto_json_doc struct json_doc *more = annotations ? json_freeze(annotations) : NULL;
    struct json_mut *template = json_new_object(build);
    struct json_mut *metadata = build_metadata(build, component, owner, component->suffix, sources);
    struct json_mut *own = json_object_at(build, metadata, "annotations");
    struct json_mut *spec;
    int result = podmerge(build, json_root(base), json_at(operator_spec(owner), "template", "spec"),
                          &spec, err);

    if (result < 0)
        return err_wrap(err, "spec.template.spec");
    json_put_text(build, metadata, "namespace", owner->ns);
    put_pairs(build, own, json_root(more));
    json_put_text(build, own, ANNOTATION_DEFAULT_CONTAINER, component->app);
    json_put(build, template, "metadata", metadata);
    json_put(build, template, "spec", spec);
    *ret_template = template;
    return 0;
}

/* ---- Services ---- */

static int check_ports(const struct json *ports, const struct component *component, int64_t port,
                       struct err *err)
{
    struct json_iter iter = json_iter(ports);
    const struct json *item;

    while (json_next_item(&iter, &item)) {
        if (str_is(json_str(json_get(item, "name")), component->app))
            return err_set(err, ERR_INVALID, "spec.service.spec.ports: the name %s is taken by %s",
                           component->app, component->app);
        if (json_i64_or(json_get(item, "port"), 0) == port)
            return err_set(err, ERR_INVALID, "spec.service.spec.ports: port %lld is taken by %s",
                           (long long)port, component->app);
    }
    return 0;
}

static struct json_mut *own_port(struct json_build *build, const struct component *component,
                                 const struct json *block, int64_t port)
{
    int64_t node_port = json_i64_or(json_get(block, "nodePort"), 0);
    struct json_mut *own =
        json_format(build, "{'name':%s,'protocol':'TCP','port':%l,'targetPort':%s}", component->app,
                    port, component->app);

    if (node_port > 0)
        json_put_i64(build, own, "nodePort", node_port);
    return own;
}

int build_service(struct json_build *build, const struct component *component,
                  const struct kube_object *owner, unsigned sources, const struct json_mut *more,
                  struct json_mut **ret_service, struct err *err)
{
    auto_json_doc struct json_doc *others = more ? json_freeze(more) : NULL;
    const struct json *block = json_get(operator_spec(owner), "service");
    const struct json *users = json_get(block, "spec");
    int64_t port = json_i64_or(json_get(block, "port"), 0);
    struct json_mut *service = json_new_object(build);
    struct json_mut *spec =
        json_is_object(users) ? json_copy(build, users) : json_new_object(build);
    struct json_mut *ports, *selector = json_new_object(build);
    int result;

    if (port == 0)
        port = component->port;
    if ((result = check_ports(json_get(users, "ports"), component, port, err)) < 0)
        return result;
    json_remove(spec, STR("externalIPs"));
    ports = json_mut_get(spec, STR("ports"));
    if (json_mut_type(ports) != JSON_ARRAY)
        ports = json_put(build, spec, "ports", json_new_array(build));
    json_push(ports, own_port(build, component, block, port));
    put_pairs(build, selector, json_get(users, "selector"));
    json_put_text(build, selector, LABEL_INSTANCE, owner->name);
    json_put_text(build, selector, LABEL_NAME, component->app);
    put_pairs(build, selector, json_root(others));
    json_put(build, spec, "selector", selector);
    json_put(build, service, "metadata",
             build_metadata(build, component, owner, component->suffix, sources));
    json_put(build, service, "spec", spec);
    *ret_service = service;
    return 0;
}
