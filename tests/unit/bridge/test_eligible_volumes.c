/* test_eligible_volumes.c - where the volumes of a pod let it run, and what they want first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "eligible_rig.h"

#define NODES "{node: a1, labels: {zone: a}}, {node: b1, labels: {zone: b}}"
#define USES(name)                                                                                 \
    "{pod: p, spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: " name "}}]}}"
#define BOUND(name, volume)                                                                        \
    "{claim: " name ", annotations: {pv.kubernetes.io/bind-completed: 'yes'}, is: {spec: "         \
    "{volumeName: " volume "}}}"
#define OWNED_BY(pod)                                                                              \
    "{claim: p-v, annotations: {pv.kubernetes.io/bind-completed: 'yes'}, is: {spec: {volumeName: " \
    "v1}}, owners: [{apiVersion: v1, kind: Pod, name: " pod ", uid: " pod ", controller: true}]}"
#define UNBOUND(name, class) "{claim: " name ", is: {spec: {storageClassName: " class "}}}"
#define ZONE(zone)                                                                                 \
    "nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, " \
    "values: [" zone "]}]}]}}"
#define LATE(name, rest)                                                                           \
    "{class: " name ", is: {provisioner: csi.io, volumeBindingMode: WaitForFirstConsumer" rest "}" \
    "}"

static void volumes_decide_where_pods_can_run(void **state)
{
    static const char *const none = "a1,b1";
    const struct rig_case cases[] = {
        { "bound, in a zone",
          "[" NODES ", " BOUND("c", "v1") ", {volume: v1, is: {spec: {" ZONE("a") "}}}]", USES("c"),
          "b1", "1 node(s) didn't match PersistentVolume's node affinity" },
        { "bound, anywhere", "[" NODES ", " BOUND("c", "v1") ", {volume: v1, is: {spec: {}}}]",
          USES("c"), "", "" },
        { "not there", "[" NODES "]", USES("c"), none, "persistentvolumeclaim \"c\" not found" },
        { "being deleted", "[" NODES ", {claim: c, ending: true}]", USES("c"), none,
          "persistentvolumeclaim \"c\" is being deleted" },
        { "of another namespace", "[" NODES ", {claim: c, ns: e}]", USES("c"), none, NULL },
        { "its volume is gone", "[" NODES ", " BOUND("c", "v1") "]", USES("c"), none,
          "persistentvolumeclaim \"c\" is bound to a persistent volume that does not exist" },
        { "unbound, at once",
          "[" NODES ", " UNBOUND("c", "now") ", {class: now, is: {provisioner: x, "
                                             "volumeBindingMode: Immediate}}]",
          USES("c"), none, "pod has unbound immediate PersistentVolumeClaims" },
        { "unbound, no class", "[" NODES ", {claim: c}]", USES("c"), none, NULL },
        { "unbound, on first use", "[" NODES ", " UNBOUND("c", "late") ", " LATE("late", "") "]",
          USES("c"), "", "" },
        { "only in some zones",
          "[" NODES ", " UNBOUND("c", "late") ", " LATE(
              "late", ", allowedTopologies: [{matchLabelExpressions: [{key: zone, values: [b, "
                      "c]}]}]") "]",
          USES("c"), "a1", "1 node(s) didn't find available persistent volumes to bind" },
        { "the node has been chosen",
          "[" NODES
          ", {claim: c, annotations: {volume.kubernetes.io/selected-node: a1}, is: {spec: "
          "{storageClassName: late}}}, " LATE("late", "") "]",
          USES("c"), "b1", NULL },
        { "the class is named in the old way",
          "[" NODES
          ", {claim: c, annotations: {volume.beta.kubernetes.io/storage-class: late}}, " LATE(
              "late", "") "]",
          USES("c"), "", "" },
        { "on first use, and nobody makes it",
          "[" NODES ", " UNBOUND(
              "c",
              "local") ", {class: local, is: {provisioner: "
                       "kubernetes.io/no-provisioner, volumeBindingMode: WaitForFirstConsumer}}]",
          USES("c"), none,
          "persistentvolumeclaim \"c\" waits for a persistent volume: its storage class has no "
          "provisioner" },
        { "the claim of an ephemeral volume is named after the pod, and its own",
          "[" NODES ", " OWNED_BY("p") ", {volume: v1, is: {spec: {" ZONE("b") "}}}]",
          "{pod: p, spec: {volumes: [{name: v, ephemeral: {volumeClaimTemplate: {}}}]}}", "a1",
          NULL },
        { "a claim of another pod that has the name of an ephemeral volume's",
          "[" NODES ", " OWNED_BY("q") ", {volume: v1, is: {spec: {" ZONE("b") "}}}]",
          "{pod: p, spec: {volumes: [{name: v, ephemeral: {volumeClaimTemplate: {}}}]}}", none,
          "persistentvolumeclaim \"p-v\" was not created for the pod (the pod is not its owner)" },
        { "a claim of nobody that has the name of an ephemeral volume's",
          "[" NODES ", " UNBOUND("p-v", "late") ", " LATE("late", "") "]",
          "{pod: p, spec: {volumes: [{name: v, ephemeral: {volumeClaimTemplate: {}}}]}}", none,
          NULL },
        { "two volumes in two zones",
          "[" NODES ", " BOUND("c", "v1") ", {volume: v1, is: {spec: {" ZONE("a") "}}}, " BOUND(
              "d", "v2") ", {volume: v2, is: {spec: {" ZONE("b") "}}}]",
          "{pod: p, spec: {volumes: [{persistentVolumeClaim: {claimName: c}}, "
          "{persistentVolumeClaim: {claimName: d}}]}}",
          none, NULL },
        { "volumes without claims", "[" NODES "]",
          "{pod: p, spec: {volumes: [{name: t, emptyDir: {}}]}}", "", "" },
    };

    RIG_RUN(cases);
}

#define CSI(name, handle)                                                                          \
    "{volume: " name ", is: {spec: {csi: {driver: csi.io, volumeHandle: " handle "}}}}"
#define LIMIT(node, count)                                                                         \
    "{csi: " node ", is: {spec: {drivers: [{name: csi.io, allocatable: {count: " count "}}]}}}"
#define HOLDS(name, node, claim)                                                                   \
    "{pod: " name ", at: " node ", spec: {volumes: [{persistentVolumeClaim: {claimName: " claim    \
    "}}]}}"

static void a_node_attaches_so_many_volumes(void **state)
{
    struct rig *rig = rig_new();

    rig_put(rig, "[" NODES ", " LIMIT("a1", "1") ", " BOUND("c", "v1") ", " CSI(
                     "v1", "h1") ", " BOUND("d", "v2") ", " CSI("v2", "h2") "]");
    rig_expect(rig, "free", USES("c"), "", "");
    rig_put(rig, "[" HOLDS("x", "a1", "d") "]");
    rig_expect(rig, "full", USES("c"), "a1", "1 node(s) exceed max volume count");
    assert_string_equal(rig_misfit(rig, USES("c"), "a1"), "node(s) exceed max volume count");
    /* the one that is there already costs nothing */
    rig_expect(rig, "shared", USES("d"), "", "");
    assert_null(rig_misfit(rig, USES("d"), "a1"));
    rig_put(rig, "[" LIMIT("a1", "2") "]");
    rig_expect(rig, "more room", USES("c"), "", "");
    rig_put(rig, "[" LIMIT("a1", "1") "]");
    rig_expect(rig, "less", USES("c"), "a1", NULL);
    rig_drop(rig, RIG_PODS, "d", "x");
    rig_expect(rig, "gone", USES("c"), "", "");
    rig_free(rig);
}

