/* bridge.c - the whole bridge around its plans, made in the order in which the parts need each
 * other.
 *
 * Two controllers: nodes, whose keys are names of Slurm nodes, and units, whose keys are
 * "namespace/uid". A change on either side, Kubernetes or Slurm, brings the keys it concerns.
 *
 * Holds: nothing is planned before we know which cluster this is; the facts that plans read are
 * those of the moment at which they plan. */
#include "bridge/bridge_private.h"

#include "base/log.h"
#include "base/mem.h"
#include "bridge/nodes/nodes.h"
#include "bridge/place.h"
#include "bridge/slurm/slurm_action.h"
#include "bridge/timings.h"
#include "bridge/unit/unit.h"
#include "bridge/watches.h"
#include "bridge/world/group.h"
#include "bridge/world/names.h"
#include "bridge/world/world.h"
#include "engine/slurm_health.h"
#include "slurm/submit.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    SECOND_US = 1000000,
    RETRY_US = SECOND_US, /* of the first questions, until they are answered */
    YOUNG_US = 60 * SECOND_US,
    EXPECT_US = 2 * SECOND_US,
};

/* ---- plans ---- */

/* What is over and left nothing behind need not be remembered. */
static void forget_if_over(struct bridge *bridge, struct str key)
{
    const struct unit_state *state = unit_states_get(bridge->world.unit_states, key);
    struct kube_index_walk pods =
        kube_cache_by(bridge->world.pods, bridge->world.pods_by_unit, key);
    struct slurm_index_walk jobs = slurm_cache_by(bridge->world.slurm_jobs, SLURM_JOBS_BY_KEY, key);

    if (!state || state->submit.state == SUBMIT_SENT || state->submit.state == SUBMIT_UNRESOLVED ||
        kube_index_next(&pods) || slurm_index_next(&jobs))
        return;
    unit_states_forget(bridge->unit_states, key);
}

/* Changes of nodes and of other pods wake the unit when the result is another (wake.c). */
static void record_nodes_version(struct bridge *bridge, struct str key)
{
    const struct bridge_world *world = &bridge->world;
    struct kube_index_walk pods = kube_cache_by(world->pods, world->pods_by_unit, key);
    const struct kube_object *pod = kube_index_next(&pods);

    if (pod && !group_key_is_of_group(key) && unit_states_get(world->unit_states, key) &&
        pod_stage(world, kube_pod_of(pod)) == POD_WAITS)
        unit_states_need(bridge->unit_states, key)->nodes_version =
            filter_version(world->filter, kube_pod_of(pod));
}

/* Every unit that has a pod has a state: what it waits for, and its phase for the metric. So has a
 * unit without pods while the job of its former object waits for more than a change of itself. */
static void record_placed(struct bridge *bridge, struct str key, const struct placed *placed)
{
    struct unit_states *states = bridge->unit_states;
    bool is_gone = placed->phase == UNIT_GONE && (placed->woken_by & ~(unsigned)ON_JOB) == 0;
    struct unit_state *state =
        is_gone ? unit_states_find(states, key) : unit_states_need(states, key);

    if (!state)
        return;
    state->phase = placed->phase;
    state->is_placing =
        (placed->late < UNIT_PHASES ? placed->late : placed->phase) >= UNIT_NODES_UNREAD;
    if (placed->phase == UNIT_BOUND && placed->late == UNIT_PHASES)
        unit_state_forget_refusal(state);
    unit_states_wait(states, state, placed->woken_by);
}

static int plan_unit(struct controller *controller, struct str key, struct plan *plan,
                     struct err *err)
{
    struct bridge *bridge = controller->context;
    bool was_rebooking = bridge->timings.rebooking > 0;
    struct placed placed;
    int result;
    const struct bridge_facts *facts;
    struct kube_index_walk pods;
    const struct kube_object *pod;

