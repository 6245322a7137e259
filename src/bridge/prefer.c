/* prefer.c - the heaviest preferred term that can be written as an expression over features.
 *
 * Holds: a preference never keeps a pod from its place, so what cannot be read or written here is
 * no preference, and no error. */
#include "bridge/prefer.h"

#include "bridge/config_rules.h"
#include "codec/nodeselector.h"

enum {
    MAX_EXPRESSION = 4096, /* bytes of what Slurm is told */
    MAX_VALUES = 64,       /* of one pod: nodes are walked for each, to the end where none has it */
};

struct search {
    const struct prefer_from *from;
    struct arena *arena;
    size_t values; /* that were looked for so far */
};

static bool is_feature_label(const struct bridge_config *config, struct str key)
{
    for (unsigned i = 0; i < config->node_feature_count; i++)
        if (str_eq(config->node_features[i], key))
            return true;
    return false;
}

static bool has_feature(const struct slurm_node *node, struct str feature)
{
    struct str rest = str_of(node->features), word;

    while (str_next(&rest, ',', &word))
        if (str_eq(word, feature))
            return true;
    return false;
}

static bool is_there(const struct slurm_cache *nodes, struct str feature)
{
    struct slurm_cache_walk walk = slurm_cache_walk(nodes);
    const struct slurm_object *node;

    while ((node = slurm_cache_next(&walk)) != NULL)
        if (has_feature(slurm_node_of(node), feature))
            return true;
    return false;
}

/* The features that will do, those that are there. False: that a node has none will do, too, or
 * there are too many. */
static bool features_of(struct search *search, const struct selector_requirement *wanted,
                        struct str *ret_features, size_t *ret_count)
{
    size_t count = 0;

    for (size_t i = 0; i < wanted->value_count; i++) {
        struct str feature = config_feature_of(wanted->key, wanted->values[i]);

        if (feature.len == 0 || search->values == MAX_VALUES)
            return false;
        search->values++;
        if (is_there(search->from->slurm_nodes, feature))
            ret_features[count++] = feature;
    }
    *ret_count = count;
    return true;
}

/* a, or (a|b). */
static bool write_requirement(struct search *search, const struct json *requirement,
                              struct buf *out)
{
    struct selector_requirement wanted;
    struct str *features;
    size_t count;

    if (selector_requirement_from_json(search->arena, requirement, true, &wanted, NULL) < 0 ||
        wanted.op != SELECTOR_IN || !is_feature_label(search->from->config, wanted.key))
        return false;
    features = arena_alloc_array(search->arena, wanted.value_count, sizeof(*features));
    if (!features_of(search, &wanted, features, &count) || count == 0)
        return false;
    buf_add_text(out, count > 1 ? "(" : "");
    for (size_t i = 0; i < count; i++) {
        buf_add_text(out, i > 0 ? "|" : "");
        buf_add_str(out, features[i]);
    }
    buf_add_text(out, count > 1 ? ")" : "");
    return true;
}

/* A term with nothing in it matches no node. */
static bool write_term(struct search *search, const struct json *term, struct buf *out)
{
    const struct json *requirements = json_get(term, "matchExpressions"), *requirement;
    struct json_iter iter = json_iter(requirements);

    buf_clear(out);
    if (json_len(json_get(term, "matchFields")) > 0 || json_len(requirements) == 0 ||
        json_len(requirements) > SELECTOR_MAX_REQUIREMENTS)
        return false;
    while (json_next_item(&iter, &requirement)) {
        buf_add_text(out, out->len > 0 ? "&" : "");
        if (!write_requirement(search, requirement, out))
            return false;
    }
    return out->len > 0 && !out->overflowed;
}

static const char *heaviest(const struct prefer_from *from, const struct json *terms,
                            struct arena *arena)
{
    struct search search = { .from = from, .arena = arena };
    struct json_iter iter = json_iter(terms);
    auto_buf struct buf text = { .max = MAX_EXPRESSION };
    const char *best = "";
    const struct json *term;
    int64_t most = 0;

    if (json_len(terms) > NODESELECTOR_MAX_TERMS)
        return "";
    while (json_next_item(&iter, &term)) {
        int64_t weight = json_i64_or(json_get(term, "weight"), 0);

        if (weight <= most || !write_term(&search, json_get(term, "preference"), &text))
            continue;
        most = weight;
        best = arena_strdup(arena, buf_text(&text));
    }
    return best;
}

static const char *read_terms(const struct prefer_from *from, const char *terms,
                              struct arena *arena)
{
    auto_json_doc struct json_doc *doc = NULL;

    if (!terms[0] || json_parse(str_of(terms), KUBE_MAX_RULE, &doc, NULL) < 0)
        return "";
    return heaviest(from, json_root(doc), arena);
}

static const char *terms_of(const struct kube_pod *pod)
{
    return pod->rare ? pod->rare->node_preference : "";
}

const char *prefer_of(const struct prefer_from *from, struct arena *arena)
{
    const char *terms = terms_of(from->pods[0]), *prefer;

    if (from->config->node_feature_count == 0 || !from->slurm_nodes)
        return "";
    prefer = read_terms(from, terms, arena);
    for (unsigned i = 1; prefer[0] && i < from->pod_count; i++) {
        const char *others = terms_of(from->pods[i]);

        if (strcmp(others, terms) != 0 && strcmp(read_terms(from, others, arena), prefer) != 0)
            return "";
    }
    return prefer;
}
