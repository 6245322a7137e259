/* volume_kinds.h - what decides where a pod with volumes may run, as small as src/filter
 * uses it. */
#ifndef SLINC_KUBE_VOLUME_KINDS_H
#define SLINC_KUBE_VOLUME_KINDS_H

#include "kube/object.h"

enum {
    KUBE_MAX_HOSTS = 64,          /* that a volume is known to be pinned to */
    KUBE_ACCESS_ONE_POD = 1 << 3, /* the bit of ReadWriteOncePod */
};

struct kube_claim { /* v1 PersistentVolumeClaim; its node of choice is an annotation */
    struct kube_object object;
    const char *volume;   /* "" until it has one */
    const char *class;    /* "" when it names none */
    const char *mode;     /* as that of a volume, below */
    const char *selector; /* JSON of a LabelSelector; "" where any volume will do */
    int64_t size;         /* bytes that it asks for */
    unsigned access;      /* a bit for each mode */
};

struct kube_volume { /* v1 PersistentVolume */
    struct kube_object object;
    const char *affinity;     /* JSON of a NodeSelector; "" where any node will do */
    const char *const *hosts; /* all that it says: the label kubernetes.io/hostname is one of */
    unsigned host_count;      /* these; 0: it says something else */
    const char *class;        /* "" when it names none */
    const char *phase;
    const char *mode;                        /* volumeMode; "" is Filesystem */
    const char *for_ns, *for_name, *for_uid; /* claimRef; "" when it is for nobody */
    int64_t size;
    unsigned access;
};

struct kube_storage_class { /* storage.k8s.io/v1 StorageClass */
    struct kube_object object;
    const char *provisioner, *binding_mode;
    const char *topology; /* allowedTopologies, as JSON of a NodeSelector; "" where any will do */
};

extern const struct kube_kind kube_claim_kind, kube_volume_kind, kube_storage_class_kind;

static inline const struct kube_claim *kube_claim_of(const struct kube_object *object)
{
    return (const struct kube_claim *)(const void *)object;
}

static inline const struct kube_volume *kube_volume_of(const struct kube_object *object)
{
    return (const struct kube_volume *)(const void *)object;
}

static inline const struct kube_storage_class *kube_storage_class_of(
    const struct kube_object *object)
{
    return (const struct kube_storage_class *)(const void *)object;
}

#endif
