/* eligible.c - the view as a whole: what it listens to, and what it is asked.
 *
 * Holds   every change that a set may depend on gets a number of its own, and the listener is told;
 *         nothing of a pod is kept, so changes of pods that no rule looks at cost nothing. */
#include "bridge/eligible_private.h"

#include "base/mem.h"

#include <string.h>

enum { CLASS_SHIFT = 40 }; /* there are fewer changes than that many bits can count */

/* ---- changes ---- */

void eligible_touch(struct eligible *eligible, int place)
{
    eligible->sequence++;
    eligible->log[eligible->sequence % ELIGIBLE_LOG] = place;
    if (eligible->changed)
        eligible->changed(eligible->context);
}

bool eligible_is_ours(const struct eligible *eligible, const struct kube_pod *pod)
{
    return strcmp(pod->scheduler_name, eligible->scheduler_name) == 0;
}

bool eligible_is_placed(const struct kube_pod *pod)
{
    return pod->node_name[0] && !kube_pod_is_finished(pod);
}

bool eligible_same_pairs(const struct kube_pairs *a, const struct kube_pairs *b)
{
    if (a->count != b->count)
        return false;
    for (unsigned i = 0; i < a->count; i++)
        if (!str_eq(a->at[i].key, b->at[i].key) || !str_eq(a->at[i].value, b->at[i].value))
            return false;
    return true;
}

bool eligible_same_amounts(const struct kube_amounts *a, const struct kube_amounts *b)
{
    if (a->count != b->count)
        return false;
    for (unsigned i = 0; i < a->count; i++)
        if (a->at[i].amount != b->at[i].amount || strcmp(a->at[i].name, b->at[i].name) != 0)
            return false;
    return true;
}

static bool same_requests(const struct kube_requests *a, const struct kube_requests *b)
{
    return a->cpu_milli == b->cpu_milli && a->memory == b->memory && a->ephemeral == b->ephemeral &&
           eligible_same_amounts(&a->extended, &b->extended);
}

/* What rules look at in a pod that has a node; the rest of its spec does not change. */
static bool says_the_same(const struct kube_pod *old, const struct kube_pod *next)
{
    return strcmp(old->node_name, next->node_name) == 0 &&
           (old->object.deleted_us == 0) == (next->object.deleted_us == 0) &&
           eligible_same_pairs(&old->object.labels, &next->object.labels) &&
           same_requests(&old->requests, &next->requests);
}

static void take(struct eligible *eligible, const struct kube_pod *pod, int direction)
{
    int place = eligible_place_of(eligible, pod->node_name);

    if (place == ELIGIBLE_NO_PLACE)
        return; /* counted when the node comes */
    eligible_place_take(eligible, place, pod, direction);
    eligible_pods_take(eligible, place, pod, direction);
    if (eligible->forgot_rules)
        eligible_touch(eligible, ELIGIBLE_NO_PLACE);
}

static const struct kube_pod *placed(const struct kube_object *object)
{
    return object && eligible_is_placed(kube_pod_of(object)) ? kube_pod_of(object) : NULL;
}

static void pod_changed(void *context, const struct kube_object *old_object,
                        const struct kube_object *next_object)
{
    const struct kube_pod *old = placed(old_object), *next = placed(next_object);

    if (old && next && says_the_same(old, next))
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
    const struct kube_object *either = next ? next : old;

    if (!eligible_is_ours(context, kube_pod_of(either)))
        pod_changed(context, old, next);
}

static void namespace_changed(void *context, const struct kube_object *old,
                              const struct kube_object *next)
{
    if (!old || !next || !eligible_same_pairs(&old->labels, &next->labels))
        eligible_pods_namespace_changed(context);
}

/* ---- pods on a node ---- */

static void emit_node(const struct kube_object *object, kube_index_emit emit, void *context)
{
    const struct kube_pod *pod = kube_pod_of(object);

    if (eligible_is_placed(pod))
        emit(context, str_of(pod->node_name));
}

