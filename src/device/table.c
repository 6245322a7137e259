/* table.c - reads the rows of `devices`, and finds the row of a class, a resource, a device.
 *
 * Holds: gres, type and class can stand in Slurm's lists as they are. */
#include "device/table.h"

#include "device/names.h"

#include <strings.h>

enum { MAX_ROWS = 256, MAX_WORD = 253, MAX_WHERE = 16 };

/* ---- reading ---- */

static const struct {
    const char *name;
    size_t offset;
} words[] = {
    { "class", offsetof(struct device_row, class) },
    { "resource", offsetof(struct device_row, resource) },
    { "driver", offsetof(struct device_row, driver) },
    { "gres", offsetof(struct device_row, gres) },
    { "type", offsetof(struct device_row, type) },
};

enum { WORD_COUNT = sizeof(words) / sizeof(words[0]) };

/* Nothing in it ends an item of a list that Slurm reads. Resources have a '/'. */
static bool is_word(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            c != '-' && c != '.' && c != '_' && c != '/')
            return false;
    }
    return text.len > 0 && text.len <= MAX_WORD;
}

static const char *keep(struct arena *arena, struct str text)
{
    return arena_strndup(arena, text.at, text.len);
}

static int take_where(struct arena *arena, struct device_row *row, const struct json *value,
                      struct err *err)
{
    struct json_iter iter = json_iter(value);
    struct device_where *where;
    const struct json *wanted;
    struct str attribute;

    if (!json_is_object(value) || json_len(value) > MAX_WHERE)
        return err_set(err, ERR_INVALID, "where: wants attributes and their values, at most %d",
                       MAX_WHERE);
    where = arena_alloc_array(arena, json_len(value) + 1, sizeof(*where));
    while (json_next_member(&iter, &attribute, &wanted)) {
        if (!json_is_string(wanted))
            return err_set(err, ERR_INVALID,
                           "where." STR_FMT ": wants a text; numbers, yes and no "
                           "need quotes",
                           STR_ARG(attribute));
        where[row->where_count++] =
            (struct device_where){ keep(arena, attribute), keep(arena, json_str(wanted)) };
    }
    row->where = where;
    return 0;
}

static int take_word(struct arena *arena, struct device_row *row, struct str name,
                     const struct json *value, struct err *err)
{
    struct str text = json_str(value);

    if (str_is(name, "where"))
        return take_where(arena, row, value, err);
    for (size_t i = 0; i < WORD_COUNT; i++) {
        const char **place = (const char **)(void *)((char *)row + words[i].offset);

        if (!str_is(name, words[i].name))
            continue;
        if (!json_is_string(value) || !is_word(text) ||
            (!str_is(name, "resource") && memchr(text.at, '/', text.len)))
            return err_set(err, ERR_INVALID,
                           "%s: wants a name of at most %d letters, digits, '-', '_' and '.'",
                           words[i].name, MAX_WORD);
        *place = keep(arena, text);
        return 0;
    }
    return err_set(err, ERR_INVALID, "has no \"" STR_FMT "\"", STR_ARG(str_sub(name, 0, 64)));
}

static int take_row(struct arena *arena, const struct json *item, struct device_row *ret_row,
                    struct err *err)
{
    struct device_row row = { "", "", "", "", NULL, NULL, 0 };
    struct json_iter iter = json_iter(item);
    const struct json *value;
    struct str name;

    while (json_next_member(&iter, &name, &value))
        if (json_exists(value) && take_word(arena, &row, name, value, err) < 0)
            return -err->class;
    if (!row.class[0] == !row.resource[0])
        return err_set(err, ERR_INVALID, "wants either a class or a resource");
    if (!row.gres[0])
        return err_set(err, ERR_INVALID, "wants a gres");
    if (row.resource[0] && (row.driver[0] || row.where_count > 0 || device_row_is_cpu(&row)))
        return err_set(err, ERR_INVALID, "a resource has only a gres and a type");
    if (!row.driver[0])
        row.driver = row.class;
    if (!row.type)
        row.type = row.class;
    *ret_row = row;
    return 0;
}

int device_table_read(struct arena *arena, const struct json *list, struct device_table *ret_table,
                      struct err *err)
{
    struct json_iter iter = json_iter(list);
    struct device_row *rows;
    const struct json *item;
    unsigned count = 0;

    if (!json_is_array(list) || json_len(list) > MAX_ROWS)
        return err_set(err, ERR_INVALID,
                       "wants a list of at most %d rows: class or resource, driver, where, gres, "
                       "type",
                       MAX_ROWS);
    rows = arena_alloc_array(arena, json_len(list) + 1, sizeof(*rows));
    while (json_next_item(&iter, &item))
        if (take_row(arena, item, &rows[count++], err) < 0)
            return err_wrap(err, "row %u", count);
    *ret_table = (struct device_table){ rows, count };
    return 0;
}

/* ---- finding ---- */

bool device_row_is_cpu(const struct device_row *row)
{
    return strcmp(row->gres, "cpu") == 0;
}

const struct device_row *device_row_of_class(const struct device_table *table, struct str class)
{
    for (unsigned i = 0; i < table->count; i++)
        if (class.len > 0 && str_is(class, table->rows[i].class))
            return &table->rows[i];
    return NULL;
}

const struct device_row *device_row_of_plugin(const struct device_table *table, struct str resource)
{
    for (unsigned i = 0; i < table->count; i++)
        if (resource.len > 0 && str_is(resource, table->rows[i].resource))
            return &table->rows[i];
    return NULL;
}

struct str device_class_of_resource(const struct kube_cache *classes, struct str resource)
{
    struct str prefix = STR(DEVICE_CLASS_PREFIX);
    const struct kube_object *class, *found = NULL;
    struct kube_cache_walk walk;

    if (str_starts(resource, prefix))
        return str_sub(resource, prefix.len, resource.len);
    if (!classes)
        return STR("");
    walk = kube_cache_walk(classes);
    while ((class = kube_cache_next(&walk)))
        if (str_is(resource, kube_device_class_of(class)->extended_resource) &&
            (!found || class->created_us > found->created_us ||
             (class->created_us == found->created_us && strcmp(class->name, found->name) < 0)))
            found = class;
    return found ? str_of(found->name) : STR("");
}

static bool has_attributes(const struct device_row *row, const struct slice_device *device)
{
    for (unsigned i = 0; i < row->where_count; i++) {
        bool found = false;

        for (unsigned k = 0; !found && k < device->attributes.count; k++)
            found = str_is(device->attributes.at[k].key, row->where[i].attribute) &&
                    str_is(device->attributes.at[k].value, row->where[i].value);
        if (!found)
            return false;
    }
    return true;
}

bool device_is_of_row(const struct device_table *table, const struct device_row *row,
                      const char *driver, const struct slice_device *device)
{
    for (const struct device_row *first = table->rows; first <= row; first++)
        if (strcmp(first->driver, driver) == 0 && has_attributes(first, device))
            return first == row;
    return false;
}
