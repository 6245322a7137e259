/* layouts.c - reads /resources/{id} once for each job that starts, and keeps it while it runs. */
#include "exporter/layouts.h"

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "exporter/tally.h"
#include "slurm/calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PERIOD_US = 50000, /* between two questions */
    REST_US = 5000000, /* after one that was not answered */
    MAX_GPUS = 1024,
};

struct job_layout {
    struct list link; /* while it waits to be asked about */
    int64_t id, start_time;
    struct layout_node *nodes; /* sorted by name */
    size_t count;
    bool was_retried;
};

struct layouts {
    struct loop *loop;
    struct slurm_client *client;
    struct slurm_cache *jobs;
    const struct slurm_cache *nodes;
    struct map known; /* struct job_layout by the key of the job */
    struct list waiting;
    struct slurm_call *call;
    struct job_layout *asked; /* NULL: it ended meanwhile */
    struct loop_timer timer;
    uint64_t generation;
};

/* ---- what is known ---- */

static void free_nodes(struct job_layout *layout)
{
    for (size_t i = 0; layout->nodes && i < layout->count; i++) {
        mem_free(layout->nodes[i].name);
        bitmap_done(&layout->nodes[i].cores);
        bitmap_done(&layout->nodes[i].gpus);
    }
    mem_free(layout->nodes);
    layout->nodes = NULL;
    layout->count = 0;
}

static void free_layout(void *value)
{
    struct job_layout *layout = value;

    list_remove(&layout->link);
    free_nodes(layout);
    mem_free(layout);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct layout_node *)a)->name, ((const struct layout_node *)b)->name);
}

/* GPUs of all types have one numbering. */
static void take_gpus(const struct slurm_layout_node *from, struct bitmap *gpus)
{
    for (size_t i = 0; i < from->gres_count; i++) {
        struct bitmap some;

        if (strcmp(from->gres[i].name, "gpu") != 0 || !from->gres[i].index[0] ||
            bitmap_parse_ranges(str_of(from->gres[i].index), MAX_GPUS, &some, NULL) < 0)
            continue;
        bitmap_or(gpus, &some);
        bitmap_done(&some);
    }
}

static int take_node(const struct slurm_layout_node *from, struct layout_node *node,
                     struct err *err)
{
    int result = slurm_layout_cores(from, &node->cores, err);

    if (result < 0)
        return result;
    node->name = mem_strdup(from->name);
    node->core_count = (size_t)(from->sockets * from->cores_per_socket);
    bitmap_init(&node->gpus, MAX_GPUS);
    take_gpus(from, &node->gpus);
    return 0;
}

static int take_nodes(struct job_layout *layout, const struct slurm_layout *from, struct err *err)
{
    int result = 0;

    free_nodes(layout);
    layout->nodes = mem_alloc_array(from->count + 1, sizeof(*layout->nodes));
    while (result == 0 && layout->count < from->count) {
        result = take_node(&from->nodes[layout->count], &layout->nodes[layout->count], err);
        if (result == 0)
            layout->count++;
    }
    if (result < 0)
        free_nodes(layout);
    else
        qsort(layout->nodes, layout->count, sizeof(*layout->nodes), by_name);
    return result;
}

static struct job_layout *layout_of(struct layouts *layouts, const struct slurm_job *job)
{
    struct job_layout *layout = map_get(&layouts->known, str_of(job->object.key));

    if (layout && layout->start_time == job->start_time)
        return layout;
    if (layout && layout == layouts->asked)
        layouts->asked = NULL;
    layout = mem_alloc(sizeof(*layout));
    *layout = (struct job_layout){ .id = job->id, .start_time = job->start_time };
    if (map_put(&layouts->known, str_of(job->object.key), layout, NULL) == 0)
        return layout;
    mem_free(layout);
    return NULL;
}

int layouts_take(struct layouts *layouts, const struct slurm_job *job, const struct json *body,
                 struct err *err)
{
    struct job_layout *layout = layout_of(layouts, job);
    auto_arena struct arena arena;
    struct slurm_layout from;
    int result;

    arena_init(&arena, SLURM_LAYOUT_MEMORY);
    if (!layout)
        return err_set(err, ERR_TOO_BIG, "too many jobs");
    list_remove(&layout->link);
    if ((result = slurm_layout_decode(&arena, body, &from, err)) < 0 ||
        (result = take_nodes(layout, &from, err)) < 0)
        return result;
    layouts->generation++;
    return 0;
}

