/* sim_operator.c - the operator in a world that lets it down.
 *
 * Two replicas of the whole program run against the simulated API server. For a minute people make,
 * change and delete custom resources, what these refer to, and children; the network fails, and
 * processes die at their writes. Then there is calm. What must hold all the time, and in the end,
 * is in sim_operator_promises.c. */
#include "sim_operator.h"

#include "base/mem.h"
#include "operator/names.h"

/* ---- processes ---- */

static void kill_replica(void *owner)
{
    struct operator_replica *replica = owner;

    operator_free(replica->program);
    http_transport_free(replica->api);
    http_transport_free(replica->lease_api);
    replica->program = NULL;
    replica->api = replica->lease_api = NULL;
}

static struct http_transport *connect_slurm(void *owner, const char *url, struct err *err)
{
    const struct operator_replica *replica = owner;

    return sim_transport_new_slurm(replica->scene->world->net, replica->process.user);
}

static void start_replica(void *owner)
{
    struct operator_replica *replica = owner;
    struct world *world = replica->scene->world;

    replica->api = sim_transport_new(world->net, replica->process.user);
    replica->lease_api = sim_transport_new(world->net, replica->process.user);
    replica->program =
        operator_new(&(struct operator_links){ .loop = world->loop,
                                               .api = replica->api,
                                               .lease_api = replica->lease_api,
                                               .connect_slurm = world->slurm ? connect_slurm : NULL,
                                               .connect_context = replica },
                     &(struct operator_options){ .lease_ns = "system",
                                                 .identity = replica->process.user,
                                                 .page = replica->scene->page,
                                                 .seed = rand_u64(&world->rand) });
    operator_start(replica->program);
    course_on_start(&replica->scene->course, &replica->process);
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

void operator_on_crash(void *context, const char *user)
{
    course_on_crash(&((struct operator_scene *)((struct world *)context)->scene)->course, user);
}

static void on_sent(void *context, const char *user, const char *method, const char *path,
                    struct str body)
{
    operator_promises_on_send(((struct world *)context)->scene, user, method, path);
}

/* ---- the course of things ---- */

static void on_calm(void *scene)
{
    operator_people_end(scene);
}

void operator_on_settled(void *context)
{
    struct operator_scene *scene = context;

    scene->settled_sent = scene->sent;
    operator_promises_when_settled(scene);
}

static const struct course_type course_type = { .calm = on_calm,
                                                .settled = operator_on_settled,
                                                .quiet_us = OPERATOR_QUIET_US };

static void start_replicas(struct operator_scene *scene)
{
    struct world *world = scene->world;

    scene->page = (unsigned)rand_range(&world->rand, 1, 10);
    for (unsigned i = 0; i < OPERATOR_REPLICAS; i++) {
        struct operator_replica *replica = &scene->replicas[i];

        replica->scene = scene;
        process_init(&replica->process, &replica_type, replica, world, i);
        scene->course.processes[i] = &replica->process;
    }
}

void operator_add_kinds(struct world *world)
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
        { "apps", "v1", "controllerrevisions", "ControllerRevision", API_NAMESPACED },
        { "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", WITH_STATUS },
    };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        api_store_add_kind(world->store, &kinds[i]);
}

struct operator_scene *operator_scene_new(struct world *world, const struct course_type *type)
{
    struct operator_scene *scene = mem_alloc(sizeof(*scene));

    scene->world = world;
    course_init(&scene->course, type, scene, world);
    api_store_listen(world->store, operator_promises_on_change, scene);
    operator_add_kinds(world);
    operator_people_prepare(scene);
    start_replicas(scene);
    operator_workloads_start(scene);
    scene->workers = (struct operator_workers){ .world = world, .is_calm = &scene->course.is_calm };
    operator_workers_start(&scene->workers);
    return scene;
}

void operator_scene_free(void *context)
{
    struct operator_scene *scene = context;

    course_done(&scene->course);
    crash_case_done(&scene->crash);
    loop_timer_stop(&scene->people);
    loop_timer_stop(&scene->workloads);
    operator_workers_end(&scene->workers);
    mem_free(scene);
}

bool operator_scene_is_over(const void *scene)
{
    return ((const struct operator_scene *)scene)->course.is_over;
}

void operator_scene_check(void *scene)
{
    operator_promises_after_step(scene);
}

static void *start(struct world *world)
{
    struct operator_scene *scene = operator_scene_new(world, &course_type);

    operator_people_start(scene);
    course_start_storm(&scene->course);
    return scene;
}

static void finish(void *scene)
{
    operator_promises_at_the_end(scene);
}

static const struct sim_hooks hooks = { .sent = on_sent, .crash = operator_on_crash };

const struct scenario scenario_operator = {
    .name = "operator",
    .what = "the operator: two replicas, people, workloads, faults, crashes",
    .start = start,
    .check = operator_scene_check,
    .is_over = operator_scene_is_over,
    .finish = finish,
    .free = operator_scene_free,
    .hooks = &hooks,
};
