/* pod_class.c - all that decides where a pod may run, under a key; and its set of nodes.
 *
 * `fits` says what a node by itself means for a class, in the order of Kubernetes' scheduler: the
 * first objection counts. What pods of our own scheduler request is left out; only a pod that is
 * about to be bound is held against it, as the kubelet will do.
 *
 * Holds   pods with the same key have the same set; a result is the one that judging the node now
 *         would give, once the class has seen the last change; texts are written when asked for. */
#include "filter/filter_private.h"

#include "base/mem.h"
#include "codec/hostlist.h"

#include <string.h>

enum {
    MAX_WHY = 4096,
    CODES = UINT8_MAX + 1,
};

/* ---- words ---- */

static const char *const words[] = {
    [FILTER_TAINTS] = "node(s) had untolerated taint(s)",
    [FILTER_AFFINITY] = "node(s) didn't match Pod's node affinity/selector",
    [FILTER_PORTS] = "node(s) didn't have free ports for the requested pod ports",
    [FILTER_PODS] = "Too many pods",
    [FILTER_DEVICE_OUT] = "node(s) would give a device that is tainted or gone",
    [FILTER_CPU] = "Insufficient cpu",
    [FILTER_MEMORY_SHORT] = "Insufficient memory",
    [FILTER_EPHEMERAL] = "Insufficient ephemeral-storage",
    [FILTER_VOLUME_NODE] = "node(s) didn't match PersistentVolume's node affinity",
    [FILTER_VOLUME_CLASS] = "node(s) didn't find available persistent volumes to bind",
    [FILTER_SPREAD] = "node(s) didn't match pod topology spread constraints",
    [FILTER_SPREAD_LABEL] =
        "node(s) didn't match pod topology spread constraints (missing required label)",
    [FILTER_POD_AFFINITY] = "node(s) didn't match pod affinity rules",
    [FILTER_POD_ANTI_AFFINITY] = "node(s) didn't match pod anti-affinity rules",
    [FILTER_ANTI_AFFINITY_OF_OTHERS] = "node(s) didn't satisfy existing pods anti-affinity rules",
};

void pod_class_words(const struct pod_class *pod_class, unsigned code, struct buf *out)
{
    const struct kube_amounts *extended = &pod_class->pod->requests.extended;

    if (code == FILTER_NEED)
        buf_add_text(out, pod_class->need);
    else if (code == FILTER_TROUBLE)
        buf_add_text(out, pod_class->trouble);
    else if (code >= FILTER_EXTENDED && code - FILTER_EXTENDED < extended->count)
        buf_printf(out, "Insufficient %s", extended->at[code - FILTER_EXTENDED].name);
    else
        buf_add_text(out, words[code]);
}

/* ---- the key ---- */

/* These taints say how the node is just now, which passes: they exclude nothing. */
static bool taint_passes(const char *key)
{
    return strcmp(key, "node.kubernetes.io/not-ready") == 0 ||
           strcmp(key, "node.kubernetes.io/unreachable") == 0 ||
           strcmp(key, "node.kubernetes.io/unschedulable") == 0;
}

static void key_number(struct buf *key, int64_t number)
{
    buf_add(key, &number, sizeof(number));
}

/* With its NUL, which no text of Kubernetes holds. */
static void key_text(struct buf *key, const char *text)
{
    buf_add(key, text, strlen(text) + 1);
}

static const char *need_of(const struct filter *filter, const struct kube_pod *pod)
{
    return filter->hooks.need_of ? filter->hooks.need_of(filter->hooks.context, pod) : NULL;
}

static bool needs_device(const struct filter *filter, const struct kube_pod *pod)
{
    return filter->hooks.needs_device && filter->hooks.needs_device(filter->hooks.context, pod);
}

