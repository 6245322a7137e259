/* sim_configcopy.c - the example controller in a world that lets it down.
 *
 * Two replicas of the whole program run against the simulated API server. For a minute people make,
 * change and delete what it works on, the network fails, and processes die at their writes. Then
 * there is calm. What must hold all the time, and in the end, is in sim_configcopy_promises.c. */
#include "sim_configcopy.h"

#include "base/mem.h"
#include "weather.h"

enum { SECOND = 1000000 };

/* How bad the world is; the seed chooses a row. */
struct weather {
    const char *name;
    const struct sim_faults *faults; /* NULL: none */
    bool crashes, rollouts, partitions;
};

static const struct weather weathers[] = {
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

/* ---- processes ---- */

static void plan_next_crash(struct scene *scene)
{
    if (scene->weather->crashes && !scene->is_calm)
        process_plan_crash(scene->world, 30, false);
}

static void kill_replica(void *owner)
{
    struct replica *replica = owner;

    app_free(replica->app);
    http_transport_free(replica->api);
    http_transport_free(replica->lease_api);
    replica->app = NULL;
    replica->api = replica->lease_api = NULL;
}

static void start_replica(void *owner)
{
    struct replica *replica = owner;
    struct world *world = replica->scene->world;

    replica->api = sim_transport_new(world->net, replica->process.user);
    replica->lease_api = sim_transport_new(world->net, replica->process.user);
    replica->app = app_new(world->loop, replica->api, replica->lease_api,
                           &(struct app_options){ .source_ns = scene_source_ns,
                                                  .lease_ns = "system",
                                                  .identity = replica->process.user,
                                                  .max_in_flight = replica->scene->in_flight,
                                                  .page = replica->scene->page,
                                                  .seed = rand_u64(&world->rand) });
    app_start(replica->app);
    if (replica->scene->weather->rollouts && !replica->scene->is_calm)
        process_stop_later(&replica->process);
}

static struct engine *engine_of(const void *owner)
{
    const struct replica *replica = owner;

    return replica->app ? app_engine(replica->app) : NULL;
}

static struct kube_lease *lease_of(const void *owner)
{
    return app_lease(((const struct replica *)owner)->app);
}

static const struct process_type replica_type = { start_replica, kill_replica, engine_of,
                                                  lease_of };

static void on_crash(void *context, const char *user)
{
    struct scene *scene = ((struct world *)context)->scene;

    for (unsigned i = 0; i < REPLICAS; i++) {
        struct replica *replica = &scene->replicas[i];

        if (replica->app && strcmp(replica->process.user, user) == 0)
            process_restart(&replica->process);
    }
    plan_next_crash(scene);
}

static void on_sent(void *context, const char *user, const char *method, const char *path,
                    struct str body)
{
    promises_on_send(((struct world *)context)->scene, user, method, path);
}

/* ---- partitions ---- */

static void on_partition(void *context);

static void on_healed(void *context)
{
    struct scene *scene = context;
    struct world *world = scene->world;

    sim_net_cut(world->net, NULL, NULL);
    loop_timer_start(world->loop, &scene->partition, rand_range(&world->rand, SECOND, 20 * SECOND),
                     on_partition, scene);
}

/* One replica loses the API server, or only the way on which it renews its lease. */
static void on_partition(void *context)
{
    struct scene *scene = context;
    struct world *world = scene->world;
    const struct replica *replica = &scene->replicas[rand_below(&world->rand, REPLICAS)];

    sim_net_cut(world->net, replica->process.user,
                rand_chance(&world->rand, 600) ? "/leases" : NULL);
    loop_timer_start(world->loop, &scene->partition, rand_range(&world->rand, SECOND, 40 * SECOND),
                     on_healed, scene);
}

/* ---- the course of things: storm, calm, settled, over ---- */

static void on_over(void *context)
{
    ((struct scene *)context)->is_over = true;
}

static void on_settled(void *context)
{
    struct scene *scene = context;

    scene->settled_sent = scene->sent;
    promises_when_settled(scene);
    loop_timer_start(scene->world->loop, &scene->course, (int64_t)QUIET_S * SECOND, on_over, scene);
}

static void on_calm(void *context)
{
    struct scene *scene = context;
    struct world *world = scene->world;

    trace_line(&world->trace, "calm");
    scene->is_calm = true;
    people_end(scene);
    loop_timer_stop(&scene->partition);
    sim_net_cut(world->net, NULL, NULL);
    sim_net_set_faults(world->net, NULL);
    sim_net_crash_at(world->net, 0, FATE_DIES_BEFORE);
    loop_timer_start(world->loop, &scene->course, (int64_t)SETTLE_S * SECOND, on_settled, scene);
}

static void start_replicas(struct scene *scene)
{
    static const unsigned in_flight[] = { 1, 2, 64 };
    struct world *world = scene->world;

    scene->in_flight = in_flight[rand_below(&world->rand, 3)];
    scene->page = (unsigned)rand_range(&world->rand, 1, 10);
    for (unsigned i = 0; i < REPLICAS; i++) {
        struct replica *replica = &scene->replicas[i];

        replica->scene = scene;
        process_init(&replica->process, &replica_type, replica, world, i);
    }
}

static void *start(struct world *world)
{
    struct scene *scene = mem_alloc(sizeof(*scene));
    int64_t storm_us = rand_range(&world->rand, 5 * SECOND, (int64_t)STORM_MAX_S * SECOND);

    scene->world = world;
    scene->weather = &weathers[world->seed % WEATHERS];
    trace_line(&world->trace, "weather: %s", scene->weather->name);
    api_store_listen(world->store, promises_on_change, scene);
    people_prepare(scene);
    sim_net_set_faults(world->net, scene->weather->faults);
    start_replicas(scene);
    people_start(scene);
    plan_next_crash(scene);
    if (scene->weather->partitions)
        loop_timer_start(world->loop, &scene->partition, SECOND, on_partition, scene);
    loop_timer_start(world->loop, &scene->course, storm_us, on_calm, scene);
    return scene;
}

static void check(void *scene)
{
    promises_after_step(scene);
}

static bool is_over(const void *scene)
{
    return ((const struct scene *)scene)->is_over;
}

static void finish(void *scene)
{
    promises_at_the_end(scene);
}

static void free_scene(void *context)
{
    struct scene *scene = context;

    for (unsigned i = 0; i < REPLICAS; i++)
        process_done(&scene->replicas[i].process);
    loop_timer_stop(&scene->people);
    loop_timer_stop(&scene->partition);
    loop_timer_stop(&scene->course);
    mem_free(scene);
}

static const struct sim_hooks hooks = { .sent = on_sent, .crash = on_crash };

const struct scenario scenario_configcopy = {
    .name = "configcopy",
    .what = "the example controller: two replicas, people, faults, crashes",
    .start = start,
    .check = check,
    .is_over = is_over,
    .finish = finish,
    .free = free_scene,
    .hooks = &hooks,
};
