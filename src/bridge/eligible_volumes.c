/* eligible_volumes.c - where the volumes of a pod may be used, and what must be done for them
 * first.
 *
 * A claim is looked up each time: what is found goes into the key of the class, so pods with claims
 * of their own share a class while these are in the same state. A claim that is not bound and does
 * not wait for a pod to use it makes the pod wait; so does one that is not there.
 *
 * Holds   nothing of a claim is kept: a class has what decided when it was made. */
#include "bridge/eligible_private.h"

#include <string.h>

enum { MAX_RULE_TEXT = 4 << 20, MAX_CLAIM_KEY = 2 * KUBE_MAX_NAME };

#define SELECTED_NODE  "volume.kubernetes.io/selected-node"
#define BIND_COMPLETED "pv.kubernetes.io/bind-completed"
#define OLD_CLASS      "volume.beta.kubernetes.io/storage-class"
#define NO_PROVISIONER "kubernetes.io/no-provisioner"
#define ON_FIRST_USE   "WaitForFirstConsumer"

/* ---- one claim ---- */

enum state {
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
};

struct claim {
    enum state state;
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

static void look_at_bound(const struct eligible *eligible, struct claim *claim)
{
    const struct kube_object *volume = find(eligible->caches.volumes, "", claim->claim->volume);

    claim->volume = volume ? kube_volume_of(volume) : NULL;
    claim->state = CLAIM_BOUND;
    if (!volume)
        claim->state = eligible->caches.volumes ? CLAIM_LOST : CLAIM_UNKNOWN;
}

static void look_for_free(struct eligible *eligible, struct claim *claim)
{
    if (!eligible->caches.volumes) {
        claim->state = CLAIM_UNKNOWN;
        return;
    }
    claim->volume = eligible_static_reserved(eligible, claim->claim);
    if (claim->volume)
        claim->state = CLAIM_RESERVED;
    else if (eligible_static_has_free(eligible, claim->class->object.name))
        claim->state = CLAIM_CHOOSES;
    else
        claim->state = CLAIM_UNSERVED;
}

static void look_at_unbound(struct eligible *eligible, struct claim *claim)
{
    const struct kube_object *object = &claim->claim->object;
    struct str old = kube_pairs_get(&object->annotations, OLD_CLASS, NULL);
    const struct kube_object *class =
        find(eligible->caches.classes, "", old.len > 0 ? old.at : claim->claim->class);

    claim->class = class ? kube_storage_class_of(class) : NULL;
    claim->selected = kube_pairs_get(&object->annotations, SELECTED_NODE, NULL);
    if (!eligible->caches.classes)
        claim->state = CLAIM_UNKNOWN;
    else if (!claim->class || strcmp(claim->class->binding_mode, ON_FIRST_USE) != 0)
        claim->state = CLAIM_WAITS;
    else if (strcmp(claim->class->provisioner, NO_PROVISIONER) == 0)
        look_for_free(eligible, claim);
    else
        claim->state = CLAIM_DELAYED;
}

static bool is_bound(const struct kube_claim *claim)
{
    bool completed;

    (void)kube_pairs_get(&claim->object.annotations, BIND_COMPLETED, &completed);
    return claim->volume[0] && completed;
}

static struct claim look_up(struct eligible *eligible, const char *ns, const char *name)
{
    const struct kube_object *object = find(eligible->caches.claims, ns, name);
    struct claim claim = { .name = name };

