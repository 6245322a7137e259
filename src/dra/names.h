/* names.h - names that the bridge, the kubelet and people know the plugin by. */
#ifndef SLINC_DRA_NAMES_H
#define SLINC_DRA_NAMES_H

#define DRA_DRIVER "cores.slinky.slurm.net"

/* CDI devices are "<kind>=claim-<uid>". */
#define DRA_CDI_KIND DRA_DRIVER "/cpuset"

/* The opaque entry of an allocation in which the bridge tells Slurm's cores (docs/devices.md). */
#define DRA_CONFIG_VERSION DRA_DRIVER "/v1"
#define DRA_CONFIG_KIND    "SlurmCores"

/* On the ResourceSlice: why this node offers no cores. */
#define DRA_PROBLEM "slinc.slurm.net/no-cores"

#endif
