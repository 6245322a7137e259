/* prefer.c - the heaviest preferred term that can be written as an expression over features.
 *
 * Holds: a preference never keeps a pod from its place, so what cannot be read or written here is
 * no preference, and no error. */
#include "bridge/unit/prefer.h"

#include "bridge/world/config_rules.h"
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

static bool is_there(const struct slurm_cache *nodes, struct str feature)
{
    struct slurm_cache_walk walk = slurm_cache_walk(nodes);
    const struct slurm_object *node;

    while ((node = slurm_cache_next(&walk)) != NULL) {
        struct str rest = str_of(slurm_node_of(node)->features), word;

        while (str_next(&rest, ',', &word))
            if (str_eq(word, feature))
                return true;
    }
    return false;
}

/* a, or (a|b): those of the features that will do that are there. False: there is none, that a node
 * has none will do, too, or there are too many. */
static bool write_requirement(struct search *search, const struct json *requirement,
                              struct buf *out)
{
    const struct bridge_config *config = search->from->config;
    struct selector_requirement wanted;
    auto_buf struct buf list = { .max = MAX_EXPRESSION };
    bool is_label = false;
    unsigned count = 0;

    if (selector_requirement_from_json(search->arena, requirement, true, &wanted, NULL) < 0 ||
        wanted.op != SELECTOR_IN)
        return false;
    for (unsigned i = 0; i < config->node_feature_count; i++)
        is_label |= str_eq(config->node_features[i], wanted.key);
    for (size_t i = 0; is_label && i < wanted.value_count; i++) {
        struct str feature = config_feature_of(wanted.key, wanted.values[i]);

        if (feature.len == 0 || search->values++ == MAX_VALUES)
            return false;
        if (!is_there(search->from->slurm_nodes, feature))
            continue;
        buf_printf(&list, "%s" STR_FMT, count++ > 0 ? "|" : "", STR_ARG(feature));
    }
    buf_printf(out, count > 1 ? "(%s)" : "%s", buf_text(&list));
    return count > 0 && !list.overflowed;
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

static const char *heaviest(const struct prefer_from *from, const char *terms, struct arena *arena)
{
    struct search search = { .from = from, .arena = arena };
    auto_json_doc struct json_doc *doc = NULL;
    auto_buf struct buf text = { .max = MAX_EXPRESSION };
    const char *best = "";
    const struct json *term;
    struct json_iter iter;
    int64_t most = 0;

    if (!terms[0] || json_parse(str_of(terms), KUBE_MAX_RULE, &doc, NULL) < 0 ||
        json_len(json_root(doc)) > NODESELECTOR_MAX_TERMS)
        return "";
    iter = json_iter(json_root(doc));
    while (json_next_item(&iter, &term)) {
        int64_t weight = json_i64_or(json_get(term, "weight"), 0);

        if (weight <= most || !write_term(&search, json_get(term, "preference"), &text))
            continue;
        most = weight;
        best = arena_strdup(arena, buf_text(&text));
    }
    return best;
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
    prefer = heaviest(from, terms, arena);
    for (unsigned i = 1; prefer[0] && i < from->pod_count; i++) {
        const char *others = terms_of(from->pods[i]);

        if (strcmp(others, terms) != 0 && strcmp(heaviest(from, others, arena), prefer) != 0)
            return "";
    }
    return prefer;
}
