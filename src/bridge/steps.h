/* steps.h - how long each step of a pod's life takes, and how many pods wait for a place. */
#ifndef SLINC_BRIDGE_STEPS_H
#define SLINC_BRIDGE_STEPS_H

#include "bridge/world.h"
#include "engine/metrics.h"

struct steps {
    struct loop *loop; /* all private but the counts */
    struct metrics *metrics;
    struct bridge_world *world;
    size_t waiting;   /* pods of ours that want a place and have none */
    size_t bound;     /* pods of ours that have a place */
    size_t jobs;      /* places of ours in jobs that have not ended */
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
/* A job of ours became another: old or next is NULL when it was not there, or is not any more. */
void steps_count_job(struct steps *steps, const struct slurm_job *old,
                     const struct slurm_job *next);
/* Pods that wait and for which Slurm has no job yet. */
size_t steps_unsubmitted(const struct steps *steps);

extern const struct metric_family steps_metrics[];
extern const size_t steps_metric_count;

#endif
