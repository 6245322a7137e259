/* sim_bridge_groups.c - workloads of many pods: people make, disturb and delete them, and their
 * controllers bring the pods to what they should be, one by one.
 *
 * A row of `shapes` is one workload as somebody would write it; chance picks the row, the names are
 * few and the same in two namespaces. Controllers make what is missing, as real ones do: a Job
 * makes a new pod for one that failed, a LeaderWorkerSet one of the same name, a JobSet deletes all
 * and begins again. Pods of a PodGroup are nobody's: what is gone stays away. */
#include "sim_bridge.h"

#include "device/names.h"

#include <inttypes.h>
#include <stdarg.h>

enum {
    SECOND = SCENE_SECOND,
    TICK_US = SECOND / 2,
    GATE_S = 6,   /* that a gate stays closed */
    OBJECT_S = 4, /* that an object is late */
    MAX_RESTARTS = 3,
    FIRST_GROUPS = 3,
    MAX_TEXT = 1600,
};

#define PREFIX     BRIDGE_ANNOTATION_PREFIX
#define GANG       "\"" PREFIX "gang\":\"true\""
#define GANG_OF(n) "\"" PREFIX "gang\":\"" n "\""
#define SHARED     "\"" PREFIX "exclusive\":\"false\""
#define ALONE      "\"" PREFIX "exclusive\":\"true\""
#define TWO_NODES  "\"" PREFIX "max-nodes\":\"2\""
#define ON_FAST    ",\"nodeSelector\":{\"" SCENE_DISK_LABEL "\":\"fast\"}"

enum shape_kind { OF_JOB, OF_JOBSET, OF_LWS, OF_PODGROUP, OF_COSCHEDULING };

enum shape_trait {
    LATE_OBJECT = 1,   /* the pods are there before the object that speaks for them */
    REMADE = 2,        /* the object is deleted and made again, with another number */
    GATED = 4,         /* the last member is held back for a while */
    RESTARTS = 8,      /* all begin again: other pods of the same workload */
    REPLACED = 16,     /* a member is deleted, and made again if it has a controller */
    RECREATED = 32,    /* all members are deleted */
    SHRINKS = 64,      /* one member less from now on */
    LATE_MEMBER = 128, /* one more when others are bound */
    HAS_PORT = 256,    /* a port of the host: no two on one node */
    IS_WORKLOAD = 512, /* a Workload speaks too */
    HAS_DEVICE = 1024, /* a device each */
    IS_PINNED = 2048,  /* the entry of the webhook for a claim of cores */
};

struct group_shape {
    const char *what;
    enum shape_kind kind;
    unsigned pods, needed;     /* needed 0: no gang */
    unsigned cpus, first_cpus; /* of each, of the first */
    unsigned traits;
    const char *root, *pod; /* annotations */
    const char *spec;       /* more of each pod's spec */
};

