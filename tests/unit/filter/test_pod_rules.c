/* test_pod_rules.c - how pods draw, repel and spread other pods. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "filter_rig.h"

/* Two zones of two nodes each, and one node in none. */
#define ZONES                                                                                      \
    "{node: a1, labels: {zone: a, host: a1}}, {node: a2, labels: {zone: a, host: a2}}, {node: "    \
    "b1, "                                                                                         \
    "labels: {zone: b, host: b1}}, {node: b2, labels: {zone: b, host: b2}}, {node: c1}"

#define REQUIRED  "requiredDuringSchedulingIgnoredDuringExecution"
#define APP(name) "labelSelector: {matchLabels: {app: " name "}}"
#define NEAR(labels, terms)                                                                        \
    "{pod: p, labels: {" labels "}, spec: {affinity: {podAffinity: {" REQUIRED ": [" terms "]}}}}"
#define AWAY(labels, terms)                                                                        \
    "{pod: p, labels: {" labels "}, spec: {affinity: {podAntiAffinity: {" REQUIRED ": [" terms     \
    "]}}}}"

static void pods_draw_others_into_their_domain(void **state)
{
    static const char *const words = "3 node(s) didn't match pod affinity rules";
    const struct rig_case cases[] = {
        { "same zone", "[" ZONES ", {pod: x, at: a1, labels: {app: db}}]",
          NEAR("", "{topologyKey: zone, " APP("db") "}"), "b[1-2],c1", words },
        { "pods of other schedulers draw too",
          "[" ZONES ", {pod: x, by: other, at: b2, labels: {app: db}}]",
          NEAR("", "{topologyKey: zone, " APP("db") "}"), "a[1-2],c1", words },
        { "and pods on nodes that are not lent",
          "[" ZONES ", {node: z, lent: false, labels: {zone: b}}, {pod: x, by: other, at: z, "
          "labels: {app: db}}]",
          NEAR("", "{topologyKey: zone, " APP("db") "}"), "a[1-2],c1", words },
        { "nothing draws", "[" ZONES "]", NEAR("", "{topologyKey: zone, " APP("db") "}"),
          "a[1-2],b[1-2],c1", NULL },
        { "the first of its kind goes anywhere that has the label", "[" ZONES "]",
          NEAR("app: db", "{topologyKey: zone, " APP("db") "}"), "c1", NULL },
        { "the second does not", "[" ZONES ", {pod: x, at: a1, labels: {app: db}}]",
          NEAR("app: db", "{topologyKey: zone, " APP("db") "}"), "b[1-2],c1", NULL },
        { "one that has ended draws nobody",
          "[" ZONES ", {pod: x, at: a1, labels: {app: db}, status: {phase: Failed}}]",
          NEAR("", "{topologyKey: zone, " APP("db") "}"), "a[1-2],b[1-2],c1", NULL },
        { "of another namespace", "[" ZONES ", {pod: x, ns: e, at: a1, labels: {app: db}}]",
          NEAR("", "{topologyKey: zone, " APP("db") "}"), "a[1-2],b[1-2],c1", NULL },
        { "of a namespace that is named", "[" ZONES ", {pod: x, ns: e, at: a1, labels: {app: db}}]",
          NEAR("", "{topologyKey: zone, namespaces: [e], " APP("db") "}"), "b[1-2],c1", NULL },
        { "of all namespaces", "[" ZONES ", {pod: x, ns: e, at: a1, labels: {app: db}}]",
          NEAR("", "{topologyKey: zone, namespaceSelector: {}, " APP("db") "}"), "b[1-2],c1",
          NULL },
        { "of namespaces with a label",
          "[{namespace: e, labels: {team: x}}, {namespace: f}, " ZONES
          ", {pod: x, ns: e, at: a1, labels: {app: db}}, {pod: w, ns: f, at: b1, labels: {app: "
          "db}}]",
          NEAR("",
               "{topologyKey: zone, namespaceSelector: {matchLabels: {team: x}}, " APP("db") "}"),
          "b[1-2],c1", NULL },
        { "one pod must match all terms",
          "[" ZONES ", {pod: x, at: a1, labels: {app: db}}, {pod: w, at: b1, labels: {app: db, "
          "tier: 'x'}}]",
          NEAR("", "{topologyKey: zone, " APP("db") "}, {topologyKey: host, labelSelector: "
                                                    "{matchLabels: {tier: 'x'}}}"),
          "a[1-2],b2,c1", NULL },
        { "no selector matches nothing", "[" ZONES ", {pod: x, at: a1}]",
          NEAR("", "{topologyKey: zone}"), "a[1-2],b[1-2],c1", NULL },
    };

    RIG_RUN(cases);
}

