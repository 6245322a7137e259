/* test_nodes_size.c - which size a node has in Slurm, and when it gets another one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/node_refusals.h"
#include "nodes_rig.h"

#define POD_OF(name, owner, request, more)                                                         \
    "{'metadata':{'name':'" name "','namespace':'d','uid':'" name "','resourceVersion':'5',"       \
    "'ownerReferences':[{" owner ",'controller':true}]},'spec':{'nodeName':'n1','schedulerName':"  \
    "'default-scheduler','containers':[{'name':'c','resources':{'requests':{" request "}}}]}" more \
    "}"
#define OWNER(version, kind, name, uid)                                                            \
    "'apiVersion':'" version "','kind':'" kind "','name':'" name "','uid':'" uid "'"
#define DAEMONSET       OWNER("apps/v1", "DaemonSet", "o", "o")
#define DAEMON(request) POD_OF("a", DAEMONSET, request, "")
/* Only d/o is there. */
#define DAEMONSET_O "{'metadata':{'name':'o','namespace':'d','uid':'o','resourceVersion':'5'}}"
#define GPUS(count) ",'nvidia.com/gpu':'" count "'"
#define HAS(cpus, memory, state, more)                                                             \
    "{'name':'n1','state':[" state "],'cpus':" cpus ",'real_memory':" memory                       \
    ",'address':'10.0.0.1','partitions':['all']" OURS more "}"

struct row {
    const char *sentence;
    const char *kube, *slurm; /* slurm NULL: it is made */
    const char *pods[4];      /* of other schedulers */
    bool unread;              /* the DaemonSets were not read yet, */
    int64_t leads_s;          /* so many seconds after the bridge began to lead; 0: 10 */
    int64_t margin;           /* nodeMemoryMarginMiB */
    int64_t after, differs;   /* nodeResizeSeconds, and for how long it does differ */
    bool drains;              /* drainToResize */
    enum node_intent intent;
    const char *part, *waits; /* of the plan; NULL: none, and it does not wait */
};

