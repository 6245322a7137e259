/* eligible_shape.c - all that decides where a pod may run, under a key; and its set of nodes.
 *
 * Holds   pods with the same key have the same set; a verdict is the one that judging the place now
 *         would give, once the shape has seen the last change; texts are written when asked for.
 *         There are at most ELIGIBLE_MAX_SHAPES, and they take about MAX_BYTES at most (or
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

static bool is_extended(const struct eligible_shape *shape, unsigned code)
{
    return code >= ELIGIBLE_EXTENDED && code - ELIGIBLE_EXTENDED < shape->requests.extended.count;
}

static void write_words(const struct eligible_shape *shape, unsigned code, struct buf *out)
{
    if (code == ELIGIBLE_TROUBLE)
        buf_add_text(out, shape->trouble);
    else if (is_extended(shape, code))
        buf_printf(out, "Insufficient %s",
                   shape->requests.extended.at[code - ELIGIBLE_EXTENDED].name);
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

static void setup_requests(struct eligible_shape *shape, const struct kube_pod *pod)
{
    const struct kube_amounts *from = &pod->requests.extended;
    struct kube_amount *extended =
        arena_alloc_array(&shape->arena, from->count + 1, sizeof(*extended));

    for (unsigned i = 0; i < from->count; i++)
        extended[i] = (struct kube_amount){ arena_strdup(&shape->arena, from->at[i].name),
                                            from->at[i].amount };
    shape->requests = pod->requests;
    shape->requests.extended = (struct kube_amounts){ extended, from->count };
}

static void setup_tolerations(struct eligible_shape *shape, const struct kube_pod *pod)
{
    shape->tolerations =
        arena_alloc_array(&shape->arena, pod->toleration_count + 1, sizeof(*shape->tolerations));
    for (unsigned i = 0; i < pod->toleration_count; i++) {
        struct kube_toleration *toleration = &shape->tolerations[shape->toleration_count];

        if (!matters(&pod->tolerations[i]))
            continue;
        *toleration = pod->tolerations[i];
        toleration->key = arena_strdup(&shape->arena, toleration->key);
        toleration->value = arena_strdup(&shape->arena, toleration->value);
        shape->toleration_count++;
    }
}

static void setup_labels(struct eligible_shape *shape, const struct kube_pod *pod)
{
    const struct kube_pairs *from = &pod->node_selector;
    struct kube_pair *pairs = arena_alloc_array(&shape->arena, from->count + 1, sizeof(*pairs));

    for (unsigned i = 0; i < from->count; i++)
        pairs[i] = (struct kube_pair){ copy_str(&shape->arena, from->at[i].key),
                                       copy_str(&shape->arena, from->at[i].value) };
    shape->selector = (struct kube_pairs){ pairs, from->count };
}

static void setup_affinity(struct eligible_shape *shape, const char *text)
{
    auto_json_doc struct json_doc *doc = NULL;
    struct err err = { 0 };

    if (!text[0])
        return;
    if (json_parse(str_of(text), MAX_RULE_TEXT, &doc, &err) < 0 ||
        nodeselector_from_json(&shape->arena, json_root(doc), &shape->affinity, &err) < 0)
        shape->trouble =
            arena_printf(&shape->arena, "the pod's node affinity cannot be read: %s", err.text);
}

static void setup_rare(struct eligible *eligible, struct eligible_shape *shape,
                       const struct kube_pod *pod)
{
    const struct kube_rare *rare = pod->rare;

    if (!rare)
        return;
    setup_affinity(shape, rare->node_affinity);
    shape->port_count = rare->port_count;
    shape->ports = arena_alloc_array(&shape->arena, rare->port_count + 1, sizeof(*shape->ports));
    for (unsigned i = 0; i < rare->port_count; i++)
        shape->ports[i] = eligible_port_of(&rare->ports[i]);
    eligible_volumes_setup(eligible, shape, pod);
}

/* The kubelet refuses a pod whose scheduler made no claim for it. */
static void refuse_device_classes(struct eligible_shape *shape)
{
    const struct kube_amounts *extended = &shape->requests.extended;
    size_t prefix = strlen(BRIDGE_DEVICE_CLASS);

    for (unsigned i = 0; i < extended->count; i++) {
        const char *name = extended->at[i].name;

        if (extended->at[i].amount <= 0 || strncmp(name, BRIDGE_DEVICE_CLASS, prefix) != 0)
            continue;
        shape->trouble = arena_printf(&shape->arena,
                                      "the pod uses DRA device class \"%s\", and the bridge does "
                                      "not make resource claims yet",
                                      name + prefix);
        shape->trouble_passes = false;
    }
}

/* The rules come with a reference, which the shape keeps. */
static struct eligible_shape *new_shape(struct eligible *eligible, const struct kube_pod *pod,
                                        struct eligible_rules *rules)
{
    struct eligible_shape *shape = mem_alloc(sizeof(*shape));