static void pods_keep_away_from_others(void **state)
{
    static const char *const words = "2 node(s) didn't match pod anti-affinity rules";
    const struct rig_case cases[] = {
        { "zone", "[" ZONES ", {pod: x, at: a1, labels: {app: db}}]",
          AWAY("", "{topologyKey: zone, " APP("db") "}"), "a[1-2]", words },
        { "host", "[" ZONES ", {pod: x, at: a1, labels: {app: db}}]",
          AWAY("", "{topologyKey: host, " APP("db") "}"), "a1", NULL },
        { "each term counts by itself",
          "[" ZONES ", {pod: x, at: a1, labels: {app: db}}, {pod: w, at: b2, labels: {app: web}}]",
          AWAY("", "{topologyKey: host, " APP("db") "}, {topologyKey: zone, " APP("web") "}"),
          "a1,b[1-2]", NULL },
        { "a node without the label is in no domain",
          "[" ZONES ", {pod: x, at: c1, labels: {app: db}}]",
          AWAY("", "{topologyKey: zone, " APP("db") "}"), "", "" },
        { "those that wait are nowhere", "[" ZONES ", {pod: x, labels: {app: db}}]",
          AWAY("", "{topologyKey: zone, " APP("db") "}"), "", "" },
    };

    RIG_RUN(cases);
}

#define LONER(name, at, rest)                                                                      \
    "{pod: " name ", at: " at ", spec: {affinity: {podAntiAffinity: {" REQUIRED ": [{" rest "}]}}" \
    "}}"

static void pods_that_are_there_keep_others_away(void **state)
{
    static const char *const words = "2 node(s) didn't satisfy existing pods anti-affinity rules";
    const struct rig_case cases[] = {
        { "zone", "[" ZONES ", " LONER("x", "a1", "topologyKey: zone, " APP("web")) "]",
          "{pod: p, labels: {app: web}}", "a[1-2]", words },
        { "not meant", "[" ZONES ", " LONER("x", "a1", "topologyKey: zone, " APP("web")) "]",
          "{pod: p, labels: {app: db}}", "", "" },
        { "not of this namespace",
          "[" ZONES ", " LONER("x", "a1", "topologyKey: zone, " APP("web")) "]",
          "{pod: p, ns: e, labels: {app: web}}", "", "" },
        { "of all namespaces",
          "[" ZONES
          ", " LONER("x", "a1", "topologyKey: zone, namespaceSelector: {}, " APP("web")) "]",
          "{pod: p, ns: e, labels: {app: web}}", "a[1-2]", words },
        { "two of them",
          "[" ZONES ", " LONER("x", "a1", "topologyKey: host, " APP("web")) ", " LONER(
              "w", "b2", "topologyKey: host, " APP("web")) "]",
          "{pod: p, labels: {app: web}}", "a1,b2", words },
        { "seen before their node",
          "[" LONER("x", "a1", "topologyKey: zone, " APP("web")) ", " ZONES "]",
          "{pod: p, labels: {app: web}}", "a[1-2]", words },
    };

    RIG_RUN(cases);
}

#define SPREAD(labels, rest)                                                                       \
    "{pod: p, labels: {" labels "}, spec: {topologySpreadConstraints: [{whenUnsatisfiable: "       \
    "DoNotSchedule, maxSkew: 1, topologyKey: zone, " APP("web") ", " rest "}]}}"
#define WEB(name, at) "{pod: " name ", at: " at ", labels: {app: web}}"

