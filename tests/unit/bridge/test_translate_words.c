/* test_translate_words.c - times, rights and choices: of the config, the pods and the annotations,
 * in this order of precedence; one row per rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "translate_rig.h"

/* ---- time ---- */

#define DEADLINE(seconds) "activeDeadlineSeconds: " seconds ", containers: [{}]"
#define BY_POD            "{podDeadlineAsTimeLimit: true}"

static void write_times(const struct job_desc *desc, struct buf *out)
{
    rig_add_number(out, "time", desc->time_limit);
    rig_add_number(out, "begin", desc->begin_time);
    rig_add_number(out, "deadline", desc->deadline);
}

static void deadlines_of_pods_are_time_limits_where_the_config_says_so(void **state)
{
    static const struct rig_row rows[] = {
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

    RIG_CHECK(rows, write_times);
}

#define GRACE(seconds) "terminationGracePeriodSeconds: " seconds ", containers: [{}]"
#define WITH_GRACE     "{podDeadlineAsTimeLimit: true, gracePeriodInTimeLimit: true}"

static void a_deadline_leaves_time_for_the_end_where_the_config_says_so(void **state)
{
    static const struct rig_row rows[] = {
        { "off",
          { .job = "activeDeadlineSeconds: 60", .pods = { GRACE("120"), GRACE("90") } },
          "time=1" },
        { "the longest of a gang",
          { .config = WITH_GRACE,
            .job = "activeDeadlineSeconds: 60",
            .pods = { GRACE("120"), GRACE("90") } },
          "time=3" },
        { "rounded up once",
          { .config = WITH_GRACE, .pods = { "activeDeadlineSeconds: 90, " GRACE("30") } },
          "time=2" },
        { "there is no deadline", { .config = WITH_GRACE, .pods = { GRACE("120") } }, "" },
        { "annotations win, as they are",
          { .config = WITH_GRACE,
            .annotations = S "timelimit: '5'",
            .job = "activeDeadlineSeconds: 60",
            .pods = { GRACE("120") } },
          "time=5" },
        { "more than can be counted",
          { .config = WITH_GRACE,
            .job = "activeDeadlineSeconds: 9223372036854775807",
            .pods = { GRACE("120") } },
          "refused: activeDeadlineSeconds of 9223372036854775807 is more than Slurm's time limit "
          "holds" },
    };

    RIG_CHECK(rows, write_times);
}

static void a_begin_counts_from_the_creation_of_the_pod(void **state)
{
    static const struct rig_row rows[] = {
        { "later",
          { .annotations = S "begin-time: +1h", .pods = { C("{}") } },
          "begin=1800003600" },
        { "at a time",
          { .annotations =
                S "begin-time: '2027-01-15T08:00:07Z', " S "deadline: '2027-01-15T09:00:00Z'",
            .pods = { C("{}") } },
          "begin=1800000007 deadline=1800003600" },
    };

    RIG_CHECK(rows, write_times);
}

/* ---- who, and how urgent ---- */

static void write_rights(const struct job_desc *desc, struct buf *out)
{
    buf_printf(out, "%s:%s %s %s", desc->user_id, desc->group_id, desc->account, desc->qos);
    rig_add_number(out, "priority", desc->priority);
    if (desc->nice)
        buf_printf(out, " nice=%" PRId64, desc->nice);
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
    static const struct rig_row rows[] = {
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

    RIG_CHECK(rows, write_rights);
}

#define OWN     "{trustAnnotations: own, " USERS "}"
#define REFUSED "refused: slurmjob.slinky.slurm.net/"
#define HERE    " here (`trustAnnotations: own`)"

static void with_own_an_annotation_makes_a_job_nobody_elses_and_more_urgent_than_none(void **state)
{
    static const struct rig_row rows[] = {
        { "what is his to say",
          { .config = OWN,
            .annotations = S "account: rich, " S "qos: vip, " S "priority: '0', " S "nice: '7'",
            .pods = { C("{}") } },
          "u:g rich vip priority=0 nice=7" },
        { "a user",
          { .config = OWN, .annotations = S "user-id: root", .pods = { C("{}") } },
          REFUSED "user-id: annotations may say no user" HERE },
        { "even none",
          { .config = OWN, .annotations = S "user-id: ''", .pods = { C("{}") } },
          REFUSED "user-id: annotations may say no user" HERE },
        { "a group",
          { .config = OWN, .annotations = S "group-id: '0'", .pods = { C("{}") } },
          REFUSED "group-id: annotations may say no group" HERE },
        { "a priority",
          { .config = OWN, .annotations = S "priority: '1'", .pods = { C("{}") } },
          REFUSED "priority: annotations may say no priority but 0" HERE },
        { "a nice below 0",
          { .config = OWN, .annotations = S "nice: '-1'", .pods = { C("{}") } },
          REFUSED "nice: annotations may say no nice below 0" HERE },
        { "a value of a wrong form is told as such",
          { .config = OWN, .annotations = S "priority: much", .pods = { C("{}") } },
          REFUSED "priority: \"much\" is not a whole number from 0 to 2147483647" },
        { "a priority class is the administrator's word",
          { .config = "{trustAnnotations: own, " CLASSES "}",
            .pods = { C("{}") ", priorityClassName: first" } },
          ":   priority=900" },
    };

    RIG_CHECK(rows, write_rights);
}

static void a_pod_that_runs_loses_what_it_may_not_say_and_keeps_its_place(void **state)
{
    static const struct rig_row rows[] = {
        { "own",
          { .config = OWN, .annotations = WORDS, .is_bound = true, .pods = { C("{}") } },
          "u:g rich vip" },
        { "all",
          { .config = "{" USERS "}", .annotations = WORDS, .is_bound = true, .pods = { C("{}") } },
          "root:root rich vip priority=99 nice=-7" },
    };

    RIG_CHECK(rows, write_rights);
}

static void a_priority_class_is_a_qos_or_a_priority_where_the_config_says_so(void **state)
{
    static const struct rig_row rows[] = {
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

    RIG_CHECK(rows, write_rights);
}

/* ---- precedence ---- */

static void write_rest(const struct job_desc *desc, struct buf *out)
{
    buf_printf(out, "%s %s %s", desc->partition, desc->mcs_label,
               desc->exclusive ? "exclusive" : "shared");
    rig_write_amounts(desc, out);
}

static void annotations_win_over_pods_and_those_over_the_config(void **state)
{
    static const struct rig_row rows[] = {
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
          "q kubernetes exclusive cpus=2 memory=1024 gres/gpu:h100=2" },
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

    RIG_CHECK(rows, write_rest);
}

static void only_the_annotations_of_the_root_count(void **state)
{
    const struct kube_object *root =
        rig_object(&kube_replicaset_kind, "rs", S "account: of-root", "spec: {}");
    const struct kube_object *object = rig_object(
        &kube_pod_kind, "pod", S "account: of-pod, " S "qos: of-pod", "spec: {containers: [{}]}");
    const struct kube_pod *pods[] = { kube_pod_of(object) };
    struct bridge_config config;
    struct job_desc desc;

    assert_int_equal(bridge_config_parse(STR(""), &config, NULL), 0);
    assert_int_equal(translate(
                         &(struct translate_from){
                             .config = &config, .pods = pods, .pod_count = 1, .owner = root },
                         &rig_arena, &desc, NULL),
                     0);
    assert_string_equal(desc.account, "of-root");
    assert_string_equal(desc.qos, "");
    assert_string_equal(desc.name, "pod");
    bridge_config_done(&config);
    kube_object_unref(object);
    kube_object_unref(root);
}

static void a_refusal_writes_no_ask(void **state)
{
    const struct rig_given given = { .annotations = S "priority: x", .pods = { C("{}") } };
    struct job_desc desc = { .nodes = 77 };
    struct rig_scene scene;

    rig_scene_init(&scene, &given);
    assert_int_equal(rig_translated(&scene, &desc, NULL), -ERR_INVALID);
    assert_int_equal(desc.nodes, 77);
    rig_scene_done(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deadlines_of_pods_are_time_limits_where_the_config_says_so),
        cmocka_unit_test(a_deadline_leaves_time_for_the_end_where_the_config_says_so),
        cmocka_unit_test(a_begin_counts_from_the_creation_of_the_pod),
        cmocka_unit_test(rules_of_the_config_say_who_a_pod_is),
        cmocka_unit_test(with_own_an_annotation_makes_a_job_nobody_elses_and_more_urgent_than_none),
        cmocka_unit_test(a_pod_that_runs_loses_what_it_may_not_say_and_keeps_its_place),
        cmocka_unit_test(a_priority_class_is_a_qos_or_a_priority_where_the_config_says_so),
        cmocka_unit_test(annotations_win_over_pods_and_those_over_the_config),
        cmocka_unit_test(only_the_annotations_of_the_root_count),
        cmocka_unit_test(a_refusal_writes_no_ask),
    };

    return cmocka_run_group_tests_name("translate_words", tests, rig_up, rig_down);
}
