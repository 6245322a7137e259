/* ui_view.c - rows of the page, kept as text and compared. */
#include "exporter/ui_view.h"

#include "base/mem.h"
#include "codec/json.h"
#include "exporter/ui_rows.h"

#include <inttypes.h>
#include <stdio.h>

struct holder {
    unsigned index;
    char *text;    /* the members of its row */
    uint64_t look; /* the last one that found it on a node */
};

struct node_row {
    char *head;    /* what never changes: name, cores, gpus, partition */
    char *held;    /* cores held, gpus held */
    bool is_exact; /* these are the very cores */
    bool by_jobs;  /* the jobs say who holds them, not the node alone */
    char *text;    /* state, held, reason, is_exact */
    bool changed;  /* by the last look */
};

/* A member of the message that is sent whole when it changed. */
struct member {
    char *text;
    bool changed;
};

enum { MEMBER_QUEUE, MEMBER_TOTALS, MEMBER_PARTITIONS, MEMBER_AGES, MEMBERS };

static const char *const member_names[MEMBERS] = { "queue", "totals", "partitions", "ages" };

struct ui_view {
    const struct layouts *layouts;
    bool shows_users, hides_jobs; /* at the last look */
    struct map holders;           /* struct holder by job, in order of their indexes */
    size_t holders_told;
    size_t holders_live; /* found on nodes by the last look that had both */
    uint64_t looks;      /* which had both */
    struct node_row *nodes;
    size_t node_count;
    uint64_t nodes_hash; /* of their names, in order */
    struct member members[MEMBERS];
    char *about; /* cluster, names, hidden */
    int64_t sampled_s;
    bool has_sample; /* the last look added one */
    double samples[UI_VIEW_SAMPLES][1 + TALLY_HOLDERS];
    size_t sample_count, sample_first;
};

static void free_holder(void *value)
{
    struct holder *holder = value;

    mem_free(holder->text);
    mem_free(holder);
}

struct ui_view *ui_view_new(const struct layouts *layouts)
{
    struct ui_view *view = mem_alloc(sizeof(*view));

    view->layouts = layouts;
    map_init(&view->holders,
             &(struct map_options){ .max = 2 * UI_VIEW_MAX_HOLDERS, .free_value = free_holder });
    return view;
}

static void forget_nodes(struct ui_view *view)
{
    for (size_t i = 0; view->nodes && i < view->node_count; i++) {
        mem_free(view->nodes[i].head);
        mem_free(view->nodes[i].held);
        mem_free(view->nodes[i].text);
    }
    mem_free(view->nodes);
    view->nodes = NULL;
    view->node_count = 0;
}

void ui_view_free(struct ui_view *view)
{
    if (!view)
        return;
    forget_nodes(view);
    for (unsigned i = 0; i < MEMBERS; i++)
        mem_free(view->members[i].text);
    mem_free(view->about);
    map_done(&view->holders);
    mem_free(view);
}

/* Takes the text over; true when it is another. */
static bool take_text(char **kept, const struct buf *text)
{
    if (*kept && strcmp(*kept, buf_text(text)) == 0)
        return false;
    mem_free(*kept);
    *kept = mem_strdup(buf_text(text));
    return true;
}

/* ---- holders ---- */

static struct holder *add_holder(struct ui_view *view, const char *key, const char *text)
{
    struct holder *holder = mem_alloc(sizeof(*holder));

    *holder = (struct holder){ .index = (unsigned)view->holders.count, .text = mem_strdup(text) };
    if (map_put(&view->holders, str_of(key), holder, NULL) < 0) {
        free_holder(holder);
        return NULL;
    }
    return map_get(&view->holders, str_of(key));
}

static unsigned index_of(struct ui_view *view, struct holder *holder)
{
    if (!holder) /* there are too many */
        return 0;
    view->holders_live += holder->look != view->looks;
    holder->look = view->looks;
    return holder->index;
}

