/* gres.c - lists of generic resources (devices), as Slurm writes them. */
#include "slurm/gres.h"

#include "base/buf.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_ENTRIES = 256, MAX_TEXT = 64 << 10 }; /* of a list that a job requests */

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

/* ---- as jobs request them ---- */

/* "2", or "2k": Slurm takes a letter for a power of 1,024. -1: it is no count. */
static int64_t read_count(struct str text)
{
    static const char units[] = "kmgtp";
    const char *unit = text.len > 1 ? strchr(units, text.at[text.len - 1] | 0x20) : NULL;
    uint64_t number;
    int64_t count;

    if (str_to_u64(str_sub(text, 0, text.len - (unit && *unit)), 0, INT32_MAX, &number, NULL) < 0)
        return -1;
    count = (int64_t)number;
    for (const char *at = units; unit && at <= unit && count <= INT32_MAX; at++)
        count *= 1024;
    return count;
}

bool gres_next_requested(struct str *rest, struct str *ret_name, struct str *ret_type,
                         int64_t *ret_count)
{
    struct str item, key, count = STR("");

    do {
        if (!str_next(rest, ',', &item))
            return false;
        item = str_trim(item);
        if (str_starts(item, STR("gres/")) || str_starts(item, STR("gres:")))
            item = str_sub(item, strlen("gres/"), item.len);
    } while (item.len == 0);
    *ret_count = 1;
    *ret_type = STR("");
    if (str_cut(item, '=', &key, &count)) {
        *ret_count = read_count(count);
        item = key;
    }
    if (!str_cut(item, ':', ret_name, &key)) {
        *ret_name = item;
        return true;
    }
    if (str_cut(key, ':', ret_type, &count))
        *ret_count = read_count(count);
    else if (count.len > 0 || read_count(key) < 0)
        *ret_type = key;
    else
        *ret_count = read_count(key);
    return true;
}

bool gres_is_none(const char *text)
{
    struct str trimmed = str_trim(str_of(text));

    return trimmed.len == 0 || str_eq_nocase(trimmed, STR("none"));
}

struct entry {
    struct str name, type;
    int64_t count;
};

struct entries {
    struct entry at[MAX_ENTRIES];
    unsigned count;
};

static int read_entries(const char *list, struct entries *ret_entries, struct err *err)
{
    struct str rest = str_of(list);
    struct entry entry;

    ret_entries->count = 0;
    while (gres_next_requested(&rest, &entry.name, &entry.type, &entry.count)) {
        if (ret_entries->count == MAX_ENTRIES)
            return err_set(err, ERR_INVALID, "more than %d kinds of devices", MAX_ENTRIES);
        entry.count = entry.count > 0 ? entry.count : 0;
        ret_entries->at[ret_entries->count++] = entry;
    }
    return 0;
}

/* Of two entries of one name and type Slurm takes the last. */
static bool is_replaced(const struct entries *list, unsigned at)
{
    const struct entry *entry = &list->at[at];

    for (unsigned i = at + 1; i < list->count; i++)
        if (str_eq_nocase(list->at[i].name, entry->name) &&
            str_eq_nocase(list->at[i].type, entry->type))
            return true;
    return false;
}

/* Whether devices were lacking. */
static bool raise_entry(struct entries *list, const struct entry *need)
{
    struct entry *last = NULL;
    int64_t count = 0;

    for (unsigned i = 0; i < list->count; i++) {
        struct entry *entry = &list->at[i];

        if (is_replaced(list, i) || !str_eq_nocase(entry->name, need->name) ||
            (need->type.len > 0 && !str_eq_nocase(entry->type, need->type)))
            continue;
        count += entry->count;
        last = entry;
    }
    if (count >= need->count)
        return false;
    if (last)
        last->count += need->count - count;
    else if (list->count < MAX_ENTRIES)
        list->at[list->count++] = *need;
    return true;
}

int gres_raise(const char *list, const char *least, int64_t times, struct arena *arena,
               const char **ret_list, struct err *err)
{
    auto_buf struct buf text = { .max = MAX_TEXT };
    struct entries raised, needs;
    bool lacked = false;

    if (read_entries(list, &raised, err) < 0 || read_entries(least, &needs, err) < 0)
        return -err->class;
    for (unsigned i = 0; i < needs.count; i++) {
        needs.at[i].count *= times;
        lacked |= raise_entry(&raised, &needs.at[i]);
    }
    for (unsigned i = 0; i < raised.count; i++)
        if (!is_replaced(&raised, i))
            buf_printf(&text, "%sgres/" STR_FMT "%s" STR_FMT "=%" PRId64, text.len > 0 ? "," : "",
                       STR_ARG(raised.at[i].name), raised.at[i].type.len > 0 ? ":" : "",
                       STR_ARG(raised.at[i].type), raised.at[i].count);
    if (lacked && buf_check(&text, "devices", NULL) < 0)
        return err_set(err, ERR_INVALID, "the list of devices is too long");
    *ret_list = lacked ? arena_strdup(arena, buf_text(&text)) : list;
    return 0;
}

/* ---- as nodes have them ---- */

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