/* True: rules of bound pods are about this one. */
static bool write_key(struct filter *filter, const struct kube_pod *pod,
                      const struct pod_rules *rules)
{
    const struct kube_amounts *extended = &pod->requests.extended;
    const struct kube_rare *rare = pod->rare;
    struct buf *key = &filter->key;
    const char *need = need_of(filter, pod);

    buf_clear(key);
    key_text(key, need ? need : "");
    key_number(key, needs_device(filter, pod));
    key_number(key, pod->requests.cpu_milli);
    key_number(key, pod->requests.memory);
    key_number(key, pod->requests.ephemeral);
    key_number(key, extended->count);
    for (unsigned i = 0; i < extended->count; i++) {
        key_text(key, extended->at[i].name);
        key_number(key, extended->at[i].amount);
    }
    for (unsigned i = 0; i < pod->toleration_count; i++) {
        const struct kube_toleration *toleration = &pod->tolerations[i];

        if (toleration->other || (toleration->key[0] && taint_passes(toleration->key)))
            continue;
        buf_add_char(key, (char)('a' + toleration->effect));
        buf_add_char(key, toleration->exists ? 'e' : '=');
        key_text(key, toleration->key);
        key_text(key, toleration->value);
    }
    key_text(key, "");
    key_number(key, pod->node_selector.count);
    for (unsigned i = 0; i < pod->node_selector.count; i++) {
        key_text(key, pod->node_selector.at[i].key.at);
        key_text(key, pod->node_selector.at[i].value.at);
    }
    if (rare) {
        key_text(key, rare->node_affinity);
        key_number(key, rare->port_count);
        for (unsigned i = 0; i < rare->port_count; i++) {
            key_number(key, rare->ports[i].port);
            key_text(key, rare->ports[i].protocol);
            key_text(key, rare->ports[i].ip);
        }
        volume_rules_key(filter, pod, key);
        key_text(key, "");
    }
    return pod_rules_key(filter, pod, rules, key);
}

/* ---- making one ---- */

bool filter_read_selector(struct arena *arena, const char *text, const struct nodeselector **ret,
                          struct err *err)
{
    auto_json_doc struct json_doc *doc = NULL;

    return json_parse(str_of(text), FILTER_MAX_TEXT, &doc, err) == 0 &&
           nodeselector_from_json(arena, json_root(doc), ret, err) == 0;
}

static struct pod_class *new_class(struct filter *filter, const struct kube_pod *pod,
                                   const struct pod_rules *rules, bool is_avoided)
{
    const struct kube_amounts *extended = &pod->requests.extended;
    struct pod_class *pod_class = mem_alloc(sizeof(*pod_class));
    const struct filter_hooks *hooks = &filter->hooks;
    struct str key = buf_str(&filter->key);
    struct err err = { 0 };

    arena_init(&pod_class->arena, FILTER_MEMORY);
    (void)kube_object_ref(&pod->object);
    pod_class->pod = pod;
    pod_class->key = (struct str){ arena_strndup(&pod_class->arena, key.at, key.len), key.len };
    pod_class->number = ++filter->last_number;
    pod_class->text_stale = true;
    pod_class->rules = rules;
    pod_class->is_avoided = is_avoided;
    pod_class->need = need_of(filter, pod);
    pod_class->needs_device = needs_device(filter, pod);
    buf_init(&pod_class->excluded, HOSTLIST_MAX_TEXT);
    buf_init(&pod_class->why, MAX_WHY);
    for (unsigned i = 0; hooks->ignores_resource && i < extended->count; i++)
        if (hooks->ignores_resource(hooks->context, extended->at[i].name))
            pod_class->ignored |= UINT64_C(1) << i;
    if (filter->key.overflowed)
        pod_class->trouble = "the pod says more about its nodes than can be read";
    if (pod->rare && pod->rare->node_affinity[0] &&
        !filter_read_selector(&pod_class->arena, pod->rare->node_affinity, &pod_class->affinity,
                              &err))
        pod_class->trouble =
            arena_printf(&pod_class->arena, "the pod's node affinity cannot be read: %s", err.text);
    pod_class_setup_volumes(filter, pod_class);
    if (rules) {
        pod_class_setup_counts(filter, pod_class);
        pod_class->trouble = rules->trouble ? rules->trouble : pod_class->trouble;
    }
    return pod_class;
}

void pod_class_free(void *value)
{
    struct pod_class *pod_class = value;

    for (unsigned i = 0; i < pod_class->count_count; i++) {
        list_remove(&pod_class->counts[i].link);
        mem_free(pod_class->counts[i].in);
    }
    for (unsigned i = 0; i < pod_class->claim_count; i++)
        kube_object_unref(&pod_class->claims[i].claim->object);
    if (pod_class->result != pod_class->fixed)
        mem_free(pod_class->result);
    mem_free(pod_class->fixed);
    buf_done(&pod_class->excluded);
    buf_done(&pod_class->why);
    kube_object_unref(&pod_class->pod->object);
    arena_done(&pod_class->arena);
    mem_free(pod_class);
}

/* ---- what a node says ---- */