static const struct row rows[] = {
    /* ---- what DaemonSets leave ---- */
    { .sentence = "a node is made as large as what DaemonSets leave, less the margin",
      .kube = SIZED(SIZE("4", "8000Mi", GPUS("2"))),
      .pods = { DAEMON("'cpu':'100m','memory':'200Mi','nvidia.com/gpu':'1'") },
      .margin = 100,
      .intent = NODE_SERVE,
      .part = " CPUs=3 RealMemory=7700 State=EXTERNAL Gres=gpu:1 GresConf=count=1,name=gpu'" },
    { .sentence = "what static pods use counts, too",
      .kube = SIZED(SIZE("4", "8000Mi", "")),
      .pods = { DAEMON("'cpu':'500m'"),
                POD_OF("b", OWNER("v1", "Node", "n1", "u1"), "'cpu':'600m'", "") },
      .intent = NODE_SERVE,
      .part = " CPUs=2 RealMemory=8000 " },
    { .sentence = "what other pods use does not: they leave",
      .kube = SIZED(SIZE("4", "8000Mi", "")),
      .pods = { POD_OF("a", OWNER("apps/v1", "ReplicaSet", "o", "o"), "'cpu':'2'", ""),
                POD_OF("b", DAEMONSET, "'cpu':'2'", ",'status':{'phase':'Failed'}") },
      .intent = NODE_SERVE,
      .part = "CPUs=4 RealMemory=8000" },
    { .sentence = "a DaemonSet that is not there takes nothing",
      .kube = SIZED(SIZE("4", "8000Mi", "")),
      .pods = { POD_OF("a", OWNER("apps/v1", "DaemonSet", "p", "o"), "'cpu':'2'", ""),
                POD_OF("b", OWNER("apps/v1", "DaemonSet", "o", "p"), "'cpu':'2'", ""),
                POD_OF("c", OWNER("x.y/v1", "DaemonSet", "o", "o"), "'cpu':'2'", "") },
      .intent = NODE_SERVE,
      .part = "CPUs=4 RealMemory=8000" },
    { .sentence = "nor does a static pod of another node",
      .kube = SIZED(SIZE("4", "8000Mi", "")),
      .pods = { POD_OF("a", OWNER("v1", "Node", "n1", "u2"), "'cpu':'2'", ""),
                POD_OF("b", OWNER("v1", "Node", "n2", "u1"), "'cpu':'2'", ""),
                POD_OF("c", OWNER("x.y/v1", "Node", "n1", "u1"), "'cpu':'2'", "") },
      .intent = NODE_SERVE,
      .part = "CPUs=4 RealMemory=8000" },
    { .sentence = "while DaemonSets are being read no size is taken for the right one",
      .kube = SIZED(SIZE("4", "8000Mi", "")),
      .slurm = HAS("3", "8000", IDLE, ""),
      .unread = true,
      .leads_s = 59,
      .intent = NODE_RECREATE,
      .waits = "DaemonSets are being read" },
    { .sentence = "DaemonSets that cannot be read count for nothing",
      .kube = SIZED(SIZE("4", "8000Mi", "")),
      .pods = { DAEMON("'cpu':'2'") },
      .unread = true,
      .leads_s = 60,
      .intent = NODE_SERVE,
      .part = " CPUs=4 RealMemory=8000 " },
    { .sentence = "a node that DaemonSets take all of has something left",
      .kube = SIZED(SIZE("1", "100Mi", "")),
      .pods = { DAEMON("'cpu':'900m','memory':'90Mi'") },
      .margin = 100,
      .intent = NODE_SERVE,
      .part = " CPUs=1 RealMemory=1 " },

    /* ---- within the margin and beyond ---- */
    { .sentence = "within the margin nothing is written",
      .kube = SIZED(SIZE("4", "8000Mi", "")),
      .slurm = HAS("4", "7900", IDLE, ""),
      .pods = { DAEMON("'memory':'100Mi'") },
      .margin = 100,
      .intent = NODE_SERVE },
    { .sentence = "nor when it has more",
      .kube = SIZED(SIZE("4", "8100Mi", "")),
      .slurm = HAS("4", "7900", IDLE, ""),
      .margin = 100,
      .intent = NODE_SERVE },
    { .sentence = "beyond the margin an idle node is made anew",
      .kube = SIZED(SIZE("4", "8000Mi", "")),
      .slurm = HAS("4", "7900", IDLE, ""),
      .pods = { DAEMON("'memory':'101Mi'") },
      .margin = 100,
      .intent = NODE_RECREATE,
      .part = DRAIN(RECREATING),
      .waits = "it is being drained" },
    { .sentence = "and a busy one when it is idle",
      .kube = SIZED(SIZE("4", "8000Mi", "")),
      .slurm = HAS("4", "7900", BUSY, ""),
      .pods = { DAEMON("'memory':'101Mi'") },
      .margin = 100,
      .intent = NODE_SERVE,
      .waits = "gets it in Slurm when it is idle" },
    { .sentence = "a DaemonSet that takes a CPU drains no busy node",
      .kube = SIZED(SIZE("4", "8000Mi", "")),
      .slurm = HAS("4", "8000", BUSY, ""),
      .pods = { DAEMON("'cpu':'100m'") },
      .intent = NODE_SERVE,
      .waits = "gets it in Slurm when it is idle" },
    { .sentence = "a DaemonSet that is rolled out changes nothing meanwhile",
      .kube = SIZED(SIZE("4", "8000Mi", "")),
      .slurm = HAS("3", "7800", IDLE, ""),
      .margin = 100,
      .after = 60,
      .differs = 59,
      .intent = NODE_SERVE,
      .waits = "which must last" },

    /* ---- less than Slurm was promised ---- */
    { .sentence = "a device plugin that restarts drains nothing",
      .kube = SIZED(SIZE("4", "8000Mi", GPUS("0"))),
      .slurm = HAS("4", "8000", BUSY, ",'gres':'gpu:8'"),
      .after = 60,
      .differs = 59,
      .intent = NODE_SERVE,
      .part = "'lookAgainUs':1000000",
      .waits = "which must last" },
    { .sentence = "nor an idle node",
      .kube = SIZED(SIZE("4", "8000Mi", GPUS("0"))),
      .slurm = HAS("4", "8000", IDLE, ",'gres':'gpu:8'"),
      .after = 60,
      .differs = 59,
      .intent = NODE_SERVE,
      .waits = "which must last" },
    { .sentence = "nor does it end the wait of a node that is cordoned",
      .kube = "{" META(LABEL) "'spec':{" CORDONED "},'status':{" SIZE("4", "8000Mi", GPUS("0"))
          ADDRESS ",'conditions':[" READY "]}}",
      .slurm = "{'name':'n1','state':[" DRAINED "],'reason':'" IS_UNSCHEDULABLE
               "','cpus':4,'real_memory':8000,'address':'10.0.0.1','gres':'gpu:8'" OURS "}",
      .after = 60,
      .differs = 30,
      .intent = NODE_CORDON,
      .part = "'lookAgainUs':30000000",
      .waits = "which must last" },
    { .sentence = "devices that stay away drain the node",
      .kube = SIZED(SIZE("4", "8000Mi", GPUS("0"))),
      .slurm = HAS("4", "8000", BUSY, ",'gres':'gpu:8'"),
      .after = 60,
      .differs = 60,
      .intent = NODE_RECREATE,
      .part = DRAIN(RECREATING),
      .waits = "it is being drained" },
    { .sentence = "so does memory that Slurm was promised and that is not there",
      .kube = SIZED(SIZE("4", "7000Mi", "")),
      .slurm = HAS("4", "7900", BUSY, ""),
      .margin = 100,
      .intent = NODE_RECREATE,
      .part = DRAIN(RECREATING),
      .waits = "it is being drained" },

    /* ---- more than Slurm knows of ---- */
    { .sentence = "a new device drains no busy node",
      .kube = SIZED(SIZE("4", "8000Mi", GPUS("2"))),
      .slurm = HAS("4", "8000", BUSY, ",'gres':'gpu:1'"),
      .intent = NODE_SERVE,
      .part = "'message':'Slurm has the devices gpu:1, and should have gpu:2; its record is made "
              "again when the node is idle'",
      .waits = "gets it in Slurm when it is idle" },
    { .sentence = "unless that is configured",
      .kube = SIZED(SIZE("4", "8000Mi", GPUS("2"))),
      .slurm = HAS("4", "8000", BUSY, ",'gres':'gpu:1'"),
      .drains = true,
      .intent = NODE_RECREATE,
      .part = DRAIN(RECREATING),
      .waits = "it is being drained" },
    { .sentence = "new devices of an idle node come at once",
      .kube = SIZED(SIZE("4", "8000Mi", GPUS("2"))),
      .slurm = HAS("4", "8000", IDLE, ""),
      .after = 60,
      .differs = 0,
      .intent = NODE_RECREATE,
      .part = DRAIN(RECREATING),
      .waits = "it is being drained" },
    { .sentence = "a node that work came to before our drain goes on",
      .kube = SIZED(SIZE("8", "8000Mi", "")),
      .slurm = "{'name':'n1','state':[" DRAINING "],'reason':'" RECREATING
               "','cpus':4,'real_memory':8000,'address':'10.0.0.1'" OURS "}",
      .intent = NODE_SERVE,
      .part = UNDRAIN,
      .waits = "gets it in Slurm when it is idle" },

    /* ---- gres of others ---- */
    { .sentence = "gres with a type are never lost",
      .kube = SIZED(SIZE("8", "9000Mi", GPUS("2"))),
      .slurm = HAS("4", "8000", IDLE, ",'gres':'gpu:h100:1'"),
      .intent = NODE_SERVE,
      .waits = "its gres gpu:h100:1 is not of this bridge" },
    { .sentence = "nor when the node has less",
      .kube = SIZED(SIZE("2", "2000Mi", "")),
      .slurm = HAS("4", "8000", BUSY, ",'gres':'gpu:a100:8(S:0,1)'"),
      .intent = NODE_SERVE,
      .waits = "is not of this bridge" },
    { .sentence = "a driver that is away keeps its gres, and an idle node gets its size",
      .kube = SIZED(SIZE("8", "8000Mi", "")),
      .slurm = HAS("4", "8000", IDLE, ",'gres':'gpu:gpu.example.com:8(S:0,1)'"),
      .intent = NODE_RECREATE,
      .part = DRAIN(RECREATING),
      .waits = "it is being drained" },
    { .sentence = "a driver that is away is no difference",
      .kube = SIZED(SIZE("4", "8000Mi", "")),
      .slurm = HAS("4", "8000", IDLE, ",'gres':'gpu:gpu.example.com:8(S:0,1)'"),
      .intent = NODE_SERVE },
    { .sentence = "nor are gres of other names",
      .kube = SIZED(SIZE("8", "8000Mi", "")),
      .slurm = HAS("4", "8000", IDLE, ",'gres':'gpu:1(S:0,1),shard:4'"),
      .intent = NODE_SERVE,
      .waits = "is not of this bridge" },
    { .sentence = "nor when the node moves to another partition",
      .kube = "{" META(LABEL PARTS("p1")) "'spec':{" TAINTED "},'status':{" SIZE(
          "4", "8000Mi", GPUS("1")) ADDRESS ",'conditions':[" READY "]}}",
      .slurm = HAS("4", "8000", IDLE, ",'gres':'gpu:h100:1','features':['p2']"),
      .intent = NODE_SERVE,
      .part = "'features':['p1']",
      .waits = "not in partition p1 yet" },
    { .sentence = "but sockets are no type",
      .kube = SIZED(SIZE("8", "8000Mi", GPUS("2"))),
      .slurm = HAS("4", "8000", IDLE, ",'gres':'gpu:2(S:0,1)'"),
      .intent = NODE_RECREATE,
      .part = DRAIN(RECREATING),
      .waits = "it is being drained" },
};

