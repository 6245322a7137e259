/* sim_bridge.h - the scene of the bridge's scenarios: shared by its people, its kubelets, its
 * stories and its promises.
 *
 * Names are few and come back: a pod, a node or an owner that was deleted is made again under the
 * same name, which is what programs that go by names fall over. */
#ifndef SLINC_SIM_BRIDGE_H
#define SLINC_SIM_BRIDGE_H

#include "base/map.h"
#include "bridge/bridge.h"
#include "bridge/world/names.h"
#include "crash_cases.h"
#include "process.h"

enum {
    BRIDGE_REPLICAS = 2,
    SCENE_SECOND = 1000000,
    SCENE_NODES = 5,         /* node-1 ...; the seed decides how many of them there are */
    SCENE_CPUS = 8,          /* of each */
    SCENE_GPU_NODES = 2,     /* the first ones have GPUs */
    SCENE_PODS = 10,         /* p1 ... */
    SCENE_GROUPS = 6,        /* g1 ... in each of two namespaces */
    SCENE_MEMBERS = 8,       /* of one of them, at most */
    SCENE_IMPOSSIBLE = 1000, /* CPUs that no node has */
    SCENE_TEXT = 512,
    SCENE_NODE_WRITES = 16,
};

#define SCENE_NS         "work"
#define SCENE_OTHER_NS   "play"
#define SCENE_LEASE_NS   "slinc"
#define SCENE_SECRET     "the secret of this installation, or of none"
#define SCENE_LENT_NODES "slurm-bridge-lent-nodes" /* a ConfigMap there */
#define SCENE_PARTITION  "bridged"
#define SCENE_SCHEDULER  "slurm-bridge-scheduler"
#define SCENE_STRANGER   "default-scheduler"
#define SCENE_TWIN       "twin"             /* a node of two clusters */
#define SCENE_DISK_LABEL "example.com/disk" /* of nodes: "fast" on every other */

struct bridge_scene;

struct bridge_replica {
    struct bridge_scene *scene;
    struct process process;
    struct http_transport *api, *lease_api, *slurm, *agent; /* agent NULL: it has none */
    struct slurm_token *token;
    struct bridge *bridge; /* NULL while dead */
    int64_t listed_us;     /* when the last whole list of jobs that was answered had been sent */
    int64_t nodes_us;      /* and the last list of nodes */
};

/* ---- what the promises remember ---- */

enum { SCENE_KEY = 160 };

/* A pod, by "namespace/uid"; stays when the pod is gone. */
struct pod_note {
    char key[SCENE_KEY], ns[16], name[48];
    char group[SCENE_KEY]; /* the key of its group's unit; "": it is in none */
    char unit[SCENE_KEY];  /* of the two above, the one by whose job it was bound */
    char node[32];         /* that it was bound to; "" */
    char job[16];          /* sluid of the job under it at that time */
    int64_t read_us;       /* what the sender of the last Binding knew of its own job */
    int64_t group_read_us; /* and of its group's */
    int64_t listed_us;     /* the same for whole lists */
    int64_t bind_us;       /* when it was sent */
    int64_t bound_us;      /* when it took effect; 0 */
    bool node_was_gone;    /* from under it, at some time */
};

/* What Slurm gives resources to as one: a pod or a group, by the key that its jobs carry. */
struct unit_note {
    char key[SCENE_KEY];
    bool is_group;
    unsigned live;      /* jobs of it that have not ended */
    int64_t doubled_us; /* since when there are two; 0 */
    int64_t short_us;   /* until when too few pods waited to begin; INT64_MAX while it is so */
};

/* A job, by sluid. */
struct job_note {
    char sluid[16], unit[SCENE_KEY]; /* unit: "" for a stranger's */
    char uid[48];                    /* of the object that the unit is named by; "" */
    char nodes[64];                  /* that it runs on, or ran on last */
    int64_t id, taken_us;
    int64_t ran_until_us;               /* INT64_MAX while it runs; 0: never did */
    char nodes_before[64];              /* of its run before, after which it was put back; "" */
    int64_t before_until_us;            /* when that run ended */
    int64_t polled_us[BRIDGE_REPLICAS]; /* the last poll of states: what differs is read then */
    int64_t read_us[BRIDGE_REPLICAS];   /* when the last read of it that was answered was sent */
    int64_t lost_us;                    /* when a crash of slurmctld took it; 0 */
    int64_t cancel_us;                  /* when the last cancel of it was sent; 0 */
    bool is_live;
    int64_t reason_us; /* since when */
    bool is_a_reason;  /* Slurm ended it, put it back, suspended or moved it: its pod may go */
};

