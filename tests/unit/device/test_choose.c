/* test_choose.c - a claim gets the devices that its job has on the node, and none that another has.
 */
#include "device_rig.h"

#include "device/choose.h"

#include <stdio.h>

static const struct kube_node node = { .object = { .name = "n1" } };
static const struct kube_pod pod = { .object = { .name = "a", .uid = "uid-a" } },
                             sibling = { .object = { .name = "b", .uid = "uid-b" } };
static const struct kube_pod *const pods[] = { &pod, &sibling };

static void show_devices(struct rig *rig)
{
    rig_see(rig->slices,
            "{metadata: {name: s, uid: u, resourceVersion: '1'}, spec: {driver: other.example.com, "
            "nodeName: n1, pool: {name: p,"
            " generation: 1, resourceSliceCount: 1}, devices: [{name: d0}, {name: d1}, {name: d2},"
            " {name: d3}]}}");
}

/* more: of the result. */
static void allocate(struct rig *rig, const char *name, const char *device, const char *more,
                     const char *uid)
{
    char text[400];

    (void)snprintf(text, sizeof(text),
                   "{metadata: {name: %s, namespace: ns, uid: u, resourceVersion: '1'}, status: "
                   "{allocation: {devices: {results:"
                   " [{request: r, driver: other.example.com, pool: p, device: %s%s}]}},"
                   " reservedFor: [{resource: pods, name: x, uid: %s}]}}",
                   name, device, more, uid);
    rig_see(rig->claims, text);
}

/* The record has two devices of type a before those of type b, so index 2 is d0. */
static const char *extra = "";

static void expect_choice(struct rig *rig, const char *index, int64_t wanted,
                          enum choose_state state, const char *devices)
{
    const struct slurm_node record = { .gres = "gpu:a:2,gpu:b:4", .extra = extra };
    const struct slurm_gres gres = { "gpu", "b", index, 2 };
    const struct slurm_layout_node given = { .gres = &gres, .gres_count = 1 };
    const struct job_node where = { &node, &record, &given };
    struct device_request request = { "r", "other.example.com", &rig->table.rows[1], wanted };
    const struct pod_claim claim = { .name = "c", .requests = &request, .request_count = 1 };
    struct chooser chooser = {
        .view = rig->view, .pods = pods, .pod_count = 2, .arena = &rig->arena
    };
    auto_buf struct buf found = { .max = 256 };
    struct choice choice;
    const char *why = "";

    assert_int_equal(choose_devices(&chooser, &pod, &where, &claim, 1, &choice, &why), state);
    for (unsigned i = 0; state == CHOOSE_DONE && i < choice.count; i++)
        buf_printf(&found, "%s ", choice.devices[i].device);
    assert_string_equal(state == CHOOSE_DONE ? buf_text(&found) : why, devices);
}

static void the_devices_are_those_of_the_indexes(void **state)
{
    struct rig *rig = *state;

    show_devices(rig);
    expect_choice(rig, "3,5", 2, CHOOSE_DONE, "d1 d3 ");
    expect_choice(rig, "6", 1, CHOOSE_MISFIT,
                  "Slurm chose gpu:b number 4 of node n1, which was made with 4 of them");
    expect_choice(rig, "", 1, CHOOSE_MISFIT, "Slurm does not say which gpu:b of node n1 it chose");
}

static void a_device_that_another_claim_has_is_waited_for(void **state)
{
    struct rig *rig = *state;

    show_devices(rig);
    allocate(rig, "of-another-job", "d1", "", "uid-x");
    expect_choice(rig, "3", 1, CHOOSE_HELD,
                  "resourceclaim ns/of-another-job still has a device of class other.example.com "
                  "that Slurm chose on node n1");
}

static void what_another_pod_of_the_job_has_is_left_to_it(void **state)
{
    struct rig *rig = *state;

    show_devices(rig);
    allocate(rig, "of-the-sibling", "d1", "", "uid-b");
    expect_choice(rig, "3,5", 1, CHOOSE_DONE, "d3 ");
    expect_choice(rig, "3", 1, CHOOSE_MISFIT,
                  "of class other.example.com Slurm gave 0 devices on node n1 that can be used, "
                  "and the pod needs 1");
}