static void put_pods(struct kube_cache *cache, const struct row *row)
{
    kube_cache_relist_begin(cache);
    for (size_t i = 0; row->pods[i]; i++)
        bench_put_node(cache, row->pods[i]);
    kube_cache_relist_end(cache, 5);
}

static void check_row(const struct row *row)
{
    struct node_sizes *sizes = node_sizes_new();
    struct kube_cache *pods, *daemonsets;
    struct bench bench;
    struct plan plan;
    const char *why = NULL;

    bench_up(&bench);
    daemonsets = kube_cache_new(&kube_daemonset_kind, &bench.clock);
    if (!row->unread)
        bench_put_node(daemonsets, DAEMONSET_O);
    bench.world.optional[OPTIONAL_DAEMONSETS] =
        (struct optional){ daemonsets, row->unread ? WATCH_UNKNOWN : WATCH_PRESENT };
    if (row->leads_s > 0)
        bench.world.facts.leading_us = NOW_US - row->leads_s * SECOND_US;
    pods = kube_cache_new(&kube_pod_kind, &bench.clock);
    bench.config.memory_margin = row->margin;
    bench.config.resize_after_s = row->after;
    bench.config.drains_to_resize = row->drains;
    bench.world.filter = filter_new(&(struct filter_caches){ .other_pods = pods,
                                                             .nodes = bench.world.nodes,
                                                             .daemonsets = daemonsets },
                                    &(struct filter_hooks){ .name_of = NULL });
    bench.world.node_sizes = sizes;
    rig_fill(&bench, row->kube, row->slurm, KNOWN);
    put_pods(pods, row);
    node_sizes_record(sizes, STR("n1"), true, NOW_US - row->differs * SECOND_US);
    plan_init(&plan, &bench.arena);
    assert_int_equal(node_intent(&bench.world, STR("n1"), &bench.arena, &why), row->intent);
    assert_int_equal(nodes_plan(&bench.world, STR("n1"), &plan, NULL), 0);
    if (row->part)
        rig_expect_part(&plan, row->part);
    else
        assert_true(list_is_empty(&plan.actions));
    if (row->waits && (!plan.waits || !strstr(plan.waits, row->waits)))
        fail_msg("waits: %s", plan.waits ? plan.waits : "no");
    if (!row->waits)
        assert_null(plan.waits);
    assert_int_equal(node_size_differs(&bench.world, STR("n1"), &bench.arena),
                     row->slurm && row->waits && !strstr(row->waits, "partition"));
    node_sizes_free(sizes);
    filter_free(bench.world.filter);
    kube_cache_free(pods);
    kube_cache_free(daemonsets);
    bench_down(&bench);
}

static void a_node_has_the_size_that_it_can_give(void **state)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        print_message("# %s\n", rows[i].sentence);
        check_row(&rows[i]);
    }
}

static void the_first_of_several_differences_counts(void **state)
{
    struct node_sizes *sizes = node_sizes_new();

    assert_int_equal(node_sizes_since(NULL, STR("n1")), 0);
    assert_int_equal(node_sizes_since(sizes, STR("n1")), 0);
    node_sizes_record(sizes, STR("n1"), true, 5);
    node_sizes_record(sizes, STR("n1"), true, 7);
    node_sizes_record(sizes, STR("n2"), false, 7);
    assert_int_equal(node_sizes_since(sizes, STR("n1")), 5);
    assert_int_equal(node_sizes_since(sizes, STR("n2")), 0);
    node_sizes_record(sizes, STR("n1"), false, 8);
    node_sizes_record(sizes, STR("n1"), true, 9);
    assert_int_equal(node_sizes_since(sizes, STR("n1")), 9);
    node_sizes_free(sizes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_has_the_size_that_it_can_give),
        cmocka_unit_test(the_first_of_several_differences_counts),
    };

    return cmocka_run_group_tests_name("nodes_size", tests, NULL, NULL);
}
