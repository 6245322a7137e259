/* plans.h - every kind of custom resource, as a table: its plan, and what wakes it. */
#ifndef SLINC_OPERATOR_PLANS_H
#define SLINC_OPERATOR_PLANS_H

#include "operator/world.h"

/* Which custom resources of a kind are planned again when another object changes. */
enum operator_wake {
    WAKE_OWNER,     /* the one that controls the object */
    WAKE_REFERRING, /* those whose spec.controllerRef names the object, a Controller */
    WAKE_INSTANCE,  /* the one that the label app.kubernetes.io/instance names: its pods */
    WAKE_NAMESPACE, /* all in the namespace, if the object is none of our own children: Secrets and
                       ConfigMaps of users, and other custom resources that a plan reads */
    WAKE_RELOADING, /* those in the namespace that replace workers when a ConfigMap or Secret
                       changes (nodeset_mounted.h) */
    WAKE_SIBLINGS,  /* all in the namespace when the object, one of the same kind, comes or goes or
                       refers to another Controller: they share children */
    WAKE_NODE, /* those with a pod on the object, a Node, and those in DaemonSet mode; only when
                  something changed that a plan reads */
};

struct operator_watch {
    const char *kind; /* whose changes */
    enum operator_wake wake;
};

enum { OPERATOR_MAX_WATCHES = 16 };

/* A kind may have several: each is planned, and fails, on its own. */
struct operator_plan {
    const char *kind;       /* "RestApi" */
    const char *controller; /* as Events and metrics name it: "restapi-controller" */
    void (*plan)(const struct operator_world *world, const struct kube_object *object,
                 struct plan *plan);
    bool wants_deleted; /* objects that are being deleted have a plan, too: they have finalizers */
    struct operator_watch watches[OPERATOR_MAX_WATCHES]; /* ends with an empty row */
};

extern const struct operator_plan operator_plans[];
extern const size_t operator_plan_count;

/* By the name of the controller, or the first of the kind; NULL: none. */
const struct operator_plan *operator_plan_of(const char *kind_or_controller);

/* Plans the object of this key ("namespace/name"). One that is absent has no plan, nor has one that
 * is being deleted unless the row wants it: the garbage collector takes its children. */
void operator_plan_key(const struct operator_plan *row, const struct operator_world *world,
                       struct str key, struct plan *plan);

#endif
