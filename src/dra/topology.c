/* topology.c - reads sockets, NUMA nodes, caches and cores from sysfs, and sorts them. */
#include "dra/topology.h"

#include "base/mem.h"
#include "dra/cpuset.h"
#include "dra/files.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_FILE = 64 * 1024, MAX_CACHES = 10, LEVEL_3 = 3 };

/* One CPU as sysfs shows it. Groups of CPUs are named by the lowest CPU in them. */
struct cpu {
    unsigned number, core, socket, l3, numa; /* lowest CPUs */
    unsigned numa_number;
};

struct reader {
    const char *sys;
    struct bitmap online;
    struct cpu *cpus;
    unsigned count;
    /* Of L3 caches and NUMA nodes the larger ones hold the smaller ones. */
    size_t largest_l3, largest_numa;
};

/* ---- reading sysfs ---- */

static int read_text(const struct reader *reader, const char *path, struct buf *out,
                     struct err *err)
{
    auto_buf struct buf full;

    buf_init(&full, FILES_MAX_PATH);
    return file_read(path_join(&full, reader->sys, "devices/system", path), out, err);
}

static int read_list(const struct reader *reader, const char *path, struct bitmap *ret_list,
                     struct err *err)
{
    auto_buf struct buf text;
    int result;

    buf_init(&text, MAX_FILE);
    if ((result = read_text(reader, path, &text, err)) < 0)
        return result;
    result = bitmap_parse_ranges(str_trim(buf_str(&text)), CPUSET_MAX_CPUS, ret_list, err);
    return result < 0 ? err_wrap(err, "%s", path) : 0;
}

/* The lowest CPU of a list that stands in cpu<number>/<name>. */
static int read_lowest(const struct reader *reader, unsigned number, const char *name,
                       unsigned *ret_lowest, size_t *ret_size, struct err *err)
{
    auto_bitmap struct bitmap list = { 0 };
    size_t lowest;
    char path[128];
    int result;

    (void)snprintf(path, sizeof(path), "cpu/cpu%u/%s", number, name);
    if ((result = read_list(reader, path, &list, err)) < 0)
        return result;
    if (!bitmap_next(&list, 0, &lowest))
        return err_set(err, ERR_INVALID, "%s is empty", path);
    *ret_lowest = (unsigned)lowest;
    *ret_size = bitmap_count(&list);
    return 0;
}

static int read_l3(const struct reader *reader, struct cpu *cpu, size_t *ret_size, struct err *err)
{
    auto_buf struct buf text;
    uint64_t level;
    char path[128];

    buf_init(&text, MAX_FILE);
    for (unsigned i = 0; i < MAX_CACHES; i++) {
        (void)snprintf(path, sizeof(path), "cpu/cpu%u/cache/index%u/level", cpu->number, i);
        if (read_text(reader, path, &text, NULL) < 0)
            break;
        if (str_to_u64(str_trim(buf_str(&text)), 1, MAX_CACHES, &level, NULL) < 0 ||
            level != LEVEL_3)
            continue;
        (void)snprintf(path, sizeof(path), "cache/index%u/shared_cpu_list", i);
        return read_lowest(reader, cpu->number, path, &cpu->l3, ret_size, err);
    }
    cpu->l3 = cpu->socket; /* without an L3 cache a socket counts as one */
    *ret_size = 0;
    return 0;
}

static int read_cpu(struct reader *reader, struct cpu *cpu, struct err *err)
{
    size_t size = 0;
    int result;

    if ((result = read_lowest(reader, cpu->number, "topology/package_cpus_list", &cpu->socket,
                              &size, err)) < 0 ||
        (result = read_lowest(reader, cpu->number, "topology/core_cpus_list", &cpu->core, &size,
                              err)) < 0 ||
        (result = read_l3(reader, cpu, &size, err)) < 0)
        return result;
    if (size > reader->largest_l3)
        reader->largest_l3 = size;
    return 0;
}

