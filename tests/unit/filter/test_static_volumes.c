/* test_static_volumes.c - static volumes: which of the free ones a claim may take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "filter_rig.h"

enum { MAX_OPEN = 8 };

#define NODES                                                                                      \
    "{node: a1, labels: {kubernetes.io/hostname: a1, zone: a}}, "                                  \
    "{node: b1, labels: {kubernetes.io/hostname: b1, zone: b}}"
#define CLASS                                                                                      \
    "{class: local, is: {provisioner: kubernetes.io/no-provisioner, volumeBindingMode: "           \
    "WaitForFirstConsumer}}"
#define CLAIM_OF(name, access, size, rest)                                                         \
    "{claim: " name ", is: {spec: {storageClassName: local, accessModes: [" access "], "           \
    "resources: {requests: {storage: " size "}}" rest "}}}"
#define CLAIM(name, size, rest) CLAIM_OF(name, "ReadWriteOnce", size, rest)
#define OF(class, access, size)                                                                    \
    "storageClassName: " class ", accessModes: [" access "], capacity: {storage: " size "}"
#define SPEC(size) OF("local", "ReadWriteOnce", size)
#define FREE       "status: {phase: Available}"
#define AT(k)      "nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [" k "]}]}}"
#define HOST(node) AT("{key: kubernetes.io/hostname, operator: In, values: [" node "]}")
#define ZONE(zone) AT("{key: zone, operator: In, values: [" zone "]}")
#define DISK(name, node, size)                                                                     \
    "{volume: " name ", is: {spec: {" SPEC(size) ", " HOST(node) "}, " FREE "}}"
#define WORLD(rest) "[" NODES ", " CLASS ", " CLAIM("c", "2Gi", "") ", " rest "]"
#define USES(name)                                                                                 \
    "{pod: p, spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: " name "}}]}}"
#define USES_TWO                                                                                   \
    "{pod: p, spec: {volumes: [{persistentVolumeClaim: {claimName: c}}, {persistentVolumeClaim: "  \
    "{claimName: c}}, {persistentVolumeClaim: {claimName: d}}]}}"

/* ---- which nodes ---- */