    arena_init(&shape->arena, ELIGIBLE_MEMORY);
    shape->key = copy_str(&shape->arena, buf_str(&eligible->key));
    shape->number = ++eligible->last_number;
    if (eligible->key.overflowed)
        shape->trouble = "the pod says more about its nodes than can be read";
    buf_init(&shape->excluded, HOSTLIST_MAX_TEXT);
    buf_init(&shape->why, MAX_WHY);
    setup_requests(shape, pod);
    setup_tolerations(shape, pod);
    setup_labels(shape, pod);
    setup_rare(eligible, shape, pod);
    shape->rules = rules;
    if (rules && rules->trouble)
        shape->trouble = rules->trouble;
    refuse_device_classes(shape);
    eligible_pods_setup(eligible, shape, pod);
    return shape;
}

/* ---- those that are kept ---- */

static bool looks_at_pods(const struct eligible_shape *shape)
{
    return shape->tally_count > 0 || shape->repelled_count > 0;
}

/* What makes shapes big: a verdict for each place, and names. */
static size_t bytes_of(const struct eligible_shape *shape)
{
    size_t arrays = looks_at_pods(shape) ? 2 : 1;

    return arrays * shape->capacity * sizeof(*shape->fixed) + shape->excluded.cap + shape->key.len;
}

static void drop_shape(struct eligible *eligible, struct eligible_shape *shape)
{
    map_take(&eligible->shapes, shape->key);
    list_remove(&shape->lru);
    eligible->shape_bytes -= bytes_of(shape);
    eligible_pods_release(eligible, shape);
    eligible_rules_release(eligible, shape->rules);
    if (shape->verdict != shape->fixed)
        mem_free(shape->verdict);
    mem_free(shape->fixed);
    buf_done(&shape->excluded);
    buf_done(&shape->why);
    arena_done(&shape->arena);
    mem_free(shape);
}

static void make_room(struct eligible *eligible, const struct eligible_shape *but)
{
    while (eligible->shapes.count > ELIGIBLE_MAX_SHAPES ||
           (eligible->shape_bytes > MAX_BYTES && eligible->shapes.count > 1)) {
        struct eligible_shape *oldest =
            list_item(list_first(&eligible->lru), struct eligible_shape, lru);

        assert(oldest != but); /* it is the newest */
        eligible->forgot_rules |= oldest->tally_count > 0;
        drop_shape(eligible, oldest);
    }
}

static void keep_shape(struct eligible *eligible, struct eligible_shape *shape)
{
    list_push_back(&eligible->lru, &shape->lru);
    eligible->shape_bytes += bytes_of(shape);
    (void)map_put(&eligible->shapes, shape->key, shape,
                  NULL); /* make_room keeps below its maximum */
    make_room(eligible, shape);
}

void eligible_shapes_init(struct eligible *eligible)
{
    static const struct map_options options = { .max = ELIGIBLE_MAX_SHAPES + 1,
                                                .borrow_keys = true };

    map_init(&eligible->shapes, &options);
    list_init(&eligible->lru);
    buf_init(&eligible->key, MAX_KEY);
}

void eligible_shapes_done(struct eligible *eligible)
{
    list_each (struct eligible_shape, shape, &eligible->lru, lru)
        drop_shape(eligible, shape);
    map_done(&eligible->shapes);
    buf_done(&eligible->key);
}

/* ---- verdicts ---- */

static bool same_verdict(struct eligible_verdict a, struct eligible_verdict b)
{
    return a.code == b.code && a.lent == b.lent;
}

static void fit_arrays(const struct eligible *eligible, struct eligible_shape *shape)
{
    size_t from = shape->capacity, to = eligible->capacity, size = sizeof(*shape->fixed);
    bool two = looks_at_pods(shape);

    if (from == to)
        return;
    shape->fixed = mem_resize_array(shape->fixed, to, size);
    memset(shape->fixed + from, 0, (to - from) * size);
    if (two) {
        shape->verdict = mem_resize_array(shape->verdict, to, size);
        memset(shape->verdict + from, 0, (to - from) * size);
    } else {
        shape->verdict = shape->fixed;
    }
    shape->capacity = to;
}

static void judge_place(struct eligible *eligible, struct eligible_shape *shape, size_t place)
{
    struct eligible_verdict next = eligible_judge(eligible, shape, place);

    shape->text_stale |= eligible->places[place].born > shape->seen ||
                         (!looks_at_pods(shape) && !same_verdict(shape->fixed[place], next));
    shape->fixed[place] = next;
}

static bool must_judge_all(const struct eligible *eligible, const struct eligible_shape *shape)
{
    return shape->seen == 0 || eligible->sequence - shape->seen >= ELIGIBLE_LOG;
}

