/* fuzz_job_marks.c - what any Slurm user can write into a job: {"comment","extra","external"}.
 *
 * Holds: a job whose comment names another cluster is never ours, nor is one that is no external
 * job; a key that is read is written as it was; a comment of ours that is changed stays ours, with
 * the same key. */
#include "slurm/submit.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

#define CLUSTER STR("c0ffee")

static void check_key(struct str text)
{
    auto_buf struct buf out = { .max = 2 * SLURM_MAX_KEY };
    struct slurm_key key, again;

    if (!slurm_key_read(text, &key))
        return;
    must(key.unit.len > 0 && key.attempt > 0);
    slurm_key_write(&key, &out);
    must(out.overflowed || slurm_key_read(buf_str(&out), &again));
    if (!out.overflowed)
        must(str_eq(again.unit, key.unit) && str_eq(again.uid, key.uid) &&
             again.attempt == key.attempt);
}

static void check_ours(const struct slurm_job *job, const struct json *comment)
{
    auto_buf struct buf key = { .max = SLURM_MAX_KEY };
    auto_buf struct buf next = { .max = SLURM_MAX_COMMENT };
    auto_buf struct buf note = { .max = SLURM_MAX_NOTE };
    struct str pods[] = { STR("a/b") };
    struct slurm_job changed = *job;

    if (!slurm_submit_key(job, CLUSTER, &key))
        return;
    must(slurm_words_has(&job->flags, SLURM_JOB_EXTERNAL) && key.len > 0 && !key.overflowed);
    must(slurm_submit_is_for(job, CLUSTER, buf_str(&key)));
    if (json_is_string(json_get(comment, "cluster")))
        must(str_eq(json_str(json_get(comment, "cluster")), CLUSTER));
    check_key(buf_str(&key));
    (void)slurm_submit_note(job, &note);
    if (slurm_submit_comment(job, pods, 1, STR("n"), &next) < 0)
        return;
    changed.admin_comment = buf_text(&next);
    must(slurm_submit_is_for(&changed, CLUSTER, buf_str(&key)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { size > 0 ? (const char *)data : "", size };
    auto_json_doc struct json_doc *doc = NULL;
    auto_json_doc struct json_doc *comment = NULL;
    auto_buf struct buf adopted = { .max = SLURM_MAX_COMMENT };
    struct slurm_job job = { .sluid = "" };

    check_key(text);
    if (json_parse(text, 1 << 16, &doc, NULL) < 0)
        return 0;
    job.admin_comment = json_str(json_get(json_root(doc), "comment")).at;
    job.extra = json_str(json_get(json_root(doc), "extra")).at;
    if (json_bool_or(json_get(json_root(doc), "external"), true))
        job.flags.known = 1u << SLURM_JOB_EXTERNAL;
    if (job.admin_comment[0] == '{')
        (void)json_parse(str_of(job.admin_comment), SLURM_MAX_COMMENT, &comment, NULL);
    check_ours(&job, json_root(comment));
    (void)slurm_submit_adopt(&job, CLUSTER, STR("u.1"), &adopted);
    return 0;
}
