/* spec_tables.c - every field of every custom resource. */
#include "operator/admit_rules.h"
#include "operator/spec.h"

#define FIELD(at, of, otherwise, with, about)                                                      \
    { .path = (at), .type = (of), .absent = (otherwise), .traits = (with), .words = (about) }
#define CHECKED(at, of, otherwise, with, about, by, what)                                          \
    { .path = (at),                                                                                \
      .type = (of),                                                                                \
      .absent = (otherwise),                                                                       \
      .traits = (with),                                                                            \
      .words = (about),                                                                            \
      .check = (by),                                                                               \
      .refuses = (what) }
#define END { .path = NULL }

enum {
    REQUIRED = SPEC_REQUIRED,
    FIXED = SPEC_FIXED,
    NAMED = SPEC_NAMED,
    ROLLS = SPEC_ROLLS,
    AS_IS = SPEC_AS_IS,
};

/* What more than one kind has. */
#define JWT_KEYS                                                                                   \
    FIELD("jwtKeyRef", "KeyRef", NULL, 0,                                                          \
          "Secret with the HS256 key of auth/jwt. Needed unless external. Cannot be changed."),    \
        FIELD("jwtHs256KeyRef", "KeyRef", NULL, 0,                                                 \
              "Former name of jwtKeyRef. Ignored if jwtKeyRef is set."),                           \
        FIELD("jwksKeyRef", "KeyRef", NULL, 0,                                                     \
              "ConfigMap with a JWKS file, for tokens signed elsewhere.")
#define EXTERNAL(daemon)                                                                           \
    FIELD("external", "boolean", "false", 0, "True if " daemon " runs outside Kubernetes."),       \
        FIELD("externalConfig", "object", NULL, 0,                                                 \
              "Where the external " daemon " listens. Needed if external."),                       \
        FIELD("externalConfig.host", "string", NULL, REQUIRED, "Host name or address."),           \
        FIELD("externalConfig.port", "port", NULL, REQUIRED, "Port.")
#define CONTAINER(at, with, about)                                                                 \
    FIELD(at, "Container", NULL, with, about " A Container, which is merged into the pods.")

const struct spec_field spec_controller[] = {
    FIELD("clusterName", "string", NULL, 0,
          "ClusterName in Slurm; <namespace>_<name> if empty. Cannot be changed."),
    FIELD("slurmKeyRef", "KeyRef", NULL, FIXED,
          "Secret with the key of auth/slurm. Needed unless external."),
    JWT_KEYS,
    FIELD("accountingRef", "Ref", NULL, 0,
          "The Accounting that keeps the records of the cluster. There is no accounting without "
          "it."),
    EXTERNAL("slurmctld"),
    FIELD("ha", "object", NULL, 0, "High availability of slurmctld."),
    FIELD("ha.enabled", "boolean", "false", REQUIRED,
          "True if backups run beside the first slurmctld."),
    FIELD("ha.backups", "from 1", "1", 0, "Number of backups."),
    CONTAINER("slurmctld", 0, "The slurmctld container."),
    CONTAINER("reconfigure", 0, "The sidecar that runs scontrol reconfigure."),
    CONTAINER("logfile", 0, "The sidecar that prints the log of slurmctld."),
    FIELD("inplaceReconfigure", "boolean", "false", 0,
          "True if a sidecar reconfigures slurmctld when its files change."),
    FIELD("template", "PodTemplate", NULL, 0, "Template of the slurmctld pods."),
    FIELD("extraConf", "string", NULL, 0, "Lines to add to slurm.conf."),
    CHECKED("configFileRefs", "[]Ref", NULL, 0,
            "ConfigMaps whose keys become files beside slurm.conf.", admit_config_files,
            "a ConfigMap of it does not exist, or has the key slurm.conf or slurmdbd.conf; "
            "warning: a key that is no file of Slurm"),
    FIELD("prologScriptRefs", "[]Ref", NULL, 0, "ConfigMaps whose keys are scripts for Prolog."),
    FIELD("epilogScriptRefs", "[]Ref", NULL, 0, "ConfigMaps whose keys are scripts for Epilog."),
    FIELD("prologSlurmctldScriptRefs", "[]Ref", NULL, 0,
          "ConfigMaps whose keys are scripts for PrologSlurmctld."),
    FIELD("epilogSlurmctldScriptRefs", "[]Ref", NULL, 0,
          "ConfigMaps whose keys are scripts for EpilogSlurmctld."),
    FIELD("persistence", "Claim", NULL, 0,
          "Volume for StateSaveLocation. Beside enabled and existingClaim it has the fields of a "
          "PersistentVolumeClaimSpec."),
    FIELD("persistence.enabled", "boolean", "true", REQUIRED,
          "True if the state is kept in a volume. Cannot be changed."),
    FIELD("persistence.existingClaim", "string", NULL, 0,
          "Name of a PersistentVolumeClaim to use instead of a new one."),
    FIELD("service", "Service", NULL, 0, "Service of slurmctld, port 6817."),
    FIELD("metrics", "object", NULL, 0, "Metrics of slurmctld."),
    FIELD("metrics.enabled", "boolean", "false", 0, "True if slurmctld serves metrics."),
    FIELD("metrics.serviceMonitor", "Monitor", NULL, 0,
          "The ServiceMonitor for the Prometheus operator."),
    FIELD("metrics.serviceMonitor.enabled", "boolean", "false", 0,
          "True if there is a ServiceMonitor."),
    END,
};