static int read_cpus(struct reader *reader, struct err *err)
{
    auto_bitmap struct bitmap efficient = { 0 };
    auto_buf struct buf path, text;
    int result;

    buf_init(&path, FILES_MAX_PATH);
    buf_init(&text, MAX_FILE);
    if ((result = read_list(reader, "cpu/online", &reader->online, err)) < 0)
        return result;
    if (file_read(path_join(&path, reader->sys, "devices/cpu_atom/cpus"), &text, NULL) == 0 &&
        bitmap_parse_ranges(str_trim(buf_str(&text)), CPUSET_MAX_CPUS, &efficient, err) < 0)
        return err_wrap(err, "devices/cpu_atom/cpus");
    bitmap_andnot(&reader->online, &efficient);
    reader->cpus = mem_alloc_array(bitmap_count(&reader->online) + 1, sizeof(*reader->cpus));
    for (size_t bit = 0; bitmap_next(&reader->online, bit, &bit); bit++) {
        struct cpu *cpu = &reader->cpus[reader->count++];

        cpu->number = (unsigned)bit;
        if ((result = read_cpu(reader, cpu, err)) < 0)
            return result;
    }
    return reader->count > 0 ? 0 : err_set(err, ERR_INVALID, "no CPU is online");
}

/* A kernel without NUMA has no such files: all CPUs are in node 0. */
static int read_numas(struct reader *reader, struct err *err)
{
    auto_bitmap struct bitmap nodes = { 0 };
    int result = read_list(reader, "node/online", &nodes, err);

    if (result == -ERR_NOT_FOUND)
        return 0;
    if (result < 0)
        return result;
    for (size_t node = 0; bitmap_next(&nodes, node, &node); node++) {
        auto_bitmap struct bitmap members = { 0 };
        size_t lowest;
        char path[64];

        (void)snprintf(path, sizeof(path), "node/node%zu/cpulist", node);
        if ((result = read_list(reader, path, &members, err)) < 0)
            return result;
        if (!bitmap_next(&members, 0, &lowest))
            continue; /* memory only */
        if (bitmap_count(&members) > reader->largest_numa)
            reader->largest_numa = bitmap_count(&members);
        for (unsigned i = 0; i < reader->count; i++) {
            if (!bitmap_test(&members, reader->cpus[i].number))
                continue;
            reader->cpus[i].numa = (unsigned)lowest;
            reader->cpus[i].numa_number = (unsigned)node;
        }
    }
    return 0;
}

/* ---- Slurm's order ---- */

static int by_number(unsigned a, unsigned b)
{
    return (a > b) - (a < b);
}

static int compare(const struct cpu *a, const struct cpu *b, bool numa_holds_l3)
{
    int l3 = by_number(a->l3, b->l3), numa = by_number(a->numa, b->numa);

    if (a->socket != b->socket)
        return by_number(a->socket, b->socket);
    if (numa_holds_l3 ? numa : l3)
        return numa_holds_l3 ? numa : l3;
    if (numa_holds_l3 ? l3 : numa)
        return numa_holds_l3 ? l3 : numa;
    if (a->core != b->core)
        return by_number(a->core, b->core);
    return by_number(a->number, b->number);
}

static int compare_numa_first(const void *a, const void *b)
{
    return compare(a, b, true);
}

static int compare_l3_first(const void *a, const void *b)
{
    return compare(a, b, false);
}

static int make_cores(const struct reader *reader, struct topology *topology, struct err *err)
{
    const struct cpu *last = NULL;

    for (unsigned i = 0; i < reader->count; i++) {
        const struct cpu *cpu = &reader->cpus[i];
        struct topology_core *core;

        bool is_next_socket = last && cpu->socket != last->socket;

        topology->sockets += is_next_socket;
        if (!last || is_next_socket || cpu->core != last->core) {
            if (topology->core_count == TOPOLOGY_MAX_CORES)
                return err_set(err, ERR_TOO_BIG, "more than %d cores", TOPOLOGY_MAX_CORES);
            topology->cores[topology->core_count++] = (struct topology_core){
                .socket = topology->sockets, .numa = cpu->numa_number, .l3 = cpu->l3
            };
        }
        core = &topology->cores[topology->core_count - 1];
        if (core->thread_count == TOPOLOGY_MAX_THREADS)
            return err_set(err, ERR_TOO_BIG, "more than %d threads of a core",
                           TOPOLOGY_MAX_THREADS);
        core->cpus[core->thread_count++] = cpu->number;
        last = cpu;
    }
    topology->sockets++; /* was the number of the last one */
    return 0;
}

