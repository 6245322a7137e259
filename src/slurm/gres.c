/* gres.c - lists of generic resources (devices), as Slurm writes them. */
#include "slurm/gres.h"

#include <string.h>

/* "gpu:h100:8(S:0-1)" is gpu, h100, 8; "gpu:8" has no type. */
static int64_t read_item(struct str item, struct str *ret_name, struct str *ret_type)
{
    struct str before, rest, count;
    uint64_t number;

    if (str_cut(item, '(', &before, &rest))
        item = before;
    *ret_type = STR("");
    if (!str_cut(item, ':', ret_name, &rest)) {
        *ret_name = item;
        return 1;
    }
    if (str_cut(rest, ':', ret_type, &count))
        rest = count;
    if (str_to_u64(rest, 0, INT32_MAX, &number, NULL) == 0)
        return (int64_t)number;
    *ret_type = rest;
    return 1;
}

/* "gpu:2(S:0,1)" has a comma that ends no item. */
bool gres_next(struct str *rest, struct str *ret_name, struct str *ret_type, int64_t *ret_count)
{
    struct str item, more;

    do {
        if (!str_next(rest, ',', &item))
            return false;
        while (memchr(item.at, '(', item.len) && !memchr(item.at, ')', item.len) &&
               str_next(rest, ',', &more))
            item.len = (size_t)(more.at + more.len - item.at);
        item = str_trim(item);
    } while (item.len == 0);
    *ret_count = read_item(item, ret_name, ret_type);
    return true;
}

bool gres_next_requested(struct str *rest, struct str *ret_name, struct str *ret_type,
                         int64_t *ret_count)
{
    struct str item, key, number;
    uint64_t count;

    do {
        if (!str_next(rest, ',', &item))
            return false;
        if (str_starts(item, STR("gres/")))
            item = str_sub(item, strlen("gres/"), item.len);
    } while (item.len == 0);
    if (!str_cut(item, '=', &key, &number))
        return gres_next(&item, ret_name, ret_type, ret_count);
    if (!str_cut(key, ':', ret_name, ret_type)) {
        *ret_name = key;
        *ret_type = STR("");
    }
    *ret_count = str_to_u64(number, 0, INT32_MAX, &count, NULL) == 0 ? (int64_t)count : INT32_MAX;
    return true;
}

int64_t gres_count(const char *list, struct str name, struct str type)
{
    struct str rest = str_of(list), item_name, item_type;
    int64_t count, total = 0;

    while (gres_next(&rest, &item_name, &item_type, &count))
        if (str_eq(item_name, name) && (type.len == 0 || str_eq(item_type, type)))
            total += count;
    return total;
}

int64_t gres_total(const char *list, struct str name)
{
    return gres_count(list, name, STR(""));
}

bool gres_find(const char *list, const char *name, const char *type, int64_t *ret_first,
               int64_t *ret_count)
{
    struct str rest = str_of(list), item_name, item_type;
    int64_t first = 0, count;

    while (gres_next(&rest, &item_name, &item_type, &count)) {
        if (!str_is(item_name, name))
            continue;
        if (str_is(item_type, type)) {
            *ret_first = first;
            *ret_count = count;
            return true;
        }
        first += count;
    }
    return false;
}
