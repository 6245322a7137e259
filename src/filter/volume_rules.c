/* volume_rules.c - where the volumes of a pod may be used, and what must be done for them first.
 *
 * A claim is looked up each time, and what is found goes into the key of the class: pods with
 * claims of their own share a class while their claims are in the same state. A claim that is not
 * bound and does not wait for a consumer makes the pod wait, and so does a claim that does not
 * exist. A claim whose class has no provisioner takes a free volume, as Kubernetes' scheduler does
 * it: the smallest claim chooses first, and takes the smallest volume that is big enough.
 *
 * Holds   a volume is free when it is Available, for no claim and not being deleted. A volume that
 *         a claim is about to take is not free: predictions are in the cache. */
#include "filter/filter_private.h"

#include <inttypes.h>
#include <string.h>

enum {
    MAX_INDEX_KEY = 2048,
    MAX_SELECTORS = 4096, /* of free volumes, kept */
};

#define SELECTED_NODE  "volume.kubernetes.io/selected-node"
#define BIND_COMPLETED "pv.kubernetes.io/bind-completed"
#define NO_PROVISIONER "kubernetes.io/no-provisioner"
#define ON_FIRST_USE   "WaitForFirstConsumer"
#define HOSTNAME       "kubernetes.io/hostname"

/* ---- indexes ---- */

static bool is_free(const struct kube_volume *volume)
{
    return !volume->for_name[0] && !volume->object.deleted_us &&
           strcmp(volume->phase, "Available") == 0;
}

static struct str pair(struct buf *text, const char *a, char between, const char *b)
{
    buf_init(text, MAX_INDEX_KEY);
    buf_printf(text, "%s%c%s", a, between, b);
    return buf_str(text);
}

/* "class\nhost" has the free volumes of a class that name this host, "class\n" those that name
 * none.
 */
static void emit_class(const struct kube_object *object, kube_index_emit emit, void *context)
{
    const struct kube_volume *volume = kube_volume_of(object);

    for (unsigned i = 0; is_free(volume) && (i < volume->host_count || i == 0); i++) {
        const char *host = volume->host_count > 0 ? volume->hosts[i] : "";
        auto_buf struct buf text;

        emit(context, pair(&text, volume->class, '\n', host));
    }
}

static void emit_volume_claim(const struct kube_object *object, kube_index_emit emit, void *context)
{
    const struct kube_volume *volume = kube_volume_of(object);
    auto_buf struct buf text;
    struct str key = pair(&text, volume->for_ns, '/', volume->for_name);

    if (volume->for_name[0])
        emit(context, key);
}

static void emit_pod_claims(const struct kube_object *object, kube_index_emit emit, void *context)
{
    const struct kube_pod *pod = kube_pod_of(object);

    for (unsigned i = 0; filter_is_placed(pod) && pod->rare && i < pod->rare->volume_claim_count;
         i++) {
        auto_buf struct buf text;

        emit(context, pair(&text, object->ns, '/', pod->rare->volume_claims[i]));
    }
}

static bool is_in(const struct kube_cache *cache, int index, struct str key)
{
    return cache && kube_cache_count_by(cache, index, key) > 0;
}

/* ---- one claim ---- */

enum claim_state {
    CLAIM_UNKNOWN, /* there is nothing to look it up in */
    CLAIM_MISSING,
    CLAIM_ENDING,
    CLAIM_FOREIGN,  /* it has the name of the pod's own claim, and is not the pod's */
    CLAIM_LOST,     /* its volume is not there */
    CLAIM_WAITS,    /* for a volume, whatever the pod does */
    CLAIM_CHOOSES,  /* takes a free volume on first use */
    CLAIM_RESERVED, /* a volume is for it, and will be bound to it */
    CLAIM_DELAYED,  /* its volume is made on first use */
    CLAIM_IN_USE,   /* by the one pod that may use it */
    CLAIM_BOUND,
    CLAIM_STATES,
};

