/* sim_bridge_units.c - which group a pod is in and how many it takes to begin, told once more than
 * by the bridge: from the objects as the API server has them.
 *
 * Holds: nothing here is taken from src/bridge but names. */
#include "sim_bridge.h"

static struct str label_of(const struct json *pod, const char *name)
{
    return json_str(json_at(pod, "metadata", "labels", name));
}

static struct str gang_of(const struct json *pod)
{
    return json_str(json_at(pod, "metadata", "annotations", BRIDGE_ANNOTATION_PREFIX BRIDGE_GANG));
}

static const struct json *job_of(const struct json *pod)
{
    const struct json *owner = json_item(json_at(pod, "metadata", "ownerReferences"), 0);

    return str_is(json_str(json_get(owner, "kind")), "Job") ? owner : NULL;
}

/* The rules of group.h, told once more. */
void bridge_write_group(const struct bridge_scene *scene, const struct json *pod,
                        char key[SCENE_KEY])
{
    const char *ns = json_str(json_at(pod, "metadata", "namespace")).at;
    struct str podgroup = json_str(json_at(pod, "spec", "schedulingGroup", "podGroupName"));
    struct str coscheduling = label_of(pod, BRIDGE_COSCHEDULING_LABEL);
    struct str lws = label_of(pod, BRIDGE_LWS_KEY_LABEL);
    struct str jobset = label_of(pod, BRIDGE_JOBSET_NAME_LABEL);
    struct str uid = label_of(pod, BRIDGE_JOBSET_UID_LABEL);
    bool is_gang = gang_of(pod).len > 0;

    key[0] = '\0';
    if (!str_is(json_str(json_at(pod, "spec", "schedulerName")), SCENE_SCHEDULER))
        return;
    if (podgroup.len > 0 && scene->has_api[API_PODGROUPS])
        (void)snprintf(key, SCENE_KEY, "%s/podgroup/%s", ns, podgroup.at);
    else if (coscheduling.len > 0 && scene->has_api[API_COSCHEDULING])
        (void)snprintf(key, SCENE_KEY, "%s/coscheduling/%s", ns, coscheduling.at);
    else if (lws.len > 0 && scene->has_api[API_LWS])
        (void)snprintf(key, SCENE_KEY, "%s/lws/%s", ns, lws.at);
    else if (jobset.len > 0 && is_gang && scene->has_api[API_JOBSETS])
        (void)snprintf(key, SCENE_KEY, "%s/jobset/%s/%s", ns, uid.len > 0 ? uid.at : jobset.at,
                       label_of(pod, BRIDGE_JOBSET_RESTART_LABEL).at);
    else if (jobset.len == 0 && is_gang && job_of(pod))
        (void)snprintf(key, SCENE_KEY, "%s/job/%s", ns, json_str(json_get(job_of(pod), "uid")).at);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* `gang: "2"` says how many of them will do. */
static int64_t needs_of_gang(const struct json *pod, int64_t all)
{
    int64_t wanted;

    return str_to_i64(gang_of(pod), 1, 1000, &wanted, NULL) == 0 ? least(wanted, all) : all;
}

static int64_t needs_of_job(const struct bridge_scene *scene, const struct json *pod)
{
    const struct json *job = api_store_find(scene->world->store, "jobs",
                                            json_str(json_at(pod, "metadata", "namespace")).at,
                                            json_str(json_get(job_of(pod), "name")).at);
    int64_t parallelism = json_i64_or(json_at(job, "spec", "parallelism"), 1);
    int64_t left = json_i64_or(json_at(job, "spec", "completions"), parallelism) -
                   json_i64_or(json_at(job, "status", "succeeded"), 0);

    if (!str_eq(json_str(json_at(job, "metadata", "uid")), json_str(json_get(job_of(pod), "uid"))))
        return 0;
    return needs_of_gang(pod, least(parallelism, left));
}

struct finished {
    const struct json *pod; /* one of the same group */
    int64_t count;
};

static struct str pod_group_of(const struct json *pod)
{
    return json_str(json_at(pod, "spec", "schedulingGroup", "podGroupName"));
}

static bool are_of_one_group(const struct json *pod, const struct json *other)
{
    static const char *const same[] = { BRIDGE_JOBSET_UID_LABEL, BRIDGE_JOBSET_RESTART_LABEL,
                                        BRIDGE_COSCHEDULING_LABEL };

    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
        if (!str_eq(label_of(pod, same[i]), label_of(other, same[i])))
            return false;
    return str_eq(pod_group_of(pod), pod_group_of(other)) &&
           str_eq(json_str(json_at(pod, "metadata", "namespace")),
                  json_str(json_at(other, "metadata", "namespace")));
}

static void count_finished(void *context, const struct json *pod)
{
    struct finished *finished = context;

    if (!are_of_one_group(pod, finished->pod))
        return;
    finished->count += str_is(json_str(json_at(pod, "status", "phase")), "Succeeded") &&
                       !json_at(pod, "metadata", "annotations", BRIDGE_ALONE_ANNOTATION);
}

/* What has succeeded does not come again. */
static int64_t less_finished(const struct bridge_scene *scene, const struct json *pod, int64_t all)
{
    struct finished finished = { .pod = pod };

    api_store_visit(scene->world->store, "pods", count_finished, &finished);
    return all - finished.count > 1 ? all - finished.count : 1;
}

static int64_t needs_of_jobset(const struct bridge_scene *scene, const struct json *pod,
                               const struct json *jobset)
{
    const struct json *jobs = json_item(json_at(jobset, "spec", "replicatedJobs"), 0);
    int64_t all = json_i64_or(json_at(jobs, "template", "spec", "parallelism"), 1);

    return jobs ? needs_of_gang(pod, less_finished(scene, pod, all)) : 0;
}

int64_t bridge_group_needs(const struct bridge_scene *scene, const struct json *pod)
{
    const struct api_store *store = scene->world->store;
    const char *ns = json_str(json_at(pod, "metadata", "namespace")).at;
    struct str jobset = label_of(pod, BRIDGE_JOBSET_NAME_LABEL);
    const char *name = pod_group_of(pod).at;
    const struct json *object;
    int64_t all;

    if (name[0]) {
        object = api_store_find(store, "podgroups.scheduling.k8s.io", ns, name);
        all = json_i64_or(json_at(object, "spec", "schedulingPolicy", "gang", "minCount"), 1);
        return object ? less_finished(scene, pod, all) : 0;
    }
    name = label_of(pod, BRIDGE_COSCHEDULING_LABEL).at;
    if (name[0]) {
        object = api_store_find(store, "podgroups.scheduling.x-k8s.io", ns, name);
        all = json_i64_or(json_at(object, "spec", "minMember"), 0);
        return all > 0 ? less_finished(scene, pod, all) : 0;
    }
    name = label_of(pod, BRIDGE_LWS_NAME_LABEL).at;
    if (name[0]) {
        object = api_store_find(store, "leaderworkersets", ns, name);
        return json_i64_or(json_at(object, "spec", "leaderWorkerTemplate", "size"), 0);
    }
    if (jobset.len == 0)
        return needs_of_job(scene, pod);
    return needs_of_jobset(scene, pod, api_store_find(store, "jobsets", ns, jobset.at));
}

static const struct json *root_of(const struct bridge_scene *scene, const struct json *pod)
{
    const struct {
        const char *kind;
        struct str name;
    } roots[] = {
        { "podgroups.scheduling.k8s.io", pod_group_of(pod) },
        { "podgroups.scheduling.x-k8s.io", label_of(pod, BRIDGE_COSCHEDULING_LABEL) },
        { "leaderworkersets", label_of(pod, BRIDGE_LWS_NAME_LABEL) },
        { "jobsets", label_of(pod, BRIDGE_JOBSET_NAME_LABEL) },
        { "jobs", json_str(json_get(job_of(pod), "name")) },
    };
    const char *ns = json_str(json_at(pod, "metadata", "namespace")).at;

    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
        if (roots[i].name.len > 0)
            return api_store_find(scene->world->store, roots[i].kind, ns, roots[i].name.at);
    return NULL;
}

struct str bridge_group_uid(const struct bridge_scene *scene, const struct json *pod)
{
    if (pod_group_of(pod).len == 0 && label_of(pod, BRIDGE_COSCHEDULING_LABEL).len == 0 &&
        label_of(pod, BRIDGE_LWS_NAME_LABEL).len == 0)
        return STR("");
    return json_str(json_at(root_of(scene, pod), "metadata", "uid"));
}

int64_t bridge_group_most_nodes(const struct bridge_scene *scene, const struct json *pod)
{
    struct str said = json_str(json_at(root_of(scene, pod), "metadata", "annotations",
                                       BRIDGE_ANNOTATION_PREFIX "max-nodes"));
    int64_t most = 0;

    (void)str_to_i64(said, 1, 1000, &most, NULL);
    return most;
}

bool bridge_pod_waits(const struct json *pod)
{
    return bridge_pod_is_live(pod) && json_str(json_at(pod, "spec", "nodeName")).len == 0 &&
           json_len(json_at(pod, "spec", "schedulingGates")) == 0;
}

int64_t bridge_pod_cpus(const struct json *pod)
{
    const struct json *container = json_item(json_at(pod, "spec", "containers"), 0);
    int64_t cpus = 0;

    (void)str_to_i64(json_str(json_at(container, "resources", "requests", "cpu")), 1, INT32_MAX,
                     &cpus, NULL);
    return cpus;
}

bool bridge_pod_has_port(const struct json *pod)
{
    return json_len(json_get(json_item(json_at(pod, "spec", "containers"), 0), "ports")) > 0;
}

struct count {
    struct bridge_scene *scene;
    const char *unit;
    int64_t waiting, needed;
};

static void count_waiting(void *context, const struct json *pod)
{
    struct count *count = context;
    const struct pod_note *note = bridge_note_of_pod(count->scene, pod);

    if (strcmp(note->group, count->unit) != 0 || !bridge_pod_waits(pod))
        return;
    count->waiting++;
    count->needed = bridge_group_needs(count->scene, pod);
}

/* Whether its group is complete is looked at whenever one of its pods, or an object, changes. */
void bridge_note_size(struct bridge_scene *scene, const char *key)
{
    struct unit_note *unit = bridge_note_of_unit(scene, key);
    struct count count = { .scene = scene, .unit = key };

    api_store_visit(scene->world->store, "pods", count_waiting, &count);
    if (count.waiting == 0 || count.needed == 0 || count.waiting < count.needed)
        unit->short_us = INT64_MAX;
    else if (unit->short_us == INT64_MAX)
        unit->short_us = loop_now_us(scene->world->loop);
}

void bridge_note_all_sizes(struct bridge_scene *scene)
{
    map_each (item, &scene->units) {
        const struct unit_note *unit = item->value;

        if (unit->is_group)
            bridge_note_size(scene, unit->key);
    }
}
