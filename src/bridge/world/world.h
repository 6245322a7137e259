/* world.h - all that a plan may look at. Plans are pure: what they read is here, and nothing else.
 *
 * The caches are Kubernetes and Slurm as far as we know them; the facts are plain values that
 * bridge.c brings up to date before every plan, so that a test writes them down. */
#ifndef SLINC_BRIDGE_WORLD_H
#define SLINC_BRIDGE_WORLD_H

#include "bridge/world/config.h"
#include "bridge/world/foreign_nodes.h"
#include "bridge/world/group.h"
#include "bridge/world/unit_state.h"
#include "device/needs.h"
#include "engine/node_refusals.h"
#include "engine/node_sizes.h"
#include "engine/plan.h"
#include "engine/watch_set.h"
#include "filter/filter.h"
#include "kube/workload_kinds.h"
#include "slurm/cache.h"
#include "slurm/sight.h"
#include "slurm/submit.h"

struct capacity;    /* slurm/capacity.h */
struct job_layouts; /* slurm/job_layouts.h */

struct bridge_facts {
    int64_t now_us;        /* loop time, as are all below but wall_us and leading_wall_us */
    int64_t wall_us;       /* since 1970 */
    int64_t slurm_skew_us; /* slurmctld's clock shows wall_us and this much more */
    bool agent_is_up;      /* it can end jobs with what happened (slurm/agent.h) */
    bool is_uninstalling;  /* the bridge is being removed: it gives back all it holds, and asks for
                         nothing */
    int64_t leading_us, leading_wall_us; /* since when */
    int64_t takeover_delay_us; /* how long a submit of a leader before us may still take effect */
    bool no_takeover_delay;    /* whoever led before us stopped cleanly, with nothing unresolved */
    bool slurm_synced;         /* all Slurm caches were filled */
    bool is_suspicious; /* slurmctld may have been restarted: relist before anything is done */
    const char *suspicion;
    enum slurm_sight job_visibility; /* whether our token sees all jobs */
    bool knows_job_visibility;       /* that was asked, and answered in some way */
    const char *job_visibility_why;
    int64_t pause_us; /* Slurm takes no more jobs for now (MaxJobCount, rate): until then; 0 */
    const char *pause_why;
    int64_t denied_us;        /* since when the pause is because we are denied; 0: it is not */
    const char *trouble;      /* why the bridge can do nothing in Slurm; "": it can */
    int64_t trouble_us;       /* since when */
    bool immediate_jobs_last; /* immediate allocations live as long as others (InactiveLimit) */
    int64_t restarted_us; /* when jobs were read again after slurmctld may have been restarted; 0 */
    size_t rebooking;     /* bound pods that lost their jobs not long ago */
    int64_t max_jobs;     /* that slurmctld keeps (MaxJobCount); 0: not known */
    size_t unsubmitted;   /* of those that wait: for which Slurm has no job yet */
    size_t queued;        /* jobs put into Slurm's queue in the last two seconds */
    size_t waiting_pods;  /* pods of ours that wait for a place */
    const char *slurm_user;   /* of our token: whose a job is that names none; "": not known */
    int64_t kill_wait_s;      /* KillWait of Slurm; 0: not known */
    bool bind_takes_metadata; /* labels on a Binding reach the pod (Kubernetes 1.35 and later) */
};

/* Kinds that not every API server has, or that the bridge can do without. */
enum optional_kind {
    OPTIONAL_PODGROUPS,
    OPTIONAL_WORKLOADS,
    OPTIONAL_COSCHEDULING,
    OPTIONAL_LWS,
    OPTIONAL_JOBSETS,
    OPTIONAL_DEVICE_CLASSES,
    OPTIONAL_SLICES,
    OPTIONAL_TAINT_RULES, /* of devices */
    OPTIONAL_CLAIMS,      /* for devices, of the DRA API */
    OPTIONAL_DAEMONSETS,  /* what their pods request is not given to Slurm */
    OPTIONAL_KINDS,       /* how many there are */
};

struct optional {
    struct kube_cache *cache;
    enum watch_state state;
};

struct bridge_world {
    const struct bridge_config *config;
    const struct slurm_owner *owner; /* we: cluster is the UID of the namespace kube-system, release
                                        the namespace and the name of the lease */
    struct kube_cache *pods, *nodes, *jobs, *replicasets, *statefulsets;
    struct kube_cache *namespaces; /* may be NULL */
    struct optional optional[OPTIONAL_KINDS];
    int pods_by_unit;        /* index: "namespace/uid", and of members of a group its key, too */
    int pods_by_node;        /* index: the Kubernetes node that they are bound to */
    int waiters_by_owner;    /* index: the queue of pods that exclude each other (submit_queue.h) */
    int nodes_by_slurm_name; /* index: the name in Slurm */
    struct device_indexes device_indexes;
    const struct job_layouts *layouts; /* what jobs were given on their nodes */
    struct kube_cache *other_pods;     /* of other schedulers */
    struct kube_cache *volumes;        /* PersistentVolumes; may be NULL */
    const struct slurm_cache *slurm_jobs, *slurm_nodes, *slurm_partitions, *slurm_reservations;
    const struct unit_states *unit_states;
    const struct node_refusals *node_refusals; /* NULL: there are none */
    const struct node_sizes *node_sizes;       /* NULL: all differences have lasted */
    const struct capacity *capacity;
    struct foreign_nodes *foreign_nodes; /* keeps the lists that plans asked for */
    struct filter *filter; /* which nodes pods may use; keeps what plans asked; NULL: all nodes */
    struct bridge_facts facts;
};

