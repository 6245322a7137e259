/* resource.h - the kinds of object we speak of, and where the API server keeps them. */
#ifndef SLINC_KUBE_RESOURCE_H
#define SLINC_KUBE_RESOURCE_H

#include "base/buf.h"

#include <stdbool.h>

struct kube_resource {
    const char *group; /* "" for the core group */
    const char *version;
    const char *plural; /* as in paths: "pods"; "" is the group and version itself (discovery) */
    const char *kind;   /* "Pod" */
    bool namespaced;
};

extern const struct kube_resource kube_pods, kube_nodes, kube_namespaces, kube_configmaps,
    kube_secrets, kube_services, kube_volume_claims, kube_volumes, kube_leases, kube_events,
    kube_subject_access_reviews, kube_token_reviews;

/* "/api/v1/namespaces/x/pods/y/status". ns "" or NULL on a namespaced kind means all namespaces
 * (for lists); name and subresource may be NULL. Names are escaped. */
void kube_path(struct buf *out, const struct kube_resource *resource, const char *ns,
               const char *name, const char *subresource);

/* "v1" or "apps/v1". */
void kube_api_version(struct buf *out, const struct kube_resource *resource);

#endif
