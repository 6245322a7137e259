/* sim_bridge_kubelet.c - who runs pods: kubelets that start them, let them finish and end them when
 * they are deleted, and the pod garbage collector that comes when a node is gone.
 *
 * A kubelet does nothing while its node is gone or not ready; what ran there still runs, as far as
 * anybody can tell. Now and then a pod is called Failed while a container of it still runs, as an
 * eviction does. */
#include "sim_bridge.h"

enum {
    SECOND = SCENE_SECOND,
    MAX_PODS = 128,
    LOOK_US = SECOND / 2,
};

struct name {
    char ns[16], name[48];
};

struct look {
    struct bridge_scene *scene;
    struct name names[MAX_PODS];
    unsigned count;
};

static void take_name(void *context, const struct json *pod)
{
    struct look *look = context;
    struct name *name = &look->names[look->count];

    if (look->count == MAX_PODS || json_str(json_at(pod, "spec", "nodeName")).len == 0)
        return;
    (void)snprintf(name->ns, sizeof(name->ns), "%s",
                   json_str(json_at(pod, "metadata", "namespace")).at);
    (void)snprintf(name->name, sizeof(name->name), "%s",
                   json_str(json_at(pod, "metadata", "name")).at);
    look->count++;
}

static void patch_status(struct bridge_scene *scene, const struct name *name, const char *body)
{
    char path[120];

    (void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s/status", name->ns,
                   name->name);
    (void)world_call(scene->world, "kubelet", "PATCH", path, body);
}

static void set_running(struct bridge_scene *scene, const struct name *name)
{
    patch_status(scene, name,
                 "{\"status\":{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"c\","
                 "\"state\":{\"running\":{}}}]}}");
}

static void set_ended(struct bridge_scene *scene, const struct name *name, const char *phase)
{
    char body[300];

    (void)snprintf(body, sizeof(body),
                   "{\"status\":{\"phase\":\"%s\",\"containerStatuses\":[{\"name\":\"c\","
                   "\"state\":{\"terminated\":{\"exitCode\":%d}}}]}}",
                   phase, strcmp(phase, "Succeeded") != 0);
    patch_status(scene, name, body);
}

void bridge_kubelet_finish(struct bridge_scene *scene, const char *pod, bool well)
{
    struct name name = { SCENE_NS, "" };

    (void)snprintf(name.name, sizeof(name.name), "%s", pod);
    set_ended(scene, &name, well ? "Succeeded" : "Failed");
}

static void delete_now(struct bridge_scene *scene, const char *user, const struct name *name)
{
    char path[120];

    (void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s", name->ns, name->name);
    (void)world_call(scene->world, user, "DELETE", path, "{\"gracePeriodSeconds\":0}");
}

/* Containers first, then the pod: it stays for its finalizers. */
static void end_pod(struct bridge_scene *scene, const struct json *pod, const struct name *name)
{
    bool may_run = bridge_pod_may_run(pod);
    int64_t grace = json_i64_or(json_at(pod, "metadata", "deletionGracePeriodSeconds"), 0);

    if (may_run && rand_chance(&scene->world->rand, grace > 0 ? 300 : 600))
        set_ended(scene, name, "Failed");
    else if (!may_run && (grace > 0 || json_len(json_at(pod, "metadata", "finalizers")) == 0))
        delete_now(scene, "kubelet", name);
}

static void run_pod(struct bridge_scene *scene, const struct json *pod, const struct name *name)
{
    struct rand *rand = &scene->world->rand;
    struct str phase = json_str(json_at(pod, "status", "phase"));
    bool is_failed = str_is(phase, "Failed");

    if (is_failed && bridge_pod_may_run(pod)) /* evicted, and its container ends now */
        set_ended(scene, name, "Failed");
    else if (str_is(phase, "Pending") && rand_chance(rand, 500))
        set_running(scene, name);
    else if (str_is(phase, "Running") && !scene->is_calm && !scene->crash.suite &&
             rand_chance(rand, 15))
        patch_status(scene, name, "{\"status\":{\"phase\":\"Failed\",\"reason\":\"Evicted\"}}");
    else if (str_is(phase, "Running") && !scene->is_calm && !scene->crash.suite &&
             rand_chance(rand, 40))
        set_ended(scene, name, rand_chance(rand, 700) ? "Succeeded" : "Failed");
}

static void look_at_pod(struct bridge_scene *scene, const struct name *name)
{
    const struct json *pod = api_store_find(scene->world->store, "pods", name->ns, name->name);
    const char *node_name = json_str(json_at(pod, "spec", "nodeName")).at;
    const struct json *node = api_store_find(scene->world->store, "nodes", "", node_name);

    if (!pod)
        return;
    if (!node) {
        if (rand_chance(&scene->world->rand, 100)) /* pod GC: five seconds, more or less */
            delete_now(scene, "podgc", name);
        return;
    }
    if (!bridge_node_is_ready(node))
        return;
    if (json_exists(json_at(pod, "metadata", "deletionTimestamp")))
        end_pod(scene, pod, name);
    else
        run_pod(scene, pod, name);
}

static void on_kubelet(void *context)
{
    struct bridge_scene *scene = context;
    struct look look = { .scene = scene };

    api_store_visit(scene->world->store, "pods", take_name, &look);
    for (unsigned i = 0; i < look.count; i++)
        look_at_pod(scene, &look.names[i]);
    bridge_devices_step(scene);
    loop_timer_start(scene->world->loop, &scene->kubelet,
                     rand_jitter(&scene->world->rand, LOOK_US, 60), on_kubelet, scene);
}

void bridge_kubelet_start(struct bridge_scene *scene)
{
    loop_timer_start(scene->world->loop, &scene->kubelet, LOOK_US, on_kubelet, scene);
}
