/* test_group.c - which group a pod is in, by which key, and in which order its members come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bridge/world/group.h"
#include "bridge/world/names.h"
#include "codec/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_POD = 4096, MAX_KEY = 512 };

#define GANG "\"annotations\":{\"" BRIDGE_ANNOTATION_PREFIX BRIDGE_GANG "\":\"true\"}"
#define OF_JOB                                                                                     \
    "\"ownerReferences\":[{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"name\":\"j\",\"uid\":"   \
    "\"u-7\",\"controller\":true}]"
#define LABELS(pairs) "\"labels\":{" pairs "}"
#define IN_PODGROUP   "\"schedulingGroup\":{\"podGroupName\":\"pg\"}"
#define COSCHEDULING  "\"" BRIDGE_COSCHEDULING_LABEL "\":\"co\""
#define LWS           "\"" BRIDGE_LWS_NAME_LABEL "\":\"s\",\"" BRIDGE_LWS_KEY_LABEL "\":\"k\""
#define JOBSET                                                                                     \
    "\"" BRIDGE_JOBSET_NAME_LABEL "\":\"js\",\"" BRIDGE_JOBSET_UID_LABEL                           \
    "\":\"u-9\",\"" BRIDGE_JOBSET_RESTART_LABEL "\":\"2\""

/* A pod of this name with these members of its metadata and of its spec. */
static const struct kube_object *make(const char *ns, const char *name, const char *metadata,
                                      const char *spec)
{
    char text[MAX_POD];
    auto_json_doc struct json_doc *doc = NULL;
    const struct kube_object *pod = NULL;
    struct err err = { .class = 0 };

    (void)snprintf(text, sizeof(text),
                   "{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\",\"uid\":\"u-1\","
                   "\"resourceVersion\":\"1\"%s%s},"
                   "\"spec\":{%s}}",
                   ns, name, metadata[0] ? "," : "", metadata, spec);
    assert_int_equal(json_parse(str_of(text), MAX_POD, &doc, &err), 0);
    if (kube_object_decode(&kube_pod_kind, json_root(doc), &pod, &err) < 0)
        fail_msg("%s", err.text);
    return pod;
}

static void assert_key(const char *metadata, const char *spec, const char *wanted)
{
    const struct kube_object *pod = make("ns", "p", metadata, spec);
    auto_buf struct buf key;

    buf_init(&key, MAX_KEY);
    group_key(kube_pod_of(pod), &key);
    assert_string_equal(buf_text(&key), wanted);
    kube_object_unref(pod);
}

/* ---- which group ---- */

