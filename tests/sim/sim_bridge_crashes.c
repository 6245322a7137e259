/* sim_bridge_crashes.c - the bridge: small fixed stories, and one blow at every write that it makes
 * in them (crash_cases.h). Of writes to Slurm there are more: 504 with and without effect, it takes
 * effect when its sender has long been replaced, slurmctld stopped or killed at that moment. */
#include "sim_bridge.h"

enum {
    SECOND = SCENE_SECOND,
    STOPPED_S = 15, /* that slurmctld is stopped, or down */
};

/* ---- blows ---- */

static void on_back(void *context)
{
    bridge_slurm_daemons_up(context);
}

static void kill_slurmctld(void *context)
{
    struct bridge_scene *scene = context;

    slurm_store_kill(scene->world->slurm);
    loop_timer_start(scene->world->loop, &scene->daemons_back, (int64_t)STOPPED_S * SECOND, on_back,
                     scene);
}

/* From the hook: the write is about to leave. */
static void strike(void *context, enum blow blow)
{
    struct bridge_scene *scene = context;
    struct world *world = scene->world;

    if (blow == BLOW_STOPPED) {
        slurm_store_stop(world->slurm);
        loop_timer_start(world->loop, &scene->daemons_back, (int64_t)STOPPED_S * SECOND, on_back,
                         scene);
    } else if (blow == BLOW_KILLED) {
        kill_slurmctld(scene);
    } else if (blow == BLOW_KILLED_AFTER) {
        loop_timer_start(world->loop, &scene->blow_timer, SECOND / 20, kill_slurmctld, scene);
    }
}

static void on_sent(void *context, const char *user, const char *method, const char *path,
                    struct str body)
{
    struct bridge_scene *scene = ((struct world *)context)->scene;
    uint64_t before = scene->sent;

    bridge_promises_on_send(scene, user, method, path, body);
    if (scene->sent > before)
        crash_case_on_write(&scene->crash, scene->sent, path);
}

/* ---- stories ---- */

struct story_step {
    unsigned at_s;
    void (*act)(struct bridge_scene *scene);
};

enum { STORY_STEPS = 8 };

struct bridge_story {
    const char *name;
    struct story_step steps[STORY_STEPS];
};

static void make_p1(struct bridge_scene *scene)
{
    bridge_people_make_pod(scene, "p1", 1);
}

static void make_p2(struct bridge_scene *scene)
{
    bridge_people_make_pod(scene, "p2", 2);
}

static void finish_p1(struct bridge_scene *scene)
{
    bridge_kubelet_finish(scene, "p1", true);
}

static void delete_p1(struct bridge_scene *scene)
{
    bridge_people_delete_pod(scene, SCENE_NS, "p1", -1);
}

static void delete_p1_by_force(struct bridge_scene *scene)
{
    bridge_people_delete_pod(scene, SCENE_NS, "p1", 0);
}

static void with_job(struct bridge_scene *scene, int (*act)(struct slurm_store *store, int64_t id,
                                                            const char *user, struct err *err))
{
    scene->people_act = true;
    map_each (item, &scene->jobs) {
        const struct job_note *job = item->value;

        if (job->is_live && slurm_store_ctld(scene->world->slurm) == SLURM_CTLD_UP)
            (void)act(scene->world->slurm, job->id, "root", NULL);
    }
    scene->people_act = false;
}

static int requeue(struct slurm_store *store, int64_t id, const char *user, struct err *err)
{
    return slurm_people_requeue(store, id, false, err);
}

static void cancel_jobs(struct bridge_scene *scene)
{
    with_job(scene, slurm_people_cancel);
}

static void requeue_jobs(struct bridge_scene *scene)
{
    with_job(scene, requeue);
}

static void delete_node_1(struct bridge_scene *scene)
{
    bridge_people_delete_node(scene, 1);
}

static void make_node_1(struct bridge_scene *scene)
{
    bridge_people_make_node(scene, 1, SCENE_CPUS);
}

static void cordon_node_1(struct bridge_scene *scene)
{
    (void)bridge_people_call(scene, "PATCH", "/api/v1/nodes/node-1",
                             "{\"spec\":{\"unschedulable\":true}}");
}

static void uncordon_node_1(struct bridge_scene *scene)
{
    (void)bridge_people_call(scene, "PATCH", "/api/v1/nodes/node-1",
                             "{\"spec\":{\"unschedulable\":null}}");
}

static void shrink_node_1(struct bridge_scene *scene)
{
    (void)bridge_people_call(scene, "PATCH", "/api/v1/nodes/node-1/status",
                             "{\"status\":{\"allocatable\":{\"cpu\":\"2\"}}}");
}

static void grow_node_1(struct bridge_scene *scene)
{
    (void)bridge_people_call(scene, "PATCH", "/api/v1/nodes/node-1/status",
                             "{\"status\":{\"allocatable\":{\"cpu\":\"8\"}}}");
}