static void a_device_that_an_administrator_looks_at_is_free(void **state)
{
    struct rig *rig = *state;

    show_devices(rig);
    allocate(rig, "of-an-administrator", "d1", ", adminAccess: true", "uid-x");
    expect_choice(rig, "3", 1, CHOOSE_DONE, "d1 ");
}

static void numbers_stay_when_a_device_goes(void **state)
{
    struct rig *rig = *state;

    extra = "{\"devices\":\"gpu:a=x,y;gpu:b=p/d9,p/d0,p/d1,p/d2\"}";
    show_devices(rig);
    expect_choice(rig, "3,5", 2, CHOOSE_DONE, "d0 d2 ");
    expect_choice(
        rig, "2", 1, CHOOSE_MISFIT,
        "Slurm gave device p/d9 of node n1, which driver other.example.com does not show");
    extra = "";
}

static void a_tainted_device_is_not_chosen(void **state)
{
    struct rig *rig = *state;

    rig_see(rig->slices,
            "{metadata: {name: s, uid: u, resourceVersion: '1'}, spec: {driver: other.example.com, "
            "nodeName: n1, pool: {name: p, generation: 1, resourceSliceCount: 1}, devices: [{name: "
            "d0, taints: [{key: k, effect: None}, {key: hw, value: ecc, effect: NoSchedule}]},"
            " {name: d1, taints: [{key: k, effect: None}]}, {name: d2}, {name: d3}]}}");
    expect_choice(rig, "2-3", 1, CHOOSE_DONE, "d1 ");
    expect_choice(rig, "2", 1, CHOOSE_MISFIT,
                  "Slurm gave device p/d0 of node n1, which has the taint hw=ecc:NoSchedule");
}

/* Each device has one core. */
static void show_core_devices(struct rig *rig, unsigned count)
{
    auto_buf struct buf text = { .max = 1 << 16 };

    buf_printf(&text,
               "{metadata: {name: s, uid: u, resourceVersion: '1'}, spec: {driver: %s, nodeName: "
               "n1, pool: {name: p, generation: 1, resourceSliceCount: 1}, devices: [",
               DEVICE_CORES_DRIVER);
    for (unsigned i = 0; i < count; i++)
        buf_printf(&text, "{name: core%u, attributes: {cores: {string: '%u'}}},", i, i);
    buf_add_text(&text, "]}}");
    rig_see(rig->slices, buf_text(&text));
}

static void cores_of_more_devices_than_a_claim_may_have_are_refused(void **state)
{
    static const struct slurm_node record = { .gres = "" };
    static const struct slurm_layout_node given = { .name = "n1",
                                                    .cores = "0xffffffffffffffffffffffffffffffff",
                                                    .sockets = 1,
                                                    .cores_per_socket = 128 };
    struct rig *rig = *state;
    const struct job_node where = { &node, &record, &given };
    struct device_request request = { "cpu", DEVICE_CORES_DRIVER, &rig->table.rows[2], 1 };
    const struct pod_claim claim = {
        .kind = POD_CLAIM_CPU, .name = "c", .requests = &request, .request_count = 1
    };
    struct chooser chooser = { .view = rig->view, .arena = &rig->arena };
    struct choice choice;
    const char *why = "";

    show_core_devices(rig, 128);
    assert_int_equal(choose_devices(&chooser, &pod, &where, &claim, 1, &choice, &why),
                     CHOOSE_MISFIT);
    assert_string_equal(why, "a claim has at most 32 devices, and on node n1 it needs more");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_devices_are_those_of_the_indexes, rig_up, rig_down),
        cmocka_unit_test_setup_teardown(a_device_that_another_claim_has_is_waited_for, rig_up,
                                        rig_down),
        cmocka_unit_test_setup_teardown(numbers_stay_when_a_device_goes, rig_up, rig_down),
        cmocka_unit_test_setup_teardown(a_tainted_device_is_not_chosen, rig_up, rig_down),
        cmocka_unit_test_setup_teardown(what_another_pod_of_the_job_has_is_left_to_it, rig_up,
                                        rig_down),
        cmocka_unit_test_setup_teardown(a_device_that_an_administrator_looks_at_is_free, rig_up,
                                        rig_down),
        cmocka_unit_test_setup_teardown(cores_of_more_devices_than_a_claim_may_have_are_refused,
                                        rig_up, rig_down),
    };

    return cmocka_run_group_tests_name("device/choose", tests, NULL, NULL);
}
