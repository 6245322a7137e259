/* timings.h - how long each step of a pod's life takes, and how many pods wait for a place. */
#ifndef SLINC_BRIDGE_TIMINGS_H
#define SLINC_BRIDGE_TIMINGS_H

#include "bridge/world/world.h"
#include "engine/metrics.h"

struct timings {
    struct loop *loop; /* all private but the counts */
    struct metrics *metrics;
    const struct bridge_world *world;
    struct unit_states *unit_states;
    size_t waiting;   /* pods of ours that want a place and have none */
    size_t bound;     /* pods of ours that have a place */
    size_t jobs;      /* places of ours in jobs that have not ended */
    size_t rebooking; /* that are bound, and whose jobs were lost not long ago */
};

/* All are borrowed. */
void timings_init(struct timings *timings, struct loop *loop, struct metrics *metrics,
                  const struct bridge_world *world, struct unit_states *unit_states);

/* Notes the first plan of a unit, and that it has grown. */
void timings_before_plan(struct timings *timings, struct str key);
/* Notes since when a bound unit has had no job. */
void timings_after_plan(struct timings *timings, struct str key);
void timings_pod_changed(struct timings *timings, const struct kube_pod *old,
                         const struct kube_pod *next);
void timings_job_changed(struct timings *timings, struct str key, const struct slurm_job *job);
/* A job of ours became another: old or next is NULL when it was not there, or is not any more. */
void timings_count_job(struct timings *timings, const struct slurm_job *old,
                       const struct slurm_job *next);
/* Pods that wait and for which Slurm has no job yet. */
size_t timings_unsubmitted(const struct timings *timings);

extern const struct metric_family timings_metrics[];
extern const size_t timings_metric_count;

#endif
