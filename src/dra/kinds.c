/* kinds.c - the kinds of the DRA API that the plugin reads and writes. */
#include "dra/kinds.h"

const struct kube_resource dra_resource_claims = { "resource.k8s.io", "v1", "resourceclaims",
                                                   "ResourceClaim", true };
const struct kube_resource dra_resource_slices = { "resource.k8s.io", "v1", "resourceslices",
                                                   "ResourceSlice", false };

static const struct kube_field no_fields[] = { { .path = { NULL } } };

const struct kube_kind dra_slice_kind = { .resource = &dra_resource_slices };
const struct kube_kind dra_node_kind = { .resource = &kube_nodes,
                                         .size = sizeof(struct kube_object),
                                         .fields = no_fields };
