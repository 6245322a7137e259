/* steps.h - how long each step of a pod's life takes, and how many pods wait for a place. */
#ifndef SLINC_BRIDGE_STEPS_H
#define SLINC_BRIDGE_STEPS_H

#include "bridge/world.h"
#include "engine/metrics.h"

struct steps {
    struct loop *loop; /* all private but the last two */
    struct metrics *metrics;
    struct bridge_world *world;
    size_t waiting;   /* pods of ours that want a place and have none */
    size_t uncovered; /* that are bound, and whose jobs were lost not long ago */
};

/* All are borrowed. */
void steps_init(struct steps *steps, struct loop *loop, struct metrics *metrics,
                struct bridge_world *world);

void steps_seen(struct steps *steps, struct str key);    /* the unit is planned */
void steps_planned(struct steps *steps, struct str key); /* it was: what it has is looked at */
void steps_pod_changed(struct steps *steps, const struct kube_pod *old,
                       const struct kube_pod *next);
void steps_job_changed(struct steps *steps, struct str key, const struct slurm_job *job);

extern const struct metric_family steps_metrics[];
extern const size_t steps_metric_count;

#endif
