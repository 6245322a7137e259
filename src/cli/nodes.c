/* nodes.c - nodes by their state: how many, which, what is in use by whom, and why they do not
 * work.
 */
#include "cli/show.h"
#include "cli/text.h"
#include "codec/hostlist.h"

#include <inttypes.h>

enum { MAX_STATES = 32, MAX_REASONS = 3, MAX_NAMES_TEXT = 60 };

struct state_row {
    struct str state;
    struct str *names;
    size_t count;
    double pod, job, all;
    int64_t gpus, gpus_used;
    struct {
        struct str text;
        size_t count;
    } reasons[MAX_REASONS];
    unsigned reason_count;
};

struct state_rows {
    struct state_row rows[MAX_STATES];
    unsigned count;
};

static struct state_row *find_row(struct state_rows *rows, struct str state, struct arena *arena,
                                  size_t most)
{
    for (unsigned i = 0; i < rows->count; i++)
        if (str_eq(rows->rows[i].state, state))
            return &rows->rows[i];
    if (rows->count == MAX_STATES)
        return &rows->rows[MAX_STATES - 1];
    rows->rows[rows->count] =
        (struct state_row){ .state = state,
                            .names = arena_alloc_array(arena, most, sizeof(struct str)) };
    return &rows->rows[rows->count++];
}

static void add_reason(struct state_row *row, struct str reason)
{
    for (unsigned i = 0; i < row->reason_count; i++) {
        if (str_eq(row->reasons[i].text, reason)) {
            row->reasons[i].count++;
            return;
        }
    }
    if (reason.len > 0 && row->reason_count < MAX_REASONS) {
        row->reasons[row->reason_count].text = reason;
        row->reasons[row->reason_count++].count = 1;
    }
}

bool show_nodes_has(const struct json *node, const struct show_options *options)
{
    return !options->partition[0] ||
           text_lists(json_str(json_get(node, "partitions")), str_of(options->partition));
}

static void add_node(struct state_rows *rows, const struct json *node, struct arena *arena,
                     size_t most)
{
    const struct json *cpus = json_get(node, "cpus");
    struct state_row *row = find_row(rows, json_str(json_get(node, "state")), arena, most);
    double pod = json_f64_or(json_get(cpus, "pod"), 0), job = json_f64_or(json_get(cpus, "job"), 0);

    row->names[row->count++] = json_str(json_get(node, "name"));
    row->pod += pod;
    row->job += job;
    row->all += pod + job + json_f64_or(json_get(cpus, "idle"), 0) +
                json_f64_or(json_get(cpus, "unusable"), 0);
    row->gpus += show_count_gpus(json_get(node, "gres"));
    row->gpus_used += show_count_gpus(json_get(node, "gresUsed"));
    add_reason(row, json_str(json_get(node, "reason")));
}

static const char *names_of(const struct state_row *row, struct arena *arena)
{
    auto_buf struct buf text;

    buf_init(&text, HOSTLIST_MAX_TEXT);
    if (hostlist_fold(row->names, row->count, &text, NULL) < 0 || text.overflowed)
        return "-";
    if (text.len > MAX_NAMES_TEXT)
        return arena_printf(arena, "%.*s...", MAX_NAMES_TEXT, text.data);
    return text_plain(arena, buf_str(&text));
}

static const char *reasons_of(const struct state_row *row, struct arena *arena)
{
    auto_buf struct buf text;

    buf_init(&text, 1024);
    for (unsigned i = 0; i < row->reason_count; i++)
        buf_printf(&text, "%s%s (%zu)", i > 0 ? ", " : "", text_plain(arena, row->reasons[i].text),
                   row->reasons[i].count);
    return row->reason_count > 0 ? arena_strdup(arena, buf_text(&text)) : "-";
}

void show_nodes(const struct json *nodes, const struct show_options *options, struct arena *arena,
                struct buf *out)
{
    const struct json *items = json_get(nodes, "items"), *node;
    struct json_iter iter = json_iter(items);
    struct state_rows *rows = arena_alloc(arena, sizeof(*rows));
    struct text_table table;
    size_t count = 0;

    while (json_next_item(&iter, &node)) {
        if (!show_nodes_has(node, options))
            continue;
        add_node(rows, node, arena, json_len(items));
        count++;
    }
    text_table_init(&table, arena, 8);
    text_table_row(&table, "STATE", "NODES", "NAMES", "CPU USED", "POD", "JOB", "GPU USED", "WHY");
    for (unsigned i = 0; i < rows->count; i++) {
        const struct state_row *row = &rows->rows[i];

        text_table_row(
            &table, text_plain(arena, row->state), arena_printf(arena, "%zu", row->count),
            names_of(row, arena), arena_printf(arena, "%.0f/%.0f", row->pod + row->job, row->all),
            arena_printf(arena, "%.0f", row->pod), arena_printf(arena, "%.0f", row->job),
            row->gpus > 0 ? arena_printf(arena, "%" PRId64 "/%" PRId64, row->gpus_used, row->gpus)
                          : "-",
            reasons_of(row, arena));
    }
    if (count > 0)
        text_table_write(&table, !options->without_head, out);
    buf_printf(out, "%zu nodes", count);
    if (json_exists(json_get(nodes, "ageSeconds")))
        buf_printf(out, "; data %.0f s old", json_f64_or(json_get(nodes, "ageSeconds"), 0));
    buf_add_char(out, '\n');
}