/* clang-format off */
static const struct group_shape shapes[] = {
    { "a Job of single pods", OF_JOB, 3, 0, 1, 1, REPLACED, SHARED, "", "" },
    { "a Job that is a gang", OF_JOB, 2, 2, 1, 1, REPLACED, "", GANG, "" },
    { "a Job that starts with two of three", OF_JOB, 3, 2, 1, 1, REPLACED | SHRINKS, "", GANG_OF("2"), "" },
    { "a Job whose gang may have two nodes", OF_JOB, 4, 4, 1, 1, REPLACED, TWO_NODES, GANG, "" },
    { "a Job whose gang has two nodes alone", OF_JOB, 4, 4, 1, 1, REPLACED, TWO_NODES "," ALONE, GANG, "" },
    { "a Job of six that may have two nodes", OF_JOB, 6, 6, 1, 1, REPLACED, TWO_NODES "," SHARED, GANG, "" },
    { "a JobSet of single pods", OF_JOBSET, 2, 0, 1, 1, RESTARTS, SHARED, "", "" },
    { "a JobSet that is a gang", OF_JOBSET, 2, 2, 1, 1, RESTARTS | REPLACED, "", GANG, "" },
    { "a Job whose gang has devices", OF_JOB, 2, 2, 1, 1, HAS_DEVICE | REPLACED, "", GANG, "" },
    { "a larger JobSet", OF_JOBSET, 3, 3, 1, 1, RESTARTS, "", GANG, "" },
    { "a leader without workers", OF_LWS, 1, 1, 1, 1, REPLACED, "", "", "" },
    { "a leader and a worker", OF_LWS, 2, 2, 1, 1, REPLACED | RECREATED, "", "", "" },
    { "a leader that needs more", OF_LWS, 3, 3, 1, 3, REPLACED | RECREATED, "", "", "" },
    { "a group larger than the cluster", OF_LWS, 6, 6, 1, 1, RECREATED, "", "", "" },
    { "a group with whole nodes", OF_LWS, 2, 2, 1, 1, REPLACED | RECREATED, ALONE, "", "" },
    { "a leader and a worker with ports", OF_LWS, 2, 2, 1, 1, HAS_PORT | REPLACED, "", "", "" },
    { "a leader and a worker with devices", OF_LWS, 2, 2, 1, 1, HAS_DEVICE | REPLACED | RECREATED, SHARED, "", "" },
    { "a leader and workers with cores", OF_LWS, 3, 3, 1, 1, IS_PINNED | REPLACED, SHARED, "", "" },
    { "a PodGroup", OF_PODGROUP, 2, 2, 1, 1, REPLACED | SHRINKS, "", "", "" },
    { "a PodGroup with more pods than it needs", OF_PODGROUP, 3, 2, 1, 1, REPLACED | SHRINKS, "", "", "" },
    { "a PodGroup that is no gang", OF_PODGROUP, 2, 1, 1, 1, REPLACED, "", "", "" },
    { "a PodGroup that comes late", OF_PODGROUP, 2, 2, 1, 1, LATE_OBJECT | REPLACED, "", "", "" },
    { "a PodGroup that is made again", OF_PODGROUP, 3, 2, 1, 1, REMADE | REPLACED, "", "", "" },
    { "a PodGroup and a Workload", OF_PODGROUP, 2, 2, 1, 1, IS_WORKLOAD, "", "", "" },
    { "a PodGroup with a latecomer", OF_PODGROUP, 2, 2, 1, 1, LATE_MEMBER | REPLACED, "", "", "" },
    { "a PodGroup on fast disks", OF_PODGROUP, 2, 2, 1, 1, REPLACED, "", "", ON_FAST },
    { "coscheduling", OF_COSCHEDULING, 2, 2, 1, 1, REPLACED | SHRINKS, "", "", "" },
    { "coscheduling with more than it needs", OF_COSCHEDULING, 4, 2, 1, 1, REPLACED | SHRINKS, "", "", "" },
    { "coscheduling with a latecomer", OF_COSCHEDULING, 2, 2, 1, 1, LATE_MEMBER | REMADE, SHARED, "", "" },
    { "coscheduling with a gate", OF_COSCHEDULING, 3, 3, 1, 1, GATED | REPLACED, "", "", "" },
    { "coscheduling that may have two nodes", OF_COSCHEDULING, 3, 3, 1, 1, REPLACED, TWO_NODES, "", "" },
    { "coscheduling of pods that differ", OF_COSCHEDULING, 3, 3, 2, 4, REPLACED, "", "", "" },
    { "coscheduling with ports on whole nodes", OF_COSCHEDULING, 4, 2, 1, 1, HAS_PORT | REPLACED, ALONE, "", "" },
};
/* clang-format on */

enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

/* ---- the objects that speak for them ---- */

static const struct {
    enum group_api api;
    bool is_optional;
    const char *kind, *plural, *version;
} objects[] = {
    [OF_JOB] = { 0, false, "Job", "jobs", "batch/v1" },
    [OF_JOBSET] = { API_JOBSETS, true, "JobSet", "jobsets", "jobset.x-k8s.io/v1alpha2" },
    [OF_LWS] = { API_LWS, true, "LeaderWorkerSet", "leaderworkersets",
                 "leaderworkerset.x-k8s.io/v1" },
    [OF_PODGROUP] = { API_PODGROUPS, true, "PodGroup", "podgroups.scheduling.k8s.io",
                      "scheduling.k8s.io/v1alpha2" },
    [OF_COSCHEDULING] = { API_COSCHEDULING, true, "PodGroup", "podgroups.scheduling.x-k8s.io",
                          "scheduling.x-k8s.io/v1alpha1" },
};

