/* report.c - conditions and events on pods: what they wait for.
 *
 * Holds: a condition is written only when its words differ from those on the pod. */
#include "bridge/report.h"

#include "base/map.h"
#include "bridge/unit/conditions.h"
#include "bridge/world/names.h"
#include "engine/event_action.h"

enum {
    SECOND_US = 1000000,
    REPORT_EACH_US = 50000,             /* at most twenty conditions a second say SHOW_WAITING */
    OUTAGE_EACH_US = 5000,              /* about two hundred a second say SHOW_OUTAGE, or more: */
    OUTAGE_LONGEST_US = 50 * SECOND_US, /* every pod says so within this time */
};

/* The job that the label of a pod that waits names, written together with the condition. NULL: the
 * label stays as it is. */
static const char *job_shown(const struct bridge_world *world, const struct unit *unit,
                             const struct member *member)
{
    if (member->stage != POD_WAITS || !slurm_is_clear(world))
        return NULL;
    return unit->job ? unit->job->object.key : "";
}

/* Writes both conditions at once. False: the pod has them already, or they are not due for another
 * left_us. */
static bool report_one(const struct bridge_world *world, const struct unit *unit,
                       const struct member *member, struct plan *plan, const struct report *report,
                       int64_t left_us)
{
    const struct condition_update updates[] = {
        { BRIDGE_PENDING_CONDITION, "True", report->reason, report->text },
        { "PodScheduled", "False", "Unschedulable", report->text },
    };

    if (condition_is_said(member->pod, &updates[0]))
        return false;
    if (left_us > 0) {
        plan_look_again(plan, left_us);
        return false;
    }
    plan_conditions(world, member->pod, plan,
                    &(struct conditions){ .updates = updates,
                                          .count = member->stage == POD_WAITS ? 2 : 1,
                                          .job = job_shown(world, unit, member) });
    return true;
}

/* Counts whole seconds of the pod's age. While many pods wait, SHOW_WAITING is written later,
 * because so many writes would delay the pods. */
static int64_t patience_left_us(const struct bridge_world *world, const struct kube_pod *pod,
                                enum show show)
{
    int64_t for_all_us = (int64_t)world->facts.waiting_pods * REPORT_EACH_US;
    int64_t waited_us = world->facts.wall_us - pod->object.created_us;
    bool waits_for_others = show == SHOW_WAITING && for_all_us > SECOND_US;

    if (waited_us >= (waits_for_others ? for_all_us : SECOND_US))
        return 0;
    return SECOND_US - (waited_us > 0 ? waited_us % SECOND_US : 0);
}

int64_t report_outage_delay_us(size_t waiting, const char *uid)
{
    const uint64_t secret[2] = { 0, 0 };
    int64_t window_us = (int64_t)waiting * OUTAGE_EACH_US;

    if (window_us > OUTAGE_LONGEST_US)
        window_us = OUTAGE_LONGEST_US;
    return SECOND_US +
           (window_us > 0 ? (int64_t)(map_hash(str_of(uid), secret) % (uint64_t)window_us) : 0);
}

static int64_t outage_left_us(const struct bridge_world *world, const struct kube_pod *pod,
                              int64_t since_us)
{
    int64_t lasts_us = world->facts.now_us - since_us;
    int64_t waited_us = world->facts.wall_us - pod->object.created_us;

    return report_outage_delay_us(world->facts.waiting_pods, pod->object.uid) -
           (waited_us < lasts_us ? waited_us : lasts_us);
}

/* However many pods say the same words, their namespace has one Event. */
static void post_on_namespace(const struct bridge_world *world, const char *ns, struct plan *plan,
                              const struct report *report)
{
    const struct kube_object *found =
        world->namespaces ? kube_cache_get(world->namespaces, "", ns) : NULL;
    const struct kube_object space = {
        .kind = &kube_namespace_kind, .ns = ns, .name = ns, .uid = found ? found->uid : ""
    };

    plan_event(plan, &space, KUBE_EVENT_WARNING, report->reason, "%s", report->text);
}

void plan_report(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                 const struct report *report)
{
    bool is_told = false;

    if (report->text[0])
        plan_wait(plan, "%s", report->text);
    for (unsigned i = 0; report->show != SHOW_NOT && i < unit->member_count && plan_has_room(plan);
         i++) {
        const struct member *member = &unit->members[i];
        int64_t left_us = report->show == SHOW_OUTAGE
                              ? outage_left_us(world, member->pod, report->since_us)
                              : patience_left_us(world, member->pod, report->show);

        if (member->stage == unit->stage)
            is_told |= report_one(world, unit, member, plan, report, left_us);
    }
    if (is_told && report->show == SHOW_OUTAGE)
        post_on_namespace(world, unit->pod->object.ns, plan, report);
    else if (report->event && (is_told || report->repeats))
        plan_event(plan, &unit->pod->object,
                   report->is_normal ? KUBE_EVENT_NORMAL : KUBE_EVENT_WARNING, report->event, "%s",
                   report->text);
}
