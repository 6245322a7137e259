/* sim_bridge_devices.c - devices and cores of some nodes, the controller of Kubernetes that frees
 * claims, and the promises about them: a device or core is given once, a pod is bound with its
 * device and its cores, and no claim is left behind.
 *
 * The controller does what kube-controller-manager does: it frees a claim whose pod is finished,
 * gone, another one of the name, or deleted before it was bound. */
#include "sim_bridge.h"

#include "codec/bitmap.h"
#include "device/names.h"

#define CLASS  "gpu.example.com"
#define CLAIMS "resourceclaims"

enum { SECOND = SCENE_SECOND, MAX_CLAIMS = 128, MAX_CORES = 16, SICK_S = 90 };

void bridge_gpus_of_node(struct bridge_scene *scene, const char *node)
{
    (void)bridge_people_call(
        scene, "POST", "/apis/resource.k8s.io/v1/resourceslices",
        "{\"metadata\":{\"name\":\"%s-gpus\"},\"spec\":{\"driver\":\"" CLASS
        "\",\"nodeName\":\"%s\",\"pool\":{\"name\":\"%s\",\"generation\":1,"
        "\"resourceSliceCount\":1},\"devices\":[{\"name\":\"gpu-0\"},{\"name\":\"gpu-1\"}]}}",
        node, node, node);
}

void bridge_cores_of_node(struct bridge_scene *scene, const char *node)
{
    (void)bridge_people_call(
        scene, "POST", "/apis/resource.k8s.io/v1/resourceslices",
        "{\"metadata\":{\"name\":\"%s-" DEVICE_CORES_DRIVER
        "\"},\"spec\":{\"driver\":\"" DEVICE_CORES_DRIVER
        "\",\"nodeName\":\"%s\",\"pool\":{\"name\":\"%s\",\"generation\":1,"
        "\"resourceSliceCount\":1},\"devices\":[{\"name\":\"socket0-numa0\","
        "\"allowMultipleAllocations\":true,\"attributes\":{\"cores\":{\"string\":\"0-%d\"},"
        "\"nodeSockets\":{\"int\":1},\"nodeCoresPerSocket\":{\"int\":%d},"
        "\"threadsPerCore\":{\"int\":1}}}]}}",
        node, node, node, MAX_CORES - 1, MAX_CORES);
}

static void taint_in_slice(struct bridge_scene *scene, const char *node, bool yes)
{
    char path[100];

    (void)snprintf(path, sizeof(path), "/apis/resource.k8s.io/v1/resourceslices/%s-gpus", node);
    (void)bridge_people_call(
        scene, "PATCH", path,
        "{\"spec\":{\"devices\":[{\"name\":\"gpu-0\"%s},{\"name\":\"gpu-1\"}]}}",
        yes ? ",\"taints\":[{\"key\":\"hw\",\"effect\":\"NoSchedule\"}]" : "");
}

static void taint_by_rule(struct bridge_scene *scene, const char *node, bool yes)
{
    static const char rules[] = "/apis/resource.k8s.io/v1beta2/devicetaintrules";
    char path[100];

    (void)snprintf(path, sizeof(path), "%s/%s", rules, node);
    if (yes)
        (void)bridge_people_call(
            scene, "POST", rules,
            "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"deviceSelector\":{\"driver\":\"" CLASS
            "\",\"pool\":\"%s\",\"device\":\"gpu-0\"},\"taint\":{\"key\":\"hw\",\"effect\":"
            "\"NoSchedule\"}}}",
            node, node);
    else
        (void)bridge_people_call(scene, "DELETE", path, "%s", "");
}

/* The first of a node is sick, or well again. */
void bridge_taint_gpu(struct bridge_scene *scene, unsigned node, bool yes)
{
    int64_t now_us = loop_now_us(scene->world->loop);
    char name[32];

    if (node == 0 || node > SCENE_GPU_NODES || yes == (scene->tainted_us[node - 1] > 0))
        return;
    (void)snprintf(name, sizeof(name), "node-%u", node);
    if (node == 1)
        taint_in_slice(scene, name, yes);
    else
        taint_by_rule(scene, name, yes);
    scene->tainted_us[node - 1] = yes ? now_us : 0;
    bridge_note_of_node(scene, name)->changed_us = now_us;
}

