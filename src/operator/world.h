/* world.h - all that plans of the operator may look at.
 *
 * Caches are filled by watches.c; plans only read them. Facts of the moment (times, what Slurm
 * last said) are plain values, so that a test can write a world down. */
#ifndef SLINC_OPERATOR_WORLD_H
#define SLINC_OPERATOR_WORLD_H

#include "engine/plan.h"
#include "operator/kinds.h"

struct operator_world {
    /* custom resources */
    struct kube_cache *controllers, *restapis, *accountings, *loginsets, *nodesets, *tokens;
    /* children, and what custom resources refer to */
    struct kube_cache *configmaps, *secrets, *services, *deployments, *statefulsets, *pods, *claims;
    /* The index by "namespace/name" of spec.controllerRef, of restapis, loginsets and nodesets. */
    int by_controller;
    int64_t wall_us;        /* now, by the wall clock */
    const char *dns_domain; /* of Services: "cluster.local" */
};

/* The caches of the world with their indexes, empty. */
void operator_world_init(struct operator_world *world, const struct clock *clock);
void operator_world_done(struct operator_world *world);

/* The cache for objects of this kind, by the name of the kind ("RestApi"); NULL: none. */
struct kube_cache *operator_world_cache(const struct operator_world *world, const char *kind);

/* The object that spec.<ref>.name names, in the object's namespace; NULL when there is none. */
const struct kube_object *operator_world_ref(struct kube_cache *cache,
                                             const struct kube_object *object, const char *ref);

#endif
