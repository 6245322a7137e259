/* wake.c - which units and nodes are planned again when something changes in Kubernetes or
 * Slurm. */
#include "bridge/bridge_private.h"

#include "base/log.h"
#include "bridge/unit/unit.h"
#include "bridge/world/group.h"
#include "bridge/world/names.h"
#include "kube/owners.h"
#include "slurm/submit.h"

enum {
    LARGE_GROUP = 128,     /* pods; smaller ones are planned at every change */
    PAUSE_PER_POD_US = 50, /* several times what a plan takes */
    WAKE_SOON_US = 10000,
    WAKE_PER_UNIT_US = 500, /* several times what a plan takes: many units are woken less often */
};

bool bridge_may_act(void *context)
{
    const struct bridge *bridge = context;

    return bridge->options.observe_only || kube_lease_is_held(bridge->lease);
}

/* ---- units that wait for a source ---- */

static void wake_one(void *context, const struct unit_state *unit)
{
    struct bridge *bridge = context;

    engine_enqueue(&bridge->units, unit->key);
}

void bridge_wake(struct bridge *bridge, enum wake source)
{
    unit_states_each_waiting(bridge->world.unit_states, source, wake_one, bridge);
}

static void wake_all(void *context)
{
    struct bridge *bridge = context;
    unsigned sources = bridge->wakes;

    bridge->wakes = 0;
    for (unsigned i = 0; i < WAKE_SOURCES; i++)
        if (sources & 1u << i)
            bridge_wake(bridge, 1u << i);
}

/* Changes that come together wake the units once. */
static void wake_soon(struct bridge *bridge, enum wake source)
{
    size_t waiting = unit_states_waiting(bridge->world.unit_states, source);

    if (waiting == 0)
        return;
    bridge->wakes |= source;
    if (!loop_timer_is_armed(&bridge->wake_timer))
        loop_timer_start(bridge->links.loop, &bridge->wake_timer,
                         WAKE_SOON_US + (int64_t)waiting * WAKE_PER_UNIT_US, wake_all, bridge);
}

/* ---- units by what they are ---- */

/* A plan looks at all pods of a unit. For a large group one plan follows several changes, otherwise
 * there would be as many plans as pods when all pods start or end. */
static void enqueue_pod(struct controller *controller, const struct kube_object *pod)
{
    struct bridge *bridge = controller->context;
    auto_buf struct buf key;
    size_t pods;

    buf_init(&key, SLURM_MAX_KEY);
    if (!pod || !world_is_ours(&bridge->world, kube_pod_of(pod)))
        return;
    world_unit_key(&bridge->world, kube_pod_of(pod), &key);
    pods = kube_cache_count_by(bridge->world.pods, bridge->world.pods_by_unit, buf_str(&key));
    engine_enqueue_after(controller, buf_str(&key),
                         pods > LARGE_GROUP ? (int64_t)pods * PAUSE_PER_POD_US : 0);
}

/* Servers before 1.35 drop the metadata of a Binding: the pod then has a node and lacks our
 * annotation. From then on a patch is sent before each Binding. The label proves nothing, because
 * it may have been there before. */
static void look_at_binding(struct bridge *bridge, const struct kube_object *old,
                            const struct kube_object *next)
{
    bool found;

    if (!bridge->world.facts.bind_takes_metadata || !old || !next || !bridge_may_act(bridge) ||
        !kube_pod_of(old)->node_name[0] || old->version_number == next->version_number ||
        !kube_object_has_finalizer(next, BRIDGE_FINALIZER))
        return;
    (void)kube_pairs_get(&old->annotations, BRIDGE_NODE_ANNOTATION, &found);
    if (!found)
        return;
    (void)kube_pairs_get(&next->annotations, BRIDGE_NODE_ANNOTATION, &found);
    if (found)
        return;
    log_info("the API server does not take labels from a Binding: they go first",
             LOG_TEXT("pod", next->name));
    bridge->world.facts.bind_takes_metadata = false;
}

static bool has_another_group(const struct kube_object *old, const struct kube_object *next)
{
    auto_buf struct buf before = { .max = SLURM_MAX_KEY }, now = { .max = SLURM_MAX_KEY };

    group_key(kube_pod_of(old), &before);
    group_key(kube_pod_of(next), &now);
    return !str_eq(buf_str(&before), buf_str(&now));
}

/* Whether the pod was on a node, and is no longer. */
static bool has_left(const struct bridge_world *world, const struct kube_object *old,
                     const struct kube_object *next)
{
    if (!old || !kube_pod_of(old)->node_name[0])
        return false;
    return !next || !str_is(str_of(old->uid), next->uid) ||
           pod_stage(world, kube_pod_of(next)) == POD_OVER;
}