static bool is_of_sick_gpu(const struct bridge_scene *scene, const struct json *result)
{
    int64_t now_us = loop_now_us(scene->world->loop);
    char pool[32];

    for (unsigned i = 0; i < SCENE_GPU_NODES; i++) {
        (void)snprintf(pool, sizeof(pool), "node-%u", i + 1);
        if (scene->tainted_us[i] > 0 && now_us - scene->tainted_us[i] > (int64_t)SICK_S * SECOND &&
            str_is(json_str(json_get(result, "pool")), pool) &&
            str_is(json_str(json_get(result, "device")), "gpu-0"))
            return true;
    }
    return false;
}

/* Those that pods can use. */
unsigned bridge_devices_shown(const struct bridge_scene *scene, const char *node)
{
    const struct json *devices, *device;
    struct json_iter iter;
    unsigned count = 0;
    char name[64];

    (void)snprintf(name, sizeof(name), "%s-gpus", node);
    devices =
        json_at(api_store_find(scene->world->store, "resourceslices", "", name), "spec", "devices");
    iter = json_iter(devices);
    while (json_next_item(&iter, &device))
        count += !json_exists(json_get(device, "taints"));
    return count - (api_store_find(scene->world->store, "devicetaintrules", "", node) ? 1U : 0U);
}

void bridge_devices_prepare(struct bridge_scene *scene)
{
    (void)bridge_people_call(
        scene, "POST", "/apis/resource.k8s.io/v1/namespaces/" SCENE_NS "/resourceclaims", "%s",
        "{\"metadata\":{\"name\":\"mine\"},\"spec\":{\"devices\":{\"requests\":[{\"name\":\"r\","
        "\"exactly\":{\"deviceClassName\":\"" CLASS "\",\"count\":1}}]}}}");
}

/* The claim of a pod that waits, as a bridge leaves it that dies before the claim is allocated and
 * whose job ends then. */
void bridge_leave_claim(struct bridge_scene *scene, const char *name)
{
    const struct json *pod = api_store_find(scene->world->store, "pods", SCENE_NS, name);
    const char *uid = json_str(json_at(pod, "metadata", "uid")).at;

    if (!bridge_pod_wants(pod, NULL) || !bridge_pod_waits(pod))
        return;
    (void)bridge_people_call(
        scene, "POST", "/apis/resource.k8s.io/v1/namespaces/" SCENE_NS "/resourceclaims",
        "{\"metadata\":{\"name\":\"" DEVICE_CLAIM_PREFIX
        "%s\",\"finalizers\":[\"" DEVICE_CLAIM_FINALIZER
        "\"],\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"%s\",\"uid\":"
        "\"%s\","
        "\"controller\":true}]},\"spec\":{\"devices\":{\"requests\":[{\"name\":"
        "\"container-0-request-1\",\"exactly\":{\"deviceClassName\":\"" CLASS
        "\",\"count\":1}}]}}}",
        uid, name, uid);
}

/* ---- the controller ---- */

struct claims {
    struct {
        char ns[16], name[64];
    } at[MAX_CLAIMS];
    unsigned count;
};

static void take_claim(void *context, const struct json *claim)
{
    struct claims *claims = context;

    if (claims->count == MAX_CLAIMS)
        return;
    (void)snprintf(claims->at[claims->count].ns, sizeof(claims->at[0].ns), "%s",
                   json_str(json_at(claim, "metadata", "namespace")).at);
    (void)snprintf(claims->at[claims->count].name, sizeof(claims->at[0].name), "%s",
                   json_str(json_at(claim, "metadata", "name")).at);
    claims->count++;
}

