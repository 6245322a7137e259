/* test_nodes_devices.c - which devices a record in Slurm is made with, and when it is made again
 * because they are others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/node_refusals.h"
#include "nodes_rig.h"

#define GPU         "gpu.example.com"
#define DEVICE(n)   "{'name':'" n "'}"
#define SICK(n)     "{'name':'" n "','taints':[{'key':'hw','value':'ecc','effect':'NoSchedule'}]}"
#define DEVICES(of) SHOWN_BY("n1", of)
#define SHOWN_BY(pool, of)                                                                         \
    "{'metadata':{'name':'s','uid':'u','resourceVersion':'1'},'spec':{'driver':'" GPU              \
    "','nodeName':'n1','pool':{'name':'" pool "','generation':1,'resourceSliceCount':1},"          \
    "'devices':[" of "]}}"
#define MADE(devices)                                                                              \
    ",'extra':'{\\'v\\':1,\\'cluster\\':\\'c1\\',\\'release\\':\\'r\\',\\'node\\':\\'n1\\',\\'"    \
    "devices\\':\\'" devices "\\'}'"
#define MARKED(devices)                                                                            \
    UPDATE("'extra':'{\\'v\\':1,\\'cluster\\':\\'c1\\',\\'release\\':\\'r\\',\\'devices\\':"       \
           "\\'" devices "\\'}'")
#define HAS(state, gres, mark)                                                                     \
    "{'name':'n1','state':[" state                                                                 \
    "],'cpus':4,'real_memory':8000,'address':'10.0.0.1','partitions':['all'],'gres':'" gres        \
    "'" mark "}"
#define PLAIN      SIZED(SIZE("4", "8000Mi", ""))
#define BOTH       DEVICES(DEVICE("gpu-0") "," DEVICE("gpu-1"))
#define FIRST_SICK DEVICES(SICK("gpu-0") "," DEVICE("gpu-1"))
#define MADE_BOTH  MADE("gpu:" GPU "=gpu-0,gpu-1")
#define H100       "devices: [{class: " GPU ", gres: gpu, type: h100}]"
#define DIFFERS(rest)                                                                              \
    "'message':'Slurm has the devices gpu:" GPU "=gpu-0,gpu-1, and should have " rest              \
    "; its record is made again when the node is idle','reason':'DevicesDiffer','status':'True'"

static const struct row {
    const char *sentence;
    const char *config;      /* NULL: the default */
    const char *slice;       /* NULL: the driver is away */
    const char *kube;        /* NULL: PLAIN */
    const char *slurm;       /* NULL: it is made */
    bool unread;             /* the slices */
    bool rules_unread;       /* DeviceTaintRules */
    enum node_intent intent; /* SERVE */
    const char *parts[3];    /* of the plan; without any it has no actions */
} rows[] = {
    /* ---- made ---- */
    { .sentence = "the mark of a new record says which device has which number",
      .slice = DEVICES(DEVICE("gpu-10") "," DEVICE("gpu-2")),
      .intent = NODE_SERVE,
      .parts = { " Gres=gpu:" GPU ":2 ", MARKED("gpu:" GPU "=gpu-2,gpu-10") } },
    { .sentence = "a pool that is not named as its node is a part of the name",
      .slice = SHOWN_BY("rack/7", DEVICE("gpu-0")),
      .intent = NODE_SERVE,
      .parts = { MARKED("gpu:" GPU "=rack/7/gpu-0") } },
    { .sentence = "devices of a plugin are only counted",
      .kube = SIZED(SIZE("4", "8000Mi", ",'nvidia.com/gpu':'2','amd.com/gpu':'1'")),
      .slice = BOTH,
      .intent = NODE_SERVE,
      .parts = { " Gres=gpu:" GPU ":2,gpu:3 ", MARKED("gpu:" GPU "=gpu-0,gpu-1;gpu=+2,+1") } },
    { .sentence = "Slurm is not told of a device that is tainted",
      .slice = FIRST_SICK,
      .intent = NODE_SERVE,
      .parts = { " Gres=gpu:" GPU ":1 ", MARKED("gpu:" GPU "=gpu-1") } },
    { .sentence = "nothing is made while the slices are being read",
      .slice = BOTH,
      .unread = true,
      .intent = NODE_SERVE },
    { .sentence = "nor while the taints of devices are, and it is looked at again",
      .slice = BOTH,
      .rules_unread = true,
      .intent = NODE_SERVE },

    /* ---- made again ---- */
    { .sentence = "a record with the devices of the node stays",
      .slice = BOTH,
      .slurm = HAS(IDLE, "gpu:" GPU ":2", MADE_BOTH),
      .intent = NODE_SERVE },
    { .sentence = "an idle node is made again without a tainted device",
      .slice = FIRST_SICK,
      .slurm = HAS(IDLE, "gpu:" GPU ":2", MADE_BOTH),
      .intent = NODE_RECREATE,
      .parts = { DRAIN(RECREATING) } },
    { .sentence = "a busy one works on and says so",
      .slice = FIRST_SICK,
      .slurm = HAS(BUSY, "gpu:" GPU ":2", MADE_BOTH),
      .intent = NODE_SERVE,
      .parts = { DIFFERS("gpu:" GPU "=gpu-1: gpu-0 has the taint hw=ecc:NoSchedule"),
                 "DevicesDiffer n1" } },
    { .sentence = "a node of which every device is tainted is made again without any",
      .slice = DEVICES(SICK("gpu-0")),
      .slurm = HAS(IDLE, "gpu:" GPU ":1", MADE("gpu:" GPU "=gpu-0")),
      .intent = NODE_RECREATE,
      .parts = { DRAIN(RECREATING) } },
    { .sentence = "a device that is well again comes back",
      .slice = BOTH,
      .slurm = HAS(IDLE, "gpu:" GPU ":1", MADE("gpu:" GPU "=gpu-1")),
      .intent = NODE_RECREATE,
      .parts = { DRAIN(RECREATING) } },
    { .sentence = "as many devices are not the same devices",
      .slice = DEVICES(DEVICE("gpu-1") "," DEVICE("gpu-2")),
      .slurm = HAS(IDLE, "gpu:" GPU ":2", MADE_BOTH),
      .intent = NODE_RECREATE,
      .parts = { DRAIN(RECREATING) } },
    { .sentence = "a type that the config adds reaches an idle node",
      .config = H100,
      .slice = BOTH,
      .slurm = HAS(IDLE, "gpu:" GPU ":2", MADE_BOTH),
      .intent = NODE_RECREATE,
      .parts = { DRAIN(RECREATING) } },
    { .sentence = "a type that the config no longer has goes from an idle node, whatever other "
                  "drivers show",
      .slice = BOTH,
      .slurm = HAS(IDLE, "gpu:big:2", MADE("gpu:big=gpu-0,gpu-1")),
      .intent = NODE_RECREATE,
      .parts = { DRAIN(RECREATING) } },
    { .sentence = "a busy node says which devices it should have",
      .config = H100,
      .slice = BOTH,
      .slurm = HAS(BUSY, "gpu:" GPU ":2", MADE_BOTH),
      .intent = NODE_SERVE,
      .parts = { DIFFERS("gpu:h100=gpu-0,gpu-1") } },
    { .sentence = "a busy node is not drained for a gres that the config no longer has",
      .config = "devices: [{class: " GPU ", gres: accel}]",
      .slice = BOTH,
      .slurm = HAS(BUSY, "gpu:" GPU ":2", MADE_BOTH),
      .intent = NODE_SERVE,
      .parts = { DIFFERS("accel:" GPU "=gpu-0,gpu-1") } },
    { .sentence = "a node that others took out is not made again, and shows their reason",
      .slice = FIRST_SICK,
      .slurm = HAS(DRAINING, "gpu:" GPU ":2", ",'reason':'disk'" MADE_BOTH),
      .intent = NODE_SERVE,
      .parts = { "'reason':'Drained'" } },
    { .sentence = "a node that is as it should be says so again",
      .kube = "{" META(LABEL) "'spec':{" TAINTED "},'status':{" SIZE("4", "8000Mi", "") ADDRESS
      ",'conditions':[" READY SAYS("True", "DevicesDiffer", "m") "]}}",
      .slice = BOTH,
      .slurm = HAS(BUSY, "gpu:" GPU ":2", MADE_BOTH),
      .intent = NODE_SERVE,
      .parts = { "'reason':'InService'" } },

    /* ---- what is not known ---- */
    { .sentence = "the devices of a driver that is away are still there",
      .slurm = HAS(IDLE, "gpu:" GPU ":2", MADE_BOTH),
      .intent = NODE_SERVE },
    { .sentence =
          "a busy node is not drained for a type that the config adds while its driver is away",
      .config = H100,
      .slurm = HAS(BUSY, "gpu:" GPU ":2", MADE_BOTH),
      .intent = NODE_SERVE },
    { .sentence = "nor is an idle one made again",
      .config = H100,
      .slurm = HAS(IDLE, "gpu:" GPU ":2", MADE_BOTH),
      .intent = NODE_SERVE },
    { .sentence = "a mark without devices gets those of a record that has the same gres",
      .slice = BOTH,
      .slurm = HAS(BUSY, "gpu:" GPU ":2", OURS),
      .intent = NODE_SERVE,
      .parts = { MARKED("gpu:" GPU "=gpu-0,gpu-1") } },
    { .sentence = "but not while the driver is away",
      .slurm = HAS(BUSY, "gpu:" GPU ":2", OURS),
      .intent = NODE_SERVE },
    { .sentence = "nor while one of them is tainted",
      .slice = FIRST_SICK,
      .slurm = HAS(IDLE, "gpu:" GPU ":2", OURS),
      .intent = NODE_RECREATE,
      .parts = { DRAIN(RECREATING) } },
    { .sentence = "nor from gres of another type",
      .config = H100,
      .slice = BOTH,
      .slurm = HAS(BUSY, "gpu:" GPU ":2", OURS),
      .intent = NODE_SERVE },
};