    bridge_refresh_facts(bridge);
    timings_before_plan(&bridge->timings, key);
    result = place_plan(&bridge->world, key, plan, &placed, err);
    if (result == 0)
        record_placed(bridge, key, &placed);
    timings_after_plan(&bridge->timings, key);
    if (was_rebooking && bridge->timings.rebooking == 0)
        bridge_wake(bridge, ON_REBOOKED);
    record_nodes_version(bridge, key);
    forget_if_over(bridge, key);
    /* A young pod without a place: its job starts any moment. An old one is not worth the
     * questions. */
    facts = &bridge->world.facts;
    pods = kube_cache_by(bridge->world.pods, bridge->world.pods_by_unit, key);
    pod = kube_index_next(&pods);
    if (pod && pod_stage(&bridge->world, kube_pod_of(pod)) == POD_WAITS &&
        facts->wall_us - pod->created_us < YOUNG_US)
        slurm_poller_expect(bridge->poller, facts->now_us + EXPECT_US);
    return result;
}

static int plan_node(struct controller *controller, struct str key, struct plan *plan,
                     struct err *err)
{
    struct bridge *bridge = controller->context;
    const struct bridge_world *world = &bridge->world;

    bridge_refresh_facts(bridge);
    if (!world_node_by_slurm_name(world, key) && !world_slurm_node(world, key))
        node_refusals_forget(bridge->node_refusals, key);
    node_sizes_record(bridge->node_sizes, key, node_size_differs(world, key, plan->arena),
                      world->facts.now_us);
    return nodes_plan(world, key, plan, err);
}

/* The pods of a job that runs say what the API server refused, and the job waits for that only so
 * long (place.c). */
static void on_answered(void *context, const struct controller *controller, struct str key,
                        const struct action *action, const struct kube_answer *answer)
{
    struct bridge *bridge = context;
    struct unit_state *state =
        controller == &bridge->units ? unit_states_find(bridge->unit_states, key) : NULL;
    auto_buf struct buf text = { .max = KUBE_EVENT_MAX_NOTE };

    if (!state || !state->is_placing || action->type != &action_kube ||
        (answer->outcome != KUBE_DENIED && answer->outcome != KUBE_INVALID))
        return;
    buf_printf(&text, "%s: %s", action->what, answer->message);
    unit_state_refuse_write(state, buf_text(&text), loop_now_us(bridge->links.loop));
}

/* ---- leading ---- */

static void begin_to_lead(struct bridge *bridge)
{
    struct bridge_facts *facts = &bridge->world.facts;

    facts->leading_us = loop_now_us(bridge->links.loop);
    facts->leading_wall_us = clock_wall_us(loop_clock(bridge->links.loop));
    facts->no_takeover_delay = kube_lease_was_released(bridge->lease);
    unit_states_forget_applied(bridge->unit_states);
    if (bridge->poller)
        slurm_poller_suspect(bridge->poller, bridge_became_leader);
    engine_wake(bridge->engine);
}

static void on_lease(void *context, bool held)
{
    struct bridge *bridge = context;

    log_info(held ? "leading" : "no longer leading",
             LOG_TEXT("identity", bridge->options.identity));
    if (held)
        begin_to_lead(bridge);
}

/* To take the lease would be a write, and would stop whoever acts. */
static void observe_only(struct bridge *bridge)
{
    log_info("observing only: nothing is written", LOG_TEXT("identity", bridge->options.identity));
    begin_to_lead(bridge);
}

/* ---- the beginning ---- */

/* What was planned may have changed since, so the guard is asked once more with the facts of now.
 */
static const char *object_to_submit(void *context, struct str key, uint64_t desc_hash,
                                    struct arena *arena)
{
    struct bridge *bridge = context;

    bridge_refresh_facts(bridge);
    return place_submit_objection(&bridge->world, key, desc_hash, arena);
}

