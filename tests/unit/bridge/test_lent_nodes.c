/* test_lent_nodes.c - which names the policy of the API server is given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bridge/nodes/lent_nodes.h"
#include "bridge/world/names.h"
#include "node_bench.h"

#define NODE(name, taints)                                                                         \
    "{'metadata':{'name':'" name "','uid':'" name                                                  \
    "','resourceVersion':'5'},'spec':{'taints':[" taints "]}}"
#define TAINT(key, value) "{'key':'" key "','value':'" value "','effect':'NoExecute'}"

static void expect(const char *const *nodes, const char *wanted)
{
    auto_buf struct buf text = { .max = MAX_TEXT };
    struct lent_nodes lent;
    struct bench bench;
    struct plan plan;

    bench_up(&bench);
    while (*nodes)
        bench_put_node(bench.world.nodes, *nodes++);
    lent_nodes_init(&lent, bench.world.nodes, "bridge", "slurm", "names");
    plan_init(&plan, &bench.arena);
    lent_nodes_plan(&lent, &plan);
    assert_int_equal(plan.action_count, 1);
    plan_write(&plan, &text);
    for (char *at = text.data; *at; at++)
        *at = *at == '"' ? '\'' : *at;
    if (!strstr(text.data, wanted))
        fail_msg("no %s in %s", wanted, text.data);
    assert_true(plan.look_again_us > 0);
    bench_down(&bench);
}

static void the_nodes_with_our_taint_are_named(void **state)
{
    static const char *const nodes[] = {
        NODE("n1", TAINT("other", "bridge") "," TAINT(BRIDGE_TAINT, "bridge")),
        NODE("n2", TAINT(BRIDGE_TAINT, "another-release")), NODE("n3", TAINT("other", "bridge")),
        NODE("n4", ""), NULL
    };

    expect(nodes, "[{'op':'add','path':'/data','value':{'n1':''}}]");
}

static void without_such_nodes_no_name_is_left(void **state)
{
    static const char *const nodes[] = { NODE("n4", ""), NULL };

    expect(nodes, "[{'op':'add','path':'/data','value':{}}]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nodes_with_our_taint_are_named),
        cmocka_unit_test(without_such_nodes_no_name_is_left),
    };

    return cmocka_run_group_tests_name("lent_nodes", tests, NULL, NULL);
}
