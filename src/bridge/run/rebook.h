/* rebook.h - what is known of bound pods and of the job that holds their nodes. */
#ifndef SLINC_BRIDGE_REBOOK_H
#define SLINC_BRIDGE_REBOOK_H

#include "bridge/run/assign.h"

/* Slurm's highest priority: the pods use the resources already, so every other job comes after this
 * one, also a job for which Slurm has planned the node. Slurm takes the priority from operators and
 * ignores it from others. */
#define REBOOK_PRIORITY INT64_C(4294967293)

/* The nodes that a job names, read once for all members. */
struct job_nodes {
    struct host_set allocated; /* to it */
    struct host_set required;  /* by it */
};

struct ended_member {
    const struct kube_pod *pod;
    const struct slurm_job *job; /* that the pod was bound by, and that ends or has ended */
};

struct bound_facts {
    struct job_nodes job_nodes;
    const char *nodes; /* the Slurm names of the nodes that the pods use, folded; "" while the job
                          runs */
    bool is_on_nodes;  /* the unit's job requires just these */
    bool is_stray;     /* the unit's job is not the job of these pods */
    bool is_requeued;  /* the unit's job waits again after it had run */
    struct ended_member *ended;
    unsigned ended_count;
};

/* Pure; in the arena. */
void bound_look(const struct bridge_world *world, const struct unit *unit, struct arena *arena,
                struct bound_facts *ret_bound);

/* The pods run on their nodes, so the job that waits may start only there, and before all others.
 */
void plan_require_nodes(const struct unit *unit, const struct bound_facts *bound,
                        struct plan *plan);

/* Deletes the pods whose job Slurm has ended, after a condition has said why. */
void plan_end_pods(const struct bridge_world *world, const struct bound_facts *bound,
                   struct plan *plan);

/* Shortens what is left of the grace periods of pods that were deleted before Slurm ended their
 * job. */
void plan_cap_grace(const struct bridge_world *world, const struct unit *unit, struct plan *plan);

/* The job of the pods runs: each pod is recorded as placed by it. */
void plan_keep_bound(const struct bridge_world *world, const struct unit *unit,
                     const struct bound_facts *bound, struct plan *plan);

#endif