/* Why the pod waits; %s is the name of the claim. */
static const char *const troubles[CLAIM_STATES] = {
    [CLAIM_MISSING] = "persistentvolumeclaim \"%s\" not found",
    [CLAIM_ENDING] = "persistentvolumeclaim \"%s\" is being deleted",
    [CLAIM_FOREIGN] = "persistentvolumeclaim \"%s\" was not created for the pod (the pod is not "
                      "its owner)",
    [CLAIM_LOST] = "persistentvolumeclaim \"%s\" is bound to a persistent volume that does not "
                   "exist",
    [CLAIM_WAITS] = "pod has unbound immediate PersistentVolumeClaims",
    [CLAIM_IN_USE] = "persistentvolumeclaim \"%s\" is in use by another pod, and its access mode "
                     "is ReadWriteOncePod",
};

struct claim {
    enum claim_state state;
    const char *name;
    const struct kube_claim *claim;
    const struct kube_volume *volume;
    const struct kube_storage_class *class;
    unsigned number;     /* of the pod's claims, each counted once */
    struct str selected; /* node; "" for none */
};

static const struct kube_object *find(const struct kube_cache *cache, const char *ns,
                                      const char *name)
{
    return cache && name[0] ? kube_cache_get(cache, ns, name) : NULL;
}

/* Of a volume that names the claim no more is asked. */
static bool is_usable(const struct kube_claim *claim, const struct kube_volume *volume)
{
    const char *has = volume->mode[0] ? volume->mode : "Filesystem";
    const char *wants = claim->mode[0] ? claim->mode : "Filesystem";

    return volume->size >= claim->size && strcmp(has, wants) == 0 && !volume->object.deleted_us;
}

/* The volume that names this claim, if it can be used; of several the first by name. */
static const struct kube_volume *reserved_for(const struct filter *filter,
                                              const struct kube_claim *claim)
{
    const struct kube_object *object, *first = NULL;
    auto_buf struct buf text;
    struct kube_index_walk walk =
        kube_cache_by(filter->caches.volumes, filter->volumes_by_claim,
                      pair(&text, claim->object.ns, '/', claim->object.name));

    while ((object = kube_index_next(&walk)) != NULL) {
        const struct kube_volume *volume = kube_volume_of(object);
        bool is_for = !volume->for_uid[0] || strcmp(volume->for_uid, claim->object.uid) == 0;

        if (is_for && is_usable(claim, volume) && (!first || strcmp(object->name, first->name) < 0))
            first = object;
    }
    return first ? kube_volume_of(first) : NULL;
}

static enum claim_state look_at_unbound(const struct filter *filter, struct claim *claim)
{
    const struct kube_object *class = find(filter->caches.classes, "", claim->claim->class);

    claim->class = class ? kube_storage_class_of(class) : NULL;
    claim->selected = kube_pairs_get(&claim->claim->object.annotations, SELECTED_NODE, NULL);
    if (!filter->caches.classes)
        return CLAIM_UNKNOWN;
    if (!claim->class || strcmp(claim->class->binding_mode, ON_FIRST_USE) != 0)
        return CLAIM_WAITS;
    if (strcmp(claim->class->provisioner, NO_PROVISIONER) != 0)
        return CLAIM_DELAYED;
    if (!filter->caches.volumes)
        return CLAIM_UNKNOWN;
    claim->volume = reserved_for(filter, claim->claim);
    return claim->volume ? CLAIM_RESERVED : CLAIM_CHOOSES;
}

static bool is_bound(const struct kube_claim *claim)
{
    bool completed;

    (void)kube_pairs_get(&claim->object.annotations, BIND_COMPLETED, &completed);
    return claim->volume[0] && completed;
}

static enum claim_state look_up(const struct filter *filter, const char *ns, struct claim *claim)
{
    const struct kube_object *object = find(filter->caches.claims, ns, claim->name), *volume;

