/* test_rules.c - what is refused, in which words, and what is not. */
#include "admit/rules.h"
#include "admit_rig.h"

#define CLASS    "deviceclass.resource.kubernetes.io/"
#define JOB      "'" BRIDGE_JOB_LABEL "'"
#define NODE     "'" BRIDGE_NODE_ANNOTATION "'"
#define EMPTY    "{'metadata':{},'spec':{}}"
#define OURS     "'schedulerName':'" SCHEDULER "'"
#define TOO_SOON "slurmjob.slinky.slurm.net/timelimit: \"soon\" is not "

static struct rig rig;

static int begin(void **state)
{
    rig_begin(&rig, "");
    return 0;
}

static int begin_with_own(void **state)
{
    rig_begin(&rig, "trustAnnotations: own");
    return 0;
}

/* Somebody made rows of their own. */
static int begin_with_cores(void **state)
{
    rig_begin(&rig, "devices: [{class: dra.cpu, gres: cpu}, {class: gpu.nvidia.com, gres: gpu}]");
    return 0;
}

static int end(void **state)
{
    rig_end(&rig);
    return 0;
}

struct row {
    const char *op, *pod, *old;
    const char *said; /* NULL: allowed; else how the message begins */
};

static void check_as(const struct row *row, const char *sub, const char *user)
{
    struct reply reply = rig_ask(
        &rig, ADMIT_VALIDATE,
        (struct call){ .op = row->op, .pod = row->pod, .old = row->old, .sub = sub, .user = user });

    assert_null(reply.patch);
    assert_false(reply.answer.is_early);
    if (!row->said && reply.answer.verdict != ADMIT_ALLOWED)
        fail_msg("%s: %s", row->pod, reply.message);
    if (!row->said)
        return;
    if (reply.answer.verdict != ADMIT_REFUSED ||
        strncmp(reply.message, row->said, strlen(row->said)) != 0)
        fail_msg("%s: %s", row->pod, reply.text);
    assert_int_equal(reply.code, 403);
    assert_true(str_is(json_str(json_at(reply.response, "status", "reason")), "Forbidden"));
    assert_false(json_bool_or(json_get(reply.response, "allowed"), true));
}

static void check_all(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_as(&rows[i], NULL, NULL);
}

#define LABELLED(value)  "{'metadata':{'labels':{" JOB ":" value "}},'spec':{}}"
#define ANNOTATED(value) "{'metadata':{'annotations':{" NODE ":" value "}},'spec':{}}"

static void a_new_pod_may_not_name_a_job_or_a_node_of_ours(void **state)
{
    static const struct row rows[] = {
        { NULL, EMPTY, NULL, NULL },
        { NULL, LABELLED("'7'"), NULL, "can't create a pod with a slurm external jobid label" },
        { NULL, LABELLED("''"), NULL, NULL },
        { NULL, LABELLED("null"), NULL, NULL },
        { NULL, ANNOTATED("'n1'"), NULL,
          "can't create a pod with a slurm external node annotation" },
        { NULL, ANNOTATED("''"), NULL, NULL },
        { "UPDATE", LABELLED("'7'"), EMPTY, NULL },
    };

    check_all(rows, COUNT(rows));
}

static void claims_are_allocated_and_so_not_refused(void **state)
{
    static const struct row row = { NULL,
                                    "{'metadata':{},'spec':{'resourceClaims':[{'name':'c'}]}}",
                                    NULL, NULL };

    check_as(&row, NULL, NULL);
}

static void topology_spread_is_honoured_and_so_not_refused(void **state)
{
    static const struct row row = {
        NULL, "{'metadata':{},'spec':{'topologySpreadConstraints':[{'maxSkew':1}]}}", NULL, NULL
    };

    check_as(&row, NULL, NULL);
}

#define CONTAINERS(list, kind, resource)                                                           \
    "'" list "':[{'name':'idle'},{'name':'main','resources':{'" kind "':{'" resource "':'1'}}}]"
