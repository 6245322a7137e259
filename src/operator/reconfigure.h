/* reconfigure.h - brings changed configuration files to slurmctld without a restart of its pod.
 *
 * The files are those of /etc/slurm in the pod: our ConfigMap and the user's. Their version stands
 * in annotations of the pods of slurmctld:
 *
 *     config-version       what the files should be. To write it makes kubelet sync them at once
 *     config-since         when that was written
 *     config-reconfigured  the version that slurmctld runs with
 *
 * Between the first and the last slurmctld is told to reconfigure, by REST: 1, 3, 10, 30 and 60 s
 * after the files changed, because nobody says when kubelet has synced them (usually within half a
 * second). It ends early when slurmctld shows the hash of the new slurm.conf (from Slurm 26.05 on).
 * Other files cannot be shown. */
#ifndef SLINC_OPERATOR_RECONFIGURE_H
#define SLINC_OPERATOR_RECONFIGURE_H

#include "operator/sync.h"

/* active: the pod whose slurmctld is in control; NULL: not known. */
int plan_reconfigure(struct sync *sync, const struct kube_object *active, struct err *err);

/* Whether the pod runs slurmctld for this Controller. */
bool is_slurmctld_pod(const struct sync *sync, const struct kube_object *pod);

#endif
