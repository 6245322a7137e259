/* eligible_local.c - volumes that nobody makes: which of those that are there and free the claims
 * of a pod can take at a node.
 *
 * As Kubernetes' scheduler has it: the smallest claim chooses first, and each takes the smallest
 * volume of its class that is big enough and suits it. Most such volumes are of one node and say so
 * by its host name; they are found by that, whenever a place is judged. The few others are looked
 * through once for a shape.
 *
 * Holds   a volume is free when it is Available, for no claim and not being deleted: one that a
 *         claim is about to take (predictions are in the cache) is no longer free. */
#include "bridge/eligible_private.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SHELF = 2048, MAX_WHY = 8192, MAX_RULE_TEXT = 4 << 20, MAX_SPARES = 256 };

#define OLD_CLASS  "volume.beta.kubernetes.io/storage-class"
#define HOSTNAME   "kubernetes.io/hostname"
#define FILESYSTEM "Filesystem"

/* ---- volumes by class and place ---- */

static bool is_free(const struct kube_volume *volume)
{
    return !volume->for_name[0] && !volume->object.deleted_us &&
           strcmp(volume->phase, "Available") == 0;
}

static struct str class_of(const struct kube_volume *volume)
{
    struct str old = kube_pairs_get(&volume->object.annotations, OLD_CLASS, NULL);

    return old.len > 0 ? old : str_of(volume->class);
}

/* Free volumes lie on shelves: "class\n" has all of a class, "class\n*" those that are not pinned
 * to hosts, "class\n=host" those that are. Host names know neither sign. */
static struct str shelf(struct buf *text, struct str class, const char *which, const char *host)
{
    buf_clear(text);
    buf_add_str(text, class);
    buf_add_text(text, which);
    buf_add_text(text, host);
    return buf_str(text);
}

static void emit_shelves(const struct kube_object *object, kube_index_emit emit, void *context)
{
    const struct kube_volume *volume = kube_volume_of(object);
    struct str class = class_of(volume);
    auto_buf struct buf text;

    buf_init(&text, MAX_SHELF);
    if (!is_free(volume) || class.len == 0)
        return;
    emit(context, shelf(&text, class, "\n", ""));
    if (volume->host_count == 0)
        emit(context, shelf(&text, class, "\n*", ""));
    for (unsigned i = 0; i < volume->host_count; i++)
        emit(context, shelf(&text, class, "\n=", volume->hosts[i]));
}

static void emit_claim(const struct kube_object *object, kube_index_emit emit, void *context)
{
    const struct kube_volume *volume = kube_volume_of(object);
    auto_buf struct buf text;

    buf_init(&text, MAX_SHELF);
    if (!volume->for_name[0])
        return;
    buf_printf(&text, "%s/%s", volume->for_ns, volume->for_name);
    emit(context, buf_str(&text));
}

static struct kube_index_walk walk_shelf(struct eligible *eligible, struct str class,
                                         const char *which, const char *host)
{
    return kube_cache_by(eligible->caches.volumes, eligible->volumes_by_shelf,
                         shelf(&eligible->shelf, class, which, host));
}

bool eligible_local_has_free(struct eligible *eligible, const char *class)
{
    struct kube_index_walk walk = walk_shelf(eligible, str_of(class), "\n", "");

    return kube_index_next(&walk) != NULL;
}

/* ---- what suits a claim ---- */

static bool same_mode(const char *a, const char *b)
{
    return strcmp(a[0] ? a : FILESYSTEM, b[0] ? b : FILESYSTEM) == 0;
}

static struct eligible_wanted wanted_by(const struct kube_claim *claim)
{
    return (struct eligible_wanted){ claim->mode, claim->attributes, claim->size, claim->access };
}

/* Of one that was given to the claim by name no more is asked. */
static bool is_usable(const struct eligible_wanted *wanted, const struct kube_volume *volume)
{
    return volume->size >= wanted->size && same_mode(volume->mode, wanted->mode) &&
           strcmp(volume->attributes, wanted->attributes) == 0 && !volume->object.deleted_us;
}

static bool is_for(const struct kube_claim *claim, const struct kube_volume *volume)
{
    return !volume->for_uid[0] || strcmp(volume->for_uid, claim->object.uid) == 0;
}