static unsigned holder_index(struct ui_view *view, const struct tally *tally,
                             const struct slurm_job *job)
{
    struct holder *holder;
    auto_buf struct buf text = { .max = UI_VIEW_MAX_TEXT };
    char key[64];

    (void)snprintf(key, sizeof(key), "%" PRId64 " %" PRId64, job->id, job->submit_time);
    holder = map_get(&view->holders, str_of(key));
    if (holder)
        return index_of(view, holder);
    buf_printf(&text, "\"%s\",", tally_holder_of(job) == TALLY_POD ? "p" : "j");
    ui_write_name(job, &text);
    buf_printf(&text, ",%" PRId64 ",", job->id);
    json_escape(&text, str_of(ui_user(tally, job)));
    buf_printf(&text, ",%" PRId64 ",%" PRId64, job->submit_time, job->start_time);
    return index_of(view, add_holder(view, key, buf_text(&text)));
}

/* Who holds what is in use while the jobs are not known. */
static unsigned unnamed_index(struct ui_view *view)
{
    static const char key[] = "not shown";
    struct holder *holder = map_get(&view->holders, str_of(key));

    if (!holder)
        holder = add_holder(view, key, "\"j\",\"not shown\",0,\"\",0,0");
    return index_of(view, holder);
}

/* ---- nodes ---- */

static const char state_letters[TALLY_NODE_STATES] = {
    [TALLY_NODE_IDLE] = 'i',       [TALLY_NODE_MIXED] = 'm',    [TALLY_NODE_ALLOCATED] = 'a',
    [TALLY_NODE_COMPLETING] = 'c', [TALLY_NODE_PLANNED] = 'p',  [TALLY_NODE_RESERVED] = 'r',
    [TALLY_NODE_MAINT] = 't',      [TALLY_NODE_DRAINING] = 'g', [TALLY_NODE_DRAINED] = 'd',
    [TALLY_NODE_DOWN] = 'x',       [TALLY_NODE_FAIL] = 'f',     [TALLY_NODE_POWERED_DOWN] = 'o',
    [TALLY_NODE_POWERING] = 'w',   [TALLY_NODE_UNKNOWN] = 'u',
};

/* The cores, or the GPUs, of one node, while they are given to their holders. */
struct cells {
    int *holder;         /* -1: nobody's */
    int64_t count, next; /* next: all before it are somebody's */
};

static struct cells cells_new(const struct tally *tally, int64_t count)
{
    struct cells cells = { .count = count > 0 && count <= UI_VIEW_MAX_CELLS ? count : 0 };

    cells.holder = arena_alloc_array(tally->arena, (size_t)cells.count + 1, sizeof(int));
    for (int64_t i = 0; i < cells.count; i++)
        cells.holder[i] = -1;
    return cells;
}

/* wide: cells that a bit of the map stands for (the threads of a core). */
static void give_these(struct cells *cells, const struct bitmap *map, int64_t wide, int holder)
{
    for (size_t bit = 0; bitmap_next(map, bit, &bit); bit++)
        for (int64_t i = 0; i < wide; i++)
            if ((int64_t)bit * wide + i < cells->count)
                cells->holder[(int64_t)bit * wide + i] = holder;
}

static void give_some(struct cells *cells, int64_t wanted, int holder)
{
    for (; wanted > 0 && cells->next < cells->count; cells->next++) {
        if (cells->holder[cells->next] >= 0)
            continue;
        cells->holder[cells->next] = holder;
        wanted--;
    }
}

static void write_cells(const struct cells *cells, struct buf *out)
{
    for (int64_t first = 0, end; first < cells->count; first = end) {
        for (end = first + 1; end < cells->count && cells->holder[end] == cells->holder[first];)
            end++;
        if (cells->holder[first] >= 0)
            buf_printf(out, "%s%" PRId64 "-%" PRId64 ":%d", out->len > 0 ? "," : "", first, end - 1,
                       cells->holder[first]);
    }
}

struct holding { /* all cells of one node */
    const struct tally_node *node;
    struct cells cores, gpus;
    bool is_exact;
};

