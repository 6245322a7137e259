/* pod_judge.c - what other pods mean for the nodes of a class.
 *
 * A class counts the pods that its rules look for, by slot. Rules with anti-affinity count their
 * holders: the bound pods that have them. When a pod comes or goes a count goes up or down; when
 * nodes come or go all is counted anew. The nodes with one value of a topology label are a domain;
 * domains are summed up when a class is asked about.
 *
 * Holds   a count is what counting all bound pods anew would give. */
#include "filter/filter_private.h"

#include "base/mem.h"

#include <string.h>

enum { MAX_TOPOLOGIES = 256 };

/* ---- labels of nodes ---- */

/* The domains of one label: each value that the label has on nodes is a number. Kept while the
 * label is the same on all nodes, and no node comes or goes. */
struct topology {
    char *key;
    uint32_t *of; /* by slot; 0 where the label is absent */
    uint32_t count;
};

static void drop_topology(struct filter *filter, struct topology *topology)
{
    map_take(&filter->topologies, str_of(topology->key));
    mem_free(topology->of);
    mem_free(topology->key);
    mem_free(topology);
}

void filter_drop_topologies(struct filter *filter)
{
    map_each (item, &filter->topologies)
        drop_topology(filter, item->value);
}

void filter_relabel(struct filter *filter, const struct kube_pairs *old,
                    const struct kube_pairs *next)
{
    map_each (item, &filter->topologies) {
        struct topology *topology = item->value;
        bool had, has;
        struct str before = kube_pairs_get(old, topology->key, &had);
        struct str after = kube_pairs_get(next, topology->key, &has);

        if (had != has || !str_eq(before, after))
            drop_topology(filter, topology);
    }
}

static void fill_topology(const struct filter *filter, struct topology *topology)
{
    static const struct map_options options = { .max = FILTER_MAX_NAMES, .borrow_keys = true };
    auto_map struct map values;

    map_init(&values, &options);
    topology->of = mem_alloc_array(filter->slot_count + 1, sizeof(*topology->of));
    for (size_t i = 0; i < filter->slot_count; i++) {
        const struct kube_node *node = filter->slots[i].node;
        bool found = false;
        struct str value =
            node ? kube_pairs_get(&node->object.labels, topology->key, &found) : STR("");

        if (found && !map_has(&values, value))
            filter_put(&values, value, (void *)(uintptr_t)++topology->count);
        topology->of[i] = found ? (uint32_t)(uintptr_t)map_get(&values, value) : 0;
    }
}

static const struct topology *topology_of(struct filter *filter, const char *key)
{
    struct topology *topology = map_get(&filter->topologies, str_of(key));

    if (!topology) {
        topology = mem_alloc(sizeof(*topology));
        topology->key = mem_strdup(key);
        fill_topology(filter, topology);
        filter_put(&filter->topologies, str_of(topology->key), topology);
    }
    return topology;
}

/* ---- counting ---- */

bool pod_count_has(const struct filter *filter, const struct pod_count *count,
                   const struct kube_pod *pod)
{
    if (count->but_ending && pod->object.deleted_us)
        return false;
    for (unsigned i = 0; i < count->term_count; i++)
        if (!pod_term_matches(filter, &count->terms[i], pod))
            return false;
    for (unsigned i = 0; i < count->same.count; i++) {
        bool found;
        struct str value = kube_pairs_get(&pod->object.labels, count->same.at[i].key.at, &found);

        if (!found || !str_eq(value, count->same.at[i].value))
            return false;
    }
    return true;
}

static void step(uint32_t *count, int direction)
{
    if (direction > 0)
        ++*count;
    else if (*count > 0)
        --*count;
}

/* For a pod with anti-affinity. */
static void count_holder(struct filter *filter, int slot, const struct kube_pod *pod, int direction)
{
    struct pod_rules *rules = slot != FILTER_NO_SLOT ? pod_rules_of(filter, pod) : NULL;

    if (!rules)
        return;
    if (!rules->holders_in)
        rules->holders_in = mem_alloc_array(filter->capacity, sizeof(*rules->holders_in));
    step(&rules->holders_in[slot], direction);
    step(&rules->holders, direction);
    rules->holders_changed = filter->sequence;
    if (rules->holders == 0) {
        mem_free(rules->holders_in);
        rules->holders_in = NULL;
    }
}

void filter_count_pod(struct filter *filter, int slot, const struct kube_pod *pod, int direction)
{
    list_each (struct pod_count, count, &filter->counts, link) {
        if (!pod_count_has(filter, count, pod))
            continue;
        filter_touch(filter, FILTER_NO_SLOT);
        if (!count->is_stale)
            step(&count->in[slot], direction);
        count->changed = filter->sequence;
    }
    if (!pod->rare || !pod->rare->pod_anti_affinity[0])
        return;
    filter_touch(filter, FILTER_NO_SLOT);
    if (!filter->holders_stale)
        count_holder(filter, slot, pod, direction);
}

