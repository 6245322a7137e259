/* world.h - one simulated world, and the running of scenarios in it.
 *
 * A world has a virtual clock and loop, one generator of chance, an API server and a network. A
 * scenario puts people and our processes into it and says what must hold; it is looked at after
 * every step of the loop. Everything follows from the seed. */
#ifndef SLINC_SIM_WORLD_H
#define SLINC_SIM_WORLD_H

#include "sim_transport.h"

struct world {
    uint64_t seed;
    struct clock clock;
    struct rand rand;
    struct trace trace;
    struct loop *loop;
    struct api_store *store;
    struct sim_net *net;
    struct slurm_store *slurm;    /* NULL: the scenario has no Slurm */
    struct loop_timer background; /* garbage collection and the like */
    uint64_t steps;
    struct err broken; /* the first promise that did not hold; class 0 = none */
    void *scene;       /* of the scenario that runs */
};

void world_init(struct world *world, uint64_t seed, FILE *trace, const struct sim_hooks *hooks);
void world_done(struct world *world); /* after everything that uses it */

/* A Slurm beside the API server: sim_transport_new_slurm. The seed of NULL options, or of 0, is the
 * world's. */
void world_add_slurm(struct world *world, const struct slurm_store_options *options);

/* A promise does not hold: the run ends after this step. */
void world_break(struct world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A call past the network, as people's: at once, and without faults. Gives the status. */
int world_call(struct world *world, const char *user, const char *method, const char *target,
               const char *body);

/* etcd forgets: old watches and pages get 410. */
void world_forget_history(struct world *world);

/* The row of a table by its weight, which stands in it as an unsigned: the first one's, and how far
 * it is to the next. */
size_t world_choose(struct world *world, const unsigned *weight, size_t stride, size_t count);

struct crash_suite;

struct scenario {
    const char *name, *what;
    void *(*start)(struct world *world);
    void (*check)(void *scene); /* after every step */
    bool (*is_over)(const void *scene);
    void (*finish)(void *scene); /* last checks; NULL: none */
    void (*free)(void *scene);
    const struct sim_hooks *hooks;   /* called with the world as context */
    const struct crash_suite *cases; /* crash_cases.h: its seeds are numbers of cases; NULL: not */
};

extern const struct scenario scenario_configcopy;
extern const struct scenario scenario_bridge;
extern const struct scenario scenario_crashes;
extern const struct scenario scenario_leaving;
extern const struct scenario scenario_operator;
extern const struct scenario scenario_operator_crashes;
extern const struct scenario scenario_workers;
extern const struct scenario scenario_workers_crashes;

struct world_result {
    uint64_t steps, writes, lines, digest;
    int64_t virtual_us;
};

/* 0, or -class with the promise in err; the tail of the trace is printed then. */
int world_run(const struct scenario *scenario, uint64_t seed, FILE *trace,
              struct world_result *ret_result, struct err *err);

#endif
