/* pod_rules.c - reads what a pod says about other pods: affinity, anti-affinity and topology
 * spread.
 *
 * Rules are read once for all pods of a namespace that say the same.
 *
 * Holds   a namespace selector without a cache of namespaces objects to nothing: its term is left
 *         out. */
#include "filter/filter_private.h"

#include "base/mem.h"

#include <string.h>

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
    int rc = text[0] ? json_parse(str_of(text), FILTER_MAX_TEXT, ret_doc, err) : 0;

    if (rc == 0 && json_len(json_root(*ret_doc)) > FILTER_MAX_TERMS)
        rc = err_set(err, ERR_TOO_BIG, "more than %d terms", FILTER_MAX_TERMS);
    return rc;
}

/* A list of PodAffinityTerm, of a pod in this namespace. */
static int compile_terms(const struct filter *filter, struct arena *arena, const char *text,
                         const char *ns, struct pod_term **ret_terms, unsigned *ret_count,
                         struct err *err)
{
    auto_json_doc struct json_doc *doc = NULL;
    struct pod_term *terms;
    const struct json *item;
    struct json_iter iter;
    unsigned count = 0;
    int rc = parse(text, &doc, err);

    if (rc < 0)
        return rc;
    terms = arena_alloc_array(arena, json_len(json_root(doc)) + 1, sizeof(*terms));
    iter = json_iter(json_root(doc));
    while (rc == 0 && json_next_item(&iter, &item)) {
        struct pod_term term = { 0 };

        rc = compile_term(arena, item, ns, &term, err);
        if (rc == 0 && (filter->caches.namespaces || !term.namespace_selector ||
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
    struct arena *arena = &rules->arena;
    auto_json_doc struct json_doc *doc = NULL;
    const struct json *item;
    struct json_iter iter;
    int rc = parse(text, &doc, err);

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

static struct pod_rules *add_rules(struct filter *filter, struct str key,
                                   const struct kube_pod *pod)
{
    struct pod_rules *rules = mem_alloc(sizeof(*rules));
    const struct kube_rare *rare = pod->rare;
    struct err err = { 0 };
    int rc;

    arena_init(&rules->arena, FILTER_MEMORY);
    rules->key = (struct str){ arena_strndup(&rules->arena, key.at, key.len), key.len };
    rules->number = ++filter->last_number;
    filter_put(&filter->rules, rules->key, rules);
    rc = compile_terms(filter, &rules->arena, rare->pod_anti_affinity, pod->object.ns,
                       &rules->avoid, &rules->avoid_count, &err);
    if (rc == 0)
        rc = compile_terms(filter, &rules->arena, rare->pod_affinity, pod->object.ns,
                           &rules->attract, &rules->attract_count, &err);
    if (rc == 0)
        rc = compile_spreads(rules, rare->spread, pod->object.ns, &err);
    if (rc < 0)
        rules->trouble = arena_printf(
            &rules->arena, "the pod's affinity or spread constraints cannot be read: %s", err.text);
    return rules;
}

struct pod_rules *pod_rules_of(struct filter *filter, const struct kube_pod *pod)
{
    struct buf *key = &filter->key;
    struct pod_rules *rules;

    if (!filter_has_pod_rules(pod))
        return NULL;
    buf_clear(key);
    buf_printf(key, "%s\n%s\n%s\n%s", pod->object.ns, pod->rare->pod_affinity,
               pod->rare->pod_anti_affinity, pod->rare->spread);
    rules = map_get(&filter->rules, buf_str(key));
    return rules ? rules : add_rules(filter, buf_str(key), pod);
}

void pod_rules_free(void *value)
{
    struct pod_rules *rules = value;

    arena_done(&rules->arena);
    mem_free(rules->holders_in);
    mem_free(rules);
}

bool pod_term_matches(const struct filter *filter, const struct pod_term *term,
                      const struct kube_pod *pod)
{
    const struct kube_object *object = NULL;
    bool in_namespace = term->namespace_selector && selector_matches_all(term->namespace_selector);

    for (unsigned i = 0; !in_namespace && i < term->namespace_count; i++)
        in_namespace = strcmp(term->namespaces[i], pod->object.ns) == 0;
    if (!in_namespace && term->namespace_selector && filter->caches.namespaces)
        object = kube_cache_get(filter->caches.namespaces, "", pod->object.ns);
    if (object)
        in_namespace = selector_matches(term->namespace_selector, kube_labels(&object->labels));
    return in_namespace && selector_matches(term->labels, kube_labels(&pod->object.labels));
}
