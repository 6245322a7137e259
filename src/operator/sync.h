/* sync.h - the frame of every plan of the operator: steps that fail alone, then the status.
 *
 * A custom resource is planned step by step, in the order in which one would explain it. A step
 * that cannot be done (a Secret is missing, a field is wrong) is reported and the later ones still
 * run. The status always comes last and says what failed. */
#ifndef SLINC_OPERATOR_SYNC_H
#define SLINC_OPERATOR_SYNC_H

#include "engine/plan.h"
#include "kube/condition_list.h"
#include "operator/world.h"

struct sync {
    const struct operator_world *world;
    const struct kube_object *object; /* the custom resource */
    const struct json *spec;          /* its spec; absent when it has none */
    struct plan *plan;
    struct json_build *build; /* of the children; freed after the plan */
};

/* No action of a later stage waits for what the API server refuses to a step, unless the step takes
 * `is_independent` off the plan. */
struct sync_step {
    const char *name; /* as Events name it: "Deployment" */
    int (*run)(struct sync *sync, struct err *err);
};

enum { SYNC_MAX_ALSO = 3 };

/* The pods that a custom resource runs, as its workload reports them. */
struct sync_workload {
    const char *note; /* for a custom resource that runs no pods: what there is to say instead */
    const char *kind, *name;
    const struct json *tree; /* of the Deployment or StatefulSet; absent: not made yet */
    int64_t wanted;          /* replicas */
    /* A custom resource that is itself the workload counts its own pods; NULL: see tree. */
    const struct sync_pods {
        int64_t ready;
        bool is_settled; /* none is started, replaced or removed */
    } *pods;
    struct kube_condition_want also[SYNC_MAX_ALSO]; /* more conditions; without a type: none */
};

/* Whether all pods of a Deployment or StatefulSet are of the newest template, and no others are
 * there. */
bool sync_is_rolled_out(const struct json *tree, int64_t wanted);

/* The child "<name of the custom resource><suffix>" that exists; NULL: none. */
const struct kube_object *sync_child(const struct sync *sync, const struct kube_cache *cache,
                                     const char *suffix);

/* The same if the custom resource controls it: what another object controls says nothing of it. */
const struct kube_object *sync_own_child(const struct sync *sync, const struct kube_cache *cache,
                                         const char *suffix);

/* Runs the steps; an object without a spec has one failure instead. */
void sync_run(struct sync *sync, const struct sync_step *steps, size_t count);

/* All of a plan that is steps and a status. */
void sync_plan(const struct operator_world *world, const struct kube_object *object,
               struct plan *plan, const struct sync_step *steps, size_t count,
               void (*status)(struct sync *sync));

/* Patches the conditions Ready, Progressing and Degraded and these further members of the status
 * (or NULL), where they differ. A member that is null goes. */
void sync_status(struct sync *sync, const struct sync_workload *workload,
                 const struct json_mut *members);

#endif
