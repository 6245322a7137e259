/* process.h - one of our processes in a world: it starts, is told to stop as in a rollout, dies,
 * and comes again. What it is made of is the scenario's. */
#ifndef SLINC_SIM_PROCESS_H
#define SLINC_SIM_PROCESS_H

#include "engine/engine.h"
#include "kube/lease.h"
#include "world.h"

struct process_type {
    void (*start)(void *owner);
    void (*kill)(void *owner);                      /* as kill -9; it may be dead */
    struct engine *(*engine)(const void *owner);    /* NULL while dead */
    struct kube_lease *(*lease)(const void *owner); /* to give up; NULL: it must run out */
};

struct process {
    const struct process_type *type;
    void *owner;
    struct world *world;
    char user[32]; /* "replica-0" */
    struct loop_timer restart, stop;
};

/* It starts within three seconds. */
void process_init(struct process *process, const struct process_type *type, void *owner,
                  struct world *world, unsigned number);
void process_done(struct process *process);

/* It dies, and starts again within five seconds. */
void process_restart(struct process *process);
/* What is in flight is finished, the lease is given up, then the process goes, and comes again. */
void process_stop(struct process *process);
/* The same at some time of the next minute, if it lives so long. */
void process_stop_later(struct process *process);

/* Whoever sends one of the next writes, so many at most, dies at it. lives_on: and if it goes to
 * Slurm, it may take effect long after. */
void process_plan_crash(struct world *world, unsigned within, bool lives_on);

#endif
