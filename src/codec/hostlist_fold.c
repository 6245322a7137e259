/* hostlist_fold.c - folds many node names into the short text for them.
 *
 * Holds: folding a set and parsing the result gives the same set. */
#include "codec/hostlist_private.h"

#include "base/mem.h"

#include <stdlib.h>

/* A name taken apart: "node007" is "node", 7, 3 digits. No digits: the prefix is all. */
struct entry {
    struct str prefix;
    uint64_t number;
    size_t digits;
};

static struct entry entry_of(struct str name)
{
    size_t digits = hostlist_trailing_digits(name), cut = name.len - digits;

    return (struct entry){ str_sub(name, 0, cut), hostlist_value_of(str_sub(name, cut, name.len)),
                           digits };
}

static struct str leading_digits(struct str s)
{
    size_t count = 0;

    while (count < s.len && is_digit(s.at[count]))
        count++;
    return str_sub(s, 0, count);
}

/* Numbers inside a text are compared by value, unless one of them starts with a zero. */
static int compare_digits(struct str a, struct str b)
{
    bool by_value = a.at[0] != '0' && b.at[0] != '0';

    if (by_value && a.len != b.len)
        return a.len < b.len ? -1 : 1;
    return str_cmp(a, b);
}

static int compare_prefixes(struct str a, struct str b)
{
    while (a.len > 0 && b.len > 0) {
        struct str left = leading_digits(a), right = leading_digits(b);
        bool numbers = left.len > 0 && right.len > 0;
        int order =
            numbers ? compare_digits(left, right) : (a.at[0] > b.at[0]) - (a.at[0] < b.at[0]);

        if (order != 0)
            return order;
        a = str_sub(a, numbers ? left.len : 1, a.len);
        b = str_sub(b, numbers ? right.len : 1, b.len);
    }
    return (a.len > 0) - (b.len > 0);
}

/* By prefix, then those without a number, then shorter numbers first. Slurm's own order depends on
 * the order of its input where zero-padded and other numbers mix; this is one of its answers. */
static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    int order = compare_prefixes(a->prefix, b->prefix);

    if (order != 0)
        return order;
    if (a->digits != b->digits)
        return a->digits < b->digits ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

static size_t drop_duplicates(struct entry *entries, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (kept == 0 || compare_entries(&entries[kept - 1], &entries[i]) != 0)
            entries[kept++] = entries[i];
    return kept;
}

/* The end of the run of numbers that one range starting at `first` can stand for. */
static size_t run_end(const struct entry *entries, size_t first, size_t end)
{
    size_t i = first + 1;

    while (i < end && entries[i].number == entries[i - 1].number + 1 &&
           hostlist_written_width(entries[i].number, (unsigned)entries[first].digits) ==
               entries[i].digits)
        i++;
    return i;
}

static void write_digits(struct buf *out, const struct entry *entry)
{
    char text[HOSTLIST_MAX_DIGITS + 1];

    buf_add(out, text,
            (size_t)(hostlist_write_number(text, entry->number, (unsigned)entry->digits) - text));
}

/* The numbered names [first, end) of one prefix. */
static void fold_group(struct buf *out, const struct entry *entries, size_t first, size_t end)
{
    bool brackets = end - first > 1;

    buf_add_str(out, entries[first].prefix);
    buf_add_text(out, brackets ? "[" : "");
    for (size_t i = first; i < end;) {
        size_t next = run_end(entries, i, end);

        buf_add_text(out, i > first ? "," : "");
        write_digits(out, &entries[i]);
        if (next - i > 1) {
            buf_add_char(out, '-');
            write_digits(out, &entries[next - 1]);
        }
        i = next;
    }
    buf_add_text(out, brackets ? "]" : "");
}

static void fold_sorted(struct buf *out, const struct entry *entries, size_t count)
{
    for (size_t i = 0; i < count;) {
        size_t end = i + 1;

        while (entries[i].digits > 0 && end < count &&
               str_eq(entries[i].prefix, entries[end].prefix))
            end++;
        buf_add_text(out, i > 0 ? "," : "");
        if (entries[i].digits > 0)
            fold_group(out, entries, i, end);
        else
            buf_add_str(out, entries[i].prefix);
        i = end;
    }
}

int hostlist_fold(const struct str *names, size_t count, struct buf *out, struct err *err)
{
    auto_free struct entry *entries = mem_alloc_array(count, sizeof(*entries));

    for (size_t i = 0; i < count; i++) {
        int status = hostlist_check_name(names[i], err);

        if (status < 0)
            return status;
        entries[i] = entry_of(names[i]);
    }
    qsort(entries, count, sizeof(*entries), compare_entries);
    fold_sorted(out, entries, drop_duplicates(entries, count));
    return 0;
}
