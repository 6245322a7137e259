/* test_condition_list.c - conditions of custom resources change by type, and only on a difference.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../codec/parsed.h"
#include "kube/condition_list.h"

static const int64_t now_us = INT64_C(1700000000000000); /* 2023-11-14T22:13:20Z */

static struct json_mut *listed(struct json_build *build, const char *live, enum kube_truth status,
                               const char *reason)
{
    auto_json_doc struct json_doc *doc = parsed(live);
    const struct kube_condition_want want = { "Ready", status, reason, "so" };

    return kube_condition_list(build, json_root(doc), &want, 1, 3, now_us);
}

static void a_new_condition_follows_those_of_others(void **state)
{
    auto_json_build struct json_build *build = json_build_new();

    assert_json(listed(build, "[{'type':'Other','status':'True'}]", KUBE_TRUE, "All"),
                "[{'type':'Other','status':'True'},{'type':'Ready','status':'True',"
                "'observedGeneration':3,'lastTransitionTime':'2023-11-14T22:13:20Z','reason':'All',"
                "'message':'so'}]");
}

#define READY(status, generation)                                                                  \
    "[{'type':'Ready','status':'" status "','observedGeneration':" #generation ","                 \
    "'lastTransitionTime':'2020-01-01T00:00:00Z','reason':'All','message':'so'}]"

static void the_time_of_a_transition_moves_with_the_status_alone(void **state)
{
    auto_json_build struct json_build *build = json_build_new();

    assert_null(listed(build, READY("True", 3), KUBE_TRUE, "All"));
    assert_json(listed(build, READY("True", 2), KUBE_TRUE, "All"), READY("True", 3));
    assert_json(listed(build, READY("False", 3), KUBE_TRUE, "All"),
                "[{'type':'Ready','status':'True','observedGeneration':3,'lastTransitionTime':"
                "'2023-11-14T22:13:20Z','reason':'All','message':'so'}]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_condition_follows_those_of_others),
        cmocka_unit_test(the_time_of_a_transition_moves_with_the_status_alone),
    };

    return cmocka_run_group_tests_name("condition_list", tests, NULL, NULL);
}
