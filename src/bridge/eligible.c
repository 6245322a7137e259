/* eligible.c - the nodes in their slots, with what pods take of them that Slurm cannot see; what
 * the view listens to, and what it is asked.
 *
 * Holds   a slot is one node under one Slurm name, or free; what is taken there is the sum over the
 *         pods that the caches show on the node. Every change that a set may depend on gets a
 *         sequence number of its own, and the listener is told. */
#include "bridge/eligible_private.h"

#include "base/mem.h"
#include "bridge/names.h"
#include "bridge/world.h"
#include "codec/hostlist.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CLASS_SHIFT = 40, /* there are fewer changes than that many bits can count */
    FIRST_SLOTS = 64,
    MAX_KEY = 16 << 20,
    RESERVED_AT_FIRST = 16,
};

void eligible_touch(struct eligible *eligible, int slot)
{
    eligible->sequence++;
    if (slot != ELIGIBLE_NO_SLOT) {
        eligible->slots[slot].changed = eligible->sequence;
        eligible->log[eligible->logged++ % ELIGIBLE_LOG] = (uint32_t)slot;
    }
    if (eligible->changed)
        eligible->changed(eligible->context);
}

void eligible_put(struct map *map, struct str key, void *value)
{
    if (map_put(map, key, value, NULL) == 0)
        return;
    fprintf(stderr, "eligible: more than %d nodes, labels or rules\n", ELIGIBLE_MAX_NAMES);
    abort();
}

bool eligible_is_ours(const struct eligible *eligible, const struct kube_pod *pod)
{
    return strcmp(pod->scheduler_name, eligible->scheduler_name) == 0;
}

bool eligible_is_placed(const struct kube_pod *pod)
{
    return pod->node_name[0] && !kube_pod_is_finished(pod);
}

int eligible_slot_of(const struct eligible *eligible, const char *node)
{
    return (int)(uintptr_t)map_get(&eligible->by_name, str_of(node)) - 1;
}

/* ---- pods on a node ---- */

static void emit_node(const struct kube_object *object, kube_index_emit emit, void *context)
{
    const struct kube_pod *pod = kube_pod_of(object);

    if (eligible_is_placed(pod))
        emit(context, str_of(pod->node_name));
}

struct pods_walk eligible_pods_on(const struct eligible *eligible, const char *node)
{
    struct pods_walk walk = { .eligible = eligible, .node = str_of(node) };

    if (eligible->caches.pods)
        walk.walk = kube_cache_by(eligible->caches.pods, eligible->pods_by_node, walk.node);
    return walk;
}

const struct kube_pod *eligible_next_pod(struct pods_walk *walk)
{
    const struct eligible *eligible = walk->eligible;
    const struct kube_object *object;

    for (;;) {
        while ((object = kube_index_next(&walk->walk)) != NULL)
            if (!walk->in_others || !eligible_is_ours(eligible, kube_pod_of(object)))
                return kube_pod_of(object);
        if (walk->in_others || !eligible->caches.other_pods)
            return NULL;
        walk->in_others = true;
        walk->walk =
            kube_cache_by(eligible->caches.other_pods, eligible->others_by_node, walk->node);
    }
}

static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

void eligible_add_up(const struct kube_amounts *has, const struct kube_requests *requests,
                     struct kube_requests *taken, int64_t *taken_extended)
{
    taken->cpu_milli = plus(taken->cpu_milli, requests->cpu_milli);
    taken->memory = plus(taken->memory, requests->memory);
    taken->ephemeral = plus(taken->ephemeral, requests->ephemeral);
    for (unsigned i = 0; requests->extended.count > 0 && i < has->count; i++)
        taken_extended[i] =
            plus(taken_extended[i], kube_amount_of(&requests->extended, has->at[i].name));
}

/* All is added up again: there are few pods on a node, and sums that stop at a maximum cannot be
 * taken back. */
