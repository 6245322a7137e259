/* kinds_namespace.c - namespaces, of which only the metadata is read: the labels decide whether the
 * bridge manages them. */
#include "bridge/admit.h"

static const struct kube_field no_fields[] = { { { NULL }, KUBE_STR, 0 } };

const struct kube_kind bridge_namespace_kind = {
    .resource = &kube_namespaces,
    .size = sizeof(struct kube_object),
    .fields = no_fields,
};
