/* wanted.c - from the devices of a node to gres of its record, and back to what differs.
 *
 * Holds: a device that is tainted is not given to Slurm; a driver that is away keeps what the
 * record has; what is compared is computed as what is created. */
#include "device/wanted.h"

#include "slurm/gres.h"

#include <inttypes.h>

enum { MEMORY = 64 << 10 }; /* of one mark */

/* ---- what the node has ---- */

static struct wanted_row *need_row(struct wanted_gres *wanted, const struct device_row *row)
{
    for (unsigned i = 0; i < wanted->count; i++)
        if (strcmp(wanted->at[i].name, row->gres) == 0 &&
            strcmp(wanted->at[i].type, row->type) == 0)
            return &wanted->at[i];
    wanted->at[wanted->count] =
        (struct wanted_row){ .name = row->gres, .type = row->type, .listed = "" };
    return &wanted->at[wanted->count++];
}

static const char *add_to_list(struct arena *arena, const char *list, const char *word)
{
    return arena_printf(arena, "%s%s%s", list, *list ? "," : "", word);
}

/* A driver that is away shows no devices, and they are still there: what Slurm has counts. */
static void keep_class(const struct slurm_node *record, struct arena *arena,
                       const struct device_row *row, struct wanted_row *gres)
{
    const char *registered = registered_devices(record, arena);
    int64_t first, count = 0;
    struct str names;

    if (gres_find(record->gres, row->gres, row->type, &first, &count) && registered &&
        registered_find(registered, row->gres, row->type, &names))
        gres->listed = add_to_list(arena, gres->listed, arena_strndup(arena, names.at, names.len));
    gres->count += count;
    gres->all += count;
}

/* Slurm is not told of devices that no pod can use. */
static void add_class(const struct device_view *view, const struct kube_node *node,
                      const struct slurm_node *record, struct arena *arena,
                      const struct device_row *row, struct wanted_gres *wanted)
{
    struct wanted_row *gres = need_row(wanted, row);
    auto_buf struct buf listed = { .max = REGISTERED_MAX };
    struct node_devices devices;

    gres->driver = row->driver;
    devices_of_node(view, row, node->object.name, arena, &devices);
    if (devices.unknown) {
        if (record)
            keep_class(record, arena, row, gres);
        return;
    }
    gres->is_shown = true;
    gres->all += devices.count;
    for (unsigned i = 0; i < devices.count; i++) {
        const struct node_device *device = &devices.at[i];

        if (device->taint[0]) {
            wanted->tainted =
                arena_printf(arena, "%s%s%s has the taint %s", wanted->tainted,
                             *wanted->tainted ? ", " : "", device->name, device->taint);
            continue;
        }
        buf_printf(&listed, "%s%s", listed.len > 0 ? "," : "", device->name);
        gres->count++;
    }
    if (listed.len > 0 && !listed.overflowed)
        gres->listed = add_to_list(arena, gres->listed, buf_text(&listed));
}

/* What a device plugin has: Slurm only counts it. */
static void add_plugin(const struct device_row *row, const struct kube_node *node,
                       const int64_t *taken, struct arena *arena, struct wanted_gres *wanted)
{
    struct wanted_row *gres = need_row(wanted, row);

    gres->is_shown = true;
    for (unsigned i = 0; i < node->extended.count; i++) {
        int64_t count = node->extended.at[i].amount - taken[i];

        if (strcmp(node->extended.at[i].name, row->resource) != 0 || count <= 0)
            continue;
        gres->count += count;
        gres->all += count;
        gres->listed = add_to_list(arena, gres->listed, arena_printf(arena, "+%" PRId64, count));
    }
}

/* "" also when they are not all known, or too many. */
static const char *list_all(const struct wanted_gres *wanted, struct arena *arena)
{
    auto_buf struct buf text = { .max = REGISTERED_MAX };

    for (unsigned i = 0; i < wanted->count; i++) {
        const struct wanted_row *gres = &wanted->at[i];

        if (gres->count > 0 && !*gres->listed)
            return "";
        if (gres->count > 0)
            registered_add(&text, gres->name, gres->type, str_of(gres->listed));
    }
    return text.overflowed ? "" : arena_strdup(arena, buf_text(&text));
}

/* Those with numbers first: Slurm counts the devices of a name in the order of its records. */
void wanted_gres_of(const struct device_view *view, const struct kube_node *node,
                    const struct slurm_node *record, const int64_t *taken, struct arena *arena,
                    struct wanted_gres *ret_wanted)
{
    const struct device_table *table = view->table;

