/* test_filter.c - what nodes say by themselves: taints, labels, ports, resources; and how sets
 * are kept and told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "filter_rig.h"

enum { MANY_CHANGES = 1000 }; /* more than a view remembers one by one */

#define TWO "{node: n1, labels: {disk: ssd, gen: '3'}}, {node: n2}"

static void taints_that_are_not_tolerated_exclude(void **state)
{
    static const struct rig_case cases[] = {
        { "no taint", "[" TWO "]", "{pod: p}", "", "" },
        { "untolerated",
          "[{node: n1, taints: [{key: a, value: x, effect: NoSchedule}]}, {node: n2}]", "{pod: p}",
          "n1", "1 node(s) had untolerated taint(s)" },
        { "execute too", "[{node: n1, taints: [{key: a, effect: NoExecute}]}]", "{pod: p}", "n1",
          NULL },
        { "a preference is none", "[{node: n1, taints: [{key: a, effect: PreferNoSchedule}]}]",
          "{pod: p}", "", "" },
        { "tolerated", "[{node: n1, taints: [{key: a, value: x, effect: NoSchedule}]}]",
          "{pod: p, spec: {tolerations: [{key: a, value: x}]}}", "", "" },
        { "another value", "[{node: n1, taints: [{key: a, value: x, effect: NoSchedule}]}]",
          "{pod: p, spec: {tolerations: [{key: a, value: y}]}}", "n1", NULL },
        { "any value", "[{node: n1, taints: [{key: a, value: x, effect: NoSchedule}]}]",
          "{pod: p, spec: {tolerations: [{key: a, operator: Exists}]}}", "", NULL },
        { "any taint", "[{node: n1, taints: [{key: a, value: x, effect: NoSchedule}]}]",
          "{pod: p, spec: {tolerations: [{operator: Exists}]}}", "", NULL },
        { "another effect", "[{node: n1, taints: [{key: a, effect: NoSchedule}]}]",
          "{pod: p, spec: {tolerations: [{key: a, operator: Exists, effect: NoExecute}]}}", "n1",
          NULL },
        { "one of two",
          "[{node: n1, taints: [{key: a, effect: NoSchedule}, {key: b, effect: "
          "NoSchedule}]}]",
          "{pod: p, spec: {tolerations: [{key: a, operator: Exists}]}}", "n1", NULL },
        { "ours",
          "[{node: n1, taints: [{key: ours, effect: "
          "NoExecute}]}]",
          "{pod: p}", "", NULL },
        { "of another bridge",
          "[{node: n1, taints: [{key: theirs, effect: "
          "NoExecute}]}]",
          "{pod: p}", "n1", NULL },
        { "a node under pressure",
          "[{node: n1, taints: [{key: node.kubernetes.io/disk-pressure, effect: NoSchedule}]}, "
          "{node: n2, taints: [{key: node.kubernetes.io/memory-pressure, effect: NoSchedule}]}, "
          "{node: n3, taints: [{key: node.kubernetes.io/pid-pressure, effect: NoSchedule}]}, "
          "{node: n4, taints: [{key: node.kubernetes.io/network-unavailable, effect: "
          "NoSchedule}]}]",
          "{pod: p}", "n[1-4]", "4 node(s) had untolerated taint(s)" },
        { "pressure is tolerated as any taint",
          "[{node: n1, taints: [{key: node.kubernetes.io/memory-pressure, effect: NoSchedule}]}]",
          "{pod: p, spec: {tolerations: [{key: node.kubernetes.io/memory-pressure, operator: "
          "Exists}]}}",
          "", "" },
        { "how the node is, is Slurm's to know",
          "[{node: n1, taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}, {key: "
          "node.kubernetes.io/not-ready, effect: NoExecute}]}]",
          "{pod: p}", "", NULL },
    };

    RIG_RUN(cases);
}

static void only_nodes_that_have_a_name_count(void **state)
{
    struct rig *rig = rig_new();
    const struct kube_pod *pod = rig_waiting(rig, "{pod: p, needs: {cpu: 100}}");
    const struct filter_set *set;

    rig_put(rig, "[{node: n1}, {node: n2, lent: false}, {node: n3, labels: {name: x7}}]");
    set = filter_nodes(rig->filter, pod);
    assert_string_equal(set->excluded, "n1,x7");
    assert_int_equal(set->total, 2);
    assert_int_equal(set->fit, 0);
    assert_string_equal(set->why, "2 Insufficient cpu");
    kube_object_unref(&pod->object);
    rig_free(rig);
}

