/* view.h - what is known of devices: the table of the config, and the caches of the DRA API. */
#ifndef SLINC_DEVICE_VIEW_H
#define SLINC_DEVICE_VIEW_H

#include "device/table.h"

struct device_indexes {
    int slices_by_node;   /* the Kubernetes node whose devices they show */
    int claims_by_device; /* "driver/pool/device" that they are allocated */
    int claims_by_cores;  /* the Kubernetes node of whose cores they have some */
};

struct device_view { /* all that is known of devices; caches may be NULL */
    const struct device_table *table;
    const struct kube_cache *classes, *slices, *claims, *taint_rules;
    struct device_indexes indexes; /* of slices and claims */
};

/* Before any object is in the caches. */
struct device_indexes device_add_indexes(struct kube_cache *slices, struct kube_cache *claims);

/* Appends the key of a device in claims_by_device. */
void device_key(struct buf *out, const char *driver, const char *pool, const char *device);

#endif
