/* why_job.c - the story of a job of Slurm, and the part of a pod's story that is about its job. */
#include "cli/why_private.h"

#include <ctype.h>
#include <inttypes.h>

enum { MAX_AHEAD = 2, MAX_PODS = 5, OLD_S = 10, MINUTE_S = 60, HOUR_S = 3600, DAY_S = 86400 };

/* The job that a waiting pod names itself: "job 7 waits: Resources". The bridge's replica that was
 * asked may not have read of it yet. 0: none. */
static int64_t told_job(const struct json *pod)
{
    const struct json *waits = why_condition(pod, WHY_PENDING_CONDITION);
    struct str before, rest = json_str(json_get(waits, "message"));
    int64_t id = 0;

    if (why_is_true(waits) && str_cut(rest, ' ', &before, &rest) && str_is(before, "job") &&
        str_cut(rest, ' ', &before, &rest))
        (void)str_to_i64(before, 1, INT64_MAX, &id, NULL);
    return id;
}

/* From the exporter's list; what the bridge knows of it where that does not have the job (yet), or
 * may not be read. */
void why_find_job(struct why *why)
{
    struct json_iter iter = json_iter(json_get(why->facts->jobs, "items"));
    const struct json *own = json_get(why->facts->decision, "slurm"), *job;

    if (why->facts->pod)
        (void)str_to_i64(json_str(json_at(why->facts->pod, "metadata", "labels", WHY_JOB_LABEL)), 1,
                         INT64_MAX, &why->job_id, NULL);
    if (why->job_id == 0)
        why->job_id = json_i64_or(json_get(own, "id"), 0);
    if (why->job_id == 0)
        why->job_id = told_job(why->facts->pod);
    while (why->job_id > 0 && !why->job && json_next_item(&iter, &job))
        if (json_i64_or(json_get(job, "id"), 0) == why->job_id)
            why->job = job;
    if (!why->job && json_exists(own))
        why->job = own;
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
    buf_printf(&text, "job %" PRId64, why->job_id);
    if (json_exists(json_get(job, "user")))
        buf_printf(&text, " of %s", why_text(why, job, "user"));
    if (json_exists(json_get(job, "account")))
        buf_printf(&text, "%s%s", json_exists(json_get(job, "user")) ? "/" : ", account ",
                   why_text(why, job, "account"));
    buf_printf(&text, ", partition %s", why_text(why, job, "partition"));
    if (json_exists(json_get(job, "qos")))
        buf_printf(&text, ", qos %s", why_text(why, job, "qos"));
    if (nodes > 0)
        buf_printf(&text, ", %" PRId64 " node%s, %" PRId64 " cpu%s", nodes, nodes == 1 ? "" : "s",
                   cpus, cpus == 1 ? "" : "s");
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
        int64_t priority = json_i64_or(json_get(other, "priority"), 0);

        if (!str_is(json_str(json_get(other, "state")), "pending") ||
            !str_eq(json_str(json_get(other, "partition")), partition))
            continue;
        count++;
        if (priority < own ||
            (priority == own && json_i64_or(json_get(other, "id"), 0) >= why->job_id))
            continue;
        rank++;
        if (named < MAX_AHEAD)
            ahead[named++] = other;
    }
    buf_printf(text, ", place %zu of %zu in %s", rank, count, text_plain(why->arena, partition));
    for (size_t i = 0; i < named; i++)
        buf_printf(text, "%s %" PRId64 " %s", i == 0 ? " behind" : ",",
                   json_i64_or(json_get(ahead[i], "id"), 0), why_text(why, ahead[i], "user"));
    if (named > 0 && rank - 1 > named)
        buf_printf(text, " and %zu more", rank - 1 - named);
}

/* Why the job waits. Reasons are read less often than states: that of the pod's condition may be
 * newer. */
struct str why_reason(const struct why *why)
{
    const struct json *waits = why_condition(why->facts->pod, WHY_PENDING_CONDITION);
    struct str reason = json_str(json_get(why->job, "reason"));

    return (reason.len == 0 || str_is(reason, "None")) && why_is_true(waits)
               ? json_str(json_get(waits, "reason"))
               : reason;
}

/* What the exporter read long ago is dated. */
static const char *age_text(const struct why *why)
{
    double age_s = json_f64_or(json_get(why->facts->jobs, "ageSeconds"), 0);
    bool is_listed = why->job != json_get(why->facts->decision, "slurm");

    return is_listed && age_s > (int)OLD_S ? arena_printf(why->arena, ", %.0f s ago", age_s) : "";
}