#define AFFINITY(terms)                                                                            \
    "{pod: p, spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "   \
    "{nodeSelectorTerms: [" terms "]}}}}}"

static void node_selectors_and_affinity_exclude(void **state)
{
    static const char *const mismatch = "1 node(s) didn't match Pod's node affinity/selector";
    const struct rig_case cases[] = {
        { "selector", "[" TWO "]", "{pod: p, spec: {nodeSelector: {disk: ssd}}}", "n2", mismatch },
        { "all of it", "[" TWO "]", "{pod: p, spec: {nodeSelector: {disk: ssd, gen: '4'}}}",
          "n[1-2]", NULL },
        { "in", "[" TWO "]",
          AFFINITY("{matchExpressions: [{key: disk, operator: In, values: [hdd, ssd]}]}"), "n2",
          mismatch },
        { "not in", "[" TWO "]",
          AFFINITY("{matchExpressions: [{key: disk, operator: NotIn, values: [ssd]}]}"), "n1",
          mismatch },
        { "greater", "[" TWO "]",
          AFFINITY("{matchExpressions: [{key: gen, operator: Gt, values: ['2']}]}"), "n2",
          mismatch },
        { "terms are alternatives", "[" TWO "]",
          AFFINITY("{matchExpressions: [{key: gen, operator: Gt, values: ['9']}]}, {matchFields: "
                   "[{key: metadata.name, operator: In, values: [n2]}]}"),
          "n1", mismatch },
        { "both", "[" TWO "]",
          "{pod: p, spec: {nodeSelector: {disk: ssd}, affinity: {nodeAffinity: "
          "{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
          "[{matchExpressions: [{key: disk, operator: DoesNotExist}]}]}}}}}",
          "n[1-2]", NULL },
        { "a preference is none", "[" TWO "]",
          "{pod: p, spec: {affinity: {nodeAffinity: "
          "{preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: "
          "{matchExpressions: [{key: disk, operator: Exists}]}}]}}}}",
          "", "" },
        { "a term that cannot be read matches nothing", "[" TWO "]",
          AFFINITY("{matchExpressions: [{key: gen, operator: Gt, values: [x]}]}"), "n[1-2]", NULL },
    };

    RIG_RUN(cases);
}

static void resources_above_what_a_node_has_exclude(void **state)
{
    static const struct rig_case cases[] = {
        { "fits exactly", "[{node: n1, has: {cpu: 4}}]", "{pod: p, needs: {cpu: 4}}", "", "" },
        { "too big", "[{node: n1, has: {cpu: 4}}]", "{pod: p, needs: {cpu: 4001m}}", "n1",
          "1 Insufficient cpu" },
        { "memory", "[{node: n1, has: {memory: 1Gi}}]", "{pod: p, needs: {memory: 1025Mi}}", "n1",
          "1 Insufficient memory" },
        { "ephemeral storage", "[{node: n1}]", "{pod: p, needs: {ephemeral-storage: 11Gi}}", "n1",
          "1 Insufficient ephemeral-storage" },
        { "devices", "[{node: n1, has: {x.io/gpu: 2}}, {node: n2}]",
          "{pod: p, needs: {x.io/gpu: 1}}", "n2", "1 Insufficient x.io/gpu" },
        { "more devices", "[{node: n1, has: {x.io/gpu: 2}}]", "{pod: p, needs: {x.io/gpu: 3}}",
          "n1", NULL },
        { "devices of a class are Slurm's to count", "[{node: n1}]",
          "{pod: p, needs: {deviceclass.resource.kubernetes.io/gpu.nvidia.com: 3}}", "", "" },
        { "less what others take",
          "[{node: n1, has: {cpu: 4}}, {pod: a, by: x, at: n1, needs: {cpu: 100m}}]",
          "{pod: p, needs: {cpu: 4}}", "n1", "1 Insufficient cpu" },
        { "others' devices",
          "[{node: n1, has: {a: 1, x.io/gpu: 2}}, {pod: a, by: x, at: n1, needs: {x.io/gpu: 1}}]",
          "{pod: p, needs: {x.io/gpu: 2}}", "n1", NULL },
        { "those that have ended take nothing",
          "[{node: n1, has: {cpu: 4}}, {pod: a, by: x, at: n1, needs: {cpu: 4}, status: {phase: "
          "Succeeded}}]",
          "{pod: p, needs: {cpu: 4}}", "", "" },
        { "what ours take is Slurm's to judge",
          "[{node: n1, has: {cpu: 4}}, {pod: a, at: n1, needs: {cpu: 4}}]",
          "{pod: p, needs: {cpu: 4}}", "", "" },
        { "who asks for nothing fits a full node",
          "[{node: n1, has: {cpu: 4}}, {pod: a, by: x, at: n1, needs: {cpu: 8}}]", "{pod: p}", "",
          "" },
        { "too many pods",
          "[{node: n1, has: {pods: 2}}, {pod: a, at: n1}, {pod: b, by: x, at: n1}]", "{pod: p}",
          "n1", "1 Too many pods" },
    };

    RIG_RUN(cases);
}

