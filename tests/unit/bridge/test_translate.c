/* test_translate.c - pods in, the shape of what is asked of Slurm out; one row per rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "translate_rig.h"

static void write_shape(const struct job_desc *desc, struct buf *out)
{
    buf_printf(out, "%s", desc->name);
    rig_add_number(out, "nodes", desc->nodes);
    rig_add_number(out, "min", desc->min_nodes);
    rig_add_number(out, "max", desc->max_nodes);
    rig_add_number(out, "tasks", desc->tasks_per_node);
    rig_add_number(out, "of", desc->tasks);
    rig_add_number(out, "time", desc->time_limit);
}

static void write_all(const struct job_desc *desc, struct buf *out)
{
    write_shape(desc, out);
    rig_write_amounts(desc, out);
}

/* ---- CPUs and memory ---- */

static void cpus_and_memory_are_the_largest_of_requests_and_limits(void **state)
{
    static const struct rig_row rows[] = {
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
        { "cores by DRA are CPUs",
          { .pods = { C(LIMIT(DRA "cores.slinky.slurm.net: 3")) } },
          "cpus=3" },
        { "as requests too", { .pods = { C(ASK(DRA "cores.slinky.slurm.net: 5")) } }, "cpus=5" },
        { "the larger of both sorts of CPU",
          { .pods = { C(ASK("cpu: 2500m, " DRA "cores.slinky.slurm.net: 2")) } },
          "cpus=3" },
        { "the most that Slurm holds", { .pods = { C(ASK("cpu: 65533")) } }, "cpus=65533" },
        { "more would be cut without a word",
          { .pods = { C(ASK("cpu: 65534")) } },
          "refused: asks for 65534 CPUs; Slurm knows at most 65533" },
        { "and so would far more",
          { .pods = { C(ASK(DRA "cores.slinky.slurm.net: 9E")) } },
          "refused: asks for 9223372036854776 CPUs; Slurm knows at most 65533" },
    };

    RIG_CHECK(rows, rig_write_amounts);
}

/* ---- devices ---- */

static void devices_become_one_list_per_node(void **state)
{
    static const struct rig_row rows[] = {
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
        { "requests count as well", { .pods = { C(ASK("nvidia.com/gpu: 2")) } }, "gres/gpu=2" },
        { "CPUs are no devices",
          { .pods = { C(LIMIT(DRA "cores.slinky.slurm.net: 2")) } },
          "cpus=2" },
        { "none is none", { .pods = { C(LIMIT("nvidia.com/gpu: 0")) } }, "" },
        { "others are Kubernetes' own affair",
          { .pods = { C(LIMIT("hugepages-2Mi: 2Mi, example.com/fpga: 1, nvidia.com/mig: 1")) } },
          "" },
        { "numbers are plain", { .pods = { C(LIMIT("nvidia.com/gpu: 1k")) } }, "gres/gpu=1000" },
        { "the largest over the pods, kind by kind",
          { .config = "devices: [{class: a, gres: gpu}, {class: b, gres: gpu}, "
                      "{resource: nvidia.com/gpu, gres: gpu}, {resource: amd.com/gpu, gres: gpu}]",
            .pods = { C(LIMIT("nvidia.com/gpu: 1, amd.com/gpu: 1")),
                      C(LIMIT(DRA "b: 2, nvidia.com/gpu: 3")),
                      C(LIMIT(DRA "b: 1, " DRA "a: 1")) } },
          "gres/gpu=3,gres/gpu:a=1,gres/gpu:b=2" },
        { "a name of the table, for a class and for a device plugin",
          { .config = "devices: [{class: fast, driver: d, gres: fpga, type: x}, "
                      "{resource: example.com/nic, gres: nic}]",
            .pods = { C(LIMIT(DRA "fast: 1") "," LIMIT("example.com/nic: 2")) } },
          "gres/nic=2,gres/fpga:x=1" },
        { "cores of a class are CPUs",
          { .pods = { C(LIMIT(DRA "cores.slinky.slurm.net: 3")) } },
          "cpus=3" },
        { "a class that the table does not have",
          { .pods = { C(LIMIT("'" DRA "a=1,license/x': 1")) } },
          "refused: pod pod-0: resource \"deviceclass.resource.kubernetes.io/a=1,license/x\" uses "
          "DRA device class \"a=1,license/x\", which the bridge's config (devices) does not know" },
    };

    RIG_CHECK(rows, rig_write_amounts);
}

