/* fuzz_job_desc.c - any annotations, one `suffix=value` a line, are refused with a reason that
 * names the annotation, or give an ask that can be written as JSON, with numbers that Slurm can
 * hold. */
#include "bridge/unit/job_desc.h"
#include "bridge/world/names.h"

#include <stdlib.h>

enum { MAX_PAIRS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static unsigned read_pairs(struct arena *arena, struct str text, struct kube_pair *pairs)
{
    struct str line, suffix, value;
    unsigned count = 0;

    while (count < MAX_PAIRS && str_next(&text, '\n', &line))
        if (str_cut(line, '=', &suffix, &value)) {
            char *key = arena_alloc(arena, sizeof(BRIDGE_ANNOTATION_PREFIX) + suffix.len);
            size_t length = sizeof(BRIDGE_ANNOTATION_PREFIX) - 1;

            memcpy(key, BRIDGE_ANNOTATION_PREFIX, length);
            memcpy(key + length, suffix.at, suffix.len);
            pairs[count++] = (struct kube_pair){ { key, length + suffix.len }, value };
        }
    return count;
}

static void check_number(int64_t number, int64_t least, int64_t most)
{
    must(number == -1 || (number >= least && number <= most));
}

static void check(const struct job_desc *desc)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *doc = NULL;
    auto_buf struct buf text = { .max = 16 << 20 };

    check_number(desc->min_nodes, 1, INT32_MAX);
    check_number(desc->max_nodes, 1, INT32_MAX);
    check_number(desc->time_limit, 1, INT32_MAX);
    check_number(desc->priority, 0, INT32_MAX);
    check_number(desc->cpus_per_task, 1, JOB_DESC_MAX_CPUS);
    check_number(desc->memory, 0, INT64_MAX >> 20);           /* 0: all of the node */
    check_number(desc->begin_time, 1, INT64_C(253402300799)); /* the end of the year 9999 */
    check_number(desc->deadline, 1, INT64_C(253402300799));
    check_number(desc->segment_size, 1, 65533);
    check_number(desc->switches, 1, INT32_MAX);
    check_number(desc->switch_wait, 0, INT32_MAX);
    check_number(desc->gang, 0, JOB_DESC_MAX_GANG);
    must(desc->nice >= -2147483645 && desc->nice <= 2147483645);
    must(desc->switch_wait == -1 || desc->switches > 0);
    must(desc->nodes == 1 && desc->tasks_per_node == -1 && desc->tasks == -1);
    must(desc->excluded_nodes[0] == '\0' && desc->required_nodes[0] == '\0');
    json_mut_write(job_desc_json(build, desc), &text);
    must(json_parse(buf_str(&text), text.max, &doc, NULL) == 0);
    must(json_is_array(json_get(json_root(doc), "shared")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kube_pair pairs[MAX_PAIRS];
    struct kube_pairs annotations = { .at = pairs };
    auto_arena struct arena arena;
    struct job_desc desc, again;
    struct err err = { 0 };

    arena_init(&arena, 64 << 20);
    annotations.count = read_pairs(&arena, (struct str){ (const char *)data, size }, pairs);
    job_desc_init(&desc);
    job_desc_init(&again);
    desc.created = again.created = 1800000000;
    if (job_desc_annotate(&desc, &arena, &annotations, &err) < 0) {
        must(err.class == ERR_INVALID);
        must(str_starts(str_of(err.text), STR(BRIDGE_ANNOTATION_PREFIX)));
        must(job_desc_hash(&desc) == job_desc_hash(&again));
        return 0;
    }
    check(&desc);
    must(job_desc_annotate(&again, &arena, &annotations, NULL) == 0);
    must(job_desc_hash(&desc) == job_desc_hash(&again));
    return 0;
}