static void recount(struct eligible *eligible, struct node_slot *slot)
{
    struct pods_walk walk = eligible_pods_on(eligible, slot->node->object.name);
    const struct kube_amounts *has = &slot->node->extended;
    const struct kube_pod *pod;

    mem_free(slot->others_extended);
    slot->others_extended = mem_alloc_array(has->count + 1, sizeof(*slot->others_extended));
    slot->of_others = (struct kube_requests){ 0 };
    slot->pods = 0;
    while ((pod = eligible_next_pod(&walk)) != NULL) {
        slot->pods++;
        if (!eligible_is_ours(eligible, pod))
            eligible_add_up(has, &pod->requests, &slot->of_others, slot->others_extended);
    }
}

/* ---- changes of pods ---- */

bool eligible_same_pairs(const struct kube_pairs *a, const struct kube_pairs *b)
{
    if (a->count != b->count)
        return false;
    for (unsigned i = 0; i < a->count; i++)
        if (!str_eq(a->at[i].key, b->at[i].key) || !str_eq(a->at[i].value, b->at[i].value))
            return false;
    return true;
}

static bool same_amounts(const struct kube_amounts *a, const struct kube_amounts *b)
{
    if (a->count != b->count)
        return false;
    for (unsigned i = 0; i < a->count; i++)
        if (a->at[i].amount != b->at[i].amount || strcmp(a->at[i].name, b->at[i].name) != 0)
            return false;
    return true;
}

static bool is_full(const struct node_slot *slot)
{
    return slot->node->pods > 0 && slot->pods >= slot->node->pods;
}

/* Most pods of ours only count as one more. */
static void take(struct eligible *eligible, const struct kube_pod *pod, int direction)
{
    int number = eligible_slot_of(eligible, pod->node_name);
    struct node_slot *slot;
    bool was_full;

    if (number == ELIGIBLE_NO_SLOT)
        return; /* counted when the node comes */
    slot = &eligible->slots[number];
    was_full = is_full(slot);
    recount(eligible, slot);
    if (!eligible_is_ours(eligible, pod) || was_full != is_full(slot) ||
        (pod->rare && pod->rare->port_count + pod->rare->volume_claim_count > 0))
        eligible_touch(eligible, number);
    eligible_count_pod(eligible, number, pod, direction);
    if (eligible->forgot_rules)
        eligible_touch(eligible, ELIGIBLE_NO_SLOT);
}

static void pod_changed(void *context, const struct kube_object *old_object,
                        const struct kube_object *next_object)
{
    const struct kube_pod *old = old_object ? kube_pod_of(old_object) : NULL;
    const struct kube_pod *next = next_object ? kube_pod_of(next_object) : NULL;

    old = old && eligible_is_placed(old) ? old : NULL;
    next = next && eligible_is_placed(next) ? next : NULL;
    /* What rules look at in a pod that has a node; the rest of its spec does not change. */
    if (old && next && strcmp(old->node_name, next->node_name) == 0 &&
        (old->object.deleted_us == 0) == (next->object.deleted_us == 0) &&
        eligible_same_pairs(&old->object.labels, &next->object.labels) &&
        old->requests.cpu_milli == next->requests.cpu_milli &&
        old->requests.memory == next->requests.memory &&
        old->requests.ephemeral == next->requests.ephemeral &&
        same_amounts(&old->requests.extended, &next->requests.extended))
        return;
    if (old)
        take(context, old, -1);
    if (next)
        take(context, next, 1);
}

/* The name of the scheduler cannot change. */
static void other_pod_changed(void *context, const struct kube_object *old,
                              const struct kube_object *next)
{
    if (!eligible_is_ours(context, kube_pod_of(next ? next : old)))
        pod_changed(context, old, next);
}

static void namespace_changed(void *context, const struct kube_object *old,
                              const struct kube_object *next)
{
    if (old && next && eligible_same_pairs(&old->labels, &next->labels))
        return;
    eligible_touch(context, ELIGIBLE_NO_SLOT);
    eligible_count_anew(context);
}

/* ---- changes of nodes ---- */

