/* device_claims.h - the part of a plan that has devices and cores ready where a pod will run. */
#ifndef SLINC_BRIDGE_DEVICE_CLAIMS_H
#define SLINC_BRIDGE_DEVICE_CLAIMS_H

#include "bridge/run/assign.h"

enum claims_state {
    CLAIMS_READY,     /* all pods have what they need: they may be bound */
    CLAIMS_UNREAD,    /* what the job has on its nodes is not known */
    CLAIMS_WAIT,      /* a claim is not there yet, or is being deleted or freed */
    CLAIMS_HELD,      /* another claim still has a device that Slurm gave to the job */
    CLAIMS_MISFIT,    /* the node cannot give what Slurm chose there */
    CLAIMS_REFUSED,   /* a claim that cannot be met, on any node */
    CLAIMS_UNWRITTEN, /* plan_claims makes and allocates them */
};

struct claims {
    enum claims_state state;
    const char *why;                 /* of all but READY, UNREAD and UNWRITTEN */
    const char *node;                /* HELD, MISFIT: its Slurm name */
    const struct claiming *claiming; /* private */
};

/* Claims of pods that are assigned, as Slurm chose their devices. In the arena. */
struct claims claims_look(const struct bridge_world *world, const struct unit *unit,
                          const struct assignments *assigned, struct arena *arena);

/* Claims of bound pods that somebody cleared: the kubelet may still read them, and other pods must
 * not get their devices. READY: there are none. */
struct claims claims_look_at_bound(const struct bridge_world *world, const struct unit *unit,
                                   struct arena *arena);

/* Writes what was found to be missing, and frees a claim that is of another job. */
void plan_claims(struct plan *plan, const struct claims *claims);

/* Pods that wait have no devices: what was allocated for a job that is gone is freed, and then the
 * claims that we made for them are deleted. */
void plan_free_claims(const struct bridge_world *world, const struct unit *unit, struct plan *plan);

#endif