static void start_slurm(struct bridge *bridge)
{
    struct bridge_world *world = &bridge->world;

    bridge->poller = slurm_poller_new(
        bridge->slurm, &(struct slurm_poller_options){ .owner = &bridge->owner,
                                                       .fast_us = bridge->options.slurm_fast_us,
                                                       .tracked_only = true,
                                                       .nodes_only = true,
                                                       .layout_read = bridge_take_layout,
                                                       .settled = bridge_slurm_settled,
                                                       .context = bridge });

    struct slurm_cache *jobs = slurm_poller_cache(bridge->poller, SLURM_FEED_JOBS);
    struct slurm_cache *nodes = slurm_poller_cache(bridge->poller, SLURM_FEED_NODES);

    slurm_cache_listen(jobs, bridge_on_slurm_job, bridge);
    slurm_cache_listen(nodes, bridge_on_slurm_node, bridge);
    world->slurm_jobs = jobs;
    world->slurm_nodes = nodes;
    world->slurm_partitions = slurm_poller_cache(bridge->poller, SLURM_FEED_PARTITIONS);
    world->slurm_reservations = slurm_poller_cache(bridge->poller, SLURM_FEED_RESERVATIONS);
    slurm_cache_listen(slurm_poller_cache(bridge->poller, SLURM_FEED_PARTITIONS),
                       bridge_on_slurm_place, bridge);
    slurm_cache_listen(slurm_poller_cache(bridge->poller, SLURM_FEED_RESERVATIONS),
                       bridge_on_slurm_place, bridge);
    world->capacity = bridge->capacity = capacity_new(bridge->links.loop, jobs, nodes);
    world->foreign_nodes =
        foreign_nodes_new(nodes, world->nodes, world->nodes_by_slurm_name, &bridge->owner);
    bridge->executor = slurm_executor_new(&(struct slurm_executor_options){
        .slurm = bridge->slurm,
        .poller = bridge->poller,
        .kube = bridge->kube,
        .unit_states = bridge->unit_states,
        .node_refusals = bridge->node_refusals,
        .capacity = bridge->capacity,
        .layouts = bridge->layouts,
        .metrics = bridge->metrics,
        .owner = &bridge->owner,
        .submits_per_second = bridge->options.config->submits_per_second,
        .may_act = bridge_may_act,
        .object_to_submit = object_to_submit,
        .wake_unit = bridge_wake_unit,
        .wake_node = bridge_wake_node,
        .context = bridge });
}

static bool has_no_node(const struct kube_object *pod)
{
    return !kube_pod_of(pod)->node_name[0];
}

static void add_controllers(struct bridge *bridge)
{
    struct bridge_world *world = &bridge->world;

    bridge->unit_watches[0] = (struct controller_watch){ world->pods, bridge_on_pod };
    kube_cache_listen(world->optional[OPTIONAL_PODGROUPS].cache, bridge_on_group, bridge);
    kube_cache_listen(world->optional[OPTIONAL_COSCHEDULING].cache, bridge_on_group, bridge);
    kube_cache_listen(world->optional[OPTIONAL_CLAIMS].cache, bridge_on_claim, bridge);
    kube_cache_listen(world->optional[OPTIONAL_SLICES].cache, bridge_on_slice, bridge);
    kube_cache_listen(world->optional[OPTIONAL_TAINT_RULES].cache, bridge_on_taint_rule, bridge);
    kube_cache_listen(world->optional[OPTIONAL_DEVICE_CLASSES].cache, bridge_on_device_class,
                      bridge);
    kube_cache_listen(world->optional[OPTIONAL_DAEMONSETS].cache, bridge_on_daemonset, bridge);
    bridge->sweep = (struct sweep){ .loop = bridge->links.loop,
                                    .cache = world->pods,
                                    .wants = has_no_node,
                                    .look = bridge_look_if_other_nodes,
                                    .context = bridge };
    filter_listen(world->filter, bridge_on_filter, bridge);
    watches_listen(bridge->watches, bridge_on_owner, bridge_on_volume, bridge);
    bridge->node_watches[0] = (struct controller_watch){ world->nodes, bridge_on_node };
    bridge->node_watches[1] = (struct controller_watch){ world->other_pods, bridge_on_other_pod };
    bridge->units = (struct controller){ .name = "pod-controller",
                                         .watches = bridge->unit_watches,
                                         .watch_count = 1 + watches_rows(bridge->watches,
                                                                         &bridge->unit_watches[1],
                                                                         BRIDGE_MAX_WATCHES - 1),
                                         .plan = plan_unit,
                                         .context = bridge };
    bridge->nodes = (struct controller){ .name = "node-controller",
                                         .watches = bridge->node_watches,
                                         .watch_count = 2,
                                         .plan = plan_node,
                                         .context = bridge };
    engine_add_service(bridge->engine, &action_slurm, bridge->executor);
    engine_add_service(bridge->engine, &action_slurm_cancel, bridge->executor);
    engine_add_service(bridge->engine, &action_slurm_node, bridge->executor);
    engine_add_service(bridge->engine, &action_event, bridge->recorder);
    engine_add(bridge->engine, &bridge->units);
    engine_add(bridge->engine, &bridge->nodes);
    if (bridge->options.lent_nodes) {
        lent_nodes_init(&bridge->lent_nodes, world->nodes, world->config->scheduler_name,
                        bridge->options.lease_ns, bridge->options.lent_nodes);
        engine_add(bridge->engine, &bridge->lent_nodes.controller);
    }
}

