/* crash_cases.h - small fixed stories, and one blow at every write that our program makes in them.
 *
 * A story is told once without a blow, and its writes are counted. Then it is told again for each
 * of them and for each way in which it can go wrong: the process dies before or after it takes
 * effect and the other replica takes over; it, or its answer, is lost; it takes effect late; the
 * server refuses it. After each, all promises and the settled state are looked at. The number of a
 * case, which is the seed of the scenario, says which it is:
 *
 *     site * 10000000 + story * 100000 + write * 100 + blow */
#ifndef SLINC_SIM_CRASH_CASES_H
#define SLINC_SIM_CRASH_CASES_H

#include "world.h"

enum blow {
    BLOW_NONE,
    BLOW_DIES_BEFORE,
    BLOW_DIES_AFTER,
    BLOW_LOST_BEFORE,
    BLOW_LOST_BETWEEN,
    BLOW_LOST_AFTER,
    BLOW_LATE,
    BLOW_504, /* of Slurm's writes only, up to BLOW_KILLED_AFTER */
    BLOW_504_DONE,
    BLOW_DIES_LONG_BEFORE, /* it takes effect when its sender has been replaced */
    BLOW_DIES_AGES_BEFORE, /* and has been for long */
    BLOW_STOPPED,          /* slurmctld is, at that moment */
    BLOW_KILLED,           /* kill -9 as it leaves */
    BLOW_KILLED_AFTER,     /* and when its answer has come */
    BLOW_409,
    BLOW_429,
    BLOW_500,
    BLOW_500_DONE,
    BLOW_503,
    BLOWS,
};

#define BLOW_BIT(blow)   (1u << (blow))
#define BLOWS_UP_TO(end) (BLOW_BIT((end) + 1) - 2) /* without BLOW_NONE */

/* The stories of one program and the sites at which they are told. */
struct crash_suite {
    uint64_t sites, stories;
    const char *(*site_name)(uint64_t site);
    const char *(*story_name)(uint64_t story);
    unsigned (*blows)(uint64_t site); /* a bit each: what can be another story there */
    /* At which second a step of a story is done; -1: the story has ended before. */
    int (*step_at_s)(uint64_t story, unsigned step);
    void (*act)(void *scene, uint64_t story, unsigned step);
    void (*end)(void *scene);                    /* some time after the last step */
    void (*strike)(void *scene, enum blow blow); /* what is no fate of the write; NULL: nothing */
};

/* One of them, in a scene. */
struct crash_case {
    const struct crash_suite *suite;
    struct world *world;
    void *scene;
    uint64_t site, story;
    uint64_t blow_at; /* the write that goes wrong; 0: none */
    enum blow blow;
    unsigned step;
    struct loop_timer timer;
};

/* From `start` of the scenario: the case that the seed names. Chance is the same for every case of
 * one story. */
void crash_case_init(struct crash_case *one, const struct crash_suite *suite, struct world *world);
void crash_case_start(struct crash_case *one, void *scene);
void crash_case_done(struct crash_case *one);

/* From the hook `sent`, for every write that counts, with its number from 1. */
void crash_case_on_write(struct crash_case *one, uint64_t number, const char *path);
/* From `finish`: so many writes there were until everything was right. */
void crash_case_finish(const struct crash_case *one, uint64_t writes);

/* Which cases a run takes: number 1 of 4 takes the first, the fifth, ... */
struct crash_slice {
    uint64_t number, of;
    uint64_t cases; /* that all slices together have; counted by the run */
};

/* The cases of the slice. Gives how many there were; both results are added to. */
uint64_t crash_cases_run_slice(const struct scenario *scenario, struct crash_slice *slice,
                               struct world_result *ret_sum, uint64_t *ret_failed);

#endif
