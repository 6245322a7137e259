/* kinds.h - the kinds of the DRA API that the plugin reads and writes. */
#ifndef SLINC_DRA_KINDS_H
#define SLINC_DRA_KINDS_H

#include "kube/object.h"

extern const struct kube_resource dra_resource_claims, dra_resource_slices;
extern const struct kube_kind dra_slice_kind; /* a tree */
extern const struct kube_kind dra_node_kind;  /* metadata only */

#endif
