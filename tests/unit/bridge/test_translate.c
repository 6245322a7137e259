/* test_translate.c - pods in, what is asked of Slurm out; one row per rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bridge/translate.h"
#include "codec/yaml.h"

#include <inttypes.h>

enum { MAX_PODS = 4, MAX_MORE = 2 };

static struct arena arena;

static int set_up(void **state)
{
    arena_init(&arena, 16 << 20);
    return 0;
}

static int tear_down(void **state)
{
    arena_done(&arena);
    return 0;
}

/* ---- small objects from YAML ---- */

static const struct kube_object *object_of(const struct kube_kind *kind, const char *name,
                                           const char *annotations, const char *rest)
{
    const char *text =
        arena_printf(&arena,
                     "metadata: {name: %s, namespace: ns, uid: u-%s, resourceVersion: '1', "
                     "creationTimestamp: '2027-01-15T08:00:00Z', annotations: {%s}}\n"
                     "%s\n",
                     name, name, annotations, rest);
    auto_json_doc struct json_doc *doc = NULL;
    const struct kube_object *object = NULL;
    struct err err = { 0 };

    if (yaml_parse_one(str_of(text), NULL, &doc, &err) < 0 ||
        kube_object_decode(kind, json_root(doc), &object, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return object;
}

/* What a case is made of. Pods are spec in YAML, and named pod-0, pod-1 ...; a Job is its spec;
 * more are the annotations of objects beside the root. */
struct given {
    const char *config, *annotations, *job;
    const char *more[MAX_MORE];
    const char *name;
    bool is_gang;
    int64_t min_pods, group_cpu_milli, group_memory;
    const char *pods[MAX_PODS];
};

struct scene {
    struct bridge_config config;
    const struct kube_object *job, *root, *objects[MAX_PODS], *others[MAX_MORE];
    const struct kube_pod *pods[MAX_PODS];
    const struct kube_pairs *more[MAX_MORE];
    unsigned pod_count, more_count;
    const struct given *given;
};

static const char *text_or(const char *text, const char *fallback)
{
    return text ? text : fallback;
}

static void scene_init(struct scene *scene, const struct given *given)
{
    struct err err = { 0 };

    *scene = (struct scene){ .given = given };
    if (bridge_config_parse(str_of(text_or(given->config, "")), &scene->config, &err) < 0)
        fail_msg("%s: %s", given->config, err.text);
    for (unsigned i = 0; i < MAX_PODS && given->pods[i]; i++) {
        const char *annotations = given->job || i > 0 ? "" : text_or(given->annotations, "");

        scene->objects[i] =
            object_of(&kube_pod_kind, arena_printf(&arena, "pod-%u", i), annotations,
                      arena_printf(&arena, "spec: {%s}", given->pods[i]));
        scene->pods[i] = kube_pod_of(scene->objects[i]);
        scene->pod_count++;
    }
    for (unsigned i = 0; i < MAX_MORE && given->more[i]; i++) {
        scene->others[i] = object_of(&bridge_replicaset_kind, arena_printf(&arena, "other-%u", i),
                                     given->more[i], "");
        scene->more[i] = &scene->others[i]->annotations;
        scene->more_count++;
    }
    if (given->job)
        scene->job = object_of(&bridge_job_kind, "job", text_or(given->annotations, ""),
                               arena_printf(&arena, "spec: {%s}", given->job));
    scene->root = given->job ? scene->job : scene->objects[0];
}

static void scene_done(struct scene *scene)
{
    for (unsigned i = 0; i < scene->pod_count; i++)
        kube_object_unref(scene->objects[i]);
    for (unsigned i = 0; i < scene->more_count; i++)
        kube_object_unref(scene->others[i]);
    kube_object_unref(scene->job);
    bridge_config_done(&scene->config);
}

static int translated(const struct scene *scene, struct job_ask *ret_ask, struct err *err)
{
    const struct translate_from from = { .config = &scene->config,
                                         .pods = scene->pods,
                                         .pod_count = scene->pod_count,
                                         .root = scene->root,
                                         .job = scene->job ? kube_job_of(scene->job) : NULL,
                                         .more = scene->more,
                                         .more_count = scene->more_count,
                                         .name = scene->given->name,
                                         .is_gang = scene->given->is_gang,
                                         .min_pods = scene->given->min_pods,
                                         .group_cpu_milli = scene->given->group_cpu_milli,
                                         .group_memory = scene->given->group_memory };

    return translate(&from, &arena, ret_ask, err);
}

static void add_number(struct buf *out, const char *name, int64_t number)
{
    if (number >= 0)
        buf_printf(out, "%s%s=%" PRId64, out->len ? " " : "", name, number);
}

/* The amounts of an ask, those that are sent. */
static void write_amounts(const struct job_ask *ask, struct buf *out)
{
    add_number(out, "cpus", ask->cpus_per_task);
    add_number(out, "memory", ask->memory);
    if (ask->gres[0])
        buf_printf(out, "%s%s", out->len ? " " : "", ask->gres);
    if (ask->gres_per_task[0])
        buf_printf(out, "%seach %s", out->len ? " " : "", ask->gres_per_task);
}

static void write_shape(const struct job_ask *ask, struct buf *out)
{
    buf_printf(out, "%s", ask->name);
    add_number(out, "nodes", ask->nodes);
    add_number(out, "min", ask->min_nodes);
    add_number(out, "max", ask->max_nodes);
    add_number(out, "tasks", ask->tasks_per_node);
    add_number(out, "of", ask->tasks);
    add_number(out, "time", ask->time_limit);
}

static void write_all(const struct job_ask *ask, struct buf *out)
{
    write_shape(ask, out);
    write_amounts(ask, out);
}

struct row {
    const char *what;
    struct given given;
    const char *want;
};

static void check_row(const struct row *row,
                      void (*write)(const struct job_ask *ask, struct buf *out))
{
    auto_buf struct buf out = { .max = 10000 };
    struct err err = { 0 };
    struct job_ask ask;
    struct scene scene;

    scene_init(&scene, &row->given);
    if (translated(&scene, &ask, &err) < 0)
        buf_printf(&out, "refused: %s", err.text);
    else
        write(&ask, &out);
    if (strcmp(buf_text(&out), row->want) != 0)
        fail_msg("%s: %s, not %s", row->what, buf_text(&out), row->want);
    scene_done(&scene);
}

#define CHECK(rows, write)                                                                         \
    for (size_t i = 0; i < sizeof(rows) / sizeof((rows)[0]); i++)                                  \
    check_row(&(rows)[i], write)

#define ASK(list)   "{resources: {requests: {" list "}}}"
#define LIMIT(list) "{resources: {limits: {" list "}}}"
#define C(list)     "containers: [" list "]"
#define DRA         "deviceclass.resource.kubernetes.io/"

/* ---- CPUs and memory ---- */

static void cpus_and_memory_are_the_largest_of_requests_and_limits(void **state)
{
    static const struct row rows[] = {
        { "nothing asked, nothing sent", { .pods = { C("{}") } }, "" },
        { "CPUs are rounded up", { .pods = { C(ASK("cpu: 200m")) } }, "cpus=1" },
        { "CPUs are rounded up", { .pods = { C(ASK("cpu: 1100m")) } }, "cpus=2" },
        { "whole CPUs stay", { .pods = { C(ASK("cpu: 2")) } }, "cpus=2" },
        { "memory in MiB", { .pods = { C(ASK("memory: 100Mi")) } }, "memory=100" },
        { "memory is rounded up", { .pods = { C(ASK("memory: 100M")) } }, "memory=96" },
        { "less than a MiB is one", { .pods = { C(ASK("memory: 1")) } }, "memory=1" },
        { "zero is not sent", { .pods = { C(ASK("cpu: 0, memory: 0")) } }, "" },
        { "limits count", { .pods = { C(LIMIT("cpu: 3, memory: 5Mi")) } }, "cpus=3 memory=5" },
        { "the larger of both",
          { .pods = { C("{resources: {requests: {cpu: 1, memory: 9Mi}, limits: {cpu: 4, memory: "
                        "8Mi}}}") } },
          "cpus=4 memory=9" },
        { "containers add up before rounding",
          { .pods = { C(ASK("cpu: 500m, memory: 1") "," ASK("cpu: 500m, memory: 1")) } },
          "cpus=1 memory=1" },
        { "an init container takes its turn",
          { .pods = { C(ASK("cpu: 1")) ", initContainers: [" ASK("cpu: 3") "," ASK(
                "memory: 7Mi") "]" } },
          "cpus=3 memory=7" },
        { "a sidecar stays",
          { .pods = { C(ASK("cpu: 1")) ", initContainers: [{restartPolicy: Always, resources: "
                                       "{requests: {cpu: 1}}}]" } },
          "cpus=2" },
        { "a sidecar runs beside later init containers",
          { .pods = { C(ASK("cpu: 1")) ", initContainers: [{restartPolicy: Always, resources: "
                                       "{requests: {cpu: 1}}}, " ASK("cpu: 4") "]" } },
          "cpus=5" },
        { "pod-level resources replace the sums",
          { .pods = { C(ASK("cpu: 1, memory: 1Mi")) ", resources: {requests: {cpu: 6, memory: "
                                                    "3Mi}}" } },
          "cpus=6 memory=3" },
        { "overhead comes on top of requests",
          { .pods = { C(ASK("cpu: 1")) ", overhead: {cpu: 100m, memory: 2Mi}" } },
          "cpus=2 memory=2" },
        { "and of limits that are there",
          { .pods = { C(LIMIT("cpu: 4")) ", overhead: {cpu: 100m, memory: 2Mi}" } },
          "cpus=5 memory=2" },
        { "the largest over the pods, each for itself",
          { .pods = { C(ASK("cpu: 4, memory: 1Mi")), C(ASK("cpu: 1, memory: 9Mi")), C("{}") } },
          "cpus=4 memory=9" },
        { "cores by DRA are CPUs", { .pods = { C(LIMIT(DRA "dra.cpu: 3")) } }, "cpus=3" },
        { "as requests too", { .pods = { C(ASK(DRA "dra.cpu: 5")) } }, "cpus=5" },
        { "the larger of both sorts of CPU",
          { .pods = { C(ASK("cpu: 2500m, " DRA "dra.cpu: 2")) } },
          "cpus=3" },
        { "the most that Slurm holds", { .pods = { C(ASK("cpu: 65533")) } }, "cpus=65533" },
        { "more would be cut without a word",
          { .pods = { C(ASK("cpu: 65534")) } },
          "refused: asks for 65534 CPUs; Slurm knows at most 65533" },
        { "and so would far more",
          { .pods = { C(ASK(DRA "dra.cpu: 9E")) } },
          "refused: asks for 9223372036854776 CPUs; Slurm knows at most 65533" },
    };

    CHECK(rows, write_amounts);
}

/* ---- devices ---- */

static void devices_become_one_list_per_node(void **state)
{
    static const struct row rows[] = {
        { "NVIDIA", { .pods = { C(LIMIT("nvidia.com/gpu: 2")) } }, "gres/gpu=2" },
        { "AMD", { .pods = { C(LIMIT("amd.com/gpu: 1")) } }, "gres/gpu=1" },
        { "both add up",
          { .pods = { C(LIMIT("amd.com/gpu: 1, nvidia.com/gpu: 2")) } },
          "gres/gpu=3" },
        { "a class by its name",
          { .pods = { C(LIMIT(DRA "gpu.nvidia.com: 4")) } },
          "gres/gpu:gpu.nvidia.com=4" },
        { "every class is asked for, in order",
          { .pods = { C(LIMIT(DRA "gpu.nvidia.com: 4") "," LIMIT(DRA "gpu.example.com: 1")) } },
          "gres/gpu:gpu.example.com=1,gres/gpu:gpu.nvidia.com=4" },
        { "with those that have no class",
          { .pods = { C(LIMIT("nvidia.com/gpu: 1, " DRA "gpu.example.com: 1")) } },
          "gres/gpu=1,gres/gpu:gpu.example.com=1" },
        { "only limits count", { .pods = { C(ASK("nvidia.com/gpu: 2")) } }, "" },
        { "CPUs are no devices", { .pods = { C(LIMIT(DRA "dra.cpu: 2")) } }, "cpus=2" },
        { "none is none", { .pods = { C(LIMIT("nvidia.com/gpu: 0")) } }, "" },
        { "others are Kubernetes' own affair",
          { .pods = { C(LIMIT("hugepages-2Mi: 2Mi, example.com/fpga: 1, nvidia.com/mig: 1")) } },
          "" },
        { "numbers are plain", { .pods = { C(LIMIT("nvidia.com/gpu: 1k")) } }, "gres/gpu=1000" },
        { "the largest over the pods, kind by kind",
          { .pods = { C(LIMIT("nvidia.com/gpu: 1, amd.com/gpu: 1")),
                      C(LIMIT(DRA "b: 2, nvidia.com/gpu: 3")),
                      C(LIMIT(DRA "b: 1, " DRA "a: 1")) } },
          "gres/gpu=3,gres/gpu:a=1,gres/gpu:b=2" },
        { "nothing in a name ends its item",
          { .pods = { C(LIMIT("'" DRA "a=1,license/x': 1")) } },
          "refused: \"a=1,license/x\" is no name of a DeviceClass" },
    };

    CHECK(rows, write_amounts);
}

/* ---- the workload ---- */

static void the_workload_decides_the_shape(void **state)
{
    static const struct row rows[] = {
        { "a pod alone", { .pods = { C("{}") } }, "pod-0 nodes=1 max=1 tasks=1" },
        { "a Job's pod", { .job = "suspend: false", .pods = { C("{}") } }, "pod-0 nodes=1 min=1" },
        { "a Job's deadline, in minutes rounded up",
          { .job = "activeDeadlineSeconds: 61", .pods = { C("{}") } },
          "pod-0 nodes=1 min=1 time=2" },
        { "a whole minute",
          { .job = "activeDeadlineSeconds: 60", .pods = { C("{}") } },
          "pod-0 nodes=1 min=1 time=1" },
        { "no deadline",
          { .job = "activeDeadlineSeconds: 0", .pods = { C("{}") } },
          "pod-0 nodes=1 min=1" },
        { "a deadline in thousands of years",
          { .job = "activeDeadlineSeconds: 999999999999", .pods = { C("{}") } },
          "refused: activeDeadlineSeconds of 999999999999 is more than Slurm's time limit holds" },
        { "pods that start together",
          { .pods = { C("{}"), C("{}"), C("{}") } },
          "pod-0 nodes=3 min=3 max=3 tasks=1" },
        { "annotations win over all",
          { .job = "activeDeadlineSeconds: 60",
            .annotations = "slurmjob.slinky.slurm.net/timelimit: '9', "
                           "slurmjob.slinky.slurm.net/job-name: mine, "
                           "slurmjob.slinky.slurm.net/min-nodes: '2', "
                           "slurmjob.slinky.slurm.net/max-nodes: '4'",
            .pods = { C("{}") } },
          "mine nodes=1 min=2 max=4 time=9" },
    };

    CHECK(rows, write_shape);
}

static void a_job_s_own_limits_count_where_its_pods_say_nothing(void **state)
{
    static const struct row rows[] = {
        { "from the template",
          { .job = "template: {spec: {resources: {limits: {cpu: 1500m, memory: 3Mi}}}}",
            .pods = { C("{}") } },
          "cpus=2 memory=3" },
        { "only what is there",
          { .job = "template: {spec: {resources: {limits: {cpu: 2}}}}", .pods = { C("{}") } },
          "cpus=2" },
        { "requests do not",
          { .job = "template: {spec: {resources: {requests: {cpu: 2}}}}", .pods = { C("{}") } },
          "" },
        { "the pods win",
          { .job = "template: {spec: {resources: {limits: {cpu: 8, memory: 9Mi}}}}",
            .pods = { C(ASK("cpu: 1, memory: 1Mi")) } },
          "cpus=1 memory=1" },
    };

    CHECK(rows, write_amounts);
}

#define S  "slurmjob.slinky.slurm.net/"
#define MI (INT64_C(1) << 20)

/* ---- gangs ---- */

static void the_pods_of_a_gang_have_a_node_each(void **state)
{
    static const struct row rows[] = {
        { "all of them",
          { .name = "g", .is_gang = true, .pods = { C("{}"), C("{}"), C("{}") } },
          "g nodes=3 min=3 max=3 tasks=1" },
        { "also when it is one",
          { .name = "g", .is_gang = true, .pods = { C("{}") } },
          "g nodes=1 min=1 max=1 tasks=1" },
        { "a few will do",
          { .is_gang = true, .min_pods = 2, .pods = { C("{}"), C("{}"), C("{}"), C("{}") } },
          "pod-0 nodes=4 min=2 max=4 tasks=1" },
        { "no fewer than there are",
          { .is_gang = true, .min_pods = 5, .pods = { C("{}"), C("{}") } },
          "pod-0 nodes=2 min=2 max=2 tasks=1" },
        { "a Job's deadline is the gang's",
          { .job = "activeDeadlineSeconds: 90", .is_gang = true, .pods = { C("{}"), C("{}") } },
          "job nodes=2 min=2 max=2 tasks=1 time=2" },
        { "and of one pod of it",
          { .job = "activeDeadlineSeconds: 90", .is_gang = true, .pods = { C("{}") } },
          "pod-0 nodes=1 min=1 max=1 tasks=1 time=2" },
        { "the name is the annotation's first",
          { .name = "g",
            .is_gang = true,
            .annotations = S "job-name: mine",
            .pods = { C("{}"), C("{}") } },
          "mine nodes=2 min=2 max=2 tasks=1" },
        { "fewer nodes will do by annotation",
          { .is_gang = true,
            .annotations = S "min-nodes: '1'",
            .pods = { C("{}"), C("{}"), C("{}") } },
          "pod-0 nodes=3 min=1 max=3 tasks=1" },
        { "more nodes than pods",
          { .is_gang = true,
            .annotations = S "min-nodes: '3', " S "max-nodes: '4'",
            .pods = { C("{}"), C("{}") } },
          "pod-0 nodes=2 min=3 max=4 tasks=1" },
        { "more than it may have",
          { .is_gang = true, .annotations = S "min-nodes: '3'", .pods = { C("{}"), C("{}") } },
          "refused: wants at least 3 nodes, and at most 2: see the annotations min-nodes and "
          "max-nodes" },
        { "amounts are the largest over the pods",
          { .is_gang = true,
            .pods = { C(ASK("cpu: 4, memory: 1Mi")), C(LIMIT("memory: 9Mi, nvidia.com/gpu: 1")) } },
          "pod-0 nodes=2 min=2 max=2 tasks=1 cpus=4 memory=9 gres/gpu=1" },
    };

    CHECK(rows, write_all);
}

#define POD C(ASK("cpu: 2, memory: 100Mi"))

static void pods_of_a_gang_share_nodes_when_it_may_not_have_enough(void **state)
{
    static const struct row rows[] = {
        { "whole nodes hold an even share each",
          { .is_gang = true, .annotations = S "max-nodes: '2'", .pods = { POD, POD, POD } },
          "pod-0 nodes=3 min=2 max=2 tasks=2 of=4 cpus=2 memory=200" },
        { "all on one",
          { .is_gang = true, .annotations = S "max-nodes: '1'", .pods = { POD, POD, POD } },
          "pod-0 nodes=3 min=1 max=1 tasks=3 of=3 cpus=2 memory=300" },
        { "shared nodes as well",
          { .is_gang = true,
            .annotations = S "max-nodes: '2', " S "exclusive: 'false'",
            .pods = { POD, POD, POD } },
          "pod-0 nodes=3 min=2 max=2 tasks=2 of=4 cpus=2 memory=200" },
        { "no more nodes than an even share needs",
          { .is_gang = true, .annotations = S "max-nodes: '3'", .pods = { POD, POD, POD, POD } },
          "pod-0 nodes=4 min=2 max=2 tasks=2 of=4 cpus=2 memory=200" },
        { "but as many as annotated",
          { .is_gang = true,
            .annotations = S "min-nodes: '3', " S "max-nodes: '3'",
            .pods = { POD, POD, POD, POD } },
          "pod-0 nodes=4 min=3 max=3 tasks=2 of=6 cpus=2 memory=200" },
        { "without memory none is asked for",
          { .is_gang = true, .annotations = S "max-nodes: '1'", .pods = { C("{}"), C("{}") } },
          "pod-0 nodes=2 min=1 max=1 tasks=2 of=2" },
        { "nodes as annotated",
          { .is_gang = true,
            .annotations = S "min-nodes: '2', " S "max-nodes: '2'",
            .pods = { POD, POD, POD } },
          "pod-0 nodes=3 min=2 max=2 tasks=2 of=4 cpus=2 memory=200" },
        { "the fewest are more than the most",
          { .is_gang = true,
            .annotations = S "min-nodes: '3', " S "max-nodes: '2'",
            .pods = { POD, POD, POD } },
          "refused: wants at least 3 nodes, and at most 2: see the annotations min-nodes and "
          "max-nodes" },
        { "memory by annotation is the node's",
          { .config = "{sharedNodes: true}",
            .is_gang = true,
            .annotations = S "max-nodes: '1', " S "mem-per-node: 100Mi",
            .pods = { POD, POD } },
          "pod-0 nodes=2 min=1 max=1 tasks=2 of=2 cpus=2 memory=100" },
        { "devices are the pod's",
          { .is_gang = true,
            .annotations = S "max-nodes: '1'",
            .pods = { C(LIMIT("nvidia.com/gpu: 2")), C("{}") } },
          "pod-0 nodes=2 min=1 max=1 tasks=2 of=2 each gres/gpu=2" },
        { "by annotation the node's",
          { .is_gang = true,
            .annotations = S "max-nodes: '1', " S "gres: 'gres/gpu=4'",
            .pods = { C(LIMIT("nvidia.com/gpu: 2")), C("{}") } },
          "pod-0 nodes=2 min=1 max=1 tasks=2 of=2 gres/gpu=4" },
        { "or none at all",
          { .is_gang = true,
            .annotations = S "max-nodes: '1', " S "gres: ''",
            .pods = { C(LIMIT("nvidia.com/gpu: 2")), C("{}") } },
          "pod-0 nodes=2 min=1 max=1 tasks=2 of=2" },
        { "as many nodes as pods are enough",
          { .is_gang = true, .annotations = S "max-nodes: '2'", .pods = { POD, POD } },
          "pod-0 nodes=2 min=2 max=2 tasks=1 cpus=2 memory=100" },
        { "as much as there can be",
          { .is_gang = true,
            .annotations = S "max-nodes: '1'",
            .group_memory = INT64_MAX,
            .min_pods = 1,
            .pods = { C("{}"), C("{}") } },
          "pod-0 nodes=2 min=1 max=1 tasks=2 of=2 memory=17592186044416" },
    };

    CHECK(rows, write_all);
}

static void what_a_group_needs_in_all_counts_where_its_pods_say_nothing(void **state)
{
    static const struct row rows[] = {
        { "divided by the fewest that will do",
          { .is_gang = true,
            .min_pods = 2,
            .group_cpu_milli = 5000,
            .group_memory = 7 * MI,
            .pods = { C("{}"), C("{}"), C("{}") } },
          "cpus=3 memory=4" },
        { "or by all",
          { .is_gang = true,
            .group_cpu_milli = 6000,
            .group_memory = 6 * MI,
            .pods = { C("{}"), C("{}"), C("{}") } },
          "cpus=2 memory=2" },
        { "the pods win",
          { .is_gang = true,
            .min_pods = 1,
            .group_cpu_milli = 8000,
            .group_memory = 8 * MI,
            .pods = { C("{}"), C(ASK("cpu: 1, memory: 1Mi")) } },
          "cpus=1 memory=1" },
        { "each for itself",
          { .is_gang = true,
            .min_pods = 1,
            .group_cpu_milli = 8000,
            .group_memory = 8 * MI,
            .pods = { C("{}"), C(ASK("memory: 1Mi")) } },
          "cpus=8 memory=1" },
    };

    CHECK(rows, write_amounts);
}

/* ---- time ---- */

#define DEADLINE(seconds) "activeDeadlineSeconds: " seconds ", containers: [{}]"
#define BY_POD            "{podDeadlineAsTimeLimit: true}"

static void write_times(const struct job_ask *ask, struct buf *out)
{
    add_number(out, "time", ask->time_limit);
    add_number(out, "begin", ask->begin_time);
    add_number(out, "deadline", ask->deadline);
}

static void deadlines_of_pods_are_time_limits_where_the_config_says_so(void **state)
{
    static const struct row rows[] = {
        { "off", { .pods = { DEADLINE("61") } }, "" },
        { "on, rounded up", { .config = BY_POD, .pods = { DEADLINE("61") } }, "time=2" },
        { "none", { .config = BY_POD, .pods = { C("{}") } }, "" },
        { "the longest of a gang",
          { .config = BY_POD, .pods = { DEADLINE("60"), DEADLINE("600") } },
          "time=10" },
        { "unless one may last for ever",
          { .config = BY_POD, .pods = { DEADLINE("60"), C("{}") } },
          "" },
        { "the Job's is shorter",
          { .config = BY_POD, .job = "activeDeadlineSeconds: 60", .pods = { DEADLINE("600") } },
          "time=1" },
        { "the pod's is shorter",
          { .config = BY_POD, .job = "activeDeadlineSeconds: 600", .pods = { DEADLINE("60") } },
          "time=1" },
        { "annotations win",
          { .config = BY_POD, .annotations = S "timelimit: '5'", .pods = { DEADLINE("60") } },
          "time=5" },
        { "more than Slurm holds",
          { .config = BY_POD, .pods = { DEADLINE("999999999999") } },
          "refused: activeDeadlineSeconds of 999999999999 is more than Slurm's time limit holds" },
    };

    CHECK(rows, write_times);
}

static void a_begin_counts_from_the_creation_of_the_pod(void **state)
{
    static const struct row rows[] = {
        { "later",
          { .annotations = S "begin-time: +1h", .pods = { C("{}") } },
          "begin=1800003600" },
        { "at a time",
          { .annotations =
                S "begin-time: '2027-01-15T08:00:07Z', " S "deadline: '2027-01-15T09:00:00Z'",
            .pods = { C("{}") } },
          "begin=1800000007 deadline=1800003600" },
    };

    CHECK(rows, write_times);
}

/* ---- who, and how urgent ---- */

static void write_rights(const struct job_ask *ask, struct buf *out)
{
    buf_printf(out, "%s:%s %s %s", ask->user_id, ask->group_id, ask->account, ask->qos);
    add_number(out, "priority", ask->priority);
    if (ask->nice)
        buf_printf(out, " nice=%" PRId64, ask->nice);
}

#define USERS                                                                                      \
    "users: [{namespace: ns, serviceAccount: robot, user: robot, qos: low}, "                      \
    "{namespace: 'n*', user: u, group: g, account: a}]"
#define CLASSES "priorityClasses: {high: fast, first: 900}"
#define WORDS                                                                                      \
    S "user-id: root, " S "group-id: root, " S "account: rich, " S "qos: vip, " S                  \
      "priority: '99', " S "nice: '-7'"

static void rules_of_the_config_say_who_a_pod_is(void **state)
{
    static const struct row rows[] = {
        { "nobody says it", { .pods = { C("{}") } }, ":  " },
        { "by namespace", { .config = "{" USERS "}", .pods = { C("{}") } }, "u:g a " },
        { "by service account",
          { .config = "{" USERS "}", .pods = { C("{}") ", serviceAccountName: robot" } },
          "robot:  low" },
        { "annotations win",
          { .config = "{" USERS "}", .annotations = WORDS, .pods = { C("{}") } },
          "root:root rich vip priority=99 nice=-7" },
        { "each for itself",
          { .config = "{" USERS "}", .annotations = S "account: rich", .pods = { C("{}") } },
          "u:g rich " },
        { "unless they are not trusted",
          { .config = "{trustAnnotations: false, " USERS "}",
            .annotations = WORDS,
            .pods = { C("{}") } },
          "u:g a " },
        { "whether or not a rule matches",
          { .config = "{trustAnnotations: false}", .annotations = WORDS, .pods = { C("{}") } },
          ":  " },
        { "what anybody may say is still heard",
          { .config = "{trustAnnotations: false}",
            .annotations = S "priority: '0', " S "nice: '7'",
            .pods = { C("{}") } },
          ":   priority=0 nice=7" },
    };

    CHECK(rows, write_rights);
}

static void a_priority_class_is_a_qos_or_a_priority_where_the_config_says_so(void **state)
{
    static const struct row rows[] = {
        { "off", { .pods = { C("{}") ", priorityClassName: high" } }, ":  " },
        { "a QOS",
          { .config = "{" CLASSES "}", .pods = { C("{}") ", priorityClassName: high" } },
          ":  fast" },
        { "a priority",
          { .config = "{" CLASSES "}", .pods = { C("{}") ", priorityClassName: first" } },
          ":   priority=900" },
        { "another class",
          { .config = "{" CLASSES "}", .pods = { C("{}") ", priorityClassName: middle" } },
          ":  " },
        { "over the rule for the user",
          { .config = "{" USERS ", " CLASSES "}",
            .pods = { C("{}") ", serviceAccountName: robot, priorityClassName: high" } },
          "robot:  fast" },
        { "annotations win",
          { .config = "{" CLASSES "}",
            .annotations = WORDS,
            .pods = { C("{}") ", priorityClassName: first" } },
          "root:root rich vip priority=99 nice=-7" },
        { "unless they are not trusted",
          { .config = "{trustAnnotations: false, " CLASSES "}",
            .annotations = WORDS,
            .pods = { C("{}") ", priorityClassName: first" } },
          ":   priority=900" },
    };

    CHECK(rows, write_rights);
}

/* ---- precedence ---- */

static void write_rest(const struct job_ask *ask, struct buf *out)
{
    buf_printf(out, "%s %s %s", ask->partition, ask->mcs_label,
               ask->exclusive ? "exclusive" : "shared");
    write_amounts(ask, out);
}

static void annotations_win_over_pods_and_those_over_the_config(void **state)
{
    static const struct row rows[] = {
        { "defaults", { .pods = { C("{}") } }, "slurm-bridge kubernetes exclusive" },
        { "config",
          { .config = "{partition: p, mcsLabel: m}", .pods = { C("{}") } },
          "p m exclusive" },
        { "a shared default",
          { .config = "{sharedNodes: true}", .pods = { C("{}") } },
          "slurm-bridge kubernetes shared" },
        { "false shares",
          { .annotations = S "exclusive: 'false'", .pods = { C("{}") } },
          "slurm-bridge kubernetes shared" },
        { "anything else does not",
          { .config = "{sharedNodes: true}",
            .annotations = S "exclusive: 'true'",
            .pods = { C("{}") } },
          "slurm-bridge kubernetes exclusive" },
        { "all at once",
          { .config = "{partition: p}",
            .annotations = S "partition: q, " S "cpu-per-task: 1500m, " S "mem-per-node: 1Gi, " S
                             "gres: 'gres/gpu:h100=1'",
            .pods = { C(LIMIT("cpu: 9, memory: 9Gi, nvidia.com/gpu: 2")) } },
          "q kubernetes exclusive cpus=2 memory=1024 gres/gpu:h100=1" },
        { "those of further objects, the last one first",
          { .annotations = S "partition: q, " S "mem-per-node: 1Gi, " S "exclusive: 'false'",
            .more = { S "partition: r, " S "mem-per-node: 2Gi", S "partition: s" },
            .pods = { C(LIMIT("memory: 9Gi")) } },
          "s kubernetes shared memory=2048" },
        { "a bad one there is told",
          { .more = { S "nice: x" }, .pods = { C("{}") } },
          "refused: " S "nice: \"x\" is not a whole number from -2147483645 to 2147483645" },
        { "a bad one is told",
          { .annotations = S "timelimit: soon", .pods = { C("{}") } },
          "refused: " S "timelimit: \"soon\" is not a whole number from 1 to 2147483647" },
    };

    CHECK(rows, write_rest);
}

static void only_the_annotations_of_the_root_count(void **state)
{
    const struct kube_object *root =
        object_of(&bridge_replicaset_kind, "rs", S "account: of-root", "spec: {}");
    const struct kube_object *object = object_of(
        &kube_pod_kind, "pod", S "account: of-pod, " S "qos: of-pod", "spec: {containers: [{}]}");
    const struct kube_pod *pods[] = { kube_pod_of(object) };
    struct bridge_config config;
    struct job_ask ask;

    assert_int_equal(bridge_config_parse(STR(""), &config, NULL), 0);
    assert_int_equal(translate(
                         &(struct translate_from){
                             .config = &config, .pods = pods, .pod_count = 1, .root = root },
                         &arena, &ask, NULL),
                     0);
    assert_string_equal(ask.account, "of-root");
    assert_string_equal(ask.qos, "");
    assert_string_equal(ask.name, "pod");
    bridge_config_done(&config);
    kube_object_unref(object);
    kube_object_unref(root);
}

static void a_refusal_writes_no_ask(void **state)
{
    const struct given given = { .annotations = S "priority: x", .pods = { C("{}") } };
    struct job_ask ask = { .nodes = 77 };
    struct scene scene;

    scene_init(&scene, &given);
    assert_int_equal(translated(&scene, &ask, NULL), -ERR_INVALID);
    assert_int_equal(ask.nodes, 77);
    scene_done(&scene);
}

/* The example of the contract: what a bare pod sends. */
static void a_bare_pod_sends_what_it_always_sent(void **state)
{
    const struct given given = { .pods = { C(ASK("cpu: 2, memory: 100Mi")) } };
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *want = NULL, *sent = NULL;
    struct job_ask ask;
    struct scene scene;

    scene_init(&scene, &given);
    assert_int_equal(translated(&scene, &ask, NULL), 0);
    assert_int_equal(
        json_parse(STR("{\"name\":\"pod-0\",\"cpus_per_task\":2,"
                       "\"current_working_directory\":\"/tmp\",\"flags\":[\"EXTERNAL_JOB\"],"
                       "\"maximum_nodes\":1,\"mcs_label\":\"kubernetes\",\"memory_per_node\":"
                       "{\"infinite\":false,\"number\":100,\"set\":true},\"nodes\":\"1\","
                       "\"partition\":\"slurm-bridge\",\"priority\":{\"set\":false},"
                       "\"shared\":[\"none\"],\"tasks_per_node\":1,"
                       "\"time_limit\":{\"set\":false}}"),
                   10000, &want, NULL),
        0);
    sent = json_freeze(job_ask_json(build, &ask));
    assert_true(json_equal(json_root(sent), json_root(want)));
    scene_done(&scene);
}

/* ---- kinds ---- */

static void a_job_is_read_and_patched(void **state)
{
    const struct kube_object *job =
        object_of(&bridge_job_kind, "j", "",
                  "spec: {activeDeadlineSeconds: 5, suspend: true, template: {spec: {resources: "
                  "{limits: {cpu: 250m, memory: 1Ki}}}}}");
    const struct kube_object *patched = NULL;
    auto_json_doc struct json_doc *patch = NULL;

    assert_int_equal(kube_job_of(job)->active_deadline, 5);
    assert_true(kube_job_of(job)->suspended);
    assert_true(kube_job_of(job)->has_pod_resources);
    assert_int_equal(kube_job_of(job)->cpu_milli, 250);
    assert_int_equal(kube_job_of(job)->memory, 1024);

    assert_int_equal(json_parse(STR("{\"spec\":{\"suspend\":false}}"), 100, &patch, NULL), 0);
    assert_int_equal(kube_object_patched(job, json_root(patch), &patched, NULL), 0);
    assert_false(kube_job_of(patched)->suspended);
    assert_int_equal(kube_job_of(patched)->active_deadline, 5);
    assert_true(kube_job_of(patched)->has_pod_resources);
    assert_int_equal(kube_job_of(patched)->cpu_milli, 250);
    kube_object_unref(patched);
    kube_object_unref(job);
}

static void a_job_with_a_bad_limit_is_refused(void **state)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct kube_object *job = NULL;
    struct err err = { 0 };

    assert_int_equal(
        json_parse(STR("{\"metadata\":{\"name\":\"j\",\"uid\":\"u\",\"resourceVersion\":\"1\"},"
                       "\"spec\":{\"template\":{\"spec\":{\"resources\":{\"limits\":{\"cpu\":"
                       "\"x\"}}}}}}"),
                   1000, &doc, NULL),
        0);
    assert_int_equal(kube_object_decode(&bridge_job_kind, json_root(doc), &job, &err),
                     -ERR_INVALID);
    assert_non_null(strstr(err.text, "spec.template.spec.resources.limits"));
}

static void owners_live_where_the_api_server_keeps_them(void **state)
{
    static const struct {
        const struct kube_kind *kind;
        const char *path;
    } cases[] = {
        { &bridge_job_kind, "/apis/batch/v1/namespaces/n/jobs/x" },
        { &bridge_replicaset_kind, "/apis/apps/v1/namespaces/n/replicasets/x" },
        { &bridge_statefulset_kind, "/apis/apps/v1/namespaces/n/statefulsets/x" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct kube_object *object = object_of(cases[i].kind, "x", "a: b", "spec: {}");
        auto_buf struct buf path = { .max = 100 };

        kube_path(&path, cases[i].kind->resource, "n", "x", NULL);
        assert_string_equal(buf_text(&path), cases[i].path);
        assert_true(str_is(kube_pairs_get(&object->annotations, "a", NULL), "b"));
        kube_object_unref(object);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpus_and_memory_are_the_largest_of_requests_and_limits),
        cmocka_unit_test(devices_become_one_list_per_node),
        cmocka_unit_test(the_workload_decides_the_shape),
        cmocka_unit_test(a_job_s_own_limits_count_where_its_pods_say_nothing),
        cmocka_unit_test(the_pods_of_a_gang_have_a_node_each),
        cmocka_unit_test(pods_of_a_gang_share_nodes_when_it_may_not_have_enough),
        cmocka_unit_test(what_a_group_needs_in_all_counts_where_its_pods_say_nothing),
        cmocka_unit_test(deadlines_of_pods_are_time_limits_where_the_config_says_so),
        cmocka_unit_test(a_begin_counts_from_the_creation_of_the_pod),
        cmocka_unit_test(rules_of_the_config_say_who_a_pod_is),
        cmocka_unit_test(a_priority_class_is_a_qos_or_a_priority_where_the_config_says_so),
        cmocka_unit_test(annotations_win_over_pods_and_those_over_the_config),
        cmocka_unit_test(only_the_annotations_of_the_root_count),
        cmocka_unit_test(a_refusal_writes_no_ask),
        cmocka_unit_test(a_bare_pod_sends_what_it_always_sent),
        cmocka_unit_test(a_job_is_read_and_patched),
        cmocka_unit_test(a_job_with_a_bad_limit_is_refused),
        cmocka_unit_test(owners_live_where_the_api_server_keeps_them),
    };

    return cmocka_run_group_tests_name("translate", tests, set_up, tear_down);
}
