/* fuzz_job_marks.c - what any Slurm user can write into a job: {"comment","extra","external"}.
 *
 * Holds: a job whose comment names another cluster or release is never ours, nor is one that is no
 * external job, nor one whose comment names none, for no input has an HMAC by the secret; a key
 * that is read is written as it was; a comment of ours that is changed stays ours, with the same
 * key. A mark that is written for a user is read in a job of that user, and of no other. */
#include "slurm/submit.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static const struct slurm_owner owner = { .cluster = { "c0ffee", 6 },
                                          .release = { "ns/bridge", 9 },
                                          .secret = { "the secret of this installation", 31 } };

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

    if (!slurm_submit_key(job, &owner, &key))
        return;
    must(slurm_words_has(&job->flags, SLURM_JOB_EXTERNAL) && key.len > 0 && !key.overflowed);
    must(slurm_submit_is_for(job, &owner, buf_str(&key)));
    must(str_eq(json_str(json_get(comment, "cluster")), owner.cluster));
    must(str_eq(json_str(json_get(comment, "release")), owner.release));
    check_key(buf_str(&key));
    (void)slurm_submit_note(job, &note);
    if (slurm_submit_comment(job, pods, 1, STR("n"), &next) < 0)
        return;
    changed.admin_comment = buf_text(&next);
    must(slurm_submit_is_for(&changed, &owner, buf_str(&key)));
}

static void check_adopted(const struct slurm_job *job)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *fields = json_new_object(build);
    struct slurm_job adopted = *job;

    if (slurm_submit_adopt(job, &owner, STR("u.1"), build, fields) < 0)
        return;

    auto_json_doc struct json_doc *doc = json_freeze(fields);

    adopted.admin_comment = json_str(json_get(json_root(doc), "admin_comment")).at;
    adopted.extra = json_str(json_get(json_root(doc), "extra")).at;
    adopted.flags.known = 1u << SLURM_JOB_EXTERNAL;
    must(slurm_submit_is_for(&adopted, &owner, STR("u.1")));
}

static void check_written(struct str user)
{
    auto_buf struct buf extra = { .max = SLURM_MAX_KEY };
    struct slurm_job job = { .user = user.at, .user_id = 1000 };
    struct str key;

    if (user.len == 0 || str_is(user, "1000") || user.len > 255 || strlen(user.at) != user.len)
        return;
    must(slurm_mark_write(&owner, STR("u.1"), user, &extra, NULL) == 0);
    job.extra = buf_text(&extra);
    must(slurm_mark_read(&owner, &job, &key) && str_is(key, "u.1"));
    job.user = "another";
    must(str_is(user, "another") || !slurm_mark_read(&owner, &job, &key));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { size > 0 ? (const char *)data : "", size };
    auto_json_doc struct json_doc *doc = NULL;
    auto_json_doc struct json_doc *comment = NULL;
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
    check_adopted(&job);
    check_written(json_str(json_get(json_root(doc), "user")));
    return 0;
}
