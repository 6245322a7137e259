/* eligible_trials.c - nodes that were tried for the volume of a claim.
 *
 * A claim that waits for its first consumer is told of a node, by an annotation, and its
 * provisioner makes the volume there. One that cannot takes the annotation away again, so that
 * another node is tried; one that never answers leaves it. Both are read off the claim, whoever
 * wrote on it: who has just begun to watch it gives it the whole time once more.
 *
 * Holds   a node is not tried again for REFUSED_US, however often the claim changes; of a claim
 *         that has a volume, or is gone, nothing is kept. */
#include "bridge/eligible_private.h"

#include "base/mem.h"

#include <string.h>

#define SECOND_US INT64_C(1000000)

enum {
    OVERDUE_S =
        600, /* as long as Kubernetes' own scheduler waits for volumes (bindTimeoutSeconds) */
    REFUSED_S = 600,    /* there may be room for it by then */
    MAX_REFUSALS = 256, /* of one claim; the last of them count */
    MAX_TRIALS = 1 << 20,
};

struct refusal {
    struct list link; /* the oldest first */
    int64_t at_us;
    char node[];
};

struct eligible_trial {
    char *uid;            /* of the claim */
    int64_t selected_us;  /* since when it names its node; meaningless while it names none */
    struct list refusals; /* struct refusal */
    unsigned refusal_count;
};

static int64_t now_us(const struct eligible *eligible)
{
    return eligible->caches.clock ? clock_now_us(eligible->caches.clock) : 0;
}

/* ---- keeping ---- */

static void drop_first(struct eligible_trial *trial)
{
    struct list *first = list_pop_front(&trial->refusals);

    mem_free(list_item(first, struct refusal, link));
    trial->refusal_count--;
}

static void trial_free(void *value)
{
    struct eligible_trial *trial = value;

    while (trial->refusal_count > 0)
        drop_first(trial);
    mem_free(trial->uid);
    mem_free(trial);
}

void eligible_trials_init(struct eligible *eligible)
{
    map_init(
        &eligible->trials,
        &(struct map_options){ .max = MAX_TRIALS, .borrow_keys = true, .free_value = trial_free });
}

void eligible_trials_done(struct eligible *eligible)
{
    map_done(&eligible->trials);
}

const struct eligible_trial *eligible_trial_of(const struct eligible *eligible,
                                               const struct kube_claim *claim)
{
    return map_get(&eligible->trials, str_of(claim->object.uid));
}

/* NULL when there are too many: it is then as if nothing had been tried. */
static struct eligible_trial *need(struct eligible *eligible, const struct kube_claim *claim)
{
    struct eligible_trial *trial = map_get(&eligible->trials, str_of(claim->object.uid));

    if (trial)
        return trial;
    trial = mem_alloc(sizeof(*trial));
    trial->uid = mem_strdup(claim->object.uid);
    list_init(&trial->refusals);
    if (map_put(&eligible->trials, str_of(trial->uid), trial, NULL) == 0)
        return trial;
    trial_free(trial);
    return NULL;
}

static void add_refusal(struct eligible_trial *trial, struct str node, int64_t at_us)
{
    struct refusal *refusal = mem_alloc(sizeof(*refusal) + node.len + 1);

    memcpy(refusal->node, node.at, node.len);
    refusal->at_us = at_us;
    if (trial->refusal_count == MAX_REFUSALS)
        drop_first(trial);
    list_push_back(&trial->refusals, &refusal->link);
    trial->refusal_count++;
}

/* ---- what was seen ---- */

static struct str selected_of(const struct kube_claim *claim)
{
    return claim ? kube_pairs_get(&claim->object.annotations, ELIGIBLE_SELECTED_NODE, NULL)
                 : STR("");
}

void eligible_trials_changed(struct eligible *eligible, const struct kube_claim *old,
                             const struct kube_claim *next)
{
    struct str before, now = selected_of(next);
    struct eligible_trial *trial;

    if (old && (!next || strcmp(old->object.uid, next->object.uid) != 0)) {
        (void)map_remove(&eligible->trials, str_of(old->object.uid));
        old = NULL;
    }
    before = selected_of(old);
    if (next && next->volume[0])
        (void)map_remove(&eligible->trials, str_of(next->object.uid));
    if (!next || next->volume[0] || str_eq(before, now))
        return;
    trial = need(eligible, next);
    if (trial && now.len > 0)
        trial->selected_us = now_us(eligible);
    else if (trial)
        add_refusal(trial, before, now_us(eligible));
}

/* ---- what it means ---- */

static bool counts(const struct eligible *eligible, const struct refusal *refusal)
{
    return now_us(eligible) - refusal->at_us < REFUSED_S * SECOND_US;
}

bool eligible_trial_is_overdue(const struct eligible *eligible, const struct eligible_trial *trial)
{
    return trial && now_us(eligible) - trial->selected_us >= OVERDUE_S * SECOND_US;
}

bool eligible_trial_refused(const struct eligible *eligible, const struct eligible_trial *trial,
                            const char *node)
{
    struct eligible_refusals walk = eligible_refusals(eligible, trial);
    const char *name;

    while ((name = eligible_next_refusal(&walk)) != NULL)
        if (strcmp(name, node) == 0)
            return true;
    return false;
}

struct eligible_refusals eligible_refusals(const struct eligible *eligible,
                                           const struct eligible_trial *trial)
{
    return (struct eligible_refusals){ eligible, trial ? &trial->refusals : NULL,
                                       trial ? trial->refusals.next : NULL };
}

const char *eligible_next_refusal(struct eligible_refusals *walk)
{
    while (walk->at != walk->head) {
        const struct refusal *refusal = list_item(walk->at, struct refusal, link);

        walk->at = walk->at->next;
        if (counts(walk->eligible, refusal))
            return refusal->node;
    }
    return NULL;
}

unsigned eligible_most_refusals(const struct eligible_trial *trial)
{
    return trial ? trial->refusal_count : 0;
}
