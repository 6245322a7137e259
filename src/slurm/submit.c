/* submit.c - asks for jobs that carry their key, judges the answers, finds the jobs again.
 *
 * Holds: REFUSED only on proof (the table in error.c); a job is ours only when it is an external
 * job with proof of it (mark.h), and never against a comment that names another cluster. */
#include "slurm/submit.h"

#include "base/mem.h"
#include "slurm/client_private.h"

enum {
    SECOND_US = 1000000,
    MESSAGE_TIMEOUT_S = 10, /* Slurm's default */
    DEADLINE_MARGIN_S = 2,
    FENCE_MARGIN_S = 3,   /* past the deadline, when the token dies with it */
    FENCE_FOREIGN_S = 60, /* at least, with a token that lives on */
    MAX_ATTEMPT = 1000000000,
};

static int64_t deadline_s(int64_t message_timeout_s)
{
    return (message_timeout_s > 0 ? message_timeout_s : MESSAGE_TIMEOUT_S) + DEADLINE_MARGIN_S;
}

/* ---- asking ---- */

static int check_name(struct str name, const char *what, struct err *err)
{
    if (name.len == 0)
        return err_set(err, ERR_INVALID, "a job without %s", what);
    for (size_t i = 0; i < name.len; i++)
        if (name.at[i] <= ' ' || name.at[i] > '~')
            return err_set(err, ERR_INVALID, "a %s with a byte that is no printable character",
                           what);
    return 0;
}

static int check_note(struct str note, struct err *err)
{
    if (note.len <= SLURM_MAX_NOTE)
        return 0;
    return err_set(err, ERR_TOO_BIG, "a note of %zu bytes; %d fit", note.len, SLURM_MAX_NOTE);
}

static int check_texts(const struct slurm_submit_ask *ask, struct err *err)
{
    int result = check_name(ask->key, "key", err);

    if (result == 0)
        result = check_name(ask->owner->cluster, "cluster", err);
    if (result == 0)
        result = check_name(ask->owner->release, "release", err);
    if (result == 0)
        result = check_note(ask->note, err);
    return result;
}

struct comment {
    struct json_build *build;
    struct json_mut *pods; /* an array of the build */
    struct str cluster, release, key, note;
};

/* "pods" comes first: whoever knows the comment from before finds it where it was. */
static int write_comment(const struct comment *comment, struct buf *out, struct err *err)
{
    struct json_build *build = comment->build;
    struct json_mut *root = json_new_object(build);

    json_put(build, root, "pods", comment->pods);
    json_put_u64(build, root, "v", 1);
    json_put_str(build, root, "cluster", comment->cluster);
    json_put_str(build, root, "release", comment->release);
    json_put_str(build, root, "unit", comment->key);
    if (comment->note.len > 0)
        json_put_str(build, root, "note", comment->note);
    json_mut_write(root, out);
    return buf_check(out, "admin_comment", err);
}

static struct json_mut *new_pods(struct json_build *build, const struct str *pods, size_t count)
{
    struct json_mut *list = json_new_array(build);

    for (size_t i = 0; i < count; i++)
        json_push_str(build, list, pods[i]);
    return list;
}

int slurm_submit_body(const struct slurm_submit_ask *ask, struct buf *ret_body, struct err *err)
{
    struct json_mut *root = json_new_object(ask->build);
    struct comment said = { .build = ask->build,
                            .pods = new_pods(ask->build, ask->pods, ask->pod_count),
                            .cluster = ask->owner->cluster,
                            .release = ask->owner->release,
                            .key = ask->key,
                            .note = ask->note };
    auto_buf struct buf comment, extra;
    int result = check_texts(ask, err);

    buf_init(&comment, SLURM_MAX_COMMENT);
    buf_init(&extra, SLURM_MAX_KEY);
    if (result == 0)
        result = write_comment(&said, &comment, err);
    if (result == 0)
        result = slurm_mark_write(ask->owner, ask->key, str_of(ask->job_user ? ask->job_user : ""),
                                  &extra, err);
    if (result < 0)
        return result;
    json_put_str(ask->build, ask->job, "admin_comment", buf_str(&comment));
    json_put_str(ask->build, ask->job, "extra", buf_str(&extra));
    if (ask->at_once)
        json_put_bool(ask->build, ask->job, "immediate", true);
    json_put(ask->build, root, "job", ask->job);
    json_mut_write(root, ret_body);
    return buf_check(ret_body, "job description", err);
}

