/* slurmconf_merge.c - options of slurm.conf that the user and the operator both have values for.
 *
 * Slurm takes the last line of an option, so a line of the user's would lose our values (the JWT
 * key among them). The last section therefore repeats such options with the values of both. */
#include "codec/slurmconf_merge.h"

#include "codec/slurmconf.h"

#include <stdlib.h>

enum { MAX_VALUES = 256 };

void conf_section(struct buf *out, const char *title)
{
    buf_printf(out, "#\n### %s ###\n", title);
}

/* ---- the user's text ---- */

/* The next line, joined with those that a trailing '\' continues it by, without its comment. */
static bool next_line(struct str *rest, struct arena *arena, struct str *ret_line)
{
    struct str part, comment;
    const char *joined = "";

    while (str_next(rest, '\n', &part)) {
        (void)str_cut(part, '#', &part, &comment);
        part = str_trim(part);
        if (part.len == 0 || part.at[part.len - 1] != '\\') {
            const char *text = arena_printf(arena, "%s" STR_FMT, joined, STR_ARG(part));

            *ret_line = str_of(text);
            return true;
        }
        joined = arena_printf(arena, "%s" STR_FMT, joined, (int)part.len - 1, part.at);
    }
    return false;
}

static bool has_blank(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] == ' ' || text.at[i] == '\t')
            return true;
    return false;
}

/* The value in a pair of quotes. False when it has none, or when there is more behind them. */
static bool is_quoted(struct str value, struct str *ret_inside)
{
    struct str before, inside, behind;

    if (!str_cut(value, '"', &before, &inside) || before.len > 0 ||
        !str_cut(inside, '"', &inside, &behind) || behind.len > 0)
        return false;
    *ret_inside = inside;
    return true;
}

/* What the user gives this option; the last one counts. "" when the user does not name it. */
static struct str users_value(struct str users, const char *wanted, struct arena *arena)
{
    struct str line, key, value, found = STR("");

    while (next_line(&users, arena, &line)) {
        if (!str_cut(line, '=', &key, &value))
            continue;
        key = str_trim(key);
        value = str_trim(value);
        if (str_eq_nocase(key, str_of(wanted)) && (is_quoted(value, &value) || !has_blank(value)) &&
            value.len > 0)
            found = value;
    }
    return found;
}

/* ---- the values of both ---- */

static struct str name_of(struct str item)
{
    struct str name, value;

    return str_cut(item, '=', &name, &value) ? name : item;
}

static bool is_named(const struct str *items, size_t count, struct str name)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq_nocase(name_of(items[i]), name))
            return true;
    return false;
}

static size_t add_items(struct str *items, size_t count, struct str list)
{
    struct str item;

    while (str_next(&list, ',', &item)) {
        item = str_trim(item);
        if (item.len > 0 && count < MAX_VALUES && !is_named(items, count, name_of(item)))
            items[count++] = item;
    }
    return count;
}

static int compare(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static const char *joined(struct str *items, size_t count, struct arena *arena)
{
    const char *text = "";

    qsort(items, count, sizeof(items[0]), compare);
    for (size_t i = 0; i < count; i++)
        text = arena_printf(arena, "%s%s" STR_FMT, text, i > 0 ? "," : "", STR_ARG(items[i]));
    return text;
}

int conf_merged(const struct conf_merge_row *rows, size_t count, struct str users,
                struct arena *arena, struct buf *out, struct err *err)
{
    struct conf conf;
    bool has_title = false;
    int result = 0;

    conf_begin(&conf, out);
    for (size_t i = 0; i < count && result == 0; i++) {
        struct str value = users_value(users, rows[i].key, arena);
        struct str items[MAX_VALUES];
        size_t users_count = add_items(items, 0, value), item_count;

        item_count = add_items(items, users_count, str_of(rows[i].values));
        if (rows[i].is_only_here ? item_count == users_count : value.len == 0)
            continue;
        if (!rows[i].is_only_here) { /* of what both give a value to, ours counts */
            item_count = add_items(items, 0, str_of(rows[i].values));
            item_count = add_items(items, item_count, value);
        }
        if (!has_title)
            conf_section(out, "MERGED CONFIG");
        has_title = true;
        result = conf_option(&conf, rows[i].key, str_of(joined(items, item_count, arena)), err);
    }
    return result;
}
