/* test_kinds.c - what the bridge reads of pods and nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kube/kinds.h"

#include <inttypes.h>

enum { MAX = 1 << 22 };

#define HEAD "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\"},"

static int decode(const struct kube_kind *kind, const char *text,
                  const struct kube_object **ret_object, struct err *err)
{
    auto_json_doc struct json_doc *doc = NULL;

    if (json_parse(str_of(text), MAX, &doc, err) < 0)
        fail_msg("%s: %s", text, err->text);
    return kube_object_decode(kind, json_root(doc), ret_object, err);
}

static const struct kube_object *decoded(const struct kube_kind *kind, const char *text)
{
    const struct kube_object *object = NULL;
    struct err err = { 0 };

    if (decode(kind, text, &object, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return object;
}

static void write_requests(const struct kube_requests *requests, struct buf *out)
{
    buf_printf(out, "%" PRId64 " %" PRId64 " %" PRId64, requests->cpu_milli, requests->memory,
               requests->ephemeral);
    for (unsigned i = 0; i < requests->extended.count; i++)
        buf_printf(out, " %s=%" PRId64, requests->extended.at[i].name,
                   requests->extended.at[i].amount);
}

#define REQUESTS(list) "{\"resources\":{\"requests\":{" list "}}}"
#define SIDECAR(list)  "{\"restartPolicy\":\"Always\",\"resources\":{\"requests\":{" list "}}}"

static void the_request_of_a_pod_is_that_of_kubernetes(void **state)
{
    static const struct {
        const char *spec, *want; /* cpu in thousandths, memory, ephemeral storage, others */
    } cases[] = {
        { "\"containers\":[]", "0 0 0" },
        { "\"containers\":[{}]", "0 0 0" },
        { "\"containers\":[" REQUESTS("\"cpu\":\"250m\",\"memory\":\"64Mi\"") "," REQUESTS(
              "\"cpu\":\"1\",\"memory\":\"1Gi\",\"ephemeral-storage\":\"10M\"") "]",
          "1250 1140850688 10000000" },
        /* the larger of the containers together and one init container */
        { "\"containers\":[" REQUESTS(
              "\"cpu\":\"1\",\"memory\":\"10\"") "],\"initContainers\":"
                                                 "[" REQUESTS(
                                                     "\"cpu\":"
                                                     "\"3\"") "," REQUESTS("\"cpu\":\"2\","
                                                                           "\"memory\":\"20\"") "]",
          "3000 20 0" },
        /* a sidecar runs beside the containers */
        { "\"containers\":[" REQUESTS("\"cpu\":\"1\"") "],\"initContainers\":[" SIDECAR(
              "\"cpu\":\"500m\"") "]",
          "1500 0 0" },
        /* and beside the init containers that start after it, not before */
        { "\"containers\":[" REQUESTS("\"cpu\":\"1\"") "],\"initContainers\":[" REQUESTS(
              "\"cpu\":\"4\"") "," SIDECAR("\"cpu\":\"500m\"") "]",
          "4000 0 0" },
        { "\"containers\":[" REQUESTS("\"cpu\":\"1\"") "],\"initContainers\":[" SIDECAR(
              "\"cpu\":\"500m\"") "," REQUESTS("\"cpu\":\"4\"") "," SIDECAR("\"cpu\":\"1\"") "]",
          "4500 0 0" },
        /* pod-level resources replace the sums of cpu, memory and huge pages alone */
        { "\"containers\":[" REQUESTS(
              "\"cpu\":\"1\",\"x.io/d\":\"2\"") "],\"resources\":{\"requests\":{"
                                                "\"cpu\":\"5\",\"hugepages-2Mi\":\"4Mi\",\"x.io/"
                                                "d\":\"9\"}}",
          "5000 0 0 hugepages-2Mi=4194304 x.io/d=2" },
        { "\"containers\":[" REQUESTS(
              "\"memory\":\"5\"") "],\"resources\":{\"limits\":{\"cpu\":\"5\"}}",
          "0 5 0" },
        /* overhead comes on top */
        { "\"containers\":[" REQUESTS(
              "\"cpu\":\"1\"") "],\"overhead\":{\"cpu\":\"100m\",\"memory\":"
                               "\"1Ki\"},\"resources\":{\"requests\":{\"cpu\":\"2\"}}",
          "2100 1024 0" },
        /* devices, in the order of their names */
        { "\"containers\":[" REQUESTS(
              "\"nvidia.com/gpu\":\"1\",\"amd.com/gpu\":\"2\"") "," REQUESTS("\"nvidia.com/"
                                                                             "gpu\":\"3\"") "]",
          "0 0 0 amd.com/gpu=2 nvidia.com/gpu=4" },
        /* rounded up once, at the end */
        { "\"containers\":[" REQUESTS("\"cpu\":\"1u\",\"memory\":\"1500m\"") "," REQUESTS(
              "\"memory\":\"1500m\"") "]",
          "1 3 0" },
        /* no overflow: such a pod fits nowhere */
        { "\"containers\":[" REQUESTS("\"memory\":\"9E\"") "," REQUESTS("\"memory\":\"9E\"") "]",
          "0 9223372036854776 0" },
        { "\"containers\":[" REQUESTS("\"cpu\":2,\"memory\":null") "]", "2000 0 0" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        auto_buf struct buf text = { .max = 10000 }, out = { .max = 10000 };
        const struct kube_object *object;

        buf_printf(&text, HEAD "\"spec\":{%s}}", cases[i].spec);
        object = decoded(&kube_pod_kind, buf_text(&text));
        write_requests(&kube_pod_of(object)->requests, &out);
        if (strcmp(buf_text(&out), cases[i].want) != 0)
            fail_msg("%s: %s, not %s", cases[i].spec, buf_text(&out), cases[i].want);
        kube_object_unref(object);
    }
}

