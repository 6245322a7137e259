/* nodes.h - the devices of a node, as its ResourceSlices show them. */
#ifndef SLINC_DEVICE_NODES_H
#define SLINC_DEVICE_NODES_H

#include "device/needs.h"

struct node_device {
    const char *name; /* "pool/device"; "device" where the pool is named as the
                         node */
    const char *pool;
    const struct slice_device *device; /* NULL: the driver does not show it */
    const char *taint;                 /* that keeps pods away; "" */
};

/* The devices of one row on one node, in the order in which Slurm counts them. */
struct node_devices {
    const struct node_device *at;
    unsigned count;
    /* Why nothing may be concluded from the list: a driver that is away has no slices, and its
     * devices are still there. NULL: it is whole. */
    const char *unknown;
};

void devices_of_node(const struct device_view *view, const struct device_row *row, const char *node,
                     struct arena *arena, struct node_devices *ret_devices);

/* The geometry of a node whose cores can be pinned; false when it has none. */
struct node_cores {
    int64_t cores, threads; /* of the machine; threads of one core */
};
bool node_cores_of(const struct device_view *view, const char *node, struct arena *arena,
                   struct node_cores *ret_cores);

#endif