int slurm_submit_adopt(const struct slurm_job *job, const struct slurm_owner *owner, struct str key,
                       struct json_build *build, struct json_mut *fields)
{
    auto_json_doc struct json_doc *doc = NULL;
    struct comment said = {
        .build = build, .cluster = owner->cluster, .release = owner->release, .key = key
    };
    auto_buf struct buf comment = { .max = SLURM_MAX_COMMENT }, extra = { .max = SLURM_MAX_KEY };
    auto_buf struct buf user = { .max = 32 };
    const struct json *pods;

    if (json_parse(str_of(job->admin_comment), SLURM_MAX_COMMENT, &doc, NULL) < 0)
        return -ERR_INVALID;
    pods = json_get(json_root(doc), "pods");
    if (!json_is_array(pods))
        return -ERR_INVALID;
    said.pods = json_copy(build, pods);
    buf_printf(&user, "%lld", (long long)job->user_id);
    if (write_comment(&said, &comment, NULL) < 0 ||
        slurm_mark_write(owner, key, buf_str(&user), &extra, NULL) < 0)
        return -ERR_INVALID;
    json_put_str(build, fields, "admin_comment", buf_str(&comment));
    json_put_str(build, fields, "extra", buf_str(&extra));
    return 0;
}

/* The texts are the document's. */
static bool read_comment(const struct slurm_job *job, struct json_doc **ret_doc,
                         struct comment *ret_comment)
{
    const struct json *root;

    if (json_parse(str_of(job->admin_comment), SLURM_MAX_COMMENT, ret_doc, NULL) < 0)
        return false;
    root = json_root(*ret_doc);
    ret_comment->cluster = json_str(json_get(root, "cluster"));
    ret_comment->release = json_str(json_get(root, "release"));
    ret_comment->key = json_str(json_get(root, "unit"));
    ret_comment->note = json_str(json_get(root, "note"));
    return ret_comment->cluster.len > 0 && ret_comment->release.len > 0 && ret_comment->key.len > 0;
}

int slurm_submit_comment(const struct slurm_job *job, const struct str *pods, size_t pod_count,
                         struct str note, struct buf *ret_comment)
{
    auto_json_doc struct json_doc *doc = NULL;
    auto_json_build struct json_build *build = json_build_new();
    struct comment comment = { .build = build };
    const struct json *there;

    if (!read_comment(job, &doc, &comment))
        return -ERR_INVALID;
    if (check_note(note, NULL) < 0)
        return -ERR_TOO_BIG;
    if (note.len > 0)
        comment.note = note;
    there = json_get(json_root(doc), "pods");
    comment.pods =
        !pods && json_is_array(there) ? json_copy(build, there) : new_pods(build, pods, pod_count);
    return write_comment(&comment, ret_comment, NULL);
}

bool slurm_submit_note(const struct slurm_job *job, struct buf *ret_note)
{
    auto_json_doc struct json_doc *doc = NULL;
    struct comment comment;

    if (!read_comment(job, &doc, &comment) || comment.note.len == 0 ||
        check_note(comment.note, NULL) < 0)
        return false;
    buf_add_str(ret_note, comment.note);
    return true;
}

struct slurm_call *slurm_submit(struct slurm_client *client, const struct slurm_submit_ask *ask,
                                slurm_done done, void *context)
{
    enum slurm_endpoint endpoint = ask->at_once ? SLURM_JOB_ALLOCATE : SLURM_JOB_SUBMIT;
    struct slurm_request request = {
        .verb = SLURM_POST,
        .endpoint = endpoint,
        .user = ask->user,
        .timeout_us = deadline_s(ask->message_timeout_s) * SECOND_US,
        .token_s = deadline_s(ask->message_timeout_s),
    };
    struct slurm_submit_ask marked = *ask;
    const char *user = ask->user ? ask->user : slurm_client_user(client);
    auto_buf struct buf body;
    struct err why = { 0 };

    buf_init(&body, SLURM_MAX_SUBMIT);
    if (!marked.job_user)
        marked.job_user = user[0] ? user : slurm_token_user(slurm_client_token(client));
    if (slurm_submit_body(&marked, &body, &why) < 0)
        return slurm_send_refused(client, SLURM_POST, endpoint, &why, done, context);
    request.body = buf_str(&body);
    return slurm_send(client, &request, done, context);
}