#define FOR_ONE_POD(name, volume)                                                                  \
    "{claim: " name ", annotations: {pv.kubernetes.io/bind-completed: 'yes'}, is: {spec: "         \
    "{volumeName: " volume ", accessModes: [ReadWriteOncePod]}}}"

static void a_volume_for_one_pod_is_given_to_no_other(void **state)
{
    static const char in_use[] = "persistentvolumeclaim \"c\" is in use by another pod, and its "
                                 "access mode is ReadWriteOncePod";
    struct rig *rig = rig_new();

    rig_put(rig, "[" NODES ", " FOR_ONE_POD("c", "v1") ", " CSI("v1", "h1") ", " BOUND(
                     "d", "v2") ", " CSI("v2", "h2") "]");
    rig_expect(rig, "free", USES("c"), "", "");
    rig_put(rig, "[" HOLDS("x", "a1", "c") ", " HOLDS("other", "a1", "d") "]");
    rig_expect(rig, "in use", USES("c"), "a1,b1", in_use);
    assert_string_equal(rig_misfit(rig, USES("c"), "a1"), in_use); /* on its own node, too */
    rig_expect(rig, "a volume of many pods", USES("d"), "", "");
    rig_drop(rig, RIG_PODS, "d", "x");
    rig_expect(rig, "free again", USES("c"), "", "");
    assert_null(rig_misfit(rig, USES("c"), "a1"));
    rig_free(rig);
}

