/* timings.c - times each step of a pod's life: created, seen, submitted, allocated, bound, ended.
 *
 * Holds: each step of a unit is timed once; what a process did not see itself (a restart between
 * two steps) is not guessed. */
#include "bridge/timings.h"

#include "base/log.h"
#include "bridge/place.h"
#include "bridge/unit/unit.h"
#include "bridge/world/names.h"

enum { LOST_US = 60000000 };

static const double buckets[] = { 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                  1,     2.5,    5,     10,   30,    60,   300, 1800, 0 };

enum { METRIC_STEP_SECONDS, METRIC_PODS, METRIC_WAITING, METRIC_UNITS };

const struct metric_family timings_metrics[] = {
    [METRIC_STEP_SECONDS] = { "slinc_bridge_step_seconds",
                              "Time from one step of a pod's life to the next.",
                              METRIC_HISTOGRAM,
                              { "step" },
                              buckets,
                              0 },
    [METRIC_PODS] = { "slinc_bridge_pods_total",
                      "Pods that reached this point: bound, over.",
                      METRIC_COUNTER,
                      { "reached" },
                      NULL,
                      0 },
    [METRIC_WAITING] = { "slinc_bridge_waiting_pods",
                         "Pods that want a place and have none.",
                         METRIC_GAUGE,
                         { NULL },
                         NULL,
                         0 },
    [METRIC_UNITS] = { "slinc_bridge_units",
                       "Units (a pod, or the pods of a group) by their phase, as /debug/why?rules "
                       "lists them.",
                       METRIC_GAUGE,
                       { "phase" },
                       NULL,
                       0 },
};
const size_t timings_metric_count = sizeof(timings_metrics) / sizeof(timings_metrics[0]);

static void count_phase(void *context, const struct unit_state *state)
{
    unsigned *in = context;

    in[state->phase]++;
}

static void refresh(void *context)
{
    const struct timings *timings = context;
    unsigned in[UNIT_PHASES] = { 0 };

    metrics_set(timings->metrics, &timings_metrics[METRIC_WAITING], (double)timings->waiting, NULL);
    unit_states_each(timings->unit_states, count_phase, in);
    for (unsigned i = 0; i < UNIT_PHASES; i++)
        metrics_set(timings->metrics, &timings_metrics[METRIC_UNITS], in[i],
                    unit_phase_name((enum unit_phase)i), NULL);
}

void timings_init(struct timings *timings, struct loop *loop, struct metrics *metrics,
                  const struct bridge_world *world, struct unit_states *unit_states)
{
    *timings = (struct timings){
        .loop = loop, .metrics = metrics, .world = world, .unit_states = unit_states
    };
    metrics_on_scrape(metrics, refresh, timings);
}

static void observe(struct timings *timings, const char *step, int64_t took_us)
{
    metrics_observe(timings->metrics, &timings_metrics[METRIC_STEP_SECONDS],
                    took_us > 0 ? (double)took_us / 1e6 : 0, step, NULL);
}

/* The pods of a unit in this stage that are planned with it. */
static unsigned count_in(const struct timings *timings, struct str key, enum pod_stage stage,
                         const struct kube_object **ret_first)
{
    const struct bridge_world *world = timings->world;
    struct kube_index_walk walk = kube_cache_by(world->pods, world->pods_by_unit, key);
    const struct kube_object *pod;
    unsigned count = 0;

    while ((pod = kube_index_next(&walk)) != NULL)
        if (pod_stage(world, kube_pod_of(pod)) == stage &&
            world_is_in_unit(world, kube_pod_of(pod), key) && count++ == 0)
            *ret_first = pod;
    return count;
}

void timings_before_plan(struct timings *timings, struct str key)
{
    int64_t now_us = loop_now_us(timings->loop);
    const struct kube_object *pod;
    unsigned count = count_in(timings, key, POD_WAITS, &pod);
    struct unit_state *state;

    if (count == 0)
        return;
    state = unit_states_need(timings->unit_states, key);
    if (count > state->members)
        state->grown_us = now_us;
    state->members = count;
    if (state->seen_us)
        return;
    state->seen_us = now_us;
    observe(timings, "created to seen", clock_wall_us(loop_clock(timings->loop)) - pod->created_us);
}

