/* eligible_class.c - all that decides where a pod may run, under a key; and its set of nodes.
 *
 * `fits` says what a node by itself means for a class, in the order of Kubernetes' scheduler, and
 * the first objection counts. What our own pods take of cpu, memory and devices is left out of it
 * (Slurm counts that); only a pod that is about to be bound is held against it, as the kubelet will
 * do.
 *
 * Holds   pods with the same key have the same set; a result is the one that judging the node now
 *         would give, once the class has seen the last change; texts are written when asked for. */
#include "bridge/eligible_private.h"

#include "base/mem.h"
#include "bridge/device_table.h"
#include "bridge/names.h"
#include "codec/hostlist.h"

#include <assert.h>
#include <string.h>

enum {
    MAX_RULE_TEXT = 4 << 20,
    MAX_WHY = 4096,
    CODES = UINT8_MAX + 1,
};

/* ---- words ---- */

static const char *const words[] = {
    [ELIGIBLE_TAINTS] = "node(s) had untolerated taint(s)",
    [ELIGIBLE_AFFINITY] = "node(s) didn't match Pod's node affinity/selector",
    [ELIGIBLE_PORTS] = "node(s) didn't have free ports for the requested pod ports",
    [ELIGIBLE_PODS] = "Too many pods",
    [ELIGIBLE_CPU] = "Insufficient cpu",
    [ELIGIBLE_MEMORY_SHORT] = "Insufficient memory",
    [ELIGIBLE_EPHEMERAL] = "Insufficient ephemeral-storage",
    [ELIGIBLE_VOLUME_NODE] = "node(s) didn't match PersistentVolume's node affinity",
    [ELIGIBLE_VOLUME_CLASS] = "node(s) didn't find available persistent volumes to bind",
    [ELIGIBLE_SPREAD] = "node(s) didn't match pod topology spread constraints",
    [ELIGIBLE_SPREAD_LABEL] =
        "node(s) didn't match pod topology spread constraints (missing required label)",
    [ELIGIBLE_ATTRACTED] = "node(s) didn't match pod affinity rules",
    [ELIGIBLE_AVOIDS] = "node(s) didn't match pod anti-affinity rules",
    [ELIGIBLE_REPELLED] = "node(s) didn't satisfy existing pods anti-affinity rules",
};

static void write_words(const struct pod_class *pod_class, unsigned code, struct buf *out)
{
    const struct kube_amounts *extended = &pod_class->pod->requests.extended;

    if (code == ELIGIBLE_TROUBLE)
        buf_add_text(out, pod_class->trouble);
    else if (code >= ELIGIBLE_EXTENDED && code - ELIGIBLE_EXTENDED < extended->count)
        buf_printf(out, "Insufficient %s", extended->at[code - ELIGIBLE_EXTENDED].name);
    else
        buf_add_text(out, words[code]);
}

const char *pod_class_words(const struct pod_class *pod_class, unsigned code, struct arena *arena)
{
    auto_buf struct buf text;

    buf_init(&text, MAX_WHY);
    write_words(pod_class, code, &text);
    return arena_strdup(arena, buf_text(&text));
}

/* ---- the key ---- */

/* The state of the node that these taints show is shown to Slurm by a drain: they exclude nothing.
 */
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

static void write_key(struct eligible *eligible, const struct kube_pod *pod,
                      const struct pod_rules *rules)
{
    const struct kube_amounts *extended = &pod->requests.extended;
    const struct kube_rare *rare = pod->rare;
    struct buf *key = &eligible->key;

    buf_clear(key);
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
        eligible_volumes_key(eligible, pod, key);
        key_text(key, "");
    }
    eligible_pods_key(eligible, pod, rules, key);
}

/* ---- making one ---- */

bool eligible_read_selector(struct arena *arena, const char *text, const struct nodeselector **ret,
                            struct err *err)
{
    auto_json_doc struct json_doc *doc = NULL;

    return json_parse(str_of(text), MAX_RULE_TEXT, &doc, err) == 0 &&
           nodeselector_from_json(arena, json_root(doc), ret, err) == 0;
}

