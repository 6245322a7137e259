/* eligible_volumes.c - where the volumes of a pod may be used, and what must be done for them
 * first.
 *
 * A claim is looked up each time: what is found goes into the key of the class, so pods with claims
 * of their own share a class while these are in the same state. A claim that is not bound and does
 * not wait for a pod to use it makes the pod wait; so does one that is not there. A claim without
 * provisioner takes a free volume, as Kubernetes' scheduler does it: the smallest claim chooses
 * first, and takes the smallest volume of its class that is big enough and suits it.
 *
 * Holds   a volume is free when it is Available, for no claim and not being deleted: one that a
 *         claim is about to take (predictions are in the cache) is no longer free. */
#include "bridge/eligible_private.h"

#include <inttypes.h>
#include <string.h>

enum {
    MAX_RULE_TEXT = 4 << 20,
    MAX_INDEX_KEY = 2048,
    MAX_SELECTORS = 4096, /* of free volumes, kept */
};

#define SELECTED_NODE  "volume.kubernetes.io/selected-node"
#define BIND_COMPLETED "pv.kubernetes.io/bind-completed"
#define OLD_CLASS      "volume.beta.kubernetes.io/storage-class"
#define NO_PROVISIONER "kubernetes.io/no-provisioner"
#define ON_FIRST_USE   "WaitForFirstConsumer"
#define HOSTNAME       "kubernetes.io/hostname"

/* ---- indexes ---- */

static bool is_free(const struct kube_volume *volume)
{
    return !volume->for_name[0] && !volume->object.deleted_us &&
           strcmp(volume->phase, "Available") == 0;
}

static const char *class_of(const struct kube_object *object, const char *class)
{
    struct str old = kube_pairs_get(&object->annotations, OLD_CLASS, NULL);

    return old.len > 0 ? old.at : class;
}

static struct str pair(struct buf *text, const char *a, char between, const char *b)
{
    buf_init(text, MAX_INDEX_KEY);
    buf_printf(text, "%s%c%s", a, between, b);
    return buf_str(text);
}

/* "class\nhost" has the free volumes of a class that name this host, "class\n" those that name
 * none, "class\t" all of them. */