int64_t slurm_submit_fence_us(const struct slurm_client *client, int64_t message_timeout_s)
{
    int64_t fence_s = deadline_s(message_timeout_s) + FENCE_MARGIN_S;

    bool is_short = slurm_token_can_mint(slurm_client_token(client)) &&
                    !slurm_agent_status(client, &(struct slurm_agent_status){ .why = NULL });

    if (!is_short && fence_s < FENCE_FOREIGN_S) /* the agent's token is from a file, too */
        fence_s = FENCE_FOREIGN_S;
    return fence_s * SECOND_US;
}

/* ---- judging ---- */

/* And not of slurmrestd, about its connection: that has numbers below 2000 or from 5000 to 5999, or
 * the status of a gateway. */
static bool is_of_slurmctld(const struct slurm_error *error)
{
    bool is_of_gateway = error->http == 502 || error->http == 504;

    return !is_of_gateway &&
           (error->number == -1 || (error->number >= 2000 && error->number / 1000 != 5));
}

void slurm_submit_judge(const struct slurm_answer *answer, int64_t fence_us,
                        struct slurm_submit_outcome *ret_outcome)
{
    const struct slurm_error *error = &answer->error;
    struct slurm_submit_outcome outcome = { .result = SLURM_UNRESOLVED, .sluid = "" };
    bool may_pass = error->class == SLURM_UNAVAILABLE || error->class == SLURM_TIMEOUT;

    if (error->class == SLURM_DONE) {
        outcome.result = SLURM_SUBMITTED;
        outcome.job_id = json_i64_or(json_get(answer->body, "job_id"), 0);
        outcome.sluid = json_str(json_at(answer->body, "step_id", "sluid")).at;
    } else if (error->nothing_done && !may_pass) {
        outcome.result = SLURM_REFUSED;
    } else if (!error->nothing_done) {
        outcome.settles_us = answer->sent_us + fence_us;
        outcome.is_answered = is_of_slurmctld(error);
    }
    *ret_outcome = outcome;
}

/* ---- keys ---- */

/* At the last dot: units may have dots in their names. */
bool slurm_key_read(struct str text, struct slurm_key *ret_key)
{
    size_t end = text.len;
    uint64_t attempt;
    struct slurm_key key = { .uid = STR("") };

    while (end > 0 && text.at[end - 1] != '.')
        end--;
    if (end < 2 || str_to_u64(str_sub(text, end, text.len), 1, MAX_ATTEMPT, &attempt, NULL) < 0)
        return false;
    key.unit = str_sub(text, 0, end - 1);
    key.attempt = (unsigned)attempt;
    str_cut(key.unit, '@', &key.unit, &key.uid);
    *ret_key = key;
    return key.unit.len > 0;
}

void slurm_key_write(const struct slurm_key *key, struct buf *out)
{
    buf_add_str(out, key->unit);
    if (key->uid.len > 0) {
        buf_add_char(out, '@');
        buf_add_str(out, key->uid);
    }
    buf_printf(out, ".%u", key->attempt);
}

/* ---- finding ---- */

/* False: its comment names no cluster. */
static bool read_mark(const struct slurm_job *job, struct json_doc **ret_doc,
                      struct comment *ret_comment)
{
    const struct json *root;

    if (job->admin_comment[0] == '{')
        json_parse(str_of(job->admin_comment), SLURM_MAX_COMMENT, ret_doc, NULL);
    root = json_root(*ret_doc);
    ret_comment->cluster = json_str(json_get(root, "cluster"));
    ret_comment->release = json_str(json_get(root, "release"));
    ret_comment->key = json_str(json_get(root, "unit"));
    return json_is_string(json_get(root, "cluster"));
}