static void what_a_pod_says_of_itself_is_the_key_of_its_group(void **state)
{
    static const struct {
        const char *metadata, *spec, *key;
    } cases[] = {
        { "", "", "" },
        { "", IN_PODGROUP, "ns/podgroup/pg" },
        { LABELS(COSCHEDULING), "", "ns/coscheduling/co" },
        { LABELS(LWS), "", "ns/lws/k" },
        { OF_JOB "," GANG, "", "ns/job/u-7" },
        { LABELS(JOBSET) "," OF_JOB "," GANG, "", "ns/jobset/u-9/2" },
        { LABELS("\"" BRIDGE_JOBSET_NAME_LABEL "\":\"js\"") "," GANG, "", "ns/jobset/js/" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_key(cases[i].metadata, cases[i].spec, cases[i].key);
}

static void a_job_is_no_gang_unless_its_pods_say_so(void **state)
{
    static const char *const others[] = {
        OF_JOB,
        LABELS(JOBSET) "," OF_JOB,
        OF_JOB ",\"annotations\":{\"" BRIDGE_ANNOTATION_PREFIX BRIDGE_GANG "\":\"false\"}",
        OF_JOB ",\"annotations\":{\"" BRIDGE_ANNOTATION_PREFIX BRIDGE_GANG "\":\"\"}",
    };

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_key(others[i], "", "");
    assert_key(OF_JOB ",\"annotations\":{\"" BRIDGE_ANNOTATION_PREFIX BRIDGE_GANG "\":\"4\"}", "",
               "ns/job/u-7");
}

static void a_gang_that_nobody_owns_is_none(void **state)
{
    assert_key(GANG, "", "");
    assert_key("\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":"
               "\"r\",\"uid\":\"u-7\",\"controller\":true}]," GANG,
               "", "");
}

static void half_of_the_labels_of_a_leaderworkerset_are_none(void **state)
{
    assert_key(LABELS("\"" BRIDGE_LWS_NAME_LABEL "\":\"s\""), "", "");
    assert_key(LABELS("\"" BRIDGE_LWS_KEY_LABEL "\":\"k\""), "", "");
    assert_key(LABELS("\"" BRIDGE_COSCHEDULING_LABEL "\":\"\""), "", "");
}

static void the_first_rule_that_applies_decides(void **state)
{
    assert_key(LABELS(COSCHEDULING "," LWS "," JOBSET) "," OF_JOB "," GANG, IN_PODGROUP,
               "ns/podgroup/pg");
    assert_key(LABELS(COSCHEDULING "," LWS "," JOBSET) "," OF_JOB "," GANG, "",
               "ns/coscheduling/co");
    assert_key(LABELS(LWS "," JOBSET) "," OF_JOB "," GANG, "", "ns/lws/k");
}

static void equal_names_of_two_namespaces_are_two_groups(void **state)
{
    const struct kube_object *a = make("a", "p", "", IN_PODGROUP);
    const struct kube_object *b = make("b", "p", "", IN_PODGROUP);
    auto_buf struct buf key_a, key_b;

    buf_init(&key_a, MAX_KEY);
    buf_init(&key_b, MAX_KEY);
    group_key(kube_pod_of(a), &key_a);
    group_key(kube_pod_of(b), &key_b);
    assert_string_equal(buf_text(&key_a), "a/podgroup/pg");
    assert_string_equal(buf_text(&key_b), "b/podgroup/pg");
    kube_object_unref(a);
    kube_object_unref(b);
}

static void a_group_names_the_object_whose_words_count(void **state)
{
    static const struct {
        const char *metadata, *spec;
        enum group_kind kind;
        const char *name, *number, *word;
    } cases[] = {
        { "", "", GROUP_NONE, "", "", "Pod" },
        { "", IN_PODGROUP, GROUP_PODGROUP, "pg", "", "PodGroup" },
        { LABELS(COSCHEDULING), "", GROUP_COSCHEDULING, "co", "", "PodGroup" },
        { LABELS(LWS ",\"" BRIDGE_LWS_GROUP_LABEL "\":\"3\""), "", GROUP_LWS, "s", "3",
          "LeaderWorkerSet" },
        { OF_JOB "," GANG, "", GROUP_JOB, "j", "", "Job" },
        { LABELS(JOBSET) "," GANG, "", GROUP_JOBSET, "js", "2", "JobSet" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct kube_object *pod = make("ns", "p", cases[i].metadata, cases[i].spec);
        struct group group = group_of(kube_pod_of(pod));

        assert_int_equal(group.kind, cases[i].kind);
        assert_true(str_is(group.name, cases[i].name));
        assert_true(str_is(group.number, cases[i].number));
        assert_string_equal(group_kind_name(group.kind), cases[i].word);
        kube_object_unref(pod);
    }
}

static void keys_of_groups_are_told_from_those_of_pods(void **state)
{
    static const struct {
        const char *key;
        bool is_of_group;
    } cases[] = {
        { "ns/podgroup/pg", true },
        { "ns/jobset/u-9/2", true },
        { "ns/jobset/js/", true },
        { "ns/u-1", false },
        { "ns", false },
        { "", false },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(group_key_is_of_group(str_of(cases[i].key)), cases[i].is_of_group);
}

/* ---- in which order ---- */

#define INDEX(label, number) LABELS("\"" label "\":\"" number "\"")

struct ranked {
    const char *name, *metadata;
};

/* Each comes before all that follow it, and none after itself. */
static void assert_order(const struct ranked *pods, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++) {
            const struct kube_object *a = make("ns", pods[i].name, pods[i].metadata, "");
            const struct kube_object *b = make("ns", pods[k].name, pods[k].metadata, "");
            struct group_rank left = group_rank_of(kube_pod_of(a));
            struct group_rank right = group_rank_of(kube_pod_of(b));
            int order = group_rank_compare(&left, &right);

            if ((order > 0) - (order < 0) != (i > k) - (i < k))
                fail_msg("%s and %s: %d", pods[i].name, pods[k].name, order);
            kube_object_unref(a);
            kube_object_unref(b);
        }
}

static void numbers_in_names_count_by_value(void **state)
{
    static const struct ranked pods[] = {
        { "w", "" },       { "w-1", "" },   { "w-2", "" },
        { "w-9", "" },     { "w-10", "" },  { "w-10-3", "" },
        { "w-10-21", "" }, { "w-100", "" }, { "w-18446744073709551616", "" },
        { "w-a", "" },     { "x-0", "" },
    };

    assert_order(pods, sizeof(pods) / sizeof(pods[0]));
}

static void names_that_differ_only_by_zeros_have_an_order_too(void **state)
{
    static const struct ranked pods[] = { { "w-007", "" }, { "w-07", "" }, { "w-7", "" } };

    assert_order(pods, sizeof(pods) / sizeof(pods[0]));
}

static void the_index_of_a_controller_comes_before_the_name(void **state)
{
    static const struct ranked by_completion[] = {
        { "z", INDEX(BRIDGE_COMPLETION_LABEL, "0") },
        { "b", INDEX(BRIDGE_COMPLETION_LABEL, "2") },
        { "a", INDEX(BRIDGE_COMPLETION_LABEL, "10") },
    };
    static const struct ranked by_worker[] = {
        { "z", "" }, /* without an index: before all that have one */
        { "y", INDEX(BRIDGE_LWS_WORKER_LABEL, "not a number") },
        { "c", INDEX(BRIDGE_LWS_WORKER_LABEL, "0") },
        { "b", INDEX(BRIDGE_LWS_WORKER_LABEL, "1") },
    };
    static const struct ranked of_jobset[] = {
        { "d",
          LABELS("\"" BRIDGE_JOBSET_INDEX_LABEL "\":\"0\",\"" BRIDGE_COMPLETION_LABEL "\":\"5\"") },
        { "a",
          LABELS("\"" BRIDGE_JOBSET_INDEX_LABEL "\":\"1\",\"" BRIDGE_COMPLETION_LABEL "\":\"0\"") },
        { "b",
          LABELS("\"" BRIDGE_JOBSET_INDEX_LABEL "\":\"1\",\"" BRIDGE_COMPLETION_LABEL "\":\"1\"") },
    };

    assert_order(by_completion, sizeof(by_completion) / sizeof(by_completion[0]));
    assert_order(of_jobset, sizeof(of_jobset) / sizeof(of_jobset[0]));
    assert_order(&by_worker[1], 3);
    assert_order((const struct ranked[]){ by_worker[0], by_worker[2], by_worker[3] }, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_pod_says_of_itself_is_the_key_of_its_group),
        cmocka_unit_test(a_job_is_no_gang_unless_its_pods_say_so),
        cmocka_unit_test(a_gang_that_nobody_owns_is_none),
        cmocka_unit_test(half_of_the_labels_of_a_leaderworkerset_are_none),
        cmocka_unit_test(the_first_rule_that_applies_decides),
        cmocka_unit_test(equal_names_of_two_namespaces_are_two_groups),
        cmocka_unit_test(a_group_names_the_object_whose_words_count),
        cmocka_unit_test(keys_of_groups_are_told_from_those_of_pods),
        cmocka_unit_test(numbers_in_names_count_by_value),
        cmocka_unit_test(names_that_differ_only_by_zeros_have_an_order_too),
        cmocka_unit_test(the_index_of_a_controller_comes_before_the_name),
    };

    return cmocka_run_group_tests_name("bridge/group", tests, NULL, NULL);
}
