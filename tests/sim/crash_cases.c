/* crash_cases.c - the numbers of cases, the telling of a story, and the running of slices. */
#include "crash_cases.h"

enum {
    SECOND = 1000000,
    CASE_SITE = 10000000,
    CASE_STORY = 100000,
    CASE_WRITE = 100,
    STORY_SEED = 4711,
    AFTER_S = 20, /* from the last event to the calm */
    MAX_WRITES = 200,
};

static const struct {
    const char *name;
    enum sim_fate fate;
    bool is_of_slurm, is_of_kubernetes; /* of writes to it alone */
} blows[BLOWS] = {
    [BLOW_NONE] = { "none", FATE_DRAWN, false, false },
    [BLOW_DIES_BEFORE] = { "dies before", FATE_DIES_BEFORE, false, false },
    [BLOW_DIES_AFTER] = { "dies after", FATE_DIES_AFTER, false, false },
    [BLOW_LOST_BEFORE] = { "lost before", FATE_LOST_BEFORE, false, false },
    [BLOW_LOST_BETWEEN] = { "lost between", FATE_LOST_BETWEEN, false, false },
    [BLOW_LOST_AFTER] = { "lost after", FATE_LOST_AFTER, false, false },
    [BLOW_LATE] = { "late", FATE_LATE, false, false },
    [BLOW_504] = { "504", FATE_TIMEOUT, true, false },
    [BLOW_504_DONE] = { "504, and done", FATE_TIMEOUT_DONE, true, false },
    [BLOW_DIES_LONG_BEFORE] = { "dies long before", FATE_DIES_LONG_BEFORE, true, false },
    [BLOW_DIES_AGES_BEFORE] = { "dies ages before", FATE_DIES_AGES_BEFORE, true, false },
    [BLOW_STOPPED] = { "slurmctld is stopped", FATE_DRAWN, true, false },
    [BLOW_KILLED] = { "slurmctld is killed", FATE_DRAWN, true, false },
    [BLOW_KILLED_AFTER] = { "slurmctld is killed after it", FATE_DRAWN, true, false },
    [BLOW_409] = { "409", FATE_CONFLICT, false, true },
    [BLOW_429] = { "429", FATE_TOO_MANY, false, true },
    [BLOW_500] = { "500", FATE_INTERNAL, false, true },
    [BLOW_500_DONE] = { "500, and done", FATE_INTERNAL_DONE, false, true },
    [BLOW_503] = { "503", FATE_UNAVAILABLE, false, true },
};

/* Of the story that was told last without a blow. */
static struct {
    bool is_to_slurm[MAX_WRITES];
    uint64_t writes;
} told;

static bool can_strike(enum blow blow, bool is_to_slurm)
{
    return is_to_slurm ? !blows[blow].is_of_kubernetes : !blows[blow].is_of_slurm;
}

/* ---- one case ---- */

void crash_case_init(struct crash_case *one, const struct crash_suite *suite, struct world *world)
{
    uint64_t number = world->seed;

    *one = (struct crash_case){
        .suite = suite,
        .world = world,
        .site = number / CASE_SITE % suite->sites,
        .story = number % CASE_SITE / CASE_STORY % suite->stories,
        .blow_at = number % CASE_STORY / CASE_WRITE,
        .blow = (enum blow)(number % CASE_WRITE % BLOWS),
    };
    rand_init(&world->rand, STORY_SEED + one->story);
    trace_line(&world->trace, "story: %s; write %llu: %s", suite->story_name(one->story),
               (unsigned long long)one->blow_at, blows[one->blow].name);
}

static void on_end(void *context)
{
    struct crash_case *one = context;

    one->suite->end(one->scene);
}

static void on_step(void *context)
{
    struct crash_case *one = context;
    struct loop *loop = one->world->loop;
    int at_s = one->suite->step_at_s(one->story, one->step);
    int64_t wait_us = (int64_t)at_s * SECOND - loop_now_us(loop);

    if (at_s < 0) {
        loop_timer_start(loop, &one->timer, (int64_t)AFTER_S * SECOND, on_end, one);
    } else if (wait_us > 0) {
        loop_timer_start(loop, &one->timer, wait_us, on_step, one);
    } else {
        one->suite->act(one->scene, one->story, one->step++);
        loop_timer_start(loop, &one->timer, 0, on_step, one);
    }
}

void crash_case_start(struct crash_case *one, void *scene)
{
    one->scene = scene;
    loop_timer_start(one->world->loop, &one->timer, 0, on_step, one);
}

void crash_case_done(struct crash_case *one)
{
    loop_timer_stop(&one->timer);
}

void crash_case_on_write(struct crash_case *one, uint64_t number, const char *path)
{
    bool is_to_slurm = strncmp(path, "/slurm/", 7) == 0;

    if (one->blow_at == 0 && number < MAX_WRITES)
        told.is_to_slurm[number] = is_to_slurm;
    if (number != one->blow_at || !can_strike(one->blow, is_to_slurm))
        return;
    trace_line(&one->world->trace, "blow: %s", blows[one->blow].name);
    if (blows[one->blow].fate != FATE_DRAWN)
        sim_net_choose(one->world->net, blows[one->blow].fate);
    if (one->suite->strike)
        one->suite->strike(one->scene, one->blow);
}

void crash_case_finish(const struct crash_case *one, uint64_t writes)
{
    if (one->blow_at == 0)
        told.writes = writes;
}

/* ---- the cases of a slice ---- */

static bool is_in(struct crash_slice *slice)
{
    return slice->cases++ % slice->of == slice->number - 1;
}

static uint64_t run_case(const struct scenario *scenario, uint64_t number, struct world_result *sum)
{
    struct world_result result = { .steps = 0 };
    bool failed = world_run(scenario, number, NULL, &result, NULL) < 0;

    sum->steps += result.steps;
    sum->writes += result.writes;
    sum->virtual_us += result.virtual_us;
    return failed;
}

/* The story without a blow shows the writes, so it runs in every slice; it is a case of one. */
static uint64_t run_story(const struct scenario *scenario, uint64_t site, uint64_t story,
                          struct crash_slice *slice, struct world_result *sum, uint64_t *failed)
{
    const struct crash_suite *suite = scenario->cases;
    uint64_t base = site * CASE_SITE + story * CASE_STORY, runs = is_in(slice), writes;

    *failed += run_case(scenario, base, sum);
    writes = told.writes;
    for (uint64_t write = 1; write <= writes; write++) {
        for (unsigned blow = 1; blow < BLOWS; blow++) {
            bool is_to_slurm = write < MAX_WRITES && told.is_to_slurm[write];

            if (!(suite->blows(site) & BLOW_BIT(blow)) ||
                !can_strike((enum blow)blow, is_to_slurm) || !is_in(slice))
                continue;
            *failed += run_case(scenario, base + write * CASE_WRITE + blow, sum);
            runs++;
        }
    }
    (void)printf("%s: %s; %s: %llu writes\n", scenario->name, suite->site_name(site),
                 suite->story_name(story), (unsigned long long)writes);
    return runs;
}

uint64_t crash_cases_run_slice(const struct scenario *scenario, struct crash_slice *slice,
                               struct world_result *ret_sum, uint64_t *ret_failed)
{
    uint64_t runs = 0;

    slice->cases = 0;
    for (uint64_t site = 0; site < scenario->cases->sites; site++)
        for (uint64_t story = 0; story < scenario->cases->stories; story++)
            runs += run_story(scenario, site, story, slice, ret_sum, ret_failed);
    return runs;
}