/* Resources that a device class stands for, where the node itself has none. */
static void setup_device_classes(const struct eligible *eligible, struct pod_class *pod_class)
{
    const struct kube_amounts *extended = &pod_class->pod->requests.extended;

    pod_class->by_class =
        arena_alloc_array(&pod_class->arena, extended->count + 1, sizeof(*pod_class->by_class));
    for (unsigned i = 0; i < extended->count; i++)
        pod_class->by_class[i] =
            device_class_of_resource(eligible->caches.device_classes, str_of(extended->at[i].name))
                .len > 0;
}

/* The rules come with a reference, which the class keeps. */
static struct pod_class *new_class(struct eligible *eligible, const struct kube_pod *pod,
                                   struct pod_rules *rules)
{
    struct pod_class *pod_class = mem_alloc(sizeof(*pod_class));
    struct str key = buf_str(&eligible->key);
    struct err err = { 0 };

    arena_init(&pod_class->arena, ELIGIBLE_MEMORY);
    (void)kube_object_ref(&pod->object);
    pod_class->pod = pod;
    pod_class->key = (struct str){ arena_strndup(&pod_class->arena, key.at, key.len), key.len };
    pod_class->number = ++eligible->last_number;
    pod_class->text_stale = true;
    if (eligible->key.overflowed)
        pod_class->trouble = "the pod says more about its nodes than can be read";
    buf_init(&pod_class->excluded, HOSTLIST_MAX_TEXT);
    buf_init(&pod_class->why, MAX_WHY);
    if (pod->rare && pod->rare->node_affinity[0] &&
        !eligible_read_selector(&pod_class->arena, pod->rare->node_affinity, &pod_class->affinity,
                                &err))
        pod_class->trouble =
            arena_printf(&pod_class->arena, "the pod's node affinity cannot be read: %s", err.text);
    eligible_volumes_setup(eligible, pod_class);
    pod_class->rules = rules;
    if (rules && rules->trouble)
        pod_class->trouble = rules->trouble;
    setup_device_classes(eligible, pod_class);
    eligible_pods_setup(eligible, pod_class);
    return pod_class;
}

