/* cgroup.c - reads and arranges the container's control group. */
#include "cgroup.h"

#include "base/str.h"
#include "codec/bitmap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX_BYTES = 64 << 10, PASSES = 3 };

/* ---- files ---- */

static bool read_file(struct buf *out, const char *folder, const char *name)
{
    char path[CGROUP_PATH_MAX + 64];
    FILE *file;
    int c;

    buf_clear(out);
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "re");
    if (!file)
        return false;
    while ((c = getc(file)) != EOF)
        buf_add_char(out, (char)c);
    fclose(file);
    return buf_check(out, path, NULL) == 0;
}

static int write_word(const char *folder, const char *name, const char *word)
{
    char path[CGROUP_PATH_MAX + 64];
    int fd, number = 0;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    if (write(fd, word, strlen(word)) < 0)
        number = errno;
    close(fd);
    return number;
}

/* ---- version 2: a child for slurmd ---- */

static int make_child(const char *folder, const char *name, char ret_path[CGROUP_PATH_MAX])
{
    (void)snprintf(ret_path, CGROUP_PATH_MAX, "%s/%s", folder, name);
    return mkdir(ret_path, 0755) < 0 && errno != EEXIST ? errno : 0;
}

/* Every process of the group, which is us and whoever started with us. */
static int move_processes(const char *folder, const char *child)
{
    auto_buf struct buf text;
    int number = 0;

    buf_init(&text, FILE_MAX_BYTES);
    for (int pass = 0; pass < PASSES && read_file(&text, folder, "cgroup.procs"); pass++) {
        struct str rest = buf_str(&text), line;

        if (text.len == 0)
            return 0;
        while (str_next(&rest, '\n', &line)) {
            char word[32];
            int failed;

            if (line.len == 0 || line.len >= sizeof(word))
                continue;
            (void)snprintf(word, sizeof(word), STR_FMT, STR_ARG(line));
            failed = write_word(child, "cgroup.procs", word);
            if (failed && failed != ESRCH)
                number = failed;
        }
    }
    return number;
}

static void hand_down_controllers(const char *folder)
{
    auto_buf struct buf text;
    struct str rest, name;

    buf_init(&text, FILE_MAX_BYTES);
    if (!read_file(&text, folder, "cgroup.controllers"))
        return;
    rest = str_trim(buf_str(&text));
    while (str_next(&rest, ' ', &name)) {
        char word[64];
        int failed;

        (void)snprintf(word, sizeof(word), "+" STR_FMT, STR_ARG(name));
        failed = write_word(folder, "cgroup.subtree_control", word);
        if (failed)
            fprintf(stderr, "slinc-init: the controller " STR_FMT " stays here: %s\n",
                    STR_ARG(name), strerror(failed));
    }
}

int cgroup_arrange(const char *sys, char ret_child[CGROUP_PATH_MAX], struct err *err)
{
    char folder[CGROUP_PATH_MAX - 32], ours[CGROUP_PATH_MAX], file[CGROUP_PATH_MAX];
    bool is_version_2;
    int failed;

    ret_child[0] = 0;
    if (strlen(sys) > sizeof(folder) / 2)
        return err_set(err, ERR_TOO_BIG, "--sys %s is too long", sys);
    (void)snprintf(folder, sizeof(folder), "%s/fs/cgroup", sys);
    (void)snprintf(file, sizeof(file), "%s/cgroup.controllers", folder);
    is_version_2 = access(file, R_OK) == 0;
    (void)snprintf(file, sizeof(file), "%s/cgroup.type", folder);
    if (!is_version_2 || access(file, R_OK) < 0)
        return 0;
    failed = make_child(folder, "init", ours);
    if (!failed)
        failed = make_child(folder, "slurmd", ret_child);
    if (!failed)
        failed = move_processes(folder, ours);
    if (failed) {
        fprintf(stderr, "slinc-init: slurmd stays in the container's control group: %s\n",
                strerror(failed));
        ret_child[0] = 0;
        return 0;
    }
    hand_down_controllers(folder);
    return 0;
}

/* ---- the CPUs of the pod ---- */

struct cpu { /* one thread of the machine */
    uint64_t package, core, number;
};

static int compare_cpus(const void *left, const void *right)
{
    const struct cpu *a = left, *b = right;

    if (a->package != b->package)
        return a->package < b->package ? -1 : 1;
    if (a->core != b->core)
        return a->core < b->core ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static bool read_set(struct buf *text, const char *folder, const char *name, struct bitmap *ret)
{
    return read_file(text, folder, name) && str_trim(buf_str(text)).len > 0 &&
           bitmap_parse_ranges(str_trim(buf_str(text)), CGROUP_CPUS_MAX, ret, NULL) == 0;
}

/* From version 2, else from version 1. */
static bool read_own_cpus(const char *sys, struct bitmap *ret)
{
    static const char *const names[] = { "fs/cgroup/cpuset.cpus.effective",
                                         "fs/cgroup/cpuset/cpuset.effective_cpus",
                                         "fs/cgroup/cpuset/cpuset.cpus" };
    auto_buf struct buf text;

    buf_init(&text, FILE_MAX_BYTES);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (read_set(&text, sys, names[i], ret))
            return true;
    return false;
}

static bool read_number(struct buf *text, const char *sys, size_t cpu, const char *name,
                        uint64_t *ret)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "devices/system/cpu/cpu%zu/topology/%s", cpu, name);
    return read_file(text, sys, path) &&
           str_to_u64(str_trim(buf_str(text)), 0, UINT32_MAX, ret, NULL) == 0;
}

/* How many CPUs the machine has, in the order in which Slurm numbers them; 0: it does not tell. */
static size_t read_machine(const char *sys, struct cpu ret_cpus[CGROUP_CPUS_MAX])
{
    struct bitmap online;
    auto_buf struct buf text;
    size_t count = 0;

    buf_init(&text, FILE_MAX_BYTES);
    if (!read_set(&text, sys, "devices/system/cpu/online", &online))
        return 0;
    for (size_t cpu = 0; bitmap_next(&online, cpu, &cpu); cpu++) {
        struct cpu *one = &ret_cpus[count++];

        one->number = cpu;
        if (!read_number(&text, sys, cpu, "physical_package_id", &one->package) ||
            !read_number(&text, sys, cpu, "core_id", &one->core)) {
            count = 0;
            break;
        }
    }
    bitmap_done(&online);
    qsort(ret_cpus, count, sizeof(*ret_cpus), compare_cpus);
    return count;
}

int cgroup_kept_cpus(const char *sys, uint64_t cpus, struct buf *ret_ranges, struct err *err)
{
    static struct cpu machine[CGROUP_CPUS_MAX];
    struct bitmap own, kept;
    size_t count;

    if (!read_own_cpus(sys, &own))
        return 0;
    count = read_machine(sys, machine);
    if (bitmap_count(&own) == cpus && cpus < count) {
        bitmap_init(&kept, count);
        for (size_t i = 0; i < count; i++)
            if (!bitmap_test(&own, machine[i].number))
                bitmap_set(&kept, i);
        bitmap_print_ranges(&kept, ret_ranges);
        bitmap_done(&kept);
    }
    bitmap_done(&own);
    return buf_check(ret_ranges, "the CPUs of the pod", err);
}