static bool is_tolerated(const struct filter *filter, const struct kube_pod *pod,
                         const struct kube_taint *taint)
{
    const struct filter_hooks *hooks = &filter->hooks;

    if ((taint->effect != KUBE_NO_SCHEDULE && taint->effect != KUBE_NO_EXECUTE) ||
        (hooks->ignores_taint && hooks->ignores_taint(hooks->context, taint)))
        return true;
    for (unsigned i = 0; i < pod->toleration_count; i++)
        if (kube_tolerates(&pod->tolerations[i], taint))
            return true;
    return taint_passes(taint->key);
}

static bool matches_labels(const struct pod_class *pod_class,
                           const struct nodeselector_node *subject)
{
    const struct kube_pairs *wanted = &pod_class->pod->node_selector;
    struct str value;

    for (unsigned i = 0; i < wanted->count; i++)
        if (!subject->labels.lookup(subject->labels.data, wanted->at[i].key, &value) ||
            !str_eq(value, wanted->at[i].value))
            return false;
    return !pod_class->affinity || nodeselector_matches(pod_class->affinity, subject);
}

bool filter_ports_collide(const struct kube_pod *a, const struct kube_pod *b)
{
    for (unsigned i = 0; a->rare && b->rare && i < a->rare->port_count; i++)
        for (unsigned j = 0; j < b->rare->port_count; j++) {
            const struct kube_port *one = &a->rare->ports[i], *other = &b->rare->ports[j];
            bool any = !one->ip[0] || strcmp(one->ip, "0.0.0.0") == 0 || !other->ip[0] ||
                       strcmp(other->ip, "0.0.0.0") == 0;

            if (one->port == other->port && strcmp(one->protocol, other->protocol) == 0 &&
                (any || strcmp(one->ip, other->ip) == 0))
                return true;
        }
    return false;
}

static bool has_free_ports(const struct filter *filter, const struct kube_pod *pod,
                           const struct kube_node *node)
{
    struct pods_walk walk;
    const struct kube_pod *other;

    if (!pod->rare || pod->rare->port_count == 0)
        return true;
    walk = filter_pods_on(filter, node->object.name);
    while ((other = filter_next_pod(&walk)) != NULL)
        if (filter_ports_collide(pod, other))
            return false;
    return true;
}

/* A node that has not said how much cpu, memory or pods it has is not known to be short of it. */
static unsigned short_of(const struct pod_class *pod_class, const struct kube_node *node,
                         const struct kube_requests *taken, const int64_t *taken_extended)
{
    const struct kube_requests *needs = &pod_class->pod->requests;
    const struct kube_amounts *has = &node->extended;

    if (needs->cpu_milli > 0 && node->cpu_milli > 0 &&
        needs->cpu_milli > node->cpu_milli - taken->cpu_milli)
        return FILTER_CPU;
    if (needs->memory > 0 && node->memory > 0 && needs->memory > node->memory - taken->memory)
        return FILTER_MEMORY_SHORT;
    if (needs->ephemeral > 0 && needs->ephemeral > node->ephemeral - taken->ephemeral)
        return FILTER_EPHEMERAL;
    for (unsigned i = 0; i < needs->extended.count; i++) {
        unsigned at = 0;

        while (at < has->count && strcmp(has->at[at].name, needs->extended.at[i].name) != 0)
            at++;
        if (at == has->count && pod_class->ignored >> i & 1)
            continue;
        if (needs->extended.at[i].amount > 0 &&
            (at == has->count ||
             needs->extended.at[i].amount > has->at[at].amount - taken_extended[at]))
            return FILTER_EXTENDED + i;
    }
    return FILTER_FITS;
}

static unsigned judge_volumes(struct filter *filter, const struct pod_class *pod_class,
                              const struct kube_node *node, const struct nodeselector_node *subject)
{
    for (unsigned i = 0; i < pod_class->volume_count; i++)
        if (!nodeselector_matches(pod_class->volumes[i], subject))
            return FILTER_VOLUME_NODE;
    for (unsigned i = 0; i < pod_class->selected_count; i++)
        if (strcmp(pod_class->selected[i], node->object.name) != 0)
            return FILTER_VOLUME_CLASS;
    for (unsigned i = 0; i < pod_class->topology_count; i++)
        if (!nodeselector_matches(pod_class->topologies[i], subject))
            return FILTER_VOLUME_CLASS;
    return pod_class->claim_count == 0 || pod_class_pick_volumes(filter, pod_class, node, NULL, 0)
               ? (unsigned)FILTER_FITS
               : (unsigned)FILTER_VOLUME_CLASS;
}

