/* eligible_node.c - what a node by itself says to a class: taints, labels, ports, resources.
 *
 * In the order of Kubernetes' scheduler, and the first objection counts. What our own pods take of
 * cpu, memory and devices is left out of a result (Slurm counts that); only a pod that is about to
 * be bound is held against it, as the kubelet will do. */
#include "bridge/eligible_private.h"

#include "bridge/names.h"

#include <string.h>

/* ---- taints ---- */

/* The state of the node that they show is shown to Slurm by a drain. */
static const char *const passing_taints[] = {
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
};

bool eligible_taint_passes(const char *key)
{
    for (size_t i = 0; i < sizeof(passing_taints) / sizeof(passing_taints[0]); i++)
        if (strcmp(key, passing_taints[i]) == 0)
            return true;
    return false;
}

static bool is_tolerated(const struct eligible *eligible, const struct pod_class *pod_class,
                         const struct kube_taint *taint)
{
    if (taint->effect != KUBE_NO_SCHEDULE && taint->effect != KUBE_NO_EXECUTE)
        return true;
    if (strcmp(taint->key, BRIDGE_TAINT) == 0 &&
        strcmp(taint->value, eligible->scheduler_name) == 0)
        return true;
    for (unsigned i = 0; i < pod_class->toleration_count; i++)
        if (kube_tolerates(&pod_class->tolerations[i], taint))
            return true;
    return eligible_taint_passes(taint->key);
}

static bool tolerates_all(const struct eligible *eligible, const struct pod_class *pod_class,
                          const struct kube_node *node)
{
    for (unsigned i = 0; i < node->taint_count; i++)
        if (!is_tolerated(eligible, pod_class, &node->taints[i]))
            return false;
    return true;
}

/* ---- labels ---- */

static struct nodeselector_node subject_of(const struct kube_node *node)
{
    return (struct nodeselector_node){ str_of(node->object.name),
                                       eligible_labels(&node->object.labels) };
}

static bool matches_labels(const struct pod_class *pod_class, const struct kube_node *node)
{
    struct selector_subject labels = eligible_labels(&node->object.labels);
    struct str value;

    for (unsigned i = 0; i < pod_class->selector.count; i++)
        if (!labels.lookup(labels.data, pod_class->selector.at[i].key, &value) ||
            !str_eq(value, pod_class->selector.at[i].value))
            return false;
    if (pod_class->affinity) {
        struct nodeselector_node subject = subject_of(node);

        return nodeselector_matches(pod_class->affinity, &subject);
    }
    return true;
}

/* ---- ports ---- */

static bool ports_clash(const struct eligible_port *a, const struct eligible_port *b)
{
    return a->port == b->port && strcmp(a->protocol, b->protocol) == 0 &&
           (!a->ip[0] || !b->ip[0] || strcmp(a->ip, b->ip) == 0);
}

bool eligible_want_one_port(const struct kube_pod *a, const struct kube_pod *b)
{
    for (unsigned i = 0; a->rare && b->rare && i < a->rare->port_count; i++)
        for (unsigned j = 0; j < b->rare->port_count; j++) {
            struct eligible_port one = eligible_port_of(&a->rare->ports[i]);
            struct eligible_port other = eligible_port_of(&b->rare->ports[j]);

            if (ports_clash(&one, &other))
                return true;
        }
    return false;
}

static bool has_free_ports(const struct pod_class *pod_class, const struct eligible_place *place)
{
    for (unsigned i = 0; i < pod_class->port_count; i++)
        for (unsigned j = 0; j < place->port_count; j++)
            if (ports_clash(&pod_class->ports[i], &place->ports[j]))
                return false;
    return true;
}

/* ---- resources ---- */

static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

void eligible_add_up(const struct kube_amounts *has, const struct kube_requests *requests,
                     struct kube_requests *taken, int64_t *taken_extended)
{
    taken->cpu_milli = plus(taken->cpu_milli, requests->cpu_milli);
    taken->memory = plus(taken->memory, requests->memory);
    taken->ephemeral = plus(taken->ephemeral, requests->ephemeral);
    for (unsigned i = 0; requests->extended.count > 0 && i < has->count; i++)
        taken_extended[i] =
            plus(taken_extended[i], kube_amount_of(&requests->extended, has->at[i].name));
}

/* A node that has not said how much it has of these three is not known to be short of it. */
static bool is_short(int64_t need, int64_t has, int64_t taken)
{
    return need > 0 && has > 0 && need > has - taken;
}

static unsigned find_extended(const struct kube_amounts *amounts, const char *name)
{
    unsigned i = 0;

    while (i < amounts->count && strcmp(amounts->at[i].name, name) != 0)
        i++;
    return i;
}

