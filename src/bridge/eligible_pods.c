/* eligible_pods.c - where other pods draw a pod to, and where they keep it away from.
 *
 * Rules are read once for all pods of a namespace that say the same. A tally belongs to a class and
 * counts the pods that its rules look for; rules that keep others away count their owners, the pods
 * on nodes that have them. Both count by slot, so that a change of a pod is one step up or down;
 * when nodes come or go all is counted anew. The nodes with one value of a topology label are a
 * domain: domains are summed up when a class is asked about.
 *
 * Holds   a tally is what counting all placed pods anew would give. A namespace selector without a
 *         cache of namespaces objects to nothing: its term is left out. */
#include "bridge/eligible_private.h"

#include "base/mem.h"

#include <string.h>

enum { MAX_TEXT = 4 << 20, MAX_COLUMNS = 256 };

/* ---- reading rules ---- */

static const char **copy_texts(struct arena *arena, const struct json *list, unsigned *ret_count)
{
    const char **texts = arena_alloc_array(arena, json_len(list) + 1, sizeof(*texts));
    struct json_iter iter = json_iter(list);
    const struct json *item;

    while (json_next_item(&iter, &item))
        texts[(*ret_count)++] = arena_strndup(arena, json_str(item).at, json_str(item).len);
    return texts;
}

/* Without a word about namespaces, that of the pod. */
static int compile_term(struct arena *arena, const struct json *value, const char *ns,
                        struct pod_term *term, struct err *err)
{
    const struct json *selector = json_get(value, "namespaceSelector");
    struct str key = json_str(json_get(value, "topologyKey"));
    int rc = selector_from_json(arena, json_get(value, "labelSelector"),
                                SELECTOR_ABSENT_MATCHES_NOTHING, &term->labels, err);

    term->topology_key = arena_strndup(arena, key.at, key.len);
    term->namespaces = copy_texts(arena, json_get(value, "namespaces"), &term->namespace_count);
    if (rc == 0 && json_exists(selector))
        rc = selector_from_json(arena, selector, SELECTOR_ABSENT_MATCHES_NOTHING,
                                &term->namespace_selector, err);
    else if (term->namespace_count == 0)
        term->namespaces[term->namespace_count++] = arena_strdup(arena, ns);
    return rc;
}

static int parse(const char *text, struct json_doc **ret_doc, struct err *err)
{
    int rc = json_parse(str_of(text), MAX_TEXT, ret_doc, err);

    if (rc == 0 && json_len(json_root(*ret_doc)) > ELIGIBLE_MAX_TERMS)
        rc = err_set(err, ERR_TOO_BIG, "more than %d terms", ELIGIBLE_MAX_TERMS);
    return rc;
}

/* A list of PodAffinityTerm, of a pod in this namespace. */
static int compile_terms(const struct eligible *eligible, struct arena *arena, const char *text,
                         const char *ns, struct pod_term **ret_terms, unsigned *ret_count,
                         struct err *err)
{
    auto_json_doc struct json_doc *doc = NULL;
    struct pod_term *terms;
    const struct json *item;
    struct json_iter iter;
    unsigned count = 0;
    int rc;

    if (!text[0])
        return 0;
    rc = parse(text, &doc, err);
    if (rc < 0)
        return rc;
    terms = arena_alloc_array(arena, json_len(json_root(doc)) + 1, sizeof(*terms));
    iter = json_iter(json_root(doc));
    while (rc == 0 && json_next_item(&iter, &item)) {
        struct pod_term term = { 0 };

        rc = compile_term(arena, item, ns, &term, err);
        if (rc == 0 && (eligible->caches.namespaces || !term.namespace_selector ||
                        selector_matches_all(term.namespace_selector)))
            terms[count++] = term;
    }
    if (rc == 0) {
        *ret_terms = terms;
        *ret_count = count;
    }
    return rc;
}

static int compile_spreads(struct pod_rules *rules, const char *text, const char *ns,
                           struct err *err)
{
    auto_json_doc struct json_doc *doc = NULL;
    struct arena *arena = &rules->arena;
    const struct json *item;
    struct json_iter iter;
    int rc;