/* True: Slurm says which, or there is no choice. */
static bool give_exactly(const struct ui_view *view, struct holding *to,
                         const struct slurm_job *job, const struct tres *held, int holder)
{
    const struct layout_node *known =
        view->layouts ? layouts_find(view->layouts, job, to->node->node->name) : NULL;
    int64_t wide;

    if (held->nodes > 0 && held->cpus / held->nodes >= to->cores.count && to->cores.next == 0) {
        give_some(&to->cores, to->cores.count, holder);
        give_some(&to->gpus, ui_gpus(held) / held->nodes, holder);
        return true;
    }
    if (!known || known->core_count == 0)
        return false;
    wide = to->cores.count / (int64_t)known->core_count;
    give_these(&to->cores, &known->cores, wide > 0 ? wide : 1, holder);
    give_these(&to->gpus, &known->gpus, 1, holder);
    return true;
}

/* First the jobs whose cores are known; then the others, pods first, from the left. */
static void give_cells(struct ui_view *view, const struct tally *tally, struct holding *to,
                       bool exactly, enum tally_holder kind)
{
    struct slurm_index_walk walk =
        slurm_cache_by(tally->view->jobs, SLURM_JOBS_BY_NODE, str_of(to->node->node->name));
    const struct slurm_object *object;

    while ((object = slurm_index_next(&walk))) {
        const struct slurm_job *job = slurm_job_of(object);
        int holder = (int)holder_index(view, tally, job);
        struct tres held;

        tally_allocation_of(job, &held);
        if (exactly) {
            to->is_exact = give_exactly(view, to, job, &held, holder) && to->is_exact;
        } else if (tally_holder_of(job) == kind && held.nodes > 0 &&
                   !(view->layouts && layouts_find(view->layouts, job, to->node->node->name))) {
            give_some(&to->cores, held.cpus / held.nodes, holder);
            give_some(&to->gpus, ui_gpus(&held) / held.nodes, holder);
        }
    }
}

static void give_unnamed(struct ui_view *view, struct holding *to)
{
    int64_t cores = to->node->node->alloc_cpus, gpus = ui_gpus(&to->node->used);

    to->is_exact = false;
    if (cores > 0 || gpus > 0) {
        give_some(&to->cores, cores, (int)unnamed_index(view));
        give_some(&to->gpus, gpus, (int)unnamed_index(view));
    }
}

static void look_at_holders(struct ui_view *view, const struct tally *tally,
                            const struct tally_node *node, struct node_row *row)
{
    auto_buf struct buf cores = { .max = UI_VIEW_MAX_TEXT }, gpus = { .max = UI_VIEW_MAX_TEXT };
    auto_buf struct buf held = { .max = UI_VIEW_MAX_TEXT };
    struct holding holding = { .node = node,
                               .cores = cells_new(tally, node->node->cpus),
                               .gpus = cells_new(tally, ui_gpus(&node->has)),
                               .is_exact = true };

    if (tally->view->jobs) {
        give_cells(view, tally, &holding, true, TALLY_POD);
        for (enum tally_holder kind = TALLY_POD; !holding.is_exact && kind <= TALLY_JOB; kind++)
            give_cells(view, tally, &holding, false, kind);
    } else {
        give_unnamed(view, &holding);
    }
    write_cells(&holding.cores, &cores);
    write_cells(&holding.gpus, &gpus);
    buf_printf(&held, "\"%s\",\"%s\"", buf_text(&cores), buf_text(&gpus));
    (void)take_text(&row->held, &held);
    row->is_exact = holding.is_exact;
    row->by_jobs = tally->view->jobs;
}

static void write_node(const struct tally_node *node, const struct node_row *row, struct buf *out)
{
    buf_printf(out, "\"%c\",%s,", state_letters[node->state], row->held);
    json_escape(out, str_of(node->node->reason));
    buf_printf(out, ",%d", row->is_exact);
}

static void write_node_head(const struct tally_node *node, struct buf *out)
{
    struct str partitions = str_of(node->node->partitions), first = STR("");

    (void)str_next(&partitions, ',', &first);
    json_escape(out, str_of(node->node->name));
    buf_printf(out, ",%" PRId64 ",%" PRId64 ",", node->node->cpus, ui_gpus(&node->has));
    json_escape(out, first);
}

