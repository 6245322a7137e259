/* world.c - finding things in the world by the names that others know them by.
 *
 * Holds: a node's name in Slurm is found by an index, and by a walk only while Slurm has no record
 * of ours under the name that the node asks for. Several Kubernetes nodes may ask for one name, for
 * a kubelet can label its own node: the one that the record is marked with has it, else the one
 * that has this name in Kubernetes, else the oldest. */
#include "bridge/world/world.h"

#include "bridge/world/names.h"
#include "bridge/world/node_mark.h"
#include "codec/hostlist.h"
#include "device/names.h"
#include "device/registered.h"

#include <string.h>

enum {
    MAX_UNIT_KEY = 2 * KUBE_MAX_NAME,
    MAX_MARK_MEMORY = 1 << 16,
    MAX_DEVICES_MEMORY = 16 << 20, /* of one node */
    USUAL_GRACE_S = 30,            /* KillWait of Slurm, as it comes */
    PLACE_MARGIN_S = 30,           /* for the kubelet, after a grace period */
};

bool slurm_is_clear(const struct bridge_world *world)
{
    return world->facts.slurm_synced && !world->facts.is_suspicious;
}

/* ---- names ---- */

/* The label wins where it is, also when it is empty: then Slurm has no such node. */
const char *world_slurm_name(const struct kube_node *node)
{
    bool found;
    struct str label = kube_pairs_get(&node->object.labels, BRIDGE_SLURM_NAME_LABEL, &found);

    return found ? label.at : node->object.name;
}

/* Nobody chooses the name of a node in Kubernetes but whoever made it. */
const struct kube_node *world_node_asking_for(const struct bridge_world *world, struct str name)
{
    struct kube_index_walk walk = kube_cache_by(world->nodes, world->nodes_by_slurm_name, name);
    const struct kube_object *first = NULL, *node;

    while ((node = kube_index_next(&walk))) {
        if (str_is(name, node->name))
            return kube_node_of(node);
        if (!first || node->created_us < first->created_us ||
            (node->created_us == first->created_us && strcmp(node->name, first->name) < 0))
            first = node;
    }
    return first ? kube_node_of(first) : NULL;
}

/* A record of ours that was made for this node, but not under this name. */
static const struct slurm_node *former_record(const struct bridge_world *world,
                                              const struct kube_node *node, const char *name)
{
    struct slurm_cache_walk walk = slurm_cache_walk(world->slurm_nodes);
    const struct slurm_object *object;

    while ((object = slurm_cache_next(&walk)) != NULL)
        if (strcmp(object->key, name) != 0 &&
            node_is_made_for(slurm_node_of(object), world->owner, node->object.name))
            return slurm_node_of(object);
    return NULL;
}

/* Slurm is searched only when it has no record of that name, or one that was made for another node
 * or by another bridge. */
const char *world_record_name(const struct bridge_world *world, const struct kube_node *node)
{
    const char *asked = world_slurm_name(node), *marked, *whose;
    const struct slurm_node *record = world_slurm_node(world, str_of(asked)), *former;
    enum node_owner owner = NODE_UNMARKED;
    auto_arena struct arena arena;

    arena_init(&arena, MAX_MARK_MEMORY);
    if (record && node_is_external(record))
        owner = node_owner(record, world->owner, &arena, &marked, &whose);
    if (record &&
        (owner == NODE_UNMARKED || (owner == NODE_OURS && strcmp(marked, node->object.name) == 0)))
        return asked;
    former = former_record(world, node, asked);
    if (former)
        return former->name;
    return owner == NODE_UNMARKED ? asked : "";
}

const struct kube_node *world_node_by_slurm_name(const struct bridge_world *world, struct str name)
{
    const struct kube_node *node = world_node_asking_for(world, name);
    const struct slurm_node *record = world_slurm_node(world, name);
    const char *marked, *whose;
    auto_arena struct arena arena;

    arena_init(&arena, MAX_MARK_MEMORY);
    if (node && str_is(name, world_record_name(world, node)))
        return node;
    if (!record || !node_is_external(record) ||
        node_owner(record, world->owner, &arena, &marked, &whose) != NODE_OURS)
        return NULL;
    node = kube_node_of(kube_cache_get(world->nodes, "", marked));
    return node && str_is(name, world_record_name(world, node)) ? node : NULL;
}

