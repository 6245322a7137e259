/* slices.h - the ResourceSlice in which a node offers its cores: one device per NUMA node.
 *
 * One slice holds all devices of a node. The kubelet deletes it when it starts, and when the plugin
 * was away for half a minute; it is put back. A node that cannot pin has a slice without devices
 * and an annotation that says why. */
#ifndef SLINC_DRA_SLICES_H
#define SLINC_DRA_SLICES_H

#include "dra/topology.h"
#include "engine/engine.h"

struct slices {
    const char *node;
    const struct topology *topology; /* NULL when the node cannot pin */
    const char *problem;             /* why; NULL when it can */
    struct kube_cache *nodes, *slices;
    struct controller_watch watches[2];
    struct controller controller; /* for engine_add */
};

/* Everything is borrowed. */
void slices_init(struct slices *slices, const char *node, struct kube_cache *nodes,
                 struct kube_cache *slice_cache);
/* After topology or problem changed. */
void slices_changed(struct slices *slices);

int slices_plan(const struct slices *slices, struct plan *plan, struct err *err);

#endif