static bool is_key(struct str key)
{
    return key.len > 0 && key.len <= SLURM_MAX_KEY;
}

bool slurm_submit_key(const struct slurm_job *job, const struct slurm_owner *owner,
                      struct buf *ret_key)
{
    auto_json_doc struct json_doc *doc = NULL;
    struct comment comment = { .build = NULL };

    if (!slurm_words_has(&job->flags, SLURM_JOB_EXTERNAL) || !owner || owner->cluster.len == 0)
        return false;
    if (read_mark(job, &doc, &comment)) {
        if (!str_eq(comment.cluster, owner->cluster) || !str_eq(comment.release, owner->release))
            return false;
    } else if (!slurm_mark_read(owner, job, &comment.key)) {
        return false;
    }
    if (!is_key(comment.key))
        return false;
    buf_add_str(ret_key, comment.key);
    return true;
}

bool slurm_submit_claimed_key(const struct slurm_job *job, struct buf *ret_key)
{
    auto_json_doc struct json_doc *doc = NULL;
    struct comment comment = { .build = NULL };
    struct str rest;

    if (!read_mark(job, &doc, &comment)) {
        comment.key = str_of(job->extra);
        (void)str_cut(comment.key, ' ', &comment.key, &rest);
    }
    if (!is_key(comment.key))
        return false;
    buf_add_str(ret_key, comment.key);
    return true;
}

bool slurm_submit_is_marked(const struct slurm_job *job)
{
    auto_json_doc struct json_doc *doc = NULL;
    struct comment comment = { .build = NULL };

    return read_mark(job, &doc, &comment);
}

bool slurm_submit_is_for(const struct slurm_job *job, const struct slurm_owner *owner,
                         struct str key)
{
    auto_buf struct buf own;

    buf_init(&own, SLURM_MAX_KEY);
    return slurm_submit_key(job, owner, &own) && str_eq(buf_str(&own), key);
}

size_t slurm_submit_find(const struct slurm_list *jobs, const struct slurm_owner *owner,
                         struct str key, const struct slurm_job **ret_jobs, size_t max)
{
    size_t count = 0;

    for (size_t i = 0; i < jobs->count; i++) {
        const struct slurm_job *job = slurm_job_of(jobs->at[i]);

        if (slurm_job_has_ended(&job->state) || !slurm_submit_is_for(job, owner, key))
            continue;
        if (count < max)
            ret_jobs[count] = job;
        count++;
    }
    return count;
}

static bool is_recorded(const struct slurm_job *job, const struct slurm_submit_claim *claim)
{
    bool has_sluid = claim->recorded_sluid && claim->recorded_sluid[0] && job->sluid[0];

    return claim->recorded_id != 0 && job->id == claim->recorded_id &&
           (!has_sluid || str_is(str_of(job->sluid), claim->recorded_sluid));
}

/* A sluid counts up with time, and ids may start over; without one, by time, then by id. */
static bool is_older(const struct slurm_job *job, const struct slurm_job *other)
{
    if (job->sluid[0] && other->sluid[0])
        return strcmp(job->sluid, other->sluid) < 0;
    if (job->submit_time != other->submit_time)
        return job->submit_time < other->submit_time;
    return job->id < other->id;
}

static bool is_better(const struct slurm_job *job, const struct slurm_job *other,
                      const struct slurm_submit_claim *claim)
{
    bool pods = claim->has_pods && claim->has_pods(claim->context, job);
    bool other_pods = claim->has_pods && claim->has_pods(claim->context, other);

    if (pods != other_pods)
        return pods;
    if (is_recorded(job, claim) != is_recorded(other, claim))
        return is_recorded(job, claim);
    return is_older(job, other);
}

size_t slurm_submit_choose(const struct slurm_job *const *jobs, size_t count,
                           const struct slurm_submit_claim *claim)
{
    size_t best = 0;

    for (size_t i = 1; i < count; i++)
        if (is_better(jobs[i], jobs[best], claim))
            best = i;
    return best;
}