const struct slurm_node *world_slurm_node(const struct bridge_world *world, struct str name)
{
    char text[HOSTLIST_MAX_NAME + 1];
    const struct slurm_object *object;

    if (name.len == 0 || name.len >= sizeof(text))
        return NULL;
    memcpy(text, name.at, name.len);
    text[name.len] = '\0';
    object = slurm_cache_get(world->slurm_nodes, text);
    return object ? slurm_node_of(object) : NULL;
}

/* ---- units ---- */

bool world_is_ours(const struct bridge_world *world, const struct kube_pod *pod)
{
    return strcmp(pod->scheduler_name, world->config->scheduler_name) == 0;
}

void world_own_key(const struct kube_pod *pod, struct buf *out)
{
    buf_printf(out, "%s/%s", pod->object.ns, pod->object.uid);
}

const struct optional *world_group_api(const struct bridge_world *world, enum group_kind kind)
{
    static const enum optional_kind apis[GROUP_KINDS] = {
        [GROUP_PODGROUP] = OPTIONAL_PODGROUPS,
        [GROUP_COSCHEDULING] = OPTIONAL_COSCHEDULING,
        [GROUP_LWS] = OPTIONAL_LWS,
        [GROUP_JOBSET] = OPTIONAL_JOBSETS,
    };

    return &world->optional[apis[kind]];
}

bool world_has_group(const struct bridge_world *world, const struct kube_pod *pod)
{
    enum group_kind kind = group_of(pod).kind;

    /* Of Jobs there is an API everywhere. */
    return kind != GROUP_NONE &&
           (kind == GROUP_JOB || world_group_api(world, kind)->state != WATCH_ABSENT);
}

const struct kube_object *world_group_object(const struct bridge_world *world,
                                             const struct kube_pod *pod)
{
    struct group group = group_of(pod);
    char name[KUBE_MAX_NAME + 1];

    if ((group.kind != GROUP_PODGROUP && group.kind != GROUP_COSCHEDULING &&
         group.kind != GROUP_LWS) ||
        group.name.len >= sizeof(name))
        return NULL;
    memcpy(name, group.name.at, group.name.len);
    name[group.name.len] = '\0';
    return kube_cache_get(world_group_api(world, group.kind)->cache, pod->object.ns, name);
}

/* That it is alone stands on the pod once it is bound, and is seen by its job before. */
bool world_is_alone(const struct bridge_world *world, const struct kube_pod *pod)
{
    const struct unit_state *state;
    auto_buf struct buf key = { .max = MAX_UNIT_KEY };
    bool found;

    if (!world_has_group(world, pod))
        return true;
    (void)kube_pairs_get(&pod->object.annotations, BRIDGE_ALONE_ANNOTATION, &found);
    if (found)
        return true;
    world_own_key(pod, &key);
    state = unit_states_get(world->unit_states, buf_str(&key));
    return (state && state->submit.attempt > 0) || world_has_job(world, buf_str(&key));
}

void world_unit_key(const struct bridge_world *world, const struct kube_pod *pod, struct buf *out)
{
    if (world_is_alone(world, pod))
        world_own_key(pod, out);
    else
        group_key(pod, out);
}

bool world_is_in_unit(const struct bridge_world *world, const struct kube_pod *pod, struct str key)
{
    auto_buf struct buf own;

    buf_init(&own, SLURM_MAX_KEY);
    world_unit_key(world, pod, &own);
    return str_eq(buf_str(&own), key);
}

bool world_read_job(const struct bridge_world *world, const struct slurm_job *job,
                    struct buf *ret_text, struct slurm_key *ret_key)
{
    return slurm_submit_key(job, world->owner, ret_text) && !ret_text->overflowed &&
           slurm_key_read(buf_str(ret_text), ret_key);
}