/* The caller touches the filter. */
void filter_count_anew(struct filter *filter)
{
    filter->holders_stale = true;
    filter_drop_topologies(filter);
    list_each (struct pod_count, count, &filter->counts, link) {
        count->is_stale = true;
        count->changed = filter->sequence;
    }
}

struct all_pods { /* that are placed */
    const struct filter *filter;
    struct kube_cache_walk walk;
    unsigned cache;
};

static const struct kube_pod *next_of_all(struct all_pods *all)
{
    const struct filter *filter = all->filter;
    const struct kube_cache *caches[] = { filter->caches.pods, filter->caches.other_pods };
    const struct kube_object *object;

    for (; all->cache < 2; all->cache++, all->walk.cache = NULL) {
        if (!caches[all->cache])
            continue;
        if (!all->walk.cache)
            all->walk = kube_cache_walk(caches[all->cache]);
        while ((object = kube_cache_next(&all->walk)) != NULL)
            if (filter_is_placed(kube_pod_of(object)))
                return kube_pod_of(object);
    }
    return NULL;
}

void filter_count_holders(struct filter *filter)
{
    struct all_pods all = { .filter = filter };
    const struct kube_pod *pod;

    if (!filter->holders_stale)
        return;
    filter->holders_stale = false;
    map_each (item, &filter->rules) {
        struct pod_rules *rules = item->value;

        rules->holders = 0;
        rules->holders_changed = filter->sequence;
        mem_free(rules->holders_in);
        rules->holders_in = NULL;
    }
    while ((pod = next_of_all(&all)) != NULL)
        if (pod->rare && pod->rare->pod_anti_affinity[0])
            count_holder(filter, filter_slot_of(filter, pod->node_name), pod, 1);
    filter->max_rules = 2 * filter->rules.count + FILTER_MAX_CLASSES;
}

/* One walk for all that a class counts. */
static void count_for_class(const struct filter *filter, struct pod_class *pod_class)
{
    struct all_pods all = { .filter = filter };
    const struct kube_pod *pod;

    for (unsigned i = 0; i < pod_class->count_count; i++) {
        struct pod_count *count = &pod_class->counts[i];

        mem_free(count->in);
        count->in = mem_alloc_array(filter->capacity + 1, sizeof(*count->in));
        count->is_stale = false;
    }
    while ((pod = next_of_all(&all)) != NULL)
        for (unsigned i = 0; i < pod_class->count_count; i++)
            if (pod_count_has(filter, &pod_class->counts[i], pod)) {
                int slot = filter_slot_of(filter, pod->node_name);

                if (slot != FILTER_NO_SLOT)
                    pod_class->counts[i].in[slot]++;
            }
}

/* ---- classes ---- */

static bool attracts_itself(const struct filter *filter, const struct pod_rules *rules,
                            const struct kube_pod *pod)
{
    for (unsigned i = 0; i < rules->attract_count; i++)
        if (!pod_term_matches(filter, &rules->attract[i], pod))
            return false;
    return true;
}

static uint64_t spreads_itself(const struct filter *filter, const struct pod_rules *rules,
                               const struct kube_pod *pod)
{
    uint64_t bits = 0;

    for (unsigned i = 0; i < rules->spread_count; i++)
        if (pod_term_matches(filter, &rules->spread[i].term, pod))
            bits |= UINT64_C(1) << i;
    return bits;
}

/* Whether bound pods have this term, and it is about the pod. */
static bool is_avoided_by(const struct filter *filter, const struct pod_rules *rules, unsigned term,
                          const struct kube_pod *pod)
{
    return rules->holders > 0 && pod_term_matches(filter, &rules->avoid[term], pod);
}

bool pod_rules_key(struct filter *filter, const struct kube_pod *pod, const struct pod_rules *rules,
                   struct buf *key)
{
    bool is_avoided = false;

    if (rules) {
        uint64_t self = spreads_itself(filter, rules, pod);

        buf_add(key, &rules->number, sizeof(rules->number));
        buf_add(key, &self, sizeof(self));
        buf_add_char(key, attracts_itself(filter, rules, pod) ? 'A' : 'a');
        for (unsigned i = 0; i < rules->spread_count; i++)
            for (unsigned k = 0; k < rules->spread[i].same_count; k++) {
                bool found;
                struct str value =
                    kube_pairs_get(&pod->object.labels, rules->spread[i].same[k], &found);

                buf_add_char(key, found ? '=' : '-');
                buf_add_str(key, value);
                buf_add_char(key, '\n');
            }
    }
    map_each (item, &filter->rules) {
        const struct pod_rules *others = item->value;

        for (unsigned i = 0; i < others->avoid_count; i++)
            if (is_avoided_by(filter, others, i, pod)) {
                buf_add(key, &others->number, sizeof(others->number));
                buf_add(key, &i, sizeof(i));
                is_avoided = true;
            }
    }
    return is_avoided;
}