#define LIMITS(list)          "{\"resources\":{\"limits\":{" list "},\"requests\":{\"cpu\":\"1m\"}}}"
#define LIMITED_SIDECAR(list) "{\"restartPolicy\":\"Always\",\"resources\":{\"limits\":{" list "}}}"

static void the_limits_of_a_pod_are_those_of_kubernetes(void **state)
{
    static const struct {
        const char *spec, *want;
    } cases[] = {
        { "\"containers\":[{}]", "0 0 0" },
        { "\"containers\":[" REQUESTS("\"cpu\":\"1\"") "]", "0 0 0" }, /* no limit */
        { "\"containers\":[" LIMITS("\"cpu\":\"1\",\"x.io/d\":\"2\"") "," LIMITS(
              "\"cpu\":\"500m\",\"memory\":\"1Ki\"") "]",
          "1500 1024 0 x.io/d=2" },
        { "\"containers\":[" LIMITS("\"cpu\":\"1\"") "],\"initContainers\":[" LIMITED_SIDECAR(
              "\"cpu\":\"500m\"") "," LIMITS("\"cpu\":\"4\"") "," LIMITED_SIDECAR("\"cpu\":"
                                                                                  "\"1\"") "]",
          "4500 0 0" },
        { "\"containers\":[" LIMITS(
              "\"cpu\":\"1\",\"ephemeral-storage\":\"5\"") "],"
                                                           "\"resources\":{\"limits\":{\"cpu\":"
                                                           "\"9\",\"memory\":\"7\"},"
                                                           "\"requests\":{\"cpu\":\"3\"}}",
          "9000 7 5" },
        /* overhead is no limit where there is none, or where it is 0 */
        { "\"containers\":[" LIMITS("\"cpu\":\"1\",\"memory\":\"0\"") "],\"overhead\":{"
                                                                      "\"cpu\":\"100m\",\"memory\":"
                                                                      "\"1Ki\",\"y.io/d\":\"1\"}",
          "1100 0 0" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        auto_buf struct buf text = { .max = 10000 }, out = { .max = 10000 };
        const struct kube_object *object;

        buf_printf(&text, HEAD "\"spec\":{%s}}", cases[i].spec);
        object = decoded(&kube_pod_kind, buf_text(&text));
        write_requests(&kube_pod_of(object)->limits, &out);
        if (strcmp(buf_text(&out), cases[i].want) != 0)
            fail_msg("%s: %s, not %s", cases[i].spec, buf_text(&out), cases[i].want);
        kube_object_unref(object);
    }
}

static void tolerations_are_kept_compactly(void **state)
{
    const struct kube_object *object =
        decoded(&kube_pod_kind, HEAD
                "\"spec\":{\"tolerations\":["
                "{\"key\":\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\",\"effect\":"
                "\"NoExecute\",\"tolerationSeconds\":300},"
                "{\"key\":\"team\",\"value\":\"blue\",\"effect\":\"NoSchedule\"},"
                "{\"operator\":\"Exists\"},{\"key\":\"n\",\"operator\":\"Gt\",\"value\":\"5\"}]}}");
    const struct kube_pod *pod = kube_pod_of(object);
    const struct kube_toleration *tolerations = pod->tolerations;

    assert_int_equal(pod->toleration_count, 4);
    assert_string_equal(tolerations[0].key, "node.kubernetes.io/not-ready");
    assert_true(tolerations[0].exists);
    assert_int_equal(tolerations[0].effect, KUBE_NO_EXECUTE);
    assert_int_equal(tolerations[0].seconds, 300);
    assert_string_equal(tolerations[1].value, "blue");
    assert_false(tolerations[1].exists);
    assert_int_equal(tolerations[1].effect, KUBE_NO_SCHEDULE);
    assert_int_equal(tolerations[1].seconds, -1);
    assert_string_equal(tolerations[2].key, "");
    assert_int_equal(tolerations[2].effect, KUBE_EFFECT_ANY);
    assert_true(tolerations[3].other);
    assert_false(tolerations[0].other || tolerations[1].other || tolerations[2].other);
    kube_object_unref(object);
}

static void what_matters_for_scheduling_is_there(void **state)
{
    const struct kube_object *object =
        decoded(&kube_pod_kind,
                HEAD "\"spec\":{\"schedulerName\":\"s\",\"priorityClassName\":\"high\","
                     "\"priority\":1000,\"hostname\":\"h\","
                     "\"schedulingGates\":[{\"name\":\"g\"},{\"name\":\"h\"}],"
                     "\"nodeSelector\":{\"z\":\"1\",\"a\":\"2\"}},"
                     "\"status\":{\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\"},"
                     "{\"type\":\"Ready\",\"status\":\"True\"}]}}");
    const struct kube_pod *pod = kube_pod_of(object);

    assert_string_equal(pod->scheduler_name, "s");
    assert_string_equal(pod->priority_class, "high");
    assert_int_equal(pod->priority, 1000);
    assert_string_equal(pod->hostname, "h");
    assert_int_equal(pod->gate_count, 2);
    assert_int_equal(pod->node_selector.count, 2);
    assert_true(str_is(kube_pairs_get(&pod->node_selector, "a", NULL), "2"));
    assert_true(pod->ready);
    kube_object_unref(object);
}

#define RUNNING    "{\"state\":{\"running\":{\"startedAt\":null}}}"
#define TERMINATED "{\"state\":{\"terminated\":{\"exitCode\":0}}}"
#define WAITING    "{\"state\":{\"waiting\":{}}}"

static void a_pod_is_terminated_when_nothing_of_it_runs(void **state)
{
    static const struct {
        const char *statuses;
        bool terminated;
    } cases[] = {
        { "", false }, /* nothing is known */
        { "\"containerStatuses\":null", false },
        { "\"containerStatuses\":[" TERMINATED "]", false }, /* the other one said nothing yet */
        { "\"containerStatuses\":[" TERMINATED "," TERMINATED "]", true },
        { "\"containerStatuses\":[" TERMINATED "," RUNNING "]", false },
        { "\"containerStatuses\":[" TERMINATED "," WAITING "]", false },
        { "\"containerStatuses\":[" TERMINATED ",{}]", false },
        { "\"containerStatuses\":[" TERMINATED "," TERMINATED
          "],\"initContainerStatuses\":[" RUNNING "]",
          false },
        { "\"containerStatuses\":[" TERMINATED "," TERMINATED
          "],\"ephemeralContainerStatuses\":[" RUNNING "]",
          false },
        { "\"containerStatuses\":[" TERMINATED "," TERMINATED
          "],\"initContainerStatuses\":[" TERMINATED "," WAITING "]",
          true },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        auto_buf struct buf text = { .max = 10000 };
        const struct kube_object *object;

        buf_printf(&text, HEAD "\"spec\":{\"containers\":[{},{}]},\"status\":{%s}}",
                   cases[i].statuses);
        object = decoded(&kube_pod_kind, buf_text(&text));
        if (kube_pod_is_terminated(kube_pod_of(object)) != cases[i].terminated)
            fail_msg("%s", cases[i].statuses);
        kube_object_unref(object);
    }
}

static void a_finished_pod_is_known_by_its_phase(void **state)
{
    static const struct {
        const char *phase;
        bool finished;
    } cases[] = { { "Pending", false }, { "Running", false }, { "Succeeded", true },
                  { "Failed", true },   { "Unknown", false }, { "", false } };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct kube_pod pod = { .phase = cases[i].phase };

        assert_int_equal(kube_pod_is_finished(&pod), cases[i].finished);
    }
}

