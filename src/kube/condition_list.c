/* condition_list.c - conditions of custom resources, changed by type. */
#include "kube/condition_list.h"

#include "codec/timestamp.h"

static const char *const truth_names[] = { "False", "True", "Unknown" };

const struct json *kube_condition_entry(const struct json *list, const char *type)
{
    struct json_iter iter = json_iter(list);
    const struct json *entry;

    while (json_next_item(&iter, &entry))
        if (str_is(json_str(json_get(entry, "type")), type))
            return entry;
    return NULL;
}

static bool says_that(const struct json *entry, const struct kube_condition_want *want,
                      int64_t generation)
{
    return entry && str_is(json_str(json_get(entry, "status")), truth_names[want->status]) &&
           str_is(json_str(json_get(entry, "reason")), want->reason) &&
           str_is(json_str(json_get(entry, "message")), want->message ? want->message : "") &&
           json_i64_or(json_get(entry, "observedGeneration"), 0) == generation;
}

static struct json_mut *entry_for(struct json_build *build, const struct json *live,
                                  const struct kube_condition_want *want, int64_t generation,
                                  int64_t wall_us)
{
    struct json_mut *entry = json_new_object(build);
    const struct json *since = json_get(live, "lastTransitionTime");
    auto_buf struct buf now;

    buf_init(&now, 64);
    json_put_text(build, entry, "type", want->type);
    json_put_text(build, entry, "status", truth_names[want->status]);
    json_put_i64(build, entry, "observedGeneration", generation);
    if (json_exists(since) &&
        str_is(json_str(json_get(live, "status")), truth_names[want->status])) {
        json_put(build, entry, "lastTransitionTime", json_copy(build, since));
    } else {
        (void)timestamp_print(wall_us, &now, NULL);
        json_put_text(build, entry, "lastTransitionTime", buf_text(&now));
    }
    json_put_text(build, entry, "reason", want->reason);
    json_put_text(build, entry, "message", want->message ? want->message : "");
    return entry;
}

static const struct kube_condition_want *want_of(const struct kube_condition_want *wanted,
                                                 size_t count, struct str type)
{
    for (size_t i = 0; i < count; i++)
        if (str_is(type, wanted[i].type))
            return &wanted[i];
    return NULL;
}

struct json_mut *kube_condition_list(struct json_build *build, const struct json *live,
                                     const struct kube_condition_want *wanted, size_t count,
                                     int64_t generation, int64_t wall_us)
{
    struct json_mut *list = json_new_array(build);
    struct json_iter iter = json_iter(live);
    const struct json *entry;
    bool changed = false;

    while (json_next_item(&iter, &entry)) {
        const struct kube_condition_want *want =
            want_of(wanted, count, json_str(json_get(entry, "type")));

        json_push(list, want && !says_that(entry, want, generation)
                            ? entry_for(build, entry, want, generation, wall_us)
                            : json_copy(build, entry));
    }
    for (size_t i = 0; i < count; i++) {
        entry = kube_condition_entry(live, wanted[i].type);
        changed |= !says_that(entry, &wanted[i], generation);
        if (!entry)
            json_push(list, entry_for(build, NULL, &wanted[i], generation, wall_us));
    }
    return changed ? list : NULL;
}
