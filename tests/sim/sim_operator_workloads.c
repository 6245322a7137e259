/* sim_operator_workloads.c - what a cluster does with Deployments and StatefulSets: the server
 * fills in defaults and leaves out what it does not know, and their controllers report, some time
 * later, how many pods are ready. There are no pods. */
#include "codec/json_format.h"
#include "sim_operator.h"

enum { SECOND = 1000000, MAX_FOUND = 64 };

/* ---- defaults ---- */

static void put_default(struct json_build *build, struct json_mut *object, const char *key,
                        struct json_mut *value)
{
    if (!json_mut_get(object, str_of(key)))
        json_put(build, object, key, value);
}

static void put_container_defaults(struct json_build *build, struct json_mut *containers)
{
    for (size_t i = 0; i < json_mut_len(containers); i++) {
        struct json_mut *container = json_mut_item(containers, i);

        put_default(build, container, "terminationMessagePath",
                    json_new_str(build, STR("/dev/termination-log")));
        put_default(build, container, "imagePullPolicy", json_new_str(build, STR("IfNotPresent")));
        put_default(build, container, "resources", json_new_object(build));
        /* a member of a pod's, not of a container's */
        json_remove(json_mut_get(container, STR("securityContext")), STR("fsGroup"));
    }
}

static void put_workload_defaults(struct json_build *build, struct json_mut *spec,
                                  bool is_deployment)
{
    struct json_mut *pod = json_object_at(build, spec, "template", "spec");

    put_default(build, spec, "revisionHistoryLimit", json_new_i64(build, 10));
    put_default(build, spec, is_deployment ? "strategy" : "updateStrategy",
                json_format(build, "{'type':'RollingUpdate'}"));
    put_default(build, pod, "restartPolicy", json_new_str(build, STR("Always")));
    put_default(build, pod, "schedulerName", json_new_str(build, STR("default-scheduler")));
    put_default(build, pod, "terminationGracePeriodSeconds", json_new_i64(build, 30));
    put_container_defaults(build, json_mut_get(pod, STR("containers")));
    put_container_defaults(build, json_mut_get(pod, STR("initContainers")));
}

static void put_service_defaults(struct json_build *build, struct json_mut *spec)
{
    put_default(build, spec, "type", json_new_str(build, STR("ClusterIP")));
    put_default(build, spec, "clusterIP", json_new_str(build, STR("10.0.0.1")));
    put_default(build, spec, "sessionAffinity", json_new_str(build, STR("None")));
    put_default(build, spec, "internalTrafficPolicy", json_new_str(build, STR("Cluster")));
    json_remove(spec, STR("trafficDistribution")); /* this server is older */
}

/* Some of those that a real server fills in. */
static int on_admission(void *context, const struct api_admission *admission, struct err *err)
{
    const char *kind = admission->kind->kind;
    bool is_deployment = strcmp(kind, "Deployment") == 0;

    if (!admission->next)
        return 0;
    if (is_deployment || strcmp(kind, "StatefulSet") == 0)
        put_workload_defaults(admission->build,
                              json_object_at(admission->build, admission->next, "spec"),
                              is_deployment);
    else if (strcmp(kind, "Service") == 0)
        put_service_defaults(admission->build,
                             json_object_at(admission->build, admission->next, "spec"));
    return 0;
}

/* ---- their controllers ---- */

struct workloads {
    struct operator_scene *scene;
    const struct json *found[MAX_FOUND]; /* whose status does not say yet how they are */
    size_t count;
};

static int64_t number(const struct json *object, const char *part, const char *member)
{
    return json_i64_or(json_at(object, part, member), 0);
}

static void on_workload(void *context, const struct json *object)
{
    struct workloads *workloads = context;
    int64_t wanted = json_i64_or(json_at(object, "spec", "replicas"), 1);

    if (number(object, "status", "observedGeneration") ==
            number(object, "metadata", "generation") &&
        number(object, "status", "readyReplicas") == wanted)
        return;
    if (workloads->count < MAX_FOUND)
        workloads->found[workloads->count++] = object;
}

/* One step: a newer generation is observed first; then one more pod is ready, or all are. */
static void report(struct operator_scene *scene, const char *plural, const struct json *object)
{
    struct rand *rand = &scene->world->rand;
    int64_t wanted = json_i64_or(json_at(object, "spec", "replicas"), 1);
    int64_t generation = number(object, "metadata", "generation");
    bool is_new = number(object, "status", "observedGeneration") != generation;
    int64_t ready = is_new ? 0 : number(object, "status", "readyReplicas") + 1;
    char path[300], body[400];

    if (rand_chance(rand, 300) || ready > wanted)
        ready = wanted;
    (void)snprintf(path, sizeof(path), "/apis/apps/v1/namespaces/%s/%s/%s/status",
                   json_str(json_at(object, "metadata", "namespace")).at, plural,
                   json_str(json_at(object, "metadata", "name")).at);
    (void)snprintf(body, sizeof(body),
                   "{\"status\":{\"observedGeneration\":%lld,\"replicas\":%lld,"
                   "\"readyReplicas\":%lld,\"updatedReplicas\":%lld}}",
                   (long long)generation, (long long)wanted, (long long)ready, (long long)wanted);
    (void)world_call(scene->world, "workloads", "PATCH", path, body);
}

static void on_workloads(void *context)
{
    static const char *const plurals[] = { "deployments", "statefulsets" };
    struct operator_scene *scene = context;
    struct rand *rand = &scene->world->rand;

    for (size_t i = 0; i < 2; i++) {
        struct workloads workloads = { .scene = scene };

        api_store_visit(scene->world->store, plurals[i], on_workload, &workloads);
        if (workloads.count > 0)
            report(scene, plurals[i], workloads.found[rand_below(rand, workloads.count)]);
    }
    loop_timer_start(scene->world->loop, &scene->workloads, rand_range(rand, 20000, SECOND),
                     on_workloads, scene);
}

void operator_workloads_start(struct operator_scene *scene)
{
    api_store_admit(scene->world->store, on_admission, scene);
    loop_timer_start(scene->world->loop, &scene->workloads, SECOND, on_workloads, scene);
}
