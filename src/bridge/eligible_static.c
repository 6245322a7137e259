/* eligible_static.c - static volumes: which of the free ones the claims of a pod can take on a
 * node.
 *
 * As Kubernetes' scheduler does it: the smallest claim chooses first, and takes the smallest volume
 * of its class that is big enough and suits it. Most static volumes name their host; an index finds
 * them when a node is judged. The few others are looked through once for a class.
 *
 * Holds   a volume is free when it is Available, for no claim and not being deleted: one that a
 *         claim is about to take (predictions are in the cache) is no longer free. */
#include "bridge/eligible_private.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INDEX_KEY = 2048, MAX_RULE_TEXT = 4 << 20, MAX_FREE = 1024 };

#define OLD_CLASS  "volume.beta.kubernetes.io/storage-class"
#define HOSTNAME   "kubernetes.io/hostname"
#define FILESYSTEM "Filesystem"

/* ---- free volumes by class and host ---- */

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

/* "class\n" has all free volumes of a class, "class\n*" those that name no host, "class\n=host"
 * those that do. */
static struct str index_key(struct buf *text, struct str class, const char *which, const char *host)
{
    buf_clear(text);
    buf_add_str(text, class);
    buf_add_text(text, which);
    buf_add_text(text, host);
    return buf_str(text);
}

static void emit_class(const struct kube_object *object, kube_index_emit emit, void *context)
{
    const struct kube_volume *volume = kube_volume_of(object);
    struct str class = class_of(volume);
    auto_buf struct buf text = { .max = MAX_INDEX_KEY };

    if (!is_free(volume) || class.len == 0)
        return;
    emit(context, index_key(&text, class, "\n", ""));
    if (volume->host_count == 0)
        emit(context, index_key(&text, class, "\n*", ""));
    for (unsigned i = 0; i < volume->host_count; i++)
        emit(context, index_key(&text, class, "\n=", volume->hosts[i]));
}

static void emit_claim(const struct kube_object *object, kube_index_emit emit, void *context)
{
    const struct kube_volume *volume = kube_volume_of(object);
    auto_buf struct buf text = { .max = MAX_INDEX_KEY };

    if (!volume->for_name[0])
        return;
    buf_printf(&text, "%s/%s", volume->for_ns, volume->for_name);
    emit(context, buf_str(&text));
}

static struct kube_index_walk walk_class(struct eligible *eligible, const char *class,
                                         const char *which, const char *host)
{
    return kube_cache_by(eligible->caches.volumes, eligible->volumes_by_class,
                         index_key(&eligible->volume_key, str_of(class), which, host));
}

bool eligible_static_has_free(struct eligible *eligible, const char *class)
{
    struct kube_index_walk walk = walk_class(eligible, class, "\n", "");

    return kube_index_next(&walk) != NULL;
}

/* ---- what suits a claim ---- */

/* Of a volume that names the claim no more is asked. */
static bool is_usable(const struct eligible_claim *claim, const struct kube_volume *volume)
{
    const char *mode = volume->mode[0] ? volume->mode : FILESYSTEM;

    return volume->size >= claim->size && strcmp(mode, claim->mode) == 0 &&
           strcmp(volume->attributes, claim->attributes) == 0 && !volume->object.deleted_us;
}

static bool suits(const struct eligible_claim *claim, const struct kube_volume *volume)
{
    return is_usable(claim, volume) && (volume->access & claim->access) == claim->access &&
           selector_matches(claim->labels, eligible_labels(&volume->object.labels));
}

static struct eligible_claim claim_of(const struct kube_claim *claim)
{
    return (struct eligible_claim){ .mode = claim->mode[0] ? claim->mode : FILESYSTEM,
                                    .attributes = claim->attributes,
                                    .size = claim->size,
                                    .access = claim->access };
}