/* The labels named by matchLabelKeys, as far as the pod has them. */
static struct kube_pairs same_of(struct arena *arena, const struct spread *spread,
                                 const struct kube_pod *pod)
{
    struct kube_pair *pairs = arena_alloc_array(arena, spread->same_count + 1, sizeof(*pairs));
    unsigned count = 0;

    for (unsigned i = 0; i < spread->same_count; i++) {
        bool found;
        struct str value = kube_pairs_get(&pod->object.labels, spread->same[i], &found);

        if (found)
            pairs[count++] = (struct kube_pair){ str_of(spread->same[i]), value };
    }
    return (struct kube_pairs){ pairs, count };
}

void pod_class_setup_counts(struct filter *filter, struct pod_class *pod_class)
{
    const struct pod_rules *rules = pod_class->rules;
    struct pod_count *count;

    pod_class->count_count = (rules->attract_count > 0) + rules->avoid_count + rules->spread_count;
    count = pod_class->counts = arena_alloc_array(&pod_class->arena, pod_class->count_count + 1,
                                                  sizeof(*pod_class->counts));
    if (rules->attract_count > 0)
        *count++ =
            (struct pod_count){ .terms = rules->attract, .term_count = rules->attract_count };
    for (unsigned i = 0; i < rules->avoid_count; i++)
        *count++ = (struct pod_count){ .terms = &rules->avoid[i], .term_count = 1 };
    for (unsigned i = 0; i < rules->spread_count; i++)
        *count++ = (struct pod_count){ .terms = &rules->spread[i].term,
                                       .term_count = 1,
                                       .but_ending = true,
                                       .same = same_of(&pod_class->arena, &rules->spread[i],
                                                       pod_class->pod) };
    for (unsigned i = 0; i < pod_class->count_count; i++) {
        pod_class->counts[i].is_stale = true;
        list_push_back(&filter->counts, &pod_class->counts[i].link);
    }
}

/* ---- domains ---- */

/* How many counted pods there are in each domain; freed by the caller. */
static uint64_t *sum_up(const struct filter *filter, const struct topology *topology,
                        const uint32_t *in, bool *ret_any)
{
    uint64_t *sums = mem_alloc_array((size_t)topology->count + 1, sizeof(*sums));

    for (size_t i = 0; i < filter->slot_count; i++) {
        sums[topology->of[i]] += in[i];
        *ret_any |= topology->of[i] > 0 && in[i] > 0;
    }
    return sums;
}

static void attract(struct filter *filter, const struct pod_rules *rules,
                    const struct kube_pod *pod, const uint32_t *in, struct filter_result *results)
{
    const struct topology *topologies[FILTER_MAX_TERMS];
    uint64_t *sums[FILTER_MAX_TERMS];
    bool any = false, itself = attracts_itself(filter, rules, pod);

    for (unsigned t = 0; t < rules->attract_count; t++) {
        topologies[t] = topology_of(filter, rules->attract[t].topology_key);
        sums[t] = sum_up(filter, topologies[t], in, &any);
    }
    for (size_t i = 0; i < filter->slot_count; i++)
        for (unsigned t = 0; results[i].code == FILTER_FITS && t < rules->attract_count; t++) {
            uint32_t domain = topologies[t]->of[i];
            /* the first of pods that want to be together may go anywhere */
            bool drawn = any ? sums[t][domain] > 0 : itself;

            if (domain == 0 || !drawn)
                results[i].code = FILTER_POD_AFFINITY;
        }
    for (unsigned t = 0; t < rules->attract_count; t++)
        mem_free(sums[t]);
}

/* Anti-affinity: of this pod, and of those that are there. */
static void keep_away(struct filter *filter, const struct pod_term *term, const uint32_t *in,
                      enum filter_code code, struct filter_result *results)
{
    const struct topology *topology = topology_of(filter, term->topology_key);
    bool any = false;
    auto_free uint64_t *sums = sum_up(filter, topology, in, &any);

    for (size_t i = 0; any && i < filter->slot_count; i++)
        if (results[i].code == FILTER_FITS && topology->of[i] > 0 && sums[topology->of[i]] > 0)
            results[i].code = (uint8_t)code;
}

