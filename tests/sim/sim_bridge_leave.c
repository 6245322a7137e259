/* sim_bridge_leave.c - the bridge is removed: after half a minute of work one process gives back
 * all that it held, as `slinc bridge --uninstall` does.
 *
 * Some pods have claims here: what the bridge writes on volumes is seen nowhere else. In the end
 * no pod has its finalizer, no node its taint, and no job of it lives, whatever it believes.
 */
#include "sim_bridge.h"

#include "weather.h"

enum {
    SECOND = SCENE_SECOND,
    WORK_S = 30,
    FAULTS_S = 20, /* of the leaving one, too */
    LEFT_S = 240,  /* after that; a fence, pauses and a few rounds */
    LATE_S = 30,   /* what bridges that died had sent has come by then, or never comes */
};

#define LEAVING "replica-leaving" /* has an account of its own in a cluster */
#define LEASE   "/apis/coordination.k8s.io/v1/namespaces/" SCENE_LEASE_NS "/leases/" SCENE_SCHEDULER
#define SPACE   "\"accessModes\":[\"ReadWriteOnce\"],"

static const struct bridge_weather weathers[] = {
    { .name = "fair", .has_all_apis = true },
    { .name = "answers fail", .faults = &weather_answers_fail, .has_all_apis = true },
    { .name = "a bad day",
      .faults = &weather_bad_day,
      .slurm_faults = { .slow = 20, .lost_after = 20, .late = 40, .timeout = 10 },
      .has_all_apis = true },
};

enum { WEATHERS = sizeof(weathers) / sizeof(weathers[0]) };

/* ---- pods with claims ---- */

static void make_claim(struct bridge_scene *scene, const char *name, const char *class,
                       const char *provisioner)
{
    (void)bridge_people_call(scene, "POST", "/apis/storage.k8s.io/v1/storageclasses",
                             "{\"metadata\":{\"name\":\"%s\"},\"provisioner\":\"%s\","
                             "\"volumeBindingMode\":\"WaitForFirstConsumer\"}",
                             class, provisioner);
    (void)bridge_people_call(
        scene, "POST", "/api/v1/namespaces/" SCENE_NS "/persistentvolumeclaims",
        "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"storageClassName\":\"%s\"," SPACE
        "\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}},\"status\":{\"phase\":\"Pending\"}}",
        name, class);
    (void)bridge_people_call(
        scene, "POST", "/api/v1/namespaces/" SCENE_NS "/pods",
        "{\"metadata\":{\"name\":\"with-%s\"},\"spec\":{\"schedulerName\":\"" SCENE_SCHEDULER
        "\",\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"%s\"}}],"
        "\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{\"requests\":{\"cpu\":"
        "\"1\",\"memory\":\"64Mi\"}}}]}}",
        name, name);
}

/* One whose volume a provisioner would make, and one for a volume that is there. */
static void make_claims(struct bridge_scene *scene)
{
    make_claim(scene, "made", "made", "example.com/disks");
    make_claim(scene, "taken", "local", "kubernetes.io/no-provisioner");
    bridge_foreign_claims(scene);
    (void)bridge_people_call(scene, "POST", "/api/v1/persistentvolumes",
                             "{\"metadata\":{\"name\":\"free\"},\"spec\":{\"storageClassName\":"
                             "\"local\"," SPACE "\"capacity\":{\"storage\":\"2Gi\"}}}");
    (void)bridge_people_call(scene, "PATCH", "/api/v1/persistentvolumes/free/status",
                             "{\"status\":{\"phase\":\"Available\"}}");
}

/* ---- leaving ---- */

struct left {
    struct bridge_scene *scene;
    unsigned held, tainted, jobs;
};

static void count_pod(void *context, const struct json *pod)
{
    struct left *left = context;
    struct json_iter iter = json_iter(json_at(pod, "metadata", "finalizers"));
    const struct json *finalizer;

    while (json_next_item(&iter, &finalizer))
        left->held += str_is(json_str(finalizer), BRIDGE_FINALIZER);
}

static void count_node(void *context, const struct json *node)
{
    struct left *left = context;
    struct json_iter iter = json_iter(json_at(node, "spec", "taints"));
    const struct json *taint;

    while (json_next_item(&iter, &taint))
        left->tainted += str_is(json_str(json_get(taint, "key")), BRIDGE_TAINT) &&
                         str_is(json_str(json_get(taint, "effect")), "NoExecute");
}

