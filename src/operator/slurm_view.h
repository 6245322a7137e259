/* slurm_view.h - what plans ask of the nodes of a Slurm cluster. */
#ifndef SLINC_OPERATOR_SLURM_VIEW_H
#define SLINC_OPERATOR_SLURM_VIEW_H

#include "operator/world.h"
#include "slurm/cache.h"

/* Slurm has freed the cores of a suspended job: its node may be IDLE, and is busy all the same. */
bool slurm_view_is_busy(const struct slurm_facts *facts, const struct slurm_node *node);
/* Runs no job, and no job can start: it is draining and not busy, and Slurm's jobs are known. */
bool slurm_view_is_drained(const struct slurm_facts *facts, const struct slurm_node *node);
bool slurm_node_is_draining(const struct slurm_node *node);           /* DRAIN and not UNDRAIN */
bool slurm_node_has(const struct slurm_node *node, const char *word); /* in its state: "INVALID" */
bool slurm_reservation_has(const struct slurm_reservation *reservation, const char *flag);

enum slurm_knowledge {
    SLURM_UNREAD,  /* nothing that counts is known: no Slurm, no list yet, an old list, a restart of
                      slurmctld that is not settled, or a write of ours that is not seen yet */
    SLURM_ABSENT,  /* Slurm has no such node */
    SLURM_PRESENT, /* it has */
};

/* What is known of this node now. ret_node (may be NULL) is the last record, if there is one, also
 * when it is old. */
enum slurm_knowledge slurm_view_node(const struct operator_world *world,
                                     const struct slurm_facts *facts, const char *name,
                                     const struct slurm_node **ret_node);

#endif
