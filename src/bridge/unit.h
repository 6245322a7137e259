/* unit.h - one unit as a plan looks at it: its pods, its jobs in Slurm, what is remembered of it.
 *
 * A unit is what Slurm gives resources to as one: so far a single pod. It is gathered anew for each
 * plan and lives in the plan's arena. */
#ifndef SLINC_BRIDGE_UNIT_H
#define SLINC_BRIDGE_UNIT_H

#include "bridge/world.h"

/* Where a pod is in its life, as far as Slurm is concerned. */
enum pod_stage {
    POD_GATED,  /* somebody still holds it back */
    POD_WAITS,  /* wants a place */
    POD_BOUND,  /* has a place, and may run */
    POD_ENDING, /* being deleted, and its containers may still run */
    POD_OVER,   /* nothing of it runs, or ever will */
};

const char *pod_stage_name(enum pod_stage stage);
enum pod_stage pod_stage(const struct bridge_world *world, const struct kube_pod *pod);

/* Where a job is. */
enum job_phase {
    JOB_WAITS,
    JOB_RUNS,
    JOB_SUSPENDED,
    JOB_ENDS,  /* over, and Slurm is still cleaning up */
    JOB_ENDED, /* holds nothing any more */
};

const char *job_phase_name(enum job_phase phase);
enum job_phase job_phase(const struct slurm_job *job);

enum { UNIT_MAX_JOBS = 16 }; /* live ones of one unit; one is right, two may happen */

struct unit {
    struct str key;
    const struct kube_pod *pod;     /* NULL: there is none any more */
    enum pod_stage stage;           /* POD_OVER without a pod */
    const struct kube_object *root; /* whose annotations count; NULL: not seen yet, see wanting */
    const struct kube_job *owner;   /* the Job that made the pod; NULL */
    const char *wanting;            /* what of the root is not there yet */
    const struct slurm_job *jobs[UNIT_MAX_JOBS]; /* that have not ended */
    unsigned job_count;
    bool is_behind;                   /* what we last did to one of them is not seen yet */
    const struct slurm_job *job;      /* the one of these that counts; NULL without any */
    const struct slurm_job *ended;    /* of those that have ended, the one that the pod names */
    unsigned ended_count;             /* that had a place in the queue and lost it */
    int64_t ended_at;                 /* when the last of them did; seconds since 1970 */
    unsigned attempt;                 /* the highest so far; 0 = none */
    int64_t recorded_id;              /* of the job that the pod's label names; 0 */
    const struct unit_memory *memory; /* NULL: nothing is remembered */
};

void unit_gather(const struct bridge_world *world, struct str key, struct arena *arena,
                 struct unit *ret_unit);

enum ask_state unit_ask_state(const struct unit *unit);

#endif