    if (!object)
        return filter->caches.claims ? CLAIM_MISSING : CLAIM_UNKNOWN;
    claim->claim = kube_claim_of(object);
    if (object->deleted_us)
        return CLAIM_ENDING;
    if (!is_bound(claim->claim)) /* one that has been given a volume takes a moment */
        return claim->claim->volume[0] ? CLAIM_WAITS : look_at_unbound(filter, claim);
    volume = find(filter->caches.volumes, "", claim->claim->volume);
    claim->volume = volume ? kube_volume_of(volume) : NULL;
    if (volume)
        return CLAIM_BOUND;
    return filter->caches.volumes ? CLAIM_LOST : CLAIM_UNKNOWN;
}

/* ---- the claims of a pod, each once ---- */

struct claim_walk {
    const struct filter *filter;
    const struct kube_pod *pod;
    unsigned at, count;
};

static const char *next_name(struct claim_walk *walk)
{
    const struct kube_rare *rare = walk->pod->rare;

    for (; rare && walk->at < rare->volume_claim_count; walk->at++) {
        unsigned first = 0;

        while (strcmp(rare->volume_claims[first], rare->volume_claims[walk->at]) != 0)
            first++;
        if (first < walk->at)
            continue;
        walk->count++;
        return rare->volume_claims[walk->at++];
    }
    return NULL;
}

static bool next_claim(struct claim_walk *walk, struct claim *ret_claim)
{
    const char *name = next_name(walk);
    struct claim claim = { .name = name, .number = walk->count - 1 };

    if (!name)
        return false;
    claim.state = look_up(walk->filter, walk->pod->object.ns, &claim);
    if (claim.claim && walk->pod->rare->volume_claim_is_own[walk->at - 1] &&
        strcmp(claim.claim->object.owner.uid, walk->pod->object.uid) != 0)
        claim.state = CLAIM_FOREIGN;
    *ret_claim = claim;
    return true;
}

/* ---- classes ---- */

static bool has_volume(const struct claim *claim)
{
    return claim->state == CLAIM_BOUND || claim->state == CLAIM_RESERVED;
}

/* What one pod may use no other pod gets, on whatever node. */
static void check_use(const struct filter *filter, struct claim *claim)
{
    const struct filter_caches *caches = &filter->caches;
    auto_buf struct buf text = { .max = MAX_INDEX_KEY };
    struct str key;

    if (claim->state != CLAIM_BOUND || !(claim->claim->access & KUBE_ACCESS_ONE_POD))
        return;
    key = pair(&text, claim->claim->object.ns, '/', claim->name);
    if (is_in(caches->pods, filter->pods_by_claim, key) ||
        is_in(caches->other_pods, filter->others_by_claim, key))
        claim->state = CLAIM_IN_USE;
}

void volume_rules_key(struct filter *filter, const struct kube_pod *pod, struct buf *key)
{
    struct claim_walk walk = { .filter = filter, .pod = pod };
    struct claim claim;

    while (next_claim(&walk, &claim)) {
        check_use(filter, &claim);
        buf_printf(key, "%d %s\n", (int)claim.state,
                   claim.selected.len > 0 ? claim.selected.at : "");
        if (has_volume(&claim))
            buf_add_text(key, claim.volume->affinity);
        else if (claim.state == CLAIM_CHOOSES)
            buf_printf(key, "%s\n%s\n%s\n%" PRId64 "\n%u", claim.claim->class, claim.claim->mode,
                       claim.claim->selector, claim.claim->size, claim.claim->access);
        else if (claim.state == CLAIM_DELAYED)
            buf_add_text(key, claim.class->topology);
        else if (claim.state != CLAIM_UNKNOWN && claim.state != CLAIM_WAITS)
            buf_add_text(key, claim.name); /* it is named in the words */
        buf_add_char(key, '\n');
    }
}

static void add_selector(struct pod_class *pod_class, const char *text,
                         const struct nodeselector **list, unsigned *count)
{
    struct err err = { 0 };

    if (text[0] && filter_read_selector(&pod_class->arena, text, &list[*count], &err))
        ++*count;
    else if (text[0])
        pod_class->trouble = arena_printf(&pod_class->arena,
                                          "the topology of a volume cannot be read: %s", err.text);
}