/* A pod of the same name may be another pod, and so another unit. A pod may also have been given to
 * another group: then the unit of the group before is planned, too. */
void bridge_on_pod(struct controller *controller, const struct kube_object *old,
                   const struct kube_object *next)
{
    struct bridge *bridge = controller->context;

    timings_pod_changed(&bridge->timings, old ? kube_pod_of(old) : NULL,
                        next ? kube_pod_of(next) : NULL);
    if (has_left(&bridge->world, old, next))
        wake_soon(bridge, ON_PLACE);
    look_at_binding(bridge, old, next);
    if (!old || !next || !str_is(str_of(old->uid), next->uid) || has_another_group(old, next))
        enqueue_pod(controller, old);
    enqueue_pod(controller, next);
}

/* A PodGroup decides for all of its pods. The keys of both APIs differ by one word, and both are
 * planned, because a plan for a unit that does not exist costs nothing. */
void bridge_on_group(void *context, const struct kube_object *old, const struct kube_object *next)
{
    struct bridge *bridge = context;
    const struct kube_object *object = next ? next : old;
    static const char *const words[] = { "podgroup", "coscheduling" };

    for (size_t i = 0; bridge->poller && i < sizeof(words) / sizeof(words[0]); i++) {
        auto_buf struct buf key;

        buf_init(&key, SLURM_MAX_KEY);
        buf_printf(&key, "%s/%s/%s", object->ns, words[i], object->name);
        engine_enqueue(&bridge->units, buf_str(&key));
    }
}

/* Plans the unit of every pod. */
void bridge_look_at_all(struct bridge *bridge)
{
    struct kube_cache_walk walk = kube_cache_walk(bridge->world.pods);
    const struct kube_object *pod;

    while ((pod = kube_cache_next(&walk)) != NULL)
        enqueue_pod(&bridge->units, pod);
}

/* Each member of a group may be allowed other nodes, so the group is always planned again. */
static bool has_same_nodes(const struct bridge *bridge, const struct kube_pod *pod)
{
    const struct unit_state *state;
    auto_buf struct buf key = { .max = SLURM_MAX_KEY };

    world_own_key(pod, &key);
    state = unit_states_get(bridge->world.unit_states, buf_str(&key));
    return state && !world_has_group(&bridge->world, pod) &&
           state->nodes_version == filter_version(bridge->world.filter, pod);
}

/* ns NULL: of all namespaces. */
static void look_at_those_that_wait(struct bridge *bridge, const char *ns)
{
    struct kube_cache_walk walk = kube_cache_walk(bridge->world.pods);
    const struct kube_object *pod;

    while ((pod = kube_cache_next(&walk)) != NULL)
        if ((!ns || strcmp(pod->ns, ns) == 0) &&
            pod_stage(&bridge->world, kube_pod_of(pod)) == POD_WAITS)
            enqueue_pod(&bridge->units, pod);
}

/* Their jobs follow the nodes as they are now. */
void bridge_look_at_all_that_wait(struct bridge *bridge)
{
    look_at_those_that_wait(bridge, NULL);
}

/* The annotations of the owner may count for any pod in its namespace; the plans find out. */
void bridge_on_owner(void *context, const struct kube_object *owner, bool says_otherwise)
{
    struct bridge *bridge = context;

    if (!bridge->poller)
        return;
    wake_soon(bridge, ON_OWNER);
    if (says_otherwise)
        look_at_those_that_wait(bridge, owner->ns);
}

void bridge_on_volume(void *context)
{
    wake_soon(context, ON_VOLUME);
}

/* Plans the unit of a pod that may use other nodes than when it was last planned. */
void bridge_look_if_other_nodes(void *context, const struct kube_object *pod)
{
    struct bridge *bridge = context;

    if (pod_stage(&bridge->world, kube_pod_of(pod)) == POD_WAITS &&
        !has_same_nodes(bridge, kube_pod_of(pod)))
        enqueue_pod(&bridge->units, pod);
}

void bridge_on_filter(void *context)
{
    struct bridge *bridge = context;

    if (bridge->poller)
        sweep_request(&bridge->sweep);
}

static bool names_claim(const struct kube_pod *pod, const struct kube_object *claim)
{
    for (unsigned i = 0; pod->rare && i < pod->rare->claim_count; i++)
        if (strcmp(pod->rare->claims[i].claim, claim->name) == 0)
            return true;
    return false;
}

/* A claim that was made for a pod concerns that pod; a claim that a person made concerns every pod
 * that names it. */
