/* needs.h - what devices a pod needs: as amounts for its job, and as claims before it is
 * bound. Pure. */
#ifndef SLINC_DEVICE_NEEDS_H
#define SLINC_DEVICE_NEEDS_H

#include "device/view.h"
#include "kube/kinds.h"

enum { CLAIM_MAX_RESULTS = 32 }; /* of an allocation, in Kubernetes */

struct device_amount {
    const struct device_row *row;
    int64_t amount;
};

struct device_amounts {
    struct device_amount *at; /* the same row may come more than once */
    unsigned count;
};

/* Whether the pod runs only where pods can be pinned: it has the entry for a claim of cores that
 * the webhook makes (DEVICE_CPU_CLAIM), or requests cores. */
bool device_needs_cores(const struct kube_pod *pod);
/* Whether it needs any other device, by a claim or as a resource. */
bool device_needs_more_than_cores(const struct kube_pod *pod);

/* -ERR_INVALID: Slurm cannot give that; the text is for the pod's author. -ERR_NOT_FOUND: a claim
 * that the pod names is not there yet. */
int device_amounts_of(const struct device_view *view, const struct kube_pod *pod,
                      struct arena *arena, struct device_amounts *ret_amounts, struct err *err);

enum pod_claim_kind {
    POD_CLAIM_EXTENDED, /* the bridge makes it for the resources that containers request */
    POD_CLAIM_CPU,      /* the bridge makes it: the pod is limited to the cores of its job */
    POD_CLAIM_USER,     /* a person, or a template, made it */
};

struct device_request {
    const char *name, *class;
    const struct device_row *row;
    int64_t count;
};

struct device_mapping { /* containers get the devices of this request for their resource */
    const char *container, *resource, *request;
};

struct pod_claim {
    enum pod_claim_kind kind;
    const char *name;
    const struct kube_resource_claim *found; /* NULL: it is not there */
    struct device_request *requests;
    unsigned request_count;
};

struct pod_claims {
    struct pod_claim *at;
    unsigned count;
    struct device_mapping *mappings; /* of the claim POD_CLAIM_EXTENDED */
    unsigned mapping_count;
};

/* The claims that the pod needs on this node; none for most pods. A resource that the node itself
 * has is served by a device plugin there, without a claim. Errors as above. */
int pod_claims_of(const struct device_view *view, const struct kube_pod *pod,
                  const struct kube_node *node, struct arena *arena, struct pod_claims *ret_claims,
                  struct err *err);

#endif