static void add_choosing(struct pod_class *pod_class, const struct claim *claim)
{
    const char *text = claim->claim->selector;
    struct arena *arena = &pod_class->arena;
    struct class_claim next = { .claim = claim->claim, .number = claim->number };
    auto_json_doc struct json_doc *doc = NULL;
    unsigned at = pod_class->claim_count;
    struct err err = { 0 };

    if ((text[0] && json_parse(str_of(text), FILTER_MAX_TEXT, &doc, &err) < 0) ||
        selector_from_json(arena, doc ? json_root(doc) : NULL, SELECTOR_ABSENT_MATCHES_ALL,
                           &next.labels, &err) < 0) {
        pod_class->trouble =
            arena_printf(arena, "the selector of a claim cannot be read: %s", err.text);
        return;
    }
    (void)kube_object_ref(&claim->claim->object);
    for (; at > 0 && pod_class->claims[at - 1].claim->size > claim->claim->size; at--)
        pod_class->claims[at] = pod_class->claims[at - 1];
    pod_class->claims[at] = next;
    pod_class->claim_count++;
}

static void setup_claim(struct filter *filter, struct pod_class *pod_class, struct claim *claim)
{
    struct arena *arena = &pod_class->arena;
    const char *trouble;

    check_use(filter, claim);
    trouble = troubles[claim->state];
    if (trouble && (!pod_class->trouble || pod_class->trouble_passes)) {
        const char *name = strstr(trouble, "%s");

        /* the volume may only not have been seen yet */
        pod_class->trouble_passes = claim->state == CLAIM_LOST || claim->state == CLAIM_WAITS;
        pod_class->trouble = name ? arena_printf(arena, "%.*s%s%s", (int)(name - trouble), trouble,
                                                 claim->name, name + 2)
                                  : trouble;
    }
    if (claim->state == CLAIM_CHOOSES)
        add_choosing(pod_class, claim);
    if (has_volume(claim))
        add_selector(pod_class, claim->volume->affinity, pod_class->volumes,
                     &pod_class->volume_count);
    if (claim->state != CLAIM_DELAYED)
        return;
    add_selector(pod_class, claim->class->topology, pod_class->topologies,
                 &pod_class->topology_count);
    if (claim->selected.len > 0)
        pod_class->selected[pod_class->selected_count++] = arena_strdup(arena, claim->selected.at);
}

void pod_class_setup_volumes(struct filter *filter, struct pod_class *pod_class)
{
    const struct kube_pod *pod = pod_class->pod;
    unsigned count = pod->rare ? pod->rare->volume_claim_count : 0;
    struct claim_walk walk = { .filter = filter, .pod = pod };
    struct arena *arena = &pod_class->arena;
    struct claim claim;

    if (count == 0)
        return;
    pod_class->volumes = arena_alloc_array(arena, count, sizeof(*pod_class->volumes));
    pod_class->topologies = arena_alloc_array(arena, count, sizeof(*pod_class->topologies));
    pod_class->selected = arena_alloc_array(arena, count, sizeof(*pod_class->selected));
    pod_class->claims = arena_alloc_array(arena, count, sizeof(*pod_class->claims));
    pod_class->picks = arena_alloc_array(arena, count, sizeof(*pod_class->picks));
    while (next_claim(&walk, &claim))
        setup_claim(filter, pod_class, &claim);
}

/* ---- free volumes ---- */

/* Of a volume that names no host: what it says is read once. */
static bool is_reachable(struct filter *filter, const struct kube_volume *volume,
                         const struct nodeselector_node *node)
{
    struct str text = str_of(volume->affinity);
    const struct nodeselector *selector = NULL;

    if (text.len == 0)
        return true;
    if (!map_has(&filter->selectors, text)) {
        if (filter->selectors.count == MAX_SELECTORS) {
            map_clear(&filter->selectors);
            arena_reset(&filter->selector_memory);
        }
        (void)filter_read_selector(&filter->selector_memory, text.at, &selector, NULL);
        filter_put(&filter->selectors, text, (void *)(uintptr_t)selector);
    }
    selector = map_get(&filter->selectors, text);
    return selector && nodeselector_matches(selector, node);
}

