/* why_pod.c - the story of a pod: what was asked, what it became, what the bridge and Slurm say of
 * it, what happened so far, and who has to act. */
#include "cli/why_private.h"

#include <inttypes.h>

#define ANNOTATION_PREFIX "slurmjob.slinky.slurm.net/"

enum { MAX_LINE = 4096 };

static void add_requests(struct why *why, const struct json *pod, struct buf *text)
{
    struct json_iter iter = json_iter(json_at(pod, "spec", "containers"));
    const struct json *one, *amount;
    const char *between = "";
    struct str name;

    while (json_next_item(&iter, &one)) {
        struct json_iter requests = json_iter(json_at(one, "resources", "requests"));

        buf_printf(text, "%s%s:", between, why_text(why, one, "name"));
        if (json_len(json_at(one, "resources", "requests")) == 0)
            buf_add_text(text, " no requests");
        while (json_next_member(&requests, &name, &amount))
            buf_printf(text, " " STR_FMT " " STR_FMT, STR_ARG(name), STR_ARG(json_str(amount)));
        between = "; ";
    }
}

static void add_selector(const struct json *pod, struct buf *text)
{
    struct json_iter iter = json_iter(json_at(pod, "spec", "nodeSelector"));
    const char *between = "; nodeSelector ";
    const struct json *value;
    struct str name;

    while (json_next_member(&iter, &name, &value)) {
        buf_printf(text, "%s" STR_FMT "=" STR_FMT, between, STR_ARG(name),
                   STR_ARG(json_str(value)));
        between = ",";
    }
    if (json_exists(json_at(pod, "spec", "affinity")))
        buf_add_text(text, "; affinity");
    if (json_exists(json_at(pod, "spec", "topologySpreadConstraints")))
        buf_add_text(text, "; topology spread");
}

/* "timelimit=240, qos=high": those that are about the job, but `gang`, which is about the pod. */
static const char *job_annotations(struct why *why, const struct json *annotations)
{
    struct json_iter iter = json_iter(annotations);
    const struct json *value;
    struct str name;
    auto_buf struct buf text;

    buf_init(&text, MAX_LINE);
    while (json_next_member(&iter, &name, &value))
        if (str_starts(name, STR(ANNOTATION_PREFIX)) && !str_is(name, ANNOTATION_PREFIX "gang"))
            buf_printf(&text, "%s" STR_FMT "=" STR_FMT, text.len > 0 ? ", " : "",
                       STR_ARG(str_sub(name, sizeof(ANNOTATION_PREFIX) - 1, name.len)),
                       STR_ARG(json_str(value)));
    return arena_strdup(why->arena, buf_text(&text));
}

/* The bridge says whose annotations count: those of a pod template change no job. */
static void add_annotations(struct why *why, const struct json *pod)
{
    struct json_iter iter = json_iter(json_get(why->facts->decision, "annotations"));
    const char *own = job_annotations(why, json_at(pod, "metadata", "annotations")), *said;
    const struct json *object, *first = NULL;

    while (json_next_item(&iter, &object)) {
        first = first ? first : object;
        said = job_annotations(why, json_get(object, "values"));
        if (said[0])
            story_add(why->story, "asked", "annotations of %s %s: %s",
                      why_text(why, object, "kind"), why_text(why, object, "name"), said);
    }
    if (own[0] && first && !str_is(json_str(json_get(first, "kind")), "Pod"))
        story_add(why->story, "asked",
                  "annotations of the pod that do not count, because those of %s %s do: %s",
                  why_text(why, first, "kind"), why_text(why, first, "name"), own);
}

static void add_asked(struct why *why)
{
    const struct json *pod = why->facts->pod, *decision = why->facts->decision;
    int64_t pods = json_i64_or(json_get(decision, "pods"), 1);
    int64_t needed = json_i64_or(json_get(decision, "needed"), 1);
    auto_buf struct buf text;

    buf_init(&text, MAX_LINE);
    if (pods > 1 || needed > 1)
        buf_printf(&text, "one of %" PRId64 " pods that start together (%" PRId64 " exist); ",
                   needed, pods);
    add_requests(why, pod, &text);
    add_selector(pod, &text);
    story_add(why->story, "asked", "%s", buf_text(&text));
    add_annotations(why, pod);
}

/* A number of Slurm's JSON: plain, or {"set": true, "number": 4}. -1: it is not said. */
static int64_t number_of(const struct json *value)
{
    if (json_is_object(value))
        return json_bool_or(json_get(value, "set"), false)
                   ? json_i64_or(json_get(value, "number"), -1)
                   : -1;
    return json_i64_or(value, -1);
}