static bool is_over(const struct bridge_scene *scene, const char *ns, const struct json *user)
{
    const struct json *pod =
        api_store_find(scene->world->store, "pods", ns, json_str(json_get(user, "name")).at);
    struct str phase = json_str(json_at(pod, "status", "phase"));

    return !pod ||
           !str_eq(json_str(json_at(pod, "metadata", "uid")), json_str(json_get(user, "uid"))) ||
           str_is(phase, "Succeeded") || str_is(phase, "Failed") ||
           (json_exists(json_at(pod, "metadata", "deletionTimestamp")) &&
            json_str(json_at(pod, "spec", "nodeName")).len == 0);
}

static void write_claim(struct bridge_scene *scene, const char *method, const char *ns,
                        const char *name, const char *part, const char *body)
{
    char path[200];

    (void)snprintf(path, sizeof(path), "/apis/resource.k8s.io/v1/namespaces/%s/resourceclaims/%s%s",
                   ns, name, part);
    (void)world_call(scene->world, "controllers", method, path, body);
}

static void free_claim(struct bridge_scene *scene, const char *ns, const char *name)
{
    const struct json *claim = api_store_find(scene->world->store, CLAIMS, ns, name);
    const struct json *user = json_item(json_at(claim, "status", "reservedFor"), 0);
    const struct json *owner = json_item(json_at(claim, "metadata", "ownerReferences"), 0);
    bool is_free = !json_exists(json_at(claim, "status", "allocation"));
    bool is_deleted = json_exists(json_at(claim, "metadata", "deletionTimestamp"));

    if (!claim)
        return;
    if (user && is_over(scene, ns, user)) {
        write_claim(scene, "PATCH", ns, name, "/status",
                    "{\"status\":{\"allocation\":null,\"reservedFor\":null}}");
    } else if (is_free && !user && (is_deleted || !owner || is_over(scene, ns, owner))) {
        if (json_len(json_at(claim, "metadata", "finalizers")) > 0)
            write_claim(scene, "PATCH", ns, name, "", "{\"metadata\":{\"finalizers\":null}}");
        if (!is_deleted && owner)
            write_claim(scene, "DELETE", ns, name, "", NULL);
    }
}

void bridge_devices_step(struct bridge_scene *scene)
{
    struct claims claims = { .count = 0 };

    api_store_visit(scene->world->store, CLAIMS, take_claim, &claims);
    for (unsigned i = 0; i < claims.count; i++)
        if (rand_chance(&scene->world->rand, 500))
            free_claim(scene, claims.at[i].ns, claims.at[i].name);
}

/* ---- the promises ---- */

struct holder {
    struct bridge_scene *scene;
    const struct json *claim;
};

static bool is_same(const struct json *a, const struct json *b, const char *key)
{
    return str_eq(json_str(json_get(a, key)), json_str(json_get(b, key)));
}

/* Slurm's cores that a claim has on its node. */
static bool cores_of(const struct json *claim, struct bitmap *ret_cores)
{
    const struct json *entry =
        json_item(json_at(claim, "status", "allocation", "devices", "config"), 0);

    return bitmap_parse_ranges(json_str(json_at(entry, "opaque", "parameters", "cores")), MAX_CORES,
                               ret_cores, NULL) == 0;
}

static bool shares_cores(const struct json *a, const struct json *b)
{
    auto_bitmap struct bitmap mine = { 0 }, theirs = { 0 };

    if (!cores_of(a, &mine) || !cores_of(b, &theirs))
        return true;
    bitmap_and(&mine, &theirs);
    return bitmap_count(&mine) > 0;
}

