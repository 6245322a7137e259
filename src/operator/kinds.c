/* kinds.c - where the API server keeps what the operator reads and writes. */
#include "operator/kinds.h"

#include "operator/names.h"

#define CUSTOM(plural, kind) { OPERATOR_GROUP, OPERATOR_VERSION, plural, kind, true }

static const struct kube_resource controllers = CUSTOM("controllers", "Controller");
static const struct kube_resource restapis = CUSTOM("restapis", "RestApi");
static const struct kube_resource accountings = CUSTOM("accountings", "Accounting");
static const struct kube_resource loginsets = CUSTOM("loginsets", "LoginSet");
static const struct kube_resource nodesets = CUSTOM("nodesets", "NodeSet");
static const struct kube_resource tokens = CUSTOM("tokens", "Token");
static const struct kube_resource deployments = { "apps", "v1", "deployments", "Deployment", true };
static const struct kube_resource statefulsets = { "apps", "v1", "statefulsets", "StatefulSet",
                                                   true };
static const struct kube_resource revisions = { "apps", "v1", "controllerrevisions",
                                                "ControllerRevision", true };
static const struct kube_resource budgets = { "policy", "v1", "poddisruptionbudgets",
                                              "PodDisruptionBudget", true };
static const struct kube_resource service_monitors = { "monitoring.coreos.com", "v1",
                                                       "servicemonitors", "ServiceMonitor", true };

const struct kube_kind operator_controller_kind = { .resource = &controllers };
const struct kube_kind operator_restapi_kind = { .resource = &restapis };
const struct kube_kind operator_accounting_kind = { .resource = &accountings };
const struct kube_kind operator_loginset_kind = { .resource = &loginsets };
const struct kube_kind operator_nodeset_kind = { .resource = &nodesets };
const struct kube_kind operator_token_kind = { .resource = &tokens };
const struct kube_kind operator_configmap_kind = { .resource = &kube_configmaps };
const struct kube_kind operator_secret_kind = { .resource = &kube_secrets };
const struct kube_kind operator_service_kind = { .resource = &kube_services };
const struct kube_kind operator_deployment_kind = { .resource = &deployments };
const struct kube_kind operator_statefulset_kind = { .resource = &statefulsets };
const struct kube_kind operator_claim_kind = { .resource = &kube_volume_claims };
const struct kube_kind operator_revision_kind = { .resource = &revisions };
const struct kube_kind operator_budget_kind = { .resource = &budgets };
const struct kube_kind operator_service_monitor_kind = { .resource = &service_monitors };

const struct json *operator_tree(const struct kube_object *object)
{
    return ((const struct kube_tree *)(const void *)object)->root;
}

const struct json *operator_spec(const struct kube_object *object)
{
    return json_get(operator_tree(object), "spec");
}