/* How the bridge translates it, where Slurm does not show the job yet. */
static void add_translation(struct why *why)
{
    static const struct {
        const char *key, *text, *one; /* one: instead of text, of the number 1 */
    } rows[] = { { "partition", "partition", NULL },
                 { "account", "account", NULL },
                 { "qos", "qos", NULL },
                 { "user_id", "user", NULL },
                 { "minimum_nodes", "nodes", "node" },
                 { "cpus_per_task", "cpus each", "cpu each" },
                 { "memory_per_node", "MiB each", NULL },
                 { "tres_per_node", "each node", NULL },
                 { "constraints", "features", NULL },
                 { "time_limit", "minutes at most", "minute at most" } };
    const struct json *decision = why->facts->decision;
    const struct json *desc = json_get(decision, "job");
    const char *between = "";
    auto_buf struct buf text;

    buf_init(&text, MAX_LINE);
    if (json_exists(json_get(decision, "invalid")))
        story_add(why->story, "became", "nothing yet: %s", why_text(why, decision, "invalid"));
    for (size_t i = 0; desc && !why->job && i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct json *value = json_get(desc, rows[i].key);

        if (json_is_string(value) && json_str(value).len > 0)
            buf_printf(&text, "%s%s " STR_FMT, between, rows[i].text, STR_ARG(json_str(value)));
        else if (!json_is_string(value) && number_of(value) >= 0)
            buf_printf(&text, "%s%" PRId64 " %s", between, number_of(value),
                       number_of(value) == 1 && rows[i].one ? rows[i].one : rows[i].text);
        else
            continue;
        between = ", ";
    }
    story_add(why->story, "became", "%s%s", text.len > 0 ? "a job: " : "", buf_text(&text));
}

/* Since the pod was created; '-' for what has not happened. Clocks may differ by a second. */
static void add_step(const struct why *why, const char *name, const struct json *time,
                     struct buf *text)
{
    int64_t from_s =
        text_seconds(json_str(json_at(why->facts->pod, "metadata", "creationTimestamp")));
    int64_t time_s = text_seconds(json_str(time));

    if (time_s == 0)
        buf_printf(text, " > %s -", name);
    else
        buf_printf(text, " > %s +%s", name,
                   text_age(why->arena, time_s > from_s ? time_s : from_s, from_s));
}

static bool is_bridged(const struct json *pod)
{
    return !str_is(json_str(json_at(pod, "spec", "schedulerName")), "default-scheduler");
}

static void add_life(struct why *why)
{
    const struct json *pod = why->facts->pod;
    const struct json *bound = why_condition(pod, "PodScheduled");
    const struct json *ready = why_condition(pod, "Ready");
    auto_buf struct buf text;

    buf_init(&text, MAX_LINE);
    buf_printf(&text, "created %s", why_clock(why, json_at(pod, "metadata", "creationTimestamp")));
    if (is_bridged(pod)) {
        add_step(why, "submitted", json_get(why->job, "submitted"), &text);
        add_step(why, "allocated", json_get(why->job, "started"), &text);
    }
    add_step(why, "bound", why_is_true(bound) ? json_get(bound, "lastTransitionTime") : NULL,
             &text);
    add_step(why, "ready", why_is_true(ready) ? json_get(ready, "lastTransitionTime") : NULL,
             &text);
    story_add(why->story, "life", "%s", buf_text(&text));
}

/* The first container that waits for something or failed, in the kubelet's words. */
static const char *container_trouble(struct why *why, const struct json *pod)
{
    struct json_iter iter = json_iter(json_at(pod, "status", "containerStatuses"));
    const struct json *status;

    while (json_next_item(&iter, &status)) {
        const struct json *waits = json_at(status, "state", "waiting");
        const struct json *ended = json_at(status, "state", "terminated");

        if (json_i64_or(json_get(ended, "exitCode"), 0) != 0)
            return arena_printf(why->arena, "container %s ended with %" PRId64 ": %s",
                                why_text(why, status, "name"),
                                json_i64_or(json_get(ended, "exitCode"), 0),
                                why_text(why, ended, "reason"));
        if (json_exists(json_get(waits, "reason")))
            return arena_printf(why->arena, "container %s waits: %s%s%s",
                                why_text(why, status, "name"), why_text(why, waits, "reason"),
                                json_exists(json_get(waits, "message")) ? ": " : "",
                                why_text(why, waits, "message"));
    }
    return "";
}

