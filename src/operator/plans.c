/* plans.c - which plan is whose. */
#include "operator/plans.h"

#include "operator/accounting.h"
#include "operator/controller.h"
#include "operator/loginset.h"
#include "operator/nodeset.h"
#include "operator/restapi.h"
#include "operator/token.h"

const struct operator_plan operator_plans[] = {
    { "Accounting",
      "accounting-controller",
      accounting_plan,
      false,
      { { "Service", WAKE_OWNER },
        { "StatefulSet", WAKE_OWNER },
        { "Secret", WAKE_OWNER },
        { "Secret", WAKE_NAMESPACE } } },
    { "Controller",
      "controller-controller",
      controller_plan,
      false,
      { { "Service", WAKE_OWNER },
        { "StatefulSet", WAKE_OWNER },
        { "ConfigMap", WAKE_OWNER },
        { "ConfigMap", WAKE_NAMESPACE },
        { "Secret", WAKE_NAMESPACE },
        { "Accounting", WAKE_NAMESPACE },
        { "NodeSet", WAKE_NAMESPACE },
        { "Pod", WAKE_INSTANCE } } },
    { "LoginSet",
      "loginset-controller",
      loginset_plan,
      false,
      { { "Service", WAKE_OWNER },
        { "Deployment", WAKE_OWNER },
        { "ConfigMap", WAKE_OWNER },
        { "Secret", WAKE_OWNER },
        { "Secret", WAKE_NAMESPACE },
        { "Controller", WAKE_REFERRING } } },
    { "NodeSet",
      "nodeset-controller",
      nodeset_plan,
      true,
      { { "Service", WAKE_NAMESPACE },
        { "PodDisruptionBudget", WAKE_NAMESPACE },
        { "ConfigMap", WAKE_OWNER },
        { "ConfigMap", WAKE_RELOADING },
        { "Secret", WAKE_NAMESPACE },
        { "ControllerRevision", WAKE_OWNER },
        { "Pod", WAKE_OWNER },
        { "Pod", WAKE_INSTANCE },
        { "PersistentVolumeClaim", WAKE_INSTANCE },
        { "Node", WAKE_NODE },
        { "NodeSet", WAKE_SIBLINGS },
        { "Controller", WAKE_REFERRING } } },
    { "NodeSet",
      "nodeset-slurm-controller",
      nodeset_slurm_plan,
      true,
      { { "ControllerRevision", WAKE_OWNER },
        { "Pod", WAKE_OWNER },
        { "Node", WAKE_NODE },
        { "Controller", WAKE_REFERRING } } },
    { "Token",
      "token-controller",
      token_plan,
      false,
      { { "Secret", WAKE_OWNER }, { "Secret", WAKE_NAMESPACE } } },
    { "RestApi",
      "restapi-controller",
      restapi_plan,
      false,
      { { "Service", WAKE_OWNER },
        { "Deployment", WAKE_OWNER },
        { "Secret", WAKE_NAMESPACE },
        { "Controller", WAKE_REFERRING } } },
};

const size_t operator_plan_count = sizeof(operator_plans) / sizeof(operator_plans[0]);

const struct operator_plan *operator_plan_of(const char *kind_or_controller)
{
    for (size_t i = 0; i < operator_plan_count; i++)
        if (strcmp(operator_plans[i].kind, kind_or_controller) == 0 ||
            strcmp(operator_plans[i].controller, kind_or_controller) == 0)
            return &operator_plans[i];
    return NULL;
}

void operator_plan_key(const struct operator_plan *row, const struct operator_world *world,
                       struct str key, struct plan *plan)
{
    struct kube_cache *cache = operator_world_cache(world, row->kind);
    const struct kube_object *object;
    struct str ns, name;

    if (!str_cut(key, '/', &ns, &name))
        return;
    object = kube_cache_get(cache, arena_strndup(plan->arena, ns.at, ns.len),
                            arena_strndup(plan->arena, name.at, name.len));
    if (object && (object->deleted_us == 0 || row->wants_deleted))
        row->plan(world, object, plan);
}