#define PORT(rest) "{pod: p, spec: {containers: [{ports: [{containerPort: 80, " rest "}]}]}}"
#define HAS_PORT(rest)                                                                             \
    "[{node: n1}, {node: n2}, {pod: a, at: n1, spec: {containers: [{ports: [{containerPort: 1, "   \
    "hostPort: 8080" rest "}]}]}}]"

static void host_ports_are_taken_once(void **state)
{
    static const char *const words = "1 node(s) didn't have free ports for the requested pod ports";
    const struct rig_case cases[] = {
        { "the same", HAS_PORT(""), PORT("hostPort: 8080"), "n1", words },
        { "another", HAS_PORT(""), PORT("hostPort: 8081"), "", "" },
        { "none", HAS_PORT(""), PORT("name: x"), "", "" },
        { "another protocol", HAS_PORT(""), PORT("hostPort: 8080, protocol: UDP"), "", "" },
        { "same other protocol", HAS_PORT(", protocol: UDP"), PORT("hostPort: 8080, protocol: UDP"),
          "n1", words },
        { "another address", HAS_PORT(", hostIP: 10.0.0.1"),
          PORT("hostPort: 8080, hostIP: 10.0.0.2"), "", "" },
        { "the same address", HAS_PORT(", hostIP: 10.0.0.1"),
          PORT("hostPort: 8080, hostIP: 10.0.0.1"), "n1", words },
        { "every address", HAS_PORT(", hostIP: 10.0.0.1"), PORT("hostPort: 8080, hostIP: 0.0.0.0"),
          "n1", words },
        { "on the host's network",
          "[{node: n1}, {pod: a, by: x, at: n1, spec: {hostNetwork: true, containers: [{ports: "
          "[{containerPort: 9100}]}]}}]",
          PORT("hostPort: 9100"), "n1", words },
        { "of a sidecar, not of an init container",
          "[{node: n1}, {node: n2}, {pod: a, by: x, at: n1, spec: {containers: [{}], "
          "initContainers: "
          "[{restartPolicy: Always, ports: [{hostPort: 7}]}]}}, {pod: b, by: x, at: n2, spec: "
          "{containers: [{}], initContainers: [{ports: [{hostPort: 7}]}]}}]",
          PORT("hostPort: 7"), "n1", words },
    };

    RIG_RUN(cases);
}

static void a_pod_about_to_be_bound_is_held_against_all_that_is_there(void **state)
{
    struct rig *rig = rig_new();

    rig_put(rig, "[{node: n1, has: {cpu: 4, x.io/gpu: 2}, taints: [{key: t, effect: NoSchedule}]}, "
                 "{node: n2, has: {cpu: 4, x.io/gpu: 2}}, {pod: a, at: n2, needs: {cpu: 2, "
                 "x.io/gpu: 1}}, {pod: d, by: x, at: n2, needs: {cpu: 200m}}]");
    assert_null(rig_misfit(rig, "{pod: p, needs: {cpu: 1}}", "n2"));
    assert_string_equal(rig_misfit(rig, "{pod: p, needs: {cpu: 2}}", "n2"), "Insufficient cpu");
    assert_string_equal(rig_misfit(rig, "{pod: p, needs: {x.io/gpu: 2}}", "n2"),
                        "Insufficient x.io/gpu");
    assert_string_equal(rig_misfit(rig, "{pod: p}", "n1"), "node(s) had untolerated taint(s)");
    /* it is there itself already, predicted */
    assert_null(rig_misfit(rig, "{pod: a, needs: {cpu: 3}}", "n2"));
    /* being deleted, and its containers have ended */
    rig_put(rig, "[{pod: a, at: n2, ending: true, needs: {cpu: 2}, status: {containerStatuses: "
                 "[{state: {terminated: {}}}]}}]");
    assert_null(rig_misfit(rig, "{pod: p, needs: {cpu: 2}}", "n2"));
    rig_free(rig);
}

