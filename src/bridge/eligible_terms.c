/* eligible_terms.c - what pods say of other pods: read once for all pods that say the same.
 *
 * Holds   rules are found by the namespace of the pod and their text; they go with the last class
 *         that uses them. A namespace selector without a cache of namespaces objects to nothing:
 *         its term is left out. */
#include "bridge/eligible_private.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RULES = 1 << 20, MAX_TEXT = 4 << 20 };

/* ---- one term ---- */

static const char *copy(struct arena *arena, struct str text)
{
    return arena_strndup(arena, text.at, text.len);
}

static const char **copy_texts(struct arena *arena, const struct json *list, unsigned *ret_count)
{
    const char **texts = arena_alloc_array(arena, json_len(list) + 1, sizeof(*texts));
    struct json_iter iter = json_iter(list);
    const struct json *item;
    unsigned count = 0;

    while (json_next_item(&iter, &item))
        texts[count++] = copy(arena, json_str(item));
    *ret_count = count;
    return texts;
}

/* Without a word about namespaces, that of the pod. */
static int compile_namespaces(struct arena *arena, const struct json *value, const char *ns,
                              struct eligible_term *term, struct err *err)
{
    const struct json *selector = json_get(value, "namespaceSelector");

    term->namespaces = copy_texts(arena, json_get(value, "namespaces"), &term->namespace_count);
    if (json_exists(selector))
        return selector_from_json(arena, selector, SELECTOR_ABSENT_MATCHES_NOTHING,
                                  &term->namespace_selector, err);
    if (term->namespace_count == 0)
        term->namespaces[term->namespace_count++] = arena_strdup(arena, ns);
    return 0;
}

static int compile_term(struct eligible *eligible, struct arena *arena, const struct json *value,
                        const char *ns, struct eligible_term *term, struct err *err)
{
    int rc = selector_from_json(arena, json_get(value, "labelSelector"),
                                SELECTOR_ABSENT_MATCHES_NOTHING, &term->labels, err);

    if (rc == 0)
        rc = compile_namespaces(arena, value, ns, term, err);
    if (rc == 0)
        term->column = eligible_column_get(eligible, json_str(json_get(value, "topologyKey")));
    return rc;
}

static bool can_be_judged(const struct eligible *eligible, const struct eligible_term *term)
{
    return eligible->caches.namespaces || !term->namespace_selector ||
           selector_matches_all(term->namespace_selector);
}

static bool in_namespace(const struct eligible *eligible, const struct eligible_term *term,
                         const char *ns)
{
    const struct kube_object *object;

    for (unsigned i = 0; i < term->namespace_count; i++)
        if (strcmp(term->namespaces[i], ns) == 0)
            return true;
    if (!term->namespace_selector)
        return false;
    if (selector_matches_all(term->namespace_selector))
        return true;
    object =
        eligible->caches.namespaces ? kube_cache_get(eligible->caches.namespaces, "", ns) : NULL;
    return object && selector_matches(term->namespace_selector, eligible_labels(&object->labels));
}

bool eligible_term_matches(const struct eligible *eligible, const struct eligible_term *term,
                           const struct kube_pod *pod)
{
    return in_namespace(eligible, term, pod->object.ns) &&
           selector_matches(term->labels, eligible_labels(&pod->object.labels));
}

void eligible_terms_release(struct eligible *eligible, const struct eligible_term *terms,
                            unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        eligible_column_release(eligible, terms[i].column);
}

/* ---- lists of them ---- */

static int parse(const char *text, struct json_doc **ret_doc, struct err *err)
{
    int rc = json_parse(str_of(text), MAX_TEXT, ret_doc, err);

    if (rc == 0 && json_len(json_root(*ret_doc)) > ELIGIBLE_MAX_TERMS)
        rc = err_set(err, ERR_TOO_BIG, "more than %d terms", ELIGIBLE_MAX_TERMS);
    return rc;
}

int eligible_terms_compile(struct eligible *eligible, struct arena *arena, const char *text,
                           const char *ns, struct eligible_term **ret_terms, unsigned *ret_count,
                           struct err *err)
{
    auto_json_doc struct json_doc *doc = NULL;
    struct eligible_term *terms;
    const struct json *item;
    struct json_iter iter;
    unsigned count = 0;
    int rc = parse(text, &doc, err);

    if (rc < 0)
        return rc;
    terms = arena_alloc_array(arena, json_len(json_root(doc)) + 1, sizeof(*terms));
    iter = json_iter(json_root(doc));
    while (rc == 0 && json_next_item(&iter, &item)) {
        rc = compile_term(eligible, arena, item, ns, &terms[count], err);
        if (rc == 0 && can_be_judged(eligible, &terms[count]))
            count++;
        else if (rc == 0)
            eligible_column_release(eligible, terms[count].column);
    }
    if (rc < 0) {
        eligible_terms_release(eligible, terms, count);
        return rc;
    }
    *ret_terms = terms;
    *ret_count = count;
    return 0;
}

