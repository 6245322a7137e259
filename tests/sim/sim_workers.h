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

/* ---- sim_workers.c ---- */
enum workers_deed { /* what value means is the deed's */
                    DEED_SCALE,
                    DEED_UPDATE,
                    DEED_MAKE_NODESET,
                    DEED_DELETE_NODESET,
                    DEED_CORDON_NODE,
                    DEED_CORDON_POD,
                    DEED_DELETE_POD,
                    DEED_DRAIN_BY_HAND,
                    DEED_SUBMIT,
                    DEED_FINISH_JOB,
                    DEED_TROUBLE_SLURMCTLD,
                    WORKERS_DEEDS,
};
void workers_do(struct workers_scene *workers, enum workers_deed what, unsigned value);
struct operator_scene *workers_scene_new(struct world *world, const struct course_type *type);
void workers_scene_free(void *scene);
void workers_on_calm(void *scene);
void workers_on_settled(void *scene);

/* ---- sim_workers_promises.c ---- */
void workers_on_api(void *context, const struct api_change *change);
void workers_on_slurm(void *context, const struct slurm_store_change *change);
void workers_remember(struct workers_scene *workers); /* all nodes as they are now */
void workers_when_settled(struct workers_scene *workers);

#endif