static void pods_spread_over_domains(void **state)
{
    static const char *const words =
        "2 node(s) didn't match pod topology spread constraints, 1 "
        "node(s) didn't match pod topology spread constraints (missing "
        "required label)";
    const struct rig_case cases[] = {
        { "nothing there", "[" ZONES "]", SPREAD("app: web", ""), "c1", NULL },
        { "one zone ahead", "[" ZONES ", " WEB("x", "a1") "]", SPREAD("app: web", ""), "a[1-2],c1",
          words },
        { "even", "[" ZONES ", " WEB("x", "a1") ", " WEB("w", "b1") "]", SPREAD("app: web", ""),
          "c1", NULL },
        { "a pod that does not count itself", "[" ZONES ", " WEB("x", "a1") "]", SPREAD("", ""),
          "c1", NULL },
        { "more skew", "[" ZONES ", " WEB("x", "a1") ", " WEB("z", "a2") "]",
          "{pod: p, labels: {app: web}, spec: {topologySpreadConstraints: [{whenUnsatisfiable: "
          "DoNotSchedule, maxSkew: 3, topologyKey: zone, " APP("web") "}]}}",
          "c1", NULL },
        { "a wish is none", "[" ZONES ", " WEB("x", "a1") "]",
          "{pod: p, labels: {app: web}, spec: {topologySpreadConstraints: [{whenUnsatisfiable: "
          "ScheduleAnyway, maxSkew: 1, topologyKey: zone, " APP("web") "}]}}",
          "", "" },
        { "those being deleted do not count",
          "[" ZONES ", {pod: x, at: a1, ending: true, labels: {app: web}}]", SPREAD("app: web", ""),
          "c1", NULL },
        { "nor those of other namespaces",
          "[" ZONES ", {pod: x, ns: e, at: a1, labels: {app: web}}]", SPREAD("app: web", ""), "c1",
          NULL },
        { "too few domains: the least counts as none",
          "[" ZONES ", " WEB("x", "a1") ", " WEB("w", "b1") "]",
          SPREAD("app: web", "minDomains: 3"), "a[1-2],b[1-2],c1", NULL },
        { "zones that the pod cannot use do not count", "[" ZONES ", " WEB("x", "a1") "]",
          "{pod: p, labels: {app: web}, spec: {nodeSelector: {zone: a}, "
          "topologySpreadConstraints: [{whenUnsatisfiable: DoNotSchedule, maxSkew: 1, topologyKey: "
          "zone, " APP("web") "}]}}",
          "b[1-2],c1", NULL },
        { "unless it says so", "[" ZONES ", " WEB("x", "a1") "]",
          "{pod: p, labels: {app: web}, spec: {nodeSelector: {zone: a}, "
          "topologySpreadConstraints: [{whenUnsatisfiable: DoNotSchedule, maxSkew: 1, topologyKey: "
          "zone, nodeAffinityPolicy: Ignore, " APP("web") "}]}}",
          "a[1-2],b[1-2],c1", NULL },
        { "tainted zones count",
          "[{node: a1, labels: {zone: a}}, {node: b1, labels: {zone: b}, taints: [{key: t, effect: "
          "NoSchedule}]}, " WEB("x", "a1") "]",
          SPREAD("app: web", ""), "a1,b1", NULL },
        { "unless it says otherwise",
          "[{node: a1, labels: {zone: a}}, {node: b1, labels: {zone: b}, taints: [{key: t, effect: "
          "NoSchedule}]}, " WEB("x", "a1") "]",
          SPREAD("app: web", "nodeTaintsPolicy: Honor"), "b1", NULL },
        { "nodes that are not lent are no domain",
          "[{node: a1, labels: {zone: a}}, {node: b1, lent: false, labels: {zone: b}}, " WEB(
              "x", "a1") "]",
          SPREAD("app: web", ""), "", "" },
        { "only those with the same version",
          "[" ZONES ", {pod: x, at: a1, labels: {app: web, v: '1'}}]",
          SPREAD("app: web, v: '2'", "matchLabelKeys: [v]"), "c1", NULL },
        { "and these do", "[" ZONES ", {pod: x, at: a1, labels: {app: web, v: '2'}}]",
          SPREAD("app: web, v: '2'", "matchLabelKeys: [v]"), "a[1-2],c1", NULL },
        { "nodes must have the labels of all constraints to count",
          "[{node: a1, labels: {zone: a, host: a1}}, {node: b1, labels: {zone: b}}, " WEB("x",
                                                                                          "a1") "]",
          "{pod: p, labels: {app: web}, spec: {topologySpreadConstraints: [{whenUnsatisfiable: "
          "DoNotSchedule, maxSkew: 1, topologyKey: zone, " APP(
              "web") "}, {whenUnsatisfiable: "
                     "DoNotSchedule, maxSkew: 9, topologyKey: host, " APP("web") "}]}}",
          "b1", NULL },
    };

    RIG_RUN(cases);
}