#define POD(spec) "{'metadata':{},'spec':{" spec "}}"
#define WITH(annotation, spec)                                                                     \
    "{'metadata':{'annotations':{'" WISH annotation "':'1'}},'spec':{" spec "}}"

static void a_pod_may_use_every_class_of_the_table(void **state)
{
    static const struct row rows[] = {
        { NULL, POD(CONTAINERS("containers", "requests", CLASS "cores.slinky.slurm.net")), NULL,
          NULL },
        { NULL, POD(CONTAINERS("initContainers", "limits", CLASS "gpu.nvidia.com")), NULL, NULL },
        { NULL, POD(CONTAINERS("containers", "limits", CLASS "gpu.example.com")), NULL, NULL },
        { "UPDATE", POD(CONTAINERS("containers", "requests", CLASS "cores.slinky.slurm.net")),
          POD(CONTAINERS("containers", "requests", CLASS "cores.slinky.slurm.net")), NULL },
    };

    check_all(rows, COUNT(rows));
}

static void native_cpus_and_cores_of_dra_do_not_go_together(void **state)
{
    static const char said[] =
        "can't specify both native \"cpu\" and CPU DRA resource \"" CLASS "dra.cpu\"";
    static const struct row rows[] = {
        { NULL, POD(CONTAINERS("containers", "requests", "cpu")), NULL, NULL },
        { NULL,
          POD(CONTAINERS("containers", "requests", "cpu") "," CONTAINERS("initContainers", "limits",
                                                                         CLASS "dra.cpu")),
          NULL, said },
        { NULL,
          POD(CONTAINERS("containers", "limits", CLASS "dra.cpu") "," CONTAINERS("initContainers",
                                                                                 "limits", "cpu")),
          NULL, said },
        { NULL,
          POD(CONTAINERS("containers", "requests",
                         CLASS "dra.cpu") ",'resources':{'requests':{'cpu':'0'}}"),
          NULL, said },
        { NULL,
          POD(CONTAINERS("containers", "requests",
                         CLASS "dra.cpu") ",'resources':{'limits':{'cpu':'1'}}"),
          NULL, said },
        { NULL,
          POD(CONTAINERS("containers", "requests",
                         CLASS "dra.cpu") ",'resources':{'limits':{'memory':'1'}}"),
          NULL, NULL },
        { "UPDATE",
          POD(CONTAINERS("containers", "requests",
                         CLASS "dra.cpu") ",'resources':{'limits':{'cpu':'1'}}"),
          EMPTY, NULL },
    };

    check_all(rows, COUNT(rows));
}

static void device_classes_that_slurm_cannot_count_are_refused(void **state)
{
    static const char said[] = "container \"main\" uses unsupported DRA device class \"odd\"";
    static const struct row rows[] = {
        { NULL, POD(CONTAINERS("containers", "limits", "nvidia.com/gpu")), NULL, NULL },
        { NULL, POD(CONTAINERS("containers", "limits", CLASS "odd")), NULL, said },
        { NULL, POD(CONTAINERS("containers", "requests", CLASS "odd")), NULL, said },
        { NULL, POD(CONTAINERS("initContainers", "requests", CLASS "odd")), NULL, said },
        { NULL, POD(CONTAINERS("initContainers", "limits", CLASS "odd")), NULL, said },
        { NULL, POD(CONTAINERS("containers", "limits", CLASS)), NULL,
          "container \"main\" uses unsupported DRA device class \"\"" },
        { NULL, POD(CONTAINERS("containers", "limits", CLASS "gpu.nvidia.com.x")), NULL,
          "container \"main\" uses unsupported DRA device class \"gpu.nvidia.com.x\"" },
        { NULL, POD(CONTAINERS("containers", "limits", CLASS "dra.cpu")), NULL,
          "container \"main\" uses unsupported DRA device class \"dra.cpu\"" },
        { "UPDATE", POD(CONTAINERS("containers", "limits", CLASS "odd")), EMPTY, said },
        { "UPDATE", POD(CONTAINERS("containers", "limits", CLASS "odd")), NULL, said },
        { "UPDATE", POD(CONTAINERS("containers", "limits", CLASS "odd")),
          POD(CONTAINERS("containers", "limits", CLASS "odd")), NULL },
        { "UPDATE", POD(CONTAINERS("containers", "limits", CLASS "odd")),
          POD(CONTAINERS("containers", "limits", CLASS "other")), said },
    };

    check_all(rows, COUNT(rows));
}

