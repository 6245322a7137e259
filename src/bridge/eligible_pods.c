/* eligible_pods.c - where other pods draw a pod to, and where they keep it away from.
 *
 * A tally belongs to a class and counts the pods that its rules look for; a repeller belongs to
 * pods on nodes and counts those that want others away. Both count by place, so that a change of a
 * pod is one step up or down, and domains are summed up only when a class is asked about.
 *
 * Holds   a tally is what counting all placed pods anew would give; a repeller is there while a pod
 *         on a node or a class needs it. */
#include "bridge/eligible_private.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_REPELLERS = 1 << 20 };

/* ---- tallies ---- */

static bool has_pairs(const struct kube_pairs *labels, const struct kube_pairs *wanted)
{
    struct selector_subject subject = eligible_labels(labels);
    struct str value;

    for (unsigned i = 0; i < wanted->count; i++)
        if (!subject.lookup(subject.data, wanted->at[i].key, &value) ||
            !str_eq(value, wanted->at[i].value))
            return false;
    return true;
}

static bool counts(const struct eligible *eligible, const struct eligible_tally *tally,
                   const struct kube_pod *pod)
{
    if (tally->but_ending && pod->object.deleted_us)
        return false;
    for (unsigned i = 0; i < tally->term_count; i++)
        if (!eligible_term_matches(eligible, &tally->terms[i], pod))
            return false;
    return has_pairs(&pod->object.labels, &tally->same);
}

static void count_pod(const struct eligible *eligible, struct eligible_tally *tallies,
                      unsigned tally_count, const struct kube_pod *pod)
{
    int place = ELIGIBLE_NO_PLACE;

    for (unsigned i = 0; i < tally_count; i++) {
        if (!counts(eligible, &tallies[i], pod))
            continue;
        if (place == ELIGIBLE_NO_PLACE)
            place = eligible_place_of(eligible, pod->node_name);
        if (place != ELIGIBLE_NO_PLACE)
            tallies[i].count[place]++;
    }
}

static void count_cache(const struct eligible *eligible, struct eligible_tally *tallies,
                        unsigned tally_count, const struct kube_cache *cache, bool is_others)
{
    struct kube_cache_walk walk;
    const struct kube_object *object;

    if (!cache)
        return;
    walk = kube_cache_walk(cache);
    while ((object = kube_cache_next(&walk)) != NULL) {
        const struct kube_pod *pod = kube_pod_of(object);

        if (eligible_is_placed(pod) && !(is_others && eligible_is_ours(eligible, pod)))
            count_pod(eligible, tallies, tally_count, pod);
    }
}

/* One walk for all of them. */
static void count_all(const struct eligible *eligible, struct eligible_tally *tallies,
                      unsigned tally_count)
{
    for (unsigned i = 0; i < tally_count; i++)
        memset(tallies[i].count, 0, eligible->capacity * sizeof(*tallies[i].count));
    count_cache(eligible, tallies, tally_count, eligible->caches.pods, false);
    count_cache(eligible, tallies, tally_count, eligible->caches.other_pods, true);
    for (unsigned i = 0; i < eligible->reserved_count; i++)
        for (unsigned k = 0; k < tally_count; k++)
            if (counts(eligible, &tallies[k], eligible->reserved[i].pod))
                tallies[k].count[eligible->reserved[i].place]++;
}

/* ---- repellers ---- */

static void repeller_key(const struct kube_pod *pod, struct buf *key)
{
    buf_clear(key);
    buf_printf(key, "%s\n%s", pod->object.ns, pod->rare->pod_anti_affinity);
}

static struct eligible_repeller *add_repeller(struct eligible *eligible, struct str key,
                                              const struct kube_pod *pod)
{
    struct eligible_repeller *repeller = mem_alloc(sizeof(*repeller));

    arena_init(&repeller->arena, ELIGIBLE_MEMORY);
    repeller->key = (struct str){ arena_strndup(&repeller->arena, key.at, key.len), key.len };
    repeller->number = ++eligible->last_number;
    repeller->count = mem_alloc_array(eligible->capacity, sizeof(*repeller->count));
    /* What cannot be read keeps nobody away: it is said to its own pod, before it is placed. */
    (void)eligible_terms_compile(eligible, &repeller->arena, pod->rare->pod_anti_affinity,
                                 pod->object.ns, &repeller->terms, &repeller->term_count, NULL);
    if (map_put(&eligible->repellers, repeller->key, repeller, NULL) < 0) {
        fprintf(stderr, "eligible: more than %d sets of terms\n", MAX_REPELLERS);
        abort();
    }
    return repeller;
}

