/* volumes.h - the part of a plan that has volumes ready where a pod will run. */
#ifndef SLINC_BRIDGE_VOLUMES_H
#define SLINC_BRIDGE_VOLUMES_H

#include "bridge/run/assign.h"

enum { VOLUMES_TIME_OUT_S = 600 }; /* as bindTimeoutSeconds of Kubernetes' own scheduler */

/* The claims of assigned pods that are not bound to a volume yet. */
struct open_claims {
    struct filter_claim *at;
    const char **nodes; /* of the pods, by claim */
    unsigned count;
    const char *why; /* what the first of them waits for; NULL: there is none */
};

struct open_claims volumes_look(const struct bridge_world *world, const struct unit *unit,
                                const struct assignments *assigned, struct arena *arena);

/* Claims that wait for their first consumer are told the node, or get a free volume of it. */
void plan_volumes(const struct bridge_world *world, struct plan *plan,
                  const struct open_claims *open);

#endif