static const char node_text[] =
    HEAD "\"spec\":{\"unschedulable\":true,\"providerID\":\"kind://x\",\"taints\":["
         "{\"key\":\"k\",\"value\":\"v\",\"effect\":\"PreferNoSchedule\"},"
         "{\"key\":\"node.kubernetes.io/unreachable\",\"effect\":\"NoExecute\"}]},"
         "\"status\":{\"allocatable\":{\"cpu\":\"3500m\",\"memory\":\"2Gi\",\"pods\":\"110\","
         "\"ephemeral-storage\":\"1k\",\"nvidia.com/gpu\":\"8\",\"hugepages-1Gi\":\"0\"},"
         "\"addresses\":[{\"type\":\"Hostname\",\"address\":\"h\"},"
         "{\"type\":\"InternalIP\",\"address\":\"10.0.0.1\"},"
         "{\"type\":\"InternalIP\",\"address\":\"fd00::1\"}],"
         "\"conditions\":[{\"type\":\"DiskPressure\",\"status\":\"True\"},"
         "{\"type\":\"Ready\",\"status\":\"True\",\"lastTransitionTime\":\"1970-01-01T00:00:05Z\"}]"
         "}}";

static void a_node_says_what_it_can_hold(void **state)
{
    const struct kube_object *object = decoded(&kube_node_kind, node_text);
    const struct kube_node *node = kube_node_of(object);

    assert_true(node->ready && node->unschedulable);
    assert_int_equal(node->ready_since_us, 5000000);
    assert_int_equal(node->cpu_milli, 3500);
    assert_true(node->memory == INT64_C(2) << 30);
    assert_int_equal(node->pods, 110);
    assert_int_equal(node->ephemeral, 1000);
    assert_int_equal(node->extended.count, 2);
    assert_int_equal(kube_amount_of(&node->extended, "nvidia.com/gpu"), 8);
    assert_int_equal(kube_amount_of(&node->extended, "none"), 0);
    assert_string_equal(node->internal_ip, "10.0.0.1");
    assert_int_equal(node->taint_count, 2);
    assert_string_equal(node->taints[0].value, "v");
    assert_int_equal(node->taints[0].effect, KUBE_PREFER_NO_SCHEDULE);
    assert_int_equal(node->taints[1].effect, KUBE_NO_EXECUTE);
    assert_int_equal(node->condition_count, 1); /* a trouble, while it is one */
    assert_string_equal(node->conditions[0].type, "DiskPressure");
    kube_object_unref(object);
}

