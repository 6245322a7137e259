/* sim_bridge.c - the bridge in a world that lets it down.
 *
 * Two replicas of the whole program run against the simulated API server and the simulated Slurm.
 * For up to a minute people on both sides make, change, cancel and delete what it works on, the
 * network fails, slurmctld is stopped and killed, and processes die at their writes. Then there is
 * calm. What must hold all the time is in sim_bridge_promises.c, what must hold in the end in
 * sim_bridge_settled.c. */
#include "sim_bridge.h"

#include "base/mem.h"
#include "codec/base64.h"
#include "codec/jwt.h"
#include "weather.h"

enum {
    SECOND = SCENE_SECOND,
    STORM_MIN_S = 10, /* people, faults and crashes; the seed decides how long */
    STORM_MAX_S = 50,
    SETTLE_S = 180, /* then all is right: after a lease, fences, pauses of 15 s, backfill cycles */
    SILENT_S = 80,  /* or earlier, when nothing was written for so long: a lease that runs out and a
                       fence */
    QUIET_S = 15,   /* and stays so, without a write */
    EMPTY_S = 40,   /* until nothing is left of what was deleted */
    LOOK_S = 5,
    POLICY_S = 70, /* jobs are given back after a minute; the next ones come within SETTLE_S */
};

#define SIM_JWT_KEY "the key of the simulated slurmctld"

static const struct bridge_weather weathers[] = {
    { .name = "fair" },
    { .name = "processes die", .crashes = true },
    { .name = "rollouts", .rollouts = true, .stops = true },
    { .name = "slurmctld is stopped", .stops = true },
    { .name = "slurmctld is killed", .kills = true },
    { .name = "slurmctld is restarted, slurmrestd goes and comes",
      .restarts = true,
      .gateway = true },
    { .name = "a token of others, a site plugin rewrites comments, and slurmctld is stopped",
      .stops = true,
      .plugin = true,
      .plugin_is_quick = true,
      .foreign_token = true },
    { .name = "a token of others, and processes die",
      .crashes = true,
      .stops = true,
      .foreign_token = true },
    { .name = "partitions", .faults = &weather_slow, .partitions = true, .kills = true },
    { .name = "watches fail", .faults = &weather_watches_fail },
    { .name = "answers of the API server fail", .faults = &weather_answers_fail },
    { .name = "answers of Slurm fail",
      .slurm_faults = { .slow = 30,
                        .lost_before = 30,
                        .lost_between = 30,
                        .lost_after = 60,
                        .late = 40,
                        .internal = 30,
                        .timeout = 40,
                        .bad_gateway = 20 } },
    { .name = "a site plugin rewrites comments", .plugin = true, .crashes = true, .kills = true },
    { .name = "a policy refuses Bindings", .policy = true, .stops = true },
    { .name = "a bad day",
      .faults = &weather_bad_day,
      .slurm_faults = { .slow = 20,
                        .lost_before = 10,
                        .lost_between = 10,
                        .lost_after = 20,
                        .late = 10,
                        .internal = 10,
                        .timeout = 10,
                        .bad_gateway = 5 },
      .crashes = true,
      .partitions = true,
      .stops = true },
    { .name = "everything at once",
      .faults = &weather_all_at_once,
      .slurm_faults = { .slow = 100,
                        .lost_before = 40,
                        .lost_between = 40,
                        .lost_after = 80,
                        .late = 40,
                        .internal = 40,
                        .timeout = 40,
                        .bad_gateway = 30 },
      .crashes = true,
      .rollouts = true,
      .partitions = true,
      .stops = true,
      .kills = true,
      .restarts = true,
      .gateway = true },
};

enum { WEATHERS = sizeof(weathers) / sizeof(weathers[0]) };

/* ---- processes ---- */

struct bridge_replica *bridge_replica_named(struct bridge_scene *scene, const char *user)
{
    for (unsigned i = 0; i < BRIDGE_REPLICAS; i++)
        if (strcmp(scene->replicas[i].process.user, user) == 0)
            return &scene->replicas[i];
    return NULL;
}

static void plan_next_crash(struct bridge_scene *scene)
{
    if (scene->weather->crashes && !scene->is_calm)
        process_plan_crash(scene->world, 40, scene->weather->foreign_token);
}

