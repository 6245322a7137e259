/* kinds.h - devices of the DRA API (resource.k8s.io), as small as the bridge uses them. */
#ifndef SLINC_DEVICE_KINDS_H
#define SLINC_DEVICE_KINDS_H

#include "kube/object.h"

struct kube_device_class { /* DeviceClass */
    struct kube_object object;
    const char *extended_resource; /* extendedResourceName; "" without */
    const char *config;            /* JSON of its config; "" without */
};

struct slice_device { /* of a ResourceSlice */
    const char *name;
    struct kube_pairs attributes; /* values as text; names of the driver's own domain without it */
    bool is_shared;               /* it may be allocated many times */
    bool is_part;                 /* it draws on counters that other devices draw on, too */
    bool has_conditions;          /* it cannot be bound at once */
    const char *taint;            /* the first that keeps pods away: "key=value:effect"; "" */
};

struct kube_slice { /* ResourceSlice */
    struct kube_object object;
    const char *driver, *node, *pool;
    int64_t generation, slices; /* of the pool: how many slices this generation has */
    const struct slice_device *devices;
    unsigned device_count;
};

struct kube_taint_rule { /* DeviceTaintRule; "" selects any */
    struct kube_object object;
    const char *driver, *pool, *device;
    const char *taint; /* as that of a slice_device */
    bool selects;      /* without a selector it taints nothing */
};

struct claim_request {
    const char *name, *class;
    int64_t count;
    const char *refused; /* why the bridge cannot allocate it; "" when it can */
};

struct claim_result {
    const char *request, *driver, *pool, *device;
};

struct claim_user { /* of status.reservedFor */
    const char *name, *uid;
};

struct kube_resource_claim { /* ResourceClaim */
    struct kube_object object;
    const struct claim_request *requests;
    const char *refused;   /* why the bridge cannot allocate the claim; "" when it can */
    const char *config;    /* JSON of spec.devices.config; "" without */
    const char *allocated; /* allocationTimestamp; "" when it is not allocated */
    const char *node;      /* that it is allocated on; "" for any */
    const char *cores;     /* Slurm's cores, as the bridge wrote them; "" without */
    const struct claim_result *results;
    const struct claim_user *users;
    unsigned request_count, result_count, user_count;
    bool is_allocated;
};

extern const struct kube_resource device_resource_claims;
extern const struct kube_kind device_class_kind, device_slice_kind, device_claim_kind,
    device_taint_rule_kind;

static inline const struct kube_device_class *kube_device_class_of(const struct kube_object *object)
{
    return (const struct kube_device_class *)(const void *)object;
}

static inline const struct kube_taint_rule *kube_taint_rule_of(const struct kube_object *object)
{
    return (const struct kube_taint_rule *)(const void *)object;
}

static inline const struct kube_slice *kube_slice_of(const struct kube_object *object)
{
    return (const struct kube_slice *)(const void *)object;
}

static inline const struct kube_resource_claim *kube_resource_claim_of(
    const struct kube_object *object)
{
    return (const struct kube_resource_claim *)(const void *)object;
}

#endif
