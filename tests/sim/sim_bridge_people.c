/* sim_bridge_people.c - people in Kubernetes: they make and delete pods of many kinds, open gates,
 * and cordon, break, delete, re-make, resize and relabel nodes. */
#include "sim_bridge.h"

#include "device/names.h"

#include <inttypes.h>
#include <stdarg.h>

enum { SECOND = SCENE_SECOND };

#define PODS     "/api/v1/namespaces/" SCENE_NS "/pods"
#define PREFIX   BRIDGE_ANNOTATION_PREFIX
#define STRANGER "example.com/stranger"
#define GATE     ",\"schedulingGates\":[{\"name\":\"" STRANGER "\"}]"

int bridge_people_call(struct bridge_scene *scene, const char *method, const char *path,
                       const char *format, ...)
{
    char body[10 * SCENE_TEXT];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(body, sizeof(body), format, args);
    va_end(args);
    return world_call(scene->world, "people", method, path, body[0] ? body : NULL);
}

/* ---- nodes ---- */

#define NODE_STATUS                                                                                \
    "{\"allocatable\":{\"cpu\":\"%u\",\"memory\":\"4096Mi\"},\"capacity\":{\"cpu\":\"%u\","        \
    "\"memory\":\"4096Mi\"},\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"10.0.0.%u\"}],"  \
    "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"lastTransitionTime\":"              \
    "\"2026-01-01T00:00:00Z\"}]}"

void bridge_people_make_node_named(struct bridge_scene *scene, const char *name, unsigned number,
                                   unsigned cpus)
{
    (void)bridge_people_call(
        scene, "POST", "/api/v1/nodes",
        "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"" BRIDGE_EXTERNAL_LABEL "\":\"\",\"" STRANGER
        "\":\"x\",\"" SCENE_DISK_LABEL "\":\"%s\"},\"annotations\":{\"" BRIDGE_PARTITIONS_ANNOTATION
        "\":\"" SCENE_PARTITION "\"}},\"spec\":{\"taints\":[{\"key\":\"" STRANGER
        "\",\"effect\":\"PreferNoSchedule\"},{\"key\":\"" BRIDGE_TAINT
        "\",\"value\":\"other\",\"effect\":\"PreferNoSchedule\"}]},\"status\":" NODE_STATUS "}",
        name, number % 2 ? "fast" : "slow", cpus, cpus, number);
}

void bridge_people_make_node(struct bridge_scene *scene, unsigned number, unsigned cpus)
{
    char name[32];

    (void)snprintf(name, sizeof(name), "node-%u", number);
    if (number <= SCENE_GPU_NODES)
        bridge_gpus_of_node(scene, name);
    bridge_cores_of_node(scene, name);
    bridge_people_make_node_named(scene, name, number, cpus);
}

static void call_node(struct bridge_scene *scene, const char *method, unsigned number,
                      const char *part, const char *body)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/api/v1/nodes/node-%u%s", number, part);
    (void)bridge_people_call(scene, method, path, "%s", body);
}

void bridge_people_delete_node(struct bridge_scene *scene, unsigned number)
{
    call_node(scene, "DELETE", number, "", "");
}

static void set_cordon(struct bridge_scene *scene, unsigned number, bool yes)
{
    call_node(scene, "PATCH", number, "",
              yes ? "{\"spec\":{\"unschedulable\":true}}" : "{\"spec\":{\"unschedulable\":null}}");
}

static void set_label(struct bridge_scene *scene, unsigned number, bool yes)
{
    call_node(scene, "PATCH", number, "",
              yes ? "{\"metadata\":{\"labels\":{\"" BRIDGE_EXTERNAL_LABEL "\":\"\"}}}"
                  : "{\"metadata\":{\"labels\":{\"" BRIDGE_EXTERNAL_LABEL "\":null}}}");
}

