/* test_nodes_refused.c - what a node's plan says when Slurm does not take what it is to have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/node_refusals.h"
#include "nodes_rig.h"

/* A name that Slurm would mangle: nothing is made of it. */
static void a_name_that_slurm_cannot_take_is_left_alone_and_that_is_said(void **state)
{
    static const char *const wanted[] = { "patch node n1 status",
                                          "event Warning SlurmNameInvalid n1", NULL };
    const char *name = "n12345678901234567890";
    struct bench bench;
    struct plan plan;
    const char *why;

    bench_up(&bench);
    rig_fill(&bench, NULL, NULL, KNOWN);
    bench_put_node(bench.world.nodes,
                   NODE(",'labels':{'" BRIDGE_EXTERNAL_LABEL "':'','" BRIDGE_SLURM_NAME_LABEL
                        "':'n12345678901234567890'}",
                        "", READY));
    plan_init(&plan, &bench.arena);
    assert_int_equal(node_intent(&bench.world, str_of(name), &bench.arena, &why), NODE_LEAVE);
    assert_int_equal(nodes_plan(&bench.world, str_of(name), &plan, NULL), 0);
    rig_expect_actions(&plan, wanted);
    bench_down(&bench);
}

/* Plans, and remembers the first action about a Slurm node as refused. */
static void refuse_first(struct bench *bench, struct node_refusals *refusals, const char *why)
{
    struct plan plan;

    plan_init(&plan, &bench->arena);
    assert_int_equal(nodes_plan(&bench->world, STR("n1"), &plan, NULL), 0);
    list_each (const struct action, action, &plan.actions, link) {
        auto_buf struct buf detail;

        buf_init(&detail, MAX_TEXT);
        if (action->type->write && strstr(action->what, "slurm node")) {
            action->type->write(action, &detail);
            node_refusals_add(refusals, STR("n1"), buf_str(&detail), why);
            return;
        }
    }
    fail_msg("nothing is asked of Slurm");
}

static void expect_plan(struct bench *bench, const char *const *actions, const char *part)
{
    struct plan plan;

    plan_init(&plan, &bench->arena);
    assert_int_equal(nodes_plan(&bench->world, STR("n1"), &plan, NULL), 0);
    rig_expect_actions(&plan, actions);
    if (part)
        rig_expect_part(&plan, part);
}

#define LATER(version, rest)                                                                       \
    "{'metadata':{'name':'n1','uid':'u1','resourceVersion':'" version "'" rest                     \
    "},'status':{" SIZE("4", "8000Mi", "") ADDRESS ",'conditions':[" READY

static void what_slurm_refused_is_said_while_it_is_wanted(void **state)
{
    static const char *const told[] = { "patch node n1 status", "event Warning SlurmNodeRefused n1",
                                        "create slurm node n1", "update slurm node n1", NULL };
    static const char *const known[] = { "create slurm node n1", "update slurm node n1", NULL };
    static const char *const mended[] = { "patch node n1 status", "create slurm node n1",
                                          "update slurm node n1", NULL };
    struct node_refusals *refusals = node_refusals_new();
    struct bench bench;

    bench_up(&bench);
    bench.world.node_refusals = refusals;
    rig_fill(&bench, NODE(LABEL TOPO("t:bad"), "", READY), NULL, KNOWN);
    refuse_first(&bench, refusals, "no such switch");
    expect_plan(&bench, told,
                "'message':'Slurm refused to create node n1: no such "
                "switch','reason':'SlurmNodeRefused','status':'False'");
    bench_put_node(bench.world.nodes, LATER("6", LABEL TOPO("t:bad")) SAYS(
                                          "False", "SlurmNodeRefused",
                                          "Slurm refused to create node n1: no such switch") "]}}");
    expect_plan(&bench, known, NULL);
    bench_put_node(bench.world.nodes, LATER("7", LABEL TOPO("t:good")) SAYS(
                                          "False", "SlurmNodeRefused",
                                          "Slurm refused to create node n1: no such switch") "]}}");
    expect_plan(&bench, mended, "'$patch':'delete'");
    node_refusals_free(refusals);
    bench_down(&bench);
}

static void a_node_that_serves_does_so_though_a_change_is_refused(void **state)
{
    static const char *const told[] = { "patch node n1 status", "event Warning SlurmNodeRefused n1",
                                        "update slurm node n1", NULL };
    struct node_refusals *refusals = node_refusals_new();
    struct bench bench;

    bench_up(&bench);
    bench.world.node_refusals = refusals;
    rig_fill(&bench, NODE(LABEL TOPO("t:bad"), TAINTED, READY), RECORD(IDLE, "", OURS), KNOWN);
    refuse_first(&bench, refusals, "no such switch");
    expect_plan(&bench, told,
                "'message':'Slurm refused to update node n1: no such "
                "switch','reason':'SlurmNodeRefused','status':'True'");
    node_refusals_free(refusals);
    bench_down(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_that_slurm_cannot_take_is_left_alone_and_that_is_said),
        cmocka_unit_test(what_slurm_refused_is_said_while_it_is_wanted),
        cmocka_unit_test(a_node_that_serves_does_so_though_a_change_is_refused),
    };

    return cmocka_run_group_tests_name("nodes_refused", tests, NULL, NULL);
}
