/* queue.c - who waits, for what, why, and how long still. */
#include "cli/show.h"
#include "cli/text.h"
#include "slurm/reason.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

struct waiting {
    const struct json *job;
    int64_t priority, id;
};

static int compare(const void *a, const void *b)
{
    const struct waiting *left = a, *right = b;

    if (left->priority != right->priority)
        return left->priority > right->priority ? -1 : 1;
    return left->id < right->id ? -1 : left->id > right->id;
}

bool show_queue_has(const struct json *job, const struct show_options *options)
{
    return str_is(json_str(json_get(job, "state")), "pending") &&
           (!options->partition[0] ||
            text_lists(json_str(json_get(job, "partition")), str_of(options->partition))) &&
           (!options->user[0] || str_is(json_str(json_get(job, "user")), options->user));
}

int64_t show_count_gpus(const struct json *gres)
{
    struct json_iter iter = json_iter(gres);
    const struct json *count;
    struct str name;
    int64_t sum = 0;

    while (json_next_member(&iter, &name, &count))
        if (str_is(name, "gpu") || str_starts(name, STR("gpu:")))
            sum += json_i64_or(count, 0);
    return sum;
}

/* What the reason means, with Slurm's own word where somebody has to act. */
static const char *words_of(struct arena *arena, const struct json *job)
{
    const char *word = text_plain(arena, json_str(json_get(job, "reason")));
    struct slurm_reason reason =
        slurm_reason_of(word, str_is(json_str(json_get(job, "class")), "hold"));

    return reason.actor[0] ? arena_printf(arena, "%s (%s)", reason.text, word) : reason.text;
}

static const char *who_of(struct arena *arena, const struct json *job)
{
    struct str user = json_str_or(json_get(job, "user"), STR("-"));
    struct str account = json_str(json_get(job, "account"));

    if (account.len == 0)
        return text_plain(arena, user);
    return arena_printf(arena, "%s/%s", text_plain(arena, user), text_plain(arena, account));
}

static const char *what_of(struct arena *arena, const struct json *job)
{
    const struct json *pod = json_get(job, "pod");

    if (json_exists(pod))
        return arena_printf(arena, "pod %s", text_plain(arena, json_str(pod)));
    return arena_printf(arena, "job %s", text_plain(arena, json_str(json_get(job, "name"))));
}

static void add_row(struct text_table *table, const struct json *job, size_t *rank,
                    const struct show_options *options)
{
    struct arena *arena = table->arena;
    struct str class = json_str(json_get(job, "class"));
    bool is_ranked = !str_is(class, "never") && !str_is(class, "hold");
    int64_t since_s = text_seconds(json_str(json_get(job, "eligible")));
    int64_t start_s = text_seconds(json_str(json_get(job, "expectedStart")));

    if (since_s == 0)
        since_s = text_seconds(json_str(json_get(job, "submitted")));
    text_table_row(table, is_ranked ? arena_printf(arena, "%zu", ++*rank) : "-",
                   arena_printf(arena, "%" PRId64, json_i64_or(json_get(job, "id"), 0)),
                   what_of(arena, job), who_of(arena, job),
                   arena_printf(arena, "%" PRId64, json_i64_or(json_get(job, "nodes"), 0)),
                   arena_printf(arena, "%" PRId64, json_i64_or(json_get(job, "cpus"), 0)),
                   arena_printf(arena, "%" PRId64, show_count_gpus(json_get(job, "gres"))),
                   text_age(arena, options->now_s, since_s), words_of(arena, job),
                   start_s > options->now_s ? text_clock(arena, options->now_s, start_s) : "-");
}

static void write_sum(const struct waiting *jobs, size_t count, const struct json *document,
                      struct buf *out)
{
    int64_t tasks = 0;
    double nodes = 0;

    for (size_t i = 0; i < count; i++) {
        tasks += json_i64_or(json_get(jobs[i].job, "tasks"), 1);
        nodes += json_f64_or(json_get(jobs[i].job, "nodesWanted"), 0);
    }
    if (count == 0)
        buf_add_text(out, "no jobs wait");
    else
        buf_printf(out, "%" PRId64 " waiting, %.0f nodes wanted", tasks,
                   nodes > 0 ? ceil(nodes - 1e-3) : 0);
    if (json_exists(json_get(document, "ageSeconds")))
        buf_printf(out, "; data %.0f s old", json_f64_or(json_get(document, "ageSeconds"), 0));
    buf_add_char(out, '\n');
}

void show_queue(const struct json *jobs, const struct show_options *options, struct arena *arena,
                struct buf *out)
{
    const struct json *items = json_get(jobs, "items"), *job;
    struct waiting *waiting = arena_alloc_array(arena, json_len(items) + 1, sizeof(*waiting));
    struct json_iter iter = json_iter(items);
    struct text_table table;
    size_t count = 0, rank = 0;

    while (json_next_item(&iter, &job))
        if (show_queue_has(job, options))
            waiting[count++] =
                (struct waiting){ .job = job,
                                  .priority = json_i64_or(json_get(job, "priority"), 0),
                                  .id = json_i64_or(json_get(job, "id"), 0) };
    qsort(waiting, count, sizeof(*waiting), compare);
    text_table_init(&table, arena, 10);
    text_table_row(&table, "#", "JOB", "WHAT", "WHO", "NODES", "CPU", "GPU", "WAITS", "REASON",
                   "STARTS");
    for (size_t i = 0; i < count; i++)
        add_row(&table, waiting[i].job, &rank, options);
    if (count > 0)
        text_table_write(&table, !options->without_head, out);
    write_sum(waiting, count, jobs, out);
}
