/* reserved.c - pods that a plan is about to bind together, beside a filter that does not know them.
 *
 * The rules of a class count pods by slot (pod_judge.c). For a plan the class is judged again, with
 * counts of the plan's own: those of the filter, and the reserved pods. Anti-affinity of a reserved
 * pod may be about some pods of a class and not about others, so results are kept by class and by
 * the terms that are about the pod.
 *
 * Holds   nothing of the filter changes; a reserved pod counts for rules as if it were bound. */
#include "filter/filter_private.h"

#include "base/mem.h"

#include <string.h>

struct reserved_pod {
    const struct kube_pod *pod;
    int slot;
};

struct holders {                /* reserved pods with equal anti-affinity */
    const struct kube_pod *pod; /* one of them */
    uint32_t *in;               /* how many by slot */
    unsigned changed;           /* how many pods were reserved when the last of them came */
};

struct judged {
    unsigned known;           /* how many of the reserved pods are counted */
    struct pod_count *counts; /* copies of those of the class, with the reserved pods */
    unsigned count_count;
    struct filter_result *results;
};

struct filter_reserved {
    struct filter *filter;
    struct reserved_pod *pods;
    struct holders *holders;
    unsigned count, room, holder_count, holder_room;
    struct map judged;
    struct buf key;
    /* What was asked last: a plan asks about one pod and many nodes. */
    const struct kube_pod *last;
    uint64_t last_class;
    const struct filter_result *last_results;
};

static void judged_free(void *value)
{
    struct judged *judged = value;

    for (unsigned i = 0; i < judged->count_count; i++)
        mem_free(judged->counts[i].in);
    mem_free(judged->counts);
    mem_free(judged->results);
    mem_free(judged);
}

struct filter_reserved *filter_reserved_new(struct filter *filter)
{
    const struct map_options options = { .max = FILTER_MAX_NAMES, .free_value = judged_free };
    struct filter_reserved *reserved = mem_alloc(sizeof(*reserved));

    reserved->filter = filter;
    map_init(&reserved->judged, &options);
    buf_init(&reserved->key, FILTER_MAX_TEXT);
    return reserved;
}

void filter_unreserve_all(struct filter_reserved *reserved)
{
    while (reserved->holder_count > 0)
        mem_free(reserved->holders[--reserved->holder_count].in);
    map_clear(&reserved->judged);
    reserved->count = 0;
    reserved->last = NULL;
}

void filter_reserved_free(struct filter_reserved *reserved)
{
    if (!reserved)
        return;
    filter_unreserve_all(reserved);
    map_done(&reserved->judged);
    buf_done(&reserved->key);
    mem_free(reserved->holders);
    mem_free(reserved->pods);
    mem_free(reserved);
}

/* ---- reserving ---- */

static struct holders *holders_like(struct filter_reserved *reserved, const struct kube_pod *pod)
{
    struct holders *holders;

    for (unsigned i = 0; i < reserved->holder_count; i++) {
        const struct kube_pod *other = reserved->holders[i].pod;

        if (strcmp(other->object.ns, pod->object.ns) == 0 &&
            strcmp(other->rare->pod_anti_affinity, pod->rare->pod_anti_affinity) == 0)
            return &reserved->holders[i];
    }
    if (reserved->holder_count == reserved->holder_room) {
        reserved->holder_room = 2 * reserved->holder_room + 1;
        reserved->holders =
            mem_resize_array(reserved->holders, reserved->holder_room, sizeof(*holders));
    }
    holders = &reserved->holders[reserved->holder_count++];
    *holders = (struct holders){
        .pod = pod,
        .in = mem_alloc_array(reserved->filter->slot_count + 1, sizeof(*holders->in)),
    };
    return holders;
}

void filter_reserve(struct filter_reserved *reserved, const struct kube_pod *pod,
                    const struct kube_node *node)
{
    int slot = filter_slot_of(reserved->filter, node->object.name);
    struct holders *holders;

    if (slot == FILTER_NO_SLOT)
        return;
    if (reserved->count == reserved->room) {
        reserved->room = 2 * reserved->room + 1;
        reserved->pods = mem_resize_array(reserved->pods, reserved->room, sizeof(*reserved->pods));
    }
    reserved->pods[reserved->count++] = (struct reserved_pod){ pod, slot };
    reserved->last = NULL;
    if (!pod->rare || !pod->rare->pod_anti_affinity[0])
        return;
    holders = holders_like(reserved, pod);
    holders->in[slot]++;
    holders->changed = reserved->count;
}

