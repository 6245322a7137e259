/* bench_gang.c - one large gang on as many nodes, whose names do not fold, from its creation to its
 * end: the whole bridge against the simulator's API server and slurmctld. Prints JSON.
 *
 *     bench_gang PODS
 *
 * Times between two steps of the gang are the simulation's: each call takes a few milliseconds, so
 * they show how calls follow each other. Times of plans, and of the processor, are real. The
 * processor's time is that of the bridge and of both simulated servers. */
#include "bridge/bridge.h"
#include "bridge/place.h"
#include "bridge/timings.h"
#include "bridge/world/names.h"
#include "world.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { SECOND = 1000000, NAME = 41, MAX_BODY = 4096, MAX_PODS = 16384, PATIENCE_S = 600 };

#define JWT_KEY   "the key of the simulated slurmctld"
#define PARTITION "bridged"
#define SCHEDULER "slurm-bridge-scheduler"

/* ---- plans ---- */

static struct {
    double begun, longest_ms, total_ms;
    unsigned count;
    size_t most_bytes;
} plans;

/* Of the processor: others may use the machine too. */
static double now_ms(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

/* The linker has the bridge call these: a plan of a unit begins with the first, ends with the last.
 */
void __real_timings_before_plan(struct timings *steps, struct str key);
void __wrap_timings_before_plan(struct timings *steps, struct str key);
int __real_place_plan(const struct bridge_world *world, struct str key, struct plan *plan,
                      struct placed *ret_placed, struct err *err);
int __wrap_place_plan(const struct bridge_world *world, struct str key, struct plan *plan,
                      struct placed *ret_placed, struct err *err);
void __real_timings_after_plan(struct timings *steps, struct str key);
void __wrap_timings_after_plan(struct timings *steps, struct str key);

void __wrap_timings_before_plan(struct timings *steps, struct str key)
{
    plans.begun = now_ms();
    __real_timings_before_plan(steps, key);
}

int __wrap_place_plan(const struct bridge_world *world, struct str key, struct plan *plan,
                      struct placed *ret_placed, struct err *err)
{
    int result = __real_place_plan(world, key, plan, ret_placed, err);

    if (plan->arena->used > plans.most_bytes)
        plans.most_bytes = plan->arena->used;
    return result;
}

void __wrap_timings_after_plan(struct timings *steps, struct str key)
{
    double took;

    __real_timings_after_plan(steps, key);
    took = now_ms() - plans.begun;
    plans.count++;
    plans.total_ms += took;
    if (took > plans.longest_ms)
        plans.longest_ms = took;
}

/* ---- the cluster ---- */

struct bench {
    struct world world;
    unsigned size;
    struct bridge_config config;
    struct bridge *bridge;
    struct slurm_token *token;
    struct http_transport *api, *lease_api, *slurm;
    unsigned nodes, bound, over, held; /* held: pods with our finalizer */
    int64_t allocated_us, bound_us, job_over_us;
};

static void give_up(const char *what)
{
    (void)fprintf(stderr, "bench_gang: %s\n", what);
    exit(1);
}

static void call(struct bench *bench, const char *method, const char *path, const char *body)
{
    int status = world_call(&bench->world, "people", method, path, body);

    if (status >= 300 && status != 409) /* 409: the server has made it itself */
        give_up(path);
}

static void make_node(struct bench *bench)
{
    static const char digits[] = "0123456789abcdef";
    char name[NAME] = "", body[MAX_BODY];

    for (unsigned i = 0; i + 1 < NAME; i++)
        name[i] = digits[rand_below(&bench->world.rand, 16)];
    name[0] = 'n';
    name[NAME - 2] = 'f'; /* Slurm takes no name that ends in 19 digits */
    (void)snprintf(
        body, sizeof(body),
        "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"" BRIDGE_EXTERNAL_LABEL
        "\":\"\"},\"annotations\":{\"" BRIDGE_PARTITIONS_ANNOTATION "\":\"" PARTITION
        "\"}},\"spec\":{},\"status\":{\"allocatable\":{\"cpu\":\"8\",\"memory\":\"4096Mi\"},"
        "\"capacity\":{\"cpu\":\"8\",\"memory\":\"4096Mi\"},\"addresses\":[{\"type\":"
        "\"InternalIP\",\"address\":\"10.0.0.1\"}],\"conditions\":[{\"type\":\"Ready\","
        "\"status\":\"True\",\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}]}}",
        name);
    call(bench, "POST", "/api/v1/nodes", body);
}

static void make_pod(struct bench *bench, unsigned number)
{
    char body[MAX_BODY];

    (void)snprintf(body, sizeof(body),
                   "{\"metadata\":{\"name\":\"training-run-worker-%u\"},\"spec\":{"
                   "\"schedulerName\":\"" SCHEDULER "\",\"schedulingGroup\":{\"podGroupName\":"
                   "\"g\"},\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{"
                   "\"requests\":{\"cpu\":\"8\",\"memory\":\"64Mi\"}}}]}}",
                   number);
    call(bench, "POST", "/api/v1/namespaces/work/pods", body);
}

static void make_gang(struct bench *bench)
{
    char body[MAX_BODY];

    (void)snprintf(body, sizeof(body),
                   "{\"metadata\":{\"name\":\"g\"},\"spec\":{\"schedulingPolicy\":{\"gang\":{"
                   "\"minCount\":%u}}}}",
                   bench->size);
    call(bench, "POST", "/apis/scheduling.k8s.io/v1alpha2/namespaces/work/podgroups", body);
    for (unsigned i = 0; i < bench->size; i++)
        make_pod(bench, i);
}

static void set_phase(struct bench *bench, const char *phase, const char *state)
{
    for (unsigned i = 0; i < bench->size; i++) {
        char path[MAX_BODY], body[MAX_BODY];

        (void)snprintf(path, sizeof(path),
                       "/api/v1/namespaces/work/pods/training-run-worker-%u/status", i);
        (void)snprintf(body, sizeof(body),
                       "{\"status\":{\"phase\":\"%s\",\"containerStatuses\":[{\"name\":\"c\","
                       "\"state\":{\"%s\":{}}}]}}",
                       phase, state);
        call(bench, "PATCH", path, body);
    }
}

/* ---- what happens ---- */

static bool has_finalizer(const struct json *pod)
{
    struct json_iter iter = json_iter(json_at(pod, "metadata", "finalizers"));
    const struct json *name;

    while (json_next_item(&iter, &name))
        if (str_is(json_str(name), BRIDGE_FINALIZER))
            return true;
    return false;
}

static bool has_node(const struct json *pod)
{
    return json_str(json_at(pod, "spec", "nodeName")).len > 0;
}

static void on_object(void *context, const struct api_change *change)
{
    struct bench *bench = context;

    if (strcmp(change->kind->plural, "pods") != 0)
        return;
    bench->held += has_finalizer(change->next);
    bench->held -= has_finalizer(change->old);
    if (!has_node(change->old) && has_node(change->next)) {
        bench->bound++;
        bench->bound_us = loop_now_us(bench->world.loop);
    }
}

static void on_slurm(void *context, const struct slurm_store_change *change)
{
    struct bench *bench = context;

    bench->nodes += change->event == SLURM_NODE_ADDED;
    if (change->event == SLURM_JOB_STARTED)
        bench->allocated_us = loop_now_us(bench->world.loop);
    if (change->event == SLURM_JOB_OVER)
        bench->job_over_us = loop_now_us(bench->world.loop);
}

/* ---- the bridge ---- */

static void start_bridge(struct bench *bench)
{
    struct world *world = &bench->world;
    struct err err = { .class = 0 };

    bench->api = sim_transport_new(world->net, "bridge");
    bench->lease_api = sim_transport_new(world->net, "bridge");
    bench->slurm = sim_transport_new_slurm(world->net, "bridge");
    if (slurm_token_new_minted(&world->clock, STR(JWT_KEY), "slurm", 300, &bench->token, &err) < 0)
        give_up(err.text);
    bench->bridge = bridge_new(
        &(struct bridge_links){ .loop = world->loop,
                                .api = bench->api,
                                .lease_api = bench->lease_api,
                                .slurm = bench->slurm,
                                .token = bench->token },
        &(struct bridge_options){
            .config = &bench->config, .identity = "bridge", .lease_ns = "slinc", .seed = 7 });
    bridge_start(bench->bridge);
}

static void kill_bridge(struct bench *bench)
{
    bridge_free(bench->bridge);
    slurm_token_free(bench->token);
    http_transport_free(bench->api);
    http_transport_free(bench->lease_api);
    http_transport_free(bench->slurm);
}

static void build(struct bench *bench)
{
    static const char *const namespaces[] = { "kube-system", "slinc", "work" };
    static const struct api_kind kinds[] = {
        { "batch", "v1", "jobs", "Job", API_NAMESPACED | API_HAS_STATUS | API_HAS_GENERATION },
        { "apps", "v1", "replicasets", "ReplicaSet",
          API_NAMESPACED | API_HAS_STATUS | API_HAS_GENERATION },
        { "scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup",
          API_NAMESPACED | API_HAS_STATUS | API_HAS_GENERATION },
    };
    struct err err = { .class = 0 };

    world_init(&bench->world, 7, NULL, &(struct sim_hooks){ .context = NULL });
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        api_store_add_kind(bench->world.store, &kinds[i]);
    world_add_slurm(&bench->world, &(struct slurm_store_options){ .jwt_key = STR(JWT_KEY),
                                                                  .max_node_count = MAX_PODS });
    api_store_listen(bench->world.store, on_object, bench);
    slurm_store_listen(bench->world.slurm, on_slurm, bench);
    (void)slurm_people_add_partition(
        bench->world.slurm,
        &(struct slurm_people_partition){ .name = PARTITION, .feature = PARTITION }, NULL);
    for (size_t i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]); i++) {
        char body[MAX_BODY];

        (void)snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"%s\"}}", namespaces[i]);
        call(bench, "POST", "/api/v1/namespaces", body);
    }
    for (unsigned i = 0; i < bench->size; i++)
        make_node(bench);
    if (bridge_config_parse(STR("schedulerName: " SCHEDULER "\npartition: " PARTITION "\n"),
                            &bench->config, &err) < 0)
        give_up(err.text);
}