static void a_set_follows_the_pods_that_its_rules_look_at(void **state)
{
    static const char *const pod =
        "{pod: p, labels: {app: web}, spec: {affinity: {podAntiAffinity: "
        "{" REQUIRED ": [{topologyKey: host, " APP("web") "}]}}}}";
    struct rig *rig = rig_new();
    unsigned calls = 0;

    rig_put(rig, "[" ZONES "]");
    rig_expect(rig, "empty", pod, "", "");
    rig_put(rig, "[" WEB("x", "a1") "]");
    rig_expect(rig, "one", pod, "a1", NULL);
    assert_string_equal(rig_misfit(rig, pod, "a1"), "node(s) didn't match pod anti-affinity rules");
    assert_null(rig_misfit(rig, pod, "a2"));
    rig_put(rig, "[{pod: x, at: a1, labels: {app: db}}]");
    rig_expect(rig, "relabelled", pod, "", "");
    rig_put(rig, "[" WEB("x", "a1") ", " WEB("w", "b1") "]");
    rig_expect(rig, "two", pod, "a1,b1", NULL);
    rig_put(rig, "[{node: b1, labels: {zone: b, host: a2}}]");
    rig_expect(rig, "a node in another domain", pod, "a[1-2],b1", NULL);
    filter_listen(rig->filter, rig_count_call, &calls);
    rig_put(rig, "[{pod: z, at: c1, labels: {app: db}}]");
    assert_int_equal(calls, 0);
    rig_drop(rig, RIG_NODES, "", "b1");
    rig_expect(rig, "node gone", pod, "a1", NULL);
    rig_put(rig, "[{node: b1, labels: {host: b1}}]");
    rig_expect(rig, "and back", pod, "a1,b1", NULL);
    rig_drop(rig, RIG_PODS, "d", "w");
    rig_drop(rig, RIG_PODS, "d", "x");
    rig_expect(rig, "all gone", pod, "", "");
    rig_free(rig);
}

static void who_keeps_others_away_may_come_and_go(void **state)
{
    static const char *const pod = "{pod: p, labels: {app: web}}";
    struct rig *rig = rig_new();

    rig_put(rig, "[" ZONES "]");
    rig_expect(rig, "nobody", pod, "", "");
    for (unsigned i = 0; i < 3; i++) {
        rig_put(rig, "[" LONER("x", "a1", "topologyKey: host, " APP("web")) "]");
        rig_expect(rig, "came", pod, "a1", NULL);
        rig_put(rig, "[" LONER("w", "b1", "topologyKey: host, " APP("web")) "]");
        rig_expect(rig, "another", pod, "a1,b1", NULL);
        rig_drop(rig, RIG_PODS, "d", "x");
        rig_expect(rig, "one went", pod, "b1", NULL);
        rig_drop(rig, RIG_PODS, "d", "w");
        rig_expect(rig, "both", pod, "", "");
    }
    rig_free(rig);
}

static void hear(void *context)
{
    ++*(unsigned *)context;
}

static enum filter_objection objection(struct rig *rig, struct filter_reserved *reserved,
                                       const struct kube_pod *pod, const char *node)
{
    return filter_objection(rig->filter, reserved, pod,
                            kube_node_of(kube_cache_get(rig->caches[RIG_NODES], "", node)));
}

static void a_reserved_pod_counts_as_placed_for_who_reserved_it_alone(void **state)
{
    static const char *const apart = AWAY("app: web", "{topologyKey: zone, " APP("web") "}");
    static const char *const other = "{pod: q, labels: {app: web}}";
    struct rig *rig = rig_new();
    const struct kube_pod *pod, *plain, *minds_nobody, *minds_that;
    const struct kube_node *a1, *b1;
    struct filter_reserved *reserved;
    unsigned heard = 0;

    rig_put(rig, "[" ZONES "]");
    pod = rig_waiting(rig, apart);
    plain = rig_waiting(rig, other);
    minds_nobody = rig_waiting(rig, "{pod: r, labels: {app: db}}");
    minds_that = rig_waiting(rig, AWAY("app: x", "{topologyKey: zone, " APP("db") "}"));
    a1 = kube_node_of(kube_cache_get(rig->caches[RIG_NODES], "", "a1"));
    b1 = kube_node_of(kube_cache_get(rig->caches[RIG_NODES], "", "b1"));
    assert_true(filter_has_pod_rules(pod));
    filter_listen(rig->filter, hear, &heard);
    reserved = filter_reserved_new(rig->filter);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(objection(rig, reserved, pod, "a2"), FILTER_NO_OBJECTION);
        filter_reserve(reserved, pod, a1);
        assert_int_equal(objection(rig, reserved, pod, "a2"), FILTER_PODS_OBJECT);
        assert_int_equal(objection(rig, reserved, pod, "b1"), FILTER_NO_OBJECTION);
        assert_int_equal(objection(rig, reserved, plain, "a1"), FILTER_PODS_OBJECT);
        assert_int_equal(objection(rig, reserved, plain, "b2"), FILTER_NO_OBJECTION);
        assert_string_equal(filter_misfit(rig->filter, reserved, plain, a1, &rig->arena),
                            "node a1: node(s) didn't satisfy existing pods anti-affinity rules");
        filter_reserve(reserved, pod, b1);
        assert_int_equal(objection(rig, reserved, pod, "b2"), FILTER_PODS_OBJECT);
        assert_int_equal(objection(rig, reserved, minds_nobody, "b1"), FILTER_NO_OBJECTION);
        assert_int_equal(objection(rig, reserved, minds_that, "b2"), FILTER_NO_OBJECTION);
        filter_reserve(reserved, minds_nobody, b1);
        assert_int_equal(objection(rig, reserved, minds_that, "b2"), FILTER_PODS_OBJECT);
        assert_int_equal(objection(rig, reserved, minds_that, "a2"), FILTER_NO_OBJECTION);
        assert_int_equal(objection(rig, NULL, pod, "a2"), FILTER_NO_OBJECTION);
        rig_expect(rig, "the filter knows nothing of it", apart, "", "");
        rig_expect(rig, "nor for others", other, "", "");
        filter_unreserve_all(reserved);
    }
    filter_reserved_free(reserved);
    assert_int_equal(heard, 0);
    rig_put(rig, "[{node: b1, taints: [{key: t, effect: NoSchedule}]}]");
    assert_int_equal(objection(rig, NULL, pod, "b1"), FILTER_NODE_OBJECTS);
    assert_true(heard > 0);
    kube_object_unref(&pod->object);
    kube_object_unref(&plain->object);
    kube_object_unref(&minds_nobody->object);
    kube_object_unref(&minds_that->object);
    rig_free(rig);
}

