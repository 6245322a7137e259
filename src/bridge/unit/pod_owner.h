/* pod_owner.h - the objects whose annotations say what the job of one pod is, for whoever asks
 * about a pod that has no unit yet: the webhook. They are those that the bridge itself goes by,
 * because it finds them by the same function (unit_find_owner). */
#ifndef SLINC_BRIDGE_POD_OWNER_H
#define SLINC_BRIDGE_POD_OWNER_H

#include "bridge/unit/unit.h"

struct pod_owner {
    const struct kube_object *objects[1 + UNIT_MAX_MORE]; /* the last one that says it counts */
    unsigned count;
    const char *wanting; /* what was not seen yet; NULL: all was */
};

/* Borrowed from the caches and the pod. */
void pod_owner_find(const struct bridge_world *world, const struct kube_pod *pod,
                    struct arena *arena, struct pod_owner *ret_owner);

struct str pod_owner_says(const struct pod_owner *owner, const char *annotation, bool *ret_found);

#endif