/* Watching, leading and planning begin together, when it is known whose keys are ours. */
static void begin(struct bridge *bridge)
{
    bridge->owner.cluster = str_of(bridge->cluster);
    log_info("this installation", LOG_TEXT("cluster", bridge->cluster),
             LOG_TEXT("release", bridge->release));
    start_slurm(bridge);
    add_controllers(bridge);
    bridge->slurm_health.poller = bridge->poller;
    slurm_poller_start(bridge->poller);
    watches_start(bridge->watches);
    if (!bridge->options.observe_only)
        kube_lease_start(bridge->lease, on_lease, bridge);
    engine_start(bridge->engine);
    if (bridge->options.observe_only)
        observe_only(bridge);
    bridge_observe_slurm(bridge);
}

static void identify(void *context);

static void on_identified(void *context, const struct kube_answer *answer)
{
    struct bridge *bridge = context;
    struct str uid = json_str(json_at(answer->object, "metadata", "uid"));

    bridge->identify = NULL;
    if (answer->outcome != KUBE_DONE || uid.len == 0 || uid.len >= sizeof(bridge->cluster)) {
        log_warn("cannot read the namespace kube-system, whose UID names this cluster",
                 LOG_TEXT("outcome", kube_outcome_name(answer->outcome)),
                 LOG_TEXT("error", answer->message));
        loop_timer_start(bridge->links.loop, &bridge->retry, RETRY_US, identify, bridge);
        return;
    }
    (void)snprintf(bridge->cluster, sizeof(bridge->cluster), STR_FMT, STR_ARG(uid));
    begin(bridge);
}

static void identify(void *context)
{
    struct bridge *bridge = context;
    const struct kube_request request = { .verb = KUBE_GET,
                                          .resource = &kube_namespaces,
                                          .name = "kube-system",
                                          .timeout_us = 10 * SECOND_US };

    bridge->identify = kube_send(bridge->kube, &request, on_identified, bridge);
}

void bridge_start(struct bridge *bridge)
{
    identify(bridge);
}

/* ---- making and freeing ---- */

static void log_observed(void *context, const struct controller *controller, struct str key,
                         const struct plan *plan)
{
    auto_buf struct buf text;

    (void)context;
    buf_init(&text, LOG_LINE_MAX / 2);
    if (list_is_empty(&plan->actions))
        return;
    plan_write(plan, &text);
    log_info("would do", LOG_TEXT("controller", controller->name), LOG_STR("key", key),
             LOG_STR("plan", buf_str(&text)));
}

struct bridge *bridge_new(const struct bridge_links *links, const struct bridge_options *options)
{
    struct bridge *bridge = mem_alloc(sizeof(*bridge));

