/* fuzz_slurm_layout.c - what slurmrestd says of a running job's nodes: for the live page, for the
 * bridge, and the lists of gres in it. Holds: cores fit the node, a job that cannot be read is not
 * known, and no count of a list is negative. */
#include "exporter/layouts.h"
#include "slurm/gres.h"
#include "slurm/job_layouts.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static const struct slurm_job job = { .object = { .key = "7" }, .id = 7, .sluid = "s1" };

static void check_node(const struct layouts *layouts, const struct slurm_layout_node *node)
{
    const struct layout_node *drawn = layouts_find(layouts, &job, node->name);
    struct bitmap cores;

    must(node->name[0] != '\0');
    if (slurm_layout_cores(node, &cores, NULL) < 0)
        return;
    must(cores.bits == (size_t)(node->sockets * node->cores_per_socket));
    must(!drawn || drawn->core_count > 0);
    bitmap_done(&cores);
}

static void check_layout(const struct json *body)
{
    struct clock clock;
    struct loop *loop;
    struct slurm_cache *jobs, *nodes;
    struct layouts *layouts;
    struct job_layouts *kept = job_layouts_new();
    const struct slurm_layout *layout;

    clock_init_virtual(&clock, 0);
    loop = loop_new_virtual(&clock);
    jobs = slurm_cache_new(&slurm_job_kind, loop, NULL);
    nodes = slurm_cache_new(&slurm_node_kind, loop, NULL);
    layouts = layouts_new(loop, NULL, jobs, nodes);
    (void)layouts_take(layouts, &job, body, NULL);
    if (job_layouts_put(kept, job.id, "s1", body, NULL) == 0) {
        layout = job_layouts_get(kept, &job);
        must(layout != NULL);
        for (size_t i = 0; i < layout->count; i++)
            check_node(layouts, &layout->nodes[i]);
    } else {
        must(!job_layouts_get(kept, &job));
    }
    job_layouts_free(kept);
    layouts_free(layouts);
    slurm_cache_free(jobs);
    slurm_cache_free(nodes);
    loop_free(loop);
}

static void check_gres(const char *list)
{
    struct str rest = str_of(list), name, type;
    int64_t count, first;

    while (gres_next(&rest, &name, &type, &count)) {
        must(count >= 0 && name.at >= list && name.at + name.len <= list + strlen(list));
        must(gres_total(list, name) >= 0);
    }
    if (gres_find(list, "gpu", "a", &first, &count))
        must(first >= 0 && count >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { size > 0 ? (const char *)data : "", size };
    auto_json_doc struct json_doc *doc = NULL;

    if (json_parse(text, 1 << 16, &doc, NULL) < 0)
        return 0;
    check_layout(json_root(doc));
    check_gres(json_str(json_get(json_root(doc), "gres")).at);
    return 0;
}