const struct spec_field spec_accounting[] = {
    FIELD("slurmKeyRef", "KeyRef", NULL, 0,
          "Secret with the key of auth/slurm. Needed unless external."),
    JWT_KEYS,
    EXTERNAL("slurmdbd"),
    CONTAINER("slurmdbd", 0, "The slurmdbd container."),
    FIELD("template", "PodTemplate", NULL, 0, "Template of the slurmdbd pod."),
    FIELD("storageConfig", "object", NULL, 0, "The MySQL or MariaDB database."),
    FIELD("storageConfig.host", "string", NULL, REQUIRED, "Host of the database."),
    FIELD("storageConfig.port", "port", "3306", 0, "Port of the database."),
    FIELD("storageConfig.database", "string", "\"slurm_acct_db\"", 0, "Name of the database."),
    FIELD("storageConfig.username", "string", NULL, 0, "User of the database."),
    FIELD("storageConfig.passwordKeyRef", "KeyRef", NULL, REQUIRED,
          "Secret with the password of the user."),
    FIELD("extraConf", "string", NULL, 0, "Lines to add to slurmdbd.conf."),
    FIELD("service", "Service", NULL, 0, "Service of slurmdbd, port 6819."),
    END,
};

const struct spec_field spec_restapi[] = {
    FIELD("controllerRef", "Ref", NULL, REQUIRED, "The Controller of the Slurm cluster."),
    FIELD("replicas", "count", "1", 0, "Number of slurmrestd pods."),
    CONTAINER("slurmrestd", 0, "The slurmrestd container."),
    FIELD("template", "PodTemplate", NULL, 0, "Template of the slurmrestd pods."),
    FIELD("service", "Service", NULL, 0, "Service of slurmrestd, port 6820."),
    END,
};

const struct spec_field spec_loginset[] = {
    FIELD("controllerRef", "Ref", NULL, REQUIRED | FIXED | NAMED,
          "The Controller of the Slurm cluster."),
    FIELD("replicas", "count", "1", AS_IS, "Number of login pods."),
    CONTAINER("login", 0, "The login container."),
    CONTAINER("initconf", 0, "The init container that copies the configuration."),
    FIELD("template", "PodTemplate", NULL, 0, "Template of the login pods."),
    FIELD("rootSshAuthorizedKeys", "string", NULL, 0, "The file authorized_keys of root."),
    FIELD("extraSshdConfig", "string", NULL, 0, "Lines to add to sshd_config."),
    FIELD("sssdConfRef", "KeyRef", NULL, REQUIRED | NAMED, "Secret with sssd.conf."),
    FIELD("strategy", "object", NULL, AS_IS, "How pods are replaced, as in a Deployment."),
    FIELD("strategy.type", "string", NULL, AS_IS, "RollingUpdate or Recreate."),
    FIELD("strategy.rollingUpdate", "object", NULL, AS_IS, "Limits of a rolling update."),
    FIELD("strategy.rollingUpdate.maxSurge", "amount", NULL, AS_IS,
          "Number or percentage of pods above replicas."),
    FIELD("strategy.rollingUpdate.maxUnavailable", "amount", NULL, AS_IS,
          "Number or percentage of pods that may be unavailable."),
    FIELD("service", "Service", NULL, 0, "Service of sshd, port 22."),
    END,
};

