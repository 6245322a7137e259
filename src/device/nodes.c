/* nodes.c - devices of a node from the newest complete generation of each pool.
 *
 * Holds: a pool of which slices are missing, or that names a device twice, tells nothing; the order
 * of devices depends only on their names, in which numbers count as numbers. */
#include "device/nodes.h"

#include "device/names.h"

#include <stdlib.h>

enum { MAX_NODE_SLICES = 1024 };

/* ---- slices ---- */

struct slices {
    const struct kube_slice *at[MAX_NODE_SLICES]; /* of the driver on the node */
    unsigned count;
};

static void find_slices(const struct device_view *view, const char *node, const char *driver,
                        struct slices *slices)
{
    struct kube_index_walk walk =
        kube_cache_by(view->slices, view->indexes.slices_by_node, str_of(node));
    const struct kube_object *object;

    slices->count = 0;
    while (slices->count < MAX_NODE_SLICES && (object = kube_index_next(&walk)))
        if (strcmp(kube_slice_of(object)->driver, driver) == 0)
            slices->at[slices->count++] = kube_slice_of(object);
}

static bool is_newest(const struct slices *slices, const struct kube_slice *slice)
{
    for (unsigned i = 0; i < slices->count; i++)
        if (strcmp(slices->at[i]->pool, slice->pool) == 0 &&
            slices->at[i]->generation > slice->generation)
            return false;
    return true;
}

static bool is_whole(const struct slices *slices, const struct kube_slice *slice)
{
    int64_t count = 0;

    for (unsigned i = 0; i < slices->count; i++)
        count += strcmp(slices->at[i]->pool, slice->pool) == 0 &&
                 slices->at[i]->generation == slice->generation;
    return count == slice->slices;
}

/* ---- order ---- */

/* "gpu-2" before "gpu-10". */
static int compare_devices(const void *left, const void *right)
{
    const struct node_device *a = left, *b = right;
    int order = strverscmp(a->pool, b->pool);

    return order ? order : strverscmp(a->device->name, b->device->name);
}

/* ---- the list ---- */

static bool has_twice(const struct node_device *sorted, unsigned count)
{
    for (unsigned i = 1; i < count; i++)
        if (compare_devices(&sorted[i - 1], &sorted[i]) == 0)
            return true;
    return false;
}

static bool is_selected(const char *wanted, const char *name)
{
    return !wanted[0] || strcmp(wanted, name) == 0;
}

static const char *taint_of(const struct device_view *view, const struct kube_slice *slice,
                            const struct slice_device *device)
{
    const struct kube_object *object;
    struct kube_cache_walk walk;

    if (device->taint[0] || !view->taint_rules)
        return device->taint;
    walk = kube_cache_walk(view->taint_rules);
    while ((object = kube_cache_next(&walk)) != NULL) {
        const struct kube_taint_rule *rule = kube_taint_rule_of(object);

        if (rule->selects && rule->taint[0] && is_selected(rule->driver, slice->driver) &&
            is_selected(rule->pool, slice->pool) && is_selected(rule->device, device->name))
            return rule->taint;
    }
    return "";
}

/* Parts of devices and devices for several pods have no gres. Cores are for several pods, and
 * Slurm keeps them apart. */
static unsigned collect(const struct device_view *view, const struct device_row *row,
                        const char *node, const struct slices *slices, struct arena *arena,
                        struct node_device *list)
{
    unsigned count = 0;

    for (unsigned i = 0; i < slices->count; i++) {
        const struct kube_slice *slice = slices->at[i];

        for (unsigned k = 0; is_newest(slices, slice) && k < slice->device_count; k++) {
            const struct slice_device *device = &slice->devices[k];
            bool has_gres = device_row_is_cpu(row) ||
                            (!device->is_shared && !device->is_part && !device->has_conditions);

            if (has_gres && device_is_of_row(view->table, row, slice->driver, device))
                list[count++] = (struct node_device){
                    .name = strcmp(slice->pool, node) == 0
                                ? device->name
                                : arena_printf(arena, "%s/%s", slice->pool, device->name),
                    .pool = slice->pool,
                    .device = device,
                    .taint = taint_of(view, slice, device),
                };
        }
    }
    return count;
}

void devices_of_node(const struct device_view *view, const struct device_row *row, const char *node,
                     struct arena *arena, struct node_devices *ret_devices)
{
    struct slices slices = { .count = 0 };
    struct node_device *list;
    unsigned most = 0;

    *ret_devices = (struct node_devices){ 0 };
    if (view->slices)
        find_slices(view, node, row->driver, &slices);
    for (unsigned i = 0; i < slices.count; i++) {
        most += slices.at[i]->device_count;
        if (is_newest(&slices, slices.at[i]) && !is_whole(&slices, slices.at[i]))
            ret_devices->unknown =
                arena_printf(arena, "driver %s has not published all slices of pool %s on node %s",
                             row->driver, slices.at[i]->pool, node);
    }
    if (slices.count == 0)
        ret_devices->unknown =
            arena_printf(arena, "driver %s shows no devices on node %s", row->driver, node);
    list = arena_alloc_array(arena, most + 1, sizeof(*list));
    ret_devices->count = collect(view, row, node, &slices, arena, list);
    qsort(list, ret_devices->count, sizeof(*list), compare_devices);
    ret_devices->at = list;
    if (has_twice(list, ret_devices->count))
        ret_devices->unknown =
            arena_printf(arena, "driver %s shows a device of node %s twice", row->driver, node);
}

/* ---- cores ---- */

static int64_t number_of(const struct slice_device *device, const char *attribute)
{
    int64_t number = 0;

    for (unsigned i = 0; i < device->attributes.count; i++)
        if (str_is(device->attributes.at[i].key, attribute))
            (void)str_to_i64(device->attributes.at[i].value, 1, 1 << 20, &number, NULL);
    return number;
}

bool node_cores_of(const struct device_view *view, const char *node, struct arena *arena,
                   struct node_cores *ret_cores)
{
    const struct device_row *row = device_row_of_class(view->table, STR(DEVICE_CORES_DRIVER));
    struct node_devices devices;

    if (!row)
        return false;
    devices_of_node(view, row, node, arena, &devices);
    if (devices.unknown || devices.count == 0)
        return false;
    ret_cores->threads = number_of(devices.at[0].device, "threadsPerCore");
    ret_cores->cores = number_of(devices.at[0].device, "nodeSockets") *
                       number_of(devices.at[0].device, "nodeCoresPerSocket");
    return ret_cores->threads > 0 && ret_cores->cores > 0;
}