static void drop_class(struct eligible *eligible, struct pod_class *pod_class)
{
    map_take(&eligible->classes, pod_class->key);
    list_remove(&pod_class->lru);
    eligible_pods_release(eligible, pod_class);
    pod_rules_release(eligible, pod_class->rules);
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

void pod_classes_done(struct eligible *eligible)
{
    list_each (struct pod_class, pod_class, &eligible->lru, lru)
        drop_class(eligible, pod_class);
    map_done(&eligible->classes);
}

/* ---- what a node says ---- */

static bool is_tolerated(const struct eligible *eligible, const struct kube_pod *pod,
                         const struct kube_taint *taint)
{
    if (taint->effect != KUBE_NO_SCHEDULE && taint->effect != KUBE_NO_EXECUTE)
        return true;
    if (strcmp(taint->key, BRIDGE_TAINT) == 0 &&
        strcmp(taint->value, eligible->scheduler_name) == 0)
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

bool eligible_want_one_port(const struct kube_pod *a, const struct kube_pod *b)
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

static bool has_free_ports(const struct eligible *eligible, const struct kube_pod *pod,
                           const struct kube_node *node)
{
    struct pods_walk walk;
    const struct kube_pod *other;

    if (!pod->rare || pod->rare->port_count == 0)
        return true;
    walk = eligible_pods_on(eligible, node->object.name);
    while ((other = eligible_next_pod(&walk)) != NULL)
        if (eligible_want_one_port(pod, other))
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
        return ELIGIBLE_CPU;
    if (needs->memory > 0 && node->memory > 0 && needs->memory > node->memory - taken->memory)
        return ELIGIBLE_MEMORY_SHORT;
    if (needs->ephemeral > 0 && needs->ephemeral > node->ephemeral - taken->ephemeral)
        return ELIGIBLE_EPHEMERAL;
    for (unsigned i = 0; i < needs->extended.count; i++) {
        unsigned at = 0;

        while (at < has->count && strcmp(has->at[at].name, needs->extended.at[i].name) != 0)
            at++;
        if (at == has->count && pod_class->by_class[i])
            continue; /* Slurm counts these */
        if (needs->extended.at[i].amount > 0 &&
            (at == has->count ||
             needs->extended.at[i].amount > has->at[at].amount - taken_extended[at]))
            return ELIGIBLE_EXTENDED + i;
    }
    return ELIGIBLE_FITS;
}

static unsigned judge_volumes(struct eligible *eligible, const struct pod_class *pod_class,
                              const struct kube_node *node, const struct nodeselector_node *subject)
{
    for (unsigned i = 0; i < pod_class->volume_count; i++)
        if (!nodeselector_matches(pod_class->volumes[i], subject))
            return ELIGIBLE_VOLUME_NODE;
    for (unsigned i = 0; i < pod_class->selected_count; i++)
        if (strcmp(pod_class->selected[i], node->object.name) != 0)
            return ELIGIBLE_VOLUME_CLASS;
    for (unsigned i = 0; i < pod_class->topology_count; i++)
        if (!nodeselector_matches(pod_class->topologies[i], subject))
            return ELIGIBLE_VOLUME_CLASS;
    return pod_class->claim_count == 0 || eligible_pick_volumes(eligible, pod_class, node, NULL, 0)
               ? (unsigned)ELIGIBLE_FITS
               : (unsigned)ELIGIBLE_VOLUME_CLASS;
}

static struct filter_result fits(struct eligible *eligible, const struct pod_class *pod_class,
                                 const struct node_slot *slot)
{
    const struct kube_node *node = slot->node;
    const struct kube_pod *pod = pod_class->pod;
    struct filter_result result = { .code = ELIGIBLE_FREE_SLOT, .tolerated = true };
    struct nodeselector_node subject;
    unsigned code;

    if (!node)
        return result;
    subject =
        (struct nodeselector_node){ str_of(node->object.name), kube_labels(&node->object.labels) };
    result.lent = slot->lent;
    result.matches = matches_labels(pod_class, &subject);
    for (unsigned i = 0; result.tolerated && i < node->taint_count; i++)
        result.tolerated = is_tolerated(eligible, pod, &node->taints[i]);
    if (pod_class->trouble)
        code = ELIGIBLE_TROUBLE;
    else if (!result.tolerated)
        code = ELIGIBLE_TAINTS;
    else if (!result.matches)
        code = ELIGIBLE_AFFINITY;
    else if (!has_free_ports(eligible, pod, node))
        code = ELIGIBLE_PORTS;
    else if (node->pods > 0 && slot->pods >= node->pods)
        code = ELIGIBLE_PODS;
    else
        code = short_of(pod_class, node, &slot->of_others, slot->others_extended);
    if (code == ELIGIBLE_FITS)
        code = judge_volumes(eligible, pod_class, node, &subject);
    result.code = (uint8_t)code;
    return result;
}

/* A pod whose containers have all ended takes nothing, though it may still be listed. */
unsigned pod_class_fits_now(struct eligible *eligible, const struct pod_class *pod_class,
                            const struct kube_pod *pod, int slot)
{
    const struct kube_node *node = eligible->slots[slot].node;
    struct pods_walk walk = eligible_pods_on(eligible, node->object.name);
    int64_t extended[KUBE_MAX_RESOURCES] = { 0 };
    struct kube_requests taken = { 0 };
    const struct kube_pod *other;

    while ((other = eligible_next_pod(&walk)) != NULL)
        if (strcmp(other->object.uid, pod->object.uid) != 0 &&
            !(other->object.deleted_us && kube_pod_is_terminated(other)))
            eligible_add_up(&node->extended, &other->requests, &taken, extended);
    return short_of(pod_class, node, &taken, extended);
}

/* ---- results ---- */

static bool looks_at_pods(const struct pod_class *pod_class)
{
    return pod_class->tally_count > 0 || pod_class->repelled_count > 0;
}

static bool same_result(struct filter_result a, struct filter_result b)
{
    return a.code == b.code && a.lent == b.lent;
}

static void fit_arrays(const struct eligible *eligible, struct pod_class *pod_class)
{
    size_t from = pod_class->capacity, to = eligible->capacity, size = sizeof(*pod_class->fixed);

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
static bool judge_with_pods(struct eligible *eligible, struct pod_class *pod_class, bool touched)
{
    size_t count = eligible->slot_count, size = count * sizeof(*pod_class->result);
    auto_free struct filter_result *before = mem_alloc_array(count + 1, sizeof(*before));

    if (size > 0)
        memcpy(before, pod_class->result, size);
    if (!eligible_pods_judge(eligible, pod_class, touched))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!same_result(before[i], pod_class->result[i]))
            return true;
    return false;
}

static void refresh(struct eligible *eligible, struct pod_class *pod_class)
{
    bool judges_all = pod_class->seen == 0 ||
                      (pod_class->claim_count > 0 && eligible->volumes_changed > pod_class->seen);
    uint64_t unseen = eligible->logged - pod_class->seen_log;
    bool walks_all = judges_all || unseen > ELIGIBLE_LOG;
    bool with_pods = looks_at_pods(pod_class), touched = false, differs = false;

    if (pod_class->seen == eligible->sequence)
        return;
    fit_arrays(eligible, pod_class);
    for (size_t k = 0; k < (walks_all ? eligible->slot_count : unseen); k++) {
        size_t i = walks_all ? k : eligible->log[(pod_class->seen_log + k) % ELIGIBLE_LOG];
        const struct node_slot *slot = &eligible->slots[i];
        struct filter_result next;

        if (!judges_all && slot->changed <= pod_class->seen)
            continue;
        next = fits(eligible, pod_class, slot);
        touched = true;
        differs |=
            slot->born > pod_class->seen || (!with_pods && !same_result(pod_class->fixed[i], next));
        pod_class->fixed[i] = next;
    }
    if (with_pods)
        differs |= judge_with_pods(eligible, pod_class, touched);
    if (differs) {
        pod_class->text_stale = true;
        pod_class->changed = eligible->sequence;
    }
    pod_class->seen = eligible->sequence;
    pod_class->seen_log = eligible->logged;
}

struct pod_class *pod_class_get(struct eligible *eligible, const struct kube_pod *pod)
{
    struct pod_rules *rules;
    struct pod_class *pod_class;

    eligible_count_owners(eligible);
    rules = pod_rules_get(eligible, pod);
    write_key(eligible, pod, rules);
    pod_class = map_get(&eligible->classes, buf_str(&eligible->key));
    if (pod_class) {
        pod_rules_release(eligible, rules);
        list_remove(&pod_class->lru);
    } else {
        pod_class = new_class(eligible, pod, rules);
        eligible_put(&eligible->classes, pod_class->key, pod_class);
    }
    list_push_back(&eligible->lru, &pod_class->lru);
    if (eligible->classes.count > ELIGIBLE_MAX_CLASSES) {
        struct pod_class *oldest = list_item(list_first(&eligible->lru), struct pod_class, lru);

        eligible->forgot_rules |= oldest->tally_count > 0;
        drop_class(eligible, oldest);
    }
    refresh(eligible, pod_class);
    return pod_class;
}

void pod_class_write(struct eligible *eligible, struct pod_class *pod_class)
{
    unsigned counts[CODES] = { 0 }, total = 0;
    auto_free struct str *names = NULL;
    size_t excluded = 0;

    if (!pod_class->text_stale)
        return;
    names = mem_alloc_array(eligible->slot_count + 1, sizeof(*names));
    for (size_t i = 0; i < eligible->slot_count; i++) {
        if (!pod_class->result[i].lent)
            continue;
        total++;
        counts[pod_class->result[i].code]++;
        if (pod_class->result[i].code != ELIGIBLE_FITS)
            names[excluded++] = str_of(eligible->slots[i].slurm_name);
    }
    buf_clear(&pod_class->excluded);
    (void)hostlist_fold(names, excluded, &pod_class->excluded, NULL); /* all have valid names */
    if (pod_class->excluded.overflowed)
        buf_clear(&pod_class->excluded); /* half a list means other nodes; misfits show at bind */
    buf_clear(&pod_class->why);
    for (unsigned code = ELIGIBLE_FITS + 1; code < CODES; code++) {
        if (counts[code] == 0)
            continue;
        buf_add_text(&pod_class->why, pod_class->why.len > 0 ? ", " : "");
        if (code != ELIGIBLE_TROUBLE)
            buf_printf(&pod_class->why, "%u ", counts[code]);
        write_words(pod_class, code, &pod_class->why);
    }
    pod_class->text_stale = false;
    pod_class->set = (struct eligible_set){ .excluded = buf_text(&pod_class->excluded),
                                            .fit = counts[ELIGIBLE_FITS],
                                            .total = total,
                                            .why = buf_text(&pod_class->why) };
}