/* True when the list of nodes is another than before. */
static bool take_node_list(struct ui_view *view, const struct tally *tally)
{
    static const uint64_t secret[2] = { 1, 2 };
    size_t count = tally->node_count < UI_VIEW_MAX_NODES ? tally->node_count : UI_VIEW_MAX_NODES;
    uint64_t hash = count;
    auto_buf struct buf text = { .max = UI_VIEW_MAX_TEXT };

    for (size_t i = 0; i < count; i++) {
        buf_clear(&text);
        write_node_head(&tally->nodes[i], &text);
        hash = hash * 31 + map_hash(buf_str(&text), secret);
    }
    if (view->nodes && hash == view->nodes_hash && count == view->node_count)
        return false;
    forget_nodes(view);
    view->nodes = mem_alloc_array(count + 1, sizeof(*view->nodes));
    view->node_count = count;
    view->nodes_hash = hash;
    for (size_t i = 0; i < count; i++) {
        buf_clear(&text);
        write_node_head(&tally->nodes[i], &text);
        view->nodes[i].head = mem_strdup(buf_text(&text));
    }
    return true;
}

static bool look_at_nodes(struct ui_view *view, const struct tally *tally)
{
    bool is_new = take_node_list(view, tally);
    auto_buf struct buf text = { .max = UI_VIEW_MAX_TEXT };

    for (size_t i = 0; i < view->node_count; i++) {
        struct node_row *row = &view->nodes[i];

        if (tally->view->jobs || !row->by_jobs) /* else stale jobs are the best that is known */
            look_at_holders(view, tally, &tally->nodes[i], row);
        buf_clear(&text);
        write_node(&tally->nodes[i], row, &text);
        row->changed = take_text(&row->text, &text);
    }
    return is_new;
}

static void look_at_member(struct ui_view *view, unsigned index, const struct tally *tally,
                           void (*write)(const struct tally *tally, struct buf *out))
{
    auto_buf struct buf text = { .max = UI_VIEW_MAX_TEXT };

    write(tally, &text);
    view->members[index].changed = take_text(&view->members[index].text, &text);
}

/* ---- the last day ---- */

static void take_sample(struct ui_view *view, const struct tally *tally)
{
    double *sample;

    view->has_sample = tally->view->jobs && tally->view->nodes &&
                       tally->view->now_s >= view->sampled_s + UI_VIEW_SAMPLE_S;
    if (!view->has_sample)
        return;
    view->sampled_s = tally->view->now_s;
    sample = view->samples[(view->sample_first + view->sample_count) % UI_VIEW_SAMPLES];
    if (view->sample_count < UI_VIEW_SAMPLES)
        view->sample_count++;
    else
        view->sample_first = (view->sample_first + 1) % UI_VIEW_SAMPLES;
    sample[0] = (double)tally->view->now_s;
    for (unsigned i = 0; i < TALLY_HOLDERS; i++)
        sample[1 + i] = tally->cluster.cpus[i];
}

static void write_sample(const struct ui_view *view, size_t index, struct buf *out)
{
    const double *sample = view->samples[(view->sample_first + index) % UI_VIEW_SAMPLES];

    buf_printf(out, "[%.0f,%.0f,%.0f,%.0f,%.0f]", sample[0], sample[1], sample[2], sample[3],
               sample[4]);
}

/* ---- looks and messages ---- */

/* Texts that are kept name who may be hidden now. True: they are dropped. */
static bool forget_names(struct ui_view *view, const struct tally *tally)
{
    bool hides_jobs = tally->view->health && tally->view->health->hides[HIDES_JOBS];

    if (view->shows_users == tally->view->shows_users && view->hides_jobs == hides_jobs)
        return false;
    view->shows_users = tally->view->shows_users;
    view->hides_jobs = hides_jobs;
    map_clear(&view->holders);
    forget_nodes(view); /* their rows say which holder */
    mem_free(view->members[MEMBER_QUEUE].text);
    view->members[MEMBER_QUEUE].text = NULL;
    return true;
}