static void conclude_waiting(struct why *why, const char *name, const char *age)
{
    const struct json *pod = why->facts->pod, *waits = why_condition(pod, WHY_PENDING_CONDITION);
    const struct json *scheduled = why_condition(pod, "PodScheduled");

    if (why_is_true(waits) && why_advice(why, json_str(json_get(waits, "reason"))).is_never)
        story_conclude(why->story, STORY_NEVER, "%s cannot start as it is: %s", name,
                       why_text(why, waits, "message"));
    else if (why_is_true(waits))
        story_conclude(why->story, STORY_WAITING, "%s waits for %s: %s", name, age,
                       why_text(why, waits, "message"));
    else if (json_exists(json_at(pod, "metadata", "labels", WHY_JOB_LABEL)) || why->job)
        story_conclude(why->story, STORY_WAITING, "%s waits for %s in Slurm", name, age);
    else
        story_conclude(why->story, STORY_WAITING, "%s waits for %s: scheduler %s has not placed it",
                       name, age,
                       text_plain(why->arena, json_str(json_at(pod, "spec", "schedulerName"))));
    if (!why_is_true(waits) && json_exists(json_get(scheduled, "message")))
        story_add(why->story, "says", "%s", why_text(why, scheduled, "message"));
}

/* The result in one line. */
static void conclude(struct why *why)
{
    const struct json *pod = why->facts->pod, *ended = why_condition(pod, WHY_ENDED_CONDITION);
    struct arena *arena = why->arena;
    struct str phase = json_str(json_at(pod, "status", "phase"));
    struct str node = json_str(json_at(pod, "spec", "nodeName"));
    const char *trouble = container_trouble(why, pod);
    const char *name = arena_printf(arena, STR_FMT "/" STR_FMT,
                                    STR_ARG(json_str(json_at(pod, "metadata", "namespace"))),
                                    STR_ARG(json_str(json_at(pod, "metadata", "name"))));
    const char *age =
        text_age(arena, why->options->now_s,
                 text_seconds(json_str(json_at(pod, "metadata", "creationTimestamp"))));

    if (why_is_true(ended))
        story_conclude(why->story, STORY_ENDED, "%s: Slurm ended its job: %s", name,
                       why_text(why, ended, "message"));
    else if (str_is(phase, "Succeeded") || str_is(phase, "Failed"))
        story_conclude(why->story, str_is(phase, "Failed") ? STORY_FAILED : STORY_ENDED,
                       "%s has ended: " STR_FMT "%s%s", name, STR_ARG(phase),
                       trouble[0] ? "; " : "", trouble);
    else if (node.len > 0)
        story_conclude(why->story, str_is(phase, "Running") ? STORY_RUNNING : STORY_BOUND,
                       "%s %s " STR_FMT "%s%s", name,
                       str_is(phase, "Running") ? "runs on" : "is bound to", STR_ARG(node),
                       trouble[0] ? "; " : "", trouble);
    else
        conclude_waiting(why, name, age);
}

static void tell_worker(struct why *why)
{
    bool serves;
    const char *text = why_worker(why, why->facts->pod, &serves);

    story_conclude(why->story, serves ? STORY_RUNNING : STORY_WAITING, "worker %s", text);
    why_add_events(why);
}

void why_of_pod(struct why *why)
{
    const struct json *pod = why->facts->pod;
    const struct json *waits = why_condition(pod, WHY_PENDING_CONDITION);
    struct str reason = why_reason(why);

    if (why_is_worker(pod)) {
        tell_worker(why);
        return;
    }
    conclude(why);
    add_asked(why);
    add_translation(why);
    if (is_bridged(pod) || why->job)
        why_add_job(why);
    else
        story_add(why->story, "Slurm", "has nothing to do with this pod: its scheduler is %s",
                  text_plain(why->arena, json_str(json_at(pod, "spec", "schedulerName"))));
    if (why->story->result == STORY_WAITING || why->story->result == STORY_NEVER) {
        why_add_nodes(why);
        if (!why->job || !str_is(json_str(json_get(why->job, "state")), "pending"))
            reason = json_str(json_get(waits, "reason"));
        if (reason.len > 0 || why->job)
            why_add_advice(why, reason);
    }
    add_life(why);
    why_add_events(why);
    story_attach(why->story, "pod", json_get(pod, "metadata"));
    story_attach(why->story, "status", json_get(pod, "status"));
    story_attach(why->story, "decision", why->facts->decision);
}