static void what_devices_say_annotations_may_not_say_again(void **state)
{
    static const char cpu[] =
        "annotation \"" WISH "cpu-per-task\" conflicts with CPU DRA resource \"" CLASS
        "dra.cpu\": explicit DRA requests are authoritative";
    static const char gres[] = "annotation \"" WISH "gres\" conflicts with DRA resource \"" CLASS
                               "gpu.nvidia.com\": explicit DRA requests are authoritative";
    static const struct row rows[] = {
        { NULL, WITH("cpu-per-task", CONTAINERS("containers", "requests", CLASS "dra.cpu")), NULL,
          cpu },
        { NULL, WITH("cpu-per-task", CONTAINERS("initContainers", "limits", CLASS "dra.cpu")), NULL,
          cpu },
        { NULL, WITH("cpu-per-task", CONTAINERS("containers", "limits", CLASS "gpu.nvidia.com")),
          NULL, NULL },
        { NULL, WITH("cpu-per-task", CONTAINERS("containers", "limits", "cpu")), NULL, NULL },
        { NULL, WITH("gres", CONTAINERS("containers", "limits", CLASS "gpu.nvidia.com")), NULL,
          gres },
        { NULL, WITH("gres", CONTAINERS("initContainers", "requests", CLASS "gpu.nvidia.com")),
          NULL, gres },
        { NULL, WITH("gres", CONTAINERS("containers", "limits", CLASS "dra.cpu")), NULL, NULL },
        { "UPDATE", WITH("gres", CONTAINERS("containers", "limits", CLASS "gpu.nvidia.com")),
          POD(CONTAINERS("containers", "limits", CLASS "gpu.nvidia.com")), gres },
        { "UPDATE", WITH("gres", CONTAINERS("containers", "limits", CLASS "gpu.nvidia.com")),
          WITH("gres", CONTAINERS("containers", "limits", CLASS "gpu.nvidia.com")), NULL },
        { "UPDATE", WITH("cpu-per-task", CONTAINERS("containers", "requests", CLASS "dra.cpu")),
          POD(CONTAINERS("containers", "requests", CLASS "dra.cpu")), cpu },
    };

    check_all(rows, COUNT(rows));
}

static void a_pod_of_ours_keeps_its_size(void **state)
{
    static const char said[] = "can't resize a Slurm Bridge-managed pod";
    const struct row resized = { "UPDATE", EMPTY, EMPTY, said };
    const struct row also_odd = { "UPDATE", POD(CONTAINERS("containers", "limits", CLASS "odd")),
                                  EMPTY, said };
    const struct row other = { "UPDATE", EMPTY, EMPTY, NULL };
    const struct row new = { "CREATE", EMPTY, NULL, NULL };

    check_as(&resized, "resize", NULL);
    check_as(&also_odd, "resize", NULL); /* before all else that is wrong */
    check_as(&other, "status", NULL);
    check_as(&new, "resize", NULL);
}

#define RUNS(labels, annotations, phase)                                                           \
    "{'metadata':{'labels':{" labels "},'annotations':{" annotations "}},'spec':{},'status':"      \
    "{'phase':'" phase "'}}"

