/* names.h - names that users, charts and other programs know: those of the Slinky operator. */
#ifndef SLINC_OPERATOR_NAMES_H
#define SLINC_OPERATOR_NAMES_H

#define OPERATOR_GROUP   "slinky.slurm.net"
#define OPERATOR_VERSION "v1beta1"
#define OPERATOR_LEASE   "slurm-operator"

#define LABEL_NAME      "app.kubernetes.io/name"
#define LABEL_INSTANCE  "app.kubernetes.io/instance"
#define LABEL_COMPONENT "app.kubernetes.io/component"
#define LABEL_CLUSTER   "slinky.slurm.net/cluster"
#define LABEL_ACTIVE    "controller.slinky.slurm.net/active"

/* of workers */
#define LABEL_POD_NAME     "nodeset.slinky.slurm.net/pod-name"
#define LABEL_POD_INDEX    "nodeset.slinky.slurm.net/pod-index"
#define LABEL_POD_HOSTNAME "nodeset.slinky.slurm.net/pod-hostname"
#define LABEL_SCALING_MODE "nodeset.slinky.slurm.net/scaling-mode"
#define LABEL_POD_PROTECT  "nodeset.slinky.slurm.net/pod-protect"
#define LABEL_REVISION     "controller.kubernetes.io/hash"
#define TAINT_WORKER       "nodeset.slinky.slurm.net/worker"

#define ANNOTATION_DEFAULT_CONTAINER "kubectl.kubernetes.io/default-container"
#define ANNOTATION_SLURM_KEY_HASH    "slinky.slurm.net/slurm-key-hash"
#define ANNOTATION_JWT_KEY_HASH      "slinky.slurm.net/jwt-key-hash"
#define ANNOTATION_CONFIG_HASH       "slinky.slurm.net/slurm-config-hash"
#define ANNOTATION_DBD_CONF_HASH     "slinky.slurm.net/slurmdbd-conf-hash"
#define ANNOTATION_HOST_KEYS_HASH    "slinky.slurm.net/ssh-host-keys-hash"
#define ANNOTATION_SSHD_CONF_HASH    "slinky.slurm.net/sshd-conf-hash"
#define ANNOTATION_SSSD_CONF_HASH    "slinky.slurm.net/sssd-conf-hash"

#define ANNOTATION_TOPOLOGY          "topology.slinky.slurm.net/spec"
#define ANNOTATION_HOSTNAME_OVERRIDE "nodeset.slinky.slurm.net/hostname-override" /* on Nodes */

/* Ours, on pods of slurmctld: see reconfigure.h. */
#define ANNOTATION_CONFIG_VERSION      "slinc.slurm.net/config-version"
#define ANNOTATION_CONFIG_SINCE        "slinc.slurm.net/config-since"
#define ANNOTATION_CONFIG_RECONFIGURED "slinc.slurm.net/config-reconfigured"

enum {
    SLURMCTLD_PORT = 6817,
    SLURMD_PORT = 6818,
    SLURMDBD_PORT = 6819,
    SLURMRESTD_PORT = 6820,
    SSH_PORT = 22,
    SLURM_UID = 401,
    SLURMRESTD_UID = 65534,
};

#endif
