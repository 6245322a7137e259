/* sandbox.h - a folder of its own for each test, with files written as text. */
#ifndef SLINC_TESTS_DRA_SANDBOX_H
#define SLINC_TESTS_DRA_SANDBOX_H

#include "dra/files.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct sandbox {
    char root[64];
    char text[65536]; /* of the last file read */
};

static inline void sandbox_init(struct sandbox *box)
{
    snprintf(box->root, sizeof(box->root), "/tmp/dra-XXXXXX");
    if (!mkdtemp(box->root))
        abort();
}

static inline int sandbox_remove_one(const char *path, const struct stat *info, int type,
                                     struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

static inline void sandbox_done(struct sandbox *box)
{
    nftw(box->root, sandbox_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A path in the folder; the last 8 stay valid. */
static inline const char *sandbox_path(const struct sandbox *box, const char *name)
{
    static char paths[8][512];
    static unsigned at;

    at = (at + 1) % 8;
    snprintf(paths[at], sizeof(paths[at]), "%s/%s", box->root, name);
    return paths[at];
}

static inline void sandbox_write(const struct sandbox *box, const char *name, const char *text)
{
    const char *path = sandbox_path(box, name);
    char folder[512];
    FILE *file;

    snprintf(folder, sizeof(folder), "%s", path);
    *strrchr(folder, '/') = '\0';
    if (folder_make(folder, 0755, NULL) < 0 || !(file = fopen(path, "w"))) {
        fprintf(stderr, "sandbox: cannot write %s\n", path);
        abort();
    }
    fputs(text, file);
    fclose(file);
}

static inline const char *sandbox_read(struct sandbox *box, const char *name) /* "" = none */
{
    FILE *file = fopen(sandbox_path(box, name), "r");
    size_t length = file ? fread(box->text, 1, sizeof(box->text) - 1, file) : 0;

    if (file)
        fclose(file);
    box->text[length] = '\0';
    return box->text;
}

/* ---- a machine in sysfs: one row per CPU ---- */

static inline void sandbox_cpu(const struct sandbox *box, unsigned number, const char *core,
                               const char *package, const char *l3)
{
    char name[128];

    snprintf(name, sizeof(name), "sys/devices/system/cpu/cpu%u/topology/core_cpus_list", number);
    sandbox_write(box, name, core);
    snprintf(name, sizeof(name), "sys/devices/system/cpu/cpu%u/topology/package_cpus_list", number);
    sandbox_write(box, name, package);
    snprintf(name, sizeof(name), "sys/devices/system/cpu/cpu%u/cache/index0/level", number);
    sandbox_write(box, name, "1\n");
    if (!l3)
        return;
    snprintf(name, sizeof(name), "sys/devices/system/cpu/cpu%u/cache/index1/level", number);
    sandbox_write(box, name, "3\n");
    snprintf(name, sizeof(name), "sys/devices/system/cpu/cpu%u/cache/index1/shared_cpu_list",
             number);
    sandbox_write(box, name, l3);
}

/* The machine of these tests unless they make another: 1 socket, 2 cores, 1 thread, 1 NUMA node. */
static inline void sandbox_two_cores(const struct sandbox *box)
{
    sandbox_write(box, "sys/devices/system/cpu/online", "0-1\n");
    sandbox_write(box, "sys/devices/system/node/online", "0\n");
    sandbox_write(box, "sys/devices/system/node/node0/cpulist", "0-1\n");
    sandbox_cpu(box, 0, "0\n", "0-1\n", "0-1\n");
    sandbox_cpu(box, 1, "1\n", "0-1\n", "0-1\n");
}

#endif
