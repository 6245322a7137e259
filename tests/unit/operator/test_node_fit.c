/* test_node_fit.c - on which Nodes a worker may start, come back, and stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "made.h"
#include "operator/node_fit.h"

#define TAINT(key, effect) "'spec':{'taints':[{'key':'" key "','effect':'" effect "'}]}"
#define REQUIRED           "requiredDuringSchedulingIgnoredDuringExecution"

/* spec of the pods, what the Node "a" has beside its name, and the answers. */
static const struct {
    const char *pod, *node;
    bool may_start, may_return, may_stay;
} rows[] = {
    { "{}", "'spec':{}", true, true, true },
    { "{'nodeName':'a'}", "'spec':{}", true, true, true },
    { "{'nodeName':'b'}", "'spec':{}", false, false, false },
    { "{'nodeSelector':{'disk':'ssd'}}", "'spec':{}", false, false, false },
    { "{'nodeSelector':{'disk':'hdd'}}", "'spec':{}", true, true, true },
    { "{'affinity':{'nodeAffinity':{'" REQUIRED "':{'nodeSelectorTerms':[{'matchExpressions':["
      "{'key':'disk','operator':'In','values':['ssd','hdd']}]}]}}}}",
      "'spec':{}", true, true, true },
    { "{'affinity':{'nodeAffinity':{'" REQUIRED "':{'nodeSelectorTerms':[{'matchFields':["
      "{'key':'metadata.name','operator':'In','values':['b']}]}]}}}}",
      "'spec':{}", false, false, false },
    /* what is preferred does not count */
    { "{'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':["
      "{'weight':1,'preference':{'matchExpressions':[{'key':'x','operator':'Exists'}]}}]}}}",
      "'spec':{}", true, true, true },
    { "{}", TAINT("x", "PreferNoSchedule"), true, true, true },
    { "{}", TAINT("x", "NoSchedule"), false, false, true },
    { "{}", TAINT("x", "NoExecute"), false, false, false },
    { "{'tolerations':[{'key':'x','operator':'Exists'}]}", TAINT("x", "NoExecute"), true, true,
      true },
    { "{'tolerations':[{'key':'x','operator':'Exists','effect':'NoSchedule'}]}",
      TAINT("x", "NoExecute"), false, false, false },
    /* a cordon */
    { "{}", TAINT("node.kubernetes.io/unschedulable", "NoSchedule"), false, true, true },
    { "{}",
      "'spec':{'taints':[{'key':'node.kubernetes.io/unschedulable','effect':'NoSchedule'},"
      "{'key':'x','effect':'NoSchedule'}]}",
      false, false, true },
    /* a Node that may come back keeps its worker, and gets no new one */
    { "{}", TAINT("node.kubernetes.io/not-ready", "NoExecute"), false, false, true },
    { "{}", TAINT("node.kubernetes.io/unreachable", "NoExecute"), false, false, true },
    { "{}", TAINT("node.kubernetes.io/out-of-service", "NoExecute"), false, false, false },
};

static void each_rule_about_nodes_counts(void **state)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        auto_json_doc struct json_doc *spec = parsed(rows[i].pod);
        struct node_fit_result result;
        const struct node_fit *fit;
        const struct kube_object *node;
        struct desk desk;
        char text[1024];

        desk_init(&desk);
        (void)snprintf(text, sizeof(text),
                       "{'kind':'Node','metadata':{'name':'a','labels':{'disk':'hdd'}},%s}",
                       rows[i].node);
        node = made(&desk, text);
        assert_int_equal(node_fit_new(&desk.arena, json_root(spec), &fit, NULL), 0);
        result = node_fit(fit, kube_node_of(node));
        if (result.may_start != rows[i].may_start || result.may_return != rows[i].may_return ||
            result.may_stay != rows[i].may_stay)
            fail_msg("row %zu: %s on %s", i, rows[i].pod, rows[i].node);
        desk_done(&desk);
    }
}

static void a_selector_of_the_wrong_type_is_refused(void **state)
{
    auto_json_doc struct json_doc *spec =
        parsed("{'affinity':{'nodeAffinity':{'" REQUIRED "':{'nodeSelectorTerms':1}}}}");
    const struct node_fit *fit;
    struct desk desk;

    desk_init(&desk);
    assert_int_equal(node_fit_new(&desk.arena, json_root(spec), &fit, NULL), -ERR_INVALID);
    desk_done(&desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rule_about_nodes_counts),
        cmocka_unit_test(a_selector_of_the_wrong_type_is_refused),
    };

    return cmocka_run_group_tests_name("node_fit", tests, NULL, NULL);
}
