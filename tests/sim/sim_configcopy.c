/* sim_configcopy.c - the example controller in a world that lets it down.
 *
 * Two replicas of the whole program run against the simulated API server. For a minute people make,
 * change and delete what it works on, the network fails, and processes die at their writes. Then
 * there is calm. What must hold all the time, and in the end, is in sim_configcopy_promises.c. */
#include "sim_configcopy.h"

#include "base/mem.h"

enum { SECOND = 1000000 };

/* How bad the world is; the seed chooses a row. */
static const struct weather {
    struct sim_faults faults;
    bool crashes;
} weathers[] = {
    { .crashes = false },
    { .crashes = true },
    { { .slow = 30,
        .lost_before = 10,
        .lost_between = 10,
        .lost_after = 10,
        .late = 5,
        .conflict = 10,
        .too_many = 10,
        .internal = 10,
        .unavailable = 10,
        .watch_broken = 20,
        .watch_stalled = 5,
        .watch_expired = 50 },
      .crashes = true },
    { { .slow = 150,
        .lost_before = 60,
        .lost_between = 60,
        .lost_after = 100,
        .late = 60,
        .conflict = 50,
        .too_many = 50,
        .internal = 60,
        .unavailable = 50,
        .watch_broken = 150,
        .watch_stalled = 50,
        .watch_expired = 200 },
      .crashes = true },
    { { .slow = 100, .watch_broken = 300, .watch_stalled = 150, .watch_expired = 300 },
      .crashes = false },
};

/* ---- processes ---- */

static void plan_next_crash(struct scene *scene)
{
    struct rand *rand = &scene->world->rand;
    const struct weather *weather = &weathers[scene->world->seed % 5];

    if (weather->crashes && !scene->is_calm)
        sim_net_crash_at(scene->world->net,
                         sim_net_write_count(scene->world->net) + 1 + rand_below(rand, 30),
                         rand_chance(rand, 500));
}

static void start_replica(void *context);

/* As kill -9: nothing is said, nothing is finished. */
static void kill_replica(struct replica *replica)
{
    loop_timer_stop(&replica->stop);
    app_free(replica->app);
    http_transport_free(replica->api);
    http_transport_free(replica->lease_api);
    replica->app = NULL;
    replica->api = replica->lease_api = NULL;
}

static void restart_later(struct replica *replica)
{
    struct world *world = replica->scene->world;

    kill_replica(replica);
    loop_timer_start(world->loop, &replica->restart,
                     rand_range(&world->rand, SECOND / 10, 5 * SECOND), start_replica, replica);
}

/* A rollout: what is in flight is finished, the lease is given up, then the process goes. */
static void on_gone(void *context)
{
    restart_later(context);
}

static void on_released(void *context)
{
    struct replica *replica = context;

    /* Not from inside the lease's own callback. */
    loop_timer_start(replica->scene->world->loop, &replica->stop, 0, on_gone, replica);
}

static void on_finished(void *context)
{
    struct replica *replica = context;

    kube_lease_release(app_lease(replica->app), on_released, replica);
}

static void stop_replica(void *context)
{
    struct replica *replica = context;

    trace_line(&replica->scene->world->trace, "%s is told to stop", replica->user);
    engine_stop(app_engine(replica->app), 10 * (int64_t)SECOND, on_finished, replica);
}

static void start_replica(void *context)
{
    struct replica *replica = context;
    struct world *world = replica->scene->world;

    trace_line(&world->trace, "%s starts", replica->user);
    replica->api = sim_transport_new(world->net, replica->user);
    replica->lease_api = sim_transport_new(world->net, replica->user);
    replica->app = app_new(world->loop, replica->api, replica->lease_api,
                           &(struct app_options){ .source_ns = scene_source_ns,
                                                  .lease_ns = "system",
                                                  .identity = replica->user,
                                                  .seed = rand_u64(&world->rand) });
    app_start(replica->app);
    if (!replica->scene->is_calm)
        loop_timer_start(world->loop, &replica->stop, rand_range(&world->rand, SECOND, 60 * SECOND),
                         stop_replica, replica);
}

static void on_crash(void *context, const char *user)
{
    struct scene *scene = ((struct world *)context)->scene;

    for (unsigned i = 0; i < REPLICAS; i++) {
        struct replica *replica = &scene->replicas[i];

        if (replica->app && strcmp(replica->user, user) == 0)
            restart_later(replica);
    }
    plan_next_crash(scene);
}

static void on_sent(void *context, const char *user, const char *method, const char *path)
{
    promises_on_send(((struct world *)context)->scene, user, method, path);
}

/* ---- the course of things ---- */

static void on_calm(void *context)
{
    struct scene *scene = context;

    trace_line(&scene->world->trace, "calm");
    scene->is_calm = true;
    loop_timer_stop(&scene->people);
    sim_net_set_faults(scene->world->net, NULL);
    sim_net_crash_at(scene->world->net, 0, false);
}

static void on_settled(void *context)
{
    struct scene *scene = context;

    scene->is_settled = true;
    scene->settled_sent = scene->sent;
    promises_when_settled(scene);
}

static void on_over(void *context)
{
    ((struct scene *)context)->is_over = true;
}

static void *start(struct world *world)
{
    struct scene *scene = mem_alloc(sizeof(*scene));

    scene->world = world;
    api_store_listen(world->store, promises_on_change, scene);
    people_prepare(scene);
    sim_net_set_faults(world->net, &weathers[world->seed % 5].faults);
    for (unsigned i = 0; i < REPLICAS; i++) {
        struct replica *replica = &scene->replicas[i];

        replica->scene = scene;
        (void)snprintf(replica->user, sizeof(replica->user), "replica-%u", i);
        loop_timer_start(world->loop, &replica->restart, rand_range(&world->rand, 0, 3 * SECOND),
                         start_replica, replica);
    }
    people_start(scene);
    plan_next_crash(scene);
    loop_timer_start(world->loop, &scene->calm, (int64_t)CALM_AFTER_S * SECOND, on_calm, scene);
    loop_timer_start(world->loop, &scene->settled, (int64_t)SETTLED_AFTER_S * SECOND, on_settled,
                     scene);
    loop_timer_start(world->loop, &scene->over, (int64_t)OVER_AFTER_S * SECOND, on_over, scene);
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

    for (unsigned i = 0; i < REPLICAS; i++) {
        loop_timer_stop(&scene->replicas[i].restart);
        kill_replica(&scene->replicas[i]);
    }
    loop_timer_stop(&scene->people);
    loop_timer_stop(&scene->calm);
    loop_timer_stop(&scene->settled);
    loop_timer_stop(&scene->over);
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