static void set_node(const struct eligible *eligible, struct node_slot *slot,
                     const struct kube_node *node)
{
    bool is_lent;

    slot->node = node;
    slot->slurm_name = world_slurm_name(node);
    (void)kube_pairs_get(&node->object.labels, BRIDGE_EXTERNAL_LABEL, &is_lent);
    for (unsigned i = 0; !is_lent && i < node->taint_count; i++)
        is_lent = strcmp(node->taints[i].key, BRIDGE_TAINT) == 0 &&
                  strcmp(node->taints[i].value, eligible->scheduler_name) == 0;
    slot->lent = is_lent && hostlist_check_name(str_of(slot->slurm_name), NULL) == 0;
}

static int free_slot(struct eligible *eligible)
{
    size_t from = eligible->capacity;

    if (eligible->by_name.count < eligible->slot_count)
        for (size_t i = 0; i < eligible->slot_count; i++)
            if (!eligible->slots[i].node)
                return (int)i;
    if (eligible->slot_count == from) {
        eligible->capacity = from > 0 ? 2 * from : FIRST_SLOTS;
        eligible->slots =
            mem_resize_array(eligible->slots, eligible->capacity, sizeof(*eligible->slots));
        memset(eligible->slots + from, 0, (eligible->capacity - from) * sizeof(*eligible->slots));
    }
    return (int)eligible->slot_count++;
}

static void add_node(struct eligible *eligible, const struct kube_node *node)
{
    int number = free_slot(eligible);
    struct node_slot *slot = &eligible->slots[number];

    set_node(eligible, slot, node);
    eligible_put(&eligible->by_name, str_of(node->object.name), (void *)((uintptr_t)number + 1));
    recount(eligible, slot);
    eligible_touch(eligible, number);
    slot->born = eligible->sequence;
    eligible_count_anew(eligible);
}

static void drop_node(struct eligible *eligible, int number)
{
    struct node_slot *slot = &eligible->slots[number];

    map_remove(&eligible->by_name, str_of(slot->node->object.name));
    mem_free(slot->others_extended);
    *slot = (struct node_slot){ 0 };
    eligible_touch(eligible, number);
    eligible_count_anew(eligible);
}

static bool same_taints(const struct kube_node *a, const struct kube_node *b)
{
    if (a->taint_count != b->taint_count)
        return false;
    for (unsigned i = 0; i < a->taint_count; i++)
        if (a->taints[i].effect != b->taints[i].effect ||
            strcmp(a->taints[i].key, b->taints[i].key) != 0 ||
            strcmp(a->taints[i].value, b->taints[i].value) != 0)
            return false;
    return true;
}

/* Most changes of a node are about conditions and images, and decide nothing here. */
static void change_node(struct eligible *eligible, int number, const struct kube_node *old,
                        const struct kube_node *next)
{
    bool same_labels = eligible_same_pairs(&old->object.labels, &next->object.labels);
    bool same_extended = same_amounts(&old->extended, &next->extended);

    set_node(eligible, &eligible->slots[number], next);
    if (same_labels && same_extended && same_taints(old, next) &&
        old->cpu_milli == next->cpu_milli && old->memory == next->memory &&
        old->ephemeral == next->ephemeral && old->pods == next->pods)
        return;
    if (!same_extended)
        recount(eligible, &eligible->slots[number]);
    if (!same_labels)
        eligible_relabel(eligible, &old->object.labels, &next->object.labels);
    eligible_touch(eligible, number);
}

/* Under another name in Slurm it is another node. */
static void node_changed(void *context, const struct kube_object *old_object,
                         const struct kube_object *next_object)
{
    const struct kube_node *old = old_object ? kube_node_of(old_object) : NULL;
    const struct kube_node *next = next_object ? kube_node_of(next_object) : NULL;
    const struct kube_object *either = next_object ? next_object : old_object;
    struct eligible *eligible = context;
    int number;

    assert(either);
    number = eligible_slot_of(eligible, either->name);
    if (old && next && number != ELIGIBLE_NO_SLOT &&
        strcmp(world_slurm_name(old), world_slurm_name(next)) == 0) {
        change_node(eligible, number, old, next);
        return;
    }
    if (number != ELIGIBLE_NO_SLOT)
        drop_node(eligible, number);
    if (next)
        add_node(eligible, next);
}