static void labels_of_namespaces_may_change(void **state)
{
    static const char *const pod =
        "{pod: p, spec: {affinity: {podAntiAffinity: {" REQUIRED ": [{topologyKey: host, "
        "namespaceSelector: {matchLabels: {team: x}}, " APP("web") "}]}}}}";
    struct rig *rig = rig_new();

    rig_put(rig, "[" ZONES ", {pod: w, ns: e, at: a1, labels: {app: web}}]");
    rig_expect(rig, "no such namespace", pod, "", "");
    rig_put(rig, "[{namespace: e, labels: {team: x}}]");
    rig_expect(rig, "labelled", pod, "a1", NULL);
    rig_put(rig, "[{namespace: e, labels: {team: y}}]");
    rig_expect(rig, "relabelled", pod, "", "");
    rig_free(rig);
}

static void without_namespaces_their_selectors_object_to_nothing(void **state)
{
    struct rig *rig = rig_new_but(1U << RIG_NAMESPACES);

    rig_put(rig, "[" ZONES ", {pod: w, ns: e, at: a1, labels: {app: web}}]");
    rig_expect(
        rig, "near",
        NEAR("", "{topologyKey: zone, namespaceSelector: {matchLabels: {a: b}}, " APP("web") "}"),
        "", "");
    rig_expect(rig, "near, all of them",
               NEAR("", "{topologyKey: zone, namespaceSelector: {}, " APP("web") "}"), "b[1-2],c1",
               NULL);
    rig_free(rig);
}

static void rules_without_end_are_refused(void **state)
{
    struct rig *rig = rig_new();
    auto_buf struct buf text;

    buf_init(&text, 1 << 20);
    buf_add_text(&text, "{pod: p, spec: {affinity: {podAffinity: {" REQUIRED ": [");
    for (unsigned i = 0; i < 65; i++)
        buf_add_text(&text, "{topologyKey: zone, " APP("web") "},");
    buf_add_text(&text, "]}}}}");
    rig_put(rig, "[" ZONES "]");
    rig_expect(rig, "65 terms", buf_text(&text), "a[1-2],b[1-2],c1",
               "the pod's affinity or spread constraints cannot be read: more than 64 terms");
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_draw_others_into_their_domain),
        cmocka_unit_test(pods_keep_away_from_others),
        cmocka_unit_test(pods_that_are_there_keep_others_away),
        cmocka_unit_test(pods_spread_over_domains),
        cmocka_unit_test(a_set_follows_the_pods_that_its_rules_look_at),
        cmocka_unit_test(who_keeps_others_away_may_come_and_go),
        cmocka_unit_test(a_reserved_pod_counts_as_placed_for_who_reserved_it_alone),
        cmocka_unit_test(labels_of_namespaces_may_change),
        cmocka_unit_test(without_namespaces_their_selectors_object_to_nothing),
        cmocka_unit_test(rules_without_end_are_refused),
    };

    return cmocka_run_group_tests_name("pod_rules", tests, NULL, NULL);
}