static void path_of(const struct scene_group *group, const char *name, char path[200])
{
    const char *plural = objects[group->shape->kind].plural;

    (void)snprintf(path, 200, "/apis/%s/namespaces/%s/%.*s%s%s",
                   objects[group->shape->kind].version, group->ns, (int)strcspn(plural, "."),
                   plural, name[0] ? "/" : "", name);
}

static const struct json *object_of(const struct bridge_scene *scene,
                                    const struct scene_group *group)
{
    return api_store_find(scene->world->store, objects[group->shape->kind].plural, group->ns,
                          group->name);
}

static void write_spec(const struct scene_group *group, char text[MAX_TEXT])
{
    unsigned pods = group->pods, needed = group->needed;

    switch (group->shape->kind) {
    case OF_JOB:
        (void)snprintf(text, MAX_TEXT, "{\"parallelism\":%u,\"completions\":%u}", pods, pods);
        break;
    case OF_JOBSET:
        (void)snprintf(text, MAX_TEXT,
                       "{\"replicatedJobs\":[{\"name\":\"w\",\"replicas\":1,\"template\":"
                       "{\"spec\":{\"parallelism\":%u,\"completions\":%u}}}]}",
                       pods, pods);
        break;
    case OF_LWS:
        (void)snprintf(text, MAX_TEXT, "{\"leaderWorkerTemplate\":{\"size\":%u}}", pods);
        break;
    case OF_PODGROUP:
        if (needed > 1)
            (void)snprintf(text, MAX_TEXT, "{\"schedulingPolicy\":{\"gang\":{\"minCount\":%u}}%s}",
                           needed,
                           group->shape->traits & IS_WORKLOAD
                               ? ",\"podGroupTemplateRef\":{\"workload\":{\"workloadName\":\"w\"}}"
                               : "");
        else
            (void)snprintf(text, MAX_TEXT, "{\"schedulingPolicy\":{\"basic\":{}}}");
        break;
    case OF_COSCHEDULING:
        (void)snprintf(text, MAX_TEXT, "{\"minMember\":%u}", needed);
        break;
    }
}

static void make_object(struct bridge_scene *scene, const struct scene_group *group)
{
    char path[200], spec[MAX_TEXT];

    if (objects[group->shape->kind].is_optional && !scene->has_api[objects[group->shape->kind].api])
        return;
    if (group->shape->traits & IS_WORKLOAD) {
        (void)snprintf(path, sizeof(path), "/apis/%s/namespaces/%s/workloads",
                       objects[group->shape->kind].version, group->ns);
        (void)bridge_people_call(scene, "POST", path,
                                 "{\"metadata\":{\"name\":\"w\",\"annotations\":{" SHARED
                                 "}},\"spec\":{}}");
    }
    path_of(group, "", path);
    write_spec(group, spec);
    (void)bridge_people_call(scene, "POST", path,
                             "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\","
                             "\"annotations\":{%s}},\"spec\":%s}",
                             objects[group->shape->kind].version, objects[group->shape->kind].kind,
                             group->name, group->shape->root, spec);
}

static void delete_object(struct bridge_scene *scene, const struct scene_group *group)
{
    char path[200];

    path_of(group, group->name, path);
    (void)bridge_people_call(scene, "DELETE", path, "%s", "");
}

/* ---- the Job of a JobSet ---- */

static bool is_of_jobs(const struct scene_group *group)
{
    return group->shape->kind == OF_JOB || group->shape->kind == OF_JOBSET;
}

/* That owns the pods: the Job itself, or the one that the JobSet made. */
static const struct json *owner_of(const struct bridge_scene *scene,
                                   const struct scene_group *group)
{
    char name[32];

    (void)snprintf(name, sizeof(name), "%s%s", group->name,
                   group->shape->kind == OF_JOBSET ? "-w-0" : "");
    return api_store_find(scene->world->store, "jobs", group->ns, name);
}

static struct str uid_of(const struct json *object)
{
    return json_str(json_at(object, "metadata", "uid"));
}