/* ---- the view ---- */

struct eligible *eligible_new(const struct eligible_caches *caches, const char *scheduler_name)
{
    static const struct map_options copies = { .max = ELIGIBLE_MAX_NAMES };
    static const struct map_options borrows = { .max = ELIGIBLE_MAX_NAMES, .borrow_keys = true };
    struct eligible *eligible = mem_alloc(sizeof(*eligible));

    eligible->caches = *caches;
    eligible->scheduler_name = mem_strdup(scheduler_name);
    eligible->sequence = 1;
    map_init(&eligible->by_name, &copies);
    map_init(&eligible->columns, &borrows);
    map_init(&eligible->rules, &borrows);
    map_init(&eligible->classes, &borrows);
    map_init(&eligible->selectors, &copies);
    list_init(&eligible->tallies);
    list_init(&eligible->lru);
    buf_init(&eligible->key, MAX_KEY);
    arena_init(&eligible->selector_memory, ELIGIBLE_MEMORY);
    if (caches->pods) {
        eligible->pods_by_node = kube_cache_add_index(caches->pods, emit_node);
        kube_cache_listen(caches->pods, pod_changed, eligible);
    }
    if (caches->other_pods) {
        eligible->others_by_node = kube_cache_add_index(caches->other_pods, emit_node);
        kube_cache_listen(caches->other_pods, other_pod_changed, eligible);
    }
    if (caches->nodes)
        kube_cache_listen(caches->nodes, node_changed, eligible);
    if (caches->namespaces)
        kube_cache_listen(caches->namespaces, namespace_changed, eligible);
    eligible_volumes_listen(eligible);
    return eligible;
}

void eligible_free(struct eligible *eligible)
{
    if (!eligible)
        return;
    pod_classes_done(eligible); /* they hold rules */
    eligible_pods_done(eligible);
    for (size_t i = 0; i < eligible->slot_count; i++)
        mem_free(eligible->slots[i].others_extended);
    map_done(&eligible->by_name);
    map_done(&eligible->selectors);
    arena_done(&eligible->selector_memory);
    buf_done(&eligible->key);
    mem_free(eligible->reserved);
    mem_free(eligible->slots);
    mem_free(eligible->scheduler_name);
    mem_free(eligible);
}

const struct eligible_set *eligible_nodes(struct eligible *eligible, const struct kube_pod *pod)
{
    struct pod_class *pod_class = pod_class_get(eligible, pod);

    pod_class_write(eligible, pod_class);
    return &pod_class->set;
}

const char *eligible_misfit(struct eligible *eligible, const struct kube_pod *pod,
                            const struct kube_node *node, struct arena *arena)
{
    const struct pod_class *pod_class;
    int slot;
    unsigned code;

    if (!eligible->caches.nodes)
        return NULL;
    pod_class = pod_class_get(eligible, pod);
    slot = eligible_slot_of(eligible, node->object.name);
    if (slot == ELIGIBLE_NO_SLOT)
        return arena_printf(arena, "node %s is gone", node->object.name);
    code = pod_class->result[slot].code;
    if (code == ELIGIBLE_TROUBLE && pod_class->trouble_passes)
        return NULL;
    if (code == ELIGIBLE_FITS)
        code = pod_class_fits_now(eligible, pod_class, pod, slot);
    if (code == ELIGIBLE_FITS)
        return NULL;
    return arena_printf(arena, "node %s: %s", node->object.name,
                        pod_class_words(pod_class, code, arena));
}

uint64_t eligible_class(struct eligible *eligible, const struct kube_pod *pod)
{
    if (pod->rare && pod->rare->volume_claim_count > 0)
        return 0;
    return pod_class_get(eligible, pod)->number;
}

