/* why_nodeset.c - the story of a NodeSet: how many workers it should have, and what is with those
 * that do not serve. The words are those that the operator writes on the NodeSet and its pods. */
#include "cli/why_private.h"

#include <inttypes.h>

#define STATE_PREFIX "SlurmNodeState"
#define POD_CORDON   "nodeset.slinky.slurm.net/pod-cordon"
#define CORDONED_BY  "slinc.slurm.net/cordoned-by"
#define UNREGISTERED "slinc.slurm.net/unregistered-since"
#define DEADLINE     "nodeset.slinky.slurm.net/pod-deadline"
#define WORKER_APP   "slurmd"
#define NEVER_YEAR   "9999-" /* of a deadline that never comes */

enum { MAX_WORKERS_TOLD = 8 };

bool why_is_worker(const struct json *pod)
{
    return str_is(json_str(json_at(pod, "metadata", "labels", "app.kubernetes.io/name")),
                  WORKER_APP);
}

/* Slurm's states of its node, as the operator wrote them: "Idle, Drain: \"reason\"". */
static bool add_states(const struct json *pod, struct buf *text, bool *ret_is_out)
{
    static const char *const out[] = { "Down",          "Drain",       "Error",
                                       "Fail",          "Invalid",     "InvalidReg",
                                       "NotResponding", "Maintenance", "Unknown" };
    struct json_iter iter = json_iter(json_at(pod, "status", "conditions"));
    const struct json *one;
    struct str reason = STR("");
    const char *between = "";

    *ret_is_out = false;
    while (json_next_item(&iter, &one)) {
        struct str type = json_str(json_get(one, "type"));

        if (!str_starts(type, STR(STATE_PREFIX)) || !why_is_true(one))
            continue;
        type = str_sub(type, sizeof(STATE_PREFIX) - 1, type.len);
        buf_printf(text, "%s" STR_FMT, between, STR_ARG(type));
        between = ", ";
        for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++)
            *ret_is_out |= str_is(type, out[i]);
        if (json_str(json_get(one, "message")).len > 0)
            reason = json_str(json_get(one, "message"));
    }
    if (reason.len > 0)
        buf_printf(text, ": \"" STR_FMT "\"", STR_ARG(reason));
    return between[0] != '\0';
}

static void add_marks(const struct why *why, const struct json *pod, struct buf *text)
{
    const struct json *notes = json_at(pod, "metadata", "annotations");
    struct str by = json_str(json_get(notes, CORDONED_BY));

    if (str_is(json_str(json_get(notes, POD_CORDON)), "true"))
        buf_printf(text, "; cordoned by " STR_FMT,
                   STR_ARG(by.len > 0 ? by : STR("a person (slinc resume takes it back)")));
    if (json_exists(json_get(notes, UNREGISTERED)))
        buf_printf(text, "; not registered since %s",
                   why_clock(why, json_get(notes, UNREGISTERED)));
    if (str_starts(json_str(json_get(notes, DEADLINE)), STR(NEVER_YEAR)))
        buf_add_text(text, "; it has a job without a time limit");
    else if (json_exists(json_get(notes, DEADLINE)))
        buf_printf(text, "; its last job ends by %s", why_clock(why, json_get(notes, DEADLINE)));
}

/* What the kubelet or the scheduler of Kubernetes says of a pod that is not ready. */
static void add_pod_trouble(const struct why *why, const struct json *pod, struct buf *text)
{
    const struct json *scheduled = why_condition(pod, "PodScheduled");
    struct json_iter iter = json_iter(json_at(pod, "status", "containerStatuses"));
    const struct json *status;

    if (json_exists(scheduled) && !why_is_true(scheduled)) {
        buf_printf(text, "; no Node yet: %s", why_text(why, scheduled, "message"));
        return;
    }
    while (json_next_item(&iter, &status)) {
        const struct json *waits = json_at(status, "state", "waiting");

        if (json_exists(json_get(waits, "reason"))) {
            buf_printf(text, "; container %s: %s %s", why_text(why, status, "name"),
                       why_text(why, waits, "reason"), why_text(why, waits, "message"));
            return;
        }
        if (!json_bool_or(json_get(status, "ready"), false))
            buf_printf(text, "; container %s is not ready, restarted %" PRId64 " times",
                       why_text(why, status, "name"),
                       json_i64_or(json_get(status, "restartCount"), 0));
    }
}

