/* sim_operator_workers.c - what a cluster does with the pods of NodeSets: a scheduler gives them
 * Nodes, kubelets start them and end them when they are deleted.
 *
 * A pod with a claim on a Node (a required matchFields term) goes there; the others go to any Node
 * that is not cordoned, whether the Node is an object or not. */
#include "codec/json_format.h"
#include "operator/names.h"
#include "sim_operator.h"

#include <stdio.h>
#include <time.h>

enum { SECOND = 1000000, MAX_PODS = 128, HOSTS = 4 };

struct pods {
    char ns[MAX_PODS][32], name[MAX_PODS][64];
    unsigned count;
};

static void take_pod(void *context, const struct json *pod)
{
    struct pods *pods = context;

    if (pods->count == MAX_PODS ||
        !str_is(json_str(json_at(pod, "metadata", "labels", LABEL_NAME)), "slurmd"))
        return;
    (void)snprintf(pods->ns[pods->count], sizeof(pods->ns[0]), "%s",
                   json_str(json_at(pod, "metadata", "namespace")).at);
    (void)snprintf(pods->name[pods->count], sizeof(pods->name[0]), "%s",
                   json_str(json_at(pod, "metadata", "name")).at);
    pods->count++;
}

static const char *wanted_node(const struct json *pod)
{
    const struct json *required = json_at(pod, "spec", "affinity", "nodeAffinity",
                                          "requiredDuringSchedulingIgnoredDuringExecution");
    const struct json *term = json_item(json_get(required, "nodeSelectorTerms"), 0);

    return json_str(json_item(json_get(json_item(json_get(term, "matchFields"), 0), "values"), 0))
        .at;
}

static void schedule(struct world *world, const struct json *pod, const char *path)
{
    const char *node = wanted_node(pod);
    char host[16], binding[220], body[300];

    if (!node[0]) {
        (void)snprintf(host, sizeof(host), "k%u", (unsigned)rand_below(&world->rand, HOSTS));
        if (json_bool_or(
                json_at(api_store_find(world->store, "nodes", "", host), "spec", "unschedulable"),
                false))
            return;
        node = host;
    }
    (void)snprintf(binding, sizeof(binding), "%s/binding", path);
    (void)snprintf(body, sizeof(body),
                   "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"%s\"},"
                   "\"target\":{\"kind\":\"Node\",\"name\":\"%s\"}}",
                   json_str(json_at(pod, "metadata", "name")).at, node);
    (void)world_call(world, "scheduler", "POST", binding, body);
}

/* As kubelets do: conditions of others stay. */
static void call_strategic(struct world *world, const char *target, const char *body)
{
    struct api_answer answer;

    api_answer_init(&answer);
    api_serve(world->store,
              &(struct api_request){ "PATCH", str_of(target),
                                     STR("application/strategic-merge-patch+json"), str_of(body),
                                     "kubelet" },
              &answer);
    trace_line(&world->trace, "kubelet PATCH %s %d %s", target, answer.status, body);
    api_answer_done(&answer);
}

static void report(struct world *world, const char *path, const char *phase, bool is_ready)
{
    char target[220], body[300];
    time_t now = (time_t)(clock_wall_us(&world->clock) / SECOND);
    struct tm parts;
    char since[40];

    (void)gmtime_r(&now, &parts);
    (void)strftime(since, sizeof(since), "%Y-%m-%dT%H:%M:%SZ", &parts);
    (void)snprintf(target, sizeof(target), "%s/status", path);
    (void)snprintf(body, sizeof(body),
                   "{\"status\":{\"phase\":\"%s\",\"conditions\":[{\"type\":\"Ready\","
                   "\"status\":\"%s\",\"lastTransitionTime\":\"%s\"}]}}",
                   phase, is_ready ? "True" : "False", since);
    call_strategic(world, target, body);
}

/* The pod's own last words to Slurm, then its end. */
static void end_pod(struct operator_workers *workers, const struct json *pod, const char *path)
{
    bool has_run = str_is(json_str(json_at(pod, "status", "phase")), "Running");

    if (has_run && workers->ends)
        workers->ends(workers->context, pod);
    (void)world_call(workers->world, "kubelet", "DELETE", path, "{\"gracePeriodSeconds\":0}");
}

static void fail_pod(struct operator_workers *workers, const struct json *pod, const char *path)
{
    if (workers->ends)
        workers->ends(workers->context, pod);
    report(workers->world, path, "Failed", false);
}

static void look_at_pod(struct operator_workers *workers, const char *ns, const char *name)
{
    struct world *world = workers->world;
    const struct json *pod = api_store_find(world->store, "pods", ns, name);
    struct str phase = json_str(json_at(pod, "status", "phase"));
    char path[200];

    (void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s", ns, name);
    if (!pod || rand_chance(&world->rand, 300))
        return;
    if (json_exists(json_at(pod, "metadata", "deletionTimestamp")))
        end_pod(workers, pod, path);
    else if (json_str(json_at(pod, "spec", "nodeName")).len == 0)
        schedule(world, pod, path);
    else if (str_is(phase, "Pending") || phase.len == 0)
        report(world, path, "Running", true);
    else if (str_is(phase, "Running") && !*workers->is_calm && rand_chance(&world->rand, 5))
        fail_pod(workers, pod, path);
    else if (str_is(phase, "Running") && workers->runs)
        workers->runs(workers->context, pod);
}

static void on_workers(void *context)
{
    struct operator_workers *workers = context;
    struct world *world = workers->world;
    struct pods pods = { .count = 0 };

    api_store_visit(world->store, "pods", take_pod, &pods);
    for (unsigned i = 0; i < pods.count; i++)
        look_at_pod(workers, pods.ns[i], pods.name[i]);
    loop_timer_start(world->loop, &workers->timer, rand_range(&world->rand, 100000, SECOND),
                     on_workers, workers);
}

void operator_workers_start(struct operator_workers *workers)
{
    loop_timer_start(workers->world->loop, &workers->timer, SECOND, on_workers, workers);
}

void operator_workers_end(struct operator_workers *workers)
{
    loop_timer_stop(&workers->timer);
}
