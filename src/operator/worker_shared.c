/* worker_shared.c - what the NodeSets of a Controller have together: a Service and a
 * PodDisruptionBudget. */
#include "operator/build.h"
#include "operator/names.h"
#include "operator/worker_build.h"

#include <stdio.h>

enum { MORE_THAN_ALL = 1000000 }; /* workers */

struct json_mut *worker_service(struct json_build *build, const struct kube_object *controller)
{
    char name[KUBE_MAX_NAME + 32];

    (void)snprintf(name, sizeof(name), "slurm-workers-%s", controller->name);
    return json_format(build,
                       "{'metadata':{'name':%s},'spec':{'clusterIP':'None',"
                       "'publishNotReadyAddresses':true,"
                       "'selector':{'" LABEL_NAME "':%s,'" LABEL_CLUSTER "':%s},"
                       "'ports':[{'name':%s,'protocol':'TCP','port':%d,'targetPort':%s}]}}",
                       name, component_slurmd.app, controller->name, component_slurmd.app,
                       component_slurmd.port, component_slurmd.app);
}

struct json_mut *worker_budget(struct json_build *build, const struct kube_object *controller,
                               const struct kube_object *live, bool counts_less)
{
    bool has_maximum = live && json_exists(json_get(operator_spec(live), "maxUnavailable"));
    char name[KUBE_MAX_NAME + 32];
    struct json_mut *budget;

    (void)snprintf(name, sizeof(name), "slurm-workers-pdb-%s", controller->name);
    budget = json_format(build,
                         "{'metadata':{'name':%s},'spec':{'selector':{'matchLabels':{"
                         "'" LABEL_POD_PROTECT "':'true','" LABEL_CLUSTER "':%s}}}}",
                         name, controller->name);
    if (has_maximum && !counts_less)
        json_put_at(build, budget, json_new_i64(build, 0), "spec", "maxUnavailable");
    else
        json_put_at(build, budget, json_new_i64(build, MORE_THAN_ALL), "spec", "minAvailable");
    return budget;
}