static const struct kube_object *patched(const struct kube_object *object, const char *patch)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct kube_object *next = NULL;

    assert_int_equal(json_parse(str_of(patch), MAX, &doc, NULL), 0);
    assert_int_equal(kube_object_patched(object, json_root(doc), &next, NULL), 0);
    return next;
}

static void a_patch_of_a_node_changes_what_it_names(void **state)
{
    const struct kube_object *object = decoded(&kube_node_kind, node_text);
    const struct kube_object *next =
        patched(object, "{\"spec\":{\"unschedulable\":null,\"taints\":[{\"key\":\"new\",\"effect\":"
                        "\"NoSchedule\"}]},\"status\":{\"allocatable\":{\"amd.com/gpu\":\"2\"}}}");
    const struct kube_node *node = kube_node_of(next);

    kube_object_unref(object);
    assert_false(node->unschedulable);
    assert_int_equal(node->taint_count, 1);
    assert_string_equal(node->taints[0].key, "new");
    assert_int_equal(node->extended.count, 3);
    assert_int_equal(kube_amount_of(&node->extended, "amd.com/gpu"), 2);
    assert_int_equal(kube_amount_of(&node->extended, "nvidia.com/gpu"), 8);
    assert_int_equal(node->cpu_milli, 3500);
    assert_true(node->ready);
    assert_string_equal(node->internal_ip, "10.0.0.1");

    object = patched(next, "{\"spec\":{\"taints\":null}}");
    kube_object_unref(next);
    assert_int_equal(kube_node_of(object)->taint_count, 0);
    kube_object_unref(object);
}