static void a_set_follows_nodes_and_pods(void **state)
{
    static const char *const pod = "{pod: p, needs: {cpu: 4}, spec: {nodeSelector: {a: b}}}";
    struct rig *rig = rig_new();

    rig_expect(rig, "nothing there", pod, "", "");
    rig_put(rig, "[{node: n1, labels: {a: b}}, {node: n2}]");
    rig_expect(rig, "two", pod, "n2", NULL);
    rig_put(rig, "[{node: n2, labels: {a: b}}]");
    rig_expect(rig, "labelled", pod, "", "");
    rig_put(rig, "[{node: n2, labels: {a: b, name: s2}, has: {cpu: 2}}]");
    rig_expect(rig, "smaller, under another name", pod, "s2", "1 Insufficient cpu");
    rig_put(rig, "[{pod: d, by: x, at: n1, needs: {cpu: 7}}]");
    rig_expect(rig, "others came", pod, "n1,s2", "2 Insufficient cpu");
    rig_drop(rig, RIG_OTHERS, "d", "d");
    rig_drop(rig, RIG_NODES, "", "n2");
    rig_expect(rig, "and went", pod, "", "");
    /* another node in the slot of the one that went, with the same result */
    rig_put(rig, "[{node: m3}]");
    rig_expect(rig, "new", pod, "m3", NULL);
    rig_drop(rig, RIG_NODES, "", "m3");
    rig_put(rig, "[{node: m4}]");
    rig_expect(rig, "replaced", pod, "m4", NULL);
    rig_free(rig);
}

static uint64_t result_of(struct rig *rig, const char *text)
{
    const struct kube_pod *pod = rig_waiting(rig, text);
    uint64_t result = filter_version(rig->filter, pod);

    kube_object_unref(&pod->object);
    return result;
}

static void a_set_follows_a_node_that_changed_long_ago(void **state)
{
    static const char *const gpus[] = { "[{node: n2, has: {gpu: 1}}]",
                                        "[{node: n2, has: {gpu: 2}}]" };
    const char *pod = "{pod: p, needs: {cpu: 6}}";
    struct rig *rig = rig_new();

    rig_put(rig, "[{node: n1}, {node: n2}]");
    rig_expect(rig, "both", pod, "", "");
    rig_put(rig, "[{node: n1, has: {cpu: 4}}]");
    for (unsigned i = 0; i < MANY_CHANGES; i++)
        rig_put(rig, gpus[i % 2]);
    rig_expect(rig, "one became too small", pod, "n1", "1 Insufficient cpu");
    rig_free(rig);
}

static void a_result_is_another_only_when_other_nodes_fit(void **state)
{
    static const char *const pod = "{pod: p, needs: {cpu: 4}}";
    static const char *const small = "{pod: q, needs: {cpu: 1}}";
    struct rig *rig = rig_new();
    uint64_t before, of_small;

    rig_put(rig, "[{node: n1, has: {cpu: 8}}, {node: n2, has: {cpu: 8}}]");
    before = result_of(rig, pod);
    of_small = result_of(rig, small);
    rig_put(rig, "[{pod: d, by: x, at: n1, needs: {cpu: 2}}]");
    assert_int_equal(result_of(rig, pod), before);
    rig_put(rig, "[{pod: e, by: x, at: n1, needs: {cpu: 4}}]");
    assert_int_not_equal(result_of(rig, pod), before);
    assert_int_equal(result_of(rig, small), of_small);
    before = result_of(rig, pod);
    rig_drop(rig, RIG_OTHERS, "d", "e"); /* nothing was asked of it meanwhile */
    assert_int_not_equal(result_of(rig, pod), before);
    before = result_of(rig, pod);
    rig_put(rig, "[{node: n3, has: {cpu: 8}}]");
    assert_int_not_equal(result_of(rig, pod), before);
    rig_free(rig);
}

