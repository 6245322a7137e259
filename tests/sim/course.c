/* course.c - storm, calm, settled, over. */
#include "course.h"

#include "weather.h"

enum {
    SECOND = 1000000,
    STORM_MIN_S = 5, /* people, faults and crashes; the seed decides how long */
    STORM_MAX_S = 60,
    SETTLE_S = 120, /* then everything must be right */
    CRASH_WITHIN = 30,
};

/* The seed chooses a row. */
static const struct course_weather weathers[] = {
    { .name = "fair" },
    { .name = "processes die", .crashes = true },
    { .name = "rollouts", .rollouts = true },
    { .name = "partitions", .faults = &weather_slow, .partitions = true },
    { .name = "watches fail", .faults = &weather_watches_fail },
    { .name = "answers fail", .faults = &weather_answers_fail },
    { .name = "a bad day", .faults = &weather_bad_day, .crashes = true, .partitions = true },
    { .name = "everything at once",
      .faults = &weather_all_at_once,
      .crashes = true,
      .rollouts = true,
      .partitions = true },
};

enum { WEATHERS = sizeof(weathers) / sizeof(weathers[0]) };

static void later(struct course *course, int64_t us, void (*then)(void *context))
{
    loop_timer_start(course->world->loop, &course->timer, us, then, course);
}

void course_init(struct course *course, const struct course_type *type, void *scene,
                 struct world *world)
{
    *course =
        (struct course){ .type = type, .scene = scene, .world = world, .weather = &weathers[0] };
}

void course_done(struct course *course)
{
    for (unsigned i = 0; i < COURSE_REPLICAS; i++)
        if (course->processes[i])
            process_done(course->processes[i]);
    loop_timer_stop(&course->partition);
    loop_timer_stop(&course->timer);
}

/* ---- calm ---- */

static void on_over(void *context)
{
    ((struct course *)context)->is_over = true;
}

static void on_settled(void *context)
{
    struct course *course = context;

    trace_line(&course->world->trace, "settled");
    course->type->settled(course->scene);
    later(course, course->type->quiet_us, on_over);
}

void course_calm(struct course *course)
{
    struct world *world = course->world;

    trace_line(&world->trace, "calm");
    course->is_calm = true;
    course->type->calm(course->scene);
    loop_timer_stop(&course->partition);
    sim_net_cut(world->net, NULL, NULL);
    sim_net_set_faults(world->net, NULL);
    sim_net_crash_at(world->net, 0, FATE_DIES_BEFORE);
    later(course, (int64_t)SETTLE_S * SECOND, on_settled);
}

static void on_calm(void *context)
{
    course_calm(context);
}

/* ---- the storm ---- */

static void plan_next_crash(struct course *course)
{
    if (course->weather->crashes && !course->is_calm)
        process_plan_crash(course->world, CRASH_WITHIN, false);
}

void course_on_crash(struct course *course, const char *user)
{
    for (unsigned i = 0; i < COURSE_REPLICAS; i++) {
        struct process *process = course->processes[i];

        if (strcmp(process->user, user) == 0 && process->type->engine(process->owner))
            process_restart(process);
    }
    plan_next_crash(course);
}

void course_on_start(const struct course *course, struct process *process)
{
    if (course->weather->rollouts && !course->is_calm)
        process_stop_later(process);
}

static void on_partition(void *context);

static void on_healed(void *context)
{
    struct course *course = context;
    struct world *world = course->world;

    sim_net_cut(world->net, NULL, NULL);
    loop_timer_start(world->loop, &course->partition, rand_range(&world->rand, SECOND, 20 * SECOND),
                     on_partition, course);
}

/* One replica loses the API server, or only the way on which it renews its lease. */
static void on_partition(void *context)
{
    struct course *course = context;
    struct world *world = course->world;
    const struct process *process = course->processes[rand_below(&world->rand, COURSE_REPLICAS)];

    sim_net_cut(world->net, process->user, rand_chance(&world->rand, 600) ? "/leases" : NULL);
    loop_timer_start(world->loop, &course->partition, rand_range(&world->rand, SECOND, 40 * SECOND),
                     on_healed, course);
}

void course_start_storm(struct course *course)
{
    struct world *world = course->world;

    course->weather = &weathers[world->seed % WEATHERS];
    trace_line(&world->trace, "weather: %s", course->weather->name);
    sim_net_set_faults(world->net, course->weather->faults);
    plan_next_crash(course);
    if (course->weather->partitions)
        loop_timer_start(world->loop, &course->partition, SECOND, on_partition, course);
    later(course,
          rand_range(&world->rand, (int64_t)STORM_MIN_S * SECOND, (int64_t)STORM_MAX_S * SECOND),
          on_calm);
}