struct node_note { /* of Kubernetes, by name */
    char name[32];
    int64_t changed_us; /* its label, size or partitions, by people */
    int64_t unfit_us;   /* until when it was no place for a pod; INT64_MAX while it is none */
};

struct slurm_node_note {
    char name[32], reason[128], extra[200], features[64];
    bool external, is_out;
    int64_t out_us; /* since when it is so for this reason */
};

/* ---- the scene ---- */

struct bridge_weather {
    const char *name;
    const struct sim_faults *faults; /* of the API server; NULL: none */
    struct sim_faults slurm_faults;
    bool crashes, rollouts, partitions;
    bool stops, kills, restarts, gateway; /* of slurmctld: SIGSTOP, kill -9, clean; slurmrestd */
    bool foreign_token;                   /* not minted by us: lives long */
    bool plugin, plugin_is_quick;         /* the site rewrites admin_comment, later; at once */
    bool has_all_apis;                    /* of groups; else the seed leaves some out */
    bool policy;                          /* for a while the API server refuses all Bindings */
};

struct group_shape;

/* A workload of several pods; sim_bridge_groups.c. */
struct scene_group {
    const struct group_shape *shape; /* NULL: there is none */
    char name[16], ns[16];
    unsigned pods, needed;
    unsigned attempt;             /* how often it has begun again */
    unsigned made[SCENE_MEMBERS]; /* how often each member was made */
    int64_t born_us, object_us;   /* object: when the one that speaks for it is due */
    bool gate_is_open, is_left;   /* left: nobody makes pods for it any more */
};

enum group_api { API_PODGROUPS, API_COSCHEDULING, API_LWS, API_JOBSETS, GROUP_APIS };

struct bridge_scene {
    struct world *world;
    struct bridge_config config;
    struct bridge_replica replicas[BRIDGE_REPLICAS];
    const struct bridge_weather *weather;
    struct loop_timer people, kubelet, operators, daemons, daemons_back, partition, course, agents;
    struct loop_timer controllers;
    struct scene_group groups[SCENE_GROUPS];
    bool is_calm, is_over;
    unsigned real_ends; /* jobs that we ended with what became of their pods */
    bool has_agent;     /* each replica goes to Slurm by one, too */
    bool is_starting;   /* slurmctld: what it knows of nodes is older than our notes */
    bool people_act;    /* what changes in Slurm now is people's doing */
    bool is_removed;    /* in the end: what promises say of jobs and nodes is not asked then */
    bool leaves;        /* whoever starts now gives back all */
    bool has_twin;      /* there is a node with the name of another cluster's */
    const struct bridge_replica *leader; /* NULL: nobody */
    int64_t leading_us;                  /* since when the last one that there was led */
    unsigned node_count, max_in_flight, page;
    bool has_api[GROUP_APIS]; /* what the server has beside what every one has */
    int64_t begun_us, storm_us;
    int64_t refused_us;                  /* a Binding, the first time; 0 */
    bool says_refused;                   /* a pod */
    int64_t course_us;                   /* when the present act began: calm, or all was deleted */
    int64_t sent_us;                     /* the last write of ours, leases and events aside */
    int64_t tainted_us[SCENE_GPU_NODES]; /* since when the first GPU is; 0: it is not */
    char cluster[64];                    /* UID of kube-system */
    struct map pods, units, jobs, nodes, slurm_nodes; /* notes */
    unsigned doubled;                                 /* units with two live jobs now */
    uint64_t doubles;                                 /* and how often that happened */
    int64_t longest_double_us;
    uint64_t sent, settled_sent; /* writes of our processes, leases and events aside */
    uint64_t binds;
    struct {
        int64_t sent_us, nodes_us;
    } node_writes[SCENE_NODE_WRITES]; /* the last ones, and what their senders knew of nodes */
    unsigned node_write_count;

    struct crash_case crash; /* without a suite: chance rules */
    struct loop_timer blow_timer;
};

