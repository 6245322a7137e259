/* eligible_class.c - all that decides where a pod may run, under a key; and its set of nodes.
 *
 * Holds   pods with the same key have the same set; a result is the one that judging the place now
 *         would give, once the class has seen the last change; texts are written when asked for.
 *         There are at most ELIGIBLE_MAX_CLASSES, and they take about MAX_BYTES at most (or
 *         there is just one). */
#include "bridge/eligible_private.h"

#include "base/mem.h"
#include "bridge/names.h"
#include "codec/hostlist.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum {
    MAX_KEY = 16 << 20,
    MAX_RULE_TEXT = 4 << 20,
    MAX_BYTES = 32 << 20,
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

static bool is_extended(const struct pod_class *pod_class, unsigned code)
{
    return code >= ELIGIBLE_EXTENDED &&
           code - ELIGIBLE_EXTENDED < pod_class->requests.extended.count;
}

static void write_words(const struct pod_class *pod_class, unsigned code, struct buf *out)
{
    if (code == ELIGIBLE_TROUBLE)
        buf_add_text(out, pod_class->trouble);
    else if (is_extended(pod_class, code))
        buf_printf(out, "Insufficient %s",
                   pod_class->requests.extended.at[code - ELIGIBLE_EXTENDED].name);
    else
        buf_add_text(out, words[code]);
}

/* ---- the key ---- */

static void key_number(struct buf *key, int64_t number)
{
    buf_add(key, &number, sizeof(number));
}

/* With its NUL, which no text of Kubernetes holds. */
static void key_text(struct buf *key, const char *text)
{
    buf_add(key, text, strlen(text) + 1);
}

static void key_requests(const struct kube_pod *pod, struct buf *key)
{
    const struct kube_amounts *extended = &pod->requests.extended;

    key_number(key, pod->requests.cpu_milli);
    key_number(key, pod->requests.memory);
    key_number(key, pod->requests.ephemeral);
    key_number(key, extended->count);
    for (unsigned i = 0; i < extended->count; i++) {
        key_text(key, extended->at[i].name);
        key_number(key, extended->at[i].amount);
    }
}

/* Every pod tolerates some taints for a while that exclude nothing anyway. */
static bool matters(const struct kube_toleration *toleration)
{
    return !toleration->other && !(toleration->key[0] && eligible_taint_passes(toleration->key));
}

static void key_tolerations(const struct kube_pod *pod, struct buf *key)
{
    for (unsigned i = 0; i < pod->toleration_count; i++) {
        const struct kube_toleration *toleration = &pod->tolerations[i];

        if (!matters(toleration))
            continue;
        buf_add_char(key, (char)('a' + toleration->effect));
        buf_add_char(key, toleration->exists ? 'e' : '=');
        key_text(key, toleration->key);
        key_text(key, toleration->value);
    }
    key_text(key, "");
}

static void key_labels(const struct kube_pod *pod, struct buf *key)
{
    key_number(key, pod->node_selector.count);
    for (unsigned i = 0; i < pod->node_selector.count; i++) {
        key_text(key, pod->node_selector.at[i].key.at);
        key_text(key, pod->node_selector.at[i].value.at);
    }
}