static void no_device_is_given_twice(void *context, const struct json *other)
{
    const struct holder *holder = context;
    struct json_iter mine =
        json_iter(json_at(holder->claim, "status", "allocation", "devices", "results"));
    const struct json *a, *b;

    if (is_same(json_get(holder->claim, "metadata"), json_get(other, "metadata"), "uid"))
        return;
    while (json_next_item(&mine, &a)) {
        struct json_iter theirs =
            json_iter(json_at(other, "status", "allocation", "devices", "results"));

        while (json_next_item(&theirs, &b))
            if (is_same(a, b, "driver") && is_same(a, b, "pool") && is_same(a, b, "device") &&
                (!json_exists(json_get(a, "shareID")) || shares_cores(holder->claim, other)))
                world_break(holder->scene->world, "device %s of %s is given to claims %s and %s",
                            json_str(json_get(a, "device")).at, json_str(json_get(a, "pool")).at,
                            json_str(json_at(holder->claim, "metadata", "name")).at,
                            json_str(json_at(other, "metadata", "name")).at);
    }
}

void bridge_promises_on_device_claim(struct bridge_scene *scene, const struct api_change *change)
{
    const struct json *before = json_at(change->old, "status", "allocation");
    const struct json *now = json_at(change->next, "status", "allocation");
    struct holder holder = { scene, change->next };
    const struct json *result;
    struct json_iter results;

    if (strcmp(change->kind->plural, CLAIMS) != 0 || !json_exists(now))
        return;
    results = json_iter(json_at(now, "devices", "results"));
    while (!json_exists(before) && json_next_item(&results, &result))
        if (is_of_sick_gpu(scene, result))
            world_break(scene->world, "claim %s is given gpu-0 of %s, which is tainted",
                        json_str(json_at(change->next, "metadata", "name")).at,
                        json_str(json_get(result, "pool")).at);
    if (json_exists(before) && !json_equal(before, now))
        world_break(scene->world, "the allocation of claim %s was changed",
                    json_str(json_at(change->next, "metadata", "name")).at);
    api_store_visit(scene->world->store, CLAIMS, no_device_is_given_twice, &holder);
}

bool bridge_pod_wants(const struct json *pod, const char *class)
{
    const struct json *container = json_item(json_at(pod, "spec", "containers"), 0);
    char name[100];

    (void)snprintf(name, sizeof(name), DEVICE_CLASS_PREFIX "%s", class ? class : CLASS);
    return json_exists(json_at(container, "resources", "requests", name));
}

void bridge_promises_on_bound_with_device(struct bridge_scene *scene, const struct json *pod,
                                          const char *node)
{
    const char *name =
        json_str(json_at(pod, "status", "extendedResourceClaimStatus", "resourceClaimName")).at;
    const char *ns = json_str(json_at(pod, "metadata", "namespace")).at;
    const struct json *claim = api_store_find(scene->world->store, CLAIMS, ns, name);
    const struct json *result =
        json_item(json_at(claim, "status", "allocation", "devices", "results"), 0);

    const struct json *entry = json_item(json_at(pod, "spec", "resourceClaims"), 0);
    auto_bitmap struct bitmap cores = { 0 };

    if (bridge_pod_wants(pod, NULL) && !str_is(json_str(json_get(result, "pool")), node))
        world_break(scene->world, "pod %s is bound to %s and has no device there",
                    json_str(json_at(pod, "metadata", "name")).at, node);
    if (!str_is(json_str(json_get(entry, "name")), DEVICE_CPU_CLAIM))
        return;
    claim = api_store_find(scene->world->store, CLAIMS, ns,
                           json_str(json_get(entry, "resourceClaimName")).at);
    result = json_item(json_at(claim, "status", "allocation", "devices", "results"), 0);
    if (!str_is(json_str(json_get(result, "pool")), node) || !cores_of(claim, &cores) ||
        bitmap_count(&cores) == 0)
        world_break(scene->world, "pod %s is bound to %s and has no cores there",
                    json_str(json_at(pod, "metadata", "name")).at, node);
}

/* Those of people stay. */
static void count_claim(void *context, const struct json *claim)
{
    *(unsigned *)context += json_len(json_at(claim, "metadata", "ownerReferences")) > 0 ||
                            json_exists(json_at(claim, "status", "allocation"));
}

unsigned bridge_devices_claims(const struct bridge_scene *scene)
{
    unsigned count = 0;

    api_store_visit(scene->world->store, CLAIMS, count_claim, &count);
    return count;
}