static bool is_taken(const struct pod_class *pod_class, unsigned picked,
                     const struct filter_claim *taken, unsigned taken_count, const char *name)
{
    for (unsigned i = 0; i < picked; i++)
        if (strcmp(pod_class->picks[i], name) == 0)
            return true;
    for (unsigned i = 0; i < taken_count; i++)
        if (taken[i].volume && strcmp(taken[i].volume->name, name) == 0)
            return true;
    return false;
}

bool pod_class_pick_volumes(struct filter *filter, const struct pod_class *pod_class,
                            const struct kube_node *node, const struct filter_claim *taken,
                            unsigned taken_count)
{
    const struct nodeselector_node subject = filter_subject(node);
    struct str host = kube_pairs_get(&node->object.labels, HOSTNAME, NULL);

    for (unsigned which = 0; which < pod_class->claim_count; which++) {
        const struct class_claim *wanted = &pod_class->claims[which];
        const struct kube_volume *best = NULL;

        for (unsigned with_host = 0; with_host < 1u + (host.len > 0); with_host++) {
            const struct kube_object *object;
            auto_buf struct buf text;
            struct kube_index_walk walk =
                kube_cache_by(filter->caches.volumes, filter->volumes_by_class,
                              pair(&text, wanted->claim->class, '\n', with_host ? host.at : ""));

            while ((object = kube_index_next(&walk)) != NULL) {
                const struct kube_volume *volume = kube_volume_of(object);
                unsigned access = wanted->claim->access;

                if (best &&
                    (volume->size > best->size ||
                     (volume->size == best->size && strcmp(object->name, best->object.name) > 0)))
                    continue;
                if (is_usable(wanted->claim, volume) && (volume->access & access) == access &&
                    selector_matches(wanted->labels, kube_labels(&object->labels)) &&
                    (with_host || is_reachable(filter, volume, &subject)) &&
                    !is_taken(pod_class, which, taken, taken_count, object->name))
                    best = volume;
            }
        }
        if (!best)
            return false;
        pod_class->picks[which] = best->object.name;
    }
    return true;
}

/* ---- before a bind ---- */

static bool is_listed(const struct filter_claim *list, unsigned count, const struct claim *claim)
{
    for (unsigned i = 0; i < count; i++)
        if (claim->claim && list[i].claim == &claim->claim->object)
            return true;
    return false;
}

/* The volumes that were picked for a pod go to its claims. */
static void take_picks(const struct filter *filter, const struct pod_class *pod_class,
                       const struct kube_pod *pod, struct filter_claim *list, unsigned count)
{
    struct claim_walk walk = { .filter = filter, .pod = pod };
    const char *name;

    while ((name = next_name(&walk)) != NULL)
        for (unsigned i = 0; i < pod_class->claim_count; i++)
            for (unsigned k = 0; pod_class->claims[i].number == walk.count - 1 && k < count; k++)
                if (list[k].claim && strcmp(list[k].name, name) == 0) {
                    list[k].volume = find(filter->caches.volumes, "", pod_class->picks[i]);
                    list[k].step = list[k].volume ? FILTER_TAKE_VOLUME : FILTER_NO_VOLUME;
                }
}

unsigned filter_unbound_claims(struct filter *filter, const struct kube_pod *pod, const char *node,
                               struct filter_claim *list, unsigned count, unsigned max)
{
    struct claim_walk walk = { .filter = filter, .pod = pod };
    const struct kube_object *object = find(filter->caches.nodes, "", node);
    const struct pod_class *pod_class;
    unsigned first = count;
    bool chooses = false;
    struct claim claim;