static void taint_gpu(struct bridge_scene *scene)
{
    bridge_taint_gpu(scene, 1, true);
}

static void heal_gpu(struct bridge_scene *scene)
{
    bridge_taint_gpu(scene, 1, false);
}

static void set_cordons(struct bridge_scene *scene, const char *value)
{
    for (unsigned i = 1; i <= scene->node_count; i++) {
        char path[64];

        (void)snprintf(path, sizeof(path), "/api/v1/nodes/node-%u", i);
        (void)bridge_people_call(scene, "PATCH", path, "{\"spec\":{\"unschedulable\":%s}}", value);
    }
}

static void cordon_all(struct bridge_scene *scene)
{
    set_cordons(scene, "true");
}

static void uncordon_all(struct bridge_scene *scene)
{
    set_cordons(scene, "null");
}

static void stop_slurmctld(struct bridge_scene *scene)
{
    slurm_store_stop(scene->world->slurm);
}

static void continue_slurmctld(struct bridge_scene *scene)
{
    slurm_store_continue(scene->world->slurm);
}

static void lose_slurmctld(struct bridge_scene *scene)
{
    slurm_store_kill(scene->world->slurm);
}

static struct process *leader_of(struct bridge_scene *scene)
{
    for (unsigned i = 0; i < BRIDGE_REPLICAS; i++)
        if (scene->replicas[i].bridge && bridge_is_leader(scene->replicas[i].bridge))
            return &scene->replicas[i].process;
    return NULL;
}

/* The leader is told to stop: the other replica takes over. */
static void roll_out(struct bridge_scene *scene)
{
    struct process *leader = leader_of(scene);

    if (leader)
        process_stop(leader);
}

/* Nobody is left who remembers the last jobs. */
static void kill_slurmctld_and_leader(struct bridge_scene *scene)
{
    struct process *leader = leader_of(scene);

    lose_slurmctld(scene);
    if (leader)
        process_restart(leader);
}

static void start_slurmctld(struct bridge_scene *scene)
{
    bridge_slurm_daemons_up(scene);
}

static void make_with_device(struct bridge_scene *scene)
{
    bridge_people_make_pod_with_device(scene, "p1");
}

static void make_second_with_device(struct bridge_scene *scene)
{
    bridge_people_make_pod_with_device(scene, "p2");
}

static void make_pinned(struct bridge_scene *scene)
{
    bridge_people_make_pinned_pod(scene, "p1");
}

static void make_second_pinned(struct bridge_scene *scene)
{
    bridge_people_make_pinned_pod(scene, "p2");
}

static void make_gang(struct bridge_scene *scene)
{
    bridge_groups_make_as(scene, "a PodGroup");
}

static void make_leader_and_worker(struct bridge_scene *scene)
{
    bridge_groups_make_as(scene, "a leader and a worker");
}

static void make_gang_with_latecomer(struct bridge_scene *scene)
{
    bridge_groups_make_as(scene, "coscheduling with a latecomer");
}

static void make_jobset(struct bridge_scene *scene)
{
    bridge_groups_make_as(scene, "a JobSet that is a gang");
}

static void restart_jobset(struct bridge_scene *scene)
{
    bridge_groups_restart(scene);
}

static void delete_worker(struct bridge_scene *scene)
{
    bridge_groups_delete_member(scene, 1);
}

static void delete_gang(struct bridge_scene *scene)
{
    bridge_groups_delete_all(scene);
}

static void make_six(struct bridge_scene *scene)
{
    bridge_groups_make_as(scene, "a Job of six that may have two nodes");
}

/* All on the first node: the second is left. */
static void finish_three_of_six(struct bridge_scene *scene)
{
    bridge_kubelet_finish(scene, "g1-0-0-1", true);
    bridge_kubelet_finish(scene, "g1-1-0-1", true);
    bridge_kubelet_finish(scene, "g1-2-0-1", true);
}

static void finish_gang(struct bridge_scene *scene)
{
    bridge_kubelet_finish(scene, "g1-0", true);
    bridge_kubelet_finish(scene, "g1-1", true);
}

static void make_coscheduled(struct bridge_scene *scene)
{
    bridge_groups_make_as(scene, "coscheduling");
}

/* A group without an object. */
static void give_pods_to_another_group(struct bridge_scene *scene)
{
    for (unsigned i = 0; i < 2; i++) {
        char path[80];

        (void)snprintf(path, sizeof(path), "/api/v1/namespaces/" SCENE_NS "/pods/g1-%u", i);
        (void)bridge_people_call(scene, "PATCH", path,
                                 "{\"metadata\":{\"labels\":{\"" BRIDGE_COSCHEDULING_LABEL
                                 "\":\"g9\"}}}");
    }
}