static void check_row(const struct row *row)
{
    struct node_sizes *sizes = node_sizes_new();
    struct kube_cache *slices, *claims;
    struct bridge_config config;
    struct bench bench;
    struct plan plan;
    const char *why = NULL;

    bench_up(&bench);
    assert_int_equal(bridge_config_parse(str_of(row->config ? row->config : ""), &config, NULL), 0);
    bench.config.devices = config.devices;
    slices = kube_cache_new(&device_slice_kind, &bench.clock);
    claims = kube_cache_new(&device_claim_kind, &bench.clock);
    bench.world.device_indexes = device_add_indexes(slices, claims);
    bench.world.optional[OPTIONAL_SLICES] =
        (struct optional){ slices, row->unread ? WATCH_UNKNOWN : WATCH_PRESENT };
    if (row->rules_unread)
        bench.world.optional[OPTIONAL_TAINT_RULES] = (struct optional){ claims, WATCH_UNKNOWN };
    bench.world.node_sizes = sizes;
    if (row->slice)
        bench_put_node(slices, row->slice);
    rig_fill(&bench, row->kube ? row->kube : PLAIN, row->slurm, KNOWN);
    plan_init(&plan, &bench.arena);
    assert_int_equal(node_intent(&bench.world, STR("n1"), &bench.arena, &why), row->intent);
    assert_int_equal(nodes_plan(&bench.world, STR("n1"), &plan, NULL), 0);
    for (size_t i = 0; i < 3 && row->parts[i]; i++)
        rig_expect_part(&plan, row->parts[i]);
    if (!row->parts[0])
        assert_true(list_is_empty(&plan.actions));
    assert_int_equal(plan.look_again_us > 0 && list_is_empty(&plan.actions),
                     row->unread || row->rules_unread);
    node_sizes_free(sizes);
    bridge_config_done(&config);
    kube_cache_free(slices);
    kube_cache_free(claims);
    bench_down(&bench);
}

