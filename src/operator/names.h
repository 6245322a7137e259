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

#define ANNOTATION_FEATURES           "features.slinky.slurm.net/spec"              /* on Nodes */
#define ANNOTATION_NODE_CORDON_REASON "nodeset.slinky.slurm.net/node-cordon-reason" /* on Nodes */
#define ANNOTATION_SKIP_DRAIN         "nodeset.slinky.slurm.net/skip-drain" /* on NodeSets */
#define ANNOTATION_RELOAD_ON_CHANGE   "slinky.slurm.net/reload-on-change"   /* on NodeSets */
#define ANNOTATION_POD_CORDON         "nodeset.slinky.slurm.net/pod-cordon"
#define ANNOTATION_POD_DELETION_COST  "nodeset.slinky.slurm.net/pod-deletion-cost"
#define ANNOTATION_POD_DEADLINE       "nodeset.slinky.slurm.net/pod-deadline"
#define FINALIZER_RESERVATION         "nodeset.slinky.slurm.net/reservation"

/* Ours, on workers: why the operator cordoned one (with CORDONED_TOO behind it: a person had done
 * so before), and which topology Slurm was told. */
#define ANNOTATION_CORDONED_BY      "slinc.slurm.net/cordoned-by"
#define CORDONED_TOO                ", person"
#define ANNOTATION_TOPOLOGY_APPLIED "slinc.slurm.net/topology-applied"
/* Ours, on workers: since when Slurm has no node of a worker that is ready. */
#define ANNOTATION_UNREGISTERED "slinc.slurm.net/unregistered-since"
/* Ours, in revisions: the hash of what workers read from ConfigMaps and Secrets. */
#define ANNOTATION_MOUNTED_HASH "slinc.slurm.net/mounted-hash"
/* Ours, on NodeSets: their workers are drained before they go. */
#define FINALIZER_DRAIN "slinc.slurm.net/drain"

/* Ours, on NodeSets: for which start time and flags Slurm's reservation was made. */
#define ANNOTATION_RESERVATION_START "slinc.slurm.net/reservation-start"
#define ANNOTATION_RESERVATION_FLAGS "slinc.slurm.net/reservation-flags"
#define RESERVATION_PREFIX           "SlurmOperatorMaint-"

/* In front of every reason that the operator gives to Slurm: others are not its own. */
#define REASON_PREFIX      "slurm-operator: "
#define REASON_TERMINATING REASON_PREFIX "Pod is terminating" /* by the pod's own preStop hook */

/* Ours, a label of workloads: the hash of the pod template that is wanted, while the pods have the
 * one of the Slinky operator: see keep_live.c. */
#define LABEL_SLINKY_TEMPLATE "slinc.slurm.net/slinky-template"

/* Ours, on pods of slurmctld: see reconfigure.h. */
#define ANNOTATION_CONFIG_VERSION      "slinc.slurm.net/config-version"
#define ANNOTATION_CONFIG_SINCE        "slinc.slurm.net/config-since"
#define ANNOTATION_CONFIG_RECONFIGURED "slinc.slurm.net/config-reconfigured"
/* Ours, on the Secret with slurm.jwks and on pods that have read it: see slurm_keys.h. */
#define ANNOTATION_SLURM_KEYS "slinc.slurm.net/slurm-keys"
/* Ours, on the pod template of slurmctld: see restart_options.h. */
#define ANNOTATION_RESTART_OPTIONS "slinc.slurm.net/restart-options"

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