static void a_pod_that_runs_keeps_its_job_and_its_node(void **state)
{
    static const char job[] = "can't update a running pod's external jobid label";
    static const char node[] = "can't update a running pod's external node annotation";
    static const struct row rows[] = {
        { "UPDATE", RUNS(JOB ":'8'", "", "Running"), RUNS(JOB ":'7'", "", "Running"), job },
        { "UPDATE", RUNS("", "", "Running"), RUNS(JOB ":'7'", "", "Running"), job },
        { "UPDATE", RUNS(JOB ":'7'", "", "Running"), RUNS("", "", "Running"), job },
        { "UPDATE", RUNS(JOB ":''", "", "Running"), RUNS("", "", "Running"), NULL },
        { "UPDATE", RUNS(JOB ":'7'", "", "Running"), RUNS(JOB ":'7'", "", "Running"), NULL },
        { "UPDATE", RUNS(JOB ":'8'", "", "Pending"), RUNS(JOB ":'7'", "", "Pending"), NULL },
        { "UPDATE", RUNS(JOB ":'8'", "", "Succeeded"), RUNS(JOB ":'7'", "", "Running"), NULL },
        { "UPDATE", RUNS(JOB ":'8'", "", "Running"), RUNS(JOB ":'7'", "", "Pending"), job },
        { "UPDATE", RUNS("", NODE ":'a'", "Running"), RUNS("", NODE ":'b'", "Running"), node },
        { "UPDATE", RUNS("", "", "Running"), RUNS("", NODE ":'b'", "Running"), node },
        { "UPDATE", RUNS("", NODE ":'a'", "Pending"), RUNS("", NODE ":'b'", "Running"), NULL },
        { "UPDATE", RUNS(JOB ":'8'", NODE ":'a'", "Running"), RUNS("", "", "Running"), job },
    };

    check_all(rows, COUNT(rows));
}

#define SAYS(annotation) "{'metadata':{'annotations':{'" WISH annotation "}},'spec':{}}"
#define TOO_MUCH         "slurmjob.slinky.slurm.net/user-id: annotations may say no user here "

static void an_annotation_that_says_too_much_is_named(void **state)
{
    static const struct row rows[] = {
        { NULL, SAYS("user-id':'root'"), NULL, TOO_MUCH "(`trustAnnotations: own`)" },
        { NULL, SAYS("user-id':'0'"), NULL, TOO_MUCH },
        { NULL, SAYS("group-id':'0'"), NULL, "slurmjob.slinky.slurm.net/group-id: " },
        { NULL, SAYS("account':'a','" WISH "priority':'9'"), NULL,
          "slurmjob.slinky.slurm.net/priority: annotations may say no priority but 0" },
        { NULL, SAYS("nice':'-1'"), NULL, "slurmjob.slinky.slurm.net/nice: " },
        { NULL, SAYS("nice':'9','" WISH "priority':'0','" WISH "account':'a','" WISH "qos':'q'"),
          NULL, NULL },
        { "UPDATE", SAYS("user-id':'root'"), EMPTY, TOO_MUCH },
        { "UPDATE", SAYS("user-id':'root'"), SAYS("user-id':'root'"), NULL },
    };

    check_all(rows, COUNT(rows));
}

static void who_is_trusted_with_all_or_none_is_not_refused(void **state)
{
    static const struct row rows[] = { { NULL, SAYS("user-id':'root'"), NULL, NULL } };

    check_all(rows, COUNT(rows));
}

