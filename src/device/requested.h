/* requested.h - what the pods of a job request of devices, as Slurm's list of gres. Pure. */
#ifndef SLINC_DEVICE_REQUESTED_H
#define SLINC_DEVICE_REQUESTED_H

#include "device/needs.h"

struct requested_gres { /* of each gres as many as the pod that requests most of it */
    struct requested_gres_entry *at;
    unsigned count;
};

/* Adds a pod; *ret_cores grows by the cores that it requests by device classes. Errors are those of
 * device_amounts_of. */
int requested_gres_add(struct requested_gres *requested, const struct device_view *view,
                       const struct kube_pod *pod, struct arena *arena, int64_t *ret_cores,
                       struct err *err);
/* "gres/gpu=2,gres/fpga:x=1": equal pods give equal texts. -ERR_INVALID: too long. */
int requested_gres_text(const struct requested_gres *requested, struct arena *arena,
                        const char **ret_text, struct err *err);

#endif
