/* worker_identity.h - who a worker is: its ordinal or its Node, its name and its hostname.
 *
 * A NodeSet in StatefulSet mode numbers its workers; one in DaemonSet mode has one for each Node.
 * Slurm knows a worker by its hostname. */
#ifndef SLINC_OPERATOR_WORKER_IDENTITY_H
#define SLINC_OPERATOR_WORKER_IDENTITY_H

#include "kube/kinds.h"
#include "operator/world.h"
#include "slurm/cache.h"

struct worker_identity {
    int64_t ordinal;                /* -1: DaemonSet mode */
    const struct kube_object *node; /* the Node that it must run on; NULL: any */
    const char *name, *hostname;    /* of the pod */
};

/* spec.scalingMode; StatefulSet is the default. */
bool nodeset_is_daemonset(const struct kube_object *nodeset);

/* Slurm's name of a NodeSet: the first word of the template's hostname without dashes around it, or
 * the name of the NodeSet where that is no name for Slurm. Features, NodeSet lines and partitions
 * carry it. */
struct str nodeset_slurm_name(const struct kube_object *nodeset);

/* The NodeSets that refer to this Controller, sorted by name. */
const struct kube_object **nodesets_of(const struct operator_world *world, struct arena *arena,
                                       const struct kube_object *controller, size_t *ret_count);

/* ---- a worker that is to be ----
 * -ERR_INVALID when the result is no name for a pod or no hostname. The texts are in the arena. */

/* Names carry the ordinal with zeros in front, as wide as spec.ordinalPadding says.
 * node: the Node that this ordinal is pinned to, or NULL. */
int worker_of_ordinal(struct arena *arena, const struct kube_object *nodeset, int64_t ordinal,
                      const struct kube_object *node, struct worker_identity *ret_identity,
                      struct err *err);
/* DaemonSet mode. The name follows from the NodeSet, the Node's UID and the attempt: the same
 * attempt gives the same name, so that a create whose answer was lost is not repeated under another
 * one. A pod of that name that still exists asks for the next attempt. */
int worker_of_node(struct arena *arena, const struct kube_object *nodeset,
                   const struct kube_object *node, unsigned attempt,
                   struct worker_identity *ret_identity, struct err *err);
/* What the hostname on this Node must be, in DaemonSet mode. */
struct str worker_hostname_on(const struct kube_object *node);

/* Whether this NodeSet, by its numbers, makes workers of this name in Slurm. */
bool nodeset_makes_name(const struct kube_object *nodeset, const char *slurm_name);

/* ---- a worker that exists ---- */

/* The ordinal in a pod's name; -1 when the name is not "<name of the NodeSet>-<digits>". The pod of
 * NodeSet a-b is none of NodeSet a. */
int64_t worker_ordinal(const struct kube_object *nodeset, const char *pod_name);

/* The name of the node in Slurm: the pod's hostname. On the host's network, in StatefulSet mode, it
 * is that of the Node, or what precedes its first dot when Slurm has only that one, as slurmd
 * registers with unless it has an argument -N; and "" while there is no Node. In DaemonSet mode the
 * hostname is made of the Node's name. nodes: of Slurm; NULL: not known. */
const char *worker_slurm_name(struct arena *arena, const struct kube_pod *pod,
                              const struct slurm_cache *nodes);

#endif