static void volumes_may_be_seen_after_the_pods_that_use_them(void **state)
{
    struct rig *rig = rig_new();

    rig_put(rig, "[" HOLDS("x", "a1", "d") ", " NODES ", " LIMIT("a1", "1") ", " BOUND(
                     "c", "v1") ", " CSI("v1", "h1") "]");
    rig_expect(rig, "not known yet", USES("c"), "", "");
    rig_put(rig, "[" BOUND("d", "v2") ", " CSI("v2", "h2") "]");
    rig_expect(rig, "known", USES("c"), "a1", "1 node(s) exceed max volume count");
    rig_free(rig);
}

static void a_volume_in_use_elsewhere_is_counted_at_bind(void **state)
{
    struct rig *rig = rig_new();

    rig_put(rig,
            "[" NODES ", " LIMIT("a1", "1") ", " BOUND("c", "v1") ", " CSI("v1", "h1") ", " BOUND(
                "d", "v2") ", " CSI("v2", "h2") ", " HOLDS("x", "a1", "d") ", " HOLDS("w", "b1",
                                                                                      "c") "]");
    rig_expect(rig, "some node may have it", USES("c"), "", "");
    assert_string_equal(rig_misfit(rig, USES("c"), "a1"), "node(s) exceed max volume count");
    rig_free(rig);
}

enum { MAX_OPEN = 4 };

/* The claims that are not bound, each with a sign: '>' it is told of the node, '.' it waits, 'x'
 * its volume could not be made there, 'o' or not in time. */
static void expect_open(struct rig *rig, const char *text, const char *node, const char *expected)
{
    static const char signs[] = {
        [ELIGIBLE_WAIT] = '.',      [ELIGIBLE_SELECT_NODE] = '>', [ELIGIBLE_TAKE_VOLUME] = '=',
        [ELIGIBLE_NO_VOLUME] = '-', [ELIGIBLE_REFUSED] = 'x',     [ELIGIBLE_OVERDUE] = 'o'
    };
    const struct kube_pod *pod = rig_waiting(rig, text);
    struct eligible_open open[MAX_OPEN];
    unsigned count = eligible_open_claims(rig->eligible, pod, node, open, 0, MAX_OPEN);
    auto_buf struct buf found;

    buf_init(&found, 1000);
    for (unsigned i = 0; i < count; i++)
        buf_printf(&found, "%s%c", open[i].name, signs[open[i].step]);
    assert_string_equal(buf_text(&found), expected);
    kube_object_unref(&pod->object);
}

static void claims_are_told_of_the_node_before_the_bind(void **state)
{
    static const char *const pod = "{pod: p, spec: {volumes: [{persistentVolumeClaim: {claimName: "
                                   "c}}, {persistentVolumeClaim: {claimName: d}}]}}";
    struct rig *rig = rig_new();

    rig_put(rig, "[" NODES ", " BOUND("d", "v1") ", " CSI("v1", "h1") ", " UNBOUND(
                     "c", "late") ", " LATE("late", "") "]");
    expect_open(rig, "{pod: p}", "a1", "");
    expect_open(rig, USES("d"), "a1", "");
    expect_open(rig, pod, "a1", "c>");
    rig_put(rig, "[{claim: c, annotations: {volume.kubernetes.io/selected-node: a1}, is: {spec: "
                 "{storageClassName: late}}}]");
    expect_open(rig, pod, "a1", "c.");
    expect_open(rig, pod, "b1", "c>");
    /* it has a volume, and is not bound to it yet */
    rig_put(rig, "[{claim: c, is: {spec: {volumeName: v9}}}]");
    expect_open(rig, pod, "a1", "c.");
    rig_put(rig, "[" BOUND("c", "v9") "]"); /* which is seen a moment later */
    expect_open(rig, pod, "a1", "c.");
    assert_null(rig_misfit(rig, pod, "a1"));
    rig_put(rig, "[" CSI("v9", "h9") "]");
    expect_open(rig, pod, "a1", "");
    rig_drop(rig, RIG_CLAIMS, "d", "c");
    expect_open(rig, pod, "a1", "c.");
    assert_string_equal(rig_misfit(rig, pod, "a1"), "persistentvolumeclaim \"c\" not found");
    rig_free(rig);
}