static void a_patch_of_a_pod_leaves_its_lists(void **state)
{
    const struct kube_object *object =
        decoded(&kube_pod_kind, HEAD
                "\"spec\":{\"tolerations\":[{\"key\":\"only-this-one\"}],\"containers\":[" REQUESTS(
                    "\"cpu\":\"1\",\"x.io/d\":\"1\"") "]}}");
    const struct kube_object *next =
        patched(object, "{\"spec\":{\"nodeName\":\"n7\",\"schedulingGates\":null}}");
    const struct kube_pod *pod = kube_pod_of(next);

    kube_object_unref(object);
    assert_string_equal(pod->node_name, "n7");
    assert_int_equal(pod->toleration_count, 1);
    assert_string_equal(pod->tolerations[0].key, "only-this-one");
    assert_int_equal(pod->requests.cpu_milli, 1000);
    assert_string_equal(pod->requests.extended.at[0].name, "x.io/d");
    kube_object_unref(next);
}

/* ---- conditions ---- */

static void write_conditions(const struct kube_condition *at, unsigned count, struct buf *out)
{
    for (unsigned i = 0; i < count; i++)
        buf_printf(out, "%s%s=%s,%s,%s", i ? " " : "", at[i].type, at[i].status, at[i].reason,
                   at[i].message);
}

static void assert_conditions(const struct kube_object *pod, const char *want)
{
    auto_buf struct buf out = { .max = 10000 };

    write_conditions(kube_pod_of(pod)->conditions, kube_pod_of(pod)->condition_count, &out);
    assert_string_equal(buf_text(&out), want);
}

#define CONDITIONS(list)      "\"status\":{\"conditions\":[" list "]}}"
#define CONDITION(type, more) "{\"type\":\"" type "\"" more "}"
#define READY                 CONDITION("Ready", ",\"status\":\"True\"")
#define ALLOCATED                                                                                  \
    CONDITION("slinky.slurm.net/Allocated",                                                        \
              ",\"status\":\"False\",\"reason\":\"Resources\",\"message\":\"waits for nodes\"")