static void an_annotation_that_cannot_be_read_is_named(void **state)
{
    static const struct row rows[] = {
        { NULL, "{'metadata':{'annotations':{'" WISH "timelimit':'soon'}},'spec':{}}", NULL,
          TOO_SOON },
        { NULL, "{'metadata':{'annotations':{'" WISH "timelimit':'60'}},'spec':{}}", NULL, NULL },
        { NULL, "{'metadata':{'annotations':{'" WISH "unheard-of':'soon'}},'spec':{}}", NULL,
          NULL },
        { NULL, "{'metadata':{'annotations':{'timelimit':'soon','a':'b'}},'spec':{}}", NULL, NULL },
        { NULL, "{'metadata':{'annotations':{'a':'b','" WISH "timelimit':null}},'spec':{}}", NULL,
          "slurmjob.slinky.slurm.net/timelimit: \"\" is not " },
        { NULL, "{'metadata':{'annotations':{'" WISH "cpu-per-task':'0'}},'spec':{}}", NULL,
          "slurmjob.slinky.slurm.net/cpu-per-task: \"0\" is not " },
        { "UPDATE", "{'metadata':{'annotations':{'" WISH "timelimit':'soon'}},'spec':{}}", EMPTY,
          TOO_SOON },
        { "UPDATE", "{'metadata':{'annotations':{'" WISH "timelimit':'soon'}},'spec':{}}",
          "{'metadata':{'annotations':{'" WISH "timelimit':'soon'}},'spec':{}}", NULL },
        { "UPDATE", "{'metadata':{'annotations':{'" WISH "timelimit':'soon'}},'spec':{}}",
          "{'metadata':{'annotations':{'" WISH "timelimit':'late'}},'spec':{}}", TOO_SOON },
    };

    check_all(rows, COUNT(rows));
}

static void a_pod_that_is_being_deleted_is_never_refused(void **state)
{
    const struct row labelled = { "UPDATE",
                                  "{'metadata':{'deletionTimestamp':'2026-01-01T00:00:00Z',"
                                  "'labels':{" JOB ":'8'}},'spec':{},'status':{'phase':'Running'}}",
                                  RUNS(JOB ":'7'", "", "Running"), NULL };
    const struct row resized = { "UPDATE",
                                 "{'metadata':{'deletionTimestamp':'2026-01-01T00:00:00Z'},"
                                 "'spec':{}}",
                                 EMPTY, NULL };
    const struct row alive = { "UPDATE", "{'metadata':{'deletionTimestamp':null},'spec':{}}", EMPTY,
                               "can't resize a Slurm Bridge-managed pod" };

    check_as(&labelled, NULL, NULL);
    check_as(&resized, "resize", NULL);
    check_as(&alive, "resize", NULL);
}

static void the_bridge_itself_is_never_refused(void **state)
{
    static const char us[] = "system:serviceaccount:slinky:slurm-bridge";
    const struct row allowed = { "UPDATE", RUNS(JOB ":'8'", "", "Running"),
                                 RUNS(JOB ":'7'", "", "Running"), NULL };
    struct row refused = allowed;

    refused.said = "can't update a running pod's external jobid label";
    check_as(&refused, NULL, us);
    admit_trust(rig.admit, str_of(us));
    check_as(&allowed, NULL, us);
    check_as(&refused, NULL, "another");
    admit_trust(rig.admit, STR("another"));
    check_as(&refused, NULL, us);
    admit_trust_also(rig.admit, str_of(us));
    check_as(&allowed, NULL, us);
    check_as(&allowed, NULL, "another");
    admit_trust_also(rig.admit, STR(""));
    check_as(&refused, NULL, us);
    check_as(&refused, NULL, "");
}

static void a_new_pod_of_the_bridges_own_user_is_looked_at_like_any(void **state)
{
    const struct row row = { NULL, LABELLED("'7'"), NULL,
                             "can't create a pod with a slurm external jobid label" };

    admit_trust(rig.admit, STR("us"));
    check_as(&row, NULL, "us");
}

static void nothing_is_refused_out_of_scope(void **state)
{
    static const char *const pods[] = {
        LABELLED("'7'"),
        ANNOTATED("'n1'"),
        POD(CONTAINERS("containers", "limits", CLASS "odd")),
        "{'metadata':{'annotations':{'" WISH "timelimit':'soon'}},'spec':{}}",
    };

    for (size_t i = 0; i < COUNT(pods); i++)
        assert_int_equal(
            rig_ask(&rig, ADMIT_VALIDATE, (struct call){ .ns = "elsewhere", .pod = pods[i] })
                .answer.verdict,
            ADMIT_ALLOWED);
    assert_int_equal(rig_ask(&rig, ADMIT_VALIDATE,
                             (struct call){ .ns = "elsewhere",
                                            .pod = POD(OURS "," CONTAINERS("containers", "limits",
                                                                           CLASS "odd")) })
                         .answer.verdict,
                     ADMIT_REFUSED);
}