    if (!text[0])
        return 0;
    rc = parse(text, &doc, err);
    if (rc < 0)
        return rc;
    rules->spread = arena_alloc_array(arena, json_len(json_root(doc)) + 1, sizeof(*rules->spread));
    iter = json_iter(json_root(doc));
    while (rc == 0 && json_next_item(&iter, &item)) {
        struct spread *spread = &rules->spread[rules->spread_count];

        spread->max_skew = json_i64_or(json_get(item, "maxSkew"), 1);
        spread->min_domains = json_i64_or(json_get(item, "minDomains"), 1);
        spread->by_affinity = !str_is(json_str(json_get(item, "nodeAffinityPolicy")), "Ignore");
        spread->by_taints = str_is(json_str(json_get(item, "nodeTaintsPolicy")), "Honor");
        spread->same = copy_texts(arena, json_get(item, "matchLabelKeys"), &spread->same_count);
        rc = compile_term(arena, item, ns, &spread->term, err);
        rules->spread_count += rc == 0;
    }
    return rc;
}

static struct pod_rules *add_rules(struct eligible *eligible, struct str key,
                                   const struct kube_pod *pod)
{
    struct pod_rules *rules = mem_alloc(sizeof(*rules));
    const struct kube_rare *rare = pod->rare;
    struct err err = { 0 };
    int rc;

    arena_init(&rules->arena, ELIGIBLE_MEMORY);
    rules->key = (struct str){ arena_strndup(&rules->arena, key.at, key.len), key.len };
    rules->number = ++eligible->last_number;
    eligible_put(&eligible->rules, rules->key, rules);
    rc = compile_terms(eligible, &rules->arena, rare->pod_anti_affinity, pod->object.ns,
                       &rules->avoid, &rules->avoid_count, &err);
    if (rc == 0)
        rc = compile_terms(eligible, &rules->arena, rare->pod_affinity, pod->object.ns,
                           &rules->attract, &rules->attract_count, &err);
    if (rc == 0)
        rc = compile_spreads(rules, rare->spread, pod->object.ns, &err);
    if (rc < 0)
        rules->trouble = arena_printf(
            &rules->arena, "the pod's affinity or spread constraints cannot be read: %s", err.text);
    return rules;
}

static struct pod_rules *find_rules(struct eligible *eligible, const struct kube_pod *pod)
{
    struct buf *key = &eligible->key;
    struct pod_rules *rules;

    if (!eligible_minds_others(pod))
        return NULL;
    buf_clear(key);
    buf_printf(key, "%s\n%s\n%s\n%s", pod->object.ns, pod->rare->pod_affinity,
               pod->rare->pod_anti_affinity, pod->rare->spread);
    rules = map_get(&eligible->rules, buf_str(key));
    return rules ? rules : add_rules(eligible, buf_str(key), pod);
}

static void drop_if_unused(struct eligible *eligible, struct pod_rules *rules)
{
    if (rules->refs > 0 || rules->owners > 0)
        return;
    map_take(&eligible->rules, rules->key);
    arena_done(&rules->arena);
    mem_free(rules->owners_in);
    mem_free(rules);
}

struct pod_rules *pod_rules_get(struct eligible *eligible, const struct kube_pod *pod)
{
    struct pod_rules *rules = find_rules(eligible, pod);

    if (rules)
        rules->refs++;
    return rules;
}

void pod_rules_release(struct eligible *eligible, struct pod_rules *rules)
{
    if (!rules)
        return;
    rules->refs--;
    drop_if_unused(eligible, rules);
}

static bool term_matches(const struct eligible *eligible, const struct pod_term *term,
                         const struct kube_pod *pod)
{
    const struct kube_object *object = NULL;
    bool in_namespace = term->namespace_selector && selector_matches_all(term->namespace_selector);

    for (unsigned i = 0; !in_namespace && i < term->namespace_count; i++)
        in_namespace = strcmp(term->namespaces[i], pod->object.ns) == 0;
    if (!in_namespace && term->namespace_selector && eligible->caches.namespaces)
        object = kube_cache_get(eligible->caches.namespaces, "", pod->object.ns);
    if (object)
        in_namespace = selector_matches(term->namespace_selector, kube_labels(&object->labels));
    return in_namespace && selector_matches(term->labels, kube_labels(&pod->object.labels));
}

/* ---- labels of nodes ---- */

/* The value of one label of the node in each slot, as a number: two nodes with one number are in
 * one domain. Kept while the label is the same on all nodes, and no node comes or goes. */
struct column {
    char *key;
    uint32_t *of; /* by slot; 0 where the label is absent */
    uint32_t count;
};

static void drop_column(struct eligible *eligible, struct column *column)
{
    map_take(&eligible->columns, str_of(column->key));
    mem_free(column->of);
    mem_free(column->key);
    mem_free(column);
}