const struct layout_node *layouts_find(const struct layouts *layouts, const struct slurm_job *job,
                                       const char *node)
{
    const struct job_layout *layout = map_get(&layouts->known, str_of(job->object.key));
    struct layout_node wanted = { .name = mem_strdup(node) };
    const struct layout_node *found = NULL;

    if (layout && layout->start_time == job->start_time && layout->count > 0)
        found = bsearch(&wanted, layout->nodes, layout->count, sizeof(wanted), by_name);
    mem_free(wanted.name);
    return found;
}

uint64_t layouts_generation(const struct layouts *layouts)
{
    return layouts->generation;
}

/* ---- questions ---- */

static void ask_next(void *context);

static void ask_later(struct layouts *layouts, int64_t delay_us)
{
    if (layouts->client && !layouts->call && !loop_timer_is_armed(&layouts->timer) &&
        !list_is_empty(&layouts->waiting))
        loop_timer_start(layouts->loop, &layouts->timer, delay_us, ask_next, layouts);
}

static void on_answer(void *context, const struct slurm_answer *answer)
{
    struct layouts *layouts = context;
    struct job_layout *layout = layouts->asked;
    const struct slurm_object *job = NULL;
    char key[32];
    bool is_away = answer->error.class == SLURM_UNAVAILABLE || answer->error.class == SLURM_TIMEOUT;

    layouts->call = NULL;
    layouts->asked = NULL;
    if (layout) {
        (void)snprintf(key, sizeof(key), "%lld", (long long)layout->id);
        job = slurm_cache_get(layouts->jobs, key);
    }
    if (job && answer->error.class == SLURM_DONE)
        (void)layouts_take(layouts, slurm_job_of(job), answer->body, NULL);
    else if (layout && is_away && !layout->was_retried) {
        layout->was_retried = true;
        list_push_back(&layouts->waiting, &layout->link);
    }
    ask_later(layouts, is_away ? REST_US : PERIOD_US);
}

static void ask_next(void *context)
{
    struct layouts *layouts = context;
    struct list *first = list_pop_front(&layouts->waiting);

    if (!first)
        return;
    layouts->asked = list_item(first, struct job_layout, link);
    layouts->call = slurm_resources_get(layouts->client, layouts->asked->id, on_answer, layouts);
}

/* A job that has all CPUs of its first node has whole nodes. */
static bool has_whole_nodes(const struct layouts *layouts, const struct slurm_job *job)
{
    size_t end = strcspn(job->nodes, ",[");
    auto_free char *name = mem_strndup(job->nodes, end);
    const struct slurm_object *node = slurm_cache_get(layouts->nodes, name);
    struct tres held;

    tally_allocation_of(job, &held);
    return node && held.nodes > 0 && held.cpus / held.nodes >= slurm_node_of(node)->cpus;
}

static void on_change(void *context, const struct slurm_object *old,
                      const struct slurm_object *next)
{
    struct layouts *layouts = context;
    const struct slurm_job *job = slurm_job_of(next ? next : old);
    struct job_layout *layout = map_get(&layouts->known, str_of(job->object.key));
    bool runs = next && slurm_words_has(&job->state, SLURM_JOB_RUNNING) && job->nodes[0];

    if (layout && (!runs || layout->start_time != job->start_time)) {
        if (layout == layouts->asked)
            layouts->asked = NULL;
        map_remove(&layouts->known, str_of(job->object.key));
        layout = NULL;
    }
    if (!runs || layout || !layouts->client || has_whole_nodes(layouts, job))
        return;
    layout = layout_of(layouts, job);
    if (layout)
        list_push_back(&layouts->waiting, &layout->link);
    ask_later(layouts, PERIOD_US);
}

/* ---- life ---- */

struct layouts *layouts_new(struct loop *loop, struct slurm_client *client,
                            struct slurm_cache *jobs, const struct slurm_cache *nodes)
{
    struct layouts *layouts = mem_alloc(sizeof(*layouts));

    layouts->loop = loop;
    layouts->client = client;
    layouts->jobs = jobs;
    layouts->nodes = nodes;
    list_init(&layouts->waiting);
    map_init(&layouts->known,
             &(struct map_options){ .max = SLURM_MAX_LIST, .free_value = free_layout });
    slurm_cache_listen(jobs, on_change, layouts);
    return layouts;
}

void layouts_free(struct layouts *layouts)
{
    if (!layouts)
        return;
    slurm_call_cancel(layouts->call);
    loop_timer_stop(&layouts->timer);
    map_done(&layouts->known);
    mem_free(layouts);
}
