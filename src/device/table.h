/* table.h - what devices of Kubernetes are in Slurm: the rows of the config key `devices`.
 *
 * A row is about a DeviceClass, or about the resource of a device plugin. Its devices are a gres of
 * one name and type; the gres `cpu` means that they are CPUs of the job. Devices of one row are
 * alike: Slurm chooses among them. */
#ifndef SLINC_DEVICE_TABLE_H
#define SLINC_DEVICE_TABLE_H

#include "base/arena.h"
#include "device/kinds.h"
#include "kube/cache.h"

struct device_where { /* an attribute that a device of the row has */
    const char *attribute, *value;
};

struct device_row {
    const char *class;    /* DeviceClass; "" in a row of a device plugin */
    const char *resource; /* of a device plugin; "" in a row of a class */
    const char *driver;   /* of the devices of the class */
    const char *gres, *type;
    const struct device_where *where;
    unsigned where_count;
};

struct device_table {
    const struct device_row *rows;
    unsigned count;
};

/* The rows are in the arena. -ERR_INVALID says what is wrong, but not the key. */
int device_table_read(struct arena *arena, const struct json *list, struct device_table *ret_table,
                      struct err *err);

bool device_row_is_cpu(const struct device_row *row);
/* NULL when no row is about it. */
const struct device_row *device_row_of_class(const struct device_table *table, struct str class);
const struct device_row *device_row_of_plugin(const struct device_table *table,
                                              struct str resource);

/* The class by which a resource that containers request is backed: named by the resource itself,
 * or by extendedResourceName (of several the youngest class, then the first by name). "" for none.
 * classes may be NULL. */
struct str device_class_of_resource(const struct kube_cache *classes, struct str resource);

/* Whether a device is one of the row: no row before it has it. */
bool device_is_of_row(const struct device_table *table, const struct device_row *row,
                      const char *driver, const struct slice_device *device);

#endif
