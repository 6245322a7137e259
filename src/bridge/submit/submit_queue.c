/* submit_queue.c - pods that exclude each other are submitted one at a time per owner.
 *
 * Slurm knows nothing of host ports, anti-affinity and spread constraints, and gives the same node
 * to all jobs that are submitted at once: all but one would have to give it back. So the pods of
 * one owner that have such rules form a queue, and so do those of a namespace that have no owner.
 * The next one is submitted when the one before it is bound, and its job excludes that node. The
 * order is priority, then age, then name. Pods of different queues may still get the same node: one
 * of them is found to be a misfit when it is bound, and gives the node back.
 *
 * A unit does not wait for one that cannot be submitted itself, nor for one that was submitted a
 * while ago and is not bound yet. When a pod of the same owner waits in Slurm's queue, all of them
 * are submitted: they would wait there as well.
 *
 * Holds   a unit waits only for units that are before it, and for those that were just submitted:
 *         never two for each other. */
#include "bridge/submit/submit_queue.h"

#include "slurm/submit.h"

#include <string.h>

enum {
    QUEUED_US = 2000000,     /* a job that has not started by then waits in Slurm's queue */
    UNDER_WAY_US = 10000000, /* after that nobody waits for a unit whose job runs */
    STEP_US = 20000,         /* about the time from one submit to the next */
    LOOK_MAX_US = 5000000,
    MAX_LOOKS = 64, /* at other units in one plan; what that leaves out is a misfit at bind */
    MAX_QUEUE_KEY = 2 * KUBE_MAX_NAME,
};

enum standing { PASSED_OVER, COMES_FIRST, LEADS_TO_QUEUE };

static bool is_waiter(const struct kube_pod *pod)
{
    const struct kube_rare *rare = pod->rare;

    return rare && (rare->port_count > 0 || rare->pod_anti_affinity[0] || rare->spread[0]) &&
           !pod->node_name[0] && pod->gate_count == 0 && !pod->object.deleted_us &&
           !kube_pod_is_finished(pod);
}

static void write_queue(const struct kube_pod *pod, struct buf *out)
{
    buf_printf(out, "%s/%s", pod->object.ns, pod->object.owner.uid);
}

static void emit_queue(const struct kube_object *object, kube_index_emit emit, void *context)
{
    auto_buf struct buf queue = { .max = MAX_QUEUE_KEY };

    if (!is_waiter(kube_pod_of(object)))
        return;
    write_queue(kube_pod_of(object), &queue);
    if (!queue.overflowed)
        emit(context, buf_str(&queue));
}

void submit_queue_add_index(struct bridge_world *world)
{
    world->waiters_by_owner = kube_cache_add_index(world->pods, emit_queue);
}

static bool goes_before(const struct kube_pod *pod, const struct kube_pod *other)
{
    if (pod->priority != other->priority)
        return pod->priority > other->priority;
    if (pod->object.created_us != other->object.created_us)
        return pod->object.created_us < other->object.created_us;
    return strcmp(pod->object.name, other->object.name) < 0;
}

/* The first pod of a group stands for it, so that all plans see the same order. */
static const struct kube_pod *first_waiter(const struct unit *unit)
{
    const struct kube_pod *first = NULL;

    for (unsigned i = 0; i < unit->member_count; i++) {
        const struct kube_pod *pod = unit->members[i].pod;

        if (unit->members[i].stage == POD_WAITS && is_waiter(pod) &&
            (!first || goes_before(pod, first)))
            first = pod;
    }
    return first;
}

/* ---- one other unit ---- */

struct look {
    const struct bridge_world *world;
    const struct unit *unit;
    const struct kube_pod *first;
    submit_queue_question is_submittable;
    size_t arena_limit;
    unsigned looks;
};

static bool was_submitted_within(const struct look *look, struct str key, int64_t time_us)
{
    const struct unit_state *state = unit_states_get(look->world->unit_states, key);

    return state && state->submit.attempt > 0 &&
           (state->submit.state == SUBMIT_SENT ||
            look->world->facts.now_us - state->submit.sent_us < time_us);
}

