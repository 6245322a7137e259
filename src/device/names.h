/* names.h - the words by which Kubernetes and its drivers know devices and their claims. They are
 * an interface, as those of bridge/world/names.h are. */
#ifndef SLINC_DEVICE_NAMES_H
#define SLINC_DEVICE_NAMES_H

#define DEVICE_CLASS_PREFIX    "deviceclass.resource.kubernetes.io/" /* begins resources by DRA */
#define DEVICE_CORES_DRIVER    "cores.slinky.slurm.net"  /* `slinc dra`, and its DeviceClass */
#define DEVICE_CORES_VERSION   DEVICE_CORES_DRIVER "/v1" /* of what it is told (docs/devices.md) */
#define DEVICE_CORES_KIND      "SlurmCores"
#define DEVICE_CLAIM_PREFIX    "slinc-"    /* and the UID of its pod */
#define DEVICE_CPU_CLAIM       "slinc-cpu" /* the entry of a pod that is pinned */
#define DEVICE_EXTENDED_CLAIM  "resource.kubernetes.io/extended-resource-claim"
#define DEVICE_CLAIM_FINALIZER "resource.kubernetes.io/delete-protection"

#endif
