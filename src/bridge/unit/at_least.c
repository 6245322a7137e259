/* at_least.c - a job gets at least what its pods request.
 *
 * The annotations `cpu-per-task`, `mem-per-node` and `gres` stand in place of what the pods ask
 * for. A pod runs with its requests on the node whatever they say: a job that books less would
 * have Slurm give the rest to another job.
 *
 * Holds: of two entries of one gres Slurm takes the last, so only that one counts here. */
#include "bridge/unit/at_least.h"

#include <inttypes.h>

enum { MAX_ENTRIES = 256, MAX_TEXT = 64 << 10, MOST = INT32_MAX };

struct entry { /* "gres/gpu:h100=2", "gpu:2" or "gres:gpu" */
    struct str name, type;
    int64_t count;
};

struct entries {
    struct entry at[MAX_ENTRIES];
    unsigned count;
};

bool gres_is_none(const char *text)
{
    struct str trimmed = str_trim(str_of(text));

    return trimmed.len == 0 || str_eq_nocase(trimmed, STR("none"));
}

/* "2", or "2k": Slurm takes a letter for a power of 1,024. */
static bool read_count(struct str text, int64_t *ret_count)
{
    static const char units[] = "kmgtp";
    const char *unit = text.len > 1 ? strchr(units, text.at[text.len - 1] | 0x20) : NULL;
    uint64_t number;

    if (str_to_u64(str_sub(text, 0, text.len - (unit && *unit)), 0, MOST, &number, NULL) < 0)
        return false;
    *ret_count = (int64_t)number;
    for (const char *at = units; unit && at <= unit && *ret_count <= MOST; at++)
        *ret_count *= 1024;
    return true;
}

static struct entry read_entry(struct str text)
{
    struct entry entry = { .type = STR(""), .count = 1 };
    struct str rest, before, count;

    if (str_starts(text, STR("gres/")) || str_starts(text, STR("gres:")))
        text = str_sub(text, 5, text.len);
    if (str_cut(text, '=', &before, &count)) {
        if (!read_count(count, &entry.count))
            entry.count = 0;
        text = before;
    }
    if (!str_cut(text, ':', &entry.name, &rest)) {
        entry.name = text;
        return entry;
    }
    if (str_cut(rest, ':', &before, &count)) {
        entry.type = before;
        if (!read_count(count, &entry.count))
            entry.count = 0;
    } else if (!read_count(rest, &entry.count)) {
        entry.type = rest;
    }
    return entry;
}

static int read_entries(const char *list, struct entries *ret_entries, struct err *err)
{
    struct str rest = str_of(list), part;

    ret_entries->count = 0;
    while (str_next(&rest, ',', &part)) {
        part = str_trim(part);
        if (part.len == 0)
            continue;
        if (ret_entries->count == MAX_ENTRIES)
            return err_set(err, ERR_INVALID, "more than %d kinds of devices", MAX_ENTRIES);
        ret_entries->at[ret_entries->count++] = read_entry(part);
    }
    return 0;
}

static bool is_same(const struct entry *a, const struct entry *b)
{
    return str_eq_nocase(a->name, b->name) && str_eq_nocase(a->type, b->type);
}

/* Slurm takes one that stands later in its place. */
static bool is_replaced(const struct entries *said, unsigned at)
{
    for (unsigned i = at + 1; i < said->count; i++)
        if (is_same(&said->at[i], &said->at[at]))
            return true;
    return false;
}

/* Raises the last entry that can serve the need; a need without a type is served by every type. */
static bool raise_entry(struct entries *said, const struct entry *need)
{
    struct entry *last = NULL;
    int64_t count = 0;

    for (unsigned i = 0; i < said->count; i++) {
        struct entry *entry = &said->at[i];

        if (is_replaced(said, i) || !str_eq_nocase(entry->name, need->name) ||
            (need->type.len > 0 && !str_eq_nocase(entry->type, need->type)))
            continue;
        count += entry->count;
        last = entry;
    }
    if (count >= need->count)
        return false;
    if (last)
        last->count += need->count - count;
    else if (said->count < MAX_ENTRIES)
        said->at[said->count++] = *need;
    return true;
}

static int raise_gres(struct job_desc *desc, const struct at_least *least, struct arena *arena,
                      struct err *err)
{
    auto_buf struct buf text = { .max = MAX_TEXT };
    struct entries said, needs;
    bool lacks = false;

    if (read_entries(desc->gres, &said, err) < 0 || read_entries(least->gres, &needs, err) < 0)
        return -err->class;
    for (unsigned i = 0; i < needs.count; i++) {
        needs.at[i].count *= least->per_node;
        lacks |= raise_entry(&said, &needs.at[i]);
    }
    if (!lacks)
        return 0;
    for (unsigned i = 0; i < said.count; i++)
        if (!is_replaced(&said, i))
            buf_printf(&text, "%sgres/" STR_FMT "%s" STR_FMT "=%" PRId64, text.len > 0 ? "," : "",
                       STR_ARG(said.at[i].name), said.at[i].type.len > 0 ? ":" : "",
                       STR_ARG(said.at[i].type), said.at[i].count);
    if (buf_check(&text, "devices", NULL) < 0)
        return err_set(err, ERR_INVALID, "the list of devices is too long");
    desc->gres = arena_strdup(arena, buf_text(&text));
    return 0;
}

int at_least_raise(struct job_desc *desc, const struct at_least *least, struct arena *arena,
                   struct err *err)
{
    int64_t memory = least->memory * least->per_node; /* the first has at most 43 bits */

    if (least->cpus > 0 && desc->cpus_per_task < least->cpus)
        desc->cpus_per_task = least->cpus;
    if (memory > 0 && desc->memory != 0 && desc->memory < memory) /* 0: all of the node */
        desc->memory = memory;
    if (desc->gres_per_task[0] || !least->gres[0])
        return 0;
    return raise_gres(desc, least, arena, err);
}