static void kill_replica(void *owner)
{
    struct bridge_replica *replica = owner;

    bridge_free(replica->bridge);
    slurm_token_free(replica->token);
    http_transport_free(replica->api);
    http_transport_free(replica->lease_api);
    http_transport_free(replica->slurm);
    http_transport_free(replica->agent);
    replica->bridge = NULL;
    replica->token = NULL;
    replica->api = replica->lease_api = replica->slurm = replica->agent = NULL;
}

/* Of an identity provider: it has no claim `sun`, and the configuration of slurmctld tells which
 * claim is the user. */
static int new_foreign(struct slurm_token **ret_token, struct err *err)
{
    auto_buf struct buf text = { .max = JWT_TOKEN_MAX };

    base64_encode(STR("{\"alg\":\"RS256\"}"), BASE64_URL | BASE64_UNPADDED, &text);
    buf_add_char(&text, '.');
    base64_encode(STR("{\"" CTLD_USER_CLAIM "\":\"slurm\"}"), BASE64_URL | BASE64_UNPADDED, &text);
    buf_add_text(&text, ".c2lnbmVk");
    return slurm_token_new_static(buf_str(&text), ret_token, err);
}

static struct slurm_token *make_token(struct bridge_scene *scene)
{
    struct world *world = scene->world;
    struct slurm_token *token = NULL;
    struct err err = { .class = 0 };

    if (scene->weather->foreign_token
            ? new_foreign(&token, &err)
            : slurm_token_new_minted(&world->clock, STR(SIM_JWT_KEY), "slurm",
                                     rand_range(&world->rand, 20, 300), &token, &err))
        world_break(world, "no token: %s", err.text);
    return token;
}

static void start_replica(void *owner)
{
    struct bridge_replica *replica = owner;
    struct bridge_scene *scene = replica->scene;
    struct world *world = scene->world;

    replica->listed_us = replica->nodes_us = INT64_MIN;
    replica->api = sim_transport_new(world->net, replica->process.user);
    replica->lease_api = sim_transport_new(world->net, replica->process.user);
    replica->slurm = sim_transport_new_slurm(world->net, replica->process.user);
    if (scene->has_agent)
        replica->agent = sim_transport_new_agent(world->net, replica->process.user);
    replica->token = make_token(scene);
    replica->bridge =
        bridge_new(&(struct bridge_links){ .loop = world->loop,
                                           .api = replica->api,
                                           .lease_api = replica->lease_api,
                                           .slurm = replica->slurm,
                                           .agent = replica->agent,
                                           .token = replica->token },
                   &(struct bridge_options){ .config = &scene->config,
                                             .identity = replica->process.user,
                                             .lease_ns = SCENE_LEASE_NS,
                                             .owner.secret = STR(SCENE_SECRET),
                                             .lent_nodes = scene->leaves ? NULL : SCENE_LENT_NODES,
                                             .seed = rand_u64(&world->rand),
                                             .max_in_flight = scene->max_in_flight,
                                             .page = scene->page,
                                             .uninstall = scene->leaves,
                                             .slurm_fast_us = SECOND / 2 });
    bridge_start(replica->bridge);
    if (scene->weather->rollouts && !scene->is_calm)
        process_stop_later(&replica->process);
}

static struct engine *engine_of(const void *owner)
{
    const struct bridge_replica *replica = owner;

    return replica->bridge ? bridge_engine(replica->bridge) : NULL;
}

static struct kube_lease *lease_of(const void *owner)
{
    const struct bridge_replica *replica = owner;

    return bridge_may_release(replica->bridge) ? bridge_lease(replica->bridge) : NULL;
}

static const struct process_type replica_type = { start_replica, kill_replica, engine_of,
                                                  lease_of };

void bridge_on_crash(void *context, const char *user)
{
    struct bridge_scene *scene = ((struct world *)context)->scene;
    struct bridge_replica *replica = bridge_replica_named(scene, user);

    if (replica && replica->bridge)
        process_restart(&replica->process);
    plan_next_crash(scene);
}

/* Some pod says so within five seconds. */
static void refuse_binding(struct bridge_scene *scene)
{
    int64_t now_us = loop_now_us(scene->world->loop);

    if (scene->refused_us == 0)
        scene->refused_us = now_us;
    if (!scene->says_refused && now_us - scene->refused_us > 5 * SECOND)
        world_break(scene->world, "Bindings are refused, and no pod says so");
    sim_net_choose(scene->world->net, FATE_FORBIDDEN);
}