const struct spec_field spec_nodeset[] = {
    FIELD("controllerRef", "Ref", NULL, REQUIRED | FIXED | NAMED,
          "The Controller of the Slurm cluster."),
    FIELD("replicas", "count", "1", AS_IS, "Number of pods. Ignored in scaling mode DaemonSet."),
    FIELD("scalingMode", "one of DaemonSet StatefulSet", "\"StatefulSet\"", AS_IS,
          "StatefulSet: as many pods as replicas. DaemonSet: one pod on each node that fits."),
    CONTAINER("slurmd", ROLLS, "The slurmd container."),
    CONTAINER("logfile", ROLLS, "The sidecar that prints the log of slurmd."),
    CHECKED("ssh", "object", NULL, ROLLS,
            "Ssh to nodes on which the user has a job (pam_slurm_adopt).", admit_ssh,
            "its `sssdConfRef.name` is empty although `enabled`"),
    FIELD("ssh.enabled", "boolean", "false", 0, "True if sshd runs in the pods."),
    FIELD("ssh.extraSshdConfig", "string", "\"\"", 0, "Lines to add to sshd_config."),
    FIELD("ssh.sssdConfRef", "KeyRef", NULL, REQUIRED, "Secret with sssd.conf."),
    FIELD("template", "PodTemplate", NULL, ROLLS,
          "Template of the slurmd pods. Its hostname begins the names of the nodes in Slurm."),
    CHECKED("extraConf", "string", NULL, ROLLS,
            "Node parameters for slurmd, as Key=Value, separated by blanks.", admit_extra_conf,
            "a word of it is not Key=Value"),
    FIELD("partition", "object", NULL, 0, "A partition of the nodes of this NodeSet."),
    FIELD("partition.enabled", "boolean", "false", 0, "True if there is such a partition."),
    FIELD("partition.config", "line", NULL, 0,
          "Partition parameters, as Key=Value, separated by blanks."),
    FIELD("volumeClaimTemplates", "[]PersistentVolumeClaim", NULL, FIXED | AS_IS,
          "PersistentVolumeClaims that each pod gets."),
    FIELD("updateStrategy", "object", NULL, AS_IS,
          "How pods are replaced when the NodeSet changes."),
    FIELD("updateStrategy.type", "one of RollingUpdate OnDelete ScheduledUpdate",
          "\"RollingUpdate\"", AS_IS,
          "RollingUpdate: a few nodes at a time, each drained first. OnDelete: when the user "
          "deletes a pod. ScheduledUpdate: in a reservation of Slurm."),
    FIELD("updateStrategy.rollingUpdate", "object", NULL, AS_IS, "Limits of a rolling update."),
    CHECKED("updateStrategy.rollingUpdate.maxUnavailable", "amount", "\"25%\"", AS_IS,
            "Number or percentage of pods that may be unavailable.", admit_max_unavailable,
            "it is less than 1, `0%`, or no number"),
    FIELD("updateStrategy.rollingUpdate.fromOrdinal", "count", NULL, AS_IS,
          "Workers with a lower ordinal are not replaced: a change can be tried on the last ones. "
          "Scaling mode StatefulSet only."),
    FIELD("updateStrategy.scheduledUpdate", "object", NULL, AS_IS,
          "The reservation for a scheduled update."),
    CHECKED("updateStrategy.scheduledUpdate.startTime", "time", NULL, AS_IS,
            "When the reservation starts.", admit_start_time, "it is no time"),
    CHECKED("updateStrategy.scheduledUpdate.duration", "string", "\"30m\"", AS_IS,
            "How long the reservation lasts; at least 1m.", admit_reservation_duration,
            "it is shorter than 1m or no duration"),
    FIELD("updateStrategy.scheduledUpdate.flags", "[]string", NULL, AS_IS,
          "Flags of the reservation beside MAINT and IGNORE_JOBS."),
    FIELD("revisionHistoryLimit", "count", "0", AS_IS, "Number of old revisions to keep."),
    FIELD("persistentVolumeClaimRetentionPolicy", "object", NULL, AS_IS,
          "What happens to the claims made from volumeClaimTemplates."),
    FIELD("persistentVolumeClaimRetentionPolicy.whenDeleted", "one of Retain Delete", "\"Retain\"",
          AS_IS, "When the NodeSet is deleted."),
    FIELD("persistentVolumeClaimRetentionPolicy.whenScaled", "one of Retain Delete", "\"Retain\"",
          AS_IS, "When replicas is reduced."),
    FIELD("minReadySeconds", "count", NULL, AS_IS,
          "Time that a pod must be ready before it counts as available."),
    FIELD("ordinalPadding", "count", "0", ROLLS | AS_IS,
          "Number of digits to which ordinals are padded with zeros."),
    FIELD("pinToNode", "boolean", "false", AS_IS,
          "True if each ordinal stays on the node where it first ran. Scaling mode StatefulSet "
          "only."),
    FIELD("workloadDisruptionProtection", "boolean", "true", AS_IS,
          "True if pods with running jobs cannot be evicted."),
    FIELD("pruneSlurmNodeRecords", "one of Never NodeNotFound", "\"Never\"", AS_IS,
          "Whether records of nodes are deleted in Slurm when their worker is gone. In scaling "
          "mode DaemonSet that is when the Kubernetes node is gone."),
    FIELD("oversubscribeNode", "boolean", "false", ROLLS | AS_IS,
          "True if one node may run more than one pod."),
    END,
};

const struct spec_field spec_token[] = {
    FIELD("jwtKeyRef", "KeyRef", NULL, 0,
          "Secret with the HS256 key that signs the token. Cannot be changed."),
    FIELD("jwtHs256KeyRef", "KeyRef", NULL, 0,
          "Former name of jwtKeyRef. Ignored if jwtKeyRef is set."),
    FIELD("username", "string", NULL, REQUIRED, "The user of the token."),
    CHECKED("lifetime", "string", NULL, 0,
            "How long a token is valid, as a Go duration; 15m if left out.", admit_lifetime,
            "it is no duration"),
    FIELD("refresh", "boolean", "true", 0, "True if the token is renewed before it expires."),
    FIELD("secretRef", "KeyRef", NULL, 0, "Secret and key that receive the token."),
    END,
};