/* ---- judging ---- */

/* The key of what is kept for the pod: its class, and the terms of reserved pods that are about it.
 * Gives how many pods were reserved when the last pod with such a term came. */
static unsigned write_key(struct filter_reserved *reserved, const struct pod_class *pod_class,
                          const struct kube_pod *pod)
{
    unsigned newest = 0;

    buf_clear(&reserved->key);
    buf_add(&reserved->key, &pod_class->number, sizeof(pod_class->number));
    for (unsigned i = 0; i < reserved->holder_count; i++) {
        const struct holders *holders = &reserved->holders[i];
        const struct pod_rules *rules = pod_rules_of(reserved->filter, holders->pod);

        for (unsigned term = 0; term < rules->avoid_count; term++)
            if (pod_term_matches(reserved->filter, &rules->avoid[term], pod)) {
                buf_printf(&reserved->key, " %u.%u", i, term);
                newest = holders->changed > newest ? holders->changed : newest;
            }
    }
    return newest;
}

/* Counts the pods that were reserved since the class was judged last. False: it minds none. */
static bool count_more(const struct filter_reserved *reserved, struct judged *judged)
{
    bool changed = false;

    for (unsigned i = judged->known; i < reserved->count; i++)
        for (unsigned k = 0; k < judged->count_count; k++)
            if (pod_count_has(reserved->filter, &judged->counts[k], reserved->pods[i].pod)) {
                judged->counts[k].in[reserved->pods[i].slot]++;
                changed = true;
            }
    judged->known = reserved->count;
    return changed;
}

static struct judged *judged_new(const struct filter *filter, const struct pod_class *pod_class)
{
    struct judged *judged = mem_alloc(sizeof(*judged));
    size_t slots = filter->slot_count;

    judged->results = mem_alloc_array(slots + 1, sizeof(*judged->results));
    memcpy(judged->results, pod_class->result, slots * sizeof(*judged->results));
    judged->count_count = pod_class->count_count;
    judged->counts = mem_alloc_array(judged->count_count + 1, sizeof(*judged->counts));
    for (unsigned i = 0; i < judged->count_count; i++) {
        struct pod_count *count = &judged->counts[i];

        *count = pod_class->counts[i];
        count->in = mem_alloc_array(slots + 1, sizeof(*count->in));
        memcpy(count->in, pod_class->counts[i].in, slots * sizeof(*count->in));
    }
    return judged;
}

static void judge(const struct filter_reserved *reserved, const struct pod_class *pod_class,
                  const struct kube_pod *pod, struct judged *judged)
{
    pod_class_judge(reserved->filter, pod_class, pod, judged->counts, judged->results);
    for (unsigned i = 0; i < reserved->holder_count; i++) {
        const struct holders *holders = &reserved->holders[i];
        const struct pod_rules *rules = pod_rules_of(reserved->filter, holders->pod);

        for (unsigned term = 0; term < rules->avoid_count; term++)
            if (pod_term_matches(reserved->filter, &rules->avoid[term], pod))
                pod_judge_holders(reserved->filter, &rules->avoid[term], holders->in,
                                  judged->results);
    }
}

const struct filter_result *filter_reserved_results(struct filter_reserved *reserved,
                                                    const struct pod_class *pod_class,
                                                    const struct kube_pod *pod)
{
    struct judged *judged;
    unsigned newest;
    bool changed;

    if (reserved->count == 0)
        return pod_class->result;
    if (reserved->last == pod && reserved->last_class == pod_class->number)
        return reserved->last_results;
    newest = write_key(reserved, pod_class, pod);
    reserved->last = pod;
    reserved->last_class = pod_class->number;
    reserved->last_results = pod_class->result;
    if (pod_class->count_count == 0 && newest == 0)
        return pod_class->result; /* it minds no pods, and no reserved pod minds it */
    judged = map_get(&reserved->judged, buf_str(&reserved->key));
    if (!judged) {
        judged = judged_new(reserved->filter, pod_class);
        filter_put(&reserved->judged, buf_str(&reserved->key), judged);
    }
    changed = newest > judged->known;
    changed |= count_more(reserved, judged);
    if (changed)
        judge(reserved, pod_class, pod, judged);
    reserved->last_results = judged->results;
    return judged->results;
}