#define TOLD(name, node)                                                                           \
    "{claim: " name ", annotations: {volume.kubernetes.io/selected-node: " node "}, is: {spec: "   \
    "{storageClassName: late}}}"

enum { TRIAL_S = 600 };

static void pass(struct rig *rig, int64_t seconds)
{
    clock_advance_us(&rig->clock, seconds * 1000000);
}

static void a_node_where_a_volume_could_not_be_made_is_left_out_for_a_while(void **state)
{
    struct rig *rig = rig_new();

    rig_put(rig, "[" NODES ", " LATE("late", "") ", " UNBOUND("c", "late") "]");
    rig_put(rig, "[" TOLD("c", "a1") "]");
    rig_expect(rig, "being made", USES("c"), "b1", NULL);
    rig_put(rig, "[" UNBOUND("c", "late") "]");
    rig_expect(rig, "given up", USES("c"), "a1",
               "1 node(s) where a volume of the pod could not be made");
    expect_open(rig, USES("c"), "a1", "cx");
    expect_open(rig, USES("c"), "b1", "c>");
    assert_null(rig_misfit(rig, USES("c"), "a1")); /* that is for who sees to volumes */
    rig_put(rig, "[" UNBOUND("e", "late") "]");
    rig_expect(rig, "another claim", USES("e"), "", "");
    pass(rig, 1);
    rig_put(rig, "[" TOLD("c", "b1") ", " UNBOUND("c", "late") "]");
    rig_expect(rig, "nowhere", USES("c"), "a1,b1",
               "2 node(s) where a volume of the pod could not be made");
    pass(rig, TRIAL_S - 1);
    rig_expect(rig, "the first again", USES("c"), "b1", NULL);
    expect_open(rig, USES("c"), "a1", "c>");
    pass(rig, 1);
    rig_expect(rig, "both again", USES("c"), "", "");
    rig_free(rig);
}

static void what_was_tried_is_forgotten_with_the_claim(void **state)
{
    static const char *const ends[] = {
        "[{claim: c, is: {spec: {volumeName: v1}}}, " UNBOUND("c", "late") "]", /* it had one */
        NULL,                                                                   /* deleted */
    };

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct rig *rig = rig_new();

        rig_put(rig,
                "[" NODES ", " LATE("late", "") ", " TOLD("c", "a1") ", " UNBOUND("c", "late") "]");
        rig_expect(rig, "given up", USES("c"), "a1", NULL);
        if (ends[i])
            rig_put(rig, ends[i]);
        else
            rig_drop(rig, RIG_CLAIMS, "d", "c");
        rig_put(rig, "[" UNBOUND("c", "late") "]");
        rig_expect(rig, "as new", USES("c"), "", "");
        rig_free(rig);
    }
}

static void a_volume_that_is_not_made_in_time_is_not_waited_for_with_a_node(void **state)
{
    struct rig *rig = rig_new();

    rig_put(rig, "[" NODES ", " LATE("late", "") ", " TOLD("c", "a1") "]");
    pass(rig, TRIAL_S - 1);
    rig_put(rig, "[{claim: c, annotations: {volume.kubernetes.io/selected-node: a1, x: y}, is: "
                 "{spec: {storageClassName: late}}}]"); /* what others write does not count */
    rig_expect(rig, "in time", USES("c"), "b1", NULL);
    expect_open(rig, USES("c"), "a1", "c.");
    pass(rig, 1);
    rig_expect(rig, "late", USES("c"), "a1,b1",
               "persistentvolumeclaim \"c\" still waits for its volume to be made on node a1");
    expect_open(rig, USES("c"), "a1", "co");
    expect_open(rig, USES("c"), "b1", "co");
    assert_null(rig_misfit(rig, USES("c"), "a1"));
    rig_put(rig, "[" TOLD("c", "b1") "]");
    rig_expect(rig, "elsewhere", USES("c"), "a1", NULL);
    rig_put(rig, "[" BOUND("c", "v1") ", {volume: v1, is: {spec: {}}}]");
    rig_expect(rig, "made", USES("c"), "", "");
    rig_free(rig);
}

