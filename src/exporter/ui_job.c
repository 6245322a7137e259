/* ui_job.c - the story of one job, from Slurm's record and from its pod. */
#include "exporter/ui_job.h"

#include "codec/timestamp.h"
#include "exporter/tally.h"

#include <inttypes.h>

enum { CLOCK_SKEW_S = 5 };

/* "namespace/name" of its only pod, from the comment; "" without one. */
static struct str only_pod(const struct slurm_job *job, struct json_doc **ret_comment)
{
    const struct json *pods = NULL;

    if (tally_holder_of(job) == TALLY_POD &&
        json_parse(str_of(job->admin_comment), SLURM_MAX_OBJECT_TEXT, ret_comment, NULL) == 0)
        pods = json_get(json_root(*ret_comment), "pods");
    return json_len(pods) == 1 ? json_str(json_item(pods, 0)) : STR("");
}

bool ui_job_pod(const struct slurm_job *job, struct buf *ns, struct buf *name)
{
    auto_json_doc struct json_doc *comment = NULL;
    struct str rest = only_pod(job, &comment), first;

    if (rest.len == 0 || !str_next(&rest, '/', &first) || first.len == 0 || rest.len == 0)
        return false;
    buf_add_str(ns, first);
    buf_add_str(name, rest);
    return true;
}

/* ---- what the pod says ---- */

static int64_t time_at(const struct json *value)
{
    int64_t time;

    return timestamp_parse(json_str(value), &time, NULL) == 0 ? time / TIMESTAMP_SECOND : 0;
}

static int64_t bound_at(const struct json *pod)
{
    struct json_iter iter = json_iter(json_at(pod, "status", "conditions"));
    const struct json *condition;

    while (json_next_item(&iter, &condition))
        if (str_is(json_str(json_get(condition, "type")), "PodScheduled") &&
            str_is(json_str(json_get(condition, "status")), "True"))
            return time_at(json_get(condition, "lastTransitionTime"));
    return 0;
}

/* The first start, or the last end once all have ended, of the pod's containers. */
static int64_t containers_at(const struct json *pod, bool ends)
{
    struct json_iter iter = json_iter(json_at(pod, "status", "containerStatuses"));
    const struct json *container;
    int64_t found = 0;

    while (json_next_item(&iter, &container)) {
        const struct json *ended = json_at(container, "state", "terminated");
        int64_t time = time_at(
            ends ? json_get(ended, "finishedAt")
                 : json_get(json_exists(ended) ? ended : json_at(container, "state", "running"),
                            "startedAt"));

        if (ends && time == 0)
            return 0;
        if (time > 0 && (found == 0 || (ends ? time > found : time < found)))
            found = time;
    }
    return found;
}

/* ---- the document ---- */

static void put_step(struct buf *out, const char *name, int64_t time)
{
    buf_printf(out, "%s[\"%s\",%" PRId64 "]", buf_text(out)[out->len - 1] == '[' ? "" : ",", name,
               time > 0 ? time : 0);
}

static void write_steps(const struct slurm_job *job, const struct json *pod, struct buf *out)
{
    bool has_started = job->nodes[0] && !slurm_words_has(&job->state, SLURM_JOB_PENDING);
    int64_t ended = slurm_job_has_ended(&job->state) ? job->end_time : 0;
    int64_t created = time_at(json_at(pod, "metadata", "creationTimestamp"));

    if (created > job->submit_time + CLOCK_SKEW_S)
        pod = NULL; /* another pod of the same name */
    buf_add_text(out, ",\"steps\":[");
    if (pod)
        put_step(out, "created", created);
    put_step(out, "submitted", job->submit_time);
    put_step(out, "allocated", has_started ? job->start_time : 0);
    if (pod) {
        put_step(out, "bound", bound_at(pod));
        put_step(out, "running", containers_at(pod, false));
        ended = ended > 0 ? ended : containers_at(pod, true);
    }
    put_step(out, "ended", ended);
    buf_add_char(out, ']');
}

void ui_job_write(const struct slurm_job *job, const struct json *pod, bool shows_users,
                  struct buf *out)
{
    auto_json_doc struct json_doc *comment = NULL;
    struct str name = only_pod(job, &comment);
    auto_buf struct buf state = { .max = 1024 };

    slurm_words_print(&slurm_job_states, &job->state, &state);
    buf_printf(out, "{\"id\":%" PRId64 ",\"kind\":\"%s\",\"name\":", job->id,
               tally_holder_of(job) == TALLY_POD ? "p" : "j");
    json_escape(out, name.len > 0 ? name : str_of(job->name));
    buf_add_text(out, ",\"state\":");
    json_escape(out, buf_str(&state));
    buf_add_text(out, ",\"partition\":");
    json_escape(out, str_of(job->partition));
    buf_clear(&state);
    buf_printf(&state, "%s%s%s", shows_users ? job->user : "",
               shows_users && job->user[0] && job->account[0] ? "/" : "", job->account);
    buf_add_text(out, ",\"who\":");
    json_escape(out, buf_str(&state));
    if (job->time_limit.set && !job->time_limit.infinite && job->time_limit.number > 0)
        buf_printf(out, ",\"limit\":%" PRId64, (int64_t)job->time_limit.number * 60);
    write_steps(job, pod, out);
    buf_add_char(out, '}');
}