static void drop_columns(struct eligible *eligible)
{
    map_each (item, &eligible->columns)
        drop_column(eligible, item->value);
}

void eligible_relabel(struct eligible *eligible, const struct kube_pairs *old,
                      const struct kube_pairs *next)
{
    map_each (item, &eligible->columns) {
        struct column *column = item->value;
        bool had, has;
        struct str before = kube_pairs_get(old, column->key, &had);
        struct str after = kube_pairs_get(next, column->key, &has);

        if (had != has || !str_eq(before, after))
            drop_column(eligible, column);
    }
}

static void fill_column(const struct eligible *eligible, struct column *column)
{
    static const struct map_options options = { .max = ELIGIBLE_MAX_NAMES, .borrow_keys = true };
    auto_map struct map values;

    map_init(&values, &options);
    column->of = mem_alloc_array(eligible->slot_count + 1, sizeof(*column->of));
    for (size_t i = 0; i < eligible->slot_count; i++) {
        const struct kube_node *node = eligible->slots[i].node;
        bool found = false;
        struct str value =
            node ? kube_pairs_get(&node->object.labels, column->key, &found) : STR("");

        if (found && !map_has(&values, value))
            eligible_put(&values, value, (void *)(uintptr_t)++column->count);
        column->of[i] = found ? (uint32_t)(uintptr_t)map_get(&values, value) : 0;
    }
}

static const struct column *column_of(struct eligible *eligible, const char *key)
{
    struct column *column = map_get(&eligible->columns, str_of(key));

    if (!column) {
        column = mem_alloc(sizeof(*column));
        column->key = mem_strdup(key);
        fill_column(eligible, column);
        eligible_put(&eligible->columns, str_of(column->key), column);
    }
    return column;
}

/* ---- counting ---- */