static void emit_claims(const struct kube_object *object, kube_index_emit emit, void *context)
{
    const struct kube_pod *pod = kube_pod_of(object);
    auto_buf struct buf key = { .max = 2 * KUBE_MAX_NAME };

    for (unsigned i = 0; eligible_is_placed(pod) && pod->rare && i < pod->rare->volume_claim_count;
         i++) {
        buf_clear(&key);
        buf_printf(&key, "%s/%s", object->ns, pod->rare->volume_claims[i]);
        emit(context, buf_str(&key));
    }
}

struct eligible_walk eligible_pods_on(const struct eligible *eligible, const char *node)
{
    struct eligible_walk walk = { .eligible = eligible, .node = str_of(node) };

    if (eligible->caches.pods)
        walk.walk = kube_cache_by(eligible->caches.pods, eligible->pods_by_node, walk.node);
    return walk;
}

const struct kube_pod *eligible_next_pod(struct eligible_walk *walk)
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

/* ---- labels as selectors see them ---- */

struct selector_subject eligible_labels(const struct kube_pairs *labels)
{
    return kube_labels(labels);
}

/* ---- the view ---- */

static void listen(struct eligible *eligible)
{
    const struct eligible_caches *caches = &eligible->caches;

    if (caches->pods) {
        eligible->pods_by_node = kube_cache_add_index(caches->pods, emit_node);
        eligible->pods_by_claim = kube_cache_add_index(caches->pods, emit_claims);
        kube_cache_listen(caches->pods, pod_changed, eligible);
    }
    if (caches->other_pods) {
        eligible->others_by_node = kube_cache_add_index(caches->other_pods, emit_node);
        eligible->others_by_claim = kube_cache_add_index(caches->other_pods, emit_claims);
        kube_cache_listen(caches->other_pods, other_pod_changed, eligible);
    }
    if (caches->nodes)
        kube_cache_listen(caches->nodes, eligible_node_changed, eligible);
    if (caches->namespaces)
        kube_cache_listen(caches->namespaces, namespace_changed, eligible);
    eligible_volumes_listen(eligible);
}

struct eligible *eligible_new(const struct eligible_caches *caches, const char *scheduler_name)
{
    struct eligible *eligible = mem_alloc(sizeof(*eligible));

    eligible->caches = *caches;
    eligible->scheduler_name = mem_strdup(scheduler_name);
    eligible->sequence = 1;
    eligible_places_init(eligible);
    eligible_pods_init(eligible);
    pod_classes_init(eligible);
    eligible_static_init(eligible);
    listen(eligible);
    return eligible;
}

void eligible_free(struct eligible *eligible)
{
    if (!eligible)
        return;
    pod_classes_done(eligible);     /* they hold rules and repellers */
    eligible_pods_done(eligible);   /* which hold columns */
    eligible_static_done(eligible); /* as do volumes */
    eligible_places_done(eligible);
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
    int place;
    unsigned code;

    if (!eligible->caches.nodes)
        return NULL;
    pod_class = pod_class_get(eligible, pod);
    place = eligible_place_of(eligible, node->object.name);
    if (place == ELIGIBLE_NO_PLACE)
        return arena_printf(arena, "node %s is gone", node->object.name);
    code = pod_class->result[place].code;
    if (code == ELIGIBLE_TROUBLE && pod_class->trouble_passes)
        return NULL;
    if (code == ELIGIBLE_FITS)
        code = eligible_judge_now(eligible, pod_class, pod, (size_t)place);
    if (code == ELIGIBLE_FITS)
        return NULL;
    return arena_printf(arena, "node %s: %s", node->object.name,
                        eligible_words(pod_class, code, arena));
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
    struct eligible_walk walk = eligible_pods_on(eligible, node->object.name);
    struct kube_requests overhead = { 0 };
    const struct kube_pod *pod;

    memset(ret_extended, 0, KUBE_MAX_RESOURCES * sizeof(*ret_extended));
    while ((pod = eligible_next_pod(&walk)) != NULL)
        if (eligible_is_of_node(pod) && !eligible_is_ours(eligible, pod))
            eligible_add_up(&node->extended, &pod->requests, &overhead, ret_extended);
    return overhead;
}