static void emit_class(const struct kube_object *object, kube_index_emit emit, void *context)
{
    const struct kube_volume *volume = kube_volume_of(object);
    const char *class = class_of(object, volume->class);

    if (!is_free(volume) || !class[0])
        return;
    for (unsigned i = 0; i < volume->host_count || i == 0; i++) {
        auto_buf struct buf text;

        emit(context, pair(&text, class, '\n', volume->host_count > 0 ? volume->hosts[i] : ""));
    }
    auto_buf struct buf all;

    emit(context, pair(&all, class, '\t', ""));
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

    for (unsigned i = 0; eligible_is_placed(pod) && pod->rare && i < pod->rare->volume_claim_count;
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
    CLAIM_UNSERVED, /* nobody makes it a volume, and none of its class is free */
    CLAIM_CHOOSES,  /* one of those that are free, on first use */
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
    [CLAIM_UNSERVED] = "persistentvolumeclaim \"%s\" waits for a persistent volume: its storage "
                       "class has no provisioner",
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

    return volume->size >= claim->size && strcmp(has, wants) == 0 &&
           strcmp(volume->attributes, claim->attributes) == 0 && !volume->object.deleted_us;
}

/* The volume that names this claim, if it can be used; of several the first by name. */
static const struct kube_volume *reserved_for(const struct eligible *eligible,
                                              const struct kube_claim *claim)
{
    const struct kube_object *object, *first = NULL;
    auto_buf struct buf text;
    struct kube_index_walk walk =
        kube_cache_by(eligible->caches.volumes, eligible->volumes_by_claim,
                      pair(&text, claim->object.ns, '/', claim->object.name));

    while ((object = kube_index_next(&walk)) != NULL) {
        const struct kube_volume *volume = kube_volume_of(object);
        bool is_for = !volume->for_uid[0] || strcmp(volume->for_uid, claim->object.uid) == 0;

        if (is_for && is_usable(claim, volume) && (!first || strcmp(object->name, first->name) < 0))
            first = object;
    }
    return first ? kube_volume_of(first) : NULL;
}

static enum claim_state look_at_unbound(const struct eligible *eligible, struct claim *claim)
{
    const struct kube_object *object = &claim->claim->object;
    const struct kube_object *class =
        find(eligible->caches.classes, "", class_of(object, claim->claim->class));
    auto_buf struct buf text;
    struct str key = pair(&text, class ? class->name : "", '\t', "");

    claim->class = class ? kube_storage_class_of(class) : NULL;
    claim->selected = kube_pairs_get(&object->annotations, SELECTED_NODE, NULL);
    if (!eligible->caches.classes)
        return CLAIM_UNKNOWN;
    if (!claim->class || strcmp(claim->class->binding_mode, ON_FIRST_USE) != 0)
        return CLAIM_WAITS;
    if (strcmp(claim->class->provisioner, NO_PROVISIONER) != 0)
        return CLAIM_DELAYED;
    if (!eligible->caches.volumes)
        return CLAIM_UNKNOWN;
    claim->volume = reserved_for(eligible, claim->claim);
    if (claim->volume)
        return CLAIM_RESERVED;
    return is_in(eligible->caches.volumes, eligible->volumes_by_class, key) ? CLAIM_CHOOSES
                                                                            : CLAIM_UNSERVED;
}

static bool is_bound(const struct kube_claim *claim)
{
    bool completed;

    (void)kube_pairs_get(&claim->object.annotations, BIND_COMPLETED, &completed);
    return claim->volume[0] && completed;
}

static enum claim_state look_up(const struct eligible *eligible, const char *ns,
                                struct claim *claim)
{
    const struct kube_object *object = find(eligible->caches.claims, ns, claim->name), *volume;

    if (!object)
        return eligible->caches.claims ? CLAIM_MISSING : CLAIM_UNKNOWN;
    claim->claim = kube_claim_of(object);
    if (object->deleted_us)
        return CLAIM_ENDING;
    if (!is_bound(claim->claim)) /* one that has been given a volume takes a moment */
        return claim->claim->volume[0] ? CLAIM_WAITS : look_at_unbound(eligible, claim);
    volume = find(eligible->caches.volumes, "", claim->claim->volume);
    claim->volume = volume ? kube_volume_of(volume) : NULL;
    if (volume)
        return CLAIM_BOUND;
    return eligible->caches.volumes ? CLAIM_LOST : CLAIM_UNKNOWN;
}

/* ---- the claims of a pod, each once ---- */

struct claim_walk {
    const struct eligible *eligible;
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
    claim.state = look_up(walk->eligible, walk->pod->object.ns, &claim);
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
static void check_use(const struct eligible *eligible, struct claim *claim)
{
    const struct eligible_caches *caches = &eligible->caches;
    auto_buf struct buf text = { .max = MAX_INDEX_KEY };
    struct str key;

    if (claim->state != CLAIM_BOUND || !(claim->claim->access & KUBE_ACCESS_ONE_POD))
        return;
    key = pair(&text, claim->claim->object.ns, '/', claim->name);
    if (is_in(caches->pods, eligible->pods_by_claim, key) ||
        is_in(caches->other_pods, eligible->others_by_claim, key))
        claim->state = CLAIM_IN_USE;
}

void eligible_volumes_key(struct eligible *eligible, const struct kube_pod *pod, struct buf *key)
{
    struct claim_walk walk = { .eligible = eligible, .pod = pod };
    struct claim claim;

    while (next_claim(&walk, &claim)) {
        check_use(eligible, &claim);
        buf_printf(key, "%d %s\n", (int)claim.state,
                   claim.selected.len > 0 ? claim.selected.at : "");
        if (has_volume(&claim))
            buf_add_text(key, claim.volume->affinity);
        else if (claim.state == CLAIM_CHOOSES)
            buf_printf(key, "%s\n%s\n%s\n%s\n%" PRId64 "\n%u", claim.class->object.name,
                       claim.claim->mode, claim.claim->attributes, claim.claim->selector,
                       claim.claim->size, claim.claim->access);
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

    if (text[0] && eligible_read_selector(&pod_class->arena, text, &list[*count], &err))
        ++*count;
    else if (text[0])
        pod_class->trouble = arena_printf(&pod_class->arena,
                                          "the topology of a volume cannot be read: %s", err.text);
}

static void add_choosing(struct pod_class *pod_class, const struct claim *claim)
{
    const char *text = claim->claim->selector;
    struct arena *arena = &pod_class->arena;
    struct class_claim next = { .claim = claim->claim,
                                .class = arena_strdup(arena, claim->class->object.name),
                                .number = claim->number };
    auto_json_doc struct json_doc *doc = NULL;
    unsigned at = pod_class->claim_count;
    struct err err = { 0 };

    if ((text[0] && json_parse(str_of(text), MAX_RULE_TEXT, &doc, &err) < 0) ||
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

static void setup_claim(struct eligible *eligible, struct pod_class *pod_class, struct claim *claim)
{
    struct arena *arena = &pod_class->arena;
    const char *trouble;

    check_use(eligible, claim);
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

void eligible_volumes_setup(struct eligible *eligible, struct pod_class *pod_class)
{
    const struct kube_pod *pod = pod_class->pod;
    unsigned count = pod->rare ? pod->rare->volume_claim_count : 0;
    struct claim_walk walk = { .eligible = eligible, .pod = pod };
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
        setup_claim(eligible, pod_class, &claim);
}

/* ---- free volumes ---- */

/* Of a volume that names no host: what it says is read once. */
static bool is_reachable(struct eligible *eligible, const struct kube_volume *volume,
                         const struct nodeselector_node *node)
{
    struct str text = str_of(volume->affinity);
    const struct nodeselector *selector = NULL;

    if (text.len == 0)
        return true;
    if (!map_has(&eligible->selectors, text)) {
        if (eligible->selectors.count == MAX_SELECTORS) {
            map_clear(&eligible->selectors);
            arena_reset(&eligible->selector_memory);
        }
        (void)eligible_read_selector(&eligible->selector_memory, text.at, &selector, NULL);
        eligible_put(&eligible->selectors, text, (void *)(uintptr_t)selector);
    }
    selector = map_get(&eligible->selectors, text);
    return selector && nodeselector_matches(selector, node);
}

static bool is_taken(const struct pod_class *pod_class, unsigned picked,
                     const struct eligible_open *taken, unsigned taken_count, const char *name)
{
    for (unsigned i = 0; i < picked; i++)
        if (strcmp(pod_class->picks[i], name) == 0)
            return true;
    for (unsigned i = 0; i < taken_count; i++)
        if (taken[i].volume && strcmp(taken[i].volume->name, name) == 0)
            return true;
    return false;
}

bool eligible_pick_volumes(struct eligible *eligible, const struct pod_class *pod_class,
                           const struct kube_node *node, const struct eligible_open *taken,
                           unsigned taken_count)
{
    const struct nodeselector_node subject = { str_of(node->object.name),
                                               kube_labels(&node->object.labels) };
    struct str host = kube_pairs_get(&node->object.labels, HOSTNAME, NULL);

    for (unsigned which = 0; which < pod_class->claim_count; which++) {
        const struct class_claim *wanted = &pod_class->claims[which];
        const struct kube_volume *best = NULL;

        for (unsigned with_host = 0; with_host < 1u + (host.len > 0); with_host++) {
            const struct kube_object *object;
            auto_buf struct buf text;
            struct kube_index_walk walk =
                kube_cache_by(eligible->caches.volumes, eligible->volumes_by_class,
                              pair(&text, wanted->class, '\n', with_host ? host.at : ""));

            while ((object = kube_index_next(&walk)) != NULL) {
                const struct kube_volume *volume = kube_volume_of(object);
                unsigned access = wanted->claim->access;

                if (best &&
                    (volume->size > best->size ||
                     (volume->size == best->size && strcmp(object->name, best->object.name) > 0)))
                    continue;
                if (is_usable(wanted->claim, volume) && (volume->access & access) == access &&
                    selector_matches(wanted->labels, kube_labels(&object->labels)) &&
                    (with_host || is_reachable(eligible, volume, &subject)) &&
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

static bool is_listed(const struct eligible_open *list, unsigned count, const struct claim *claim)
{
    for (unsigned i = 0; i < count; i++)
        if (claim->claim && list[i].claim == &claim->claim->object)
            return true;
    return false;
}

/* The volumes that were picked for a pod go to its claims. */
static void take_picks(const struct eligible *eligible, const struct pod_class *pod_class,
                       const struct kube_pod *pod, struct eligible_open *list, unsigned count)
{
    struct claim_walk walk = { .eligible = eligible, .pod = pod };
    const char *name;

    while ((name = next_name(&walk)) != NULL)
        for (unsigned i = 0; i < pod_class->claim_count; i++)
            for (unsigned k = 0; pod_class->claims[i].number == walk.count - 1 && k < count; k++)
                if (list[k].claim && strcmp(list[k].name, name) == 0) {
                    list[k].volume = find(eligible->caches.volumes, "", pod_class->picks[i]);
                    list[k].step = list[k].volume ? ELIGIBLE_TAKE_VOLUME : ELIGIBLE_NO_VOLUME;
                }
}

unsigned eligible_open_claims(struct eligible *eligible, const struct kube_pod *pod,
                              const char *node, struct eligible_open *list, unsigned count,
                              unsigned max)
{
    struct claim_walk walk = { .eligible = eligible, .pod = pod };
    const struct kube_object *object = find(eligible->caches.nodes, "", node);
    const struct pod_class *pod_class;
    unsigned first = count;
    bool chooses = false;
    struct claim claim;

    while (eligible->caches.claims && count < max && next_claim(&walk, &claim)) {
        struct eligible_open open = { .name = claim.name,
                                      .claim = claim.claim ? &claim.claim->object : NULL };

        /* its volume counts when it is seen, where volumes are watched at all */
        if (claim.state == CLAIM_BOUND || is_listed(list, count, &claim) ||
            (claim.state == CLAIM_UNKNOWN && claim.claim && is_bound(claim.claim)))
            continue;
        if (claim.state == CLAIM_RESERVED)
            open.volume = &claim.volume->object;
        if (claim.state == CLAIM_DELAYED && !str_is(claim.selected, node))
            open.step = ELIGIBLE_SELECT_NODE;
        if (claim.state == CLAIM_CHOOSES)
            open.step = ELIGIBLE_NO_VOLUME; /* until one is picked */
        chooses |= claim.state == CLAIM_CHOOSES;
        list[count++] = open;
    }
    if (!chooses || !object)
        return count;
    pod_class = pod_class_get(eligible, pod);
    if (eligible_pick_volumes(eligible, pod_class, kube_node_of(object), list, first))
        take_picks(eligible, pod_class, pod, list + first, count - first);
    return count;
}

struct kube_cache *eligible_volume_cache(const struct eligible *eligible)
{
    return eligible->caches.volumes;
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
        eligible_touch(context, ELIGIBLE_NO_SLOT);
}

/* Most of a volume does not change while it is there: it is taken, becomes free, or goes. */
static void volume_changed(void *context, const struct kube_object *old,
                           const struct kube_object *next)
{
    const struct kube_volume *a = old ? kube_volume_of(old) : NULL;
    const struct kube_volume *b = next ? kube_volume_of(next) : NULL;
    struct eligible *eligible = context;

    if (a && b && is_free(a) == is_free(b) && a->size == b->size && a->access == b->access &&
        strcmp(class_of(old, a->class), class_of(next, b->class)) == 0 &&
        strcmp(a->mode, b->mode) == 0 && eligible_same_pairs(&old->labels, &next->labels) &&
        strcmp(a->affinity, b->affinity) == 0 && strcmp(a->attributes, b->attributes) == 0 &&
        strcmp(a->for_ns, b->for_ns) == 0 && strcmp(a->for_name, b->for_name) == 0 &&
        strcmp(a->for_uid, b->for_uid) == 0 && (old->deleted_us == 0) == (next->deleted_us == 0))
        return;
    eligible_touch(eligible, ELIGIBLE_NO_SLOT);
    eligible->volumes_changed = eligible->sequence;
}

static void class_changed(void *context, const struct kube_object *old,
                          const struct kube_object *next)
{
    eligible_touch(context, ELIGIBLE_NO_SLOT);
}

void eligible_volumes_listen(struct eligible *eligible)
{
    const struct eligible_caches *caches = &eligible->caches;

    if (caches->pods)
        eligible->pods_by_claim = kube_cache_add_index(caches->pods, emit_pod_claims);
    if (caches->other_pods)
        eligible->others_by_claim = kube_cache_add_index(caches->other_pods, emit_pod_claims);
    if (caches->claims)
        kube_cache_listen(caches->claims, claim_changed, eligible);
    if (caches->classes)
        kube_cache_listen(caches->classes, class_changed, eligible);
    if (!caches->volumes)
        return;
    eligible->volumes_by_class = kube_cache_add_index(caches->volumes, emit_class);
    eligible->volumes_by_claim = kube_cache_add_index(caches->volumes, emit_volume_claim);
    kube_cache_listen(caches->volumes, volume_changed, eligible);
}