    bridge->options = *options;
    bridge->links = *links;
    rand_init(&bridge->rand, options->seed);
    bridge->kube = kube_client_new(links->loop, links->api);
    bridge->lease_kube = kube_client_new(links->loop, links->lease_api);
    bridge->metrics = metrics_new();
    bridge->slurm = slurm_client_new(links->loop, links->slurm, links->token,
                                     &(struct slurm_client_options){ .seed = options->seed | 1,
                                                                     .may_write = bridge_may_act,
                                                                     .may_write_context = bridge });
    bridge->world.config = options->config;
    bridge->world.unit_states = bridge->unit_states = unit_states_new();
    bridge->world.node_refusals = bridge->node_refusals = node_refusals_new();
    bridge->world.node_sizes = bridge->node_sizes = node_sizes_new();
    bridge->world.layouts = bridge->layouts = job_layouts_new();
    bridge->world.facts.job_visibility = SLURM_SIGHT_UNKNOWN;
    bridge->world.facts.job_visibility_why = "";
    bridge->world.facts.suspicion = "";
    bridge->world.facts.pause_why = "";
    bridge->world.facts.trouble = "";
    bridge->world.facts.bind_takes_metadata = true;
    bridge->world.facts.is_uninstalling = options->uninstall;
    (void)snprintf(bridge->release, sizeof(bridge->release), "%s/%s", options->lease_ns,
                   options->config->scheduler_name);
    bridge->owner = options->owner;
    bridge->owner.release = str_of(bridge->release);
    bridge->world.owner = &bridge->owner;
    bridge->watches = watches_new(bridge->kube, &bridge->rand, &bridge->world, options->page);
    timings_init(&bridge->timings, links->loop, bridge->metrics, &bridge->world,
                 bridge->unit_states);
    slurm_health_init(&bridge->slurm_health, bridge->metrics);
    bridge->slurm_health.client = bridge->slurm;
    if (links->agent)
        slurm_client_use_agent(bridge->slurm, links->agent);
    why_reads_init(&bridge->why_reads, &bridge->world, bridge->slurm);
    bridge->lease =
        kube_lease_new(bridge->lease_kube, &bridge->rand,
                       &(struct kube_lease_options){ .ns = options->lease_ns,
                                                     .name = options->config->scheduler_name,
                                                     .identity = options->identity });
    bridge->recorder = kube_recorder_new(
        bridge->kube, &(struct kube_recorder_options){ .controller = "slinky.slurm.net/bridge",
                                                       .instance = options->identity });
    bridge->engine =
        engine_new(bridge->kube, &bridge->rand, bridge->metrics,
                   &(struct engine_options){ .max_in_flight = bridge->options.max_in_flight,
                                             .may_act = bridge_may_act,
                                             .may_act_context = bridge,
                                             .answered = on_answered,
                                             .answered_context = bridge,
                                             .observe_only = bridge->options.observe_only,
                                             .observed = log_observed });
    return bridge;
}

/* In the opposite order of use: first those who call, then what is called. */
void bridge_free(struct bridge *bridge)
{
    if (!bridge)
        return;
    loop_timer_stop(&bridge->retry);
    loop_timer_stop(&bridge->wake_timer);
    if (bridge->identify)
        kube_call_cancel(bridge->identify);
    bridge_stop_observing(bridge);
    why_reads_stop(&bridge->why_reads);
    sweep_stop(&bridge->sweep);
    watches_stop(bridge->watches);
    engine_free(bridge->engine);
    slurm_executor_free(bridge->executor);
    capacity_free(bridge->capacity);
    foreign_nodes_free(bridge->world.foreign_nodes);
    slurm_poller_free(bridge->poller);
    kube_lease_free(bridge->lease);
    kube_recorder_free(bridge->recorder);
    unit_states_free(bridge->unit_states);
    node_refusals_free(bridge->node_refusals);
    node_sizes_free(bridge->node_sizes);
    job_layouts_free(bridge->layouts);
    metrics_free(bridge->metrics);
    watches_free(bridge->watches);
    slurm_client_free(bridge->slurm);
    kube_client_free(bridge->lease_kube);
    kube_client_free(bridge->kube);
    mem_free(bridge);
}

/* ---- looking in ---- */

bool bridge_is_leader(const struct bridge *bridge)
{
    return kube_lease_is_held(bridge->lease);
}

bool bridge_may_release(void *context)
{
    const struct bridge *bridge = context;
    const struct unit_states *state = bridge->world.unit_states;

    return unit_states_in(state, SUBMIT_SENT) == 0 &&
           unit_states_in(state, SUBMIT_UNRESOLVED) == 0 &&
           (!bridge->executor || !slurm_executor_has_unanswered_cancels(bridge->executor));
}

struct engine *bridge_engine(const struct bridge *bridge)
{
    return bridge->engine;
}

struct kube_lease *bridge_lease(const struct bridge *bridge)
{
    return bridge->lease;
}

struct metrics *bridge_metrics(const struct bridge *bridge)
{
    return bridge->metrics;
}

const struct bridge_world *bridge_world(const struct bridge *bridge)
{
    return &bridge->world;
}

