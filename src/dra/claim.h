/* claim.h - what a ResourceClaim's allocation says about cores of this node.
 *
 * The bridge writes Slurm's cores into an opaque entry of status.allocation.devices.config whose
 * source is FromClass. Users can write DeviceClasses and allocations no more than other
 * cluster-wide objects, but they can put config entries into their own claims; those arrive as
 * FromClaim, and are refused. docs/devices.md has the format. */
#ifndef SLINC_DRA_CLAIM_H
#define SLINC_DRA_CLAIM_H

#include "dra/prepared.h"
#include "dra/topology.h"

enum { CLAIM_MAX_DEVICE = 64 };

/* The name of the device of a NUMA node: "socket0-numa1". */
void claim_device_name(const struct topology_numa *numa, char ret_name[CLAIM_MAX_DEVICE]);

/* The claim as it will be prepared. -ERR_UNAVAILABLE: it is not allocated yet; -ERR_CONFLICT: it is
 * another claim of the same name; -ERR_INVALID: it cannot be prepared here. */
int claim_read(const struct json *object, struct str uid, const char *node,
               const struct topology *topology, struct prepared_claim **ret_claim, struct err *err);

#endif
