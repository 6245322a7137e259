/* assign.h - which node of a running job each pod of its unit gets.
 *
 * Nodes come in Slurm's order: the same facts always give the same answer. A
 * slot that a member has, or has not left yet, is not assigned again. */
#ifndef SLINC_BRIDGE_ASSIGN_H
#define SLINC_BRIDGE_ASSIGN_H

#include "bridge/unit/job_desc.h"
#include "bridge/unit/unit.h"
#include "codec/host_set.h"

struct assignment {
    unsigned member; /* of unit.members */
    const struct kube_node *node;
};

struct assignments {
    struct assignment *at;
    unsigned count;
    unsigned left;      /* members that wait and got none */
    bool will_be_freed; /* by pods that are ending, or whose job has ended */
    bool is_guess;      /* pods share a node of which the job's part was not read */
    const char *misfit; /* the Slurm name of a node that does not fit the first of these; NULL */
    const char *why;    /* it does not fit */
    bool is_among_own;  /* because of members that were assigned before */
};

/* The members that may use the fewest nodes choose first, members that may use as many by rank;
 * each gets the first node that fits. A member that is assigned counts as placed for the members
 * after it. No member moves for another.
 *
 * desc: what the unit submits. Its tasks_per_node pods go on each node; more than that, as far as
 * they fit, when the job has whole nodes and all of them fit. -ERR_INVALID: the job's list of nodes
 * cannot be read. */
int assign_nodes(const struct bridge_world *world, const struct unit *unit,
                 const struct job_desc *desc, struct arena *arena, struct assignments *ret_assigned,
                 struct err *err);

/* Nodes of Slurm to which the waiting pods of a unit could be assigned. */
struct preselection {
    const struct kube_node **nodes;
    unsigned count;  /* those of the best assignment that was found */
    bool is_enough;  /* for all that the unit needs */
    const char *why; /* it is not; NULL */
};

/* Whether members that wait have rules about each other: affinity, spread, host ports. */
bool assign_has_pod_rules(const struct bridge_world *world, const struct unit *unit);

/* Chooses among all nodes, free nodes first. False: the job has features, a reservation, switches
 * or segments, which only Slurm can judge, or there are too many nodes and pods. */
bool preselect_nodes(const struct bridge_world *world, const struct unit *unit,
                     const struct job_desc *desc, struct arena *arena,
                     struct preselection *ret_preselection);

/* Whether a bound member was bound by this job, or does not say by which. The label of the member
 * has the id of the job, and after a crash of slurmctld another job may have that id. A job that
 * rebooks pods requires their nodes, so a job that does not require this member's node is another
 * one. required: the nodes that the job requires. */
bool assigned_by(const struct bridge_world *world, const struct slurm_job *job,
                 const struct host_set *required, const struct member *member);

/* Whether the CPUs and memory of a running job were read, not only its nodes. */
bool allocation_is_known(const struct slurm_job *job);

/* Whether the running job of a group has no slot for this member, now or soon. Then the member gets
 * a job of its own. */
bool assign_lacks_slot_for(const struct bridge_world *world, const struct kube_pod *pod,
                           struct arena *arena);

#endif