/* One of an earlier attempt goes; then there is a new one. */
static void sync_child_job(struct bridge_scene *scene, const struct scene_group *group)
{
    const struct json *job = owner_of(scene, group);
    struct str uid = uid_of(object_of(scene, group));
    char path[200], attempt[16];

    (void)snprintf(path, sizeof(path), "/apis/batch/v1/namespaces/%s/jobs%s%s%s", group->ns,
                   job ? "/" : "", job ? group->name : "", job ? "-w-0" : "");
    (void)snprintf(attempt, sizeof(attempt), "%u", group->attempt);
    if (job &&
        !str_is(json_str(json_at(job, "metadata", "labels", BRIDGE_JOBSET_RESTART_LABEL)), attempt))
        (void)bridge_people_call(scene, "DELETE", path, "%s", "");
    else if (!job)
        (void)bridge_people_call(
            scene, "POST", path,
            "{\"metadata\":{\"name\":\"%s-w-0\",\"labels\":{\"" BRIDGE_JOBSET_RESTART_LABEL
            "\":\"%s\"}%s" STR_FMT "%s%s%s},\"spec\":{\"parallelism\":%u,\"completions\":%u}}",
            group->name, attempt,
            uid.len > 0 ? ",\"ownerReferences\":[{\"apiVersion\":\"jobset.x-k8s.io/v1alpha2\","
                          "\"kind\":\"JobSet\",\"controller\":true,\"uid\":\""
                        : "",
            STR_ARG(uid), uid.len > 0 ? "\",\"name\":\"" : "", uid.len > 0 ? group->name : "",
            uid.len > 0 ? "\"}]" : "", group->pods, group->pods);
}

/* ---- members ---- */

static void member_name(const struct scene_group *group, unsigned member, char name[48])
{
    if (is_of_jobs(group))
        (void)snprintf(name, 48, "%s-%u-%u-%u", group->name, member, group->attempt,
                       group->made[member]);
    else
        (void)snprintf(name, 48, "%s-%u", group->name, member);
}

static const struct json *find_member(const struct bridge_scene *scene,
                                      const struct scene_group *group, unsigned member)
{
    char name[48];

    member_name(group, member, name);
    return api_store_find(scene->world->store, "pods", group->ns, name);
}

static void add(char text[MAX_TEXT], const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(char text[MAX_TEXT], const char *format, ...)
{
    size_t length = strlen(text);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text + length, MAX_TEXT - length, format, args);
    va_end(args);
}

static void write_labels(const struct bridge_scene *scene, const struct scene_group *group,
                         unsigned member, char text[MAX_TEXT])
{
    struct str uid = uid_of(object_of(scene, group));

    add(text, "\"example.com/stranger\":\"x\"");
    switch (group->shape->kind) {
    case OF_JOBSET:
        add(text,
            ",\"" BRIDGE_JOBSET_NAME_LABEL "\":\"%s\",\"" BRIDGE_JOBSET_UID_LABEL "\":\"" STR_FMT
            "\",\"" BRIDGE_JOBSET_RESTART_LABEL "\":\"%u\",\"" BRIDGE_JOBSET_INDEX_LABEL
            "\":\"0\",\"" BRIDGE_COMPLETION_LABEL "\":\"%u\"",
            group->name, STR_ARG(uid), group->attempt, member);
        break;
    case OF_JOB:
        add(text, ",\"" BRIDGE_COMPLETION_LABEL "\":\"%u\"", member);
        break;
    case OF_LWS:
        add(text,
            ",\"" BRIDGE_LWS_NAME_LABEL "\":\"%s\",\"" BRIDGE_LWS_KEY_LABEL
            "\":\"key-%s\",\"" BRIDGE_LWS_GROUP_LABEL "\":\"0\",\"" BRIDGE_LWS_WORKER_LABEL
            "\":\"%u\"",
            group->name, group->name, member);
        break;
    case OF_COSCHEDULING:
        add(text, ",\"" BRIDGE_COSCHEDULING_LABEL "\":\"%s\"", group->name);
        break;
    case OF_PODGROUP:
        break;
    }
}

static void write_owner(const struct bridge_scene *scene, const struct scene_group *group,
                        char text[MAX_TEXT])
{
    const struct json *owner = is_of_jobs(group) ? owner_of(scene, group) : NULL;

    if (owner)
        add(text,
            ",\"ownerReferences\":[{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"name\":\"%s\","
            "\"uid\":\"%s\",\"controller\":true}]",
            json_str(json_at(owner, "metadata", "name")).at, uid_of(owner).at);
}

