/* worker.h - one worker of a NodeSet: its pod, its node in Slurm, and where it is in its life.
 *
 *     wanted -> created -> registering -> serving -> draining -> drained -> leaving
 *
 * A pod that ended is failed, wherever it was. What a worker is comes from the pod, the node in
 * Slurm and the marks on both; nothing of it is kept elsewhere. */
#ifndef SLINC_OPERATOR_WORKER_H
#define SLINC_OPERATOR_WORKER_H

#include "kube/kinds.h"
#include "operator/slurm_view.h"

enum worker_state {
    WORKER_WANTED,      /* it has no pod yet */
    WORKER_CREATED,     /* its pod is not ready */
    WORKER_REGISTERING, /* its pod is ready, and Slurm has no node for it that is up */
    WORKER_SERVING,     /* jobs may start on it */
    WORKER_DRAINING,    /* no job starts on it; some may still run */
    WORKER_DRAINED,     /* no job runs on it, and none can start: a fresh fact */
    WORKER_LEAVING,     /* its pod is being deleted */
    WORKER_FAILED,      /* its pod has ended */
    WORKER_STATES,      /* how many there are */
};

/* Why no job is to start on a worker. Later ones go before earlier ones. */
enum worker_cause {
    CAUSE_NONE,
    CAUSE_PERSON,       /* somebody set the annotation pod-cordon */
    CAUSE_NODE,         /* its Node is cordoned */
    CAUSE_UNREGISTERED, /* it is ready, and Slurm has had no node for it for long: it is replaced */
    CAUSE_UPDATE,       /* it has an old revision, and is replaced */
    CAUSE_SCALE_IN,     /* it is one too many, or not where it should be */
    CAUSE_DELETE,       /* its NodeSet is being deleted */
    CAUSES,             /* how many there are */
};

struct worker {
    const struct kube_pod *pod;
    const struct kube_node *node;    /* of Kubernetes; NULL: it has none, or the Node is gone */
    int64_t ordinal;                 /* -1: its name has none */
    const char *slurm_name;          /* "": not known yet */
    enum slurm_knowledge knowledge;  /* of its node in Slurm */
    const struct slurm_node *record; /* the last that Slurm said of it; NULL: nothing */
    enum worker_state state;
    enum worker_cause mark;     /* why the operator cordoned its pod */
    enum worker_cause cause;    /* why it is to be drained now: nodeset_choose.c */
    bool is_busy;               /* by its record: it has jobs, or clears up after them */
    bool is_cordoned;           /* the pod has the annotation pod-cordon */
    bool is_cordoned_by_person; /* a person set it, and not the operator */
    bool is_current;            /* it has the revision that is wanted */
    bool is_healthy;            /* its pod runs and is ready */
    bool is_available;          /* it is ready for minReadySeconds */
    bool is_other_mode;         /* made when the NodeSet was in the other scaling mode */
    bool is_confirmed;          /* this plan asks Slurm whether it is drained: nodeset_delete.c */
    int64_t deletion_cost;      /* by its annotation */
    int64_t deadline_us;        /* when its last job ends, by its annotation; 0: no job */
    const char *why;            /* CAUSE_SCALE_IN, DaemonSet mode: an Event's reason, or NULL */
};

/* Reads all of it but cause and is_current. min_ready_us: spec.minReadySeconds. */
struct worker worker_read(const struct operator_world *world, struct arena *arena,
                          const struct slurm_facts *facts, const struct kube_object *nodeset,
                          const struct kube_object *pod, int64_t min_ready_us);

const char *worker_state_name(enum worker_state state); /* "serving" */

/* As the annotation cordoned-by says it: "scale-in"; "" for a cause that sets no mark. */
const char *worker_cause_name(enum worker_cause cause);

/* Is deleted when it is drained. */
bool worker_is_condemned(const struct worker *worker);

/* Counts as one of the workers that the NodeSet has: its pod neither ended nor is being deleted. */
bool worker_is_live(const struct worker *worker);

/* Whether Slurm's reason for the state of this node is the operator's. */
bool slurm_reason_is_ours(const struct slurm_node *node);

/* A drain of others, of this Node, which the end of the pod before gave our reason: the reason that
 * it had, by the comment of the node. NULL: there is none. In the arena. */
const char *worker_lost_drain(struct arena *arena, const struct worker *worker);

/* The reason to drain it for its cause, as Slurm shows it; in the arena. */
const char *worker_drain_reason(const struct operator_world *world, struct arena *arena,
                                const struct worker *worker);

#endif
