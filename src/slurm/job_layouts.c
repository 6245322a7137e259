/* job_layouts.c - layouts by the id of their job.
 *
 * Holds: a layout of a job that had the id before is not given out; at most MAX_LAYOUTS are kept,
 * and what is not kept is read again. */
#include "slurm/job_layouts.h"

#include "base/map.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

enum { MAX_LAYOUTS = 1 << 17, ID_TEXT = 24 };

struct job_layouts {
    struct map jobs; /* struct entry */
};

struct entry {
    struct arena arena;
    struct slurm_layout layout;
    char *sluid;
};

static void free_entry(void *value)
{
    struct entry *entry = value;

    arena_done(&entry->arena);
    mem_free(entry->sluid);
    mem_free(entry);
}

struct job_layouts *job_layouts_new(void)
{
    struct job_layouts *layouts = mem_alloc(sizeof(*layouts));

    map_init(&layouts->jobs, &(struct map_options){ .max = MAX_LAYOUTS, .free_value = free_entry });
    return layouts;
}

void job_layouts_free(struct job_layouts *layouts)
{
    if (!layouts)
        return;
    map_done(&layouts->jobs);
    mem_free(layouts);
}

static struct str key_of(int64_t job_id, char text[ID_TEXT])
{
    (void)snprintf(text, ID_TEXT, "%" PRId64, job_id);
    return str_of(text);
}

int job_layouts_put(struct job_layouts *layouts, int64_t job_id, const char *sluid,
                    const struct json *body, struct err *err)
{
    struct entry *entry = mem_alloc(sizeof(*entry));
    char text[ID_TEXT];
    int rc;

    arena_init(&entry->arena, SLURM_LAYOUT_MEMORY);
    entry->sluid = mem_strdup(sluid);
    rc = slurm_layout_decode(&entry->arena, body, &entry->layout, err);
    if (rc == 0)
        rc = map_put(&layouts->jobs, key_of(job_id, text), entry, err);
    if (rc < 0)
        free_entry(entry);
    return rc;
}

void job_layouts_forget(struct job_layouts *layouts, int64_t job_id)
{
    char text[ID_TEXT];

    (void)map_remove(&layouts->jobs, key_of(job_id, text));
}

const struct slurm_layout *job_layouts_get(const struct job_layouts *layouts,
                                           const struct slurm_job *job)
{
    char text[ID_TEXT];
    const struct entry *entry = layouts ? map_get(&layouts->jobs, key_of(job->id, text)) : NULL;

    if (!entry || (entry->sluid[0] && job->sluid[0] && strcmp(entry->sluid, job->sluid) != 0))
        return NULL;
    return &entry->layout;
}