/* Of several the first by name. */
const struct kube_volume *eligible_local_reserved(struct eligible *eligible,
                                                  const struct kube_claim *claim)
{
    struct eligible_wanted wanted = wanted_by(claim);
    const struct kube_object *object, *first = NULL;
    struct kube_index_walk walk;

    buf_clear(&eligible->shelf);
    buf_printf(&eligible->shelf, "%s/%s", claim->object.ns, claim->object.name);
    walk = kube_cache_by(eligible->caches.volumes, eligible->volumes_by_claim,
                         buf_str(&eligible->shelf));
    while ((object = kube_index_next(&walk)) != NULL)
        if (is_for(claim, kube_volume_of(object)) && is_usable(&wanted, kube_volume_of(object)) &&
            (!first || strcmp(object->name, first->name) < 0))
            first = object;
    return first ? kube_volume_of(first) : NULL;
}

static bool suits(const struct eligible_wish *wish, const struct kube_volume *volume)
{
    return is_usable(&wish->wanted, volume) &&
           (volume->access & wish->wanted.access) == wish->wanted.access &&
           selector_matches(wish->labels, eligible_labels(&volume->object.labels));
}

/* ---- wishes of a shape ---- */

void eligible_local_key(const struct eligible *eligible, const struct kube_claim *claim,
                        const char *class, struct buf *key)
{
    buf_printf(key, "%s\n%s\n%s\n%s\n%" PRId64 "\n%u\n%" PRIu64 "\n", class,
               claim->mode[0] ? claim->mode : FILESYSTEM, claim->attributes, claim->selector,
               claim->size, claim->access, eligible->unpinned_changed);
}

static int read_labels(struct eligible_shape *shape, const char *text,
                       const struct selector **ret_labels, struct err *err)
{
    auto_json_doc struct json_doc *doc = NULL;

    if (text[0] && json_parse(str_of(text), MAX_RULE_TEXT, &doc, err) < 0)
        return -err->class;
    return selector_from_json(&shape->arena, doc ? json_root(doc) : NULL,
                              SELECTOR_ABSENT_MATCHES_ALL, ret_labels, err);
}

void eligible_local_wish(struct eligible_shape *shape, const struct kube_claim *claim,
                         const char *class, unsigned number)
{
    struct arena *arena = &shape->arena;
    struct eligible_wish wish = { .claim = number,
                                  .class = arena_strdup(arena, class),
                                  .wanted = wanted_by(claim) };
    unsigned at = shape->wish_count;
    struct err err = { 0 };

    if (read_labels(shape, claim->selector, &wish.labels, &err) < 0) {
        shape->trouble =
            arena_printf(arena, "the selector of a claim cannot be read: %s", err.text);
        return;
    }
    wish.wanted.mode = arena_strdup(arena, claim->mode);
    wish.wanted.attributes = arena_strdup(arena, claim->attributes);
    for (; at > 0 && shape->wishes[at - 1].wanted.size > claim->size; at--)
        shape->wishes[at] = shape->wishes[at - 1];
    shape->wishes[at] = wish;
    shape->wish_count++;
}

/* ---- volumes that are not pinned ---- */

/* By where they are, the smallest first. */
static int by_place_and_size(const void *a, const void *b)
{
    const struct kube_volume *const *left = a, *const *right = b;
    int order = strcmp((*left)->affinity, (*right)->affinity);

    if (order != 0)
        return order;
    if ((*left)->size != (*right)->size)
        return (*left)->size < (*right)->size ? -1 : 1;
    return strcmp((*left)->object.name, (*right)->object.name);
}

static bool read_where(struct arena *arena, const char *text, const struct nodeselector **ret_where)
{
    auto_json_doc struct json_doc *doc = NULL;

    return !text[0] || (json_parse(str_of(text), MAX_RULE_TEXT, &doc, NULL) == 0 &&
                        nodeselector_from_json(arena, json_root(doc), ret_where, NULL) == 0);
}

static struct eligible_spare *copy_spares(struct arena *arena,
                                          const struct kube_volume *const *volumes, unsigned count)
{
    struct eligible_spare *spares = arena_alloc_array(arena, count, sizeof(*spares));

    for (unsigned i = 0; i < count; i++)
        spares[i] = (struct eligible_spare){ arena_strdup(arena, volumes[i]->object.name),
                                             volumes[i]->size };
    return spares;
}

static void group_spares(struct arena *arena, struct eligible_wish *wish,
                         const struct kube_volume *const *sorted, size_t count)
{
    auto_free struct eligible_group *groups = mem_alloc_array(count + 1, sizeof(*groups));
    size_t from = 0, to;

    for (; from < count; from = to) {
        struct eligible_group *group = &groups[wish->group_count];

        for (to = from; to < count && strcmp(sorted[to]->affinity, sorted[from]->affinity) == 0;)
            to++;
        if (!read_where(arena, sorted[from]->affinity, &group->where))
            continue;
        group->count = to - from < MAX_SPARES ? (unsigned)(to - from) : (unsigned)MAX_SPARES;
        group->spares = copy_spares(arena, &sorted[from], group->count);
        wish->group_count++;
    }
    wish->groups = arena_alloc_array(arena, wish->group_count + 1, sizeof(*groups));
    memcpy(wish->groups, groups, wish->group_count * sizeof(*groups));
}