    if (!object) {
        claim.state = eligible->caches.claims ? CLAIM_MISSING : CLAIM_UNKNOWN;
        return claim;
    }
    claim.claim = kube_claim_of(object);
    if (object->deleted_us)
        claim.state = CLAIM_ENDING;
    else if (is_bound(claim.claim))
        look_at_bound(eligible, &claim);
    else if (claim.claim->volume[0])
        claim.state = CLAIM_WAITS; /* it has been given one, and it takes a moment */
    else
        look_at_unbound(eligible, &claim);
    return claim;
}

/* ---- the claims of a pod, each once ---- */

struct claim_walk {
    struct eligible *eligible;
    const struct kube_pod *pod;
    unsigned at, count;
};

static bool is_repeated(const struct kube_rare *rare, unsigned which)
{
    for (unsigned i = 0; i < which; i++)
        if (strcmp(rare->volume_claims[i], rare->volume_claims[which]) == 0)
            return true;
    return false;
}

static const char *next_name(struct claim_walk *walk)
{
    const struct kube_rare *rare = walk->pod->rare;

    while (rare && walk->at < rare->volume_claim_count && is_repeated(rare, walk->at))
        walk->at++;
    if (!rare || walk->at == rare->volume_claim_count)
        return NULL;
    walk->count++;
    return rare->volume_claims[walk->at++];
}

static bool next_claim(struct claim_walk *walk, struct claim *ret_claim)
{
    const char *name = next_name(walk);

    if (!name)
        return false;
    *ret_claim = look_up(walk->eligible, walk->pod->object.ns, name);
    if (ret_claim->claim && walk->pod->rare->volume_claim_is_own[walk->at - 1] &&
        strcmp(ret_claim->claim->object.owner.uid, walk->pod->object.uid) != 0)
        ret_claim->state = CLAIM_FOREIGN;
    ret_claim->number = walk->count - 1;
    return true;
}

/* ---- classes ---- */

static bool has_volume(const struct claim *claim)
{
    return claim->state == CLAIM_BOUND || claim->state == CLAIM_RESERVED;
}

static void add_field(struct buf *key, char kind, struct str text)
{
    buf_add_char(key, kind);
    buf_add_str(key, text);
    buf_add_char(key, '\n');
}

static bool is_used_in(const struct kube_cache *cache, int index, struct str key)
{
    struct kube_index_walk walk;

    if (!cache)
        return false;
    walk = kube_cache_by(cache, index, key);
    return kube_index_next(&walk) != NULL;
}

/* What one pod may use no other pod gets, on whatever node. */
static void check_use(const struct eligible *eligible, struct claim *claim)
{
    const struct eligible_caches *caches = &eligible->caches;
    auto_buf struct buf key = { .max = MAX_CLAIM_KEY };

    if (claim->state != CLAIM_BOUND || !(claim->claim->access & KUBE_ACCESS_ONE_POD))
        return;
    buf_printf(&key, "%s/%s", claim->claim->object.ns, claim->name);
    if (is_used_in(caches->pods, eligible->pods_by_claim, buf_str(&key)) ||
        is_used_in(caches->other_pods, eligible->others_by_claim, buf_str(&key)))
        claim->state = CLAIM_IN_USE;
}

static void key_claim(struct eligible *eligible, const struct claim *claim, struct buf *key)
{
    add_field(key, (char)('0' + claim->state), STR(""));
    if (has_volume(claim))
        add_field(key, 'a', str_of(claim->volume->affinity));
    else if (claim->state == CLAIM_CHOOSES)
        eligible_static_key(eligible, claim->claim, claim->class->object.name, key);
    else if (claim->state == CLAIM_DELAYED)
        add_field(key, 't', str_of(claim->class->topology));
    else if (claim->state != CLAIM_UNKNOWN && claim->state != CLAIM_WAITS)
        add_field(key, 'n', str_of(claim->name)); /* it is named in the words */
    add_field(key, 's', claim->selected);
}

void eligible_volumes_key(struct eligible *eligible, const struct kube_pod *pod, struct buf *key)
{
    struct claim_walk walk = { .eligible = eligible, .pod = pod };
    struct claim claim;

    while (next_claim(&walk, &claim)) {
        check_use(eligible, &claim);
        key_claim(eligible, &claim, key);
    }
}

static const char *trouble_of(struct arena *arena, const struct claim *claim)
{
    switch (claim->state) {
    case CLAIM_MISSING:
        return arena_printf(arena, "persistentvolumeclaim \"%s\" not found", claim->name);
    case CLAIM_ENDING:
        return arena_printf(arena, "persistentvolumeclaim \"%s\" is being deleted", claim->name);
    case CLAIM_FOREIGN:
        return arena_printf(arena,
                            "persistentvolumeclaim \"%s\" was not created for the pod (the pod is "
                            "not its owner)",
                            claim->name);
    case CLAIM_LOST:
        return arena_printf(arena,
                            "persistentvolumeclaim \"%s\" is bound to a persistent volume "
                            "that does not exist",
                            claim->name);
    case CLAIM_WAITS:
        return "pod has unbound immediate PersistentVolumeClaims";
    case CLAIM_UNSERVED:
        return arena_printf(arena,
                            "persistentvolumeclaim \"%s\" waits for a persistent volume: its "
                            "storage class has no provisioner",
                            claim->name);
    case CLAIM_IN_USE:
        return arena_printf(arena,
                            "persistentvolumeclaim \"%s\" is in use by another pod, and its access "
                            "mode is ReadWriteOncePod",
                            claim->name);
    case CLAIM_UNKNOWN:
    case CLAIM_CHOOSES:
    case CLAIM_RESERVED:
    case CLAIM_DELAYED:
    case CLAIM_BOUND:
        break;
    }
    return NULL;
}

static void add_selector(struct pod_class *pod_class, const char *text,
                         const struct nodeselector **list, unsigned *count)
{
    auto_json_doc struct json_doc *doc = NULL;
    struct err err = { 0 };

    if (!text[0])
        return;
    if (json_parse(str_of(text), MAX_RULE_TEXT, &doc, &err) < 0 ||
        nodeselector_from_json(&pod_class->arena, json_root(doc), &list[*count], &err) < 0) {
        pod_class->trouble = arena_printf(&pod_class->arena,
                                          "the topology of a volume cannot be read: %s", err.text);
        return;
    }
    ++*count;
}

/* The volume may only not have been seen yet. */
static bool passes(const struct claim *claim)
{
    return claim->state == CLAIM_LOST || claim->state == CLAIM_WAITS;
}

static void setup_claim(struct eligible *eligible, struct pod_class *pod_class, struct claim *claim)
{
    check_use(eligible, claim);
    if (!pod_class->trouble || pod_class->trouble_passes) {
        const char *trouble = trouble_of(&pod_class->arena, claim);

        pod_class->trouble_passes = trouble ? passes(claim) : pod_class->trouble_passes;
        pod_class->trouble = trouble ? trouble : pod_class->trouble;
    }
    if (claim->state == CLAIM_CHOOSES)
        eligible_static_add(eligible, pod_class, claim->claim, claim->class->object.name,
                            claim->number);
    if (has_volume(claim))
        add_selector(pod_class, claim->volume->affinity, pod_class->volumes,
                     &pod_class->volume_count);
    if (claim->state == CLAIM_DELAYED)
        add_selector(pod_class, claim->class->topology, pod_class->classes,
                     &pod_class->class_count);
    if (claim->state == CLAIM_DELAYED && claim->selected.len > 0)
        pod_class->selected[pod_class->selected_count++] =
            arena_strndup(&pod_class->arena, claim->selected.at, claim->selected.len);
}

void eligible_volumes_setup(struct eligible *eligible, struct pod_class *pod_class,
                            const struct kube_pod *pod)
{
    unsigned count = pod->rare ? pod->rare->volume_claim_count : 0;
    struct claim_walk walk = { .eligible = eligible, .pod = pod };
    struct claim claim;

    if (count == 0)
        return;
    pod_class->volumes = arena_alloc_array(&pod_class->arena, count, sizeof(*pod_class->volumes));
    pod_class->classes = arena_alloc_array(&pod_class->arena, count, sizeof(*pod_class->classes));
    pod_class->selected = arena_alloc_array(&pod_class->arena, count, sizeof(*pod_class->selected));
    pod_class->claims = arena_alloc_array(&pod_class->arena, count, sizeof(*pod_class->claims));
    pod_class->picks = arena_alloc_array(&pod_class->arena, count, sizeof(*pod_class->picks));
    while (next_claim(&walk, &claim))
        setup_claim(eligible, pod_class, &claim);
}

/* ---- before a bind ---- */

/* Its volume counts when it is seen, where volumes are watched at all. */
static bool is_ready(const struct claim *claim)
{
    return claim->state == CLAIM_BOUND ||
           (claim->state == CLAIM_UNKNOWN && claim->claim && is_bound(claim->claim));
}

static bool is_listed(const struct eligible_open *list, unsigned count, const struct claim *claim)
{
    for (unsigned i = 0; i < count; i++)
        if (claim->claim && list[i].claim == &claim->claim->object)
            return true;
    return false;
}

static struct eligible_open open_claim(const struct claim *claim, const char *node)
{
    struct eligible_open open = { .name = claim->name };