static bool is_under_way(const struct look *look, const struct unit *other)
{
    enum submit_state state = unit_submit_state(other);
    enum job_phase phase = other->job ? job_phase(other->job) : JOB_ENDED;

    if (state != SUBMIT_SENT && state != SUBMIT_UNRESOLVED &&
        (phase == JOB_ENDS || phase == JOB_ENDED))
        return false;
    return was_submitted_within(look, other->key, phase == JOB_WAITS ? QUEUED_US : UNDER_WAY_US);
}

/* Of a unit behind this one only a submit that is under way matters, which is cheap to see. */
static enum standing look_at(struct look *look, const struct kube_pod *pod)
{
    bool is_before = goes_before(pod, look->first);
    auto_arena struct arena aside;
    auto_buf struct buf key;
    struct unit other;

    arena_init(&aside, look->arena_limit);
    buf_init(&key, SLURM_MAX_KEY);
    world_unit_key(look->world, pod, &key);
    if (!world_is_ours(look->world, pod) || str_eq(buf_str(&key), look->unit->key) ||
        look->looks == MAX_LOOKS ||
        (!is_before && !was_submitted_within(look, buf_str(&key), UNDER_WAY_US)))
        return PASSED_OVER;
    look->looks++;
    unit_gather(look->world, buf_str(&key), &aside, &other);
    if (is_under_way(look, &other))
        return COMES_FIRST;
    if (!is_before)
        return PASSED_OVER;
    if (other.job && job_phase(other.job) == JOB_WAITS && pod->object.owner.uid[0])
        return LEADS_TO_QUEUE;
    return look->is_submittable(look->world, &other, &aside) ? COMES_FIRST : PASSED_OVER;
}

/* ---- the queue ---- */

static struct kube_index_walk walk_queue(const struct look *look)
{
    auto_buf struct buf queue = { .max = MAX_QUEUE_KEY };

    write_queue(look->first, &queue);
    return kube_cache_by(look->world->pods, look->world->waiters_by_owner, buf_str(&queue));
}

/* The first pod of the queue that is behind `after`; NULL: of all. */
static const struct kube_pod *next_in_order(const struct look *look, const struct kube_pod *after)
{
    struct kube_index_walk walk = walk_queue(look);
    const struct kube_pod *next = NULL;
    const struct kube_object *object;

    while ((object = kube_index_next(&walk)) != NULL) {
        const struct kube_pod *pod = kube_pod_of(object);

        if ((!after || goes_before(after, pod)) && (!next || goes_before(pod, next)))
            next = pod;
    }
    return next;
}

static enum standing look_at_queue(struct look *look)
{
    struct kube_index_walk walk = walk_queue(look);
    enum standing standing = PASSED_OVER;
    const struct kube_pod *pod = NULL;
    const struct kube_object *object;

    while (standing == PASSED_OVER && look->looks < MAX_LOOKS &&
           (pod = next_in_order(look, pod)) != NULL && goes_before(pod, look->first))
        standing = look_at(look, pod);
    while (standing == PASSED_OVER && (object = kube_index_next(&walk)) != NULL)
        if (!goes_before(kube_pod_of(object), look->first))
            standing = look_at(look, kube_pod_of(object));
    return standing;
}

static int64_t count_before(const struct look *look)
{
    struct kube_index_walk walk = walk_queue(look);
    const struct kube_object *object;
    int64_t count = 0;

    while ((object = kube_index_next(&walk)) != NULL)
        count += goes_before(kube_pod_of(object), look->first);
    return count;
}

int64_t submit_queue_wait_us(const struct bridge_world *world, const struct unit *unit,
                             submit_queue_question is_submittable, size_t arena_limit)
{
    struct look look = { world, unit, first_waiter(unit), is_submittable, arena_limit, 0 };
    int64_t pause_us;

    if (!world->filter || !look.first || look_at_queue(&look) != COMES_FIRST)
        return 0;
    pause_us = (count_before(&look) + 1) * STEP_US;
    return pause_us < LOOK_MAX_US ? pause_us : LOOK_MAX_US;
}