/* Conditions are one list here; the other's condition must not be lost. */
static void set_ready(struct bridge_scene *scene, unsigned number, bool yes)
{
    char name[32], body[4 * SCENE_TEXT];
    auto_buf struct buf rest;
    const struct json *condition, *node;
    struct json_iter iter;

    (void)snprintf(name, sizeof(name), "node-%u", number);
    node = api_store_find(scene->world->store, "nodes", "", name);
    iter = json_iter(json_at(node, "status", "conditions"));
    buf_init(&rest, SCENE_TEXT);
    while (json_next_item(&iter, &condition))
        if (!str_is(json_str(json_get(condition, "type")), "Ready")) {
            buf_add_char(&rest, ',');
            json_write(condition, &rest);
        }
    (void)snprintf(body, sizeof(body),
                   "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"%s\","
                   "\"lastTransitionTime\":\"2026-01-01T00:00:0%dZ\"}%s]}}",
                   yes ? "True" : "Unknown", yes ? 1 : 2, buf_text(&rest));
    call_node(scene, "PATCH", number, "/status", body);
}

static void set_size(struct bridge_scene *scene, unsigned number, unsigned cpus)
{
    char body[SCENE_TEXT];

    (void)snprintf(body, sizeof(body),
                   "{\"status\":{\"allocatable\":{\"cpu\":\"%u\",\"memory\":\"4096Mi\"}}}", cpus);
    call_node(scene, "PATCH", number, "/status", body);
}

/* ---- pods ---- */

struct pod_kind {
    const char *labels, *annotations, *owner, *finalizers;
    const char *spec, *ports, *requests;
    const char *scheduler;
    unsigned cpus;
    bool pins; /* it has the entry of the webhook for a claim of its cores */
};

/* The controller that owns it, if it is there. */
static void write_owner(struct bridge_scene *scene, const char *kind, char *text, size_t size)
{
    bool is_job = strcmp(kind, "Job") == 0;
    const char *name = is_job ? "j" : "r";
    const struct json *owner =
        api_store_find(scene->world->store, is_job ? "jobs" : "replicasets", SCENE_NS, name);

    text[0] = '\0';
    if (owner)
        (void)snprintf(text, size,
                       ",\"ownerReferences\":[{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"name\":"
                       "\"%s\",\"uid\":\"%s\",\"controller\":true}]",
                       is_job ? "batch/v1" : "apps/v1", kind, name,
                       json_str(json_at(owner, "metadata", "uid")).at);
}

static void make_pod(struct bridge_scene *scene, const char *name, const struct pod_kind *kind)
{
    char owner[SCENE_TEXT] = "", cores[SCENE_TEXT] = "";

    if (kind->pins)
        (void)snprintf(cores, sizeof(cores),
                       ",\"resourceClaims\":[{\"name\":\"" DEVICE_CPU_CLAIM
                       "\",\"resourceClaimName\":\"" DEVICE_CPU_CLAIM "-%s-%" PRId64 "\"}]",
                       name, loop_now_us(scene->world->loop));
    if (kind->owner)
        write_owner(scene, kind->owner, owner, sizeof(owner));
    (void)bridge_people_call(
        scene, "POST", PODS,
        "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"" STRANGER
        "\":\"x\"%s},\"annotations\":{%s}%s%s},\"spec\":{\"schedulerName\":\"%s\","
        "\"terminationGracePeriodSeconds\":4%s%s,\"containers\":[{\"name\":\"c\",\"image\":\"i\"%s,"
        "\"resources\":{\"requests\":{\"cpu\":\"%u\",\"memory\":\"64Mi\"%s}}}]}}",
        name, kind->labels ? kind->labels : "", kind->annotations ? kind->annotations : "",
        kind->finalizers ? kind->finalizers : "", owner,
        kind->scheduler ? kind->scheduler : SCENE_SCHEDULER, kind->spec ? kind->spec : "", cores,
        kind->ports ? kind->ports : "", kind->cpus ? kind->cpus : 1,
        kind->requests ? kind->requests : "");
}

void bridge_people_make_pod(struct bridge_scene *scene, const char *name, unsigned cpus)
{
    make_pod(scene, name, &(struct pod_kind){ .cpus = cpus });
}

#define A_DEVICE ",\"" DEVICE_CLASS_PREFIX "gpu.example.com\":\"1\""

void bridge_people_make_pod_with_device(struct bridge_scene *scene, const char *name)
{
    make_pod(scene, name,
             &(struct pod_kind){ .annotations = "\"" PREFIX "exclusive\":\"false\"",
                                 .requests = A_DEVICE });
}