static bool tally_counts(const struct eligible *eligible, const struct tally *tally,
                         const struct kube_pod *pod)
{
    if (tally->but_ending && pod->object.deleted_us)
        return false;
    for (unsigned i = 0; i < tally->term_count; i++)
        if (!term_matches(eligible, &tally->terms[i], pod))
            return false;
    for (unsigned i = 0; i < tally->same.count; i++) {
        bool found;
        struct str value = kube_pairs_get(&pod->object.labels, tally->same.at[i].key.at, &found);

        if (!found || !str_eq(value, tally->same.at[i].value))
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
static void count_owner(struct eligible *eligible, int slot, const struct kube_pod *pod,
                        int direction)
{
    struct pod_rules *rules = slot != ELIGIBLE_NO_SLOT ? find_rules(eligible, pod) : NULL;

    if (!rules)
        return;
    if (!rules->owners_in)
        rules->owners_in = mem_alloc_array(eligible->capacity, sizeof(*rules->owners_in));
    step(&rules->owners_in[slot], direction);
    step(&rules->owners, direction);
    rules->owners_change = eligible->sequence;
    drop_if_unused(eligible, rules);
}

void eligible_count_pod(struct eligible *eligible, int slot, const struct kube_pod *pod,
                        int direction)
{
    list_each (struct tally, tally, &eligible->tallies, link) {
        if (!tally_counts(eligible, tally, pod))
            continue;
        eligible_touch(eligible, ELIGIBLE_NO_SLOT);
        if (!tally->is_stale)
            step(&tally->count[slot], direction);
        tally->changed = eligible->sequence;
    }
    if (!pod->rare || !pod->rare->pod_anti_affinity[0])
        return;
    eligible_touch(eligible, ELIGIBLE_NO_SLOT);
    if (!eligible->owners_stale)
        count_owner(eligible, slot, pod, direction);
}

/* The caller touches the view. */
void eligible_count_anew(struct eligible *eligible)
{
    eligible->owners_stale = true;
    drop_columns(eligible);
    list_each (struct tally, tally, &eligible->tallies, link) {
        tally->is_stale = true;
        tally->changed = eligible->sequence;
    }
}

/* All placed pods, and those that are reserved. */
struct all_pods {
    const struct eligible *eligible;
    struct kube_cache_walk walk;
    unsigned cache, reserved;
};

static const struct kube_pod *next_of_all(struct all_pods *all)
{
    const struct eligible *eligible = all->eligible;
    const struct kube_cache *caches[] = { eligible->caches.pods, eligible->caches.other_pods };
    const struct kube_object *object;

    for (; all->cache < 2; all->cache++, all->walk.cache = NULL) {
        if (!caches[all->cache])
            continue;
        if (!all->walk.cache)
            all->walk = kube_cache_walk(caches[all->cache]);
        while ((object = kube_cache_next(&all->walk)) != NULL) {
            const struct kube_pod *pod = kube_pod_of(object);

            if (eligible_is_placed(pod) && !(all->cache == 1 && eligible_is_ours(eligible, pod)))
                return pod;
        }
    }
    if (all->reserved == eligible->reserved_count)
        return NULL;
    return eligible->reserved[all->reserved++].pod;
}

/* Of the pod that came last, or NO_SLOT. It is looked up only for a pod that counts. */
static int slot_in_all(const struct all_pods *all, const struct kube_pod *pod)
{
    if (all->reserved > 0)
        return all->eligible->reserved[all->reserved - 1].slot;
    return eligible_slot_of(all->eligible, pod->node_name);
}

void eligible_count_owners(struct eligible *eligible)
{
    struct all_pods all = { .eligible = eligible };
    const struct kube_pod *pod;

    if (!eligible->owners_stale)
        return;
    eligible->owners_stale = false;
    map_each (item, &eligible->rules) {
        struct pod_rules *rules = item->value;

        rules->owners = 0;
        rules->owners_change = eligible->sequence;
        mem_free(rules->owners_in);
        rules->owners_in = NULL;
    }
    while ((pod = next_of_all(&all)) != NULL)
        if (pod->rare && pod->rare->pod_anti_affinity[0])
            count_owner(eligible, slot_in_all(&all, pod), pod, 1);
    map_each (item, &eligible->rules)
        drop_if_unused(eligible, item->value);
}

/* One walk for all that a class counts. */
static void count_tallies(const struct eligible *eligible, struct pod_class *pod_class)
{
    struct all_pods all = { .eligible = eligible };
    const struct kube_pod *pod;

    for (unsigned i = 0; i < pod_class->tally_count; i++) {
        struct tally *tally = &pod_class->tallies[i];

        mem_free(tally->count);
        tally->count = mem_alloc_array(eligible->capacity + 1, sizeof(*tally->count));
        tally->is_stale = false;
    }
    while ((pod = next_of_all(&all)) != NULL)
        for (unsigned i = 0; i < pod_class->tally_count; i++)
            if (tally_counts(eligible, &pod_class->tallies[i], pod)) {
                int slot = slot_in_all(&all, pod);

                if (slot != ELIGIBLE_NO_SLOT)
                    pod_class->tallies[i].count[slot]++;
            }
}

/* ---- classes ---- */

static bool attracts_itself(const struct eligible *eligible, const struct pod_rules *rules,
                            const struct kube_pod *pod)
{
    for (unsigned i = 0; i < rules->attract_count; i++)
        if (!term_matches(eligible, &rules->attract[i], pod))
            return false;
    return true;
}

static uint64_t spreads_itself(const struct eligible *eligible, const struct pod_rules *rules,
                               const struct kube_pod *pod)
{
    uint64_t bits = 0;

    for (unsigned i = 0; i < rules->spread_count; i++)
        if (term_matches(eligible, &rules->spread[i].term, pod))
            bits |= UINT64_C(1) << i;
    return bits;
}

void eligible_pods_key(struct eligible *eligible, const struct kube_pod *pod,
                       const struct pod_rules *rules, struct buf *key)
{
    if (rules) {
        uint64_t self = spreads_itself(eligible, rules, pod);

        buf_add(key, &rules->number, sizeof(rules->number));
        buf_add(key, &self, sizeof(self));
        buf_add_char(key, attracts_itself(eligible, rules, pod) ? 'A' : 'a');
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
    map_each (item, &eligible->rules) {
        const struct pod_rules *others = item->value;

        for (unsigned i = 0; others->owners > 0 && i < others->avoid_count; i++)
            if (term_matches(eligible, &others->avoid[i], pod)) {
                buf_add(key, &others->number, sizeof(others->number));
                buf_add(key, &i, sizeof(i));
            }
    }
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

static void setup_tallies(struct eligible *eligible, struct pod_class *pod_class)
{
    const struct pod_rules *rules = pod_class->rules;
    struct tally *tally;

    pod_class->tally_count = (rules->attract_count > 0) + rules->avoid_count + rules->spread_count;
    tally = pod_class->tallies = arena_alloc_array(&pod_class->arena, pod_class->tally_count + 1,
                                                   sizeof(*pod_class->tallies));
    if (rules->attract_count > 0)
        *tally++ = (struct tally){ .terms = rules->attract, .term_count = rules->attract_count };
    for (unsigned i = 0; i < rules->avoid_count; i++)
        *tally++ = (struct tally){ .terms = &rules->avoid[i], .term_count = 1 };
    for (unsigned i = 0; i < rules->spread_count; i++)
        *tally++ =
            (struct tally){ .terms = &rules->spread[i].term,
                            .term_count = 1,
                            .but_ending = true,
                            .same = same_of(&pod_class->arena, &rules->spread[i], pod_class->pod) };
    for (unsigned i = 0; i < pod_class->tally_count; i++) {
        pod_class->tallies[i].is_stale = true;
        list_push_back(&eligible->tallies, &pod_class->tallies[i].link);
    }
}

void eligible_pods_setup(struct eligible *eligible, struct pod_class *pod_class)
{
    const struct kube_pod *pod = pod_class->pod;
    unsigned most = 0;

    if (pod_class->rules) {
        pod_class->attracts_itself = attracts_itself(eligible, pod_class->rules, pod);
        pod_class->spreads_itself = spreads_itself(eligible, pod_class->rules, pod);
        setup_tallies(eligible, pod_class);
    }
    map_each (item, &eligible->rules)
        most += ((const struct pod_rules *)item->value)->avoid_count;
    pod_class->repelled =
        arena_alloc_array(&pod_class->arena, most + 1, sizeof(*pod_class->repelled));
    map_each (item, &eligible->rules) {
        struct pod_rules *others = item->value;

        for (unsigned i = 0; others->owners > 0 && i < others->avoid_count; i++)
            if (term_matches(eligible, &others->avoid[i], pod)) {
                pod_class->repelled[pod_class->repelled_count++] = (struct repelled){ others, i };
                others->refs++;
            }
    }
}

void eligible_pods_release(struct eligible *eligible, struct pod_class *pod_class)
{
    for (unsigned i = 0; i < pod_class->tally_count; i++) {
        list_remove(&pod_class->tallies[i].link);
        mem_free(pod_class->tallies[i].count);
    }
    for (unsigned i = 0; i < pod_class->repelled_count; i++)
        pod_rules_release(eligible, pod_class->repelled[i].by);
}

/* ---- domains ---- */

/* How many counted pods there are in each domain; freed by the caller. */
static uint64_t *sum_up(const struct eligible *eligible, const struct column *column,
                        const uint32_t *count, bool *ret_any)
{
    uint64_t *sums = mem_alloc_array((size_t)column->count + 1, sizeof(*sums));

    for (size_t i = 0; i < eligible->slot_count; i++) {
        sums[column->of[i]] += count[i];
        *ret_any |= column->of[i] > 0 && count[i] > 0;
    }
    return sums;
}

static void attract(struct eligible *eligible, struct pod_class *pod_class, const uint32_t *count)
{
    const struct pod_rules *rules = pod_class->rules;
    const struct column *columns[ELIGIBLE_MAX_TERMS];
    uint64_t *sums[ELIGIBLE_MAX_TERMS];
    bool any = false;

    for (unsigned t = 0; t < rules->attract_count; t++) {
        columns[t] = column_of(eligible, rules->attract[t].topology_key);
        sums[t] = sum_up(eligible, columns[t], count, &any);
    }
    for (size_t i = 0; i < eligible->slot_count; i++)
        for (unsigned t = 0; pod_class->result[i].code == ELIGIBLE_FITS && t < rules->attract_count;
             t++) {
            uint32_t domain = columns[t]->of[i];
            /* the first of pods that want to be together may go anywhere */
            bool drawn = any ? sums[t][domain] > 0 : pod_class->attracts_itself;

            if (domain == 0 || !drawn)
                pod_class->result[i].code = ELIGIBLE_ATTRACTED;
        }
    for (unsigned t = 0; t < rules->attract_count; t++)
        mem_free(sums[t]);
}

/* Anti-affinity: of this pod, and of those that are there. */
static void keep_away(struct eligible *eligible, struct pod_class *pod_class,
                      const struct pod_term *term, const uint32_t *count, enum eligible_code code)
{
    const struct column *column = column_of(eligible, term->topology_key);
    bool any = false;
    auto_free uint64_t *sums = sum_up(eligible, column, count, &any);

    for (size_t i = 0; any && i < eligible->slot_count; i++)
        if (pod_class->result[i].code == ELIGIBLE_FITS && column->of[i] > 0 &&
            sums[column->of[i]] > 0)
            pod_class->result[i].code = (uint8_t)code;
}

/* It has all the labels that pods of the class are spread by. */
static bool takes_part(const struct pod_class *pod_class, const struct spread *spread,
                       const struct column *const *columns, size_t slot)
{
    const struct filter_result *fixed = &pod_class->fixed[slot];

    if (!fixed->lent || (!fixed->matches && spread->by_affinity) ||
        (!fixed->tolerated && spread->by_taints))
        return false;
    for (unsigned i = 0; i < pod_class->rules->spread_count; i++)
        if (columns[i]->of[slot] == 0)
            return false;
    return true;
}

/* Spread looks at the nodes that are lent to Slurm alone, as no pod of ours can go elsewhere. */
static void spread_out(struct eligible *eligible, struct pod_class *pod_class, unsigned which,
                       const uint32_t *count)
{
    const struct spread *spread = &pod_class->rules->spread[which];
    const struct column *columns[ELIGIBLE_MAX_TERMS];
    const struct column *column = column_of(eligible, spread->term.topology_key);
    struct domain {
        uint64_t pods;
        bool counts;
    };
    auto_free struct domain *domains = mem_alloc_array((size_t)column->count + 1, sizeof(*domains));
    uint64_t self = pod_class->spreads_itself >> which & 1, least = UINT64_MAX;
    int64_t found = 0;

    for (unsigned i = 0; i < pod_class->rules->spread_count; i++)
        columns[i] = column_of(eligible, pod_class->rules->spread[i].term.topology_key);
    for (size_t i = 0; i < eligible->slot_count; i++)
        if (takes_part(pod_class, spread, columns, i)) {
            domains[column->of[i]].pods += count[i];
            domains[column->of[i]].counts = true;
        }
    for (uint32_t i = 1; i <= column->count; i++) {
        found += domains[i].counts;
        if (domains[i].counts && domains[i].pods < least)
            least = domains[i].pods;
    }
    if (found < spread->min_domains)
        least = 0;
    for (size_t i = 0; i < eligible->slot_count; i++) {
        uint64_t pods = domains[column->of[i]].pods + self;

        if (pod_class->result[i].code != ELIGIBLE_FITS)
            continue;
        if (column->of[i] == 0)
            pod_class->result[i].code = ELIGIBLE_SPREAD_LABEL;
        else if (pods > least && pods - least > (uint64_t)spread->max_skew)
            pod_class->result[i].code = ELIGIBLE_SPREAD;
    }
}

bool eligible_pods_judge(struct eligible *eligible, struct pod_class *pod_class, bool touched)
{
    const struct pod_rules *rules = pod_class->rules;
    const struct tally *tally = pod_class->tallies, *spreads;
    bool is_stale = false, changed = touched;

    for (unsigned i = 0; i < pod_class->tally_count; i++) {
        is_stale |= tally[i].is_stale;
        changed |= tally[i].is_stale || tally[i].changed > pod_class->seen;
    }
    for (unsigned i = 0; i < pod_class->repelled_count; i++)
        changed |= pod_class->repelled[i].by->owners_change > pod_class->seen;
    if (!changed)
        return false;
    if (is_stale)
        count_tallies(eligible, pod_class);
    if (eligible->columns.count > MAX_COLUMNS)
        drop_columns(eligible);
    if (eligible->slot_count > 0)
        memcpy(pod_class->result, pod_class->fixed,
               eligible->slot_count * sizeof(*pod_class->result));
    spreads = rules ? tally + (rules->attract_count > 0) + rules->avoid_count : NULL;
    for (unsigned i = 0; rules && i < rules->spread_count; i++)
        spread_out(eligible, pod_class, i, spreads[i].count);
    if (rules && rules->attract_count > 0)
        attract(eligible, pod_class, (tally++)->count);
    for (unsigned i = 0; rules && i < rules->avoid_count; i++)
        keep_away(eligible, pod_class, &rules->avoid[i], (tally++)->count, ELIGIBLE_AVOIDS);
    for (unsigned i = 0; i < pod_class->repelled_count; i++) {
        const struct pod_rules *by = pod_class->repelled[i].by;

        if (by->owners > 0)
            keep_away(eligible, pod_class, &by->avoid[pod_class->repelled[i].term], by->owners_in,
                      ELIGIBLE_REPELLED);
    }
    return true;
}

void eligible_pods_done(struct eligible *eligible)
{
    map_each (item, &eligible->rules) {
        struct pod_rules *rules = item->value;

        rules->owners = 0;
        drop_if_unused(eligible, rules);
    }
    map_done(&eligible->rules);
    drop_columns(eligible);
    map_done(&eligible->columns);
}