static size_t count_unpinned(struct eligible *eligible, const struct eligible_wish *wish)
{
    struct kube_index_walk walk = walk_shelf(eligible, str_of(wish->class), "\n*", "");
    size_t count = 0;

    while (kube_index_next(&walk))
        count++;
    return count;
}

static void find_spares(struct eligible *eligible, struct arena *arena, struct eligible_wish *wish)
{
    size_t most = count_unpinned(eligible, wish), count = 0;
    auto_free const struct kube_volume **found = mem_alloc_array(most + 1, sizeof(*found));
    struct kube_index_walk walk = walk_shelf(eligible, str_of(wish->class), "\n*", "");
    const struct kube_object *object;

    while ((object = kube_index_next(&walk)) != NULL)
        if (suits(wish, kube_volume_of(object)))
            found[count++] = kube_volume_of(object);
    qsort(found, count, sizeof(*found), by_place_and_size);
    group_spares(arena, wish, found, count);
}

void eligible_local_setup(struct eligible *eligible, struct eligible_shape *shape)
{
    if (shape->wish_count == 0)
        return;
    shape->picks = arena_alloc_array(&shape->arena, shape->wish_count, sizeof(*shape->picks));
    for (unsigned i = 0; i < shape->wish_count; i++)
        find_spares(eligible, &shape->arena, &shape->wishes[i]);
}

/* ---- choosing ---- */

struct choice {
    const struct eligible_shape *shape;
    unsigned which; /* wish: those before it have chosen */
    const struct eligible_open *taken;
    unsigned taken_count;
    const char *name; /* the best so far; NULL */
    int64_t size;
};

static bool is_taken(const struct choice *choice, const char *name)
{
    for (unsigned i = 0; i < choice->which; i++)
        if (strcmp(choice->shape->picks[i], name) == 0)
            return true;
    for (unsigned i = 0; i < choice->taken_count; i++)
        if (choice->taken[i].volume && strcmp(choice->taken[i].volume->name, name) == 0)
            return true;
    return false;
}

/* Whether it may still be had: it is the best so far, or one that is as good or better is. */
static bool consider(struct choice *choice, const char *name, int64_t size)
{
    bool is_better = !choice->name || size < choice->size ||
                     (size == choice->size && strcmp(name, choice->name) < 0);

    if (is_better && is_taken(choice, name))
        return false;
    if (is_better) {
        choice->name = name;
        choice->size = size;
    }
    return true;
}

static void look_at_pinned(struct eligible *eligible, const struct kube_node *node,
                           struct choice *choice)
{
    const struct eligible_wish *wish = &choice->shape->wishes[choice->which];
    struct str host = kube_pairs_get(&node->object.labels, HOSTNAME, NULL);
    const struct kube_object *object;
    struct kube_index_walk walk;

    if (host.len == 0)
        return;
    walk = walk_shelf(eligible, str_of(wish->class), "\n=", host.at);
    while ((object = kube_index_next(&walk)) != NULL)
        if (suits(wish, kube_volume_of(object)))
            (void)consider(choice, object->name, kube_volume_of(object)->size);
}

static void look_at_spares(const struct kube_node *node, struct choice *choice)
{
    const struct eligible_wish *wish = &choice->shape->wishes[choice->which];
    const struct nodeselector_node subject = { str_of(node->object.name),
                                               eligible_labels(&node->object.labels) };

    for (unsigned i = 0; i < wish->group_count; i++) {
        const struct eligible_group *group = &wish->groups[i];
        unsigned k = 0;

        if (group->where && !nodeselector_matches(group->where, &subject))
            continue;
        while (k < group->count && !consider(choice, group->spares[k].name, group->spares[k].size))
            k++;
    }
}

bool eligible_local_pick(struct eligible *eligible, const struct eligible_shape *shape,
                         const struct kube_node *node, const struct eligible_open *taken,
                         unsigned taken_count)
{
    struct choice choice = { .shape = shape, .taken = taken, .taken_count = taken_count };

    for (; choice.which < shape->wish_count; choice.which++) {
        choice.name = NULL;
        look_at_pinned(eligible, node, &choice);
        look_at_spares(node, &choice);
        if (!choice.name)
            return false;
        shape->picks[choice.which] = choice.name;
    }
    return true;
}

