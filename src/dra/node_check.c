/* node_check.c - one row per thing that pinning needs. */
#include "dra/node_check.h"

#include "codec/json.h"
#include "dra/files.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MAX_FILE = 1 << 20 };

static void set_row(struct node_check_row *row, const char *name, bool is_well, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));

static void set_row(struct node_check_row *row, const char *name, bool is_well, const char *format,
                    ...)
{
    va_list args;

    row->name = name;
    row->is_well = is_well;
    va_start(args, format);
    (void)vsnprintf(row->text, sizeof(row->text), format, args);
    va_end(args);
}

static void check_topology(const struct node_paths *paths, struct node_check *check,
                           struct node_check_row *row)
{
    struct topology_numa numas[TOPOLOGY_MAX_NUMA];
    struct err err = { .class = 0 };

    if (topology_read(paths->sys, &check->topology, &err) < 0)
        set_row(row, "topology", false, "%s", err.text);
    else
        set_row(row, "topology", true, "%u sockets x %u cores x %u threads, %u devices",
                check->topology->sockets, check->topology->cores_per_socket,
                check->topology->threads_per_core, topology_numas(check->topology, numas));
}

static void check_cgroups(const struct node_paths *paths, struct node_check_row *row)
{
    auto_buf struct buf path, text;
    struct str rest, word;

    buf_init(&path, FILES_MAX_PATH);
    buf_init(&text, MAX_FILE);
    if (file_exists(path_join(&path, paths->sys, "fs/cgroup/cpuset/cpuset.cpus"))) {
        set_row(row, "cgroup", true, "version 1, with cpuset");
        return;
    }
    if (file_read(path_join(&path, paths->sys, "fs/cgroup/cgroup.controllers"), &text, NULL) < 0) {
        set_row(row, "cgroup", false, "no control groups at %s/fs/cgroup", paths->sys);
        return;
    }
    rest = str_trim(buf_str(&text));
    while (str_next(&rest, ' ', &word)) {
        if (str_is(word, "cpuset")) {
            set_row(row, "cgroup", true, "version 2, with cpuset");
            return;
        }
    }
    set_row(row, "cgroup", false, "version 2 without the cpuset controller");
}

/* A static CPU manager sets cpusets itself, every ten seconds. */
static void check_cpu_manager(const struct node_paths *paths, struct node_check_row *row)
{
    auto_json_doc struct json_doc *doc = NULL;
    auto_buf struct buf path, text;
    struct err err = { .class = 0 };
    struct str policy;
    int result;

    buf_init(&path, FILES_MAX_PATH);
    buf_init(&text, MAX_FILE);
    result = file_read(path_join(&path, paths->kubelet_root, "cpu_manager_state"), &text, &err);
    if (result == -ERR_NOT_FOUND) {
        set_row(row, "cpu manager", true, "no state of a CPU manager");
        return;
    }
    if (result < 0 || json_parse(buf_str(&text), MAX_FILE, &doc, &err) < 0) {
        set_row(row, "cpu manager", false, "%s: %s", buf_text(&path), err.text);
        return;
    }
    policy = json_str(json_get(json_root(doc), "policyName"));
    if (str_is(policy, "none"))
        set_row(row, "cpu manager", true, "policy none");
    else
        set_row(row, "cpu manager", false,
                "the kubelet's CPU manager has the policy '" STR_FMT
                "' and would undo pins: set cpuManagerPolicy: none and remove %s",
                STR_ARG(policy), buf_text(&path));
}

static void check_kubelet(const struct node_paths *paths, struct node_check_row *row)
{
    auto_buf struct buf path;

    buf_init(&path, FILES_MAX_PATH);
    if (access(path_join(&path, paths->kubelet_root, "plugins_registry"), W_OK) == 0)
        set_row(row, "kubelet", true, "plugins register in %s", buf_text(&path));
    else
        set_row(row, "kubelet", false, "cannot write to %s: %s", buf_text(&path), strerror(errno));
}

static void check_cdi(const struct node_paths *paths, struct node_check_row *row)
{
    struct err err = { .class = 0 };

    if (folder_make(paths->cdi_folder, 0755, &err) < 0)
        set_row(row, "cdi", false, "%s", err.text);
    else if (access(paths->cdi_folder, W_OK) < 0)
        set_row(row, "cdi", false, "cannot write to %s: %s", paths->cdi_folder, strerror(errno));
    else
        set_row(row, "cdi", true, "device files go to %s", paths->cdi_folder);
}

/* Runs the hook once: a file system that forbids programs (noexec) shows here. */
static void check_hook(const struct node_paths *paths, struct node_check_row *row)
{
    char *const argv[] = { (char *)(uintptr_t)"slinc-cpuset-hook", (char *)(uintptr_t)"--version",
                           NULL };
    posix_spawn_file_actions_t actions;
    int failed, status = 0;
    pid_t pid;

    if (!paths->hook) {
        set_row(row, "hook", false, "the hook is not installed");
        return;
    }
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    failed = posix_spawn(&pid, paths->hook, &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    while (!failed && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (failed)
        set_row(row, "hook", false, "cannot run %s: %s", paths->hook, strerror(failed));
    else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        set_row(row, "hook", false, "%s ends with status %d", paths->hook, status);
    else
        set_row(row, "hook", true, "%s runs", paths->hook);
}

void node_check_run(const struct node_paths *paths, struct node_check *ret_check)
{
    *ret_check = (struct node_check){ .topology = NULL };
    check_topology(paths, ret_check, &ret_check->rows[0]);
    check_cgroups(paths, &ret_check->rows[1]);
    check_cpu_manager(paths, &ret_check->rows[2]);
    check_kubelet(paths, &ret_check->rows[3]);
    check_cdi(paths, &ret_check->rows[4]);
    check_hook(paths, &ret_check->rows[5]);
}

const struct node_check_row *node_check_problem(const struct node_check *check)
{
    for (size_t i = 0; i < NODE_CHECK_ROWS; i++)
        if (!check->rows[i].is_well)
            return &check->rows[i];
    return NULL;
}

void node_check_write(const struct node_check *check, struct buf *out)
{
    for (size_t i = 0; i < NODE_CHECK_ROWS; i++)
        buf_printf(out, "%-7s %-12s %s\n", check->rows[i].is_well ? "ok" : "PROBLEM",
                   check->rows[i].name, check->rows[i].text);
}