static void drop_repeller(struct eligible *eligible, struct eligible_repeller *repeller)
{
    if (repeller->refs > 0 || repeller->owners > 0)
        return;
    map_take(&eligible->repellers, repeller->key);
    eligible_terms_release(eligible, repeller->terms, repeller->term_count);
    arena_done(&repeller->arena);
    mem_free(repeller->count);
    mem_free(repeller);
}

/* Known while the pod is placed, whatever place has it. */
static struct eligible_repeller *repeller_of(struct eligible *eligible, const struct kube_pod *pod)
{
    struct eligible_repeller *repeller;

    if (!pod->rare || !pod->rare->pod_anti_affinity[0])
        return NULL;
    repeller_key(pod, &eligible->key);
    repeller = map_get(&eligible->repellers, buf_str(&eligible->key));
    return repeller ? repeller : add_repeller(eligible, buf_str(&eligible->key), pod);
}

/* ---- pods come and go ---- */

static void step(uint32_t *count, int direction)
{
    if (direction > 0)
        ++*count;
    else if (*count > 0)
        --*count;
}

static void repeller_take(struct eligible *eligible, int place, const struct kube_pod *pod,
                          int direction)
{
    struct eligible_repeller *repeller = repeller_of(eligible, pod);

    if (!repeller)
        return;
    step(&repeller->count[place], direction);
    step(&repeller->owners, direction);
    eligible_touch(eligible, ELIGIBLE_NO_PLACE);
    repeller->changed = eligible->sequence;
    drop_repeller(eligible, repeller);
}

void eligible_pods_take(struct eligible *eligible, int place, const struct kube_pod *pod,
                        int direction)
{
    list_each (struct eligible_tally, tally, &eligible->tallies, link) {
        if (!counts(eligible, tally, pod))
            continue;
        step(&tally->count[place], direction);
        eligible_touch(eligible, ELIGIBLE_NO_PLACE);
        tally->changed = eligible->sequence;
    }
    repeller_take(eligible, place, pod, direction);
}

/* Many come and go in one plan: they are one change each, and wake no one. */
void eligible_pods_reserve(struct eligible *eligible, int place, const struct kube_pod *pod,
                           int direction)
{
    void (*changed)(void *context) = eligible->changed;

    eligible->changed = NULL;
    eligible_touch(eligible, ELIGIBLE_NO_PLACE);
    list_each (struct eligible_tally, tally, &eligible->tallies, link)
        if (counts(eligible, tally, pod)) {
            step(&tally->count[place], direction);
            tally->changed = eligible->sequence;
        }
    repeller_take(eligible, place, pod, direction);
    eligible->changed = changed;
}

/* ---- places come and go ---- */

static void clear_counts(struct eligible *eligible, int place)
{
    list_each (struct eligible_tally, tally, &eligible->tallies, link)
        tally->count[place] = 0;
    map_each (item, &eligible->repellers) {
        struct eligible_repeller *repeller = item->value;

        repeller->owners -= repeller->count[place];
        repeller->count[place] = 0;
        drop_repeller(eligible, repeller);
    }
}

/* The caller touches the place, and with that all classes. */
void eligible_pods_recount(struct eligible *eligible, int place)
{
    const struct kube_node *node = eligible->places[place].node;
    struct eligible_walk walk;
    const struct kube_pod *pod;

    clear_counts(eligible, place);
    if (!node)
        return;
    walk = eligible_pods_on(eligible, node->object.name);
    while ((pod = eligible_next_pod(&walk)) != NULL)
        eligible_pods_take(eligible, place, pod, 1);
}

