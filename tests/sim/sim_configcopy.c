/* sim_configcopy.c - the example controller in a world that lets it down.
 *
 * Two replicas of the whole program run against the simulated API server. For a minute people make,
 * change and delete what it works on, the network fails, and processes die at their writes. Then
 * there is calm. What must hold all the time, and in the end, is in sim_configcopy_promises.c. */
#include "sim_configcopy.h"

#include "base/mem.h"

/* ---- processes ---- */

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
    course_on_start(&replica->scene->course, &replica->process);
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
    course_on_crash(&((struct scene *)((struct world *)context)->scene)->course, user);
}

static void on_sent(void *context, const char *user, const char *method, const char *path,
                    struct str body)
{
    promises_on_send(((struct world *)context)->scene, user, method, path);
}

/* ---- the course of things ---- */

static void on_calm(void *scene)
{
    people_end(scene);
}

static void on_settled(void *context)
{
    struct scene *scene = context;

    scene->settled_sent = scene->sent;
    promises_when_settled(scene);
}

static const struct course_type course_type = { .calm = on_calm,
                                                .settled = on_settled,
                                                .quiet_us = 30000000 };

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
        scene->course.processes[i] = &replica->process;
    }
}

static void *start(struct world *world)
{
    struct scene *scene = mem_alloc(sizeof(*scene));

    scene->world = world;
    course_init(&scene->course, &course_type, scene, world);
    api_store_listen(world->store, promises_on_change, scene);
    people_prepare(scene);
    start_replicas(scene);
    people_start(scene);
    course_start_storm(&scene->course);
    return scene;
}

static void check(void *scene)
{
    promises_after_step(scene);
}

static bool is_over(const void *scene)
{
    return ((const struct scene *)scene)->course.is_over;
}

static void finish(void *scene)
{
    promises_at_the_end(scene);
}

static void free_scene(void *context)
{
    struct scene *scene = context;

    course_done(&scene->course);
    loop_timer_stop(&scene->people);
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
