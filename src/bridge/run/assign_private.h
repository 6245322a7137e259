/* assign_private.h - the nodes that pods of a unit may be assigned to, with what each holds. */
#ifndef SLINC_BRIDGE_ASSIGN_PRIVATE_H
#define SLINC_BRIDGE_ASSIGN_PRIVATE_H

#include "bridge/run/assign.h"

enum { ASSIGN_MAX_PAIRS = 1 << 17 }; /* members times nodes, of a preselection */

struct slot {
    const char *slurm_name;
    const struct kube_node *node; /* NULL: Kubernetes has none */
    unsigned held;                /* members that are there, and those that are assigned it now */
    int64_t cpu_milli, memory;    /* what these request */
    bool is_busy, was_tried;      /* of a preselection */
    uint64_t refused;             /* the class of pods that do not fit here; 0: none is known */
};

struct slots {
    const struct bridge_world *world;
    const struct unit *unit;
    struct arena *arena;
    struct arena aside;               /* for what is not kept */
    struct filter_reserved *reserved; /* members that are assigned; NULL: no member has rules about
                                         others */
    const struct slurm_job *job;      /* NULL: it is a preselection */
    struct slot *at;
    unsigned count;
    bool has_whole_nodes; /* the job was submitted with exclusive */
    bool has_all_cpus;    /* Slurm gave the job all CPUs of its nodes */
    unsigned per_node;
    unsigned nodes_left;   /* of a preselection: how many more may be used */
    unsigned *order;       /* members that wait, in the order in which they choose */
    uint64_t *classes;     /* by member: filter_class; 0: it is judged by itself */
    struct slot **slot_of; /* by member; NULL: it has none yet */
    struct assignments assigned;
};

void slots_init(struct slots *slots, const struct bridge_world *world, const struct unit *unit,
                const struct job_desc *desc, struct arena *arena);
void slots_done(struct slots *slots);
void slots_assign(struct slots *slots); /* as many members as possible */

/* ---- assign_fit.c ---- */

/* Whether a member may be assigned to this slot, which then holds no more than limit. */
bool slots_fit(struct slots *slots, const struct slot *slot, unsigned member, unsigned limit);
/* Records why the first member that got no slot got none of those that hold less than limit. */
void slots_explain(struct slots *slots, unsigned limit);
/* Whether the job has all CPUs of its nodes. Only then it is known how many it has of each. */
bool slots_has_all_cpus(const struct slots *slots);

#endif