static void only_nodes_with_a_volume_that_suits_will_do(void **state)
{
    static const char *const none = "a1,b1";
    const struct rig_case cases[] = {
        { "there is none", WORLD("{volume: v, is: {spec: {}}}"), USES("c"), none,
          "2 node(s) didn't find available persistent volumes to bind" },
        { "of one node", WORLD(DISK("v", "b1", "2Gi")), USES("c"), "a1",
          "1 node(s) didn't find available persistent volumes to bind" },
        { "of either", WORLD(DISK("v", "'a1', b1", "2Gi")), USES("c"), "", "" },
        { "too small", WORLD(DISK("v", "b1", "2047Mi")), USES("c"), none,
          "2 node(s) didn't find available persistent volumes to bind" },
        { "of another class",
          WORLD("{volume: v, is: {spec: {" OF("x", "ReadWriteOnce", "2Gi") "}, " FREE "}}"),
          USES("c"), none, NULL },
        { "of fewer access modes",
          "[" NODES ", " CLASS ", " CLAIM_OF("c", "ReadWriteOnce, ReadOnlyMany", "1Gi",
                                             "") ", " DISK("v", "a1", "2Gi") "]",
          USES("c"), none, NULL },
        { "of more access modes",
          WORLD("{volume: v, is: {spec: {" OF("local", "ReadOnlyMany, ReadWriteOnce",
                                              "2Gi") ", " HOST("a1") "}, " FREE "}}"),
          USES("c"), "b1", NULL },
        { "of another mode",
          WORLD("{volume: v, is: {spec: {" SPEC("2Gi") ", volumeMode: Block}, " FREE "}}"),
          USES("c"), none, NULL },
        { "of the same mode, said and not said",
          WORLD("{volume: v, is: {spec: {" SPEC("2Gi") ", volumeMode: Filesystem}, " FREE "}}"),
          USES("c"), "", "" },
        { "not available",
          WORLD("{volume: v, is: {spec: {" SPEC("2Gi") "}, status: {phase: Released}}}"), USES("c"),
          none, NULL },
        { "being deleted",
          WORLD("{volume: v, ending: true, is: {spec: {" SPEC("2Gi") "}, " FREE "}}"), USES("c"),
          none, NULL },
        { "for another claim",
          WORLD("{volume: v, is: {spec: {" SPEC("2Gi") ", claimRef: {namespace: d, name: x}}, " FREE
                                                       "}}"),
          USES("c"), none, NULL },
        { "for a claim of this name that was there before",
          WORLD("{volume: v, is: {spec: {" SPEC("2Gi") ", claimRef: {namespace: d, name: c, uid: "
                                                       "old}}, " FREE "}}"),
          USES("c"), none, NULL },
        { "for this claim",
          WORLD("{volume: v, is: {spec: {" SPEC("2Gi") ", " HOST("b1") ", claimRef: {namespace: d, "
                                                                       "name: c}}, status: {phase: "
                                                                       "Bound}}}, " DISK("w", "a1",
                                                                                         "2Gi")),
          USES("c"), "a1", "1 node(s) didn't match PersistentVolume's node affinity" },
        { "for this claim, and too small for it",
          WORLD("{volume: v, is: {spec: {" SPEC("1Gi") ", " HOST(
              "b1") ", claimRef: {namespace: d, "
                    "name: c}}, " FREE "}}, " DISK("w", "a1", "2Gi")),
          USES("c"), "b1", NULL },
        { "anywhere", WORLD("{volume: v, is: {spec: {" SPEC("2Gi") "}, " FREE "}}"), USES("c"), "",
          "" },
        { "of a zone", WORLD("{volume: v, is: {spec: {" SPEC("2Gi") ", " ZONE("b") "}, " FREE "}}"),
          USES("c"), "a1", NULL },
        { "of a host and more",
          WORLD("{volume: v, is: {spec: {" SPEC("2Gi") ", " AT(
              "{key: kubernetes.io/hostname, operator: In, values: [a1, b1]}, {key: zone, "
              "operator: NotIn, values: [b]}") "}, " FREE "}}"),
          USES("c"), "b1", NULL },
        { "of what cannot be read",
          WORLD("{volume: v, is: {spec: {" SPEC(
              "2Gi") ", nodeAffinity: {required: {nodeSelectorTerms: x}}}, " FREE "}}"),
          USES("c"), none, NULL },
        { "with labels",
          "[" NODES ", " CLASS ", " CLAIM(
              "c", "1Gi",
              ", selector: {matchLabels: {s: fast}}") ", "
                                                      "{volume: v, labels: {s: fast}, is: {spec: "
                                                      "{" SPEC("2Gi") ", " HOST(
                                                          "b1") "}, " FREE
                                                                "}}, " DISK("w", "a1", "2Gi") "]",
          USES("c"), "a1", NULL },
        { "labels that cannot be read",
          "[" NODES ", " CLASS ", " CLAIM("c", "1Gi",
                                          ", selector: {matchExpressions: [{key: s, "
                                          "operator: Like}]}") ", " DISK("w", "a1", "2Gi") "]",
          USES("c"), none, NULL },
    };

    RIG_RUN(cases);
}

static void claims_of_one_pod_want_a_volume_each(void **state)
{
    struct rig *rig = rig_new();

    rig_put(rig, WORLD(CLAIM("d", "1Gi", "") ", " DISK("v1", "a1", "4Gi")));
    rig_expect(rig, "one", USES_TWO, "a1,b1",
               "2 node(s) didn't find available persistent volumes to bind");
    rig_put(rig, "[" DISK("v2", "b1", "1Gi") "]");
    rig_expect(rig, "two, of two nodes", USES_TWO, "a1,b1", NULL);
    rig_put(rig, "[{volume: v3, is: {spec: {" SPEC("1Gi") "}, " FREE "}}]");
    rig_expect(rig, "a small one anywhere", USES_TWO, "b1", NULL);
    rig_put(rig, "[{volume: v4, is: {spec: {" SPEC("2Gi") "}, " FREE "}}]");
    rig_expect(rig, "and a big one", USES_TWO, "", "");
    rig_free(rig);
}

