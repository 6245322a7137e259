/* sim_workers_crashes.c - workers: small fixed stories, and one blow at every write that the
 * operator makes in them, to Kubernetes or to Slurm (crash_cases.h). */
#include "operator/names.h"
#include "sim_workers.h"

enum { STORY_STEPS = 8 };

struct story_step {
    int at_s; /* 0: there is no step */
    enum workers_deed deed;
    unsigned value;
};

struct workers_story {
    const char *name;
    struct story_step steps[STORY_STEPS];
};

/* Of a NodeSet that is made: value % 4 is its size, an even one has image s:0. Of a Node: value % 4
 * is which, a multiple of 3 cordons it. Of a pod: value % 4 is which, from 4 on it is cordoned. */
static const struct workers_story stories[] = {
    { "workers are made", { { 8, DEED_MAKE_NODESET, 2 } } },
    { "scale-in waits for a job",
      { { 8, DEED_MAKE_NODESET, 2 },
        { 16, DEED_SUBMIT, 1 },
        { 20, DEED_SCALE, 0 },
        { 30, DEED_FINISH_JOB, 0 } } },
    { "scale-in is cancelled while a job runs",
      { { 8, DEED_MAKE_NODESET, 2 },
        { 16, DEED_SUBMIT, 1 },
        { 20, DEED_SCALE, 0 },
        { 24, DEED_SCALE, 2 },
        { 34, DEED_FINISH_JOB, 0 } } },
    { "a rolling update waits for jobs",
      { { 8, DEED_MAKE_NODESET, 2 },
        { 16, DEED_SUBMIT, 1 },
        { 20, DEED_UPDATE, 1 },
        { 32, DEED_FINISH_JOB, 0 } } },
    { "a Node is cordoned and uncordoned",
      { { 8, DEED_MAKE_NODESET, 2 },
        { 16, DEED_SUBMIT, 1 },
        { 18, DEED_CORDON_NODE, 0 },
        { 18, DEED_CORDON_NODE, 9 },
        { 18, DEED_CORDON_NODE, 6 },
        { 18, DEED_CORDON_NODE, 3 },
        { 26, DEED_CORDON_NODE, 4 } } },
    { "a pod is cordoned and uncordoned",
      { { 8, DEED_MAKE_NODESET, 2 }, { 16, DEED_CORDON_POD, 4 }, { 24, DEED_CORDON_POD, 0 } } },
    { "an admin drains a node, and the NodeSet shrinks and grows",
      { { 8, DEED_MAKE_NODESET, 2 },
        { 16, DEED_DRAIN_BY_HAND, 0 },
        { 20, DEED_SCALE, 1 },
        { 28, DEED_SCALE, 2 } } },
    { "the NodeSet is deleted while a job runs",
      { { 8, DEED_MAKE_NODESET, 2 },
        { 16, DEED_SUBMIT, 1 },
        { 20, DEED_DELETE_NODESET, 0 },
        { 30, DEED_FINISH_JOB, 0 } } },
    { "slurmctld is killed while workers are drained",
      { { 8, DEED_MAKE_NODESET, 2 },
        { 16, DEED_SUBMIT, 1 },
        { 20, DEED_SCALE, 0 },
        { 21, DEED_TROUBLE_SLURMCTLD, 0 },
        { 29, DEED_TROUBLE_SLURMCTLD, 0 },
        { 36, DEED_FINISH_JOB, 0 } } },
};

enum { STORIES = sizeof(stories) / sizeof(stories[0]) };

static const char *story_name(uint64_t story)
{
    return stories[story].name;
}

static unsigned blows_at(uint64_t site)
{
    return BLOWS_UP_TO(BLOWS - 1) &
           ~(BLOW_BIT(BLOW_STOPPED) | BLOW_BIT(BLOW_KILLED) | BLOW_BIT(BLOW_KILLED_AFTER));
}

static int step_at_s(uint64_t story, unsigned step)
{
    int at_s = step < STORY_STEPS ? stories[story].steps[step].at_s : 0;

    return at_s > 0 ? at_s : -1;
}

static void act(void *context, uint64_t story, unsigned step)
{
    const struct story_step *what = &stories[story].steps[step];
    struct operator_scene *scene = context;

    workers_do(scene->slurm, what->deed, what->value);
}

static const struct crash_suite suite = {
    .sites = 1,
    .stories = STORIES,
    .site_name = operator_crash_site,
    .story_name = story_name,
    .blows = blows_at,
    .step_at_s = step_at_s,
    .act = act,
    .end = operator_crash_end,
};

/* ---- as a scenario: the seed is the number of the case ---- */

static const struct course_type course_type = { .calm = workers_on_calm,
                                                .settled = workers_on_settled,
                                                .quiet_us = OPERATOR_QUIET_US };

static void *start(struct world *world)
{
    static const bool no_pod_fails = true;
    struct crash_case one;
    struct operator_scene *scene;

    crash_case_init(&one, &suite, world);
    scene = workers_scene_new(world, &course_type);
    scene->workers.is_calm = &no_pod_fails;
    scene->crash = one;
    crash_case_start(&scene->crash, scene);
    return scene;
}

static void finish(void *context)
{
    struct operator_scene *scene = context;

    operator_promises_at_the_end(scene);
    workers_when_settled(scene->slurm);
    crash_case_finish(&scene->crash, scene->settled_sent);
}

const struct scenario scenario_workers_crashes = {
    .name = "workers-crashes",
    .what = "workers: small stories, with a blow at every write",
    .start = start,
    .check = operator_scene_check,
    .is_over = operator_scene_is_over,
    .finish = finish,
    .free = workers_scene_free,
    .hooks = &operator_crash_hooks,
    .cases = &suite,
};