    if (claim->claim)
        open.claim = &claim->claim->object;
    if (claim->state == CLAIM_RESERVED)
        open.volume = &claim->volume->object;
    if (claim->state == CLAIM_DELAYED && !str_is(claim->selected, node))
        open.step = ELIGIBLE_SELECT_NODE;
    if (claim->state == CLAIM_CHOOSES)
        open.step = ELIGIBLE_NO_VOLUME; /* until one is picked */
    return open;
}

static const char *claim_name(const struct kube_pod *pod, unsigned number)
{
    struct claim_walk walk = { .pod = pod };
    const char *name;

    while ((name = next_name(&walk)) != NULL && walk.count <= number)
        continue;
    return name;
}

/* The volumes that were picked for a pod go to its claims. */
static void take_picks(const struct eligible *eligible, const struct pod_class *pod_class,
                       const struct kube_pod *pod, struct eligible_open *list, unsigned count)
{
    for (unsigned i = 0; i < pod_class->claim_count; i++) {
        const char *claim = claim_name(pod, pod_class->claims[i].number);

        for (unsigned k = 0; claim && k < count; k++)
            if (list[k].claim && strcmp(list[k].name, claim) == 0) {
                list[k].volume = find(eligible->caches.volumes, "", pod_class->picks[i]);
                list[k].step = list[k].volume ? ELIGIBLE_TAKE_VOLUME : ELIGIBLE_NO_VOLUME;
            }
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
        if (is_ready(&claim) || is_listed(list, count, &claim))
            continue;
        chooses |= claim.state == CLAIM_CHOOSES;
        list[count++] = open_claim(&claim, node);
    }
    if (!chooses || !object)
        return count;
    pod_class = pod_class_get(eligible, pod);
    if (eligible_static_pick(eligible, pod_class, kube_node_of(object), list, first))
        take_picks(eligible, pod_class, pod, list + first, count - first);
    return count;
}

struct kube_cache *eligible_volume_cache(const struct eligible *eligible)
{
    return eligible->caches.volumes;
}

/* ---- changes ---- */

static bool same_note(const struct kube_object *a, const struct kube_object *b, const char *key)
{
    bool in_a, in_b;
    struct str of_a = kube_pairs_get(&a->annotations, key, &in_a);
    struct str of_b = kube_pairs_get(&b->annotations, key, &in_b);

    return in_a == in_b && str_eq(of_a, of_b);
}

static bool same_claim(const struct kube_claim *a, const struct kube_claim *b)
{
    return strcmp(a->object.uid, b->object.uid) == 0 && strcmp(a->volume, b->volume) == 0 &&
           strcmp(a->class, b->class) == 0 && a->size == b->size &&
           (a->object.deleted_us == 0) == (b->object.deleted_us == 0) &&
           same_note(&a->object, &b->object, SELECTED_NODE) &&
           same_note(&a->object, &b->object, BIND_COMPLETED);
}

static void claim_changed(void *context, const struct kube_object *old,
                          const struct kube_object *next)
{
    if (!old || !next || !same_claim(kube_claim_of(old), kube_claim_of(next)))
        eligible_touch(context, ELIGIBLE_NO_PLACE);
}

static void volume_changed(void *context, const struct kube_object *old,
                           const struct kube_object *next)
{
    eligible_static_changed(context, old ? kube_volume_of(old) : NULL,
                            next ? kube_volume_of(next) : NULL);
}

static void class_changed(void *context, const struct kube_object *old,
                          const struct kube_object *next)
{
    eligible_touch(context, ELIGIBLE_NO_PLACE);
}

void eligible_volumes_listen(struct eligible *eligible)
{
    const struct eligible_caches *caches = &eligible->caches;

    if (caches->claims)
        kube_cache_listen(caches->claims, claim_changed, eligible);
    if (caches->volumes)
        kube_cache_listen(caches->volumes, volume_changed, eligible);
    if (caches->classes)
        kube_cache_listen(caches->classes, class_changed, eligible);
}