/* ---- sim_bridge.c: processes, weathers, course ---- */
void *bridge_scene_new(struct world *world, const struct bridge_weather *weather, bool has_agent);
void bridge_scene_free(void *scene);
void bridge_scene_calm(struct bridge_scene *scene); /* faults end, daemons are up again */
struct bridge_replica *bridge_replica_named(struct bridge_scene *scene, const char *user);
void bridge_on_crash(void *world, const char *user);
void bridge_on_received(void *world, const char *user, const char *method, const char *path,
                        int status, int64_t sent_us);

/* ---- sim_bridge_people.c: pods and nodes in Kubernetes ---- */
void bridge_people_prepare(struct bridge_scene *scene); /* an empty cluster */
void bridge_people_start(struct bridge_scene *scene);
void bridge_people_end(struct bridge_scene *scene); /* with a last burst, then repairs */
int bridge_people_call(struct bridge_scene *scene, const char *method, const char *path,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));
void bridge_people_make_node(struct bridge_scene *scene, unsigned number, unsigned cpus);
void bridge_people_make_node_named(struct bridge_scene *scene, const char *name, unsigned number,
                                   unsigned cpus);
void bridge_people_delete_node(struct bridge_scene *scene, unsigned number);
void bridge_people_make_pod(struct bridge_scene *scene, const char *name, unsigned cpus);
void bridge_people_make_pod_with_device(struct bridge_scene *scene, const char *name);
void bridge_people_make_pinned_pod(struct bridge_scene *scene, const char *name);
void bridge_people_delete_pod(struct bridge_scene *scene, const char *ns, const char *name,
                              int grace);
void bridge_people_delete_all(struct bridge_scene *scene); /* pods and groups; nodes stay */

/* ---- sim_bridge_groups.c: workloads of several pods, and their controllers ---- */
void bridge_groups_start(struct bridge_scene *scene);
void bridge_groups_make(struct bridge_scene *scene); /* one of chance, if its place is free */
void bridge_groups_disturb(struct bridge_scene *scene);
/* For stories: the first place, work/g1. */
void bridge_groups_make_as(struct bridge_scene *scene, const char *what);
void bridge_groups_delete_member(struct bridge_scene *scene, unsigned member);
void bridge_groups_restart(struct bridge_scene *scene);
void bridge_groups_make_object_again(struct bridge_scene *scene);
void bridge_groups_delete(struct bridge_scene *scene);
void bridge_groups_end(struct bridge_scene *scene); /* some of them */
void bridge_groups_delete_all(struct bridge_scene *scene);

/* ---- sim_bridge_kubelet.c: what runs pods, and cleans up behind nodes ---- */
void bridge_kubelet_start(struct bridge_scene *scene);
void bridge_kubelet_finish(struct bridge_scene *scene, const char *pod, bool well); /* of work */

/* ---- sim_bridge_devices.c: devices, who frees claims, and what is promised of both ---- */
void bridge_devices_prepare(struct bridge_scene *scene); /* a claim of people: work/mine */
void bridge_gpus_of_node(struct bridge_scene *scene, const char *node);
void bridge_taint_gpu(struct bridge_scene *scene, unsigned node, bool yes);
void bridge_leave_claim(struct bridge_scene *scene, const char *pod);
void bridge_cores_of_node(struct bridge_scene *scene, const char *node);
unsigned bridge_devices_shown(const struct bridge_scene *scene, const char *node);
void bridge_devices_step(struct bridge_scene *scene); /* of the controller that frees claims */
unsigned bridge_devices_claims(const struct bridge_scene *scene); /* how many there are */
bool bridge_pod_wants(const struct json *pod, const char *class); /* a device; NULL: that we have */
void bridge_promises_on_device_claim(struct bridge_scene *scene, const struct api_change *change);
void bridge_promises_on_bound_with_device(struct bridge_scene *scene, const struct json *pod,
                                          const char *node);

/* ---- sim_bridge_slurm.c: people and daemons in Slurm ---- */
void bridge_slurm_prepare(struct bridge_scene *scene);
void bridge_slurm_start(struct bridge_scene *scene);
void bridge_slurm_end(struct bridge_scene *scene);        /* what people did there is undone */
void bridge_slurm_daemons_up(struct bridge_scene *scene); /* and the agents */
void bridge_agents_start(struct bridge_scene *scene);     /* they die, hang and refuse */

