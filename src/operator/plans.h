/* plans.h - the plan of every kind of custom resource, as a table. */
#ifndef SLINC_OPERATOR_PLANS_H
#define SLINC_OPERATOR_PLANS_H

#include "operator/world.h"

struct operator_plan {
    const char *kind;       /* "RestApi" */
    const char *controller; /* as Events and metrics name it: "restapi-controller" */
    void (*plan)(const struct operator_world *world, const struct kube_object *object,
                 struct plan *plan);
};

extern const struct operator_plan operator_plans[];
extern const size_t operator_plan_count;

const struct operator_plan *operator_plan_of(const char *kind); /* NULL: none */

/* Plans the object of this key ("namespace/name"). One that is absent or being deleted has no
 * plan: the garbage collector takes its children. */
void operator_plan_key(const struct operator_plan *row, const struct operator_world *world,
                       struct str key, struct plan *plan);

#endif