static struct filter_result fits(struct filter *filter, const struct pod_class *pod_class,
                                 const struct node_slot *slot)
{
    const struct kube_node *node = slot->node;
    const struct kube_pod *pod = pod_class->pod;
    struct filter_result result = { .code = FILTER_FREE_SLOT, .tolerated = true };
    struct nodeselector_node subject;
    unsigned code;

    if (!node)
        return result;
    subject = filter_subject(node);
    result.named = slot->name != NULL;
    result.matches = matches_labels(pod_class, &subject);
    for (unsigned i = 0; result.tolerated && i < node->taint_count; i++)
        result.tolerated = is_tolerated(filter, pod, &node->taints[i]);
    if (pod_class->trouble)
        code = FILTER_TROUBLE;
    else if (!result.tolerated)
        code = FILTER_TAINTS;
    else if (!result.matches)
        code = FILTER_AFFINITY;
    else if (!has_free_ports(filter, pod, node))
        code = FILTER_PORTS;
    else if (node->pods > 0 && slot->pods >= node->pods)
        code = FILTER_PODS;
    else if (pod_class->need && !filter->hooks.has_need(filter->hooks.context, node))
        code = FILTER_NEED;
    else
        code = short_of(pod_class, node, &slot->of_others, slot->others_extended);
    if (code == FILTER_FITS)
        code = judge_volumes(filter, pod_class, node, &subject);
    result.code = (uint8_t)code;
    result.device_out = pod_class->needs_device && result.named &&
                        filter->hooks.is_next_device_out(filter->hooks.context, node);
    return result;
}

/* A pod whose containers have all ended takes nothing, though it may still be listed. */
unsigned pod_class_fits_now(struct filter *filter, const struct pod_class *pod_class,
                            const struct kube_pod *pod, int slot)
{
    const struct kube_node *node = filter->slots[slot].node;
    struct pods_walk walk = filter_pods_on(filter, node->object.name);
    int64_t extended[KUBE_MAX_RESOURCES] = { 0 };
    struct kube_requests taken = { 0 };
    const struct kube_pod *other;

    while ((other = filter_next_pod(&walk)) != NULL)
        if (strcmp(other->object.uid, pod->object.uid) != 0 &&
            !(other->object.deleted_us && kube_pod_is_terminated(other)))
            filter_add_up(&node->extended, &other->requests, &taken, extended);
    return short_of(pod_class, node, &taken, extended);
}

/* ---- results ---- */

static bool looks_at_pods(const struct pod_class *pod_class)
{
    return pod_class->count_count > 0 || pod_class->is_avoided;
}

static bool same_result(struct filter_result a, struct filter_result b)
{
    return a.code == b.code && a.named == b.named && a.device_out == b.device_out;
}

/* For a pod that has no node yet. */
static unsigned code_for_new(struct filter_result result)
{
    return result.code == FILTER_FITS && result.device_out ? FILTER_DEVICE_OUT : result.code;
}

static void fit_arrays(const struct filter *filter, struct pod_class *pod_class)
{
    size_t from = pod_class->capacity, to = filter->capacity, size = sizeof(*pod_class->fixed);

    if (from == to)
        return;
    pod_class->fixed = mem_resize_array(pod_class->fixed, to, size);
    memset(pod_class->fixed + from, 0, (to - from) * size);
    if (looks_at_pods(pod_class)) {
        pod_class->result = mem_resize_array(pod_class->result, to, size);
        memset(pod_class->result + from, 0, (to - from) * size);
    } else {
        pod_class->result = pod_class->fixed;
    }
    pod_class->capacity = to;
}

/* True: some result is another. */
static bool judge_with_pods(struct filter *filter, struct pod_class *pod_class,
                            const struct kube_pod *pod, bool touched)
{
    size_t count = filter->slot_count, size = count * sizeof(*pod_class->result);
    auto_free struct filter_result *before = mem_alloc_array(count + 1, sizeof(*before));

    if (size > 0)
        memcpy(before, pod_class->result, size);
    if (!pod_class_judge_pods(filter, pod_class, pod, touched))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!same_result(before[i], pod_class->result[i]))
            return true;
    return false;
}

/* Added up, so that the slot of a node makes no difference. */
static uint64_t mix(uint64_t name_hash, unsigned code)
{
    uint64_t bits =
        (name_hash ^ code * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);

    return bits ^ bits >> 31;
}

