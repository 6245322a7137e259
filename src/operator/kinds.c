/* kinds.c - every kind that the operator reads or writes, as a row: where the API server keeps it,
 * its cache in the world, which of its objects are watched, and the fields of its spec. */
#include "operator/kinds.h"

#include "kube/kinds.h"
#include "operator/names.h"
#include "operator/world.h"

#define CACHE(member) .cache = offsetof(struct operator_world, member)
#define TREES(of)     .kind = &((const struct kube_kind){ .resource = (of) })
#define API(group, version, plural, name)                                                          \
    TREES(&((const struct kube_resource){ group, version, plural, name, true }))
#define OURS(plural, name) API(OPERATOR_GROUP, OPERATOR_VERSION, plural, name)

const struct operator_kind operator_kinds[] = {
    { OURS("controllers", "Controller"), CACHE(controllers), .fields = spec_controller },
    { OURS("accountings", "Accounting"), CACHE(accountings), .fields = spec_accounting },
    { OURS("restapis", "RestApi"), CACHE(restapis), .fields = spec_restapi },
    { OURS("loginsets", "LoginSet"), CACHE(loginsets), .fields = spec_loginset },
    { OURS("nodesets", "NodeSet"), CACHE(nodesets), .fields = spec_nodeset },
    { OURS("tokens", "Token"), CACHE(tokens), .fields = spec_token },
    { TREES(&kube_configmaps), CACHE(configmaps) },
    { TREES(&kube_secrets), CACHE(secrets), .is_read_by_name = true },
    { TREES(&kube_services), CACHE(services) },
    { API("apps", "v1", "deployments", "Deployment"), CACHE(deployments) },
    { API("apps", "v1", "statefulsets", "StatefulSet"), CACHE(statefulsets) },
    { .kind = &kube_pod_kind, CACHE(pods), .selector = LABEL_NAME " in (slurmctld,slurmd)" },
    { TREES(&kube_volume_claims), CACHE(claims) },
    { API("apps", "v1", "controllerrevisions", "ControllerRevision"), CACHE(revisions) },
    { API("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"), CACHE(budgets) },
    { .kind = &kube_node_kind, CACHE(nodes) },
    { API("monitoring.coreos.com", "v1", "servicemonitors", "ServiceMonitor"),
      CACHE(service_monitors), .is_optional = true },
};

const size_t operator_kind_count = sizeof(operator_kinds) / sizeof(operator_kinds[0]);

static const struct operator_kind *row_of(const char *name)
{
    static const struct operator_kind none;

    for (size_t i = 0; i < operator_kind_count; i++)
        if (strcmp(operator_kinds[i].kind->resource->kind, name) == 0)
            return &operator_kinds[i];
    return &none;
}

const struct kube_kind *operator_kind_of(const char *name)
{
    return row_of(name)->kind;
}

const struct spec_field *operator_fields_of(const char *name)
{
    return row_of(name)->fields;
}

const struct json *operator_tree(const struct kube_object *object)
{
    return ((const struct kube_tree *)(const void *)object)->root;
}

const struct json *operator_spec(const struct kube_object *object)
{
    return json_get(operator_tree(object), "spec");
}