/* Gives whether any place was touched since. */
static bool judge_places(struct eligible *eligible, struct eligible_shape *shape)
{
    bool touched = false;

    if (must_judge_all(eligible, shape)) {
        for (size_t i = 0; i < eligible->place_count; i++)
            judge_place(eligible, shape, i);
        return true;
    }
    for (uint64_t i = shape->seen + 1; i <= eligible->sequence; i++) {
        int place = eligible->log[i % ELIGIBLE_LOG];

        if (place == ELIGIBLE_NO_PLACE)
            continue;
        judge_place(eligible, shape, (size_t)place);
        touched = true;
    }
    return touched;
}

static void judge_with_pods(struct eligible *eligible, struct eligible_shape *shape)
{
    size_t size = eligible->place_count * sizeof(*shape->verdict);
    auto_free struct eligible_verdict *before =
        mem_alloc_array(eligible->place_count + 1, sizeof(*before));

    if (size > 0) {
        memcpy(before, shape->verdict, size);
        memcpy(shape->verdict, shape->fixed, size);
    }
    eligible_domains_judge(eligible, shape);
    for (size_t i = 0; !shape->text_stale && i < eligible->place_count; i++)
        shape->text_stale = !same_verdict(before[i], shape->verdict[i]);
}

static void refresh(struct eligible *eligible, struct eligible_shape *shape)
{
    bool touched;

    if (shape->seen == eligible->sequence)
        return;
    eligible->shape_bytes -= bytes_of(shape);
    fit_arrays(eligible, shape);
    eligible->shape_bytes += bytes_of(shape);
    touched = judge_places(eligible, shape);
    if (looks_at_pods(shape) && (touched || eligible_pods_changed(shape)))
        judge_with_pods(eligible, shape);
    shape->seen = eligible->sequence;
}

struct eligible_shape *eligible_shape_get(struct eligible *eligible, const struct kube_pod *pod)
{
    struct eligible_rules *rules = eligible_rules_get(eligible, pod);
    struct eligible_shape *shape;

    write_key(eligible, pod, rules);
    shape = map_get(&eligible->shapes, buf_str(&eligible->key));
    if (shape) {
        eligible_rules_release(eligible, rules);
        list_remove(&shape->lru);
        list_push_back(&eligible->lru, &shape->lru);
    } else {
        shape = new_shape(eligible, pod, rules);
        shape->text_stale = true;
        keep_shape(eligible, shape);
    }
    refresh(eligible, shape);
    return shape;
}

/* ---- texts ---- */

static void write_why(struct eligible_shape *shape, const unsigned *counts)
{
    buf_clear(&shape->why);
    for (unsigned code = ELIGIBLE_FITS + 1; code < CODES; code++) {
        if (counts[code] == 0)
            continue;
        buf_add_text(&shape->why, shape->why.len > 0 ? ", " : "");
        if (code != ELIGIBLE_TROUBLE)
            buf_printf(&shape->why, "%u ", counts[code]);
        write_words(shape, code, &shape->why);
    }
}

static void write_excluded(const struct eligible *eligible, struct eligible_shape *shape,
                           unsigned count)
{
    auto_free struct str *names = mem_alloc_array((size_t)count + 1, sizeof(*names));
    size_t found = 0;

    for (size_t i = 0; i < eligible->place_count; i++)
        if (shape->verdict[i].lent && shape->verdict[i].code != ELIGIBLE_FITS)
            names[found++] = str_of(eligible->places[i].slurm_name);
    buf_clear(&shape->excluded);
    (void)hostlist_fold(names, found, &shape->excluded, NULL); /* names were checked: is_lent */
    if (shape->excluded.overflowed)
        buf_clear(&shape->excluded); /* half a list means other nodes; misfits show at bind */
}

void eligible_shape_write(struct eligible *eligible, struct eligible_shape *shape)
{
    unsigned counts[CODES] = { 0 }, total = 0;

    if (!shape->text_stale)
        return;
    for (size_t i = 0; i < eligible->place_count; i++)
        if (shape->verdict[i].lent) {
            counts[shape->verdict[i].code]++;
            total++;
        }
    eligible->shape_bytes -= bytes_of(shape);
    write_excluded(eligible, shape, total - counts[ELIGIBLE_FITS]);
    eligible->shape_bytes += bytes_of(shape);
    write_why(shape, counts);
    shape->text_stale = false;
    shape->set = (struct eligible_set){ .excluded = buf_text(&shape->excluded),
                                        .fit = counts[ELIGIBLE_FITS],
                                        .total = total,
                                        .why = buf_text(&shape->why) };
    make_room(eligible, shape);
}

const char *eligible_words(const struct eligible_shape *shape, unsigned code, struct arena *arena)
{
    auto_buf struct buf text;

    buf_init(&text, MAX_WHY);
    write_words(shape, code, &text);
    return arena_strdup(arena, buf_text(&text));
}