static void a_set_follows_volumes(void **state)
{
    struct rig *rig = rig_new();
    unsigned calls = 0;

    rig_put(rig, WORLD(DISK("v1", "a1", "2Gi")));
    rig_expect(rig, "one", USES("c"), "b1", NULL);
    rig_put(rig, "[" DISK("v2", "b1", "2Gi") "]");
    rig_expect(rig, "one more", USES("c"), "", "");
    filter_listen(rig->filter, rig_count_call, &calls);
    rig_put(rig, "[" DISK("v2", "b1", "2Gi") "]");
    assert_int_equal(calls, 0);
    rig_put(rig, "[" DISK("v1", "a1", "1Gi") "]");
    assert_int_equal(calls, 1);
    rig_expect(rig, "smaller", USES("c"), "a1", NULL);
    rig_drop(rig, RIG_VOLUMES, "", "v2");
    rig_expect(rig, "gone", USES("c"), "a1,b1", NULL);
    rig_put(rig, "[{node: b1, labels: {kubernetes.io/hostname: b2}}, " DISK("v3", "b2", "2Gi") "]");
    rig_expect(rig, "another host name", USES("c"), "a1", NULL);
    rig_put(rig, "[{volume: v4, is: {spec: {" SPEC("2Gi") "}, " FREE "}}]");
    rig_expect(rig, "one for all", USES("c"), "", "");
    rig_drop(rig, RIG_VOLUMES, "", "v4");
    rig_expect(rig, "gone again", USES("c"), "a1", NULL);
    rig_put(rig,
            "[{volume: v5, is: {spec: {" SPEC("2Gi") ", claimRef: {namespace: d, name: x}}}}]");
    calls = 0;
    rig_put(rig,
            "[{volume: v5, is: {spec: {" SPEC("2Gi") ", claimRef: {namespace: d, name: c}}}}]");
    assert_int_equal(calls, 1);
    rig_expect(rig, "one is for it", USES("c"), "", "");
    rig_free(rig);
}

static void a_set_follows_the_labels_of_free_volumes(void **state)
{
    struct rig *rig = rig_new();

    rig_put(rig, "[" NODES ", " CLASS
                 ", " CLAIM("c", "1Gi",
                            ", selector: {matchLabels: {s: x}}") ", "
                                                                 "{volume: v, is: {spec: {" SPEC(
                                                                     "2Gi") "}, " FREE "}}]");
    rig_expect(rig, "no label", USES("c"), "a1,b1", NULL);
    rig_put(rig, "[{volume: v, labels: {s: x}, is: {spec: {" SPEC("2Gi") "}, " FREE "}}]");
    rig_expect(rig, "labelled", USES("c"), "", "");
    rig_free(rig);
}

static void without_volumes_to_look_at_nothing_is_objected(void **state)
{
    struct rig *rig = rig_new_but(1u << RIG_VOLUMES);

    rig_put(rig, "[" NODES ", " CLASS ", " CLAIM("c", "2Gi", "") "]");
    rig_expect(rig, "no cache", USES("c"), "", "");
    rig_free(rig);
}

/* ---- which volume ---- */

/* "c=v1" for each claim: it takes this volume; "c.v1" waits for it; "c-" gets none. */
static unsigned add_open(struct rig *rig, const char *text, const char *node,
                         struct filter_claim *open, unsigned count)
{
    const struct kube_pod *pod = rig_waiting(rig, text);
    unsigned all = filter_unbound_claims(rig->filter, pod, node, open, count, MAX_OPEN);

    for (unsigned i = count; i < all; i++) /* the pod goes away */
        open[i].name = arena_strdup(&rig->arena, open[i].name);
    kube_object_unref(&pod->object);
    return all;
}

static const char *show_open(struct rig *rig, const struct filter_claim *open, unsigned count)
{
    static const char signs[] = { [FILTER_WAIT] = '.',
                                  [FILTER_SELECT_NODE] = '>',
                                  [FILTER_TAKE_VOLUME] = '=',
                                  [FILTER_NO_VOLUME] = '-' };
    auto_buf struct buf text;

    buf_init(&text, 1000);
    for (unsigned i = 0; i < count; i++)
        buf_printf(&text, "%s%s%c%s", i > 0 ? " " : "", open[i].name, signs[open[i].step],
                   open[i].volume ? open[i].volume->name : "");
    return arena_strdup(&rig->arena, buf_text(&text));
}

static const char *open_at(struct rig *rig, const char *text, const char *node)
{
    struct filter_claim open[MAX_OPEN];

    return show_open(rig, open, add_open(rig, text, node, open, 0));
}

static void the_smallest_volume_that_is_big_enough_is_taken(void **state)
{
    struct rig *rig = rig_new();

    rig_put(rig, WORLD(DISK("v1", "a1", "1Gi") ", " DISK("v9", "a1", "9Gi") ", " DISK(
                     "v4", "a1", "4Gi") ", " DISK("v3", "b1", "3Gi") ", " CLAIM("d", "1Gi", "")));
    assert_string_equal(open_at(rig, USES("c"), "a1"), "c=v4");
    assert_string_equal(open_at(rig, USES("c"), "b1"), "c=v3");
    assert_string_equal(open_at(rig, USES_TWO, "a1"), "c=v4 d=v1");
    assert_string_equal(open_at(rig, USES_TWO, "b1"), "c- d-");
    rig_put(rig, "[" DISK("u4", "a1", "4Gi") "]");
    assert_string_equal(open_at(rig, USES("c"), "a1"), "c=u4"); /* of equals the first by name */
    rig_put(rig, "[{volume: any, is: {spec: {" SPEC("2Gi") "}, " FREE "}}]");
    assert_string_equal(open_at(rig, USES("c"), "a1"), "c=any");
    assert_string_equal(open_at(rig, USES_TWO, "b1"), "c=v3 d=any");
    rig_put(rig, "[{volume: mine, is: {spec: {" SPEC("9Gi") ", claimRef: {namespace: d, name: c, "
                                                            "uid: c}}, " FREE "}}]");
    assert_string_equal(open_at(rig, USES_TWO, "a1"), "c.mine d=v1");
    rig_free(rig);
}