static void key_rare(struct eligible *eligible, const struct kube_pod *pod, struct buf *key)
{
    const struct kube_rare *rare = pod->rare;

    if (!rare)
        return;
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

static void write_key(struct eligible *eligible, const struct kube_pod *pod,
                      const struct eligible_rules *rules)
{
    struct buf *key = &eligible->key;

    buf_clear(key);
    key_requests(pod, key);
    key_tolerations(pod, key);
    key_labels(pod, key);
    key_rare(eligible, pod, key);
    eligible_pods_key(eligible, pod, rules, key);
}

/* ---- making one ---- */

static struct str copy_str(struct arena *arena, struct str text)
{
    return (struct str){ arena_strndup(arena, text.at, text.len), text.len };
}

static void setup_requests(struct pod_class *pod_class, const struct kube_pod *pod)
{
    const struct kube_amounts *from = &pod->requests.extended;
    struct kube_amount *extended =
        arena_alloc_array(&pod_class->arena, from->count + 1, sizeof(*extended));

    for (unsigned i = 0; i < from->count; i++)
        extended[i] = (struct kube_amount){ arena_strdup(&pod_class->arena, from->at[i].name),
                                            from->at[i].amount };
    pod_class->requests = pod->requests;
    pod_class->requests.extended = (struct kube_amounts){ extended, from->count };
}

static void setup_tolerations(struct pod_class *pod_class, const struct kube_pod *pod)
{
    pod_class->tolerations = arena_alloc_array(&pod_class->arena, pod->toleration_count + 1,
                                               sizeof(*pod_class->tolerations));
    for (unsigned i = 0; i < pod->toleration_count; i++) {
        struct kube_toleration *toleration = &pod_class->tolerations[pod_class->toleration_count];

        if (!matters(&pod->tolerations[i]))
            continue;
        *toleration = pod->tolerations[i];
        toleration->key = arena_strdup(&pod_class->arena, toleration->key);
        toleration->value = arena_strdup(&pod_class->arena, toleration->value);
        pod_class->toleration_count++;
    }
}

static void setup_labels(struct pod_class *pod_class, const struct kube_pod *pod)
{
    const struct kube_pairs *from = &pod->node_selector;
    struct kube_pair *pairs = arena_alloc_array(&pod_class->arena, from->count + 1, sizeof(*pairs));

    for (unsigned i = 0; i < from->count; i++)
        pairs[i] = (struct kube_pair){ copy_str(&pod_class->arena, from->at[i].key),
                                       copy_str(&pod_class->arena, from->at[i].value) };
    pod_class->selector = (struct kube_pairs){ pairs, from->count };
}

static void setup_affinity(struct pod_class *pod_class, const char *text)
{
    auto_json_doc struct json_doc *doc = NULL;
    struct err err = { 0 };

    if (!text[0])
        return;
    if (json_parse(str_of(text), MAX_RULE_TEXT, &doc, &err) < 0 ||
        nodeselector_from_json(&pod_class->arena, json_root(doc), &pod_class->affinity, &err) < 0)
        pod_class->trouble =
            arena_printf(&pod_class->arena, "the pod's node affinity cannot be read: %s", err.text);
}

static void setup_rare(struct eligible *eligible, struct pod_class *pod_class,
                       const struct kube_pod *pod)
{
    const struct kube_rare *rare = pod->rare;

    if (!rare)
        return;
    setup_affinity(pod_class, rare->node_affinity);
    pod_class->port_count = rare->port_count;
    pod_class->ports =
        arena_alloc_array(&pod_class->arena, rare->port_count + 1, sizeof(*pod_class->ports));
    for (unsigned i = 0; i < rare->port_count; i++)
        pod_class->ports[i] = eligible_port_of(&rare->ports[i]);
    eligible_volumes_setup(eligible, pod_class, pod);
}

/* The kubelet refuses a pod whose scheduler made no claim for it. */
static void refuse_device_classes(struct pod_class *pod_class)
{
    const struct kube_amounts *extended = &pod_class->requests.extended;
    size_t prefix = strlen(BRIDGE_DEVICE_CLASS);

    for (unsigned i = 0; i < extended->count; i++) {
        const char *name = extended->at[i].name;

        if (extended->at[i].amount <= 0 || strncmp(name, BRIDGE_DEVICE_CLASS, prefix) != 0)
            continue;
        pod_class->trouble =
            arena_printf(&pod_class->arena,
                         "the pod uses DRA device class \"%s\", and the bridge does "
                         "not make resource claims yet",
                         name + prefix);
        pod_class->trouble_passes = false;
    }
}

/* The rules come with a reference, which the class keeps. */
static struct pod_class *new_class(struct eligible *eligible, const struct kube_pod *pod,
                                   struct eligible_rules *rules)
{
    struct pod_class *pod_class = mem_alloc(sizeof(*pod_class));

    arena_init(&pod_class->arena, ELIGIBLE_MEMORY);
    pod_class->key = copy_str(&pod_class->arena, buf_str(&eligible->key));
    pod_class->number = ++eligible->last_number;
    if (eligible->key.overflowed)
        pod_class->trouble = "the pod says more about its nodes than can be read";
    buf_init(&pod_class->excluded, HOSTLIST_MAX_TEXT);
    buf_init(&pod_class->why, MAX_WHY);
    setup_requests(pod_class, pod);
    setup_tolerations(pod_class, pod);
    setup_labels(pod_class, pod);
    setup_rare(eligible, pod_class, pod);
    pod_class->rules = rules;
    if (rules && rules->trouble)
        pod_class->trouble = rules->trouble;
    refuse_device_classes(pod_class);
    eligible_pods_setup(eligible, pod_class, pod);
    return pod_class;
}

/* ---- those that are kept ---- */

static bool looks_at_pods(const struct pod_class *pod_class)
{
    return pod_class->tally_count > 0 || pod_class->repelled_count > 0;
}

/* What makes classes big: a result for each place, and names. */
static size_t bytes_of(const struct pod_class *pod_class)
{
    size_t arrays = looks_at_pods(pod_class) ? 2 : 1;

    return arrays * pod_class->capacity * sizeof(*pod_class->fixed) + pod_class->excluded.cap +
           pod_class->key.len;
}

static void drop_class(struct eligible *eligible, struct pod_class *pod_class)
{
    map_take(&eligible->classes, pod_class->key);
    list_remove(&pod_class->lru);
    eligible->class_bytes -= bytes_of(pod_class);
    eligible_pods_release(eligible, pod_class);
    eligible_rules_release(eligible, pod_class->rules);
    if (pod_class->result != pod_class->fixed)
        mem_free(pod_class->result);
    mem_free(pod_class->fixed);
    buf_done(&pod_class->excluded);
    buf_done(&pod_class->why);
    arena_done(&pod_class->arena);
    mem_free(pod_class);
}

static void make_room(struct eligible *eligible, const struct pod_class *but)
{
    while (eligible->classes.count > ELIGIBLE_MAX_CLASSES ||
           (eligible->class_bytes > MAX_BYTES && eligible->classes.count > 1)) {
        struct pod_class *oldest = list_item(list_first(&eligible->lru), struct pod_class, lru);

        assert(oldest != but); /* it is the newest */
        eligible->forgot_rules |= oldest->tally_count > 0;
        drop_class(eligible, oldest);
    }
}

static void keep_class(struct eligible *eligible, struct pod_class *pod_class)
{
    list_push_back(&eligible->lru, &pod_class->lru);
    eligible->class_bytes += bytes_of(pod_class);
    (void)map_put(&eligible->classes, pod_class->key, pod_class,
                  NULL); /* make_room keeps below its maximum */
    make_room(eligible, pod_class);
}

void pod_classes_init(struct eligible *eligible)
{
    static const struct map_options options = { .max = ELIGIBLE_MAX_CLASSES + 1,
                                                .borrow_keys = true };

    map_init(&eligible->classes, &options);
    list_init(&eligible->lru);
    buf_init(&eligible->key, MAX_KEY);
}

void pod_classes_done(struct eligible *eligible)
{
    list_each (struct pod_class, pod_class, &eligible->lru, lru)
        drop_class(eligible, pod_class);
    map_done(&eligible->classes);
    buf_done(&eligible->key);
}

/* ---- results ---- */

static bool same_result(struct filter_result a, struct filter_result b)
{
    return a.code == b.code && a.lent == b.lent;
}

static void fit_arrays(const struct eligible *eligible, struct pod_class *pod_class)
{
    size_t from = pod_class->capacity, to = eligible->capacity, size = sizeof(*pod_class->fixed);
    bool two = looks_at_pods(pod_class);

    if (from == to)
        return;
    pod_class->fixed = mem_resize_array(pod_class->fixed, to, size);
    memset(pod_class->fixed + from, 0, (to - from) * size);
    if (two) {
        pod_class->result = mem_resize_array(pod_class->result, to, size);
        memset(pod_class->result + from, 0, (to - from) * size);
    } else {
        pod_class->result = pod_class->fixed;
    }
    pod_class->capacity = to;
}

static void note_change(const struct eligible *eligible, struct pod_class *pod_class, bool differs)
{
    if (!differs)
        return;
    pod_class->text_stale = true;
    pod_class->changed = eligible->sequence;
}

static void judge_place(struct eligible *eligible, struct pod_class *pod_class, size_t place)
{
    struct filter_result next = eligible_judge(eligible, pod_class, place);

    note_change(eligible, pod_class,
                eligible->places[place].born > pod_class->seen ||
                    (!looks_at_pods(pod_class) && !same_result(pod_class->fixed[place], next)));
    pod_class->fixed[place] = next;
}

static bool must_judge_all(const struct eligible *eligible, const struct pod_class *pod_class)
{
    return pod_class->seen == 0 || eligible->sequence - pod_class->seen >= ELIGIBLE_LOG;
}

/* Gives whether any place was touched since. */
static bool judge_places(struct eligible *eligible, struct pod_class *pod_class)
{
    bool touched = false;

    if (must_judge_all(eligible, pod_class)) {
        for (size_t i = 0; i < eligible->place_count; i++)
            judge_place(eligible, pod_class, i);
        return true;
    }
    for (uint64_t i = pod_class->seen + 1; i <= eligible->sequence; i++) {
        int place = eligible->log[i % ELIGIBLE_LOG];

        if (place == ELIGIBLE_NO_PLACE)
            continue;
        judge_place(eligible, pod_class, (size_t)place);
        touched = true;
    }
    return touched;
}

static void judge_with_pods(struct eligible *eligible, struct pod_class *pod_class)
{
    size_t size = eligible->place_count * sizeof(*pod_class->result);
    auto_free struct filter_result *before =
        mem_alloc_array(eligible->place_count + 1, sizeof(*before));
    bool differs = false;

    if (size > 0) {
        memcpy(before, pod_class->result, size);
        memcpy(pod_class->result, pod_class->fixed, size);
    }
    eligible_domains_judge(eligible, pod_class);
    for (size_t i = 0; !differs && i < eligible->place_count; i++)
        differs = !same_result(before[i], pod_class->result[i]);
    note_change(eligible, pod_class, differs);
}

static void refresh(struct eligible *eligible, struct pod_class *pod_class)
{
    bool touched;

    if (pod_class->seen == eligible->sequence)
        return;
    eligible->class_bytes -= bytes_of(pod_class);
    fit_arrays(eligible, pod_class);
    eligible->class_bytes += bytes_of(pod_class);
    touched = judge_places(eligible, pod_class);
    if (looks_at_pods(pod_class) && (touched || eligible_pods_changed(pod_class)))
        judge_with_pods(eligible, pod_class);
    pod_class->seen = eligible->sequence;
}

struct pod_class *pod_class_get(struct eligible *eligible, const struct kube_pod *pod)
{
    struct eligible_rules *rules = eligible_rules_get(eligible, pod);
    struct pod_class *pod_class;

    write_key(eligible, pod, rules);
    pod_class = map_get(&eligible->classes, buf_str(&eligible->key));
    if (pod_class) {
        eligible_rules_release(eligible, rules);
        list_remove(&pod_class->lru);
        list_push_back(&eligible->lru, &pod_class->lru);
    } else {
        pod_class = new_class(eligible, pod, rules);
        pod_class->text_stale = true;
        keep_class(eligible, pod_class);
    }
    refresh(eligible, pod_class);
    return pod_class;
}

/* ---- texts ---- */

static void write_why(struct pod_class *pod_class, const unsigned *counts)
{
    buf_clear(&pod_class->why);
    for (unsigned code = ELIGIBLE_FITS + 1; code < CODES; code++) {
        if (counts[code] == 0)
            continue;
        buf_add_text(&pod_class->why, pod_class->why.len > 0 ? ", " : "");
        if (code != ELIGIBLE_TROUBLE)
            buf_printf(&pod_class->why, "%u ", counts[code]);
        write_words(pod_class, code, &pod_class->why);
    }
}

static void write_excluded(const struct eligible *eligible, struct pod_class *pod_class,
                           unsigned count)
{
    auto_free struct str *names = mem_alloc_array((size_t)count + 1, sizeof(*names));
    size_t found = 0;

    for (size_t i = 0; i < eligible->place_count; i++)
        if (pod_class->result[i].lent && pod_class->result[i].code != ELIGIBLE_FITS)
            names[found++] = str_of(eligible->places[i].slurm_name);
    buf_clear(&pod_class->excluded);
    (void)hostlist_fold(names, found, &pod_class->excluded, NULL); /* names were checked: is_lent */
    if (pod_class->excluded.overflowed)
        buf_clear(&pod_class->excluded); /* half a list means other nodes; misfits show at bind */
}

void pod_class_write(struct eligible *eligible, struct pod_class *pod_class)
{
    unsigned counts[CODES] = { 0 }, total = 0;

    if (!pod_class->text_stale)
        return;
    for (size_t i = 0; i < eligible->place_count; i++)
        if (pod_class->result[i].lent) {
            counts[pod_class->result[i].code]++;
            total++;
        }
    eligible->class_bytes -= bytes_of(pod_class);
    write_excluded(eligible, pod_class, total - counts[ELIGIBLE_FITS]);
    eligible->class_bytes += bytes_of(pod_class);
    write_why(pod_class, counts);
    pod_class->text_stale = false;
    pod_class->set = (struct eligible_set){ .excluded = buf_text(&pod_class->excluded),
                                            .fit = counts[ELIGIBLE_FITS],
                                            .total = total,
                                            .why = buf_text(&pod_class->why) };
    make_room(eligible, pod_class);
}

const char *eligible_words(const struct pod_class *pod_class, unsigned code, struct arena *arena)
{
    auto_buf struct buf text;

    buf_init(&text, MAX_WHY);
    write_words(pod_class, code, &text);
    return arena_strdup(arena, buf_text(&text));
}