static void only_so_many_nodes_are_remembered_for_a_claim(void **state)
{
    enum { NODES_TRIED = 300 }; /* 256 are remembered */
    struct rig *rig = rig_new();
    char text[256];

    rig_put(rig, "[" LATE("late", "") ", {node: n0}, {node: n299}]");
    for (int i = 0; i < NODES_TRIED; i++) {
        (void)snprintf(text, sizeof(text), "[" TOLD("c", "n%d") ", " UNBOUND("c", "late") "]", i);
        rig_put(rig, text);
    }
    rig_expect(rig, "the last of them count", USES("c"), "n299", NULL);
    expect_open(rig, USES("c"), "n43", "c>");
    expect_open(rig, USES("c"), "n44", "cx");
    rig_free(rig);
}

static void a_set_follows_claims_and_volumes(void **state)
{
    struct rig *rig = rig_new();
    uint64_t generation;

    rig_put(rig, "[" NODES "]");
    rig_expect(rig, "missing", USES("c"), "a1,b1", NULL);
    generation = eligible_generation(rig->eligible);
    rig_put(rig, "[" UNBOUND("c", "late") "]");
    assert_true(eligible_generation(rig->eligible) > generation);
    rig_expect(rig, "no class yet", USES("c"), "a1,b1", NULL);
    rig_put(rig, "[" LATE("late", "") "]");
    rig_expect(rig, "late", USES("c"), "", "");
    rig_put(rig, "[" BOUND("c", "v1") ", {volume: v1, is: {spec: {" ZONE("b") "}}}]");
    rig_expect(rig, "bound", USES("c"), "a1", NULL);
    generation = eligible_generation(rig->eligible);
    rig_put(rig, "[" BOUND("c", "v1") ", {volume: v1, is: {spec: {" ZONE("b") "}}}]");
    assert_int_equal(eligible_generation(rig->eligible), generation);
    rig_free(rig);
}

static void a_patch_leaves_what_it_does_not_name(void **state)
{
    struct rig *rig = rig_new();
    auto_json_doc struct json_doc *patch = rig_parse("{metadata: {annotations: {a: b}}}");
    static const struct {
        enum rig_cache cache;
        const char *ns, *name;
    } objects[] = { { RIG_CLAIMS, "d", "c" },
                    { RIG_VOLUMES, "", "v1" },
                    { RIG_CLASSES, "", "late" },
                    { RIG_CSI_NODES, "", "a1" } };

    rig_put(rig, "[" BOUND("c", "v1") ", {volume: v1, is: {spec: {" ZONE("a") "}}}, " LATE(
                     "late", ", allowedTopologies: [{matchLabelExpressions: [{key: zone, "
                             "values: [b]}]}]") ", " LIMIT("a1", "7") "]");
    for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
        const struct kube_object *object =
            kube_cache_get(rig->caches[objects[i].cache], objects[i].ns, objects[i].name);
        const struct kube_object *next = NULL;

        assert_int_equal(kube_object_patched(object, json_root(patch), &next, NULL), 0);
        if (objects[i].cache == RIG_CLAIMS)
            assert_string_equal(kube_claim_of(next)->volume, "v1");
        if (objects[i].cache == RIG_VOLUMES)
            assert_non_null(strstr(kube_volume_of(next)->affinity, "zone"));
        if (objects[i].cache == RIG_CLASSES)
            assert_non_null(strstr(kube_storage_class_of(next)->topology, "zone"));
        if (objects[i].cache == RIG_CSI_NODES)
            assert_int_equal(kube_csi_node_of(next)->drivers[0].limit, 7);
        kube_object_unref(next);
    }
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(volumes_decide_where_pods_can_run),
        cmocka_unit_test(a_node_attaches_so_many_volumes),
        cmocka_unit_test(a_volume_for_one_pod_is_given_to_no_other),
        cmocka_unit_test(volumes_may_be_seen_after_the_pods_that_use_them),
        cmocka_unit_test(a_volume_in_use_elsewhere_is_counted_at_bind),
        cmocka_unit_test(claims_are_told_of_the_node_before_the_bind),
        cmocka_unit_test(a_node_where_a_volume_could_not_be_made_is_left_out_for_a_while),
        cmocka_unit_test(what_was_tried_is_forgotten_with_the_claim),
        cmocka_unit_test(a_volume_that_is_not_made_in_time_is_not_waited_for_with_a_node),
        cmocka_unit_test(only_so_many_nodes_are_remembered_for_a_claim),
        cmocka_unit_test(a_set_follows_claims_and_volumes),
        cmocka_unit_test(a_patch_leaves_what_it_does_not_name),
    };

    return cmocka_run_group_tests_name("eligible_volumes", tests, NULL, NULL);
}
