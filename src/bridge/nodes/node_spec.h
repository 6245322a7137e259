/* node_spec.h - what a Kubernetes node should look like in Slurm, and whether it does. */
#ifndef SLINC_BRIDGE_NODE_SPEC_H
#define SLINC_BRIDGE_NODE_SPEC_H

#include "bridge/world/world.h"
#include "device/wanted.h"
#include "slurm/calls.h"

struct node_spec {
    int64_t cpus, memory;         /* whole CPUs and MiB that pods of Slurm may use */
    int64_t threads;              /* CPUs of a core, where cores can be pinned; else 1 */
    struct wanted_gres gres;      /* devices that pods of Slurm may use */
    int64_t all_cpus, all_memory; /* with what DaemonSets request, and the margin */
    int64_t margin;               /* MiB by which the memory in Slurm may differ */
    const char *partitions;       /* that its annotation names, separated by ','; "" names none */
    const char *features;         /* these, and what its labels say; "" names none */
    const char *topology;         /* "" for none */
    const char *address;
};

/* False when the kubelet has not yet said what it can give: nothing may be concluded from the size
 * then; the rest is filled in all the same. */
bool node_spec_of(const struct bridge_world *world, const struct kube_node *node,
                  struct arena *arena, struct node_spec *ret_spec);

/* CPUs, memory and gres of the record, beside what the node can give. Slurm changes none of these:
 * the node must be made anew. */
enum node_size {
    NODE_SIZE_RIGHT,
    NODE_SIZE_DEVICES, /* it has other devices than the record was made with, or more */
    NODE_SIZE_DIFFERS, /* any other difference by which no job can overcommit the node */
    /* The record has more than the node has, even without DaemonSets and margin. */
    NODE_SIZE_OVERCOMMITTED,
};
enum node_size node_spec_size(const struct node_spec *spec, const struct slurm_node *slurm);
/* A spec that names no features takes whatever there are. */
bool node_spec_has_features_of(const struct node_spec *spec, const struct slurm_node *slurm);
/* Whether the features differ in a word that is a partition of Slurm's. */
bool node_spec_moves(const struct node_spec *spec, const struct slurm_node *slurm,
                     const struct bridge_world *world, struct arena *arena);

/* The first of the partitions that Slurm does not have, or NULL. */
const char *node_spec_missing(const struct node_spec *spec, const struct bridge_world *world,
                              struct arena *arena);
/* The first of the partitions that the node is not in, or NULL. */
const char *node_spec_outside(const struct node_spec *spec, const struct slurm_node *slurm,
                              struct arena *arena);

/* The order that makes it. */
void node_spec_describe(const struct node_spec *spec, const char *name, struct arena *arena,
                        struct slurm_node_ask *ret_ask);

#endif