static void on_sent(void *context, const char *user, const char *method, const char *path,
                    struct str body)
{
    struct world *world = context;
    struct bridge_scene *scene = world->scene;

    bridge_promises_on_send(scene, user, method, path, body);
    scene->says_refused |= memmem(body.at, body.len, "WriteRefused", 12) != NULL;
    if (scene->weather->policy && loop_now_us(world->loop) < scene->begun_us + POLICY_S * SECOND &&
        strcmp(method, "POST") == 0 && strstr(path, "/binding"))
        refuse_binding(scene);
}

/* What a process knows of jobs and nodes is as new as the last read that was answered. */
void bridge_on_received(void *context, const char *user, const char *method, const char *path,
                        int status, int64_t sent_us)
{
    struct bridge_scene *scene = ((struct world *)context)->scene;
    struct bridge_replica *replica = bridge_replica_named(scene, user);
    bool is_good = status == 200 || status == 304;

    if (!replica || strncmp(path, "/slurm/", 7) != 0 || !is_good || strcmp(method, "GET") != 0)
        return;
    if (strstr(path, "/nodes") && sent_us > replica->nodes_us)
        replica->nodes_us = sent_us;
    if (strstr(path, "/jobs/?") && sent_us > replica->listed_us)
        replica->listed_us = sent_us;
    bridge_note_read(scene, (unsigned)(replica - scene->replicas), path, sent_us);
}

/* ---- partitions ---- */

static void on_partition(void *context);

static void on_healed(void *context)
{
    struct bridge_scene *scene = context;
    struct world *world = scene->world;

    sim_net_cut(world->net, NULL, NULL);
    loop_timer_start(world->loop, &scene->partition, rand_range(&world->rand, SECOND, 20 * SECOND),
                     on_partition, scene);
}

/* One replica loses everything, the API server, Slurm, or only the way on which it renews. */
static void on_partition(void *context)
{
    static const char *const parts[] = { NULL, "/leases", "/leases", "/api/", "/slurm/" };
    struct bridge_scene *scene = context;
    struct world *world = scene->world;
    const struct bridge_replica *replica =
        &scene->replicas[rand_below(&world->rand, BRIDGE_REPLICAS)];

    sim_net_cut(world->net, replica->process.user,
                parts[rand_below(&world->rand, sizeof(parts) / sizeof(parts[0]))]);
    loop_timer_start(world->loop, &scene->partition, rand_range(&world->rand, SECOND, 40 * SECOND),
                     on_healed, scene);
}

/* ---- the course of things: storm, calm, settled, over ---- */

static void later(struct bridge_scene *scene, int64_t us, void (*then)(void *context))
{
    loop_timer_start(scene->world->loop, &scene->course, us, then, scene);
}

static void on_deleted(void *context)
{
    struct bridge_scene *scene = context;
    int64_t left_us = scene->course_us + EMPTY_S * SECOND - loop_now_us(scene->world->loop);

    scene->is_over = bridge_is_empty(scene);
    if (scene->is_over)
        return;
    if (left_us > 0)
        later(scene, LOOK_S * SECOND, on_deleted);
    else
        bridge_promises_when_empty(scene);
}

static void on_quiet(void *context)
{
    struct bridge_scene *scene = context;

    bridge_promises_when_quiet(scene);
    trace_line(&scene->world->trace, "all is deleted");
    bridge_people_delete_all(scene);
    scene->course_us = loop_now_us(scene->world->loop);
    later(scene, LOOK_S * SECOND, on_deleted);
}

static void on_settling(void *context)
{
    struct bridge_scene *scene = context;
    int64_t now_us = loop_now_us(scene->world->loop);
    int64_t silent_us = scene->sent_us + SILENT_S * SECOND - now_us;
    int64_t left_us = scene->course_us + SETTLE_S * SECOND - now_us;

    if (silent_us > 0 && left_us > 0) {
        later(scene, silent_us < left_us ? silent_us : left_us, on_settling);
        return;
    }
    trace_line(&scene->world->trace, "settled");
    scene->settled_sent = scene->sent;
    bridge_promises_when_settled(scene);
    later(scene, QUIET_S * SECOND, on_quiet);
}

