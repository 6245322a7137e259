/* sweep.c - one look at all pinned containers. */
#include "dra/sweep.h"

#include "base/map.h"
#include "base/mem.h"
#include "dra/cpuset.h"
#include "dra/files.h"
#include "dra/pin_record.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum { MAX_PODS = 4096 };

struct sweep {
    const char *records;
    struct sweep_result *result;
    struct map pods; /* struct bitmap: all pinned CPUs, by the folder of the pod's control group */
    struct map pinned; /* the folders of control groups that have a record */
};

static void free_bitmap(void *map)
{
    bitmap_done(map);
    mem_free(map);
}

static void fail(struct sweep *sweep, const struct err *err)
{
    sweep->result->errors++;
    sweep->result->last_error = *err;
}

/* Sets the cpuset when it is another one. */
static int repair(struct sweep *sweep, const char *cgroup, const struct bitmap *cpus,
                  struct err *err)
{
    auto_bitmap struct bitmap found = { 0 };
    auto_buf struct buf text;
    int result;

    buf_init(&text, FILES_MAX_PATH);
    if ((result = cpuset_get(cgroup, &found, err)) < 0)
        return result;
    if (bitmap_equal(&found, cpus))
        return 0;
    if ((result = cpuset_set(cgroup, cpus, err)) < 0)
        return result;
    bitmap_print_ranges(&found, &text);
    sweep->result->repairs++;
    (void)snprintf(sweep->result->last_repair, sizeof(sweep->result->last_repair),
                   "%s had CPUs '%s'", cgroup, buf_text(&text));
    return 0;
}

static struct str pod_of(struct str cgroup)
{
    size_t end = cgroup.len;

    while (end > 0 && cgroup.at[end - 1] != '/')
        end--;
    return str_sub(cgroup, 0, end > 0 ? end - 1 : 0);
}

static int remember(struct sweep *sweep, const struct pin_record *record, struct err *err)
{
    struct str pod = pod_of(buf_str(&record->cgroup));
    struct bitmap *all = map_get(&sweep->pods, pod);

    if (!all) {
        all = mem_alloc(sizeof(*all));
        bitmap_init(all, CPUSET_MAX_CPUS);
        if (map_put(&sweep->pods, pod, all, err) < 0) {
            free_bitmap(all);
            return -ERR_TOO_BIG;
        }
    }
    bitmap_or(all, &record->cpus);
    return map_put(&sweep->pinned, buf_str(&record->cgroup), sweep, err);
}

/* A container whose control group is gone is gone; its record goes, too. */
static void sweep_record(struct sweep *sweep, const char *container)
{
    auto_pin_record struct pin_record record;
    auto_buf struct buf path;
    struct err err = { .class = 0 };
    int result;

    pin_record_init(&record);
    buf_init(&path, FILES_MAX_PATH);
    if ((result = pin_record_read(sweep->records, container, &record, &err)) == 0) {
        if (!file_exists(buf_text(&record.cgroup)))
            result = file_remove(path_join(&path, sweep->records, container), &err);
        else if ((result = repair(sweep, buf_text(&record.cgroup), &record.cpus, &err)) == 0 &&
                 (result = remember(sweep, &record, &err)) == 0)
            sweep->result->containers++;
    }
    if (result < 0)
        fail(sweep, &err);
}

/* Other containers of a pinned pod. One that ends at this moment is no error. */
static void sweep_pod(struct sweep *sweep, const char *pod, const struct bitmap *cpus)
{
    auto_buf struct buf path;
    DIR *folder = opendir(pod);
    struct dirent *entry;
    struct err err = { .class = 0 };

    buf_init(&path, FILES_MAX_PATH);
    while (folder && (entry = readdir(folder))) {
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        path_join(&path, pod, entry->d_name);
        if (map_has(&sweep->pinned, buf_str(&path)))
            continue;
        if (repair(sweep, buf_text(&path), cpus, &err) < 0 && file_exists(buf_text(&path)) &&
            err.class != ERR_NOT_FOUND)
            fail(sweep, &err);
    }
    if (folder)
        (void)closedir(folder);
}

static int sweep_all(struct sweep *sweep, struct err *err)
{
    DIR *folder = opendir(sweep->records);
    struct dirent *entry;

    if (!folder)
        return err_system(err, errno, "open %s", sweep->records);
    while ((entry = readdir(folder)))
        if (pin_record_is_name(str_of(entry->d_name)) &&
            !str_ends(str_of(entry->d_name), STR(".part")))
            sweep_record(sweep, entry->d_name);
    (void)closedir(folder);
    map_each (item, &sweep->pods) {
        auto_free char *pod = mem_strndup(item->key.at, item->key.len);

        sweep_pod(sweep, pod, item->value);
    }
    return 0;
}

int sweep_records(const char *records, struct sweep_result *ret_result, struct err *err)
{
    struct sweep sweep = { .records = records, .result = ret_result };
    int lock, result;

    *ret_result = (struct sweep_result){ .containers = 0 };
    if ((result = pin_records_lock(records, false, &lock, err)) < 0)
        return result;
    map_init(&sweep.pods, &(struct map_options){ .max = MAX_PODS, .free_value = free_bitmap });
    map_init(&sweep.pinned, &(struct map_options){ .max = MAX_PODS });
    result = sweep_all(&sweep, err);
    map_done(&sweep.pods);
    map_done(&sweep.pinned);
    (void)close(lock);
    return result;
}