/* Slurm's caches can be believed: filled, and slurmctld is not suspected of a restart. */
bool slurm_is_clear(const struct bridge_world *world);

/* Registers the indexes. Before any object is in the caches. */
void world_add_indexes(struct bridge_world *world);

/* The filter lists the nodes that are lent to Slurm, by their names in Slurm. */
struct filter_hooks world_filter_hooks(const struct bridge_world *world);

struct device_view world_device_view(const struct bridge_world *world);
/* Whether pods cannot use the device that Slurm would give next of this record; NULL: they can. */
bool world_next_device_is_out(const struct bridge_world *world, const struct slurm_node *record,
                              const char *kube_node);

/* ---- names ---- */
/* The name that a Kubernetes node asks for, by its label or by its own name; "" for none. */
const char *world_slurm_name(const struct kube_node *node);
/* The name of its record in Slurm. While Slurm has a record of ours that was made for the node
 * under another name, that one, so that what runs there is found; "" when the name that it asks for
 * is another bridge's or another node's. */
const char *world_record_name(const struct bridge_world *world, const struct kube_node *node);
/* The Kubernetes node of this name if it asks for it, else the oldest one that does; NULL. */
const struct kube_node *world_node_asking_for(const struct bridge_world *world, struct str name);
/* The Kubernetes node that Slurm's record of this name stands for, or will when it is made; NULL.
 */
const struct kube_node *world_node_by_slurm_name(const struct bridge_world *world, struct str name);
const struct slurm_node *world_slurm_node(const struct bridge_world *world, struct str name);

/* ---- units ---- */
bool world_is_ours(const struct bridge_world *world,
                   const struct kube_pod *pod); /* our scheduler */
/* Appends the key of the unit that a pod is planned with: its group's, or "namespace/uid" when it
 * is in none or has a job of its own. */
void world_unit_key(const struct bridge_world *world, const struct kube_pod *pod, struct buf *out);
bool world_is_in_unit(const struct bridge_world *world, const struct kube_pod *pod, struct str key);
/* A member of a group that is planned by itself: its group's API is absent, or it has asked for a
 * job of its own because its group's had no place for it. */
bool world_is_alone(const struct bridge_world *world, const struct kube_pod *pod);
/* Whether it names a group, of an API that the server has. */
bool world_has_group(const struct bridge_world *world, const struct kube_pod *pod);
void world_own_key(const struct kube_pod *pod, struct buf *out); /* "namespace/uid" */
/* The unit of a job of this cluster, and the attempt; false for others' jobs. */
bool world_job_key(const struct bridge_world *world, const struct slurm_job *job,
                   struct buf *ret_key, unsigned *ret_attempt);
/* The same with the uid in its key; the texts are in ret_text. */
bool world_read_job(const struct bridge_world *world, const struct slurm_job *job,
                    struct buf *ret_text, struct slurm_key *ret_key);
/* Where the objects of such groups are; not for Jobs. */
const struct optional *world_group_api(const struct bridge_world *world, enum group_kind kind);
/* The object that speaks for the pod's group, when the group is known by the name of that object;
 * NULL: there is none, it is not seen yet, or the group's key has its uid. */
const struct kube_object *world_group_object(const struct bridge_world *world,
                                             const struct kube_pod *pod);

/* Whether a pod that is bound to this node has no running job: Slurm takes what it uses for free.
 */
bool world_has_pod_without_job(const struct bridge_world *world, const char *kube_node);
/* Whether a pod of ours is still on this node though it is ending, or its job has ended: what it
 * uses will soon be free, and Slurm takes it for free already. */
bool world_is_being_left(const struct bridge_world *world, const char *kube_node);
/* The most seconds that a pod gets to stop when Slurm ended its job, and how long after the start
 * of the next job its place may not be free before that job is given back. */
int64_t world_max_grace_s(const struct bridge_world *world);
int64_t world_place_wait_s(const struct bridge_world *world);
/* Whether Slurm has a job for this key that has not ended. */
bool world_has_job(const struct bridge_world *world, struct str key);

/* uninstall.c: no pod has our finalizer, no job and no node in Slurm is ours, no node has our
 * taint. Else what is left. */
bool world_holds_nothing(const struct bridge_world *world, struct buf *ret_what_is_left);

#endif