/* ---- annotations in place of requests ---- */

#define GPUS(annotation, count)                                                                    \
    {                                                                                              \
        .annotations = S "gres: '" annotation "'", .pods = { C(LIMIT("nvidia.com/gpu: " count)) }  \
    }

static void a_job_gets_at_least_what_its_pods_request(void **state)
{
    static const struct rig_row rows[] = {
        { "memory",
          { .annotations = S "mem-per-node: 1Mi", .pods = { C(ASK("memory: 1Gi")) } },
          "memory=1024" },
        { "more is as good",
          { .annotations = S "mem-per-node: 2Gi", .pods = { C(ASK("memory: 1Gi")) } },
          "memory=2048" },
        { "all of the node is more",
          { .annotations = S "mem-per-node: '0'", .pods = { C(ASK("memory: 1Gi")) } },
          "memory=0" },
        { "a limit is no request",
          { .annotations = S "mem-per-node: 1Gi", .pods = { C(LIMIT("memory: 9Gi")) } },
          "memory=1024" },
        { "CPUs",
          { .annotations = S "cpu-per-task: '1'", .pods = { C(ASK("cpu: 1500m")) } },
          "cpus=2" },
        { "the neediest pod",
          { .annotations = S "cpu-per-task: '1'", .pods = { C(ASK("cpu: 1")), C(ASK("cpu: 7")) } },
          "cpus=7" },
        { "no gres", GPUS("", "2"), "gres/gpu=2" },
        { "none, in Slurm's word", GPUS("None", "2"), "gres/gpu=2" },
        { "another gres", GPUS("gres/fpga=1", "2"), "gres/fpga=1,gres/gpu=2" },
        { "fewer", GPUS("gres/gpu=1", "2"), "gres/gpu=2" },
        { "nothing of them", GPUS("gres/gpu=0", "2"), "gres/gpu=2" },
        { "in the old form", GPUS("gres:gpu:1", "2"), "gres/gpu=2" },
        { "without a count", GPUS("gpu", "2"), "gres/gpu=2" },
        { "fewer of a type", GPUS("gpu:h100:1", "2"), "gres/gpu:h100=2" },
        { "types add up", GPUS("gpu:a:1,gpu:b:1", "2"), "gpu:a:1,gpu:b:1" },
        { "more is as good", GPUS("gpu:h100:4", "2"), "gpu:h100:4" },
        { "thousands are more", GPUS("gpu:2k", "2000"), "gpu:2k" },
        { "not with a sign", GPUS("gres/gpu=-1", "2"), "gres/gpu=2" },
        { "the last of two counts", GPUS("gpu:2,gpu:0", "2"), "gres/gpu=2" },
        { "in any letters", GPUS("gpu:2,GPU:0", "2"), "gres/GPU=2" },
        { "pods without devices take what they name", GPUS("gpu:1", "0"), "gpu:1" },
    };

    RIG_CHECK(rows, rig_write_amounts);
}

/* ---- the workload ---- */

