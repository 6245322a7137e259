/* test_node_refusals.c - the last refused action of each node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/node_refusals.h"

static void the_last_refused_action_of_a_node_counts(void **state)
{
    struct node_refusals *refusals = node_refusals_new();

    assert_false(node_refusals_have(refusals, STR("n1")));
    node_refusals_add(refusals, STR("n1"), STR("make it"), "no");
    node_refusals_add(refusals, STR("n2"), STR("make it"), "never");
    assert_string_equal(node_refusals_why(refusals, STR("n1"), STR("make it")), "no");
    assert_null(node_refusals_why(refusals, STR("n1"), STR("make it larger")));
    assert_null(node_refusals_why(refusals, STR("n3"), STR("make it")));
    node_refusals_add(refusals, STR("n1"), STR("make it larger"), "too large");
    assert_null(node_refusals_why(refusals, STR("n1"), STR("make it")));
    assert_string_equal(node_refusals_why(refusals, STR("n1"), STR("make it larger")), "too large");
    assert_string_equal(node_refusals_why(refusals, STR("n2"), STR("make it")), "never");
    node_refusals_free(refusals);
    node_refusals_free(NULL);
}

static void a_refusal_can_be_forgotten(void **state)
{
    struct node_refusals *refusals = node_refusals_new();

    node_refusals_add(refusals, STR("n1"), STR("make it"), "no");
    node_refusals_forget(refusals, STR("n1"));
    node_refusals_forget(refusals, STR("n1"));
    assert_false(node_refusals_have(refusals, STR("n1")));
    node_refusals_free(refusals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_refused_action_of_a_node_counts),
        cmocka_unit_test(a_refusal_can_be_forgotten),
    };

    return cmocka_run_group_tests_name("node_refusals", tests, NULL, NULL);
}
