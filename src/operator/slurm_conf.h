/* slurm_conf.h - the text of slurm.conf for a Controller.
 *
 * The order of sections and lines is that of the Slinky operator, byte for byte: its hash stands in
 * pod templates. Values are written by codec/slurmconf, which no value can break out of; only the
 * user's extraConf and partition lines are taken as they are. */
#ifndef SLINC_OPERATOR_SLURM_CONF_H
#define SLINC_OPERATOR_SLURM_CONF_H

#include "base/buf.h"
#include "operator/world.h"

/* The two shapes of the objects around slurmctld: of the Slinky operator up to 1.2.1, and later. */
enum controller_shape {
    SHAPE_SINGLE, /* one Service for clients and pods; slurmctld is found by the Service's name */
    SHAPE_HA,     /* a Service of its own for pods, which are found by name; SlurmctldAddr */
};

struct slurm_conf_input {
    const struct operator_world *world;
    const struct kube_object *controller;
    enum controller_shape shape;
    int64_t replicas;
};

/* "<namespace>_<name>" unless spec.clusterName says otherwise. */
const char *slurm_cluster_name(struct arena *arena, const struct kube_object *controller);

/* -ERR_NOT_FOUND when a ConfigMap with scripts is missing. */
int slurm_conf_write(const struct slurm_conf_input *input, struct arena *arena, struct buf *out,
                     struct err *err);

/* How many nodes slurmctld takes: MaxNodeCount of the user's extraConf, or ours. */
int64_t slurm_conf_max_nodes(const struct kube_object *controller);

#endif