static void conditions_of_others_than_kubernetes_are_kept(void **state)
{
    const struct kube_object *object = decoded(
        &kube_pod_kind,
        HEAD CONDITIONS(
            CONDITION("PodScheduled", ",\"status\":\"True\"") "," ALLOCATED "," READY "," CONDITION(
                "x.io/bare", "") ",{\"status\":\"True\"}"));
    const struct kube_pod *pod = kube_pod_of(object);
    const struct kube_condition *found =
        kube_condition_of(pod->conditions, pod->condition_count, "slinky.slurm.net/Allocated");

    assert_conditions(object, "slinky.slurm.net/Allocated=False,Resources,waits for nodes "
                              "x.io/bare=,,");
    assert_true(pod->ready);
    assert_non_null(found);
    assert_string_equal(found->reason, "Resources");
    assert_null(kube_condition_of(pod->conditions, pod->condition_count, "Ready"));
    assert_null(kube_condition_of(NULL, 0, "x"));
    kube_object_unref(object);

    object = decoded(&kube_node_kind,
                     HEAD CONDITIONS(CONDITION("MemoryPressure", "") "," CONDITION(
                         "KernelDeadlock", ",\"status\":\"True\",\"reason\":null") "," READY));
    assert_int_equal(kube_node_of(object)->condition_count, 1);
    assert_string_equal(kube_node_of(object)->conditions[0].type, "KernelDeadlock");
    assert_string_equal(kube_node_of(object)->conditions[0].reason, "");
    assert_true(kube_node_of(object)->ready);
    kube_object_unref(object);
}

static void conditions_of_kubernetes_cost_no_memory(void **state)
{
    const struct kube_object *without = decoded(&kube_pod_kind, HEAD CONDITIONS(""));
    const struct kube_object *with = decoded(
        &kube_pod_kind,
        HEAD CONDITIONS(CONDITION("PodScheduled", ",\"status\":\"True\"") "," CONDITION(
            "DisruptionTarget", "") "," CONDITION("PodReadyToStartContainers", "") "," READY));

    assert_int_equal(with->size, without->size);
    assert_null(kube_pod_of(with)->conditions);
    kube_object_unref(without);
    kube_object_unref(with);
}

static void a_prediction_changes_the_conditions_that_it_names(void **state)
{
    static const struct {
        const char *patch, *want;
        bool ready;
    } rows[] = {
        { "{}", "a=False,R,m b=True,,", true },
        { "{\"status\":{\"phase\":\"Running\"}}", "a=False,R,m b=True,,", true },
        { "{\"status\":{\"conditions\":[]}}", "a=False,R,m b=True,,", true },
        /* named members change, others stay */
        { "{" CONDITIONS(CONDITION("a", ",\"status\":\"True\"")), "a=True,R,m b=True,,", true },
        { "{" CONDITIONS(CONDITION("a", ",\"reason\":null")), "a=False,,m b=True,,", true },
        { "{" CONDITIONS(CONDITION("c", ",\"status\":\"True\"") "," CONDITION(
              "b", ",\"status\":\"False\",\"reason\":\"Later\"")),
          "a=False,R,m b=False,Later, c=True,,", true },
        { "{" CONDITIONS(
              CONDITION("c", ",\"status\":\"True\"") "," CONDITION("c", ",\"status\":\"False\"")),
          "a=False,R,m b=True,, c=False,,", true },
        { "{" CONDITIONS(CONDITION("a", ",\"$patch\":\"delete\"")), "b=True,,", true },
        { "{" CONDITIONS(CONDITION("none", ",\"$patch\":\"delete\"")), "a=False,R,m b=True,,",
          true },
        { "{" CONDITIONS(CONDITION("a", ",\"$patch\":\"delete\"") "," CONDITION(
              "b", ",\"$patch\":\"delete\"")),
          "", true },
        /* ready follows Ready, and nothing else */
        { "{" CONDITIONS(CONDITION("Ready", ",\"status\":\"False\"")), "a=False,R,m b=True,,",
          false },
        { "{" CONDITIONS(CONDITION("Ready", ",\"message\":\"x\"")), "a=False,R,m b=True,,", true },
        { "{\"status\":{\"conditions\":null}}", "", false },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct kube_object *object = decoded(
            &kube_pod_kind,
            HEAD CONDITIONS(CONDITION("a", ",\"status\":\"False\",\"reason\":\"R\",\"message\":"
                                           "\"m\"") "," READY "," CONDITION("b", ",\"status\":"
                                                                                 "\"True\"")));
        const struct kube_object *next = patched(object, rows[i].patch);
        const struct kube_object *again = patched(next, "{\"spec\":{\"nodeName\":\"n\"}}");

        assert_conditions(object, "a=False,R,m b=True,,");
        kube_object_unref(object);
        kube_object_unref(next);
        assert_conditions(again, rows[i].want);
        assert_int_equal(kube_pod_of(again)->ready, rows[i].ready);
        kube_object_unref(again);
    }
}

