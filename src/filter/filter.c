/* filter.c - the nodes in their slots, with what pods of other schedulers request there; what the
 * filter listens to, and what it is asked.
 *
 * Holds   what is requested in a slot is the sum over the pods that the caches show on its node.
 *         Every change that a set may depend on gets a sequence number of its own, and the listener
 *         is told. */
#include "filter/filter_private.h"

#include "base/mem.h"
#include "kube/owners.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_SLOTS = 64,
    MAX_KEY = 16 << 20,
    MAX_WORDS = 4096,
};

void filter_touch(struct filter *filter, int slot)
{
    filter->sequence++;
    if (slot != FILTER_NO_SLOT)
        filter->slots[slot].changed = filter->slots_changed = filter->sequence;
    if (filter->changed)
        filter->changed(filter->context);
}

void filter_put(struct map *map, struct str key, void *value)
{
    if (map_put(map, key, value, NULL) == 0)
        return;
    fprintf(stderr, "filter: more than %d nodes, labels or rules\n", FILTER_MAX_NAMES);
    abort();
}

bool filter_is_placed(const struct kube_pod *pod)
{
    return pod->node_name[0] && !kube_pod_is_finished(pod);
}

int filter_slot_of(const struct filter *filter, const char *node)
{
    return (int)(uintptr_t)map_get(&filter->by_name, str_of(node)) - 1;
}

/* ---- pods on a node ---- */

static void emit_node(const struct kube_object *object, kube_index_emit emit, void *context)
{
    const struct kube_pod *pod = kube_pod_of(object);

    if (filter_is_placed(pod))
        emit(context, str_of(pod->node_name));
}

struct pods_walk filter_pods_on(const struct filter *filter, const char *node)
{
    struct pods_walk walk = { .filter = filter, .node = str_of(node) };

    if (filter->caches.pods)
        walk.walk = kube_cache_by(filter->caches.pods, filter->pods_by_node, walk.node);
    return walk;
}

const struct kube_pod *filter_next_pod(struct pods_walk *walk)
{
    const struct filter *filter = walk->filter;
    const struct kube_object *object = kube_index_next(&walk->walk);

    if (!object && !walk->in_others && filter->caches.other_pods) {
        walk->in_others = true;
        walk->walk = kube_cache_by(filter->caches.other_pods, filter->others_by_node, walk->node);
        object = kube_index_next(&walk->walk);
    }
    return object ? kube_pod_of(object) : NULL;
}

struct nodeselector_node filter_subject(const struct kube_node *node)
{
    return (struct nodeselector_node){ str_of(node->object.name),
                                       kube_labels(&node->object.labels) };
}

static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

