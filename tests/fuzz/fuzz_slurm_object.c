/* fuzz_slurm_object.c - any JSON decodes into every kind or is refused; what decodes equals itself
 * and prints; keys are never empty. */
#include "slurm/object.h"
#include "slurm/sight.h"
#include "slurm/submit.h"

#include <stdlib.h>

static const struct slurm_owner owner = { .cluster = { "c0ffee", 6 }, .release = { "r", 1 } };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_job(const struct slurm_job *job)
{
    auto_buf struct buf text;
    auto_buf struct buf key;

    buf_init(&text, 1 << 20);
    buf_init(&key, SLURM_MAX_KEY);
    slurm_words_print(&slurm_job_states, &job->state, &text);
    if (slurm_submit_key(job, &owner, &key)) {
        check(key.len > 0 && !key.overflowed);
        check(slurm_submit_is_for(job, &owner, buf_str(&key)));
    }
    check(job->id > 0 || job->id == 0); /* read at all */
}

static void check_kind(const struct slurm_kind *kind, const struct json *root)
{
    auto_slurm_list struct slurm_list one = { 0 };
    auto_slurm_list struct slurm_list two = { 0 };

    if (slurm_list_decode(kind, root, &one, NULL) < 0)
        return;
    check(slurm_list_decode(kind, root, &two, NULL) == 0 && one.count == two.count);
    for (size_t i = 0; i < one.count; i++) {
        check(one.at[i]->key[0] != '\0');
        check(slurm_object_equal(one.at[i], two.at[i]));
        if (kind == &slurm_job_kind)
            check_job(slurm_job_of(one.at[i]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_json_doc struct json_doc *doc = NULL;
    auto_arena struct arena arena;
    struct slurm_layout layout;
    struct slurm_brief brief;
    struct slurm_site site;

    arena_init(&arena, SLURM_LAYOUT_MEMORY);
    if (json_parse((struct str){ (const char *)data, size }, 1 << 20, &doc, NULL) < 0)
        return 0;
    check_kind(&slurm_job_kind, json_root(doc));
    check_kind(&slurm_node_kind, json_root(doc));
    check_kind(&slurm_partition_kind, json_root(doc));
    check_kind(&slurm_reservation_kind, json_root(doc));
    check_kind(&slurm_ping_kind, json_root(doc));
    if (slurm_layout_decode(&arena, json_root(doc), &layout, NULL) == 0)
        for (size_t i = 0; i < layout.count; i++) {
            struct bitmap cores;

            if (slurm_layout_cores(&layout.nodes[i], &cores, NULL) == 0)
                bitmap_done(&cores);
        }
    slurm_brief_of(json_item(json_get(json_root(doc), "jobs"), 0), &brief, NULL);
    slurm_site_decode(json_root(doc), &site, NULL);
    return 0;
}
