/* places_private.h - the table at which nodes are dealt to the pods of a unit. */
#ifndef SLINC_BRIDGE_PLACES_PRIVATE_H
#define SLINC_BRIDGE_PLACES_PRIVATE_H

#include "bridge/places.h"

enum { PLACES_MAX_PAIRS = 1 << 17 }; /* members times nodes, of a draft */

struct place {
    const char *slurm_name;
    const struct kube_node *node; /* NULL: Kubernetes has none */
    unsigned held;                /* members that are there, and those that are dealt it now */
    int64_t cpu_milli, memory;    /* what these use */
    bool is_busy, was_tried;      /* of a draft */
    uint64_t refused;             /* the class of pods that it will not do for; 0: none is known */
    const char *why;              /* it will not; NULL: it has no room for them */
};

struct table {
    const struct bridge_world *world;
    const struct unit *unit;
    struct arena *arena, *aside; /* aside: for what is not kept */
    const struct slurm_job *job; /* NULL: it is a draft */
    struct place *places;
    unsigned count;
    unsigned *next_open;  /* by place: itself, or a later one before which all are full */
    bool has_whole_nodes; /* so it was asked for */
    bool has_all_cpus;    /* so it was given */
    bool is_tied;         /* members mind where the others are: those that are dealt have a seat */
    unsigned per_node;
    unsigned nodes_left;   /* of a draft: that may still be used */
    bool *has_place;       /* by member */
    uint64_t *classes;     /* by member: 1 + its class (eligible_class); 0: not looked at */
    const char *objection; /* to the place that was tried last, in aside; NULL: it has no room */
    uint64_t placeless;    /* the class of a member that found no place in this round; 0 */
    struct place **seats;  /* by deal */
    unsigned *order;       /* members that wait, in the order in which they choose */
    struct deals deals;
};

/* aside is initialized here, and the caller's to free. */
struct table table_new(const struct bridge_world *world, const struct unit *unit,
                       const struct job_desc *desc, struct arena *arena, struct arena *aside);
void table_deal(struct table *table); /* to all that it can */

/* ---- places_fit.c ---- */

static inline const struct kube_pod *table_pod(const struct table *table, unsigned member)
{
    return table->unit->members[member].pod;
}

/* Whether a member may have a place there, on a node that then holds no more than limit. What
 * stands against it is noted. */
bool table_suits(struct table *table, const struct place *place, unsigned member, unsigned limit);
/* Whether a pod may go to this node of the job, with those that were dealt theirs. */
bool table_will_do(struct table *table, const struct place *place, const struct kube_pod *pod);
/* The first node that will not do for a member is told. */
void table_note_misfit(struct table *table, const struct place *place, const char *why,
                       bool is_among_own);
/* Its nodes may differ: what the job has of each is not known, unless it has all of them. */
bool table_has_all_cpus(const struct table *table);

#endif