void filter_add_up(const struct kube_amounts *has, const struct kube_requests *requests,
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
static void recount(struct filter *filter, struct node_slot *slot)
{
    struct pods_walk walk = filter_pods_on(filter, slot->node->object.name);
    const struct kube_amounts *has = &slot->node->extended;
    const struct kube_pod *pod;

    mem_free(slot->others_extended);
    slot->others_extended = mem_alloc_array(has->count + 1, sizeof(*slot->others_extended));
    slot->of_others = (struct kube_requests){ 0 };
    slot->pods = 0;
    while ((pod = filter_next_pod(&walk)) != NULL) {
        slot->pods++;
        if (walk.in_others)
            filter_add_up(has, &pod->requests, &slot->of_others, slot->others_extended);
    }
}

/* ---- changes of pods ---- */

bool filter_same_pairs(const struct kube_pairs *a, const struct kube_pairs *b)
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
static void take(struct filter *filter, const struct kube_pod *pod, bool is_other, int direction)
{
    int number = filter_slot_of(filter, pod->node_name);
    struct node_slot *slot;
    bool was_full;

    if (number == FILTER_NO_SLOT)
        return; /* counted when the node comes */
    slot = &filter->slots[number];
    was_full = is_full(slot);
    recount(filter, slot);
    if (is_other || was_full != is_full(slot) ||
        (pod->rare && pod->rare->port_count + pod->rare->volume_claim_count > 0))
        filter_touch(filter, number);
    filter_count_pod(filter, number, pod, direction);
    if (filter->has_forgotten) { /* once: whoever is told asks for all, and that makes them again */
        filter->has_forgotten = false;
        filter_touch(filter, FILTER_NO_SLOT);
    }
}

static void compare_pods(struct filter *filter, const struct kube_object *old_object,
                         const struct kube_object *next_object, bool is_other)
{
    const struct kube_pod *old = old_object ? kube_pod_of(old_object) : NULL;
    const struct kube_pod *next = next_object ? kube_pod_of(next_object) : NULL;

    old = old && filter_is_placed(old) ? old : NULL;
    next = next && filter_is_placed(next) ? next : NULL;
    /* What rules look at in a pod that has a node; the rest of its spec does not change. */
    if (old && next && strcmp(old->node_name, next->node_name) == 0 &&
        (old->object.deleted_us == 0) == (next->object.deleted_us == 0) &&
        filter_same_pairs(&old->object.labels, &next->object.labels) &&
        old->requests.cpu_milli == next->requests.cpu_milli &&
        old->requests.memory == next->requests.memory &&
        old->requests.ephemeral == next->requests.ephemeral &&
        same_amounts(&old->requests.extended, &next->requests.extended))
        return;
    if (old)
        take(filter, old, is_other, -1);
    if (next)
        take(filter, next, is_other, 1);
}

static void pod_changed(void *context, const struct kube_object *old,
                        const struct kube_object *next)
{
    compare_pods(context, old, next, false);
}

static void other_pod_changed(void *context, const struct kube_object *old,
                              const struct kube_object *next)
{
    compare_pods(context, old, next, true);
}

static void namespace_changed(void *context, const struct kube_object *old,
                              const struct kube_object *next)
{
    if (old && next && filter_same_pairs(&old->labels, &next->labels))
        return;
    filter_touch(context, FILTER_NO_SLOT);
    filter_count_anew(context);
}

/* ---- changes of nodes ---- */

static const char *name_of(const struct filter *filter, const struct kube_node *node)
{
    return filter->hooks.name_of ? filter->hooks.name_of(filter->hooks.context, node)
                                 : node->object.name;
}

static uint64_t hash_of(const char *text)
{
    const uint64_t secret[2] = { 0, 0 };

    return text ? map_hash(str_of(text), secret) : 0;
}

static int free_slot(struct filter *filter)
{
    size_t from = filter->capacity;

    if (filter->by_name.count < filter->slot_count)
        for (size_t i = 0; i < filter->slot_count; i++)
            if (!filter->slots[i].node)
                return (int)i;
    if (filter->slot_count == from) {
        filter->capacity = from > 0 ? 2 * from : FIRST_SLOTS;
        filter->slots = mem_resize_array(filter->slots, filter->capacity, sizeof(*filter->slots));
        memset(filter->slots + from, 0, (filter->capacity - from) * sizeof(*filter->slots));
    }
    return (int)filter->slot_count++;
}

static void add_node(struct filter *filter, const struct kube_node *node)
{
    int number = free_slot(filter);
    struct node_slot *slot = &filter->slots[number];

    *slot = (struct node_slot){ .node = node, .name = name_of(filter, node) };
    slot->name_hash = hash_of(slot->name);
    filter_put(&filter->by_name, str_of(node->object.name), (void *)((uintptr_t)number + 1));
    recount(filter, slot);
    filter_touch(filter, number);
    filter->names_changed = filter->sequence;
    filter_count_anew(filter);
}

static void drop_node(struct filter *filter, int number)
{
    struct node_slot *slot = &filter->slots[number];

    map_remove(&filter->by_name, str_of(slot->node->object.name));
    mem_free(slot->others_extended);
    *slot = (struct node_slot){ 0 };
    filter_touch(filter, number);
    filter_count_anew(filter);
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
static void change_node(struct filter *filter, int number, const struct kube_node *old,
                        const struct kube_node *next)
{
    struct node_slot *slot = &filter->slots[number];
    const char *name = name_of(filter, next);
    bool same_name = name && slot->name ? strcmp(name, slot->name) == 0 : name == slot->name;
    bool same_labels = filter_same_pairs(&old->object.labels, &next->object.labels);
    bool same_extended = same_amounts(&old->extended, &next->extended);

    slot->node = next;
    slot->name = name;
    if (same_name && same_labels && same_extended && same_taints(old, next) &&
        old->cpu_milli == next->cpu_milli && old->memory == next->memory &&
        old->ephemeral == next->ephemeral && old->pods == next->pods)
        return;
    if (!same_extended)
        recount(filter, slot);
    if (!same_labels)
        filter_relabel(filter, &old->object.labels, &next->object.labels);
    filter_touch(filter, number);
    if (!same_name) {
        slot->name_hash = hash_of(name);
        filter->names_changed = filter->sequence;
    }
}

static void node_changed(void *context, const struct kube_object *old,
                         const struct kube_object *next)
{
    const struct kube_object *either = next ? next : old;
    struct filter *filter = context;
    int number;

    assert(either);
    number = filter_slot_of(filter, either->name);
    if (old && next && number != FILTER_NO_SLOT)
        change_node(filter, number, kube_node_of(old), kube_node_of(next));
    else if (next)
        add_node(filter, kube_node_of(next));
    else if (number != FILTER_NO_SLOT)
        drop_node(filter, number);
}

void filter_node_changed(struct filter *filter, const char *node)
{
    int number = filter_slot_of(filter, node);

    if (number != FILTER_NO_SLOT)
        filter_touch(filter, number);
}

/* ---- the filter ---- */

struct filter *filter_new(const struct filter_caches *caches, const struct filter_hooks *hooks)
{
    static const struct map_options copies = { .max = FILTER_MAX_NAMES };
    static const struct map_options borrows = { .max = FILTER_MAX_NAMES, .borrow_keys = true };
    static const struct map_options classes = { .max = FILTER_MAX_NAMES,
                                                .borrow_keys = true,
                                                .free_value = pod_class_free };
    static const struct map_options rules = { .max = FILTER_MAX_NAMES,
                                              .borrow_keys = true,
                                              .free_value = pod_rules_free };
    struct filter *filter = mem_alloc(sizeof(*filter));

    filter->caches = *caches;
    filter->hooks = *hooks;
    filter->sequence = 1;
    filter->max_rules = FILTER_MAX_CLASSES;
    map_init(&filter->by_name, &copies);
    map_init(&filter->topologies, &borrows);
    map_init(&filter->rules, &rules);
    map_init(&filter->classes, &classes);
    map_init(&filter->selectors, &copies);
    list_init(&filter->counts);
    buf_init(&filter->key, MAX_KEY);
    arena_init(&filter->selector_memory, FILTER_MEMORY);
    if (caches->pods) {
        filter->pods_by_node = kube_cache_add_index(caches->pods, emit_node);
        kube_cache_listen(caches->pods, pod_changed, filter);
    }
    if (caches->other_pods) {
        filter->others_by_node = kube_cache_add_index(caches->other_pods, emit_node);
        kube_cache_listen(caches->other_pods, other_pod_changed, filter);
    }
    if (caches->nodes)
        kube_cache_listen(caches->nodes, node_changed, filter);
    if (caches->namespaces)
        kube_cache_listen(caches->namespaces, namespace_changed, filter);
    volume_rules_listen(filter);
    return filter;
}

void filter_free(struct filter *filter)
{
    if (!filter)
        return;
    map_done(&filter->classes); /* they use rules */
    map_done(&filter->rules);
    filter_drop_topologies(filter);
    map_done(&filter->topologies);
    for (size_t i = 0; i < filter->slot_count; i++)
        mem_free(filter->slots[i].others_extended);
    map_done(&filter->by_name);
    map_done(&filter->selectors);
    arena_done(&filter->selector_memory);
    buf_done(&filter->key);
    mem_free(filter->slots);
    mem_free(filter);
}

const struct filter_set *filter_nodes(struct filter *filter, const struct kube_pod *pod)
{
    struct pod_class *pod_class = pod_class_get(filter, pod);

    pod_class_write(filter, pod_class);
    return &pod_class->set;
}

/* With the reserved pods, if there are any. */
static unsigned code_of(const struct pod_class *pod_class, struct filter_reserved *reserved,
                        const struct kube_pod *pod, int slot)
{
    return reserved ? filter_reserved_results(reserved, pod_class, pod)[slot].code
                    : pod_class->result[slot].code;
}

const char *filter_misfit(struct filter *filter, struct filter_reserved *reserved,
                          const struct kube_pod *pod, const struct kube_node *node,
                          struct arena *arena)
{
    const struct pod_class *pod_class;
    auto_buf struct buf words = { 0 };
    unsigned code;
    int slot;

    if (!filter->caches.nodes)
        return NULL;
    pod_class = pod_class_get(filter, pod);
    slot = filter_slot_of(filter, node->object.name);
    if (slot == FILTER_NO_SLOT)
        return arena_printf(arena, "node %s is gone", node->object.name);
    code = code_of(pod_class, reserved, pod, slot);
    if (code == FILTER_TROUBLE && pod_class->trouble_passes)
        return NULL;
    if (code == FILTER_FITS)
        code = pod_class_fits_now(filter, pod_class, pod, slot);
    if (code == FILTER_FITS)
        return NULL;
    buf_init(&words, MAX_WORDS);
    pod_class_words(pod_class, code, &words);
    return arena_printf(arena, "node %s: %s", node->object.name, buf_text(&words));
}

struct filter_class filter_class(struct filter *filter, const struct kube_pod *pod)
{
    const struct pod_class *pod_class = pod_class_get(filter, pod);
    bool has_volumes = pod->rare && pod->rare->volume_claim_count > 0;

    return (struct filter_class){ has_volumes ? 0 : pod_class->number, pod_class->fit };
}

uint64_t filter_version(struct filter *filter, const struct kube_pod *pod)
{
    const struct pod_class *pod_class = pod_class_get(filter, pod);

    return pod_class->hash ^ hash_of(pod_class->trouble);
}

void filter_listen(struct filter *filter, void (*changed)(void *context), void *context)
{
    filter->changed = changed;
    filter->context = context;
}

static const struct kube_object *daemonset_of(const struct filter *filter,
                                              const struct kube_pod *pod)
{
    const struct kube_cache *daemonsets = filter->caches.daemonsets;
    const struct kube_owner *owner = &pod->object.owner;

    return daemonsets && kube_owner_is(owner, kube_cache_kind(daemonsets))
               ? kube_cache_get(daemonsets, pod->object.ns, owner->name)
               : NULL;
}

bool filter_is_of_node(const struct filter *filter, const struct kube_pod *pod)
{
    const struct kube_object *owner = daemonset_of(filter, pod);
    int slot = filter_slot_of(filter, pod->node_name);

    if (slot != FILTER_NO_SLOT && kube_owner_is(&pod->object.owner, &kube_node_kind) &&
        strcmp(pod->object.owner.name, pod->node_name) == 0)
        owner = &filter->slots[slot].node->object;
    return owner && kube_is_controlled_by(&pod->object, owner);
}

struct kube_requests filter_node_overhead(const struct filter *filter, const struct kube_node *node,
                                          int64_t *ret_extended)
{
    struct pods_walk walk = filter_pods_on(filter, node->object.name);
    struct kube_requests overhead = { 0 };
    const struct kube_pod *pod;

    memset(ret_extended, 0, KUBE_MAX_RESOURCES * sizeof(*ret_extended));
    while ((pod = filter_next_pod(&walk)) != NULL)
        if (walk.in_others && filter_is_of_node(filter, pod))
            filter_add_up(&node->extended, &pod->requests, &overhead, ret_extended);
    return overhead;
}

/* ---- pods that are to be bound together ---- */

bool filter_has_pod_rules(const struct kube_pod *pod)
{
    const struct kube_rare *rare = pod->rare;

    return rare && (rare->pod_affinity[0] || rare->pod_anti_affinity[0] || rare->spread[0]);
}

enum filter_objection filter_objection(struct filter *filter, struct filter_reserved *reserved,
                                       const struct kube_pod *pod, const struct kube_node *node)
{
    const struct pod_class *pod_class = pod_class_get(filter, pod);
    int slot = filter_slot_of(filter, node->object.name);

    switch (slot == FILTER_NO_SLOT ? FILTER_FREE_SLOT : code_of(pod_class, reserved, pod, slot)) {
    case FILTER_FITS:
        return FILTER_NO_OBJECTION;
    case FILTER_SPREAD:
    case FILTER_POD_AFFINITY:
    case FILTER_POD_ANTI_AFFINITY:
    case FILTER_ANTI_AFFINITY_OF_OTHERS:
        return FILTER_PODS_OBJECT;
    default:
        return FILTER_NODE_OBJECTS;
    }
}
