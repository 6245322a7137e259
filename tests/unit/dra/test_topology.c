/* test_topology.c - machines as sysfs shows them, and the cores in Slurm's order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dra/topology.h"
#include "sandbox.h"

static struct sandbox box;

static int set_up(void **state)
{
    (void)state;
    sandbox_init(&box);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sandbox_done(&box);
    return 0;
}

static struct topology *read_machine(void)
{
    struct topology *topology = NULL;
    struct err err = { 0 };

    if (topology_read(sandbox_path(&box, "sys"), &topology, &err) < 0)
        fail_msg("%s", err.text);
    return topology;
}

/* The first CPU of each core, in Slurm's order. */
static void expect_order(const struct topology *topology, const char *expected)
{
    auto_buf struct buf text;

    buf_init(&text, 4096);
    for (unsigned i = 0; i < topology->core_count; i++)
        buf_printf(&text, "%s%u", i > 0 ? " " : "", topology->cores[i].cpus[0]);
    assert_string_equal(buf_text(&text), expected);
}

static void expect_shape(const struct topology *topology, unsigned sockets, unsigned cores,
                         unsigned threads)
{
    assert_int_equal(topology->sockets, sockets);
    assert_int_equal(topology->cores_per_socket, cores);
    assert_int_equal(topology->threads_per_core, threads);
}

static void expect_cpus(const struct topology *topology, const char *cores, const char *expected)
{
    struct topology_choice choice = { str_of(cores), topology->sockets, topology->cores_per_socket,
                                      topology->threads_per_core };
    auto_bitmap struct bitmap cpus = { 0 }, chosen = { 0 };
    auto_buf struct buf text;
    struct err err = { 0 };

    if (topology_cpus(topology, &choice, &cpus, &chosen, &err) < 0)
        fail_msg("%s", err.text);
    buf_init(&text, 4096);
    bitmap_print_ranges(&cpus, &text);
    assert_string_equal(buf_text(&text), expected);
}

static void a_small_machine_is_read(void **state)
{
    struct topology_numa numas[TOPOLOGY_MAX_NUMA];
    struct topology *topology;

    sandbox_two_cores(&box);
    topology = read_machine();
    expect_shape(topology, 1, 2, 1);
    expect_order(topology, "0 1");
    assert_int_equal(topology_numas(topology, numas), 1);
    assert_int_equal(numas[0].core_count, 2);
    assert_int_equal(numas[0].l3_count, 1);
    topology_free(topology);
}

/* Two sockets with two cores of two threads; threads are numbered behind all cores, as usual. */
static void siblings_are_pinned_together(void **state)
{
    struct topology *topology;

    sandbox_write(&box, "sys/devices/system/cpu/online", "0-7\n");
    sandbox_write(&box, "sys/devices/system/node/online", "0-1\n");
    sandbox_write(&box, "sys/devices/system/node/node0/cpulist", "0,2,4,6\n");
    sandbox_write(&box, "sys/devices/system/node/node1/cpulist", "1,3,5,7\n");
    for (unsigned cpu = 0; cpu < 8; cpu++) {
        char core[16];

        snprintf(core, sizeof(core), "%u,%u\n", cpu % 4, cpu % 4 + 4);
        sandbox_cpu(&box, cpu, core, cpu % 2 ? "1,3,5,7\n" : "0,2,4,6\n",
                    cpu % 2 ? "1,3,5,7\n" : "0,2,4,6\n");
    }
    topology = read_machine();
    expect_shape(topology, 2, 2, 2);
    expect_order(topology, "0 2 1 3"); /* the even CPUs are socket 0 */
    expect_cpus(topology, "0", "0,4");
    expect_cpus(topology, "1-2", "1-2,5-6");
    topology_free(topology);
}

/* Four L3 caches of two cores whose CPU numbers interleave: caches are counted one after the other.
 */
static void caches_come_before_cores(void **state)
{
    static const char *const l3[] = { "0,4\n", "1,5\n", "2,6\n", "3,7\n" };
    struct topology_numa numas[TOPOLOGY_MAX_NUMA];
    struct topology *topology;

    sandbox_write(&box, "sys/devices/system/cpu/online", "0-7\n");
    sandbox_write(&box, "sys/devices/system/node/online", "0\n");
    sandbox_write(&box, "sys/devices/system/node/node0/cpulist", "0-7\n");
    for (unsigned cpu = 0; cpu < 8; cpu++) {
        char core[16];

        snprintf(core, sizeof(core), "%u\n", cpu);
        sandbox_cpu(&box, cpu, core, "0-7\n", l3[cpu % 4]);
    }
    topology = read_machine();
    expect_order(topology, "0 4 1 5 2 6 3 7");
    assert_int_equal(topology_numas(topology, numas), 1);
    assert_int_equal(numas[0].l3_count, 4);
    topology_free(topology);
}

