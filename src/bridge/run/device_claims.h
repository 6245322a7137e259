/* device_claims.h - the part of a plan that has devices and cores ready where a pod will run. */
#ifndef SLINC_BRIDGE_DEVICE_CLAIMS_H
#define SLINC_BRIDGE_DEVICE_CLAIMS_H

#include "bridge/run/assign.h"

enum claims_state {
    CLAIMS_READY,  /* all pods have what they need: they may be bound */
    CLAIMS_WAIT,   /* claims are being written, or wait for others */
    CLAIMS_MISFIT, /* the node cannot give what Slurm chose there */
};

struct claims_misfit {
    const char *node; /* its Slurm name */
    const char *why;
};

/* Makes and allocates the claims of pods that are assigned, as Slurm chose their devices.
 * ret_misfit may be NULL: then nothing is given back. */
enum claims_state plan_claims(const struct bridge_world *world, const struct unit *unit,
                              struct plan *plan, const struct assignments *assigned,
                              struct claims_misfit *ret_misfit);

/* Claims of bound pods that somebody cleared are allocated again: the kubelet may still read them,
 * and other pods must not get their devices. False: there are none. */
bool plan_restore_claims(const struct bridge_world *world, const struct unit *unit,
                         struct plan *plan);

/* Pods that wait have no devices: what was allocated for a job that is gone is freed. */
void plan_free_claims(const struct bridge_world *world, const struct unit *unit, struct plan *plan);

#endif