/* ---- sim_bridge_foreign.c: objects of others that look like ours ---- */
void bridge_foreign_prepare(struct bridge_scene *scene); /* nodes */
void bridge_foreign_submit(struct bridge_scene *scene);  /* a job */
void bridge_foreign_claims(struct bridge_scene *scene);
bool bridge_slurm_node_is_foreign(const char *name);
void bridge_promises_on_claim(struct bridge_scene *scene, const struct api_change *change);

/* ---- sim_bridge_notes.c: what happened, for the promises ---- */
void bridge_notes_init(struct bridge_scene *scene);
void bridge_notes_done(struct bridge_scene *scene);
struct pod_note *bridge_note_of_pod(struct bridge_scene *scene, const struct json *pod);
struct unit_note *bridge_note_of_unit(struct bridge_scene *scene, const char *key);
struct node_note *bridge_note_of_node(struct bridge_scene *scene, const char *name);
const struct job_note *bridge_note_of_sluid(const struct bridge_scene *scene, const char *sluid);
struct job_note *bridge_note_of_job(struct bridge_scene *scene, const struct slurm_store_job *job);
void bridge_note_change(struct bridge_scene *scene, const struct api_change *change);
void bridge_note_job(struct bridge_scene *scene, const struct slurm_store_change *change);
void bridge_note_read(struct bridge_scene *scene, unsigned replica, const char *path,
                      int64_t sent_us);
void bridge_note_binding(struct bridge_scene *scene, const char *user, const char *path);
void bridge_note_cancel(struct bridge_scene *scene, struct str body);
/* By the path of a complete: the agent ends this one job. */
void bridge_note_complete(struct bridge_scene *scene, const char *path);
struct slurm_node_note *bridge_note_of_slurm_node(struct bridge_scene *scene, const char *name);
void bridge_note_slurm_node(struct bridge_scene *scene, const struct slurm_store_change *change);
bool bridge_hosts_have(const char *hosts, const char *name); /* a folded list */
bool bridge_is_ours(const char *user);                       /* one of our processes */
bool bridge_pod_is_live(const struct json *pod); /* neither finished nor being deleted */
bool bridge_pod_may_run(const struct json *pod); /* bound, and not all of it has ended */
bool bridge_node_is_labelled(const struct json *node);
bool bridge_node_is_ready(const struct json *node);
bool bridge_node_is_fit(const struct json *node); /* ready, not cordoned */

/* ---- sim_bridge_units.c: pods that belong together ---- */
/* The key of its group's unit; "": it is in none. */
void bridge_write_group(const struct bridge_scene *scene, const struct json *pod,
                        char key[SCENE_KEY]);
/* How many of its group's pods must wait before Slurm is asked; 0: the object that says so is not
 * there. */
int64_t bridge_group_needs(const struct bridge_scene *scene, const struct json *pod);
/* The UID of the object that its group is named by: in the keys of jobs. "": its key has it, or
 * the object is not there. */
struct str bridge_group_uid(const struct bridge_scene *scene, const struct json *pod);
/* How many nodes its group may have, by the annotation max-nodes; 0: it does not say. */
int64_t bridge_group_most_nodes(const struct bridge_scene *scene, const struct json *pod);
/* Whether the group is complete now, into its note. */
void bridge_note_size(struct bridge_scene *scene, const char *unit);
void bridge_note_all_sizes(struct bridge_scene *scene);
int64_t bridge_pod_cpus(const struct json *pod);
bool bridge_pod_has_port(const struct json *pod); /* of its host */
bool bridge_pod_waits(const struct json *pod);    /* wants a place, and nobody holds it back */

/* ---- sim_bridge_promises.c: all the time ---- */
void bridge_promises_on_change(void *scene, const struct api_change *change);
void bridge_promises_on_slurm(void *scene, const struct slurm_store_change *change);
void bridge_promises_on_send(struct bridge_scene *scene, const char *user, const char *method,
                             const char *path, struct str body);
void bridge_promises_after_step(struct bridge_scene *scene);

/* ---- sim_bridge_respect.c: what is not ours ---- */
void bridge_promises_on_our_write(struct bridge_scene *scene, const struct api_change *change);

/* ---- sim_bridge_settled.c: in the end ---- */
void bridge_promises_when_settled(struct bridge_scene *scene);
void bridge_promises_when_quiet(struct bridge_scene *scene); /* a while later: nothing has moved */
bool bridge_is_empty(struct bridge_scene *scene); /* nothing is left of what was deleted */
void bridge_promises_when_empty(struct bridge_scene *scene);

#endif