    while (filter->caches.claims && count < max && next_claim(&walk, &claim)) {
        struct filter_claim open = { .name = claim.name,
                                     .claim = claim.claim ? &claim.claim->object : NULL };

        /* its volume counts when it is seen, where volumes are watched at all */
        if (claim.state == CLAIM_BOUND || is_listed(list, count, &claim) ||
            (claim.state == CLAIM_UNKNOWN && claim.claim && is_bound(claim.claim)))
            continue;
        if (claim.state == CLAIM_RESERVED)
            open.volume = &claim.volume->object;
        if (claim.state == CLAIM_DELAYED && !str_is(claim.selected, node))
            open.step = FILTER_SELECT_NODE;
        if (claim.state == CLAIM_CHOOSES)
            open.step = FILTER_NO_VOLUME; /* until one is picked */
        chooses |= claim.state == CLAIM_CHOOSES;
        list[count++] = open;
    }
    if (!chooses || !object)
        return count;
    pod_class = pod_class_get(filter, pod);
    if (pod_class_pick_volumes(filter, pod_class, kube_node_of(object), list, first))
        take_picks(filter, pod_class, pod, list + first, count - first);
    return count;
}

/* ---- changes ---- */

static bool same_annotation(const struct kube_object *a, const struct kube_object *b,
                            const char *key)
{
    bool in_a, in_b;
    struct str of_a = kube_pairs_get(&a->annotations, key, &in_a);
    struct str of_b = kube_pairs_get(&b->annotations, key, &in_b);

    return in_a == in_b && str_eq(of_a, of_b);
}

static void claim_changed(void *context, const struct kube_object *old,
                          const struct kube_object *next)
{
    const struct kube_claim *a = old ? kube_claim_of(old) : NULL;
    const struct kube_claim *b = next ? kube_claim_of(next) : NULL;

    if (!a || !b || strcmp(old->uid, next->uid) != 0 || strcmp(a->volume, b->volume) != 0 ||
        strcmp(a->class, b->class) != 0 || a->size != b->size ||
        (old->deleted_us == 0) != (next->deleted_us == 0) ||
        !same_annotation(old, next, SELECTED_NODE) || !same_annotation(old, next, BIND_COMPLETED))
        filter_touch(context, FILTER_NO_SLOT);
}

/* Most of a volume does not change while it is there: it is taken, becomes free, or goes. */
static void volume_changed(void *context, const struct kube_object *old,
                           const struct kube_object *next)
{
    const struct kube_volume *a = old ? kube_volume_of(old) : NULL;
    const struct kube_volume *b = next ? kube_volume_of(next) : NULL;
    struct filter *filter = context;

    if (a && b && is_free(a) == is_free(b) && a->size == b->size && a->access == b->access &&
        strcmp(a->class, b->class) == 0 && strcmp(a->mode, b->mode) == 0 &&
        filter_same_pairs(&old->labels, &next->labels) && strcmp(a->affinity, b->affinity) == 0 &&
        strcmp(a->for_ns, b->for_ns) == 0 && strcmp(a->for_name, b->for_name) == 0 &&
        strcmp(a->for_uid, b->for_uid) == 0 && (old->deleted_us == 0) == (next->deleted_us == 0))
        return;
    filter_touch(filter, FILTER_NO_SLOT);
    filter->volumes_changed = filter->sequence;
}

static void class_changed(void *context, const struct kube_object *old,
                          const struct kube_object *next)
{
    filter_touch(context, FILTER_NO_SLOT);
}

void volume_rules_listen(struct filter *filter)
{
    const struct filter_caches *caches = &filter->caches;

    if (caches->pods)
        filter->pods_by_claim = kube_cache_add_index(caches->pods, emit_pod_claims);
    if (caches->other_pods)
        filter->others_by_claim = kube_cache_add_index(caches->other_pods, emit_pod_claims);
    if (caches->claims)
        kube_cache_listen(caches->claims, claim_changed, filter);
    if (caches->classes)
        kube_cache_listen(caches->classes, class_changed, filter);
    if (!caches->volumes)
        return;
    filter->volumes_by_class = kube_cache_add_index(caches->volumes, emit_class);
    filter->volumes_by_claim = kube_cache_add_index(caches->volumes, emit_volume_claim);
    kube_cache_listen(caches->volumes, volume_changed, filter);
}