static void the_workload_decides_the_shape(void **state)
{
    static const struct rig_row rows[] = {
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

    RIG_CHECK(rows, write_shape);
}

static void a_job_s_own_limits_count_where_its_pods_say_nothing(void **state)
{
    static const struct rig_row rows[] = {
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

    RIG_CHECK(rows, rig_write_amounts);
}

/* ---- gangs ---- */

#define MI (INT64_C(1) << 20)

static void the_pods_of_a_gang_have_a_node_each(void **state)
{
    static const struct rig_row rows[] = {
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
        { "a claim that is not there yet",
          { .is_gang = true,
            .pods = { C("{}"), "resourceClaims: [{name: g, resourceClaimName: g}], " C("{}") } },
          "refused: pod pod-1: resourceclaim \"g\" is not there yet" },
        { "more than it may have",
          { .is_gang = true, .annotations = S "min-nodes: '3'", .pods = { C("{}"), C("{}") } },
          "refused: wants at least 3 nodes, and at most 2: see the annotations min-nodes and "
          "max-nodes" },
        { "amounts are the largest over the pods",
          { .is_gang = true,
            .pods = { C(ASK("cpu: 4, memory: 1Mi")), C(LIMIT("memory: 9Mi, nvidia.com/gpu: 1")) } },
          "pod-0 nodes=2 min=2 max=2 tasks=1 cpus=4 memory=9 gres/gpu=1" },
    };

    RIG_CHECK(rows, write_all);
}

#define POD  C(ASK("cpu: 2, memory: 100Mi"))
#define PORT "containers: [{name: c, ports: [{containerPort: 80, hostPort: 80}]}]"

static void pods_of_a_gang_share_nodes_when_it_may_not_have_enough(void **state)
{
    static const struct rig_row rows[] = {
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
        { "a port of the node is taken once",
          { .is_gang = true,
            .annotations = S "max-nodes: '2'",
            .pods = { C("{}"), PORT, PORT, PORT } },
          "refused: 3 pods take port 80 of their nodes, and they may have at most 2 nodes: see the "
          "annotation max-nodes" },
        { "by no more pods than there are nodes",
          { .is_gang = true,
            .annotations = S "max-nodes: '2'",
            .pods = { C("{}"), C("{}"), PORT, PORT } },
          "pod-0 nodes=4 min=2 max=2 tasks=2 of=4" },
        { "memory by annotation is the node's",
          { .config = "{sharedNodes: true}",
            .is_gang = true,
            .annotations = S "max-nodes: '1', " S "mem-per-node: 100Mi",
            .pods = { POD, POD } },
          "pod-0 nodes=2 min=1 max=1 tasks=2 of=2 cpus=2 memory=200" },
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
        { "none at all says nothing",
          { .is_gang = true,
            .annotations = S "max-nodes: '1', " S "gres: ''",
            .pods = { C(LIMIT("nvidia.com/gpu: 2")), C("{}") } },
          "pod-0 nodes=2 min=1 max=1 tasks=2 of=2 each gres/gpu=2" },
        { "those of all pods on the node",
          { .is_gang = true,
            .annotations = S "max-nodes: '1', " S "gres: 'gres/gpu:h100=1'",
            .pods = { C(LIMIT("nvidia.com/gpu: 2")), C("{}") } },
          "pod-0 nodes=2 min=1 max=1 tasks=2 of=2 gres/gpu:h100=4" },
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

    RIG_CHECK(rows, write_all);
}

static void what_a_group_needs_in_all_counts_where_its_pods_say_nothing(void **state)
{
    static const struct rig_row rows[] = {
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

    RIG_CHECK(rows, rig_write_amounts);
}

/* ---- all of it ---- */

/* The example of the contract: what a bare pod sends. */
static void a_bare_pod_sends_what_it_always_sent(void **state)
{
    const struct rig_given given = { .pods = { C(ASK("cpu: 2, memory: 100Mi")) } };
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *want = NULL, *sent = NULL;
    struct job_desc desc;
    struct rig_scene scene;

    rig_scene_init(&scene, &given);
    assert_int_equal(rig_translated(&scene, &desc, NULL), 0);
    assert_int_equal(
        json_parse(STR("{\"name\":\"pod-0\",\"cpus_per_task\":2,"
                       "\"current_working_directory\":\"/tmp\",\"flags\":[\"EXTERNAL_JOB\"],"
                       "\"maximum_nodes\":1,\"mcs_label\":\"kubernetes\",\"memory_per_node\":"
                       "{\"number\":100,\"set\":true},\"nodes\":\"1\","
                       "\"partition\":\"slurm-bridge\","
                       "\"shared\":[\"none\"],\"tasks_per_node\":1}"),
                   10000, &want, NULL),
        0);
    sent = json_freeze(job_desc_json(build, &desc));
    assert_true(json_equal(json_root(sent), json_root(want)));
    rig_scene_done(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpus_and_memory_are_the_largest_of_requests_and_limits),
        cmocka_unit_test(devices_become_one_list_per_node),
        cmocka_unit_test(a_job_gets_at_least_what_its_pods_request),
        cmocka_unit_test(the_workload_decides_the_shape),
        cmocka_unit_test(a_job_s_own_limits_count_where_its_pods_say_nothing),
        cmocka_unit_test(the_pods_of_a_gang_have_a_node_each),
        cmocka_unit_test(pods_of_a_gang_share_nodes_when_it_may_not_have_enough),
        cmocka_unit_test(what_a_group_needs_in_all_counts_where_its_pods_say_nothing),
        cmocka_unit_test(a_bare_pod_sends_what_it_always_sent),
    };

    return cmocka_run_group_tests_name("translate", tests, rig_up, rig_down);
}