void bridge_on_claim(void *context, const struct kube_object *old, const struct kube_object *next)
{
    struct bridge *bridge = context;
    const struct kube_object *claim = next ? next : old, *pod;
    struct kube_cache_walk walk = kube_cache_walk(bridge->world.pods);

    if (!bridge->poller)
        return;
    wake_soon(bridge, ON_CLAIM);
    if (claim->owner.uid[0]) {
        pod = kube_cache_get(bridge->world.pods, claim->ns, claim->owner.name);
        if (pod && strcmp(pod->uid, claim->owner.uid) == 0)
            enqueue_pod(&bridge->units, pod);
        return;
    }
    while ((pod = kube_cache_next(&walk)) != NULL)
        if (strcmp(pod->ns, claim->ns) == 0 && names_claim(kube_pod_of(pod), claim))
            enqueue_pod(&bridge->units, pod);
}

void bridge_on_node(struct controller *controller, const struct kube_object *old,
                    const struct kube_object *next)
{
    const char *before = old ? world_slurm_name(kube_node_of(old)) : "";
    const char *now = next ? world_slurm_name(kube_node_of(next)) : "";

    if (before[0] && !str_is(str_of(before), now))
        engine_enqueue(controller, str_of(before));
    if (now[0])
        engine_enqueue(controller, str_of(now));
    if (!old || !next || strcmp(before, now) != 0)
        wake_soon(controller->context, ON_NODES);
}

/* kube_name: in Kubernetes. */
static void enqueue_node(struct bridge *bridge, const char *kube_name)
{
    const struct kube_object *node = kube_cache_get(bridge->world.nodes, "", kube_name);

    if (node && world_slurm_name(kube_node_of(node))[0])
        engine_enqueue(&bridge->nodes, str_of(world_slurm_name(kube_node_of(node))));
}

void bridge_look_at_all_nodes(struct bridge *bridge)
{
    struct kube_cache_walk walk = kube_cache_walk(bridge->world.nodes);
    struct slurm_cache_walk records = slurm_cache_walk(bridge->world.slurm_nodes);
    const struct slurm_object *record;
    const struct kube_object *node;

    while ((node = kube_cache_next(&walk)) != NULL)
        enqueue_node(bridge, node->name);
    while ((record = slurm_cache_next(&records)) != NULL)
        engine_enqueue(&bridge->nodes, str_of(record->key));
}

/* Slurm is told of the devices of a node, and pods are pinned to cores that its slices show. */
void bridge_on_slice(void *context, const struct kube_object *old, const struct kube_object *next)
{
    struct bridge *bridge = context;
    const char *node = kube_slice_of(next ? next : old)->node;

    filter_node_changed(bridge->world.filter, node);
    wake_soon(bridge, ON_CLAIM);
    if (bridge->poller)
        enqueue_node(bridge, node);
}

/* The plans find out which devices the rule taints, or tainted before. */
void bridge_on_taint_rule(void *context, const struct kube_object *old,
                          const struct kube_object *next)
{
    const struct bridge *bridge = context;
    struct kube_cache_walk walk = kube_cache_walk(bridge->world.optional[OPTIONAL_SLICES].cache);
    const struct kube_object *slice;

    (void)old;
    (void)next;
    while ((slice = kube_cache_next(&walk)) != NULL)
        bridge_on_slice(context, slice, slice);
}

/* A device class may stand for a resource that pods request. */
void bridge_on_device_class(void *context, const struct kube_object *old,
                            const struct kube_object *next)
{
    struct bridge *bridge = context;

    if (!old || !next ||
        strcmp(kube_device_class_of(old)->extended_resource,
               kube_device_class_of(next)->extended_resource) != 0)
        filter_resources_changed(bridge->world.filter);
    wake_soon(bridge, ON_NODES);
}

static bool says_of_node(const struct kube_object *pod)
{
    return kube_owner_is(&pod->owner, &kube_daemonset_kind) ||
           kube_owner_is(&pod->owner, &kube_node_kind);
}

/* Pods of DaemonSets take from what their node can give to Slurm. Whether there is such a DaemonSet
 * is a question for the plan. */
void bridge_on_other_pod(struct controller *controller, const struct kube_object *old,
                         const struct kube_object *next)
{
    const struct kube_object *const pods[] = { old, next };

    for (size_t i = 0; i < 2; i++)
        if (pods[i] && kube_pod_of(pods[i])->node_name[0] && says_of_node(pods[i]))
            enqueue_node(controller->context, kube_pod_of(pods[i])->node_name);
}

/* Pods may be seen before their DaemonSet, and may still be there when it is gone. */
void bridge_on_daemonset(void *context, const struct kube_object *old,
                         const struct kube_object *next)
{
    struct bridge *bridge = context;
    struct kube_cache_walk walk = kube_cache_walk(bridge->world.other_pods);
    const struct kube_object *pod;

    if (old && next && strcmp(old->uid, next->uid) == 0)
        return;
    while ((pod = kube_cache_next(&walk)) != NULL)
        if (kube_pod_of(pod)->node_name[0] && ((old && kube_is_controlled_by(pod, old)) ||
                                               (next && kube_is_controlled_by(pod, next))))
            enqueue_node(bridge, kube_pod_of(pod)->node_name);
}