static unsigned short_of_extended(const struct pod_class *pod_class,
                                  const struct eligible_place *place, const int64_t *taken)
{
    const struct kube_amounts *needs = &pod_class->requests.extended, *has = &place->node->extended;

    for (unsigned i = 0; i < needs->count; i++) {
        unsigned at = find_extended(has, needs->at[i].name);

        if (needs->at[i].amount > 0 &&
            (at == has->count || needs->at[i].amount > has->at[at].amount - taken[at]))
            return ELIGIBLE_EXTENDED + i;
    }
    return ELIGIBLE_FITS;
}

static unsigned short_of(const struct pod_class *pod_class, const struct eligible_place *place,
                         const struct kube_requests *taken, const int64_t *taken_extended)
{
    const struct kube_requests *needs = &pod_class->requests;
    const struct kube_node *node = place->node;

    if (is_short(needs->cpu_milli, node->cpu_milli, taken->cpu_milli))
        return ELIGIBLE_CPU;
    if (is_short(needs->memory, node->memory, taken->memory))
        return ELIGIBLE_MEMORY_SHORT;
    if (needs->ephemeral > 0 && needs->ephemeral > node->ephemeral - taken->ephemeral)
        return ELIGIBLE_EPHEMERAL;
    return needs->extended.count > 0 ? short_of_extended(pod_class, place, taken_extended)
                                     : (unsigned)ELIGIBLE_FITS;
}

/* ---- volumes ---- */

static unsigned judge_volumes(struct eligible *eligible, const struct pod_class *pod_class,
                              size_t slot)
{
    const struct kube_node *node = eligible->places[slot].node;
    struct nodeselector_node subject = subject_of(node);

    for (unsigned i = 0; i < pod_class->volume_count; i++)
        if (!nodeselector_matches(pod_class->volumes[i], &subject))
            return ELIGIBLE_VOLUME_NODE;
    for (unsigned i = 0; i < pod_class->selected_count; i++)
        if (strcmp(pod_class->selected[i], node->object.name) != 0)
            return ELIGIBLE_VOLUME_CLASS;
    for (unsigned i = 0; i < pod_class->class_count; i++)
        if (!nodeselector_matches(pod_class->classes[i], &subject))
            return ELIGIBLE_VOLUME_CLASS;
    if (pod_class->claim_count > 0 && !eligible_static_pick(eligible, pod_class, node, NULL, 0))
        return ELIGIBLE_VOLUME_CLASS;
    return ELIGIBLE_FITS;
}

/* ---- the result ---- */

static unsigned judge(struct eligible *eligible, const struct pod_class *pod_class, size_t slot,
                      const struct filter_result *so_far)
{
    const struct eligible_place *place = &eligible->places[slot];
    unsigned code;

    if (pod_class->trouble)
        return ELIGIBLE_TROUBLE;
    if (!so_far->tolerated)
        return ELIGIBLE_TAINTS;
    if (!so_far->matches)
        return ELIGIBLE_AFFINITY;
    if (!has_free_ports(pod_class, place))
        return ELIGIBLE_PORTS;
    if (place->node->pods > 0 && place->pods >= place->node->pods)
        return ELIGIBLE_PODS;
    code = short_of(pod_class, place, &place->of_others, place->others_extended);
    return code == ELIGIBLE_FITS ? judge_volumes(eligible, pod_class, slot) : code;
}

struct filter_result eligible_judge(struct eligible *eligible, const struct pod_class *pod_class,
                                    size_t slot)
{
    const struct eligible_place *place = &eligible->places[slot];
    struct filter_result result = { .code = ELIGIBLE_FREE_SLOT };

    if (!place->node)
        return result;
    result.lent = place->lent;
    result.tolerated = tolerates_all(eligible, pod_class, place->node);
    result.matches = matches_labels(pod_class, place->node);
    result.code = (uint8_t)judge(eligible, pod_class, slot, &result);
    return result;
}

/* ---- at bind ---- */

/* A pod whose containers have all ended takes nothing, though it may still be listed. */
static bool takes(const struct kube_pod *other, const struct kube_pod *pod)
{
    return strcmp(other->object.uid, pod->object.uid) != 0 &&
           !(other->object.deleted_us && kube_pod_is_terminated(other));
}

unsigned eligible_judge_now(struct eligible *eligible, const struct pod_class *pod_class,
                            const struct kube_pod *pod, size_t slot)
{
    const struct eligible_place *place = &eligible->places[slot];
    struct eligible_walk walk = eligible_pods_on(eligible, place->node->object.name);
    int64_t extended[KUBE_MAX_RESOURCES] = { 0 };
    struct kube_requests taken = { 0 };
    const struct kube_pod *other;

    while ((other = eligible_next_pod(&walk)) != NULL)
        if (takes(other, pod))
            eligible_add_up(&place->node->extended, &other->requests, &taken, extended);
    return short_of(pod_class, place, &taken, extended);
}
