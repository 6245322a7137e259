/* pod_end.c - how a pod ended: the container that failed first, and what disturbed the pod.
 *
 * Holds: both passes of the decoder ask for the same memory; a patch without a phase changes
 * nothing. */
#include "kube/pod_end.h"

#include "codec/timestamp.h"

static int64_t time_of(const struct json *value)
{
    int64_t us = 0;

    (void)timestamp_parse(json_str(value), &us, NULL);
    return us;
}

/* The names of containers sort their list, so only the time tells which one failed first. */
static void take_container(const struct json *status, struct kube_end *end, int64_t *first_us)
{
    const struct json *terminated = json_at(status, "state", "terminated");
    int64_t code = json_i64_or(json_get(terminated, "exitCode"), 0);
    int64_t finished_us = time_of(json_get(terminated, "finishedAt"));

    if (!json_exists(terminated))
        return;
    if (finished_us > end->finished_us)
        end->finished_us = finished_us;
    if (code == 0 || (end->exit_code != 0 && finished_us >= *first_us))
        return;
    *first_us = finished_us;
    end->exit_code = code > 0 && code < INT32_MAX ? (int32_t)code : 1;
    end->is_oom_killed = str_is(json_str(json_get(terminated, "reason")), "OOMKilled");
}

static void take_containers(const struct json *status, struct kube_end *end)
{
    static const char *const lists[] = { "initContainerStatuses", "containerStatuses" };
    int64_t first_us = INT64_MAX;

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        struct json_iter iter = json_iter(json_get(status, lists[i]));
        const struct json *one;

        while (json_next_item(&iter, &one))
            take_container(one, end, &first_us);
    }
}

/* "EvictionByEvictionAPI", "DeletionByTaintManager" ...; empty without such a condition. */
static struct str disruption(const struct json *status)
{
    struct json_iter iter = json_iter(json_get(status, "conditions"));
    const struct json *one;

    while (json_next_item(&iter, &one))
        if (str_is(json_str(json_get(one, "type")), "DisruptionTarget") &&
            str_is(json_str(json_get(one, "status")), "True"))
            return json_str(json_get(one, "reason"));
    return STR("");
}

int kube_pod_end_decode(struct kube_decoder *decoder, const struct json *root, struct kube_pod *pod,
                        struct err *err)
{
    const struct json *status = json_get(root, "status"), *metadata = json_get(root, "metadata");
    struct str phase = json_str(json_get(status, "phase"));
    bool is_final = str_is(phase, "Succeeded") || str_is(phase, "Failed");
    struct kube_end *end;

    (void)err;
    if (phase.len == 0)
        return 0;
    pod->end = NULL;
    if (!is_final && !json_is_string(json_get(metadata, "deletionTimestamp")))
        return 0;
    end = kube_decoder_alloc(decoder, sizeof(*end));
    *end = (struct kube_end){ .grace_s =
                                  json_i64_or(json_get(metadata, "deletionGracePeriodSeconds"), 0),
                              .disruption = kube_decoder_str(decoder, disruption(status)),
                              .reason =
                                  kube_decoder_str(decoder, json_str(json_get(status, "reason"))) };
    take_containers(status, end);
    pod->end = end;
    return 0;
}
