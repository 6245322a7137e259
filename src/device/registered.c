/* registered.c - reads the mark of a record, and finds the devices that it names among those that
 * the driver shows now. */
#include "device/registered.h"

#include "codec/bitmap.h"
#include "slurm/gres.h"

#include <inttypes.h>

enum { MAX_MARK = 2 * REGISTERED_MAX, MAX_INDEX = 1 << 16 };

/* ---- the mark ---- */

const char *registered_devices(const struct slurm_node *record, struct arena *arena)
{
    auto_json_doc struct json_doc *doc = NULL;
    struct str text;

    if (record->extra[0] != '{' || json_parse(str_of(record->extra), MAX_MARK, &doc, NULL) < 0)
        return NULL;
    text = json_str(json_get(json_root(doc), REGISTERED_KEY));
    return text.len > 0 ? arena_strndup(arena, text.at, text.len) : NULL;
}

static bool is_key(struct str key, const char *gres, const char *type)
{
    struct str name = key, rest = STR("");

    (void)str_cut(key, ':', &name, &rest);
    return str_is(name, gres) && str_is(rest, type);
}

bool registered_find(const char *registered, const char *gres, const char *type,
                     struct str *ret_devices)
{
    struct str rest = str_of(registered), entry, key;

    while (str_next(&rest, ';', &entry))
        if (str_cut(entry, '=', &key, ret_devices) && is_key(key, gres, type))
            return true;
    return false;
}

void registered_add(struct buf *out, const char *gres, const char *type, struct str devices)
{
    buf_printf(out, "%s%s%s%s=" STR_FMT, out->len > 0 ? ";" : "", gres, type[0] ? ":" : "", type,
               STR_ARG(devices));
}

/* ---- numbers ---- */

static struct node_device find_device(const struct node_devices *shown, struct str name,
                                      struct arena *arena)
{
    for (unsigned i = 0; i < shown->count; i++)
        if (str_is(name, shown->at[i].name))
            return shown->at[i];
    return (struct node_device){ arena_strndup(arena, name.at, name.len), "", NULL, "" };
}

static void take_named(const struct node_devices *shown, struct str names, struct arena *arena,
                       struct node_devices *ret_devices)
{
    struct node_device *list = arena_alloc_array(arena, names.len + 1, sizeof(*list));
    struct str name;

    *ret_devices = (struct node_devices){ .at = list };
    while (str_next(&names, ',', &name))
        if (name.len > 0 && name.at[0] != '+')
            list[ret_devices->count++] = find_device(shown, name, arena);
}

static void take_untainted(const struct node_devices *shown, struct arena *arena,
                           struct node_devices *ret_devices)
{
    struct node_device *list = arena_alloc_array(arena, shown->count + 1, sizeof(*list));

    *ret_devices = (struct node_devices){ .at = list };
    for (unsigned i = 0; i < shown->count; i++)
        if (!shown->at[i].taint[0])
            list[ret_devices->count++] = shown->at[i];
}

void registered_of_row(const struct device_view *view, const struct device_row *row,
                       const struct slurm_node *record, const char *node, struct arena *arena,
                       struct node_devices *ret_devices)
{
    const char *registered = registered_devices(record, arena);
    struct node_devices shown;
    struct str names;
    int64_t first, total = 0;

    devices_of_node(view, row, node, arena, &shown);
    if (!shown.unknown && registered && registered_find(registered, row->gres, row->type, &names)) {
        take_named(&shown, names, arena, ret_devices);
        return;
    }
    (void)gres_find(record->gres, row->gres, row->type, &first, &total);
    if (!shown.unknown && shown.count < total)
        shown.unknown = arena_printf(arena,
                                     "Slurm has %" PRId64 " %s:%s on node %s, and driver %s shows "
                                     "%u devices there",
                                     total, row->gres, row->type, node, row->driver, shown.count);
    take_untainted(&shown, arena, ret_devices);
    if (shown.unknown || ret_devices->count != total)
        *ret_devices = shown;
}

/* ---- what Slurm would give next ---- */

/* "gpu:a:2(IDX:0,3),nic:1": the numbers that are in use. False: Slurm does not say. */
static bool read_used(const char *list, const struct device_row *row, struct bitmap *ret_used)
{
    struct str rest = str_of(list), from = rest, name, type, item, indexes;
    int64_t count;

    bitmap_init(ret_used, MAX_INDEX);
    for (; gres_next(&rest, &name, &type, &count); from = rest) {
        auto_bitmap struct bitmap some = { 0 };

        if (!str_is(name, row->gres) || count == 0)
            continue;
        item = (struct str){ from.at, from.len - rest.len };
        if (!str_cut(item, '(', &item, &indexes) || !str_cut(indexes, ')', &indexes, &item) ||
            !str_starts(indexes, STR("IDX:")) ||
            bitmap_parse_ranges(str_sub(indexes, 4, indexes.len), MAX_INDEX, &some, NULL) < 0)
            return false;
        bitmap_or(ret_used, &some);
    }
    return true;
}

static bool is_next_out(const struct device_view *view, const struct device_row *row,
                        const struct slurm_node *record, const char *node, struct arena *arena)
{
    auto_bitmap struct bitmap used = { 0 };
    struct node_devices devices;
    int64_t first, total;

    if (!gres_find(record->gres, row->gres, row->type, &first, &total) || first < 0 ||
        first >= MAX_INDEX || !read_used(record->gres_used, row, &used))
        return false;
    registered_of_row(view, row, record, node, arena, &devices);
    for (unsigned i = 0; !devices.unknown && i < devices.count && first + i < MAX_INDEX; i++)
        if (!bitmap_test(&used, (size_t)first + i))
            return !devices.at[i].device || devices.at[i].taint[0];
    return false;
}

bool registered_next_is_out(const struct device_view *view, const struct slurm_node *record,
                            const char *node, struct arena *arena)
{
    for (unsigned i = 0; i < view->table->count; i++) {
        const struct device_row *row = &view->table->rows[i];

        if (row->class[0] && !device_row_is_cpu(row) && is_next_out(view, row, record, node, arena))
            return true;
    }
    return false;
}
