/* test_nodeset_partition.c - the partition of a NodeSet in slurm.conf, and how long its line stays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "made.h"
#include "operator/nodeset_partition.h"
#include "operator/slurm_conf.h"

/* The slurm.conf that the operator wrote while the partition was on. */
#define WITH_LINE                                                                                  \
    "{'kind':'ConfigMap','metadata':{'name':'slurm-config'},'data':{'slurm.conf':"                 \
    "'NodeSet=n Feature=n\\nPartitionName=n Nodes=n State=UP default=YES MaxTime=1 X=\\\"a "       \
    "b\\\"\\nPartitionName=no Nodes=n \\n'}}"
#define WITHOUT                                                                                    \
    "{'kind':'ConfigMap','metadata':{'name':'slurm-config'},'data':{'slurm.conf':'NodeSet=n "      \
    "Feature=n\\n'}}"
#define OFF     "{'partition':{'enabled':false}}"
#define ON      "{'partition':{'enabled':true,'config':'State=UP Default=YES MaxTime=1'}}"
#define DRAINED "MaxTime=1 X=\"a b\" State=DRAIN"
#define JOB     "'jobs':[{'job_id':7,'job_state':['COMPLETED'],'partition':'m,n'}]"
#define OTHERS  "'jobs':[{'job_id':7,'job_state':['RUNNING'],'partition':'no'}]"
#define STATE(state)                                                                               \
    "'partitions':[{'name':'n','partition':{'state':['" state                                      \
    "']}},{'name':'no','partition':{'state':['UP']}}]"

/* What the line says behind its nodes; wanted NULL: there is none. */
static void assert_options(const char *config, const char *spec, const char *slurm,
                           const char *wanted)
{
    auto_json_doc struct json_doc *facts = parsed(slurm);
    const struct kube_object *controller, *nodeset;
    struct err err = { 0 };
    const char *options;
    struct desk desk;

    desk_init(&desk);
    desk.world.speaks_slurm = true;
    (void)made(&desk, config);
    controller = made(&desk, "{'kind':'Controller','metadata':{'name':'slurm'},'spec':{}}");
    nodeset = made_nodeset(&desk, spec);
    if (desk_slurm(&desk, json_root(facts), &err) < 0)
        fail_msg("%s", err.text);
    options = nodeset_partition_options(&desk.world, &desk.arena, controller, nodeset);
    if (!wanted && options)
        fail_msg("%s: the line says '%s'", slurm, options);
    if (wanted)
        assert_string_equal(options ? options : "no line", wanted);
    desk_done(&desk);
}

static void a_partition_that_is_on_has_its_line_as_it_is_written(void **state)
{
    assert_options(WITHOUT, ON, "{}", "State=UP Default=YES MaxTime=1");
    assert_options(WITH_LINE, ON, "{'slurm':{'nodes':[]}}", "State=UP Default=YES MaxTime=1");
}

static void a_partition_that_was_never_on_has_no_line(void **state)
{
    assert_options(WITHOUT, OFF, "{'slurm':{'nodes':[]," JOB "," STATE("UP") "}}", NULL);
}

static void a_partition_that_is_switched_off_stays_while_a_job_record_names_it(void **state)
{
    assert_options(WITH_LINE, OFF, "{'slurm':{'nodes':[]," JOB "," STATE("DRAIN") "}}", DRAINED);
    assert_options(WITH_LINE, OFF, "{'slurm':{'nodes':[]," OTHERS "," STATE("DRAIN") "}}", NULL);
    assert_options(WITH_LINE, OFF, "{'slurm':{'nodes':[]," OTHERS ",'partitions':[]}}", NULL);
}

static void it_takes_no_more_jobs_before_it_goes(void **state)
{
    assert_options(WITH_LINE, OFF, "{'slurm':{'nodes':[]," OTHERS "," STATE("UP") "}}", DRAINED);
}