static void pods_that_were_there_before_their_node_count(void **state)
{
    struct rig *rig = rig_new();

    rig_put(rig,
            "[{pod: d, by: x, at: n1, needs: {cpu: 7}, spec: {containers: [{ports: [{hostPort: "
            "1}], resources: {requests: {cpu: 7}}}]}}, {node: n1}]");
    rig_expect(rig, "cpu", "{pod: p, needs: {cpu: 2}}", "n1", "1 Insufficient cpu");
    rig_expect(rig, "port", "{pod: p, spec: {containers: [{ports: [{hostPort: 1}]}]}}", "n1", NULL);
    rig_free(rig);
}

static void what_decides_nothing_is_no_news(void **state)
{
    struct rig *rig = rig_new();
    unsigned calls = 0;

    rig_put(rig, "[{node: n1, has: {pods: 3}}]");
    filter_listen(rig->filter, rig_count_call, &calls);
    rig_put(rig, "[{node: n1, has: {pods: 3}, annotations: {a: b}}, {pod: a, at: n1, needs: {cpu: "
                 "1}}, {pod: a, at: n1, needs: {cpu: 1}, status: {phase: Running}}, {pod: b}]");
    assert_int_equal(calls, 0);
    rig_put(rig, "[{pod: b, at: n1}, {pod: c, at: n1}]"); /* now it is full */
    assert_int_equal(calls, 1);
    rig_put(rig, "[{node: n1, has: {pods: 4}}]");
    assert_int_equal(calls, 2);
    rig_put(rig, "[{pod: x, by: other, at: n1, needs: {cpu: 1}}]");
    assert_int_equal(calls, 3);
    rig_free(rig);
}

static void missing_caches_object_to_nothing(void **state)
{
    struct rig *rig = rig_new_but((1U << RIG_CACHES) - 1);
    const struct kube_object *node;

    rig_put(rig, "[{node: n1, taints: [{key: a, effect: NoSchedule}]}]");
    rig_expect(rig, "nothing is known",
               "{pod: p, needs: {cpu: 100}, spec: {volumes: [{persistentVolumeClaim: {claimName: "
               "c}}]}}",
               "", "");
    node = kube_cache_get(rig->caches[RIG_NODES], "", "n1");
    assert_non_null(node);
    assert_null(rig_misfit(rig, "{pod: p}", "n1"));
    rig_free(rig);
}

static void what_only_the_user_of_the_filter_knows_may_change(void **state)
{
    struct rig *rig = rig_new();
    const char *needy = "{pod: p, labels: {needy: x}}", *device = "{pod: p, needs: {x.io/gpu: 1}}";

    rig_put(rig, "[{node: n1}, {node: n2}]");
    rig_expect(rig, "no node", needy, "n[1-2]", "2 node(s) have no such thing");
    rig_expect(rig, "who needs nothing", "{pod: p}", "", "");
    rig->with_need = "n2";
    filter_node_changed(rig->filter, "n2");
    filter_node_changed(rig->filter, "unknown");
    rig_expect(rig, "one node", needy, "n1", "1 node(s) have no such thing");
    rig_expect(rig, "a resource", device, "n[1-2]", NULL);
    rig->ignored = "x.io/gpu";
    filter_resources_changed(rig->filter);
    rig_expect(rig, "no resource", device, "", "");
    rig_free(rig);
}

static void a_node_whose_next_device_is_out_is_left_out_and_no_misfit(void **state)
{
    struct rig *rig = rig_new();
    const char *needy = "{pod: p, labels: {needs-device: x}}";

    rig_put(rig, "[{node: n1}, {node: n2}]");
    rig_expect(rig, "both", needy, "", "");
    rig->with_device_out = "n2";
    filter_node_changed(rig->filter, "n2");
    rig_expect(rig, "one", needy, "n2", "1 node(s) would give a device that is tainted or gone");
    rig_expect(rig, "who needs none", "{pod: p}", "", "");
    assert_null(rig_misfit(rig, needy, "n2")); /* it was given another one */
    rig->with_device_out = NULL;
    filter_node_changed(rig->filter, "n2");
    rig_expect(rig, "both again", needy, "", "");
    rig_free(rig);
}

