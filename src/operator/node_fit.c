/* node_fit.c - the rules of a pod about Nodes, compiled, and the answer for one Node. */
#include "operator/node_fit.h"

#include "codec/nodeselector.h"

struct node_fit {
    struct str node_name; /* "": any */
    const struct nodeselector_pod *selector;
    struct kube_toleration *tolerations;
    size_t toleration_count;
};

int node_fit_new(struct arena *arena, const struct json *spec, const struct node_fit **ret_fit,
                 struct err *err)
{
    struct node_fit *fit = arena_alloc(arena, sizeof(*fit));
    const struct json *tolerations = json_get(spec, "tolerations"), *item;
    struct json_iter iter = json_iter(tolerations);
    int result;

    if (json_len(tolerations) > KUBE_MAX_ITEMS)
        return err_set(err, ERR_TOO_BIG, "more than %d tolerations", KUBE_MAX_ITEMS);
    if ((result = nodeselector_from_pod_spec(arena, spec, &fit->selector, err)) < 0)
        return result;
    fit->node_name = json_str(json_get(spec, "nodeName"));
    fit->tolerations =
        arena_alloc_array(arena, json_len(tolerations) + 1, sizeof(*fit->tolerations));
    while (json_next_item(&iter, &item))
        fit->tolerations[fit->toleration_count++] = kube_toleration_of(item);
    *ret_fit = fit;
    return 0;
}

static bool is_tolerated(const struct node_fit *fit, const struct kube_taint *taint)
{
    for (size_t i = 0; i < fit->toleration_count; i++)
        if (kube_tolerates(&fit->tolerations[i], taint))
            return true;
    return false;
}

/* The Node may come back, and its worker with it. */
static bool is_of_lost_node(const struct kube_taint *taint)
{
    return strcmp(taint->key, "node.kubernetes.io/not-ready") == 0 ||
           strcmp(taint->key, "node.kubernetes.io/unreachable") == 0;
}

static bool is_of_cordon(const struct kube_taint *taint)
{
    return strcmp(taint->key, "node.kubernetes.io/unschedulable") == 0;
}

struct node_fit_result node_fit(const struct node_fit *fit, const struct kube_node *node)
{
    const struct nodeselector_node subject = { str_of(node->object.name),
                                               kube_labels(&node->object.labels) };
    struct node_fit_result result = { true, true, true };

    if ((fit->node_name.len > 0 && !str_eq(fit->node_name, subject.name)) ||
        !nodeselector_pod_matches(fit->selector, &subject))
        return (struct node_fit_result){ false, false, false };
    for (unsigned i = 0; i < node->taint_count; i++) {
        const struct kube_taint *taint = &node->taints[i];

        if (taint->effect == KUBE_PREFER_NO_SCHEDULE || is_tolerated(fit, taint))
            continue;
        result.may_start = false;
        if (!is_of_cordon(taint))
            result.may_return = false;
        if (taint->effect == KUBE_NO_EXECUTE && !is_of_lost_node(taint))
            result.may_stay = false;
    }
    return result;
}