static int check_even(struct topology *topology, struct err *err)
{
    topology->threads_per_core = topology->cores[0].thread_count;
    topology->cores_per_socket = topology->core_count / topology->sockets;
    for (unsigned i = 0; i < topology->core_count; i++) {
        if (topology->cores[i].thread_count != topology->threads_per_core)
            return err_set(err, ERR_INVALID,
                           "core %u has %u CPUs and core 0 has %u: is one offline?", i,
                           topology->cores[i].thread_count, topology->threads_per_core);
        if (topology->cores[i].socket != i / topology->cores_per_socket)
            return err_set(err, ERR_INVALID,
                           "%u cores are not evenly spread over %u sockets: is one offline?",
                           topology->core_count, topology->sockets);
    }
    return 0;
}

int topology_read(const char *sys, struct topology **ret_topology, struct err *err)
{
    struct reader reader = { .sys = sys };
    struct topology *topology = mem_alloc(sizeof(*topology));
    int result;

    if ((result = read_cpus(&reader, err)) == 0 && (result = read_numas(&reader, err)) == 0) {
        qsort(reader.cpus, reader.count, sizeof(*reader.cpus),
              reader.largest_numa >= reader.largest_l3 ? compare_numa_first : compare_l3_first);
        topology->cores = mem_alloc_array(reader.count, sizeof(*topology->cores));
        if ((result = make_cores(&reader, topology, err)) == 0)
            result = check_even(topology, err);
    }
    bitmap_done(&reader.online);
    mem_free(reader.cpus);
    if (result < 0) {
        topology_free(topology);
        return err_wrap(err, "topology of %s", sys);
    }
    *ret_topology = topology;
    return 0;
}

void topology_free(struct topology *topology)
{
    if (!topology)
        return;
    mem_free(topology->cores);
    mem_free(topology);
}

/* ---- what others ask ---- */

unsigned topology_numas(const struct topology *topology,
                        struct topology_numa ret_numas[TOPOLOGY_MAX_NUMA])
{
    unsigned count = 0;

    for (unsigned i = 0; i < topology->core_count; i++) {
        const struct topology_core *core = &topology->cores[i];
        const struct topology_core *before = i > 0 ? &topology->cores[i - 1] : NULL;

        /* A node that spans sockets becomes one device per socket, so that cores stay a range. */
        if (!before || core->numa != before->numa || core->socket != before->socket) {
            if (count == TOPOLOGY_MAX_NUMA)
                break;
            ret_numas[count++] = (struct topology_numa){ core->numa, core->socket, i, 0, 1 };
        } else if (core->l3 != before->l3) {
            ret_numas[count - 1].l3_count++;
        }
        ret_numas[count - 1].core_count++;
    }
    return count;
}

int topology_cpus(const struct topology *topology, const struct topology_choice *choice,
                  struct bitmap *ret_cpus, struct bitmap *ret_cores, struct err *err)
{
    auto_bitmap struct bitmap cores = { 0 };
    int result;

    /* A node that Slurm knows as one socket counts its cores in the same order; it may leave the
     * last ones to the system. */
    bool fits = choice->sockets == 1 ? choice->cores_per_socket <= topology->core_count
                                     : choice->sockets == topology->sockets &&
                                           choice->cores_per_socket == topology->cores_per_socket;

    if (!fits || choice->threads_per_core != topology->threads_per_core)
        return err_set(err, ERR_INVALID,
                       "Slurm counts %u sockets x %u cores x %u threads, this machine has "
                       "%u x %u x %u",
                       choice->sockets, choice->cores_per_socket, choice->threads_per_core,
                       topology->sockets, topology->cores_per_socket, topology->threads_per_core);
    result = bitmap_parse_ranges(choice->cores, (size_t)choice->sockets * choice->cores_per_socket,
                                 &cores, err);
    if (result < 0)
        return err_wrap(err, "cores '" STR_FMT "'", STR_ARG(choice->cores));
    if (bitmap_count(&cores) == 0)
        return err_set(err, ERR_INVALID, "no core is chosen");
    bitmap_init(ret_cpus, CPUSET_MAX_CPUS);
    for (size_t i = 0; bitmap_next(&cores, i, &i); i++)
        for (unsigned t = 0; t < topology->cores[i].thread_count; t++)
            bitmap_set(ret_cpus, topology->cores[i].cpus[t]);
    bitmap_copy(ret_cores, &cores);
    return 0;
}