const char *why_worker(struct why *why, const struct json *pod, bool *ret_serves)
{
    struct str phase = json_str(json_at(pod, "status", "phase"));
    bool is_ready = why_is_true(why_condition(pod, "Ready")), is_out = false, is_known;
    auto_buf struct buf text, states;

    buf_init(&text, 4096);
    buf_init(&states, 4096);
    is_known = add_states(pod, &states, &is_out);
    *ret_serves = is_ready && is_known && !is_out &&
                  !json_exists(json_at(pod, "metadata", "deletionTimestamp"));
    buf_printf(&text, STR_FMT ": pod " STR_FMT, STR_ARG(json_str(json_at(pod, "metadata", "name"))),
               STR_ARG(phase));
    if (json_exists(json_at(pod, "metadata", "deletionTimestamp")))
        buf_add_text(&text, ", being deleted");
    if (!is_ready)
        add_pod_trouble(why, pod, &text);
    if (is_known)
        buf_printf(&text, "; Slurm: " STR_FMT, STR_ARG(buf_str(&states)));
    else if (is_ready)
        buf_add_text(&text, "; Slurm has no node for it yet: see the log of slurmd "
                            "(kubectl logs -c slurmd), and whether it reaches slurmctld");
    add_marks(why, pod, &text);
    return text_plain(why->arena, buf_str(&text));
}

/* What the operator itself says. */
static void add_conditions(struct why *why)
{
    struct json_iter iter = json_iter(json_at(why->facts->nodeset, "status", "conditions"));
    const struct json *one;

    while (json_next_item(&iter, &one)) {
        bool is_good =
            str_is(json_str(json_get(one, "type")), "Ready") ? why_is_true(one) : !why_is_true(one);

        if (!is_good && !str_is(json_str(json_get(one, "type")), "ReservationCreated"))
            story_add(why->story, "operator", "%s=%s %s: %s", why_text(why, one, "type"),
                      why_text(why, one, "status"), why_text(why, one, "reason"),
                      why_text(why, one, "message"));
    }
}

static void add_workers(struct why *why, int64_t *ret_serving, int64_t *ret_count)
{
    struct json_iter iter = json_iter(json_get(why->facts->pods, "items"));
    const struct json *pod;
    unsigned told = 0, more = 0;
    bool serves;

    *ret_serving = *ret_count = 0;
    while (json_next_item(&iter, &pod)) {
        const char *text = why_worker(why, pod, &serves);

        ++*ret_count;
        *ret_serving += serves;
        if (!serves && told++ < MAX_WORKERS_TOLD)
            story_add(why->story, "worker", "%s", text);
        else if (!serves)
            more++;
    }
    if (more > 0)
        story_add(why->story, "worker", "and %u more", more);
}

void why_of_nodeset(struct why *why)
{
    const struct json *nodeset = why->facts->nodeset, *status = json_get(nodeset, "status");
    const char *name = arena_printf(why->arena, STR_FMT "/" STR_FMT,
                                    STR_ARG(json_str(json_at(nodeset, "metadata", "namespace"))),
                                    STR_ARG(json_str(json_at(nodeset, "metadata", "name"))));
    int64_t wanted = json_i64_or(json_get(status, "desired"),
                                 json_i64_or(json_at(nodeset, "spec", "replicas"), 1));
    int64_t serving, count;

    story_add(why->story, "asked", "%" PRId64 " worker%s, for the cluster of Controller " STR_FMT,
              wanted, wanted == 1 ? "" : "s",
              STR_ARG(json_str(json_at(nodeset, "spec", "controllerRef", "name"))));
    if (!json_exists(status))
        story_add(why->story, "operator",
                  "has not looked at it yet: does slurm-operator run? (slinc doctor)");
    add_conditions(why);
    add_workers(why, &serving, &count);
    if (!why->facts->pods)
        story_add(why->story, "worker", "%s", why->facts->no_pods);
    else if (count < wanted)
        story_add(why->story, "worker", "%" PRId64 " %s no pod yet", wanted - count,
                  wanted - count == 1 ? "has" : "have");
    story_conclude(why->story, serving >= wanted && why->facts->pods ? STORY_READY : STORY_WAITING,
                   "nodeset %s: %" PRId64 " of %" PRId64 " workers serve", name, serving, wanted);
    why_add_events(why);
    story_attach(why->story, "nodeset", json_get(nodeset, "metadata"));
    story_attach(why->story, "status", status);
}