static void pods_that_go_together_take_different_volumes(void **state)
{
    struct rig *rig = rig_new();
    struct filter_claim open[MAX_OPEN];
    unsigned count;

    rig_put(rig, WORLD(DISK("v2", "a1", "2Gi") ", " DISK("v3", "a1", "3Gi") ", " CLAIM(
                     "d", "1Gi", "") ", " CLAIM("e", "1Gi", "")));
    count = add_open(rig, USES("c"), "a1", open, 0);
    count = add_open(rig, USES("d"), "a1", open, count);
    count = add_open(rig, USES("c"), "a1", open, count); /* shared by two pods */
    count = add_open(rig, USES("e"), "a1", open, count);
    assert_string_equal(show_open(rig, open, count), "c=v2 d=v3 e-");
    rig_free(rig);
}

static void the_list_of_open_claims_is_bounded(void **state)
{
    struct rig *rig = rig_new();
    struct filter_claim open[1];
    const struct kube_pod *pod = rig_waiting(rig, USES_TWO);

    rig_put(rig,
            WORLD(CLAIM("d", "1Gi", "") ", " DISK("v2", "a1", "2Gi") ", " DISK("v3", "a1", "3Gi")));
    assert_int_equal(filter_unbound_claims(rig->filter, pod, "a1", open, 0, 1), 1);
    assert_string_equal(open[0].volume->name, "v3");
    assert_int_equal(filter_unbound_claims(rig->filter, pod, "a1", open, 1, 1), 1);
    assert_int_equal(filter_unbound_claims(rig->filter, pod, "gone", open, 0, 1), 1);
    assert_null(open[0].volume);
    kube_object_unref(&pod->object);
    rig_free(rig);
}

/* What a plan foretells of a volume is true for all that are planned after it. */
static void a_volume_that_is_being_taken_is_nobody_elses(void **state)
{
    struct rig *rig = rig_new();
    struct json_doc *patch = parsed_yaml(
        "{metadata: {annotations: {pv.kubernetes.io/bound-by-controller: 'yes'}}, spec: "
        "{claimRef: {namespace: d, name: c, uid: c}}}");
    struct kube_cache *cache = rig->caches[RIG_VOLUMES];
    struct kube_overlay *overlay;

    rig_put(rig,
            WORLD(DISK("v1", "a1", "2Gi") ", " DISK("v2", "b1", "2Gi") ", " CLAIM("d", "1Gi", "")));
    rig_expect(rig, "both are free", USES("d"), "", "");
    overlay = kube_overlay_patch(cache, "", "v1", patch);
    rig_expect(rig, "the other", USES("d"), "a1", NULL);
    rig_expect(rig, "its own", USES("c"), "b1", NULL);
    assert_string_equal(rig_misfit(rig, USES("d"), "a1"),
                        "node(s) didn't find available persistent volumes to bind");
    assert_string_equal(open_at(rig, USES("c"), "a1"), "c.v1");
    kube_overlay_failed(overlay);
    rig_expect(rig, "the write was lost", USES("d"), "", "");
    assert_string_equal(open_at(rig, USES("c"), "a1"), "c=v1");
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_nodes_with_a_volume_that_suits_will_do),
        cmocka_unit_test(claims_of_one_pod_want_a_volume_each),
        cmocka_unit_test(a_set_follows_volumes),
        cmocka_unit_test(a_set_follows_the_labels_of_free_volumes),
        cmocka_unit_test(without_volumes_to_look_at_nothing_is_objected),
        cmocka_unit_test(the_smallest_volume_that_is_big_enough_is_taken),
        cmocka_unit_test(pods_that_go_together_take_different_volumes),
        cmocka_unit_test(the_list_of_open_claims_is_bounded),
        cmocka_unit_test(a_volume_that_is_being_taken_is_nobody_elses),
    };

    return cmocka_run_group_tests_name("static_volumes", tests, NULL, NULL);
}
