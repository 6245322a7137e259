/* test_registered.c - which device has which number in Slurm, and whether the next one is usable.
 */
#include "device_rig.h"

#include "device/registered.h"

#define MADE(devices) "{\"v\":1,\"cluster\":\"c\",\"devices\":\"" devices "\"}"

static void show(struct rig *rig, const char *devices)
{
    static unsigned version;
    auto_buf struct buf text = { .max = 4096 };

    buf_printf(&text,
               "{metadata: {name: s, uid: u, resourceVersion: '%u'}, spec: {driver: "
               "gpu.example.com, nodeName: n1, pool: {name: n1, generation: 1, "
               "resourceSliceCount: 1}, devices: [%s]}}",
               ++version, devices);
    rig_see(rig->slices, buf_text(&text));
}

#define SICK(name) "{name: " name ", taints: [{key: hw, effect: NoExecute}]}"

static void expect_numbers(struct rig *rig, const char *gres, const char *extra, const char *wanted)
{
    const struct slurm_node record = { .gres = gres, .gres_used = "", .extra = extra };
    auto_buf struct buf found = { .max = 1024 };
    struct node_devices devices;

    registered_of_row(&rig->view, &rig->table.rows[0], &record, "n1", &rig->arena, &devices);
    for (unsigned i = 0; !devices.unknown && i < devices.count; i++)
        buf_printf(&found, "%s%s%s ", devices.at[i].name, devices.at[i].device ? "" : " is gone",
                   devices.at[i].taint);
    assert_string_equal(devices.unknown ? devices.unknown : buf_text(&found), wanted);
}

static void numbers_are_those_of_the_mark(void **state)
{
    struct rig *rig = *state;

    show(rig, "{name: gpu-0}, {name: gpu-1}, {name: gpu-2}");
    expect_numbers(rig, "gpu:a:2", MADE("gpu:b=x;gpu:a=gpu-2,gpu-1"), "gpu-2 gpu-1 ");
    expect_numbers(rig, "gpu:a:2", MADE("gpu:a=gpu-0,gpu-7"), "gpu-0 gpu-7 is gone ");
    expect_numbers(rig, "gpu:a:2", MADE("gpu:a=gpu-1,+1"), "gpu-1 ");
    show(rig, SICK("gpu-0") ", {name: gpu-2}");
    expect_numbers(rig, "gpu:a:3", MADE("gpu:a=gpu-0,gpu-1,gpu-2"),
                   "gpu-0hw:NoExecute gpu-1 is gone gpu-2 ");
}

static void without_a_mark_the_driver_must_show_as_many_as_slurm_has(void **state)
{
    struct rig *rig = *state;

    expect_numbers(rig, "gpu:a:2", "", "driver gpu.example.com shows no devices on node n1");
    show(rig, SICK("gpu-0") ", {name: gpu-1}, {name: gpu-2}");
    expect_numbers(rig, "gpu:a:3", "", "gpu-0hw:NoExecute gpu-1 gpu-2 ");
    expect_numbers(rig, "gpu:a:2", "no JSON", "gpu-1 gpu-2 ");
    expect_numbers(rig, "gpu:a:1", "{}", "gpu-0hw:NoExecute gpu-1 gpu-2 ");
    expect_numbers(rig, "gpu:a:4", "{\"devices\":7}",
                   "Slurm has 4 gpu:a on node n1, and driver gpu.example.com shows 3 devices "
                   "there");
}