static void write_pod_spec(const struct bridge_scene *scene, const struct scene_group *group,
                           unsigned member, char text[MAX_TEXT])
{
    const struct group_shape *shape = group->shape;
    unsigned cpus = member == 0 ? shape->first_cpus : shape->cpus;
    bool is_gated = (shape->traits & GATED) && member + 1 == group->pods && !group->gate_is_open;

    add(text, "\"schedulerName\":\"" SCENE_SCHEDULER "\",\"terminationGracePeriodSeconds\":4%s",
        shape->spec);
    if (is_gated)
        add(text, ",\"schedulingGates\":[{\"name\":\"example.com/stranger\"}]");
    if (shape->kind == OF_PODGROUP)
        add(text, ",\"schedulingGroup\":{\"podGroupName\":\"%s\"}", group->name);
    if (shape->traits & IS_PINNED)
        add(text,
            ",\"resourceClaims\":[{\"name\":\"" DEVICE_CPU_CLAIM
            "\",\"resourceClaimName\":\"" DEVICE_CPU_CLAIM "-%s-%u-%" PRId64 "\"}]",
            group->name, member, loop_now_us(scene->world->loop));
    add(text,
        ",\"containers\":[{\"name\":\"c\",\"image\":\"i\"%s,\"resources\":{\"requests\":{\"cpu\":"
        "\"%u\",\"memory\":\"64Mi\"%s}}}]",
        shape->traits & HAS_PORT ? ",\"ports\":[{\"containerPort\":80,\"hostPort\":8080}]" : "",
        cpus,
        shape->traits & HAS_DEVICE ? ",\"" DEVICE_CLASS_PREFIX "gpu.example.com\":\"1\"" : "");
}