void pod_judge_holders(struct filter *filter, const struct pod_term *term,
                       const uint32_t *holders_in, struct filter_result *results)
{
    keep_away(filter, term, holders_in, FILTER_ANTI_AFFINITY_OF_OTHERS, results);
}

/* It has all the labels that pods of the class are spread by. */
static bool takes_part(const struct pod_class *pod_class, const struct spread *spread,
                       const struct topology *const *topologies, size_t slot)
{
    const struct filter_result *fixed = &pod_class->fixed[slot];

    if (!fixed->named || (!fixed->matches && spread->by_affinity) ||
        (!fixed->tolerated && spread->by_taints))
        return false;
    for (unsigned i = 0; i < pod_class->rules->spread_count; i++)
        if (topologies[i]->of[slot] == 0)
            return false;
    return true;
}

/* Spread looks only at nodes that pods of ours can get. */
static void spread_out(struct filter *filter, const struct pod_class *pod_class,
                       const struct kube_pod *pod, unsigned which, const uint32_t *in,
                       struct filter_result *results)
{
    const struct spread *spread = &pod_class->rules->spread[which];
    const struct topology *topologies[FILTER_MAX_TERMS];
    const struct topology *topology = topology_of(filter, spread->term.topology_key);
    struct domain {
        uint64_t pods;
        bool counts;
    };
    auto_free struct domain *domains =
        mem_alloc_array((size_t)topology->count + 1, sizeof(*domains));
    uint64_t self = pod_term_matches(filter, &spread->term, pod), least = UINT64_MAX;
    int64_t found = 0;

    for (unsigned i = 0; i < pod_class->rules->spread_count; i++)
        topologies[i] = topology_of(filter, pod_class->rules->spread[i].term.topology_key);
    for (size_t i = 0; i < filter->slot_count; i++)
        if (takes_part(pod_class, spread, topologies, i)) {
            domains[topology->of[i]].pods += in[i];
            domains[topology->of[i]].counts = true;
        }
    for (uint32_t i = 1; i <= topology->count; i++) {
        found += domains[i].counts;
        if (domains[i].counts && domains[i].pods < least)
            least = domains[i].pods;
    }
    if (found < spread->min_domains)
        least = 0;
    for (size_t i = 0; i < filter->slot_count; i++) {
        uint64_t pods = domains[topology->of[i]].pods + self;

        if (results[i].code != FILTER_FITS)
            continue;
        if (topology->of[i] == 0)
            results[i].code = FILTER_SPREAD_LABEL;
        else if (pods > least && pods - least > (uint64_t)spread->max_skew)
            results[i].code = FILTER_SPREAD;
    }
}

void pod_class_judge(struct filter *filter, const struct pod_class *pod_class,
                     const struct kube_pod *pod, const struct pod_count *counts,
                     struct filter_result *results)
{
    const struct pod_rules *rules = pod_class->rules;

    if (filter->topologies.count > MAX_TOPOLOGIES)
        filter_drop_topologies(filter);
    if (filter->slot_count > 0)
        memcpy(results, pod_class->fixed, filter->slot_count * sizeof(*results));
    for (unsigned i = 0; rules && i < rules->spread_count; i++)
        spread_out(filter, pod_class, pod, i,
                   counts[(rules->attract_count > 0) + rules->avoid_count + i].in, results);
    if (rules && rules->attract_count > 0)
        attract(filter, rules, pod, (counts++)->in, results);
    for (unsigned i = 0; rules && i < rules->avoid_count; i++)
        keep_away(filter, &rules->avoid[i], (counts++)->in, FILTER_POD_ANTI_AFFINITY, results);
    map_each (item, &filter->rules) {
        const struct pod_rules *others = item->value;

        for (unsigned i = 0; pod_class->is_avoided && i < others->avoid_count; i++)
            if (is_avoided_by(filter, others, i, pod))
                pod_judge_holders(filter, &others->avoid[i], others->holders_in, results);
    }
}

bool pod_class_judge_pods(struct filter *filter, struct pod_class *pod_class,
                          const struct kube_pod *pod, bool touched)
{
    const struct pod_count *count = pod_class->counts;
    bool is_stale = false, changed = touched;

    for (unsigned i = 0; i < pod_class->count_count; i++) {
        is_stale |= count[i].is_stale;
        changed |= count[i].is_stale || count[i].changed > pod_class->seen;
    }
    map_each (item, &filter->rules)
        changed |= pod_class->is_avoided &&
                   ((const struct pod_rules *)item->value)->holders_changed > pod_class->seen;
    if (!changed)
        return false;
    if (is_stale)
        count_for_class(filter, pod_class);
    pod_class_judge(filter, pod_class, pod, count, pod_class->result);
    return true;
}
