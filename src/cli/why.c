/* why.c - the story of one pod, job or NodeSet: the result in one line, then the evidence. What
 * could not be read is named. */
#include "cli/why_private.h"

#include "kube/condition_list.h"

enum { MAX_EVENTS = 3 };

const char *why_text(const struct why *why, const struct json *object, const char *key)
{
    return text_plain(why->arena, json_str(json_get(object, key)));
}

const struct json *why_condition(const struct json *object, const char *type)
{
    return kube_condition_entry(json_at(object, "status", "conditions"), type);
}

bool why_is_true(const struct json *condition)
{
    return str_is(json_str(json_get(condition, "status")), "True");
}

const char *why_clock(const struct why *why, const struct json *time)
{
    return text_clock(why->arena, why->options->now_s, text_seconds(json_str(time)));
}

static const char *event_age(const struct why *why, const struct json *event)
{
    int64_t time_s = text_seconds(json_str(json_get(event, "lastTimestamp")));

    if (time_s == 0)
        time_s = text_seconds(json_str(json_get(event, "eventTime")));
    if (time_s == 0 || time_s > why->options->now_s)
        return "";
    return arena_printf(why->arena, " (%s ago)", text_age(why->arena, why->options->now_s, time_s));
}

/* The last warnings; where there is none, the last events of what has not started. */
void why_add_events(struct why *why)
{
    const struct json *items = json_get(why->facts->events, "items"), *event;
    enum story_result result = why->story->result;
    size_t count = 0, index = 0;
    struct json_iter iter = json_iter(items);
    bool only_warnings;

    while (json_next_item(&iter, &event))
        count += str_is(json_str(json_get(event, "type")), "Warning");
    only_warnings =
        count > 0 || result == STORY_READY || result == STORY_RUNNING || result == STORY_ENDED;
    if (!only_warnings)
        count = json_len(items);
    iter = json_iter(items);
    while (json_next_item(&iter, &event)) {
        if (only_warnings && !str_is(json_str(json_get(event, "type")), "Warning"))
            continue;
        if (index++ + MAX_EVENTS >= count)
            story_add(why->story, "event", "%s: %s%s", why_text(why, event, "reason"),
                      why_text(why, event, "message"), event_age(why, event));
    }
}

int why_tell(const struct why_facts *facts, const struct show_options *options,
             struct story *ret_story, struct err *err)
{
    struct why why = { .facts = facts,
                       .options = options,
                       .arena = ret_story->arena,
                       .story = ret_story,
                       .job_id = facts->job_id };

    if (facts->nodeset) {
        why_of_nodeset(&why);
        return 0;
    }
    why_find_job(&why);
    if (facts->pod) {
        why_of_pod(&why);
        return 0;
    }
    if (!why.job)
        return err_set(err, ERR_NOT_FOUND, "no job %lld waits or runs in Slurm",
                       (long long)why.job_id);
    why_of_job(&why);
    return 0;
}