void bridge_scene_calm(struct bridge_scene *scene)
{
    struct world *world = scene->world;

    trace_line(&world->trace, "calm");
    scene->is_calm = true;
    loop_timer_stop(&scene->partition);
    loop_timer_stop(&scene->agents);
    sim_net_cut(world->net, NULL, NULL);
    sim_net_set_faults(world->net, NULL);
    sim_net_set_slurm_faults(world->net, NULL);
    sim_net_crash_at(world->net, 0, FATE_DIES_BEFORE);
    bridge_slurm_daemons_up(scene);
    scene->course_us = scene->sent_us = loop_now_us(world->loop);
    later(scene, SILENT_S * SECOND, on_settling);
}

static void on_calm(void *context)
{
    struct bridge_scene *scene = context;

    bridge_scene_calm(scene);
    bridge_people_end(scene);
    bridge_slurm_end(scene);
}

/* ---- the scene ---- */

static void configure(struct bridge_scene *scene, bool shares, bool queues)
{
    char text[400];
    struct err err = { .class = 0 };

    (void)snprintf(text, sizeof(text),
                   "schedulerName: " SCENE_SCHEDULER "\npartition: " SCENE_PARTITION
                   "\nsharedNodes: %s\nsubmitOnly: %s\nnodeResizeSeconds: 2\n",
                   shares ? "true" : "false", queues ? "true" : "false");
    if (bridge_config_parse(str_of(text), &scene->config, &err) < 0)
        world_break(scene->world, "config: %s", err.text);
}

static void add_kinds(struct world *world)
{
    static const struct api_kind kinds[] = {
        { "batch", "v1", "jobs", "Job", API_NAMESPACED | API_HAS_STATUS | API_HAS_GENERATION },
        { "apps", "v1", "replicasets", "ReplicaSet",
          API_NAMESPACED | API_HAS_STATUS | API_HAS_GENERATION },
        { "apps", "v1", "daemonsets", "DaemonSet",
          API_NAMESPACED | API_HAS_STATUS | API_HAS_GENERATION },
        { "resource.k8s.io", "v1", "deviceclasses", "DeviceClass", 0 },
        { "resource.k8s.io", "v1", "resourceslices", "ResourceSlice", 0 },
        { "resource.k8s.io", "v1beta2", "devicetaintrules", "DeviceTaintRule", 0 },
        { "resource.k8s.io", "v1", "resourceclaims", "ResourceClaim",
          API_NAMESPACED | API_HAS_STATUS },
    };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        api_store_add_kind(world->store, &kinds[i]);
}

/* Not every server has them: what a seed leaves out is not known to discovery either. */
static void add_group_kinds(struct bridge_scene *scene)
{
    static const struct {
        struct api_kind kind;
        enum group_api api;
    } kinds[] = {
        { { "scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup",
            API_NAMESPACED | API_HAS_STATUS | API_HAS_GENERATION },
          API_PODGROUPS },
        { { "scheduling.k8s.io", "v1alpha2", "workloads", "Workload",
            API_NAMESPACED | API_HAS_STATUS | API_HAS_GENERATION },
          API_PODGROUPS },
        { { "scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup",
            API_NAMESPACED | API_HAS_STATUS | API_HAS_GENERATION | API_CUSTOM },
          API_COSCHEDULING },
        { { "leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet",
            API_NAMESPACED | API_HAS_STATUS | API_HAS_GENERATION | API_CUSTOM },
          API_LWS },
        { { "jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet",
            API_NAMESPACED | API_HAS_STATUS | API_HAS_GENERATION | API_CUSTOM },
          API_JOBSETS },
    };

    for (unsigned api = 0; api < GROUP_APIS; api++)
        scene->has_api[api] =
            scene->weather->has_all_apis || !rand_chance(&scene->world->rand, 150);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (scene->has_api[kinds[i].api])
            api_store_add_kind(scene->world->store, &kinds[i].kind);
}

static void add_slurm(struct bridge_scene *scene)
{
    struct rand *rand = &scene->world->rand;

    world_add_slurm(
        scene->world,
        &(struct slurm_store_options){
            .jwt_key = scene->weather->foreign_token ? STR("") : STR(SIM_JWT_KEY),
            .message_timeout_s = rand_chance(rand, 500) ? 10 : 3,
            .min_job_age_s = rand_chance(rand, 300) ? 20 : 300,
            .backfill_interval_s = 10,
            .rewrites_comments = scene->weather->plugin &&
                                 (scene->weather->plugin_is_quick || rand_chance(rand, 500)),
            .refuses_with_500 = scene->world->seed % 4 == 3, /* Slurm 25.11 */
        });
    slurm_store_listen(scene->world->slurm, bridge_promises_on_slurm, scene);
}