static size_t count_labelled(const struct kube_cache *nodes)
{
    struct kube_cache_walk walk = kube_cache_walk(nodes);
    const struct kube_object *node;
    size_t count = 0;
    bool found;

    while ((node = kube_cache_next(&walk)) != NULL) {
        (void)kube_pairs_get(&node->labels, BRIDGE_EXTERNAL_LABEL, &found);
        count += found;
    }
    return count;
}

void bridge_check_facts(const struct bridge *bridge, struct check_facts *ret_facts)
{
    const struct bridge_world *world = &bridge->world;
    struct slurm_feed_stats stats = { .last_error = "nothing was asked yet" };

    if (bridge->poller)
        slurm_poller_stats(bridge->poller, SLURM_FEED_PARTITIONS, &stats);
    ret_facts->config = world->config;
    ret_facts->slurm_error = stats.last_error;
    ret_facts->version = slurm_client_version(bridge->slurm);
    ret_facts->site = bridge->has_site ? &bridge->site : NULL;
    ret_facts->job_visibility = world->facts.job_visibility;
    ret_facts->job_visibility_why = world->facts.job_visibility_why;
    ret_facts->lacks_user = world->facts.knows_job_visibility && !world->facts.slurm_user[0];
    ret_facts->partitions_known =
        world->slurm_partitions && slurm_cache_is_synced(world->slurm_partitions);
    ret_facts->partition_exists =
        ret_facts->partitions_known &&
        slurm_cache_get(world->slurm_partitions, world->config->partition) != NULL;
    ret_facts->slurm_nodes = world->slurm_nodes ? slurm_cache_count(world->slurm_nodes) : 0;
    ret_facts->labelled_nodes = count_labelled(world->nodes);
    ret_facts->pods_read = kube_cache_is_synced(world->pods);
    ret_facts->daemonsets_read = world->optional[OPTIONAL_DAEMONSETS].state != WATCH_UNKNOWN;
    ret_facts->has_agent = slurm_agent_status(bridge->slurm, &ret_facts->agent);
    ret_facts->has_skew = kube_lease_skew(bridge->lease, &ret_facts->skew_us);
}

/* ---- leaving ---- */

bool bridge_has_left(const struct bridge *bridge, struct buf *ret_what_is_left)
{
    const struct bridge_facts *facts = &bridge->world.facts;

    if (!bridge->poller || !slurm_poller_is_synced(bridge->poller) ||
        !kube_lease_is_held(bridge->lease) || facts->leading_us == 0 ||
        slurm_poller_is_suspicious(bridge->poller)) {
        buf_add_text(ret_what_is_left, "Kubernetes and Slurm have not been read yet");
        return false;
    }
    if (!world_holds_nothing(&bridge->world, ret_what_is_left))
        return false;
    if (!facts->no_takeover_delay &&
        loop_now_us(bridge->links.loop) - facts->leading_us < bridge_takeover_delay_us(bridge)) {
        buf_add_text(ret_what_is_left, "the bridge before this one did not stop cleanly: what it "
                                       "wrote last may still take effect");
        return false;
    }
    if (!engine_is_idle(bridge->engine)) {
        buf_add_text(ret_what_is_left, "the last writes have not been answered yet");
        return false;
    }
    return true;
}

struct units_page {
    struct buf *out;
    const char *comma;
};

static void write_unit(void *context, const struct unit_state *state)
{
    struct units_page *page = context;

    buf_printf(page->out, "%s{\"unit\":", page->comma);
    json_escape(page->out, state->key);
    buf_printf(page->out, ",\"phase\":\"%s\",\"wokenBy\":\"", unit_phase_name(state->phase));
    wake_write(state->woken_by, page->out);
    buf_printf(page->out, "\",\"attempt\":%u}", unit_state_attempt(state));
    page->comma = ",";
}

/* Each as its last plan left it. */
static void write_units(void *context, struct buf *out)
{
    const struct bridge *bridge = context;
    struct units_page page = { .out = out, .comma = "" };

    buf_add_char(out, '[');
    if (bridge->poller)
        unit_states_each(bridge->world.unit_states, write_unit, &page);
    buf_add_char(out, ']');
}

void bridge_add_health(struct bridge *bridge, struct health *health)
{
    health_show(health, "units", write_units, bridge);
    health_slurm(health, bridge->site.version);
    watches_add_health(bridge->watches, health);
    slurm_health_add_health(&bridge->slurm_health, health);
}
