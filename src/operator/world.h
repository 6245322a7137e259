/* world.h - all that plans of the operator may look at.
 *
 * The informers of operator.c fill the caches; plans only read them. Facts of the moment (times,
 * what Slurm last said) are plain values, so that a test can write a world down. */
#ifndef SLINC_OPERATOR_WORLD_H
#define SLINC_OPERATOR_WORLD_H

#include "base/map.h"
#include "engine/plan.h"
#include "kube/reader.h"
#include "operator/kinds.h"
#include "operator/slurm_facts.h"

struct operator_world {
    /* custom resources */
    struct kube_cache *controllers, *restapis, *accountings, *loginsets, *nodesets, *tokens;
    /* children, and what custom resources refer to */
    struct kube_cache *configmaps, *secrets, *services, *deployments, *statefulsets, *pods, *claims;
    struct kube_cache *revisions, *budgets; /* ControllerRevisions, PodDisruptionBudgets */
    struct kube_cache *nodes;               /* of Kubernetes */
    struct kube_cache *service_monitors;    /* synced only where the API server has this kind */
    /* What fills `secrets`: only those that plans look up are read. NULL: they are all there. */
    struct kube_reader *secret_reader;
    /* The index by "namespace/name" of spec.controllerRef, of restapis, loginsets and nodesets. */
    int by_controller;
    int pods_by_owner;  /* the index of pods and revisions by the UID of their controller or "" */
    int pods_by_node;   /* the index of pods by the name of their Node */
    bool speaks_slurm;  /* this process asks Slurm: who has no facts yet will have some */
    struct map slurm;   /* struct slurm_facts by "namespace/name" of the Controller */
    struct map refused; /* texts by "controller namespace/name" of the custom resource */
    int64_t wall_us;    /* now, by the wall clock */
    int64_t loop_us;    /* now, by the loop: the clock of Slurm's caches */
    const char *dns_domain; /* of Services: "cluster.local" */
    /* Types of Node conditions that explain a drain, with commas between; "" for none. */
    const char *propagated_conditions;
    int64_t max_unregistered; /* workers of a Slurm cluster that are created and not registered */
};

enum { OPERATOR_MAX_UNREGISTERED = 500 }; /* unless somebody wants another number */

/* The caches of the world with their indexes, empty. */
void operator_world_init(struct operator_world *world, const struct clock *clock);
void operator_world_done(struct operator_world *world);

/* The cache for objects of this kind, by the name of the kind ("RestApi"); NULL: none. */
struct kube_cache *operator_world_cache(const struct operator_world *world, const char *kind);

/* The object that spec.<ref>.name names, in the object's namespace; NULL when there is none. */
const struct kube_object *operator_world_ref(struct kube_cache *cache,
                                             const struct kube_object *object, const char *ref);

/* What Slurm last said of this Controller; NULL: this process does not speak to Slurm. */
const struct slurm_facts *operator_world_slurm(const struct operator_world *world,
                                               const struct kube_object *controller);
/* The same to write to: made when it is not there. */
struct slurm_facts *operator_world_slurm_put(struct operator_world *world, struct str key);

/* The write of this controller for a custom resource that the API server or Slurm refuses, and why;
 * NULL: none. */
const char *operator_world_refused(const struct operator_world *world, const char *controller,
                                   const struct kube_object *object);
/* text: NULL when it is not refused any more. */
void operator_world_refuse(struct operator_world *world, const char *controller, struct str key,
                           const char *text);

#endif