/* One L3 cache over two NUMA nodes (sub-NUMA clusters). */
static void numa_nodes_inside_a_cache_are_counted_one_after_the_other(void **state)
{
    struct topology_numa numas[TOPOLOGY_MAX_NUMA];
    struct topology *topology;

    sandbox_write(&box, "sys/devices/system/cpu/online", "0-3\n");
    sandbox_write(&box, "sys/devices/system/node/online", "0-2\n");
    sandbox_write(&box, "sys/devices/system/node/node0/cpulist", "1,3\n");
    sandbox_write(&box, "sys/devices/system/node/node1/cpulist", "0,2\n");
    sandbox_write(&box, "sys/devices/system/node/node2/cpulist", "\n"); /* memory only */
    for (unsigned cpu = 0; cpu < 4; cpu++) {
        char core[16];

        snprintf(core, sizeof(core), "%u\n", cpu);
        sandbox_cpu(&box, cpu, core, "0-3\n", "0-3\n");
    }
    topology = read_machine();
    expect_order(topology, "0 2 1 3");
    assert_int_equal(topology_numas(topology, numas), 2);
    assert_int_equal(numas[0].number, 1);
    assert_int_equal(numas[1].number, 0);
    assert_int_equal(numas[1].first_core, 2);
    topology_free(topology);
}

static void efficient_cores_do_not_count(void **state)
{
    struct topology *topology;

    sandbox_write(&box, "sys/devices/system/cpu/online", "0-5\n");
    sandbox_write(&box, "sys/devices/cpu_atom/cpus", "4-5\n");
    for (unsigned cpu = 0; cpu < 4; cpu++)
        sandbox_cpu(&box, cpu, cpu < 2 ? "0-1\n" : "2-3\n", "0-5\n", NULL);
    topology = read_machine(); /* a kernel without NUMA */
    expect_shape(topology, 1, 2, 2);
    expect_cpus(topology, "1", "2-3");
    topology_free(topology);
}

static void a_machine_with_a_cpu_offline_is_refused(void **state)
{
    struct topology *topology = NULL;
    struct err err = { 0 };

    sandbox_write(&box, "sys/devices/system/cpu/online", "0-2\n");
    sandbox_cpu(&box, 0, "0-1\n", "0-2\n", NULL);
    sandbox_cpu(&box, 1, "0-1\n", "0-2\n", NULL);
    sandbox_cpu(&box, 2, "2\n", "0-2\n", NULL);
    assert_int_equal(topology_read(sandbox_path(&box, "sys"), &topology, &err), -ERR_INVALID);
    assert_non_null(strstr(err.text, "offline"));
}

/* No machine says so, and no file may stop the plugin. */
static void a_core_on_two_sockets_counts_on_each(void **state)
{
    struct topology *topology;

    sandbox_write(&box, "sys/devices/system/cpu/online", "0-1\n");
    sandbox_cpu(&box, 0, "0-1\n", "0\n", NULL);
    sandbox_cpu(&box, 1, "0-1\n", "1\n", NULL);
    topology = read_machine();
    expect_shape(topology, 2, 1, 1);
    topology_free(topology);
}

static void a_missing_sysfs_is_told(void **state)
{
    struct topology *topology = NULL;
    struct err err = { 0 };

    assert_int_equal(topology_read("/nowhere", &topology, &err), -ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "/nowhere/devices/system/cpu/online"));
}

static void a_choice_that_does_not_fit_the_machine_is_refused(void **state)
{
    static const struct {
        const char *cores;
        unsigned sockets, cores_per_socket, threads;
    } wrong[] = {
        { "0", 1, 64, 1 }, { "0", 2, 1, 1 }, { "0", 1, 2, 2 },    { "0", 1, 1, 2 },
        { "2", 1, 2, 1 },  { "", 1, 2, 1 },  { "zero", 1, 2, 1 }, { "0-", 1, 2, 1 },
    };
    struct topology *topology;

    sandbox_two_cores(&box);
    topology = read_machine();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct topology_choice choice = { str_of(wrong[i].cores), wrong[i].sockets,
                                          wrong[i].cores_per_socket, wrong[i].threads };
        struct bitmap cpus, cores;

        assert_true(topology_cpus(topology, &choice, &cpus, &cores, NULL) < 0);
    }
    topology_free(topology);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_small_machine_is_read),
        TEST(siblings_are_pinned_together),
        TEST(caches_come_before_cores),
        TEST(numa_nodes_inside_a_cache_are_counted_one_after_the_other),
        TEST(efficient_cores_do_not_count),
        TEST(a_machine_with_a_cpu_offline_is_refused),
        TEST(a_core_on_two_sockets_counts_on_each),
        TEST(a_missing_sysfs_is_told),
        TEST(a_choice_that_does_not_fit_the_machine_is_refused),
    };

    return cmocka_run_group_tests_name("topology", tests, NULL, NULL);
}