static void count_job(void *context, const struct slurm_store_job *job)
{
    struct left *left = context;

    left->jobs += !job->has_ended && bridge_note_of_job(left->scene, job)->unit[0];
}

/* What the servers say of it, not what it believes. */
static void nothing_is_left(struct bridge_scene *scene)
{
    struct left left = { .scene = scene };

    api_store_visit(scene->world->store, "pods", count_pod, &left);
    api_store_visit(scene->world->store, "nodes", count_node, &left);
    slurm_store_visit_jobs(scene->world->slurm, count_job, &left);
    if (left.held > 0 || left.tainted > 0 || left.jobs > 0)
        world_break(scene->world,
                    "the bridge has left, and %u pods and %u nodes are held, %u jobs live",
                    left.held, left.tainted, left.jobs);
}

static void look_once_more(void *context)
{
    struct bridge_scene *scene = context;

    nothing_is_left(scene);
    scene->is_over = true;
}

static void look_if_left(void *context)
{
    struct bridge_scene *scene = context;
    struct world *world = scene->world;
    const struct bridge *bridge = scene->replicas[0].bridge;
    int64_t spent_us = loop_now_us(world->loop) - scene->course_us;
    auto_buf struct buf what;

    buf_init(&what, SCENE_TEXT);
    if (spent_us > FAULTS_S * SECOND && !scene->is_calm) {
        scene->is_calm = true;
        sim_net_set_faults(world->net, NULL);
        sim_net_set_slurm_faults(world->net, NULL);
    }
    if (bridge && bridge_has_left(bridge, &what)) {
        nothing_is_left(scene);
        process_done(&scene->replicas[0].process);
        loop_timer_start(world->loop, &scene->course, LATE_S * SECOND, look_once_more, scene);
    } else if (spent_us > LEFT_S * SECOND) {
        world_break(world, "the bridge cannot leave: %s", buf_text(&what));
    } else {
        loop_timer_start(world->loop, &scene->course, SECOND, look_if_left, scene);
    }
}

/* As the chart does it: nobody else runs any more. People rest; kubelets do not. */
static void leave(void *context)
{
    struct bridge_scene *scene = context;
    struct world *world = scene->world;
    struct process *process = &scene->replicas[0].process;

    trace_line(&world->trace, "the bridge is removed");
    loop_timer_stop(&scene->people);
    loop_timer_stop(&scene->controllers);
    bridge_slurm_end(
        scene); /* others give back what they have there: a node goes when it is idle */
    process_done(&scene->replicas[1].process);
    (void)snprintf(process->user, sizeof(process->user), LEAVING);
    scene->leaves = true;
    if (rand_chance(&world->rand, 500)) /* as when nobody ever led */
        (void)bridge_people_call(scene, "DELETE", LEASE, "%s", "");
    process_restart(process);
    scene->course_us = loop_now_us(world->loop);
    loop_timer_start(world->loop, &scene->course, SECOND, look_if_left, scene);
}

/* ---- as a scenario ---- */

static void *start(struct world *world)
{
    struct bridge_scene *scene =
        bridge_scene_new(world, &weathers[world->seed % WEATHERS], world->seed / WEATHERS % 2);

    scene->is_removed = true;
    make_claims(scene);
    bridge_people_start(scene);
    bridge_groups_start(scene);
    bridge_slurm_start(scene);
    loop_timer_start(world->loop, &scene->course, WORK_S * SECOND, leave, scene);
    return scene;
}

static void check(void *scene)
{
    (void)scene;
}

static bool is_over(const void *scene)
{
    return ((const struct bridge_scene *)scene)->is_over;
}

static void on_sent(void *context, const char *user, const char *method, const char *path,
                    struct str body)
{
    bridge_promises_on_send(((struct world *)context)->scene, user, method, path, body);
}

static const struct sim_hooks hooks = { .sent = on_sent,
                                        .received = bridge_on_received,
                                        .crash = bridge_on_crash };

const struct scenario scenario_leaving = {
    .name = "leaving",
    .what = "the bridge is removed and gives back all that it held",
    .start = start,
    .check = check,
    .is_over = is_over,
    .free = bridge_scene_free,
    .hooks = &hooks,
};
