/* kinds.c - every kind that the operator reads or writes, as a row: where the API server keeps it,
 * its cache in the world, and which of its objects are watched. */
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
    { OURS("controllers", "Controller"), CACHE(controllers) },
    { OURS("accountings", "Accounting"), CACHE(accountings) },
    { OURS("restapis", "RestApi"), CACHE(restapis) },
    { OURS("loginsets", "LoginSet"), CACHE(loginsets) },
    { OURS("nodesets", "NodeSet"), CACHE(nodesets) },
    { OURS("tokens", "Token"), CACHE(tokens) },
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

const struct kube_kind *operator_kind_of(const char *name)
{
    for (size_t i = 0; i < operator_kind_count; i++)
        if (strcmp(operator_kinds[i].kind->resource->kind, name) == 0)
            return operator_kinds[i].kind;
    return NULL;
}

const struct json *operator_tree(const struct kube_object *object)
{
    return ((const struct kube_tree *)(const void *)object)->root;
}

const struct json *operator_spec(const struct kube_object *object)
{
    return json_get(operator_tree(object), "spec");
}

/* ---- fields ---- */

/* What it means when a field is absent. The definitions of the custom resources say the same, so
 * the API server has filled most of them in. */
static const struct field {
    const char *path; /* below spec */
    int64_t absent;   /* a number; or false and true */
} fields[] = {
    { "external", false },
    { "ha.backups", 1 },
    { "ha.enabled", false },
    { "inplaceReconfigure", false },
    { "metrics.enabled", false },
    { "metrics.serviceMonitor.enabled", false },
    { "minReadySeconds", 0 },
    { "ordinalPadding", 0 },
    { "oversubscribeNode", false },
    { "partition.enabled", false },
    { "persistence.enabled", true },
    { "pinToNode", false },
    { "refresh", true },
    { "replicas", 1 },
    { "revisionHistoryLimit", 0 },
    { "ssh.enabled", false },
    { "template.spec.hostNetwork", false },
    { "workloadDisruptionProtection", true },
};

int64_t spec_number(const struct kube_object *object, const char *path)
{
    const struct json *value = operator_spec(object);
    struct str rest = str_of(path), member;
    int64_t absent = 0;

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (strcmp(fields[i].path, path) == 0)
            absent = fields[i].absent;
    while (str_next(&rest, '.', &member))
        value = json_get_str(value, member);
    return json_type(value) == JSON_BOOL ? json_bool_or(value, false) : json_i64_or(value, absent);
}

bool spec_flag(const struct kube_object *object, const char *path)
{
    return spec_number(object, path) != 0;
}
