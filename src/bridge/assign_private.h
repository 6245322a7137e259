/* assign_private.h - the nodes that pods of a unit may be assigned to, with what each holds. */
#ifndef SLINC_BRIDGE_ASSIGN_PRIVATE_H
#define SLINC_BRIDGE_ASSIGN_PRIVATE_H

#include "bridge/assign.h"

enum { ASSIGN_MAX_PAIRS = 1 << 17 }; /* members times nodes, of a preselection */

struct slot {
    const char *slurm_name;
    const struct kube_node *node; /* NULL: Kubernetes has none */
    unsigned held;                /* members that are there, and those that are assigned it now */
    int64_t cpu_milli, memory;    /* what these use */
    bool is_busy, was_tried;      /* of a preselection */
    uint64_t refused;             /* the class of pods that do not fit here; 0: none is known */
    const char *why;              /* they do not fit; NULL: there is no room for them */
};

struct slots {
    const struct bridge_world *world;
    const struct unit *unit;
    struct arena *arena, *aside; /* aside: for what is not kept */
    const struct slurm_job *job; /* NULL: it is a preselection */
    struct slot *at;
    unsigned count;
    unsigned *next_open;  /* by slot: itself, or a later one before which all are full */
    bool has_whole_nodes; /* the job was submitted with exclusive */
    bool has_all_cpus;    /* Slurm gave the job all CPUs of its nodes */
    bool has_pod_rules;   /* members have rules about each other */
    unsigned per_node;
    unsigned nodes_left;   /* of a preselection: how many more may be used */
    bool *has_slot;        /* by member */
    uint64_t *classes;     /* by member: 1 + its class (eligible_class); 0: not looked at */
    const char *objection; /* to the slot that was tried last, in aside; NULL: it has no room */
    uint64_t slotless;     /* the class of a member that found no slot in this round; 0 */
    struct slot **slot_of; /* by assignment */
    unsigned *order;       /* members that wait, in the order in which they choose */
    struct assignments assigned;
};

/* aside is initialized here, and the caller's to free. */
struct slots slots_new(const struct bridge_world *world, const struct unit *unit,
                       const struct job_desc *desc, struct arena *arena, struct arena *aside);
void slots_assign(struct slots *slots); /* as many members as possible */

/* ---- assign_fit.c ---- */

static inline const struct kube_pod *slots_pod(const struct slots *slots, unsigned member)
{
    return slots->unit->members[member].pod;
}

/* Whether a member may be assigned to this slot, which then holds no more than limit. The first
 * reason against it is recorded. */
bool slots_suits(struct slots *slots, const struct slot *slot, unsigned member, unsigned limit);
/* Whether a pod may go to this node of the job, beside the pods that are assigned already. */
bool slots_will_do(struct slots *slots, const struct slot *slot, const struct kube_pod *pod);
/* Records the first node that does not fit a member. */
void slots_note_misfit(struct slots *slots, const struct slot *slot, const char *why,
                       bool is_among_own);
/* Whether the job has all CPUs of its nodes. Only then it is known how many it has of each. */
bool slots_has_all_cpus(const struct slots *slots);

#endif
