/* cpuset.c - finds and sets the cpuset of a control group.
 *
 * Version 1 has one hierarchy per controller, mounted with the option "cpuset"; version 2 has one
 * for all. Where both are mounted, the controller is in version 1. */
#include "dra/cpuset.h"

#include "dra/files.h"

#include <inttypes.h>

enum { MAX_FILE = 1 << 18 };

/* ---- finding ---- */

static bool has_word(struct str list, const char *word)
{
    struct str part;

    while (str_next(&list, ',', &part))
        if (str_is(part, word))
            return true;
    return false;
}

/* Lines are "ID:CONTROLLERS:PATH"; version 2 is "0::PATH". */
static int find_group(struct str text, struct str *ret_path, bool *ret_is_v2, struct err *err)
{
    struct str line, v2 = { NULL, 0 };

    while (str_next(&text, '\n', &line)) {
        struct str id, rest, controllers, path;

        if (!str_cut(line, ':', &id, &rest) || !str_cut(rest, ':', &controllers, &path))
            continue;
        if (has_word(controllers, "cpuset")) {
            *ret_path = path;
            *ret_is_v2 = false;
            return 0;
        }
        if (controllers.len == 0)
            v2 = path;
    }
    if (!v2.at)
        return err_set(err, ERR_NOT_FOUND, "the process is in no control group with cpusets");
    *ret_path = v2;
    *ret_is_v2 = true;
    return 0;
}

/* "36 31 0:33 ROOT MOUNTPOINT rw,relatime - TYPE SOURCE OPTIONS". */
static bool read_mount(struct str line, bool is_v2, struct str *ret_root, struct str *ret_point)
{
    struct str word, type = STR(""), options = STR("");
    int behind = -1; /* words since the "-" */

    for (int i = 0; str_next(&line, ' ', &word); i++) {
        if (behind >= 0)
            behind++;
        if (i == 3)
            *ret_root = word;
        else if (i == 4)
            *ret_point = word;
        else if (i > 4 && behind < 0 && str_is(word, "-"))
            behind = 0;
        else if (behind == 1)
            type = word;
        else if (behind == 3)
            options = word;
    }
    if (is_v2)
        return str_is(type, "cgroup2");
    return str_is(type, "cgroup") && has_word(options, "cpuset");
}

static int find_mount(struct str text, bool is_v2, struct str *ret_root, struct str *ret_point,
                      struct err *err)
{
    struct str line;

    while (str_next(&text, '\n', &line))
        if (read_mount(line, is_v2, ret_root, ret_point))
            return 0;
    return err_set(err, ERR_NOT_FOUND, "no control groups of version %d with cpusets are mounted",
                   is_v2 ? 2 : 1);
}

/* A mount may show a part of the hierarchy only, which begins at its root: "/pods" does not show
 * "/pods-of-others". */
static bool is_below(struct str group, struct str root, struct str *ret_rest)
{
    struct str rest = str_sub(group, str_is(root, "/") ? 0 : root.len, group.len);

    if (!str_starts(group, root) || (rest.len > 0 && rest.at[0] != '/'))
        return false;
    *ret_rest = rest;
    return true;
}

int cpuset_find(const char *proc, int64_t pid, struct buf *ret_folder, struct err *err)
{
    auto_buf struct buf path, groups, mounts;
    struct str group, root = STR(""), point = STR("");
    bool is_v2;
    int result;

    buf_init(&path, FILES_MAX_PATH);
    buf_init(&groups, MAX_FILE);
    buf_init(&mounts, MAX_FILE);
    buf_printf(&path, "%s/%" PRId64 "/cgroup", proc, pid);
    if ((result = file_read(buf_text(&path), &groups, err)) < 0 ||
        (result = find_group(buf_str(&groups), &group, &is_v2, err)) < 0 ||
        (result = file_read(path_join(&path, proc, "self/mountinfo"), &mounts, err)) < 0 ||
        (result = find_mount(buf_str(&mounts), is_v2, &root, &point, err)) < 0)
        return result;
    if (!is_below(group, root, &group))
        return err_set(err, ERR_NOT_FOUND, "the control group " STR_FMT " is not mounted",
                       STR_ARG(group));
    buf_clear(ret_folder);
    buf_add_str(ret_folder, point);
    buf_add_str(ret_folder, group);
    return buf_check(ret_folder, "the path of the control group", err);
}

/* ---- reading and setting ---- */

static int read_cpus(const char *folder, const char *name, struct bitmap *ret_cpus, struct err *err)
{
    auto_buf struct buf path, text;
    int result;

    buf_init(&path, FILES_MAX_PATH);
    buf_init(&text, MAX_FILE);
    if ((result = file_read(path_join(&path, folder, name), &text, err)) < 0)
        return result;
    result = bitmap_parse_ranges(str_trim(buf_str(&text)), CPUSET_MAX_CPUS, ret_cpus, err);
    return result < 0 ? err_wrap(err, "%s", buf_text(&path)) : 0;
}

int cpuset_get(const char *folder, struct bitmap *ret_cpus, struct err *err)
{
    return read_cpus(folder, "cpuset.cpus", ret_cpus, err);
}

static int read_effective(const char *folder, struct bitmap *ret_cpus, struct err *err)
{
    int result = read_cpus(folder, "cpuset.cpus.effective", ret_cpus, err); /* version 2 */

    if (result == -ERR_NOT_FOUND)
        result = read_cpus(folder, "cpuset.effective_cpus", ret_cpus, err); /* version 1 */
    return result;
}

int cpuset_set(const char *folder, const struct bitmap *cpus, struct err *err)
{
    auto_bitmap struct bitmap effective = { 0 };
    auto_buf struct buf path, text, found;
    int result;

    buf_init(&path, FILES_MAX_PATH);
    buf_init(&text, MAX_FILE);
    buf_init(&found, MAX_FILE);
    bitmap_print_ranges(cpus, &text);
    if ((result = file_write(path_join(&path, folder, "cpuset.cpus"), buf_str(&text), err)) < 0)
        return result;
    if ((result = read_effective(folder, &effective, err)) < 0)
        return result;
    if (bitmap_equal(&effective, cpus))
        return 0;
    bitmap_print_ranges(&effective, &found);
    return err_set(err, ERR_SYSTEM, "%s has the CPUs %s, not %s", folder, buf_text(&found),
                   buf_text(&text));
}
