/* slurm_conditions.h - what Slurm last said, as conditions of custom resources. */
#ifndef SLINC_OPERATOR_SLURM_CONDITIONS_H
#define SLINC_OPERATOR_SLURM_CONDITIONS_H

#include "operator/sync.h"

/* facts: of the Controller in question, or NULL. Each is without a type while there is nothing to
 * say. */

/* SlurmReachable: whether a slurmctld responds. */
struct kube_condition_want want_slurm(const struct sync *sync, const struct slurm_facts *facts);

/* DatabaseReachable: whether slurmdbd answers from its database. */
struct kube_condition_want want_database(const struct sync *sync, const struct slurm_facts *facts);

#endif
