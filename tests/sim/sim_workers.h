/* sim_workers.h - the scene of the workers scenario: an operator with Slurm, a NodeSet, Nodes, and
 * jobs that run on workers. */
#ifndef SLINC_SIM_WORKERS_H
#define SLINC_SIM_WORKERS_H

#include "sim_operator.h"

#define WORKERS_NS     "n1"
#define WORKERS_PATH   "/apis/" OPERATOR_GROUP "/" OPERATOR_VERSION "/namespaces/" WORKERS_NS
#define WORKERS_REASON "an admin says so" /* of drains that are not the operator's */

enum { WORKERS_HOSTS = 4, WORKERS_MAX_NODES = 64 };

struct workers_shadow { /* what a Slurm node was before the last change */
    char name[64], reason[300];
    bool is_drained;
    int64_t since_us; /* that it is as it is */
};

struct workers_scene {
    struct operator_scene *scene;
    struct loop_timer people;
    struct workers_shadow nodes[WORKERS_MAX_NODES];
    unsigned node_count;
};

/* ---- sim_workers_promises.c ---- */
void workers_on_api(void *context, const struct api_change *change);
void workers_on_slurm(void *context, const struct slurm_store_change *change);
void workers_remember(struct workers_scene *workers); /* all nodes as they are now */
void workers_when_settled(struct workers_scene *workers);

#endif
