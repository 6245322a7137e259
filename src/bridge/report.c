/* report.c - conditions on pods: what they wait for and what became of their job.
 *
 * Holds: a condition is written only when its words differ from those on the pod. */
#include "bridge/report.h"

#include "base/map.h"
#include "bridge/place.h"
#include "bridge/slurm/slurm_action.h"
#include "bridge/world/names.h"
#include "codec/timestamp.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum {
    SECOND_US = 1000000,
    REPORT_EACH_US = 50000,              /* twenty pods a second are told at most */
    TROUBLE_EACH_US = 5000,              /* of our own trouble two hundred, */
    TROUBLE_LONGEST_US = 50 * SECOND_US, /* or more, for none is told later */
    MAX_MESSAGE = 1024,
    MAX_WORD = 64,
};

struct condition_update {
    const char *type, *status, *reason, *message;
};

static bool is_said(const struct kube_pod *pod, const struct condition_update *update)
{
    const struct kube_condition *has =
        kube_condition_of(pod->conditions, pod->condition_count, update->type);

    return has && str_is(str_of(has->status), update->status) &&
           str_is(str_of(has->reason), update->reason) &&
           str_is(str_of(has->message), update->message);
}

/* "" for a time that cannot be written. */
static const char *time_text(struct arena *arena, int64_t wall_us)
{
    auto_buf struct buf text;
    struct err err = { .class = 0 };

    buf_init(&text, 64);
    (void)timestamp_print(wall_us, &text, &err);
    return arena_strdup(arena, buf_text(&text));
}

static void put_condition(struct json_build *build, struct json_mut *list, const char *at,
                          const struct condition_update *update)
{
    struct json_mut *condition = json_new_object(build);

    json_put_text(build, condition, "type", update->type);
    json_put_text(build, condition, "status", update->status);
    json_put_text(build, condition, "reason", update->reason);
    json_put_text(build, condition, "message", update->message);
    json_put_text(build, condition, "lastTransitionTime", at);
    json_push(list, condition);
}

/* Lists of conditions are merged by their type. version: only if it is still this; NULL: whatever
 * it is. */
static void say(const struct bridge_world *world, const struct kube_pod *pod, const char *version,
                struct plan *plan, const struct condition_update *updates, size_t count)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *patch = json_new_object(build);
    struct json_mut *predicted = json_new_object(build);
    const char *at = time_text(plan->arena, world->facts.wall_us);
    struct json_mut *list =
        json_put_array(build, json_object_at(build, patch, "status"), "conditions");
    struct json_mut *foretold =
        json_put_array(build, json_object_at(build, predicted, "status"), "conditions");

    json_put_text(build, json_object_at(build, patch, "metadata"), "uid", pod->object.uid);
    for (size_t i = 0; i < count; i++) {
        put_condition(build, list, at, &updates[i]);
        put_condition(build, foretold, at, &updates[i]);
    }
    plan_strategic_patch(plan, world->pods, &kube_pods, pod->object.ns, pod->object.name, "status",
                         version, patch, predicted);
}

/* Both conditions in one write, unless the pod has them; not before left_us have passed. */
static bool report_one(const struct bridge_world *world, const struct member *member,
                       struct plan *plan, const char *reason, const char *message, int64_t left_us)
{
    const struct condition_update updates[] = {
        { BRIDGE_PENDING_CONDITION, "True", reason, message },
        { "PodScheduled", "False", "Unschedulable", message },
    };

    if (is_said(member->pod, &updates[0]))
        return false;
    if (left_us > 0)
        plan_look_again(plan, left_us);
    else
        say(world, member->pod, NULL, plan, updates, member->stage == POD_WAITS ? 2 : 1);
    return left_us <= 0;
}

/* Nothing is written on a pod that is younger than patience_us. */
__attribute__((format(printf, 6, 0))) static bool report_all(const struct bridge_world *world,
                                                             const struct unit *unit,
                                                             struct plan *plan, int64_t patience_us,
                                                             const char *reason, const char *format,
                                                             va_list args)
{
    char message[MAX_MESSAGE];
    bool told = false;

    (void)vsnprintf(message, sizeof(message), format, args);
    plan_wait(plan, "%s", message);
    for (unsigned i = 0; i < unit->member_count && plan_has_room(plan); i++) {
        int64_t waited_us = world->facts.wall_us - unit->members[i].pod->object.created_us;
        int64_t left_us = SECOND_US - (waited_us > 0 ? waited_us % SECOND_US : 0);

        if (unit->members[i].stage == unit->stage)
            told |= report_one(world, &unit->members[i], plan, reason, message,
                               waited_us < patience_us ? left_us : 0);
    }
    return told;
}

/* After a second; later while many wait, or words about waiting would keep them waiting. */
bool report_waiting(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                    const char *reason, const char *format, ...)
{
    int64_t for_all_us = (int64_t)world->facts.waiting_pods * REPORT_EACH_US;
    va_list args;
    bool told;

    va_start(args, format);
    told = report_all(world, unit, plan, for_all_us > SECOND_US ? for_all_us : SECOND_US, reason,
                      format, args);
    va_end(args);
    return told;
}

bool report_trouble(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                    const char *reason, const char *format, ...)
{
    va_list args;
    bool told;

    va_start(args, format);
    told = report_all(world, unit, plan, SECOND_US, reason, format, args);
    va_end(args);
    return told;
}

