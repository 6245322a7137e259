/* course.h - the course of a scenario in which two replicas of one program run against the API
 * server.
 *
 * First a storm, which the seed draws: the network fails, processes die at their writes, are told
 * to stop, and are cut off. Then there is calm: some time later everything must be right, and stay
 * so without a write. */
#ifndef SLINC_SIM_COURSE_H
#define SLINC_SIM_COURSE_H

#include "process.h"

enum { COURSE_REPLICAS = 2 };

/* How bad the world is. */
struct course_weather {
    const char *name;
    const struct sim_faults *faults; /* NULL: none */
    bool crashes, rollouts, partitions;
};

struct course_type {
    void (*calm)(void *scene);    /* people come to an end */
    void (*settled)(void *scene); /* everything must be right */
    int64_t quiet_us;             /* so long nothing is written then */
};

struct course {
    const struct course_type *type;
    void *scene;
    struct world *world;
    const struct course_weather *weather;
    struct process *processes[COURSE_REPLICAS];
    struct loop_timer timer, partition;
    bool is_calm, is_over;
};

void course_init(struct course *course, const struct course_type *type, void *scene,
                 struct world *world);
/* The storm begins: call it when the replicas are there. */
void course_start_storm(struct course *course);
/* Or there is none, and calm comes when the scene calls for it. */
void course_calm(struct course *course);
void course_done(struct course *course);

/* For the scene's hooks: the replica of this user dies; a replica has started. */
void course_on_crash(struct course *course, const char *user);
void course_on_start(const struct course *course, struct process *process);

#endif
