/* names.h - the words by which people, Kubernetes and Slurm know the bridge. They are an interface:
 * what carries them today must mean the same tomorrow. */
#ifndef SLINC_BRIDGE_NAMES_H
#define SLINC_BRIDGE_NAMES_H

/* ---- on pods ---- */
#define BRIDGE_JOB_LABEL       "scheduler.slinky.slurm.net/slurm-jobid"
#define BRIDGE_NODE_ANNOTATION "slinky.slurm.net/slurm-node" /* the Kubernetes name of the node */
#define BRIDGE_FINALIZER       "scheduler.slinky.slurm.net/finalizer"
#define BRIDGE_ANNOTATION_PREFIX                                                                   \
    "slurmjob.slinky.slurm.net/" /* what people say of the job: job_desc.h                         \
                                  */
#define BRIDGE_GANG "gang"       /* suffix: of a Job or JobSet, all of its pods at once */
#define BRIDGE_ALONE_ANNOTATION                                                                    \
    "scheduler.slinky.slurm.net/own-job" /* of a member whom its group's job has no place for */
#define BRIDGE_CREATOR_ANNOTATION                                                                  \
    "scheduler.slinky.slurm.net/creator" /* who made it: the user and his groups, a line each */
#define BRIDGE_CREATOR_IS_OWNERS "\n"    /* then the UID of the owner of what a controller made */
#define BRIDGE_PENDING_CONDITION "SlurmPending"  /* why it waits, in Slurm's words */
#define BRIDGE_ENDED_CONDITION   "SlurmJobEnded" /* what Slurm did to its job */

/* ---- on nodes ---- */
#define BRIDGE_SLURM_NAME_LABEL      "slinky.slurm.net/slurm-nodename"
#define BRIDGE_EXTERNAL_LABEL        "scheduler.slinky.slurm.net/external-node"
#define BRIDGE_PARTITIONS_ANNOTATION "scheduler.slinky.slurm.net/external-node-partitions"
#define BRIDGE_TOPOLOGY_ANNOTATION   "topology.slinky.slurm.net/spec"
#define BRIDGE_TAINT                 "slinky.slurm.net/managed-node" /* value: the scheduler's name */
#define BRIDGE_NODE_CONDITION        "SlurmAvailable" /* False: Slurm gives it no work, and why */

/* ---- of others, by which their pods are known ---- */
#define BRIDGE_COSCHEDULING_LABEL   "scheduling.x-k8s.io/pod-group"
#define BRIDGE_LWS_NAME_LABEL       "leaderworkerset.sigs.k8s.io/name"
#define BRIDGE_LWS_KEY_LABEL        "leaderworkerset.sigs.k8s.io/group-key"
#define BRIDGE_LWS_GROUP_LABEL      "leaderworkerset.sigs.k8s.io/group-index"
#define BRIDGE_JOB_ROLE_LABEL       "training.kubeflow.org/job-role"
#define BRIDGE_LWS_WORKER_LABEL     "leaderworkerset.sigs.k8s.io/worker-index"
#define BRIDGE_JOBSET_NAME_LABEL    "jobset.sigs.k8s.io/jobset-name"
#define BRIDGE_JOBSET_UID_LABEL     "jobset.sigs.k8s.io/jobset-uid"
#define BRIDGE_JOBSET_RESTART_LABEL "jobset.sigs.k8s.io/restart-attempt"
#define BRIDGE_JOBSET_PART_LABEL    "jobset.sigs.k8s.io/replicatedjob-name"
#define BRIDGE_JOBSET_INDEX_LABEL   "jobset.sigs.k8s.io/job-global-index"
#define BRIDGE_COMPLETION_LABEL     "batch.kubernetes.io/job-completion-index"

/* ---- in Slurm ---- */
#define BRIDGE_REASON "slurm-bridge:" /* begins every reason of a drain that is ours */

#endif