static void deletion_is_always_allowed(void **state)
{
    assert_int_equal(
        rig_ask(&rig, ADMIT_VALIDATE, (struct call){ .op = "DELETE", .old = LABELLED("'7'") })
            .answer.verdict,
        ADMIT_ALLOWED);
}

static void the_first_rule_that_is_broken_is_told(void **state)
{
    static const struct row row = { NULL,
                                    "{'metadata':{'labels':{" JOB ":'7'},'annotations':{" NODE
                                    ":'n1','" WISH "timelimit':'soon'}},'spec':{}}",
                                    NULL, "can't create a pod with a slurm external jobid label" };

    check_as(&row, NULL, NULL);
}

static void long_names_are_cut_in_messages(void **state)
{
    char *name = arena_alloc(&rig.arena, 5001);
    struct reply reply;

    memset(name, 'x', 5000);
    reply = rig_ask(
        &rig, ADMIT_VALIDATE,
        (struct call){ .pod = arena_printf(&rig.arena,
                                           POD("'containers':[{'name':'%s',"
                                               "'resources':{'limits':{'" CLASS "%s':'1'}}}]"),
                                           name, name) });
    assert_int_equal(reply.answer.verdict, ADMIT_REFUSED);
    assert_true(strlen(reply.message) > 640 && strlen(reply.message) < 800);
}

static void odd_containers_do_no_harm(void **state)
{
    static const struct row rows[] = {
        { NULL, POD("'containers':[7,null,[],{'resources':7},{'resources':{'limits':[1]}}]"), NULL,
          NULL },
        { NULL, POD("'initContainers':null,'containers':[]"), NULL, NULL },
    };

    check_all(rows, COUNT(rows));
}

static void the_reference_has_every_rule(void **state)
{
    auto_buf struct buf out = { .max = 1 << 16 };
    unsigned lines = 0;

    admit_rules_reference(&out);
    for (const char *at = buf_text(&out); *at; at++)
        lines += *at == '\n';
    assert_int_equal(lines, 2 + 11);
    assert_non_null(strstr(buf_text(&out), "| update | a resize | `can't resize"));
    assert_non_null(strstr(buf_text(&out), "| create, update | "));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_pod_may_not_name_a_job_or_a_node_of_ours),
        TEST(claims_are_allocated_and_so_not_refused),
        TEST(topology_spread_is_honoured_and_so_not_refused),
        TEST(a_pod_may_use_every_class_of_the_table),
        cmocka_unit_test_setup_teardown(native_cpus_and_cores_of_dra_do_not_go_together,
                                        begin_with_cores, end),
        TEST(device_classes_that_slurm_cannot_count_are_refused),
        cmocka_unit_test_setup_teardown(what_devices_say_annotations_may_not_say_again,
                                        begin_with_cores, end),
        TEST(a_pod_of_ours_keeps_its_size),
        TEST(a_pod_that_runs_keeps_its_job_and_its_node),
        TEST(an_annotation_that_cannot_be_read_is_named),
        cmocka_unit_test_setup_teardown(an_annotation_that_says_too_much_is_named, begin_with_own,
                                        end),
        TEST(who_is_trusted_with_all_or_none_is_not_refused),
        TEST(a_pod_that_is_being_deleted_is_never_refused),
        TEST(the_bridge_itself_is_never_refused),
        TEST(a_new_pod_of_the_bridges_own_user_is_looked_at_like_any),
        TEST(nothing_is_refused_out_of_scope),
        TEST(deletion_is_always_allowed),
        TEST(the_first_rule_that_is_broken_is_told),
        TEST(long_names_are_cut_in_messages),
        TEST(odd_containers_do_no_harm),
        TEST(the_reference_has_every_rule),
    };

    return cmocka_run_group_tests_name("admit rules", tests, NULL, NULL);
}