static void a_pod_remembers_since_when_it_is_ready(void **state)
{
    const struct kube_object *object =
        decoded(&kube_pod_kind,
                HEAD CONDITIONS(CONDITION("Ready", ",\"status\":\"True\",\"lastTransitionTime\":"
                                                   "\"1970-01-01T00:00:07Z\"")));
    const struct kube_object *next =
        patched(object, "{" CONDITIONS(CONDITION("a", ",\"status\":\"True\"")));

    kube_object_unref(object);
    assert_int_equal(kube_pod_of(next)->ready_since_us, 7000000);
    kube_object_unref(next);
}

static void a_condition_of_a_node_is_foretold_without_its_readiness(void **state)
{
    const struct kube_object *object = decoded(&kube_node_kind, node_text);
    const struct kube_object *next =
        patched(object, "{" CONDITIONS(CONDITION("slinc.dev/Drained", ",\"status\":\"True\"")));
    const struct kube_node *node = kube_node_of(next);

    kube_object_unref(object);
    assert_true(node->ready);
    assert_int_equal(node->ready_since_us, 5000000);
    assert_int_equal(node->condition_count, 2); /* beside DiskPressure */
    assert_string_equal(node->conditions[1].type, "slinc.dev/Drained");
    assert_string_equal(node->conditions[1].status, "True");

    object = patched(
        next, "{" CONDITIONS(CONDITION("Ready", ",\"status\":\"Unknown\",\"lastTransitionTime\":"
                                                "\"1970-01-01T00:00:07Z\"")));
    kube_object_unref(next);
    assert_false(kube_node_of(object)->ready);
    assert_int_equal(kube_node_of(object)->ready_since_us, 7000000);
    assert_int_equal(kube_node_of(object)->condition_count, 2);
    kube_object_unref(object);
}

static void finalizers_and_tolerations_of_a_prediction_show(void **state)
{
    const struct kube_object *object =
        decoded(&kube_pod_kind, "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":"
                                "\"1\",\"finalizers\":[\"x.io/f\"]},\"spec\":{\"tolerations\":["
                                "{\"key\":\"old\",\"operator\":\"Exists\"}]}}");
    const struct kube_object *next =
        patched(object, "{\"metadata\":{\"finalizers\":[\"x.io/f\",\"x.io/g\"]},\"spec\":{"
                        "\"tolerations\":[{\"key\":\"old\",\"operator\":\"Exists\"},{\"key\":"
                        "\"new\",\"value\":\"v\",\"effect\":\"NoSchedule\"}]}}");

    kube_object_unref(object);
    assert_true(kube_object_has_finalizer(next, "x.io/f"));
    assert_true(kube_object_has_finalizer(next, "x.io/g"));
    assert_int_equal(kube_pod_of(next)->toleration_count, 2);
    assert_string_equal(kube_pod_of(next)->tolerations[1].key, "new");
    object = patched(next, "{\"metadata\":{\"finalizers\":null}}");
    kube_object_unref(next);
    assert_int_equal(object->finalizer_count, 0);
    assert_int_equal(kube_pod_of(object)->toleration_count, 2);
    kube_object_unref(object);
}

static void a_node_out_of_service_is_known_by_its_taint(void **state)
{
    const struct kube_object *object = decoded(&kube_node_kind, node_text);
    const struct kube_object *next =
        patched(object, "{\"spec\":{\"taints\":[{\"key\":\"node.kubernetes.io/out-of-service\","
                        "\"value\":\"nodeshutdown\",\"effect\":\"NoExecute\"}]}}");

    assert_false(kube_node_has_taint(kube_node_of(object), "node.kubernetes.io/out-of-service"));
    assert_true(kube_node_has_taint(kube_node_of(next), "node.kubernetes.io/out-of-service"));
    assert_false(kube_node_has_taint(kube_node_of(next), "k"));
    kube_object_unref(object);
    kube_object_unref(next);
}