bool world_job_key(const struct bridge_world *world, const struct slurm_job *job,
                   struct buf *ret_key, unsigned *ret_attempt)
{
    auto_buf struct buf text = { .max = SLURM_MAX_KEY };
    struct slurm_key key;

    if (!world_read_job(world, job, &text, &key))
        return false;
    buf_add_str(ret_key, key.unit);
    *ret_attempt = key.attempt;
    return true;
}

/* ---- the filter ---- */

static bool is_our_taint(const void *context, const struct kube_taint *taint)
{
    const struct bridge_world *world = context;

    return strcmp(taint->key, BRIDGE_TAINT) == 0 &&
           strcmp(taint->value, world->config->scheduler_name) == 0;
}

/* NULL for a node that is not lent to Slurm. */
static const char *name_of_lent(const void *context, const struct kube_node *node)
{
    const char *name = world_slurm_name(node);
    bool is_lent;

    (void)kube_pairs_get(&node->object.labels, BRIDGE_EXTERNAL_LABEL, &is_lent);
    for (unsigned i = 0; !is_lent && i < node->taint_count; i++)
        is_lent = is_our_taint(context, &node->taints[i]);
    return is_lent && hostlist_check_name(str_of(name), NULL) == 0 ? name : NULL;
}

/* Slurm counts the devices of a class, as GRES. */
static bool is_of_device_class(const void *context, const char *resource)
{
    const struct bridge_world *world = context;

    return device_class_of_resource(world->optional[OPTIONAL_DEVICE_CLASSES].cache,
                                    str_of(resource))
               .len > 0;
}

static const char *need_of(const void *context, const struct kube_pod *pod)
{
    return device_needs_cores(pod) ? "node(s) cannot pin pods to cores (slinc dra)" : NULL;
}

/* By the name that `slinc dra` gives to its slice. */
static bool has_cores(const void *context, const struct kube_node *node)
{
    const struct bridge_world *world = context;
    auto_buf struct buf name = { .max = 2 * KUBE_MAX_NAME };
    const struct kube_object *slice;

    buf_printf(&name, "%s-" DEVICE_CORES_DRIVER, node->object.name);
    slice = kube_cache_get(world->optional[OPTIONAL_SLICES].cache, "", buf_text(&name));
    return slice && kube_slice_of(slice)->device_count > 0;
}

static bool needs_device(const void *context, const struct kube_pod *pod)
{
    (void)context;
    return device_needs_more_than_cores(pod);
}

static bool is_next_device_out(const void *context, const struct kube_node *node)
{
    const struct bridge_world *world = context;

    return world->slurm_nodes &&
           world_next_device_is_out(world, world_slurm_node(world, str_of(world_slurm_name(node))),
                                    node->object.name);
}

bool world_next_device_is_out(const struct bridge_world *world, const struct slurm_node *record,
                              const char *kube_node)
{
    struct device_view view = world_device_view(world);
    auto_arena struct arena arena;

    arena_init(&arena, MAX_DEVICES_MEMORY);
    return record && record->gres[0] && registered_next_is_out(&view, record, kube_node, &arena);
}

struct filter_hooks world_filter_hooks(const struct bridge_world *world)
{
    return (struct filter_hooks){ .name_of = name_of_lent,
                                  .ignores_taint = is_our_taint,
                                  .ignores_resource = is_of_device_class,
                                  .need_of = need_of,
                                  .has_need = has_cores,
                                  .needs_device = needs_device,
                                  .is_next_device_out = is_next_device_out,
                                  .context = world };
}

struct device_view world_device_view(const struct bridge_world *world)
{
    return (struct device_view){ .table = &world->config->devices,
                                 .classes = world->optional[OPTIONAL_DEVICE_CLASSES].cache,
                                 .slices = world->optional[OPTIONAL_SLICES].cache,
                                 .claims = world->optional[OPTIONAL_CLAIMS].cache,
                                 .taint_rules = world->optional[OPTIONAL_TAINT_RULES].cache,
                                 .indexes = world->device_indexes };
}