void timings_after_plan(struct timings *timings, struct str key)
{
    int64_t now_us = loop_now_us(timings->loop);
    const struct kube_object *pod;
    bool lost = !world_has_job(timings->world, key) && count_in(timings, key, POD_BOUND, &pod) > 0;
    struct unit_state *unit = lost ? unit_states_need(timings->unit_states, key)
                                   : unit_states_find(timings->unit_states, key);
    bool counts;

    if (!unit)
        return;
    if (!lost)
        unit->lost_us = 0;
    else if (unit->lost_us == 0)
        unit->lost_us = now_us;
    /* One that cannot be rebooked, because Slurm refuses or its node is none of Slurm's, must not
     * hold up the others for ever. */
    counts = unit->lost_us > 0 && unit->submit.state != SUBMIT_REFUSED &&
             now_us - unit->lost_us < LOST_US;
    timings->rebooking += counts;
    timings->rebooking -= unit->is_rebooking;
    unit->is_rebooking = counts;
}

static bool waits(const struct timings *timings, const struct kube_pod *pod)
{
    return pod && world_is_ours(timings->world, pod) && !pod->object.deleted_us &&
           !pod->node_name[0] && pod->gate_count == 0 && !kube_pod_is_finished(pod);
}

static void observe_bound(struct timings *timings, const struct kube_pod *pod)
{
    auto_buf struct buf key;
    struct unit_state *state;
    int64_t now_us = loop_now_us(timings->loop);
    bool found;

    buf_init(&key, 1024);
    world_unit_key(timings->world, pod, &key);
    state = unit_states_find(timings->unit_states, buf_str(&key));
    if (!state)
        return;
    if (state->bound_us && group_of(pod).kind == GROUP_NONE)
        return;
    state->bound_us = now_us;
    log_info("bound a pod", LOG_STR("unit", buf_str(&key)),
             LOG_U64("attempt", state->submit.attempt), LOG_TEXT("pod", pod->object.name),
             LOG_TEXT("node", pod->node_name),
             LOG_STR("job", kube_pairs_get(&pod->object.labels, BRIDGE_JOB_LABEL, &found)));
    if (state->allocated_us)
        observe(timings, "allocated to bound", now_us - state->allocated_us);
    if (state->seen_us)
        observe(timings, "seen to bound", now_us - state->seen_us);
    metrics_add(timings->metrics, &timings_metrics[METRIC_PODS], 1, "bound", NULL);
}

/* By the server's word: what we foretell takes no time. */
static bool is_bound(const struct kube_pod *pod)
{
    return kube_pod_of(kube_object_seen(&pod->object))->node_name[0] != '\0';
}

static bool has_place(const struct timings *timings, const struct kube_pod *pod)
{
    return pod && world_is_ours(timings->world, pod) && pod->node_name[0] &&
           !kube_pod_is_finished(pod);
}

/* For how many pods it was submitted, about: a group has a node for each. */
static size_t places_of(const struct slurm_job *job)
{
    return job->node_count > 1 ? (size_t)job->node_count : 1;
}

void timings_count_job(struct timings *timings, const struct slurm_job *old,
                       const struct slurm_job *next)
{
    if (next && job_phase(next) != JOB_ENDED)
        timings->jobs += places_of(next);
    if (old && job_phase(old) != JOB_ENDED)
        timings->jobs -= places_of(old);
}

size_t timings_unsubmitted(const struct timings *timings)
{
    size_t unbound = timings->jobs > timings->bound ? timings->jobs - timings->bound : 0;

    return timings->waiting > unbound ? timings->waiting - unbound : 0;
}

void timings_pod_changed(struct timings *timings, const struct kube_pod *old,
                         const struct kube_pod *next)
{
    timings->waiting -= waits(timings, old);
    timings->waiting += waits(timings, next);
    timings->bound -= has_place(timings, old);
    timings->bound += has_place(timings, next);
    if (old && next && !is_bound(old) && is_bound(next))
        observe_bound(timings, next);
    if (old && next && !kube_pod_is_finished(old) && kube_pod_is_finished(next)) {
        const struct unit_state *state;
        auto_buf struct buf key;

        metrics_add(timings->metrics, &timings_metrics[METRIC_PODS], 1, "over", NULL);
        buf_init(&key, 1024);
        world_unit_key(timings->world, next, &key);
        state = unit_states_get(timings->unit_states, buf_str(&key));
        if (state && state->bound_us)
            observe(timings, "bound to ended", loop_now_us(timings->loop) - state->bound_us);
    }
}

void timings_job_changed(struct timings *timings, struct str key, const struct slurm_job *job)
{
    struct unit_state *state = unit_states_find(timings->unit_states, key);

    if (!state || job_phase(job) != JOB_RUNS || state->allocated_us)
        return;
    state->allocated_us = loop_now_us(timings->loop);
    if (state->submitted_us && state->seen_us)
        observe(timings, "seen to asked", state->submitted_us - state->seen_us);
    if (state->submitted_us)
        observe(timings, "asked to allocated", state->allocated_us - state->submitted_us);
}
