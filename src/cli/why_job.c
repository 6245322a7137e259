/* why_job.c - the story of a job of Slurm, and the part of a pod's story that is about its job. */
#include "cli/advice.h"
#include "cli/why_private.h"

#include <inttypes.h>

enum { MAX_AHEAD = 2, MAX_PODS = 5, MINUTE_S = 60, HOUR_S = 3600, DAY_S = 86400 };

void why_find_job(struct why *why)
{
    struct json_iter iter = json_iter(json_get(why->facts->jobs, "items"));
    const struct json *job;

    if (why->facts->pod)
        (void)str_to_i64(json_str(json_at(why->facts->pod, "metadata", "labels", WHY_JOB_LABEL)), 1,
                         INT64_MAX, &why->job_id, NULL);
    if (why->job_id == 0)
        why->job_id = json_i64_or(json_get(why->facts->decision, "jobId"), 0);
    while (why->job_id > 0 && !why->job && json_next_item(&iter, &job))
        if (json_i64_or(json_get(job, "id"), 0) == why->job_id)
            why->job = job;
    story_attach(why->story, "job", why->job);
}

/* As Slurm writes time limits. */
static const char *limit_text(struct arena *arena, int64_t seconds)
{
    if (seconds >= DAY_S)
        return arena_printf(arena, "%" PRId64 "-%02" PRId64 ":%02" PRId64 ":00", seconds / DAY_S,
                            seconds % DAY_S / HOUR_S, seconds % HOUR_S / MINUTE_S);
    return arena_printf(arena, "%02" PRId64 ":%02" PRId64 ":00", seconds / HOUR_S,
                        seconds % HOUR_S / MINUTE_S);
}

static void add_became(struct why *why)
{
    const struct json *job = why->job, *count;
    struct json_iter iter = json_iter(json_get(job, "gres"));
    int64_t nodes = json_i64_or(json_get(job, "nodes"), 0);
    int64_t cpus = json_i64_or(json_get(job, "cpus"), 0);
    struct str name;
    auto_buf struct buf text;

    buf_init(&text, 4096);
    buf_printf(&text, "job %" PRId64 " %s", why->job_id, why_text(why, job, "user"));
    if (json_exists(json_get(job, "account")))
        buf_printf(&text, "/%s", why_text(why, job, "account"));
    buf_printf(&text, ", partition %s", why_text(why, job, "partition"));
    if (json_exists(json_get(job, "qos")))
        buf_printf(&text, ", qos %s", why_text(why, job, "qos"));
    buf_printf(&text, ", %" PRId64 " node%s, %" PRId64 " cpu%s", nodes, nodes == 1 ? "" : "s", cpus,
               cpus == 1 ? "" : "s");
    while (json_next_member(&iter, &name, &count))
        buf_printf(&text, ", %s %" PRId64, text_plain(why->arena, name), json_i64_or(count, 0));
    if (json_exists(json_get(job, "timeLimitSeconds")))
        buf_printf(&text, ", limit %s",
                   limit_text(why->arena, json_i64_or(json_get(job, "timeLimitSeconds"), 0)));
    story_add(why->story, why->facts->pod ? "became" : "asked", "%s", buf_text(&text));
}

/* Its place among those that wait in the same partitions, and who is right before it. */
static void add_place(struct why *why, struct buf *text)
{
    struct json_iter iter = json_iter(json_get(why->facts->jobs, "items"));
    int64_t own = json_i64_or(json_get(why->job, "priority"), 0);
    struct str partition = json_str(json_get(why->job, "partition"));
    const struct json *other, *ahead[MAX_AHEAD];
    size_t rank = 1, count = 0, named = 0;

    while (json_next_item(&iter, &other)) {
        if (!str_is(json_str(json_get(other, "state")), "pending") ||
            !str_eq(json_str(json_get(other, "partition")), partition))
            continue;
        count++;
        if (json_i64_or(json_get(other, "priority"), 0) <= own)
            continue;
        rank++;
        if (named < MAX_AHEAD)
            ahead[named++] = other;
    }
    buf_printf(text, "; priority %" PRId64 ", place %zu of %zu in %s", own, rank, count,
               text_plain(why->arena, partition));
    for (size_t i = 0; i < named; i++)
        buf_printf(text, "%s %" PRId64 " %s", i == 0 ? " behind" : ",",
                   json_i64_or(json_get(ahead[i], "id"), 0), why_text(why, ahead[i], "user"));
    if (named > 0 && rank - 1 > named)
        buf_printf(text, " and %zu more", rank - 1 - named);
}