/* ---- indexes ---- */

static void emit_unit(const struct kube_object *object, kube_index_emit emit, void *context)
{
    auto_buf struct buf own, group;

    buf_init(&own, MAX_UNIT_KEY + 1);
    world_own_key(kube_pod_of(object), &own);
    if (!own.overflowed)
        emit(context, buf_str(&own));
    buf_init(&group, SLURM_MAX_KEY);
    group_key(kube_pod_of(object), &group);
    if (!group.overflowed && buf_str(&group).len > 0)
        emit(context, buf_str(&group));
}

static void emit_slurm_name(const struct kube_object *object, kube_index_emit emit, void *context)
{
    struct str name = str_of(world_slurm_name(kube_node_of(object)));

    if (name.len > 0)
        emit(context, name);
}

static void emit_node(const struct kube_object *object, kube_index_emit emit, void *context)
{
    const struct kube_pod *pod = kube_pod_of(object);

    if (pod->node_name[0])
        emit(context, str_of(pod->node_name));
}

void world_add_indexes(struct bridge_world *world)
{
    world->pods_by_node = kube_cache_add_index(world->pods, emit_node);
    world->pods_by_unit = kube_cache_add_index(world->pods, emit_unit);
    world->nodes_by_slurm_name = kube_cache_add_index(world->nodes, emit_slurm_name);
    if (world->optional[OPTIONAL_CLAIMS].cache)
        world->device_indexes = device_add_indexes(world->optional[OPTIONAL_SLICES].cache,
                                                   world->optional[OPTIONAL_CLAIMS].cache);
}

static bool has_job(const struct bridge_world *world, struct str key, bool runs)
{
    struct slurm_index_walk walk = slurm_cache_by(world->slurm_jobs, SLURM_JOBS_BY_KEY, key);
    const struct slurm_object *job;

    while ((job = slurm_index_next(&walk)) != NULL) {
        const struct slurm_words *state = &slurm_job_of(job)->state;

        if (runs ? slurm_words_has(state, SLURM_JOB_RUNNING) : !slurm_job_has_ended(state))
            return true;
    }
    return false;
}

bool world_has_job(const struct bridge_world *world, struct str key)
{
    return has_job(world, key, false);
}

bool world_has_pod_without_job(const struct bridge_world *world, const char *kube_node)
{
    struct kube_index_walk walk =
        kube_cache_by(world->pods, world->pods_by_node, str_of(kube_node));
    const struct kube_object *object;

    while ((object = kube_index_next(&walk)) != NULL) {
        const struct kube_pod *pod = kube_pod_of(object);
        auto_buf struct buf key;

        buf_init(&key, SLURM_MAX_KEY);
        world_unit_key(world, pod, &key);
        if (world_is_ours(world, pod) && !kube_pod_is_finished(pod) &&
            !has_job(world, buf_str(&key), true))
            return true;
    }
    return false;
}

/* Never 0: that would take the object away while its containers run. */
int64_t world_max_grace_s(const struct bridge_world *world)
{
    if (world->config->max_grace_s > 0)
        return world->config->max_grace_s;
    return world->facts.kill_wait_s > 0 ? world->facts.kill_wait_s : USUAL_GRACE_S;
}

int64_t world_place_wait_s(const struct bridge_world *world)
{
    return world_max_grace_s(world) + PLACE_MARGIN_S;
}

bool world_is_being_left(const struct bridge_world *world, const char *kube_node)
{
    struct kube_index_walk walk =
        kube_cache_by(world->pods, world->pods_by_node, str_of(kube_node));
    const struct kube_object *object;

    while ((object = kube_index_next(&walk)) != NULL)
        if (object->deleted_us && world_is_ours(world, kube_pod_of(object)) &&
            !kube_pod_is_terminated(kube_pod_of(object)))
            return true;
    return world_has_pod_without_job(world, kube_node);
}