void eligible_pods_grow(struct eligible *eligible, size_t from)
{
    size_t more = (eligible->capacity - from) * sizeof(uint32_t);

    if (from == 0)
        return; /* nothing is counted before there are places */
    list_each (struct eligible_tally, tally, &eligible->tallies, link) {
        tally->count = mem_resize_array(tally->count, eligible->capacity, sizeof(uint32_t));
        memset(tally->count + from, 0, more);
    }
    map_each (item, &eligible->repellers) {
        struct eligible_repeller *repeller = item->value;

        repeller->count = mem_resize_array(repeller->count, eligible->capacity, sizeof(uint32_t));
        memset(repeller->count + from, 0, more);
    }
}

static bool asks_for_namespaces(const struct eligible_tally *tally)
{
    for (unsigned i = 0; i < tally->term_count; i++)
        if (tally->terms[i].namespace_selector)
            return true;
    return false;
}

/* Whom a repeller means is asked anew for each pod. */
void eligible_pods_namespace_changed(struct eligible *eligible)
{
    eligible_touch(eligible, ELIGIBLE_NO_PLACE);
    list_each (struct eligible_tally, tally, &eligible->tallies, link) {
        if (!asks_for_namespaces(tally))
            continue;
        count_all(eligible, tally, 1);
        tally->changed = eligible->sequence;
    }
}

/* ---- classes ---- */

static bool attracts_itself(const struct eligible *eligible, const struct eligible_rules *rules,
                            const struct kube_pod *pod)
{
    for (unsigned i = 0; i < rules->attract_count; i++)
        if (!eligible_term_matches(eligible, &rules->attract[i], pod))
            return false;
    return true;
}

static uint64_t spreads_itself(const struct eligible *eligible, const struct eligible_rules *rules,
                               const struct kube_pod *pod)
{
    uint64_t bits = 0;

    for (unsigned i = 0; i < rules->spread_count; i++)
        if (eligible_term_matches(eligible, &rules->spread[i].term, pod))
            bits |= UINT64_C(1) << i;
    return bits;
}

/* The labels named by matchLabelKeys, as far as the pod has them. */
static void key_same(const struct eligible_spread *spread, const struct kube_pod *pod,
                     struct buf *key)
{
    for (unsigned i = 0; i < spread->same_count; i++) {
        bool found;
        struct str value = kube_pairs_get(&pod->object.labels, spread->same[i], &found);

        buf_add_char(key, found ? '=' : '-');
        buf_add_str(key, value);
        buf_add_char(key, '\n');
    }
}

void eligible_pods_key(struct eligible *eligible, const struct kube_pod *pod,
                       const struct eligible_rules *rules, struct buf *key)
{
    if (rules) {
        uint64_t self = spreads_itself(eligible, rules, pod);

        buf_add(key, &rules->number, sizeof(rules->number));
        buf_add(key, &self, sizeof(self));
        buf_add_char(key, attracts_itself(eligible, rules, pod) ? 'A' : 'a');
        for (unsigned i = 0; i < rules->spread_count; i++)
            key_same(&rules->spread[i], pod, key);
    }
    map_each (item, &eligible->repellers) {
        const struct eligible_repeller *repeller = item->value;

        for (unsigned i = 0; i < repeller->term_count; i++)
            if (eligible_term_matches(eligible, &repeller->terms[i], pod)) {
                buf_add(key, &repeller->number, sizeof(repeller->number));
                buf_add(key, &i, sizeof(i));
            }
    }
}

static struct kube_pairs same_of(struct arena *arena, const struct eligible_spread *spread,
                                 const struct kube_pod *pod)
{
    struct kube_pair *pairs = arena_alloc_array(arena, spread->same_count + 1, sizeof(*pairs));
    unsigned count = 0;

    for (unsigned i = 0; i < spread->same_count; i++) {
        bool found;
        struct str value = kube_pairs_get(&pod->object.labels, spread->same[i], &found);

        if (found)
            pairs[count++] =
                (struct kube_pair){ str_of(spread->same[i]),
                                    { arena_strndup(arena, value.at, value.len), value.len } };
    }
    return (struct kube_pairs){ pairs, count };
}

