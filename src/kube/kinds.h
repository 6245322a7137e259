/* kinds.h - pods and nodes, as small as the bridge can use them.
 *
 * There are many of these and they change all the time, so they are projected at decode; every
 * other kind keeps its tree. Amounts are those that Kubernetes' scheduler counts with. */
#ifndef SLINC_KUBE_KINDS_H
#define SLINC_KUBE_KINDS_H

#include "codec/selector.h"
#include "kube/object.h"

enum {
    KUBE_MAX_RESOURCES = 64, /* different resource names of one pod or node */
    KUBE_MAX_ITEMS = 1024,   /* tolerations, taints, conditions */
};

enum kube_effect { KUBE_EFFECT_ANY, KUBE_NO_SCHEDULE, KUBE_PREFER_NO_SCHEDULE, KUBE_NO_EXECUTE };

struct kube_toleration {
    const char *key, *value; /* key "" tolerates all keys */
    int64_t seconds;         /* of NoExecute; -1 = for ever */
    enum kube_effect effect;
    bool exists; /* operator Exists: any value; else Equal */
    bool other;  /* an operator that we do not know (Gt, Lt): tolerates nothing here */
};

struct kube_taint {
    const char *key, *value;
    enum kube_effect effect;
};

struct kube_amount {
    const char *name;
    int64_t amount; /* whole units, rounded up */
};

struct kube_amounts { /* all but cpu, memory, ephemeral-storage and pods; sorted by name */
    const struct kube_amount *at;
    unsigned count;
};

struct kube_requests { /* what the pod needs of a node: containers, sidecars, init, overhead */
    int64_t cpu_milli, memory, ephemeral;
    struct kube_amounts extended; /* devices, huge pages */
};

/* A condition that is none of Kubernetes' own (those that matter are fields of their own). In a
 * prediction, which is a merge patch, `status.conditions` works as in a strategic patch of the
 * server: each item changes the condition of its type, as far as it names members, or adds it, or
 * with "$patch": "delete" takes it away; null takes all away. `ready` follows the same rule. */
struct kube_condition {
    const char *type, *status, *reason, *message; /* "" where absent */
};

struct kube_states { /* of containers, as the kubelet last reported them */
    uint16_t waiting, running, terminated;
};

struct kube_port {        /* of the node, taken by a pod */
    const char *ip;       /* "" and "0.0.0.0": every address */
    const char *protocol; /* "TCP", "UDP", "SCTP" */
    uint16_t port;
};

struct kube_device_ask { /* of one container, for one extended resource */
    const char *container, *resource;
    int64_t amount;
    uint16_t order; /* of the container: init containers first */
    uint16_t place; /* of the resource, among all that the container requests, by name */
    bool is_init;   /* it ends before the containers after it start; a sidecar does not */
};

struct kube_claim_ref {                  /* an entry of spec.resourceClaims */
    const char *name, *claim, *template; /* one of the last two is "" */
};

/* What few pods say. Rules stay JSON text, and only what is required, or can be told to Slurm: the
 * pods of one workload say the same, so whoever places them compiles it once. */
struct kube_rare {
    const char *node_affinity;                    /* a NodeSelector; "", as all five, for none */
    const char *node_preference;                  /* a list of PreferredSchedulingTerm */
    const char *pod_affinity, *pod_anti_affinity; /* lists of PodAffinityTerm */
    const char *spread;               /* the topologySpreadConstraints with DoNotSchedule */
    const struct kube_port *ports;    /* host ports, and all ports of pods on the host's network */
    const char *const *volume_claims; /* names; those of generic ephemeral volumes too, */
    const bool *volume_claim_is_own;  /* which are made for the pod and have it as owner */
    unsigned port_count, volume_claim_count;
    const struct kube_device_ask *device_asks; /* by container, then in the order of the text */
    const struct kube_claim_ref *claims;
    unsigned device_ask_count, claim_count;
    int64_t active_deadline; /* seconds; 0 = none */
};

/* How a pod ended, or what is known of that while it is being deleted. */
struct kube_end {
    int64_t finished_us;    /* of the container that ended last, by the kubelet; 0: not known */
    int64_t grace_s;        /* that the deletion left it, a part of deleted_us */
    const char *disruption; /* reason of the condition DisruptionTarget; "" */
    const char *reason;     /* of the status: "Evicted", "NodeLost"; "" */
    int32_t exit_code;      /* of the container that failed first; 0: none did */
    bool is_oom_killed;     /* that container */
};

struct kube_pod {
    struct kube_object object;
    const char *phase, *node_name, *scheduler_name, *priority_class, *hostname;
    const char *pod_group; /* spec.schedulingGroup.podGroupName */
    const char *service_account;
    const char *extended_claim; /* status.extendedResourceClaimStatus; "" without */
    int64_t priority;
    int64_t termination_grace; /* seconds */
    int64_t ready_since_us; /* when `ready` last changed, by the kubelet's clock; 0: it never did */
    struct kube_requests requests;
    struct kube_requests limits; /* summed alike; overhead only comes on top of what has a limit */
    struct kube_pairs node_selector;
    struct kube_pairs template_claims; /* status.resourceClaimStatuses: entry and claim */
    const struct kube_rare *rare;      /* NULL when it says nothing of that */
    const struct kube_end *end;        /* NULL: it has not ended, and nobody deleted it */
    const struct kube_toleration *tolerations;
    const struct kube_condition *conditions;
    unsigned toleration_count, condition_count;
    unsigned gate_count;      /* scheduling gates still closed */
    uint16_t container_count; /* in the spec, without init containers */
    struct kube_states containers, init_containers, debug_containers;
    bool host_network, ready;
};

struct kube_node {
    struct kube_object object;
    const char *internal_ip;
    int64_t cpu_milli, memory, ephemeral, pods; /* allocatable */
    struct kube_amounts extended;
    const struct kube_taint *taints;
    const struct kube_condition *conditions;
    unsigned taint_count, condition_count;
    int64_t ready_since_us; /* when `ready` last changed, by the node's clock */
    bool ready, unschedulable;
};

extern const struct kube_kind kube_pod_kind, kube_node_kind;
extern const struct kube_kind kube_namespace_kind; /* metadata alone */

static inline const struct kube_pod *kube_pod_of(const struct kube_object *object)
{
    return (const struct kube_pod *)(const void *)object;
}

static inline const struct kube_node *kube_node_of(const struct kube_object *object)
{
    return (const struct kube_node *)(const void *)object;
}

/* Succeeded or Failed: no container will run again. */
bool kube_pod_is_finished(const struct kube_pod *pod);

/* The kubelet said of every container that it ended, and of none that it runs. A pod without any
 * report is not "terminated": nothing is known of it. */
bool kube_pod_is_terminated(const struct kube_pod *pod);

/* NULL when there is none of this type. */
const struct kube_condition *kube_condition_of(const struct kube_condition *at, unsigned count,
                                               const char *type);
/* As JSON says it; the texts are borrowed. */
struct kube_toleration kube_toleration_of(const struct json *item);
bool kube_tolerates(const struct kube_toleration *toleration, const struct kube_taint *taint);

/* Labels as selectors ask for them. */
struct selector_subject kube_labels(const struct kube_pairs *labels);

bool kube_node_has_taint(const struct kube_node *node, const char *key); /* with any effect */

int64_t kube_amount_of(const struct kube_amounts *amounts, const char *name); /* 0 when absent */

#endif