static void make_object_again(struct bridge_scene *scene)
{
    bridge_groups_make_object_again(scene);
}

static const struct bridge_story stories[] = {
    { "a pod is placed", { { 8, make_p1 } } },
    { "a pod finishes", { { 8, make_p1 }, { 20, finish_p1 } } },
    { "a pod is deleted", { { 8, make_p1 }, { 20, delete_p1 } } },
    { "a pod is deleted by force", { { 8, make_p1 }, { 20, delete_p1_by_force } } },
    { "a pod is deleted before it has a place", { { 8, make_p1 }, { 8, delete_p1 } } },
    { "a pod is made again", { { 8, make_p1 }, { 20, delete_p1_by_force }, { 21, make_p1 } } },
    { "a job is cancelled", { { 8, make_p1 }, { 20, cancel_jobs } } },
    { "a pod with a device is placed and finishes",
      { { 8, make_with_device }, { 20, finish_p1 }, { 21, make_second_with_device } } },
    { "the job of a pod with a device is cancelled as it starts",
      { { 8, make_with_device }, { 8, make_second_with_device }, { 9, cancel_jobs } } },
    { "pods that are pinned to their cores come and go",
      { { 8, make_pinned },
        { 8, make_second_pinned },
        { 20, delete_p1_by_force },
        { 21, make_pinned } } },
    { "a job is put back", { { 8, make_p1 }, { 20, requeue_jobs } } },
    { "a node goes", { { 8, make_p1 }, { 20, delete_node_1 } } },
    { "a node goes and comes back",
      { { 8, make_p1 }, { 20, delete_node_1 }, { 30, make_node_1 } } },
    { "a node with devices goes and comes back",
      { { 8, make_with_device },
        { 20, delete_node_1 },
        { 30, make_node_1 },
        { 31, make_second_with_device } } },
    { "a device is tainted, and well again",
      { { 8, taint_gpu }, { 16, make_with_device }, { 24, heal_gpu }, { 36, finish_p1 } } },
    { "a node is cordoned",
      { { 8, make_p1 }, { 9, cordon_node_1 }, { 12, make_p2 }, { 25, uncordon_node_1 } } },
    { "the leader is replaced",
      { { 8, make_p1 }, { 9, roll_out }, { 9, make_p2 }, { 25, delete_p1 } } },
    { "the leader is replaced while its ask has no answer",
      { { 8, stop_slurmctld }, { 8, make_p1 }, { 9, roll_out }, { 19, continue_slurmctld } } },
    { "the leader is replaced when its ask was not answered",
      { { 8, stop_slurmctld }, { 8, make_p1 }, { 19, roll_out }, { 20, continue_slurmctld } } },
    { "a gang is placed", { { 8, make_gang } } },
    { "a gang finishes", { { 8, make_gang }, { 20, finish_gang } } },
    { "a gang is deleted", { { 8, make_gang }, { 20, delete_gang } } },
    { "the job of a gang is cancelled", { { 8, make_gang }, { 20, cancel_jobs } } },
    { "a worker is replaced", { { 8, make_leader_and_worker }, { 20, delete_worker } } },
    { "a latecomer gets a job of its own", { { 8, make_gang_with_latecomer } } },
    { "a JobSet begins again", { { 8, make_jobset }, { 20, restart_jobset } } },
    { "the leader is replaced while a gang is placed", { { 8, make_gang }, { 9, roll_out } } },
    { "the jobs of a gang and its latecomer are lost",
      { { 8, make_gang_with_latecomer },
        { 13, kill_slurmctld_and_leader },
        { 15, start_slurmctld } } },
    { "the job of six is lost when three have finished",
      { { 8, make_six },
        { 12, finish_three_of_six },
        { 13, lose_slurmctld },
        { 15, start_slurmctld } } },
    { "a place is given back, and is good again",
      { { 8, stop_slurmctld },
        { 8, make_p1 },
        { 9, cordon_all },
        { 10, continue_slurmctld },
        { 14, uncordon_all } } },
    { "a gang is made again", { { 8, make_gang }, { 20, delete_gang }, { 26, make_gang } } },
    { "a node gets smaller, and larger again",
      { { 8, make_p1 }, { 12, shrink_node_1 }, { 22, finish_p1 }, { 36, grow_node_1 } } },
    { "the pods of a gang are given to another group",
      { { 8, make_coscheduled }, { 45, give_pods_to_another_group }, { 50, finish_gang } } },
    { "the object of a gang is made again",
      { { 8, make_gang }, { 20, make_object_again }, { 25, delete_worker } } },
    { "the object of a gang that waits is made again",
      { { 8, cordon_all }, { 9, make_gang }, { 20, make_object_again }, { 25, uncordon_all } } },
};

enum { STORIES = sizeof(stories) / sizeof(stories[0]) };

