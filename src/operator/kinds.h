/* kinds.h - the custom resources of the operator and the kinds of their children. All keep their
 * JSON trees: there are few of them, and their fields are read by name. */
#ifndef SLINC_OPERATOR_KINDS_H
#define SLINC_OPERATOR_KINDS_H

#include "kube/object.h"

extern const struct kube_kind operator_controller_kind, operator_restapi_kind,
    operator_accounting_kind, operator_loginset_kind, operator_nodeset_kind, operator_token_kind;

extern const struct kube_kind operator_configmap_kind, operator_secret_kind, operator_service_kind,
    operator_deployment_kind, operator_statefulset_kind, operator_claim_kind,
    operator_revision_kind, operator_budget_kind, operator_service_monitor_kind;

/* The tree of an object of these kinds. */
const struct json *operator_tree(const struct kube_object *object);
/* Its spec; absent for an object that has none. */
const struct json *operator_spec(const struct kube_object *object);

#endif