/* By slurmctld, asked a moment ago; what would let it start sooner stands behind. False: nobody was
 * asked. */
static bool add_will_run(struct why *why)
{
    const struct json *answer = json_get(why->facts->decision, "willRun"), *one;
    struct json_iter iter = json_iter(json_get(why->facts->decision, "sooner"));
    int64_t start_s = text_seconds(json_str(json_get(answer, "start")));
    int64_t after = json_i64_or(json_get(answer, "after"), 0), now_s = why->options->now_s;

    if (!json_exists(answer))
        return false;
    if (start_s == 0)
        story_add(why->story, "starts", "not as it is: %s", why_text(why, answer, "error"));
    else
        story_add(why->story, "starts", "about %s UTC (in %s) on %s%s%s",
                  text_clock(why->arena, now_s, start_s),
                  text_age(why->arena, start_s > now_s ? start_s : now_s, now_s),
                  why_text(why, answer, "nodes"), after > 0 ? ", after job " : "",
                  after > 0 ? arena_printf(why->arena, "%" PRId64, after) : "");
    while (json_next_item(&iter, &one)) {
        start_s = text_seconds(json_str(json_get(one, "start")));
        story_add(why->story, "sooner", "with %s: about %s UTC", why_text(why, one, "change"),
                  text_clock(why->arena, now_s, start_s));
    }
    return true;
}

static void add_waiting(struct why *why)
{
    const struct json *job = why->job;
    int64_t start_s = text_seconds(json_str(json_get(job, "expectedStart")));
    auto_buf struct buf text;

    buf_init(&text, 4096);
    buf_printf(&text, "PENDING %s%s; priority %" PRId64, text_plain(why->arena, why_reason(why)),
               age_text(why), json_i64_or(json_get(job, "priority"), 0));
    if (why->facts->jobs)
        add_place(why, &text);
    story_add(why->story, "Slurm", "%s", buf_text(&text));
    if (!why->facts->jobs)
        story_add(why->story, "Slurm", "its place in the queue is %s", why->facts->no_jobs);
    if (add_will_run(why))
        return;
    if (start_s > why->options->now_s)
        story_add(why->story, "starts", "about %s UTC (in %s)%s%s, by Slurm's plan",
                  text_clock(why->arena, why->options->now_s, start_s),
                  text_age(why->arena, start_s, why->options->now_s),
                  json_exists(json_get(job, "expectedNodes")) ? " on " : "",
                  why_text(why, job, "expectedNodes"));
    else
        story_add(why->story, "starts", "Slurm's plan has no time for it yet");
}

/* In capitals, as Slurm's own commands write it. */
static const char *state_word(const struct why *why, const struct json *job)
{
    struct str state = json_str(json_get(job, "state"));
    char *word = arena_strndup(why->arena, state.at, state.len);

    for (char *at = word; *at; at++)
        *at = (char)toupper((unsigned char)*at);
    return word;
}

void why_add_job(struct why *why)
{
    const struct json *job = why->job;

    if (!job) {
        bool asked = !why->facts->no_jobs[0] || json_exists(why->facts->decision);

        if (asked && why->job_id > 0 && why->story->result == STORY_WAITING)
            story_add(why->story, "Slurm",
                      "job %" PRId64 " was submitted, and has not been read yet: ask again",
                      why->job_id);
        else if (why->facts->no_jobs[0])
            story_add(why->story, "Slurm", "%s", why->facts->no_jobs);
        else if (why->job_id > 0)
            story_add(why->story, "Slurm", "job %" PRId64 " has ended", why->job_id);
        return;
    }
    add_became(why);
    if (str_is(json_str(json_get(job, "state")), "pending"))
        add_waiting(why);
    else
        story_add(why->story, "Slurm", "%s on %s since %s%s", state_word(why, job),
                  why_text(why, job, "nodeList"), why_clock(why, json_get(job, "started")),
                  age_text(why));
}

struct advice why_advice(const struct why *why, struct str reason)
{
    return advice_of(text_plain(why->arena, reason),
                     str_is(json_str(json_get(why->job, "class")), "hold"));
}

void why_add_advice(struct why *why, struct str reason)
{
    struct advice advice = { .actor = "", .help = "" };
    auto_buf struct buf text;

    if (reason.len > 0)
        advice = why_advice(why, reason);
    buf_init(&text, 4096);
    advice_write(advice.help, why->job_id, why->facts->pod != NULL, &text);
    if (advice.actor[0])
        story_add(why->story, "to do", "%s has to act: %s", advice.actor, buf_text(&text));
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