/* ---- where they are told ---- */

/* Where a token is not signed by the bridge, what a dead one sent takes effect for as long as its
 * successor waits for it; own ones have expired long before. */
static const struct {
    struct bridge_weather weather;
    unsigned blows; /* a bit each: what can be another story there */
    bool has_agent;
} sites[] = {
    { { .name = "fair", .has_all_apis = true },
      BLOWS_UP_TO(BLOW_KILLED_AFTER) & ~BLOW_BIT(BLOW_DIES_AGES_BEFORE),
      false },
    { { .name = "a token of others", .has_all_apis = true, .foreign_token = true },
      BLOW_BIT(BLOW_DIES_BEFORE) | BLOW_BIT(BLOW_DIES_AFTER) | BLOW_BIT(BLOW_LOST_AFTER) |
          BLOW_BIT(BLOW_DIES_LONG_BEFORE) | BLOW_BIT(BLOW_DIES_AGES_BEFORE) |
          BLOW_BIT(BLOW_STOPPED),
      false },
    { { .name = "a site plugin rewrites comments",
        .has_all_apis = true,
        .plugin = true,
        .plugin_is_quick = true },
      BLOW_BIT(BLOW_DIES_AFTER) | BLOW_BIT(BLOW_LOST_AFTER) | BLOW_BIT(BLOW_KILLED_AFTER),
      false },
    { { .name = "an agent", .has_all_apis = true },
      BLOW_BIT(BLOW_DIES_BEFORE) | BLOW_BIT(BLOW_DIES_AFTER) | BLOW_BIT(BLOW_LOST_AFTER) |
          BLOW_BIT(BLOW_DIES_LONG_BEFORE) | BLOW_BIT(BLOW_DIES_AGES_BEFORE) |
          BLOW_BIT(BLOW_STOPPED) | BLOW_BIT(BLOW_KILLED_AFTER),
      true },
};

enum { SITES = sizeof(sites) / sizeof(sites[0]) };

static const char *site_name(uint64_t site)
{
    return sites[site].weather.name;
}

static const char *story_name(uint64_t story)
{
    return stories[story].name;
}

static unsigned blows_at(uint64_t site)
{
    return sites[site].blows;
}

static int step_at_s(uint64_t story, unsigned step)
{
    return step < STORY_STEPS && stories[story].steps[step].act
               ? (int)stories[story].steps[step].at_s
               : -1;
}

static void act(void *scene, uint64_t story, unsigned step)
{
    stories[story].steps[step].act(scene);
}

static void end_story(void *scene)
{
    bridge_scene_calm(scene);
}

static const struct crash_suite suite = {
    .sites = SITES,
    .stories = STORIES,
    .site_name = site_name,
    .story_name = story_name,
    .blows = blows_at,
    .step_at_s = step_at_s,
    .act = act,
    .end = end_story,
    .strike = strike,
};

/* ---- as a scenario: the seed is the number of the case ---- */

static void *start(struct world *world)
{
    struct crash_case one;
    struct bridge_scene *scene;

    crash_case_init(&one, &suite, world);
    scene = bridge_scene_new(world, &sites[one.site].weather, sites[one.site].has_agent);
    scene->crash = one;
    bridge_groups_start(scene);
    crash_case_start(&scene->crash, scene);
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

/* Only slurmctld's own amnesia may bring a job back that had ended. */
static void no_unit_ever_has_two_jobs(struct bridge_scene *scene)
{
    if (scene->doubles > 0 && scene->crash.blow != BLOW_KILLED &&
        scene->crash.blow != BLOW_KILLED_AFTER)
        world_break(scene->world, "%llu times a unit had two jobs",
                    (unsigned long long)scene->doubles);
}

/* After a blow the pod may finish before it has a job, or while the agent is taken for away. */
static void a_finished_pod_has_completed_its_job(struct bridge_scene *scene)
{
    if (scene->has_agent && scene->crash.blow == BLOW_NONE && scene->real_ends == 0 &&
        strcmp(stories[scene->crash.story].name, "a pod finishes") == 0)
        world_break(scene->world, "the job of a pod that finished was cancelled");
}

static void finish(void *context)
{
    struct bridge_scene *scene = context;

    a_finished_pod_has_completed_its_job(scene);
    no_unit_ever_has_two_jobs(scene);
    crash_case_finish(&scene->crash, scene->settled_sent);
}

static const struct sim_hooks hooks = { .sent = on_sent,
                                        .received = bridge_on_received,
                                        .crash = bridge_on_crash };

const struct scenario scenario_crashes = {
    .name = "crashes",
    .what = "the bridge: small stories, with a blow at every write",
    .start = start,
    .check = check,
    .is_over = is_over,
    .finish = finish,
    .free = bridge_scene_free,
    .hooks = &hooks,
    .cases = &suite,
};
