/* why.c - the story of one pod or job: what it is waiting for, what was asked, what Slurm says,
 * what happened so far, and who has to act.
 *
 * The result comes first, in one line; then the evidence. What could not be read is named. */
#include "cli/show.h"
#include "cli/text.h"

#include <inttypes.h>

#define JOB_LABEL         "scheduler.slinky.slurm.net/slurm-jobid"
#define PENDING_CONDITION "SlurmPending"
#define ENDED_CONDITION   "SlurmJobEnded"

enum { MAX_EVENTS = 3 };

struct telling {
    const struct show_story *story;
    const struct show_options *options;
    struct arena *arena;
    struct buf *out;
    const struct json *job; /* NULL: not known */
};

static void line(const struct telling *telling, const char *title, const char *text)
{
    if (text[0])
        buf_printf(telling->out, "  %-9s %s\n", title, text);
}

static void headline(const struct telling *telling, const char *word, const char *text)
{
    static const struct {
        const char *word, *colour;
    } colours[] = {
        { "WAITING", "33" }, { "RUNNING", "32" }, { "NEVER", "31" }, { "ENDED", "36" }
    };
    const char *colour = "0";

    for (size_t i = 0; i < sizeof(colours) / sizeof(colours[0]); i++)
        if (str_is(str_of(word), colours[i].word))
            colour = colours[i].colour;
    if (telling->options->colours)
        buf_printf(telling->out, "\033[1;%sm%-8s\033[0m %s\n", colour, word, text);
    else
        buf_printf(telling->out, "%-8s %s\n", word, text);
}

/* ---- the job ---- */

static const struct json *find_job(const struct json *jobs, int64_t id)
{
    struct json_iter iter = json_iter(json_get(jobs, "items"));
    const struct json *job;

    while (id > 0 && json_next_item(&iter, &job))
        if (json_i64_or(json_get(job, "id"), 0) == id)
            return job;
    return NULL;
}

/* Its place among those that wait in the same partitions. */
static void count_rank(const struct telling *telling, size_t *ret_rank, size_t *ret_count)
{
    struct json_iter iter = json_iter(json_get(telling->story->jobs, "items"));
    int64_t own = json_i64_or(json_get(telling->job, "priority"), 0);
    struct str partition = json_str(json_get(telling->job, "partition"));
    const struct json *other;

    *ret_rank = 1;
    *ret_count = 0;
    while (json_next_item(&iter, &other)) {
        if (!str_is(json_str(json_get(other, "state")), "pending") ||
            !str_eq(json_str(json_get(other, "partition")), partition))
            continue;
        ++*ret_count;
        *ret_rank += json_i64_or(json_get(other, "priority"), 0) > own;
    }
}

static const char *text_at(const struct telling *telling, const struct json *object,
                           const char *key)
{
    return text_plain(telling->arena, json_str(json_get(object, key)));
}

static void write_became(const struct telling *telling)
{
    const struct json *job = telling->job;
    struct json_iter iter = json_iter(json_get(job, "gres"));
    const struct json *count;
    struct str name;
    auto_buf struct buf text;

    buf_init(&text, 4096);
    buf_printf(&text, "job %" PRId64 " %s", json_i64_or(json_get(job, "id"), 0),
               text_at(telling, job, "user"));
    if (json_exists(json_get(job, "account")))
        buf_printf(&text, "/%s", text_at(telling, job, "account"));
    buf_printf(&text, ", partition %s", text_at(telling, job, "partition"));
    if (json_exists(json_get(job, "qos")))
        buf_printf(&text, ", qos %s", text_at(telling, job, "qos"));
    buf_printf(&text, ", %" PRId64 " nodes, %" PRId64 " cpus",
               json_i64_or(json_get(job, "nodes"), 0), json_i64_or(json_get(job, "cpus"), 0));
    while (json_next_member(&iter, &name, &count))
        buf_printf(&text, ", %s %" PRId64, text_plain(telling->arena, name), json_i64_or(count, 0));
    if (json_exists(json_get(job, "timeLimitSeconds")))
        buf_printf(&text, ", limit %" PRId64 " min",
                   json_i64_or(json_get(job, "timeLimitSeconds"), 0) / 60);
    line(telling, "became", buf_text(&text));
}