static void the_classes_that_are_kept_are_bounded(void **state)
{
    struct rig *rig = rig_new();

    rig_put(rig, "[{node: n1, has: {cpu: 4}}]");
    for (unsigned i = 0; i < 2 * FILTER_MAX_CLASSES + 10; i++) {
        char text[64];

        (void)snprintf(text, sizeof(text), "{pod: p, needs: {cpu: %u}}", i % 1500);
        rig_expect(rig, text, text, i % 1500 > 4 ? "n1" : "", NULL);
    }
    rig_free(rig);
}

static uint64_t version_of_class(struct rig *rig, unsigned i)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "{pod: p, needs: {cpu: %u}}", i);
    return result_of(rig, text);
}

static void a_class_that_is_made_again_has_its_version(void **state)
{
    enum { MANY = 1500 };
    struct rig *rig = rig_new();
    uint64_t *versions = mem_alloc_array(MANY, sizeof(*versions));

    rig_put(rig, "[{node: n1, has: {cpu: 400}}, {node: n2, has: {cpu: 800}}]");
    for (unsigned i = 0; i < MANY; i++)
        versions[i] = version_of_class(rig, i);
    assert_int_not_equal(versions[300], versions[600]);
    rig_put(rig, "[{node: n2, has: {cpu: 800, x.io/gpu: 1}}]"); /* which no pod asks for */
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(version_of_class(rig, i), versions[i]);
    mem_free(versions);
    rig_free(rig);
}

static void that_classes_were_forgotten_is_told_once(void **state)
{
    struct rig *rig = rig_new();
    unsigned calls = 0;

    rig_put(rig, "[{node: n1, has: {cpu: 4}}]");
    for (unsigned i = 0; i < FILTER_MAX_CLASSES + 10; i++)
        (void)version_of_class(rig, i);
    filter_listen(rig->filter, rig_count_call, &calls);
    rig_put(rig, "[{pod: a, at: n1}]");
    assert_int_equal(calls, 1);
    rig_put(rig, "[{pod: b, at: n1}]");
    assert_int_equal(calls, 1);
    filter_resources_changed(rig->filter);
    assert_int_equal(calls, 2);
    rig_put(rig, "[{pod: c, at: n1}]");
    assert_int_equal(calls, 2);
    rig_free(rig);
}

static void what_cannot_be_read_is_said(void **state)
{
    struct rig *rig = rig_new();

    rig_put(rig, "[{node: n1}]");
    rig_expect(rig, "selector",
               "{pod: p, spec: {affinity: {podAffinity: "
               "{requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, "
               "labelSelector: {matchExpressions: [{key: a, operator: Like}]}}]}}}}",
               "n1", NULL);
    rig_expect(rig, "affinity",
               "{pod: p, spec: {affinity: {nodeAffinity: "
               "{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: x}}}}}",
               "n1", "the pod's node affinity cannot be read: nodeSelectorTerms is not an array");
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taints_that_are_not_tolerated_exclude),
        cmocka_unit_test(only_nodes_that_have_a_name_count),
        cmocka_unit_test(node_selectors_and_affinity_exclude),
        cmocka_unit_test(resources_above_what_a_node_has_exclude),
        cmocka_unit_test(host_ports_are_taken_once),
        cmocka_unit_test(a_pod_about_to_be_bound_is_held_against_all_that_is_there),
        cmocka_unit_test(a_set_follows_nodes_and_pods),
        cmocka_unit_test(a_set_follows_a_node_that_changed_long_ago),
        cmocka_unit_test(a_result_is_another_only_when_other_nodes_fit),
        cmocka_unit_test(pods_that_were_there_before_their_node_count),
        cmocka_unit_test(what_decides_nothing_is_no_news),
        cmocka_unit_test(missing_caches_object_to_nothing),
        cmocka_unit_test(what_only_the_user_of_the_filter_knows_may_change),
        cmocka_unit_test(a_node_whose_next_device_is_out_is_left_out_and_no_misfit),
        cmocka_unit_test(the_classes_that_are_kept_are_bounded),
        cmocka_unit_test(a_class_that_is_made_again_has_its_version),
        cmocka_unit_test(that_classes_were_forgotten_is_told_once),
        cmocka_unit_test(what_cannot_be_read_is_said),
    };

    return cmocka_run_group_tests_name("filter", tests, NULL, NULL);
}