void bridge_people_make_pinned_pod(struct bridge_scene *scene, const char *name)
{
    make_pod(
        scene, name,
        &(struct pod_kind){ .annotations = "\"" PREFIX "exclusive\":\"false\"", .pins = true });
}

void bridge_people_delete_pod(struct bridge_scene *scene, const char *ns, const char *name,
                              int grace)
{
    char path[120];

    (void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s", ns, name);
    if (grace < 0)
        (void)bridge_people_call(scene, "DELETE", path, "%s", "");
    else
        (void)bridge_people_call(scene, "DELETE", path, "{\"gracePeriodSeconds\":%d}", grace);
}

/* ---- actions ---- */

/* Of a pod of another scheduler: the group, the job and the node of a pod of ours. */
#define FINALIZER_LIKE_OURS ",\"finalizers\":[\"" BRIDGE_FINALIZER "-2\"]"
#define LOOKS_LIKE_OURS                                                                            \
    .labels = ",\"" BRIDGE_JOB_LABEL "\":\"1\",\"" BRIDGE_COSCHEDULING_LABEL "\":\"g1\"",          \
    .annotations = "\"" BRIDGE_NODE_ANNOTATION "\":\"node-1\"", .finalizers = FINALIZER_LIKE_OURS

struct slurm_action {
    struct bridge_scene *scene;
    char pod[16];
    unsigned node;
    bool yes;
};

static void make_some_pod(struct slurm_action *deed)
{
    static const struct pod_kind kinds[] = {
        { .cpus = 1 },
        { .cpus = 1 },
        { .cpus = 1 },
        { .cpus = 2 },
        { .owner = "Job" },
        { .owner = "ReplicaSet" },
        { .spec = GATE },
        { .spec = GATE },
        { .spec = ",\"nodeSelector\":{\"" SCENE_DISK_LABEL "\":\"fast\"}" },
        { .spec = ",\"nodeSelector\":{\"" SCENE_DISK_LABEL "\":\"none\"}" },
        { .ports = ",\"ports\":[{\"containerPort\":80,\"hostPort\":8080}]" },
        { .annotations = "\"" PREFIX "exclusive\":\"true\"" },
        { .annotations = "\"" PREFIX "job-name\":\"mine\",\"" PREFIX "exclusive\":\"false\"" },
        { .annotations = "\"" PREFIX "timelimit\":\"soon\"" },
        { .annotations = "\"" PREFIX "partition\":\"nowhere\"" },
        { .cpus = SCENE_IMPOSSIBLE },
        { .requests = A_DEVICE },
        { .spec = ",\"resourceClaims\":[{\"name\":\"g\",\"resourceClaimName\":\"mine\"}]" },
        { .annotations = "\"" PREFIX "exclusive\":\"false\"", .requests = A_DEVICE },
        { .requests = ",\"" DEVICE_CLASS_PREFIX "odd\":\"1\"" },
        { .annotations = "\"" PREFIX "exclusive\":\"false\"", .pins = true },
        { .annotations = "\"" PREFIX "exclusive\":\"false\"", .cpus = 2, .pins = true },
        { .scheduler = SCENE_STRANGER },
        { .scheduler = SCENE_STRANGER, LOOKS_LIKE_OURS },
        { .scheduler = SCENE_SCHEDULER "-2", LOOKS_LIKE_OURS },
        { .labels = ",\"" BRIDGE_JOB_LABEL "-2\":\"1\"",
          .annotations = "\"" BRIDGE_NODE_ANNOTATION "-2\":\"node-1\"",
          .finalizers = FINALIZER_LIKE_OURS },
        { .finalizers = ",\"finalizers\":[\"" STRANGER "\"]" },
    };

    make_pod(deed->scene, deed->pod,
             &kinds[rand_below(&deed->scene->world->rand, sizeof(kinds) / sizeof(kinds[0]))]);
}

static void delete_pod(struct slurm_action *deed)
{
    bridge_people_delete_pod(deed->scene, SCENE_NS, deed->pod, deed->yes ? -1 : 1);
}

static void delete_pod_by_force(struct slurm_action *deed)
{
    bridge_people_delete_pod(deed->scene, SCENE_NS, deed->pod, 0);
}

static void open_gate(struct slurm_action *deed)
{
    char path[100];

    (void)snprintf(path, sizeof(path), PODS "/%s", deed->pod);
    (void)bridge_people_call(deed->scene, "PATCH", path, "{\"spec\":{\"schedulingGates\":null}}");
}

/* Whoever set it takes it away, sooner or later. */
static void drop_finalizer(struct slurm_action *deed)
{
    const struct json *pod = api_store_find(deed->scene->world->store, "pods", SCENE_NS, deed->pod);
    struct json_iter iter = json_iter(json_at(pod, "metadata", "finalizers"));
    const struct json *finalizer;
    bool is_ours = false, is_theirs = false;
    char path[100];

    while (json_next_item(&iter, &finalizer)) {
        is_ours |= str_is(json_str(finalizer), BRIDGE_FINALIZER);
        is_theirs |= !str_is(json_str(finalizer), BRIDGE_FINALIZER);
    }
    (void)snprintf(path, sizeof(path), PODS "/%s", deed->pod);
    if (is_theirs)
        (void)bridge_people_call(deed->scene, "PATCH", path, "{\"metadata\":{\"finalizers\":[%s]}}",
                                 is_ours ? "\"" BRIDGE_FINALIZER "\"" : "");
}

static void make_owners(struct slurm_action *deed)
{
    (void)bridge_people_call(deed->scene, "POST", "/apis/batch/v1/namespaces/" SCENE_NS "/jobs",
                             "{\"metadata\":{\"name\":\"j\"},\"spec\":{}}");
    (void)bridge_people_call(deed->scene, "POST",
                             "/apis/apps/v1/namespaces/" SCENE_NS "/replicasets",
                             "{\"metadata\":{\"name\":\"r\"},\"spec\":{}}");
}

static void delete_owner(struct slurm_action *deed)
{
    (void)bridge_people_call(deed->scene, "DELETE",
                             deed->yes ? "/apis/batch/v1/namespaces/" SCENE_NS "/jobs/j"
                                       : "/apis/apps/v1/namespaces/" SCENE_NS "/replicasets/r",
                             "%s", "");
}

static void make_group(struct slurm_action *deed)
{
    bridge_groups_make(deed->scene);
}

static void disturb_group(struct slurm_action *deed)
{
    bridge_groups_disturb(deed->scene);
}

static void delete_group(struct slurm_action *deed)
{
    bridge_groups_delete(deed->scene);
}

static void cordon(struct slurm_action *deed)
{
    set_cordon(deed->scene, deed->node, deed->yes);
}

static void uncordon(struct slurm_action *deed)
{
    set_cordon(deed->scene, deed->node, false);
}

static void lose_node(struct slurm_action *deed)
{
    set_ready(deed->scene, deed->node, !deed->yes);
}

static void find_node(struct slurm_action *deed)
{
    set_ready(deed->scene, deed->node, true);
}

static void delete_node(struct slurm_action *deed)
{
    bridge_people_delete_node(deed->scene, deed->node);
}

static void make_node(struct slurm_action *deed)
{
    bridge_people_make_node(deed->scene, deed->node, deed->yes ? SCENE_CPUS : SCENE_CPUS / 2);
}

static void label_node(struct slurm_action *deed)
{
    set_label(deed->scene, deed->node, deed->yes);
}

static void resize_node(struct slurm_action *deed)
{
    set_size(deed->scene, deed->node, deed->yes ? SCENE_CPUS : SCENE_CPUS / 2);
}

static void taint_gpu(struct slurm_action *deed)
{
    bridge_taint_gpu(deed->scene, deed->node, !deed->yes);
}

static void leave_claim(struct slurm_action *deed)
{
    bridge_leave_claim(deed->scene, deed->pod);
}

static void forget_history(struct slurm_action *deed)
{
    world_forget_history(deed->scene->world);
}

static const struct {
    void (*act)(struct slurm_action *deed);
    unsigned weight;
} deeds[] = {
    { make_group, 20 }, { disturb_group, 20 },      { delete_group, 8 },   { make_some_pod, 40 },
    { delete_pod, 15 }, { delete_pod_by_force, 4 }, { open_gate, 10 },     { drop_finalizer, 8 },
    { make_owners, 4 }, { delete_owner, 2 },        { cordon, 4 },         { uncordon, 6 },
    { lose_node, 4 },   { find_node, 6 },           { delete_node, 3 },    { make_node, 12 },
    { label_node, 4 },  { resize_node, 2 },         { forget_history, 2 }, { taint_gpu, 6 },
    { leave_claim, 8 },
};

enum { DEEDS = sizeof(deeds) / sizeof(deeds[0]) };

static void act(struct bridge_scene *scene)
{
    struct rand *rand = &scene->world->rand;
    struct slurm_action deed = { .scene = scene };
    size_t chosen = world_choose(scene->world, &deeds[0].weight, sizeof(deeds[0]), DEEDS);

    (void)snprintf(deed.pod, sizeof(deed.pod), "p%u", 1 + (unsigned)rand_below(rand, SCENE_PODS));
    deed.node = 1 + (unsigned)rand_below(rand, scene->node_count);
    deed.yes = rand_chance(rand, 700);
    deeds[chosen].act(&deed);
}

static void on_people(void *context)
{
    struct bridge_scene *scene = context;
    struct rand *rand = &scene->world->rand;

    act(scene);
    loop_timer_start(scene->world->loop, &scene->people,
                     rand_chance(rand, 500) ? rand_range(rand, 0, 20000)
                                            : rand_range(rand, 20000, 3 * SECOND),
                     on_people, scene);
}

/* All nodes serve again, but for some that stay out of Slurm; strangers' finalizers go. */
static void repair(struct bridge_scene *scene)
{
    struct rand *rand = &scene->world->rand;

    for (unsigned i = 1; i <= scene->node_count; i++) {
        bridge_people_make_node(scene, i, SCENE_CPUS);
        set_cordon(scene, i, false);
        set_ready(scene, i, true);
        set_size(scene, i, SCENE_CPUS);
        bridge_taint_gpu(scene, i, false);
        set_label(scene, i, i <= 2 || rand_chance(rand, 700));
    }
    for (unsigned i = 1; i <= SCENE_PODS; i++) {
        struct slurm_action deed = { .scene = scene };

        (void)snprintf(deed.pod, sizeof(deed.pod), "p%u", i);
        drop_finalizer(&deed);
    }
    bridge_groups_end(scene);
}

void bridge_people_delete_all(struct bridge_scene *scene)
{
    char name[16];

    bridge_groups_delete_all(scene);
    for (unsigned i = 1; i <= SCENE_PODS; i++) {
        (void)snprintf(name, sizeof(name), "p%u", i);
        bridge_people_delete_pod(scene, SCENE_NS, name, -1);
    }
}

static void on_last_burst(void *context)
{
    struct bridge_scene *scene = context;
    struct rand *rand = &scene->world->rand;

    act(scene);
    if (rand_chance(rand, 900))
        loop_timer_start(scene->world->loop, &scene->people, rand_range(rand, 0, 15000),
                         on_last_burst, scene);
    else
        repair(scene);
}

void bridge_people_end(struct bridge_scene *scene)
{
    loop_timer_start(scene->world->loop, &scene->people, 0, on_last_burst, scene);
}

void bridge_people_prepare(struct bridge_scene *scene)
{
    static const char *const names[] = { "kube-system", SCENE_LEASE_NS, SCENE_NS, SCENE_OTHER_NS };
    const struct json *system;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        (void)bridge_people_call(scene, "POST", "/api/v1/namespaces",
                                 "{\"metadata\":{\"name\":\"%s\"}}", names[i]);
    (void)bridge_people_call(scene, "POST", "/api/v1/namespaces/" SCENE_LEASE_NS "/configmaps",
                             "{\"metadata\":{\"name\":\"" SCENE_LENT_NODES "\"}}");
    system = api_store_find(scene->world->store, "namespaces", "", "kube-system");
    (void)snprintf(scene->cluster, sizeof(scene->cluster), "%s",
                   json_str(json_at(system, "metadata", "uid")).at);
    bridge_devices_prepare(scene);
    for (unsigned i = 1; i <= scene->node_count; i++)
        bridge_people_make_node(scene, i, SCENE_CPUS);
}

void bridge_people_start(struct bridge_scene *scene)
{
    make_owners(&(struct slurm_action){ .scene = scene });
    loop_timer_start(scene->world->loop, &scene->people, SECOND, on_people, scene);
}
