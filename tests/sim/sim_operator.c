/* sim_operator.c - the operator in a world that lets it down.
 *
 * Two replicas of the whole program run against the simulated API server. For a minute people make,
 * change and delete custom resources, what these refer to, and children; the network fails, and
 * processes die at their writes. Then there is calm. What must hold all the time, and in the end,
 * is in sim_operator_promises.c. */
#include "sim_operator.h"

#include "base/mem.h"
#include "operator/names.h"
#include "weather.h"

enum {
    SECOND = 1000000,
    STORM_MAX_S = 60, /* people, faults and crashes; the seed decides how long */
    SETTLE_S = 120,   /* then all children must be right, */
    QUIET_S = 60,     /* and stay so without a write */
};

/* How bad the world is; the seed chooses a row. */
struct operator_weather {
    const char *name;
    const struct sim_faults *faults; /* NULL: none */
    bool crashes, rollouts, partitions;
};

static const struct operator_weather weathers[] = {
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

static void plan_next_crash(struct operator_scene *scene)
{
    if (scene->weather->crashes && !scene->is_calm)
        process_plan_crash(scene->world, 30, false);
}

static void kill_replica(void *owner)
{
    struct operator_replica *replica = owner;

    operator_free(replica->program);
    http_transport_free(replica->api);
    http_transport_free(replica->lease_api);
    replica->program = NULL;
    replica->api = replica->lease_api = NULL;
}

static void start_replica(void *owner)
{
    struct operator_replica *replica = owner;
    struct world *world = replica->scene->world;

    replica->api = sim_transport_new(world->net, replica->process.user);
    replica->lease_api = sim_transport_new(world->net, replica->process.user);
    replica->program = operator_new(&(struct operator_links){ .loop = world->loop,
                                                              .api = replica->api,
                                                              .lease_api = replica->lease_api },
                                    &(struct operator_options){ .lease_ns = "system",
                                                                .identity = replica->process.user,
                                                                .page = replica->scene->page,
                                                                .seed = rand_u64(&world->rand) });
    operator_start(replica->program);
    if (replica->scene->weather->rollouts && !replica->scene->is_calm)
        process_stop_later(&replica->process);
}

static struct engine *engine_of(const void *owner)
{
    const struct operator_replica *replica = owner;

    return replica->program ? operator_engine(replica->program) : NULL;
}

static struct kube_lease *lease_of(const void *owner)
{
    return operator_lease(((const struct operator_replica *)owner)->program);
}

static const struct process_type replica_type = { start_replica, kill_replica, engine_of,
                                                  lease_of };

static void on_crash(void *context, const char *user)
{
    struct operator_scene *scene = ((struct world *)context)->scene;

    for (unsigned i = 0; i < OPERATOR_REPLICAS; i++) {
        struct operator_replica *replica = &scene->replicas[i];

        if (replica->program && strcmp(replica->process.user, user) == 0)
            process_restart(&replica->process);
    }
    plan_next_crash(scene);
}

static void on_sent(void *context, const char *user, const char *method, const char *path,
                    struct str body)
{
    operator_promises_on_send(((struct world *)context)->scene, user, method, path);
}

/* ---- partitions ---- */

static void on_partition(void *context);

static void on_healed(void *context)
{
    struct operator_scene *scene = context;
    struct world *world = scene->world;

    sim_net_cut(world->net, NULL, NULL);
    loop_timer_start(world->loop, &scene->partition, rand_range(&world->rand, SECOND, 20 * SECOND),
                     on_partition, scene);
}

/* One replica loses the API server, or only the way on which it renews its lease. */
static void on_partition(void *context)
{
    struct operator_scene *scene = context;
    struct world *world = scene->world;
    const struct operator_replica *replica =
        &scene->replicas[rand_below(&world->rand, OPERATOR_REPLICAS)];

    sim_net_cut(world->net, replica->process.user,
                rand_chance(&world->rand, 600) ? "/leases" : NULL);
    loop_timer_start(world->loop, &scene->partition, rand_range(&world->rand, SECOND, 40 * SECOND),
                     on_healed, scene);
}

/* ---- the course of things: storm, calm, settled, over ---- */

static void on_over(void *context)
{
    ((struct operator_scene *)context)->is_over = true;
}

static void on_settled(void *context)
{
    struct operator_scene *scene = context;

    scene->settled_sent = scene->sent;
    operator_promises_when_settled(scene);
    loop_timer_start(scene->world->loop, &scene->course, (int64_t)QUIET_S * SECOND, on_over, scene);
}

static void on_calm(void *context)
{
    struct operator_scene *scene = context;
    struct world *world = scene->world;

    trace_line(&world->trace, "calm");
    scene->is_calm = true;
    operator_people_end(scene);
    loop_timer_stop(&scene->partition);
    sim_net_cut(world->net, NULL, NULL);
    sim_net_set_faults(world->net, NULL);
    sim_net_crash_at(world->net, 0, FATE_DIES_BEFORE);
    loop_timer_start(world->loop, &scene->course, (int64_t)SETTLE_S * SECOND, on_settled, scene);
}

static void start_replicas(struct operator_scene *scene)
{
    struct world *world = scene->world;

    scene->page = (unsigned)rand_range(&world->rand, 1, 10);
    for (unsigned i = 0; i < OPERATOR_REPLICAS; i++) {
        struct operator_replica *replica = &scene->replicas[i];

        replica->scene = scene;
        process_init(&replica->process, &replica_type, replica, world, i);
    }
}

static void add_kinds(struct world *world)
{
    enum {
        WITH_STATUS = API_NAMESPACED | API_HAS_STATUS | API_HAS_GENERATION,
        CUSTOM = WITH_STATUS | API_CUSTOM
    };
    static const struct api_kind kinds[] = {
        { OPERATOR_GROUP, OPERATOR_VERSION, "controllers", "Controller", CUSTOM },
        { OPERATOR_GROUP, OPERATOR_VERSION, "restapis", "RestApi", CUSTOM },
        { OPERATOR_GROUP, OPERATOR_VERSION, "accountings", "Accounting", CUSTOM },
        { OPERATOR_GROUP, OPERATOR_VERSION, "loginsets", "LoginSet", CUSTOM },
        { OPERATOR_GROUP, OPERATOR_VERSION, "nodesets", "NodeSet", CUSTOM },
        { OPERATOR_GROUP, OPERATOR_VERSION, "tokens", "Token", CUSTOM },
        { "apps", "v1", "deployments", "Deployment", WITH_STATUS | API_COUNTS_ANNOTATIONS },
    };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        api_store_add_kind(world->store, &kinds[i]);
}

static void *start(struct world *world)
{
    struct operator_scene *scene = mem_alloc(sizeof(*scene));
    int64_t storm_us = rand_range(&world->rand, 5 * SECOND, (int64_t)STORM_MAX_S * SECOND);

    scene->world = world;
    scene->weather = &weathers[world->seed % WEATHERS];
    trace_line(&world->trace, "weather: %s", scene->weather->name);
    api_store_listen(world->store, operator_promises_on_change, scene);
    add_kinds(world);
    operator_people_prepare(scene);
    sim_net_set_faults(world->net, scene->weather->faults);
    start_replicas(scene);
    operator_people_start(scene);
    operator_workloads_start(scene);
    plan_next_crash(scene);
    if (scene->weather->partitions)
        loop_timer_start(world->loop, &scene->partition, SECOND, on_partition, scene);
    loop_timer_start(world->loop, &scene->course, storm_us, on_calm, scene);
    return scene;
}

static void check(void *scene)
{
    operator_promises_after_step(scene);
}

static bool is_over(const void *scene)
{
    return ((const struct operator_scene *)scene)->is_over;
}

static void finish(void *scene)
{
    operator_promises_at_the_end(scene);
}

static void free_scene(void *context)
{
    struct operator_scene *scene = context;

    for (unsigned i = 0; i < OPERATOR_REPLICAS; i++)
        process_done(&scene->replicas[i].process);
    loop_timer_stop(&scene->people);
    loop_timer_stop(&scene->workloads);
    loop_timer_stop(&scene->partition);
    loop_timer_stop(&scene->course);
    mem_free(scene);
}

static const struct sim_hooks hooks = { .sent = on_sent, .crash = on_crash };

const struct scenario scenario_operator = {
    .name = "operator",
    .what = "the operator: two replicas, people, workloads, faults, crashes",
    .start = start,
    .check = check,
    .is_over = is_over,
    .finish = finish,
    .free = free_scene,
    .hooks = &hooks,
};