/* ---- words ---- */

static bool lacks_volumes(const struct eligible *eligible, const struct eligible_shape *shape)
{
    for (size_t i = 0; i < eligible->place_count; i++)
        if (shape->verdict[i].lent && shape->verdict[i].code == ELIGIBLE_VOLUME_CLASS)
            return true;
    return false;
}

static void tell_wish(const struct eligible *eligible, const struct eligible_wish *wish,
                      const struct kube_pod *pod, struct buf *out)
{
    const char *name = eligible_claim_name(pod, wish->claim);
    const struct kube_object *claim =
        name ? kube_cache_get(eligible->caches.claims, pod->object.ns, name) : NULL;

    if (claim)
        buf_printf(out, "; persistentvolumeclaim \"%s\" waits for a free volume of %s in class %s",
                   name, kube_claim_of(claim)->size_text, wish->class);
}

/* Pods of one shape have claims of different names. */
const struct eligible_set *eligible_local_tell(struct eligible *eligible,
                                               const struct eligible_shape *shape,
                                               const struct kube_pod *pod)
{
    if (shape->wish_count == 0 || shape->set.fit > 0 || !lacks_volumes(eligible, shape))
        return &shape->set;
    buf_clear(&eligible->told_why);
    buf_add_text(&eligible->told_why, shape->set.why);
    for (unsigned i = 0; i < shape->wish_count; i++)
        tell_wish(eligible, &shape->wishes[i], pod, &eligible->told_why);
    eligible->told = shape->set;
    eligible->told.why = buf_text(&eligible->told_why);
    return &eligible->told;
}

/* ---- changes ---- */

static bool same_hosts(const struct kube_volume *a, const struct kube_volume *b)
{
    return a->host_count == b->host_count && strcmp(a->affinity, b->affinity) == 0;
}

static bool is_offered_as_before(const struct kube_volume *a, const struct kube_volume *b)
{
    return is_free(a) == is_free(b) && str_eq(class_of(a), class_of(b)) && same_hosts(a, b) &&
           a->size == b->size && a->access == b->access && strcmp(a->mode, b->mode) == 0 &&
           strcmp(a->attributes, b->attributes) == 0 && strcmp(a->for_ns, b->for_ns) == 0 &&
           strcmp(a->for_name, b->for_name) == 0 && strcmp(a->for_uid, b->for_uid) == 0 &&
           (a->object.deleted_us == 0) == (b->object.deleted_us == 0) &&
           eligible_same_pairs(&a->object.labels, &b->object.labels);
}

static void touch_host(struct eligible *eligible, const char *host)
{
    const struct eligible_column *column = eligible->hosts;
    uint32_t number = (uint32_t)(uintptr_t)map_get(&column->values, str_of(host));

    for (size_t i = 0; number > 0 && i < eligible->place_count; i++)
        if (column->of[i] == number)
            eligible_touch(eligible, (int)i);
}

static void touch_all_near(struct eligible *eligible, const struct kube_volume *volume)
{
    if (!volume || !is_free(volume))
        return;
    for (unsigned i = 0; i < volume->host_count; i++)
        touch_host(eligible, volume->hosts[i]);
    eligible->unpinned_changed += volume->host_count == 0;
}

/* A claim that this one is for finds it anew, wherever it is: the last touch is for that. */
void eligible_local_changed(struct eligible *eligible, const struct kube_volume *old,
                            const struct kube_volume *next)
{
    if (old && next && is_offered_as_before(old, next))
        return;
    touch_all_near(eligible, old);
    touch_all_near(eligible, next);
    eligible_touch(eligible, ELIGIBLE_NO_PLACE);
}

void eligible_local_init(struct eligible *eligible)
{
    buf_init(&eligible->shelf, MAX_SHELF);
    buf_init(&eligible->told_why, MAX_WHY);
    eligible->hosts = eligible_column_get(eligible, STR(HOSTNAME));
    if (!eligible->caches.volumes)
        return;
    eligible->volumes_by_shelf = kube_cache_add_index(eligible->caches.volumes, emit_shelves);
    eligible->volumes_by_claim = kube_cache_add_index(eligible->caches.volumes, emit_claim);
}

void eligible_local_done(struct eligible *eligible)
{
    eligible_column_release(eligible, eligible->hosts);
    buf_done(&eligible->told_why);
    buf_done(&eligible->shelf);
}