int64_t report_trouble_delay_us(size_t waiting, const char *uid)
{
    const uint64_t secret[2] = { 0, 0 };
    int64_t window_us = (int64_t)waiting * TROUBLE_EACH_US;

    if (window_us > TROUBLE_LONGEST_US)
        window_us = TROUBLE_LONGEST_US;
    return SECOND_US +
           (window_us > 0 ? (int64_t)(map_hash(str_of(uid), secret) % (uint64_t)window_us) : 0);
}

void report_slurm_trouble(const struct bridge_world *world, const struct unit *unit,
                          struct plan *plan, int64_t since_us, const char *why)
{
    static const char *const reason = "SlurmUnavailable";
    int64_t lasts_us = world->facts.now_us - since_us;
    bool told = false;

    plan_wait(plan, "%s", why);
    for (unsigned i = 0; i < unit->member_count; i++) {
        const struct kube_object *pod = &unit->members[i].pod->object;
        int64_t waited_us = world->facts.wall_us - pod->created_us;
        int64_t delay_us = report_trouble_delay_us(world->facts.waiting_pods, pod->uid);

        if (unit->members[i].stage == unit->stage)
            told |= report_one(world, &unit->members[i], plan, reason, why,
                               delay_us - (waited_us < lasts_us ? waited_us : lasts_us));
    }
    if (told) {
        /* The same words about the same namespace are one Event, however many pods say them. */
        const struct kube_object *found =
            world->namespaces ? kube_cache_get(world->namespaces, "", unit->pod->object.ns) : NULL;
        const struct kube_object space = { .kind = &kube_namespace_kind,
                                           .ns = unit->pod->object.ns,
                                           .name = unit->pod->object.ns,
                                           .uid = found ? found->uid : "" };

        plan_event(plan, &space, KUBE_EVENT_WARNING, reason, "%s", why);
    }
}

void report_placed(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                   const struct slurm_job *job, const char *node)
{
    const struct kube_pod *pod = unit->pod;
    const struct kube_condition *has =
        kube_condition_of(pod->conditions, pod->condition_count, BRIDGE_PENDING_CONDITION);
    const struct condition_update update = { BRIDGE_PENDING_CONDITION, "False", "Placed",
                                             arena_printf(plan->arena, "job %" PRId64 " runs on %s",
                                                          job->id, node) };

    if (has && str_is(str_of(has->status), "True"))
        say(world, pod, NULL, plan, &update, 1);
}

bool report_ended(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                  const char *reason, const char *message)
{
    const struct condition_update update = { BRIDGE_ENDED_CONDITION, "True", reason, message };

    if (is_said(unit->pod, &update))
        return false;
    say(world, unit->pod, unit->pod->object.version, plan, &update, 1);
    return true;
}

const char *report_reason_word(struct arena *arena, const char *reason)
{
    auto_buf struct buf word;

    buf_init(&word, MAX_WORD);
    for (const char *at = reason; *at && buf_str(&word).len < MAX_WORD - 1; at++)
        if ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9'))
            buf_add(&word, at, 1);

    struct str text = buf_str(&word);

    /* Slurm's word for "no reason" would say the opposite of what is meant. */
    if (text.len == 0 || str_is(text, "None") || (text.at[0] >= '0' && text.at[0] <= '9'))
        return "Pending";
    return arena_printf(arena, STR_FMT, STR_ARG(text));
}

/* By the minute: a time that moves by seconds is not worth a write. */
const char *report_why_it_waits(struct arena *arena, const struct slurm_job *job)
{
    int64_t start = slurm_job_expected_start(job) / 60 * 60;
    const char *reason = job->reason_text[0] ? job->reason_text : job->reason;

    if (!reason[0] || str_is(str_of(reason), "None"))
        reason = "Slurm has not looked at it yet";
    if (start <= 0)
        return arena_printf(arena, "job %" PRId64 " waits: %s", job->id, reason);
    return arena_printf(arena, "job %" PRId64 " waits: %s (expected to start at %s)", job->id,
                        reason, time_text(arena, start * SECOND_US));
}

/* ---- the object of a group ---- */

static struct json_mut *put_group_condition(struct json_build *build, struct json_mut *status)
{
    struct json_mut *condition = json_new_object(build);

    json_push(json_put_array(build, status, "conditions"), condition);
    json_put_text(build, condition, "type", "PodGroupScheduled");
    json_put_text(build, condition, "status", "True");
    return condition;
}

void plan_show_group(const struct bridge_world *world, const struct unit *unit, struct plan *plan)
{
    const struct kube_group *group = unit->group;
    struct kube_cache *cache = world->optional[OPTIONAL_PODGROUPS].cache;
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *patch = json_new_object(build), *predicted = json_new_object(build), *said;
    auto_buf struct buf now = { .max = 64 };

    if (unit->kind != GROUP_PODGROUP || !group || group->is_scheduled ||
        unit->in[POD_BOUND] < (uint64_t)unit->needed || unit->in[POD_WAITS] > 0)
        return;
    (void)timestamp_print(world->facts.wall_us, &now, NULL);
    json_put_text(build, json_put_object(build, patch, "metadata"), "uid", group->object.uid);
    said = put_group_condition(build, json_put_object(build, patch, "status"));
    json_put_text(build, said, "reason", "Scheduled");
    json_put_text(
        build, said, "message",
        arena_printf(plan->arena, "Pod group admitted by %s", world->config->scheduler_name));
    json_put_i64(build, said, "observedGeneration", group->object.generation);
    json_put_str(build, said, "lastTransitionTime", buf_str(&now));
    (void)put_group_condition(build, json_put_object(build, predicted, "status"));
    plan_strategic_patch(plan, cache, group->object.kind->resource, group->object.ns,
                         group->object.name, "status", NULL, patch, predicted);
}