static void refresh(struct filter *filter, struct pod_class *pod_class, const struct kube_pod *pod)
{
    bool judges_all = pod_class->seen == 0 ||
                      (pod_class->claim_count > 0 && filter->volumes_changed > pod_class->seen);
    bool looks_at_slots = judges_all || filter->slots_changed > pod_class->seen;
    bool with_pods = looks_at_pods(pod_class), touched = false;
    bool differs = filter->names_changed > pod_class->seen;

    if (pod_class->seen == filter->sequence)
        return;
    fit_arrays(filter, pod_class);
    for (size_t i = 0; looks_at_slots && i < filter->slot_count; i++) {
        const struct node_slot *slot = &filter->slots[i];
        struct filter_result next;

        if (!judges_all && slot->changed <= pod_class->seen)
            continue;
        next = fits(filter, pod_class, slot);
        touched = true;
        differs |= !with_pods && !same_result(pod_class->fixed[i], next);
        pod_class->fixed[i] = next;
    }
    if (with_pods)
        differs |= judge_with_pods(filter, pod_class, pod, touched);
    if (differs) {
        pod_class->text_stale = true;
        pod_class->fit = 0;
        pod_class->hash = 0;
        for (size_t i = 0; i < filter->slot_count; i++)
            if (pod_class->result[i].named) {
                unsigned code = code_for_new(pod_class->result[i]);

                pod_class->fit += code == FILTER_FITS;
                pod_class->hash += mix(filter->slots[i].name_hash, code);
            }
    }
    pod_class->seen = filter->sequence;
}

/* Classes and rules are not kept for ever: when there are too many, those in use are made again. */
static void forget_if_many(struct filter *filter)
{
    if (filter->classes.count < FILTER_MAX_CLASSES && filter->rules.count <= filter->max_rules)
        return;
    map_clear(&filter->classes); /* they use rules */
    map_clear(&filter->rules);
    filter->holders_stale = filter->has_forgotten = true;
}

void filter_resources_changed(struct filter *filter)
{
    map_clear(&filter->classes);
    filter_touch(filter, FILTER_NO_SLOT);
}

struct pod_class *pod_class_get(struct filter *filter, const struct kube_pod *pod)
{
    const struct pod_rules *rules;
    struct pod_class *pod_class;
    bool is_avoided;

    forget_if_many(filter);
    filter_count_holders(filter);
    rules = pod_rules_of(filter, pod);
    is_avoided = write_key(filter, pod, rules);
    pod_class = map_get(&filter->classes, buf_str(&filter->key));
    if (!pod_class) {
        pod_class = new_class(filter, pod, rules, is_avoided);
        filter_put(&filter->classes, pod_class->key, pod_class);
    }
    refresh(filter, pod_class, pod);
    return pod_class;
}

void pod_class_write(struct filter *filter, struct pod_class *pod_class)
{
    unsigned counts[CODES] = { 0 }, total = 0;
    auto_free struct str *names = NULL;
    size_t excluded = 0;

    if (!pod_class->text_stale)
        return;
    names = mem_alloc_array(filter->slot_count + 1, sizeof(*names));
    for (size_t i = 0; i < filter->slot_count; i++) {
        unsigned code = code_for_new(pod_class->result[i]);

        if (!pod_class->result[i].named)
            continue;
        total++;
        counts[code]++;
        if (code != FILTER_FITS)
            names[excluded++] = str_of(filter->slots[i].name);
    }
    buf_clear(&pod_class->excluded);
    (void)hostlist_fold(names, excluded, &pod_class->excluded, NULL); /* all have valid names */
    if (pod_class->excluded.overflowed)
        buf_clear(&pod_class->excluded); /* half a list means other nodes; misfits show at bind */
    buf_clear(&pod_class->why);
    for (unsigned code = FILTER_FITS + 1; code < CODES; code++) {
        if (counts[code] == 0)
            continue;
        buf_add_text(&pod_class->why, pod_class->why.len > 0 ? ", " : "");
        if (code != FILTER_TROUBLE)
            buf_printf(&pod_class->why, "%u ", counts[code]);
        pod_class_words(pod_class, code, &pod_class->why);
    }
    pod_class->text_stale = false;
    pod_class->set = (struct filter_set){ .excluded = buf_text(&pod_class->excluded),
                                          .fit = counts[FILTER_FITS],
                                          .total = total,
                                          .why = buf_text(&pod_class->why) };
}
