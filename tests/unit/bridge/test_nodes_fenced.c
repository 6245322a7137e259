/* test_nodes_fenced.c - when a node counts as one on which nothing of a pod can run any more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bridge/world/node_mark.h"
#include "nodes_rig.h"

#define SINCE(status)                                                                              \
    "{'type':'Ready','status':'" status "','lastTransitionTime':'2027-01-15T07:59:00Z'}"
#define AWAY "'taints':[{'key':'node.kubernetes.io/out-of-service','effect':'NoExecute'}]"

static const struct {
    const char *sentence, *kube, *slurm;
    int64_t fence_after_s;
    enum ignorance ignorance;
    bool fenced;
} fences[] = {
    { "a node that is gone is fenced", NULL, NULL, 0, KNOWN, true },
    { "not while the nodes are not known", NULL, NULL, 0, KUBE_UNSYNCED, false },
    { "a ready node is not", NODE("", "", READY), RECORD(DRAINED, "x", ""), 1, KNOWN, false },
    { "one that is out of service is", NODE("", AWAY, READY), NULL, 0, KNOWN, true },
    { "NotReady for long and drained is", NODE("", "", SINCE("Unknown")), RECORD(DRAINING, "x", ""),
      60, KNOWN, true },
    { "not before the time is over", NODE("", "", SINCE("Unknown")), RECORD(DRAINING, "x", ""), 61,
      KNOWN, false },
    { "never by time when there is none", NODE("", "", SINCE("False")), RECORD(DRAINING, "x", ""),
      0, KNOWN, false },
    { "not while Slurm may give it more", NODE("", "", SINCE("False")), RECORD(BUSY, "", ""), 60,
      KNOWN, false },
    { "not when Slurm does not know it", NODE("", "", SINCE("False")), NULL, 60, KNOWN, false },
    { "not while slurmctld is suspected", NODE("", "", SINCE("False")), RECORD(DRAINED, "x", ""),
      60, SUSPICIOUS, false },
    { "not without a time since when", NODE("", "", ""), RECORD(DRAINED, "x", ""), 60, KNOWN,
      false },
};

static void a_node_is_fenced_only_when_nothing_can_run_there(void **state)
{
    for (size_t i = 0; i < sizeof(fences) / sizeof(fences[0]); i++) {
        struct bench bench;

        print_message("# %s\n", fences[i].sentence);
        bench_up(&bench);
        rig_fill(&bench, fences[i].kube, fences[i].slurm, fences[i].ignorance);
        bench.config.fence_after_s = fences[i].fence_after_s;
        assert_int_equal(node_is_fenced(&bench.world, "n1"), fences[i].fenced);
        assert_false(node_is_fenced(&bench.world, ""));
        bench_down(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_is_fenced_only_when_nothing_can_run_there),
    };

    return cmocka_run_group_tests_name("nodes_fenced", tests, NULL, NULL);
}