static void setup_tallies(struct eligible *eligible, struct pod_class *pod_class,
                          const struct kube_pod *pod)
{
    const struct eligible_rules *rules = pod_class->rules;
    struct eligible_tally *tally;

    pod_class->tally_count = (rules->attract_count > 0) + rules->avoid_count + rules->spread_count;
    pod_class->tallies = arena_alloc_array(&pod_class->arena, pod_class->tally_count + 1,
                                           sizeof(*pod_class->tallies));
    tally = pod_class->tallies;
    if (rules->attract_count > 0)
        *tally++ =
            (struct eligible_tally){ .terms = rules->attract, .term_count = rules->attract_count };
    for (unsigned i = 0; i < rules->avoid_count; i++)
        *tally++ = (struct eligible_tally){ .terms = &rules->avoid[i], .term_count = 1 };
    for (unsigned i = 0; i < rules->spread_count; i++)
        *tally++ =
            (struct eligible_tally){ .terms = &rules->spread[i].term,
                                     .term_count = 1,
                                     .but_ending = true,
                                     .same = same_of(&pod_class->arena, &rules->spread[i], pod) };
    for (unsigned i = 0; i < pod_class->tally_count; i++) {
        pod_class->tallies[i].count = mem_alloc_array(eligible->capacity, sizeof(uint32_t));
        list_push_back(&eligible->tallies, &pod_class->tallies[i].link);
    }
    count_all(eligible, pod_class->tallies, pod_class->tally_count);
}

static void setup_repelled(struct eligible *eligible, struct pod_class *pod_class,
                           const struct kube_pod *pod, bool only_count)
{
    pod_class->repelled_count = 0;
    map_each (item, &eligible->repellers) {
        struct eligible_repeller *repeller = item->value;

        for (unsigned i = 0; i < repeller->term_count; i++) {
            if (!eligible_term_matches(eligible, &repeller->terms[i], pod))
                continue;
            if (!only_count) {
                pod_class->repelled[pod_class->repelled_count] =
                    (struct eligible_repelled){ .by = repeller, .term = i };
                repeller->refs++;
            }
            pod_class->repelled_count++;
        }
    }
}

void eligible_pods_setup(struct eligible *eligible, struct pod_class *pod_class,
                         const struct kube_pod *pod)
{
    if (pod_class->rules) {
        pod_class->attracts_itself = attracts_itself(eligible, pod_class->rules, pod);
        pod_class->spreads_itself = spreads_itself(eligible, pod_class->rules, pod);
        setup_tallies(eligible, pod_class, pod);
    }
    setup_repelled(eligible, pod_class, pod, true);
    if (pod_class->repelled_count == 0)
        return;
    pod_class->repelled = arena_alloc_array(&pod_class->arena, pod_class->repelled_count,
                                            sizeof(*pod_class->repelled));
    setup_repelled(eligible, pod_class, pod, false);
}

void eligible_pods_release(struct eligible *eligible, struct pod_class *pod_class)
{
    for (unsigned i = 0; i < pod_class->tally_count; i++) {
        list_remove(&pod_class->tallies[i].link);
        mem_free(pod_class->tallies[i].count);
    }
    for (unsigned i = 0; i < pod_class->repelled_count; i++) {
        pod_class->repelled[i].by->refs--;
        drop_repeller(eligible, pod_class->repelled[i].by);
    }
}

bool eligible_pods_changed(const struct pod_class *pod_class)
{
    for (unsigned i = 0; i < pod_class->tally_count; i++)
        if (pod_class->tallies[i].changed > pod_class->seen)
            return true;
    for (unsigned i = 0; i < pod_class->repelled_count; i++)
        if (pod_class->repelled[i].by->changed > pod_class->seen)
            return true;
    return false;
}

/* ---- all repellers and tallies ---- */

void eligible_pods_init(struct eligible *eligible)
{
    static const struct map_options options = { .max = MAX_REPELLERS, .borrow_keys = true };

    map_init(&eligible->rules, &options);
    map_init(&eligible->repellers, &options);
    list_init(&eligible->tallies);
}

void eligible_pods_done(struct eligible *eligible)
{
    map_each (item, &eligible->repellers) {
        struct eligible_repeller *repeller = item->value;

        repeller->owners = 0;
        drop_repeller(eligible, repeller);
    }
    map_done(&eligible->repellers);
    map_done(&eligible->rules);
    eligible_reserve_done(eligible);
}