/* Only a look that writes all rows anew may give holders other indexes. True: they have. */
static bool drop_old_holders(struct ui_view *view, const struct tally *tally)
{
    size_t live = view->holders_live, count = view->holders.count;

    if (!tally->view->jobs || !tally->view->nodes)
        return false;
    view->looks++;
    view->holders_live = 0;
    if (count <= UI_VIEW_MAX_HOLDERS && count <= 2 * live + UI_VIEW_OLD_HOLDERS)
        return false;
    map_clear(&view->holders);
    return true;
}

bool ui_view_look(struct ui_view *view, const struct tally *tally)
{
    bool is_new = drop_old_holders(view, tally);
    auto_buf struct buf about = { .max = UI_VIEW_MAX_TEXT };

    if (forget_names(view, tally))
        is_new = true;
    view->holders_told = view->holders.count;
    for (unsigned i = 0; i < MEMBERS; i++)
        view->members[i].changed = false;
    if (tally->view->nodes && look_at_nodes(view, tally))
        is_new = true;
    if (tally->view->jobs)
        look_at_member(view, MEMBER_QUEUE, tally, ui_write_queue);
    if (tally->view->jobs && tally->view->nodes) {
        look_at_member(view, MEMBER_TOTALS, tally, ui_write_totals);
        look_at_member(view, MEMBER_PARTITIONS, tally, ui_write_partitions);
    }
    look_at_member(view, MEMBER_AGES, tally, ui_write_ages);
    ui_write_about(tally, &about);
    if (take_text(&view->about, &about))
        is_new = true;
    take_sample(view, tally);
    return is_new;
}

void ui_view_look_at_ages(struct ui_view *view, const struct tally *tally)
{
    view->holders_told = view->holders.count;
    for (unsigned i = 0; i < MEMBERS; i++)
        view->members[i].changed = false;
    for (size_t i = 0; i < view->node_count; i++)
        view->nodes[i].changed = false;
    view->has_sample = false;
    look_at_member(view, MEMBER_AGES, tally, ui_write_ages);
}

static void write_members(const struct ui_view *view, bool only_changed, struct buf *out)
{
    for (unsigned i = 0; i < MEMBERS; i++)
        if (view->members[i].text && (!only_changed || view->members[i].changed))
            buf_printf(out, ",\"%s\":%s", member_names[i], view->members[i].text);
}

void ui_view_write_snapshot(const struct ui_view *view, struct buf *out)
{
    bool is_first = true;

    buf_printf(out, "{\"v\":1,%s,\"holders\":[", view->about ? view->about : "\"cluster\":\"\"");
    map_each (item, &view->holders) {
        buf_printf(out, "%s[%s]", is_first ? "" : ",", ((const struct holder *)item->value)->text);
        is_first = false;
    }
    buf_add_text(out, "],\"nodes\":[");
    for (size_t i = 0; i < view->node_count; i++)
        buf_printf(out, "%s[%s,%s]", i > 0 ? "," : "", view->nodes[i].head, view->nodes[i].text);
    buf_add_text(out, "],\"history\":[");
    for (size_t i = 0; i < view->sample_count; i++) {
        if (i > 0)
            buf_add_char(out, ',');
        write_sample(view, i, out);
    }
    buf_add_char(out, ']');
    write_members(view, false, out);
    buf_add_char(out, '}');
}

void ui_view_write_delta(const struct ui_view *view, struct buf *out)
{
    bool is_first = true;

    buf_add_text(out, "{\"h\":[");
    map_each (item, &view->holders) {
        const struct holder *holder = item->value;

        if (holder->index < view->holders_told)
            continue;
        buf_printf(out, "%s[%u,%s]", is_first ? "" : ",", holder->index, holder->text);
        is_first = false;
    }
    buf_add_text(out, "],\"n\":[");
    is_first = true;
    for (size_t i = 0; i < view->node_count; i++) {
        if (!view->nodes[i].changed)
            continue;
        buf_printf(out, "%s[%zu,%s]", is_first ? "" : ",", i, view->nodes[i].text);
        is_first = false;
    }
    buf_add_char(out, ']');
    write_members(view, true, out);
    if (view->has_sample) {
        buf_add_text(out, ",\"sample\":");
        write_sample(view, view->sample_count - 1, out);
    }
    buf_add_char(out, '}');
}