static void add_waiting(struct why *why)
{
    const struct json *job = why->job;
    int64_t start_s = text_seconds(json_str(json_get(job, "expectedStart")));
    auto_buf struct buf text;

    buf_init(&text, 4096);
    buf_printf(&text, "PENDING %s", why_text(why, job, "reason"));
    add_place(why, &text);
    story_add(why->story, "Slurm", "%s", buf_text(&text));
    if (start_s > why->options->now_s)
        story_add(why->story, "starts", "about %s UTC (in %s)%s%s, by Slurm's plan",
                  text_clock(why->arena, why->options->now_s, start_s),
                  text_age(why->arena, start_s, why->options->now_s),
                  json_exists(json_get(job, "expectedNodes")) ? " on " : "",
                  why_text(why, job, "expectedNodes"));
    else
        story_add(why->story, "starts", "Slurm's plan has no time for it yet");
}

void why_add_job(struct why *why)
{
    const struct json *job = why->job;

    if (!job) {
        if (why->facts->no_jobs[0])
            story_add(why->story, "Slurm", "%s", why->facts->no_jobs);
        else if (why->job_id > 0)
            story_add(why->story, "Slurm", "has no job %" PRId64 " that has not ended",
                      why->job_id);
        return;
    }
    add_became(why);
    if (str_is(json_str(json_get(job, "state")), "pending"))
        add_waiting(why);
    else
        story_add(why->story, "Slurm", "%s on %s since %s", why_text(why, job, "state"),
                  why_text(why, job, "nodeList"), why_clock(why, json_get(job, "started")));
}

void why_add_advice(struct why *why, struct str reason)
{
    const struct advice *advice = reason.len > 0 ? advice_of(reason) : NULL;
    bool is_pod = why->facts->pod != NULL;
    const char *actor = advice ? advice->actor : why_text(why, why->job, "actor");
    auto_buf struct buf text;

    buf_init(&text, 4096);
    if (advice)
        advice_write(is_pod ? advice->pod : advice->job, why->job_id, &text);
    if (actor[0])
        story_add(why->story, "to do", "%s has to act%s%s", actor, text.len > 0 ? ": " : "",
                  buf_text(&text));
    else
        story_add(why->story, "to do", "%s", text.len > 0 ? buf_text(&text) : "nobody has to act");
}

/* Whom the job is for, as far as the user may know. */
static void add_pods(struct why *why)
{
    struct json_iter iter = json_iter(json_get(why->facts->pods, "items"));
    const struct json *pod;
    size_t count = 0;

    while (json_next_item(&iter, &pod)) {
        const char *name = text_plain(why->arena, json_str(json_at(pod, "metadata", "name")));
        struct str node = json_str(json_at(pod, "spec", "nodeName"));

        if (count++ < MAX_PODS)
            story_add(why->story, "pods", "%s/%s %s%s%s",
                      text_plain(why->arena, json_str(json_at(pod, "metadata", "namespace"))), name,
                      text_plain(why->arena, json_str(json_at(pod, "status", "phase"))),
                      node.len > 0 ? " on " : "", text_plain(why->arena, node));
    }
    if (count > MAX_PODS)
        story_add(why->story, "pods", "and %zu more", count - MAX_PODS);
    if (count > 0)
        return;
    if (json_exists(json_get(why->job, "pod")))
        story_add(why->story, "pods", "%s%s%s", why_text(why, why->job, "pod"),
                  why->facts->no_pods[0] ? "; the others are " : "", why->facts->no_pods);
    else if (str_is(json_str(json_get(why->job, "holder")), "job"))
        story_add(why->story, "pods", "none: it was submitted to Slurm itself");
}

void why_of_job(struct why *why)
{
    const struct json *job = why->job;
    struct str reason = json_str(json_get(job, "reason"));
    bool waits = str_is(json_str(json_get(job, "state")), "pending");
    const char *name =
        arena_printf(why->arena, "job %" PRId64 " (%s)", why->job_id, why_text(why, job, "name"));

    if (str_is(json_str(json_get(job, "class")), "never"))
        story_conclude(why->story, STORY_NEVER, "%s cannot start as it is: " STR_FMT, name,
                       STR_ARG(reason));
    else if (waits)
        story_conclude(why->story, STORY_WAITING, "%s waits for %s: " STR_FMT, name,
                       text_age(why->arena, why->options->now_s,
                                text_seconds(json_str(json_get(job, "submitted")))),
                       STR_ARG(reason));
    else
        story_conclude(why->story, STORY_RUNNING, "%s is %s on %s", name,
                       why_text(why, job, "state"), why_text(why, job, "nodeList"));
    why_add_job(why);
    add_pods(why);
    if (!waits)
        return;
    why_add_nodes(why);
    why_add_advice(why, reason);
}