static bool make_member(struct bridge_scene *scene, const struct scene_group *group,
                        unsigned member)
{
    char name[48], path[100];
    char labels[MAX_TEXT] = "", owner[MAX_TEXT] = "", spec[MAX_TEXT] = "";

    if (is_of_jobs(group) && !owner_of(scene, group))
        return false;
    member_name(group, member, name);
    write_labels(scene, group, member, labels);
    write_owner(scene, group, owner);
    write_pod_spec(scene, group, member, spec);
    (void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods", group->ns);
    return bridge_people_call(scene, "POST", path,
                              "{\"metadata\":{\"name\":\"%s\",\"labels\":{%s},"
                              "\"annotations\":{%s}%s},\"spec\":{%s}}",
                              name, labels, group->shape->pod, owner, spec) == 201;
}

static void delete_member(struct bridge_scene *scene, const struct scene_group *group,
                          unsigned member)
{
    char name[48];

    member_name(group, member, name);
    bridge_people_delete_pod(scene, group->ns, name,
                             !scene->crash.suite && rand_chance(&scene->world->rand, 200) ? 0 : -1);
}

/* ---- controllers ---- */

static bool is_phase(const struct json *pod, const char *phase)
{
    return str_is(json_str(json_at(pod, "status", "phase")), phase);
}

static bool has_bound_member(const struct bridge_scene *scene, const struct scene_group *group)
{
    for (unsigned i = 0; i < group->pods; i++)
        if (json_str(json_at(find_member(scene, group, i), "spec", "nodeName")).len > 0)
            return true;
    return false;
}

static void count_succeeded(struct bridge_scene *scene, const struct scene_group *group)
{
    const struct json *job = owner_of(scene, group);
    unsigned count = 0;
    char path[200];

    for (unsigned i = 0; i < group->pods; i++)
        count += is_phase(find_member(scene, group, i), "Succeeded");
    if (!job || json_i64_or(json_at(job, "status", "succeeded"), 0) == count)
        return;
    (void)snprintf(path, sizeof(path), "/apis/batch/v1/namespaces/%s/jobs/%s/status", group->ns,
                   json_str(json_at(job, "metadata", "name")).at);
    (void)bridge_people_call(scene, "PATCH", path, "{\"status\":{\"succeeded\":%u}}", count);
}

static void begin_again(struct scene_group *group)
{
    if (group->attempt < MAX_RESTARTS)
        group->attempt++;
    else
        group->is_left = true; /* given up */
}

/* A pod that failed has failed for ever: a Job makes another, a JobSet begins again. */
static void sync_member(struct bridge_scene *scene, struct scene_group *group, unsigned member)
{
    const struct json *pod = find_member(scene, group, member);
    bool has_controller = is_of_jobs(group) || group->shape->kind == OF_LWS;
    bool is_failed = is_phase(pod, "Failed");
    bool is_gone =
        !pod || (is_of_jobs(group) && json_exists(json_at(pod, "metadata", "deletionTimestamp")));

    if (is_failed && group->shape->kind == OF_LWS && !is_gone)
        delete_member(scene, group, member);
    else if (is_failed && group->shape->kind == OF_JOBSET && !is_gone)
        begin_again(group);
    else if ((is_gone || (is_failed && is_of_jobs(group))) &&
             (has_controller || group->made[member] == 0) &&
             rand_chance(&scene->world->rand, 700)) {
        group->made[member]++;
        if (!make_member(scene, group, member) && !is_of_jobs(group))
            group->made[member]--;
    }
}

static void open_gate(struct bridge_scene *scene, struct scene_group *group)
{
    char name[48], path[120];

    group->gate_is_open = true;
    member_name(group, group->pods - 1, name);
    (void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s", group->ns, name);
    (void)bridge_people_call(scene, "PATCH", path, "{\"spec\":{\"schedulingGates\":null}}");
}

static void sync_group(struct bridge_scene *scene, struct scene_group *group)
{
    int64_t age_us = loop_now_us(scene->world->loop) - group->born_us;
    unsigned traits = group->shape->traits;

    if (!object_of(scene, group) && loop_now_us(scene->world->loop) >= group->object_us)
        make_object(scene, group);
    if (group->shape->kind == OF_JOBSET)
        sync_child_job(scene, group);
    if ((traits & GATED) && !group->gate_is_open && age_us > (int64_t)GATE_S * SECOND)
        open_gate(scene, group);
    if ((traits & LATE_MEMBER) && group->pods == group->shape->pods &&
        has_bound_member(scene, group))
        group->pods++;
    for (unsigned i = 0; i < group->pods && !group->is_left; i++)
        sync_member(scene, group, i);
    if (is_of_jobs(group))
        count_succeeded(scene, group);
}

static void on_tick(void *context)
{
    struct bridge_scene *scene = context;

    for (unsigned i = 0; i < SCENE_GROUPS; i++)
        if (scene->groups[i].shape)
            sync_group(scene, &scene->groups[i]);
    loop_timer_start(scene->world->loop, &scene->controllers,
                     rand_jitter(&scene->world->rand, TICK_US, 60), on_tick, scene);
}

/* ---- actions ---- */

static void make_group(struct bridge_scene *scene, unsigned place, const struct group_shape *shape)
{
    struct scene_group *group = &scene->groups[place];
    int64_t now_us = loop_now_us(scene->world->loop);

    *group = (struct scene_group){ .shape = shape,
                                   .pods = shape->pods,
                                   .needed = shape->needed,
                                   .born_us = now_us,
                                   .object_us = now_us };
    (void)snprintf(group->name, sizeof(group->name), "g%u", 1 + place / 2);
    (void)snprintf(group->ns, sizeof(group->ns), "%s", place % 2 ? SCENE_OTHER_NS : SCENE_NS);
    trace_line(&scene->world->trace, "people make %s/%s: %s", group->ns, group->name, shape->what);
    if (shape->traits & LATE_OBJECT)
        group->object_us += rand_range(&scene->world->rand, 0, (int64_t)OBJECT_S * SECOND);
    else
        make_object(scene, group);
}

/* What controllers own goes by itself, the rest is deleted by hand. */
static void delete_group(struct bridge_scene *scene, struct scene_group *group)
{
    trace_line(&scene->world->trace, "people delete %s/%s", group->ns, group->name);
    delete_object(scene, group);
    for (unsigned i = 0; i < group->pods; i++)
        if (!is_of_jobs(group) || !objects[group->shape->kind].is_optional)
            delete_member(scene, group, i);
    if (group->shape->kind == OF_JOBSET) {
        group->attempt = UINT32_MAX;
        sync_child_job(scene, group);
    }
    group->shape = NULL;
}

static void remake_object(struct bridge_scene *scene, struct scene_group *group)
{
    delete_object(scene, group);
    group->needed = 1 + (unsigned)rand_below(&scene->world->rand, group->pods);
    group->object_us = loop_now_us(scene->world->loop) +
                       rand_range(&scene->world->rand, 0, (int64_t)OBJECT_S * SECOND);
}

static void shrink(struct bridge_scene *scene, struct scene_group *group)
{
    char path[200], spec[MAX_TEXT];

    if (group->pods < 2)
        return;
    delete_member(scene, group, --group->pods);
    if (!is_of_jobs(group))
        return;
    path_of(group, group->name, path);
    write_spec(group, spec);
    (void)bridge_people_call(scene, "PATCH", path, "{\"spec\":%s}", spec);
}

static void poke(struct bridge_scene *scene, struct scene_group *group)
{
    struct rand *rand = &scene->world->rand;
    unsigned traits = group->shape->traits & (REMADE | RESTARTS | REPLACED | RECREATED | SHRINKS);
    unsigned chosen = 1u << rand_below(rand, 10);

    while (traits && !(traits & chosen))
        chosen = chosen == IS_WORKLOAD ? 1 : chosen << 1;
    if (!traits)
        return;
    trace_line(&scene->world->trace, "people disturb %s/%s: %u", group->ns, group->name, chosen);
    if (chosen == REMADE)
        remake_object(scene, group);
    else if (chosen == RESTARTS)
        begin_again(group);
    else if (chosen == REPLACED)
        delete_member(scene, group, (unsigned)rand_below(rand, group->pods));
    else if (chosen == SHRINKS)
        shrink(scene, group);
    else
        for (unsigned i = 0; i < group->pods; i++)
            delete_member(scene, group, i);
}

void bridge_groups_make_as(struct bridge_scene *scene, const char *what)
{
    for (size_t i = 0; i < SHAPES; i++)
        if (strcmp(shapes[i].what, what) == 0) {
            make_group(scene, 0, &shapes[i]);
            return;
        }
    world_break(scene->world, "no workload is called \"%s\"", what);
}

void bridge_groups_make(struct bridge_scene *scene)
{
    struct rand *rand = &scene->world->rand;
    unsigned place = (unsigned)rand_below(rand, SCENE_GROUPS);

    if (!scene->groups[place].shape)
        make_group(scene, place, &shapes[rand_below(rand, SHAPES)]);
}

void bridge_groups_disturb(struct bridge_scene *scene)
{
    struct scene_group *group = &scene->groups[rand_below(&scene->world->rand, SCENE_GROUPS)];

    if (group->shape)
        poke(scene, group);
}

void bridge_groups_delete_member(struct bridge_scene *scene, unsigned member)
{
    if (scene->groups[0].shape)
        delete_member(scene, &scene->groups[0], member);
}

void bridge_groups_restart(struct bridge_scene *scene)
{
    begin_again(&scene->groups[0]);
}

void bridge_groups_make_object_again(struct bridge_scene *scene)
{
    delete_object(scene, &scene->groups[0]);
    make_object(scene, &scene->groups[0]);
}

void bridge_groups_delete(struct bridge_scene *scene)
{
    struct scene_group *group = &scene->groups[rand_below(&scene->world->rand, SCENE_GROUPS)];

    if (group->shape)
        delete_group(scene, group);
}

void bridge_groups_delete_all(struct bridge_scene *scene)
{
    for (unsigned i = 0; i < SCENE_GROUPS; i++)
        if (scene->groups[i].shape)
            delete_group(scene, &scene->groups[i]);
}

/* So many stay: there is room for about one on each node. */
void bridge_groups_end(struct bridge_scene *scene)
{
    unsigned left = scene->node_count > 2 ? scene->node_count - 1 : 1;

    for (unsigned i = 0; i < SCENE_GROUPS; i++)
        if (scene->groups[i].shape && left-- == 0) {
            delete_group(scene, &scene->groups[i]);
            left = 0;
        }
}

void bridge_groups_start(struct bridge_scene *scene)
{
    for (unsigned i = 0; i < FIRST_GROUPS && !scene->crash.suite; i++)
        bridge_groups_make(scene);
    loop_timer_start(scene->world->loop, &scene->controllers, TICK_US, on_tick, scene);
}