static void a_rule_taints_the_devices_that_it_selects(void **state)
{
    static const struct {
        const char *spec, *wanted;
    } rules[] = {
        { "taint: {key: k, effect: NoSchedule}", "gpu-0 gpu-1 " },
        { "deviceSelector: {device: gpu-1}, taint: {key: k, effect: None}", "gpu-0 gpu-1 " },
        { "deviceSelector: {device: gpu-1}, taint: {key: k, effect: NoSchedule}",
          "gpu-0 gpu-1k:NoSchedule " },
        { "deviceSelector: {device: gpu-1, pool: n2}, taint: {key: k, effect: NoSchedule}",
          "gpu-0 gpu-1 " },
        { "deviceSelector: {driver: gpu.example.com, pool: n1}, taint: {key: k, value: v, "
          "effect: NoExecute}",
          "gpu-0k=v:NoExecute gpu-1k=v:NoExecute " },
        { "deviceSelector: {driver: other}, taint: {key: k, effect: NoExecute}", "gpu-0 gpu-1 " },
        { "deviceSelector: {}, taint: {key: k, effect: NoExecute}",
          "gpu-0k:NoExecute gpu-1k:NoExecute " },
    };
    struct rig *rig = *state;
    struct kube_cache *cache = kube_cache_new(&device_taint_rule_kind, &rig->clock);

    show(rig, "{name: gpu-0}, {name: gpu-1}");
    rig->view.taint_rules = cache;
    for (unsigned i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        auto_buf struct buf text = { .max = 1024 };

        buf_printf(&text, "{metadata: {name: r, uid: u, resourceVersion: '%u'}, spec: {%s}}", i + 1,
                   rules[i].spec);
        rig_see(cache, buf_text(&text));
        expect_numbers(rig, "gpu:a:2", MADE("gpu:a=gpu-0,gpu-1"), rules[i].wanted);
    }
    rig->view.taint_rules = NULL;
    kube_cache_free(cache);
}

static void the_lowest_free_number_is_given_next(void **state)
{
    static const struct {
        const char *gres, *used, *extra;
        bool is_out;
    } cases[] = {
        { "gpu:a:3", "gpu:a:0(IDX:N/A)", MADE("gpu:a=gpu-0,gpu-1,gpu-2"), true },
        { "gpu:a:3", "", MADE("gpu:a=gpu-0,gpu-1,gpu-2"), true },
        { "gpu:a:3", "gpu:a:1(IDX:0)", MADE("gpu:a=gpu-0,gpu-1,gpu-2"), false },
        { "gpu:a:3", "gpu:a:2(IDX:0-1)", MADE("gpu:a=gpu-0,gpu-1,gpu-7"), true },
        { "gpu:a:3", "gpu:a:3(IDX:0-2)", MADE("gpu:a=gpu-0,gpu-1,gpu-7"), false },
        { "gpu:a:2", "gpu:a:0(IDX:N/A)", MADE("gpu:a=gpu-1,gpu-2"), false },
        { "gpu:b:2,gpu:a:2", "gpu:b:1(IDX:0),gpu:a:1(IDX:2)", MADE("gpu:a=gpu-1,gpu-0"), true },
        { "gpu:b:2,gpu:a:2", "gpu:b:2(IDX:0,1),gpu:a:0(IDX:N/A)", MADE("gpu:a=gpu-1,gpu-0"),
          false },
        { "gpu:a:3", "gpu:a:1", MADE("gpu:a=gpu-0,gpu-1,gpu-2"), false }, /* which is not said */
        { "nic:1", "", MADE("nic=+1"), false },
    };
    struct rig *rig = *state;

    show(rig, SICK("gpu-0") ", {name: gpu-1}, {name: gpu-2}");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct slurm_node record = { .gres = cases[i].gres,
                                           .gres_used = cases[i].used,
                                           .extra = cases[i].extra };

        if (registered_next_is_out(&rig->view, &record, "n1", &rig->arena) != cases[i].is_out)
            fail_msg("%s with %s used", cases[i].gres, cases[i].used);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(numbers_are_those_of_the_mark, rig_up, rig_down),
        cmocka_unit_test_setup_teardown(without_a_mark_the_driver_must_show_as_many_as_slurm_has,
                                        rig_up, rig_down),
        cmocka_unit_test_setup_teardown(a_rule_taints_the_devices_that_it_selects, rig_up,
                                        rig_down),
        cmocka_unit_test_setup_teardown(the_lowest_free_number_is_given_next, rig_up, rig_down),
    };

    return cmocka_run_group_tests_name("device/registered", tests, NULL, NULL);
}