static void start_replicas(struct bridge_scene *scene)
{
    static const unsigned in_flight[] = { 1, 2, 64 };
    struct world *world = scene->world;

    scene->max_in_flight = in_flight[rand_below(&world->rand, 3)];
    scene->page = (unsigned)rand_range(&world->rand, 1, 10);
    for (unsigned i = 0; i < BRIDGE_REPLICAS; i++) {
        struct bridge_replica *replica = &scene->replicas[i];

        replica->scene = scene;
        process_init(&replica->process, &replica_type, replica, world, i);
    }
}

void *bridge_scene_new(struct world *world, const struct bridge_weather *weather, bool has_agent)
{
    struct bridge_scene *scene = mem_alloc(sizeof(*scene));
    struct rand *rand = &world->rand;

    scene->world = world;
    scene->weather = weather;
    scene->has_agent = has_agent;
    trace_line(&world->trace, "weather: %s", weather->name);
    bridge_notes_init(scene);
    configure(scene, rand_chance(rand, 700), rand_chance(rand, 300));
    add_kinds(world);
    add_group_kinds(scene);
    add_slurm(scene);
    api_store_listen(world->store, bridge_promises_on_change, scene);
    scene->node_count = (unsigned)rand_range(rand, 2, SCENE_NODES);
    bridge_people_prepare(scene);
    bridge_slurm_prepare(scene);
    sim_net_set_faults(world->net, weather->faults);
    sim_net_set_slurm_faults(world->net, &weather->slurm_faults);
    start_replicas(scene);
    bridge_kubelet_start(scene);
    return scene;
}

static void *start(struct world *world)
{
    struct bridge_scene *scene =
        bridge_scene_new(world, &weathers[world->seed % WEATHERS], world->seed / WEATHERS % 2);

    scene->begun_us = loop_now_us(world->loop);
    scene->storm_us = rand_range(&world->rand, STORM_MIN_S * SECOND, STORM_MAX_S * SECOND);
    bridge_people_start(scene);
    bridge_groups_start(scene);
    bridge_slurm_start(scene);
    bridge_agents_start(scene);
    plan_next_crash(scene);
    if (scene->weather->partitions)
        loop_timer_start(world->loop, &scene->partition, SECOND, on_partition, scene);
    later(scene, scene->storm_us, on_calm);
    return scene;
}

static void check(void *scene)
{
    bridge_promises_after_step(scene);
}

static bool is_over(const void *scene)
{
    return ((const struct bridge_scene *)scene)->is_over;
}

/* What each process believed when a promise broke. */
static void print_states(const struct bridge_scene *scene)
{
    for (unsigned i = 0; i < BRIDGE_REPLICAS; i++) {
        const struct bridge_replica *replica = &scene->replicas[i];
        auto_buf struct buf text;

        buf_init(&text, 1 << 20);
        if (!replica->bridge)
            continue;
        engine_write_state(bridge_engine(replica->bridge), &text);
        (void)fprintf(stderr, "%s: %s\n", replica->process.user, buf_text(&text));
    }
}

void bridge_scene_free(void *context)
{
    struct bridge_scene *scene = context;
    struct loop_timer *const timers[] = {
        &scene->people,       &scene->kubelet,     &scene->operators, &scene->daemons,
        &scene->daemons_back, &scene->partition,   &scene->course,    &scene->crash.timer,
        &scene->blow_timer,   &scene->controllers, &scene->agents
    };

    if (scene->world->broken.class)
        print_states(scene);
    for (unsigned i = 0; i < BRIDGE_REPLICAS; i++)
        process_done(&scene->replicas[i].process);
    for (size_t i = 0; i < sizeof(timers) / sizeof(timers[0]); i++)
        loop_timer_stop(timers[i]);
    bridge_notes_done(scene);
    bridge_config_done(&scene->config);
    mem_free(scene);
}

static const struct sim_hooks hooks = { .sent = on_sent,
                                        .received = bridge_on_received,
                                        .crash = bridge_on_crash };

const struct scenario scenario_bridge = {
    .name = "bridge",
    .what = "the bridge: two replicas, people in Kubernetes and in Slurm, faults, crashes",
    .start = start,
    .check = check,
    .is_over = is_over,
    .free = bridge_scene_free,
    .hooks = &hooks,
};
