/* test_volume_rules.c - where the volumes of a pod let it run, and what they want first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "filter_rig.h"

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
        { "on first use, and nobody makes it",
          "[" NODES ", " UNBOUND(
              "c",
              "local") ", {class: local, is: {provisioner: "
                       "kubernetes.io/no-provisioner, volumeBindingMode: WaitForFirstConsumer}}]",
          USES("c"), none, "2 node(s) didn't find available persistent volumes to bind" },
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
#define HOLDS(name, node, claim)                                                                   \
    "{pod: " name ", at: " node ", spec: {volumes: [{persistentVolumeClaim: {claimName: " claim    \
    "}}]}}"

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

enum { MAX_OPEN = 4 };

/* The claims that are not bound, each with a sign: '>' it is told of the node, '.' it waits.
 */
static void expect_open(struct rig *rig, const char *text, const char *node, const char *expected)
{
    static const char signs[] = { [FILTER_WAIT] = '.',
                                  [FILTER_SELECT_NODE] = '>',
                                  [FILTER_TAKE_VOLUME] = '=',
                                  [FILTER_NO_VOLUME] = '-' };
    const struct kube_pod *pod = rig_waiting(rig, text);
    struct filter_claim open[MAX_OPEN];
    unsigned count = filter_unbound_claims(rig->filter, pod, node, open, 0, MAX_OPEN);
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

static void a_set_follows_claims_and_volumes(void **state)
{
    struct rig *rig = rig_new();
    unsigned calls = 0;

    rig_put(rig, "[" NODES "]");
    rig_expect(rig, "missing", USES("c"), "a1,b1", NULL);
    filter_listen(rig->filter, rig_count_call, &calls);
    rig_put(rig, "[" UNBOUND("c", "late") "]");
    assert_int_equal(calls, 1);
    rig_expect(rig, "no class yet", USES("c"), "a1,b1", NULL);
    rig_put(rig, "[" LATE("late", "") "]");
    rig_expect(rig, "late", USES("c"), "", "");
    rig_put(rig, "[" BOUND("c", "v1") ", {volume: v1, is: {spec: {" ZONE("b") "}}}]");
    rig_expect(rig, "bound", USES("c"), "a1", NULL);
    calls = 0;
    rig_put(rig, "[" BOUND("c", "v1") ", {volume: v1, is: {spec: {" ZONE("b") "}}}]");
    assert_int_equal(calls, 0);
    rig_free(rig);
}

static void a_patch_leaves_what_it_does_not_name(void **state)
{
    struct rig *rig = rig_new();
    auto_json_doc struct json_doc *patch = parsed_yaml("{metadata: {annotations: {a: b}}}");
    static const struct {
        enum rig_cache cache;
        const char *ns, *name;
    } objects[] = { { RIG_CLAIMS, "d", "c" },
                    { RIG_VOLUMES, "", "v1" },
                    { RIG_CLASSES, "", "late" } };

    rig_put(rig, "[" BOUND("c", "v1") ", {volume: v1, is: {spec: {" ZONE("a") "}}}, " LATE(
                     "late", ", allowedTopologies: [{matchLabelExpressions: [{key: zone, "
                             "values: [b]}]}]") "]");
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
        kube_object_unref(next);
    }
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(volumes_decide_where_pods_can_run),
        cmocka_unit_test(a_volume_for_one_pod_is_given_to_no_other),
        cmocka_unit_test(claims_are_told_of_the_node_before_the_bind),
        cmocka_unit_test(a_set_follows_claims_and_volumes),
        cmocka_unit_test(a_patch_leaves_what_it_does_not_name),
    };

    return cmocka_run_group_tests_name("volume_rules", tests, NULL, NULL);
}