static void write_slurm(const struct telling *telling)
{
    const struct json *job = telling->job;
    struct arena *arena = telling->arena;
    int64_t start_s = text_seconds(json_str(json_get(job, "expectedStart")));
    const char *actor = text_at(telling, job, "actor");
    size_t rank, count;

    if (!str_is(json_str(json_get(job, "state")), "pending")) {
        line(telling, "Slurm",
             arena_printf(arena, "%s on %s since %s", text_at(telling, job, "state"),
                          text_at(telling, job, "nodeList"),
                          text_clock(arena, telling->options->now_s,
                                     text_seconds(json_str(json_get(job, "started"))))));
        return;
    }
    count_rank(telling, &rank, &count);
    line(telling, "Slurm",
         arena_printf(arena, "PENDING %s; priority %" PRId64 ", place %zu of %zu in %s",
                      text_at(telling, job, "reason"), json_i64_or(json_get(job, "priority"), 0),
                      rank, count, text_at(telling, job, "partition")));
    if (start_s > telling->options->now_s)
        line(telling, "starts",
             arena_printf(arena, "about %s UTC%s%s, by Slurm's plan",
                          text_clock(arena, telling->options->now_s, start_s),
                          json_exists(json_get(job, "expectedNodes")) ? " on " : "",
                          text_at(telling, job, "expectedNodes")));
    else
        line(telling, "starts", "not planned by Slurm yet");
    line(telling, "to do",
         actor[0] ? arena_printf(arena, "%s has to act", actor) : "nothing: nobody has to act");
}

static void write_job(const struct telling *telling)
{
    if (!telling->job) {
        if (telling->story->missing[0])
            line(telling, "Slurm", telling->story->missing);
        return;
    }
    write_became(telling);
    write_slurm(telling);
}

/* ---- the pod ---- */

static const struct json *condition(const struct json *pod, const char *type)
{
    struct json_iter iter = json_iter(json_at(pod, "status", "conditions"));
    const struct json *found;

    while (json_next_item(&iter, &found))
        if (str_is(json_str(json_get(found, "type")), type))
            return found;
    return NULL;
}

static bool is_true(const struct json *found)
{
    return str_is(json_str(json_get(found, "status")), "True");
}

static void write_asked(const struct telling *telling)
{
    const struct json *containers = json_at(telling->story->pod, "spec", "containers"), *one;
    struct json_iter iter = json_iter(containers);
    const char *between = "";
    auto_buf struct buf text;

    buf_init(&text, 4096);
    while (json_next_item(&iter, &one)) {
        struct json_iter requests = json_iter(json_at(one, "resources", "requests"));
        const struct json *amount;
        struct str name;

        buf_printf(&text, "%s%s:", between, text_at(telling, one, "name"));
        while (json_next_member(&requests, &name, &amount))
            buf_printf(&text, " %s %s", text_plain(telling->arena, name),
                       text_plain(telling->arena, json_str(amount)));
        between = "; ";
    }
    line(telling, "asked", buf_text(&text));
}

/* Hours and minutes of what is known; '-' for what has not happened. */
static void write_life(const struct telling *telling)
{
    const struct json *pod = telling->story->pod;
    const struct json *bound = condition(pod, "PodScheduled"), *ready = condition(pod, "Ready");
    int64_t now_s = telling->options->now_s;
    struct arena *arena = telling->arena;

    line(telling, "life",
         arena_printf(
             arena, "created %s > submitted %s > allocated %s > bound %s > ready %s",
             text_clock(arena, now_s,
                        text_seconds(json_str(json_at(pod, "metadata", "creationTimestamp")))),
             text_clock(arena, now_s, text_seconds(json_str(json_get(telling->job, "submitted")))),
             text_clock(arena, now_s, text_seconds(json_str(json_get(telling->job, "started")))),
             is_true(bound)
                 ? text_clock(arena, now_s,
                              text_seconds(json_str(json_get(bound, "lastTransitionTime"))))
                 : "-",
             is_true(ready)
                 ? text_clock(arena, now_s,
                              text_seconds(json_str(json_get(ready, "lastTransitionTime"))))
                 : "-"));
}