static void bad_amounts_are_refused_with_their_place(void **state)
{
    const struct kube_object *object = NULL;
    struct err err = { 0 };

    assert_int_equal(decode(&kube_pod_kind,
                            HEAD "\"spec\":{\"containers\":[" REQUESTS("\"cpu\":\"much\"") "]}}",
                            &object, &err),
                     -ERR_INVALID);
    assert_non_null(strstr(err.text, "spec.containers: requests: cpu: "));
    assert_null(object);
}

/* Each item is `item` with its number in place of '#'. */
static void refuse_long(const char *before, const char *item, const char *after, unsigned count)
{
    auto_buf struct buf text = { .max = MAX };
    const struct kube_object *object = NULL;
    struct str head, tail;
    struct err err = { 0 };

    assert_true(str_cut(str_of(item), '#', &head, &tail));
    buf_printf(&text, HEAD "\"spec\":{%s", before);
    for (unsigned i = 0; i < count; i++)
        buf_printf(&text, "%s" STR_FMT "%u" STR_FMT, i ? "," : "", STR_ARG(head), i, STR_ARG(tail));
    buf_printf(&text, "%s}}", after);
    assert_int_equal(decode(&kube_pod_kind, buf_text(&text), &object, &err), -ERR_TOO_BIG);
    assert_null(object);
}

static void every_list_has_a_bound(void **state)
{
    refuse_long("},\"status\":{\"conditions\":[", "{\"type\":\"x.io/#\"}", "]", KUBE_MAX_ITEMS + 1);
    refuse_long("\"containers\":[{\"resources\":{\"limits\":{", "\"x.io/#\":\"1\"", "}}}]",
                KUBE_MAX_RESOURCES + 1);
    refuse_long("\"tolerations\":[", "{\"key\":\"#\"}", "]", KUBE_MAX_ITEMS + 1);
    refuse_long("\"containers\":[", "{\"name\":\"#\"}", "]", KUBE_MAX_ITEMS + 1);
    refuse_long("\"schedulingGates\":[", "{\"name\":\"#\"}", "]", KUBE_MAX_ITEMS + 1);
    refuse_long("\"containers\":[{\"resources\":{\"requests\":{", "\"x.io/#\":\"1\"", "}}}]",
                KUBE_MAX_RESOURCES + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_request_of_a_pod_is_that_of_kubernetes),
        cmocka_unit_test(the_limits_of_a_pod_are_those_of_kubernetes),
        cmocka_unit_test(tolerations_are_kept_compactly),
        cmocka_unit_test(conditions_of_others_than_kubernetes_are_kept),
        cmocka_unit_test(conditions_of_kubernetes_cost_no_memory),
        cmocka_unit_test(a_prediction_changes_the_conditions_that_it_names),
        cmocka_unit_test(a_pod_remembers_since_when_it_is_ready),
        cmocka_unit_test(a_condition_of_a_node_is_foretold_without_its_readiness),
        cmocka_unit_test(finalizers_and_tolerations_of_a_prediction_show),
        cmocka_unit_test(a_node_out_of_service_is_known_by_its_taint),
        cmocka_unit_test(what_matters_for_scheduling_is_there),
        cmocka_unit_test(a_pod_is_terminated_when_nothing_of_it_runs),
        cmocka_unit_test(a_finished_pod_is_known_by_its_phase),
        cmocka_unit_test(a_node_says_what_it_can_hold),
        cmocka_unit_test(a_patch_of_a_node_changes_what_it_names),
        cmocka_unit_test(a_patch_of_a_pod_leaves_its_lists),
        cmocka_unit_test(bad_amounts_are_refused_with_their_place),
        cmocka_unit_test(every_list_has_a_bound),
    };

    return cmocka_run_group_tests_name("kinds", tests, NULL, NULL);
}