/* ---- the steps that are measured ---- */

static bool nodes_are_there(const struct bench *bench)
{
    return bench->nodes == bench->size;
}

static bool all_are_bound(const struct bench *bench)
{
    return bench->bound == bench->size;
}

static bool job_is_over(const struct bench *bench)
{
    return bench->job_over_us > 0 && bench->held == 0;
}

static bool never(const struct bench *bench)
{
    return false;
}

/* Runs until it is so, or for so many seconds. */
static bool run(struct bench *bench, bool (*is_so)(const struct bench *bench), int64_t seconds)
{
    int64_t until_us = loop_now_us(bench->world.loop) + seconds * SECOND;

    while (!is_so(bench) && loop_now_us(bench->world.loop) < until_us)
        if (!loop_step(bench->world.loop))
            return false;
    return is_so(bench);
}

static void measure(struct bench *bench, const char *name, bool (*is_so)(const struct bench *bench),
                    int64_t seconds)
{
    double begun_ms = now_ms();
    int64_t begun_us = loop_now_us(bench->world.loop);

    memset(&plans, 0, sizeof(plans));
    if (!run(bench, is_so, seconds) && is_so != never)
        give_up(name);
    printf("\"%s\": {\"seconds\": %.2f, \"cpu\": %.2f, \"plans\": %u, \"plan_cpu\": %.2f, "
           "\"longest_ms\": %.1f, \"plan_kib\": %zu}, ",
           name, (double)(loop_now_us(bench->world.loop) - begun_us) / SECOND,
           (now_ms() - begun_ms) / 1e3, plans.count, plans.total_ms / 1e3, plans.longest_ms,
           plans.most_bytes >> 10);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct rusage usage;
    uint64_t size;

    if (argc != 2 || str_to_u64(str_of(argv[1]), 1, MAX_PODS, &size, NULL) < 0) {
        (void)fprintf(stderr, "usage: bench_gang PODS\n");
        return 2;
    }
    bench.size = (unsigned)size;
    build(&bench);
    printf("{");
    start_bridge(&bench);
    measure(&bench, "nodes", nodes_are_there, PATIENCE_S);
    measure(&bench, "calm", never, 10);
    make_gang(&bench);
    measure(&bench, "bound", all_are_bound, PATIENCE_S);
    printf("\"allocated_to_last_bind\": %.2f, ",
           (double)(bench.bound_us - bench.allocated_us) / SECOND);
    set_phase(&bench, "Running", "running");
    measure(&bench, "running", never, 60);
    kill_bridge(&bench);
    start_bridge(&bench);
    measure(&bench, "restarted", never, 120);
    set_phase(&bench, "Succeeded", "terminated");
    measure(&bench, "over", job_is_over, PATIENCE_S);
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("\"peak_mib\": %ld}\n", usage.ru_maxrss >> 10);
    kill_bridge(&bench);
    bridge_config_done(&bench.config);
    world_done(&bench.world);
    return 0;
}