/* Of several the first by name. */
const struct kube_volume *eligible_static_reserved(struct eligible *eligible,
                                                   const struct kube_claim *claim)
{
    struct eligible_claim wanted = claim_of(claim);
    const struct kube_object *object, *first = NULL;
    struct kube_index_walk walk;

    buf_clear(&eligible->volume_key);
    buf_printf(&eligible->volume_key, "%s/%s", claim->object.ns, claim->object.name);
    walk = kube_cache_by(eligible->caches.volumes, eligible->volumes_by_claim,
                         buf_str(&eligible->volume_key));
    while ((object = kube_index_next(&walk)) != NULL) {
        const struct kube_volume *volume = kube_volume_of(object);
        bool is_for = !volume->for_uid[0] || strcmp(volume->for_uid, claim->object.uid) == 0;

        if (is_for && is_usable(&wanted, volume) &&
            (!first || strcmp(object->name, first->name) < 0))
            first = object;
    }
    return first ? kube_volume_of(first) : NULL;
}

/* ---- the claims of a class ---- */

void eligible_static_key(const struct eligible *eligible, const struct kube_claim *claim,
                         const char *class, struct buf *key)
{
    buf_printf(key, "%s\n%s\n%s\n%s\n%" PRId64 "\n%u\n%" PRIu64 "\n", class,
               claim->mode[0] ? claim->mode : FILESYSTEM, claim->attributes, claim->selector,
               claim->size, claim->access, eligible->hostless_changed);
}

static bool read_labels(struct arena *arena, const char *text, const struct selector **ret_labels,
                        struct err *err)
{
    auto_json_doc struct json_doc *doc = NULL;

    return (!text[0] || json_parse(str_of(text), MAX_RULE_TEXT, &doc, err) == 0) &&
           selector_from_json(arena, doc ? json_root(doc) : NULL, SELECTOR_ABSENT_MATCHES_ALL,
                              ret_labels, err) == 0;
}

