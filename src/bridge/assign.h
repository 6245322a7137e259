/* assign.h - which node of a running job each pod of its unit gets.
 *
 * By rank, nodes in Slurm's order: the same answer from the same facts, whoever asks. A place that
 * a member has, or has not left yet, is not assigned again. */
#ifndef SLINC_BRIDGE_ASSIGN_H
#define SLINC_BRIDGE_ASSIGN_H

#include "bridge/hosts.h"
#include "bridge/job_desc.h"
#include "bridge/unit.h"

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
    const char *misfit; /* the Slurm name of the first node that would not do; NULL */
    const char *why;    /* it would not */
    bool is_among_own;  /* because of members that were assigned theirs before */
};

/* By rank, the first node that will do. A member that was assigned a place counts as placed for
 * those after it. Where that leaves some without a node, those that may use the fewest nodes choose
 * first. Nobody moves for another.
 *
 * ask: what the unit asks Slurm for; its tasks_per_node pods go on each node, and more as far as
 * they fit when the job has whole nodes and every one of them will do. -ERR_INVALID: the job's list
 * of nodes cannot be read. */
int assign_nodes(const struct bridge_world *world, const struct unit *unit,
                 const struct job_desc *desc, struct arena *arena, struct assignments *ret_assigned,
                 struct err *err);

/* Nodes of Slurm on which the waiting pods of a unit could be assigned. */
struct preselection {
    const struct kube_node **nodes;
    unsigned count;  /* those of the best assignment that was found */
    bool is_enough;  /* for all that the unit needs */
    const char *why; /* it is not; NULL */
};

/* Whether it has members that wait and mind where the others are. */
bool assign_has_pod_rules(const struct bridge_world *world, const struct unit *unit);

/* Chooses among all nodes, those first that are free. False: what Slurm is submitted leaves open
 * too much (features, reservations, switches), or there are too many to try. */
bool preselect_nodes(const struct bridge_world *world, const struct unit *unit,
                     const struct job_desc *desc, struct arena *arena,
                     struct preselection *ret_preselection);

/* Whether a bound member has its place by this job, or nobody wrote down by which. Its label names
 * the job by an id, which after a crash of slurmctld another may have; a job that was submitted to
 * cover pods names their nodes, so one that does not name this member's is another. required: the
 * nodes that the job names. */
bool assigned_by(const struct bridge_world *world, const struct slurm_job *job,
                 const struct host_set *required, const struct member *member);

/* Whether what a running job was given was read, not only where it runs. */
bool allocation_is_known(const struct slurm_job *job);

/* Whether the running job of a group has no place for one of its members, now or soon: then that
 * member wants a job of its own. */
bool assign_lacks_slot_for(const struct bridge_world *world, const struct kube_pod *pod,
                           struct arena *arena);

#endif