static int compile_spread(struct eligible *eligible, struct arena *arena, const struct json *value,
                          const char *ns, struct eligible_spread *spread, struct err *err)
{
    struct str by_affinity = json_str(json_get(value, "nodeAffinityPolicy"));
    struct str by_taints = json_str(json_get(value, "nodeTaintsPolicy"));

    spread->max_skew = json_i64_or(json_get(value, "maxSkew"), 1);
    spread->min_domains = json_i64_or(json_get(value, "minDomains"), 1);
    spread->by_affinity = !str_is(by_affinity, "Ignore");
    spread->by_taints = str_is(by_taints, "Honor");
    spread->same = copy_texts(arena, json_get(value, "matchLabelKeys"), &spread->same_count);
    return compile_term(eligible, arena, value, ns, &spread->term, err);
}

static void release_spread(struct eligible *eligible, const struct eligible_spread *spread,
                           unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        eligible_terms_release(eligible, &spread[i].term, 1);
}

static int compile_spreads(struct eligible *eligible, struct eligible_rules *rules,
                           const char *text, const char *ns, struct err *err)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct json *item;
    struct json_iter iter;
    int rc = parse(text, &doc, err);

    if (rc < 0)
        return rc;
    rules->spread =
        arena_alloc_array(&rules->arena, json_len(json_root(doc)) + 1, sizeof(*rules->spread));
    iter = json_iter(json_root(doc));
    while (rc == 0 && json_next_item(&iter, &item)) {
        rc = compile_spread(eligible, &rules->arena, item, ns, &rules->spread[rules->spread_count],
                            err);
        rules->spread_count += rc == 0;
    }
    return rc;
}

/* ---- the rules of a pod ---- */

static void compile(struct eligible *eligible, struct eligible_rules *rules,
                    const struct kube_pod *pod)
{
    const struct kube_rare *rare = pod->rare;
    struct err err = { 0 };
    int rc = 0;

    if (rare->pod_affinity[0])
        rc = eligible_terms_compile(eligible, &rules->arena, rare->pod_affinity, pod->object.ns,
                                    &rules->attract, &rules->attract_count, &err);
    if (rc == 0 && rare->pod_anti_affinity[0])
        rc = eligible_terms_compile(eligible, &rules->arena, rare->pod_anti_affinity,
                                    pod->object.ns, &rules->avoid, &rules->avoid_count, &err);
    if (rc == 0 && rare->spread[0])
        rc = compile_spreads(eligible, rules, rare->spread, pod->object.ns, &err);
    if (rc < 0)
        rules->trouble = arena_printf(
            &rules->arena, "the pod's affinity or spread constraints cannot be read: %s", err.text);
}

static struct eligible_rules *add_rules(struct eligible *eligible, struct str key,
                                        const struct kube_pod *pod)
{
    struct eligible_rules *rules = mem_alloc(sizeof(*rules));

    arena_init(&rules->arena, ELIGIBLE_MEMORY);
    rules->key = (struct str){ arena_strndup(&rules->arena, key.at, key.len), key.len };
    rules->number = ++eligible->last_number;
    if (map_put(&eligible->rules, rules->key, rules, NULL) < 0) {
        fprintf(stderr, "eligible: more than %d sets of rules\n", MAX_RULES);
        abort();
    }
    compile(eligible, rules, pod);
    return rules;
}

struct eligible_rules *eligible_rules_get(struct eligible *eligible, const struct kube_pod *pod)
{
    struct buf *key = &eligible->key;
    struct eligible_rules *rules;

    if (!eligible_minds_others(pod))
        return NULL;
    buf_clear(key);
    buf_printf(key, "%s\n%s\n%s\n%s", pod->object.ns, pod->rare->pod_affinity,
               pod->rare->pod_anti_affinity, pod->rare->spread);
    rules = map_get(&eligible->rules, buf_str(key));
    if (!rules)
        rules = add_rules(eligible, buf_str(key), pod);
    rules->refs++;
    return rules;
}

void eligible_rules_release(struct eligible *eligible, struct eligible_rules *rules)
{
    if (!rules || --rules->refs > 0)
        return;
    map_take(&eligible->rules, rules->key);
    eligible_terms_release(eligible, rules->attract, rules->attract_count);
    eligible_terms_release(eligible, rules->avoid, rules->avoid_count);
    release_spread(eligible, rules->spread, rules->spread_count);
    arena_done(&rules->arena);
    mem_free(rules);
}
