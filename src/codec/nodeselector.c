/* nodeselector.c - compiles node selectors and node affinity, and matches nodes against them.
 *
 * Holds: matching allocates nothing and cannot fail; it agrees with the scheduler's nodeaffinity
 * package. A broken term is kept as one that never matches. */
#include "codec/nodeselector.h"

/* One entry of matchFields; the node's name is the only field there is. */
struct name_rule {
    struct str name;
    bool equal;
};

struct term {
    struct selector_requirement *labels;
    size_t label_count;
    struct name_rule *names;
    size_t name_count;
    bool never; /* empty or broken */
};

struct nodeselector {
    bool all; /* was absent */
    struct term *terms;
    size_t count;
};

struct nodeselector_pod {
    const struct selector *labels; /* nodeSelector; NULL when it cannot be read */
    const struct nodeselector *required;
};

/* ---- compiling ---- */

static int check_array(const struct json *value, const char *what, size_t max, struct err *err)
{
    if (json_exists(value) && !json_is_array(value))
        return err_set(err, ERR_INVALID, "%s is not an array", what);
    if (json_len(value) > max)
        return err_set(err, ERR_TOO_BIG, "%s has more than %zu entries", what, max);
    return 0;
}

/* Puts the place in front of an error, and keeps its class. */
static int in_entry(struct err *err, const char *what, size_t index, int status)
{
    if (err)
        err_wrap(err, "%s[%zu]", what, index);
    return status;
}

static int compile_labels(struct arena *arena, const struct json *array, struct term *term,
                          struct err *err)
{
    struct json_iter iter = json_iter(array);
    const struct json *item;
    int status = check_array(array, "matchExpressions", SELECTOR_MAX_REQUIREMENTS, err);

    if (status < 0)
        return status;
    term->labels = arena_alloc_array(arena, json_len(array), sizeof(*term->labels));
    while (json_next_item(&iter, &item)) {
        status = selector_requirement_from_json(arena, item, true, &term->labels[term->label_count],
                                                err);
        if (status < 0)
            return in_entry(err, "matchExpressions", term->label_count, status);
        term->label_count++;
    }
    return 0;
}

static int compile_name(struct arena *arena, const struct json *item, struct name_rule *ret_rule,
                        struct err *err)
{
    struct str op = json_str(json_get(item, "operator"));
    const struct json *values = json_get(item, "values"), *value = json_item(values, 0);
    struct str name = json_str(value);

    if (!str_is(json_str(json_get(item, "key")), "metadata.name"))
        return err_set(err, ERR_INVALID, "only metadata.name can be matched");
    if (!str_is(op, "In") && !str_is(op, "NotIn"))
        return err_set(err, ERR_INVALID, "a field takes In or NotIn only");
    if (json_len(values) != 1 || !json_is_string(value))
        return err_set(err, ERR_INVALID, "a field takes one value");
    *ret_rule = (struct name_rule){ { arena_strndup(arena, name.at, name.len), name.len },
                                    str_is(op, "In") };
    return 0;
}

static int compile_names(struct arena *arena, const struct json *array, struct term *term,
                         struct err *err)
{
    struct json_iter iter = json_iter(array);
    const struct json *item;
    int status = check_array(array, "matchFields", SELECTOR_MAX_REQUIREMENTS, err);

    if (status < 0)
        return status;
    term->names = arena_alloc_array(arena, json_len(array), sizeof(*term->names));
    while (json_next_item(&iter, &item)) {
        status = compile_name(arena, item, &term->names[term->name_count], err);
        if (status < 0)
            return in_entry(err, "matchFields", term->name_count, status);
        term->name_count++;
    }
    return 0;
}

static int compile_term(struct arena *arena, const struct json *value, struct term *term,
                        struct err *err)
{
    int status;

    term->never = true;
    if (json_exists(value) && !json_is_object(value))
        return err_set(err, ERR_INVALID, "a term is not an object");
    status = compile_labels(arena, json_get(value, "matchExpressions"), term, err);
    if (status == 0)
        status = compile_names(arena, json_get(value, "matchFields"), term, err);
    term->never = status < 0 || term->label_count + term->name_count == 0;
    return status;
}

/* What is wrong in one term stays its own problem, what passes a bound not. */
static int compile_terms(struct arena *arena, const struct json *array,
                         struct nodeselector *selector, struct err *err)
{
    struct json_iter iter = json_iter(array);
    const struct json *item;
    int status = check_array(array, "nodeSelectorTerms", NODESELECTOR_MAX_TERMS, err);

    if (status < 0)
        return status;
    selector->terms = arena_alloc_array(arena, json_len(array), sizeof(*selector->terms));
    for (; json_next_item(&iter, &item); selector->count++) {
        struct err problem = { 0 };

        if (compile_term(arena, item, &selector->terms[selector->count], &problem) == -ERR_TOO_BIG)
            return err_set(err, ERR_TOO_BIG, "nodeSelectorTerms[%zu]: %s", selector->count,
                           problem.text);
    }
    return 0;
}

int nodeselector_from_json(struct arena *arena, const struct json *value,
                           const struct nodeselector **ret_selector, struct err *err)
{
    struct nodeselector *selector = arena_alloc(arena, sizeof(*selector));
    int status;

    if (json_exists(value) && !json_is_object(value))
        return err_set(err, ERR_INVALID, "a node selector is not an object");
    selector->all = !json_exists(value);
    status = compile_terms(arena, json_get(value, "nodeSelectorTerms"), selector, err);
    if (status == 0)
        *ret_selector = selector;
    return status;
}

/* A map that cannot be read matches no node, like a broken term. */
static int compile_map(struct arena *arena, const struct json *map, struct nodeselector_pod *pod,
                       struct err *err)
{
    struct err problem = { 0 };

    if (selector_from_map(arena, map, SELECTOR_ABSENT_MATCHES_ALL, &pod->labels, &problem) ==
        -ERR_TOO_BIG)
        return err_set(err, ERR_TOO_BIG, "nodeSelector: %s", problem.text);
    return 0;
}

int nodeselector_from_pod_spec(struct arena *arena, const struct json *spec,
                               const struct nodeselector_pod **ret_pod, struct err *err)
{
    const struct json *affinity = json_at(spec, "affinity", "nodeAffinity");
    const struct json *required =
        json_get(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
    struct nodeselector_pod *pod = arena_alloc(arena, sizeof(*pod));
    int status = compile_map(arena, json_get(spec, "nodeSelector"), pod, err);

    if (status == 0)
        status = nodeselector_from_json(arena, required, &pod->required, err);
    if (status == 0)
        *ret_pod = pod;
    return status;
}

/* ---- matching ---- */

static bool term_matches(const struct term *term, const struct nodeselector_node *node)
{
    for (size_t i = 0; i < term->name_count; i++)
        if (str_eq(term->names[i].name, node->name) != term->names[i].equal)
            return false;
    for (size_t i = 0; i < term->label_count; i++)
        if (!selector_requirement_matches(&term->labels[i], node->labels))
            return false;
    return true;
}

bool nodeselector_matches(const struct nodeselector *selector, const struct nodeselector_node *node)
{
    for (size_t i = 0; i < selector->count; i++)
        if (!selector->terms[i].never && term_matches(&selector->terms[i], node))
            return true;
    return selector->all;
}

bool nodeselector_pod_matches(const struct nodeselector_pod *pod,
                              const struct nodeselector_node *node)
{
    return pod->labels && selector_matches(pod->labels, node->labels) &&
           nodeselector_matches(pod->required, node);
}
