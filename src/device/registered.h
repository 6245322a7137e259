/* registered.h - the devices that the record of a node in Slurm was made with, and their numbers.
 *
 * The mark of the record (`extra`, JSON) has them at "devices": "gpu:a100=gpu-0,gpu-1;nic=+2" means
 * two devices with the numbers 0 and 1 of their type, and two that Slurm only counts. What the node
 * has may change later: the numbers do not, until the record is made again. */
#ifndef SLINC_DEVICE_REGISTERED_H
#define SLINC_DEVICE_REGISTERED_H

#include "device/nodes.h"
#include "slurm/object.h"

#define REGISTERED_KEY "devices"

enum { REGISTERED_MAX = 8192 }; /* a longer list is not written */

/* NULL: the mark does not say; a bridge before ours, or somebody else, made the record. */
const char *registered_devices(const struct slurm_node *record, struct arena *arena);
/* The devices of one name and type: "gpu-0,gpu-1". False: there are none. */
bool registered_find(const char *registered, const char *gres, const char *type,
                     struct str *ret_devices);
/* Appends the devices of one name and type. */
void registered_add(struct buf *out, const char *gres, const char *type, struct str devices);

/* The devices of one row in the order of their numbers. Where the mark does not say, these are the
 * devices that the driver shows without a taint if they are as many as Slurm has; else all that it
 * shows, unless they are fewer. */
void registered_of_row(const struct device_view *view, const struct device_row *row,
                       const struct slurm_node *record, const char *node, struct arena *arena,
                       struct node_devices *ret_devices);

/* Whether a device that Slurm would give next, the free one with the lowest number, is tainted or
 * gone. */
bool registered_next_is_out(const struct device_view *view, const struct slurm_node *record,
                            const char *node, struct arena *arena);

#endif