    *ret_wanted = (struct wanted_gres){
        .at = arena_alloc_array(arena, table->count + 1, sizeof(*ret_wanted->at)), .tainted = ""
    };
    for (unsigned i = 0; i < table->count; i++)
        if (table->rows[i].class[0] && !device_row_is_cpu(&table->rows[i]))
            add_class(view, node, record, arena, &table->rows[i], ret_wanted);
    for (unsigned i = 0; i < table->count; i++)
        if (device_row_of_plugin(table, str_of(table->rows[i].resource)) == &table->rows[i])
            add_plugin(&table->rows[i], node, taken, arena, ret_wanted);
    ret_wanted->devices = list_all(ret_wanted, arena);
}

/* ---- for Slurm ---- */

const char *wanted_gres_text(const struct wanted_gres *wanted, struct arena *arena)
{
    const char *text = NULL;

    for (unsigned i = 0; i < wanted->count; i++) {
        const struct wanted_row *row = &wanted->at[i];

        if (row->count > 0)
            text = arena_printf(arena, "%s%s%s%s%s:%" PRId64, text ? text : "", text ? "," : "",
                                row->name, row->type[0] ? ":" : "", row->type, row->count);
    }
    return text;
}

/* The mere presence of a file gives the devices numbers, which the bridge reads when a job runs. */
const char *wanted_gres_conf(const struct wanted_gres *wanted, struct arena *arena)
{
    const char *conf = "";

    for (unsigned i = 0; i < wanted->count; i++) {
        const struct wanted_row *row = &wanted->at[i];

        if (row->count > 0)
            conf =
                arena_printf(arena, "%s%scount=%" PRId64 ",name=%s%s%s%s%s", conf, *conf ? "+" : "",
                             row->count, row->name, row->type[0] ? ",type=" : "", row->type,
                             row->driver ? ",file=" : "", row->driver ? row->driver : "");
    }
    return conf;
}

/* ---- comparing ---- */

struct amounts { /* of the devices of a name, of whatever type */
    int64_t count, all;
    bool is_in_table, is_shown;
};

static struct amounts amounts_of(const struct wanted_gres *wanted, struct str name)
{
    struct amounts amounts = { .count = 0 };

    for (unsigned i = 0; i < wanted->count; i++)
        if (str_is(name, wanted->at[i].name)) {
            amounts.count += wanted->at[i].count;
            amounts.all += wanted->at[i].all;
            amounts.is_in_table = true;
            amounts.is_shown |= wanted->at[i].is_shown;
        }
    return amounts;
}

static bool has_type(const struct wanted_gres *wanted, struct str name, struct str type)
{
    for (unsigned i = 0; i < wanted->count; i++)
        if (str_is(name, wanted->at[i].name) && str_is(type, wanted->at[i].type))
            return true;
    return false;
}

/* By types only where our mark lists the devices: those who made the node before us may have given
 * other types. A name that is no longer in the table promises nothing: no pod asks for it. */
enum wanted_gres_match wanted_gres_match(const struct wanted_gres *wanted,
                                         const struct slurm_node *record)
{
    struct str rest = str_of(record->gres), name, type;
    auto_arena struct arena arena;
    const char *registered;
    bool differs;
    int64_t count;

    arena_init(&arena, MEMORY);
    registered = registered_devices(record, &arena);
    differs = registered && strcmp(registered, wanted->devices) != 0;
    while (gres_next(&rest, &name, &type, &count)) {
        struct amounts amounts = amounts_of(wanted, name);

        /* The config has another type for devices of a driver that is away. */
        if (amounts.is_in_table && !amounts.is_shown && !has_type(wanted, name, type))
            return GRES_RIGHT;
        if (gres_total(record->gres, name) > amounts.all && (amounts.is_in_table || !registered))
            return GRES_FEWER;
    }
    for (unsigned i = 0; !registered && i < wanted->count; i++) {
        name = str_of(wanted->at[i].name);
        differs |= gres_total(record->gres, name) != amounts_of(wanted, name).count;
    }
    return differs ? GRES_OTHERS : GRES_RIGHT;
}

bool wanted_gres_are_of(const struct wanted_gres *wanted, const struct slurm_node *record)
{
    int64_t first, count;

    for (unsigned i = 0; i < wanted->count; i++) {
        const struct wanted_row *row = &wanted->at[i];

        if (row->count > 0 &&
            (!gres_find(record->gres, row->name, row->type, &first, &count) || count != row->count))
            return false;
    }
    return wanted_gres_match(wanted, record) == GRES_RIGHT;
}

static bool is_of_table(const struct device_table *table, struct str name, struct str type)
{
    for (unsigned i = 0; i < table->count; i++)
        if (str_is(name, table->rows[i].gres) && str_is(type, table->rows[i].type))
            return true;
    return false;
}

bool wanted_gres_are_foreign(const struct device_table *table, const struct slurm_node *record)
{
    struct str rest = str_of(record->gres), name, type;
    auto_arena struct arena arena;
    int64_t count;

    arena_init(&arena, MEMORY);
    if (registered_devices(record, &arena))
        return false;
    while (gres_next(&rest, &name, &type, &count))
        if (!is_of_table(table, name, type))
            return true;
    return false;
}