void bridge_wake_unit(void *context, struct str key)
{
    struct bridge *bridge = context;

    engine_enqueue(&bridge->units, key);
}

void bridge_wake_node(void *context, struct str name)
{
    struct bridge *bridge = context;

    engine_enqueue(&bridge->nodes, name);
}

/* The poller has read what a job has on its nodes. Pods with devices need that, and with
 * `pinCpus: auto` all pods, for their cores. */
void bridge_take_layout(void *context, const struct slurm_job *job, const struct json *body)
{
    struct bridge *bridge = context;

    if (job->tres_per_node[0] || bridge->world.config->pins_cpus)
        (void)job_layouts_put(bridge->layouts, job->id, job->sluid, body, NULL);
}

static void take_job_change(struct bridge *bridge, const struct slurm_job *old,
                            const struct slurm_job *next)
{
    const struct slurm_job *job = next ? next : old;
    auto_buf struct buf key;
    unsigned attempt;

    buf_init(&key, SLURM_MAX_KEY);
    if (!job || !world_job_key(&bridge->world, job, &key, &attempt))
        return;
    timings_count_job(&bridge->timings, old, next);
    /* A job that runs again may have other devices, so its layout is forgotten. The layout of a job
     * that has just begun to run may be new (bridge_take_layout), so it is kept. */
    if (old && (!next || job_phase(next) != JOB_RUNS ||
                (old->nodes[0] && strcmp(old->nodes, next->nodes) != 0)))
        job_layouts_forget(bridge->layouts, old->id);
    if (next) {
        /* Only jobs of ours are read often, until they have ended. */
        if (job_phase(next) == JOB_ENDED)
            slurm_poller_untrack(bridge->poller, next->id);
        else
            slurm_poller_track(bridge->poller, next->id);
        timings_job_changed(&bridge->timings, buf_str(&key), next);
    } else {
        slurm_poller_untrack(bridge->poller, job->id);
    }
    engine_enqueue(&bridge->units, buf_str(&key));
}

void bridge_on_slurm_job(void *context, const struct slurm_object *before,
                         const struct slurm_object *after)
{
    struct bridge *bridge = context;
    const struct slurm_job *old = before ? slurm_job_of(before) : NULL;
    const struct slurm_job *next = after ? slurm_job_of(after) : NULL;

    /* If another job has this id now, that is two changes. The sluid is known only after the whole
     * record was read. */
    if (old && next &&
        (strcmp(old->extra, next->extra) != 0 ||
         (old->sluid[0] && next->sluid[0] && strcmp(old->sluid, next->sluid) != 0))) {
        take_job_change(bridge, old, NULL);
        old = NULL;
    }
    take_job_change(bridge, old, next);
}

/* Jobs that start and end change the state of their node all the time: that wakes no unit. */
static bool is_another_node(const struct slurm_object *old, const struct slurm_object *next)
{
    return !old || !next ||
           strcmp(slurm_node_of(old)->partitions, slurm_node_of(next)->partitions) != 0 ||
           strcmp(slurm_node_of(old)->extra, slurm_node_of(next)->extra) != 0;
}

/* Whether pods can use the device that the node would give next. */
static void look_at_next_device(struct bridge *bridge, const struct slurm_node *old,
                                const struct slurm_node *next)
{
    const struct bridge_world *world = &bridge->world;
    const struct kube_node *node =
        world_node_by_slurm_name(world, str_of((next ? next : old)->name));

    if (old && next && strcmp(old->gres, next->gres) == 0 &&
        strcmp(old->gres_used, next->gres_used) == 0 && strcmp(old->extra, next->extra) == 0)
        return;
    if (node && world_next_device_is_out(world, old, node->object.name) !=
                    world_next_device_is_out(world, next, node->object.name))
        filter_node_changed(world->filter, node->object.name);
}

void bridge_on_slurm_node(void *context, const struct slurm_object *old,
                          const struct slurm_object *next)
{
    bridge_wake_node(context, str_of((next ? next : old)->key));
    look_at_next_device(context, old ? slurm_node_of(old) : NULL,
                        next ? slurm_node_of(next) : NULL);
    if (is_another_node(old, next))
        wake_soon(context, ON_NODES);
}

void bridge_on_slurm_place(void *context, const struct slurm_object *old,
                           const struct slurm_object *next)
{
    (void)old;
    (void)next;
    wake_soon(context, ON_NODES);
}