static void what_slurm_does_not_say_keeps_the_line(void **state)
{
    assert_options(WITH_LINE, OFF, "{}", DRAINED);
    assert_options(WITH_LINE, OFF, "{'slurm':{'unreachable':'x'}}", DRAINED);
    assert_options(WITH_LINE, OFF, "{'slurm':{'restapi':false}}", DRAINED);
    assert_options(WITH_LINE, OFF,
                   "{'slurm':{'suspicious':true,'nodes':[]," OTHERS "," STATE("DRAIN") "}}",
                   DRAINED);
}

static void the_partition_of_a_nodeset_that_is_deleted_takes_no_more_jobs(void **state)
{
    const struct kube_object *controller, *nodeset;
    struct desk desk;

    desk_init(&desk);
    controller = made(&desk, "{'kind':'Controller','metadata':{'name':'slurm'},'spec':{}}");
    nodeset = made(&desk, "{'kind':'NodeSet','metadata':{'name':'n','deletionTimestamp':"
                          "'2026-01-01T00:00:00Z','finalizers':['x']},'spec':" ON "}");
    assert_string_equal(nodeset_partition_options(&desk.world, &desk.arena, controller, nodeset),
                        "MaxTime=1 State=DRAIN");
    desk_done(&desk);
}

static void the_controller_is_planned_again_while_such_a_line_is_there(void **state)
{
    const struct kube_object *controller;
    struct desk desk;

    desk_init(&desk);
    desk.world.speaks_slurm = true;
    (void)made(&desk, WITH_LINE);
    controller = made(&desk, "{'kind':'Controller','metadata':{'name':'slurm'},'spec':{}}");
    (void)made_nodeset(&desk, "{'controllerRef':{'name':'slurm'},'partition':{'enabled':true}}");
    assert_false(nodeset_partitions_linger(&desk.world, &desk.arena, controller));
    (void)made_nodeset(&desk, "{'controllerRef':{'name':'slurm'},'partition':{'enabled':false}}");
    assert_true(nodeset_partitions_linger(&desk.world, &desk.arena, controller));
    desk_done(&desk);
}

static void how_many_nodes_slurm_takes_is_what_the_user_said_last(void **state)
{
    static const struct {
        const char *extra;
        int64_t wanted;
    } rows[] = {
        { "{}", 1024 },
        { "{'extraConf':'MaxNodeCount=5000'}", 5000 },
        { "{'extraConf':'A=b\\n  maxnodecount=7 # few\\nMaxNodeCountX=9'}", 7 },
        { "{'extraConf':'MaxNodeCount=7\\nMaxNodeCount=8'}", 8 },
        { "{'extraConf':'MaxNodeCount=\\n#MaxNodeCount=9'}", 1024 },
    };
    struct desk desk;

    desk_init(&desk);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        auto_json_build struct json_build *build = json_build_new();
        auto_json_doc struct json_doc *spec = parsed(rows[i].extra);
        auto_json_doc struct json_doc *object = json_freeze(json_format(
            build, "{'kind':'Controller','metadata':{'name':'slurm'},'spec':%j}", json_root(spec)));

        assert_int_equal(slurm_conf_max_nodes(made_json(&desk, json_root(object))), rows[i].wanted);
    }
    desk_done(&desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_partition_that_is_on_has_its_line_as_it_is_written),
        cmocka_unit_test(a_partition_that_was_never_on_has_no_line),
        cmocka_unit_test(a_partition_that_is_switched_off_stays_while_a_job_record_names_it),
        cmocka_unit_test(it_takes_no_more_jobs_before_it_goes),
        cmocka_unit_test(what_slurm_does_not_say_keeps_the_line),
        cmocka_unit_test(the_partition_of_a_nodeset_that_is_deleted_takes_no_more_jobs),
        cmocka_unit_test(the_controller_is_planned_again_while_such_a_line_is_there),
        cmocka_unit_test(how_many_nodes_slurm_takes_is_what_the_user_said_last),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
