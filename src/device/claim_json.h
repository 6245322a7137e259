/* claim_json.h - claims for devices as JSON, as kube-scheduler writes them. Pure. */
#ifndef SLINC_DEVICE_CLAIM_JSON_H
#define SLINC_DEVICE_CLAIM_JSON_H

#include "codec/json.h"
#include "device/choose.h"

/* A claim that the pod owns. */
struct json_mut *claim_json(struct json_build *build, const struct pod_claim *claim,
                            const struct kube_pod *pod);

struct claim_status {
    const struct device_view *view;
    const struct pod_claim *claim;
    const struct choice *choice; /* its devices */
    const struct kube_pod *pod;  /* that it is reserved for */
    const struct kube_node *node;
    const char *job; /* `slinc dra` reads the cores of this job */
    int64_t wall_us;
};

/* The status of a claim that is allocated. */
struct json_mut *claim_status_json(struct json_build *build, const struct claim_status *status);

/* The claim for the resources that containers request; "": the pod needs none on its node. */
const char *pod_claims_extended(const struct pod_claims *claims);
/* What the status of the pod says of that claim; null without one. */
struct json_mut *extended_claim_json(struct json_build *build, const struct pod_claims *claims);

#endif
