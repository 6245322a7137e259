/* gpus.h - GPUs of workers as generic resources (GRES) of Slurm.
 *
 * A NodeSet whose limits name GPUs registers workers with Gres=gpu:N, unless its extraConf says
 * something of Gres itself ("Gres=" says: none). slurm.conf then has GresTypes, and gres.conf how
 * slurmd finds the devices: it counts no GPU without a device file. */
#ifndef SLINC_OPERATOR_GPUS_H
#define SLINC_OPERATOR_GPUS_H

#include "operator/world.h"

/* How many GPUs the limits give each worker. ret_detect: what finds them, for AutoDetect; NULL:
 * nobody asks. */
int64_t nodeset_gpus(const struct kube_object *nodeset, const char **ret_detect);

/* The names of all generic resources that NodeSets and the bridge need, with commas between. */
const char *gpus_gres_types(const struct operator_world *world, struct arena *arena,
                            const struct kube_object *controller);

/* The text of gres.conf; NULL: none is needed, or NodeSets have GPUs of several makers, for which
 * there is no common one. */
const char *gpus_gres_conf(const struct operator_world *world, struct arena *arena,
                           const struct kube_object *controller);

/* Why workers of this NodeSet must not register yet; NULL: they may. slurmctld drops resources
 * whose names it has not read, and the record of the node stays without them. */
const char *gpus_wait(const struct operator_world *world, struct arena *arena,
                      const struct kube_object *controller, const struct kube_object *nodeset);

#endif
