/* fuzz_dra_files.c - files that `slinc dra` and its hook read: the checkpoint, the record of a
 * pinned container, /proc/PID/cgroup with mountinfo, and the CPUs in sysfs. The first byte says
 * which; several files are separated by lines of "--".
 *
 * Holds: each is refused in words or read; a control group is below its mount; cores of a machine
 * are whole; what was read and is written is read again. */
#include "dra/cpuset.h"
#include "dra/files.h"
#include "dra/pin_record.h"
#include "dra/prepared.h"
#include "dra/topology.h"

#include "../unit/dra/sandbox.h"

#include <fcntl.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static struct sandbox box;

/* In the order of the parts of an input: a machine of four CPUs. */
static const char *const sys_files[] = {
    "sys/devices/system/cpu/online",
    "sys/devices/system/node/online",
    "sys/devices/system/node/node0/cpulist",
    "sys/devices/system/node/node1/cpulist",
    "sys/devices/system/cpu/cpu0/topology/package_cpus_list",
    "sys/devices/system/cpu/cpu0/topology/core_cpus_list",
    "sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list",
    "sys/devices/system/cpu/cpu1/topology/package_cpus_list",
    "sys/devices/system/cpu/cpu1/topology/core_cpus_list",
    "sys/devices/system/cpu/cpu1/cache/index0/shared_cpu_list",
    "sys/devices/system/cpu/cpu2/topology/package_cpus_list",
    "sys/devices/system/cpu/cpu2/topology/core_cpus_list",
    "sys/devices/system/cpu/cpu2/cache/index0/shared_cpu_list",
    "sys/devices/system/cpu/cpu3/topology/package_cpus_list",
    "sys/devices/system/cpu/cpu3/topology/core_cpus_list",
    "sys/devices/system/cpu/cpu3/cache/index0/shared_cpu_list",
};

static void end(void)
{
    sandbox_done(&box);
}

static void begin(void)
{
    (void)snprintf(box.root, sizeof(box.root), "/dev/shm/dra-XXXXXX"); /* a disk is too slow */
    must(mkdtemp(box.root) != NULL);
    atexit(end);
    for (size_t i = 0; i < sizeof(sys_files) / sizeof(sys_files[0]); i++)
        sandbox_write(&box, sys_files[i], "");
    for (unsigned cpu = 0; cpu < 4; cpu++) {
        char name[80];

        (void)snprintf(name, sizeof(name), "sys/devices/system/cpu/cpu%u/cache/index0/level", cpu);
        sandbox_write(&box, name, "3");
    }
    sandbox_write(&box, "proc/7/cgroup", "");
    sandbox_write(&box, "proc/self/mountinfo", "");
    sandbox_write(&box, "records/c", "");
}

static void put(const char *name, struct str text)
{
    int file = open(sandbox_path(&box, name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

    must(file >= 0 && write(file, text.at, text.len) == (ssize_t)text.len);
    (void)close(file);
}

static struct str next_part(struct str *rest)
{
    static const char between[] = "\n--\n";
    struct str all = *rest;
    const char *at = memmem(all.at, all.len, between, strlen(between));

    if (!at)
        return *rest = STR(""), all;
    *rest = str_sub(all, (size_t)(at - all.at) + strlen(between), all.len);
    return str_sub(all, 0, (size_t)(at - all.at));
}

static void check_checkpoint(struct str text)
{
    struct prepared *prepared = NULL;
    struct err err = { 0 };
    size_t count;

    put("checkpoint", text);
    if (prepared_open(sandbox_path(&box, "checkpoint"), &prepared, &err) < 0) {
        must(err.text[0] != '\0');
        return;
    }
    count = prepared_count(prepared);
    must(count <= PREPARED_MAX_CLAIMS);
    if (count > 0) {
        const struct prepared_claim *claim = prepared_at(prepared, 0);

        must(prepared_get(prepared, str_of(claim->uid)) == claim);
        must(prepared_remove(prepared, str_of(claim->uid), NULL) == 0);
        prepared_free(prepared);
        must(prepared_open(sandbox_path(&box, "checkpoint"), &prepared, NULL) == 0);
        must(prepared_count(prepared) == count - 1);
    }
    prepared_free(prepared);
}

static void check_record(struct str text)
{
    auto_pin_record struct pin_record record;
    auto_pin_record struct pin_record again;
    struct err err = { 0 };

    pin_record_init(&record);
    pin_record_init(&again);
    put("records/c", text);
    if (pin_record_read(sandbox_path(&box, "records"), "c", &record, &err) < 0) {
        must(err.text[0] != '\0');
        return;
    }
    must(record.cgroup.len > 0 && bitmap_count(&record.cpus) > 0);
    if (memchr(text.at, '\0', text.len))
        return; /* no path has one, and what we write ends there */
    must(pin_record_write(sandbox_path(&box, "records"), "c", &record, NULL) == 0);
    must(pin_record_read(sandbox_path(&box, "records"), "c", &again, NULL) == 0);
    must(str_eq(buf_str(&again.cgroup), buf_str(&record.cgroup)));
    must(bitmap_equal(&again.cpus, &record.cpus));
}

/* The group is below a mount point of the file: nothing but '/' follows the point. */
static void check_group(struct str rest)
{
    auto_buf struct buf folder = { .max = FILES_MAX_PATH };
    struct str groups = next_part(&rest), mounts = rest, line, word;
    bool is_below = false;
    struct err err = { 0 };

    put("proc/7/cgroup", groups);
    put("proc/self/mountinfo", mounts);
    if (cpuset_find(sandbox_path(&box, "proc"), 7, &folder, &err) < 0) {
        must(err.text[0] != '\0');
        return;
    }
    while (str_next(&mounts, '\n', &line))
        for (int i = 0; str_next(&line, ' ', &word); i++)
            if (i == 4 && str_starts(buf_str(&folder), word))
                is_below = is_below || folder.len == word.len || buf_text(&folder)[word.len] == '/';
    must(is_below);
}

static void check_machine(struct str rest)
{
    struct topology_numa numas[TOPOLOGY_MAX_NUMA];
    struct topology *topology = NULL;
    unsigned counted = 0, count;
    struct err err = { 0 };

    for (size_t i = 0; i < sizeof(sys_files) / sizeof(sys_files[0]); i++)
        put(sys_files[i], next_part(&rest));
    if (topology_read(sandbox_path(&box, "sys"), &topology, &err) < 0) {
        must(err.text[0] != '\0');
        return;
    }
    must(topology->sockets * topology->cores_per_socket == topology->core_count);
    must(topology->threads_per_core > 0 && topology->core_count > 0);
    count = topology_numas(topology, numas);
    for (unsigned i = 0; i < count; i++) {
        must(numas[i].first_core == counted);
        counted += numas[i].core_count;
    }
    must(counted == topology->core_count);
    topology_free(topology);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const checks[])(struct str) = { check_checkpoint, check_record, check_group,
                                                  check_machine };

    if (!box.root[0])
        begin();
    if (size > 0)
        checks[data[0] % 4]((struct str){ (const char *)data + 1, size - 1 });
    return 0;
}