static void write_events(const struct telling *telling)
{
    const struct json *items = json_get(telling->story->events, "items"), *event;
    size_t count = json_len(items), index = 0;
    struct json_iter iter = json_iter(items);

    while (json_next_item(&iter, &event))
        if (index++ + MAX_EVENTS >= count)
            line(telling, "event",
                 arena_printf(telling->arena, "%s: %s", text_at(telling, event, "reason"),
                              text_at(telling, event, "message")));
}

/* The result in one line. */
static void write_result(const struct telling *telling)
{
    const struct json *pod = telling->story->pod;
    struct arena *arena = telling->arena;
    const struct json *waits = condition(pod, PENDING_CONDITION);
    const struct json *ended = condition(pod, ENDED_CONDITION);
    struct str phase = json_str(json_at(pod, "status", "phase"));
    struct str node = json_str(json_at(pod, "spec", "nodeName"));
    const char *name = arena_printf(
        arena, "%s/%s", text_plain(arena, json_str(json_at(pod, "metadata", "namespace"))),
        text_plain(arena, json_str(json_at(pod, "metadata", "name"))));
    const char *age =
        text_age(arena, telling->options->now_s,
                 text_seconds(json_str(json_at(pod, "metadata", "creationTimestamp"))));

    if (str_is(phase, "Succeeded") || str_is(phase, "Failed"))
        headline(telling, "ENDED",
                 arena_printf(arena, "%s has ended: %s", name, text_plain(arena, phase)));
    else if (is_true(ended))
        headline(telling, "ENDED",
                 arena_printf(arena, "%s: Slurm ended its job: %s", name,
                              text_at(telling, ended, "message")));
    else if (node.len > 0)
        headline(telling, str_is(phase, "Running") ? "RUNNING" : "BOUND",
                 arena_printf(arena, "%s is on %s, %s", name, text_plain(arena, node),
                              text_plain(arena, phase)));
    else if (is_true(waits))
        headline(telling, "WAITING",
                 arena_printf(arena, "%s waits for %s: %s", name, age,
                              text_at(telling, waits, "message")));
    else
        headline(telling, "WAITING",
                 arena_printf(arena, "%s waits for %s; scheduler %s has said nothing about Slurm",
                              name, age,
                              text_plain(arena, json_str(json_at(pod, "spec", "schedulerName")))));
}

/* ---- both ---- */

static void write_job_result(const struct telling *telling)
{
    const struct json *job = telling->job;
    struct arena *arena = telling->arena;
    bool waits = str_is(json_str(json_get(job, "state")), "pending");
    bool never = str_is(json_str(json_get(job, "class")), "never");
    const char *name = arena_printf(arena, "job %" PRId64 " (%s)", telling->story->job_id,
                                    text_at(telling, job, "name"));

    if (never)
        headline(telling, "NEVER",
                 arena_printf(arena, "%s cannot start as it is: %s", name,
                              text_at(telling, job, "reason")));
    else if (waits)
        headline(telling, "WAITING",
                 arena_printf(arena, "%s waits for %s: %s", name,
                              text_age(arena, telling->options->now_s,
                                       text_seconds(json_str(json_get(job, "eligible")))),
                              text_at(telling, job, "reason")));
    else
        headline(telling, "RUNNING",
                 arena_printf(arena, "%s is %s", name, text_at(telling, job, "state")));
}

int show_why(const struct show_story *story, const struct show_options *options,
             struct arena *arena, struct buf *out, struct err *err)
{
    struct telling telling = { .story = story, .options = options, .arena = arena, .out = out };
    int64_t id = story->job_id;

    if (story->pod)
        (void)str_to_i64(json_str(json_at(story->pod, "metadata", "labels", JOB_LABEL)), 1,
                         INT64_MAX, &id, NULL);
    telling.job = find_job(story->jobs, id);
    if (!story->pod) {
        if (!telling.job)
            return err_set(err, ERR_NOT_FOUND,
                           "Slurm has no job %" PRId64 " that has not ended%s%s", id,
                           story->missing[0] ? ": " : "", story->missing);
        write_job_result(&telling);
        write_job(&telling);
        return 0;
    }
    write_result(&telling);
    write_asked(&telling);
    write_job(&telling);
    write_life(&telling);
    write_events(&telling);
    return 0;
}