static void a_record_has_the_devices_that_pods_can_use(void **state)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        print_message("# %s\n", rows[i].sentence);
        check_row(&rows[i]);
    }
}

/* A mark that Slurm's `extra` would not hold is left out. */
static void a_list_that_is_too_long_is_not_written(void **state)
{
    auto_buf struct buf devices = { .max = MAX_TEXT }, slice = { .max = MAX_TEXT };
    struct row row = { .sentence = "too long", .slice = NULL, .intent = NODE_SERVE };

    for (unsigned i = 0; i < 200; i++)
        buf_printf(&devices,
                   "%s{'name':'a-device-with-a-name-as-long-as-it-can-be-in-kubernetes-%u'}",
                   i > 0 ? "," : "", i);
    buf_printf(&slice,
               "{'metadata':{'name':'s','uid':'u','resourceVersion':'1'},'spec':{'driver':'" GPU
               "','nodeName':'n1','pool':{'name':'n1','generation':1,'resourceSliceCount':1},"
               "'devices':[%s]}}",
               buf_text(&devices));
    row.slice = buf_text(&slice);
    row.parts[0] = " Gres=gpu:" GPU ":200 ";
    row.parts[1] = MARKS;
    check_row(&row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_has_the_devices_that_pods_can_use),
        cmocka_unit_test(a_list_that_is_too_long_is_not_written),
    };

    return cmocka_run_group_tests_name("nodes_devices", tests, NULL, NULL);
}