static int by_size_and_name(const void *a, const void *b)
{
    const struct kube_volume *const *left = a, *const *right = b;

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

/* The free volumes that name no host, the smallest first. */
static void find_hostless(struct eligible *eligible, struct arena *arena,
                          struct eligible_claim *claim)
{
    auto_free const struct kube_volume **found = mem_alloc_array(MAX_FREE, sizeof(*found));
    struct kube_index_walk walk = walk_class(eligible, claim->class, "\n*", "");
    const struct kube_object *object;
    size_t count = 0;

    while (count < MAX_FREE && (object = kube_index_next(&walk)) != NULL)
        if (suits(claim, kube_volume_of(object)))
            found[count++] = kube_volume_of(object);
    qsort(found, count, sizeof(*found), by_size_and_name);
    claim->free = arena_alloc_array(arena, count + 1, sizeof(*claim->free));
    for (size_t i = 0; i < count; i++) {
        struct eligible_free_volume *volume = &claim->free[claim->free_count];

        volume->name = arena_strdup(arena, found[i]->object.name);
        volume->size = found[i]->size;
        claim->free_count += read_where(arena, found[i]->affinity, &volume->where);
    }
}

void eligible_static_add(struct eligible *eligible, struct pod_class *pod_class,
                         const struct kube_claim *claim, const char *class, unsigned number)
{
    struct arena *arena = &pod_class->arena;
    struct eligible_claim next = claim_of(claim);
    unsigned at = pod_class->claim_count;
    struct err err = { 0 };

    next.number = number;
    next.class = arena_strdup(arena, class);
    next.mode = arena_strdup(arena, next.mode);
    next.attributes = arena_strdup(arena, next.attributes);
    if (!read_labels(arena, claim->selector, &next.labels, &err)) {
        pod_class->trouble =
            arena_printf(arena, "the selector of a claim cannot be read: %s", err.text);
        return;
    }
    find_hostless(eligible, arena, &next);
    for (; at > 0 && pod_class->claims[at - 1].size > claim->size; at--)
        pod_class->claims[at] = pod_class->claims[at - 1];
    pod_class->claims[at] = next;
    pod_class->claim_count++;
}

/* ---- choosing ---- */

struct choice {
    const struct pod_class *pod_class;
    unsigned which; /* claim: those before it have chosen */
    const struct eligible_open *taken;
    unsigned taken_count;
    const char *name; /* the best so far; NULL */
    int64_t size;
};

static bool is_taken(const struct choice *choice, const char *name)
{
    for (unsigned i = 0; i < choice->which; i++)
        if (strcmp(choice->pod_class->picks[i], name) == 0)
            return true;
    for (unsigned i = 0; i < choice->taken_count; i++)
        if (choice->taken[i].volume && strcmp(choice->taken[i].volume->name, name) == 0)
            return true;
    return false;
}

static void consider(struct choice *choice, const char *name, int64_t size)
{
    bool is_better = !choice->name || size < choice->size ||
                     (size == choice->size && strcmp(name, choice->name) < 0);

    if (is_better && !is_taken(choice, name)) {
        choice->name = name;
        choice->size = size;
    }
}

static void choose(struct eligible *eligible, const struct kube_node *node, struct choice *choice)
{
    const struct eligible_claim *claim = &choice->pod_class->claims[choice->which];
    const struct nodeselector_node subject = { str_of(node->object.name),
                                               eligible_labels(&node->object.labels) };
    struct str host = kube_pairs_get(&node->object.labels, HOSTNAME, NULL);
    const struct kube_object *object;
    struct kube_index_walk walk;

    choice->name = NULL;
    if (host.len > 0) {
        walk = walk_class(eligible, claim->class, "\n=", host.at);
        while ((object = kube_index_next(&walk)) != NULL)
            if (suits(claim, kube_volume_of(object)))
                consider(choice, object->name, kube_volume_of(object)->size);
    }
    for (unsigned i = 0; i < claim->free_count; i++)
        if (!claim->free[i].where || nodeselector_matches(claim->free[i].where, &subject))
            consider(choice, claim->free[i].name, claim->free[i].size);
}

bool eligible_static_pick(struct eligible *eligible, const struct pod_class *pod_class,
                          const struct kube_node *node, const struct eligible_open *taken,
                          unsigned taken_count)
{
    struct choice choice = { .pod_class = pod_class, .taken = taken, .taken_count = taken_count };

    for (; choice.which < pod_class->claim_count; choice.which++) {
        choose(eligible, node, &choice);
        if (!choice.name)
            return false;
        pod_class->picks[choice.which] = choice.name;
    }
    return true;
}

/* ---- changes ---- */

static bool is_offered_as_before(const struct kube_volume *a, const struct kube_volume *b)
{
    return is_free(a) == is_free(b) && str_eq(class_of(a), class_of(b)) &&
           strcmp(a->affinity, b->affinity) == 0 && a->size == b->size && a->access == b->access &&
           strcmp(a->mode, b->mode) == 0 && strcmp(a->attributes, b->attributes) == 0 &&
           strcmp(a->for_ns, b->for_ns) == 0 && strcmp(a->for_name, b->for_name) == 0 &&
           strcmp(a->for_uid, b->for_uid) == 0 &&
           (a->object.deleted_us == 0) == (b->object.deleted_us == 0) &&
           eligible_same_pairs(&a->object.labels, &b->object.labels);
}

static void touch_nodes_of(struct eligible *eligible, const struct kube_volume *volume)
{
    const struct eligible_column *column = eligible->hosts;

    if (!volume || !is_free(volume))
        return;
    for (unsigned i = 0; i < volume->host_count; i++) {
        uint32_t number = (uint32_t)(uintptr_t)map_get(&column->values, str_of(volume->hosts[i]));

        for (size_t k = 0; number > 0 && k < eligible->place_count; k++)
            if (column->of[k] == number)
                eligible_touch(eligible, (int)k);
    }
    eligible->hostless_changed += volume->host_count == 0;
}

/* The last touch is for a claim that the volume names: it is found anew, wherever it is. */
void eligible_static_changed(struct eligible *eligible, const struct kube_volume *old,
                             const struct kube_volume *next)
{
    if (old && next && is_offered_as_before(old, next))
        return;
    touch_nodes_of(eligible, old);
    touch_nodes_of(eligible, next);
    eligible_touch(eligible, ELIGIBLE_NO_PLACE);
}

void eligible_static_init(struct eligible *eligible)
{
    buf_init(&eligible->volume_key, MAX_INDEX_KEY);
    eligible->hosts = eligible_column_get(eligible, STR(HOSTNAME));
    if (!eligible->caches.volumes)
        return;
    eligible->volumes_by_class = kube_cache_add_index(eligible->caches.volumes, emit_class);
    eligible->volumes_by_claim = kube_cache_add_index(eligible->caches.volumes, emit_claim);
}

void eligible_static_done(struct eligible *eligible)
{
    eligible_column_release(eligible, eligible->hosts);
    buf_done(&eligible->volume_key);
}
