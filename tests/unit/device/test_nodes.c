/* test_nodes.c - the devices of a node in Slurm's order; slices that tell nothing; lists of GRES.
 */
#include "device_rig.h"

#include "device/nodes.h"

static void expect_devices(struct rig *rig, const char *names)
{
    auto_buf struct buf found = { .max = 256 };
    struct node_devices devices;

    devices_of_node(&rig->view, &rig->table.rows[0], "n1", &rig->arena, &devices);
    for (unsigned i = 0; i < devices.count; i++)
        buf_printf(&found, "%s/%s ", devices.at[i].pool, devices.at[i].device->name);
    if (devices.unknown)
        buf_printf(&found, "! %s", devices.unknown);
    assert_string_equal(buf_text(&found), names);
}

static void devices_are_in_the_order_of_their_numbers(void **state)
{
    struct rig *rig = *state;

    rig_see(rig->slices,
            "{metadata: {name: s1, uid: u, resourceVersion: '1'}, spec: {driver: gpu.example.com, "
            "nodeName: n1, pool: {name: p,"
            " generation: 2, resourceSliceCount: 2}, devices: [{name: gpu-10}, {name: gpu-9},"
            " {name: part, consumesCounters: [{counterSet: c}]}]}}");
    rig_see(rig->slices, "{metadata: {name: s2, uid: u, resourceVersion: '1'}, spec: {driver: "
                         "gpu.example.com, nodeName: n1, pool: {name: p,"
                         " generation: 2, resourceSliceCount: 2}, devices: [{name: gpu-2}]}}");
    rig_see(rig->slices, "{metadata: {name: old, uid: u, resourceVersion: '1'}, spec: {driver: "
                         "gpu.example.com, nodeName: n1, pool: {name: p,"
                         " generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-1}]}}");
    rig_see(rig->slices, "{metadata: {name: of2, uid: u, resourceVersion: '1'}, spec: {driver: "
                         "gpu.example.com, nodeName: n2, pool: {name: q,"
                         " generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-1}]}}");
    expect_devices(rig, "p/gpu-2 p/gpu-9 p/gpu-10 ");
}

static void a_pool_that_is_incomplete_or_away_tells_nothing(void **state)
{
    struct rig *rig = *state;

    expect_devices(rig, "! driver gpu.example.com shows no devices on node n1");
    rig_see(rig->slices, "{metadata: {name: s1, uid: u, resourceVersion: '1'}, spec: {driver: "
                         "gpu.example.com, nodeName: n1, pool: {name: p,"
                         " generation: 2, resourceSliceCount: 2}, devices: [{name: gpu-1}]}}");
    expect_devices(rig, "p/gpu-1 ! driver gpu.example.com has not published all slices of pool p "
                        "on node n1");
    rig_see(rig->slices, "{metadata: {name: s2, uid: u, resourceVersion: '1'}, spec: {driver: "
                         "gpu.example.com, nodeName: n1, pool: {name: p,"
                         " generation: 2, resourceSliceCount: 2}, devices: [{name: gpu-1}]}}");
    expect_devices(rig, "p/gpu-1 p/gpu-1 ! driver gpu.example.com shows a device of node n1 twice");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(devices_are_in_the_order_of_their_numbers, rig_up,
                                        rig_down),
        cmocka_unit_test_setup_teardown(a_pool_that_is_incomplete_or_away_tells_nothing, rig_up,
                                        rig_down),
    };

    return cmocka_run_group_tests_name("device/nodes", tests, NULL, NULL);
}