uint64_t eligible_result(struct eligible *eligible, const struct kube_pod *pod)
{
    const struct pod_class *pod_class = pod_class_get(eligible, pod);

    return pod_class->number << CLASS_SHIFT ^ pod_class->changed;
}

uint64_t eligible_generation(const struct eligible *eligible)
{
    return eligible->sequence;
}

void eligible_listen(struct eligible *eligible, void (*changed)(void *context), void *context)
{
    eligible->changed = changed;
    eligible->context = context;
}

bool eligible_is_of_node(const struct kube_pod *pod)
{
    const char *kind = pod->object.owner.kind;

    return strcmp(kind, "DaemonSet") == 0 || strcmp(kind, "Node") == 0;
}

struct kube_requests eligible_node_overhead(const struct eligible *eligible,
                                            const struct kube_node *node, int64_t *ret_extended)
{
    struct pods_walk walk = eligible_pods_on(eligible, node->object.name);
    struct kube_requests overhead = { 0 };
    const struct kube_pod *pod;

    memset(ret_extended, 0, KUBE_MAX_RESOURCES * sizeof(*ret_extended));
    while ((pod = eligible_next_pod(&walk)) != NULL)
        if (eligible_is_of_node(pod) && !eligible_is_ours(eligible, pod))
            eligible_add_up(&node->extended, &pod->requests, &overhead, ret_extended);
    return overhead;
}

/* ---- pods that are to be bound together ---- */

bool eligible_minds_others(const struct kube_pod *pod)
{
    const struct kube_rare *rare = pod->rare;

    return rare && (rare->pod_affinity[0] || rare->pod_anti_affinity[0] || rare->spread[0]);
}

/* Rules count pods that are bound. A reserved pod counts as if it were; nobody is told. */
static void count_reserved(struct eligible *eligible, struct reserved reserved, int direction)
{
    void (*changed)(void *context) = eligible->changed;

    eligible->changed = NULL;
    eligible_count_pod(eligible, reserved.slot, reserved.pod, direction);
    eligible->changed = changed;
}

void eligible_reserve(struct eligible *eligible, const struct kube_pod *pod,
                      const struct kube_node *node)
{
    struct reserved reserved = { pod, eligible_slot_of(eligible, node->object.name) };

    if (reserved.slot == ELIGIBLE_NO_SLOT)
        return;
    eligible_count_owners(eligible);
    if (eligible->reserved_count == eligible->reserved_room) {
        eligible->reserved_room =
            eligible->reserved_room > 0 ? 2 * eligible->reserved_room : RESERVED_AT_FIRST;
        eligible->reserved = mem_resize_array(eligible->reserved, eligible->reserved_room,
                                              sizeof(*eligible->reserved));
    }
    eligible->reserved[eligible->reserved_count++] = reserved;
    count_reserved(eligible, reserved, 1);
}

void eligible_unreserve_all(struct eligible *eligible)
{
    while (eligible->reserved_count > 0)
        count_reserved(eligible, eligible->reserved[--eligible->reserved_count], -1);
}

enum eligible_objection eligible_objection(struct eligible *eligible, const struct kube_pod *pod,
                                           const struct kube_node *node)
{
    const struct pod_class *pod_class = pod_class_get(eligible, pod);
    int slot = eligible_slot_of(eligible, node->object.name);

    switch (slot == ELIGIBLE_NO_SLOT ? ELIGIBLE_FREE_SLOT : pod_class->result[slot].code) {
    case ELIGIBLE_FITS:
        return ELIGIBLE_NO_OBJECTION;
    case ELIGIBLE_SPREAD:
    case ELIGIBLE_ATTRACTED:
    case ELIGIBLE_AVOIDS:
    case ELIGIBLE_REPELLED:
        return ELIGIBLE_PODS_OBJECT;
    default:
        return ELIGIBLE_NODE_OBJECTS;
    }
}
